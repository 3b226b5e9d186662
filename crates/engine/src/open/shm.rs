//! The `-shm` file: recognised, mapped, or built anew from the last checkpoint.
//!
//! A `-shm` file is good if it is READY and has the magic, layout and geometry of this build, the uuid,
//! device and inode of the database file, the id of the running boot, and the stamp of the copy of meta
//! that counts: so neither a crash of the machine, nor a database copied over this one, nor a second
//! `shm_dir` goes unnoticed. A good one is used as it is, also when all processes were killed. Any other
//! is replaced, if nobody is attached; if the database was not closed, it is recovered ([`super::recovery`]).

use std::cell::Cell;
use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use perilune_disk::{open_there, Disk, DiskFile, FileAccess, FileId};
use perilune_shm::region::{Access, Region};
use perilune_shm::{lockbyte, platform};
use perilune_store::{Error, Result};

use super::claim::{claim, Claimed};
use super::gate::{self, open_error, Gate};
use super::recovery;
use super::site::Site;
use super::OpenOptions;
use crate::checkpoint;
use crate::image::layout::{
    control, header, Owner, PAGE_TABLE_AT, PROCESSES_AT, PROCESS_BYTES, PROCESS_PID, SESSIONS_AT, SHM_LAYOUT,
    SHM_MAGIC,
};
use crate::image::{io_error, is_no_file, Advice, Ahead, Home, Image, Proofs};
use crate::limits::{PAGE, RING};
use crate::log::{self, LogId};
use crate::meta::{self, left_over, space_error, Meta};
use crate::recover::{self, RecoveryReport};

/// Header word: where the process table begins. The same in all layouts, as the next one.
const PROCESSES_WORD: usize = 112;
/// Header word: bytes of an entry of the process table; its pid lies [`PROCESS_PID`] bytes into it.
const PROCESS_BYTES_WORD: usize = 120;
/// Bytes of the header.
const HEADER_BYTES: usize = 128;
/// What makes this build's layout differ from that of another with the same number.
const GEOMETRY: u64 = ((PAGE as u64 >> 10) << 16) | (RING as u64 >> 10);

/// Nobody: who reads only has no slot.
pub(crate) const NOBODY: Owner = Owner { slot: u16::MAX, incarnation: 0 };

/// What lies at the path of `-shm`.
enum Found {
    Good(Header),
    Missing,
    /// A file of this database and boot, but of another layout or geometry.
    OtherLayout(Header),
    /// A file of another boot or database, or one that is not complete, or of an earlier state.
    Stale,
}

/// The header's words.
struct Header([u8; HEADER_BYTES]);

impl Header {
    fn word(&self, offset: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.0[offset..offset + 8]);
        u64::from_le_bytes(word)
    }

    fn is_of(&self, uuid: [u8; 16], boot: [u8; 16], database: &Metadata) -> bool {
        let bytes = |offset: usize| &self.0[offset..offset + 16];
        self.word(header::MAGIC) == SHM_MAGIC
            && self.word(header::READY) == 1
            && bytes(header::UUID) == uuid
            && bytes(header::BOOT_ID) == boot
            && self.word(header::DEVICE) == database.dev()
            && self.word(header::INODE) == database.ino()
    }
}

/// The log of the database that a `-shm` was made for, if that was closed: nobody needs it any more.
fn closed_log(shm: &File) -> Option<LogId> {
    let mut bytes = [0; control::CLOSED + 8];
    shm.read_exact_at(&mut bytes, 0).ok()?;
    let word = |offset: usize| Some(u64::from_le_bytes(bytes.get(offset..offset + 8)?.try_into().ok()?));
    let is_known = word(header::MAGIC)? == SHM_MAGIC && word(header::LAYOUT)? == SHM_LAYOUT | GEOMETRY << 32;
    let uuid = bytes[header::UUID..header::UUID + 16].try_into().ok()?;
    let id = LogId { uuid, mark: word(control::LOG_MARK)? };
    (is_known && word(control::CLOSED)? == 1 && id.mark != 0).then_some(id)
}

/// The opened database file, under the `open` lock.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    pub(crate) site: &'a Site,
    pub(crate) gate: &'a Gate,
    pub(crate) options: &'a OpenOptions,
    pub(crate) meta: &'a Meta,
    pub(crate) file: &'a dyn DiskFile,
    pub(crate) disk: &'a Arc<dyn Disk>,
}

