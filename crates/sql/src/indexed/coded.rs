//! Conditions on an index that code keeps: `relindx() = 10` asks whether a row has such an entry.
//!
//! ```text
//! CREATE INDEX visits ON users(relindx()) LONG construct
//! SELECT name FROM users WHERE relindx() BETWEEN 10 AND 20
//! SELECT name FROM users WHERE "users"."id" IN (SELECT "key" FROM "visits" WHERE "value" BETWEEN 10 AND 20)
//! ```
//!
//! A condition is what AND, OR and NOT join. A row has any number of entries: one of them must fulfil it. IS NULL asks for none.
//!
//! AlchemyDB's `i.pos()`, the place of a row in the order of the unique index i of one column, from 1, is such a condition on
//! places, which the index is walked for; elsewhere it counts the entries before it.
//!
//! Invariants
//! - The function's name elsewhere, as in a list of columns, is a call as any other.
//! - A column of the statement's tables that is called as one of the entries stays theirs.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::scope::{Scoped, ENDS, ENDS_OF_ON};
use super::{is_any, Edit, Part, Text};
use crate::error::{Error, Result, SqlState};
use crate::schema::{CodeIndex, Table};
use crate::token::{fold, quote, tokens as cut, without_parentheses, Kind, Token};

/// How many conditions of a statement may be on such indexes.
const CONDITIONS: usize = 256;

/// The statement with its conditions on indexes that code keeps as searches of their entries; none: it has none.
///
/// # Errors
/// `SYNTAX` where a name may mean the indexes of two tables; `LIMIT` for a statement with very many of them.
pub(crate) fn with_code_indexes(sql: &str, tables: &HashMap<String, Rc<Table>>) -> Result<Option<String>> {
    let mut changed: Option<String> = None;
    for _ in 0..CONDITIONS {
        let text = changed.as_deref().unwrap_or(sql);
        let tokens = cut(text)?;
        let text_of = Text { tokens: &tokens, tables, edits: Vec::new(), computing: Vec::new() };
        let found = text_of.condition()?;
        let Some((place, search)) = found.or_else(|| text_of.place()) else { return Ok(changed) };
        changed = Some(format!("{}{search}{}", &text[..place.start], &text[place.end..]));
    }
    let what = format!("a statement has {CONDITIONS} conditions on indexes kept by code at most");
    Err(Error::new(SqlState::LIMIT, what))
}

/// The text of a definition as SQLite reads it before it is known what its names are: `users.relindx()`, which is none of its
/// calls, without the table.
///
/// # Errors
/// `SYNTAX`, for a text that has no tokens.
pub(crate) fn without_owners(sql: &str) -> Result<String> {
    let tokens = cut(sql)?;
    let is_owned = |all: &&[Token<'_>]| {
        let is_name = |token: &Token<'_>| matches!(token.kind, Kind::Word | Kind::Name);
        let signs = [(1, "."), (3, "("), (4, ")")];
        is_name(&all[0]) && is_name(&all[2]) && signs.iter().all(|(at, sign)| all[*at].is_sign(sign))
    };
    let owners = tokens.windows(5).filter(is_owned);
    Ok(super::applied(sql, owners.map(|all| (all[0].at..all[1].end(), String::new())).collect()))
}

/// A call that stands for the values of an index, the tokens from the first to the one behind it.
struct Call<'s> {
    tokens: Range<usize>,
    scoped: &'s Scoped,
    /// What stands behind FROM to have the entries.
    entries: String,
}

/// The entries of an index whose places are asked for: the place of each row as the value.
fn places(table: &Table, column: usize) -> String {
    let primary = table.primary_key();
    let names = CodeIndex::key_names(primary.len());
    let key =
        |(at, name): (&usize, &String)| format!("{} AS {}", quote(&table.columns[*at].name), quote(name));
    let keys: Vec<String> = primary.iter().zip(&names).map(key).collect();
    let (column, table) = (quote(&table.columns[column].name), quote(&table.name));
    format!(
        "(SELECT row_number() OVER (ORDER BY {column}) AS {}, {} FROM {table} WHERE {column} IS NOT NULL)",
        quote(CodeIndex::VALUE),
        keys.join(", ")
    )
}

