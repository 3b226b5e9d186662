//! Changing rows: constraints, the record, the entries of all indexes.
//!
//! Invariants
//! - All constraints that a row itself can break are checked before anything of it is written: a statement that leaves such rows
//!   out (OR IGNORE) then has changed nothing for them.
//! - Each index has exactly the entries of the rows that are there, at the end of each change.
//! - REPLACE removes every row that is in the way, with its entries; one with the same key is written over.

mod constraints;
mod follow;
mod leave;
mod references;

use std::rc::Rc;

use perilune::key::{decode_int, KeyBuf};
use perilune::{node, NodeRef, RangeEnds, Session, Value as NodeValue, ValueRef as NodeValueRef};
use perilune_sqlite::Conflict;

use crate::computed::compute;
use crate::error::{Error, Result, SqlState};
use crate::over::{self, table_key};
use crate::row::{self, index_key, root_key, row_key, Row};
use crate::schema::{Event, Index, Key, Table, Timing};
use crate::stage::Stage;
use crate::token::fold;
use crate::used;
use crate::value::{Value, ValueRef};

pub(crate) use self::constraints::names_of;

/// What changes rows of a table.
pub(crate) struct Writer<'a> {
    pub(crate) table: &'a Table,
    pub(crate) stage: &'a Stage,
    pub(crate) conflict: Conflict,
}

/// A row as it is to be.
struct Fresh {
    row: Row,
    /// Its node.
    key: KeyBuf,
    /// How long the root's key is.
    root: usize,
    rowid: i64,
    /// No row has its number.
    is_free: bool,
}

/// The row of a trigger's as it is to be.
enum New<'a> {
    Nothing,
    /// It is not written yet, and triggers may change it.
    Open(&'a mut Row),
    Written(&'a Row),
}

impl New<'_> {
    fn row(&self) -> Option<&Row> {
        match self {
            New::Nothing => None,
            New::Open(row) => Some(row),
            New::Written(row) => Some(row),
        }
    }
}

/// The number of a new row.
struct Chosen {
    rowid: i64,
    is_free: bool,
}

impl Fresh {
    fn suffix(&self) -> &[u8] {
        &self.key.as_bytes()[self.root..]
    }
}

