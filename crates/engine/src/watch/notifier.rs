//! The thread that writes to the descriptors of touched watches, asleep on the process's bell.
//!
//! It is started with the first descriptor and ends with the process's watches. All of the host's
//! signals are blocked in it.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use perilune_shm::{futex, platform};
use perilune_store::Result;

use super::bell;
use super::registry::Registry;
use crate::image::io_error;

pub(super) struct Notifier {
    registry: Arc<Registry>,
    stop: Arc<AtomicBool>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Notifier {
    pub(super) fn new(registry: Arc<Registry>) -> Notifier {
        Notifier { registry, stop: Arc::default(), thread: Mutex::default() }
    }

    /// Starts the thread if it does not run.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn start(&self) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let (registry, stop) = (self.registry.clone(), self.stop.clone());
            let builder = std::thread::Builder::new().name("perilune-watch".to_owned());
            let started = platform::with_signals_blocked(|| builder.spawn(move || run(&registry, &stop)));
            let error = |source| io_error("start a thread that watches", &self.registry.image.path, source);
            *thread = Some(started.map_err(error)?);
        }
        Ok(())
    }

    /// Ends the thread and waits for that.
    pub(super) fn stop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            self.stop.store(true, Release);
            let image = &self.registry.image;
            let bell = bell(image, image.me.slot.into());
            bell.fetch_add(1, AcqRel);
            futex::wake(bell, u32::MAX);
            // Its panic, if any, has been reported where it happened.
            let _ = thread.join();
        }
    }

    /// Forgets the thread, which runs in the parent of this forked process.
    pub(super) fn abandon(&mut self) {
        std::mem::forget(self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take());
    }
}

fn run(registry: &Registry, stop: &AtomicBool) {
    let bell = bell(&registry.image, registry.image.me.slot.into());
    loop {
        let rung = bell.load(Acquire);
        if stop.load(Acquire) {
            return;
        }
        registry.signal_all();
        futex::wait(bell, rung, None);
    }
}
