//! Sorted data loaded in batches, beside single sets in the same order, at the levels that do not wait for
//! the disk.

use perilune::{Batch, Durability, Node};

use crate::clock;
use crate::data::value;
use crate::peers::perilune::{options, FILE};
use crate::row::Row;
use crate::subject::{Class, Result};

use super::Run;

/// The workloads of these rows: by single sets, and by batches.
pub(super) const SINGLE: &str = "load-single";
pub(super) const BATCH: &str = "load-batch";

/// Nodes in a batch: as many as `perilune load` sets at a time.
const BATCH_NODES: usize = 16_384;

/// Loads fresh databases, sides alternating.
pub(super) fn run(run: &mut Run<'_>) -> Result<()> {
    let keys = run.quick(100_000, 2_000_000);
    for round in 0..run.wish.rounds {
        for (class, level) in [(Class::D4, Durability::None), (Class::D3, Durability::Periodic)] {
            for (name, in_batches) in [(SINGLE, false), (BATCH, true)] {
                run.announce(&format!("{name} {}", class.name()));
                let row = load(run, keys, class, level, in_batches)?;
                run.push(Row { workload: name, round, ..row });
            }
        }
    }
    Ok(())
}

fn load(run: &mut Run<'_>, keys: u64, class: Class, level: Durability, in_batches: bool) -> Result<Row> {
    let directory = run.directory("load")?;
    let database = options().durability(level).open(directory.path().join(FILE))?;
    let mut session = database.session()?;
    let mut node = Node::new("^data")?;
    let mark = node.mark();
    let mut batch = Batch::new();
    let (begun, cpu) = (clock::now(), clock::cpu());
    for number in 0..keys {
        node.truncate(mark);
        node.push(number as i64)?;
        if !in_batches {
            session.set(&node, value(number, 1))?;
            continue;
        }
        batch.push(&node, value(number, 1))?;
        if batch.len() == BATCH_NODES || number + 1 == keys {
            session.set_each(&batch)?;
            batch.clear();
        }
    }
    let (wall, cpu) = ((clock::now() - begun) as f64, (clock::cpu() - cpu) as f64);
    node.truncate(mark);
    let found = session.count_children(&node)?;
    if found != keys {
        return Err(format!("{found} nodes were loaded, not {keys}").into());
    }
    let peer = crate::peers::ours(class);
    let row = Row::figure(SINGLE, &peer, keys, 0, "ns/node", wall / keys as f64);
    Ok(Row { wall_seconds: wall / 1e9, cpu_seconds: cpu / 1e9, operations: keys, ..row })
}
