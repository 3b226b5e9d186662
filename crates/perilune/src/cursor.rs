//! Cursors: a place in the tree that moves both ways over children, a subtree or a range.
//!
//! A cursor stands before the first entry, at an entry, or behind the last one, and each step looks
//! at the tree as it is then: what others commit ahead of it is seen, and an entry under it may go
//! without harm. In a transaction all steps see one state. A cursor borrows nothing, so the session
//! can be used between its steps.
//!
//! Invariants
//! - Every entry lies in `low <= key < high`.
//! - For children `key` is the child's own key, whether or not it has a value; what lies below it is
//!   skipped by a search, not by reading through it.

use std::ops::{Bound, RangeBounds};

use perilune_key::{range, Number, Subscript, SubscriptBuf, Value, ValueRef};
use perilune_store::{Entries, Origin, Scan, Span};

use crate::node::limit;
use crate::remote::Glance;
use crate::{Data, Error, IntoSubscript, Node, NodeRef, Result, Session};

/// A place among the children of a node, in a subtree, or in a range of nodes.
///
/// ```
/// # let directory = std::env::temp_dir().join(format!("perilune-doc-cursor-{}", std::process::id()));
/// # std::fs::create_dir_all(&directory).unwrap();
/// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
/// use perilune::{node, Cursor};
///
/// for (name, born) in [("Ada", 1815), ("Grace", 1906), ("Mary", 1797)] {
///     session.set(&node!("^born", name)?, born)?;
/// }
/// let mut cursor = Cursor::children(&node!("^born")?);
/// let mut names = Vec::new();
/// while cursor.previous(&mut session)? {
///     names.push(format!("{} {}", cursor.subscript()?, cursor.value()?.unwrap()));
/// }
/// assert_eq!(names, [r#""Mary" 1797"#, r#""Grace" 1906"#, r#""Ada" 1815"#]);
/// # let _ = std::fs::remove_dir_all(&directory);
/// # Ok::<(), perilune::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Cursor {
    local: bool,
    over: Over,
    /// What a step looks at of the key that it finds.
    glance: Glance,
    with_values: bool,
    /// The least key of the range.
    low: Vec<u8>,
    /// What lies right behind the range.
    high: Vec<u8>,
    place: Place,
    /// Those that were read together with the one that it stands at.
    entries: Entries,
    /// Memory for the next ones.
    spare: Entries,
    /// Bytes of the key at which `entries` stand that are the entry's own.
    length: usize,
    has_value: bool,
    /// Its value is that of a child that was come to from behind, by a key below it, and lies here.
    is_own: bool,
    own: Vec<u8>,
    /// The key that it stands before.
    key: Vec<u8>,
    seek: Vec<u8>,
    ahead: Ahead,
}

#[derive(Clone, Debug)]
enum Over {
    /// The children of the node with this key.
    Children(Vec<u8>),
    /// Nodes with a value.
    Valued,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Nowhere yet: either direction begins at its end of the range.
    Fresh,
    BeforeFirst,
    At,
    /// Right before the key, which need not exist.
    Before,
    AfterLast,
}

/// How far is read ahead: little at first, since most loops are short.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    backwards: bool,
    /// So many entries are asked for at once.
    most: usize,
    /// How many of them were stepped to.
    stepped: usize,
    /// So many times more a single one is asked for: others would be read in vain.
    singles: u8,
}

/// Entries that are read together at most; each time that they all were wanted, so many times as many.
const AHEAD_MOST: usize = 1024;
const AHEAD_GROWTH: usize = 8;

/// So many are read one by one where to read ahead has been in vain: at writes, and over children with much below them.
const SINGLES: u8 = 16;

/// What has come of what was read ahead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// The walk begins, anew or the other way.
    Begun,
    /// All was of use.
    Used,
    /// Something was written there, or it all lay below one child.
    Vain,
}

