//! Iterators that own what they answer, over the children of a node or its subtree: a cursor with a session.

use perilune_key::{Subscript, SubscriptBuf, Value};

use super::{Cursor, Place};
use crate::{Node, NodeRef, Result, Session};

/// The children of a node, first to last; made by [`Session::children`].
#[derive(Debug)]
pub struct Children<'s> {
    session: &'s mut Session,
    cursor: Cursor,
}

/// The nodes with a value of a subtree, depth first; made by [`Session::subtree`].
#[derive(Debug)]
pub struct Subtree<'s> {
    session: &'s mut Session,
    cursor: Cursor,
}

impl Iterator for Children<'_> {
    type Item = Result<SubscriptBuf>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.cursor.next(self.session) {
            Ok(false) => None,
            Ok(true) => Some(self.cursor.subscript().map(Subscript::into_owned)),
            Err(error) => {
                self.cursor.place = Place::AfterLast;
                Some(Err(error))
            }
        }
    }
}

impl Subtree<'_> {
    fn entry(&self) -> Result<(Node, Value)> {
        let value = self.cursor.value()?.map_or(Value::Null, |value| value.to_owned_value());
        Ok((self.cursor.node()?, value))
    }
}

impl Iterator for Subtree<'_> {
    type Item = Result<(Node, Value)>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.cursor.next(self.session) {
            Ok(false) => None,
            Ok(true) => Some(self.entry()),
            Err(error) => {
                self.cursor.place = Place::AfterLast;
                Some(Err(error))
            }
        }
    }
}

impl Session {
    /// Iterates over the subscripts of the children of `node`, `""` included. It ends after an error.
    pub fn children<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Children<'_> {
        Children { session: self, cursor: Cursor::children(node).without_values() }
    }

    /// Iterates over the nodes with a value in the subtree of `node`, itself included, depth first.
    /// It ends after an error.
    pub fn subtree<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Subtree<'_> {
        Subtree { session: self, cursor: Cursor::subtree(node) }
    }
}
