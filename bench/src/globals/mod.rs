//! The subject of the comparison: a database of globals, which every embedded peer is made into.
//!
//! A global is a named tree of nodes with subscripts, in which integers come before text. Peers that
//! are ordered maps of bytes become one by [`mapped::Mapped`] (the best that we know) or by
//! [`published::Published`] (the keys and calls of mg-dbx-bdb, with which results were published).
//!
//! Invariants
//! - Every operation is atomic by itself and sees what others committed before it began.
//! - A path is turned into a peer's key inside each operation: this belongs to its cost, for all.
//!
//! Deliberately absent: clocks and processes; see `comparison`.

pub(crate) mod mapped;
pub(crate) mod published;
pub(crate) mod resp;
pub(crate) mod wire;

use std::sync::Arc;

use perilune::{IntoSubscript, KeyMark, Node};

use crate::subject::{Pair, Result};

/// One subscript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Sub {
    Integer(i64),
    /// Shared: a program, too, has the texts of its calls but once.
    Text(Arc<str>),
}

impl Sub {
    /// The subscript that a text stands for: canonical integers are numbers.
    pub(crate) fn read(text: &str) -> Sub {
        match text.parse::<i64>() {
            Ok(number) if number.to_string() == text => Sub::Integer(number),
            _ => Sub::Text(text.into()),
        }
    }
}

impl std::fmt::Display for Sub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Sub::Integer(number) => number.fmt(f),
            Sub::Text(text) => f.write_str(text),
        }
    }
}

/// A node: the name of its global, and its subscripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) name: Arc<str>,
    pub(crate) subs: Vec<Sub>,
}

impl Path {
    /// The node of a number.
    pub(crate) fn number(name: &str, number: u64) -> Path {
        Path { name: name.into(), subs: vec![Sub::Integer(number as i64)] }
    }

    /// Makes the only subscript another number.
    #[inline]
    pub(crate) fn turn(&mut self, number: u64) {
        self.subs[0] = Sub::Integer(number as i64);
    }
}

/// What the benchmarks of a mapping lack.
fn absent<T>() -> Result<T> {
    Err("the benchmarks with which this mapping was published have no such call".into())
}

/// A database of globals, one session. Mappings as published have the first six calls alone.
pub(crate) trait Globals {
    /// Says whether order is wanted from now on, before anything is written. A peer without order by
    /// nature keeps it only then.
    fn plan(&mut self, _ordered: bool) {}

    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()>;

    /// Reads a value; false and an empty one where there is none.
    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool>;

    /// 0 nothing, 1 a value, 10 nodes below, 11 both.
    fn data(&mut self, path: &Path) -> Result<u8>;

    /// The sibling after the node, which need not exist; an empty last subscript is before all.
    fn next(&mut self, path: &Path) -> Result<Option<Sub>>;

    /// The sibling before the node; an empty last subscript is behind all.
    fn previous(&mut self, _path: &Path) -> Result<Option<Sub>> {
        absent()
    }

    /// The next node with a value of the same global, depth first, and its value.
    fn query(&mut self, _path: &Path, _value: &mut Vec<u8>) -> Result<Option<Vec<Sub>>> {
        absent()
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64>;

    /// Deletes the node and what is below it.
    fn kill(&mut self, path: &Path) -> Result<()>;

    /// Copies a node and what is below it over another.
    fn merge(&mut self, _from: &Path, _to: &Path) -> Result<()> {
        absent()
    }

    /// Sets the same value at each in one commit.
    fn set_all(&mut self, _paths: &[Path], _value: &[u8]) -> Result<()> {
        absent()
    }

    /// An integer in the form that suits the peer best.
    fn get_integer(&mut self, _path: &Path) -> Result<Option<i64>> {
        absent()
    }

    fn set_integer(&mut self, _path: &Path, _value: i64) -> Result<()> {
        absent()
    }

    /// A serializable transaction on two integers; `change` may run several times.
    fn update_pair(&mut self, _paths: &[Path; 2], _change: &mut dyn FnMut(Pair) -> Pair) -> Result<()> {
        absent()
    }

    /// Leaves everything on disk that the class promises.
    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Makes Perilune's order-preserving keys: the form that all mapped peers use.
#[derive(Default)]
pub(crate) struct Keys {
    roots: Vec<(Arc<str>, KeyMark, Node)>,
}

impl Keys {
    /// The node of a path, in place until the next.
    ///
    /// # Errors
    /// The path is none that Perilune can have.
    #[inline]
    pub(crate) fn node(&mut self, path: &Path) -> Result<&mut Node> {
        let known = self.roots.iter().position(|(name, _, _)| *name == path.name);
        let index = match known {
            Some(index) => index,
            None => {
                let node = Node::new(&format!("^{}", path.name))?;
                self.roots.push((path.name.clone(), node.mark(), node));
                self.roots.len() - 1
            }
        };
        let (_, mark, node) = &mut self.roots[index];
        node.truncate(*mark);
        for sub in &path.subs {
            match sub {
                Sub::Integer(number) => node.push(*number)?,
                Sub::Text(text) => push(node, &**text)?,
            }
        }
        Ok(node)
    }
}

fn push(node: &mut Node, sub: impl IntoSubscript) -> Result<()> {
    Ok(node.push(sub)?)
}

/// The subscript that Perilune has read.
pub(crate) fn sub(found: &perilune::Subscript<'_>) -> Result<Sub> {
    match (found.as_i64(), found) {
        (Some(number), _) => Ok(Sub::Integer(number)),
        (None, perilune::Subscript::Bytes(bytes)) => Ok(Sub::Text(std::str::from_utf8(bytes)?.into())),
        (None, other) => Ok(Sub::Text(other.to_string().into())),
    }
}
