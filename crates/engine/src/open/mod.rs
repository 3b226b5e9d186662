//! Opening a database: files found, created and checked; a process attached, and detached again.
//!
//! Problem: processes come and go at any moment, or are killed at it, and files are made, removed, copied and renamed
//! meanwhile. Idea: the locks are on bytes of the database file itself, so the kernel frees those of the dead. Whoever
//! holds the one on the byte `open` alone creates, recovers and closes.
//!
//! Example: A opens `x.db`, which does not exist. It locks `open` of `x.db-new`, makes that file whole and gives it the name
//! `x.db`. Then it locks `open` of that, builds `x.db-shm`, locks the byte of process slot 0 and writes LIVE into the slot.
//! B, which comes meanwhile, waits for `open`, finds all that is made, and takes slot 1.
//!
//! Reading order: [`options`], [`site`] (paths, file systems, creation), [`gate`] (locks on bytes of
//! the database file), [`claim`] (files that several want to make), [`shm`] (the `-shm` file), [`recovery`], [`enter`]
//! (slots), [`attach`] (detach, fork), [`sessions`].
//!
//! Invariants
//! - The file that is locked is the database. Whatever is opened by its name later, when it is opened and as long
//!   as it is used, is compared with that one; what turns out to be another file is not touched.
//! - A file is made under a name where there is none; one that is left is removed under its lock, if it is ours.
//! - `-shm` is created, filled or replaced, and slots change hands, only under the exclusive lock on
//!   the `open` byte of `x.db`; it is replaced only while no slot byte and no `in-use` byte is held.
//! - A process is attached from the moment its word is LIVE until its byte is free; the byte is locked
//!   before the word says so.
//! - Meta says "open" durably before the first session can exist, and "closed" only after a checkpoint
//!   taken with nobody else attached.
//!
//! # Killed here?
//!
//! | killed | left behind | then |
//! |---|---|---|
//! | creating: `PATH-new` in part, not renamed | `PATH-new` | the next creator locks it, removes it and makes his own |
//! | creating: linked to PATH, not yet unlinked | a database with two names | `PATH-new` is in the next creator's way if it was opened |
//! | creating: renamed, directory not synced | a whole database | nothing |
//! | holding the `open` lock | the kernel frees the byte | nothing |
//! | building `-shm` or recovering, READY not set | a file that is not READY, nor locked | the next one removes it, and builds his |
//! | built, no slot yet | a good `-shm` | attached to |
//! | byte locked, word FREE | nothing: the byte goes | nothing |
//! | word LIVE, before / in repairing others / after | a dead process without sessions | repaired |
//! | meta "open" being written | the older copy torn, the other counts | written again |
//! | meta "open" durable, stamp not stored | `NEXT_STAMP` fits | attached to |
//! | session: area allocated, mark not raised | allocated bytes | allocated again, no loss |
//! | session: mark raised, not claimed | a free session below the mark | claimed by anybody |
//! | session: claimed | a session of a dead process | repaired, freed |
//! | detaching: cut, info pages in part | slots above the durable generation | written by the next |
//! | detaching: meta "closed" in part / whole | the other copy / the new one counts | as the copy says |
//! | detaching: word FREE, byte held | nothing: the byte goes | nothing |
//! | a forked child, before it attaches itself | nothing of its own | nothing |
//!
//! Deliberately absent: `atexit` (a process that ends without detaching is repaired like one that was
//! killed).

mod attach;
mod claim;
mod enter;
mod gate;
mod options;
mod recovery;
mod sessions;
mod shm;
mod site;
#[cfg(test)]
mod tests;
#[cfg(test)]
#[path = "crashes/tests.rs"]
mod tests_of_crashes;
#[cfg(test)]
#[path = "growth/tests.rs"]
mod tests_of_growth;
#[cfg(test)]
#[path = "crashes/meta_tests.rs"]
mod tests_of_meta;

pub use options::OpenOptions;

pub(crate) use attach::Attachment;
pub(crate) use gate::{moved, Gate, Reserved, WARDEN};
pub(crate) use recovery::replay;
pub(crate) use sessions::{claim_session, release_session};
pub(crate) use site::{Site, INITIAL_PAGES};
