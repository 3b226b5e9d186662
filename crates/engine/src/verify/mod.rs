//! Whether a whole database keeps its invariants; no user may be writing meanwhile.
//!
//! Walks both trees from their roots: each page keeps the page's own invariants, its fences tile its parent's
//! range, no page is reachable twice, every reachable page is TREE or EXTENT and unlocked and lives, and no other
//! page is. Then all pages of the last checkpoint are compared with their sums; that may be done while others
//! write.
//!
//! What looks like damage may be work under way: of a process that was just killed and whose locks the kernel has
//! not released yet; of a repair; of a warden, also this process's own, that takes locks of the dead out of the
//! volatile tree. Then all is looked at again. Damage is what stays.
//!
//! Deliberately absent: mending (`salvage`).

use std::collections::HashSet;
use std::sync::atomic::Ordering::Acquire;
use std::sync::Arc;
use std::time::Instant;

use perilune_disk::Disk;
use perilune_shm::latch::{self, State};
use perilune_store::Error;

use crate::image::layout::{control, Run};
use crate::image::Image;
use crate::limits::{DYING, HEIGHT_MAX, SEGMENT_RESERVED, VOLATILE};
use crate::page::{self, inner_count, leaf_count, InnerSlots, INNER, LEAF, RECORD_BIG};
use crate::repair::{dead_processes, sessions_high};
use crate::session::{extent, kept_of_session, sessions_ever, Seat};
use crate::tree::Which;
use crate::{checkpoint, duty, meta};

/// Looks at what may be work under way, at least; and for [`DYING`], at least.
const LOOKS: u32 = 3;

/// What a verification has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifyReport {
    /// Records of the main tree.
    pub records: u64,
    /// Inner pages of the main tree.
    pub inner_pages: u64,
    /// Leaves of the main tree.
    pub leaf_pages: u64,
    /// Pages of long values.
    pub extent_pages: u64,
    /// Pages of the volatile tree.
    pub volatile_pages: u64,
    /// Pages that are free, or held by older generations only.
    pub dead_pages: u64,
    /// Pages of the last checkpoint that were compared with their sums.
    pub checkpoint_pages: u64,
}

struct Walk<'a> {
    image: &'a Image,
    which: Which,
    reached: HashSet<u32>,
    report: VerifyReport,
}

/// Repairs the dead and verifies the database; looks again, after `pause`, where work may have been under way.
///
/// # Errors
/// As [`verify`]; as [`dead_processes`].
pub(crate) fn settled(image: &Arc<Image>, pause: &mut dyn FnMut()) -> Result<VerifyReport, Error> {
    let (mut looks, mut since) = (0, None);
    loop {
        dead_processes(image)?;
        let before = Work::of(image);
        let damage = match verify(image) {
            Err(damage @ Error::Corrupt { .. }) => damage,
            result => return result,
        };
        let now = Work::of(image);
        looks += 1;
        let waited = since.get_or_insert_with(Instant::now).elapsed();
        let is_still = image.is_only_process() && !now.is_under_way && now == before;
        if is_still || looks >= LOOKS && waited >= DYING {
            return Err(damage);
        }
        pause();
    }
}

/// What the sessions are at.
#[derive(PartialEq, Eq)]
struct Work {
    /// Differs when any has published something or has begun or ended a step.
    sum: u64,
    /// Whether any is inside an operation.
    is_under_way: bool,
}