/// The column of the unique index of this name that orders all rows of a table.
fn ordering(table: &Table, index: &str) -> Option<usize> {
    let index =
        table.indexes.iter().find(|it| it.unique && it.ready && it.name.eq_ignore_ascii_case(index))?;
    match index.columns[..] {
        [(column, _)] if index.condition.is_none() && !table.columns[column].is_hidden() => {
            Some(column).filter(|_| !table.primary_key().is_empty())
        }
        _ => None,
    }
}

impl Text<'_> {
    /// The first condition on such an index, inner statements first, and what it becomes.
    fn condition(&self) -> Result<Option<Edit>> {
        for Part { outer, end, .. } in self.parts(0..self.tokens.len()) {
            let scope = self.scope(&outer);
            if scope.is_empty() {
                continue;
            }
            for (number, at) in outer.iter().enumerate() {
                let is_where = self.tokens[*at].is("where");
                if !is_where && (!self.tokens[*at].is("on") || self.is_conflict(*at)) {
                    continue;
                }
                let ends = if is_where { &ENDS[..] } else { &ENDS_OF_ON[..] };
                let (from, to) = self.until(&outer, number + 1, ends, end);
                let found = self.condition_in(from..to.max(from), &scope)?;
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    /// The first place in an index that is asked for elsewhere, and the count that it becomes.
    fn place(&self) -> Option<Edit> {
        for Part { outer, .. } in self.parts(0..self.tokens.len()) {
            let (first, last) = (*outer.first()?, *outer.last()?);
            let scope = self.scope(&outer);
            for at in first..=last {
                let Some((scoped, column)) = self.place_at(at, &scope) else { continue };
                let column = quote(&scoped.table.columns[column].name);
                let count = format!(
                    "(SELECT nullif(count(*), 0) FROM {} AS \"%place\" WHERE \"%place\".{column} <= {}.{column})",
                    quote(&scoped.table.name),
                    quote(&scoped.name)
                );
                return Some((self.tokens[at].at..self.tokens[at + 4].end(), count));
            }
        }
        None
    }

    /// Whether `i.pos()` begins here, of an index of one of these tables: which, and the index's column.
    fn place_at<'s>(&self, at: usize, scope: &'s [Scoped]) -> Option<(&'s Scoped, usize)> {
        let [index, point, pos, open, close] = self.tokens.get(at..at + 5)? else { return None };
        if !point.is_sign(".") || !pos.is("pos") || !open.is_sign("(") || !close.is_sign(")") {
            return None;
        }
        let name = index.name()?;
        scope.iter().find_map(|scoped| Some((scoped, ordering(&scoped.table, &name)?)))
    }

    /// The first condition among those that AND, OR and NOT join.
    fn condition_in(&self, range: Range<usize>, scope: &[Scoped]) -> Result<Option<Edit>> {
        for piece in self.conditions(range) {
            let within = without_parentheses(&self.tokens[piece.clone()]);
            if within.len() < piece.len()
                && !within.first().is_some_and(|first| is_any(first, &["select", "with", "values"]))
            {
                let outside = (piece.len() - within.len()) / 2;
                let inside = piece.start + outside..piece.end - outside;
                let found = self.condition_in(inside, scope)?;
                if found.is_some() {
                    return Ok(found);
                }
                continue;
            }
            let Some(call) = self.call(&piece, scope)? else { continue };
            let place = self.tokens[piece.start].at..self.tokens[piece.end - 1].end();
            return Ok(Some((place, self.search(&piece, &call, scope))));
        }
        Ok(None)
    }

    /// The conditions that AND, OR and NOT join.
    fn conditions(&self, range: Range<usize>) -> Vec<Range<usize>> {
        let (mut all, mut start) = (Vec::new(), range.start);
        for joint in self.joints(&range).into_iter().chain([range.end]) {
            let is_negated = |at: &usize| self.tokens[*at].is("not");
            start += (start..joint).take_while(is_negated).count();
            all.push(start..joint);
            start = joint + 1;
        }
        all.retain(|piece| !piece.is_empty());
        all
    }

    /// The first call in a condition that names an index of a table of the statement.
    fn call<'s>(&self, piece: &Range<usize>, scope: &'s [Scoped]) -> Result<Option<Call<'s>>> {
        for at in piece.clone() {
            let place = self.place_at(at, scope).filter(|_| at + 5 <= piece.end);
            if let Some((scoped, column)) = place {
                let entries = places(&scoped.table, column);
                return Ok(Some(Call { tokens: at..at + 5, scoped, entries }));
            }
            let signs = [at + 1, at + 2].map(|at| self.tokens.get(at).filter(|_| at < piece.end));
            let is_call = signs[0].is_some_and(|sign| sign.is_sign("("))
                && signs[1].is_some_and(|sign| sign.is_sign(")"));
            let name = self.tokens[at].name().filter(|_| is_call && self.tokens[at].kind != Kind::Text);
            let Some(name) = name else { continue };
            let point =
                at.checked_sub(1).filter(|point| *point >= piece.start && self.tokens[*point].is_sign("."));
            let owner = point.and_then(|point| self.tokens[point.checked_sub(1)?].name());
            let is_it =
                |scoped: &&Scoped| owner.as_ref().is_none_or(|owner| fold(owner) == fold(&scoped.name));
            let mut found = scope.iter().filter(is_it).filter_map(|scoped| {
                let index = scoped
                    .table
                    .code_indexes
                    .iter()
                    .find(|index| index.function.eq_ignore_ascii_case(&name))?;
                Some((scoped, index))
            });
            let Some((scoped, index)) = found.next() else { continue };
            if found.next().is_some() {
                let what = format!("{name}() may be of two tables: write {}.{name}()", quote(&scoped.name));
                return Err(Error::new(SqlState::SYNTAX, what).at(self.tokens[at].at));
            }
            let first = if owner.is_some() { at - 2 } else { at };
            let entries = quote(&index.name);
            return Ok(Some(Call { tokens: first..at + 3, scoped, entries }));
        }
        Ok(None)
    }

    /// The search that a condition becomes.
    fn search(&self, piece: &Range<usize>, call: &Call<'_>, scope: &[Scoped]) -> String {
        let Call { tokens, scoped, entries } = call;
        let table = &scoped.table;
        let name = |at: &usize| format!("{}.{}", quote(&scoped.name), quote(&table.columns[*at].name));
        let owned: Vec<String> = table.primary_key().iter().map(name).collect();
        let names = CodeIndex::key_names(owned.len());
        let keys: Vec<String> = names.iter().map(|name| quote(name)).collect();
        let (keys, mut row) = (keys.join(", "), owned.join(", "));
        if owned.len() > 1 {
            row = format!("({row})");
        }
        let entries = format!("SELECT {keys} FROM {entries}");
        let behind = &self.tokens[tokens.end..piece.end];
        let is_null = tokens.start == piece.start
            && (behind.len() == 1 && behind[0].is("isnull")
                || behind.len() == 2 && behind[0].is("is") && behind[1].is("null"));
        if is_null {
            return format!("{row} NOT IN ({entries})");
        }
        let mut condition = String::new();
        let mut at = piece.start;
        while at < piece.end {
            if self.is_call_of(at, piece, call) {
                condition.push_str(&quote(CodeIndex::VALUE));
                at += tokens.len();
            } else {
                if let Some(owner) = self.owner(at, &names, scope) {
                    condition.push_str(&format!("{}.", quote(owner)));
                }
                condition.push_str(self.tokens[at].text);
                at += 1;
            }
            condition.push(' ');
        }
        format!("{row} IN ({entries} WHERE {})", condition.trim_end())
    }

    /// Which table's a column is that bears the name of one of the entries, if it does not say so itself.
    fn owner<'s>(&self, at: usize, keys: &[String], scope: &'s [Scoped]) -> Option<&'s str> {
        let is_point =
            |at: Option<usize>| at.and_then(|at| self.tokens.get(at)).is_some_and(|token| token.is_sign("."));
        let token = &self.tokens[at];
        let name = token.name().filter(|_| token.kind != Kind::Text)?;
        if is_point(at.checked_sub(1)) || is_point(Some(at + 1)) {
            return None;
        }
        let is_meant = fold(&name) == CodeIndex::VALUE || keys.contains(&fold(&name));
        let has_it = |scoped: &&Scoped| is_meant && scoped.table.column(&name).is_some();
        scope.iter().find(has_it).map(|scoped| &scoped.name[..])
    }

    /// Whether this very call stands here.
    fn is_call_of(&self, at: usize, piece: &Range<usize>, call: &Call<'_>) -> bool {
        let (this, wanted) = (at..at + call.tokens.len(), call.tokens.clone());
        this.end <= piece.end
            && this.zip(wanted).all(|(one, other)| {
                let (one, other) = (&self.tokens[one], &self.tokens[other]);
                one.text.eq_ignore_ascii_case(other.text)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse_table;

    /// What it becomes, without the quotes of names.
    fn searched(sql: &str) -> String {
        let index = |name: &str| CodeIndex {
            name: name.into(),
            function: "rel".into(),
            constructor: "c".into(),
            destructor: None,
        };
        let mut tables = HashMap::new();
        for (name, sql) in [
            ("t", "CREATE TABLE t(id INTEGER PRIMARY KEY, a)"),
            ("u", "CREATE TABLE u(x TEXT, y INT, PRIMARY KEY(x, y))"),
            ("k", "CREATE TABLE k(key INTEGER PRIMARY KEY, value)"),
        ] {
            let mut table = parse_table(sql, &[]).expect("a table");
            table.code_indexes.push(index(&format!("of_{name}")));
            tables.insert(name.to_owned(), Rc::new(table));
        }
        match with_code_indexes(sql, &tables) {
            Ok(changed) => changed.map_or_else(|| "as it is".into(), |changed| changed.replace('"', "")),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn conditions_become_searches() {
        for (sql, wanted) in [
            ("SELECT a FROM t WHERE rel() = 10", "SELECT a FROM t WHERE t.id IN (SELECT key FROM of_t WHERE value = 10)"),
            (
                "DELETE FROM t WHERE a = 1 AND NOT (rel() BETWEEN 1 AND ? OR a)",
                "DELETE FROM t WHERE a = 1 AND NOT (t.id IN (SELECT key FROM of_t WHERE value BETWEEN 1 AND ?) OR a)",
            ),
            ("SELECT 1 FROM t WHERE t.rel() IS NULL", "SELECT 1 FROM t WHERE t.id NOT IN (SELECT key FROM of_t)"),
            (
                "SELECT 1 FROM u AS v WHERE 'a' || 'b' = v.rel()",
                "SELECT 1 FROM u AS v WHERE (v.x, v.y) IN (SELECT key1, key2 FROM of_u WHERE 'a' || 'b' = value)",
            ),
            (
                "SELECT a FROM t WHERE id IN (SELECT y FROM u WHERE REL() > 1) LIMIT 1",
                "SELECT a FROM t WHERE id IN (SELECT y FROM u WHERE (u.x, u.y) IN (SELECT key1, key2 FROM \
                    of_u WHERE value > 1)) LIMIT 1",
            ),
            (
                "SELECT 1 FROM k WHERE rel() = value + k.key + key",
                "SELECT 1 FROM k WHERE k.key IN (SELECT key FROM of_k WHERE value = k.value + k . key + k.key)",
            ),
            ("SELECT rel() FROM t ORDER BY rel()", "as it is"),
            ("SELECT 1 FROM t WHERE rel(1) = 1 AND other() = 'rel()'", "as it is"),
        ] {
            assert_eq!(searched(sql), wanted);
        }
        let two = searched("SELECT 1 FROM t JOIN u ON t.id = u.y AND rel() = 1");
        assert!(two.contains("may be of two tables: write \"t\".rel()"), "{two}");
        let one = searched("SELECT 1 FROM t JOIN u ON t.id = u.y AND u.rel() = 1 WHERE t.a");
        assert!(one.contains("AND (u.x, u.y) IN (SELECT"), "{one}");
    }
}
