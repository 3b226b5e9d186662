//! The narrow door through which test instruments see the engine from inside.
//!
//! A [`Place`] is a pair of files with two empty trees; a [`Party`] is one process's part in it, with
//! one session, whatever process the caller really is: liveness is what the caller says. A party on a
//! private mapping sees what the others write and keeps what it writes to itself, until it forgets it.
//!
//! Invariants
//! - Party `n` has process slot `n` and session `n + 1`; all parties are registered by
//!   [`Place::create`], so that taking part changes nothing.
//! - A place is used by one thread of each process.
//!
//! Deliberately absent: opening real databases (see [`rehome`] for copies of them); anything a library would need.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use perilune_disk::{FileId, RealDisk};
use perilune_shm::latch::{self, State};
use perilune_shm::region::{Access as Mapping, Region};
use perilune_store::{
    Decision, Error, LockMode, LockOwner, LockRequest, Look, Message, Probe, Probed, Result,
};

use crate::access::Access;
use crate::image::layout::{
    control, header, phase, session, Owner, ProcessState, SESSIONS_AT, SESSION_BYTES, SESSION_HEAD_WORDS,
};
use crate::image::{io_error, Home, Image};
use crate::limits::{PAGE, SEGMENT_PAGES, SEGMENT_RESERVED, VOLATILE};
use crate::lock::{entry, Locks};
use crate::session::patch::Patch;
use crate::session::{Counter, Seat};
use crate::tree::{Action, Neighbour, Wanted, Which};
use crate::txn::{Brief, FewDraft};
use crate::{message, page, pin, repair, verify};

/// Parties of a place.
pub const PARTIES: u16 = 6;

/// How long a transaction may take; single steps take their time.
const PATIENCE: Duration = Duration::from_secs(600);

/// Bytes of a page.
pub const PAGE_BYTES: usize = PAGE;

/// Where `-shm` says on which start of the machine it was made; 16 bytes.
pub const BOOT_ID: usize = header::BOOT_ID;

/// Whether a page of the database file holds, or could hold, meta or pages' sums.
#[must_use]
pub fn is_directory(page: u64) -> bool {
    page % SEGMENT_PAGES < SEGMENT_RESERVED
}

/// Bytes of a value that lies in its leaf.
pub const INLINE_BYTES: usize = crate::limits::INLINE_MAX;

/// Bytes of a user's key.
pub const KEY_BYTES: usize = crate::limits::USER_KEY_MAX;

/// Bytes of a record beyond which it lies in runs.
pub const RECORD_BYTES: usize = crate::limits::RECORD_INLINE_MAX;

/// One of the two trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tree {
    /// The data.
    Main,
    /// Locks and messages.
    Volatile,
}

impl Tree {
    fn which(self) -> Which {
        match self {
            Tree::Main => Which::Main,
            Tree::Volatile => Which::Volatile,
        }
    }
}

/// One write of a transaction.
#[derive(Clone, Debug)]
pub enum Write<'a> {
    /// The key gets this value.
    Set(Tree, &'a [u8], &'a [u8]),
    /// The key's value goes.
    Remove(Tree, &'a [u8]),
    /// No key with this prefix has a value.
    RemovePrefix(Tree, &'a [u8]),
}

/// What a session has done, and what the trees look like.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Structure changes of the session.
    pub splits: u64,
    /// Merges of the session.
    pub merges: u64,
    /// First-touch copies of the session.
    pub copies: u64,
    /// Inner pages of the main tree.
    pub inner_pages: u64,
    /// Leaves of the main tree.
    pub leaf_pages: u64,
    /// Pages of long values.
    pub extent_pages: u64,
    /// Pages of the volatile tree.
    pub volatile_pages: u64,
    /// Pages that exist.
    pub pages: u64,
    /// Level of the main tree's root; 0 is a leaf.
    pub level: u8,
}

/// Bytes at the begin of `-shm`: header, control words, processes, and the head of the first session.
pub const WATCHED_BYTES: usize = SESSIONS_AT + SESSION_BYTES + SESSION_HEAD_WORDS * 8;

