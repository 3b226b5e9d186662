//! Indexes: vertices by label, and by a property of those with a label.
//!
//! Labels are always indexed. A property is for the vertices of one label, once asked for: `graph.add_index(&mut session,
//! "Person", "name")`; from then on `find` answers from `^g("index","Person","name",key,vertex)`.
//!
//! Invariants
//! - The key of an entry is made of the value: a number is itself, a text its first 128 bytes, anything else "". Different
//!   values may share a key, so `find` compares the property itself.
//! - Without an index `find` reads the vertices of the label, and answers the same.

use perilune::key::KeyBuf;
use perilune::{Cursor, IntoSubscript, IntoValue, Node, Number, Session, TransactionOptions, Value};

use crate::edge::same;
use crate::edges::owned;
use crate::graph::check_name;
use crate::limits::INDEXED_BYTES;
use crate::{Error, Graph, Result, VertexId};

impl Graph {
    /// Indexes a property of the vertices with a label, those that there are too.
    ///
    /// # Errors
    /// `Invalid` for a name; else as [`Session::transaction`].
    pub fn add_index(&self, session: &mut Session, label: &str, property: &str) -> Result<()> {
        check_name("a label", label)?;
        check_name("a property", property)?;
        let index = self.index.child(label)?.with(property)?;
        Ok(session.transaction(|session| {
            session.set(&index, true)?;
            for id in self.vertices_with(session, label)? {
                if let Some(value) = self.property(session, &id, property)? {
                    session.set(&index.child(IndexKey(&value))?.with(&id)?, ())?;
                }
            }
            Ok(())
        })?)
    }

    /// Drops an index, if there is one.
    ///
    /// # Errors
    /// As [`Graph::add_index`].
    pub fn drop_index(&self, session: &mut Session, label: &str, property: &str) -> Result<()> {
        Ok(session.delete_tree(&self.index.child(label)?.with(property)?)?)
    }

    /// The vertices with a label, in the order of their ids.
    ///
    /// # Errors
    /// The database's.
    pub fn vertices_with(&self, session: &mut Session, label: &str) -> Result<Vec<VertexId>> {
        self.vertices_within(session, Some(label), u64::MAX)
    }

    /// All vertices, in the order of their ids.
    ///
    /// # Errors
    /// The database's.
    pub fn vertices(&self, session: &mut Session) -> Result<Vec<VertexId>> {
        self.vertices_within(session, None, u64::MAX)
    }

    /// The vertices with a label, or all, if they are at most so many.
    ///
    /// # Errors
    /// `Limit`; else as [`Graph::vertices_with`].
    pub(crate) fn vertices_within(
        &self,
        session: &mut Session,
        label: Option<&str>,
        most: u64,
    ) -> Result<Vec<VertexId>> {
        let mut ids = Vec::new();
        let place = match label {
            Some(label) => {
                check_name("a label", label)?;
                &self.label.child(label)?
            }
            None => &self.vertex,
        };
        each_id_below(session, place, |_, id| keep(&mut ids, id, most))?;
        Ok(ids)
    }

    /// The vertices with a label whose property has this value; numbers are compared by value.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn find(
        &self,
        session: &mut Session,
        label: &str,
        property: &str,
        value: impl IntoValue,
    ) -> Result<Vec<VertexId>> {
        self.find_within(session, label, property, value, u64::MAX)
    }

    /// As [`Graph::find`], if they are at most so many.
    ///
    /// # Errors
    /// `Limit`; else as [`Graph::find`].
    pub(crate) fn find_within(
        &self,
        session: &mut Session,
        label: &str,
        property: &str,
        value: impl IntoValue,
        most: u64,
    ) -> Result<Vec<VertexId>> {
        check_name("a label", label)?;
        let value = owned(value)?;
        let index = self.index.child(label)?.with(property)?;
        let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
        Ok(session.transaction_with(&options, |session| {
            let is_indexed = session.get_ref(&index)?.is_some();
            let place = if is_indexed { index.child(IndexKey(&value))? } else { self.label.child(label)? };
            let mut found = Vec::new();
            each_id_below(session, &place, |session, id| {
                let held = self.property(session, &id, property)?;
                if held.is_some_and(|held| same(&held, &value)) {
                    keep(&mut found, id, most)?;
                }
                Ok(())
            })?;
            Ok(found)
        })?)
    }

    /// Brings the indexes of a property to what it is now, for a vertex with these labels.
    pub(crate) fn index_property(
        &self,
        session: &mut Session,
        id: &VertexId,
        labels: &[&str],
        property: &str,
        before: Option<&Value>,
        after: Option<&Value>,
    ) -> Result<()> {
        for label in labels {
            let index = self.index.child(*label)?.with(property)?;
            if session.get_ref(&index)?.is_none() {
                continue;
            }
            if let Some(before) = before {
                session.delete_value(&index.child(IndexKey(before))?.with(id)?)?;
            }
            if let Some(after) = after {
                session.set(&index.child(IndexKey(after))?.with(id)?, ())?;
            }
        }
        Ok(())
    }
}

/// A value as the subscript by which an index has it.
pub(crate) struct IndexKey<'v>(pub(crate) &'v Value);

impl IntoSubscript for IndexKey<'_> {
    fn push_to(self, key: &mut KeyBuf) -> perilune::Result<()> {
        match self.0 {
            Value::Int(int) => int.push_to(key),
            Value::Decimal(decimal) => decimal.push_to(key),
            // NB: what no number is, infinity say, is found among all else.
            Value::Double(double) => match Number::from_f64(*double) {
                Ok(number) => number.push_to(key),
                Err(_) => "".push_to(key),
            },
            Value::String(bytes) => bytes[..bytes.len().min(INDEXED_BYTES)].push_to(key),
            _ => "".push_to(key),
        }
    }
}

/// Adds an id to a list of at most so many.
fn keep(ids: &mut Vec<VertexId>, id: VertexId, most: u64) -> Result<()> {
    if ids.len() as u64 >= most {
        return Err(Error::Limit { what: "vertices", limit: most });
    }
    ids.push(id);
    Ok(())
}

/// Shows each last subscript of the children of a node, as an id.
fn each_id_below(
    session: &mut Session,
    node: &Node,
    mut show: impl FnMut(&mut Session, VertexId) -> Result<()>,
) -> Result<()> {
    let mut cursor = Cursor::children(node).without_values();
    while cursor.next(session)? {
        let id = match cursor.integer() {
            Some(int) => VertexId::from(int),
            None => VertexId::from_subscript(&cursor.subscript()?),
        };
        show(session, id)?;
    }
    Ok(())
}
