//! AlchemyDB's way to write statements, in SQL's words: for whoever takes its requests.
//!
//! ```text
//! SCAN id FROM t                                         SELECT id FROM t
//! INSERT INTO t VALUES (,1) (,2)                         INSERT INTO t VALUES (NULL,1), (NULL,2)
//! INSERT ... ON DUPLICATE KEY UPDATE n = n + 1           INSERT ... ON CONFLICT DO UPDATE SET n = n + 1
//! CREATE TABLE t SELECT ...                              CREATE TABLE t AS SELECT ...
//! UPDATE t SET name = name .. 'x'                        UPDATE t SET name = name || 'x'
//! CREATE INDEX i ON t (info.age) LONG                    CREATE INDEX i ON t (info.age)
//! ```
//!
//! Invariant: none of the left ones is SQL; a text without them is not changed.

mod commands;
mod indexes;

use std::borrow::Cow;

pub use self::commands::{foreign, Foreign, COMMANDS};
use crate::error::Result;
use crate::rewrite::outermost;
use crate::token::{tokens, Kind, Token};

/// The statement in SQL's words.
///
/// # Errors
/// `SYNTAX` for a text that does not end.
pub fn in_sql(sql: &str) -> Result<Cow<'_, str>> {
    let tokens = tokens(sql)?;
    let mut edits = Vec::new();
    scans(&tokens, &mut edits);
    created_from(&tokens, &mut edits);
    on_duplicate(&tokens, &mut edits);
    values(&tokens, &mut edits);
    concatenated(&tokens, &mut edits);
    wide(&tokens, &mut edits);
    indexes::indexes(sql, &tokens, &mut edits);
    if edits.is_empty() {
        return Ok(Cow::Borrowed(sql));
    }
    edits.sort_by_key(|edit: &Edit<'_>| edit.from);
    let (mut out, mut end) = (String::with_capacity(sql.len() + 64), 0);
    for edit in edits {
        out.push_str(&sql[end..edit.from]);
        out.push_str(edit.text);
        end = edit.to;
    }
    out.push_str(&sql[end..]);
    Ok(Cow::Owned(out))
}

/// Bytes that become a text.
struct Edit<'a> {
    from: usize,
    to: usize,
    text: &'a str,
}

