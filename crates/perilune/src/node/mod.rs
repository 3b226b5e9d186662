//! Nodes: plain values that name a place in a tree, ready to be used.
//!
//! A node holds its key in the encoding of the store, so that an operation on it encodes nothing; it
//! borrows nothing and names its place whether or not anything lies there. Keys of up to 128 encoded
//! bytes need no heap.
//!
//! Invariant: the key is always a whole, valid one; a push that fails leaves the node as it was.

mod borrowed;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use perilune_key::{KeyBuf, KeyMark, KeyText, Space, Subscript, SubscriptBuf};

use crate::{limits, Error, IntoSubscript, Result};

pub use self::borrowed::NodeRef;

/// A node of the database (`^name(...)`) or of a local tree (`name(...)`).
///
/// Nodes sort as their trees do: by name, then a node before its descendants, siblings by
/// subscript: `""`, numbers by value, strings by bytes; local nodes before those of the database.
#[derive(Clone)]
pub struct Node {
    key: KeyBuf,
    local: bool,
}

/// Names a node in one step: `node!("^person", 21, "birthday")` is a `Result<Node>`.
///
/// ```
/// let node = perilune::node!("^person", 21, "birthday")?;
/// assert_eq!(node.to_string(), r#"^person(21,"birthday")"#);
/// # Ok::<(), perilune::Error>(())
/// ```
#[macro_export]
macro_rules! node {
    ($name:expr $(, $subscript:expr)* $(,)?) => {
        $crate::Node::new($name)$(.and_then(|node| node.with($subscript)))*
    };
}

impl Node {
    /// The node `name` without subscripts: of the database if `name` begins with `^`, local if not.
    ///
    /// # Errors
    /// `InvalidName`: use a letter, `%` or `_`, then letters, digits, `%`, `_` or `.`.
    #[inline]
    pub fn new(name: &str) -> Result<Node> {
        match name.strip_prefix('^') {
            Some(name) => Ok(Node { key: KeyBuf::global(name)?, local: false }),
            None => Ok(Node { key: KeyBuf::local(name)?, local: true }),
        }
    }

    /// Reads the text form, `^name(1,"x")`; the inverse of `to_string`.
    ///
    /// # Errors
    /// `InvalidKey` with the position of what cannot be read.
    pub fn parse(text: &str) -> Result<Node> {
        let KeyText { space, key } = perilune_key::parse_key(text)?;
        Ok(Node { key, local: space == Space::Local })
    }

    /// The node whose encoded key is `encoded`, with all of it checked.
    ///
    /// # Errors
    /// `Malformed`, `KeyTooLong`.
    pub fn from_encoded(encoded: &[u8], local: bool) -> Result<Node> {
        Ok(Node { key: KeyBuf::from_encoded(encoded, limit(local))?, local })
    }

    pub(crate) fn key(&self) -> &KeyBuf {
        &self.key
    }

    pub(crate) fn from_key(key: KeyBuf, local: bool) -> Node {
        Node { key, local }
    }

    /// The child of this node with one subscript more. The node itself stays as it is.
    ///
    /// # Errors
    /// `KeyTooLong`, `SubscriptTooLong`, `TooManySubscripts`; `Number` for NaN and infinity.
    #[inline]
    pub fn child(&self, subscript: impl IntoSubscript) -> Result<Node> {
        self.clone().with(subscript)
    }

    /// As [`Node::child`], made of this node without copying it.
    ///
    /// # Errors
    /// As [`Node::child`].
    #[inline]
    pub fn with(mut self, subscript: impl IntoSubscript) -> Result<Node> {
        self.push(subscript)?;
        Ok(self)
    }

