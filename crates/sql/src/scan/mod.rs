//! Walking over rows, as a plan says.
//!
//! The table's own order is that of its rows' nodes; an index's order is that of its entries, each of which names a row that is
//! then read, unless the entry holds all that is asked for.
//!
//! Invariants
//! - `filter` sets everything anew: a cursor comes from a pool with what it last had.
//! - A node that is no row of the table (without a record, of another depth, a key that does not decode) is passed over.
//! - Bounds leave out no row that SQLite would find; where they may let one more in, SQLite checks again.

mod arrive;
mod bounds;

use std::ops::Bound;

use perilune::key::KeyBuf;
use perilune::{Cursor, NodeRef, Session};
use perilune_sqlite::Arguments;

use self::bounds::{bound_of, component_of, number_of, push_value, within};
use crate::error::{Result, SqlState};
use crate::over;
use crate::plan::{
    self, COVERING, DESCENDING, EQUAL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL, LIST, LOOSE, NULL, NUMBER,
};
use crate::row::{push_component, root_key};
use crate::schema::{Collation, Index, Key, Table};
use crate::value::{Affinity, Value, ValueRef};

/// Where the rows come from.
#[derive(Debug, Default)]
// One for each cursor of SQLite's, which come from a pool.
#[allow(clippy::large_enum_variant)]
enum Source {
    #[default]
    None,
    /// One row, or none any more.
    One,
    /// Rows with these numbers, the next one last.
    List(Vec<i64>),
    /// Nodes of a walk.
    Walk(Cursor),
}

/// A walk over rows of a table.
#[derive(Debug)]
pub(crate) struct Scan {
    source: Source,
    /// Which index, if one.
    index: Option<usize>,
    covering: bool,
    descending: bool,
    /// The node of the row, unless `number` names it.
    key: KeyBuf,
    /// The row's number, where the walk has found it and nobody has asked for its node.
    number: Option<i64>,
    /// How long the key of the table's root is, and how many subscripts that has.
    root: usize,
    depth: usize,
    /// The record of the row, unless it lies in the cursor.
    record: Vec<u8>,
    is_in_cursor: bool,
    /// What an entry of the index says.
    values: Vec<Value>,
    left: Option<u64>,
    is_at_end: bool,
    /// What the walk goes over if it has no bounds: the index, and whether that is covering.
    whole: Option<(Option<usize>, bool)>,
    /// Rows are found: by their keys, or through an index on what they are.
    finds: bool,
    /// The statement names one row, by all columns of its key.
    names: bool,
}

/// What the bounds of a walk are.
#[derive(Default)]
struct Bounds {
    low: Option<Vec<u8>>,
    high: Option<Vec<u8>>,
    is_empty: bool,
}

impl Scan {
    /// A walk that has not begun, over the table whose root has this key.
    pub(crate) fn new(key: KeyBuf) -> Scan {
        Scan {
            source: Source::None,
            index: None,
            covering: false,
            descending: false,
            root: key.as_bytes().len(),
            depth: key.depth(),
            key,
            number: None,
            record: Vec::new(),
            is_in_cursor: false,
            values: Vec::new(),
            left: None,
            is_at_end: true,
            whole: None,
            finds: false,
            names: false,
        }
    }

    /// Begins, by a plan.
    pub(crate) fn filter(
        &mut self,
        table: &Table,
        session: &mut Session,
        number: i32,
        text: &str,
        arguments: Arguments<'_>,
    ) -> Result<()> {
        let signs = text.split(' ').next().unwrap_or("");
        self.index = usize::try_from(number & NUMBER).ok().and_then(|number| number.checked_sub(1));
        self.covering = number & COVERING != 0;
        self.descending = number & DESCENDING != 0;
        let before = (std::mem::take(&mut self.source), self.whole.take());
        self.is_at_end = true;
        self.is_in_cursor = false;
        self.number = None;
        self.names = false;
        self.left = None;
        let mut offset = 0;
        for (at, sign) in signs.chars().enumerate() {
            if let (plan::LIMIT | plan::OFFSET, ValueRef::Integer(count)) = (sign, arguments.at(at).get()) {
                match sign {
                    plan::OFFSET => offset = u64::try_from(count).unwrap_or(0),
                    _ => self.left = u64::try_from(count).ok(),
                }
            }
        }
        let is_whole = !signs.contains([EQUAL, LIST, NULL, GREATER, GREATER_EQUAL, LESS, LESS_EQUAL]);
        self.whole = is_whole.then_some((self.index, self.covering));
        self.finds = !is_whole && self.index.is_none_or(|index| !table.is_on_usage(&table.indexes[index]));
        let begun = match (&table.key, self.index) {
            // As in the inner loop of a join: from the start, with the memory that it has.
            _ if is_whole && self.whole == before.1 && matches!(before.0, Source::Walk(_)) => {
                self.source = before.0;
                if let Source::Walk(cursor) = &mut self.source {
                    cursor.rewind();
                }
                self.key.truncate_depth(self.depth);
                true
            }
            (Key::Rowid { .. }, None) => self.begin_by_rowid(session, signs, arguments)?,
            _ => self.begin_by_components(table, session, signs, number & LOOSE != 0, arguments)?,
        };
        if !begun {
            return Ok(());
        }
        self.is_at_end = false;
        if offset > 0 && !self.skip(table, session, offset)? {
            self.is_at_end = true;
            return Ok(());
        }
        self.next(table, session)
    }

