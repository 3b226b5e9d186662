//! DUMP: a table as statements that another database loads.
//!
//! Problem: data are to leave for MySQL or SQLite, whose types, names and texts differ. Idea: the dump is a SELECT that writes
//! each statement as a text, in the transaction of which it is one state; of what both understand.
//!
//! ```text
//! DUMP users TO MYSQL people
//! DROP TABLE IF EXISTS `people`;
//! CREATE TABLE `people` (`id` BIGINT PRIMARY KEY, `name` VARCHAR(768) NOT NULL);
//! INSERT INTO `people` VALUES (7, 'Ada');
//! CREATE INDEX `by_name` ON `people` (`name`);
//! ```
//!
//! Invariants
//! - Each statement is a row; a text that holds a backslash, which MySQL reads and SQLite does not, is written by its bytes.
//! - What only we have is left out: checks, defaults and references that are expressions of ours, triggers, indexes on expressions.

use perilune::Session;

use crate::answer::{Outcome, Sink};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::schema::{Column, Table};
use crate::stage::Host as _;
use crate::token::{fold, quote, tokens, Token};
use crate::value::Affinity;

/// Characters of all texts of an index: MySQL has no more in 3,072 bytes.
const KEY_CHARACTERS: usize = 768;

/// Whether a statement that begins with this word is one.
pub(crate) fn is_one(word: &str) -> bool {
    word == "dump"
}

/// Whether a statement is a DUMP, which reads one table and may answer more rows than memory has.
#[must_use]
pub fn dumps(sql: &str) -> bool {
    tokens(sql).is_ok_and(|tokens| tokens.first().is_some_and(|first| is_one(&fold(first.text))))
}

/// Runs `DUMP table`, or `DUMP table TO MYSQL [name]`.
///
/// # Errors
/// `NO_TABLE`; `SYNTAX`; those of a SELECT of the table.
pub(crate) fn run(engine: &Engine, session: &mut Session, sql: &str, sink: &mut dyn Sink) -> Result<Outcome> {
    let tokens = tokens(sql)?;
    let words: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_sign(";")).collect();
    let name = words.get(1).and_then(|token| token.name());
    let is_mysql = words.len() > 3 && words[2].is("to") && words[3].is("mysql");
    let (Some(name), true) = (name, words.len() == 2 || is_mysql && words.len() <= 5) else {
        let what = "expected DUMP table, or DUMP table TO MYSQL [name]; `perilune sql -c '...' > FILE` writes a file";
        return Err(Error::new(SqlState::SYNTAX, what).at(words.get(2).map_or(0, |token| token.at)));
    };
    engine.keep_up(session)?;
    let table = engine.table(session, &name)?;
    if !is_mysql {
        let usage = table.iter().flat_map(|table| &table.usage).map(|usage| usage.kind.column());
        let columns = std::iter::once("*").chain(usage).collect::<Vec<_>>().join(", ");
        let query = format!("SELECT {columns} FROM {}", quote(&name));
        return engine.run_statement(session, &query, &[], sink);
    }
    let table = table.ok_or_else(|| Error::new(SqlState::NO_TABLE, format!("no such table: {name}")))?;
    let other = words.get(4).and_then(|token| token.name()).unwrap_or_else(|| table.name.clone());
    engine.run_statement(session, &query(&table, &other), &[], sink)
}

