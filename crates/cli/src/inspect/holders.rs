//! `locks` and `processes`: who uses a database, and who waits for whom.

use std::path::Path;

use perilune::LockMode;
use serde_json::json;

use super::look_at;
use super::table::{show, spoken, Table};
use crate::failure::Result;

/// Shows locks that are held, and those waited for.
pub(crate) fn locks(path: Option<&Path>, as_json: bool) -> Result<()> {
    let locks = look_at(path)?.locks()?;
    let mode = |mode| if mode == LockMode::Exclusive { "exclusive" } else { "shared" };
    if as_json {
        let rows = locks.iter().map(|lock| {
            json!({"node": lock.node.to_string(), "mode": mode(lock.mode), "held": lock.count > 0,
                   "count": lock.count, "pid": lock.pid, "owner": lock.owner.0,
                   "seconds": lock.since.as_secs_f64()})
        });
        return show(&format!("{}\n", json!({"locks": rows.collect::<Vec<_>>()}))).map(drop);
    }
    if locks.is_empty() {
        return show("nobody holds a lock or waits for one\n").map(drop);
    }
    let mut table = Table::new(&["node<", "state<", "mode<", "count", "pid", "owner", "for"]);
    for lock in &locks {
        let (state, count) =
            if lock.count > 0 { ("held", lock.count.to_string()) } else { ("waits", String::new()) };
        table.row(vec![
            lock.node.to_string(),
            state.to_owned(),
            mode(lock.mode).to_owned(),
            count,
            lock.pid.to_string(),
            lock.owner.0.to_string(),
            spoken(lock.since),
        ]);
    }
    show(&table.text()).map(drop)
}

/// Shows the processes that have a database open.
pub(crate) fn processes(path: Option<&Path>, as_json: bool) -> Result<()> {
    let processes = look_at(path)?.processes()?;
    if as_json {
        let rows = processes.iter().map(|process| {
            json!({"slot": process.slot, "pid": process.pid, "alive": process.alive, "this": process.is_this,
                   "stopped": process.stopped, "pages_held": process.pages_held,
                   "sessions": process.sessions, "version": process.version,
                   "seconds": process.since.as_secs_f64()})
        });
        return show(&format!("{}\n", json!({"processes": rows.collect::<Vec<_>>()}))).map(drop);
    }
    let mut table = Table::new(&["slot", "pid", "sessions", "version", "open for", "note<"]);
    for process in &processes {
        let note = match (process.is_this, process.alive, process.stopped, process.pages_held) {
            (true, ..) => "this command",
            (_, false, ..) => "dead, being repaired",
            (.., true, 0) => "stopped",
            (.., true, _) => "stopped in a change: others wait for it",
            _ => "",
        };
        table.row(vec![
            process.slot.to_string(),
            process.pid.to_string(),
            process.sessions.to_string(),
            process.version.clone(),
            spoken(process.since),
            note.to_owned(),
        ]);
    }
    show(&table.text()).map(drop)
}
