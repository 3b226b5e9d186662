//! Changes of the schema: CREATE, DROP, ALTER, ANALYZE, REINDEX.
//!
//! Each is a transaction that changes the catalog, the rows or entries that go with it, and the schema's version. Only an index
//! that is made of many rows takes several, so that others write meanwhile.
//!
//! Invariants
//! - A statement that is running meets a change of the schema as a conflict: there is no lock, and no moment between.
//! - A table's global belongs to it alone: it was empty when the table was made, and goes with it.

mod alter;
mod coded;
mod drop;
mod functions;
mod index;
mod triggers;
mod usage;

use perilune::{Node, Session};
use perilune_sqlite::{Connection as Scratch, FunctionKind};

use crate::answer::{Nowhere, Outcome};
use crate::catalog::{self, place};
use crate::decimal::{Digits, WHOLE_DIGITS};
use crate::definition::{self, Definition, Dropped};
use crate::elements::{with_elements, Named, ELEMENT};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::indexed::without_owners;
use crate::schema::{Column, Table};
use crate::token::{fold, quote, tokens};
use crate::value::node_order;
use crate::wide;

/// Runs a statement that defines something.
pub(crate) fn run(engine: &Engine, session: &mut Session, sql: &str) -> Result<Outcome> {
    let definition = definition::parse(sql)?;
    let definition = definition.ok_or_else(|| Error::new(SqlState::SYNTAX, "expected a definition"))?;
    let result = match definition {
        Definition::CreateTable { if_not_exists, name, table } => {
            let parsed = &*table;
            at_once(session, |session| create_table(session, if_not_exists, &name, parsed))
        }
        Definition::CreateTableAs { if_not_exists, name, query } => {
            return create_as(engine, session, if_not_exists, &name, &query);
        }
        Definition::CreateIndex { if_not_exists, name, table, text, unique } => {
            let new = index::NewIndex { name: &name, table: &table, text: &text, unique };
            index::create(engine, session, if_not_exists, &new)
        }
        Definition::CreateCodeIndex { if_not_exists, name, table, text } => {
            coded::create(engine, session, if_not_exists, &name, &table, &text)
        }
        Definition::CreateUsageIndex { if_not_exists, kind, table } => {
            usage::create(engine, session, if_not_exists, kind, &table)
        }
        Definition::CreateView { is_temporary: true, if_not_exists, name, sql } => {
            create_temporary_view(engine, session, if_not_exists, &name, &sql)
        }
        Definition::CreateView { if_not_exists, name, sql, .. } => {
            at_once(session, |session| create_view(session, if_not_exists, &name, &sql))
        }
        Definition::CreateFunction { or_replace, if_not_exists, function } => {
            engine.interpreter()?.check(&function)?;
            at_once(session, |session| functions::create(session, or_replace, if_not_exists, &function, sql))
        }
        Definition::Interpret(all) => {
            let interpreter = engine.interpreter()?;
            all.iter().try_for_each(|(function, _)| interpreter.check(function))?;
            at_once(session, |session| {
                all.iter()
                    .try_for_each(|(function, sql)| functions::create(session, true, false, function, sql))
            })
        }
        Definition::CreateTrigger => triggers::create(engine, session, sql),
        Definition::CreateLuaTrigger(sql) => triggers::create(engine, session, &sql),
        Definition::Drop { kind: Dropped::View, name, .. } if engine.drop_own_view(&name) => Ok(()),
        Definition::Drop { kind, if_exists, name } => {
            at_once(session, |session| drop::drop(engine, session, kind, if_exists, &name))
        }
        Definition::RenameTable { table, name } => {
            at_once(session, |session| alter::rename_table(session, &table, &name))
        }
        Definition::RenameColumn { table, column, name } => {
            at_once(session, |session| alter::rename_column(session, &table, &column, &name))
        }
        Definition::AddColumn { table, column } => {
            at_once(session, |session| alter::add_column(session, &table, &column))
        }
        Definition::DropColumn { table, column } => {
            at_once(session, |session| alter::drop_column(session, &table, &column))
        }
        Definition::AddHashability(table) => {
            at_once(session, |session| alter::add_hashability(session, &table))
        }
        Definition::SetDirty(table) => at_once(session, |session| alter::set_dirty(session, &table)),
        Definition::Analyze(name) => index::analyze(session, name.as_deref()),
        Definition::Reindex(name) => index::reindex(engine, session, name.as_deref()),
    };
    engine.has_defined(session);
    result?;
    Ok(Outcome { changes: 0, last_rowid: engine.sqlite().last_rowid() })
}

