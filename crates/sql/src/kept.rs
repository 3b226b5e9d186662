//! Statements that are kept under a name: PREPARE, EXECUTE, DEALLOCATE.
//!
//! Problem: a client without parameters of its own, a shell or an old program, is to run a statement with values that are never
//! read as SQL. Idea: the text is kept in the tree, so every process and every user has it; EXECUTE computes its arguments and
//! runs the text with them as parameters, as if it had been given with them: with the caller's rights, in his transaction.
//!
//! ```text
//! PREPARE by_city AS SELECT name FROM users WHERE city = $1 ORDER BY name
//! EXECUTE by_city('Oslo')        also AlchemyDB's: EXECUTE by_city 'Oslo'
//! DEALLOCATE by_city
//! ```
//!
//! Invariants
//! - What is kept has been understood once: its tables and columns were there.
//! - A kept statement reads or changes rows; it is no definition, no transaction, and no EXECUTE.
//!
//! Deliberately absent: names that end with a connection, as PostgreSQL's do. A server's connections share their threads.

use perilune::Session;

use crate::answer::{Outcome, Rows, Sink};
use crate::catalog::place;
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::limits::COMPONENT_BYTES;
use crate::terms::Terms;
use crate::token::{fold, tokens, values, Kind, Token};
use crate::value::Value;

/// Words that begin what can be kept.
const BEGINNINGS: [&str; 7] = ["select", "values", "with", "insert", "replace", "update", "delete"];

/// Whether a statement that begins with this word is one of these.
pub(crate) fn is_one(word: &str) -> bool {
    ["prepare", "execute", "deallocate"].contains(&word)
}

/// Runs one of these; its parameters are those of EXECUTE's arguments.
///
/// # Errors
/// `EXISTS` for a name in use, `NO_STATEMENT` for none; `SYNTAX` and others for a text that is no statement here; what the kept
/// statement fails with.
pub(crate) fn run(
    engine: &Engine,
    session: &mut Session,
    sql: &str,
    parameters: &[Value],
    terms: &Terms,
    sink: &mut dyn Sink,
) -> Result<Outcome> {
    let tokens = tokens(sql)?;
    if !tokens[0].is("execute") {
        terms.check_definition()?;
        change(engine, session, sql, &tokens)?;
        return Ok(Outcome::default());
    }
    let (text, arguments) = look_up(engine, session, sql, &tokens, parameters)?;
    engine.run_statement(session, &text, &arguments, sink)
}

