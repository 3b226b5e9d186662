//! What commands have done on this server: how often, how long, with which errors; and delays worth keeping. What runs
//! inside EXEC and scripts is tallied first, and counted without its time, once, however often it had to run again.
//!
//! Invariant: each event loop counts for itself, so that counting shares no cache line; who asks adds up.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::command;
use perilune_net::clock::clock;

/// Powers of two of microseconds that are told apart.
pub(crate) const STEPS: usize = 32;
/// Delays kept of an event.
const SAMPLES: usize = 160;
/// Kinds of errors that are told apart.
const ERRORS: usize = 128;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// With a reply.
    Good,
    /// With an error.
    Failed,
    /// Before it began.
    Rejected,
}

/// One command's counters in one event loop, in lines of the cache that no other loop writes to.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Counters {
    calls: AtomicU64,
    nanoseconds: AtomicU64,
    failed: AtomicU64,
    rejected: AtomicU64,
    /// Calls that took at most 1, 2, 4, ... microseconds.
    steps: [AtomicU64; STEPS],
}

/// The commands of one event loop's clients, in a line of its own, and what those found that only read.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Commands {
    count: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    came: AtomicU64,
    went: AtomicU64,
}

impl Commands {
    fn all(&self) -> [&AtomicU64; 5] {
        [&self.count, &self.hits, &self.misses, &self.came, &self.went]
    }
}

/// Bytes of requests that have come, and of replies that have gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) came: u64,
    pub(crate) went: u64,
}

/// Keys that were looked for to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Looks {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
}

impl Looks {
    /// Notes one more, that was there or not.
    #[inline]
    pub(crate) fn note(&mut self, found: bool) {
        if found {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }
}

/// What was counted, of all event loops.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) microseconds: u64,
    pub(crate) failed: u64,
    pub(crate) rejected: u64,
    pub(crate) steps: [u64; STEPS],
}

impl Sums {
    /// Calls whose time was taken: not those inside EXEC and scripts.
    pub(crate) fn timed(&self) -> u64 {
        self.steps.iter().sum()
    }
}

