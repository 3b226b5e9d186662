//! User data: what a program keeps at a node of a document, which no output shows.
//!
//! A key's data is a value, or a whole subtree of nodes below [`Dom::user_data_node`]; it goes with its node.

use perilune::{IntoValue, Node, Session, Value};

use crate::layout::text_of;
use crate::{Dom, DomNode, Result};

impl Dom {
    /// The database node of the data `key` of `node`.
    ///
    /// # Errors
    /// `KeyTooLong` and the like for a key that is no subscript.
    pub fn user_data_node(&self, node: DomNode, key: &str) -> Result<Node> {
        Ok(self.field(node, "ud")?.with(key)?)
    }

    /// Sets the data `key` to a value, in place of all that it had.
    ///
    /// # Errors
    /// `NotFound`, the database's.
    pub fn set_user_data(
        &self,
        session: &mut Session,
        node: DomNode,
        key: &str,
        value: impl IntoValue + Copy,
    ) -> Result<()> {
        self.atomically(session, |session| {
            self.record(session, node)?;
            let place = self.user_data_node(node, key)?;
            session.delete_tree(&place)?;
            Ok(session.set(&place, value)?)
        })
    }

    /// The value of the data `key`; `None` if it has none.
    ///
    /// # Errors
    /// The database's.
    pub fn get_user_data(&self, session: &mut Session, node: DomNode, key: &str) -> Result<Option<Value>> {
        Ok(session.get(&self.user_data_node(node, key)?)?)
    }

    /// The keys of all data of `node`, ascending.
    ///
    /// # Errors
    /// The database's.
    pub fn user_data_keys(&self, session: &mut Session, node: DomNode) -> Result<Vec<String>> {
        let mut keys = Vec::new();
        let mut next = session.first_child(&self.field(node, "ud")?)?;
        while let Some(place) = next {
            keys.extend(place.last()?.map(|key| text_of(&key)));
            next = session.next(&place)?;
        }
        Ok(keys)
    }

    /// Removes the data `key`; false if there was none.
    ///
    /// # Errors
    /// The database's.
    pub fn delete_user_data(&self, session: &mut Session, node: DomNode, key: &str) -> Result<bool> {
        self.atomically(session, |session| {
            let place = self.user_data_node(node, key)?;
            let was_there = session.data(&place)?.number() > 0;
            session.delete_tree(&place)?;
            Ok(was_there)
        })
    }
}
