//! The latch word: lock, page state, owner and version of one page in 64 bits.
//!
//! | bits | content |
//! |---|---|
//! | 63 | LOCKED |
//! | 61-62 | state: 0 dead, 1 tree page, 2 extent page, 3 tree page that is not proved yet |
//! | 48-60 | session that holds the latch; 0 when unlocked |
//! | 0-47 | version |
//!
//! Invariants:
//! - Zero is an unlocked, dead page of version 0, so a zero-filled page table is valid.
//! - The locked word carries its owner: one CAS both takes the latch and says whom to repair.
//! - The version never decreases for a page, through free and reuse; a holder releases at a
//!   higher one if it changed anything. Hence "same word" means "same content".
//! - A page that is not proved is latched by nobody: whoever is to read or change it proves it first, which
//!   changes the state and nothing else.
//!
//! It does not wait, count tries or look for dead owners: that policy is the engine's.
//!
//! The orderings are in the crate's head. `tests/loom_latch.rs` checks them exhaustively; built
//! with `--cfg canary` the writer's fence is missing and that test must notice.

use crate::sync::{fence, AtomicU64, Ordering};

/// Bit 63: the page is latched by the session in the owner bits.
pub const LOCKED: u64 = 1 << 63;
/// Position of the two state bits.
pub const STATE_SHIFT: u32 = 61;
/// Position of the thirteen owner bits.
pub const OWNER_SHIFT: u32 = 48;
/// The highest session number a latch word can name.
pub const OWNER_MAX: u16 = (1 << 13) - 1;
/// The highest version a latch word can hold.
pub const VERSION_MAX: u64 = (1 << OWNER_SHIFT) - 1;

const _: () = assert!(OWNER_SHIFT + 13 == STATE_SHIFT && STATE_SHIFT + 2 == 63);

/// What a page is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Free, obsolete, or allocated and not yet committed (then latched by its session).
    Dead = 0,
    /// A page of one of the trees.
    Tree = 1,
    /// A page of a run that holds a big value.
    Extent = 2,
    /// A page of one of the trees whose bytes nobody has compared with their checksum since the file was opened.
    Unproved = 3,
}

/// The value of a latch word at one moment.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct LatchWord(u64);

impl LatchWord {
    /// A word from its 64 bits, of any value.
    #[inline]
    pub const fn from_raw(raw: u64) -> LatchWord {
        LatchWord(raw)
    }

    /// The word of an unlatched page. `version` is at most [`VERSION_MAX`]; higher bits are cut.
    #[inline]
    pub const fn unlocked(state: State, version: u64) -> LatchWord {
        debug_assert!(version <= VERSION_MAX);
        LatchWord((state as u64) << STATE_SHIFT | version & VERSION_MAX)
    }

    /// The word of a page latched by session `owner`, at most [`OWNER_MAX`]; higher bits are cut.
    #[inline]
    pub const fn locked_by(owner: u16, state: State, version: u64) -> LatchWord {
        debug_assert!(owner <= OWNER_MAX);
        let owner = (owner & OWNER_MAX) as u64;
        LatchWord(LOCKED | owner << OWNER_SHIFT | LatchWord::unlocked(state, version).0)
    }

    /// The 64 bits.
    #[inline]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether some session holds the latch.
    #[inline]
    pub const fn locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    /// What the page is used for.
    #[inline]
    pub const fn state(self) -> State {
        match self.0 >> STATE_SHIFT & 3 {
            0 => State::Dead,
            1 => State::Tree,
            2 => State::Extent,
            _ => State::Unproved,
        }
    }

    /// The session that holds the latch, 0 to [`OWNER_MAX`]. Meaningless when unlocked.
    #[inline]
    pub const fn owner(self) -> u16 {
        (self.0 >> OWNER_SHIFT) as u16 & OWNER_MAX
    }

    /// The version, 0 to [`VERSION_MAX`].
    #[inline]
    pub const fn version(self) -> u64 {
        self.0 & VERSION_MAX
    }

    /// Whether `owner` holds the latch.
    #[inline]
    pub const fn is_locked_by(self, owner: u16) -> bool {
        self.locked() && self.owner() == owner
    }
}

impl std::fmt::Debug for LatchWord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} v{}", self.state(), self.version())?;
        if self.locked() {
            write!(f, " locked by {}", self.owner())?;
        }
        Ok(())
    }
}

/// Reads the word before an optimistic read (Acquire: pairs with the store in [`release`]).
///
/// The caller rejects a locked or dead word before it reads the page.
#[inline]
pub fn load(word: &AtomicU64) -> LatchWord {
    LatchWord(word.load(Ordering::Acquire))
}

/// Whether all relaxed loads since `seen` was [`load`]ed belong to the content `seen` stands for.
///
/// The acquire fence pairs with the release fence in [`try_lock`]: if any of those loads returned a
/// word stored under a later latch, the re-load here returns at least that latch's locked word.
#[inline]
pub fn validate(word: &AtomicU64, seen: LatchWord) -> bool {
    fence(Ordering::Acquire);
    word.load(Ordering::Relaxed) == seen.0
}