/// Runs a change as one transaction.
fn at_once(session: &mut Session, mut body: impl FnMut(&mut Session) -> Result<()>) -> Result<()> {
    Ok(session.transaction(|session| Ok(body(session)?))?)
}

/// The table of this name, which must be there.
fn existing(session: &mut Session, name: &str) -> Result<Table> {
    let table = catalog::table(session, name)?;
    table.ok_or_else(|| Error::new(SqlState::NO_TABLE, format!("no such table: {name}")))
}

/// Fails if a name is taken by a table, a view or an index, or is nobody's to take.
fn check_name(session: &mut Session, name: &str) -> Result<()> {
    let folded = fold(name);
    let is_own =
        folded.starts_with("sqlite_") || folded.starts_with('%') || ["sql", "redis"].contains(&&folded[..]);
    if is_own {
        let what = format!("object name reserved for internal use: {name}");
        return Err(Error::new(SqlState::DEFINITION, what));
    }
    if folded.len() > 255 {
        return Err(Error::new(SqlState::LIMIT, "a name has 255 bytes at most"));
    }
    let kind = if catalog::table(session, name)?.is_some() {
        "table"
    } else if catalog::view(session, name)?.is_some() {
        "view"
    } else if catalog::table_of_index(session, name)?.is_some() {
        "there is already an index named"
    } else {
        return Ok(());
    };
    let what = match kind {
        "table" | "view" => format!("{kind} {name} already exists"),
        kind => format!("{kind} {name}: it already exists"),
    };
    Err(Error::new(SqlState::EXISTS, what))
}

/// The global of something of this name: its name, if globals may be called so.
fn root_of(session: &mut Session, before: &str, name: &str) -> Result<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let begins = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') || !before.is_empty();
    if begins && name.bytes().all(is_plain) && before.len() + name.len() < 200 {
        return Ok(format!("{before}{name}"));
    }
    let number = session.increment(&place(&["root"])?, 1)?;
    Ok(format!("{}t{number}", if before.is_empty() { "sql." } else { before }))
}

/// Fails for a DECIMAL that nobody keeps.
fn check_digits(column: &Column) -> Result<()> {
    match Digits::of(&column.declared) {
        Some(digits) if !digits.is_kept() => {
            let what = format!(
                "{}: {digits} is none: a DECIMAL has 1 to {WHOLE_DIGITS} digits; NUMERIC takes any number, and rounds",
                column.name
            );
            Err(Error::new(SqlState::DEFINITION, what))
        }
        _ => Ok(()),
    }
}

/// Has SQLite read a table's CREATE TABLE, as far as it knows what stands there.
fn check_table(session: &mut Session, table: &Table) -> Result<()> {
    check_table_and(session, table, "")
}

/// Has SQLite read a table's CREATE TABLE, and something that follows it.
fn check_table_and(session: &mut Session, table: &Table, behind: &str) -> Result<()> {
    for column in &table.columns {
        if let Some(digits) = column.decimal {
            digits.check(&column.absent, &format!("{}.{}", table.name, column.name))?;
        }
        if column.is_wide() {
            wide::check(&column.absent, &format!("{}.{}", table.name, column.name))?;
        }
    }
    let plain = table.plain_sql();
    let named = [Named { table, names: vec![fold(&table.name)] }];
    let elements = with_elements(&plain, &tokens(&plain)?, &named);
    let text = elements.unwrap_or(plain);
    check_definition(session, &if behind.is_empty() { text } else { format!("{text}; {behind}") })
}

/// Has SQLite read a CREATE TABLE: what it refuses is no table.
fn check_definition(session: &mut Session, sql: &str) -> Result<()> {
    let scratch = Scratch::<()>::open()?;
    scratch.add_collation("NODE", node_order)?;
    scratch.add_collation("U128", wide::order)?;
    let kind = FunctionKind { deterministic: true, direct_only: false };
    scratch.add_function(ELEMENT, -1, kind, |(), _, _| Ok(()))?;
    functions::lend(session, &scratch, sql)?;
    scratch.execute(&mut (), &without_owners(sql)?)?;
    Ok(())
}

fn create_table(session: &mut Session, if_not_exists: bool, name: &str, parsed: &Table) -> Result<()> {
    if if_not_exists && catalog::table(session, name)?.is_some() {
        return Ok(());
    }
    check_name(session, name)?;
    parsed.columns.iter().try_for_each(check_digits)?;
    check_table(session, parsed)?;
    let folded = fold(name);
    let root = match &parsed.over {
        Some(_) => parsed.root.clone(),
        None => root_of(session, "", &folded)?,
    };
    let global = Node::new(&format!("^{root}"))?;
    if parsed.over.is_none() && session.data(&global)? != perilune::Data::Nothing {
        let what =
            format!("^{root} holds nodes already: choose another name, remove them, or show them by OVER");
        return Err(Error::new(SqlState::EXISTS, what));
    }
    check_root(session, &root, parsed.over.is_some())?;
    let base = place(&["table", &folded])?;
    session.set(&base.child("root")?, &root)?;
    write_table(session, parsed)?;
    catalog::bump(session)
}

