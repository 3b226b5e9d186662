//! Info pages: which pages belong to a checkpoint, since when, and the checksum of each.
//!
//! A segment begins with two meta pages and two *slots* of info pages, A and B. Info page `index` of segment
//! `segment` covers [`ENTRIES`] pages of it: `{magic u16, index u16, segment u32, gen u32, crc32c u32}`, then
//! `{born u32, crc32c u32}` each. `born` is 0 for a page that is free; its top bit says that the page belongs to a
//! run of a long value. The sum in the head covers the rest of the page and the fields before it.
//!
//! Example: with pages of 8 KiB there are 1,022 entries, so page 1,500 has entry 478 of info page 1. Slot A of that
//! is of generation 7, slot B of 9. For the checkpoint of generation 8 slot A counts, and B is left over from one
//! that did not end.
//!
//! Invariants
//! - For a checkpoint of generation g, the slot with the highest generation up to g counts.
//! - A checkpoint never writes the slot that counts for the durable generation.

use std::path::Path;

use perilune_disk::DiskFile;
use perilune_store::Error;

use crate::image::io_error;
use crate::limits::{PAGE, SEGMENT_PAGES, SEGMENT_RESERVED};

/// Bytes of an info page's head.
pub(crate) const HEAD: usize = 16;
/// Pages that an info page covers.
pub(crate) const ENTRIES: u64 = ((PAGE - HEAD) / 8) as u64;
/// Info pages of a segment, in each slot.
pub(crate) const PER_SEGMENT: u64 = (SEGMENT_RESERVED - 2) / 2;
/// Marks the born field of a page of a run.
const RUN: u32 = 1 << 31;
/// The highest generation that fits the born field.
pub(crate) const BORN_MAX: u32 = RUN - 1;

const MAGIC: u16 = u16::from_le_bytes(*b"IN");

const _: () = assert!(PER_SEGMENT * ENTRIES >= SEGMENT_PAGES && PER_SEGMENT < 1 << 16);

/// What an info page says about one page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Entry {
    /// 0: the page is free.
    pub(crate) born: u32,
    /// Whether it belongs to a run of a long value.
    pub(crate) is_run: bool,
    pub(crate) sum: u32,
}

impl Entry {
    fn to_bytes(self) -> [u8; 8] {
        let born = self.born | if self.is_run { RUN } else { 0 };
        (u64::from(born) | u64::from(self.sum) << 32).to_le_bytes()
    }

    pub(crate) fn from_bytes(bytes: [u8; 8]) -> Entry {
        let word = u64::from_le_bytes(bytes);
        let born = word as u32;
        Entry { born: born & BORN_MAX, is_run: born & RUN != 0, sum: (word >> 32) as u32 }
    }
}

/// The place of an info page in the file, over all segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) segment: u64,
    pub(crate) index: u64,
}

impl Place {
    /// All info pages that a file of `npages` pages needs, in order.
    pub(crate) fn all(npages: u64) -> impl Iterator<Item = Place> {
        (0..npages.div_ceil(SEGMENT_PAGES)).flat_map(move |segment| {
            (0..in_segment(segment, npages)).map(move |index| Place { segment, index })
        })
    }

    /// The info page that covers page `number`.
    pub(crate) fn of(number: u64) -> Place {
        Place { segment: number / SEGMENT_PAGES, index: number % SEGMENT_PAGES / ENTRIES }
    }

    /// Which of an info page's entries is that of page `number`.
    pub(crate) fn entry_of(number: u64) -> usize {
        (number % SEGMENT_PAGES % ENTRIES) as usize
    }

    /// Whether a file of `npages` pages needs this info page.
    pub(crate) fn is_in(self, npages: u64) -> bool {
        self.index < in_segment(self.segment, npages)
    }

    /// Byte offset of slot 0 or 1.
    pub(crate) fn offset(self, slot: usize) -> u64 {
        (self.segment * SEGMENT_PAGES + 2 + slot as u64 * PER_SEGMENT + self.index) * PAGE as u64
    }

