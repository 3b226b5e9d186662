//! What an ON CONFLICT is about: a key, or an index by what it holds and which rows.
//!
//! ```text
//! ON CONFLICT (lower(name), city COLLATE NOCASE) WHERE age > 17 DO NOTHING
//! CREATE UNIQUE INDEX i ON t(lower(name), city COLLATE NOCASE) WHERE age > 17
//! ```
//!
//! Invariant: words are compared as their tokens, so that blanks, quotes and letters' case do not count.

use super::outermost;
use crate::token::{fold, normal, without_parentheses, Token};

/// What stands between CONFLICT and DO.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Target {
    /// Columns and expressions, with how their texts are compared, where that is said.
    pub(crate) parts: Vec<(Vec<String>, Option<String>)>,
    pub(crate) condition: Option<Vec<String>>,
}

impl Target {
    /// By its tokens; none: it is none.
    pub(super) fn read(text: &[Token<'_>]) -> Option<Target> {
        let outer = outermost(text);
        let close = outer.iter().copied().find(|at| text[*at].is_sign(")"))?;
        let condition = match &text[close + 1..] {
            [] => None,
            [word, condition @ ..] if word.is("where") && !condition.is_empty() => {
                Some(normal(without_parentheses(condition), &[]))
            }
            _ => return None,
        };
        let inside = text.get(1..close)?;
        let commas = outermost(inside).into_iter().filter(|at| inside[*at].is_sign(","));
        let (mut parts, mut start) = (Vec::new(), 0);
        for end in commas.chain([inside.len()]) {
            parts.push(part(inside.get(start..end)?)?);
            start = end + 1;
        }
        Some(Target { parts, condition })
    }
}

fn part(words: &[Token<'_>]) -> Option<(Vec<String>, Option<String>)> {
    let (words, collation) = match words {
        [of @ .., collate, name] if collate.is("collate") => (of, Some(fold(&name.name()?))),
        _ => (words, None),
    };
    let words = normal(without_parentheses(words), &[]);
    (!words.is_empty()).then_some((words, collation))
}
