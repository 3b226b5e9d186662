//! The commit hook: a function of a session that sees each transaction's writes before they are
//! validated and may read and add more, for indexes, triggers and logs.
//!
//! It sees what goes to the database, not local trees. While one is set, each single write is a
//! transaction of one; while none is set, it costs nothing.

use perilune_key::{Value, ValueRef};
use perilune_store::{Error as StoreError, Write, Writes};

use crate::{Error, IntoValue, NodeRef, Result, Session};

/// One write of a transaction about to commit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum NodeWrite<'a> {
    /// The node and all its descendants are deleted, before the other writes.
    DeleteTree(NodeRef<'a>),
    /// The node gets this value.
    Set(NodeRef<'a>, ValueRef<'a>),
    /// The node's value is deleted.
    DeleteValue(NodeRef<'a>),
}

/// The writes of a transaction about to commit, and a place to add more.
pub struct CommitWrites<'a> {
    writes: &'a mut dyn Writes,
    buffer: Vec<u8>,
}

impl CommitWrites<'_> {
    /// Calls `visit` for each write: deletions of trees first, then the others by node.
    ///
    /// # Errors
    /// A damaged value; then the visit ends there.
    pub fn for_each(&self, mut visit: impl FnMut(NodeWrite<'_>)) -> Result<()> {
        let mut outcome = Ok(());
        self.writes.for_each(&mut |write| {
            if outcome.is_err() {
                return;
            }
            let node = |key| NodeRef::from_encoded(key, false);
            match write {
                Write::RemovePrefix(key) => visit(NodeWrite::DeleteTree(node(key))),
                Write::Remove(key) => visit(NodeWrite::DeleteValue(node(key))),
                Write::Set(key, value) => match ValueRef::decode(value) {
                    Ok(value) => visit(NodeWrite::Set(node(key), value)),
                    Err(error) => outcome = Err(error.into()),
                },
            }
        });
        outcome
    }

    /// Reads `node` as the transaction sees it.
    ///
    /// # Errors
    /// `LocalNode`; else as [`Session::get`].
    pub fn get<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Value>> {
        let key = of_database(node.into())?;
        if !self.writes.get(key, &mut self.buffer)? {
            return Ok(None);
        }
        Ok(Some(Value::decode(&self.buffer)?))
    }

    /// Adds a write of `value` at `node`.
    ///
    /// # Errors
    /// `LocalNode`, `Number`.
    pub fn set<'n>(&mut self, node: impl Into<NodeRef<'n>>, value: impl IntoValue) -> Result<()> {
        let key = of_database(node.into())?;
        self.buffer.clear();
        value.encode_to(&mut self.buffer)?;
        self.writes.set(key, &self.buffer);
        Ok(())
    }

    /// Adds the deletion of the value at `node`.
    ///
    /// # Errors
    /// `LocalNode`.
    pub fn delete_value<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<()> {
        self.writes.remove(of_database(node.into())?);
        Ok(())
    }
}

fn of_database(node: NodeRef<'_>) -> Result<&[u8]> {
    if node.is_local() {
        return Err(Error::LocalNode { operation: "written by a commit hook" });
    }
    Ok(node.encoded())
}

impl Session {
    /// Sets the function that sees each transaction of this session before it is validated. Its
    /// error rolls the transaction back and is the commit's.
    pub fn set_commit_hook(
        &mut self,
        mut hook: impl FnMut(&mut CommitWrites<'_>) -> Result<()> + Send + 'static,
    ) {
        let hook = move |writes: &mut dyn Writes| {
            hook(&mut CommitWrites { writes, buffer: Vec::new() }).map_err(to_store)
        };
        perilune_store::Session::set_commit_hook(&mut self.trees.database, Some(Box::new(hook)));
    }

    /// Takes the commit hook away.
    pub fn clear_commit_hook(&mut self) {
        perilune_store::Session::set_commit_hook(&mut self.trees.database, None);
    }
}

/// The hook's error as the store hands it on; others than its own keep their text.
fn to_store(error: Error) -> StoreError {
    match error {
        Error::Conflict => StoreError::Conflict,
        Error::Restart => StoreError::Restart,
        Error::Store(error) => error,
        other => StoreError::Refused(other.to_string()),
    }
}
