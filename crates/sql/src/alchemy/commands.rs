//! Commands of a host inside statements: what AlchemyDB calls Morph.
//!
//! ```text
//! SELECT id, name FROM users STORE HSET names        each row becomes the arguments of a command
//! CREATE TABLE t AS LRANGE list 0 -1                 what a command answers becomes a table
//! SELECT name FROM users WHERE id IN (SMEMBERS s)    ... or a list
//! DENORM users user:*, NORM user:* payment           rows as hashes, and keys as rows
//! ```
//!
//! Which commands there are the host says, and it runs them: here texts are taken apart alone. What a command answers is a table in
//! FROM, of the name [`COMMANDS`].
//!
//! Invariant: none of these texts is SQL, so they are looked for only in what SQL has refused.

use crate::error::{Error, Result, SqlState};
use crate::rewrite::outermost;
use crate::token::{fold, tokens, Kind, Token};

/// The table of what a command answers: `SELECT pk, name, value FROM redis('HGETALL', 'h')`.
pub const COMMANDS: &str = "redis";

/// A statement that names commands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// The rows of a query are given to a command, one by one.
    Store {
        /// The query.
        query: String,
        /// The command and its key, whose `$` stands for the first column.
        command: Vec<String>,
    },
    /// What a command answers becomes a table.
    Create {
        /// It may be there already.
        if_not_exists: bool,
        /// The table.
        table: String,
        /// The command.
        command: Vec<String>,
    },
    /// Rows become hashes.
    Denorm {
        /// The table.
        table: String,
        /// The names of the keys, with `*` for the first column.
        pattern: String,
    },
    /// Keys become rows.
    Norm {
        /// The names of the keys.
        pattern: String,
        /// Parts of names that become tables of their own.
        parts: Vec<String>,
    },
    /// A statement in which commands have become tables.
    Statement(String),
}

/// What a statement that SQL refuses says, if it names commands; `reads` and `writes` tell them by their names.
///
/// # Errors
/// `SYNTAX` for what begins as one of these and is none.
pub fn foreign(
    sql: &str,
    reads: &dyn Fn(&str) -> bool,
    writes: &dyn Fn(&str) -> bool,
) -> Result<Option<Foreign>> {
    let sql = sql.trim().trim_end_matches(';');
    let first = sql.split_whitespace().next().unwrap_or("");
    if first.eq_ignore_ascii_case("denorm") || first.eq_ignore_ascii_case("norm") {
        return norm(sql).map(Some);
    }
    let tokens = tokens(sql)?;
    if let Some(create) = create(sql, &tokens, reads)? {
        return Ok(Some(create));
    }
    if let Some(store) = store(sql, &tokens, writes)? {
        return Ok(Some(store));
    }
    Ok(lists(sql, &tokens, reads)?.map(Foreign::Statement))
}

