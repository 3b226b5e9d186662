//! Opening, closing, forking nothing: what a database looks like after each, also after failing disks
//! and killed processes. Second processes are this test binary, run again in a named role.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::Arc;
use std::time::Duration;

use perilune_disk::{Fault, FaultyDisk};
use perilune_shm::lockbyte;
use perilune_store::{Durability, Error};

use super::{claim_session, gate, release_session, site, Attachment, OpenOptions};
use crate::access::Access;
use crate::image::layout::{control, header};
use crate::limits::{PAGE, PROCESSES, SEGMENT_RESERVED};
use crate::session::record::Kind;
use crate::tree::Which;
use crate::verify;

/// A directory that is removed when dropped.
pub(super) struct Scratch(pub(super) PathBuf);

impl Scratch {
    pub(super) fn new() -> Scratch {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("perilune-open-{}-{}", std::process::id(), NUMBER.fetch_add(1, SeqCst));
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub(super) fn db(&self) -> PathBuf {
        self.0.join("x.db")
    }

    pub(super) fn shm(&self) -> PathBuf {
        self.0.join("x.db-shm")
    }

    pub(super) fn open(&self) -> Arc<Attachment> {
        Attachment::open(&self.db(), &options()).unwrap()
    }

    pub(super) fn refusal(&self, options: &OpenOptions) -> String {
        match Attachment::open(&self.db(), options) {
            Ok(_) => panic!("the database was opened"),
            Err(error) => error.to_string(),
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
    }
}

/// At level none, so that nothing but the test takes checkpoints.
pub(super) fn options() -> OpenOptions {
    OpenOptions { max_size: 1 << 30, durability: Some(Durability::None), ..OpenOptions::default() }
}

pub(super) fn reading() -> OpenOptions {
    OpenOptions { read_only: true, ..options() }
}

pub(super) fn put(attachment: &Attachment, key: &str, value: &[u8]) {
    let access = Access::new(claim_session(attachment.image().unwrap()).unwrap());
    access.set(Which::Main, key.as_bytes(), value).unwrap();
    release_session(&access.seat);
}

pub(super) fn get(attachment: &Attachment, key: &str) -> Option<Vec<u8>> {
    let image = attachment.image().unwrap();
    let access = Access::new(crate::session::Seat::new(image.clone(), 0));
    let mut value = Vec::new();
    access.get(Which::Main, key.as_bytes(), &mut value, &mut ()).unwrap().then_some(value)
}

pub(super) fn fill(attachment: &Attachment, round: u32) {
    for key in 0..500 {
        put(attachment, &format!("key {key}"), &[round as u8; 100]);
    }
    put(attachment, "long", &vec![round as u8; 5 * PAGE + 7]);
}

/// The round whose values are all there, and nothing else.
pub(super) fn round_of(attachment: &Attachment) -> u8 {
    let round = get(attachment, "long").unwrap()[0];
    assert_eq!(get(attachment, "long").unwrap(), vec![round; 5 * PAGE + 7]);
    for key in 0..500 {
        assert_eq!(get(attachment, &format!("key {key}")), Some(vec![round; 100]), "key {key}");
    }
    verify::verify(attachment.image().unwrap()).unwrap();
    round
}

#[test]
fn what_is_written_is_there_after_reopening_with_and_without_shm() {
    let scratch = Scratch::new();
    for round in 1..8 {
        let attachment = scratch.open();
        if round > 1 {
            assert_eq!(round_of(&attachment), round as u8 - 1);
        }
        fill(&attachment, round);
        assert_eq!(round_of(&attachment), round as u8);
        attachment.close().unwrap();
        if round % 2 == 0 {
            fs::remove_file(scratch.shm()).unwrap();
        }
    }
}

#[test]
fn closing_without_changes_keeps_the_generation() {
    let scratch = Scratch::new();
    scratch.open().close().unwrap();
    let generation = |attachment: &Attachment| attachment.image().unwrap().generation();
    let attachment = scratch.open();
    let before = generation(&attachment);
    attachment.close().unwrap();
    let attachment = scratch.open();
    assert_eq!(generation(&attachment), before);
    put(&attachment, "a", b"1");
    attachment.close().unwrap();
    assert_eq!(generation(&scratch.open()), before + 1);
}

#[test]
fn files_have_the_mode_asked_for() {
    let scratch = Scratch::new();
    let _open = Attachment::open(&scratch.db(), &OpenOptions { file_mode: 0o660, ..options() }).unwrap();
    for path in [scratch.db(), scratch.shm()] {
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660, "{path:?}");
    }
}

#[test]
fn two_attachments_share_the_data_and_the_last_one_closes() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.open(), scratch.open());
    put(&first, "a", b"1");
    assert_eq!(get(&second, "a"), Some(b"1".to_vec()));
    assert_ne!(first.image().unwrap().me, second.image().unwrap().me);
    first.close().unwrap();
    put(&second, "b", b"2");
    fs::copy(scratch.db(), scratch.0.join("copy.db")).unwrap();
    let copy = Attachment::open(&scratch.0.join("copy.db"), &options()).unwrap();
    assert!(copy.recovery().is_some(), "a copy of an open database passes for a closed one");
    copy.close().unwrap();
    second.close().unwrap();
    fs::copy(scratch.db(), scratch.0.join("copy.db")).unwrap();
    let copy = Attachment::open(&scratch.0.join("copy.db"), &options()).unwrap();
    assert_eq!((get(&copy, "a"), get(&copy, "b")), (Some(b"1".to_vec()), Some(b"2".to_vec())));
}