    /// Leaves out so many rows; false: there are no more.
    fn skip(&mut self, table: &Table, session: &mut Session, offset: u64) -> Result<bool> {
        let left = self.left.take();
        for _ in 0..offset {
            self.next(table, session)?;
            if self.is_at_end {
                return Ok(false);
            }
        }
        self.left = left;
        Ok(true)
    }

    /// Begins in a table whose rows have numbers; false: there is none.
    fn begin_by_rowid(
        &mut self,
        session: &mut Session,
        signs: &str,
        arguments: Arguments<'_>,
    ) -> Result<bool> {
        let (mut low, mut high) = (i64::MIN, i64::MAX);
        for (at, sign) in signs.chars().enumerate() {
            let argument = arguments.at(at);
            match sign {
                plan::EQUAL => {
                    let Some(rowid) = number_of(argument.get()) else { return Ok(false) };
                    self.set_rowid(rowid)?;
                    self.source = Source::One;
                    return Ok(true);
                }
                plan::LIST => {
                    let mut list = Vec::new();
                    argument
                        .list(|value| list.extend(number_of(value)))
                        .map_err(|failure| crate::Error::new(SqlState::INTERNAL, failure.message))?;
                    list.sort_unstable_by(|a, b| b.cmp(a));
                    list.dedup();
                    self.source = Source::List(list);
                    return Ok(true);
                }
                plan::NULL => return Ok(false),
                plan::LIMIT | plan::OFFSET => {}
                _ => match bound_of(argument.get(), sign) {
                    None => return Ok(false),
                    Some((from, to)) => (low, high) = (low.max(from), high.min(to)),
                },
            }
        }
        if low > high {
            return Ok(false);
        }
        self.key.truncate_depth(self.depth);
        let cursor = Cursor::children(NodeRef::from_encoded(self.key.as_bytes(), false));
        let cursor = if (low, high) == (i64::MIN, i64::MAX) {
            cursor
        } else {
            cursor.between(Bound::Included(low), Bound::Included(high))?
        };
        let _ = session;
        self.source = Source::Walk(cursor);
        Ok(true)
    }

    /// Begins in an index, or in a table whose key is of columns; false: there is no row.
    fn begin_by_components(
        &mut self,
        table: &Table,
        session: &mut Session,
        signs: &str,
        is_loose: bool,
        arguments: Arguments<'_>,
    ) -> Result<bool> {
        let index = self.index.map(|index| &table.indexes[index]);
        let mut prefix = match index {
            Some(index) => root_key(&index.root)?,
            None => over::table_key(table)?,
        };
        let mut at = 0;
        let mut narrows = true;
        for (position, sign) in signs.chars().enumerate() {
            let value = match sign {
                plan::EQUAL => arguments.at(position).get(),
                plan::NULL => ValueRef::Null,
                _ => break,
            };
            at = position + 1;
            if sign == plan::EQUAL && value == ValueRef::Null {
                return Ok(false);
            }
            let affinity = component_of(table, index, position).0;
            let is_open = is_loose
                && match affinity {
                    Affinity::Text => !matches!(value, ValueRef::Text(_) | ValueRef::Null),
                    Affinity::Blob => !matches!(value, ValueRef::Blob(_) | ValueRef::Null),
                    _ => false,
                };
            narrows &= !is_open;
            // A value that no entry can have has no row.
            if narrows && push_value(table, index, position, value, &mut prefix).is_err() {
                return Ok(false);
            }
        }
        self.finds &= narrows;
        self.names = narrows && index.is_none() && at == table.key_columns().len();
        let bounds = if narrows {
            self.bounds(table, index, &prefix, at, signs, arguments)?
        } else {
            Bounds::default()
        };
        if bounds.is_empty {
            return Ok(false);
        }
        let start = NodeRef::from_encoded(prefix.as_bytes(), false);
        let mut cursor = Cursor::subtree(start);
        if self.covering {
            cursor = cursor.without_values();
        }
        if bounds.low.is_some() || bounds.high.is_some() {
            let node = |bytes| NodeRef::from_encoded(bytes, false);
            let low = bounds.low.as_deref().map_or(Bound::Unbounded, |low| Bound::Included(node(low)));
            let high = bounds.high.as_deref().map_or(Bound::Unbounded, |high| Bound::Excluded(node(high)));
            cursor.bound(low, high);
        }
        let _ = session;
        self.source = Source::Walk(cursor);
        Ok(true)
    }

