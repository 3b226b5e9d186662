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
use perilune_store::{Error, Result};

use super::gate::{Gate, IN_USE, SLOTS};
use super::shm::{Opening, NOBODY};
use super::site::Site;
use super::OpenOptions;
use crate::image::layout::{Owner, ProcessState, PROCESSES_AT, PROCESS_BYTES, PROCESS_PID};
use crate::image::{io_error, Image, Liveness};
use crate::limits::PROCESSES;
use crate::session::Seat;
use crate::{checkpoint, meta, repair};

/// A database, attached to by this process. Detached when dropped, or by [`Attachment::close`].
///
/// Whoever holds a session keeps the attachment alive: no session is left when it is dropped.
pub(crate) struct Attachment {
    image: Arc<Image>,
    anchor: Option<Anchor>,
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
        if options.create && !options.read_only {
            site.create_if_missing(&options, &*disk)?;
        }
        let mark = ForkMark::current();
        let (image, anchor) = enter(&site, &options, &*disk)?;
        let (heir, filling) = (OnceLock::new(), AtomicU64::new(0));
        Ok(Attachment { image, anchor: Some(anchor), mark, site, options, disk, heir, filling })
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

    fn rejoin(&self) -> Result<Attachment> {
        Attachment::join(self.site.clone(), self.options.clone(), Arc::clone(&self.disk))
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
        left
    }

    /// Gives the slot back, and takes a checkpoint if nobody else is there. When it fails before the
    /// word is FREE, the process is one that died: the next to come repairs it.
    fn leave(&self) -> Result<()> {
        let gate = Gate::enter(&self.site.path, false, self.options.timeout)?;
        repair::dead_processes(&self.image)?;
        give_back_sessions(&self.image)?;
        let closed = if is_alone(&self.image) { checkpoint::close(&self.image, &*self.disk) } else { Ok(()) };
        free_slot(&self.image);
        drop(gate);
        closed
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        // Who wants to know what went wrong calls `close`.
        let _ = self.detach();
    }
}

/// Attaches the calling process.
fn enter(site: &Site, options: &OpenOptions, disk: &dyn Disk) -> Result<(Arc<Image>, Anchor)> {
    let gate = Gate::enter(&site.path, options.read_only, options.timeout)?;
    let file = disk.open(&site.path, !options.read_only);
    let file = file.map_err(|source| io_error("open", &site.path, source))?;
    let (_, meta) = meta::newest(&*file, &site.path)?;
    let opening = Opening { site, gate: &gate, options, meta: &meta, file: &*file };
    if options.read_only {
        // Before looking for others, so that from here on nobody replaces what is found.
        let anchor = lock(site, IN_USE, Access::ReadOnly)?.ok_or_else(|| moved(site))?;
        return Ok((Arc::new(opening.image()?), anchor));
    }
    let mut image = opening.image()?;
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
        repair::dead_processes(&image)?;
        if is_alone(&image) {
            checkpoint::mark_open(&image, disk)?;
        }
        Ok(())
    };
    match ready() {
        Ok(()) => Ok((image, anchor)),
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
        let pid = image.shm.word(PROCESSES_AT + slot * PROCESS_BYTES + PROCESS_PID);
        pid.store(platform::pid().into(), Release);
        if image.process_word(slot).compare_exchange(free, live, AcqRel, Acquire).is_ok() {
            image.me = Owner { slot: slot as u16, incarnation };
            return Ok(Some(anchor));
        }
    }
    Ok(None)
}

/// Repairs all processes, which are dead and leave no slot to do it from. Nobody else can be repairing:
/// nobody is attached, and the caller holds the `open` lock.
fn repair_all(mut image: Image) -> Result<Image> {
    image.me = Owner { slot: PROCESSES as u16 - 1, incarnation: u32::MAX };
    let image = Arc::new(image);
    repair::dead_processes(&image)?;
    Arc::into_inner(image).ok_or_else(|| Error::Internal("repair keeps the image".to_owned()))
}

/// Whether no other process is attached, once the dead are repaired.
fn is_alone(image: &Image) -> bool {
    (0..PROCESSES).all(|slot| {
        slot == usize::from(image.me.slot) || matches!(image.process(slot), ProcessState::Free { .. })
    })
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
