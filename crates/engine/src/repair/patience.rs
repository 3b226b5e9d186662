//! Waiting for the living: spin, yield, sleep, and give up at the limit.
//!
//! Whoever is waited for lives, or is dead and will be repaired; he may also be stopped, for as long as somebody likes.
//! So every wait ends at the limit of who waits ([`Limit`]), with an error that names whom it waited for. What the limit
//! costs: nothing before the first yield, a look at the clock with each. Where all cores are busy a yield gives others
//! milliseconds: it counts as much as a sleep.
//!
//! Invariants
//! - Nobody waits without a limit. Who works for all (a duty) is waited for beyond it as long as he is not stopped.

use std::sync::atomic::Ordering::Acquire;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_shm::latch::{self, State};
use perilune_shm::platform;
use perilune_store::{Error, Result};

use super::dead_session;
use crate::error::Stop;
use crate::image::layout::control;
use crate::image::Image;
use crate::limits::{FRUITLESS, HOPELESS, SEGMENT_RESERVED};
use crate::page;
use crate::session::wake::{wake, WAKE_AFTER};
use crate::session::{Limit, Seat, Whom};

/// How a thread waits for another: spin, yield, sleep longer and longer; before each sleep it looks
/// whether the other still lives.
///
/// Attempts fail because somebody changes what they read. One that fails while nothing changes has met
/// damage: after [`FRUITLESS`] an attempt is watched, and if all latch words and roots are the same after it
/// as before, the damaged page is looked for and named.
pub(crate) struct Patience {
    rounds: u32,
    /// When it first gave the processor away.
    gave_away: Option<Instant>,
    /// When it first slept between attempts that others' changes had ended.
    since: Option<Instant>,
    /// A sum over all latch words and roots before the attempt that is watched.
    before: Option<u64>,
}

/// Rounds of spinning, and of spinning and yielding.
const SPINS: u32 = 100;
const YIELDS: u32 = 60;
/// How long it yields at most: 60 yields take a tenth of this unless other threads run meanwhile.
const YIELDING: Duration = Duration::from_micros(500);

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience { rounds: 0, gave_away: None, since: None, before: None }
    }

    /// How often has been waited.
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether the next round is not one of sleep.
    pub(crate) fn is_awake(&self) -> bool {
        self.rounds < SPINS + YIELDS
    }

    /// Has the next round be one of sleep, since enough has been spun elsewhere.
    pub(crate) fn sleep_next(&mut self) {
        self.rounds = self.rounds.max(SPINS + YIELDS);
    }

    /// Waits one round for `whom`, or ends with the limit.
    ///
    /// # Errors
    /// `Busy`, `TransactionTimeout` at the limit; as `dead_processes`.
    #[cold]
    pub(crate) fn wait(
        &mut self,
        image: &Arc<Image>,
        limit: &Limit,
        whom: impl FnOnce() -> Whom,
    ) -> Result<()> {
        self.rounds += 1;
        if self.rounds <= SPINS {
            platform::spin_pause();
        } else if self.rounds <= SPINS + YIELDS {
            let since = self.since();
            platform::yield_now();
            if since.elapsed() >= YIELDING {
                self.sleep_next();
            }
        } else {
            let whom = whom();
            if let Whom::Session(id) = whom {
                dead_session(image, id)?;
            }
            let since = self.since();
            if let Whom::Session(id) = whom {
                if since.elapsed() >= WAKE_AFTER {
                    wake(image, id);
                }
            }
            if limit.is_over(image, whom, since) {
                return Err(limit.error(image, whom, since));
            }
            let doublings = ((self.rounds - SPINS - YIELDS) / 4).min(5);
            platform::sleep(Duration::from_micros(50 << doublings).min(Duration::from_millis(1)));
        }
        Ok(())
    }

    /// When the wait that goes on began, or one that begins now.
    pub(crate) fn since(&mut self) -> Instant {
        *self.gave_away.get_or_insert_with(Instant::now)
    }

    /// When it ends.
    pub(crate) fn end(&mut self, limit: &Limit) -> Option<Instant> {
        limit.end(self.since())
    }

    /// Waits before another try of an attempt that somebody's change has ended.
    ///
    /// # Errors
    /// `Corrupt` when there was no change, for so long; as [`Patience::wait`].
    #[cold]
    pub(crate) fn wait_again(&mut self, seat: &Seat) -> Result<()> {
        let image = &seat.image;
        let before = self.before.take();
        if before.is_some_and(|before| before == sum_of_words(image)) {
            return Err(damage(image));
        }
        // NB: a process that only reads cannot take exclusive mode, by which damage is proved. It names a page that is
        // damaged in itself, if there is one.
        let damaged = || if image.read_only { damaged_page(image) } else { None };
        self.wait(image, &seat.limit(), || Whom::Anybody)
            .map_err(|error| damaged().map_or(error, |place| Error::Corrupt { place }))?;
        if self.rounds > SPINS + YIELDS {
            self.since.get_or_insert_with(Instant::now);
        }
        if image.read_only && self.since.is_some_and(|since| since.elapsed() >= HOPELESS) {
            return Err(damage(image));
        }
        self.watch(image);
        Ok(())
    }

    /// Whether repeating has been fruitless for long.
    pub(crate) fn is_fruitless(&self) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= FRUITLESS)
    }

    /// Watches the next attempt, if those before were fruitless for long.
    pub(crate) fn watch(&mut self, image: &Image) {
        self.before = self.is_fruitless().then(|| sum_of_words(image));
    }

    /// Waits for what ended an attempt that needs nothing but another try.
    ///
    /// # Errors
    /// The attempt's own; as [`Patience::wait_again`].
    pub(crate) fn wait_for_stop(&mut self, seat: &Seat, stop: Stop) -> Result<()> {
        match stop {
            Stop::Fail(error) => Err(error),
            Stop::Busy(page) => self.wait_for_page(seat, page),
            _ => self.wait_again(seat),
        }
    }

    /// Waits for whoever holds page `number`.
    ///
    /// # Errors
    /// As [`Patience::wait`].
    pub(crate) fn wait_for_page(&mut self, seat: &Seat, number: u32) -> Result<()> {
        self.wait(&seat.image, &seat.limit(), || {
            let word = latch::load(seat.image.latch(number));
            if word.locked() {
                Whom::Session(word.owner())
            } else {
                Whom::Anybody
            }
        })
    }
}

/// A sum over what changes with every change of a tree: all latch words, and the roots.
fn sum_of_words(image: &Image) -> u64 {
    let add = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    let roots = [control::ROOT, control::VROOT].map(|word| image.control(word).load(Acquire));
    let pages = SEGMENT_RESERVED as u32..image.npages() as u32;
    pages.fold(roots.into_iter().fold(0, add), |sum, number| add(sum, latch::load(image.latch(number)).raw()))
}

/// The error for damage: it names the first tree page that is none.
fn damage(image: &Image) -> Error {
    let contradiction = || format!("pages of {} contradict each other", image.path.display());
    Error::Corrupt { place: damaged_page(image).unwrap_or_else(contradiction) }
}

/// The first tree page that is none, and why.
fn damaged_page(image: &Image) -> Option<String> {
    let mut pages = SEGMENT_RESERVED as u32..image.npages() as u32;
    pages.find_map(|number| {
        let word = latch::load(image.latch(number));
        let wrong = page::check(image.page(number), number).err()?;
        (word.state() == State::Tree && !word.locked() && latch::validate(image.latch(number), word))
            .then(|| format!("page {number} of {}: {wrong}", image.path.display()))
    })
}
