//! How many event loops of a server have clients: no more than their work needs.
//!
//! Two loops that share what one could do cost more than the one: their rounds are smaller, each sleeps and is woken more
//! often, and where clients fill the processors they run in turns, so that who is served by the wrong one waits for a
//! slice of time. So one loop has all clients until it is busy and a processor is idle; then another wakes, and takes over
//! half of them. When those awake could do with one less, the last one gives its clients away.
//!
//! Invariants
//! - Loops wake and rest in order; loop 0 is always awake.
//! - Who decides is loop 0, of what each loop says that it has used; others only read.
//! - Nothing depends on it but speed: a loop at rest serves what cannot be moved, and whatever it is given.
//!
//! Deliberately absent: moving clients between loops that are both awake, and processors of one's own.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often is looked whether a loop is busy.
pub const LOOKED: Duration = Duration::from_millis(100);
/// A loop is busy when it uses so much of a processor.
const BUSY: f64 = 0.85;
/// For so many looks in a row before another wakes.
const LOOKS: u32 = 3;
/// And when so much of a processor is idle.
const IDLE: f64 = 0.25;
/// How long a loop is left to be busy when there was no processor for another.
const REFUSED: Duration = Duration::from_secs(1);
/// How often is looked whether one may rest.
const SURVEYED: Duration = Duration::from_secs(2);
/// It may if the others had no more to do than this share of a processor each,
const CALM: f64 = 0.7;
/// or, while no more than so much of a processor is idle, than this: then one more has nothing to run on.
const FULL: f64 = 0.1;
const CROWDED: f64 = 1.1;

/// How many loops are awake, for all threads.
#[derive(Debug)]
pub struct Awake {
    count: AtomicUsize,
    all: usize,
    /// Nobody decides but the setting, or who has said so by DEBUG.
    fixed: AtomicBool,
}

impl Awake {
    /// Of `all` loops: one, or all of them for good.
    pub fn new(all: usize, always: bool) -> Awake {
        let count = if always { all } else { 1 };
        Awake { count: AtomicUsize::new(count), all, fixed: AtomicBool::new(always || all < 2) }
    }

    /// How many are awake.
    #[inline]
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// Whether the loop has clients but for those that cannot be moved.
    #[inline]
    pub fn has(&self, thread: usize) -> bool {
        thread < self.count()
    }

    /// Whether that follows what they do.
    #[inline]
    pub fn follows(&self) -> bool {
        !self.fixed.load(Ordering::Relaxed)
    }

    /// One more.
    pub fn wake(&self) {
        let _ = self.count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| {
            (count < self.all).then_some(count + 1)
        });
    }

    /// One less.
    pub fn rest(&self) {
        let _ = self
            .count
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |count| (count > 1).then_some(count - 1));
    }

    /// So many from now on, whatever they do. Those that were awake before are answered.
    pub fn fix(&self, count: usize) -> usize {
        self.fixed.store(true, Ordering::Relaxed);
        self.count.swap(count.clamp(1, self.all), Ordering::AcqRel)
    }
}

/// What a loop says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// Of a processor, since it began.
    pub time: Duration,
    /// Connections that it has.
    pub clients: usize,
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// As many loops go on.
    Stay,
    /// One more loop wakes, and gets half of the clients of this one.
    Share(usize),
    /// The last one rests.
    Rest,
}

/// A time, and what had been used by then.
#[derive(Clone, Copy, Debug)]
struct Mark<T> {
    at: Instant,
    used: T,
}

/// Who decides.
#[derive(Debug)]
pub struct Steward {
    looked: Mark<Vec<Used>>,
    /// Looks in a row that found one busy, and how long processors had been idle at the first of them.
    busy: u32,
    idle: Option<Mark<Duration>>,
    refused: Option<Instant>,
    /// Of all loops, and of nobody.
    surveyed: Mark<(Duration, Option<Duration>)>,
}

/// The share of a processor that was used from one time to another.
fn share(used: Duration, passed: Duration) -> f64 {
    used.as_secs_f64() / passed.as_secs_f64().max(1e-6)
}

fn total(used: &[Used]) -> Duration {
    used.iter().map(|each| each.time).sum()
}