#[test]
fn a_database_copied_over_a_closed_one_is_not_taken_for_it() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    attachment.close().unwrap();
    let backup = fs::read(scratch.db()).unwrap();
    let attachment = scratch.open();
    fill(&attachment, 2);
    attachment.close().unwrap();
    // In place: same inode, same uuid, same boot.
    File::options().write(true).open(scratch.db()).unwrap().write_all_at(&backup, 0).unwrap();
    assert_eq!(round_of(&scratch.open()), 1);
}

#[test]
fn pages_of_the_last_checkpoint_are_never_written() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    attachment.close().unwrap();
    let closed = fs::read(scratch.db()).unwrap();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    let durable: Vec<u32> = (0..closed.len() / PAGE)
        .map(|page| page as u32)
        .filter(|page| image.life(*page).born != 0 && image.life(*page).died == 0)
        .collect();
    assert!(durable.len() > 5);
    fill(&attachment, 2);
    fill(&attachment, 3);
    let now = fs::read(scratch.db()).unwrap();
    for page in durable {
        let bytes = page as usize * PAGE..(page as usize + 1) * PAGE;
        assert!(closed[bytes.clone()] == now[bytes], "page {page} was written in place");
    }
}

#[test]
fn failing_disks_leave_the_old_state_or_the_new_one() {
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        let (mut call, mut unnoticed) = (1, 0);
        loop {
            let scratch = Scratch::new();
            // Without a log, whose failing the checkpoint makes up for.
            let none = OpenOptions { durability: Some(Durability::None), ..options() };
            let attachment = Attachment::open(&scratch.db(), &none).unwrap();
            fill(&attachment, 1);
            attachment.close().unwrap();
            let disk = FaultyDisk::new(fault);
            let attachment = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone())).unwrap();
            fill(&attachment, 2);
            let before = disk.calls();
            disk.fail_call(call);
            let closed = attachment.close();
            if disk.calls() - before < call {
                closed.unwrap();
                break;
            }
            // That the second copy of meta cannot be written costs nothing.
            unnoticed += usize::from(closed.is_ok());
            assert!(unnoticed <= 1, "call {call} failed with {fault:?} and nobody noticed");
            let attachment = scratch.open();
            assert_eq!(round_of(&attachment), 2, "call {call}");
            attachment.close().unwrap();
            fs::remove_file(scratch.shm()).unwrap();
            assert_eq!(round_of(&scratch.open()), 2, "call {call}, from the file alone");
            call += 1;
        }
        assert!(call > 5, "closing makes {call} calls only");
    }
}