/// The parts of a sparse file that hold data, as (offset, length).
///
/// # Errors
/// What the file system says.
pub fn data_ranges(file: &File) -> std::io::Result<Vec<(u64, u64)>> {
    perilune_shm::platform::data_ranges(file)
}

/// Tells a copied `-shm` that it goes with the copied database file `db`, if it went with the file of
/// device and inode `original`.
///
/// # Errors
/// `Io`.
pub fn rehome(shm: &Path, db: &Path, original: (u64, u64)) -> Result<()> {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let change = || {
        let file = File::options().read(true).write(true).open(shm)?;
        let mut words = [0; 16];
        if file.read_at(&mut words, header::DEVICE as u64)? == 16
            && words[..8] == original.0.to_le_bytes()
            && words[8..] == original.1.to_le_bytes()
        {
            let copy = std::fs::metadata(db)?;
            file.write_all_at(&copy.dev().to_le_bytes(), header::DEVICE as u64)?;
            file.write_all_at(&copy.ino().to_le_bytes(), header::INODE as u64)?;
        }
        Ok(())
    };
    change().map_err(|source| io_error("change the header of", shm, source))
}

/// Two files that hold a database.
#[derive(Clone, Debug)]
pub struct Place {
    db: PathBuf,
    shm: PathBuf,
    pages_max: u64,
}

impl Place {
    /// Makes the files in `directory`, of `pages` data pages that may grow to `pages_max` in all.
    ///
    /// # Errors
    /// `Io`.
    pub fn create(directory: &Path, pages: u64, pages_max: u64) -> Result<Place> {
        let place = Place { db: directory.join("db"), shm: directory.join("shm"), pages_max };
        let pages = SEGMENT_RESERVED + pages;
        for (path, bytes) in [(&place.db, pages as usize * PAGE), (&place.shm, Image::shm_bytes(pages))] {
            let made = File::options().read(true).write(true).create(true).truncate(true).open(path);
            let made = made.and_then(|file| file.set_len(bytes as u64));
            made.map_err(|source| io_error("create", path, source))?;
        }
        let image = place.image(0, Mapping::ReadWrite, &[])?;
        let put = |word: usize, value: u64| image.control(word).store(value, Relaxed);
        put(control::NPAGES, pages);
        put(control::FLUSH, 1);
        put(control::GEN, 1);
        for (root, which, born) in [(0, Which::Main, 1), (1, Which::Volatile, VOLATILE)] {
            let number = SEGMENT_RESERVED as u32 + root;
            let leaf = page::empty_leaf(which.page_flags());
            page::put_identity(&leaf, number, born);
            perilune_shm::words::copy(&leaf, image.page(number));
            let died = if born == VOLATILE { VOLATILE } else { 0 };
            image.life_word(number).store(u64::from(born) << 32 | u64::from(died), Relaxed);
            latch::release(image.latch(number), State::Tree, 1);
            put(which.root_word(), number.into());
        }
        put(control::FRONTIER, SEGMENT_RESERVED + 2);
        put(control::SESSIONS_HIGH, PARTIES.into());
        let image = Arc::new(image);
        for number in 0..PARTIES {
            let live = ProcessState::Live { incarnation: 1 }.to_word();
            image.process_word(number.into()).store(live, Relaxed);
            let seat = Seat::new(image.clone(), number + 1);
            seat.owner_word().store(Owner { slot: number, incarnation: 1 }.to_word(), Relaxed);
        }
        Ok(place)
    }

