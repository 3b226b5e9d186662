//! EVICT: rows of a cache leave, and who names them later is told to read them from where they came.
//!
//! ```text
//! ALTER TABLE users SET DIRTY
//! EVICT users 6 7 8            EVICT line ('NO', 1) ('NO', 2)            EVICT users ?, ?
//! SELECT * FROM users WHERE id = 7     P0002 ^users(7) is evicted: ...
//! ```
//!
//! Invariants
//! - All rows of a statement are evicted, or none. What is not there is passed over.
//! - An evicted row is not deleted: no trigger fires, and rows that refer to it stay.

use perilune::Session;
use perilune_sqlite::Conflict;

use crate::answer::{Outcome, Rows};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::schema::Table;
use crate::stage::Host as _;
use crate::terms::{Access, Terms, Touch};
use crate::token::{fold, tokens, values, Token};
use crate::value::Value;
use crate::write::Writer;

/// Whether a statement that begins with this word is one.
pub(crate) fn is_one(word: &str) -> bool {
    word == "evict"
}

/// Runs EVICT; answers how many rows it has evicted.
///
/// # Errors
/// `SYNTAX`; `NO_TABLE`; `REFUSED` for a table that is no cache; `TYPE` for what no key can be; `DENIED`.
pub(crate) fn run(
    engine: &Engine,
    session: &mut Session,
    sql: &str,
    parameters: &[Value],
    terms: &Terms,
) -> Result<Outcome> {
    let tokens = tokens(sql)?;
    let name = tokens.get(1).and_then(Token::name).ok_or_else(|| expected(tokens.get(1)))?;
    let list = keys(&tokens[2..])?;
    terms.check(&[Touch { table: fold(&name), access: Access::Writes }], false)?;
    let mut rows = Rows::default();
    let list: Vec<String> = list.iter().map(|value| format!("({value})")).collect();
    engine.run_statement(session, &format!("VALUES {}", list.join(", ")), parameters, &mut rows)?;
    let given: Vec<Value> = rows.iter().map(|row| row[0].clone()).collect();
    let changes = session.transaction(|session| {
        engine.keep_up(session)?;
        let table = engine.table(session, &name)?;
        let table = table.ok_or_else(|| Error::new(SqlState::NO_TABLE, format!("no such table: {name}")))?;
        check(&table, given.len())?;
        let writer = Writer { table: &table, stage: engine.stage(), conflict: Conflict::Abort };
        let mut evicted = 0;
        for key in given.chunks(table.key_columns().len()) {
            evicted += u64::from(writer.evict(session, key)?);
        }
        Ok(evicted)
    })?;
    Ok(Outcome { changes, last_rowid: engine.sqlite().last_rowid() })
}

/// Fails unless rows of the table may be evicted, by so many values.
fn check(table: &Table, values: usize) -> Result<()> {
    if !table.evicts {
        let what = format!("{} is no cache: ALTER TABLE {} SET DIRTY", table.name, table.name);
        return Err(Error::new(SqlState::REFUSED, what));
    }
    let width = table.key_columns().len();
    if !values.is_multiple_of(width) {
        let what = format!("a key of {} has {width} values: EVICT takes all of each row's", table.name);
        return Err(Error::new(SqlState::PARAMETER, what));
    }
    Ok(())
}

fn expected(token: Option<&Token<'_>>) -> Error {
    let what =
        "expected EVICT table key [key...]: numbers, texts, blobs and parameters, of several columns in ( )";
    Error::new(SqlState::SYNTAX, what).at(token.map_or(0, |token| token.at))
}

/// The values of keys, with or without parentheses and commas.
fn keys(tokens: &[Token<'_>]) -> Result<Vec<String>> {
    let is_between = |token: &Token<'_>| ["(", ")", ",", ";"].iter().any(|sign| token.is_sign(sign));
    let given: Vec<&Token<'_>> = tokens.iter().filter(|token| !is_between(token)).collect();
    let wrong = |at: usize| expected(tokens.iter().find(|token| token.at == at));
    let list = values(&given).map_err(wrong)?;
    let is_null =
        |value: &String| ["null", "true", "false"].iter().any(|word| value.eq_ignore_ascii_case(word));
    if list.is_empty() || list.iter().any(is_null) {
        return Err(expected(tokens.last()));
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read() {
        for (text, wanted) in [
            ("6 7 8", Some("6|7|8")),
            ("('a', -1), (?, +2);", Some("'a'|-1|?|+2")),
            ("x'00'", Some("x'00'")),
            ("", None),
            ("-", None),
            ("- 'a'", None),
            ("name", None),
            ("7 = 7", None),
        ] {
            let read = keys(&tokens(text).expect("tokens")).ok().map(|list| list.join("|"));
            assert_eq!(read.as_deref(), wanted, "{text}");
        }
    }
}
