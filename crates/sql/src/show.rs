//! SHOW and DESC: what the schema has, as rows.
//!
//! Problem: a person asks which tables there are and what they have, in the words that MySQL and AlchemyDB know. Idea: the catalog
//! is read in one transaction, and a SELECT of literals makes rows of it, so that every sink takes them.
//!
//! ```text
//! SHOW INDEXES
//! name | table | columns     | unique | state
//! city | users | lower(city) | 0      | ready
//! ```
//!
//! Invariant: a user sees tables and views that he may read, with their indexes and triggers, and no others.

use perilune::Session;

use crate::answer::{Outcome, Sink};
use crate::catalog::{self, place};
use crate::definition::parse_trigger;
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::function::Shape;
use crate::schema::{Column, Computed, Event, Index, Table, Timing};
use crate::sizes::{literal as number, measure, Sizes};
use crate::terms::{Access, Terms, Touch};
use crate::token::{fold, quote, tokens, Token};

/// A row: literals of SQL.
type Literals = Vec<String>;

/// Whether a statement that begins with this word is one.
pub(crate) fn is_one(word: &str) -> bool {
    ["show", "desc", "describe"].contains(&word)
}

/// Runs SHOW TABLES, VIEWS, INDEXES, TRIGGERS or FUNCTIONS, or DESC table.
///
/// # Errors
/// `SYNTAX`; `NO_TABLE` and `DENIED` of DESC.
pub(crate) fn run(
    engine: &Engine,
    session: &mut Session,
    sql: &str,
    terms: &Terms,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let tokens = tokens(sql)?;
    let words: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_sign(";")).collect();
    let [verb, what] = words[..] else { return Err(expected(words.get(2).or(words.last()))) };
    if !verb.is("show") {
        let name = what.name().ok_or_else(|| expected(Some(&what)))?;
        let touch = Touch { table: fold(&name), access: Access::Reads };
        terms.check(&[touch], true)?;
        let rows = columns(engine, session, &name)?;
        let names = [
            "name",
            "type",
            "not_null",
            "default",
            "key",
            "indexes",
            "index_bytes",
            "row_bytes",
            "table_bytes",
            "evicted",
        ];
        return answer(engine, session, &names, &rows, sink);
    }
    let may_read = |name: &str| {
        let touch = Touch { table: fold(name), access: Access::Reads };
        terms.check(&[touch], true).is_ok()
    };
    let (names, list): (&[&str], List) = match fold(what.text).as_str() {
        "tables" => (&["name"], tables),
        "views" => (&["name"], views),
        "indexes" => (&["name", "table", "columns", "unique", "state"], indexes),
        "triggers" => (&["name", "table", "fires"], triggers),
        "functions" => (&["name", "parameters", "answers"], functions),
        _ => return Err(expected(Some(&what))),
    };
    let rows = session.transaction(|session| Ok(list(session, &may_read)?))?;
    answer(engine, session, names, &rows, sink)
}

/// Makes the rows of a SHOW, of what may be read.
type List = fn(&mut Session, &dyn Fn(&str) -> bool) -> Result<Vec<Literals>>;

fn expected(token: Option<&&Token<'_>>) -> Error {
    let what = "expected SHOW TABLES, VIEWS, INDEXES, TRIGGERS or FUNCTIONS, or DESC table";
    Error::new(SqlState::SYNTAX, what).at(token.map_or(0, |token| token.at))
}

fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Hands the rows to the sink.
pub(crate) fn answer(
    engine: &Engine,
    session: &mut Session,
    names: &[&str],
    rows: &[Literals],
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let named = |(at, name): (usize, &&str)| format!("column{} AS {}", at + 1, quote(name));
    let columns: Vec<String> = names.iter().enumerate().map(named).collect();
    let mut lines: Vec<String> = rows.iter().map(|row| format!("({})", row.join(", "))).collect();
    let mut condition = "";
    if lines.is_empty() {
        lines.push(format!("({})", vec!["NULL"; names.len()].join(", ")));
        condition = " WHERE 0";
    }
    let sql = format!("SELECT {} FROM (VALUES {}){condition}", columns.join(", "), lines.join(", "));
    engine.run_statement(session, &sql, &[], sink)
}

/// The tables that may be read, by name; what holds the entries of an index is none.
fn shown(session: &mut Session, may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for name in catalog::names(session, &["table"])? {
        if may_read(&name) {
            let table = catalog::table(session, &name)?;
            tables.extend(table.filter(|table| table.entries_of.is_none()));
        }
    }
    Ok(tables)
}

