//! What the engine suite asks of a database under test: peers, their databases and sessions.
//!
//! Invariants
//! - Every operation of a session is atomic by itself and sees what any process committed before it began, except
//!   in [`Session::get_snapshot`], where a peer may answer from an older state if that is faster.
//! - Keys are pairs of a tree and an integer; each peer stores them in the form that suits it best.
//! - Loops over a batch are methods of the trait, so that each peer's own operation is compiled into its loop and
//!   no side pays for dynamic dispatch at every operation.
//!
//! Deliberately absent: clocks, processes, checks of results. They are the same for all sides.

use std::path::Path;

/// What a peer answers; its own words reach the user.
pub(crate) type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// What a crash of the machine may lose. Classes are never compared with each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Class {
    /// Nothing: every operation is durable before it returns.
    D1,
    /// Nothing, of many operations in one commit.
    D2,
    /// Moments: up to a second of the latest operations, and what is left is of one moment.
    D3,
    /// Anything since the last flush, whenever that was. What the death of the process alone loses
    /// differs between peers; their settings say it.
    D4,
}

impl Class {
    /// The name in rows and tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Class::D1 => "D1",
            Class::D2 => "D2",
            Class::D3 => "D3",
            Class::D4 => "D4",
        }
    }
}

/// What a peer can do at all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Abilities {
    /// Several processes have the database open at once.
    pub(crate) processes: bool,
    /// Several threads of a process have sessions at once.
    pub(crate) threads: bool,
    /// Named locks for users.
    pub(crate) locks: bool,
}

/// One side of a comparison: a database with its settings for one class.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    /// The name in rows and tables.
    pub(crate) name: &'static str,
    pub(crate) class: Class,
    /// The settings, for the report.
    pub(crate) settings: &'static str,
    pub(crate) abilities: Abilities,
    /// The version in use; an error if it is not installed, which says what to do.
    pub(crate) version: fn() -> Result<String>,
    /// Opens the database in a directory, creating it when it is missing, for so many processes.
    pub(crate) open: fn(&Path, usize) -> Result<Box<dyn Database>>,
    /// Makes the files in a directory, which nobody has open, as small as the peer can.
    pub(crate) compact: fn(&Path) -> Result<()>,
}

/// An open database of a peer.
pub(crate) trait Database: Sync {
    /// Opens a session, one thread's way in.
    fn session(&self) -> Result<Box<dyn Session + '_>>;
}

/// The trees that workloads use, all in one database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) enum Tree {
    /// `count` keys from 0 on, each with a value of `crate::data`.
    Data,
    /// Counters.
    Counter,
    /// Accounts of transfers.
    Bank,
    /// 3n+1: steps from a number to 1.
    Step,
    /// 3n+1: the longest path and the highest number.
    Record,
    /// 3n+1: the boundaries of blocks.
    Blocks,
    /// 3n+1: how often a block was asked for.
    Taken,
}

impl Tree {
    /// Every tree.
    pub(crate) const ALL: [Tree; 7] =
        [Tree::Data, Tree::Counter, Tree::Bank, Tree::Step, Tree::Record, Tree::Blocks, Tree::Taken];

    /// Tree and number as one positive integer, for peers that keep all trees in one table.
    pub(crate) fn key(self, number: u64) -> u64 {
        (self as u64) << 56 | number
    }

    /// The keys of the tree: from the first, up to and without the second.
    pub(crate) fn bounds(self) -> (u64, u64) {
        (self.key(0), (self as u64 + 1) << 56)
    }

    /// The number in a key.
    pub(crate) fn number(key: u64) -> u64 {
        key & ((1 << 56) - 1)
    }
}

/// What a walk through a tree came by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Passage {
    /// How many entries.
    pub(crate) entries: u64,
    /// Sum of their numbers, wrapping.
    pub(crate) numbers: u64,
    /// Sum of [`crate::data::essence`] of their values, wrapping; 0 where values were not read.
    pub(crate) values: u64,
}

/// Two new values, each written if it is there.
pub(crate) type Pair = [Option<i64>; 2];

/// One thread's way into a database.
pub(crate) trait Session {
    /// The value, as of now.
    fn get(&mut self, tree: Tree, number: u64) -> Result<Option<i64>>;

    /// Sets the value: a transaction of one set.
    fn set(&mut self, tree: Tree, number: u64, value: i64) -> Result<()>;

    /// Adds to the value, which counts as 0 where there is none, and answers the sum.
    fn increment(&mut self, tree: Tree, number: u64, by: i64) -> Result<i64>;

    /// A serializable transaction: reads two values and writes those that `change` answers. `change`
    /// may run several times.
    fn update_pair(
        &mut self,
        tree: Tree,
        numbers: [u64; 2],
        change: &mut dyn FnMut(Pair) -> Pair,
    ) -> Result<()>;

    /// Reads all of `numbers` in one read transaction; the sum as in [`Session::get_each`].
    fn get_snapshot(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64>;

    /// Walks the first `limit` entries of the tree, a search by the number before at each step.
    fn walk(&mut self, tree: Tree, limit: u64) -> Result<Passage>;

    /// Walks the first `limit` entries of the tree by the peer's cursor, with values.
    fn scan(&mut self, tree: Tree, limit: u64) -> Result<Passage>;

    /// Loads pairs, which come in ascending order as a rule, as fast as the peer can.
    fn fill(&mut self, tree: Tree, pairs: &mut dyn Iterator<Item = (u64, i64)>) -> Result<()>;

    /// Takes and releases the user's lock with this number.
    fn lock_unlock(&mut self, _number: u64) -> Result<()> {
        Err("this peer has no locks for users".into())
    }

    /// Gets each; the sum of [`crate::data::essence`] of the values, wrapping.
    fn get_each(&mut self, tree: Tree, numbers: &[u64]) -> Result<u64> {
        let mut sum = 0u64;
        for number in numbers {
            let value = self.get(tree, *number)?.ok_or_else(|| missing(*number))?;
            sum = sum.wrapping_add(crate::data::essence(value));
        }
        Ok(sum)
    }

    /// Sets each to its value of `stamp`.
    fn set_each(&mut self, tree: Tree, numbers: &[u64], stamp: u64) -> Result<()> {
        for number in numbers {
            self.set(tree, *number, crate::data::value(*number, stamp))?;
        }
        Ok(())
    }

    /// Adds 1, `count` times.
    fn increment_each(&mut self, tree: Tree, number: u64, count: u64) -> Result<()> {
        for _ in 0..count {
            self.increment(tree, number, 1)?;
        }
        Ok(())
    }

    /// Moves 1 from the first to the second account of each pair.
    fn transfer_each(&mut self, pairs: &[[u64; 2]]) -> Result<()> {
        for pair in pairs {
            let mut complete = true;
            self.update_pair(Tree::Bank, *pair, &mut |balances| match balances {
                [Some(from), Some(to)] => [Some(from - 1), Some(to + 1)],
                _ => {
                    complete = false;
                    [None, None]
                }
            })?;
            if !complete {
                return Err(missing(pair[0]));
            }
        }
        Ok(())
    }

    /// Takes and releases a lock, `count` times.
    fn lock_each(&mut self, number: u64, count: u64) -> Result<()> {
        for _ in 0..count {
            self.lock_unlock(number)?;
        }
        Ok(())
    }
}

/// A value that must be there is not.
pub(crate) fn missing(number: u64) -> Box<dyn std::error::Error + Send + Sync> {
    format!("the value of {number} is missing").into()
}