impl Steward {
    /// One that begins to look now, at so many loops.
    pub fn new(now: Instant, loops: usize) -> Steward {
        Steward {
            looked: Mark { at: now, used: vec![Used::default(); loops] },
            busy: 0,
            idle: None,
            refused: None,
            surveyed: Mark { at: now, used: (Duration::ZERO, None) },
        }
    }

    /// Whether it is time to ask.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.looked.at) >= LOOKED
    }

    /// What is to be done with `awake` loops that have used so much. `idle` tells how long processors have been idle.
    pub fn advise(
        &mut self,
        now: Instant,
        awake: usize,
        used: &[Used],
        idle: impl Fn() -> Option<Duration>,
    ) -> Advice {
        let busiest = self.look(now, awake, used);
        if let Some(busiest) = busiest.filter(|_| awake < used.len()) {
            if self.may_wake(now, &idle) {
                self.survey(now, used, idle());
                return Advice::Share(busiest);
            }
        } else {
            self.busy = 0;
        }
        let passed = now.saturating_duration_since(self.surveyed.at);
        if awake < 2 || passed < SURVEYED {
            return Advice::Stay;
        }
        let (before, now_idle) = (self.surveyed.used, idle());
        let work = share(total(used).saturating_sub(before.0), passed);
        self.survey(now, used, now_idle);
        let rest = (awake - 1) as f64;
        let is_full = match (before.1, now_idle) {
            (Some(before), Some(now)) => share(now.saturating_sub(before), passed) <= FULL,
            _ => false,
        };
        let most = if is_full { CROWDED } else { CALM };
        if work <= most * rest {
            Advice::Rest
        } else {
            Advice::Stay
        }
    }

    /// The busiest of those that are busy and have clients to share.
    fn look(&mut self, now: Instant, awake: usize, used: &[Used]) -> Option<usize> {
        let passed = now.saturating_duration_since(self.looked.at);
        let before = std::mem::replace(&mut self.looked, Mark { at: now, used: used.to_vec() });
        let since = |thread: usize| used[thread].time.saturating_sub(before.used[thread].time);
        (0..awake.min(used.len()))
            .filter(|thread| used[*thread].clients > 1 && share(since(*thread), passed) >= BUSY)
            .max_by_key(|thread| since(*thread))
    }

    /// Whether one has been busy for long enough and there is a processor for another.
    fn may_wake(&mut self, now: Instant, idle: impl Fn() -> Option<Duration>) -> bool {
        if self.refused.is_some_and(|refused| now.saturating_duration_since(refused) < REFUSED) {
            return false;
        }
        self.busy += 1;
        if self.busy == 1 {
            self.idle = idle().map(|used| Mark { at: now, used });
        }
        if self.busy < LOOKS {
            return false;
        }
        self.busy = 0;
        // Where nobody tells, there is one.
        let is_room = self.idle.zip(idle()).is_none_or(|(before, idle)| {
            let passed = now.saturating_duration_since(before.at);
            share(idle.saturating_sub(before.used), passed) >= IDLE
        });
        self.refused = (!is_room).then_some(now);
        is_room
    }

    /// Notes what had been used when the number of loops was looked at last.
    fn survey(&mut self, now: Instant, used: &[Used], idle: Option<Duration>) {
        self.surveyed = Mark { at: now, used: (total(used), idle) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine of some processors whose loops use the shares that a test says; the advice at each look.
    struct Machine {
        steward: Steward,
        start: Instant,
        looks: u32,
        used: Vec<Used>,
        idle: Duration,
    }

    impl Machine {
        fn new(loops: usize) -> Machine {
            let start = Instant::now();
            let used = vec![Used { time: Duration::ZERO, clients: 10 }; loops];
            Machine { steward: Steward::new(start, loops), start, looks: 0, used, idle: Duration::ZERO }
        }

        fn look(&mut self, awake: usize, shares: &[f64], idle: f64) -> Advice {
            self.looks += 1;
            for (used, share) in self.used.iter_mut().zip(shares) {
                used.time += LOOKED.mul_f64(*share);
            }
            self.idle += LOOKED.mul_f64(idle);
            let now = self.start + LOOKED * self.looks;
            assert!(self.steward.is_due(now));
            let idle = self.idle;
            let advice = self.steward.advise(now, awake, &self.used, || Some(idle));
            assert!(!self.steward.is_due(now));
            advice
        }

        /// The first advice but to stay, within so many looks, and at which it came.
        fn watch(&mut self, looks: u32, awake: usize, shares: &[f64], idle: f64) -> Option<(u32, Advice)> {
            (1..=looks)
                .map(|look| (look, self.look(awake, shares, idle)))
                .find(|(_, advice)| *advice != Advice::Stay)
        }
    }

    #[test]
    fn another_wakes_when_one_is_busy_and_a_processor_idle() {
        let mut machine = Machine::new(3);
        assert_eq!(machine.watch(50, 1, &[0.8], 0.9), None, "it has time left");
        assert_eq!(machine.watch(10, 1, &[1.0], 0.5), Some((LOOKS, Advice::Share(0))));
        assert_eq!(machine.watch(10, 2, &[0.3, 0.9], 0.5), Some((LOOKS, Advice::Share(1))), "the busiest");
        assert_eq!(machine.watch(10, 3, &[1.0, 1.0, 1.0], 0.5), None, "there are no more");
    }

    #[test]
    fn a_busy_moment_is_none() {
        let mut machine = Machine::new(2);
        for _ in 0..20 {
            assert_eq!(machine.look(1, &[1.0], 1.0), Advice::Stay);
            assert_eq!(machine.look(1, &[1.0], 1.0), Advice::Stay);
            assert_eq!(machine.look(1, &[0.1], 1.0), Advice::Stay);
        }
    }

    #[test]
    fn nobody_wakes_to_wait_for_a_processor() {
        let mut machine = Machine::new(2);
        assert_eq!(machine.watch(50, 1, &[1.0], 0.1), None);
        // The one look that is refused is not repeated for a second.
        let (looks, advice) = machine.watch(20, 1, &[1.0], 1.0).expect("there is one at last");
        assert_eq!(advice, Advice::Share(0));
        assert!(looks <= 13, "{looks}");
    }

    #[test]
    fn one_client_is_not_shared() {
        let mut machine = Machine::new(2);
        machine.used[0].clients = 1;
        assert_eq!(machine.watch(50, 1, &[1.0], 1.0), None);
    }

    #[test]
    fn the_last_rests_when_the_others_can_do_its_work() {
        let mut machine = Machine::new(3);
        let looks = (SURVEYED.as_millis() / LOOKED.as_millis()) as u32;
        assert_eq!(machine.watch(3 * looks, 2, &[0.4, 0.4], 1.0), None);
        assert_eq!(machine.watch(2 * looks, 2, &[0.3, 0.3], 1.0), Some((looks, Advice::Rest)));
        assert_eq!(machine.watch(2 * looks, 3, &[0.4, 0.4, 0.4], 1.0), Some((looks, Advice::Rest)));
        assert_eq!(machine.watch(3 * looks, 1, &[0.0], 1.0), None, "the first one never does");
    }

    #[test]
    fn on_a_full_machine_one_rests_whose_work_another_could_almost_do() {
        let looks = (SURVEYED.as_millis() / LOOKED.as_millis()) as u32;
        let mut machine = Machine::new(2);
        let _ = machine.watch(2 * looks, 2, &[0.5, 0.5], 0.5);
        assert_eq!(machine.watch(2 * looks, 2, &[0.5, 0.5], 0.05), Some((looks, Advice::Rest)));
        assert_eq!(machine.watch(3 * looks, 2, &[0.6, 0.6], 0.05), None, "it is more than one can do");
    }

    #[test]
    fn what_was_fixed_stays() {
        let awake = Awake::new(4, false);
        assert_eq!((awake.count(), awake.has(0), awake.has(1), awake.follows()), (1, true, false, true));
        assert_eq!((awake.fix(9), awake.count(), awake.follows()), (1, 4, false));
        assert_eq!((awake.fix(0), awake.count()), (4, 1));
        assert!(!Awake::new(4, true).follows() && Awake::new(4, true).has(3));
        assert!(!Awake::new(1, false).follows());
    }
}