fn tables(session: &mut Session, may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Literals>> {
    Ok(shown(session, may_read)?.iter().map(|table| vec![literal(&table.name)]).collect())
}

fn views(session: &mut Session, may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Literals>> {
    let names = catalog::names(session, &["view"])?;
    Ok(names.iter().filter(|name| may_read(name)).map(|name| vec![literal(name)]).collect())
}

fn indexes(session: &mut Session, may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Literals>> {
    let mut rows = Vec::new();
    for table in shown(session, may_read)? {
        for index in &table.indexes {
            rows.push(vec![
                literal(&index.name),
                literal(&table.name),
                literal(&held(&table, index)),
                i64::from(index.unique).to_string(),
                literal(if index.ready { "ready" } else { "building" }),
            ]);
        }
        for index in &table.code_indexes {
            rows.push(vec![
                literal(&index.name),
                literal(&table.name),
                literal(&format!("{}()", index.function)),
                "0".into(),
                literal(&format!("kept by {}", index.constructor)),
            ]);
        }
    }
    Ok(rows)
}

/// What an index holds, as CREATE INDEX has it.
fn held(table: &Table, index: &Index) -> String {
    let part = |column: usize| match &table.columns[column].computed {
        Some(Computed::Expression(text) | Computed::Condition(text)) => text.clone(),
        Some(Computed::Usage) | None => table.columns[column].name.clone(),
    };
    let parts: Vec<String> = index.columns.iter().map(|(column, _)| part(*column)).collect();
    let condition = index.condition.map(|column| format!(" WHERE {}", part(column)));
    format!("{}{}", parts.join(", "), condition.unwrap_or_default())
}

fn triggers(session: &mut Session, may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Literals>> {
    let mut rows = Vec::new();
    for table in catalog::names(session, &["trigger"])? {
        if !may_read(&table) {
            continue;
        }
        for sql in catalog::view_triggers(session, &table)? {
            let trigger = parse_trigger(&sql)?.trigger;
            let timing = match trigger.timing {
                Timing::Before => "BEFORE",
                Timing::After => "AFTER",
                Timing::Instead => "INSTEAD OF",
            };
            let event = match trigger.event {
                Event::Insert => "INSERT",
                Event::Update => "UPDATE",
                Event::Delete => "DELETE",
            };
            rows.push(vec![literal(&trigger.name), literal(&table), literal(&format!("{timing} {event}"))]);
        }
    }
    Ok(rows)
}

fn functions(session: &mut Session, _may_read: &dyn Fn(&str) -> bool) -> Result<Vec<Literals>> {
    let mut rows = Vec::new();
    for name in catalog::names(session, &["function"])? {
        let Some(function) = catalog::function(session, &name)? else { continue };
        let answers = match &function.shape {
            Shape::Value => "a value".to_owned(),
            Shape::Aggregate => "a value for a group".to_owned(),
            Shape::Rows(columns) => format!("rows of {}", columns.join(", ")),
            Shape::Change => "a trigger".to_owned(),
        };
        rows.push(vec![literal(&function.name), literal(&function.parameters.join(", ")), literal(&answers)]);
    }
    Ok(rows)
}

/// The columns of a table or view.
fn columns(engine: &Engine, session: &mut Session, name: &str) -> Result<Vec<Literals>> {
    let table = session.transaction(|session| Ok(catalog::table(session, name)?))?;
    if let Some(table) = table {
        let is_shown = |column: &Column| !column.is_hidden() || column.is_usage();
        let shown = (0..table.columns.len()).filter(|at| is_shown(&table.columns[*at]));
        let shown: Vec<usize> = shown.collect();
        let sizes = measure(session, &table)?;
        return Ok(shown.into_iter().map(|at| column(&table, at, &sizes)).collect());
    }
    let is_view = session.get_str(&place(&["view", &fold(name), "sql"])?)?.is_some();
    if !is_view && !engine.has_own_view(&fold(name)) {
        return Err(Error::new(SqlState::NO_TABLE, format!("no such table: {name}")));
    }
    let columns = engine.columns_of(session, &format!("SELECT * FROM {}", quote(name)))?;
    let row = |(name, declared): &(String, String)| {
        let mut row =
            vec![literal(name), literal(declared), "0".into(), "NULL".into(), "0".into(), "''".into()];
        row.resize(row.len() + 4, "NULL".into());
        row
    };
    Ok(columns.iter().map(row).collect())
}

fn column(table: &Table, at: usize, sizes: &Sizes) -> Literals {
    let column = &table.columns[at];
    let key = table.key_columns().iter().position(|key| *key == at).map_or(0, |place| place + 1);
    let holds = |index: &&Index| index.columns.iter().any(|(column, _)| *column == at);
    let indexes: Vec<&str> = table.indexes.iter().filter(holds).map(|index| &*index.name).collect();
    let bytes =
        table.indexes.iter().zip(&sizes.indexes).filter(|(index, _)| holds(index)).map(|(_, bytes)| *bytes);
    let bytes = bytes.sum::<Option<u64>>().filter(|_| !indexes.is_empty());
    let each =
        sizes.table.zip(sizes.rows.filter(|rows| *rows > 0)).map(|(bytes, rows)| (bytes + rows / 2) / rows);
    vec![
        literal(&column.name),
        literal(&column.declared),
        i64::from(column.not_null.is_some()).to_string(),
        column.default.as_deref().map_or_else(|| "NULL".to_owned(), literal),
        key.to_string(),
        literal(&indexes.join(", ")),
        number(bytes),
        number(each),
        number(sizes.table),
        number(sizes.evicted),
    ]
}
