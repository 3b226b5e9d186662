//! A process attached to a database: its slot, its leaving, and what a fork makes of it.
//!
//! Invariants
//! - The slot's byte is locked before its word says LIVE, and until after it says FREE.
//! - What a process has attached is detached by it alone: a forked child drops its copy without effect,
//!   and attaches itself, with a slot of its own, when it first uses the database.
//! - Whoever leaves last takes a checkpoint; it holds the `open` lock, so nobody comes meanwhile.

use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use perilune_disk::{Disk, RealDisk};
use perilune_shm::anchor::{Anchor, Probe};
use perilune_shm::fork::ForkMark;
use perilune_shm::platform;
use perilune_shm::region::Access;
use perilune_store::{Durability, Error, Result};

use super::gate::{Gate, IN_USE, SLOTS};
use super::recovery::FORERUNNER;
use super::shm::{Opening, NOBODY};
use super::site::Site;
use super::OpenOptions;
use crate::image::layout::{
    control, Owner, ProcessState, FLAG_FAILED, PROCESSES_AT, PROCESS_BYTES, PROCESS_PID, PROCESS_SINCE,
    PROCESS_VERSION,
};
use crate::image::{io_error, wakeup, Image, Liveness};
use crate::limits::PROCESSES;
use crate::recover::RecoveryReport;
use crate::session::Seat;
use crate::{checkpoint, log, meta, notice, repair};

/// A database, attached to by this process. Detached when dropped, or by [`Attachment::close`].
///
/// Whoever holds a session keeps the attachment alive: no session is left when it is dropped.
pub(crate) struct Attachment {
    image: Arc<Image>,
    anchor: Option<Anchor>,
    recovery: Option<RecoveryReport>,
    mark: ForkMark,
    site: Site,
    options: OpenOptions,
    disk: Arc<dyn Disk>,
    /// The attachment of a forked child that uses its copy of this. Never touched by the process that
    /// made this one.
    heir: OnceLock<Box<Attachment>>,
    /// The process (fork generation) that is filling `heir`; 0: none.
    filling: AtomicU64,
}

impl Attachment {
    /// Opens the database at `path`, creating it if it is missing and that is wanted.
    ///
    /// # Errors
    /// `NotADatabase`, `CannotOpen`, `Corrupt`, `Invalid`, `LimitReached`, `NoSpace`, `Io`: each says
    /// what to do.
    pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<Arc<Attachment>> {
        Attachment::open_on(path, options, Arc::new(RealDisk))
    }

    /// As [`Attachment::open`], on the given disk.
    ///
    /// # Errors
    /// As [`Attachment::open`].
    pub(crate) fn open_on(
        path: &Path,
        options: &OpenOptions,
        disk: Arc<dyn Disk>,
    ) -> Result<Arc<Attachment>> {
        options.check()?;
        let site = Site::find(path, options)?;
        Ok(Arc::new(Attachment::join(site, options.clone(), disk)?))
    }

    fn join(site: Site, options: OpenOptions, disk: Arc<dyn Disk>) -> Result<Attachment> {
        perilune_disk::limit_files(platform::file_limit);
        if options.create && !options.read_only {
            site.create_if_missing(&options, &*disk)?;
        }
        let mark = ForkMark::current();
        let Entered { image, anchor, recovery } = enter(&site, &options, &disk)?;
        if let Some(recovery) = &recovery {
            notice::info(|| format!("{}: {recovery}", site.path.display()));
        }
        notice::info(|| opened(&site, &image));
        let (heir, filling) = (OnceLock::new(), AtomicU64::new(0));
        Ok(Attachment { image, anchor: Some(anchor), recovery, mark, site, options, disk, heir, filling })
    }

    /// The image as this process sees it. In a forked child the first call attaches the child.
    ///
    /// # Errors
    /// In a forked child, as [`Attachment::open`].
    #[inline]
    pub(crate) fn image(&self) -> Result<&Arc<Image>> {
        if self.mark.is_same_process() {
            return Ok(&self.image);
        }
        self.heir()?.image()
    }

    /// The attachment of the forked child that the caller is, or is a descendant of.
    #[cold]
    fn heir(&self) -> Result<&Attachment> {
        let me = ForkMark::current().generation();
        loop {
            if let Some(heir) = self.heir.get() {
                return Ok(heir);
            }
            match self.filling.compare_exchange(0, me, AcqRel, Acquire) {
                Ok(_) => {
                    // A thread that came first may have filled it since we looked.
                    let made = if self.heir.get().is_none() { Some(self.rejoin()) } else { None };
                    let made = made.transpose().map(|made| made.map(|heir| self.heir.set(Box::new(heir))));
                    self.filling.store(0, Release);
                    made?;
                }
                Err(other) if other == me => platform::sleep(Duration::from_micros(100)),
                Err(_) => {
                    return Err(Error::CannotOpen {
                        path: self.site.path.clone(),
                        why: "this process was forked in the moment in which another thread of its parent \
                              attached to the database: open it again in this process"
                            .to_owned(),
                    })
                }
            }
        }
    }

