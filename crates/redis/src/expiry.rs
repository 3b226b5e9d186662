//! The thread that removes expired keys, and what is left of dead servers.
//!
//! An expired key counts as absent from that moment on, whoever asks. Its nodes are still there, and somebody has to take
//! them away. All servers of a database share one index of expiries, so one thread of all servers does: whoever holds a
//! lock in the tree.
//!
//! Example: `SET k v PX 10` and then nothing. Within a second the thread finds the entry of `k` at the front of the index,
//! removes key and entry in one transaction, and tells the event `expired`.
//!
//! Invariant: a key that was given a new life meanwhile is looked at again inside that transaction, and stays.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use perilune::{node, LockMode, Serving, Session};

use crate::effects::Effects;
use crate::limits::{PEERS_SWEPT, SWEPT_AT_ONCE};
use crate::server::Server;
use crate::tracking::broadcast;
use crate::{commit, dispatch, keyspace};
use perilune_net::clock::clock;

/// Removes expired keys, as long as this process is the one that does: who holds the lock. When it dies
/// the lock is free, and another server of the database gets it.
pub(crate) fn run(server: &Server, mut session: Session) {
    let Ok(lock) = node!("^redis", "expiry") else { return };
    let (mut held, mut looked, mut effects) = (false, None::<Instant>, Effects::default());
    session.free_up(true);
    while !server.is_stopping() {
        if !held {
            held = session.lock(&lock, LockMode::Exclusive, Some(Duration::ZERO)).unwrap_or(false);
        }
        effects.begin(server);
        let sweeps = held && server.expires().load(Ordering::Relaxed);
        let begun = Instant::now();
        let swept = if sweeps { sweep(&mut session, &mut effects, clock()).unwrap_or(0) } else { 0 };
        server.note_delay("expire-cycle", begun.elapsed());
        if swept > 0 && server.commons().broadcast().was_turned_on(effects.broadcast) {
            let _ = broadcast::send_all(&mut session, &mut effects);
        }
        if held && looked.is_none_or(|looked| looked.elapsed() > PEERS_SWEPT) {
            // What fails is tried again a second later.
            let _ = dispatch::sweep(&mut session, &mut effects, server.number());
            looked = Some(Instant::now());
        }
        effects.post_all(server.crew());
        server.measures().figures().swept.fetch_add(swept as u64, Ordering::Relaxed);
        if swept < SWEPT_AT_ONCE {
            thread::park_timeout(Duration::from_millis(100));
        }
    }
}

/// Removes keys that have expired, a few in one transaction; how many entries of the index it took. Fewer
/// than [`SWEPT_AT_ONCE`] mean that none is left.
fn sweep(session: &mut Session, effects: &mut Effects, now: i64) -> perilune::Result<usize> {
    let before = effects.mark();
    session.transaction(|session| {
        effects.rewind(before);
        let swept = keyspace::sweep(session, effects, now)?;
        commit::finish(effects, session)?;
        Ok(swept)
    })
}