/// Takes the latch for session `owner` if the word is still `seen`, keeping its state.
///
/// False if the word has changed or `seen` is locked. Never waits.
#[inline]
pub fn try_lock(word: &AtomicU64, seen: LatchWord, owner: u16) -> bool {
    try_lock_as(word, seen, owner, seen.state())
}

/// Takes the latch like [`try_lock`], and changes the state to `state` in the same step.
#[inline]
pub fn try_lock_as(word: &AtomicU64, seen: LatchWord, owner: u16, state: State) -> bool {
    if seen.locked() {
        return false;
    }
    let locked = LatchWord::locked_by(owner, state, seen.version());
    // Acquire: pairs with the store in `release`, so we see all its holder wrote.
    let taken = word.compare_exchange(seen.0, locked.0, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    // Pairs with the fence in `validate`. The CAS alone orders nothing *after* its own store: the
    // relaxed stores to the page could be seen before the locked word.
    #[cfg(not(canary))]
    fence(Ordering::Release);
    taken
}

/// Changes the state of a page the caller holds, keeping latch, owner and version.
///
/// `held` is the present, locked word.
#[inline]
pub fn relabel(word: &AtomicU64, held: LatchWord, state: State) -> LatchWord {
    debug_assert!(held.locked());
    let relabelled = LatchWord::locked_by(held.owner(), state, held.version());
    word.store(relabelled.0, Ordering::Release);
    relabelled
}

/// Changes the state of an unlatched page, keeping its version, if the word is still `seen`: its content stays what it is.
///
/// False if the word has changed or `seen` is locked. Never waits.
#[inline]
pub fn mark(word: &AtomicU64, seen: LatchWord, state: State) -> bool {
    let marked = LatchWord::unlocked(state, seen.version());
    // AcqRel: whoever latches the marked word has what was there before it was marked.
    !seen.locked() && word.compare_exchange(seen.0, marked.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
}

/// Gives the latch back: the page is now `state` at `version` (at most [`VERSION_MAX`]).
///
/// Only the holder, or who repairs it, may call this. Release: pairs with the acquire in [`load`]
/// and [`try_lock`].
#[inline]
pub fn release(word: &AtomicU64, state: State, version: u64) {
    word.store(LatchWord::unlocked(state, version).0, Ordering::Release);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn zero_is_a_free_page() {
        let word = LatchWord::from_raw(0);
        assert!(!word.locked());
        assert_eq!(word.state(), State::Dead);
        assert_eq!(word, LatchWord::unlocked(State::Dead, 0));
    }

    #[test]
    fn fields_do_not_overlap() {
        for state in [State::Dead, State::Tree, State::Extent, State::Unproved] {
            for owner in [0, 1, 0x1555, OWNER_MAX] {
                for version in [0, 1, VERSION_MAX - 1, VERSION_MAX] {
                    let word = LatchWord::locked_by(owner, state, version);
                    assert!(word.locked() && word.is_locked_by(owner));
                    assert!(!word.is_locked_by(owner ^ 1));
                    assert_eq!(word.state(), state);
                    assert_eq!(word.owner(), owner);
                    assert_eq!(word.version(), version);
                    let open = LatchWord::unlocked(state, version);
                    assert!(!open.locked());
                    assert_eq!((open.state(), open.version()), (state, version));
                    assert_eq!(open.owner(), 0);
                }
            }
        }
        assert_eq!(LatchWord::from_raw(3 << STATE_SHIFT), LatchWord::unlocked(State::Unproved, 0));
    }

    #[test]
    fn marking_changes_the_state_alone() {
        let word = AtomicU64::new(LatchWord::unlocked(State::Unproved, 7).raw());
        let seen = load(&word);
        assert!(mark(&word, seen, State::Tree));
        assert_eq!(load(&word), LatchWord::unlocked(State::Tree, 7));
        assert!(!mark(&word, seen, State::Tree), "a stale word was accepted");
        assert!(try_lock(&word, load(&word), 5));
        assert!(!mark(&word, load(&word), State::Unproved), "a page was marked that somebody holds");
    }

    #[test]
    fn lock_needs_the_word_seen_and_release_raises_the_version() {
        let word = AtomicU64::new(LatchWord::unlocked(State::Tree, 7).raw());
        let seen = load(&word);
        assert!(validate(&word, seen));
        assert!(try_lock(&word, seen, 42));
        assert!(!validate(&word, seen));
        let held = load(&word);
        assert_eq!(held, LatchWord::locked_by(42, State::Tree, 7));
        assert!(!try_lock(&word, held, 43), "a locked word was locked again");
        assert!(!try_lock(&word, seen, 43), "a stale word was accepted");
        let held = relabel(&word, held, State::Dead);
        assert_eq!(load(&word), held);
        assert_eq!(held, LatchWord::locked_by(42, State::Dead, 7));
        release(&word, State::Dead, 8);
        assert_eq!(load(&word), LatchWord::unlocked(State::Dead, 8));
        assert!(!validate(&word, seen));
        assert!(try_lock_as(&word, load(&word), 1, State::Extent));
        assert_eq!(load(&word), LatchWord::locked_by(1, State::Extent, 8));
    }
}
