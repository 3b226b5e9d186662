//! A database file that nobody changes: the pages of its checkpoint, read by system calls.
//!
//! Problem: salvage reads damaged files. Through a mapping a bad sector would end the process, and what the file
//! says cannot be relied on. Idea: read page by page, and take nothing for good without its checksum.
//!
//! Invariants
//! - No byte of the file is trusted: info pages, pages and lists of runs are checked before they are used.
//! - A page is answered only if it has its sum. Only if the info page that holds the sum is lost, a page is
//!   answered without one, and says so.
//!
//! Deliberately absent: what becomes of what was read (`salvage`, `compact`); the log.

use std::path::Path;

use perilune_disk::DiskFile;
use perilune_shm::words;
use perilune_store::Result;

use crate::image::layout::Run;
use crate::image::{io_error, Image};
use crate::limits::{PAGE, SEGMENT_PAGES};
use crate::meta::info::{Entry, GenerationSum, InfoPage, Place, ENTRIES};
use crate::meta::Meta;
use crate::page::{self, Page};
use crate::session::extent;

/// What the file says about a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// It belongs to no checkpoint.
    Free,
    Used(Entry),
    /// The info page that knows is lost.
    Unknown,
}

/// Why a page cannot be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    pub(crate) page: u64,
    pub(crate) why: String,
}

/// What was read, or why it cannot be.
pub(crate) type Read<T> = std::result::Result<T, Flaw>;

/// The checkpoint of a file.
pub(crate) struct OfflineFile {
    file: Box<dyn DiskFile>,
    pub(crate) meta: Meta,
    /// Pages that the file really has, at most `meta.npages`.
    npages: u64,
    /// Info pages in the order of [`Place::all`]; None: lost.
    infos: Vec<Option<InfoPage>>,
}

/// One slot of an info page.
enum Slot {
    Blank,
    Bad,
    Good(InfoPage),
}

impl OfflineFile {
    /// Reads the info pages of the checkpoint `meta`.
    ///
    /// # Errors
    /// `Io` if the size of the file cannot be had.
    pub(crate) fn open(file: Box<dyn DiskFile>, path: &Path, meta: Meta) -> Result<OfflineFile> {
        let size = file.size().map_err(|source| io_error("find out the size", path, source))?;
        let npages = meta.npages.min(size / PAGE as u64);
        let mut offline = OfflineFile { file, meta, npages, infos: Vec::new() };
        let mut sum = GenerationSum::default();
        // Places of which a slot that is bad, or blank, might have counted.
        let mut doubtful = Vec::new();
        for place in Place::all(offline.meta.npages.min(npages.next_multiple_of(SEGMENT_PAGES))) {
            let slots = [offline.slot(place, 0), offline.slot(place, 1)];
            let has_bad = slots.iter().any(|slot| matches!(slot, Slot::Bad));
            let good = slots.into_iter().filter_map(|slot| match slot {
                Slot::Good(page) if page.generation <= offline.meta.generation => Some(page),
                _ => None,
            });
            let best = good.max_by_key(|page| page.generation);
            sum.add(best.as_ref().map_or(0, |page| page.generation));
            if has_bad || best.is_none() {
                doubtful.push(offline.infos.len());
            }
            // NB: without meta nobody knows whether one that is blank was ever written.
            let is_blank = !has_bad && !offline.meta.is_lost();
            offline.infos.push(best.or_else(|| is_blank.then(InfoPage::empty)));
        }
        if sum.value() != offline.meta.info_sum {
            doubtful.into_iter().for_each(|index| offline.infos[index] = None);
        }
        Ok(offline)
    }

    fn slot(&self, place: Place, slot: usize) -> Slot {
        let mut bytes = vec![0; PAGE];
        match self.file.read_at(&mut bytes, place.offset(slot)) {
            Err(_) => Slot::Bad,
            Ok(()) if bytes.iter().all(|byte| *byte == 0) => Slot::Blank,
            Ok(()) => InfoPage::decode(&bytes, place).map_or(Slot::Bad, Slot::Good),
        }
    }