impl Work {
    fn of(image: &Arc<Image>) -> Work {
        let mut work = Work { sum: 0, is_under_way: false };
        for id in 1..=sessions_high(image) {
            let seat = Seat::new(image.clone(), id);
            for word in [seat.head(), seat.step()] {
                work.sum = (work.sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
            }
            work.is_under_way |= seat.is_in_operation();
        }
        work
    }
}

/// Verifies the database.
///
/// # Errors
/// `Corrupt`, naming the first page that breaks a rule, and the rule.
pub(crate) fn verify(image: &Image) -> Result<VerifyReport, Error> {
    let mut walk =
        Walk { image, which: Which::Main, reached: HashSet::new(), report: VerifyReport::default() };
    for which in [Which::Main, Which::Volatile] {
        walk.which = which;
        let root = image.control(which.root_word()).load(Acquire) as u32;
        if root == 0 && which == Which::Volatile && image.read_only {
            // Whoever reads a closed database alone has no such tree.
            continue;
        }
        let level = walk.level_of(root)?;
        walk.page(root, level, &[], &[])?;
    }
    walk.unreached()?;
    Ok(walk.report)
}

/// Compares the pages of the last checkpoint with their sums; answers how many there are.
///
/// # Errors
/// `Corrupt`, naming the damaged pages; `Io`.
pub(crate) fn sums(image: &Arc<Image>, disk: &dyn Disk) -> Result<u64, Error> {
    // While we have this duty, the last checkpoint stays the last.
    let _duty = if image.read_only { None } else { Some(duty::take(image, control::CHECKPOINT_OWNER)?) };
    let file = image.own_database(disk, false)?;
    loop {
        let (_, meta) = meta::newest(&*file, &image.path)?;
        let result = meta::sums::compare(&*file, &image.path, &meta);
        let result = result.and_then(|sums| sums.into_result(&image.path));
        // Who only reads has no duty: what it takes for damage may be the next checkpoint's.
        if result.is_ok() || meta::newest(&*file, &image.path)?.1.generation == meta.generation {
            return result;
        }
    }
}

/// What was damaged and cost nothing, since there are two of it.
///
/// # Errors
/// `Io`.
pub(crate) fn mended(image: &Image, disk: &dyn Disk) -> Result<Vec<String>, Error> {
    let file = image.own_database(disk, false)?;
    // Twice: one may be being written.
    let now = [meta::damaged_copies(&*file, &image.path)?, meta::damaged_copies(&*file, &image.path)?];
    let noted = image.control(control::META_DAMAGED).load(Acquire);
    let damaged = (0..2).filter(|slot| now[0][*slot] && now[1][*slot] || noted >> slot & 1 != 0);
    Ok(damaged.map(checkpoint::damaged_copy).collect())
}

fn damaged(number: u32, what: impl std::fmt::Display) -> Error {
    Error::Corrupt { place: format!("page {number}: {what}") }
}

impl Walk<'_> {
    fn level_of(&self, number: u32) -> Result<u8, Error> {
        self.known(number)?;
        let level = page::level(self.image.page(number));
        if usize::from(level) > HEIGHT_MAX {
            return Err(damaged(number, format_args!("level {level}")));
        }
        Ok(level)
    }

    fn known(&self, number: u32) -> Result<(), Error> {
        if u64::from(number) >= self.image.npages() || !Image::is_data_page(number.into()) {
            return Err(damaged(number, "there is no such page"));
        }
        Ok(())
    }

    /// Checks that a page is reached once, is unlocked, in `state`, and lives.
    fn reach(&mut self, number: u32, state: State) -> Result<(), Error> {
        self.known(number)?;
        if !self.reached.insert(number) {
            return Err(damaged(number, "it is reachable twice"));
        }
        let word = latch::load(self.image.latch(number));
        if word.locked() {
            return Err(damaged(number, format_args!("session {} holds its latch", word.owner())));
        }
        // A tree page that nobody has touched since the file was opened is UNPROVED; sums are compared later, of all pages.
        if word.state() != state && (word.state(), state) != (State::Unproved, State::Tree) {
            return Err(damaged(number, format_args!("it is {:?}, not {state:?}", word.state())));
        }
        let life = self.image.life(number);
        let lives = if self.which == Which::Volatile {
            life.born == VOLATILE
        } else {
            life.born != VOLATILE && life.died == 0 && life.born <= self.image.generation()
        };
        if !lives {
            return Err(damaged(number, format_args!("it is in the tree, but its life is {life:?}")));
        }
        Ok(())
    }

