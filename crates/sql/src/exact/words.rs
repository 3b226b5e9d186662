//! What single tokens are where an operand could stand.

use super::Sort;
use crate::decimal::DIGITS;
use crate::error::{Error, Result, SqlState};
use crate::token::{Kind, Token};

/// What a number in a statement is.
pub(super) fn literal(token: &Token<'_>) -> Result<Sort> {
    let text = token.text;
    if text.bytes().any(|byte| !byte.is_ascii_digit() && byte != b'.') {
        return Ok(Sort::Other);
    }
    if !text.contains('.') {
        return Ok(Sort::Whole);
    }
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_start_matches('0').trim_end_matches('0');
    if digits.len() > DIGITS as usize {
        let what = format!(
            "{text} has more than {DIGITS} digits, which no double keeps: round it, or write it as a text"
        );
        return Err(Error::new(SqlState::RANGE, what).at(token.at));
    }
    Ok(Sort::Fraction)
}

/// Whether a word is no name where an operand could stand.
pub(super) fn is_reserved(token: &Token<'_>) -> bool {
    const WORDS: &str = "all and as asc between by case check collate conflict constraint cross create current default delete \
        desc distinct do else end escape except exists explain filter first following for from full glob group groups having \
        ignore in indexed inner insert intersect into is isnull join last left like limit match materialized natural not \
        nothing notnull null nulls offset on or order outer over partition plan preceding query range recursive regexp replace \
        returning right rows select set table temp temporary then to trigger unbounded union unique update using values view \
        when where window with";
    token.kind == Kind::Word && WORDS.split_whitespace().any(|word| token.is(word))
}
