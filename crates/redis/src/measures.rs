//! What a server counts and measures, for INFO, LATENCY, the page of figures and its own decisions.
//!
//! Invariant: each thread adds to what it counts, and nobody waits for it.
//!
//! Deliberately absent: what becomes of it (`published`, `metrics`, `commands::info`).

use std::thread;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use crate::figures::Figures;
use crate::memory::Memory;
use crate::statistics::Statistics;
use perilune_net::clock::clock;
use perilune_net::passwords::hashed;

/// Counters, since when, and of which run of a server.
#[derive(Debug)]
pub(crate) struct Measures {
    figures: Figures,
    statistics: Statistics,
    memory: Memory,
    started: Instant,
    started_ms: u64,
    run_id: String,
}

impl Measures {
    /// Of a server with so many event loops, which starts now.
    pub(crate) fn new(loops: usize) -> Measures {
        Measures {
            figures: Figures::default(),
            statistics: Statistics::new(loops),
            memory: Memory::new(),
            started: Instant::now(),
            started_ms: clock() as u64,
            run_id: run_id(),
        }
    }

    /// Clients, keys, traffic.
    #[inline]
    pub(crate) fn figures(&self) -> &Figures {
        &self.figures
    }

    /// What commands have done.
    #[inline]
    pub(crate) fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// What the database takes.
    #[inline]
    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    /// When the server started.
    #[inline]
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// So many milliseconds after 1970.
    pub(crate) fn started_ms(&self) -> u64 {
        self.started_ms
    }

    /// 40 hexadecimal digits that no other server has.
    pub(crate) fn run_id(&self) -> &str {
        &self.run_id
    }
}

/// 40 hexadecimal digits from when and where this is.
fn run_id() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let place = format!("{} {now:?} {:?}", std::process::id(), thread::current().id());
    let mut text = hashed(place.as_bytes());
    text.truncate(40);
    text
}
