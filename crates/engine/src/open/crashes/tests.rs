//! The machine crashes: only the last checkpoint is to be trusted, and nothing more is needed. A crash is
//! played by a copy of the database file without its `-shm`, in which all else is garbage.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::SeqCst;
use std::sync::Arc;

use perilune_disk::{Disk, Fault, FaultyDisk, RealDisk};
use perilune_store::Error;

use super::tests::{fill, get, options, put, reading, round_of, Scratch, Second};
use super::Attachment;
use crate::image::layout::{control, header, Owner, ProcessState, FLAG_FAILED, PINS_AT, PIN_OWNER};
use crate::limits::PAGE;
use crate::meta::info::ENTRIES;
use crate::meta::sums::{checkpoint_pages, CheckpointPages};
use crate::pin::{self, Purpose};
use crate::{checkpoint, duty, meta, verify};

/// Fills every page of the file with garbage that the last checkpoint does not need.
fn garble(path: &Path) -> CheckpointPages {
    let durable = checkpoint_pages(path).unwrap();
    let file = File::options().write(true).open(path).unwrap();
    let mut seed = durable.generation + 1;
    for page in 0..fs::metadata(path).unwrap().len() / PAGE as u64 {
        if durable.data.contains(&page) || durable.directory.contains(&page) {
            continue;
        }
        let mut garbage = Vec::with_capacity(PAGE);
        while garbage.len() < PAGE {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            garbage.extend_from_slice(&(seed >> 8).to_le_bytes());
        }
        file.write_all_at(&garbage, page * PAGE as u64).unwrap();
    }
    durable
}

/// The database as a crash at this moment leaves it.
fn crashed(scratch: &Scratch) -> (Scratch, PathBuf) {
    let other = Scratch::new();
    fs::copy(scratch.db(), other.db()).unwrap();
    garble(&other.db());
    let path = other.db();
    (other, path)
}

fn take(attachment: &Attachment) -> bool {
    checkpoint::take(attachment.image().unwrap(), attachment.disk(), 0).unwrap()
}

#[test]
fn after_a_crash_the_last_checkpoint_is_there() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    assert!(attachment.recovery().is_none());
    for round in 1..6 {
        fill(&attachment, round);
        assert!(take(&attachment));
        assert!(!take(&attachment), "nothing has changed");
        fill(&attachment, round + 100);
        let (crash, path) = crashed(&scratch);
        assert!(crash.refusal(&reading()).contains("read_only=false"));
        let recovered = Attachment::open(&path, &options()).unwrap();
        assert_eq!(round_of(&recovered), round as u8);
        let report = recovered.recovery().unwrap();
        assert!(report.pages > 5 && report.records == 0 && report.dropped.is_none(), "{report}");
        fill(&recovered, 77);
        recovered.close().unwrap();
        assert_eq!(round_of(&crash.open()), 77);
        assert!(crash.open().recovery().is_none());
    }
    assert_eq!(round_of(&attachment), 105);
}

#[test]
fn a_crash_is_known_by_the_boot_id() {
    let scratch = Scratch::new();
    scratch.open().close().unwrap();
    Second::start("writer", &scratch.db()).kill();
    let shm = File::options().write(true).open(scratch.shm()).unwrap();
    shm.write_all_at(&[1; 16], header::BOOT_ID as u64).unwrap();
    let recovered = scratch.open();
    assert!(recovered.recovery().is_some());
    assert_eq!(get(&recovered, "long"), None, "level none keeps the last checkpoint only");
    verify::verify(recovered.image().unwrap()).unwrap();
}

#[test]
fn damaged_pages_are_named() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    take(&attachment);
    let durable = checkpoint_pages(&scratch.db()).unwrap();
    for (count, at) in [(1, 3), (durable.data.len(), PAGE as u64 - 1)] {
        let (crash, path) = crashed(&scratch);
        let file = File::options().read(true).write(true).open(&path).unwrap();
        for page in durable.data.iter().take(count) {
            let mut byte = [0];
            file.read_exact_at(&mut byte, page * PAGE as u64 + at).unwrap();
            file.write_all_at(&[byte[0] ^ 4], page * PAGE as u64 + at).unwrap();
        }
        let refusal = crash.refusal(&options());
        let first = durable.data[0];
        assert!(refusal.contains(&format!("page {first} (byte {}): ", first * PAGE as u64)), "{refusal}");
        assert!(refusal.contains("perilune salvage") && refusal.contains(" tree"), "{refusal}");
        if count > crate::limits::DAMAGES_NAMED {
            assert!(refusal.contains("more pages"), "{refusal}");
        }
    }
}