#[test]
fn failing_disks_keep_nobody_from_opening_again() {
    for fault in [Fault::NoSpace, Fault::ShortWrite] {
        for create in [false, true] {
            let (mut call, mut unnoticed) = (1, 0);
            loop {
                let scratch = Scratch::new();
                if !create {
                    scratch.open().close().unwrap();
                }
                let disk = FaultyDisk::new(fault);
                disk.fail_call(call);
                let opened = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone()));
                if disk.calls() < call {
                    opened.unwrap();
                    break;
                }
                match opened {
                    // That the second copy of meta cannot be written costs nothing.
                    Ok(opened) => {
                        unnoticed += 1;
                        opened.close().unwrap();
                    }
                    Err(error) => {
                        assert!(matches!(error, Error::NoSpace { .. } | Error::Io { .. }), "{error}");
                    }
                }
                assert!(unnoticed <= 1, "call {call} failed and nobody noticed");
                let attachment = scratch.open();
                put(&attachment, "a", b"1");
                attachment.close().unwrap();
                assert!(!scratch.0.join("x.db-new").exists(), "call {call}");
                call += 1;
            }
            assert!(call > 3);
        }
    }
}

#[test]
fn what_is_no_database_is_refused_with_a_reason() {
    let scratch = Scratch::new();
    let no_create = OpenOptions { create: false, ..options() };
    assert!(scratch.refusal(&no_create).contains("does not exist"));
    assert!(scratch.refusal(&reading()).contains("does not exist"));
    let nowhere = Attachment::open(&scratch.0.join("no/x.db"), &options()).err().unwrap().to_string();
    assert!(nowhere.contains("create it"), "{nowhere}");
    fs::create_dir(scratch.db()).unwrap();
    assert!(scratch.refusal(&options()).contains("is a directory"));
    fs::remove_dir(scratch.db()).unwrap();
    fs::write(scratch.db(), "#!/bin/sh\n").unwrap();
    assert!(scratch.refusal(&options()).contains("is not a Perilune database"));
    fs::write(scratch.db(), vec![0; 1 << 20]).unwrap();
    assert!(scratch.refusal(&options()).contains("is not a Perilune database"));
    assert_eq!(fs::metadata(scratch.db()).unwrap().len(), 1 << 20, "the file was changed");
}

#[test]
fn other_formats_pages_and_damage_are_named() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    attachment.close().unwrap();
    let closed = fs::read(scratch.db()).unwrap();
    fs::write(scratch.db(), &closed[..100 * PAGE]).unwrap();
    assert!(scratch.refusal(&options()).contains("it was cut"), "with -shm there");
    let with = |changes: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = closed.clone();
        changes(&mut bytes);
        fs::write(scratch.db(), bytes).unwrap();
        let _ = fs::remove_file(scratch.shm());
        scratch.refusal(&options())
    };
    let in_both = |bytes: &mut Vec<u8>, at: usize, value: u8| {
        for slot in 0..2 {
            bytes[slot * PAGE + at] = value;
            let sum = crc32c::crc32c(&bytes[slot * PAGE..slot * PAGE + 124]).to_le_bytes();
            bytes[slot * PAGE + 124..slot * PAGE + 128].copy_from_slice(&sum);
        }
    };
    assert!(with(&|bytes| in_both(bytes, 8, 200)).contains("use a newer version"));
    assert!(with(&|bytes| in_both(bytes, 13, 0x40)).contains("pages of 16384 bytes"));
    assert!(with(&|bytes| in_both(bytes, 52, 3)).contains("root"));
    assert!(with(&|bytes| in_both(bytes, 84, 3)).contains("info pages"));
    assert!(with(&|bytes| (bytes[20], bytes[PAGE + 20]) = (0xee, 0xee)).contains("both copies of meta"));
    assert!(with(&|bytes| bytes.truncate(100 * PAGE)).contains("it was cut"));
    let damaged_info = with(&|bytes| bytes[2 * PAGE + 50..SEGMENT_RESERVED as usize * PAGE].fill(0xaa));
    assert!(damaged_info.contains("info page"), "{damaged_info}");
    fs::write(scratch.db(), &closed).unwrap();
    assert_eq!(round_of(&scratch.open()), 1);
}

/// Writing into a hole on a full disk ends the process.
#[test]
fn a_copy_with_holes_gets_its_space_when_it_is_opened() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 3);
    attachment.close().unwrap();
    let used = crate::checkpoint_pages(&scratch.db()).unwrap();
    let bytes = fs::read(scratch.db()).unwrap();
    for file in ["x.db", "x.db-shm"] {
        fs::remove_file(scratch.0.join(file)).unwrap();
    }
    let copy = File::create(scratch.db()).unwrap();
    copy.set_len(bytes.len() as u64).unwrap();
    for page in used.directory.iter().chain(&used.data) {
        let at = *page as usize * PAGE;
        copy.write_all_at(&bytes[at..at + PAGE], at as u64).unwrap();
    }
    let allocated = || fs::metadata(scratch.db()).unwrap().blocks() * 512;
    assert!(allocated() < bytes.len() as u64, "this file system has no holes");
    let attachment = scratch.open();
    assert!(allocated() >= used.pages * PAGE as u64);
    assert_eq!(round_of(&attachment), 3);
}