    /// The pages it covers in a file of `npages` pages.
    pub(crate) fn pages(self, npages: u64) -> std::ops::Range<u64> {
        let segment = self.segment * SEGMENT_PAGES;
        let first = segment + self.index * ENTRIES;
        first..(first + ENTRIES).min(segment + SEGMENT_PAGES).min(npages)
    }
}

/// Info pages that a segment of a file of `npages` pages needs.
fn in_segment(segment: u64, npages: u64) -> u64 {
    let pages = npages.saturating_sub(segment * SEGMENT_PAGES).min(SEGMENT_PAGES);
    // A segment without data pages may end before its info pages do.
    if pages > SEGMENT_RESERVED {
        pages.div_ceil(ENTRIES)
    } else {
        0
    }
}

/// One info page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InfoPage {
    pub(crate) generation: u32,
    pub(crate) entries: Vec<Entry>,
}

impl InfoPage {
    /// A page on which all pages are free, never written.
    pub(crate) fn empty() -> InfoPage {
        InfoPage { generation: 0, entries: vec![Entry::default(); ENTRIES as usize] }
    }

    /// The page's bytes at `place`.
    pub(crate) fn encode(&self, place: Place) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(PAGE);
        bytes.extend_from_slice(&MAGIC.to_le_bytes());
        bytes.extend_from_slice(&(place.index as u16).to_le_bytes());
        bytes.extend_from_slice(&(place.segment as u32).to_le_bytes());
        bytes.extend_from_slice(&self.generation.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        self.entries.iter().for_each(|entry| bytes.extend_from_slice(&entry.to_bytes()));
        bytes.resize(PAGE, 0);
        let sum = sum_of(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a page's bytes; None if they are no info page of `place`.
    pub(crate) fn decode(bytes: &[u8], place: Place) -> Option<InfoPage> {
        let head = Head::decode(bytes.get(..HEAD)?)?;
        let fits = head.is_at(place) && head.sum == sum_of(bytes);
        let entries =
            bytes[HEAD..].chunks_exact(8).filter_map(|entry| Some(Entry::from_bytes(entry.try_into().ok()?)));
        fits.then(|| InfoPage { generation: head.generation, entries: entries.collect() })
    }

    /// Reads the page in `slot`; None if what is there is no good one.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(
        file: &dyn DiskFile,
        path: &Path,
        place: Place,
        slot: usize,
    ) -> Result<Option<InfoPage>, Error> {
        let mut bytes = vec![0; PAGE];
        let read = file.read_at(&mut bytes, place.offset(slot));
        read.map_err(|source| io_error("read an info page", path, source))?;
        Ok(InfoPage::decode(&bytes, place))
    }
}

/// The head of an info page.
struct Head {
    index: u16,
    segment: u32,
    generation: u32,
    sum: u32,
}

impl Head {
    fn decode(bytes: &[u8]) -> Option<Head> {
        let low = u64::from_le_bytes(bytes.get(..8)?.try_into().ok()?);
        let high = u64::from_le_bytes(bytes.get(8..16)?.try_into().ok()?);
        (low as u16 == MAGIC).then_some(Head {
            index: (low >> 16) as u16,
            segment: (low >> 32) as u32,
            generation: high as u32,
            sum: (high >> 32) as u32,
        })
    }

