//! Which constraint an ON CONFLICT is about.
//!
//! As in SQLite: its parts are those of an index in any order, and its condition is that of the index, in the same words. An index
//! of all rows is meant whatever the condition is.
//!
//! Invariant: what a statement does about one constraint is never done about another.

use crate::error::Result;
use crate::rewrite::Target;
use crate::schema::{Collation, Computed, Index, Table};
use crate::token::{fold, normal, tokens, without_parentheses};

/// Whether an ON CONFLICT means this unique index of a table; none: its key.
pub(crate) fn means(target: &Target, table: &Table, index: Option<&Index>) -> Result<bool> {
    let Some(index) = index else {
        let key = table.key_columns();
        let is_rowid =
            |words: &[String]| matches!(words, [one] if ["rowid", "oid", "_rowid_"].contains(&&one[..]));
        if let ([(one, _)], true) = (&target.parts[..], table.has_rowid()) {
            return Ok(is_rowid(one) || key.first().is_some_and(|column| is_part(table, *column, one)));
        }
        let has = |column: &usize| target.parts.iter().any(|(words, _)| is_part(table, *column, words));
        return Ok(target.parts.len() == key.len() && key.iter().all(has));
    };
    if let Some(condition) = index.condition {
        let Some(Computed::Condition(text)) = &table.columns[condition].computed else {
            return Ok(false);
        };
        let own = tokens(text)?;
        let qualified = normal(without_parentheses(&own), &[&fold(&table.name)]);
        if target.condition.as_ref() != Some(&qualified) {
            return Ok(false);
        }
    }
    let has = |(column, collation): &(usize, Collation)| {
        target.parts.iter().any(|(words, by)| {
            let is_by = by.as_ref().is_none_or(|by| collation.name().eq_ignore_ascii_case(by));
            is_by && is_part(table, *column, words)
        })
    };
    Ok(target.parts.len() == index.columns.len() && index.columns.iter().all(has))
}

/// Whether a column of an index is called so: by its name, the path of an element, or the words of an expression.
fn is_part(table: &Table, column: usize, words: &[String]) -> bool {
    let column = &table.columns[column];
    match (&column.computed, &column.element) {
        (Some(_), _) => column.name.strip_prefix('%') == Some(&words.join(" ")),
        (None, Some(_)) => column.name.eq_ignore_ascii_case(&words.concat()),
        (None, None) => matches!(words, [name] if fold(&column.name) == *name),
    }
}