fn change(engine: &Engine, session: &mut Session, sql: &str, tokens: &[Token<'_>]) -> Result<()> {
    if tokens[0].is("deallocate") {
        let at = 1 + usize::from(tokens.len() > 2 && tokens[1].is("prepare"));
        let name = name(tokens, at, "DEALLOCATE name")?;
        end(tokens, at + 1)?;
        let node = place(&["prepared", &name])?;
        return Ok(session.transaction(|session| {
            if session.get_str(&node)?.is_none() {
                return Err(unknown(&name).into());
            }
            session.delete_tree(&node)?;
            Ok(())
        })?);
    }
    let name = name(tokens, 1, "PREPARE name AS statement")?;
    let first = tokens.get(3).filter(|_| tokens[2].is("as"));
    let Some(first) = first.filter(|first| BEGINNINGS.iter().any(|word| first.is(word))) else {
        let what = "expected PREPARE name AS, and SELECT, VALUES, WITH, INSERT, REPLACE, UPDATE or DELETE";
        return Err(Error::new(SqlState::SYNTAX, what).at(tokens.get(3).map_or(0, |token| token.at)));
    };
    let text = numbered(&sql[first.at..], first.at, &tokens[3..]);
    engine.columns_of(session, &text).map_err(|error| error.at(first.at))?;
    let node = place(&["prepared", &name])?;
    Ok(session.transaction(|session| {
        if session.get_str(&node)?.is_some() {
            let what = format!("there is a prepared statement {name}: DEALLOCATE it first");
            return Err(Error::new(SqlState::EXISTS, what).into());
        }
        session.set(&node, &text[..])
    })?)
}

/// What EXECUTE runs: the text that is kept, and its parameters, which may use those of the caller.
fn look_up(
    engine: &Engine,
    session: &mut Session,
    sql: &str,
    tokens: &[Token<'_>],
    parameters: &[Value],
) -> Result<(String, Vec<Value>)> {
    let name = name(tokens, 1, "EXECUTE name(arguments)")?;
    let text = session.get_str(&place(&["prepared", &name])?)?.map(str::to_owned);
    let text = text.ok_or_else(|| unknown(&name))?;
    let list = match tokens.get(2) {
        Some(open) if open.is_sign("(") => {
            let Some(close) = closing(&tokens[2..]).map(|at| at + 2) else {
                return Err(
                    Error::new(SqlState::SYNTAX, "expected ) at the end of the arguments").at(open.at)
                );
            };
            end(tokens, close + 1)?;
            sql[open.end()..tokens[close].at].to_owned()
        }
        _ => words(&tokens[2..])?,
    };
    if list.trim().is_empty() {
        return Ok((text, Vec::new()));
    }
    let mut rows = Rows::default();
    engine.run_statement(session, &format!("SELECT {list}"), parameters, &mut rows)?;
    Ok((text, rows.at(0).unwrap_or_default().to_vec()))
}

fn unknown(name: &str) -> Error {
    let what = format!("no such prepared statement: {name}; PREPARE {name} AS ... makes it");
    Error::new(SqlState::NO_STATEMENT, what)
}

fn name(tokens: &[Token<'_>], at: usize, expected: &str) -> Result<String> {
    let name = tokens.get(at).and_then(Token::name).map(|name| fold(&name));
    let place = tokens.get(at).or(tokens.last()).map_or(0, |token| token.at);
    let name = name.filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| Error::new(SqlState::SYNTAX, format!("expected {expected}")).at(place))?;
    if name.len() > COMPONENT_BYTES {
        return Err(Error::new(SqlState::LIMIT, format!("a name has {COMPONENT_BYTES} bytes at most")));
    }
    Ok(name)
}

/// Fails if there is more than a semicolon from token `at` on.
fn end(tokens: &[Token<'_>], at: usize) -> Result<()> {
    match tokens.get(at..).unwrap_or(&[]).iter().find(|token| !token.is_sign(";")) {
        Some(token) => Err(Error::new(SqlState::SYNTAX, "expected the end of the statement").at(token.at)),
        None => Ok(()),
    }
}

/// The text with `?1` for each `$1`: to SQLite that is a name, numbered by where it stands first.
fn numbered(text: &str, from: usize, tokens: &[Token<'_>]) -> String {
    let (mut out, mut end) = (String::with_capacity(text.len()), 0);
    for token in tokens.iter().filter(|token| token.kind == Kind::Parameter) {
        let Some(number) = token.text.strip_prefix('$') else { continue };
        if number.parse::<u16>().is_ok() {
            out.push_str(&text[end..token.at - from]);
            out.push('?');
            out.push_str(number);
            end = token.end() - from;
        }
    }
    out.push_str(&text[end..]);
    out
}

/// Which token closes the parenthesis that the first one opens.
fn closing(tokens: &[Token<'_>]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        depth += usize::from(token.is_sign("("));
        depth -= usize::from(token.is_sign(")"));
        depth == 0
    })
}

/// Values one after the other, as the list of a SELECT.
fn words(tokens: &[Token<'_>]) -> Result<String> {
    let given: Vec<&Token<'_>> = tokens.iter().filter(|token| !token.is_sign(";")).collect();
    let list = values(&given).map_err(|at| {
        let what = "expected values, as 7 'Oslo' NULL, or (arguments)";
        Error::new(SqlState::SYNTAX, what).at(at)
    })?;
    Ok(list.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_and_numbers_of_parameters_are_read() {
        for (text, wanted) in [
            ("", Some("")),
            ("22", Some("22")),
            ("-1.5 'it''s' NULL ?", Some("-1.5, 'it''s', NULL, ?")),
            ("x'00' +7;", Some("x'00', +7")),
            ("- 'a'", None),
            ("--", Some("")),
            ("name", None),
            ("1, 2", None),
            ("7 -", None),
        ] {
            assert_eq!(words(&tokens(text).expect("tokens")).ok().as_deref(), wanted, "{text}");
        }
        let sql = "PREPARE p AS SELECT $2, ?, $1, $a, '$1'";
        let tokens = tokens(sql).expect("tokens");
        assert_eq!(numbered(&sql[tokens[3].at..], tokens[3].at, &tokens[3..]), "SELECT ?2, ?, ?1, $a, '$1'");
    }
}
