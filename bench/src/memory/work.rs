//! The work of the process with little memory: phases, each of which says what it did, and checks it.
//!
//! Invariants
//! - A value is 1,000 bytes that follow from its number and its stamp: a reader knows whether it is whole.
//! - A phase begins when it is asked for, so that whoever asks can look at the cgroup's counters before.

use std::io::{self, BufRead, Write};
use std::path::Path;

use perilune::{Batch, Database, Durability, Node, Session, ValueRef};
use serde::{Deserialize, Serialize};

use crate::clock;
use crate::data::Random;
use crate::peers::perilune::{options, FILE};
use crate::subject::Result;

/// Bytes of a value.
pub(super) const VALUE: usize = 1_000;

/// What is done, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Loads all nodes, ascending, in batches.
    Load,
    /// Gets of random nodes.
    Get,
    /// Sets of random nodes, each its own transaction.
    Set,
    /// Half sets, half gets, while one checkpoint after the other is taken.
    Checkpoints,
    /// Deletes every fourth run of a thousand nodes.
    Delete,
    /// Loads what was deleted again.
    Again,
    /// Walks through everything and compares.
    Scan,
}

impl Phase {
    pub(super) const ALL: [Phase; 7] =
        [Phase::Load, Phase::Get, Phase::Set, Phase::Checkpoints, Phase::Delete, Phase::Again, Phase::Scan];

    /// The workload in rows.
    pub(super) fn name(self) -> &'static str {
        match self {
            Phase::Load => "load",
            Phase::Get => "get",
            Phase::Set => "set",
            Phase::Checkpoints => "checkpoints",
            Phase::Delete => "delete",
            Phase::Again => "again",
            Phase::Scan => "scan",
        }
    }
}

/// What a phase did.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) nanoseconds: u64,
    pub(super) cpu: u64,
    pub(super) operations: u64,
    /// Bytes of the database file, and of those that hold nothing.
    pub(super) file: u64,
    pub(super) free: u64,
}

/// Nodes that are deleted at a time.
const RUN: u64 = 1_000;
const BATCH_BYTES: usize = 1 << 20;

/// Serves phases from standard input until there are no more; then closes the database.
///
/// # Errors
/// The database's own, or a wrong result.
pub(crate) fn serve(directory: &Path, nodes: u64, seconds: u64, level: Durability) -> Result<()> {
    let mut lines = io::stdin().lock().lines();
    // NB: nothing is opened before the first line: we may not be in the cgroup yet.
    let mut work: Option<Work> = None;
    while let Some(line) = lines.next().transpose()? {
        let phase: Phase = serde_json::from_str(&line)?;
        if work.is_none() {
            let database = options().durability(level).open(directory.join(FILE))?;
            work = Some(Work::new(database, nodes, seconds)?);
        }
        let Some(work) = &mut work else { continue };
        let done = work.run(phase)?;
        let mut output = io::stdout().lock();
        serde_json::to_writer(&mut output, &done)?;
        output.write_all(b"\n")?;
        output.flush()?;
    }
    Ok(())
}

struct Work {
    session: Session,
    database: Database,
    nodes: u64,
    seconds: u64,
    random: Random,
    node: Node,
    value: Vec<u8>,
}

impl Work {
    fn new(database: Database, nodes: u64, seconds: u64) -> Result<Work> {
        let session = database.session()?;
        let value = vec![0; VALUE];
        Ok(Work {
            session,
            database,
            nodes,
            seconds,
            random: Random::new(1),
            node: Node::new("^data")?,
            value,
        })
    }

    fn run(&mut self, phase: Phase) -> Result<Done> {
        let (begun, cpu) = (clock::now(), clock::cpu());
        let end = begun + self.seconds * 1_000_000_000;
        let operations = match phase {
            Phase::Load => self.load(|_| true)?,
            Phase::Get => self.until(end, |work| work.get())?,
            Phase::Set => self.until(end, |work| work.set())?,
            Phase::Checkpoints => self.checkpoints(end)?,
            Phase::Delete => self.delete()?,
            Phase::Again => self.load(is_deleted)?,
            Phase::Scan => self.scan()?,
        };
        let (nanoseconds, cpu) = (clock::now() - begun, clock::cpu() - cpu);
        let figures = self.database.stat()?;
        let figure = |name: &str| figures.iter().find(|figure| figure.name == name).map_or(0, |f| f.value);
        Ok(Done { nanoseconds, cpu, operations, file: figure("file_bytes"), free: figure("free_bytes") })
    }