#[test]
fn checking_finds_damage_in_the_last_checkpoint() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    take(&attachment);
    fill(&attachment, 2);
    let image = attachment.image().unwrap();
    let durable = checkpoint_pages(&scratch.db()).unwrap();
    assert_eq!(verify::sums(image, attachment.disk()).unwrap(), durable.data.len() as u64);
    // A page that has been replaced since: nobody would read it again but after a crash.
    let page = durable.data.iter().find(|page| image.life(**page as u32).died != 0).unwrap();
    let file = File::options().write(true).open(scratch.db()).unwrap();
    file.write_all_at(&[0xee], page * PAGE as u64 + 300).unwrap();
    let damage = verify::sums(image, attachment.disk()).unwrap_err().to_string();
    assert!(damage.contains(&format!("page {page} ")), "{damage}");
    verify::verify(image).unwrap();
    take(&attachment);
    verify::sums(image, attachment.disk()).unwrap();
}

#[test]
fn failing_disks_during_a_checkpoint_leave_the_old_state_or_the_new_one() {
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        let (mut stopped, mut unnoticed) = (0, 0);
        for call in 1.. {
            let scratch = Scratch::new();
            let disk = FaultyDisk::new(fault);
            let attachment = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone())).unwrap();
            fill(&attachment, 1);
            take(&attachment);
            fill(&attachment, 2);
            let image = attachment.image().unwrap();
            let before = disk.calls();
            disk.fail_call(call);
            let taken = checkpoint::take(image, attachment.disk(), 0);
            if disk.calls() - before < call {
                taken.unwrap();
                assert!(call > 5, "a checkpoint makes {call} calls only");
                break;
            }
            // That the second copy of meta cannot be written costs nothing.
            unnoticed += usize::from(taken.is_ok());
            assert!(unnoticed <= 1, "call {call} failed with {fault:?} and nobody noticed");
            let (_crash, path) = crashed(&scratch);
            let round = round_of(&Attachment::open(&path, &options()).unwrap());
            assert!((if taken.is_ok() { 2 } else { 1 }..=2).contains(&round), "call {call}: round {round}");
            assert_eq!(round_of(&attachment), 2, "reading goes on");
            let access = crate::access::Access::new(super::claim_session(image).unwrap());
            match access.set(crate::tree::Which::Main, b"more", b"1") {
                Ok(_) => {
                    checkpoint::take(image, attachment.disk(), 0).unwrap();
                    let (_crash, path) = crashed(&scratch);
                    let recovered = Attachment::open(&path, &options()).unwrap();
                    assert_eq!((round_of(&recovered), get(&recovered, "more")), (2, Some(b"1".to_vec())));
                }
                Err(Error::WritesStopped { place, source, is_final: true }) => {
                    assert_eq!(place, scratch.db().into());
                    assert!([5, 28].contains(&source.raw_os_error().unwrap()), "{source}");
                    stopped += 1;
                }
                Err(other) => panic!("call {call}: {other}"),
            }
            super::release_session(&access.seat);
            attachment.close().unwrap();
            let reopened = scratch.open();
            put(&reopened, "again", b"1");
            assert_eq!(round_of(&reopened), 2, "call {call}, reopened");
        }
        assert!(stopped >= 2, "a failed sync does not stop writing");
    }
}

/// A sync of the log had failed, and nothing had changed since the last checkpoint: the note that the kernel's
/// dirty bits are wrong stayed, so that the next full disk stopped all writing.
#[test]
fn healing_without_changes_leaves_nothing_to_rewrite() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    put(&attachment, "a", b"1");
    crate::control::raise_flag(attachment.image().unwrap(), FLAG_FAILED);
    attachment.close().unwrap();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    assert_eq!(image.control(control::FLAGS).load(SeqCst) & FLAG_FAILED, 0);
    assert_eq!(image.shm.word(checkpoint::REWRITE).load(SeqCst), 0);
}

#[test]
fn failing_disks_during_recovery_keep_nobody_from_recovering_later() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    fill(&attachment, 1);
    take(&attachment);
    fill(&attachment, 2);
    for fault in [Fault::Io, Fault::ShortWrite] {
        for call in 1.. {
            let (crash, path) = crashed(&scratch);
            let disk = FaultyDisk::new(fault);
            disk.fail_call(call);
            let opened = Attachment::open_on(&path, &options(), Arc::new(disk.clone()));
            if disk.calls() < call {
                assert_eq!(round_of(&opened.unwrap()), 1);
                assert!(call > 8, "a recovery makes {call} calls only");
                break;
            }
            match opened {
                // A bundle of pages that could not be read was read page by page.
                Ok(recovered) => assert_eq!(round_of(&recovered), 1, "call {call}"),
                Err(_) => assert_eq!(round_of(&crash.open()), 1, "call {call}"),
            }
        }
    }
}