#[test]
fn an_empty_file_becomes_a_database() {
    let scratch = Scratch::new();
    fs::write(scratch.db(), "").unwrap();
    put(&scratch.open(), "a", b"1");
    assert_eq!(get(&scratch.open(), "a"), Some(b"1".to_vec()));
}

#[test]
fn what_a_killed_creator_left_is_made_anew() {
    let scratch = Scratch::new();
    fs::write(scratch.0.join("x.db-new"), vec![0; 3 * PAGE]).unwrap();
    put(&scratch.open(), "a", b"1");
    assert!(!scratch.0.join("x.db-new").exists());
    let left = File::create(scratch.shm()).unwrap();
    left.set_len(1 << 20).unwrap();
    assert_eq!(get(&scratch.open(), "a"), Some(b"1".to_vec()));
}

#[test]
fn opening_waits_for_the_open_lock_no_longer_than_told() {
    let scratch = Scratch::new();
    scratch.open().close().unwrap();
    let file = File::options().read(true).write(true).open(scratch.db()).unwrap();
    assert!(lockbyte::try_exclusive(&file, gate::OPEN).unwrap());
    let short = OpenOptions { timeout: Duration::from_millis(30), ..options() };
    assert!(scratch.refusal(&short).contains("higher `timeout`"));
    std::thread::scope(|scope| {
        let opener = scope.spawn(|| get(&scratch.open(), "a"));
        lockbyte::unlock(&file, gate::OPEN).unwrap();
        assert_eq!(opener.join().unwrap(), None);
    });
}

#[test]
fn options_that_cannot_be_kept_are_refused() {
    let scratch = Scratch::new();
    assert!(scratch.refusal(&OpenOptions { max_size: 100, ..options() }).contains("max_size"));
    assert!(scratch.refusal(&OpenOptions { file_mode: 0o7777, ..options() }).contains("file_mode"));
    assert!(!scratch.db().exists());
}

/// Writes until there is no more room; the error, and the last key.
fn fill_up(attachment: &Attachment, from: u32) -> (Error, u32) {
    let access = Access::new(claim_session(attachment.image().unwrap()).unwrap());
    for number in from.. {
        let written = access.set(Which::Main, format!("full {number}").as_bytes(), &vec![7; 4 * PAGE]);
        if let Err(error) = written {
            release_session(&access.seat);
            return (error, number);
        }
    }
    unreachable!("there is a limit")
}

/// A program reached its limit, was given a higher one, and was told the same limit again, as long as the machine ran.
#[test]
fn a_limit_is_raised_by_the_next_who_finds_nobody() {
    let scratch = Scratch::new();
    let of = |mebibytes: u64| OpenOptions { max_size: mebibytes << 20, ..options() };
    let open = |mebibytes| Attachment::open(&scratch.db(), &of(mebibytes)).unwrap();
    let first = open(8);
    let (error, end) = fill_up(&first, 0);
    assert!(matches!(error, Error::LimitReached { limit, .. } if limit == 8 << 20), "{error}");
    // Others have mapped no more than that: it stays, and who asks in vain is told.
    let second = open(32);
    let (error, _) = fill_up(&second, end);
    assert!(error.to_string().contains("end all who have it open"), "{error}");
    // A reader has mapped it, too.
    first.close().unwrap();
    let reader = Attachment::open(&scratch.db(), &OpenOptions { read_only: true, ..of(8) }).unwrap();
    second.close().unwrap();
    assert!(matches!(fill_up(&open(32), end).0, Error::LimitReached { limit, .. } if limit == 8 << 20));
    reader.close().unwrap();
    let third = open(32);
    let (error, further) = fill_up(&third, end);
    assert!(matches!(error, Error::LimitReached { limit, .. } if limit == 32 << 20), "{error}");
    assert!(further > 2 * end, "{further} after {end}");
    // Whoever allows less has his own limit, and the others theirs.
    let fourth = open(16);
    assert!(fill_up(&fourth, further).0.to_string().contains("open it with a higher"));
    fourth.close().unwrap();
    third.close().unwrap();
    // All is there with a limit that is too low for more, and with the file of before.
    for mebibytes in [8, 64] {
        let again = open(mebibytes);
        assert_eq!(get(&again, &format!("full {}", further - 1)), Some(vec![7; 4 * PAGE]));
        verify::verify(again.image().unwrap()).unwrap();
        again.close().unwrap();
    }
}