    /// Appends a subscript in place: the fastest way to the children of a node, with
    /// [`Node::mark`] and [`Node::truncate`] to come back.
    ///
    /// ```
    /// let mut step = perilune::node!("^step")?;
    /// let parent = step.mark();
    /// for n in 1..=3 {
    ///     step.truncate(parent);
    ///     step.push(n)?;
    /// }
    /// assert_eq!(step.to_string(), "^step(3)");
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Node::child`]; the node is as it was.
    #[inline]
    pub fn push(&mut self, subscript: impl IntoSubscript) -> Result<()> {
        subscript.push_to(&mut self.key)
    }

    /// Becomes a node of the same kind with `depth` subscripts.
    #[inline]
    pub(crate) fn assign(&mut self, node: NodeRef<'_>, depth: usize) -> Result<()> {
        debug_assert_eq!(self.local, node.is_local());
        Ok(self.key.assign(node.encoded(), depth)?)
    }

    /// Removes the last subscript; false if there is none.
    pub fn pop(&mut self) -> bool {
        self.key.pop()
    }

    /// Remembers the present end of the node.
    #[must_use]
    #[inline]
    pub fn mark(&self) -> KeyMark {
        self.key.mark()
    }

    /// Returns to a mark taken when this node was what it is now or an ancestor of it.
    ///
    /// # Panics
    /// If the node has become shorter than the mark.
    #[inline]
    pub fn truncate(&mut self, mark: KeyMark) {
        self.key.truncate(mark);
    }

    /// The node without its last subscript; `None` for a name alone.
    #[must_use]
    pub fn parent(&self) -> Option<Node> {
        let mut parent = self.clone();
        parent.pop().then_some(parent)
    }

    /// The ancestor (or the node itself) with `depth` subscripts; `None` if there are fewer.
    #[must_use]
    pub fn ancestor(&self, depth: usize) -> Option<Node> {
        let mut ancestor = self.clone();
        ancestor.key.truncate_depth(depth).then_some(ancestor)
    }

    /// The name as given: with `^` for a node of the database.
    #[must_use]
    pub fn name(&self) -> String {
        let name = String::from_utf8_lossy(self.key.name());
        if self.local {
            name.into_owned()
        } else {
            format!("^{name}")
        }
    }

    /// Whether the node is in a local tree.
    #[must_use]
    #[inline]
    pub fn is_local(&self) -> bool {
        self.local
    }

    /// How many subscripts the node has.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.key.depth()
    }

    /// The subscripts, first to last.
    ///
    /// # Errors
    /// `Malformed` if the node was made of damaged bytes.
    pub fn subscripts(&self) -> Result<Vec<SubscriptBuf>> {
        perilune_key::subscripts(self.key.as_bytes())?.map(|subscript| Ok(subscript?.into_owned())).collect()
    }

    /// The last subscript; `None` for a name alone.
    ///
    /// # Errors
    /// As [`Node::subscripts`].
    pub fn last(&self) -> Result<Option<SubscriptBuf>> {
        let last = perilune_key::subscripts(self.key.as_bytes())?.last();
        Ok(last.transpose()?.map(Subscript::into_owned))
    }

    /// Whether `self` is `other` or an ancestor of it.
    #[must_use]
    pub fn contains(&self, other: &Node) -> bool {
        self.local == other.local && other.encoded().starts_with(self.encoded())
    }

    /// The key in the store's encoding; equal nodes of one kind have equal keys.
    #[must_use]
    #[inline]
    pub fn encoded(&self) -> &[u8] {
        self.key.as_bytes()
    }
}

/// The longest encoded key of a local node, or of one of the database.
pub(crate) fn limit(local: bool) -> usize {
    if local {
        limits::LOCAL_KEY_BYTES
    } else {
        limits::KEY_BYTES
    }
}

impl FromStr for Node {
    type Err = Error;

    fn from_str(text: &str) -> Result<Node> {
        Node::parse(text)
    }
}

impl fmt::Display for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.local {
            f.write_str("^")?;
        }
        perilune_key::write_key(self.encoded(), f)
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl PartialEq for Node {
    fn eq(&self, other: &Self) -> bool {
        self.local == other.local && self.encoded() == other.encoded()
    }
}

impl Eq for Node {}

impl PartialOrd for Node {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Node {
    fn cmp(&self, other: &Self) -> Ordering {
        other.local.cmp(&self.local).then_with(|| self.encoded().cmp(other.encoded()))
    }
}

impl Hash for Node {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.local.hash(state);
        self.encoded().hash(state);
    }
}

#[cfg(test)]
mod tests {
    use perilune_key::{KeyError, Number};

    use super::*;

    #[test]
    fn a_node_names_its_place() -> Result<()> {
        let node = node!("^person", 21, "birthday", 1.5)?;
        assert_eq!(node.to_string(), r#"^person(21,"birthday",1.5)"#);
        assert_eq!(Node::parse(&node.to_string())?, node);
        assert_eq!((node.name(), node.depth(), node.is_local()), ("^person".to_owned(), 3, false));
        assert_eq!(node.parent(), Some(node!("^person", 21, "birthday")?));
        assert_eq!(node.ancestor(0), Some(node!("^person")?));
        assert_eq!(node.ancestor(4), None);
        assert!(node.ancestor(1).is_some_and(|ancestor| ancestor.contains(&node)));
        assert_eq!(node!("^person", "21")?, node!("^person", 21)?);
        assert_ne!(node!("person")?, node!("^person")?);
        assert_eq!(node.last()?, Some(Subscript::from(Number::new(15, -1)?)));
        assert_eq!(NodeRef::from(&node).parent_end()?, node.parent().map(|parent| parent.encoded().len()));
        assert_eq!(NodeRef::from(&node!("^a")?).parent_end()?, None);
        Ok(())
    }

    #[test]
    fn a_failed_push_changes_nothing() -> Result<()> {
        let mut node = node!("^x", "a")?;
        let before = node.clone();
        assert!(matches!(node.push("x".repeat(1_900)), Err(Error::Key(KeyError::KeyTooLong { .. }))));
        assert!(node.push(f64::NAN).is_err());
        assert_eq!(node, before);
        assert!(matches!(Node::new("^1a"), Err(Error::Key(KeyError::InvalidName))));
        assert!(node!("x", "y".repeat(1 << 20)).is_ok());
        Ok(())
    }
}
