//! Where the parts of a document stand below its node: the one place that knows JSdb's names.

use perilune::{key, Node, Session, Subscript, TransactionOptions};

use crate::{DomError, DomNode, NodeKind, Result};

/// A document's place in the tree. Holds no data; cheap to make and to copy.
#[derive(Clone, Debug)]
pub struct Dom {
    root: Node,
}

// The pointers of a document, and the counter of its nodes.
pub(crate) const DOCUMENT_NODE: &str = "documentNode";
pub(crate) const DOCUMENT_ELEMENT: &str = "documentElement";
pub(crate) const DOCUMENT_TYPE: &str = "documentType";
pub(crate) const NEXT_NODE_NO: &str = "nextNodeNo";

impl Dom {
    /// The document below `root`, whether or not there is one yet.
    #[must_use]
    pub fn at(root: Node) -> Dom {
        Dom { root }
    }

    /// The database node below which the document is.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    pub(crate) fn pointer(&self, name: &str) -> Result<Node> {
        Ok(self.root.child(name)?)
    }

    pub(crate) fn nodes(&self) -> Result<Node> {
        Ok(self.root.child("node")?)
    }

    pub(crate) fn node(&self, node: DomNode) -> Result<Node> {
        Ok(self.nodes()?.with(node.0)?)
    }

    pub(crate) fn field(&self, node: DomNode, field: &str) -> Result<Node> {
        Ok(self.node(node)?.with(field)?)
    }

    pub(crate) fn attribute(&self, element: DomNode, name: &str) -> Result<Node> {
        Ok(self.field(element, "attr")?.with(name)?)
    }

    pub(crate) fn by_type(&self, kind: NodeKind) -> Result<Node> {
        Ok(self.root.child("index")?.with("by_nodeType")?.with(kind.number())?)
    }

    /// Below it are the names of nodes of this kind.
    pub(crate) fn names_of(&self, kind: NodeKind) -> Result<Node> {
        Ok(self.root.child("index")?.with("by_nodeName")?.with(kind.number())?)
    }

    pub(crate) fn by_name(&self, kind: NodeKind, name: &str) -> Result<Node> {
        Ok(self.names_of(kind)?.with(name)?)
    }

    pub(crate) fn by_prefix(&self, kind: NodeKind, prefix: &str) -> Result<Node> {
        Ok(self.root.child("index")?.with("by_LocalName")?.with(kind.number())?.with(prefix)?)
    }

    /// Where the element with `id` is noted. An id that reads as a number is one, as it is for JSdb's subscripts.
    pub(crate) fn by_id(&self, id: &str) -> Result<Node> {
        let index = self.root.child("index")?.with("by_id")?;
        Ok(match key::parse_canonical(id.as_bytes()) {
            Some(number) => index.with(number)?,
            None => index.with(id)?,
        })
    }

    /// Adds the entries of the indices that each node has.
    pub(crate) fn index(
        &self,
        session: &mut Session,
        node: DomNode,
        kind: NodeKind,
        name: &str,
    ) -> Result<()> {
        for entry in self.entries(node, kind, name)? {
            session.set(&entry, "")?;
        }
        Ok(())
    }

    /// Removes what [`Dom::index`] added.
    pub(crate) fn unindex(
        &self,
        session: &mut Session,
        node: DomNode,
        kind: NodeKind,
        name: &str,
    ) -> Result<()> {
        for entry in self.entries(node, kind, name)? {
            session.delete_value(&entry)?;
        }
        Ok(())
    }

    /// The entries of the indices that a node has.
    fn entries(&self, node: DomNode, kind: NodeKind, name: &str) -> Result<Vec<Node>> {
        let mut entries = vec![self.by_type(kind)?, self.by_name(kind, name)?];
        if let Some((prefix, _)) = name.split_once(':') {
            entries.push(self.by_prefix(kind, prefix)?);
        }
        entries.into_iter().map(|entry| Ok(entry.with(node.0)?)).collect()
    }

    /// The numbers that are the children of a node of an index, ascending.
    pub(crate) fn listed(&self, session: &mut Session, index: &Node) -> Result<Vec<DomNode>> {
        let mut found = Vec::new();
        for (node, _) in session.get_tree(index)? {
            if node.depth() != index.depth() + 1 {
                continue;
            }
            let number = node.last()?.and_then(|last| last.as_i64());
            found.push(DomNode(
                number.ok_or_else(|| DomError::Damaged(format!("{node} is no node's number")))?,
            ));
        }
        Ok(found)
    }

    /// Runs `body` as one transaction, or as a level of the one that is open.
    pub(crate) fn atomically<R>(
        &self,
        session: &mut Session,
        body: impl FnMut(&mut Session) -> Result<R>,
    ) -> Result<R> {
        run(session, &TransactionOptions::default(), body)
    }

    /// Runs `body`, which writes nothing, so that all it reads is of one moment.
    pub(crate) fn at_one_moment<R>(
        &self,
        session: &mut Session,
        body: impl FnMut(&mut Session) -> Result<R>,
    ) -> Result<R> {
        run(session, &TransactionOptions { read_only: true, ..TransactionOptions::default() }, body)
    }
}

fn run<R>(
    session: &mut Session,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut Session) -> Result<R>,
) -> Result<R> {
    let mut failure = None;
    let outcome = session.transaction_with(options, |session| {
        failure = None;
        body(session).map_err(|error| match error {
            DomError::Database(error) => error,
            other => {
                failure = Some(other);
                perilune::Error::Rollback
            }
        })
    });
    outcome.map_err(|error| failure.unwrap_or(DomError::Database(error)))
}

/// The text of a subscript, without quotes.
pub(crate) fn text_of(subscript: &Subscript<'_>) -> String {
    String::from_utf8_lossy(&subscript.to_text()).into_owned()
}