#[test]
fn readers_need_no_shared_memory_and_then_keep_writers_out() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    attachment.close().unwrap();
    fs::remove_file(scratch.shm()).unwrap();
    fs::set_permissions(scratch.db(), fs::Permissions::from_mode(0o400)).unwrap();
    let reader = Attachment::open(&scratch.db(), &reading()).unwrap();
    let another = Attachment::open(&scratch.db(), &reading()).unwrap();
    assert!(!scratch.shm().exists());
    assert_eq!(get(&reader, "key 7"), Some(vec![1; 100]));
    assert_eq!(get(&another, "long"), Some(vec![1; 5 * PAGE + 7]));
    assert!(matches!(claim_session(reader.image().unwrap()), Err(Error::ReadOnly)));
    fs::set_permissions(scratch.db(), fs::Permissions::from_mode(0o600)).unwrap();
    assert!(scratch.refusal(&options()).contains("is being read"));
    reader.close().unwrap();
    another.close().unwrap();
    fill(&scratch.open(), 2);
}

#[test]
fn readers_share_what_writers_write() {
    let scratch = Scratch::new();
    let writer = scratch.open();
    put(&writer, "a", b"1");
    let reader = Attachment::open(&scratch.db(), &reading()).unwrap();
    assert_eq!(get(&reader, "a"), Some(b"1".to_vec()));
    put(&writer, "a", b"2");
    assert_eq!(get(&reader, "a"), Some(b"2".to_vec()));
    writer.close().unwrap();
    assert_eq!(get(&reader, "a"), Some(b"2".to_vec()));
    put(&scratch.open(), "a", b"3");
    assert_eq!(get(&reader, "a"), Some(b"3".to_vec()));
}

#[test]
fn two_shm_directories_at_once_are_refused() {
    let scratch = Scratch::new();
    let directory = scratch.0.join("shm");
    fs::create_dir(&directory).unwrap();
    let elsewhere = OpenOptions { shm_dir: Some(directory.clone()), ..options() };
    let attachment = scratch.open();
    put(&attachment, "a", b"1");
    assert!(scratch.refusal(&elsewhere).contains("same shm_dir"));
    attachment.close().unwrap();
    let attachment = Attachment::open(&scratch.db(), &elsewhere).unwrap();
    put(&attachment, "a", b"2");
    assert!(directory.join("x.db-shm").exists());
    attachment.close().unwrap();
    // The first -shm is still there, of this boot and database, but of an earlier state.
    assert_eq!(get(&scratch.open(), "a"), Some(b"2".to_vec()));
}

#[test]
fn another_layout_is_refused_while_it_is_used_and_replaced_afterwards() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    put(&attachment, "a", b"1");
    let layout = attachment.image().unwrap().shm.word(header::LAYOUT);
    let ours = layout.swap(0x0007_0000_0000_0002, SeqCst);
    let refusal = scratch.refusal(&options());
    assert!(refusal.contains(&format!("pid {}", std::process::id())), "{refusal}");
    layout.store(ours, SeqCst);
    attachment.close().unwrap();
    File::options().write(true).open(scratch.shm()).unwrap().write_all_at(&[9; 4], 8).unwrap();
    assert_eq!(get(&scratch.open(), "a"), Some(b"1".to_vec()));
}

#[test]
fn sessions_are_claimed_once_and_again_when_given_back() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    let seats: Vec<_> = (0..20).map(|_| claim_session(image).unwrap()).collect();
    let mut ids: Vec<u16> = seats.iter().map(|seat| seat.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, (1..=20).collect::<Vec<_>>());
    assert_eq!(image.control(control::SESSIONS_HIGH).load(SeqCst), 21, "one is spare");
    release_session(&seats[6]);
    assert_eq!(claim_session(image).unwrap().id, seats[6].id);
}

