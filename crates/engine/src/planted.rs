//! Bugs that an instrument plants, to prove that it would find them.
//!
//! The problem: a storm that reports no failure has either found a sound engine or looked the wrong way. The idea: its
//! program plants a bug that is known, runs, and fails if that bug was not found. Planting is done while running, so that
//! one build serves all instruments: building the engine takes longer than most of them run.
//!
//! Example: `plant(Bug::EarlyLength)`, then kill-step must see a page that cannot be put back.
//!
//! Invariants
//! - Without the feature `instrument` there is nothing to plant, and [`is_planted`] is `false` when compiled.
//! - A bug is planted before the first database is opened, and holds for this process and those that it forks.

/// A bug.
#[allow(unreachable_pub)] // The door for instruments, where there is one, shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// The length of the undo area is raised before the entry is complete.
    EarlyLength = 1,
    /// A database file is opened by its name and not compared with what is mapped.
    AnyHome = 2,
}

#[cfg(feature = "instrument")]
static PLANTED: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);

/// Plants `bug` in this process.
#[cfg(feature = "instrument")]
pub fn plant(bug: Bug) {
    // Relaxed: nothing else is handed over by it; it is set before there are other threads.
    PLANTED.fetch_or(bug as u32, std::sync::atomic::Ordering::Relaxed);
}

/// Whether `bug` is planted.
#[cfg(feature = "instrument")]
#[inline]
pub(crate) fn is_planted(bug: Bug) -> bool {
    PLANTED.load(std::sync::atomic::Ordering::Relaxed) & bug as u32 != 0
}

/// Whether `bug` is planted: never, where nothing can be.
#[cfg(not(feature = "instrument"))]
#[inline]
pub(crate) const fn is_planted(_: Bug) -> bool {
    false
}