/// What the commands inside a transaction or a script have done, until it has ended.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// By their numbers.
    commands: Vec<(usize, Inside)>,
    /// Errors by their texts.
    errors: Vec<(String, u64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Inside {
    calls: u64,
    failed: u64,
    rejected: u64,
}

impl Tally {
    /// Notes that a command of this number has ended with `reply`.
    #[inline]
    pub(crate) fn ended(&mut self, number: usize, reply: &[u8]) {
        let failed = reply.first() == Some(&b'-');
        let inside = self.of(number);
        inside.calls += 1;
        inside.failed += u64::from(failed);
        if failed {
            self.error(error_of(reply));
        }
    }

    /// Notes one that did not begin, and why.
    pub(crate) fn rejected(&mut self, number: Option<usize>, text: &str) {
        if let Some(number) = number {
            self.of(number).rejected += 1;
        }
        self.error(text);
    }

    #[inline]
    fn of(&mut self, number: usize) -> &mut Inside {
        let place = self.commands.iter().position(|(known, _)| *known == number);
        let place = place.unwrap_or_else(|| {
            self.commands.push((number, Inside::default()));
            self.commands.len() - 1
        });
        &mut self.commands[place].1
    }

    #[cold]
    fn error(&mut self, text: &str) {
        if let Some((_, count)) = self.errors.iter_mut().find(|(known, _)| known == text) {
            *count += 1;
        } else if self.errors.len() < ERRORS {
            self.errors.push((text.to_owned(), 1));
        }
    }

    /// Whether `text` is an error that was noted, with what a script adds to it perhaps.
    fn knows(&self, text: &str) -> bool {
        self.errors.iter().any(|(known, _)| text.starts_with(&**known))
    }

    /// As if nothing had run: it runs again.
    pub(crate) fn clear(&mut self) {
        self.commands.clear();
        self.errors.clear();
    }
}

/// The text of an error's line.
fn error_of(reply: &[u8]) -> &str {
    let line = reply.get(1..).unwrap_or_default();
    let end = line.iter().position(|byte| *byte == b'\r').unwrap_or(line.len());
    let line = &line[..end];
    match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&line[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// A delay.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Seconds since 1970.
    pub(crate) second: i64,
    pub(crate) milliseconds: i64,
}

/// The delays of one event.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    pub(crate) samples: VecDeque<Sample>,
    pub(crate) most: i64,
}

/// All of it.
#[derive(Debug)]
pub(crate) struct Statistics {
    /// By event loop and by the number of the command.
    loops: Vec<Vec<OnceLock<Box<Counters>>>>,
    commands: Vec<Commands>,
    errors: Mutex<BTreeMap<String, u64>>,
    delays: Mutex<BTreeMap<&'static str, Delays>>,
}

/// One thread adds, others read: no need of an atomic addition.
#[inline]
fn add(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn add_error(errors: &mut BTreeMap<String, u64>, text: &str, count: u64) {
    let code = text.split(' ').next().unwrap_or_default();
    if errors.len() < ERRORS || errors.contains_key(code) {
        *errors.entry(code.to_owned()).or_default() += count;
    }
}

impl Statistics {
    pub(crate) fn new(loops: usize) -> Statistics {
        let row = || (0..command::NUMBERS).map(|_| OnceLock::new()).collect();
        Statistics {
            loops: (0..loops).map(|_| row()).collect(),
            commands: (0..loops).map(|_| Commands::default()).collect(),
            errors: Mutex::default(),
            delays: Mutex::default(),
        }
    }

    /// Counts commands of clients of event loop `thread`.
    #[inline]
    pub(crate) fn count_commands(&self, thread: usize, commands: u64) {
        if let Some(counters) = self.commands.get(thread) {
            add(&counters.count, commands);
        }
    }

    /// Counts what a command of event loop `thread` has looked for, and forgets it.
    #[inline]
    pub(crate) fn count_looks(&self, thread: usize, looks: &mut Looks) {
        let Looks { hits, misses } = std::mem::take(looks);
        if hits + misses > 0 {
            if let Some(counters) = self.commands.get(thread) {
                add(&counters.hits, hits);
                add(&counters.misses, misses);
            }
        }
    }

    /// Counts bytes of clients of event loop `thread`, and forgets them.
    #[inline]
    pub(crate) fn count_traffic(&self, thread: usize, Traffic { came, went }: Traffic) {
        if came + went > 0 {
            if let Some(counters) = self.commands.get(thread) {
                add(&counters.came, came);
                add(&counters.went, went);
            }
        }
    }

    /// The sum of one counter over all loops.
    fn sum(&self, counter: fn(&Commands) -> &AtomicU64) -> u64 {
        self.commands.iter().map(|each| counter(each).load(Ordering::Relaxed)).sum()
    }

    /// What clients have sent and have been sent.
    pub(crate) fn traffic(&self) -> Traffic {
        Traffic { came: self.sum(|each| &each.came), went: self.sum(|each| &each.went) }
    }

    /// What commands have looked for.
    pub(crate) fn looks(&self) -> Looks {
        Looks { hits: self.sum(|each| &each.hits), misses: self.sum(|each| &each.misses) }
    }

    /// How many commands clients have sent.
    pub(crate) fn commands(&self) -> u64 {
        self.sum(|each| &each.count)
    }

    /// Counts a command of this number that ran in event loop `thread` for so many nanoseconds.
    #[inline]
    pub(crate) fn count(&self, thread: usize, number: usize, nanoseconds: u64, end: End) {
        let Some(row) = self.loops.get(thread) else { return };
        let counters = row[number].get_or_init(Box::default);
        match end {
            End::Rejected => return add(&counters.rejected, 1),
            End::Failed => add(&counters.failed, 1),
            End::Good => {}
        }
        add(&counters.calls, 1);
        add(&counters.nanoseconds, nanoseconds);
        let microseconds = nanoseconds.div_ceil(1_000).max(1);
        let step = (microseconds.next_power_of_two().trailing_zeros() as usize).min(STEPS - 1);
        add(&counters.steps[step], 1);
    }

    /// Counts what ran inside a command that has ended with `reply`, and its error, if that is not one of those.
    #[inline]
    pub(crate) fn count_inside(&self, thread: usize, tally: &mut Tally, reply: &[u8]) -> End {
        let failed = reply.first() == Some(&b'-');
        if failed && !tally.knows(error_of(reply)) {
            self.count_error(error_of(reply));
        }
        if !tally.commands.is_empty() || !tally.errors.is_empty() {
            self.absorb(thread, tally);
        }
        if failed {
            End::Failed
        } else {
            End::Good
        }
    }

    fn absorb(&self, thread: usize, tally: &mut Tally) {
        for (number, inside) in &tally.commands {
            let Some(row) = self.loops.get(thread) else { continue };
            let counters = row[*number].get_or_init(Box::default);
            for (counter, by) in [
                (&counters.calls, inside.calls),
                (&counters.failed, inside.failed),
                (&counters.rejected, inside.rejected),
            ] {
                counter.store(counter.load(Ordering::Relaxed).wrapping_add(by), Ordering::Relaxed);
            }
        }
        if !tally.errors.is_empty() {
            let mut errors = locked(&self.errors);
            for (text, count) in &tally.errors {
                add_error(&mut errors, text, *count);
            }
        }
        tally.clear();
    }

    /// A command that was counted when it began to wait has failed. For event loop `thread` alone.
    pub(crate) fn count_late(&self, thread: usize, number: usize, text: &str) {
        self.count_error(text);
        if let Some(row) = self.loops.get(thread) {
            add(&row[number].get_or_init(Box::default).failed, 1);
        }
    }

    /// What the command of this number has done, if it was ever asked for.
    pub(crate) fn of(&self, number: usize) -> Option<Sums> {
        let mut sums = Sums::default();
        let mut nanoseconds = 0;
        for counters in self.loops.iter().filter_map(|row| row[number].get()) {
            let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            sums.calls += read(&counters.calls);
            sums.failed += read(&counters.failed);
            sums.rejected += read(&counters.rejected);
            nanoseconds += read(&counters.nanoseconds);
            for (sum, step) in sums.steps.iter_mut().zip(&counters.steps) {
                *sum += read(step);
            }
        }
        sums.microseconds = nanoseconds / 1_000;
        (sums.calls + sums.rejected > 0).then_some(sums)
    }

    /// Counts an error by its first word.
    pub(crate) fn count_error(&self, text: &str) {
        add_error(&mut locked(&self.errors), text, 1);
    }

    pub(crate) fn errors(&self) -> BTreeMap<String, u64> {
        locked(&self.errors).clone()
    }

    /// Keeps a delay of `event`.
    pub(crate) fn delayed(&self, event: &'static str, took: Duration) {
        let milliseconds = i64::try_from(took.as_millis()).unwrap_or(i64::MAX);
        let second = clock() / 1_000;
        let mut delays = locked(&self.delays);
        let delays = delays.entry(event).or_default();
        delays.most = delays.most.max(milliseconds);
        match delays.samples.back_mut() {
            // One a second, the longest.
            Some(last) if last.second == second => last.milliseconds = last.milliseconds.max(milliseconds),
            _ => {
                delays.samples.push_back(Sample { second, milliseconds });
                if delays.samples.len() > SAMPLES {
                    delays.samples.pop_front();
                }
            }
        }
    }

    pub(crate) fn delays(&self) -> BTreeMap<&'static str, Delays> {
        locked(&self.delays).clone()
    }

    /// Forgets the delays of `event`; whether there were any.
    pub(crate) fn forget_delays(&self, event: &[u8]) -> bool {
        let mut delays = locked(&self.delays);
        let known = delays.keys().find(|known| known.as_bytes().eq_ignore_ascii_case(event)).copied();
        known.is_some_and(|known| delays.remove(known).is_some())
    }

    /// As if the server had just started.
    pub(crate) fn reset(&self) {
        locked(&self.errors).clear();
        let loops = self.commands.iter().flat_map(Commands::all);
        loops.for_each(|counter| counter.store(0, Ordering::Relaxed));
        for counters in self.loops.iter().flatten().filter_map(OnceLock::get) {
            let single = [&counters.calls, &counters.nanoseconds, &counters.failed, &counters.rejected];
            single.into_iter().chain(&counters.steps).for_each(|counter| counter.store(0, Ordering::Relaxed));
        }
    }
}