    /// What was done to recover the database when this process opened it.
    pub(crate) fn recovery(&self) -> Option<&RecoveryReport> {
        self.recovery.as_ref()
    }

    /// The files that are not mapped.
    pub(crate) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    fn rejoin(&self) -> Result<Attachment> {
        Attachment::join(self.site.clone(), self.options.clone(), Arc::clone(&self.disk))
    }

    /// What commits of this process wait for; None: the database's level.
    pub(crate) fn durability(&self) -> Option<Durability> {
        self.options.durability
    }

    /// Detaches, if no clone of the handle is left, and answers what dropping it would hide.
    ///
    /// # Errors
    /// What kept the last process from taking its checkpoint: `NoSpace`, `Io`, `CannotOpen` (waited
    /// too long), `Corrupt`. The process has detached nevertheless, and nothing is lost as long as
    /// the machine runs: open and close the database again.
    pub(crate) fn close(self: Arc<Self>) -> Result<()> {
        match Arc::into_inner(self) {
            Some(mut attachment) => attachment.detach(),
            None => Ok(()),
        }
    }

    fn detach(&mut self) -> Result<()> {
        if !self.mark.is_same_process() {
            // Ours is only what we have attached ourselves; dropping the rest does nothing.
            return self.heir.take().map_or(Ok(()), |mut heir| heir.detach());
        }
        let Some(anchor) = self.anchor.take() else { return Ok(()) };
        if self.image.read_only {
            return Ok(());
        }
        let left = self.leave();
        drop(anchor);
        match &left {
            Ok(()) => notice::info(|| format!("closed {}", self.site.path.display())),
            Err(error) => notice::error(|| format!("closing {}: {error}", self.site.path.display())),
        }
        left
    }

    /// Gives the slot back, and takes a checkpoint if nobody else is there. When it fails before the
    /// word is FREE, the process is one that died: the next to come repairs it.
    fn leave(&self) -> Result<()> {
        let gate = Gate::enter(&self.site.path, false, self.options.timeout)?;
        repair::dead_processes(&self.image)?;
        give_back_sessions(&self.image)?;
        let closed = if self.image.is_alone() { self.close_last() } else { Ok(()) };
        free_slot(&self.image);
        drop(gate);
        closed
    }
}

impl Attachment {
    /// Makes everything durable and closes the file; nobody else is attached.
    fn close_last(&self) -> Result<()> {
        if log::level(&self.image) != Durability::None {
            // First of all: it is quicker than a checkpoint. What keeps it from being done may be that a
            // checkpoint is needed.
            let _ = log::sync(&self.image);
        }
        checkpoint::close(&self.image, &*self.disk)
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Who wants to know what went wrong calls `close`.
        let _ = self.detach();
    }
}

fn opened(site: &Site, image: &Image) -> String {
    let (path, generation) = (site.path.display(), image.generation());
    match image.read_only {
        true => format!("opened {path} for reading, generation {generation}"),
        false => format!("opened {path} in slot {}, generation {generation}", image.me.slot),
    }
}

/// A process that has just been attached.
struct Entered {
    image: Arc<Image>,
    anchor: Anchor,
    recovery: Option<RecoveryReport>,
}

/// Attaches the calling process.
fn enter(site: &Site, options: &OpenOptions, disk: &Arc<dyn Disk>) -> Result<Entered> {
    let gate = Gate::enter(&site.path, options.read_only, options.timeout)?;
    let file = disk.open(&site.path, !options.read_only);
    let file = file.map_err(|source| io_error("open", &site.path, source))?;
    let (slot, mut meta) = meta::newest(&*file, &site.path)?;
    if meta.has_delta {
        if options.read_only {
            let why = "a backup into it was interrupted: run the backup again, or open it once with read_only=false"
                .to_owned();
            return Err(Error::CannotOpen { path: site.path.clone(), why });
        }
        // Nobody is attached: whoever came after the backup would have done this.
        (_, meta) = meta::delta::put_in(&**disk, &site.path, &*file, (slot, &meta), &mut |_, _| {})?;
        notice::info(|| format!("{}: finished a backup that was interrupted", site.path.display()));
    }
    let opening = Opening { site, gate: &gate, options, meta: &meta, file: &*file, disk };
    if options.read_only {
        // Before looking for others, so that from here on nobody replaces what is found.
        let anchor = lock(site, IN_USE, Access::ReadOnly)?.ok_or_else(|| moved(site))?;
        let (image, recovery) = opening.image()?;
        return Ok(Entered { image: Arc::new(image), anchor, recovery });
    }
    let (mut image, recovery) = opening.image()?;
    let mut anchor = take_slot(&mut image, site)?;
    if anchor.is_none() && gate.attached(&site.path)?.is_empty() {
        image = repair_all(image)?;
        anchor = take_slot(&mut image, site)?;
    }
    let anchor = anchor.ok_or(Error::LimitReached {
        what: "processes: end some, or try again in a moment if they have died",
        limit: PROCESSES as u64,
    })?;
    let image = Arc::new(image);
    let ready = || {
        if !gate.is_at(&site.path) {
            return Err(moved(site));
        }
        // For a second its threads look often.
        wakeup::note_activity(&image);
        repair::dead_processes(&image)?;
        if image.is_alone() {
            if let Some(level) = options.durability.filter(|level| *level != log::level(&image)) {
                log::set_level(&image, level)?;
            }
            let named = checkpoint::mark_open(&image, &**disk)?;
            checkpoint::heal(&image, &**disk);
            let is_named = named == log::level(&image) && !log::is_unnamed(&image);
            if options.durability.is_some() && !is_named && !is_failed(&image) {
                // What was written at the level before becomes part of a checkpoint; if nothing was, it is quick.
                checkpoint::take(&image, &**disk, 0)?;
            }
        } else if let Some(level) = options.durability.filter(|level| *level != Durability::None) {
            let is_raised = level > log::level(&image);
            if is_raised {
                log::set_level(&image, level)?;
            }
            if is_raised || log::is_unnamed(&image) {
                checkpoint::take(&image, &**disk, 0)?;
            }
        }
        Ok(())
    };
    match ready() {
        Ok(()) => Ok(Entered { image, anchor, recovery }),
        Err(error) => {
            free_slot(&image);
            Err(error)
        }
    }
}

