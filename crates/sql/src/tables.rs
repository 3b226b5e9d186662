//! Tables as SQLite sees them: virtual tables over rows, and one-row helpers for expressions.
//!
//! Invariants
//! - What a callback cannot do is kept by the stage as our own error; SQLite is told a code and a text.
//! - A table is the one of the schema's version that the connection has; when that changes, SQLite is told of another one.

use std::rc::Rc;

use perilune::key::KeyBuf;
use perilune::Session;
use perilune_sqlite::{
    Argument, Arguments, Change, Conflict, Cursor, Failure, IndexInfo, Module, Output, Table as SqliteTable,
};

use crate::computed::ROW_PREFIX;
use crate::error::{Error, Result, SqlState};
use crate::over::table_key;
use crate::plan;
use crate::scan::Scan;
use crate::schema::{Key, Table};
use crate::stage::Stage;
use crate::token::fold;
use crate::used::{self, Found};
use crate::value::{Value, ValueRef};
use crate::write::Writer;

/// The name of the module of tables.
pub(crate) const TABLES: &str = "perilune";
/// The name of the module of helpers.
pub(crate) const ROWS: &str = "perilune_row";

/// Makes tables.
pub(crate) struct Tables(pub(crate) Rc<Stage>);

/// Makes helpers.
pub(crate) struct Rows(pub(crate) Rc<Stage>);

/// A table over rows.
pub(crate) struct RowTable {
    stage: Rc<Stage>,
    table: Rc<Table>,
    root: KeyBuf,
}

fn find(stage: &Stage, name: &str) -> std::result::Result<Rc<Table>, Failure> {
    let table = stage.tables.borrow().get(&fold(name)).cloned();
    table.ok_or_else(|| Failure::new(format!("no such table: {name}")))
}

impl Module<Session> for Tables {
    type Table = RowTable;

    fn connect(
        &self,
        _session: &mut Session,
        name: &str,
    ) -> std::result::Result<(RowTable, String), Failure> {
        let table = find(&self.0, name)?;
        let declaration = table.declaration();
        let root = table_key(&table).map_err(|error| self.0.fail(error))?;
        Ok((RowTable { stage: Rc::clone(&self.0), table, root }, declaration))
    }
}

impl RowTable {
    fn change(&self, session: &mut Session, change: &Change<'_>, conflict: Conflict) -> Result<i64> {
        let table = &*self.table;
        if table.over.as_ref().is_some_and(|over| over.read_only) {
            let what = format!("{} is READONLY: it shows nodes, and changes none", table.name);
            return Err(Error::new(SqlState::READ_ONLY, what));
        }
        let writer = Writer { table, stage: &self.stage, conflict };
        match change {
            Change::Delete(key) => {
                writer.delete(session, &self.suffix(*key)?)?;
                Ok(0)
            }
            Change::Insert(key, columns) => {
                self.refuse_usage(session, *columns, None)?;
                let value = |(at, column): (usize, &crate::schema::Column)| {
                    column.store(Value::of(columns.at(at).get()))
                };
                let row = table.columns.iter().enumerate().map(value).collect();
                writer.insert(session, key.get(), row)
            }
            Change::Update(old, new, columns) => {
                let suffix = self.suffix(*old)?;
                self.refuse_usage(session, *columns, Some(&suffix))?;
                let rowid = match new.get() {
                    ValueRef::Integer(rowid) if table.has_rowid() => Some(rowid),
                    _ => None,
                };
                let is_touched = |at: &usize| !columns.at(*at).is_unchanged();
                let touched: Vec<usize> = if table.triggers.is_empty() {
                    Vec::new()
                } else {
                    (0..table.columns.len()).filter(is_touched).collect()
                };
                writer.update(session, &suffix, rowid, &touched, |row| {
                    for (at, column) in table.columns.iter().enumerate() {
                        let argument = columns.at(at);
                        let is_key = matches!(table.key, Key::Rowid { column: Some(key), .. } if key == at);
                        let value = || column.store(Value::of(argument.get()));
                        // NB: SQLite sets a rowid by its number, or by the column that is one; both are asked.
                        if is_key {
                            let told = value();
                            if told != Value::of(old.get()) {
                                row[at] = told;
                            }
                        } else if !argument.is_unchanged() && column.generated.is_none() {
                            row[at] = value();
                        }
                    }
                    Ok(())
                })?;
                Ok(0)
            }
        }
    }

    /// Fails if a statement writes a column that says how rows are used: what it gives is neither NULL nor what is there.
    fn refuse_usage(
        &self,
        session: &mut Session,
        columns: Arguments<'_>,
        suffix: Option<&[u8]>,
    ) -> Result<()> {
        for usage in &self.table.usage {
            let given = columns.at(usage.column);
            if given.is_unchanged() {
                continue;
            }
            // NB: UPDATE ... FROM gives all columns.
            let kept = match suffix {
                Some(suffix) => used::value(session, &self.table, usage.column, suffix)?,
                None => Value::Null,
            };
            if Value::of(given.get()) != kept {
                let name = usage.kind.column();
                let what = format!("{}.{name} says how the row is used: leave it out", self.table.name);
                return Err(Error::new(SqlState::REFUSED, what));
            }
        }
        Ok(())
    }

