//! Pieces of statements that SQLite refuses on virtual tables, taken out of the text: ON CONFLICT and RETURNING.
//!
//! The tokens at the outermost level are looked through; what is ours is cut out, and what is left goes to SQLite. Parameters are
//! numbered first, so that each piece can stand alone.
//!
//! ```text
//! INSERT INTO t(a) VALUES (?) ON CONFLICT(a) DO UPDATE SET n = n + excluded.n RETURNING id
//! INSERT OR IGNORE INTO t(a) VALUES (?1)  |  [a]: n = n + ?2 (excluded.n)  |  id
//! ```
//!
//! Invariant: a text without such pieces is not changed.

mod limited;
mod target;

use crate::error::{Error, Result, SqlState};
use crate::token::{fold, Kind, Token};

pub(crate) use self::limited::with_limit;
pub(crate) use self::target::Target;

/// Which row a column in a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// What an INSERT would have inserted, or what a row becomes.
    New,
    /// What a row was.
    Old,
}

/// A piece of SQL with columns of rows in the places of parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Piece {
    pub(crate) sql: String,
    /// Parameters behind those of the statement.
    pub(crate) columns: Vec<(Version, String)>,
}

/// An ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Upsert {
    /// What keeps the constraint; none: any.
    pub(crate) target: Option<Target>,
    /// What follows SET, and what follows WHERE; none: DO NOTHING.
    pub(crate) update: Option<(String, Option<String>)>,
}

/// A statement in pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pieces {
    /// What SQLite gets.
    pub(crate) sql: String,
    pub(crate) upserts: Vec<Upsert>,
    /// What follows RETURNING.
    pub(crate) returning: Option<String>,
    /// How many parameters the whole statement has.
    pub(crate) parameters: usize,
}

/// Takes a statement apart, if there is something to take out.
pub(crate) fn take_apart(sql: &str, tokens: &[Token<'_>]) -> Result<Option<Pieces>> {
    let changes =
        |token: &Token<'_>| ["insert", "replace", "update", "delete"].iter().any(|word| token.is(word));
    let outer = outermost(tokens);
    let Some(verb) = outer.iter().copied().find(|at| changes(&tokens[*at])) else { return Ok(None) };
    let next = |at: usize, by: usize| tokens.get(at + by);
    let is_conflict = |at: &usize| {
        tokens[*at].is("on")
            && next(*at, 1).is_some_and(|token| token.is("conflict"))
            && next(*at, 2).is_some_and(|token| token.is_sign("(") || token.is("do"))
    };
    let cuts: Vec<usize> = outer
        .iter()
        .copied()
        .filter(|at| *at > verb && (tokens[*at].is("returning") || is_conflict(at)))
        .collect();
    let Some(first) = cuts.first() else { return Ok(None) };
    let (numbered, parameters) = number_parameters(tokens)?;
    let end = tokens.iter().rposition(|token| !token.is_sign(";")).map_or(0, |last| last + 1);
    let text = |from: usize, to: usize| piece_text(sql, tokens, &numbered, from, to);
    let mut pieces = Pieces { parameters, ..Pieces::default() };
    let mut head = text(0, *first);
    for (number, start) in cuts.iter().enumerate() {
        let stop = cuts.get(number + 1).copied().unwrap_or(end);
        if tokens[*start].is("returning") {
            pieces.returning = Some(text(start + 1, stop));
        } else {
            pieces.upserts.push(upsert(tokens, *start, stop, &outer, &text)?);
        }
    }
    if !pieces.upserts.is_empty() {
        if next(verb, 1).is_some_and(|token| token.is("or")) || !tokens[verb].is("insert") {
            let what = "ON CONFLICT says what is done: leave OR out";
            return Err(Error::new(SqlState::REFUSED, what).at(tokens[verb].at));
        }
        head = format!("{} OR IGNORE {}", text(0, verb + 1), text(verb + 1, *first));
    }
    pieces.sql = head;
    Ok(Some(pieces))
}

/// The tokens that stand in no parentheses.
pub(crate) fn outermost(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut depth = 0_usize;
    let mut outer = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        if token.is_sign(")") {
            depth = depth.saturating_sub(1);
        }
        if depth == 0 {
            outer.push(at);
        }
        depth += usize::from(token.is_sign("("));
    }
    outer
}

