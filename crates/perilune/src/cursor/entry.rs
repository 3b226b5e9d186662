//! What the entry says at which a cursor stands: its node, last subscript and value, lent until the next step.
//!
//! Example: `cursor.integer()` is the last subscript as a number, had from the bytes of its key without decoding the rest.

use perilune_key::{Number, Subscript, ValueRef};
use perilune_store::Granularity;

use super::{Cursor, Over, Place};
use crate::{Data, Error, Node, NodeRef, Result, Session};

impl Cursor {
    /// The node of the entry the cursor stands at.
    ///
    /// # Errors
    /// `Invalid` if it stands at none.
    #[inline]
    pub fn node_ref(&self) -> Result<NodeRef<'_>> {
        self.stands()?;
        Ok(NodeRef::from_encoded(&self.entries.key()[..self.length], self.local))
    }

    /// Makes sure that it stands at an entry.
    #[inline]
    fn stands(&self) -> Result<()> {
        if self.place == Place::At {
            return Ok(());
        }
        Err(no_entry())
    }

    /// The node of the entry, copied.
    ///
    /// # Errors
    /// As [`Cursor::node_ref`].
    pub fn node(&self) -> Result<Node> {
        self.node_ref()?.to_node()
    }

    /// The last subscript of the entry.
    ///
    /// # Errors
    /// As [`Cursor::node_ref`]; `Invalid` for a name alone.
    #[inline]
    pub fn subscript(&self) -> Result<Subscript<'_>> {
        match self.integer() {
            Some(int) => Ok(Subscript::Number(Number::Int(int))),
            None => self.other_subscript(),
        }
    }

    fn other_subscript(&self) -> Result<Subscript<'_>> {
        let node = self.node_ref()?;
        if let Over::Children(parent) = &self.over {
            return Ok(perilune_key::decode_subscript(&node.encoded()[parent.len()..])?.0);
        }
        node.last()?.ok_or_else(|| Error::invalid("a name alone has no subscript: ask for the node"))
    }

    /// The last subscript of a cursor over children if it is an integer, else `None`: the fast way to the
    /// most frequent kind.
    #[inline]
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match &self.over {
            Over::Children(parent) if self.place == Place::At => {
                perilune_key::decode_int(self.entries.key().get(parent.len()..self.length)?)
            }
            _ => None,
        }
    }

    /// The value of the entry; `None` if it has none (a child with descendants only).
    ///
    /// # Errors
    /// As [`Cursor::node_ref`]; `Invalid` if the cursor reads no values; a damaged value.
    #[inline]
    pub fn value(&self) -> Result<Option<ValueRef<'_>>> {
        self.stands()?;
        if !self.has_value {
            return Ok(None);
        }
        if !self.with_values {
            return Err(Error::invalid("this cursor reads no values: make it without `without_values`"));
        }
        Ok(Some(ValueRef::decode(if self.is_own { &self.own } else { self.entries.value() })?))
    }

    /// The value of the entry if it is an integer, else `None`, as also for a value that was not read: the fast way to the most
    /// frequent kind, as [`Cursor::integer`] is to that of subscripts.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-integers-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor};
    ///
    /// for number in 0..100 {
    ///     session.set(&node!("^square", number)?, number * number)?;
    /// }
    /// let mut cursor = Cursor::children(&node!("^square")?);
    /// let mut sums = (0, 0);
    /// while cursor.next(&mut session)? {
    ///     sums.0 += cursor.integer().unwrap_or(0);
    ///     sums.1 += cursor.integer_value().unwrap_or(0);
    /// }
    /// assert_eq!(sums, (4_950, 328_350));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn integer_value(&self) -> Option<i64> {
        if self.place != Place::At || !self.has_value || !self.with_values {
            return None;
        }
        ValueRef::decode_int(if self.is_own { &self.own } else { self.entries.value() })
    }

    /// The first nodes with a value in the subtree of the child that the cursor has stepped forwards to, as many as were read
    /// together, but at least one: each as what its encoded node has behind that of the child (nothing: the child itself), and
    /// its encoded value. All are of the moment of that step. None of a cursor that was not made by [`Cursor::looking_below`].
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-below-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor, ValueRef};
    ///
    /// for name in ["Ada", "Grace"] {
    ///     session.set(&node!("^person", name, "born")?, 1815)?;
    /// }
    /// let mut cursor = Cursor::children(&node!("^person")?).looking_below();
    /// while cursor.next(&mut session)? {
    ///     let (_, born) = cursor.below().next().unwrap();
    ///     assert_eq!(ValueRef::decode(born)?, ValueRef::Int(1815));
    /// }
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    pub fn below(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let is_looking = matches!(self.over, Over::Children(_)) && self.granularity == Granularity::Whole;
        let is_shown = is_looking && self.place == Place::At && !self.ahead.backwards;
        let child = is_shown.then(|| &self.entries.key()[..self.length]);
        child.into_iter().flat_map(|child| {
            let own = self.entries.from_here();
            own.map_while(move |(key, value)| Some((key.strip_prefix(child)?, value)))
        })
    }

    /// Whether the entry has a value: always, but for a child with descendants only.
    #[must_use]
    pub fn has_value(&self) -> bool {
        self.place == Place::At && self.has_value
    }

    /// What lies at the entry now.
    ///
    /// # Errors
    /// As [`Cursor::node_ref`] and [`Session::get`].
    pub fn data(&self, session: &mut Session) -> Result<Data> {
        session.data(self.node_ref()?)
    }
}

#[cold]
fn no_entry() -> Error {
    Error::invalid("the cursor stands at no entry: step it first, and only while it answers true")
}
