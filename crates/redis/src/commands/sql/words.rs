//! The statement that a request is: `SQL text parameter...`, or AlchemyDB's words.
//!
//! ```text
//! INSERT | INTO | t | VALUES | (1,'a') | (2,'b')        INSERT INTO t VALUES (1,'a'), (2,'b')
//! SELECT | name FROM t WHERE id = 1                      SELECT name FROM t WHERE id = 1
//! INTERPRET | LUA | function f(x) return 2 * x end       INTERPRET LUA 'function f(x) return 2 * x end'
//! ```
//!
//! Words are joined by blanks. They have no parameters: who has values from outside writes `SQL`.
//!
//! Invariant: what stands in one argument of INTERPRET or behind CREATE LUATRIGGER stays one text.

use std::borrow::Cow;

use perilune_resp::Arguments;
use perilune_sql::{alchemy, Value};

use crate::failure::{refuse, Failure, Result};

/// A statement.
pub(super) struct Statement<'a> {
    pub(super) text: Cow<'a, str>,
    pub(super) parameters: Vec<Value>,
    /// Its reply is the first value of its first row.
    pub(super) is_value: bool,
}

/// Whether a request has its statement in one argument, with parameters behind it.
pub(super) fn is_plain(arguments: Arguments<'_>) -> bool {
    arguments[0].eq_ignore_ascii_case(b"sql") || arguments[0].eq_ignore_ascii_case(b"sql_ro")
}

/// The statement that a request is.
pub(super) fn statement(arguments: Arguments<'_>) -> Result<Statement<'_>> {
    if !is_plain(arguments) {
        let joined = joined(arguments)?;
        let text = alchemy::in_sql(&joined).map_err(|error| super::failure(&error))?;
        return Ok(Statement {
            text: Cow::Owned(text.into_owned()),
            parameters: Vec::new(),
            is_value: false,
        });
    }
    let Ok(text) = std::str::from_utf8(arguments.get(1).unwrap_or_default()) else { return not_utf8() };
    let parameters = arguments.from(2).iter().map(|given| Value::Text(given.to_vec())).collect();
    Ok(Statement { text: Cow::Borrowed(text), parameters, is_value: false })
}

/// The call of a function, whose arguments are numbers if they are written so.
pub(super) fn call(name: &str, arguments: Arguments<'_>) -> Statement<'static> {
    let value = |given: &[u8]| {
        let text = std::str::from_utf8(given).unwrap_or("");
        let is_number =
            text.starts_with(|first: char| first.is_ascii_digit() || first == '-' || first == '.');
        match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(integer), _) if is_number => Value::Integer(integer),
            (_, Ok(real)) if is_number && real.is_finite() => Value::Real(real),
            _ => Value::Text(given.to_vec()),
        }
    };
    let parameters: Vec<Value> = arguments.iter().map(value).collect();
    let places = vec!["?"; parameters.len()].join(", ");
    let text = Cow::Owned(format!("SELECT \"{}\"({places})", name.replace('"', "\"\"")));
    Statement { text, parameters, is_value: true }
}

fn not_utf8<T>() -> Result<T> {
    refuse("ERR 22021 a statement is UTF-8")
}

/// The words of a request as one text.
fn joined(arguments: Arguments<'_>) -> Result<String> {
    let words: std::result::Result<Vec<&str>, _> = arguments.iter().map(std::str::from_utf8).collect();
    let Ok(mut words) = words else { return not_utf8() };
    let is = |word: Option<&&str>, other: &str| word.is_some_and(|word| word.eq_ignore_ascii_case(other));
    if is(words.first(), "describe") {
        words[0] = "DESC";
    }
    if is(words.first(), "dump") && is(words.get(1), "table") {
        words.remove(1);
    }
    if is(words.first(), "interpret") && is(words.get(1), "lua") {
        return Ok(interpret(&words[2..]));
    }
    if is(words.first(), "interpret") && is(words.get(1), "luafile") {
        return Err(Failure::Reply(
            "ERR 0A000 a server reads no files for its clients: send the text by INTERPRET LUA".into(),
        ));
    }
    let call = words.last().filter(|_| is(words.first(), "create") && is(words.get(1), "luatrigger"));
    match call.filter(|call| !call.starts_with(['"', '\''])) {
        Some(call) => {
            let call = format!("\"{}\"", call.replace('"', "\"\""));
            Ok(format!("{} {call}", words[..words.len() - 1].join(" ")))
        }
        None => Ok(words.join(" ")),
    }
}

/// Texts in Lua as texts of SQL.
fn interpret(codes: &[&str]) -> String {
    let quoted = codes.iter().map(|code| match code.trim_start().starts_with(['\'', '"']) {
        true => (*code).to_owned(),
        false => format!("'{}'", code.replace('\'', "''")),
    });
    format!("INTERPRET LUA {}", quoted.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use perilune_resp::ArgumentsBuf;

    use super::*;

    fn read(words: &[&str]) -> String {
        let words: ArgumentsBuf = words.iter().collect();
        statement(words.as_arguments()).map(|statement| statement.text.into_owned()).expect("a statement")
    }

    #[test]
    fn words_are_joined() {
        for (words, text) in [
            (
                &["INSERT", "INTO", "t", "VALUES", "(1,'a b')", "(2,'c')"][..],
                "INSERT INTO t VALUES (1,'a b'), (2,'c')",
            ),
            (&["SELECT", "name FROM t"], "SELECT name FROM t"),
            (&["SCAN", "*", "FROM", "t", "ORDER BY pk"], "SELECT * FROM t ORDER BY pk"),
            (
                &["INTERPRET", "LUA", "function f() return 'x' end"],
                "INTERPRET LUA 'function f() return ''x'' end'",
            ),
            (
                &["CREATE", "LUATRIGGER", "l", "ON", "t", "INSERT", "f(a)"],
                "CREATE LUATRIGGER l ON t INSERT \"f(a)\"",
            ),
            (&["CREATE LUATRIGGER l ON t INSERT \"f(a)\""], "CREATE LUATRIGGER l ON t INSERT \"f(a)\""),
            (&["DUMP", "TABLE", "t"], "DUMP t"),
            (&["SQL", "SCAN * FROM t"], "SCAN * FROM t"),
        ] {
            assert_eq!(read(words), text);
        }
    }
}