    /// The highest generation of a checkpoint that has left an info page.
    pub(crate) fn newest_generation(&self) -> u32 {
        self.infos.iter().flatten().map(|info| info.generation).max().unwrap_or(0)
    }

    /// Pages that the file has.
    pub(crate) fn npages(&self) -> u64 {
        self.npages
    }

    /// The info pages that are lost, by the number of the page in slot A.
    pub(crate) fn lost_infos(&self) -> impl Iterator<Item = u64> + '_ {
        let places = Place::all(self.meta.npages).zip(&self.infos);
        places.filter(|(_, info)| info.is_none()).map(|(place, _)| place.offset(0) / PAGE as u64)
    }

    /// What is known about a page.
    pub(crate) fn known(&self, number: u64) -> Known {
        if number >= self.npages || !Image::is_data_page(number) {
            return Known::Free;
        }
        let Place { segment, index } = Place::of(number);
        match self.infos.get((segment * SEGMENT_PAGES.div_ceil(ENTRIES) + index) as usize) {
            Some(Some(info)) => match info.entries.get(Place::entry_of(number)) {
                Some(entry) if entry.born != 0 => Known::Used(*entry),
                _ => Known::Free,
            },
            Some(None) => Known::Unknown,
            None => Known::Free,
        }
    }

    /// Fills `bytes` with a page. False: it has no sum to be compared with.
    fn bytes(&self, number: u64, bytes: &mut [u8]) -> Read<bool> {
        let flaw = |why: &str| Flaw { page: number, why: why.to_owned() };
        let known = self.known(number);
        if known == Known::Free {
            return Err(flaw("it is no page of the checkpoint"));
        }
        let read = self.file.read_at(bytes, number * PAGE as u64);
        read.map_err(|source| flaw(&format!("it cannot be read: {source}")))?;
        match known {
            Known::Used(entry) if entry.sum != crc32c::crc32c(bytes) => Err(flaw("it does not have its sum")),
            Known::Used(_) => Ok(true),
            _ => Ok(false),
        }
    }

    /// A page of the tree, sound in itself, and whether it has been compared with a sum.
    pub(crate) fn tree_page(&self, number: u64) -> Read<(Page, bool)> {
        let mut bytes = vec![0; PAGE];
        let has_sum = self.bytes(number, &mut bytes)?;
        let page: Page = words::zeroed();
        words::write(&page, 0, &bytes);
        match page::check(&page, number as u32) {
            Ok(()) if page::flags(&page) == 0 => Ok((page, has_sum)),
            Ok(()) => Err(Flaw { page: number, why: "it is no page of the main tree".to_owned() }),
            Err(why) => Err(Flaw { page: number, why }),
        }
    }

    /// The value that `list`, of a record in leaf `leaf`, says to lie in runs; and how many pages had no sum.
    pub(crate) fn long_value(&self, leaf: u64, list: &[u8]) -> Read<(Vec<u8>, u64)> {
        let (len, runs) = extent::parse_within(self.npages, list)
            .ok_or_else(|| Flaw { page: leaf, why: "a record lists bad runs".to_owned() })?;
        let (mut value, mut unsummed) = (Vec::new(), 0);
        let mut bytes = vec![0; PAGE];
        for Run { first, pages } in runs {
            for number in u64::from(first)..u64::from(first) + u64::from(pages) {
                unsummed += u64::from(!self.bytes(number, &mut bytes)?);
                value.extend_from_slice(&bytes[..PAGE.min(len - value.len())]);
            }
        }
        Ok((value, unsummed))
    }

    /// Whether any page looks like one of the main tree.
    pub(crate) fn has_tree_page(&self) -> bool {
        (0..self.npages).any(|number| self.tree_page(number).is_ok())
    }

    /// Which pages are used and belong to the trees.
    pub(crate) fn tree_pages(&self) -> impl Iterator<Item = u64> + '_ {
        let is_tree = |number: &u64| matches!(self.known(*number), Known::Used(entry) if !entry.is_run);
        (0..self.npages).filter(is_tree)
    }
}