/// Locks a byte of the database file for as long as the process lives.
fn lock(site: &Site, byte: u64, access: Access) -> Result<Option<Anchor>> {
    let anchor = Anchor::acquire(&site.path, byte, access, byte == IN_USE);
    anchor.map_err(|source| io_error("lock", &site.path, source))
}

/// Takes a free slot: its byte first, then its word.
fn take_slot(image: &mut Image, site: &Site) -> Result<Option<Anchor>> {
    for slot in 0..PROCESSES {
        let ProcessState::Free { incarnation } = image.process(slot) else { continue };
        let Some(anchor) = lock(site, SLOTS + slot as u64, Access::ReadWrite)? else { continue };
        let free = ProcessState::Free { incarnation }.to_word();
        let incarnation = incarnation.wrapping_add(1);
        let live = ProcessState::Live { incarnation }.to_word();
        let entry = PROCESSES_AT + slot * PROCESS_BYTES;
        image.shm.word(entry + PROCESS_PID).store(platform::pid().into(), Release);
        image.shm.word(entry + PROCESS_VERSION).store(version_word(), Release);
        image.shm.word(entry + PROCESS_SINCE).store(platform::monotonic_nanos(), Release);
        if image.process_word(slot).compare_exchange(free, live, AcqRel, Acquire).is_ok() {
            image.me = Owner { slot: slot as u16, incarnation };
            return Ok(Some(anchor));
        }
    }
    Ok(None)
}

/// This library's version, for display.
fn version_word() -> u64 {
    let parts = env!("CARGO_PKG_VERSION").split(['.', '-']).take(3);
    parts.fold(0, |word, part| word << 16 | part.parse::<u64>().unwrap_or(0) & 0xffff)
}

/// Repairs all processes, which are dead and leave no slot to do it from. Nobody else can be repairing:
/// nobody is attached, and the caller holds the `open` lock.
fn repair_all(mut image: Image) -> Result<Image> {
    image.me = FORERUNNER;
    let image = Arc::new(image);
    repair::dead_processes(&image)?;
    Arc::into_inner(image).ok_or_else(|| Error::Internal("repair keeps the image".to_owned()))
}

/// Whether a failed sync has stopped writing.
fn is_failed(image: &Image) -> bool {
    image.control(control::FLAGS).load(Acquire) & FLAG_FAILED != 0
}

fn free_slot(image: &Image) {
    let Owner { slot, incarnation } = image.me;
    let live = ProcessState::Live { incarnation }.to_word();
    let free = ProcessState::Free { incarnation }.to_word();
    // Fails only if somebody took us for dead; then he frees it.
    let _ = image.process_word(slot.into()).compare_exchange(live, free, AcqRel, Acquire);
}

/// Frees what sessions of this process are left, of threads that ended without dropping them.
fn give_back_sessions(image: &Arc<Image>) -> Result<()> {
    for id in 1..=repair::sessions_high(image) {
        let seat = Seat::new(image.clone(), id);
        if Owner::from_word(seat.owner_word().load(Acquire)) == Some(image.me) && image.me != NOBODY {
            repair::session(&seat)?;
            seat.owner_word().store(0, Release);
        }
    }
    Ok(())
}

fn moved(site: &Site) -> Error {
    Error::CannotOpen {
        path: site.path.clone(),
        why: "was moved or replaced while it was being opened: open it again".to_owned(),
    }
}

/// Asks the kernel whether the process in a slot lives. In doubt it does: taking the living for dead
/// would be fatal.
pub(crate) fn liveness(path: &Path) -> Result<Liveness> {
    let probe = Probe::new(path).map_err(|source| io_error("open", path, source))?;
    Ok(Box::new(move |slot| probe.is_held(SLOTS + slot as u64).unwrap_or(true)))
}