    fn page(&mut self, number: u32, level: u8, lo: &[u8], hi: &[u8]) -> Result<(), Error> {
        self.reach(number, State::Tree)?;
        let page = self.image.page(number);
        page::check(page, number).map_err(|what| damaged(number, what))?;
        let mut fence = Vec::new();
        page::lo_fence(page, &mut fence);
        let lo_fits = fence == lo;
        page::hi_fence(page, &mut fence);
        if !lo_fits || fence != hi {
            return Err(damaged(number, "its fences are not its parent's separators"));
        }
        if page::level(page) != level || page::flags(page) != self.which.page_flags() {
            return Err(damaged(number, "it has the wrong level or belongs to the other tree"));
        }
        if self.which == Which::Volatile {
            self.report.volatile_pages += 1;
        }
        match page::kind(page) {
            LEAF => self.leaf(number),
            INNER => self.inner(number, level, lo, hi),
            _ => Err(damaged(number, "it is neither leaf nor inner")),
        }
    }

    fn leaf(&mut self, number: u32) -> Result<(), Error> {
        let page = self.image.page(number);
        let slots = leaf_count(page);
        if self.which == Which::Main {
            self.report.leaf_pages += 1;
            self.report.records += slots as u64;
        }
        let mut list = Vec::new();
        for index in 0..slots {
            list.clear();
            if page::append_value(page, index, &mut list) & RECORD_BIG != 0 {
                let (_, runs) = extent::parse(self.image, &list)
                    .ok_or_else(|| damaged(number, format_args!("record {index} lists bad runs")))?;
                for Run { first, pages } in runs {
                    for extent in first..first + pages {
                        self.reach_extent(extent)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn reach_extent(&mut self, number: u32) -> Result<(), Error> {
        if self.which == Which::Main {
            self.report.extent_pages += 1;
        } else {
            self.report.volatile_pages += 1;
        }
        self.reach(number, State::Extent)
    }

    fn inner(&mut self, number: u32, level: u8, lo: &[u8], hi: &[u8]) -> Result<(), Error> {
        let page = self.image.page(number);
        if self.which == Which::Main {
            self.report.inner_pages += 1;
        }
        let mut from = lo.to_vec();
        let mut to = Vec::new();
        let slots = inner_count(page);
        for index in 0..=slots {
            if index < slots {
                page::key_into::<InnerSlots>(page, index, &mut to);
            } else {
                to.clear();
                to.extend_from_slice(hi);
            }
            self.page(page::child(page, index), level - 1, &from, &to)?;
            std::mem::swap(&mut from, &mut to);
        }
        Ok(())
    }

    /// Checks that pages that are not reachable are free or dead.
    fn unreached(&mut self) -> Result<(), Error> {
        let frontier = self.image.control(control::FRONTIER).load(Acquire).min(self.image.npages());
        // The runs of long records, which the log still needs.
        let kept: Vec<(u16, Run)> = (1..=sessions_ever(self.image))
            .flat_map(|id| kept_of_session(self.image, id).into_iter().map(move |run| (id, run)))
            .collect();
        let is_kept = |number: u32, owner: u16| {
            kept.iter().any(|(id, run)| *id == owner && (run.first..run.first + run.pages).contains(&number))
        };
        for number in SEGMENT_RESERVED..frontier {
            if !Image::is_data_page(number) || self.reached.contains(&(number as u32)) {
                continue;
            }
            let word = latch::load(self.image.latch(number as u32));
            if word.locked() && word.state() == State::Dead && is_kept(number as u32, word.owner()) {
                continue;
            }
            if word.locked() {
                return Err(damaged(number as u32, format_args!("unreachable, locked by {}", word.owner())));
            }
            if word.state() != State::Dead {
                return Err(damaged(number as u32, format_args!("unreachable, yet {:?}", word.state())));
            }
            self.report.dead_pages += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
