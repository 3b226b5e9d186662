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

mod party;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use perilune_disk::{FileId, RealDisk};
use perilune_shm::latch::{self, State};
use perilune_shm::region::{Access as Mapping, Region};
use perilune_store::Result;

use crate::image::layout::{
    control, header, Owner, ProcessState, SESSIONS_AT, SESSION_BYTES, SESSION_HEAD_WORDS,
};
use crate::image::{io_error, Home, Image};
use crate::limits::{PAGE, SEGMENT_PAGES, SEGMENT_RESERVED, VOLATILE};
use crate::page;
use crate::session::Seat;
use crate::tree::Which;

pub use crate::planted::{plant, Bug};
pub use party::Party;

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
pub fn rehome(shm: &Path, db: &Path, device: u64, inode: u64) -> Result<()> {
    use std::os::unix::fs::{FileExt, MetadataExt};
    let change = || {
        let file = File::options().read(true).write(true).open(shm)?;
        let mut words = [0; 16];
        if file.read_at(&mut words, header::DEVICE as u64)? == 16
            && words[..8] == device.to_le_bytes()
            && words[8..] == inode.to_le_bytes()
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
