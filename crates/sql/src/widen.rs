//! HASHABILITY: an INSERT into a table may name columns that this has not, which it then gets.
//!
//! Problem: rows of programs that keep hashes have fields that nobody has declared. Idea: the INSERT that fails for the name of a
//! column of such a table makes the column, of the type that the value in the first row is written as, and runs again.
//!
//! ```text
//! ALTER TABLE t ADD HASHABILITY
//! INSERT INTO t(pk, age, size, name) VALUES (10, 5, 2.5, 'x')      age BIGINT, size DOUBLE, name TEXT
//! ```
//!
//! Invariants
//! - Whoever may write the table makes its columns; a column that is there is never changed.
//! - Columns and row come in one transaction, the caller's: a statement that fails, or is killed, leaves neither.

use perilune::Session;

use crate::define;
use crate::engine::Engine;
use crate::error::Result;
use crate::rewrite::outermost;
use crate::stage::Host as _;
use crate::terms::{Access, Terms, Touch};
use crate::token::{fold, quote, tokens, Kind, Token};

/// Makes the columns that an INSERT names and its table has not, if that may have any; answers whether it has made some.
///
/// # Errors
/// `DENIED` and `READ_ONLY` by the terms; those of ADD COLUMN.
pub(crate) fn widen(engine: &Engine, session: &mut Session, sql: &str, terms: &Terms) -> Result<bool> {
    let tokens = tokens(sql)?;
    let Some((name, columns)) = named(&tokens) else { return Ok(false) };
    let Some(table) = engine.table(session, &name)?.filter(|table| table.is_hashable) else {
        return Ok(false);
    };
    terms.check(&[Touch { table: fold(&name), access: Access::Writes }], false)?;
    let mut is_any = false;
    for (column, declared) in columns.iter().filter(|(column, _)| table.column(column).is_none()) {
        let add = format!("ALTER TABLE {} ADD COLUMN {} {declared}", quote(&name), quote(column));
        define::run(engine, session, &add)?;
        is_any = true;
    }
    Ok(is_any)
}

/// The table of an INSERT, and the columns that it names with the types of the first row's values.
fn named(tokens: &[Token<'_>]) -> Option<(String, Vec<(String, &'static str)>)> {
    let is_insert = tokens.first().is_some_and(|first| first.is("insert") || first.is("replace"));
    let into = tokens.iter().position(|token| token.is("into")).filter(|_| is_insert)?;
    let (name, list) = (tokens.get(into + 1)?.name()?, into + 2);
    let columns: Vec<String> = items(tokens, list)?
        .into_iter()
        .map(|item| match item {
            [one] => one.name(),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let values = list + tokens[list..].iter().position(|token| token.is_sign(")"))? + 1;
    let row = items(tokens, values + 1).filter(|_| tokens[values].is("values")).unwrap_or_default();
    let declared = |at: usize| row.get(at).map_or("", |value| type_of(value));
    let columns = columns.into_iter().enumerate().map(|(at, column)| (column, declared(at))).collect();
    Some((name, columns))
}

/// What stands between the commas of the parentheses that open at a place.
fn items<'t, 'a>(tokens: &'t [Token<'a>], open: usize) -> Option<Vec<&'t [Token<'a>]>> {
    let inside = tokens.get(open).filter(|token| token.is_sign("(")).map(|_| &tokens[open + 1..])?;
    let outer = outermost(inside);
    let close = outer.iter().copied().find(|at| inside[*at].is_sign(")"))?;
    let commas: Vec<usize> = outer.into_iter().filter(|at| *at < close && inside[*at].is_sign(",")).collect();
    let starts = std::iter::once(0).chain(commas.iter().map(|at| at + 1));
    Some(starts.zip(commas.iter().copied().chain([close])).map(|(from, to)| &inside[from..to]).collect())
}

/// The type of a column for a value that is written so; of others none, so that it keeps what comes.
fn type_of(value: &[Token<'_>]) -> &'static str {
    let value = match value {
        [sign, rest @ ..] if sign.is_sign("-") || sign.is_sign("+") => rest,
        _ => value,
    };
    match value {
        [one] if one.kind == Kind::Text => "TEXT",
        [one] if one.kind == Kind::Number && one.text.bytes().all(|byte| byte.is_ascii_digit()) => "BIGINT",
        [one] if one.kind == Kind::Number => "DOUBLE",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_types_that_values_are_written_as() {
        let text =
            "INSERT INTO t (pk, a, \"b c\", d, e) VALUES (1, -2.5, 'x,y', f(1, 2), ?) , (2, 3, 4, 5, 6)";
        let tokens = tokens(text).expect("tokens");
        let (name, columns) = named(&tokens).expect("an INSERT");
        let columns: Vec<(&str, &str)> =
            columns.iter().map(|(name, declared)| (&name[..], *declared)).collect();
        assert_eq!(name, "t");
        assert_eq!(columns, [("pk", "BIGINT"), ("a", "DOUBLE"), ("b c", "TEXT"), ("d", ""), ("e", "")]);
    }
}
