//! Sets of scalars, and hashes: fields with values.
//!
//! Layout: `S(member) = ""`; `H(field) = value`. A hash of one value a key is the key/value store of the literature.

use perilune::{IntoNumber, Node, Number, Session, Value};

use crate::error::change;
use crate::fields::{exists, fields, identity, names, scalar, Fields};
use crate::{Json, Result};

/// A set of texts and numbers, in the order of subscripts.
#[derive(Clone, Debug)]
pub struct Set {
    node: Node,
}

impl Set {
    /// The set below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node) -> Set {
        Set { node }
    }

    /// Adds a member; false if it is there.
    ///
    /// # Errors
    /// `Call` for an empty member and for what is no scalar; else the database's.
    pub fn add(&self, session: &mut Session, member: &Json) -> Result<bool> {
        let node = self.member(member)?;
        change(session, |session| {
            let is_new = session.get_ref(&node)?.is_none();
            if is_new {
                session.set(&node, "")?;
            }
            Ok(is_new)
        })
    }

    /// Takes a member away; false if it is not there.
    ///
    /// # Errors
    /// As [`Set::add`].
    pub fn remove(&self, session: &mut Session, member: &Json) -> Result<bool> {
        Ok(session.delete_value(&self.member(member)?)?)
    }

    /// Whether it is a member.
    ///
    /// # Errors
    /// As [`Set::add`].
    pub fn has(&self, session: &mut Session, member: &Json) -> Result<bool> {
        exists(session, &self.member(member)?)
    }

    /// All members in order: integers as numbers, others as texts.
    ///
    /// # Errors
    /// `NotJson` for bytes that are no UTF-8; else the database's.
    pub fn members(&self, session: &mut Session) -> Result<Vec<Json>> {
        names(session, &self.node)
    }

    /// How many members it has.
    ///
    /// # Errors
    /// The database's.
    pub fn count(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.node)?)
    }

    fn member(&self, member: &Json) -> Result<Node> {
        Ok(self.node.child(&identity("member", member)?)?)
    }
}

/// Values by field.
#[derive(Clone, Debug)]
pub struct Hash {
    node: Node,
}

impl Hash {
    /// The hash below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node) -> Hash {
        Hash { node }
    }

    /// Sets a field; true if it is new.
    ///
    /// # Errors
    /// `Call` for an empty field and for a value that is no scalar; else the database's.
    pub fn put(&self, session: &mut Session, field: &Json, value: &Json) -> Result<bool> {
        let (node, value) = (self.field(field)?, scalar("value", value)?);
        change(session, |session| {
            let is_new = session.get_ref(&node)?.is_none();
            session.set(&node, &value)?;
            Ok(is_new)
        })
    }

    /// The value of a field.
    ///
    /// # Errors
    /// As [`Hash::put`].
    pub fn get(&self, session: &mut Session, field: &Json) -> Result<Option<Value>> {
        Ok(session.get(&self.field(field)?)?)
    }

    /// Adds to the number in a field, which begins at 0; the sum.
    ///
    /// # Errors
    /// `Call` for an empty field; `NotANumber` of the database for another value.
    pub fn increment(&self, session: &mut Session, field: &Json, by: impl IntoNumber) -> Result<Number> {
        Ok(session.increment(&self.field(field)?, by)?)
    }

    /// Takes a field away; false if it is not there.
    ///
    /// # Errors
    /// As [`Hash::put`].
    pub fn delete(&self, session: &mut Session, field: &Json) -> Result<bool> {
        Ok(session.delete_value(&self.field(field)?)?)
    }

    /// All fields with their values.
    ///
    /// # Errors
    /// `NotJson` for what JSON cannot say; else the database's.
    pub fn all(&self, session: &mut Session) -> Result<Fields> {
        Ok(fields(session, &self.node)?.unwrap_or_default())
    }

    /// How many fields it has.
    ///
    /// # Errors
    /// The database's.
    pub fn count(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.node)?)
    }

    fn field(&self, field: &Json) -> Result<Node> {
        Ok(self.node.child(&identity("field", field)?)?)
    }
}
