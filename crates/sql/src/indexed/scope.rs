//! Which tables a statement names, how they are joined, and what an ON says.
//!
//! Invariant: what is not understood is no table here: then an index stands idle, and no row is missing.

use std::ops::Range;
use std::rc::Rc;

use super::{is_any, Text};
use crate::error::Result;
use crate::schema::Table;
use crate::token::{fold, is_keyword, Kind, Token};

/// What ends a WHERE and an ORDER BY.
pub(super) const ENDS: [&str; 10] =
    ["group", "order", "limit", "having", "window", "returning", "on", "union", "except", "intersect"];

/// What ends an ON.
pub(super) const ENDS_OF_ON: [&str; 16] = [
    "group",
    "order",
    "limit",
    "having",
    "window",
    "returning",
    "on",
    "union",
    "except",
    "intersect",
    "where",
    "join",
    "left",
    "inner",
    "cross",
    ",",
];

/// A table of a SELECT, an UPDATE or a DELETE.
pub(super) struct Scoped {
    pub(super) table: Rc<Table>,
    /// What it is called there.
    pub(super) name: String,
    /// Which token it is.
    pub(super) at: usize,
    /// A LEFT JOIN makes rows without one of its rows.
    pub(super) is_optional: bool,
    /// Columns that are another table's unless they stand behind its name.
    pub(super) others: Vec<String>,
}

impl Text<'_> {
    /// Looks at each ON: of a LEFT JOIN for the table that it joins, of another for all that have a row.
    pub(super) fn look_at_joins(&mut self, outer: &[usize], end: usize, scope: &[Scoped]) -> Result<()> {
        // Which table stands before an ON: JOIN t AS x ON.
        let mut joined = None;
        let mut tables = 0;
        for (number, at) in outer.iter().enumerate() {
            if let Some(found) = scope.iter().position(|scoped| scoped.at == *at) {
                (joined, tables) = (Some(found), found + 1);
            } else if self.tokens[*at].is("join") || self.tokens[*at].is_sign(",") {
                joined = None;
            }
            if !self.tokens[*at].is("on") {
                continue;
            }
            let (from, to) = self.until(outer, number + 1, &ENDS_OF_ON, end);
            if from >= to {
                continue;
            }
            let (terms, is_one) = self.terms(from, to);
            let is_left = self.is_left(outer, number);
            for (place, scoped) in scope[..tables].iter().enumerate() {
                let is_meant = if is_left { Some(place) == joined } else { !scoped.is_optional };
                if is_meant {
                    self.use_indexes(scoped, Some((from, to)), &terms, is_one)?;
                }
            }
        }
        Ok(())
    }

    pub(super) fn is_conflict(&self, at: usize) -> bool {
        self.tokens[at].is("on") && self.tokens.get(at + 1).is_some_and(|next| next.is("conflict"))
    }

    /// Whether the last JOIN before here is a LEFT one.
    pub(super) fn is_left(&self, outer: &[usize], before: usize) -> bool {
        let is = |at: usize, word: &str| self.tokens[outer[at]].is(word);
        let Some(join) = (0..before).rev().find(|at| is(*at, "join")) else { return false };
        let word = join.checked_sub(1).filter(|at| is(*at, "outer")).unwrap_or(join);
        word.checked_sub(1).is_some_and(|at| is(at, "left"))
    }

    /// The tokens from one of the outer ones on, up to one of these words.
    pub(super) fn until(&self, outer: &[usize], first: usize, words: &[&str], end: usize) -> (usize, usize) {
        let ends = |at: &&usize| {
            let token = &self.tokens[**at];
            is_any(token, words) || token.is_sign(";") || words.contains(&",") && token.is_sign(",")
        };
        let rest = outer.get(first..).unwrap_or(&[]);
        let stop = rest.iter().find(ends).copied();
        (outer[first - 1] + 1, stop.unwrap_or_else(|| outer.last().map_or(end, |last| last + 1)))
    }

    /// The tables that a statement names, under their names there.
    pub(super) fn scope(&self, outer: &[usize]) -> Vec<Scoped> {
        let mut scope: Vec<Scoped> = Vec::new();
        let shared = self.shared(outer);
        let has_with = self.tokens.iter().any(|token| token.is("with"));
        let mut is_in_from = false;
        for (number, at) in outer.iter().enumerate() {
            let token = &self.tokens[*at];
            // IS DISTINCT FROM
            if *at > 0 && token.is("from") && self.tokens[at - 1].is("distinct") {
                continue;
            }
            is_in_from |= token.is("from");
            is_in_from &= !is_any(token, &["where", "set", "group", "order", "having", "window", "limit"]);
            let is_before_table = token.is("from")
                || token.is("join")
                || token.is("update")
                || is_in_from && token.is_sign(",");
            if !is_before_table {
                continue;
            }
            let mut at = at + 1;
            if token.is("update") && self.tokens.get(at).is_some_and(|token| token.is("or")) {
                at += 2;
            }
            if self.tokens.get(at + 1).is_some_and(|token| token.is_sign(".")) {
                at += 2;
            }
            let Some(name) = self.tokens.get(at).and_then(Token::name) else { continue };
            let is_first = token.is("from") || token.is("update");
            let Some(table) = self.tables.get(&fold(&name)) else { continue };
            if has_with && self.is_of_with(&name) {
                continue;
            }
            let has_as = self.tokens.get(at + 1).is_some_and(|next| next.is("as"));
            let alias = self.tokens.get(at + 1 + usize::from(has_as));
            let is_alias = |token: &&Token<'_>| {
                matches!(token.kind, Kind::Word | Kind::Name) && (has_as || !is_keyword(token))
            };
            let alias = alias.filter(is_alias).and_then(Token::name);
            scope.push(Scoped {
                table: Rc::clone(table),
                name: alias.unwrap_or(name),
                at,
                is_optional: token.is("join") && self.is_left(outer, number + 1),
                others: if is_first { Vec::new() } else { shared.clone() },
            });
        }
        scope
    }

    /// The columns that a USING names.
    fn shared(&self, outer: &[usize]) -> Vec<String> {
        let mut shared = Vec::new();
        for at in outer.iter().filter(|at| self.tokens[**at].is("using")) {
            let inside = self.tokens[at + 1..].iter().take_while(|token| !token.is_sign(")"));
            shared.extend(inside.filter_map(Token::name).map(|name| fold(&name)));
        }
        shared
    }

    /// Whether a column here is another table's, though it has the name of one of this.
    pub(super) fn is_others(&self, range: &Range<usize>, scoped: &Scoped) -> bool {
        !scoped.others.is_empty()
            && range.clone().any(|at| {
                let is_bare = at == 0 || !self.tokens[at - 1].is_sign(".");
                let name = self.tokens[at].name();
                is_bare && name.is_some_and(|name| scoped.others.contains(&fold(&name)))
            })
    }

    /// Whether WITH may give this name to something else.
    fn is_of_with(&self, name: &str) -> bool {
        self.tokens.windows(2).any(|two| {
            let is_it = two[0].name().is_some_and(|other| other.eq_ignore_ascii_case(name));
            is_it && (two[1].is("as") || two[1].is_sign("("))
        })
    }
}