fn norm(sql: &str) -> Result<Foreign> {
    let words = words(sql)?;
    let parts = |text: &String| {
        let text = text.trim_matches(['[', ']']);
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    match (fold(&words[0]).as_str(), &words[1..]) {
        ("denorm", [table, pattern]) => {
            Ok(Foreign::Denorm { table: table.clone(), pattern: pattern.clone() })
        }
        ("norm", [pattern]) => Ok(Foreign::Norm { pattern: pattern.clone(), parts: Vec::new() }),
        ("norm", [pattern, list]) => Ok(Foreign::Norm { pattern: pattern.clone(), parts: parts(list) }),
        _ => Err(Error::new(SqlState::SYNTAX, "expected DENORM table pattern, or NORM pattern [part,part]")),
    }
}

fn create(sql: &str, tokens: &[Token<'_>], reads: &dyn Fn(&str) -> bool) -> Result<Option<Foreign>> {
    let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
    if !is(0, "create") || !is(1, "table") {
        return Ok(None);
    }
    let if_not_exists = is(2, "if") && is(3, "not") && is(4, "exists");
    let at = if if_not_exists { 5 } else { 2 };
    let (Some(table), Some(command)) = (tokens.get(at).and_then(Token::name), tokens.get(at + 2)) else {
        return Ok(None);
    };
    let is_command = command.is("dump") || command.kind == Kind::Word && reads(command.text);
    if !is(at + 1, "as") || !is_command {
        return Ok(None);
    }
    Ok(Some(Foreign::Create { if_not_exists, table, command: words(&sql[command.at..])? }))
}

fn store(sql: &str, tokens: &[Token<'_>], writes: &dyn Fn(&str) -> bool) -> Result<Option<Foreign>> {
    let outer = outermost(tokens);
    let is_store = |pair: &[usize]| {
        let (store, command) = (&tokens[pair[0]], &tokens[pair[1]]);
        store.is("store") && command.kind == Kind::Word && writes(command.text)
    };
    let Some(pair) = outer.windows(2).rev().find(|pair| is_store(pair)) else { return Ok(None) };
    let command = words(&sql[tokens[pair[1]].at..])?;
    if command.len() < 2 {
        return Err(Error::new(SqlState::SYNTAX, "expected STORE command key").at(tokens[pair[0]].at));
    }
    Ok(Some(Foreign::Store { query: sql[..tokens[pair[0]].at].trim_end().to_owned(), command }))
}

/// The statement with tables in the places of commands behind IN; none, if there are none.
fn lists(sql: &str, tokens: &[Token<'_>], reads: &dyn Fn(&str) -> bool) -> Result<Option<String>> {
    let (mut out, mut end, mut at) = (String::new(), 0, 0);
    while at + 3 < tokens.len() {
        let is_list = tokens[at].is("in") && tokens[at + 1].is_sign("(");
        let first = &tokens[at + 2];
        // `$LRANGE` is how AlchemyDB wrote it.
        let name = first.text.strip_prefix('$').unwrap_or(first.text);
        let is_name = matches!(first.kind, Kind::Word | Kind::Parameter) && reads(name);
        let follows = !tokens[at + 3].is_sign(",") && !tokens[at + 3].is_sign(")");
        if !is_list || !is_name || !follows {
            at += 1;
            continue;
        }
        let close = closing(tokens, at + 1)
            .ok_or_else(|| Error::new(SqlState::SYNTAX, "expected )").at(tokens[at + 1].at))?;
        let start = first.at + first.text.len() - name.len();
        let arguments: Vec<String> =
            words(&sql[start..tokens[close].at])?
                .iter()
                .map(|word| {
                    if is_parameter(word) {
                        word.clone()
                    } else {
                        format!("'{}'", word.replace('\'', "''"))
                    }
                })
                .collect();
        out.push_str(&sql[end..first.at]);
        out.push_str(&format!("SELECT value FROM {COMMANDS}({})", arguments.join(", ")));
        end = tokens[close].at;
        at = close;
    }
    if end == 0 {
        return Ok(None);
    }
    out.push_str(&sql[end..]);
    Ok(Some(out))
}

fn is_parameter(word: &str) -> bool {
    word.strip_prefix('?').is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Where the parenthesis closes that is open at `at`.
fn closing(tokens: &[Token<'_>], at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (place, token) in tokens.iter().enumerate().skip(at) {
        depth += usize::from(token.is_sign("("));
        if token.is_sign(")") {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return Some(place);
            }
        }
    }
    None
}

/// The words of a command: between blanks, or in quotes, which are written twice in themselves.
fn words(text: &str) -> Result<Vec<String>> {
    let (mut all, mut rest) = (Vec::new(), text.trim_start());
    while let Some(first) = rest.chars().next() {
        if first != '\'' && first != '"' {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            all.push(rest[..end].to_owned());
            rest = rest[end..].trim_start();
            continue;
        }
        let (mut word, mut at) = (String::new(), 1);
        loop {
            let Some(length) = rest[at..].find(first) else {
                return Err(Error::new(SqlState::SYNTAX, format!("a quote does not end: {rest}")));
            };
            word.push_str(&rest[at..at + length]);
            at += length + 1;
            if !rest[at..].starts_with(first) {
                break;
            }
            word.push(first);
            at += 1;
        }
        all.push(word);
        rest = rest[at..].trim_start();
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<Foreign> {
        let is = |name: &str, all: &[&str]| all.iter().any(|other| other.eq_ignore_ascii_case(name));
        let reads = |name: &str| is(name, &["LRANGE", "smembers", "hgetall"]);
        foreign(sql, &reads, &|name| is(name, &["hset", "zadd"])).expect("a statement")
    }

    fn strings(all: &[&str]) -> Vec<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn commands_are_taken_out() {
        let store = read("SELECT a, b FROM t WHERE c = ? STORE HSET 'my key'");
        let query = "SELECT a, b FROM t WHERE c = ?".to_owned();
        assert_eq!(store, Some(Foreign::Store { query, command: strings(&["HSET", "my key"]) }));
        let create = read("CREATE TABLE IF NOT EXISTS t AS lrange user:1:l 0 -1;");
        let command = strings(&["lrange", "user:1:l", "0", "-1"]);
        assert_eq!(create, Some(Foreign::Create { if_not_exists: true, table: "t".into(), command }));
        let lists = read("SELECT a FROM t WHERE a IN (LRANGE l 0 -1) AND b IN ($smembers ? ) OR c IN (1, 2)");
        let wanted = "SELECT a FROM t WHERE a IN (SELECT value FROM redis('LRANGE', 'l', '0', '-1')) \
                      AND b IN (SELECT value FROM redis('smembers', ?)) OR c IN (1, 2)";
        assert_eq!(lists, Some(Foreign::Statement(wanted.into())));
        let denorm = Foreign::Denorm { table: "t".into(), pattern: "user:*".into() };
        assert_eq!(read("DENORM t \"user:*\""), Some(denorm));
        let norm = Foreign::Norm { pattern: "user:*".into(), parts: strings(&["payment", "address"]) };
        assert_eq!(read("norm user:* [payment,address]"), Some(norm));
    }

    #[test]
    fn other_errors_stay_what_they_are() {
        for sql in [
            "SELEC 1",
            "SELECT a store FROM t x y",
            "SELECT a FROM t WHERE a IN (lrange, b) x y",
            "CREATE TABLE t AS x y",
        ] {
            assert_eq!(read(sql), None, "{sql}");
        }
    }
}
