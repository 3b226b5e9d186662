//! A table of relations: its keys, and where its rows lie.

use perilune::Node;

use crate::fields::{identity, Fields};
use crate::{Error, Json, Result};

/// What is known of a table.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) node: Node,
    pub(super) keys: Vec<String>,
    pub(super) parent: Option<String>,
}

impl Table {
    pub(super) fn label(&self) -> String {
        format!("key:{}", self.keys.join(","))
    }

    pub(super) fn row(&self, keys: &[Vec<u8>]) -> Result<Node> {
        let mut node = self.node.clone();
        for key in keys {
            node.push(key)?;
        }
        Ok(node)
    }

    pub(super) fn texts(&self, keys: &[Json]) -> Result<Vec<Vec<u8>>> {
        if keys.len() > self.keys.len() {
            return Err(Error::Call(format!(
                "the table {:?} has the keys {}",
                self.name,
                self.keys.join(", ")
            )));
        }
        self.keys.iter().zip(keys).map(|(name, key)| identity(name, key)).collect()
    }

    pub(super) fn row_at(&self, keys: &[Json]) -> Result<Node> {
        let texts = self.texts(keys)?;
        if texts.len() < self.keys.len() {
            return Err(Error::Call(format!(
                "a row of {:?} has the keys {}",
                self.name,
                self.keys.join(", ")
            )));
        }
        self.row(&texts)
    }
}

/// The values of keys in a row.
pub(super) fn values(keys: &[String], row: &Fields) -> Result<Vec<Vec<u8>>> {
    keys.iter().map(|key| identity(key, row.get(key).unwrap_or(&Json::Null))).collect()
}
