//! The watches of a process by their ids, and what they need of masks and filter.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use perilune_shm::event::EventFd;
use perilune_store::{Error, Result, WatchId, WatchRequest, WatchScope};

use super::{mask, number, process_filter, unknown, FILTER_CHANGE};
use crate::access::Access;
use crate::control::{freeze, settle};
use crate::image::bell::{KeyHash, Notes};
use crate::image::layout::control;
use crate::image::{io_error, Image};
use crate::limits::WATCH_BUCKETS;

/// Watches of one process at once.
const WATCHES_MAX: usize = 1 << 16;

/// Where a request lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    bucket: usize,
    notes: Notes,
}

impl Place {
    /// # Errors
    /// `Invalid` for an empty key.
    pub(super) fn of(request: &WatchRequest<'_>) -> Result<Place> {
        let WatchRequest { key, scope } = *request;
        if key.is_empty() {
            return Err(Error::Invalid("a watched key or prefix has at least one byte".into()));
        }
        let hash = match scope {
            WatchScope::Key => KeyHash::of(key).whole(),
            WatchScope::Prefix => KeyHash::of(key),
        };
        Ok(Place { bucket: hash.bucket(), notes: Notes::of(key, scope == WatchScope::Prefix) })
    }

    /// The buckets whose masks have its process.
    fn buckets(&self) -> impl Iterator<Item = usize> {
        self.notes.gates.into_iter().chain([self.bucket])
    }
}

/// A place of a watch, and the numbers of its bucket that have been reported.
struct Seen {
    place: Place,
    /// The number that the last answer to the waiter has reported.
    answered: u64,
    /// The number that the descriptor has reported.
    signalled: u64,
}

struct Watch {
    places: Vec<Seen>,
    event: Option<EventFd>,
}

/// How many watches need each bucket and each bit of the filter.
struct Needs {
    buckets: HashMap<usize, usize>,
    bits: [usize; 48],
    /// What an earlier process in our slot may have left has been removed.
    is_clean: bool,
}

impl Needs {
    fn filter(&self) -> u64 {
        (0..48).filter(|bit| self.bits[*bit] > 0).fold(0, |filter, bit| filter | 1 << bit)
    }

    fn count_bits(&mut self, filter: u64, change: impl Fn(&mut usize)) {
        (0..48).filter(|bit| filter >> bit & 1 != 0).for_each(|bit| change(&mut self.bits[bit]));
    }
}

pub(super) struct Registry {
    pub(super) image: Arc<Image>,
    /// Held through a registration's freeze, so that nobody relies on bits not yet known to all.
    needs: Mutex<Needs>,
    watches: Mutex<HashMap<WatchId, Watch>>,
}