    /// The bytes of a row's key.
    fn suffix(&self, key: Argument<'_>) -> Result<Vec<u8>> {
        match key.get() {
            ValueRef::Blob(suffix) => Ok(suffix.to_vec()),
            ValueRef::Integer(rowid) => {
                let mut key = self.root.clone();
                key.push_int(rowid).map_err(perilune::Error::from)?;
                Ok(key.as_bytes()[self.root.as_bytes().len()..].to_vec())
            }
            _ => Err(Error::new(SqlState::INTERNAL, "a row has a key of another kind")),
        }
    }
}

impl SqliteTable<Session> for RowTable {
    type Cursor = RowCursor;

    fn best_index(&self, info: &mut IndexInfo<'_>) -> std::result::Result<(), Failure> {
        plan::best_index(&self.table, info);
        Ok(())
    }

    fn open(&self) -> RowCursor {
        RowCursor(Scan::new(self.root.clone()))
    }

    fn update(
        &self,
        session: &mut Session,
        change: &Change<'_>,
        conflict: Conflict,
    ) -> std::result::Result<i64, Failure> {
        match self.change(session, change, conflict) {
            Ok(rowid) => Ok(rowid),
            // With ON CONFLICT a statement is one that leaves rows out; other constraints still end it.
            Err(error) if !error.leaves_out() && !self.stage.frame().upserts.is_empty() => {
                let told = Failure::new(error.message());
                self.stage.fail(error);
                Err(told)
            }
            // Without, only a trigger asks for that: SQLite is told that the row is done.
            Err(error) if error.leaves_out() && conflict != Conflict::Ignore => Ok(0),
            Err(error) => Err(self.stage.fail(error)),
        }
    }
}

/// A walk over rows.
pub(crate) struct RowCursor(Scan);

impl RowCursor {
    /// Notes the row that it has come to as one that is used, if the table says how its rows are.
    fn note(&mut self, table: &RowTable) -> Result<()> {
        if table.table.usage.is_empty() || !table.stage.uses() {
            return Ok(());
        }
        let mut notes = table.stage.notes.borrow_mut();
        if let (true, Some((key, root))) = (notes.has_room(), self.0.found()?) {
            notes.find(Found { table: Rc::clone(&table.table), key: key.to_vec(), root });
        }
        Ok(())
    }
}

impl Cursor<Session> for RowCursor {
    type Table = RowTable;

    fn filter(
        &mut self,
        table: &RowTable,
        session: &mut Session,
        number: i32,
        text: &str,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        let begun = self.0.filter(&table.table, session, number, text, arguments);
        begun.and_then(|()| self.note(table)).map_err(|error| table.stage.fail(error))
    }

    fn next(&mut self, table: &RowTable, session: &mut Session) -> std::result::Result<(), Failure> {
        let next = self.0.next(&table.table, session);
        next.and_then(|()| self.note(table)).map_err(|error| table.stage.fail(error))
    }

    fn is_at_end(&self) -> bool {
        self.0.is_at_end()
    }

    fn column(
        &mut self,
        table: &RowTable,
        session: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        self.0
            .column(&table.table, &table.stage, session, column, output)
            .map_err(|error| table.stage.fail(error))
    }

    fn rowid(&mut self, _table: &RowTable) -> std::result::Result<i64, Failure> {
        Ok(self.0.rowid())
    }
}

/// A table of one row: the one that is being written.
pub(crate) struct OneRow {
    stage: Rc<Stage>,
}

impl Module<Session> for Rows {
    type Table = OneRow;

    fn connect(&self, _session: &mut Session, name: &str) -> std::result::Result<(OneRow, String), Failure> {
        let table = find(&self.0, name.strip_prefix(ROW_PREFIX).unwrap_or(name))?;
        let mut plain = (*table).clone();
        plain.key = Key::Rowid { column: None, autoincrement: false };
        Ok((OneRow { stage: Rc::clone(&self.0) }, plain.declaration()))
    }
}

impl SqliteTable<Session> for OneRow {
    type Cursor = OneRowCursor;

    fn best_index(&self, info: &mut IndexInfo<'_>) -> std::result::Result<(), Failure> {
        info.cost(1.0, 1, true);
        Ok(())
    }

    fn open(&self) -> OneRowCursor {
        OneRowCursor::default()
    }

    fn update(&self, _: &mut Session, _: &Change<'_>, _: Conflict) -> std::result::Result<i64, Failure> {
        Err(Failure::new("the row that is being written cannot be changed by an expression"))
    }
}

/// A walk over one row.
#[derive(Default)]
pub(crate) struct OneRowCursor {
    row: Rc<Vec<Value>>,
    number: i64,
    is_at_end: bool,
}

impl Cursor<Session> for OneRowCursor {
    type Table = OneRow;

    fn filter(
        &mut self,
        table: &OneRow,
        _session: &mut Session,
        _number: i32,
        _text: &str,
        _arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        self.row = Rc::clone(&table.stage.row.borrow());
        self.number = table.stage.row_number.get();
        self.is_at_end = false;
        Ok(())
    }

    fn next(&mut self, _table: &OneRow, _session: &mut Session) -> std::result::Result<(), Failure> {
        self.is_at_end = true;
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.is_at_end
    }

    fn column(
        &mut self,
        _table: &OneRow,
        _session: &mut Session,
        column: usize,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        output.set(self.row.get(column).map_or(ValueRef::Null, Value::as_ref));
        Ok(())
    }

    fn rowid(&mut self, _table: &OneRow) -> std::result::Result<i64, Failure> {
        Ok(self.number)
    }
}
