//! Rows that go, and what is kept of how rows are used.
//!
//! Invariant: nothing in an index, and nothing that is kept of its use, is left of a row that goes.

use perilune::key::KeyBuf;
use perilune::{NodeRef, Session};
use perilune_sqlite::Conflict;

use super::{mismatch, Fresh, Writer};
use crate::error::Result;
use crate::ghost::{is_ghost, miss, GHOST};
use crate::row::{index_key, root_key, row_key, Row};
use crate::schema::Key;
use crate::used;
use crate::value::Value;

impl Writer<'_> {
    /// Removes a row that is there, and its entries.
    pub(super) fn remove(&self, session: &mut Session, suffix: &[u8], old: &Row) -> Result<()> {
        self.remove_entries(session, suffix, old)?;
        let (key, _) = self.key_of(suffix)?;
        self.remove_node(session, &key)?;
        self.tell_children(session, old, None)
    }

    /// Removes what a row has in indexes, and what is kept of its use.
    fn remove_entries(&self, session: &mut Session, suffix: &[u8], old: &Row) -> Result<()> {
        for index in self.table.indexes.iter().filter(|index| index.holds(old)) {
            let mut entry = root_key(&index.root)?;
            index_key(index, old, suffix, &mut entry)?;
            session.delete_value(NodeRef::from_encoded(entry.as_bytes(), false))?;
        }
        if !self.table.usage.is_empty() {
            used::forget(session, self.table, suffix)?;
            self.stage.notes.borrow_mut().forget(self.key_of(suffix)?.0.as_bytes());
        }
        Ok(())
    }

    /// Evicts the row with these values of its key; false: it is not there.
    pub(crate) fn evict(&self, session: &mut Session, values: &[Value]) -> Result<bool> {
        let mut named = vec![Value::Null; self.table.columns.len()];
        for (column, value) in self.table.key_columns().iter().zip(values) {
            named[*column] = self.table.columns[*column].store(value.clone());
        }
        let rowid = match (&self.table.key, self.table.key_columns()) {
            (Key::Rowid { .. }, [column]) => match named[*column] {
                Value::Integer(rowid) => rowid,
                _ => return Err(mismatch()),
            },
            _ => 0,
        };
        let (mut key, root) = self.key_of(&[])?;
        row_key(self.table, rowid, &named, &mut key)?;
        let mut old = Row::new();
        if !self.read(session, key.as_bytes(), root, &mut old)? {
            return Ok(false);
        }
        self.remove_entries(session, &key.as_bytes()[root..], &old)?;
        self.remove_node(session, &key)?;
        session.set(NodeRef::from_encoded(key.as_bytes(), false), GHOST)?;
        Ok(true)
    }

    /// Fails where a row is to get the key of one that was evicted, unless it may replace that.
    pub(super) fn refuse_evicted(&self, session: &mut Session, fresh: &Fresh) -> Result<()> {
        let key = fresh.key.as_bytes();
        let may = !self.table.evicts || self.resolution(self.table.key_resolution) == Conflict::Replace;
        if may || !is_ghost(self.table, session.get_ref(NodeRef::from_encoded(key, false))?) {
            return Ok(());
        }
        Err(miss(key))
    }

    /// Stamps a row that is about to be written; one may be there, under this key or another one.
    pub(super) fn stamp(
        &self,
        session: &mut Session,
        is_there: bool,
        from: Option<&[u8]>,
        fresh: &mut Fresh,
    ) -> Result<()> {
        if self.table.usage.is_empty() {
            return Ok(());
        }
        let Fresh { row, key, root, .. } = fresh;
        let suffix = &key.as_bytes()[*root..];
        let old = is_there.then_some(from.unwrap_or(suffix));
        let more = match old {
            Some(old) => self.stage.notes.borrow_mut().forget(self.key_of(old)?.0.as_bytes()),
            None => 0,
        };
        let now = used::Now { stamp: self.stage.now(), more };
        used::stamp(session, self.table, now, old, suffix, row)
    }

    /// Removes a row's node, with what lies below it.
    pub(super) fn remove_node(&self, session: &mut Session, key: &KeyBuf) -> Result<()> {
        let node = NodeRef::from_encoded(key.as_bytes(), false);
        if session.data(node)?.has_descendants() {
            session.delete_tree(node)?;
        } else {
            session.delete_value(node)?;
        }
        Ok(())
    }
}