/// Fails if rows and nodes of other tables lie in a global that is to be a table's.
fn check_root(session: &mut Session, root: &str, is_over: bool) -> Result<()> {
    for name in catalog::names(session, &["table"])? {
        let Some(other) = catalog::table(session, &name)? else { continue };
        let is_same = other.root == root || other.indexes.iter().any(|index| index.root == root);
        if is_same && !(is_over && other.over.is_some()) {
            let what = format!("^{root} belongs to table {name}");
            return Err(Error::new(SqlState::EXISTS, what));
        }
    }
    Ok(())
}

/// Writes what the catalog keeps of a table besides its root and indexes.
fn write_table(session: &mut Session, table: &Table) -> Result<()> {
    let base = place(&["table", &fold(&table.name)])?;
    session.set(&base.child("sql")?, &table.sql)?;
    for column in &table.columns {
        if let Some(field) = column.field {
            session.set(&base.child("field")?.child(field as i64)?, &column.name)?;
        }
    }
    for key in &table.foreign_keys {
        let child = place(&["table", &fold(&key.parent), "child", &fold(&table.name)])?;
        session.set(&child, 1)?;
    }
    Ok(())
}

/// The declared type that a column of a query keeps: as in SQLite, DECIMAL with its digits, and U128.
fn kept_type(declared: &str) -> &str {
    use crate::value::Affinity;
    match Affinity::of(declared) {
        _ if declared.is_empty() || Digits::of(declared).is_some_and(Digits::is_kept) => declared,
        _ if wide::is_wide(declared) => "U128",
        Affinity::Integer => "INT",
        Affinity::Real => "REAL",
        Affinity::Numeric => "NUM",
        Affinity::Text => "TEXT",
        Affinity::Blob => "",
    }
}

fn create_as(
    engine: &Engine,
    session: &mut Session,
    if_not_exists: bool,
    name: &str,
    query: &str,
) -> Result<Outcome> {
    let result = session.transaction(|session| {
        if if_not_exists && catalog::table(session, name)?.is_some() {
            return Ok(Outcome::default());
        }
        let mut columns: Vec<String> = Vec::new();
        for (column, declared) in engine.columns_of(session, query)? {
            // As SQLite: the second of a name is called `a:1`.
            let taken =
                |name: &str| columns.iter().any(|other| other.starts_with(&format!("{} ", quote(name))));
            let mut unique = column.clone();
            let mut number = 0;
            while taken(&unique) {
                number += 1;
                unique = format!("{column}:{number}");
            }
            columns.push(format!("{} {}", quote(&unique), kept_type(&declared)));
        }
        let sql = format!("CREATE TABLE {}({})", quote(name), columns.join(", "));
        let parsed = definition::parse_table(&sql, &[])?;
        create_table(session, false, name, &parsed)?;
        engine.has_defined(session);
        let insert = format!("INSERT INTO {} {query}", quote(name));
        Ok(engine.run_statement(session, &insert, &[], &mut Nowhere)?)
    });
    engine.has_defined(session);
    Ok(result?)
}

fn create_view(session: &mut Session, if_not_exists: bool, name: &str, sql: &str) -> Result<()> {
    if if_not_exists && catalog::view(session, name)?.is_some() {
        return Ok(());
    }
    check_name(session, name)?;
    check_definition(session, sql)?;
    session.set(&place(&["view", &fold(name), "sql"])?, sql)?;
    catalog::bump(session)
}

/// A view that only this connection knows, and only as long as it lives.
fn create_temporary_view(
    engine: &Engine,
    session: &mut Session,
    if_not_exists: bool,
    name: &str,
    sql: &str,
) -> Result<()> {
    if engine.is_shared() {
        let what = "temporary views are a connection's own, and this one is everybody's: create a view";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    if engine.has_own_view(name) {
        let what = format!("view {name} already exists");
        return if if_not_exists { Ok(()) } else { Err(Error::new(SqlState::EXISTS, what)) };
    }
    at_once(session, |session| check_name(session, name))?;
    check_definition(session, sql)?;
    engine.add_own_view(name, sql)
}

fn missing(if_exists: bool, state: SqlState, what: &str) -> Result<()> {
    if if_exists {
        Ok(())
    } else {
        Err(Error::new(state, what))
    }
}