    fn image(&self, number: u16, mapping: Mapping, dead: &[u16]) -> Result<Image> {
        let map = |path: &Path, bytes: usize| {
            let file = File::options().read(true).write(true).open(path);
            file.and_then(|file| Region::map(&file, bytes, mapping))
                .map_err(|source| io_error("map", path, source))
        };
        let dead = dead.to_vec();
        let id = |path: &Path| FileId::at(path).map_err(|source| io_error("look at", path, source));
        Ok(Image {
            db: map(&self.db, self.pages_max as usize * PAGE)?,
            shm: map(&self.shm, Image::shm_bytes(self.pages_max))?,
            path: self.db.clone(),
            shm_path: self.shm.clone(),
            home: Home::new(id(&self.db)?, Some(id(&self.shm)?), None),
            read_only: false,
            advice: crate::image::Advice::default(),
            ahead: crate::image::Ahead::default(),
            proofs: crate::image::Proofs::default(),
            me: Owner { slot: number, incarnation: 1 },
            pages_max: self.pages_max,
            liveness: Box::new(move |slot| dead.iter().all(|dead| usize::from(*dead) != slot)),
            disk: Arc::new(RealDisk),
            buffer: Mutex::default(),
            wait_limit: PATIENCE,
            wakes_stopped: false,
            late: Mutex::default(),
        })
    }

    /// Takes part as party `number`, below [`PARTIES`], for which those in `dead` have died.
    ///
    /// # Errors
    /// `Io`.
    pub fn join(&self, number: u16, dead: &[u16]) -> Result<Party> {
        Ok(Party::new(Arc::new(self.image(number, Mapping::ReadWrite, dead)?), number))
    }

    /// As [`Place::join`], on a private mapping: what the party writes, nobody else sees.
    ///
    /// # Errors
    /// `Io`.
    pub fn watch(&self, number: u16, dead: &[u16]) -> Result<Party> {
        Ok(Party::new(Arc::new(self.image(number, Mapping::Private, dead)?), number))
    }
}

/// One process's part in a place.
pub struct Party {
    access: Access,
    number: u16,
}

impl Party {
    fn new(image: Arc<Image>, number: u16) -> Party {
        Party { access: Access::new(Seat::new(image, number + 1)), number }
    }

    fn image(&self) -> &Arc<Image> {
        &self.access.seat.image
    }

    /// Forgets all that the party remembers of pages, and, on a private mapping, what it has written.
    ///
    /// # Errors
    /// `Io`.
    pub fn forget(&mut self) -> Result<()> {
        let image = self.image().clone();
        if image.db.access() == Mapping::Private {
            let discarded = image.db.discard().and_then(|()| image.shm.discard());
            discarded.map_err(|source| io_error("discard", &image.path, source))?;
        }
        self.access = Access::new(Seat::new(image, self.number + 1));
        Ok(())
    }

