//! Records with indexes of one or more of their properties.
//!
//! Layout: `R("by_id",id,property) = value`; of an index on a and b `R("by_a_and_b",value of a,value of b,id) = ""`;
//! `R("counter")`; and that there is such an index `R("indices","by_a_and_b",1) = "a"`, `(...,2) = "b"`.
//!
//! Invariants
//! - After every call each index has an entry for each record that has all its properties, none of them empty, and no other.
//!   `check` tells where that is not so.

use std::collections::BTreeSet;
use std::ops::Bound;

use perilune::{Cursor, Node, Session, SubscriptBuf};

use crate::error::{change, look};
use crate::fields::{
    children, exists, fields, fresh, identity, key, merge, names, raise, shown_subscript, Fields,
};
use crate::leaf::{name, text};
use crate::{Error, Json, Result};

/// Records below a node.
#[derive(Clone, Debug)]
pub struct Records {
    node: Node,
}

/// An index: its name, and the properties in order.
struct Index {
    name: String,
    properties: Vec<String>,
}

/// Which entries of an index are wanted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted<'a> {
    /// The values of its first properties: none, some or all of them.
    pub values: &'a [Json],
    /// The least value of the next property.
    pub from: Option<&'a Json>,
    /// The greatest value of the next property.
    pub to: Option<&'a Json>,
}

impl Records {
    /// The records below `node`, whether or not there are any.
    #[must_use]
    pub fn at(node: Node) -> Records {
        Records { node }
    }

    /// Indexes properties in that order, those of all records that are there at once; the name of the index: `by_a_and_b`.
    ///
    /// # Errors
    /// `Call` without properties, and for one called `id`; else as [`Records::insert`].
    pub fn add_index(&self, session: &mut Session, properties: &[&str]) -> Result<String> {
        if properties.is_empty() || properties.contains(&"") || properties == ["id"] {
            return Err(Error::Call(
                "an index needs names of properties, others than \"id\" alone".to_owned(),
            ));
        }
        let index = Index {
            name: format!("by_{}", properties.join("_and_")),
            properties: properties.iter().map(|&property| property.to_owned()).collect(),
        };
        let definition = self.node.child("indices")?.with(&index.name)?;
        change(session, |session| {
            session.delete_tree(&definition)?;
            for (at, property) in (1_i64..).zip(&index.properties) {
                session.set(&definition.child(at)?, property.as_str())?;
            }
            session.delete_tree(&self.node.child(&index.name)?)?;
            for id in children(session, &self.node.child("by_id")?)? {
                if let Some(entry) = self.entry(session, &index, &id)? {
                    session.set(&entry, "")?;
                }
            }
            Ok(())
        })?;
        Ok(index.name)
    }

