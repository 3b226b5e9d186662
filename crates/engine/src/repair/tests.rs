//! Damage under a running process, and what only looks like it.
//!
//! Readers and writers of a damaged page used to repeat their attempts for ever.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{mpsc, Arc};
use std::time::{Duration, Instant};

use perilune_shm::latch;
use perilune_store::Result;

use crate::access::Access;
use crate::image::Image;
use crate::limits::{FRUITLESS, PAGE};
use crate::open::{claim_session, Attachment, OpenOptions};
use crate::tree::{descend, Neighbour, Seek, Which};

/// Longer than any answer takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);

struct Place {
    directory: PathBuf,
    attachment: Arc<Attachment>,
}

fn key(number: usize) -> Vec<u8> {
    format!("k{number:05}").into_bytes()
}

impl Place {
    /// A database of many leaves.
    fn new() -> Place {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let name = format!("perilune-damage-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        let options = OpenOptions { max_size: 1 << 30, ..OpenOptions::default() };
        let attachment = Attachment::open(&directory.join("x.db"), &options).unwrap();
        let place = Place { directory, attachment };
        let access = place.access();
        for number in 0..2_000 {
            access.set(Which::Main, &key(number), &[7; 100]).unwrap();
        }
        place
    }

    fn access(&self) -> Access {
        Access::new(claim_session(self.attachment.image().unwrap()).unwrap())
    }

    fn image(&self) -> &Arc<Image> {
        self.attachment.image().unwrap()
    }

    fn leaf_of(&self, number: usize) -> u32 {
        self.access().read(|| descend(self.image(), Which::Main, &key(number), 0)).unwrap().number
    }

    /// Overwrites a page in the file, past the engine.
    fn overwrite(&self, page: u32, bytes: &[u8]) {
        let file = File::options().write(true).open(self.directory.join("x.db")).unwrap();
        file.write_all_at(bytes, u64::from(page) * PAGE as u64).unwrap();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // It fails where a file is made meanwhile, as a database that is still being closed makes.
        let _gone =
            (0..1_000).any(|_| fs::remove_dir_all(&self.directory).is_ok() || !self.directory.exists());
    }
}

/// What `operation` answers, in time.
fn answer<T: Send + 'static>(
    place: &Place,
    operation: impl FnOnce(&Access) -> Result<T> + Send + 'static,
) -> Result<T> {
    let access = place.access();
    let (done, answer) = mpsc::channel();
    std::thread::spawn(move || done.send(operation(&access)));
    answer.recv_timeout(LONG).expect("it repeats for ever")
}

fn get(place: &Place, number: usize) -> Result<bool> {
    answer(place, move |access| access.get(Which::Main, &key(number), &mut Vec::new(), &mut ()))
}

#[test]
fn a_damaged_leaf_is_an_error_that_names_it() {
    let place = Place::new();
    let leaf = place.leaf_of(1_000);
    assert_ne!(leaf, place.leaf_of(0));
    place.overwrite(leaf, &[0; PAGE]);
    let read = get(&place, 1_000).unwrap_err().to_string();
    let written = answer(&place, |access| access.set(Which::Main, &key(1_000), b"new").map(drop));
    let walked = answer(&place, move |access| {
        let (mut from, mut found) = (Vec::new(), Vec::new());
        while access.neighbour(
            Which::Main,
            Seek { from: &from, side: Neighbour::Next, bound: &[] },
            &mut found,
            None,
            &mut (),
        )? {
            std::mem::swap(&mut from, &mut found);
        }
        Ok(())
    });
    for told in [read, written.unwrap_err().to_string(), walked.unwrap_err().to_string()] {
        assert!(told.contains(&format!("page {leaf} of ")), "{told}");
        assert!(told.contains("x.db") && told.contains("`perilune check`"), "{told}");
    }
    assert!(get(&place, 0).unwrap(), "what is not damaged can be read");
}

#[test]
fn a_damaged_root_is_an_error_in_a_transaction() {
    let place = Place::new();
    let root = place.image().control(crate::image::layout::control::ROOT).load(Relaxed) as u32;
    place.overwrite(root, &[0xa5; PAGE]);
    let told = answer(&place, |access| {
        access.atomically(Instant::now() + LONG, |_, txn| {
            txn.set(Which::Main, &key(7), b"new");
            Ok(())
        })
    });
    let told = told.unwrap_err().to_string();
    assert!(told.contains(&format!("page {root} of ")), "{told}");
}

/// A page that is whole but stands in the wrong place: no page is wrong by itself.
#[test]
fn leaves_that_contradict_each_other_are_an_error() {
    let place = Place::new();
    let (leaf, other) = (place.leaf_of(1_000), place.leaf_of(1_500));
    let mut bytes = Vec::new();
    perilune_shm::words::append(place.image().page(leaf), 0, PAGE, &mut bytes);
    place.overwrite(other, &bytes);
    let told = answer(&place, |access| {
        let from = key(1_500);
        let side = Neighbour::Previous;
        access
            .neighbour(Which::Main, Seek { from: &from, side, bound: &[] }, &mut Vec::new(), None, &mut ())
            .and_then(|_| {
                access.neighbour(
                    Which::Main,
                    Seek { from: b"k01400", side: Neighbour::Next, bound: &[] },
                    &mut Vec::new(),
                    None,
                    &mut (),
                )?;
                let (mut from, mut found) = (b"k01300".to_vec(), Vec::new());
                while access.neighbour(
                    Which::Main,
                    Seek { from: &from, side: Neighbour::Next, bound: &[] },
                    &mut found,
                    None,
                    &mut (),
                )? {
                    std::mem::swap(&mut from, &mut found);
                }
                Ok(())
            })
    });
    let told = told.unwrap_err().to_string();
    assert!(told.contains(&format!("page {other} of ")), "{told}");
}

#[test]
fn a_page_that_somebody_holds_for_long_is_no_damage() {
    let place = Place::new();
    let leaf = place.leaf_of(1_000);
    let holder = place.access();
    assert!(holder.seat.try_latch(leaf, latch::load(place.image().latch(leaf))));
    let access = place.access();
    let (done, read) = mpsc::channel();
    std::thread::spawn(move || done.send(access.get(Which::Main, &key(1_000), &mut Vec::new(), &mut ())));
    assert!(read.recv_timeout(FRUITLESS * 4).is_err(), "nobody reads what is being changed");
    holder.seat.release_unchanged(leaf);
    holder.seat.forget_latch();
    assert!(read.recv_timeout(LONG).unwrap().unwrap());
}