impl Ahead {
    /// Decides how many entries to ask for.
    fn decide(&mut self, backwards: bool, outcome: Outcome) {
        match outcome {
            // NB: whoever wants two entries would pay more for the memory of many than for a second search.
            Outcome::Begun => *self = Ahead { backwards, most: 1, singles: 1, ..Ahead::default() },
            Outcome::Vain => (self.most, self.singles) = (1, SINGLES),
            Outcome::Used if self.singles > 0 => self.singles -= 1,
            Outcome::Used => self.most = (self.most * AHEAD_GROWTH).min(AHEAD_MOST),
        }
        self.stepped = 0;
    }
}

impl Cursor {
    /// A cursor over the children of `node`, `""` included, in the order of subscripts.
    #[must_use]
    pub fn children<'n>(node: impl Into<NodeRef<'n>>) -> Cursor {
        let node = node.into();
        // No code begins with 00 or 01: this is below every child and above the node itself.
        let low = [node.encoded(), &[0]].concat();
        Cursor::over(node.is_local(), Over::Children(node.encoded().to_vec()), low, past(node))
    }

    /// A cursor over the nodes with a value in the subtree of `node`, itself included, depth first.
    #[must_use]
    pub fn subtree<'n>(node: impl Into<NodeRef<'n>>) -> Cursor {
        let node = node.into();
        Cursor::over(node.is_local(), Over::Valued, node.encoded().to_vec(), past(node))
    }

    /// A cursor over the nodes with a value in a range of nodes, across subtrees and names:
    /// `Cursor::range(&from..&to)`. An upper bound that is included is so without its descendants.
    ///
    /// # Errors
    /// `Invalid` if one bound is local and the other is not, or there is none.
    pub fn range(range: impl RangeBounds<Node>) -> Result<Cursor> {
        let from = range.start_bound().map(NodeRef::from);
        let to = range.end_bound().map(NodeRef::from);
        let kind = |bound: &Bound<NodeRef<'_>>| match bound {
            Bound::Included(node) | Bound::Excluded(node) => Some(node.is_local()),
            Bound::Unbounded => None,
        };
        let local = match (kind(&from), kind(&to)) {
            (Some(from), Some(to)) if from != to => {
                return Err(Error::invalid("one bound of the range is local: give both with ^, or none"))
            }
            (Some(local), _) | (None, Some(local)) => local,
            (None, None) => return Err(Error::invalid("a range needs at least one bound")),
        };
        // Names begin with bytes from 25 to 7A.
        let mut cursor = Cursor::over(local, Over::Valued, vec![0x25], vec![0x7B]);
        cursor.bound(from, to);
        Ok(cursor)
    }

    /// Leaves out what lies before `from` or behind `to`. Bounds of a cursor over children must be
    /// children of the same node; an included one counts with its subtree.
    pub fn bound(&mut self, from: Bound<NodeRef<'_>>, to: Bound<NodeRef<'_>>) {
        let children = matches!(self.over, Over::Children(_));
        let behind = |node: NodeRef<'_>| if children { past(node) } else { [node.encoded(), &[0]].concat() };
        let low = match from {
            Bound::Included(node) => Some(node.encoded().to_vec()),
            Bound::Excluded(node) => Some(behind(node)),
            Bound::Unbounded => None,
        };
        let high = match to {
            Bound::Included(node) => Some(behind(node)),
            Bound::Excluded(node) => Some(node.encoded().to_vec()),
            Bound::Unbounded => None,
        };
        if let Some(low) = low.filter(|low| *low > self.low) {
            self.low = low;
        }
        if let Some(high) = high.filter(|high| *high < self.high) {
            self.high = high;
        }
        self.rewind();
    }

    /// Leaves out the children before `from` or behind `to`, given as subscripts.
    ///
    /// # Errors
    /// `Invalid` for a cursor that is not over children; else as [`Node::child`].
    pub fn between(
        mut self,
        from: Bound<impl IntoSubscript>,
        to: Bound<impl IntoSubscript>,
    ) -> Result<Cursor> {
        let Over::Children(parent) = &self.over else {
            return Err(Error::invalid("subscripts bound a cursor over children: use `bound` for nodes"));
        };
        let parent = NodeRef::from_encoded(parent, self.local).to_node()?;
        let (from, to) = (child(&parent, from)?, child(&parent, to)?);
        self.bound(from.as_ref().map(NodeRef::from), to.as_ref().map(NodeRef::from));
        Ok(self)
    }

    /// Leaves out the child `""`, as M's `$ORDER` does.
    #[must_use]
    pub fn without_empty(mut self) -> Cursor {
        if let Over::Children(parent) = &self.over {
            let mut low = Vec::new();
            range::after_empty_child(parent, &mut low);
            // A bound longer than any key would be refused; a parent that long has no children.
            if low > self.low && low.len() <= limit(self.local) {
                self.low = low;
            }
        }
        self
    }

    /// Does not read values: a little faster where only subscripts are wanted.
    #[must_use]
    pub fn without_values(mut self) -> Cursor {
        self.with_values = false;
        self
    }

    /// Does not tell either which children have values.
    pub(crate) fn counting(mut self) -> Cursor {
        if let Over::Children(parent) = &self.over {
            self.glance = Glance::Child(parent.len());
        }
        self.without_values()
    }

    /// Puts the cursor back to where it began.
    pub fn rewind(&mut self) {
        self.place = Place::Fresh;
    }

    /// Puts the cursor before `node`, which need not exist: [`Cursor::next`] answers it or what
    /// follows it, [`Cursor::previous`] what lies before it.
    pub fn seek<'n>(&mut self, node: impl Into<NodeRef<'n>>) {
        self.stand_before(node.into().encoded());
    }

    /// Puts the cursor behind the subtree of `node`: [`Cursor::next`] answers what follows all of it.
    pub fn seek_past<'n>(&mut self, node: impl Into<NodeRef<'n>>) {
        self.stand_before(&past(node.into()));
    }

    fn stand_before(&mut self, key: &[u8]) {
        if key <= &self.low[..] {
            self.place = Place::BeforeFirst;
        } else if key >= &self.high[..] {
            self.place = Place::AfterLast;
        } else {
            self.key.clear();
            self.key.extend_from_slice(key);
            self.place = Place::Before;
        }
    }

    /// Steps to the next entry; false at the end, behind which the cursor then stands.
    ///
    /// # Errors
    /// As [`Session::get`]; the cursor has not moved.
    #[inline]
    pub fn next(&mut self, session: &mut Session) -> Result<bool> {
        if !self.ahead.backwards && self.advance(session) {
            return self.arrive();
        }
        self.read(session, false)
    }

    /// Steps to the previous entry; false at the beginning, before which the cursor then stands.
    ///
    /// # Errors
    /// As [`Cursor::next`].
    #[inline]
    pub fn previous(&mut self, session: &mut Session) -> Result<bool> {
        let is_there = if self.ahead.backwards && self.advance(session) {
            self.arrive()?
        } else {
            self.read(session, true)?
        };
        // The last key of a child's subtree is what was found; the child's own value lies elsewhere.
        if is_there && !self.has_value && matches!(self.over, Over::Children(_)) {
            self.find_own_value(session)?;
        }
        Ok(is_there)
    }

    /// Steps to the next of the entries that were read together, if they are as they were and there is one.
    #[inline]
    fn advance(&mut self, session: &Session) -> bool {
        if self.place != Place::At || !session.trees.are_current(self.local, &self.entries) {
            return false;
        }
        match &self.over {
            Over::Valued => self.entries.advance(),
            Over::Children(_) => self.entries.advance_past(self.length),
        }
    }

    /// Steps by reading entries.
    fn read(&mut self, session: &mut Session, backwards: bool) -> Result<bool> {
        let end = if backwards { Place::BeforeFirst } else { Place::AfterLast };
        if self.place == end {
            return Ok(false);
        }
        let (is_at, left) = (self.place == Place::At, self.entries.ahead());
        let outcome = if !is_at || self.ahead.backwards != backwards {
            Outcome::Begun
        } else if left > 0
            && (self.ahead.stepped <= 1 || !session.trees.are_current(self.local, &self.entries))
        {
            Outcome::Vain
        } else {
            Outcome::Used
        };
        self.ahead.decide(backwards, outcome);
        // NB: a single entry comes from a back end that reads no more at once, and from there the walk goes on as ever: a server
        // reads ahead of walks by itself, and knows one by how its steps follow each other.
        if is_at && self.ahead.most > 1 && left == 0 && *self.entries.origin() != Origin::default() {
            // What lies right beside the last one that was read: perhaps below the same child.
            copy(self.entries.key(), &mut self.seek);
            if !self.ask(session, false, *self.entries.origin())? {
                self.place = end;
                return Ok(false);
            }
            if self.is_past_child() {
                return self.take();
            }
        }
        let inclusive = self.aim(backwards);
        if !self.ask(session, inclusive, Origin::default())? {
            self.place = end;
            return Ok(false);
        }
        self.take()
    }

    /// Has entries read from the key sought on, and whether there are any.
    fn ask(&mut self, session: &mut Session, inclusive: bool, after: Origin) -> Result<bool> {
        let Ahead { backwards, most, .. } = self.ahead;
        let bound = if backwards { &self.low } else { &self.high };
        let scan =
            Scan { from: &self.seek, inclusive, bound, backwards, values: self.with_values, most, after };
        Ok(session.trees.glance_entries(self.local, &scan, self.glance, &mut self.spare)?)
    }

    /// Makes the key sought that from which the next step leads, and tells whether it counts itself.
    fn aim(&mut self, backwards: bool) -> bool {
        let (key, inclusive) = match self.place {
            Place::At => (&self.entries.key()[..self.length], matches!(self.over, Over::Children(_))),
            Place::Before => (&self.key[..], true),
            Place::Fresh if backwards => (&self.high[..], true),
            Place::Fresh | Place::BeforeFirst => (&self.low[..], true),
            Place::AfterLast => (&self.high[..], true),
        };
        copy(key, &mut self.seek);
        if self.place == Place::At && inclusive && !backwards {
            self.seek.push(0xFF);
        }
        inclusive
    }

    /// Steps through what was just read to the first entry that does not lie below the child of before.
    fn is_past_child(&mut self) -> bool {
        if matches!(self.over, Over::Valued) {
            return true;
        }
        let child = &self.entries.key()[..self.length];
        while self.spare.key().starts_with(child) {
            if !self.spare.advance() {
                return false;
            }
        }
        true
    }

    /// Makes what was just read the entries that it goes through.
    fn take(&mut self) -> Result<bool> {
        std::mem::swap(&mut self.entries, &mut self.spare);
        self.arrive()
    }

    /// Finds the value of a child that was come to by a key below it.
    fn find_own_value(&mut self, session: &mut Session) -> Result<()> {
        let child = &self.entries.key()[..self.length];
        let value = (&mut self.own, self.with_values);
        self.has_value = session.trees.own_value(self.local, child, value)?;
        self.is_own = self.has_value;
        Ok(())
    }

    /// Steps so many entries forward and answers how many there were; if fewer, the cursor stands behind the end.
    /// The entries between are counted, a page of them at a time, and only the last one is read. Over children this is
    /// so forward and outside of transactions, else it is as many calls of [`Cursor::next`].
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-skip-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Cursor};
    ///
    /// for number in 0..100 {
    ///     session.set(&node!("^line", number)?, number * number)?;
    /// }
    /// let mut cursor = Cursor::subtree(&node!("^line")?);
    /// assert_eq!(cursor.skip(&mut session, 51)?, 51);
    /// assert_eq!(cursor.node()?, node!("^line", 50)?);
    /// assert_eq!(cursor.skip(&mut session, 100)?, 49);
    /// assert_eq!(cursor.skip_back(&mut session, 100)?, 100);
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::get`]; the cursor may have moved.
    pub fn skip(&mut self, session: &mut Session, entries: u64) -> Result<u64> {
        self.leap(session, entries, false)
    }

    /// Steps so many entries back, as [`Cursor::skip`] does forward.
    ///
    /// # Errors
    /// As [`Cursor::skip`].
    pub fn skip_back(&mut self, session: &mut Session, entries: u64) -> Result<u64> {
        self.leap(session, entries, true)
    }

    fn leap(&mut self, session: &mut Session, entries: u64, backwards: bool) -> Result<u64> {
        let mut done = 0;
        // What was only counted has no value here.
        let counted = if self.with_values { entries.saturating_sub(1) } else { entries };
        let found = if counted > 0 { self.count(session, counted, backwards)? } else { None };
        if let Some(found) = found {
            done = found;
            if done < counted {
                self.place = if backwards { Place::BeforeFirst } else { Place::AfterLast };
                return Ok(done);
            }
            self.take()?;
            self.has_value &= !self.with_values;
            self.ahead = Ahead::default();
        }
        while done < entries {
            let found = if backwards { self.previous(session)? } else { self.next(session)? };
            if !found {
                break;
            }
            done += 1;
        }
        Ok(done)
    }

    /// Counts so many entries ahead; if there are as many, the last one's key is what was found. None: step.
    fn count(&mut self, session: &mut Session, most: u64, backwards: bool) -> Result<Option<u64>> {
        let here = match self.place {
            Place::Fresh if backwards => &self.high[..],
            Place::Fresh | Place::BeforeFirst => &self.low,
            Place::At => &self.entries.key()[..self.length],
            Place::Before => &self.key[..],
            Place::AfterLast => &self.high,
        };
        copy(here, &mut self.seek);
        if self.place == Place::At && !backwards {
            // The smallest key above the entry's, or above all in its subtree.
            self.seek.push(if matches!(self.over, Over::Valued) { 0 } else { 0xFF });
        }
        let (low, high) = if backwards { (&self.low, &self.seek) } else { (&self.seek, &self.high) };
        let span = Span { low, high, backwards, most };
        let tree = session.trees.of(self.local);
        let (found, _) = self.spare.single();
        Ok(match &self.over {
            Over::Valued => Some(tree.count(&span, found)?),
            Over::Children(parent) => {
                // NB: it may be asked about bytes that are no key.
                let child = |key: &[u8]| {
                    let codes = key.get(parent.len()..).unwrap_or(&[]);
                    perilune_key::code_len(codes).map_or(key.len(), |length| parent.len() + length)
                };
                tree.count_groups(&span, &child, found)?
            }
        })
    }

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

    fn over(local: bool, over: Over, low: Vec<u8>, high: Vec<u8>) -> Cursor {
        let glance = match &over {
            Over::Children(parent) => Glance::Entry(parent.len()),
            Over::Valued => Glance::Whole,
        };
        Cursor {
            local,
            over,
            glance,
            with_values: true,
            low,
            high,
            place: Place::Fresh,
            entries: Entries::default(),
            spare: Entries::default(),
            length: 0,
            has_value: false,
            is_own: false,
            own: Vec::new(),
            key: Vec::new(),
            seek: Vec::new(),
            ahead: Ahead::default(),
        }
    }

    /// Makes the key at which the entries stand, or the child on the way to it, the entry; true.
    #[inline]
    fn arrive(&mut self) -> Result<bool> {
        let key = self.entries.key();
        let length = match &self.over {
            Over::Valued => Ok(key.len()),
            Over::Children(parent) => {
                let codes = key.get(parent.len()..).unwrap_or(&[]);
                perilune_key::code_len(codes).map(|length| parent.len() + length)
            }
        };
        // NB: what has no length is damaged; then all of it is the entry, and an error.
        self.length = *length.as_ref().unwrap_or(&key.len());
        self.has_value = self.length == key.len();
        self.is_own = false;
        self.ahead.stepped += 1;
        self.place = Place::At;
        length?;
        Ok(true)
    }
}

#[cold]
fn no_entry() -> Error {
    Error::invalid("the cursor stands at no entry: step it first, and only while it answers true")
}

/// Where the descendants of `node` end.
fn past(node: NodeRef<'_>) -> Vec<u8> {
    [node.encoded(), &[0xFF]].concat()
}

fn copy(from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(from);
}

fn child(parent: &Node, bound: Bound<impl IntoSubscript>) -> Result<Bound<Node>> {
    Ok(match bound {
        Bound::Included(subscript) => Bound::Included(parent.child(subscript)?),
        Bound::Excluded(subscript) => Bound::Excluded(parent.child(subscript)?),
        Bound::Unbounded => Bound::Unbounded,
    })
}

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
