//! Several keys read and written for about the price of one write: the facet [`Optimistic`], of back ends whose
//! values lie in this process's own memory.
//!
//! Problem: a transaction remembers what it reads and what it writes, and validates that at the commit. For
//! something as small as "add a member, count it" that costs more than the work itself.
//!
//! Idea: one try without levels. Either an *attempt*, which reads and writes a few keys and then says whether that
//! was one state; or a function that is shown the keys around some *probes* while nobody else can change them, and
//! notes what is to be written there.
//!
//! Example: a set has its members below `^s(1)`, and their number in `^s`. To add `x`, probes stand at `^s(1,"x")`
//! and at `^s`. The function sees that the former is absent, notes both new values, and both are written at one
//! moment.
//!
//! Invariant: false means that nothing was done, and that a transaction can do it. So a caller needs its
//! transaction anyway, and no third way for a back end without this facet.

use crate::{Change, Result};

/// The facet of a session that decides and writes in one step.
pub trait Optimistic {
    /// Opens an attempt: a transaction of one try, without levels, locks, messages and removals of prefixes, that
    /// reads and writes little. False: there can be none now. What it reads need not be one state until
    /// [`Optimistic::end_attempt`] says so; an operation beyond its means answers `Conflict`.
    ///
    /// # Errors
    /// As [`crate::Transactions::begin`].
    fn begin_attempt(&mut self) -> Result<bool>;

    /// Ends it; with its writes if they are to be kept. False: nothing was written, and what was read may
    /// never have been one state; run it as a transaction.
    ///
    /// # Errors
    /// As [`crate::Session::set`].
    fn end_attempt(&mut self, keep: bool) -> Result<bool>;

    /// Whether the last attempt has failed because others were at the same keys or kept all writers out, and not for what
    /// it asked: then another try may do.
    fn was_disturbed(&self) -> bool;

    /// Writes `value` at `key` if it has a value, or if no key lies between it and `end`; false: that is
    /// not so, or cannot be told but in a transaction, and nothing was written.
    ///
    /// # Errors
    /// As [`crate::Session::set`].
    fn set_unless_parent(&mut self, key: &[u8], end: &[u8], value: &[u8]) -> Result<bool>;

    /// As [`crate::Session::update`], if the key has a value or no key behind it begins with it; `change` is not asked when that is
    /// not so, or cannot be told but in a transaction.
    ///
    /// # Errors
    /// As [`crate::Session::update`].
    fn update_unless_parent(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()>;

    /// Sets all pairs, which ascend, at one moment, if each key has a value or no key behind it begins with it; false: that
    /// is not so, or cannot be told but in a transaction, and nothing was written.
    ///
    /// # Errors
    /// As [`crate::Session::set`].
    fn set_all_unless_parents(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<bool>;

    /// Looks at some probes and writes some keys close to them as `change` says, all at one moment. False: nothing was
    /// written, since `change` said so, or since it takes a transaction: one is open, a key lies elsewhere, there are many, or
    /// a long value, or others were in the way for too long. `change` may run several times while others wait for it: it must
    /// neither block, panic nor use the store, and allocate little. True without anything to write says that what was seen was
    /// one state.
    ///
    /// # Errors
    /// The function's own; else as [`crate::Session::set`].
    fn change_probed(&mut self, probes: &[Probe<'_>], change: &mut ProbedChange<'_>) -> Result<bool>;

    /// As [`Optimistic::change_probed`] where nothing is to be written, and without keeping others out: what the function sees may be
    /// halves of two states; true says that it was one, and then it has answered true.
    ///
    /// # Errors
    /// The function's own, if it saw one state; I/O.
    fn look_probed(&mut self, probes: &[Probe<'_>], look: &mut ProbedChange<'_>) -> Result<bool>;
}

/// Which record [`Probe`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProbeTarget {
    /// The record at the probe's key.
    At,
    /// The first record at the probe's key or behind it.
    AtOrNext,
    /// The last record before the probe's key.
    Previous,
}

/// A key at which [`Optimistic::change_probed`] looks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The key; unlike others it may be one 0xFF longer than the limit.
    pub key: &'a [u8],
    /// Which record from there.
    pub target: ProbeTarget,
}

/// What a probe has come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeResult {
    /// A record, which is the wanted one.
    Record,
    /// There is none.
    Nothing,
    /// Nobody can say: what would tell was not looked at.
    Unknown,
}

/// The keys around some probes, while nobody else can change them, and what is to be written there.
///
/// Probes are named by their index.
pub trait Probed {
    /// What `probe` stands at.
    fn found(&self, probe: usize) -> ProbeResult;

    /// Whether `probe` stands at a record with this key.
    fn is_at(&self, probe: usize, key: &[u8]) -> bool;

    /// The key of the record that `probe` stands at; empty if there is none.
    fn key(&mut self, probe: usize) -> &[u8];

    /// What follows `start` in that key; none if it does not begin so.
    fn key_behind(&mut self, probe: usize, start: &[u8]) -> Option<&[u8]> {
        self.key(probe).strip_prefix(start)
    }

    /// The value of the record that `probe` stands at; none if there is none, or it is a long one.
    fn value(&mut self, probe: usize) -> Option<&[u8]>;

    /// Has `probe`, which stands at a record, stand at the one behind it, and answers what that is.
    fn step(&mut self, probe: usize) -> ProbeResult;

    /// Notes that `key` is to have this value. It lies at `probe` or close to where that looks, and behind what was noted
    /// before.
    fn set(&mut self, probe: usize, key: &[u8], value: &[u8]);

    /// Notes that `key`, which lies there likewise, is to have no value.
    fn remove(&mut self, probe: usize, key: &[u8]);
}

/// Looks, notes what is to be written, and answers whether that is to be done: false is to leave all as it is.
pub type ProbedChange<'a> = dyn FnMut(&mut dyn Probed) -> Result<bool> + 'a;