    /// Sets a value.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set(&self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.access.set(tree.which(), key, value).map(drop)
    }

    /// Writes a piece of the value at a key of the main tree.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_piece(&self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<()> {
        self.set_pieces(key, &[(offset, bytes)])
    }

    /// Writes several pieces of the value at a key of the main tree at once.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_pieces(&self, key: &[u8], pieces: &[(usize, &[u8])]) -> Result<()> {
        self.access.atomically(Instant::now() + PATIENCE, |access, txn| {
            let mut scratch = Vec::new();
            for (offset, bytes) in pieces {
                let patch = Patch { offset: *offset, bytes };
                let length = access.txn_patch(txn, key, patch, &mut scratch)?;
                assert!(length.is_some(), "there is no value to be patched");
            }
            Ok(())
        })
    }

    /// Sets the values at keys of the main tree, leaf by leaf where they ascend.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_run(&self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.access.set_run(pairs)
    }

    /// Sets the values at keys of the main tree, which ascend, at once, if nothing lies below them.
    ///
    /// # Errors
    /// As the engine's.
    pub fn set_all_if_alone(&self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        self.access.set_all_if_alone(pairs)
    }

    /// Sets values, or removes them where there is none, as few keys that are looked at; false: nothing was written.
    ///
    /// # Errors
    /// As the engine's.
    pub fn change_few(&self, writes: &[(&[u8], Option<&[u8]>)]) -> Result<bool> {
        let probes: Vec<_> = writes.iter().map(|(key, _)| Probe { key, look: Look::At }).collect();
        let mut change = |few: &mut dyn Probed| {
            for (at, (key, value)) in writes.iter().enumerate() {
                match value {
                    Some(value) => few.set(at, key, value),
                    None => few.remove(at, key),
                }
            }
            Ok(true)
        };
        self.access.change_few(&probes, &mut change, &mut FewDraft::default())
    }

    /// Reads all keys, and sets the values of some, in a brief transaction; false: nothing was written.
    ///
    /// # Errors
    /// As the engine's.
    pub fn attempt(&self, reads: &[&[u8]], pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        let (mut brief, mut value) = (Brief::default(), Vec::new());
        brief.begin();
        reads.iter().try_for_each(|key| brief.get(&self.access, key, &mut value).map(drop))?;
        pairs.iter().try_for_each(|(key, value)| brief.write(key, Some(value)))?;
        brief.end();
        self.access.end_brief(&mut brief, true)
    }

    /// Removes a value.
    ///
    /// # Errors
    /// As the engine's.
    pub fn remove(&self, tree: Tree, key: &[u8]) -> Result<()> {
        self.access.remove(tree.which(), key).map(drop)
    }

    /// Adds to the 8-byte number at a key; a missing one is 0.
    ///
    /// # Errors
    /// As the engine's.
    pub fn add(&self, tree: Tree, key: &[u8], amount: u64) -> Result<()> {
        let change = &mut |current: Option<&[u8]>, buffer: &mut perilune_store::UpdateBuffer| {
            let old = current.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
            buffer[..8].copy_from_slice(&(old + amount).to_le_bytes());
            Ok(Decision::Write(8))
        };
        self.access.update(tree.which(), key, change).map(drop)
    }

    /// Swaps the value at a key for `new` if it is `expected`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn swap(&self, tree: Tree, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<()> {
        self.access.write(tree.which(), key, Action::Swap { expected, new }).map(drop)
    }

    /// Commits all of `writes` in one transaction, which has read the keys in `reads`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn transact(&self, reads: &[(Tree, &[u8])], writes: &[Write<'_>]) -> Result<()> {
        self.access.atomically(Instant::now() + PATIENCE, |access, txn| {
            let mut value = Vec::new();
            for (tree, key) in reads {
                access.txn_get(txn, tree.which(), key, &mut value)?;
            }
            for write in writes {
                match write {
                    Write::Set(tree, key, value) => txn.set(tree.which(), key, value),
                    Write::Remove(tree, key) => txn.remove(tree.which(), key),
                    Write::RemovePrefix(tree, prefix) => txn.remove_prefix(tree.which(), prefix),
                }
            }
            Ok(())
        })
    }

    /// Takes locks on `names`, exclusively or shared, for owner 1 of this party.
    ///
    /// # Errors
    /// As the engine's.
    pub fn lock(&self, names: &[(&[u8], LockMode)], timeout: Duration) -> Result<bool> {
        let requests: Vec<LockRequest<'_>> =
            names.iter().map(|(name, mode)| LockRequest { name, ancestors: &[], mode: *mode }).collect();
        let locks = Locks::new(self.image().clone());
        locks.lock(&self.access, LockOwner(1), &requests, Some(timeout), None)
    }

    /// Counts the lock of owner 1 on `name` down.
    ///
    /// # Errors
    /// As the engine's.
    pub fn unlock(&self, name: &[u8]) -> Result<bool> {
        Locks::new(self.image().clone()).unlock(&self.access, LockOwner(1), name)
    }

    /// Posts a message.
    ///
    /// # Errors
    /// As the engine's.
    pub fn post(&self, channel: &[u8], body: &[u8]) -> Result<u64> {
        message::post(&self.access, channel, body)
    }

    /// Takes the oldest message.
    ///
    /// # Errors
    /// As the engine's.
    pub fn receive(&self, channel: &[u8]) -> Result<Option<Message>> {
        let deadline = Instant::now() + PATIENCE;
        self.access.atomically(deadline, |access, txn| message::receive_in(access, txn, channel))
    }

    /// Begins a new generation.
    ///
    /// # Errors
    /// As the engine's.
    pub fn cut(&self) -> Result<()> {
        pin::cut(self.image(), self.access.seat.id, pin::Purpose::Snapshot).map(drop)
    }

    /// Repairs party `number`, if it has died.
    ///
    /// # Errors
    /// As the engine's.
    pub fn repair(&self, number: u16) -> Result<()> {
        repair::dead_process(self.image(), number.into())
    }

    /// Verifies both trees.
    ///
    /// # Errors
    /// `Corrupt`; also when a session of a free process is not at rest.
    pub fn verify(&self) -> Result<()> {
        verify::verify(self.image())?;
        for number in 0..PARTIES {
            let seat = Seat::new(self.image().clone(), number + 1);
            let is_free = matches!(self.image().process(number.into()), ProcessState::Free { .. });
            if is_free && (seat.owner_word().load(Relaxed) != 0 || Self::signature_of(&seat) != 0) {
                return Err(Error::Internal(format!("session {} was repaired but is not at rest", seat.id)));
            }
        }
        Ok(())
    }

    /// Shows all records of a tree in order, until `show` answers false. Since when a lock is held or
    /// waited for is shown as zero: it differs from run to run.
    ///
    /// # Errors
    /// As the engine's.
    pub fn scan(&self, tree: Tree, mut show: impl FnMut(&[u8], &[u8]) -> bool) -> Result<()> {
        let (mut from, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        let which = tree.which();
        while self.access.neighbour(
            which,
            &from,
            Neighbour::Next,
            &[],
            &mut key,
            Some(Wanted::whole(&mut value)),
            &mut (),
        )? {
            if tree == Tree::Volatile {
                entry::forget_time(&key, &mut value);
            }
            if !show(&key, &value) {
                break;
            }
            std::mem::swap(&mut from, &mut key);
        }
        Ok(())
    }

    /// What the session has done and what the trees are like. Verifies them.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn shape(&self) -> Result<Shape> {
        let image = self.image();
        let report = verify::verify(image)?;
        let counted = |counter: Counter| {
            self.access.seat.head_words()[session::STATISTICS + counter as usize].load(Relaxed)
        };
        Ok(Shape {
            splits: counted(Counter::Splits),
            merges: counted(Counter::Merges),
            copies: counted(Counter::Copies),
            inner_pages: report.inner_pages,
            leaf_pages: report.leaf_pages,
            extent_pages: report.extent_pages,
            volatile_pages: report.volatile_pages,
            pages: image.npages(),
            level: page::level(image.page(image.control(control::ROOT).load(Relaxed) as u32)),
        })
    }

    /// How much the session of party `number` has noted of its operation at this moment; 0 between two operations.
    pub fn signature(&self, number: u16) -> u64 {
        Self::signature_of(&Seat::new(self.image().clone(), number + 1))
    }

    fn signature_of(seat: &Seat) -> u64 {
        let word = |index: usize| seat.head_words()[index].load(Relaxed);
        let counts = [
            session::HELD_COUNT,
            session::FRESH_COUNT,
            session::STALE_COUNT,
            session::CLAIMED_COUNT,
            session::FREED_COUNT,
        ];
        let noted = counts.iter().fold(0, |sum, index| sum << 8 | word(*index).min(255));
        let is_open = u64::from(seat.applied() != seat.head());
        // The undo area grows through a step; at rest its length means nothing.
        let saved = if seat.phase() == phase::CHANGING { word(session::UNDO_LEN) << 48 } else { 0 };
        saved ^ noted << 8 | word(session::IN_OP) << 4 | is_open << 3 | seat.phase()
    }

    /// Free and wasted bytes of the main tree's leaf that covers `key`.
    ///
    /// # Errors
    /// As the engine's.
    pub fn leaf_room(&self, key: &[u8]) -> Result<(usize, usize)> {
        self.access.read(|| {
            let leaf = crate::tree::descend(self.image(), Which::Main, key, 0)?;
            let page = self.image().page(leaf.number);
            Ok((page::leaf_free(page), page::garbage(page)))
        })
    }

    /// Leaves only `pages` pages that were never used before the files must grow.
    pub fn spend_pages(&self, pages: u64) {
        self.image().control(control::FRONTIER).store(self.image().npages() - pages, Relaxed);
    }
}