    fn is_at(&self, place: Place) -> bool {
        u64::from(self.index) == place.index && u64::from(self.segment) == place.segment
    }
}

fn sum_of(bytes: &[u8]) -> u32 {
    let sum = crc32c::crc32c(&bytes[..12]);
    crc32c::crc32c_append(sum, &bytes[HEAD..])
}

/// The generations in the two slots of `place`, from their heads alone; 0: none, or never written.
///
/// # Errors
/// `Io`.
pub(crate) fn generations(file: &dyn DiskFile, path: &Path, place: Place) -> Result<[u32; 2], Error> {
    let mut found = [0; 2];
    for (slot, generation) in found.iter_mut().enumerate() {
        let mut bytes = [0; HEAD];
        let read = file.read_at(&mut bytes, place.offset(slot));
        read.map_err(|source| io_error("read an info page", path, source))?;
        *generation = generation_of(&bytes, place);
    }
    Ok(found)
}

/// The generation in a slot of `place`, of whose bytes the head will do; 0: none, or never written.
pub(crate) fn generation_of(bytes: &[u8], place: Place) -> u32 {
    Head::decode(bytes).filter(|head| head.is_at(place)).map_or(0, |head| head.generation)
}

/// The slot that counts for generation `durable`; None if neither was written up to then.
pub(crate) fn counting(generations: [u32; 2], durable: u32) -> Option<usize> {
    let fits = |slot: &usize| generations[*slot] != 0 && generations[*slot] <= durable;
    (0..2).filter(fits).max_by_key(|slot| generations[*slot])
}

/// The sum that meta keeps of the generations of the info pages in use.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GenerationSum(u32);

impl GenerationSum {
    /// Adds the next info page's generation.
    pub(crate) fn add(&mut self, generation: u32) {
        self.0 = crc32c::crc32c_append(self.0, &generation.to_le_bytes());
    }

    pub(crate) fn value(self) -> u32 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn info_pages_cover_every_page_once_and_overlap_no_data() {
        let npages = 2 * SEGMENT_PAGES + 1000;
        let mut next = 0;
        for place in Place::all(npages) {
            let pages = place.pages(npages);
            assert_eq!(pages.start, next);
            next = pages.end;
            for slot in 0..2 {
                let page = place.offset(slot) / PAGE as u64;
                assert!((2..SEGMENT_RESERVED).contains(&(page % SEGMENT_PAGES)), "{place:?} lies at {page}");
            }
        }
        assert_eq!(next, npages);
        for npages in [1, 300, SEGMENT_PAGES + 7, SEGMENT_PAGES + 3 * ENTRIES, npages] {
            let all: Vec<Place> = Place::all(npages).collect();
            let near = (0..4).flat_map(|segment| (0..70).map(move |index| Place { segment, index }));
            for place in all.iter().rev().take(70) {
                for (entry, number) in place.pages(npages).enumerate().step_by(61) {
                    assert_eq!(
                        (Place::of(number), Place::entry_of(number)),
                        (*place, entry),
                        "page {number}"
                    );
                }
            }
            for place in near.filter(|place| place.index < SEGMENT_PAGES.div_ceil(ENTRIES)) {
                assert_eq!(place.is_in(npages), all.contains(&place), "{place:?} of {npages}");
            }
        }
    }

    #[test]
    fn info_pages_are_read_back_or_refused() {
        let place = Place { segment: 3, index: 5 };
        let mut page = InfoPage { generation: 17, ..InfoPage::empty() };
        page.entries[1] = Entry { born: 16, is_run: true, sum: 0xffff_ffff };
        page.entries[ENTRIES as usize - 1] = Entry { born: BORN_MAX, is_run: false, sum: 1 };
        let bytes = page.encode(place);
        assert_eq!(bytes.len(), PAGE);
        assert_eq!(InfoPage::decode(&bytes, place), Some(page));
        assert_eq!(InfoPage::decode(&bytes, Place { segment: 3, index: 4 }), None);
        assert_eq!(InfoPage::decode(&bytes, Place { segment: 2, index: 5 }), None);
        for at in (0..PAGE).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(InfoPage::decode(&damaged, place), None, "byte {at}");
        }
    }

    #[test]
    fn the_slot_that_counts_is_the_newest_not_after_the_generation() {
        for (generations, durable, slot) in [
            ([0, 0], 5, None),
            ([3, 0], 5, Some(0)),
            ([3, 5], 5, Some(1)),
            ([3, 6], 5, Some(0)),
            ([7, 6], 5, None),
            ([4, 3], 5, Some(0)),
        ] {
            assert_eq!(counting(generations, durable), slot, "{generations:?} at {durable}");
        }
    }
}