/// `verify` reads by a session of its own: on a full disk there was no space for it.
#[test]
fn one_more_session_begins_on_a_full_disk() {
    let scratch = Scratch::new();
    let disk = FaultyDisk::new(Fault::NoSpace);
    let attachment = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone())).unwrap();
    let image = attachment.image().unwrap();
    let first = claim_session(image).unwrap();
    disk.fail_from_call(1);
    let spare = claim_session(image).unwrap();
    let error = claim_session(image).map(|seat| seat.id).unwrap_err();
    assert!(matches!(error, Error::NoSpace { .. }), "{error}");
    for seat in [first, spare] {
        release_session(&seat);
    }
    disk.fail_call(0);
}

#[test]
fn leaving_with_sessions_left_frees_them() {
    let scratch = Scratch::new();
    let (first, second) = (scratch.open(), scratch.open());
    claim_session(first.image().unwrap()).unwrap();
    first.close().unwrap();
    assert_eq!(claim_session(second.image().unwrap()).unwrap().id, 1);
    second.close().unwrap();
    assert_eq!(round_of_one(&scratch), None);
}

fn round_of_one(scratch: &Scratch) -> Option<Vec<u8>> {
    get(&scratch.open(), "a")
}

/// The offset of the record kinds is what repair relies on; a wrong one would make the test below idle.
const _: () = assert!(Kind::Set as u8 == 1);

const ROLE: &str = "PERILUNE_OPEN_TEST_ROLE";
const PATH: &str = "PERILUNE_OPEN_TEST_PATH";

