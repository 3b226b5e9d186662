//! Statements that name commands (`perilune_sql::alchemy`): rows into Redis's types, and keys into tables.
//!
//! ```text
//! SELECT id, name FROM users STORE HSET names      HSET names 1 Ada, HSET names 2 Ben        2 rows
//! SELECT id, at, what FROM log STORE ZADD user:$   ZADD user:7 <at> <what>
//! CREATE TABLE t AS HGETALL h                      t(pk INTEGER PRIMARY KEY, name TEXT, value TEXT)
//! DENORM users user:*                              HSET user:1 id 1 name Ada ...
//! NORM user:* payment                              user:1:name, user:1:payment:card as rows of user and user_payment
//! ```
//!
//! Invariants
//! - All of it is one transaction, with the rights of who runs it: of the statement's tables, and of each command and its keys.
//! - A command that answers an error ends the statement, and nothing of it is left.

use std::collections::BTreeMap;
use std::time::Instant;

use perilune::Session;
use perilune_resp::Answer;
use perilune_sql::alchemy::{Foreign, COMMANDS};
use perilune_sql::limits::COLUMNS;
use perilune_sql::{Connection, Error, Outcome, Result, Rows, Sink, SqlState, Terms, Value};

use crate::scripts::sql::{word, Lending};

/// Keys that NORM takes at most: it looks at all of them in one transaction.
const NORM_KEYS: usize = 1_000_000;

/// What runs such a statement, while the client is lent.
pub(super) struct Morph<'a> {
    pub(super) connection: &'a Connection,
    pub(super) lending: &'a Lending,
    pub(super) terms: &'a Terms,
    pub(super) parameters: &'a [Value],
}