/// A copy of meta whose sync never came is written again in its place by whoever opens next, and the power may
/// fail in just that: the copy is torn, and the other one has to do.
#[test]
fn a_copy_of_meta_that_is_torn_when_it_is_written_again_is_not_needed() {
    let mut torn = 0;
    for call in 1.. {
        let scratch = Scratch::new();
        let disk = FaultyDisk::new(Fault::Io);
        let attachment = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone())).unwrap();
        fill(&attachment, 1);
        take(&attachment);
        fill(&attachment, 2);
        // Killed at the last call of a checkpoint, the sync of meta.
        let calls = disk.calls();
        let image = attachment.image().unwrap();
        let newest = || {
            let file = RealDisk.open(&scratch.db(), false).unwrap();
            meta::newest(&*file, &scratch.db()).unwrap()
        };
        let (_, before) = newest();
        for killed in 1.. {
            disk.fail_from_call(killed);
            checkpoint::take(image, attachment.disk(), 0).unwrap_err();
            if newest().1.serial > before.serial {
                break;
            }
            // As if it had never begun: only a sync that fails leaves a trace.
            disk.fail_call(0);
            crate::control::lower_flag(image, FLAG_FAILED);
        }
        assert!(disk.calls() > calls);
        assert_ne!(image.shm.word(checkpoint::STAMP).load(SeqCst), newest().1.stamp);
        drop(attachment);
        let next = FaultyDisk::new(Fault::ShortWrite);
        next.fail_from_call(call);
        let opened = Attachment::open_on(&scratch.db(), &options(), Arc::new(next.clone()));
        let is_over = next.calls() < call;
        let stamp = {
            let shm = File::open(scratch.shm()).unwrap();
            let mut word = [0; 8];
            shm.read_exact_at(&mut word, checkpoint::STAMP as u64).unwrap();
            u64::from_le_bytes(word)
        };
        let crash = Scratch::new();
        fs::copy(scratch.db(), crash.db()).unwrap();
        let (slot, meta) = newest();
        if stamp != meta.stamp {
            // Nobody knows this copy to be on disk.
            torn += 1;
            let file = File::options().write(true).open(crash.db()).unwrap();
            file.write_all_at(&[0xa5; 77], (slot * PAGE + 20) as u64).unwrap();
        }
        garble(&crash.db());
        let round = round_of(&crash.open());
        assert!((1..=2).contains(&round), "call {call}: round {round}");
        next.fail_call(0);
        drop(opened);
        assert_eq!(round_of(&scratch.open()), 2, "call {call}: what did not crash is there");
        if is_over {
            break;
        }
    }
    assert!(torn > 2, "{torn}");
}

#[test]
fn pages_of_a_checkpoint_under_way_are_not_reused() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    fill(&attachment, 1);
    let pin = crate::pin::cut(image, 0, crate::pin::Purpose::Checkpoint).unwrap();
    let pages = |generation: u32| -> Vec<(u32, Vec<u8>)> {
        let used = (0..image.npages() as u32).filter(|page| {
            let life = image.life(*page);
            life.born != 0 && life.is_in(generation)
        });
        used.map(|page| (page, crate::meta::survey::page_bytes(image, page))).collect()
    };
    let before = pages(pin.generation());
    assert!(before.len() > 5);
    for round in 2..8 {
        fill(&attachment, round);
        if round == 5 {
            // Meanwhile somebody takes a snapshot, and gives it up.
            drop(crate::pin::cut(image, 0, crate::pin::Purpose::Snapshot).unwrap());
        }
    }
    assert!(before == pages(pin.generation()), "a page of the pinned generation was changed");
    drop(pin);
    for round in 8..12 {
        fill(&attachment, round);
        take(&attachment);
    }
    let pages = image.npages();
    for round in 12..30 {
        fill(&attachment, round);
        take(&attachment);
    }
    assert_eq!(image.npages(), pages, "space is reused");
    assert_eq!(image.control(control::GEN).load(SeqCst), 2 + 2 + 4 + 18);
}

/// The one before was killed in a checkpoint, and another process is at repairing it: the next checkpoint said
/// that there were too many snapshots.
#[test]
fn a_checkpoint_waits_for_the_pin_of_a_dead_one() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    let (dead, pin) = (Owner { slot: 5, incarnation: 7 }, image.shm.word(PINS_AT + PIN_OWNER));
    let repairing = ProcessState::Repairing { incarnation: 7, by: image.me };
    image.process_word(5).store(repairing.to_word(), SeqCst);
    pin.store(dead.to_word(), SeqCst);
    fill(&attachment, 1);
    std::thread::scope(|scope| {
        let taken = scope.spawn(|| take(&attachment));
        while image.control(control::CHECKPOINT_OWNER).load(SeqCst) == 0 && !taken.is_finished() {
            std::thread::yield_now();
        }
        // What the other one does in the end.
        image.process_word(5).store(ProcessState::Free { incarnation: 7 }.to_word(), SeqCst);
        pin.store(0, SeqCst);
        assert!(taken.join().unwrap());
    });
}