/// A second process in a role; killed when dropped.
pub(super) struct Second {
    child: Child,
    _input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Second {
    /// Starts it and waits until it says that it is ready.
    pub(super) fn start(role: &str, path: &Path) -> Second {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["open::tests::second_process", "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, role)
            .env(PATH, path)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let ready = output.by_ref().lines().any(|line| line.unwrap().contains("@ready"));
        assert!(ready, "the second process ended before it was ready");
        let input = child.stdin.take().unwrap();
        Second { child, _input: input, output }
    }

    pub(super) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens, writes the next number and closes, again and again, and says each number that it wrote.
fn cycle(path: &Path) {
    for number in 1_u64.. {
        let attachment = Attachment::open(path, &options()).unwrap();
        put(&attachment, &format!("{}", std::process::id()), &number.to_le_bytes());
        println!("@wrote {number}");
        if number % 3 == 0 {
            fill(&attachment, number as u32);
        }
        attachment.close().unwrap();
        if number == 1 {
            println!("@ready");
        }
    }
}

/// Plays the role named in the environment; without one there is nothing to do.
#[test]
fn second_process() {
    let (Ok(role), Some(path)) = (std::env::var(ROLE), std::env::var_os(PATH)) else { return };
    if role == "cycler" {
        cycle(Path::new(&path));
    }
    let attachment = Attachment::open(Path::new(&path), &options()).unwrap();
    let seat = claim_session(attachment.image().unwrap()).unwrap();
    match role.as_str() {
        "writer" => fill(&attachment, 4),
        "latched" => {
            fill(&attachment, 4);
            let root = attachment.image().unwrap().control(control::ROOT).load(SeqCst) as u32;
            let word = perilune_shm::latch::load(attachment.image().unwrap().latch(root));
            seat.enter();
            assert!(seat.try_latch(root, word));
        }
        "snapshot" => {
            fill(&attachment, 4);
            let image = attachment.image().unwrap();
            std::mem::forget(crate::pin::cut(image, 0, crate::pin::Purpose::Snapshot).unwrap());
            fill(&attachment, 5);
        }
        _ => panic!("unknown role {role}"),
    }
    println!("\n@ready");
    std::io::stdout().flush().unwrap();
    let _ = std::io::stdin().lines().next();
}

#[test]
fn what_killed_processes_wrote_is_there() {
    for role in ["writer", "latched"] {
        let scratch = Scratch::new();
        scratch.open().close().unwrap();
        // In this order: whoever latches the root keeps all others waiting as long as he lives.
        let mut seconds = [Second::start("writer", &scratch.db()), Second::start(role, &scratch.db())];
        seconds.iter_mut().for_each(Second::kill);
        // All dead: attached to at once, their sessions and latches free.
        let attachment = scratch.open();
        assert_eq!(round_of(&attachment), 4);
        assert_eq!(claim_session(attachment.image().unwrap()).unwrap().id, 1);
        attachment.close().unwrap();
        fs::remove_file(scratch.shm()).unwrap();
        assert_eq!(round_of(&scratch.open()), 4, "{role}: the checkpoint is complete");
    }
}

#[test]
fn a_killed_process_does_not_keep_the_last_one_from_closing() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let mut second = Second::start("latched", &scratch.db());
    second.kill();
    attachment.close().unwrap();
    fs::remove_file(scratch.shm()).unwrap();
    assert_eq!(round_of(&scratch.open()), 4);
}

#[test]
fn a_living_process_is_never_taken_for_a_crashed_machine() {
    let scratch = Scratch::new();
    let second = Second::start("writer", &scratch.db());
    fs::remove_file(scratch.shm()).unwrap();
    let refusal = scratch.refusal(&options());
    assert!(refusal.contains("is in use by 1 process"), "{refusal}");
    drop(second);
    let refusal = scratch.refusal(&reading());
    assert!(refusal.contains("was removed") && refusal.contains("read_only=false"), "{refusal}");
    scratch.open().close().unwrap();
}

/// Kills processes that come and go, at random moments, two at a time.
#[test]
fn whoever_is_killed_while_coming_or_going_leaves_a_good_database() {
    let seed = perilune_shm::platform::random_u64();
    println!("seed {seed}");
    let mut random = seed | 1;
    let scratch = Scratch::new();
    fill(&scratch.open(), 1);
    for round in 0..12 {
        let mut seconds = [Second::start("cycler", &scratch.db()), Second::start("cycler", &scratch.db())];
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        perilune_shm::platform::sleep(Duration::from_micros(random % 30_000));
        for second in &mut seconds {
            second.kill();
        }
        let attachment = scratch.open();
        for second in &mut seconds {
            let numbers: Vec<u64> = second
                .output
                .by_ref()
                .lines()
                .map_while(Result::ok)
                .filter_map(|line| line.strip_prefix("@wrote ")?.parse().ok())
                .collect();
            let told = numbers.last().copied().unwrap_or(1);
            let found = get(&attachment, &second.child.id().to_string()).unwrap();
            let found = u64::from_le_bytes(found.try_into().unwrap());
            assert!(found == told || found == told + 1, "round {round}: told {told}, found {found}");
        }
        verify::verify(attachment.image().unwrap()).unwrap();
        // The last one to leave writes a checkpoint that is whole without -shm.
        attachment.close().unwrap();
        if round % 2 == 0 {
            fs::remove_file(scratch.shm()).unwrap();
        }
    }
}

/// Bytes of slots that others hold, as they do while they come or go: nobody can take those slots.
#[test]
fn one_process_too_many_is_told_what_to_do() {
    let scratch = Scratch::new();
    drop(scratch.open());
    let file = File::options().read(true).write(true).open(scratch.db()).unwrap();
    let keeper = scratch.open();
    for slot in 0..PROCESSES as u64 {
        let is_mine = slot == u64::from(keeper.image().unwrap().me.slot);
        assert!(is_mine || lockbyte::try_exclusive(&file, gate::SLOTS + slot).unwrap(), "slot {slot}");
    }
    let told = scratch.refusal(&options());
    assert!(told.contains("too many processes: end some") && told.contains("1024"), "{told}");
    drop(file);
    drop(scratch.open());
}

/// Each kind of file system that does not do, and what the user is told.
#[test]
fn file_systems_that_do_not_do_are_refused() {
    use perilune_shm::platform::FileSystem::{Btrfs, Ext, Fuse, Nfs, NineP, Other, Overlay, Tmpfs, Xfs, Zfs};
    let any = OpenOptions { allow_any_filesystem: true, ..options() };
    for kind in [Nfs, Fuse, NineP] {
        for options in [&options(), &any] {
            let why = site::refusal(kind, options).unwrap();
            assert!(why.contains(&format!("{kind:?}")) && why.contains("put it on a local file"), "{why}");
        }
    }
    for kind in [Btrfs, Zfs] {
        let why = site::refusal(kind, &options()).unwrap();
        assert!(
            why.contains(&format!("{kind:?}")) && why.contains("with the option any_filesystem"),
            "{why}"
        );
        assert_eq!(site::refusal(kind, &any), None);
    }
    for kind in [Ext, Xfs, Tmpfs, Overlay, Other(1)] {
        assert_eq!(site::refusal(kind, &options()), None, "{kind:?}");
    }
}