    /// The bounds that ranges on the component at `at` make, which follows `prefix`.
    fn bounds(
        &self,
        table: &Table,
        index: Option<&Index>,
        prefix: &KeyBuf,
        at: usize,
        signs: &str,
        arguments: Arguments<'_>,
    ) -> Result<Bounds> {
        let mut bounds = Bounds::default();
        for (position, sign) in signs.chars().enumerate().skip(at) {
            if matches!(sign, plan::LIMIT | plan::OFFSET | plan::WHERE) {
                continue;
            }
            let value = arguments.at(position).get();
            if value == ValueRef::Null {
                return Ok(Bounds { is_empty: true, ..Bounds::default() });
            }
            let (value, sign) = within(component_of(table, index, at).0.apply(Value::of(value)), sign);
            let mut key = prefix.clone();
            let pushed = push_value(table, index, at, value.as_ref(), &mut key);
            let mut bytes = key.as_bytes().to_vec();
            if matches!(sign, plan::GREATER | plan::LESS_EQUAL) {
                // No code begins with FF: this is behind all that has the value.
                bytes.push(0xFF);
            }
            let is_low = matches!(sign, plan::GREATER | plan::GREATER_EQUAL);
            // NB: a text that is too long bounds nothing; SQLite checks texts again.
            let bound = pushed.is_ok().then_some(bytes);
            if is_low {
                bounds.low = bound;
            } else {
                bounds.high = bound;
            }
        }
        if bounds.high.is_some() && bounds.low.is_none() && index.is_some() {
            // NULL is less than nothing.
            let mut key = prefix.clone();
            push_component(&mut key, ValueRef::Null, Collation::Binary)?;
            bounds.low = Some([key.as_bytes(), &[0xFF]].concat());
        }
        Ok(bounds)
    }

    /// Has the key name the row, whose number the walk has found.
    fn name_row(&mut self) -> Result<()> {
        self.number.take().map_or(Ok(()), |rowid| self.set_rowid(rowid))
    }

    fn set_rowid(&mut self, rowid: i64) -> Result<()> {
        self.number = None;
        self.key.truncate_depth(self.depth);
        self.key.push_int(rowid).map_err(perilune::Error::from)?;
        Ok(())
    }

    /// Whether it stands behind the last row.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    /// Steps to the next row.
    pub(crate) fn next(&mut self, table: &Table, session: &mut Session) -> Result<()> {
        loop {
            if self.left == Some(0) {
                self.is_at_end = true;
                return Ok(());
            }
            let is_row = match &mut self.source {
                Source::None => {
                    self.is_at_end = true;
                    return Ok(());
                }
                Source::One => {
                    self.source = Source::None;
                    self.fetch(table, session)?
                }
                Source::List(list) => match list.pop() {
                    None => {
                        self.is_at_end = true;
                        return Ok(());
                    }
                    Some(rowid) => {
                        self.set_rowid(rowid)?;
                        self.fetch(table, session)?
                    }
                },
                Source::Walk(cursor) => {
                    let more =
                        if self.descending { cursor.previous(session)? } else { cursor.next(session)? };
                    if !more {
                        self.is_at_end = true;
                        return Ok(());
                    }
                    match self.index {
                        None if table.over.is_some() => self.arrive_over(table)?,
                        None => self.arrive(table)?,
                        Some(index) => self.arrive_by_index(table, &table.indexes[index], session)?,
                    }
                }
            };
            if is_row {
                self.left = self.left.map(|left| left - 1);
                return Ok(());
            }
        }
    }
}