/// A name as MySQL and SQLite both quote it.
fn ticks(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The query whose rows are the statements.
fn query(table: &Table, name: &str) -> String {
    let name = ticks(name);
    let literal = |text: &str| format!("'{}'", text.replace('\'', "''"));
    let columns: Vec<&Column> = table.columns.iter().filter(|column| !column.is_hidden()).collect();
    let mut parts = vec![
        format!("SELECT {} AS statement", literal(&format!("DROP TABLE IF EXISTS {name};"))),
        format!("SELECT {}", literal(&create(table, &columns, &name))),
    ];
    let values: Vec<String> = columns.iter().map(|column| value(&quote(&column.name))).collect();
    let head = literal(&format!("INSERT INTO {name} VALUES ("));
    parts.push(format!(
        "SELECT {head} || {} || ');' FROM {}",
        values.join(" || ', ' || "),
        quote(&table.name)
    ));
    for index in &table.indexes {
        let of: Vec<&Column> = index.columns.iter().map(|(column, _)| &table.columns[*column]).collect();
        if index.condition.is_some() || of.iter().any(|column| column.is_hidden()) {
            continue;
        }
        let of: Vec<String> = of.iter().map(|column| ticks(&column.name)).collect();
        let unique = if index.unique { "UNIQUE " } else { "" };
        let text =
            format!("CREATE {unique}INDEX {} ON {name} ({});", ticks(&label(&index.name)), of.join(", "));
        parts.push(format!("SELECT {}", literal(&text)));
    }
    parts.join(" UNION ALL ")
}

/// The name of an index: those that keep a UNIQUE have one that SQLite keeps for itself.
fn label(name: &str) -> String {
    match name.strip_prefix("sqlite_") {
        Some(rest) => format!("key_{rest}"),
        None => name.to_owned(),
    }
}

fn create(table: &Table, columns: &[&Column], name: &str) -> String {
    let mut parts: Vec<String> = Vec::new();
    for column in columns {
        let at = table.column(&column.name).unwrap_or(usize::MAX);
        let not_null = if column.not_null.is_some() { " NOT NULL" } else { "" };
        parts.push(format!(
            "{} {}{not_null}",
            ticks(&column.name),
            declared(column, indexed_with(table, at))
        ));
    }
    let key: Vec<String> = table.key_columns().iter().map(|at| ticks(&table.columns[*at].name)).collect();
    if !key.is_empty() {
        parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
    }
    format!("CREATE TABLE {name} ({});", parts.join(", "))
}

/// How many columns the widest index has that a column is in, or the key; 0: it is in none.
fn indexed_with(table: &Table, column: usize) -> usize {
    let indexes =
        table.indexes.iter().filter(|index| index.columns.iter().any(|(other, _)| *other == column));
    let key = table.key_columns();
    let key = if key.contains(&column) { key.len() } else { 0 };
    indexes.map(|index| index.columns.len()).fold(key, usize::max)
}

/// A type of which both keep what the column has; in indexes of so many columns.
fn declared(column: &Column, indexed_with: usize) -> String {
    let characters = KEY_CHARACTERS.checked_div(indexed_with);
    let upper = column.declared.to_ascii_uppercase();
    let is_kept = ["BOOL", "DATE", "TIME"].iter().any(|word| upper.starts_with(word)) || upper.contains('(');
    match (column.affinity, characters) {
        _ if column.is_document => "LONGTEXT".into(),
        (Affinity::Integer, _) => "BIGINT".into(),
        (Affinity::Real, _) => "DOUBLE".into(),
        (Affinity::Text, Some(characters)) => format!("VARCHAR({characters})"),
        (Affinity::Text, None) => "LONGTEXT".into(),
        (Affinity::Blob, Some(characters)) => format!("VARBINARY({characters})"),
        (Affinity::Blob, None) => "LONGBLOB".into(),
        (Affinity::Numeric, _) if is_kept => column.declared.clone(),
        // MySQL's other word for DECIMAL, whose digits it needs: to us, who have no DECIMAL of so many, and to SQLite it is a NUMERIC.
        (Affinity::Numeric, _) => "FIXED(65,30)".into(),
    }
}

/// An expression whose value is the literal of a column's value.
fn value(column: &str) -> String {
    format!(
        "CASE WHEN typeof({column}) = 'text' AND (instr({column}, '\\') OR instr({column}, char(0))) \
         THEN 'CAST(X''' || hex({column}) || ''' AS CHAR)' ELSE quote({column}) END"
    )
}