#[test]
fn a_checkpoint_under_way_is_no_snapshot() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    fill(&attachment, 1);
    take(&attachment);
    fill(&attachment, 2);
    let pin = pin::cut(image, 0, Purpose::Checkpoint).unwrap();
    fill(&attachment, 3);
    assert_eq!((image.pinned().count(), image.snapshots().count()), (1, 0));
    assert_eq!(image.kept().by_snapshots, 0);
    drop(pin);
}

#[test]
fn a_snapshot_goes_with_its_process() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let image = attachment.image().unwrap();
    let mut second = Second::start("snapshot", &scratch.db());
    take(&attachment);
    assert_eq!(image.pinned().count(), 1);
    assert!(image.kept().by_snapshots > 5);
    second.kill();
    crate::repair::dead_processes(image).unwrap();
    assert_eq!((image.pinned().count(), image.kept().by_snapshots), (0, 0));
    assert_eq!(round_of(&attachment), 5);
}

/// Info pages of a checkpoint that did not end, for pages that the file has no more after recovery: when it
/// had grown again, and another checkpoint had had their generation, they were taken for part of the next.
#[test]
fn info_pages_beyond_the_end_of_the_last_checkpoint_never_count() {
    let scratch = Scratch::new();
    let attachment = scratch.open();
    let mut number = 0;
    let frontier =
        |attachment: &Attachment| attachment.image().unwrap().control(control::FRONTIER).load(SeqCst);
    // None but the one checkpoint below, which others would like sooner in a small geometry.
    let quiet = duty::take(attachment.image().unwrap(), control::CHECKPOINT_OWNER).unwrap();
    // What the info pages of the empty file cover.
    let covered = attachment.image().unwrap().npages().next_multiple_of(ENTRIES);
    while frontier(&attachment) < covered + 300 {
        number += 1;
        put(&attachment, &format!("big {number}"), &[7; 20 * PAGE]);
    }
    attachment.image().unwrap().control(control::CHECKPOINT_WANTED).store(0, SeqCst);
    drop(quiet);
    let mut copies_of_meta = [0; 2 * PAGE];
    File::open(scratch.db()).unwrap().read_exact_at(&mut copies_of_meta, 0).unwrap();
    take(&attachment);
    // The machine crashes before that checkpoint's meta is on disk.
    let crash = Scratch::new();
    fs::copy(scratch.db(), crash.db()).unwrap();
    let file = File::options().write(true).open(crash.db()).unwrap();
    file.write_all_at(&copies_of_meta, 0).unwrap();
    let attachment = crash.open();
    assert!(attachment.recovery().is_some());
    let image = attachment.image().unwrap();
    fill(&attachment, 1);
    take(&attachment);
    assert!(image.npages() <= covered, "another info page is needed already");
    while image.npages() <= covered {
        number += 1;
        put(&attachment, &format!("big {number}"), &[8; 4 * PAGE]);
    }
    assert!(frontier(&attachment) < covered, "a page that the other info page covers is used already");
    take(&attachment);
    verify::sums(image, attachment.disk()).unwrap();
    let (_crash, path) = crashed(&crash);
    assert_eq!(round_of(&Attachment::open(&path, &options()).unwrap()), 1);
}

/// The copy of meta that counts may be in the page cache alone: its writer was killed before he synced it, and
/// `-shm` was removed. A page that is free in it may then belong to the checkpoint that a crash would bring back.
#[test]
fn no_page_is_written_before_meta_is_known_to_be_on_disk() {
    let scratch = Scratch::new();
    let mut attachment = Some(scratch.open());
    fill(attachment.as_ref().unwrap(), 1);
    take(attachment.as_ref().unwrap());
    for is_open in [true, false] {
        if !is_open {
            attachment.take().unwrap().close().unwrap();
        }
        let before = fs::read(scratch.db()).unwrap();
        let synced = (1..).find_map(|call| {
            let copy = Scratch::new();
            fs::write(copy.db(), &before).unwrap();
            let disk = FaultyDisk::new(Fault::Io);
            disk.fail_call(call);
            let opened = Attachment::open_on(&copy.db(), &options(), Arc::new(disk.clone()));
            assert!(disk.calls() >= call, "nothing was synced, open: {is_open}");
            // The first call of that kind is the one that fails.
            matches!(opened, Err(Error::Io { action: "sync data", .. })).then(|| fs::read(copy.db()).unwrap())
        });
        assert!(synced == Some(before), "a page was written, open: {is_open}");
    }
}
