//! Which graph of which database a command means, and how it is opened.
//!
//! Example: of `graph stat air.db ^air` the place is the node `^air` in `air.db`; of `graph stat ^air`, in the default database.

use std::path::{Path, PathBuf};

use perilune::{Database, ErrorCode, Node};
use perilune_graph::{Error, Graph, View};

use crate::failure::{wrong_use, Result};
use crate::{inspect, which_database};

/// A graph's node in a database.
pub(crate) struct Place {
    /// None: the default one.
    pub(crate) path: Option<PathBuf>,
    pub(crate) node: Node,
}

impl Place {
    /// The place that words name, of which the last is the node.
    pub(crate) fn of(words: &[PathBuf], flag: Option<&Path>) -> Result<Place> {
        let is_node = |word: &Path| word.to_str().is_some_and(|text| text.starts_with('^'));
        let (path, rest) = match words {
            [only] if is_node(only) => (flag, words),
            _ => which_database::first(words, flag, 1)?,
        };
        let [node] = rest else {
            return Err(wrong_use("name the graph's node behind the database, as ^air"));
        };
        if !is_node(node) {
            return Err(wrong_use(format!("{}: a graph's node begins with ^, as ^air", node.display())));
        }
        let text = node.to_string_lossy();
        let node = Node::parse(&text).map_err(|error| wrong_use(format!("{text}: {error}")))?;
        Ok(Place { path: path.map(Path::to_owned), node })
    }

    /// Opens the database, or makes it.
    pub(crate) fn open_to_write(&self) -> Result<Database> {
        Ok(match &self.path {
            Some(path) => Database::open(path)?,
            None => Database::open_default()?,
        })
    }

    /// Opens the database, which has to be there.
    fn open_to_read(&self) -> Result<Database> {
        match &self.path {
            Some(path) if Database::is_address(path) => Ok(Database::open(path)?),
            path => Ok(inspect::open_to_read(&which_database::existing(path.as_deref())?)?),
        }
    }

    /// Shows `body` the graph as it is at one moment. Where no snapshot can be had (a database opened for reading only) that is a
    /// transaction, and `body` may be called again after a conflict.
    pub(crate) fn read<R>(&self, mut body: impl FnMut(&mut View<'_>) -> Result<R>) -> Result<R> {
        let database = self.open_to_read()?;
        let mut session = database.session()?;
        let graph = Graph::open(&mut session, &self.node)?;
        match graph.snapshot(&database) {
            Ok(mut view) => body(&mut view),
            Err(Error::Database(error)) if error.code() == ErrorCode::ReadOnly => {
                // What the body answers is kept apart from what the transaction does.
                graph.read(&mut session, |view| Ok(body(view)))?
            }
            Err(error) => Err(error.into()),
        }
    }
}