impl Opening<'_> {
    /// Maps the database and its `-shm`, which is built if need be, and answers what was done to recover
    /// the database, if it was. Nobody is attached in its name yet.
    ///
    /// # Errors
    /// `CannotOpen` with what stands against it; `Corrupt`, `NoSpace`, `Io`.
    pub(crate) fn image(&self) -> Result<(Image, Option<RecoveryReport>)> {
        let (file, found) = self.look()?;
        match (found, file) {
            (Found::Good(header), Some(file)) => Ok((self.map_good(&header, &file)?, None)),
            (found, _) => {
                let (_, now) = meta::newest(self.file, &self.site.path)?;
                if now.serial != self.meta.serial {
                    // NB: others have taken checkpoints since meta was read: what there is may go with the
                    // newest. Ends as soon as nobody takes two between two reads.
                    return Opening { meta: &now, ..*self }.image();
                }
                self.check_replaceable(&found)?;
                if self.options.read_only {
                    Ok((self.build_private()?, None))
                } else {
                    self.build()
                }
            }
        }
    }

    fn look(&self) -> Result<(Option<File>, Found)> {
        let path = &self.site.shm_path;
        let file = match open_there(path, !self.options.read_only) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok((None, Found::Missing)),
            Err(error) if is_no_file(&error) => return Err(left_over::in_the_way(path)),
            Err(error) => return Err(open_error(path, self.options.read_only, error)),
        };
        let mut header = Header([0; HEADER_BYTES]);
        match file.read_exact_at(&mut header.0, 0) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok((Some(file), Found::Stale)),
            Err(error) => return Err(io_error("read", path, error)),
        }
        let boot = platform::boot_id().map_err(|source| io_error("read the boot id for", path, source))?;
        let database = self.gate.metadata(&self.site.path)?;
        let (stamp, next) = (header.word(checkpoint::STAMP), header.word(checkpoint::NEXT_STAMP));
        let found = if !header.is_of(self.meta.uuid, boot, &database) {
            Found::Stale
        } else if header.word(header::LAYOUT) != SHM_LAYOUT | GEOMETRY << 32 {
            Found::OtherLayout(header)
        } else if !checkpoint::goes_with(stamp, next, self.meta) {
            Found::Stale
        } else {
            Found::Good(header)
        };
        Ok((Some(file), found))
    }

    fn map_good(&self, header: &Header, file: &File) -> Result<Image> {
        let pages_max = self.reach(header, file)?;
        let bytes = Image::shm_bytes(pages_max);
        let access = if self.options.read_only { Access::ReadOnly } else { Access::ReadWrite };
        let shm = self.map_shm(file, bytes, access)?;
        let image = self.assemble(shm, Some(file), pages_max, access)?;
        self.check_size(image.npages())?;
        Ok(image)
    }

    /// Pages that mappings reach: what the first of those who have it open allowed. Who finds nobody else sets it anew.
    ///
    /// Killed here? A `-shm` that is longer than its header says is as good; the word is written by one call.
    fn reach(&self, header: &Header, file: &File) -> Result<u64> {
        let (path, now) = (&self.site.shm_path, header.word(header::PAGES_MAX));
        if self.options.read_only || self.options.pages_max() == now {
            return Ok(now);
        }
        if !self.gate.attached(&self.site.path)?.is_empty() || self.gate.is_read(&self.site.path)? {
            return Ok(now);
        }
        let mut pages = [0; 8];
        let read = file.read_exact_at(&mut pages, control::NPAGES as u64);
        read.map_err(|source| io_error("read", path, source))?;
        // NB: more than meta says, if the file has grown since the last checkpoint.
        let wanted = self.options.pages_max().max(u64::from_le_bytes(pages).min(now));
        let bytes = Image::shm_bytes(wanted) as u64;
        let length = file.metadata().map_err(|source| io_error("look at", path, source))?.len();
        if length < bytes {
            platform::set_len(file, bytes).map_err(|source| space_error("lengthen", path, source))?;
        }
        let written = file.write_all_at(&wanted.to_le_bytes(), header::PAGES_MAX as u64);
        written.map_err(|source| space_error("write", path, source))?;
        Ok(wanted)
    }

    /// Refuses to replace `-shm` while somebody uses what there is, or changes would be lost.
    fn check_replaceable(&self, found: &Found) -> Result<()> {
        let refused = |why: String| Err(Error::CannotOpen { place: (&self.site.path).into(), why });
        let attached = self.gate.attached(&self.site.path)?;
        if !attached.is_empty() {
            if let Found::OtherLayout(header) = found {
                let pids = self.pids(header, &attached);
                return refused(format!(
                    "is in use by processes with another version of Perilune ({pids}): end them, or use \
                     their version"
                ));
            }
            return refused(format!(
                "is in use by {} process(es) that do not use {}: give the same shm_dir as they do; if that \
                 file was removed, or the database renamed while they had it open, end them first",
                attached.len(),
                self.site.shm_path.display()
            ));
        }
        if !self.options.read_only && self.gate.is_read(&self.site.path)? {
            return refused(
                "is being read by processes that opened it without shared memory: end them, then open it"
                    .to_owned(),
            );
        }
        if self.meta.is_open {
            if let Found::OtherLayout(_) = found {
                return refused(
                    "was last used by another version of Perilune and not closed: open and close it once \
                     with that version"
                        .to_owned(),
                );
            }
            if self.options.read_only {
                return refused(format!(
                    "the machine crashed (or was switched off) while the database was open, or {} was removed: \
                     open it once with read_only=false, which recovers it (on read-only media: copy it first)",
                    self.site.shm_path.display()
                ));
            }
        }
        Ok(())
    }

    /// The pids that a `-shm` of another layout shows for the slots that are held.
    fn pids(&self, header: &Header, attached: &[usize]) -> String {
        let (at, bytes) = (header.word(PROCESSES_WORD), header.word(PROCESS_BYTES_WORD));
        let file = File::open(&self.site.shm_path).ok();
        let pid = |slot: &usize| {
            let mut pid = [0; 8];
            let offset = at.checked_add(bytes.checked_mul(*slot as u64)?)?.checked_add(PROCESS_PID as u64)?;
            file.as_ref()?.read_exact_at(&mut pid, offset).ok()?;
            Some(u64::from_le_bytes(pid).to_string())
        };
        let pids: Vec<String> =
            attached.iter().map(|slot| pid(slot).unwrap_or_else(|| "unknown".to_owned())).collect();
        format!("pid {}", pids.join(", "))
    }

    /// Builds a new `-shm` file. Killed before READY is set: the next one builds it again.
    fn build(&self) -> Result<(Image, Option<RecoveryReport>)> {
        let path = &self.site.shm_path;
        let space = |source| space_error("create", path, source);
        self.check_size(self.meta.npages)?;
        self.fill_holes()?;
        let database = self.gate.metadata(&self.site.path)?;
        let before = Cell::new(None);
        let may_replace = |old: Option<&File>| {
            before.set(before.get().or_else(|| old.and_then(closed_log)));
            self.gate.check_at(&self.site.path)
        };
        // Whoever may use the database may use this: same mode, and same owner where that is allowed. It is locked
        // until it is built: who comes by this name with another database waits.
        let claimed = claim(
            path,
            FileAccess::from(&database),
            Some(SHM_MAGIC),
            Instant::now() + self.options.timeout,
            &may_replace,
            &|source| open_error(path, false, source),
        );
        let Claimed::Ours(file) = claimed? else { return Err(gate::busy(path)) };
        let pages_max = self.options.pages_max().max(self.meta.npages);
        let bytes = Image::shm_bytes(pages_max);
        platform::set_len(&file, bytes as u64).map_err(space)?;
        let allocate = |offset: usize, bytes: usize| {
            let (offset, bytes) = (offset as u64, bytes as u64);
            self.disk.allocate(bytes, &|bytes| platform::allocate(&file, offset, bytes)).map_err(space)
        };
        allocate(0, SESSIONS_AT)?;
        allocate(PAGE_TABLE_AT, Image::shm_bytes(self.meta.npages) - PAGE_TABLE_AT)?;
        let shm = self.map_shm(&file, bytes, Access::ReadWrite)?;
        let mut image = self.assemble(shm, Some(&file), pages_max, Access::ReadWrite)?;
        self.write_header(&image, &database, pages_max)?;
        // NB: before any page is written, be it that of the volatile root.
        checkpoint::note_origin(&image, self.file, self.meta)?;
        recover::fill(&image, self.meta, self.file)?;
        let mut report = None;
        if self.meta.is_open {
            let accepts_lost = self.options.accept_lost_commits;
            let recovered = recovery::recover(image, self.meta, self.file, &**self.disk, accepts_lost)?;
            (image, report) = (recovered.0, Some(recovered.1));
        } else {
            log::restart(&image, self.meta.wal_batch, log::level_of_meta(self.meta.level));
            log::clear(&image)?;
        }
        if let Some(id) = before.get().filter(|id| id.uuid != self.meta.uuid) {
            log::remove_files(&**self.disk, &self.site.path, id)?;
        }
        image.shm.word(header::READY).store(1, Release);
        // Explicitly: a child forked meanwhile by another thread has a copy of the descriptor.
        let _ = lockbyte::unlock(&file, gate::OPEN);
        Ok((image, report))
    }

    fn write_header(&self, image: &Image, database: &Metadata, pages_max: u64) -> Result<()> {
        let boot = platform::boot_id();
        let boot = boot.map_err(|source| io_error("read the boot id for", &self.site.path, source))?;
        let put = |offset: usize, word: u64| image.shm.word(offset).store(word, Relaxed);
        let put_id = |offset: usize, id: [u8; 16]| {
            let id = u128::from_le_bytes(id);
            put(offset, id as u64);
            put(offset + 8, (id >> 64) as u64);
        };
        put(header::MAGIC, SHM_MAGIC);
        put(header::LAYOUT, SHM_LAYOUT | GEOMETRY << 32);
        put_id(header::UUID, self.meta.uuid);
        put_id(header::BOOT_ID, boot);
        put(header::DEVICE, database.dev());
        put(header::INODE, database.ino());
        put(header::PAGES_MAX, pages_max);
        put(header::LEVEL, self.meta.level.into());
        put(PROCESSES_WORD, PROCESSES_AT as u64);
        put(PROCESS_BYTES_WORD, PROCESS_BYTES as u64);
        Ok(())
    }

    /// Builds what a reader needs in memory of its own: nobody writes, so nothing need be shared.
    fn build_private(&self) -> Result<Image> {
        self.check_size(self.meta.npages)?;
        let bytes = Image::shm_bytes(self.meta.npages);
        let shm = Region::anonymous(bytes);
        let shm = shm.map_err(|source| io_error("map memory for", &self.site.shm_path, source))?;
        let image = self.assemble(shm, None, self.meta.npages, Access::ReadOnly)?;
        recover::fill(&image, self.meta, self.file)?;
        Ok(image)
    }

    /// Refuses a file that is shorter than it must be: touching what is missing would end the process.
    fn check_size(&self, npages: u64) -> Result<()> {
        let size = self.gate.metadata(&self.site.path)?.len();
        if size / (PAGE as u64) < npages {
            return Err(Error::Corrupt {
                place: format!(
                    "{}: {size} bytes long, but it had {} at its last use; it was cut: restore a backup",
                    self.site.path.display(),
                    npages * PAGE as u64
                ),
            });
        }
        Ok(())
    }

    /// A copy of a database may have holes where nothing is used (`cp --sparse`, `tar -S`). They get their space
    /// now: one that is written to on a full disk would end the process.
    fn fill_holes(&self) -> Result<()> {
        let path = &self.site.path;
        let file = self.gate.open(path, true)?;
        let bytes = self.meta.npages * PAGE as u64;
        let filled = self.disk.allocate(bytes, &|bytes| platform::allocate(&file, 0, bytes));
        filled.map_err(|source| space_error("allocate", path, source))
    }

    fn assemble(&self, shm: Region, from: Option<&File>, pages_max: u64, access: Access) -> Result<Image> {
        let path = &self.site.path;
        let file = self.gate.open(path, access == Access::ReadWrite)?;
        let id = from.map(FileId::of).transpose();
        let id = id.map_err(|source| io_error("look at", &self.site.shm_path, source))?;
        let probe = super::enter::probe(self.gate, path)?;
        let db = self.map(&file, pages_max as usize * PAGE, access, path)?;
        let bytes = self.meta.npages * PAGE as u64;
        let advice = Advice::give(&db, bytes, self.meta.level == 0);
        Ok(Image {
            advice,
            ahead: Ahead::default(),
            proofs: Proofs::default(),
            db,
            shm,
            path: path.clone(),
            shm_path: self.site.shm_path.clone(),
            home: Home::new(self.gate.id(path)?, id, Some(Arc::clone(&probe))),
            read_only: self.options.read_only,
            me: NOBODY,
            pages_max: pages_max.min(self.options.pages_max().max(self.meta.npages)),
            liveness: super::enter::liveness(probe),
            disk: Arc::clone(self.disk),
            buffer: Mutex::default(),
            wait_limit: self.options.wait_limit,
            wakes_stopped: self.options.wake_stopped,
            late: Mutex::default(),
        })
    }

    /// Most of the file is a hole, and words of it are touched here and there: around each of them the kernel would
    /// fill megabytes of memory with zeros.
    fn map_shm(&self, file: &File, bytes: usize, access: Access) -> Result<Region> {
        let region = self.map(file, bytes, access, &self.site.shm_path)?;
        region.expect_random_access();
        Ok(region)
    }

    fn map(&self, file: &File, bytes: usize, access: Access, path: &Path) -> Result<Region> {
        let region = Region::map(file, bytes, access).map(|region| region.named(path));
        region.map_err(|source| match source.kind() {
            // Valgrind and other tools that place mappings themselves say InvalidInput.
            ErrorKind::OutOfMemory | ErrorKind::InvalidInput => Error::CannotOpen {
                place: (&self.site.path).into(),
                why: format!(
                    "no address space for {bytes} bytes of {}: raise `ulimit -v`, or give whoever opens it first \
                     a lower max_size, as PERILUNE_MAX_SIZE=8g",
                    path.display()
                ),
            },
            _ => io_error("map", path, source),
        })
    }
}