    fn until(&mut self, end: u64, mut one: impl FnMut(&mut Work) -> Result<()>) -> Result<u64> {
        let mut count = 0;
        while clock::now() < end {
            one(self)?;
            count += 1;
        }
        Ok(count)
    }

    fn at(&mut self, number: u64) -> Result<()> {
        self.node = Node::new("^data")?;
        Ok(self.node.push(number as i64)?)
    }

    fn load(&mut self, wanted: impl Fn(u64) -> bool) -> Result<u64> {
        let mut batch = Batch::new();
        let mut count = 0;
        for number in (0..self.nodes).filter(|number| wanted(*number)) {
            self.at(number)?;
            fill(&mut self.value, number, 1);
            batch.push(&self.node, &self.value[..])?;
            count += 1;
            if batch.bytes() >= BATCH_BYTES {
                self.session.set_each(&batch)?;
                batch.clear();
            }
        }
        self.session.set_each(&batch)?;
        Ok(count)
    }

    fn get(&mut self) -> Result<()> {
        let number = self.random.below(self.nodes);
        self.at(number)?;
        match self.session.get_ref(&self.node)? {
            Some(ValueRef::String(value)) if is_whole(value, number) => Ok(()),
            _ => Err(format!("node {number} is wrong").into()),
        }
    }

    fn set(&mut self) -> Result<()> {
        let number = self.random.below(self.nodes);
        self.at(number)?;
        fill(&mut self.value, number, 2);
        Ok(self.session.set(&self.node, &self.value[..])?)
    }

    /// Sets and gets, while another thread takes checkpoints.
    fn checkpoints(&mut self, end: u64) -> Result<u64> {
        let database = self.database.clone();
        let keeper = std::thread::spawn(move || -> perilune::Result<u64> {
            let mut taken = 0;
            while clock::now() < end {
                taken += u64::from(database.checkpoint()?);
            }
            Ok(taken)
        });
        let mut set = false;
        let count = self.until(end, |work| {
            set = !set;
            if set {
                work.set()
            } else {
                work.get()
            }
        })?;
        match keeper.join().map_err(|_| "the thread that takes checkpoints panicked")?? {
            0 => Err("no checkpoint was taken".into()),
            _ => Ok(count),
        }
    }

    fn delete(&mut self) -> Result<u64> {
        let mut count = 0;
        for number in (0..self.nodes).filter(|number| is_deleted(*number)) {
            self.at(number)?;
            self.session.delete_value(&self.node)?;
            count += 1;
        }
        // What was deleted is free when no checkpoint needs it any more.
        self.database.checkpoint()?;
        Ok(count)
    }

    fn scan(&mut self) -> Result<u64> {
        let mut cursor = perilune::Cursor::children(&Node::new("^data")?);
        let mut count = 0;
        while cursor.next(&mut self.session)? {
            match (cursor.integer(), cursor.value()?) {
                (Some(number), Some(ValueRef::String(value)))
                    if number as u64 == count && is_whole(value, count) => {}
                _ => return Err(format!("node {count} is wrong").into()),
            }
            count += 1;
        }
        if count == self.nodes {
            Ok(count)
        } else {
            Err(format!("{count} nodes are there, not {}", self.nodes).into())
        }
    }
}

/// Whether the phase of deletes takes this node.
fn is_deleted(number: u64) -> bool {
    number / RUN % 4 == 3
}

fn fill(value: &mut [u8], number: u64, stamp: u64) {
    let mut word = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ stamp;
    for place in value.chunks_mut(8) {
        place.copy_from_slice(&word.to_le_bytes()[..place.len()]);
        word = word.wrapping_add(0xA076_1D64_78BD_642F);
    }
}

/// Is this what some stamp wrote at `number`?
fn is_whole(value: &[u8], number: u64) -> bool {
    let mut wanted = [0; VALUE];
    (1..=2).any(|stamp| {
        fill(&mut wanted, number, stamp);
        value == wanted
    })
}