    /// Deletes an index and its entries; false if there is none of that name.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_index(&self, session: &mut Session, index: &str) -> Result<bool> {
        let definition = self.node.child("indices")?.with(index)?;
        change(session, |session| {
            if !exists(session, &definition)? {
                return Ok(false);
            }
            session.delete_tree(&definition)?;
            session.delete_tree(&self.node.child(index)?)?;
            Ok(true)
        })
    }

    /// The names of its indexes.
    ///
    /// # Errors
    /// The database's.
    pub fn indices(&self, session: &mut Session) -> Result<Vec<String>> {
        let found = look(session, |session| self.known(session))?;
        Ok(found.into_iter().map(|index| index.name).collect())
    }

    /// Adds a record under the next number, which it answers.
    ///
    /// # Errors
    /// `Call` for a property that is no scalar; the database's, also for an indexed value that is longer than a subscript.
    pub fn insert(&self, session: &mut Session, record: &Fields) -> Result<i64> {
        let (counter, all) = (self.node.child("counter")?, self.node.child("by_id")?);
        change(session, |session| {
            let id = fresh(session, &counter, &all)?;
            self.enter(session, &Json::from(id), record)?;
            Ok(id)
        })
    }

    /// Puts a record in the place of the one with that id; true if there was none.
    ///
    /// # Errors
    /// As [`Records::insert`].
    pub fn put(&self, session: &mut Session, id: &Json, record: &Fields) -> Result<bool> {
        let (counter, text) = (self.node.child("counter")?, identity("id", id)?);
        change(session, |session| {
            let was_there = self.remove(session, id)?;
            self.enter(session, id, record)?;
            raise(session, &counter, &text)?;
            Ok(!was_there)
        })
    }

    /// Changes properties of a record, null deleting one; false if there is no such record.
    ///
    /// # Errors
    /// As [`Records::insert`].
    pub fn edit(&self, session: &mut Session, id: &Json, changes: &Fields) -> Result<bool> {
        change(session, |session| {
            let Some(mut record) = fields(session, &self.record(id)?)? else { return Ok(false) };
            record.extend(changes.iter().map(|(name, json)| (name.clone(), json.clone())));
            self.remove(session, id)?;
            self.enter(session, id, &record)?;
            Ok(true)
        })
    }

    /// Deletes a record; false if there is none.
    ///
    /// # Errors
    /// The database's.
    pub fn delete(&self, session: &mut Session, id: &Json) -> Result<bool> {
        change(session, |session| self.remove(session, id))
    }

    /// The record with that id.
    ///
    /// # Errors
    /// `NotJson` for what JSON cannot say; else the database's.
    pub fn get(&self, session: &mut Session, id: &Json) -> Result<Option<Fields>> {
        fields(session, &self.record(id)?)
    }

    /// The ids of all records, in order.
    ///
    /// # Errors
    /// The database's.
    pub fn ids(&self, session: &mut Session) -> Result<Vec<Json>> {
        names(session, &self.node.child("by_id")?)
    }

    /// How many records there are.
    ///
    /// # Errors
    /// The database's.
    pub fn count(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.node.child("by_id")?)?)
    }

    /// The ids of the records that an index has under the values that are wanted, in its order.
    ///
    /// # Errors
    /// `Call` for an index that there is not, and for more values than it has properties.
    pub fn find(&self, session: &mut Session, index: &str, wanted: Wanted<'_>) -> Result<Vec<Json>> {
        look(session, |session| self.find_ids(session, index, wanted))
    }

    /// The records of [`Records::find`], with their ids.
    ///
    /// # Errors
    /// As [`Records::find`].
    pub fn find_records(
        &self,
        session: &mut Session,
        index: &str,
        wanted: Wanted<'_>,
    ) -> Result<Vec<(Json, Fields)>> {
        look(session, |session| {
            let ids = self.find_ids(session, index, wanted)?;
            ids.into_iter().map(|id| Ok((id.clone(), self.get(session, &id)?.unwrap_or_default()))).collect()
        })
    }

    /// Which entries of indexes are missing or too many, as texts; none if all agree.
    ///
    /// # Errors
    /// The database's.
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let ids = children(session, &self.node.child("by_id")?)?;
            let mut wrong = Vec::new();
            for index in self.known(session)? {
                let mut wanted = BTreeSet::new();
                for id in &ids {
                    wanted.extend(self.entry(session, &index, id)?.map(|node| node.to_string()));
                }
                for (node, _) in session.get_tree(&self.node.child(&index.name)?)? {
                    let node = node.to_string();
                    if !wanted.remove(&node) {
                        wrong.push(format!("{node} is an entry of no record"));
                    }
                }
                wrong.extend(wanted.into_iter().map(|node| format!("{node} is missing")));
            }
            Ok(wrong)
        })
    }

    fn record(&self, id: &Json) -> Result<Node> {
        Ok(self.node.child("by_id")?.with(&identity("id", id)?)?)
    }

    fn enter(&self, session: &mut Session, id: &Json, record: &Fields) -> Result<()> {
        let node = self.record(id)?;
        merge(session, &node, record)?;
        self.each_entry(session, &node, |session, entry| Ok(session.set(entry, "")?))
    }

    fn remove(&self, session: &mut Session, id: &Json) -> Result<bool> {
        let node = self.record(id)?;
        if !exists(session, &node)? {
            return Ok(false);
        }
        self.each_entry(session, &node, |session, entry| {
            session.delete_value(entry)?;
            Ok(())
        })?;
        session.delete_tree(&node)?;
        Ok(true)
    }

    /// Does something with each entry that a record has in the indexes.
    fn each_entry(
        &self,
        session: &mut Session,
        record: &Node,
        mut work: impl FnMut(&mut Session, &Node) -> Result<()>,
    ) -> Result<()> {
        let Some(id) = record.last()? else { return Ok(()) };
        for index in self.known(session)? {
            if let Some(entry) = self.entry(session, &index, &id)? {
                work(session, &entry)?;
            }
        }
        Ok(())
    }

    /// The entry of a record in an index; `None` if it lacks a property.
    fn entry(&self, session: &mut Session, index: &Index, id: &SubscriptBuf) -> Result<Option<Node>> {
        let record = self.node.child("by_id")?.with(id)?;
        let mut entry = self.node.child(&index.name)?;
        for property in &index.properties {
            let value = match session.get_ref(&record.child(property)?)? {
                Some(value) => text(value),
                None => return Ok(None),
            };
            if value.is_empty() {
                return Ok(None);
            }
            entry.push(&value)?;
        }
        Ok(Some(entry.with(id)?))
    }

    fn known(&self, session: &mut Session) -> Result<Vec<Index>> {
        let node = self.node.child("indices")?;
        let mut found = Vec::new();
        for subscript in children(session, &node)? {
            let mut properties = Vec::new();
            for (_, value) in session.get_tree(&node.child(&subscript)?)? {
                properties.push(String::from_utf8_lossy(&text(value.as_ref())).into_owned());
            }
            found.push(Index { name: name(&node, &subscript)?, properties });
        }
        Ok(found)
    }

    fn find_ids(&self, session: &mut Session, index: &str, wanted: Wanted<'_>) -> Result<Vec<Json>> {
        let known = self.known(session)?;
        let Some(known) = known.iter().find(|known| known.name == index) else {
            return Err(Error::Call(format!("there is no index {index:?}: add_index makes one")));
        };
        let is_ranged = wanted.from.is_some() || wanted.to.is_some();
        let levels = known.properties.len().checked_sub(wanted.values.len() + usize::from(is_ranged));
        if levels.is_none() {
            let most = known.properties.len();
            return Err(Error::Call(format!(
                "the index {index:?} has {most} properties, and takes no more values"
            )));
        }
        let mut at = self.node.child(index)?;
        for (property, value) in known.properties.iter().zip(wanted.values) {
            let value = key(property, value)?;
            if value.is_empty() {
                return Ok(Vec::new());
            }
            at.push(&value)?;
        }
        let mut cursor = Cursor::children(&at).without_empty().without_values();
        let bound = |given: Option<&Json>| match given {
            Some(value) => Ok(Bound::Included(identity("a bound", value)?)),
            None => Ok::<_, Error>(Bound::Unbounded),
        };
        let (from, to) = (bound(wanted.from)?, bound(wanted.to)?);
        cursor = cursor.between(from.as_ref(), to.as_ref())?;
        let mut found = Vec::new();
        let depth = self.node.depth() + known.properties.len() + 2;
        while cursor.next(session)? {
            let child = at.child(&cursor.subscript()?)?;
            for (entry, _) in session.get_tree(&child)? {
                if let (true, Some(id)) = (entry.depth() == depth, entry.last()?) {
                    found.push(shown_subscript(&entry, &id)?);
                }
            }
        }
        Ok(found)
    }
}
