//! Finding the leaves of a damaged file.
//!
//! The info pages name them, not the tree, so that a damaged inner page loses nothing; each is compared with its sum.
//! Below a lost info page nothing says which pages are used, and there are no sums. Then inner pages that are known lead
//! to their children; where the root is not known, as both copies of meta are lost, it is the newest page that covers all
//! keys. For keys of which no leaf is found so, as their inner page is lost too, the newest page that looks like one is
//! taken: it may be of a state before, and is counted.
//!
//! Deliberately absent: copying what the leaves hold.

use std::collections::{BTreeMap, HashSet};

use super::SalvageReport;
use crate::offline::{Flaw, Known, OfflineFile, Read};
use crate::page::{self, InnerSlots, Page, INNER};

/// A leaf that can be read.
pub(super) struct Leaf {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Vec<u8>,
    pub(super) number: u64,
}

/// All leaves that can be read, by their keys.
pub(super) fn leaves(
    offline: &OfflineFile,
    report: &mut SalvageReport,
    progress: &mut dyn FnMut(u64, u64),
) -> Vec<Leaf> {
    let mut found = Vec::new();
    let mut unknown = Vec::new();
    let meta = &offline.meta;
    let stray = unreferenced(offline);
    if meta.is_lost() {
        // NB: without meta nobody knows the root. The newest page that covers all keys is taken for it.
        let roots = stray.iter().filter(|page| page.lo.is_empty() && page.hi.is_empty());
        let newest = roots.max_by_key(|page| (page.born, page.level));
        unknown.extend(newest.map(|page| Child { number: page.number, level: page.level, range: None }));
    } else if offline.known(meta.root.into()) == Known::Unknown {
        unknown.push(Child { number: meta.root, level: meta.height.wrapping_sub(1) as u8, range: None });
    }
    for (done, number) in offline.tree_pages().enumerate() {
        if done % 64 == 0 {
            progress(number, offline.npages());
        }
        match offline.tree_page(number) {
            Ok((page, _)) if page::kind(&page) == INNER => children(offline, &page, &mut unknown),
            Ok((page, _)) => found.push(leaf(&page, number)),
            Err(flaw) => report.lose_page(flaw),
        }
    }
    follow(offline, unknown, &mut found, report);
    place_unreferenced(stray, &mut found, report);
    found.sort_by(|a, b| a.lo.cmp(&b.lo));
    found
}

/// Finds leaves from pages on that only their parents name.
fn follow(offline: &OfflineFile, mut unknown: Vec<Child>, found: &mut Vec<Leaf>, report: &mut SalvageReport) {
    let mut seen = HashSet::new();
    while let Some(child) = unknown.pop() {
        if !seen.insert(child.number) {
            continue;
        }
        match child.page(offline) {
            Ok(page) => {
                report.unsummed_pages += 1;
                if page::kind(&page) == INNER {
                    children(offline, &page, &mut unknown);
                } else {
                    found.push(leaf(&page, child.number.into()));
                }
            }
            Err(flaw) => report.lose_page(flaw),
        }
    }
}

/// A page that looks like one of the main tree and that no info page knows: one of the checkpoint, or a page of a state
/// before that nobody has used again.
struct Unreferenced {
    lo: Vec<u8>,
    hi: Vec<u8>,
    number: u32,
    level: u8,
    born: u32,
}

/// All of them.
fn unreferenced(offline: &OfflineFile) -> Vec<Unreferenced> {
    let unknown = (0..offline.npages()).filter(|number| offline.known(*number) == Known::Unknown);
    let stray = unknown.filter_map(|number| {
        let (page, _) = offline.tree_page(number).ok()?;
        let (lo, hi) = fences(&page);
        Some(Unreferenced {
            lo,
            hi,
            number: number as u32,
            level: page::level(&page),
            born: page::born(&page),
        })
    });
    stray.collect()
}

/// Takes those unreferenced, the newest first, that are leaves for keys of which no leaf was found.
fn place_unreferenced(
    mut unreferenced: Vec<Unreferenced>,
    found: &mut Vec<Leaf>,
    report: &mut SalvageReport,
) {
    let mut ranges: BTreeMap<Vec<u8>, Vec<u8>> =
        found.iter().map(|leaf| (leaf.lo.clone(), leaf.hi.clone())).collect();
    unreferenced.retain(|stray| stray.level == 0);
    unreferenced.sort_by_key(|stray| std::cmp::Reverse(stray.born));
    for Unreferenced { lo, hi, number, .. } in unreferenced {
        let ends_before = |end: &Vec<u8>| !end.is_empty() && *end <= lo;
        let is_free_below = ranges.range(..=lo.clone()).next_back().is_none_or(|(_, end)| ends_before(end));
        let next = ranges.range(lo.clone()..).next();
        let is_free_above = next.is_none_or(|(begin, _)| !hi.is_empty() && hi <= *begin);
        if is_free_below && is_free_above && !ranges.contains_key(&lo) {
            ranges.insert(lo.clone(), hi.clone());
            report.unsummed_pages += 1;
            found.push(Leaf { lo, hi, number: number.into() });
        }
    }
}

fn leaf(page: &Page, number: u64) -> Leaf {
    let (lo, hi) = fences(page);
    Leaf { lo, hi, number }
}

fn fences(page: &Page) -> (Vec<u8>, Vec<u8>) {
    let (mut lo, mut hi) = (Vec::new(), Vec::new());
    page::lo_fence(page, &mut lo);
    page::hi_fence(page, &mut hi);
    (lo, hi)
}

/// A page that an inner page names and that no info page knows.
struct Child {
    number: u32,
    level: u8,
    /// Its fences; None: the root's, which has none.
    range: Option<(Vec<u8>, Vec<u8>)>,
}

impl Child {
    /// The page, if it is the one that its parent means.
    fn page(&self, offline: &OfflineFile) -> Read<Page> {
        let (page, _) = offline.tree_page(self.number.into())?;
        let range = self.range.clone().unwrap_or_default();
        if page::level(&page) != self.level || fences(&page) != range {
            return Err(Flaw { page: self.number.into(), why: "it is not what its parent names".to_owned() });
        }
        Ok(page)
    }
}

/// Adds the children of an inner page of which nothing is known.
fn children(offline: &OfflineFile, page: &Page, unknown: &mut Vec<Child>) {
    let (mut lo, end) = fences(page);
    let slots = page::inner_count(page);
    for index in 0..=slots {
        let mut hi = end.clone();
        if index < slots {
            page::key_into::<InnerSlots>(page, index, &mut hi);
        }
        let number = page::child(page, index);
        if offline.known(number.into()) == Known::Unknown {
            let range = Some((std::mem::take(&mut lo), hi.clone()));
            unknown.push(Child { number, level: page::level(page) - 1, range });
        }
        lo = hi;
    }
}
