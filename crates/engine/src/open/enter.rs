//! The entering of a process: the database file locked, mapped, a slot taken, and all made ready.
//!
//! Whatever is opened by the database's name after the first time is compared with the file that is locked: the
//! name may lead elsewhere by then.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::Arc;

use perilune_disk::{Disk, FileId};
use perilune_shm::anchor::{Anchor, Probe};
use perilune_shm::region::Access;
use perilune_shm::{platform, Identity};
use perilune_store::{Durability, Error, Result};

use super::gate::{moved, Gate, IN_USE, SLOTS};
use super::recovery::RECOVERER;
use super::shm::Opening;
use super::site::Site;
use super::OpenOptions;
use crate::image::layout::{
    control, Owner, ProcessState, FLAG_FAILED, PROCESSES_AT, PROCESS_BYTES, PROCESS_PID, PROCESS_SINCE,
    PROCESS_VERSION,
};
use crate::image::{io_error, wakeup, Image, Liveness, Proofs};
use crate::limits::PROCESSES;
use crate::recover::RecoveryReport;
use crate::{checkpoint, log, meta, notice, proof, repair};

/// A process that has just been attached.
pub(super) struct Entered {
    pub(super) image: Arc<Image>,
    pub(super) anchor: Anchor,
    pub(super) recovery: Option<RecoveryReport>,
}

/// Attaches the calling process. A forked child goes on in the file that its `parent` has, or not at all.
///
/// # Errors
/// As `Attachment::open`; `Replaced`.
pub(super) fn enter(
    site: &Site,
    options: &OpenOptions,
    disk: &Arc<dyn Disk>,
    parent: Option<&Image>,
) -> Result<Entered> {
    let gate = match parent {
        Some(parent) if FileId::at(&site.path).is_err() => return Err(parent.lose()),
        _ => Gate::enter(&site.path, options.read_only, options.timeout)?,
    };
    let id = gate.id(&site.path)?;
    if let Some(parent) = parent.filter(|parent| parent.database_id() != id) {
        return Err(parent.lose());
    }
    let file = gate.open_on(&**disk, &site.path, !options.read_only)?;
    let (slot, mut meta) = meta::newest(&*file, &site.path)?;
    let damaged_copies = meta::damaged_copies(&*file, &site.path)?;
    if meta.has_delta {
        if options.read_only {
            let why = "a backup into it was interrupted: run the backup again, or open it once with read_only=false"
                .to_owned();
            return Err(Error::CannotOpen { place: (&site.path).into(), why });
        }
        // Nobody is attached: whoever came after the backup would have done this.
        (_, meta) = meta::delta::put_in(&**disk, &site.path, &*file, slot, &meta, &mut |_, _| {})?;
        notice::info(|| format!("{}: finished a backup that was interrupted", site.path.display()));
    }
    let opening = Opening { site, gate: &gate, options, meta: &meta, file: &*file, disk };
    if options.read_only {
        return enter_to_read(&opening, id);
    }
    let (mut image, recovery) = opening.image()?;
    let mut anchor = take_slot(&mut image, site, id)?;
    if anchor.is_none() && gate.attached(&site.path)?.is_empty() {
        image = repair_all(image)?;
        anchor = take_slot(&mut image, site, id)?;
    }
    let anchor = anchor.ok_or(Error::LimitReached {
        what: "processes: end some, or try again in a moment if they have died",
        limit: PROCESSES as u64,
    })?;
    let image = Arc::new(image);
    match make_ready(&opening, &image, recovery.is_some(), damaged_copies) {
        Ok(()) => Ok(Entered { image, anchor, recovery }),
        Err(error) => {
            free_slot(&image);
            Err(error)
        }
    }
}

/// Attaches the calling process, which only reads.
fn enter_to_read(opening: &Opening<'_>, id: FileId) -> Result<Entered> {
    let site = opening.site;
    // Before looking for others, so that from here on nobody replaces what is found.
    let anchor = lock(site, id, IN_USE, Access::ReadOnly)?.ok_or_else(|| moved(&site.path))?;
    let (mut image, recovery) = opening.image()?;
    let durable = image.control(control::DURABLE_GEN).load(Acquire) as u32;
    image.proofs = Proofs::own(durable, image.npages());
    Ok(Entered { image: Arc::new(image), anchor, recovery })
}