/// The number of each parameter, as SQLite counts them, and how many there are.
pub(crate) fn number_parameters(tokens: &[Token<'_>]) -> Result<(Vec<usize>, usize)> {
    let (mut numbers, mut names, mut count) = (Vec::new(), Vec::<(&str, usize)>::new(), 0);
    for token in tokens {
        let number = match (token.kind, token.text.strip_prefix('?')) {
            (Kind::Parameter, Some("")) => count + 1,
            (Kind::Parameter, Some(digits)) => {
                digits.parse().ok().filter(|number| (1..=32_766).contains(number)).ok_or_else(|| {
                    Error::new(SqlState::PARAMETER, "variable number must be between ?1 and ?32766")
                        .at(token.at)
                })?
            }
            (Kind::Parameter, None) => match names.iter().find(|(name, _)| *name == token.text) {
                Some((_, number)) => *number,
                None => {
                    names.push((token.text, count + 1));
                    count + 1
                }
            },
            _ => 0,
        };
        count = count.max(number);
        numbers.push(number);
    }
    Ok((numbers, count))
}

/// The text of some tokens, with parameters by number.
fn piece_text(sql: &str, tokens: &[Token<'_>], numbers: &[usize], from: usize, to: usize) -> String {
    let mut out = String::new();
    let mut end = tokens.get(from).map_or(0, |token| token.at);
    for at in from..to {
        if numbers[at] > 0 {
            out.push_str(&sql[end..tokens[at].at]);
            out.push_str(&format!("?{}", numbers[at]));
            end = tokens[at].end();
        }
    }
    if let Some(last) = to.checked_sub(1).filter(|last| *last >= from).and_then(|last| tokens.get(last)) {
        out.push_str(sql.get(end..last.end()).unwrap_or(""));
    }
    out
}

fn upsert(
    tokens: &[Token<'_>],
    start: usize,
    stop: usize,
    outer: &[usize],
    text: &dyn Fn(usize, usize) -> String,
) -> Result<Upsert> {
    let wrong = |at: usize, what: &str| {
        let place = tokens.get(at).or(tokens.last()).map_or(0, |token| token.at);
        Error::new(SqlState::SYNTAX, format!("expected {what}")).at(place)
    };
    let mut at = start + 2;
    let mut target = None;
    if tokens.get(at).is_some_and(|token| token.is_sign("(")) {
        let is_do = |at: &usize| tokens[*at].is("do");
        let end = outer.iter().copied().find(|other| *other > at && *other < stop && is_do(other));
        let end = end.ok_or_else(|| wrong(stop, "DO"))?;
        target = Some(Target::read(&tokens[at..end]).ok_or_else(|| wrong(at, "columns, and WHERE"))?);
        at = end;
    }
    if !tokens.get(at).is_some_and(|token| token.is("do")) {
        return Err(wrong(at, "DO"));
    }
    if tokens.get(at + 1).is_some_and(|token| token.is("nothing")) {
        return Ok(Upsert { target, update: None });
    }
    let has_set = tokens.get(at + 1).is_some_and(|token| token.is("update"))
        && tokens.get(at + 2).is_some_and(|token| token.is("set"));
    if !has_set {
        return Err(wrong(at + 1, "NOTHING or UPDATE SET"));
    }
    let condition =
        outer.iter().copied().find(|other| *other > at && *other < stop && tokens[*other].is("where"));
    let sets = text(at + 3, condition.unwrap_or(stop));
    let condition = condition.map(|condition| text(condition + 1, stop));
    Ok(Upsert { target, update: Some((sets, condition)) })
}

/// The text with parameters from `first` on in the places of `excluded.a`, or of `new.a` and `old.a`; RAISE becomes a function.
pub(crate) fn with_rows(
    sql: &str,
    tokens: &[Token<'_>],
    versions: &[(&str, Version)],
    first: usize,
) -> Piece {
    let mut piece = Piece { sql: String::new(), columns: Vec::new() };
    let (mut end, mut at) = (0, 0);
    while at < tokens.len() {
        let token = &tokens[at];
        let is_name = matches!(token.kind, Kind::Word | Kind::Name);
        let name = if is_name { token.name() } else { None };
        let version =
            name.and_then(|name| versions.iter().find(|(word, _)| word.eq_ignore_ascii_case(&name)));
        let column = tokens.get(at + 2).and_then(Token::name);
        let is_member = tokens.get(at + 1).is_some_and(|token| token.is_sign("."));
        let is_after_point = at > 0 && tokens[at - 1].is_sign(".");
        if let (Some((_, version)), Some(column), true, false) = (version, column, is_member, is_after_point)
        {
            let wanted = (*version, fold(&column));
            let known = piece.columns.iter().position(|other| *other == wanted);
            let number = known.unwrap_or_else(|| {
                piece.columns.push(wanted);
                piece.columns.len() - 1
            });
            piece.sql.push_str(&sql[end..token.at]);
            piece.sql.push_str(&format!("?{}", first + number));
            end = tokens[at + 2].end();
            at += 3;
            continue;
        }
        if token.is("raise") && tokens.get(at + 1).is_some_and(|token| token.is_sign("(")) {
            piece.sql.push_str(&sql[end..token.at]);
            piece.sql.push_str(RAISE);
            end = token.end();
            if let Some(kind) = tokens.get(at + 2) {
                piece.sql.push_str(&format!("('{}'", fold(kind.text)));
                end = kind.end();
                at += 2;
            }
        }
        at += 1;
    }
    piece.sql.push_str(&sql[end..]);
    piece
}

/// The function that RAISE becomes.
pub(crate) const RAISE: &str = "perilune_raise";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    #[test]
    fn statements_are_taken_apart() {
        let sql =
            "INSERT INTO t(a, b) VALUES (?, :b) ON CONFLICT (a) DO UPDATE SET b = excluded.b || ?, a = :b \
                   WHERE t.b > ?1 ON CONFLICT DO NOTHING RETURNING a, (SELECT 1 FROM x WHERE y = ?) AS z;";
        let tokens = tokens(sql).expect("tokens");
        let pieces = take_apart(sql, &tokens).expect("pieces").expect("some");
        assert_eq!(pieces.sql, "INSERT OR IGNORE INTO t(a, b) VALUES (?1, ?2)");
        assert_eq!(pieces.returning.as_deref(), Some("a, (SELECT 1 FROM x WHERE y = ?4) AS z"));
        assert_eq!(pieces.parameters, 4);
        let sets = ("b = excluded.b || ?3, a = ?2".to_owned(), Some("t.b > ?1".to_owned()));
        assert_eq!(pieces.upserts[0], Upsert { target: Target::read(&tokens[16..19]), update: Some(sets) });
        assert_eq!(pieces.upserts[1], Upsert { target: None, update: None });
    }

    #[test]
    fn rows_become_parameters() {
        let sql = "INSERT INTO log SELECT NEW.a, old.b, t.new, new.a, RAISE(ABORT, 'no') FROM t";
        let piece =
            with_rows(sql, &tokens(sql).expect("tokens"), &[("new", Version::New), ("old", Version::Old)], 5);
        assert_eq!(
            piece.sql,
            "INSERT INTO log SELECT ?5, ?6, t.new, ?5, perilune_raise('abort', 'no') FROM t"
        );
        assert_eq!(piece.columns, [(Version::New, "a".into()), (Version::Old, "b".into())]);
    }
}
