//! Indexes that code keeps: made, with their constructor called, and dropped, with their destructor.
//!
//! Entries are rows of a table of the index's name: a value, and the key of a row, which they refer to. So they are written by
//! statements, as any rows, and go with the row; a change of its key they follow.
//!
//! ```text
//! CREATE INDEX visits ON users(relindx()) LONG construct destruct
//! CREATE TABLE "visits"("value" LONG NOT NULL, "key" INTEGER NOT NULL, PRIMARY KEY("value", "key"), UNIQUE("key", "value"),
//!     FOREIGN KEY("key") REFERENCES "users" ON DELETE CASCADE ON UPDATE CASCADE)
//! SELECT "construct"('users', 'visits')
//! ```
//!
//! Invariants
//! - The index, its entries and what its constructor does come in one transaction, and go in one with what its destructor does.
//! - The entries' table is changed by nobody but with the index.

use perilune::Session;

use super::drop::drop_table;
use super::{at_once, check_name, create_table, existing};
use crate::answer::Nowhere;
use crate::catalog::{self, place};
use crate::definition::{self, CodeIndexText};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::schema::{CodeIndex, Collation, Table};
use crate::token::{fold, quote};

/// CREATE INDEX name ON table(function()) TYPE constructor, with a destructor behind that or without.
pub(super) fn create(
    engine: &Engine,
    session: &mut Session,
    if_not_exists: bool,
    name: &str,
    table: &str,
    text: &CodeIndexText,
) -> Result<()> {
    at_once(session, |session| {
        if if_not_exists && catalog::table_of_index(session, name)?.is_some() {
            return Ok(());
        }
        check_name(session, name)?;
        let table = existing(session, table)?;
        check(&table, text)?;
        let entries = definition::parse_table(&entries(&table, name, text), &[])?;
        create_table(session, false, name, &entries)?;
        let (name, owner) = (fold(name), fold(&table.name));
        session.set(&place(&["index", &name])?, &owner)?;
        let base = place(&["table", &owner, "coded", &name])?;
        session.set(&base.child("function")?, &text.function)?;
        session.set(&base.child("constructor")?, &text.constructor)?;
        if let Some(destructor) = &text.destructor {
            session.set(&base.child("destructor")?, destructor)?;
        }
        catalog::bump(session)?;
        call(engine, session, &text.constructor, &table.name, &name)
    })
}

fn check(table: &Table, text: &CodeIndexText) -> Result<()> {
    if table.over.is_some() {
        let what = "a table OVER nodes has no index: programs that write nodes would not keep it";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    if table.entries_of.is_some() {
        let what = format!("{} holds the entries of an index: it has no such index itself", table.name);
        return Err(Error::new(SqlState::REFUSED, what));
    }
    if table.primary_key().is_empty() {
        let what =
            format!("entries of an index kept by code name rows by the primary key: give {} one", table.name);
        return Err(Error::new(SqlState::DEFINITION, what));
    }
    let function = &text.function;
    if let Some(other) = table.code_indexes.iter().find(|index| index.function.eq_ignore_ascii_case(function))
    {
        let what = format!("{function}() means index {} of {}: use another name", other.name, table.name);
        return Err(Error::new(SqlState::EXISTS, what));
    }
    Ok(())
}

/// The CREATE TABLE of the entries.
fn entries(table: &Table, name: &str, text: &CodeIndexText) -> String {
    let value = quote(CodeIndex::VALUE);
    // AlchemyDB's word, which SQLite takes for no integer's.
    let declared = if text.declared.eq_ignore_ascii_case("long") { "BIGINT" } else { &text.declared };
    let mut columns = vec![format!("{value} {declared} NOT NULL")];
    let primary = table.primary_key();
    let keys: Vec<String> = CodeIndex::key_names(primary.len()).iter().map(|name| quote(name)).collect();
    for (at, key) in primary.iter().zip(&keys) {
        let column = &table.columns[*at];
        let collation = match column.collation {
            Collation::Binary => String::new(),
            other => format!(" COLLATE {}", other.name()),
        };
        columns.push(format!("{key} {} NOT NULL{collation}", column.declared));
    }
    let keys = keys.join(", ");
    format!(
        "CREATE TABLE {}({}, PRIMARY KEY({value}, {keys}), UNIQUE({keys}, {value}), \
         FOREIGN KEY({keys}) REFERENCES {} ON DELETE CASCADE ON UPDATE CASCADE)",
        quote(name),
        columns.join(", "),
        quote(&table.name)
    )
}

/// Calls a constructor or a destructor.
fn call(engine: &Engine, session: &mut Session, function: &str, table: &str, index: &str) -> Result<()> {
    engine.has_defined(session);
    let text = |name: &str| format!("'{}'", name.replace('\'', "''"));
    let sql = format!("SELECT {}({}, {})", quote(function), text(table), text(index));
    engine.run_statement(session, &sql, &[], &mut Nowhere).map(|_| ())
}

/// DROP INDEX of one, in the caller's transaction.
pub(super) fn drop(engine: &Engine, session: &mut Session, table: &Table, index: &CodeIndex) -> Result<()> {
    if let Some(destructor) = &index.destructor {
        call(engine, session, destructor, &table.name, &index.name)?;
    }
    session.delete_value(&place(&["index", &index.name])?)?;
    session.delete_tree(&place(&["table", &fold(&table.name), "coded", &index.name])?)?;
    drop_table(engine, session, false, &index.name)
}

/// Fails for a table that holds the entries of an index.
pub(super) fn refuse_entries(table: &Table) -> Result<()> {
    match &table.entries_of {
        Some(owner) => {
            let what =
                format!("{0} holds the entries of an index of {owner}: DROP INDEX {0} drops it", table.name);
            Err(Error::new(SqlState::REFUSED, what))
        }
        None => Ok(()),
    }
}
