//! Statements that can use a partial index, or one on an expression: hidden columns of the table come into the text, which the
//! planner sees.
//!
//! ```text
//! CREATE INDEX i ON t(lower(name)) WHERE age > 17
//! SELECT id FROM t WHERE lower(name) = ?1 AND age > 17
//! SELECT id FROM t WHERE "t"."%lower ( name )" = ?1 AND age > 17 AND "t"."%where i" = 1
//! ```
//!
//! A partial index serves a WHERE of which terms, joined by AND, are those of the index's condition; `x IS NOT NULL` in that also
//! follows from a comparison of x. These are SQLite's rules.
//!
//! Invariants
//! - The column of an expression stands only beside values, parameters and calls, of which SQLite converts neither; and in ORDER BY.
//! - A table that a LEFT JOIN leaves out for some rows is looked for by that join's ON alone: what computes NULL there is not NULL
//!   of columns. Where RIGHT, FULL, NATURAL or a name of WITH might mean other rows or columns, nothing is changed.
//! - A column that USING names, without a table's name, is the first table's.

mod choice;
mod coded;
mod implied;
mod pure;
mod scope;
mod viewed;

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

pub(crate) use self::choice::{Choice, Source};
pub(crate) use self::coded::{with_code_indexes, without_owners};
use self::implied::{compares, is_plain, not_null};
use self::scope::{Scoped, ENDS};
pub(crate) use self::viewed::with_views;
use crate::error::Result;
use crate::rewrite::outermost;
use crate::schema::{Computed, Table};
use crate::token::{fold, normal, quote, tokens as cut, without_parentheses, Kind, Token};

/// A statement with columns of indexes.
pub(crate) struct Indexed {
    pub(crate) sql: String,
    /// Tables of which expressions may have to be computed.
    pub(crate) computing: Vec<String>,
}

/// A place in the text, and what comes there.
type Edit = (Range<usize>, String);

/// A SELECT, an UPDATE or a DELETE in a text.
struct Part {
    /// Its tokens outside of parentheses.
    outer: Vec<usize>,
    /// Where the tokens end that it stands among.
    end: usize,
    /// UNION or its kin join it with another one.
    is_compound: bool,
}

struct Text<'a> {
    tokens: &'a [Token<'a>],
    tables: &'a HashMap<String, Rc<Table>>,
    edits: Vec<Edit>,
    computing: Vec<String>,
}

/// The statement with columns of indexes; none: it can use none of these.
pub(crate) fn with_indexes(
    sql: &str,
    tokens: &[Token<'_>],
    tables: &HashMap<String, Rc<Table>>,
) -> Result<Option<Indexed>> {
    let mut text = Text { tokens, tables, edits: Vec::new(), computing: Vec::new() };
    text.look(0..tokens.len())?;
    let Text { edits, computing, .. } = text;
    if edits.is_empty() {
        return Ok(None);
    }
    Ok(Some(Indexed { sql: applied(sql, edits), computing }))
}

/// The text with all edits, of which none lie in each other.
fn applied(sql: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|(place, _)| (place.start, place.end));
    let (mut out, mut end) = (String::new(), 0);
    for (place, what) in edits {
        out.push_str(&sql[end..place.start]);
        out.push_str(&what);
        end = place.end;
    }
    out.push_str(&sql[end..]);
    out
}

fn is_any(token: &Token<'_>, words: &[&str]) -> bool {
    words.iter().any(|word| token.is(word))
}

const COMPOUND: [&str; 3] = ["union", "except", "intersect"];
const COMPARISONS: [&str; 8] = ["=", "==", "<", ">", "<=", ">=", "<>", "!="];