impl Writer<'_> {
    /// Inserts a row, whose values have their affinities; answers its number.
    pub(crate) fn insert(&self, session: &mut Session, given: ValueRef<'_>, mut row: Row) -> Result<i64> {
        let omitted = self.stage.frame().omitted;
        for column in omitted.iter().copied() {
            row[column] = self.default(session, column)?;
        }
        self.fire(session, Timing::Before, Event::Insert, None, New::Open(&mut row), &[])?;
        self.generate(session, &mut row)?;
        let Chosen { rowid, is_free } = self.choose_rowid(session, given, &mut row)?;
        self.check(session, &mut row)?;
        let mut fresh = Fresh { is_free, ..self.fresh(session, row, rowid)? };
        if let Some(rowid) = self.upsert(session, &fresh)? {
            return Ok(rowid);
        }
        let mut old = Row::new();
        let is_there = !is_free && self.read(session, fresh.key.as_bytes(), fresh.root, &mut old)?;
        if is_there {
            self.resolve(self.table.key_resolution, &self.key_name())?;
        }
        let old = is_there.then_some(old);
        self.make_room(session, &fresh, old.as_ref(), fresh.suffix())?;
        self.stamp(session, is_there, None, &mut fresh)?;
        self.put(session, old.as_ref(), fresh.suffix(), &fresh)?;
        self.check_parents(session, &fresh.row, None)?;
        if let Some(old) = &old {
            self.tell_children(session, old, Some(&fresh.row))?;
        }
        self.note(fresh.rowid, &fresh.row);
        self.fire(session, Timing::After, Event::Insert, None, New::Written(&fresh.row), &[])?;
        Ok(fresh.rowid)
    }

    /// Makes the row with this key another one; `change` puts the new values into it.
    pub(crate) fn update(
        &self,
        session: &mut Session,
        suffix: &[u8],
        new_rowid: Option<i64>,
        touched: &[usize],
        change: impl FnOnce(&mut Row) -> Result<()>,
    ) -> Result<()> {
        let (key, root) = self.key_of(suffix)?;
        let mut old = Row::new();
        if !self.read(session, key.as_bytes(), root, &mut old)? {
            return Ok(());
        }
        let mut row = old.clone();
        if let (Some(rowid), Key::Rowid { column: Some(column), .. }) = (new_rowid, &self.table.key) {
            row[*column] = Value::Integer(rowid);
        }
        change(&mut row)?;
        self.fire(session, Timing::Before, Event::Update, Some(&old), New::Open(&mut row), touched)?;
        self.generate(session, &mut row)?;
        self.check(session, &mut row)?;
        let rowid = match &self.table.key {
            Key::Rowid { column: Some(column), .. } => match row[*column] {
                Value::Integer(rowid) => rowid,
                _ => return Err(mismatch()),
            },
            _ => new_rowid.or(decode_int(suffix)).unwrap_or(0),
        };
        let mut fresh = self.fresh(session, row, rowid)?;
        let moves = fresh.suffix() != suffix;
        if moves {
            let mut other = Row::new();
            if self.read(session, fresh.key.as_bytes(), fresh.root, &mut other)? {
                self.resolve(self.table.key_resolution, &self.key_name())?;
                self.remove(session, fresh.suffix(), &other)?;
            } else {
                self.refuse_evicted(session, &fresh)?;
            }
        }
        self.make_room(session, &fresh, Some(&old), suffix)?;
        self.stamp(session, true, Some(suffix), &mut fresh)?;
        self.put(session, Some(&old), suffix, &fresh)?;
        if moves {
            self.remove_node(session, &key)?;
        }
        self.check_parents(session, &fresh.row, Some(&old))?;
        self.tell_children(session, &old, Some(&fresh.row))?;
        self.note(fresh.rowid, &fresh.row);
        self.fire(session, Timing::After, Event::Update, Some(&old), New::Written(&fresh.row), touched)
    }

    /// Removes the row with this key.
    pub(crate) fn delete(&self, session: &mut Session, suffix: &[u8]) -> Result<()> {
        let (key, root) = self.key_of(suffix)?;
        let mut old = Row::new();
        if !self.read(session, key.as_bytes(), root, &mut old)? {
            return Ok(());
        }
        self.fire(session, Timing::Before, Event::Delete, Some(&old), New::Nothing, &[])?;
        self.remove(session, suffix, &old)?;
        self.note(decode_int(suffix).unwrap_or(0), &old);
        self.fire(session, Timing::After, Event::Delete, Some(&old), New::Nothing, &[])
    }

    /// Keeps a row for a statement that answers what it has changed.
    fn note(&self, rowid: i64, row: &Row) {
        if let Some(noted) = self.stage.frame().noted {
            noted.borrow_mut().push((rowid, Rc::new(row.clone())));
        }
    }

    fn key_of(&self, suffix: &[u8]) -> Result<(KeyBuf, usize)> {
        let mut key = table_key(self.table)?;
        let root = key.as_bytes().len();
        row::push_suffix(&mut key, suffix)?;
        Ok((key, root))
    }

    /// Reads the row at a key, with what its indexes hold of it.
    fn read(&self, session: &mut Session, key: &[u8], root: usize, row: &mut Row) -> Result<bool> {
        let is_there = over::read_row(session, self.table, key, root, row)?;
        if is_there {
            compute(self.stage, session, self.table, row)?;
            used::read(session, self.table, &key[root..], row)?;
        }
        Ok(is_there)
    }

    fn fresh(&self, session: &mut Session, mut row: Row, rowid: i64) -> Result<Fresh> {
        compute(self.stage, session, self.table, &mut row)?;
        let mut key = table_key(self.table)?;
        let root = key.as_bytes().len();
        row_key(self.table, rowid, &row, &mut key)?;
        Ok(Fresh { row, key, root, rowid, is_free: false })
    }

    /// The number of a new row, which also stands in its column, if there is one for it; and whether no row has it.
    fn choose_rowid(&self, session: &mut Session, given: ValueRef<'_>, row: &mut Row) -> Result<Chosen> {
        let Key::Rowid { column, autoincrement } = &self.table.key else {
            return Ok(Chosen { rowid: 0, is_free: false });
        };
        let told = match column.map(|column| &row[column]) {
            Some(Value::Integer(rowid)) => Some(*rowid),
            Some(Value::Null) | None => match given {
                ValueRef::Integer(rowid) => Some(rowid),
                _ => None,
            },
            Some(_) => return Err(mismatch()),
        };
        let sequence = match autoincrement {
            true => Some(node!("^sql", "sequence", &*fold(&self.table.name))?),
            false => None,
        };
        let before = match &sequence {
            Some(sequence) => session.get_int(sequence)?.unwrap_or(0),
            None => 0,
        };
        let rowid = match told {
            Some(rowid) => rowid,
            None => {
                let used = before.max(self.last_rowid(session)?.unwrap_or(0));
                let what = "the table's numbers are used up: give the new row one yourself";
                used.checked_add(1).ok_or_else(|| Error::new(SqlState::LIMIT, what))?
            }
        };
        if let Some(sequence) = sequence.filter(|_| rowid > before) {
            session.set(&sequence, rowid)?;
        }
        if let Some(column) = column {
            row[*column] = Value::Integer(rowid);
        }
        // NB: the last number is the largest, so that the next one names no row.
        Ok(Chosen { rowid, is_free: told.is_none() })
    }

    /// The largest number of a row.
    fn last_rowid(&self, session: &mut Session) -> Result<Option<i64>> {
        let root = table_key(self.table)?;
        if self.table.over.is_some() || self.table.has_documents() {
            return over::last_rowid(session, &root);
        }
        let node = NodeRef::from_encoded(root.as_bytes(), false);
        let Some((last, _)) = session.last_entry(node, std::ops::Bound::Unbounded)? else { return Ok(None) };
        match decode_int(&last.encoded()[root.as_bytes().len()..]) {
            Some(rowid) => Ok(Some(rowid)),
            // A program has put a node there that is no row, and stands behind them.
            None => over::last_rowid(session, &root),
        }
    }

    /// Makes sure that no unique index has another row's entry where the row's is to be.
    fn make_room(
        &self,
        session: &mut Session,
        fresh: &Fresh,
        old: Option<&Row>,
        suffix: &[u8],
    ) -> Result<()> {
        let mut in_the_way: Vec<Vec<u8>> = Vec::new();
        for index in self.table.indexes.iter().filter(|index| index.unique && index.holds(&fresh.row)) {
            let is_same =
                |old: &Row| index.columns.iter().all(|(column, _)| old[*column] == fresh.row[*column]);
            if old.is_some_and(|old| index.holds(old) && is_same(old)) {
                continue;
            }
            let mut entry = root_key(&index.root)?;
            if !index_key(index, &fresh.row, fresh.suffix(), &mut entry)? {
                continue;
            }
            let Some(other) = self.entry_of(session, entry.as_bytes())? else { continue };
            if other != suffix && other != fresh.suffix() {
                self.resolve(index.resolution, &self.names_of(index))?;
                in_the_way.push(other);
            }
        }
        for other in in_the_way {
            let (key, root) = self.key_of(&other)?;
            let mut row = Row::new();
            if self.read(session, key.as_bytes(), root, &mut row)? {
                self.remove(session, &other, &row)?;
            }
        }
        Ok(())
    }

    /// The key of the row that a unique index's entry names.
    fn entry_of(&self, session: &mut Session, entry: &[u8]) -> Result<Option<Vec<u8>>> {
        Ok(match session.get(NodeRef::from_encoded(entry, false))? {
            Some(NodeValue::Int(rowid)) => {
                let mut key = table_key(self.table)?;
                let root = key.as_bytes().len();
                key.push_int(rowid).map_err(perilune::Error::from)?;
                Some(key.as_bytes()[root..].to_vec())
            }
            Some(NodeValue::String(suffix)) => Some(suffix),
            _ => None,
        })
    }

    /// Writes the row and its entries; `old` is what was there, under the key `suffix`.
    fn put(&self, session: &mut Session, old: Option<&Row>, suffix: &[u8], fresh: &Fresh) -> Result<()> {
        for index in &self.table.indexes {
            self.put_entry(session, index, old, suffix, fresh)?;
        }
        if let Some(over) = &self.table.over {
            let from = self.key_of(suffix)?.0;
            let old = old.map(|old| (old, from.as_bytes()));
            return over::write(session, over, old, &fresh.row, fresh.key.as_bytes());
        }
        let mut record = Vec::with_capacity(64);
        row::write_record(self.table, &fresh.row, &mut record);
        session.set(NodeRef::from_encoded(fresh.key.as_bytes(), false), NodeValueRef::Record(&record))?;
        if self.table.has_documents() {
            let there = old.filter(|_| suffix == fresh.suffix());
            over::write_documents(session, self.table, there, &fresh.row, fresh.key.as_bytes())?;
        }
        Ok(())
    }

    fn put_entry(
        &self,
        session: &mut Session,
        index: &Index,
        old: Option<&Row>,
        suffix: &[u8],
        fresh: &Fresh,
    ) -> Result<()> {
        let mut entry = root_key(&index.root)?;
        let alone = match index.holds(&fresh.row) {
            true => Some(index_key(index, &fresh.row, fresh.suffix(), &mut entry)?),
            false => None,
        };
        if let Some(old) = old.filter(|old| index.holds(old)) {
            let mut former = root_key(&index.root)?;
            index_key(index, old, suffix, &mut former)?;
            let stays = alone.is_some() && former.as_bytes() == entry.as_bytes();
            if stays && suffix == fresh.suffix() {
                return Ok(());
            }
            if !stays {
                session.delete_value(NodeRef::from_encoded(former.as_bytes(), false))?;
            }
        }
        match alone {
            Some(alone) => write_entry(session, self.table, alone, entry.as_bytes(), fresh.suffix()),
            None => Ok(()),
        }
    }
}

/// Writes an entry of an index: of one that is alone, the key of its row is the value.
pub(crate) fn write_entry(
    session: &mut Session,
    table: &Table,
    alone: bool,
    entry: &[u8],
    suffix: &[u8],
) -> Result<()> {
    let value = match (alone, table.has_rowid()) {
        (false, _) => NodeValueRef::Null,
        (true, true) => NodeValueRef::Int(decode_int(suffix).unwrap_or(0)),
        (true, false) => NodeValueRef::String(suffix),
    };
    session.set(NodeRef::from_encoded(entry, false), value)?;
    Ok(())
}

fn mismatch() -> Error {
    Error::new(SqlState::TYPE, "datatype mismatch: an INTEGER PRIMARY KEY is an integer")
}