fn insert(at: usize, text: &'static str) -> Edit<'static> {
    Edit { from: at, to: at, text }
}

fn scans(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    for (at, token) in tokens.iter().enumerate() {
        if token.is("scan") && (at == 0 || tokens[at - 1].is_sign("(")) {
            edits.push(Edit { from: token.at, to: token.end(), text: "SELECT" });
        }
    }
}

fn created_from(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
    if is(0, "create") && is(1, "table") && is(3, "select") {
        edits.push(insert(tokens[3].at, "AS "));
    }
}

fn on_duplicate(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    for four in tokens.windows(4) {
        if ["on", "duplicate", "key", "update"].iter().zip(four).all(|(word, token)| token.is(word)) {
            edits.push(Edit { from: four[0].at, to: four[3].end(), text: "ON CONFLICT DO UPDATE SET" });
        }
    }
}

/// Rows of VALUES without commas between them, and values that are left out.
fn values(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    let is_insert = tokens.first().is_some_and(|first| first.is("insert") || first.is("replace"));
    let outer = outermost(tokens);
    let Some(from) = outer.iter().position(|at| tokens[*at].is("values")).filter(|_| is_insert) else {
        return;
    };
    let mut open = None;
    for pair in outer[from..].windows(2) {
        let (token, next) = (&tokens[pair[0]], &tokens[pair[1]]);
        if token.is_sign(")") && next.is_sign("(") {
            edits.push(insert(token.end(), ","));
        }
        if token.is_sign("(") && next.is_sign(")") {
            open = Some((pair[0], pair[1]));
        } else if !token.is_sign(")") && !token.is_sign(",") && !token.is("values") {
            // What follows the rows has parentheses of its own.
            return;
        }
        if let Some((first, last)) = open.take() {
            blanks(&tokens[first..=last], edits);
        }
    }
}

/// Values of a row that are left out: between its parentheses and commas.
fn blanks(row: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    let is_edge = |at: usize| row[at].is_sign(",") || at == 0 || at + 1 == row.len();
    let mut depth = 0_usize;
    for at in 0..row.len() - 1 {
        depth += usize::from(row[at].is_sign("("));
        depth -= usize::from(row[at].is_sign(")"));
        if depth == 1 && row.len() > 2 && is_edge(at) && is_edge(at + 1) {
            edits.push(insert(row[at].end(), "NULL"));
        }
    }
}

/// Lua's `..` between texts.
fn concatenated(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    for pair in tokens.windows(2) {
        if pair[0].is_sign(".") && pair[1].is_sign(".") && pair[0].end() == pair[1].at {
            edits.push(Edit { from: pair[0].at, to: pair[1].end(), text: "||" });
        }
    }
}

/// Numbers of 128 bits, `888|9999`, which are texts: AlchemyDB has no operator of this sign.
fn wide(tokens: &[Token<'_>], edits: &mut Vec<Edit<'_>>) {
    let is_bar = |at: Option<usize>| at.and_then(|at| tokens.get(at)).is_some_and(|token| token.is_sign("|"));
    let is_whole = |token: &Token<'_>| {
        token.kind == Kind::Number && token.text.bytes().all(|byte| byte.is_ascii_digit())
    };
    for (at, three) in tokens.windows(3).enumerate() {
        let [high, bar, low] = three else { continue };
        let is_alone = !is_bar(at.checked_sub(1)) && !is_bar(Some(at + 3));
        let is_one = high.end() == bar.at && bar.end() == low.at && is_alone;
        if is_one && is_whole(high) && bar.is_sign("|") && is_whole(low) {
            edits.push(insert(high.at, "'"));
            edits.push(insert(low.end(), "'"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::in_sql;

    #[test]
    fn spellings_become_sql() {
        for (theirs, ours) in [
            ("SCAN id FROM t", "SELECT id FROM t"),
            ("SELECT a FROM t WHERE a IN (SCAN b FROM u)", "SELECT a FROM t WHERE a IN (SELECT b FROM u)"),
            ("INSERT INTO t VALUES (1,'a') (2,'b')", "INSERT INTO t VALUES (1,'a'), (2,'b')"),
            (
                "INSERT INTO t(a, b) VALUES (,f(1)) (3,,)",
                "INSERT INTO t(a, b) VALUES (NULL,f(1)), (3,NULL,NULL)",
            ),
            (
                "INSERT INTO t VALUES (1,2) (2,3) ON DUPLICATE KEY UPDATE n = n * (9)",
                "INSERT INTO t VALUES (1,2), (2,3) ON CONFLICT DO UPDATE SET n = n * (9)",
            ),
            ("CREATE TABLE t SELECT a FROM b", "CREATE TABLE t AS SELECT a FROM b"),
            (
                "INSERT INTO t VALUES (111,888|9999) (,0|1)",
                "INSERT INTO t VALUES (111,'888|9999'), (NULL,'0|1')",
            ),
            ("SELECT pk FROM t WHERE cu = 888|9999", "SELECT pk FROM t WHERE cu = '888|9999'"),
            ("SELECT 1|2|3, 1 | 2, a|1, 1.5|2, 1||2 FROM t", "SELECT 1|2|3, 1 | 2, a|1, 1.5|2, 1||2 FROM t"),
            ("UPDATE t SET a = a .. 'x'", "UPDATE t SET a = a || 'x'"),
            ("CREATE UNIQUE INDEX i ON t (lo.a, lo.b) LONG", "CREATE UNIQUE INDEX i ON t (lo.a, lo.b)"),
            ("CREATE INDEX i ON t (a) ORDER BY b", "CREATE INDEX i ON t (a, b)"),
            ("CREATE INDEX i ON t (a) LIMIT 10", "CREATE INDEX i ON t (a)"),
            ("CREATE INDEX i ON t (f()) LONG make", "CREATE INDEX i ON t (f()) LONG make"),
            ("INSERT INTO t VALUES (1, 'on (a) (b)')", "INSERT INTO t VALUES (1, 'on (a) (b)')"),
            ("SELECT a.b FROM scan", "SELECT a.b FROM scan"),
        ] {
            assert_eq!(in_sql(theirs).expect("a statement"), ours);
        }
        assert!(in_sql("INSERT INTO t VALUES ('").is_err());
    }
}