impl Text<'_> {
    /// Looks at the tokens inside some parentheses, or at all.
    fn look(&mut self, range: Range<usize>) -> Result<()> {
        for Part { outer, end, is_compound } in self.parts(range) {
            self.look_at_one(&outer, end, is_compound)?;
        }
        Ok(())
    }

    /// Each SELECT, UPDATE and DELETE among these tokens, inner ones first.
    fn parts(&self, range: Range<usize>) -> Vec<Part> {
        let start = range.start;
        let outer: Vec<usize> =
            outermost(&self.tokens[range.clone()]).into_iter().map(|at| start + at).collect();
        let mut parts = Vec::new();
        for (number, at) in outer.iter().enumerate() {
            if let (true, Some(close)) = (self.tokens[*at].is_sign("("), outer.get(number + 1)) {
                parts.extend(self.parts(at + 1..*close));
            }
        }
        let begins = |at: &usize| is_any(&self.tokens[*at], &["select", "update", "delete"]);
        let starts: Vec<usize> = (0..outer.len()).filter(|at| begins(&outer[*at])).collect();
        let is_compound = outer.iter().any(|at| is_any(&self.tokens[*at], &COMPOUND));
        for (number, first) in starts.iter().enumerate() {
            let next = starts.get(number + 1).copied().unwrap_or(outer.len());
            let ends = |at: &usize| is_any(&self.tokens[outer[*at]], &COMPOUND);
            let last = (*first..next).find(ends).unwrap_or(next);
            parts.push(Part { outer: outer[*first..last].to_vec(), end: range.end, is_compound });
        }
        parts
    }

    /// Looks at a SELECT, an UPDATE or a DELETE, whose tokens outside of parentheses these are.
    fn look_at_one(&mut self, outer: &[usize], end: usize, is_compound: bool) -> Result<()> {
        let conflict = outer.iter().position(|at| self.is_conflict(*at));
        let outer = &outer[..conflict.unwrap_or(outer.len())];
        let has = |words: &[&str]| outer.iter().any(|at| is_any(&self.tokens[*at], words));
        if has(&["right", "full", "natural"]) {
            return Ok(());
        }
        let scope = self.scope(outer);
        if !scope.iter().any(|scoped| scoped.table.has_computed()) {
            return Ok(());
        }
        let find = |word: &str| outer.iter().position(|at| self.tokens[*at].is(word));
        let filter = find("where").map(|at| self.until(outer, at + 1, &ENDS, end));
        let filter = filter.filter(|(from, to)| from < to);
        let (terms, is_one) = filter.map_or((Vec::new(), true), |(from, to)| self.terms(from, to));
        let is_plain = !is_compound && !has(&["group", "having", "distinct"]);
        let order = find("order").filter(|_| is_plain);
        for scoped in scope.iter().filter(|scoped| !scoped.is_optional) {
            self.use_indexes(scoped, filter, &terms, is_one)?;
        }
        self.look_at_joins(outer, end, &scope)?;
        if let Some(order) = order {
            let (from, to) = self.until(outer, order + 1, &ENDS, end);
            self.order(&scope, &terms, from + 1, to)?;
        }
        Ok(())
    }

    /// The terms that AND joins, and whether they are one, as OR joins it.
    fn terms(&self, from: usize, to: usize) -> (Vec<Range<usize>>, bool) {
        let (from, to) = self.inside(from, to);
        let joints = self.joints(&(from..to));
        if joints.iter().any(|at| self.tokens[*at].is("or")) {
            return (std::iter::once(from..to).collect(), true);
        }
        let starts = std::iter::once(from).chain(joints.iter().map(|at| at + 1));
        let terms: Vec<Range<usize>> =
            starts.zip(joints.iter().copied().chain([to])).map(|(from, to)| from..to).collect();
        if terms.len() == 1 {
            return (terms, false);
        }
        let all = terms.into_iter().flat_map(|term| self.terms(term.start, term.end).0).collect();
        (all, false)
    }

    /// Where AND and OR join conditions, outside of parentheses; the AND of a BETWEEN joins none.
    fn joints(&self, range: &Range<usize>) -> Vec<usize> {
        let (mut joints, mut depth, mut is_between) = (Vec::new(), 0_i32, false);
        for at in range.clone() {
            let token = &self.tokens[at];
            depth += i32::from(token.is_sign("(") || token.is("case"));
            depth -= i32::from(token.is_sign(")") || token.is("end"));
            if depth != 0 {
                continue;
            }
            is_between |= token.is("between");
            if token.is("or") || token.is("and") && !std::mem::take(&mut is_between) {
                joints.push(at);
            }
        }
        joints
    }

    /// The tokens without parentheses around all of them.
    fn inside(&self, from: usize, to: usize) -> (usize, usize) {
        let within = without_parentheses(&self.tokens[from..to]);
        let outside = (to - from - within.len()) / 2;
        (from + outside, to - outside)
    }

    fn normal(&self, range: &Range<usize>, scoped: &Scoped) -> Vec<String> {
        if self.is_others(range, scoped) {
            return Vec::new();
        }
        let (from, to) = self.inside(range.start, range.end);
        normal(&self.tokens[from..to], &[&fold(&scoped.name)])
    }

    /// Names the columns of the indexes of a table that a WHERE can use.
    fn use_indexes(
        &mut self,
        scoped: &Scoped,
        filter: Option<(usize, usize)>,
        terms: &[Range<usize>],
        is_one: bool,
    ) -> Result<()> {
        let Some((from, to)) = filter else { return Ok(()) };
        let known: Vec<Vec<String>> = terms.iter().map(|term| self.normal(term, scoped)).collect();
        let mut markers = String::new();
        for index in scoped.table.indexes.iter().filter(|index| index.ready) {
            let Some(condition) = index.condition else { continue };
            if implies(&scoped.table, condition, &known)? {
                let name = quote(&scoped.table.columns[condition].name);
                markers.push_str(&format!(" AND {}.{name} = 1", quote(&scoped.name)));
            }
        }
        if !markers.is_empty() {
            let (first, last) = (self.tokens[from].at, self.tokens[to - 1].end());
            let is_or = is_one && terms.len() == 1;
            if is_or {
                self.edits.push((first..first, "(".into()));
                markers.insert(0, ')');
            }
            self.edits.push((last..last, markers));
        }
        for term in terms {
            for side in self.searched(term) {
                self.replace(scoped, &side, &known)?;
            }
        }
        Ok(())
    }

    /// The sides of a comparison that may be an expression of an index: the other one is nothing that SQLite converts by.
    fn searched(&self, term: &Range<usize>) -> Vec<Range<usize>> {
        let outer: Vec<usize> =
            outermost(&self.tokens[term.clone()]).into_iter().map(|at| term.start + at).collect();
        let is_comparison = |at: &&usize| COMPARISONS.iter().any(|sign| self.tokens[**at].is_sign(sign));
        let mut comparisons = outer.iter().filter(is_comparison);
        if let (Some(sign), None) = (comparisons.next(), comparisons.next()) {
            let (left, right) = (term.start..*sign, sign + 1..term.end);
            let sides = [(left.clone(), right.clone()), (right, left)];
            return sides
                .into_iter()
                .filter(|(_, other)| self.is_value(other))
                .map(|(side, _)| side)
                .collect();
        }
        self.listed(term, &outer).into_iter().collect()
    }

    /// The left side of a BETWEEN or IN with values.
    fn listed(&self, term: &Range<usize>, outer: &[usize]) -> Option<Range<usize>> {
        let word = outer.iter().position(|at| is_any(&self.tokens[*at], &["between", "in"]))?;
        let (at, left) = (outer[word], term.start..outer[word]);
        if self.tokens[at].is("between") {
            let and = outer[word..].iter().copied().find(|at| self.tokens[*at].is("and"))?;
            let both = self.is_value(&(at + 1..and)) && self.is_value(&(and + 1..term.end));
            return both.then_some(left);
        }
        let is_list = self.tokens.get(at + 1)?.is_sign("(") && self.tokens[term.end - 1].is_sign(")");
        let inside = at + 2..term.end - 1;
        if !is_list || inside.is_empty() {
            return None;
        }
        let commas = outermost(&self.tokens[inside.clone()]).into_iter().map(|at| inside.start + at);
        let commas: Vec<usize> = commas.filter(|at| self.tokens[*at].is_sign(",")).collect();
        let starts = std::iter::once(inside.start).chain(commas.iter().map(|at| at + 1));
        let stops = commas.iter().copied().chain([inside.end]);
        let all = starts.zip(stops).all(|(from, to)| self.is_value(&(from..to)));
        all.then_some(left)
    }

    /// Whether it is a value, a parameter or a call.
    fn is_value(&self, range: &Range<usize>) -> bool {
        let signs = usize::from(self.tokens.get(range.start).is_some_and(|token| token.is_sign("-")));
        let tokens = &self.tokens[range.start + signs..range.end.max(range.start + signs)];
        match tokens {
            [one] => {
                matches!(one.kind, Kind::Number | Kind::Parameter)
                    || signs == 0 && matches!(one.kind, Kind::Text | Kind::Blob)
            }
            [name, open, .., close] if signs == 0 => {
                name.kind == Kind::Word
                    && !is_any(name, &["cast", "not", "exists", "case", "in", "select"])
                    && open.is_sign("(")
                    && close.is_sign(")")
                    && without_parentheses(&tokens[1..]).len() == tokens.len() - 3
            }
            _ => false,
        }
    }

    /// Puts the column of an index in the place of the expression that it is on.
    fn replace(&mut self, scoped: &Scoped, range: &Range<usize>, known: &[Vec<String>]) -> Result<()> {
        if range.is_empty() || self.is_others(range, scoped) {
            return Ok(());
        }
        let wanted = format!("%{}", self.normal(range, scoped).join(" "));
        let table = &scoped.table;
        let Some(at) = table.columns.iter().position(|column| column.name == wanted) else { return Ok(()) };
        let mut is_held = false;
        for index in table.indexes.iter().filter(|index| index.ready) {
            let has_it = index.columns.iter().any(|(column, _)| *column == at);
            let is_meant = match index.condition {
                Some(condition) => implies(table, condition, known)?,
                None => true,
            };
            is_held |= has_it && is_meant;
        }
        if !is_held || !is_plain(table, &table.columns[at])? {
            return Ok(());
        }
        let place = self.tokens[range.start].at..self.tokens[range.end - 1].end();
        self.edits.push((place, format!("{}.{}", quote(&scoped.name), quote(&wanted))));
        self.computing.push(fold(&table.name));
        Ok(())
    }

    /// Puts columns of indexes into an ORDER BY.
    fn order(&mut self, scope: &[Scoped], terms: &[Range<usize>], from: usize, to: usize) -> Result<()> {
        if from >= to {
            return Ok(());
        }
        let commas = outermost(&self.tokens[from..to]).into_iter().map(|at| from + at);
        let commas: Vec<usize> = commas.filter(|at| self.tokens[*at].is_sign(",")).collect();
        let starts: Vec<usize> = std::iter::once(from).chain(commas.iter().map(|at| at + 1)).collect();
        for (from, to) in starts.into_iter().zip(commas.into_iter().chain([to])) {
            let has_way = to > from && is_any(&self.tokens[to - 1], &["asc", "desc"]);
            let term = from..to - usize::from(has_way);
            for scoped in scope.iter().filter(|scoped| !scoped.is_optional) {
                let known: Vec<Vec<String>> = terms.iter().map(|term| self.normal(term, scoped)).collect();
                self.replace(scoped, &term, &known)?;
            }
        }
        Ok(())
    }
}

/// Whether rows for which all terms hold are rows of the condition.
fn implies(table: &Table, condition: usize, known: &[Vec<String>]) -> Result<bool> {
    let Some(Computed::Condition(text)) = &table.columns[condition].computed else { return Ok(false) };
    let tokens = cut(text)?;
    let none = HashMap::new();
    let own = Text { tokens: &tokens, tables: &none, edits: Vec::new(), computing: Vec::new() };
    let scoped = Scoped {
        table: Rc::new(table.clone()),
        name: table.name.clone(),
        at: 0,
        is_optional: false,
        others: Vec::new(),
    };
    let follows = |term: &Range<usize>| {
        let term = own.normal(term, &scoped);
        known.contains(&term)
            || not_null(&term).is_some_and(|it| known.iter().any(|other| compares(other, it)))
    };
    Ok(own.terms(0, tokens.len()).0.iter().all(follows))
}