/// Repairs the dead, and sets the level of the database and what meta says of it, before anything is done. A recovery
/// has compared all pages; else the first to come doubts them.
fn make_ready(
    opening: &Opening<'_>,
    image: &Arc<Image>,
    is_recovered: bool,
    damaged_copies: [bool; 2],
) -> Result<()> {
    let Opening { site, gate, options, .. } = *opening;
    let disk = &**opening.disk;
    gate.check_at(&site.path)?;
    // For a second its threads look often.
    wakeup::note_activity(image);
    repair::dead_processes(image)?;
    if image.is_only_process() {
        if let Some(level) = options.durability.filter(|level| *level != log::level(image)) {
            log::set_level(image, level)?;
        }
        let has_left = log::leave_missing(image)?;
        checkpoint::note_damaged_copies(image, damaged_copies);
        let named = checkpoint::mark_open(image, disk)?;
        if !is_recovered {
            proof::doubt_all(image);
        }
        checkpoint::heal(image, disk);
        if has_left && !is_failed(image) {
            checkpoint::take(image, disk, 0)?;
        }
        let is_named = named == log::level(image) && !log::is_unnamed(image);
        if options.durability.is_some() && !is_named && !is_failed(image) {
            // What was written at the level before becomes part of a checkpoint; if nothing was, it is quick.
            checkpoint::take(image, disk, 0)?;
        }
    } else if let Some(level) = options.durability.filter(|level| *level != Durability::None) {
        let is_raised = level > log::level(image);
        if is_raised {
            log::set_level(image, level)?;
        }
        if is_raised || log::is_unnamed(image) {
            checkpoint::take(image, disk, 0)?;
        }
    }
    Ok(())
}

/// Locks a byte of the database file `id` for as long as the process lives.
fn lock(site: &Site, id: FileId, byte: u64, access: Access) -> Result<Option<Anchor>> {
    let only = Some(Identity::new(id.device, id.inode));
    let anchor = Anchor::acquire_in(only, &site.path, byte, access, byte == IN_USE);
    anchor.map_err(|source| match source.kind() {
        ErrorKind::NotFound => moved(&site.path),
        _ => io_error("lock", &site.path, source),
    })
}

/// Takes a free slot: its byte first, then its word.
fn take_slot(image: &mut Image, site: &Site, id: FileId) -> Result<Option<Anchor>> {
    for slot in 0..PROCESSES {
        let ProcessState::Free { incarnation } = image.process(slot) else { continue };
        let Some(anchor) = lock(site, id, SLOTS + slot as u64, Access::ReadWrite)? else { continue };
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
    image.me = RECOVERER;
    let image = Arc::new(image);
    repair::dead_processes(&image)?;
    Arc::into_inner(image).ok_or_else(|| Error::Internal("repair keeps the image".to_owned()))
}

/// Whether a failed sync has stopped writing.
fn is_failed(image: &Image) -> bool {
    image.control(control::FLAGS).load(Acquire) & FLAG_FAILED != 0
}

/// Gives the slot back.
pub(super) fn free_slot(image: &Image) {
    let Owner { slot, incarnation } = image.me;
    let live = ProcessState::Live { incarnation }.to_word();
    let free = ProcessState::Free { incarnation }.to_word();
    // Fails only if somebody took us for dead; then he frees it.
    let _ = image.process_word(slot.into()).compare_exchange(live, free, AcqRel, Acquire);
}

/// Keeps hold of the database file that `gate` has locked.
pub(super) fn probe(gate: &Gate, path: &Path) -> Result<Arc<Probe>> {
    let probe = Probe::new(path).map_err(|source| io_error("open", path, source))?;
    let FileId { device, inode } = gate.id(path)?;
    if probe.identity() != Identity::new(device, inode) {
        return Err(moved(path));
    }
    Ok(Arc::new(probe))
}

/// Asks the kernel whether the process in a slot lives. In doubt it does: taking the living for dead
/// would be fatal.
pub(super) fn liveness(probe: Arc<Probe>) -> Liveness {
    Box::new(move |slot| probe.is_held(SLOTS + slot as u64).unwrap_or(true))
}
