//! What follows from words: from the terms of a WHERE that something is not NULL, from an expression how it is compared.
//!
//! Invariant: what is not known to follow does not: then an index stands idle, and no row is missing.

use crate::error::Result;
use crate::schema::{Collation, Column, Computed, Table};
use crate::token::{normal, tokens};

/// Whether SQLite compares what an expression answers by bytes: a CAST and a `+` keep what a column says, COLLATE says it.
pub(super) fn is_plain(table: &Table, column: &Column) -> Result<bool> {
    let Some(Computed::Expression(text)) = &column.computed else { return Ok(false) };
    let words = normal(&tokens(text)?, &[]);
    let keeps = words.first().is_some_and(|word| word == "cast" || word == "+");
    let is_binary =
        |name: &String| table.column(name).is_none_or(|at| table.columns[at].collation == Collation::Binary);
    Ok(!words.iter().any(|word| word == "collate") && (!keeps || words.iter().all(is_binary)))
}

/// What a term says is not NULL.
pub(super) fn not_null(term: &[String]) -> Option<&[String]> {
    let is = |tail: &[&str]| term.len() > tail.len() && term[term.len() - tail.len()..].iter().eq(tail);
    let length = if is(&["is", "not", "null"]) {
        3
    } else if is(&["not", "null"]) {
        2
    } else if is(&["notnull"]) {
        1
    } else {
        return None;
    };
    Some(&term[..term.len() - length])
}

/// Whether a term is a comparison of `it`, which does not hold if that is NULL.
pub(super) fn compares(term: &[String], it: &[String]) -> bool {
    let words = ["=", "<", ">", "<=", ">=", "<>", "in", "between", "like", "glob"];
    let is_word = |word: Option<&String>| word.is_some_and(|word| words.contains(&&word[..]));
    let is_sign = |word: &String| words[..6].contains(&&word[..]);
    let is_left = term.starts_with(it) && is_word(term.get(it.len()));
    let is_right = term.ends_with(it)
        && term.len() > it.len()
        && is_sign(&term[term.len() - it.len() - 1])
        && term.iter().filter(|word| is_sign(word)).count() == 1;
    // NB: `a < 1 IS NULL` holds where a is NULL.
    let others = ["or", "is", "not", "isnull", "notnull"];
    (is_left || is_right) && !term.iter().any(|word| others.contains(&&word[..]))
}
