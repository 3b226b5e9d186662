//! What a process remembers in order to compare pages with their sums; see `proof`.
//!
//! Two things. Some info pages that it has read, so that they are not read again for each page that they cover.
//! And, in a process that only reads and therefore cannot mark pages in shared memory, which pages it has compared
//! itself.
//!
//! This is memory of one process: its death leaves nothing behind, and losing it costs only time.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, PoisonError};

use crate::limits::PAGE_WORDS;

/// Info pages kept: for half a gigabyte of pages that are touched for the first time.
const KEPT: usize = 64;

/// An info page as it lies in the file, known to be good.
pub(crate) type InfoWords = Box<[u64; PAGE_WORDS]>;

/// Info pages that were read and, in a process that only reads, the pages that it has compared.
#[derive(Default)]
pub(crate) struct Proofs {
    infos: Mutex<Vec<Option<(u64, InfoWords)>>>,
    own: Option<Own>,
}

/// The pages that a process which only reads has compared itself. It cannot mark them in shared memory.
struct Own {
    /// Pages born up to this generation are compared. Those born later were written by processes that came later.
    until: u32,
    /// A bit a page.
    compared: Box<[AtomicU64]>,
}

impl Proofs {
    /// For a process that only reads: it compares pages born up to generation `until`, among the first `npages`, itself.
    pub(crate) fn own(until: u32, npages: u64) -> Proofs {
        let compared = (0..npages.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Proofs { own: Some(Own { until, compared }), ..Proofs::default() }
    }

    /// Whether this process compares pages for itself alone.
    #[inline(always)]
    pub(crate) fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Whether a page born in generation `born` is still to be compared; `is_unproved`: nobody has marked it proved.
    #[inline]
    pub(crate) fn is_wanted(&self, number: u32, born: u32, is_unproved: bool) -> bool {
        match &self.own {
            Some(own) if born <= own.until => {
                let bits = own.compared.get(number as usize / 64);
                bits.is_some_and(|bits| bits.load(Relaxed) >> (number % 64) & 1 == 0)
            }
            _ => is_unproved,
        }
    }

    /// Notes that a process which compares for itself has compared a page born in generation `born`.
    pub(crate) fn note(&self, number: u32, born: u32) {
        let own = self.own.as_ref().filter(|own| born <= own.until);
        if let Some(bits) = own.and_then(|own| own.compared.get(number as usize / 64)) {
            bits.fetch_or(1 << (number % 64), Relaxed);
        }
    }

    /// The word at `index` of the info page with this number among all, if it is kept.
    pub(crate) fn info_word(&self, info: u64, index: usize) -> Option<u64> {
        let infos = self.infos.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, words) = infos.get(info as usize % KEPT)?.as_ref()?;
        (*kept == info).then(|| words.get(index).copied()).flatten()
    }

    /// Keeps an info page.
    pub(crate) fn keep_info(&self, info: u64, words: InfoWords) {
        let mut infos = self.infos.lock().unwrap_or_else(PoisonError::into_inner);
        infos.resize_with(KEPT, || None);
        infos[info as usize % KEPT] = Some((info, words));
    }
}
