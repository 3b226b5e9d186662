//! Many children at once: those that were read together are shown one after another, without a question to the tree for each.
//!
//! Problem: a step asks whether what was read ahead is still so, finds where the child's code ends, and builds what it answers.
//! For whoever wants no more than the bytes of 1,000 names and values that costs more than to read them. Idea: within one
//! reading all of that is the same or needs no question; only what is not plain is left for a step.
//!
//! ```text
//! next        asks, reads perhaps, stands at the first child of a reading
//! take_while  the others of that reading, up to one that is not plain, or not wanted
//! next        that one, whatever it is; or the first of the next reading
//! ```
//!
//! Invariant: what is shown stood in the tree side by side at one moment, and nothing between it and the cursor's place.

use perilune_key::{decode_plain, PlainSubscript, ValueRef};

use super::{Cursor, Over, Place};
use crate::{Result, Session};

/// A child that a cursor has shown: lent for as long as it is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Child<'a> {
    subscript: PlainSubscript<'a>,
    value: &'a [u8],
}

impl<'a> Child<'a> {
    /// Its subscript.
    #[inline]
    #[must_use]
    pub fn subscript(&self) -> PlainSubscript<'a> {
        self.subscript
    }

    /// Its value, if it is a byte string: the fast way to a frequent kind.
    #[inline]
    #[must_use]
    pub fn string_value(&self) -> Option<&'a [u8]> {
        ValueRef::decode_string(self.value)
    }

    /// Its value, if it is an integer: the fast way, too.
    #[inline]
    #[must_use]
    pub fn integer_value(&self) -> Option<i64> {
        // NB: any value would be built in memory, its tag stored as a byte and loaded as a part of a word: a third of a loop.
        ValueRef::decode_int(self.value)
    }

    /// Its value.
    ///
    /// # Errors
    /// A damaged value; any value of a cursor that reads none.
    #[inline]
    pub fn value(&self) -> Result<ValueRef<'a>> {
        Ok(ValueRef::decode(self.value)?)
    }
}

impl Cursor {
    /// Shows the children behind the one at which the cursor stands, as many as were read together with it, to `take` until it
    /// answers false. The cursor then stands at the last one that was taken; answers how many were. Perhaps none is shown: what
    /// was not read yet, what has changed since, children without a value or with a subscript that is not plain. So
    /// [`Cursor::next`] goes on from there, to the child that was shown last if it was not taken.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-take-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor, PlainSubscript};
    ///
    /// for number in 0..1_000 {
    ///     session.set(&node!("^square", number)?, number * number)?;
    /// }
    /// let mut cursor = Cursor::children(&node!("^square")?);
    /// let (mut count, mut sum) = (0, 0);
    /// while cursor.next(&mut session)? {
    ///     sum += cursor.integer().unwrap_or(0);
    ///     count += 1 + cursor.take_while(&session, |child| match child.subscript() {
    ///         PlainSubscript::Int(int) => {
    ///             sum += int;
    ///             true
    ///         }
    ///         _ => false,
    ///     });
    /// }
    /// assert_eq!((count, sum), (1_000, 499_500));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    #[inline]
    pub fn take_while(&mut self, session: &Session, mut take: impl FnMut(Child<'_>) -> bool) -> usize {
        let Over::Children(parent) = &self.over else { return 0 };
        let is_forward = self.place == Place::At && !self.ahead.backwards;
        if !is_forward || !session.trees.are_current(self.local, &self.entries) {
            return 0;
        }
        let parent = parent.len();
        // NB: what lies below a child has more than one code behind the parent's key, and so is not plain.
        let taken = self.entries.take_while(|key, value| {
            let subscript = key.get(parent..).and_then(decode_plain);
            subscript.is_some_and(|subscript| take(Child { subscript, value }))
        });
        if taken > 0 {
            self.length = self.entries.key().len();
            (self.has_value, self.is_own) = (true, false);
            self.ahead.stepped += taken;
        }
        taken
    }

    /// Expects so many entries: as many are read together from the first step on, where else few are, since most loops
    /// end early. A guess that is wrong makes the walk slower, and no different.
    #[must_use]
    pub fn expecting(mut self, entries: usize) -> Cursor {
        self.ahead.expect(entries);
        self
    }
}
