//! The file descriptor of a watch: a connection of its own that waits for touches, and rings.
//!
//! A program with a loop over descriptors wants to hear of a watch there. The session's connection cannot wait meanwhile, so
//! a thread does with another one, that watches the same places, and writes to an eventfd when one is touched.
//!
//! Invariants
//! - The thread takes no signal.
//! - The places are watched when [`Bell::hang`] returns: what is committed then rings.
//! - The thread ends within one slice of a wait after its bell is gone, or when its connection is lost; then it rings once, so
//!   that whoever listens asks and is told.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use perilune_resp::Answer;
use perilune_shm::platform::with_signals_blocked;
use perilune_store::{Error, Result};
use rustix::event::{eventfd, EventfdFlags};

use crate::link::{unexpected, Effect, Link};
use crate::wire::SLICE;

/// What rings when a watch is touched.
#[derive(Debug)]
pub(crate) struct Bell {
    descriptor: Arc<OwnedFd>,
    is_gone: Arc<AtomicBool>,
}

impl Bell {
    /// Watches the same places - scope and key in turn - with a connection of its own.
    ///
    /// # Errors
    /// `Unavailable`, those of WATCH, I/O where there is no descriptor or thread to be had.
    pub(crate) fn hang(mut link: Link, places: &[Vec<u8>]) -> Result<Bell> {
        let io = |action, source| Error::Io { action, place: "a watch".into(), source };
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let descriptor = eventfd(0, flags).map_err(|error| io("make an eventfd", error.into()))?;
        let descriptor = Arc::new(descriptor);
        let arguments: Vec<&[u8]> = places.iter().map(Vec::as_slice).collect();
        let Answer::Integer(watch) = link.call("WATCH", &arguments, Effect::None, Duration::ZERO)? else {
            return Err(unexpected("WATCH"));
        };
        let bell = Bell { descriptor, is_gone: Arc::default() };
        let (descriptor, is_gone) = (Arc::clone(&bell.descriptor), Arc::clone(&bell.is_gone));
        let builder = std::thread::Builder::new().name("perilune-watch".to_owned());
        let run = move || listen(&mut link, &watch.to_string(), &descriptor, &is_gone);
        // Handlers of the program run in the program's own threads.
        with_signals_blocked(|| builder.spawn(run)).map_err(|error| io("start a thread", error))?;
        Ok(bell)
    }

    /// The descriptor, which lives as long as the bell.
    pub(crate) fn descriptor(&self) -> i32 {
        self.descriptor.as_raw_fd()
    }

    /// Makes it silent, whether it has rung or not.
    pub(crate) fn silence(&self) {
        // That it has not rung is no failure.
        let _ = rustix::io::read(&*self.descriptor, &mut [0_u8; 8]);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }
}

fn listen(link: &mut Link, watch: &str, descriptor: &OwnedFd, is_gone: &AtomicBool) {
    // That it rings already is as good.
    let ring = || _ = rustix::io::write(descriptor, &1_u64.to_ne_bytes());
    let slice = SLICE.as_millis().to_string();
    while !is_gone.load(Ordering::Relaxed) {
        match link.call("WAIT", &[watch.as_bytes(), slice.as_bytes()], Effect::None, SLICE) {
            Ok(Answer::Integer(1)) => ring(),
            // A server that cannot wait for one client more answers at once.
            Ok(_) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return ring(),
        }
    }
}
