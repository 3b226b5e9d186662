//! Memory that is given back elsewhere: what a client leaves behind may be millions of pieces, and whoever frees them does
//! nothing else for a tenth of a second.
//!
//! Example: a client ends with a million commands behind MULTI. Its event loop hands them to [`drop_elsewhere`] and serves
//! others.
//!
//! Invariant: nothing is lost where no thread is to be had: then it is freed at once.

use std::thread;

/// Pieces that are freed at once.
pub const FREED_AT_ONCE: usize = 1_000;

/// Lets go of what may take long to be let go of, on a thread of its own. Where there is none for it, here.
#[cold]
pub fn drop_elsewhere<T: Send + 'static>(what: T) {
    let _ = thread::Builder::new().name("serve-drop".to_owned()).spawn(move || drop(what));
}
