//! INSERT ... RETURN SIZE: what the rows of a statement take, and their table.
//!
//! ```text
//! INSERT INTO users VALUES (7, 'Ada') RETURN SIZE
//! row_bytes | table_bytes | index_bytes
//! 19        | 57          | 44
//! ```
//!
//! Invariant: bytes are counted behind the statement, in its transaction if that is still open.

use perilune::{NodeRef, Session};

use crate::answer::{Outcome, Rows, Sink};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::over::table_key;
use crate::rewrite::outermost;
use crate::row::row_key;
use crate::schema::Table;
use crate::show::answer;
use crate::sizes::{bytes_of, literal, measure};
use crate::stage::Host as _;
use crate::token::{quote, tokens, Token};
use crate::value::Value;

/// The text before RETURN SIZE, if a statement ends so.
pub(crate) fn before(sql: &str) -> Result<Option<&str>> {
    let end = sql.trim_end_matches(|c: char| c.is_whitespace() || c == ';');
    if !end.get(end.len().saturating_sub(4)..).is_some_and(|word| word.eq_ignore_ascii_case("size")) {
        return Ok(None);
    }
    let tokens = tokens(end)?;
    match &tokens[..] {
        [.., back, size] if back.is("return") && size.is("size") => Ok(Some(&end[..back.at])),
        _ => Ok(None),
    }
}

/// Runs an INSERT or a REPLACE, `sql`, and answers what its rows, their table and its indexes take.
///
/// # Errors
/// Those of the statement; `SYNTAX` for one with RETURNING, or of no table.
pub(crate) fn run(
    engine: &Engine,
    session: &mut Session,
    sql: &str,
    parameters: &[Value],
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let tokens = tokens(sql)?;
    let outer = outermost(&tokens);
    let at = outer.iter().copied().find(|at| tokens[*at].is("into"));
    let is_returning = outer.iter().any(|at| tokens[*at].is("returning"));
    let name = at.and_then(|at| target(&tokens[at + 1..])).filter(|_| !is_returning);
    let Some(name) = name else {
        let what = "expected INSERT INTO or REPLACE INTO a table, without RETURNING, before RETURN SIZE";
        return Err(Error::new(SqlState::SYNTAX, what).at(tokens.last().map_or(0, |token| token.at)));
    };
    engine.keep_up(session)?;
    let Some(table) = engine.table(session, &name)? else {
        let what = format!("no such table: {name}: RETURN SIZE is for tables");
        return Err(Error::new(SqlState::NO_TABLE, what));
    };
    let key = match table.has_rowid() {
        true => "rowid".to_owned(),
        false => table
            .key_columns()
            .iter()
            .map(|at| quote(&table.columns[*at].name))
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut keys = Rows::default();
    let outcome = engine.run_statement(session, &format!("{sql} RETURNING {key}"), parameters, &mut keys)?;
    let mut bytes = 0;
    for key in &keys {
        bytes += row_bytes(session, &table, key)?;
    }
    let sizes = measure(session, &table)?;
    let indexes = sizes.indexes.iter().copied().sum::<Option<u64>>();
    let row = vec![bytes.to_string(), literal(sizes.table), literal(indexes)];
    answer(engine, session, &["row_bytes", "table_bytes", "index_bytes"], &[row], sink)?;
    Ok(outcome)
}

/// The name of a table behind INTO.
fn target(tokens: &[Token<'_>]) -> Option<String> {
    let is_qualified = tokens.get(1).is_some_and(|token| token.is_sign("."));
    tokens.get(if is_qualified { 2 } else { 0 }).and_then(Token::name)
}

fn row_bytes(session: &mut Session, table: &Table, values: &[Value]) -> Result<u64> {
    let mut row = vec![Value::Null; table.columns.len()];
    let mut rowid = 0;
    match &values[0] {
        Value::Integer(number) if table.has_rowid() => rowid = *number,
        _ => {
            for (column, value) in table.key_columns().iter().zip(values) {
                row[*column] = value.clone();
            }
        }
    }
    let mut key = table_key(table)?;
    row_key(table, rowid, &row, &mut key)?;
    Ok(bytes_of(session.tree_size(NodeRef::from_encoded(key.as_bytes(), false))?))
}

#[cfg(test)]
mod tests {
    use super::before;

    #[test]
    fn its_words_end_a_statement() {
        for (sql, wanted) in [
            ("INSERT INTO t VALUES (1) RETURN SIZE", Some("INSERT INTO t VALUES (1) ")),
            ("REPLACE INTO t VALUES (1) return\n size ; ", Some("REPLACE INTO t VALUES (1) ")),
            ("INSERT INTO t VALUES ('x RETURN SIZE')", None),
            ("INSERT INTO t SELECT size", None),
            ("size", None),
            ("é", None),
        ] {
            assert_eq!(before(sql).expect("a text"), wanted, "{sql}");
        }
    }
}