impl Morph<'_> {
    /// Runs it in the transaction that is open; rows go to the sink, and how many there were is the outcome.
    pub(super) fn run(&self, session: &mut Session, what: &Foreign, sink: &mut dyn Sink) -> Result<Outcome> {
        match what {
            Foreign::Statement(sql) => {
                self.connection.run_under(session, sql, self.parameters, self.terms, sink)
            }
            Foreign::Store { query, command } => {
                let count = self.store(session, query, command)?;
                answered(count, sink)
            }
            Foreign::Create { if_not_exists, table, command } => {
                self.create(session, *if_not_exists, table, command)?;
                answered(0, sink)
            }
            Foreign::Denorm { table, pattern } => {
                let count = self.denorm(session, table, pattern)?;
                answered(count, sink)
            }
            Foreign::Norm { pattern, parts } => {
                let count = self.norm(session, pattern, parts)?;
                answered(count, sink)
            }
        }
    }

    fn query(&self, session: &mut Session, sql: &str, parameters: &[Value]) -> Result<Rows> {
        let mut rows = Rows::default();
        self.connection.run_under(session, sql, parameters, self.terms, &mut rows)?;
        Ok(rows)
    }

    fn command<W: AsRef<[u8]>>(&self, session: &mut Session, words: &[W]) -> Result<Answer> {
        if self.terms.until.is_some_and(|until| Instant::now() >= until) {
            let what = "the statement took longer than it may: ask for less of it at a time";
            return Err(Error::new(SqlState::CANCELLED, what));
        }
        let words = words.iter().map(AsRef::as_ref);
        self.lending.command(session, self.terms.read_only, words.collect())
    }

    /// Gives each row to a command; how many there were.
    fn store(&self, session: &mut Session, query: &str, command: &[String]) -> Result<usize> {
        let rows = self.query(session, query, self.parameters)?;
        let (head, key, rest) = (command[0].as_bytes(), &command[1], &command[2..]);
        for row in &rows {
            let mut values = row.iter().map(|value| argument(value, command)).collect::<Result<Vec<_>>>()?;
            let key = match key.strip_suffix('$') {
                Some(stem) if !values.is_empty() => [stem.as_bytes(), &values.remove(0)].concat(),
                _ => key.as_bytes().to_vec(),
            };
            let mut words = vec![head.to_vec(), key];
            words.extend(rest.iter().map(|word| word.as_bytes().to_vec()));
            words.extend(values);
            self.command(session, &words)?;
        }
        Ok(rows.len())
    }

    /// Makes a table of what a command answers.
    fn create(
        &self,
        session: &mut Session,
        if_not_exists: bool,
        table: &str,
        command: &[String],
    ) -> Result<()> {
        let command = self.command_of(session, command)?;
        let placeholders = vec!["?"; command.len()].join(", ");
        let words: Vec<Value> = command.iter().map(|word| Value::from(&**word)).collect();
        let is_named = is_named(&command);
        let columns = match is_named {
            Named::No => "value TEXT",
            Named::Text => "name TEXT, value TEXT",
            Named::Number => "name TEXT, value REAL",
        };
        let table = quoted(table);
        let exists = if if_not_exists { "IF NOT EXISTS " } else { "" };
        let before = if if_not_exists { self.has_table(session, &table)? } else { false };
        if before {
            return Ok(());
        }
        self.query(
            session,
            &format!("CREATE TABLE {exists}{table}(pk INTEGER PRIMARY KEY, {columns})"),
            &[],
        )?;
        let list = if is_named == Named::No { "pk, value" } else { "pk, name, value" };
        let insert = format!("INSERT INTO {table}({list}) SELECT {list} FROM {COMMANDS}({placeholders})");
        self.query(session, &insert, &words)?;
        Ok(())
    }

    fn has_table(&self, session: &mut Session, table: &str) -> Result<bool> {
        match self.query(session, &format!("SELECT 1 FROM {table} LIMIT 0"), &[]) {
            Ok(_) => Ok(true),
            Err(error) if error.state() == SqlState::NO_TABLE => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The command that a table is made of: for DUMP, the one that answers all of a key; ranges of sorted sets with their scores.
    fn command_of(&self, session: &mut Session, command: &[String]) -> Result<Vec<String>> {
        let mut command = command.to_vec();
        if command[0].eq_ignore_ascii_case("dump") {
            let [_, key] = &command[..] else {
                return Err(Error::new(SqlState::SYNTAX, "expected CREATE TABLE name AS DUMP key"));
            };
            let kind = match self.command(session, &["TYPE", key])? {
                Answer::Simple(kind) | Answer::Bulk(kind) => kind,
                _ => Vec::new(),
            };
            let words: &[&str] = match &kind[..] {
                b"list" => &["LRANGE", key, "0", "-1"],
                b"set" => &["SMEMBERS", key],
                b"zset" => &["ZRANGE", key, "0", "-1"],
                b"hash" => &["HGETALL", key],
                b"string" => &["GET", key],
                _ => return Err(Error::new(SqlState::NO_TABLE, format!("no such key: {key}"))),
            };
            command = words.iter().map(|word| (*word).to_owned()).collect();
        }
        let is_range = ["zrange", "zrevrange", "zrangebyscore", "zrevrangebyscore"]
            .iter()
            .any(|range| command[0].eq_ignore_ascii_case(range));
        if is_range && is_named(&command) == Named::No {
            command.push("WITHSCORES".into());
        }
        Ok(command)
    }

    /// Makes a hash of each row.
    fn denorm(&self, session: &mut Session, table: &str, pattern: &str) -> Result<usize> {
        let Some((stem, rest)) = pattern.split_once('*').filter(|(_, rest)| !rest.contains('*')) else {
            return Err(Error::new(SqlState::SYNTAX, "expected one * in the names of the keys"));
        };
        let rows = self.query(session, &format!("SELECT * FROM {}", quoted(table)), &[])?;
        for row in &rows {
            let key = [stem.as_bytes(), &word(&row[0]), rest.as_bytes()].concat();
            let mut words = vec![b"HSET".to_vec(), key];
            for (column, value) in rows.columns().iter().zip(row).filter(|(_, value)| !value.is_null()) {
                words.extend([column.as_bytes().to_vec(), word(value)]);
            }
            self.command(session, &words)?;
        }
        Ok(rows.len())
    }

    /// Makes rows of keys `stem:pk:column`, of strings, and of hashes `stem:pk`; how many there are.
    fn norm(&self, session: &mut Session, pattern: &str, parts: &[String]) -> Result<usize> {
        let Some(stem) = pattern.strip_suffix(":*").filter(|stem| !stem.is_empty() && !stem.contains('*'))
        else {
            return Err(Error::new(SqlState::SYNTAX, "expected names of keys as user:*"));
        };
        let Answer::Array(keys) = self.command(session, &["KEYS", pattern])? else { return Ok(0) };
        if keys.len() > NORM_KEYS {
            let what = format!("NORM takes {NORM_KEYS} keys at most, and there are {}", keys.len());
            return Err(Error::new(SqlState::LIMIT, what));
        }
        let mut tables: BTreeMap<String, Normed> = BTreeMap::new();
        for key in &keys {
            let Answer::Bulk(key) = key else { continue };
            let Ok(name) = std::str::from_utf8(key) else {
                return Err(Error::new(SqlState::TYPE, "NORM takes keys that are UTF-8"));
            };
            let path: Vec<&str> = name[stem.len() + 1..].split(':').collect();
            self.norm_key(session, stem, name, &path, parts, &mut tables)?;
        }
        let mut count = 0;
        for (table, normed) in &tables {
            count += self.fill(session, table, normed)?;
        }
        Ok(count)
    }

    fn norm_key(
        &self,
        session: &mut Session,
        stem: &str,
        key: &str,
        path: &[&str],
        parts: &[String],
        tables: &mut BTreeMap<String, Normed>,
    ) -> Result<()> {
        let part = path.get(1).filter(|part| parts.iter().any(|other| other == *part));
        let (table, rest) = match part {
            Some(part) => (format!("{stem}_{part}"), &path[2..]),
            None => (stem.to_owned(), &path[1..]),
        };
        let normed = tables.entry(table).or_default();
        match self.command(session, &["TYPE", key])? {
            Answer::Simple(kind) if kind == b"string" && !rest.is_empty() => {
                let Answer::Bulk(value) = self.command(session, &["GET", key])? else { return Ok(()) };
                normed.set(path[0], &rest.join("_"), &value)?;
            }
            Answer::Simple(kind) if kind == b"hash" && rest.is_empty() => {
                let (Answer::Map(all) | Answer::Array(all)) = self.command(session, &["HGETALL", key])?
                else {
                    return Ok(());
                };
                for pair in all.chunks_exact(2) {
                    if let (Answer::Bulk(field), Answer::Bulk(value)) = (&pair[0], &pair[1]) {
                        normed.set(path[0], &String::from_utf8_lossy(field), value)?;
                    }
                }
            }
            _ => {
                let what =
                    format!("{key} is no string called {stem}:pk:column, and no hash called {stem}:pk");
                return Err(Error::new(SqlState::TYPE, what));
            }
        }
        Ok(())
    }

    fn fill(&self, session: &mut Session, table: &str, normed: &Normed) -> Result<usize> {
        let table = quoted(table);
        let is_number = normed.rows.keys().all(|pk| pk.parse::<i64>().is_ok_and(|n| n.to_string() == *pk));
        let kind = if is_number { "INTEGER" } else { "TEXT" };
        let columns: String =
            normed.columns.iter().map(|column| format!(", {} TEXT", quoted(column))).collect();
        self.query(session, &format!("CREATE TABLE {table}(\"pk\" {kind} PRIMARY KEY{columns})"), &[])?;
        let places = ", ?".repeat(normed.columns.len());
        let insert = format!("INSERT INTO {table} VALUES (?{places})");
        for (pk, values) in &normed.rows {
            let mut row = vec![Value::from(&**pk)];
            row.extend(normed.columns.iter().map(|column| match values.get(column) {
                Some(value) => value_of(value),
                None => Value::Null,
            }));
            self.query(session, &insert, &row)?;
        }
        Ok(normed.rows.len())
    }
}

/// Rows of a table that is made of keys.
#[derive(Default)]
struct Normed {
    /// In the order in which they were met.
    columns: Vec<String>,
    rows: BTreeMap<String, BTreeMap<String, Vec<u8>>>,
}

impl Normed {
    fn set(&mut self, pk: &str, column: &str, value: &[u8]) -> Result<()> {
        let column = if column.eq_ignore_ascii_case("pk") { "pk_".to_owned() } else { column.to_owned() };
        if !self.columns.contains(&column) {
            // NB: now, lest every further key be compared with more and more of them.
            if self.columns.len() + 1 >= COLUMNS {
                let what = format!("a table has {COLUMNS} columns at most: NORM fewer keys at a time");
                return Err(Error::new(SqlState::LIMIT, what));
            }
            self.columns.push(column.clone());
        }
        self.rows.entry(pk.to_owned()).or_default().insert(column, value.to_vec());
        Ok(())
    }
}

/// What stands beside a value that a command answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Named {
    No,
    Text,
    /// The name is a member, and the value its score.
    Number,
}

fn is_named(command: &[String]) -> Named {
    let is = |word: &str, other: &str| word.eq_ignore_ascii_case(other);
    if is(&command[0], "hgetall") {
        Named::Text
    } else if command.iter().skip(1).any(|word| is(word, "withscores")) {
        Named::Number
    } else {
        Named::No
    }
}

/// Says that a statement without rows has done so many.
fn answered(count: usize, sink: &mut dyn Sink) -> Result<Outcome> {
    sink.start(&[])?;
    Ok(Outcome { changes: count as u64, ..Outcome::default() })
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A value as an argument of a command.
fn argument(value: &Value, command: &[String]) -> Result<Vec<u8>> {
    if value.is_null() {
        let what = format!("{} takes no NULL: leave such rows out, or use coalesce()", command[0]);
        return Err(Error::new(SqlState::TYPE, what));
    }
    Ok(word(value))
}

/// Bytes of a key as a value of SQL.
fn value_of(bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::from(text),
        Err(_) => Value::from(bytes),
    }
}
