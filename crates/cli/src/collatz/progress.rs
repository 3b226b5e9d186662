//! A bar at a terminal: how many blocks have been taken.

use std::io::{self, IsTerminal};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use perilune::{node, Database};

use crate::collatz::crew::Plan;

/// How often the bar is drawn: it is for the eye, and nothing waits for it.
const REDRAWN: Duration = Duration::from_millis(200);

/// The bar of one run, drawn by a thread of its own.
pub(crate) struct Progress {
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Starts it if somebody watches.
    pub(crate) fn start(plan: &Plan) -> Progress {
        if !io::stderr().is_terminal() {
            return Progress { drawing: None };
        }
        let (end, ended) = mpsc::channel();
        let (db, blocks, procs) = (plan.db.clone(), plan.n.div_ceil(plan.block), plan.procs);
        let thread = thread::spawn(move || {
            let bar = ProgressBar::new(blocks);
            if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} blocks {elapsed}") {
                bar.set_style(style);
            }
            bar.set_message(format!("{procs} processes"));
            let mut taken = 0;
            while ended.recv_timeout(REDRAWN) == Err(RecvTimeoutError::Timeout) {
                // A bar that cannot be drawn is no reason to fail.
                taken = count(&db, taken).unwrap_or(taken);
                bar.set_position(taken);
            }
            bar.finish_and_clear();
        });
        Progress { drawing: Some((end, thread)) }
    }

    /// Takes the bar away.
    pub(crate) fn end(self) {
        if let Some((end, thread)) = self.drawing {
            drop(end);
            let _ = thread.join();
        }
    }
}

/// Blocks are taken in order: goes on from `taken` to the first that is not.
fn count(db: &Path, mut taken: u64) -> perilune::Result<u64> {
    let mut session = Database::options().create(false).open(db)?.session()?;
    while session.get(&node!("^blocks", taken + 1, "taken")?)?.is_some() {
        taken += 1;
    }
    Ok(taken)
}
