//! The cells of the comparison that measure no rate: bytes for a node in memory (D4) or on disk (other classes),
//! and the time to open.

use crate::comparison::cells::{same, Amount, Cell, Figure};
use crate::comparison::process::{Measured, Play};
use crate::peers::subjects::Side;
use crate::scratch::Scratch;
use crate::subject::{Class, Result};

/// Figures of a round, and its directory, which goes when the caller is done with it.
type Played = (Vec<Figure>, Option<Scratch>);

fn fill(play: &mut Play, nodes: u64) -> Result<()> {
    same("nodes were set", play.number(&format!("bset 1 {nodes} 1000"))?, nodes)?;
    same("nodes are there", play.number(&format!("get 1 {nodes}"))?, nodes)
}

pub(crate) fn space(play: Play, cell: &Cell, amount: &Amount) -> Result<Played> {
    let (mut play, nodes) = (play, amount.nodes);
    let figure = |workload: &str, bytes: u64| Figure {
        workload: workload.to_owned(),
        keys: nodes,
        unit: "B/node",
        value: bytes as f64 / nodes as f64,
        measured: Measured { operations: nodes, right: nodes, ..Measured::default() },
    };
    let empty = play.memory()?;
    fill(&mut play, nodes)?;
    let memory = play.memory()?.saturating_sub(empty);
    play.ask("close")?;
    let scratch = play.finish()?;
    let mut figures = Vec::new();
    if cell.class == Class::D4 {
        figures.push(figure("space-memory", memory));
    } else if let Some(scratch) = &scratch {
        figures.push(figure("space-disk", disk_bytes(scratch.path())?));
    }
    Ok((figures, scratch))
}

/// Bytes that the files of a directory take, with those below.
fn disk_bytes(directory: &std::path::Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt;
    let mut sum = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let facts = entry.metadata()?;
        sum += if facts.is_dir() { disk_bytes(&entry.path())? } else { facts.blocks() * 512 };
    }
    Ok(sum)
}

/// The time until a player has opened the database and read a value: after it was closed, and after its processes
/// were killed.
pub(crate) fn open(side: &Side, play: Play, amount: &Amount) -> Result<Played> {
    let (mut play, nodes) = (play, amount.nodes);
    let site = play.site.clone();
    fill(&mut play, nodes)?;
    play.ask("close")?;
    let mut scratch = play.finish()?;
    let mut figures = Vec::new();
    let mut timed = |workload: &str, scratch: Option<Scratch>| -> Result<Play> {
        let begun = crate::clock::now();
        let mut play = Play::resume(side, site.clone(), scratch, amount.limit())?;
        same("the value is there", play.number("get 1 1")?, 1)?;
        let seconds = (crate::clock::now() - begun) as f64 / 1e9;
        let measured = Measured { wall_seconds: seconds, operations: 1, right: 1, ..Measured::default() };
        figures.push(Figure {
            workload: workload.to_owned(),
            keys: nodes,
            unit: "ms",
            value: seconds * 1e3,
            measured,
        });
        Ok(play)
    };
    if side.class != Class::D4 {
        let mut play = timed("open", scratch)?;
        play.ask("rset 10000 1 10000")?;
        scratch = play.kill()?;
        scratch = timed("recover", scratch)?.finish()?;
    } else if side.serve.is_none() {
        scratch = timed("open", scratch)?.finish()?;
    }
    Ok((figures, scratch))
}
