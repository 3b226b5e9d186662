//! A process attached to a database: its slot, its leaving, and what a fork makes of it.
//!
//! Invariants
//! - The slot's byte is locked before its word says LIVE, and until after it says FREE.
//! - What a process has attached is detached by it alone: a forked child drops its copy without effect,
//!   and attaches itself, with a slot of its own, when it first uses the database.
//! - Whoever leaves last takes a checkpoint; it holds the `open` lock, so nobody comes meanwhile.

use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use perilune_disk::{Disk, RealDisk};
use perilune_shm::anchor::Anchor;
use perilune_shm::fork::ForkMark;
use perilune_shm::platform;
use perilune_store::{Durability, Error, Result};

use super::enter::{enter, free_slot, Entered};
use super::gate::Gate;
use super::shm::NOBODY;
use super::site::Site;
use super::OpenOptions;
use crate::image::layout::Owner;
use crate::image::Image;
use crate::recover::RecoveryReport;
use crate::session::Seat;
use crate::{checkpoint, log, notice, repair};

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
        perilune_disk::limit_files(platform::file_limit);
        if options.create && !options.read_only {
            site.create_if_missing(options, &*disk)?;
        }
        Ok(Arc::new(Attachment::join(site, options.clone(), disk, None)?))
    }

    /// Attaches to the file at `site`, which is to be that of `parent`.
    fn join(
        site: Site,
        options: OpenOptions,
        disk: Arc<dyn Disk>,
        parent: Option<&Image>,
    ) -> Result<Attachment> {
        let mark = ForkMark::current();
        let Entered { image, anchor, recovery } = enter(&site, &options, &disk, parent)?;
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
                        place: (&self.site.path).into(),
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
        // NB: the parent may have lost its files, or does not know it yet: the child is not to go on in others.
        Attachment::join(self.site.clone(), self.options.clone(), Arc::clone(&self.disk), Some(&self.image))
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
        let image = &self.image;
        let gate = Gate::enter_own(image, self.options.timeout)?;
        repair::dead_processes(image)?;
        give_back_sessions(image)?;
        // A file that has no name any more is gone with us.
        let is_removed = gate.metadata(&self.site.path)?.nlink() == 0;
        let closed = if image.is_only_process() && !is_removed { self.close_last() } else { Ok(()) };
        image.look_for_home();
        free_slot(image);
        drop(gate);
        match image.lost_flag() {
            0 => closed,
            _ => closed.and(Err(image.lose())),
        }
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