/// A panic leaves both tables whole: nothing between two changes of one can panic.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Registry {
    pub(super) fn new(image: Arc<Image>) -> Registry {
        let needs = Needs { buckets: HashMap::new(), bits: [0; 48], is_clean: false };
        Registry { image, needs: Mutex::new(needs), watches: Mutex::default() }
    }

    /// # Errors
    /// `LimitReached`, `ReadOnly`; what repairing the dead can answer.
    pub(super) fn register(&self, access: &Access, places: Vec<Place>) -> Result<WatchId> {
        if self.image.read_only {
            return Err(Error::ReadOnly);
        }
        let mut needs = locked(&self.needs);
        if locked(&self.watches).len() >= WATCHES_MAX {
            return Err(Error::LimitReached { what: "watches: end some", limit: WATCHES_MAX as u64 });
        }
        if self.need(&mut needs, &places) {
            let settled = settle(&self.image, &freeze(&self.image), access.seat.id);
            settled.inspect_err(|_| self.release(&mut needs, &places))?;
        }
        let seen = |place: Place| {
            let number = number(&self.image, place.bucket);
            Seen { place, answered: number, signalled: number }
        };
        let watch = Watch { places: places.into_iter().map(seen).collect(), event: None };
        let id = WatchId(self.image.control(control::SERIAL).fetch_add(1, AcqRel));
        locked(&self.watches).insert(id, watch);
        Ok(id)
    }

    pub(super) fn unregister(&self, id: WatchId) {
        let mut needs = locked(&self.needs);
        let watch = locked(&self.watches).remove(&id);
        if let Some(watch) = watch {
            let places: Vec<Place> = watch.places.iter().map(|seen| seen.place).collect();
            self.release(&mut needs, &places);
        }
    }

    /// Counts places as needed, and tells writers; true when something is new to them.
    fn need(&self, needs: &mut Needs, places: &[Place]) -> bool {
        self.clean(needs);
        let before = needs.filter();
        let mut is_new = false;
        for place in places {
            for bucket in place.buckets() {
                let count = needs.buckets.entry(bucket).or_default();
                *count += 1;
                if *count == 1 {
                    let (word, bit) = mask(&self.image, bucket);
                    word.fetch_or(bit, AcqRel);
                    is_new = true;
                }
            }
            needs.count_bits(place.notes.filter, |count| *count += 1);
        }
        let needed = needs.filter();
        if needed != before {
            process_filter(&self.image, self.image.me.slot.into()).store(needed, SeqCst);
            let widen = |seen: u64| Some((seen | needed).wrapping_add(FILTER_CHANGE));
            let _ = self.image.control(control::FILTER).fetch_update(SeqCst, Acquire, widen);
            is_new = true;
        }
        is_new
    }

    /// The reverse of [`Registry::need`]. The filter itself is left to the warden: others may need it.
    fn release(&self, needs: &mut Needs, places: &[Place]) {
        for place in places {
            for bucket in place.buckets() {
                let Some(count) = needs.buckets.get_mut(&bucket) else { continue };
                *count -= 1;
                if *count == 0 {
                    needs.buckets.remove(&bucket);
                    let (word, bit) = mask(&self.image, bucket);
                    word.fetch_and(!bit, AcqRel);
                }
            }
            needs.count_bits(place.notes.filter, |count| *count = count.saturating_sub(1));
        }
        process_filter(&self.image, self.image.me.slot.into()).store(needs.filter(), SeqCst);
    }

    fn clean(&self, needs: &mut Needs) {
        if !needs.is_clean {
            process_filter(&self.image, self.image.me.slot.into()).store(0, SeqCst);
            for bucket in 0..WATCH_BUCKETS {
                let (word, bit) = mask(&self.image, bucket);
                if word.load(Acquire) & bit != 0 {
                    word.fetch_and(!bit, AcqRel);
                }
            }
            needs.is_clean = true;
        }
    }

    /// Ends all watches.
    pub(super) fn forget_all(&self) {
        let ids: Vec<WatchId> = locked(&self.watches).keys().copied().collect();
        ids.into_iter().for_each(|id| self.unregister(id));
    }

    /// Whether a watch has been touched since the last true answer.
    ///
    /// # Errors
    /// `Invalid` for an unknown id.
    pub(super) fn take_touch(&self, id: WatchId) -> Result<bool> {
        let mut watches = locked(&self.watches);
        let watch = watches.get_mut(&id).ok_or_else(|| unknown(id))?;
        if let Some(event) = &watch.event {
            // Cleared before looking. If the host has closed it, `wait` works all the same.
            let _ = event.clear();
        }
        let mut touched = false;
        for seen in &mut watch.places {
            let now = number(&self.image, seen.place.bucket);
            touched |= now != seen.answered;
            seen.answered = now;
            seen.signalled = now;
        }
        Ok(touched)
    }

    /// The descriptor of a watch, which is readable at once if the watch has been touched already.
    ///
    /// # Errors
    /// `Invalid` for an unknown id; `Io` when none is to be had.
    pub(super) fn descriptor(&self, id: WatchId) -> Result<i32> {
        let mut watches = locked(&self.watches);
        let watch = watches.get_mut(&id).ok_or_else(|| unknown(id))?;
        if watch.event.is_none() {
            let event = EventFd::new();
            let event =
                event.map_err(|source| io_error("make a descriptor for", &self.image.path, source))?;
            watch.event = Some(event);
            watch.places.iter_mut().for_each(|seen| seen.signalled = seen.answered);
            self.signal(watch);
        }
        watch.event.as_ref().map(EventFd::as_raw_fd).ok_or_else(|| unknown(id))
    }

    /// Makes the descriptors readable whose watches have been touched.
    pub(super) fn signal_all(&self) {
        locked(&self.watches).values_mut().for_each(|watch| self.signal(watch));
    }

    fn signal(&self, watch: &mut Watch) {
        let Some(event) = &watch.event else { return };
        let mut touched = false;
        for seen in &mut watch.places {
            let now = number(&self.image, seen.place.bucket);
            touched |= now != seen.signalled;
            seen.signalled = now;
        }
        if touched {
            // The host may have closed it; that is its own affair.
            let _ = event.notify();
        }
    }
}
