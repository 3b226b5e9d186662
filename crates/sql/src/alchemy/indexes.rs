//! AlchemyDB's CREATE INDEX in SQL's words.
//!
//! ```text
//! CREATE INDEX i ON t (info.age) LONG        CREATE INDEX i ON t (info.age)
//! CREATE INDEX i ON t (a) ORDER BY b         CREATE INDEX i ON t (a, b)
//! CREATE INDEX i ON t (a) LIMIT 1000         CREATE INDEX i ON t (a)
//! ```
//!
//! An index here holds values of any type; rows of one value lie in the order of the columns behind it; all rows are taken in at
//! once, while others write.
//!
//! Invariant: what names functions behind the type, an index that code keeps, is not changed.

use super::{insert, Edit};
use crate::rewrite::outermost;
use crate::token::{Kind, Token};

/// What of such a statement becomes something else.
pub(super) fn indexes<'a>(text: &'a str, tokens: &[Token<'_>], edits: &mut Vec<Edit<'a>>) {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
    let is_index = is(0, "create") && (is(1, "index") || is(1, "unique") && is(2, "index"));
    let outer = outermost(tokens);
    let close = outer.iter().position(|at| tokens[*at].is_sign(")")).filter(|_| is_index);
    let Some(close) = close.map(|at| outer[at]) else { return };
    let end = tokens[close + 1..]
        .iter()
        .position(|token| token.is_sign(";"))
        .map_or(tokens.len(), |at| close + 1 + at);
    let behind = &tokens[close + 1..end];
    match behind {
        [one] if one.kind == Kind::Word => edits.push(cut(tokens[close].end(), one.end())),
        [limit, number] if limit.is("limit") && number.kind == Kind::Number => {
            edits.push(cut(tokens[close].end(), number.end()));
        }
        [order, by, column] if order.is("order") && by.is("by") => {
            edits.push(insert(tokens[close].at, ", "));
            edits.push(Edit {
                from: tokens[close].at,
                to: tokens[close].at,
                text: &text[column.at..column.end()],
            });
            edits.push(cut(tokens[close].end(), column.end()));
        }
        _ => {}
    }
}

fn cut(from: usize, to: usize) -> Edit<'static> {
    Edit { from, to, text: "" }
}
