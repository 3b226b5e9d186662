//! UPDATE and DELETE with ORDER BY and LIMIT, which SQLite has not been built for: of the rows that a query chooses.
//!
//! ```text
//! DELETE FROM t WHERE a > 1 ORDER BY b LIMIT 3
//! DELETE FROM t WHERE rowid IN (SELECT rowid FROM t WHERE a > 1 ORDER BY b LIMIT 3)
//! ```
//!
//! Invariant: what is chosen stands in the text where it stood, so that parameters keep their order.

use super::outermost;
use crate::token::Token;

/// The statement with its rows chosen by a query, if it has a LIMIT; `key` is what rows are named by.
pub(crate) fn with_limit(sql: &str, tokens: &[Token<'_>], key: &str) -> Option<String> {
    let outer = outermost(tokens);
    let verb = *outer.iter().find(|at| tokens[**at].is("update") || tokens[**at].is("delete"))?;
    let after = |word: &str| outer.iter().copied().find(|at| *at > verb && tokens[*at].is(word));
    let limit = after("limit")?;
    let order = after("order").filter(|at| tokens.get(at + 1).is_some_and(|next| next.is("by")));
    let tail = order.map_or(limit, |order| order.min(limit));
    let is_update = tokens[verb].is("update");
    let from = outer.iter().copied().filter(|at| *at > verb && *at < tail && tokens[*at].is("from"));
    // UPDATE ... FROM has no LIMIT.
    if is_update && from.clone().next().is_some() {
        return None;
    }
    let mut first = if is_update { verb + 1 } else { from.clone().next()? + 1 };
    if tokens.get(first).is_some_and(|token| token.is("or")) {
        first += 2;
    }
    let condition = after("where").filter(|at| *at < tail);
    let end_of_target = match is_update {
        true => after("set")?,
        false => condition.unwrap_or(tail),
    };
    let text =
        |from: usize, to: usize| match (tokens.get(from), to.checked_sub(1).and_then(|to| tokens.get(to))) {
            (Some(from), Some(to)) if from.at < to.end() => &sql[from.at..to.end()],
            _ => "",
        };
    let last = tokens.iter().rposition(|token| !token.is_sign(";")).map_or(0, |last| last + 1);
    let head = text(0, condition.unwrap_or(tail));
    let (target, chosen) = (text(first, end_of_target), text(condition.unwrap_or(tail), last));
    Some(format!("{head} WHERE {key} IN (SELECT {key} FROM {target} {chosen})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    #[test]
    fn a_query_chooses_the_rows() {
        let limited = |sql: &str| with_limit(sql, &tokens(sql).expect("tokens"), "rowid");
        assert_eq!(
            limited("DELETE FROM t WHERE a > ? ORDER BY b LIMIT ?;").as_deref(),
            Some("DELETE FROM t WHERE rowid IN (SELECT rowid FROM t WHERE a > ? ORDER BY b LIMIT ?)")
        );
        assert_eq!(
            limited("UPDATE OR IGNORE t AS x SET a = (SELECT 1 LIMIT 1) LIMIT 2 OFFSET 3").as_deref(),
            Some("UPDATE OR IGNORE t AS x SET a = (SELECT 1 LIMIT 1) WHERE rowid IN (SELECT rowid FROM t AS x LIMIT 2 OFFSET 3)")
        );
        assert_eq!(limited("DELETE FROM t WHERE a IN (SELECT a FROM u LIMIT 1)"), None);
        assert_eq!(limited("UPDATE t SET a = 1 FROM u LIMIT 1"), None);
    }
}
