//! Many nodes in one operation: all reads of one moment, all writes or none.

use perilune_key::Value;

use crate::{IntoValue, Node, NodeRef, Result, Session};

impl Session {
    /// The values of `nodes`, in their order, as of one moment.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn get_many<'n, I>(&mut self, nodes: I) -> Result<Vec<Option<Value>>>
    where
        I: IntoIterator,
        I::Item: Into<NodeRef<'n>>,
    {
        let nodes: Vec<NodeRef<'n>> = nodes.into_iter().map(Into::into).collect();
        let local = nodes.iter().all(|node| node.is_local());
        self.at_one_moment(local, |session| nodes.iter().map(|node| session.get(*node)).collect())
    }

    /// Sets the values of many nodes, all or none; of a node named twice the last value stays.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn set_many<'n, N, V>(&mut self, pairs: impl IntoIterator<Item = (N, V)>) -> Result<()>
    where
        N: Into<NodeRef<'n>>,
        V: IntoValue,
    {
        let mut nodes = Vec::new();
        let mut values = Vec::new();
        for (node, value) in pairs {
            value.encode_to(&mut values)?;
            nodes.push((node.into(), values.len()));
        }
        self.transaction(|session| {
            let mut start = 0;
            for (node, end) in &nodes {
                session.trees.of(node.is_local()).set(node.encoded(), &values[start..*end])?;
                start = *end;
            }
            Ok(())
        })
    }

    /// The nodes with a value in the subtree of `node` (itself included), as of one moment: for
    /// trees that fit in memory. A [`crate::Cursor`] goes through larger ones.
    ///
    /// # Errors
    /// As [`Session::transaction`].
    pub fn get_tree<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Vec<(Node, Value)>> {
        let node = node.into();
        self.at_one_moment(node.is_local(), |session| session.subtree(node).collect())
    }
}
