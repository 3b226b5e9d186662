//! Statements over views that are mere choices of rows: the conditions on a view's rows come to the table's, where indexes on
//! expressions, on elements of documents and of some rows serve them.
//!
//! ```text
//! CREATE VIEW adult(id, called) AS SELECT id, name FROM person WHERE age > 17
//! SELECT id FROM adult WHERE lower(called) = ?
//! SELECT id FROM (SELECT "person"."id" AS "id", ... FROM person WHERE (age > 17) AND (lower("person"."name") = ?1)) AS "adult"
//!     WHERE lower(called) = ?1
//! ```
//!
//! Invariants
//! - A condition stays where it was, and is copied: so the copy may be left out, and may keep more rows, but never fewer.
//! - What is copied is of one view's columns, values and parameters, and calls nothing that could answer otherwise a second time.
//! - A view that a LEFT JOIN leaves out for some rows stays as it is; so do all where RIGHT, FULL or NATURAL stand.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use super::choice::Choice;
use super::scope::{Scoped, ENDS, ENDS_OF_ON};
use super::{is_any, Part, Text};
use crate::elements::segment;
use crate::error::Result;
use crate::limits::VIEWS_DEEP;
use crate::rewrite::number_parameters;
use crate::schema::Table;
use crate::token::{fold, quote, tokens as cut, Kind};

/// The words that a condition is made of, besides names.
pub(super) const WORDS: [&str; 21] = [
    "and", "or", "not", "between", "in", "is", "null", "isnull", "notnull", "like", "glob", "escape", "case",
    "when", "then", "else", "end", "collate", "cast", "as", "distinct",
];

/// A statement with queries in the places of views.
pub(crate) struct Viewed {
    pub(crate) sql: String,
    /// The views, and what each is called there.
    pub(crate) names: Vec<(Rc<Table>, String)>,
}

/// The statement with its views as queries of their tables, where an index may serve these; none: it has no such view.
///
/// # Errors
/// `SYNTAX`, for a text that has no tokens.
pub(crate) fn with_views(sql: &str, views: &HashMap<String, Choice>) -> Result<Option<Viewed>> {
    let views_of_indexes = views.iter().filter(|(_, view)| view.is_indexed);
    let tables = views_of_indexes.map(|(name, view)| (name.clone(), Rc::clone(&view.table))).collect();
    let (mut changed, mut names) = (None::<String>, Vec::new());
    for _ in 0..VIEWS_DEEP {
        let text = changed.as_deref().unwrap_or(sql);
        let tokens = cut(text)?;
        // What SQLite would refuse it does refuse.
        let Ok((numbers, _)) = number_parameters(&tokens) else { return Ok(None) };
        let looked = Text { tokens: &tokens, tables: &tables, edits: Vec::new(), computing: Vec::new() };
        let mut seen = Seen { text: looked, sql: text, numbers, first_copy: usize::MAX, names };
        for part in seen.text.parts(0..tokens.len()) {
            seen.look_at(&part, views);
        }
        names = std::mem::take(&mut seen.names);
        let Some(next) = seen.finish() else { break };
        changed = Some(next);
    }
    Ok(changed.map(|sql| Viewed { sql, names }))
}

/// A statement, as its views are looked for.
struct Seen<'a> {
    text: Text<'a>,
    sql: &'a str,
    /// The number of each token that is a parameter.
    numbers: Vec<usize>,
    /// From which token on parameters need their numbers in the text: a copy of one comes before it.
    first_copy: usize,
    names: Vec<(Rc<Table>, String)>,
}

impl Seen<'_> {
    /// Has the views of a SELECT become queries.
    fn look_at(&mut self, part: &Part, views: &HashMap<String, Choice>) {
        let tokens = self.text.tokens;
        let conflict = part.outer.iter().position(|at| self.text.is_conflict(*at));
        let outer = &part.outer[..conflict.unwrap_or(part.outer.len())];
        let has = |words: &[&str]| outer.iter().any(|at| is_any(&tokens[*at], words));
        if !outer.first().is_some_and(|at| tokens[*at].is("select")) || has(&["right", "full", "natural"]) {
            return;
        }
        let scope = self.text.scope(outer);
        let is_alone = !has(&["join"]) && !self.lists_tables(outer);
        for (place, scoped) in scope.iter().enumerate().filter(|(_, scoped)| !scoped.is_optional) {
            let (Some(view), Some(end)) = (views.get(&fold(&scoped.table.name)), self.end_of(scoped)) else {
                continue;
            };
            let mut terms = Vec::new();
            let mut copies_parameters = false;
            for term in self.conditions(outer, part.end, &scope, place) {
                terms.extend(self.copy(term.clone(), scoped, view, is_alone));
                let is_parameter = |token: &crate::token::Token<'_>| token.kind == Kind::Parameter;
                copies_parameters |= tokens[term].iter().any(is_parameter);
            }
            if terms.is_empty() && view.condition.is_none() {
                continue;
            }
            if copies_parameters {
                self.first_copy = self.first_copy.min(scoped.at);
            }
            self.names.push((Rc::clone(&view.table), fold(&scoped.name)));
            let place = tokens[scoped.at].at..tokens[end - 1].end();
            self.text.edits.push((place, format!("{} AS {}", view.query(&terms), quote(&scoped.name))));
        }
    }

    /// Whether a comma stands between tables.
    fn lists_tables(&self, outer: &[usize]) -> bool {
        let tokens = self.text.tokens;
        let is_from = |at: &usize| tokens[*at].is("from") && !(*at > 0 && tokens[at - 1].is("distinct"));
        let ends = |at: &&usize| is_any(&tokens[**at], &ENDS) || tokens[**at].is("where");
        let Some(from) = outer.iter().position(is_from) else { return true };
        outer[from..].iter().take_while(|at| !ends(at)).any(|at| tokens[*at].is_sign(","))
    }

    /// The token behind a table's name, and what it is called; none: it is no plain name.
    fn end_of(&self, scoped: &Scoped) -> Option<usize> {
        let tokens = self.text.tokens;
        let is_name =
            |at: usize| tokens.get(at).is_some_and(|token| matches!(token.kind, Kind::Word | Kind::Name));
        let is = |at: usize, word: &str| tokens.get(at).is_some_and(|token| token.is(word));
        if !is_name(scoped.at) || tokens[scoped.at - 1].is_sign(".") {
            return None;
        }
        let is_called =
            |at: usize| tokens.get(at).and_then(|token| token.name()).is_some_and(|name| name == scoped.name);
        let end = match scoped.at + 1 {
            word if is(word, "as") => is_name(word + 1).then_some(word + 2)?,
            alias if is_name(alias) && is_called(alias) && !crate::token::is_keyword(&tokens[alias]) => {
                alias + 1
            }
            end => end,
        };
        let goes_on =
            is(end, "indexed") || is(end, "not") || tokens.get(end).is_some_and(|next| next.is_sign("("));
        (!goes_on).then_some(end)
    }

    /// The conditions that each row of the SELECT fulfils, of which some may be on the table at `place`.
    fn conditions(&self, outer: &[usize], end: usize, scope: &[Scoped], place: usize) -> Vec<Range<usize>> {
        let text = &self.text;
        let mut all = Vec::new();
        for (number, at) in outer.iter().enumerate() {
            let is_where = text.tokens[*at].is("where");
            let is_on = text.tokens[*at].is("on") && scope[place].at < *at && !text.is_left(outer, number);
            if !is_where && !is_on {
                continue;
            }
            let ends = if is_where { &ENDS[..] } else { &ENDS_OF_ON[..] };
            let (from, to) = text.until(outer, number + 1, ends, end);
            if from < to {
                all.extend(text.terms(from, to).0);
            }
        }
        all
    }

    /// A condition as the table's rows fulfil it; none: it is not of this view alone.
    fn copy(&self, term: Range<usize>, scoped: &Scoped, view: &Choice, is_alone: bool) -> Option<String> {
        let tokens = self.text.tokens;
        let (mut out, mut at) = (String::new(), term.start);
        let mut names_it = false;
        while at < term.end {
            let token = &tokens[at];
            let next = tokens.get(at + 1).filter(|_| at + 1 < term.end);
            let is_before = |sign: &str| next.is_some_and(|next| next.is_sign(sign));
            if at > term.start && tokens[at - 1].end() < token.at {
                out.push(' ');
            }
            let is_word = is_any(token, &WORDS);
            match token.kind {
                Kind::Parameter => out.push_str(&format!("?{}", self.numbers[at])),
                Kind::Text | Kind::Blob | Kind::Number | Kind::Sign => out.push_str(token.text),
                _ if is_word => {
                    out.push_str(token.text);
                    // The name of a type or of a collation.
                    if is_any(token, &["as", "collate"]) {
                        at += 1;
                        out.push_str(&format!(" {}", tokens.get(at).filter(|_| at < term.end)?.text));
                    }
                }
                _ if is_before("(") => {
                    if !view.may_call(&fold(&token.name()?)) {
                        return None;
                    }
                    out.push_str(token.text);
                }
                _ => {
                    let is_of = is_before(".") && token.name()?.eq_ignore_ascii_case(&scoped.name);
                    let name = if is_of { tokens.get(at + 2).filter(|_| at + 2 < term.end)? } else { token };
                    if !is_of && !is_alone {
                        return None;
                    }
                    out.push_str(&view.column(&name.name()?)?);
                    names_it = true;
                    let end = if is_of { at + 3 } else { at + 1 };
                    let behind = self.path(end, term.end, view, &name.name()?)?;
                    tokens[end..behind].iter().for_each(|token| out.push_str(token.text));
                    at = behind;
                    continue;
                }
            }
            at += 1;
        }
        names_it.then_some(out)
    }

    /// The token behind the path into a document that begins here; none: what stands here is no path.
    fn path(&self, mut at: usize, end: usize, view: &Choice, column: &str) -> Option<usize> {
        let is_document =
            view.table.column(column).is_some_and(|column| view.table.columns[column].is_document);
        if is_document {
            while let Some((_, behind)) = segment(self.text.tokens, at).filter(|(_, behind)| *behind <= end) {
                at = behind;
            }
        }
        let goes_on = self.text.tokens[..end].get(at).is_some_and(|token| token.is_sign("."));
        (!goes_on).then_some(at)
    }

    /// The statement with what has become of it; none: nothing.
    fn finish(self) -> Option<String> {
        let Seen { text: Text { tokens, mut edits, .. }, sql, numbers, first_copy, .. } = self;
        if edits.is_empty() {
            return None;
        }
        let is_inside = |at: usize, edits: &[super::Edit]| edits.iter().any(|(place, _)| place.contains(&at));
        for (token, number) in tokens.iter().zip(numbers).skip(first_copy) {
            if token.kind == Kind::Parameter && !is_inside(token.at, &edits) {
                edits.push((token.at..token.end(), format!("?{number}")));
            }
        }
        Some(super::applied(sql, edits))
    }
}

#[cfg(test)]
mod tests {
    use super::super::choice::Source;
    use super::*;
    use crate::definition::parse_table;
    use crate::schema::Computed;

    fn table() -> Rc<Table> {
        let mut table =
            parse_table("CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, age INT, info JSON)", &[])
                .expect("a table");
        table.add_computed("i", Computed::Expression("low(name)".into())).expect("a column");
        Rc::new(table)
    }

    fn seen(views: &[&str], sql: &str) -> String {
        let mut known: HashMap<String, Choice> = HashMap::new();
        for text in views {
            let found = |name: &str| match known.get(name) {
                Some(view) => Ok(Some(view.source())),
                None if name == "t" => Source::of(&table()).map(Some),
                None => Ok(None),
            };
            let view = Choice::read(text, &found).expect("tokens");
            if let Some(view) = view {
                known.insert(fold(&view.table.name), view);
            }
        }
        with_views(sql, &known).expect("tokens").map_or("as it is".into(), |viewed| viewed.sql)
    }

    const VIEW: &str =
        "CREATE VIEW IF NOT EXISTS v(k, n) AS SELECT id, name FROM t AS x WHERE age > 1 OR age IS NULL";

    #[test]
    fn conditions_come_to_the_table() {
        let inside = "(SELECT \"x\".\"id\" AS \"k\", \"x\".\"name\" AS \"n\" FROM t AS x WHERE (age > 1 OR age IS NULL)";
        for (sql, copied, rest) in [
            (
                "SELECT k FROM v WHERE low(n) = 'a'",
                " AND (low(\"x\".\"name\") = 'a')) AS \"v\"",
                " WHERE low(n) = 'a'",
            ),
            (
                "SELECT k FROM v AS y WHERE low(y.n) = ?",
                " AND (low(\"x\".\"name\") = ?1)) AS \"y\"",
                " WHERE low(y.n) = ?1",
            ),
            ("SELECT k FROM v LIMIT 1", ") AS \"v\"", " LIMIT 1"),
            (
                "SELECT k FROM v WHERE other(n) = 1 AND n NOT IN ('a', 'b')",
                " AND (\"x\".\"name\" NOT IN ('a', 'b'))) AS \"v\"",
                " WHERE other(n) = 1 AND n NOT IN ('a', 'b')",
            ),
            (
                "SELECT k FROM v WHERE random() > 1 AND n = u.n AND k = (SELECT 1)",
                ") AS \"v\"",
                " WHERE random() > 1 AND n = u.n AND k = (SELECT 1)",
            ),
            (
                "SELECT k FROM v JOIN u ON u.a = v.k AND v.k > 2 WHERE k = 1",
                " AND (\"x\".\"id\" > 2)) AS \"v\"",
                " JOIN u ON u.a = v.k AND v.k > 2 WHERE k = 1",
            ),
        ] {
            assert_eq!(seen(&[VIEW], sql), format!("SELECT k FROM {inside}{copied}{rest}"), "{sql}");
        }
    }

    #[test]
    fn others_stay() {
        for sql in [
            "SELECT k FROM u LEFT JOIN v ON v.k = u.k WHERE v.n = 'a'",
            "SELECT k FROM u NATURAL JOIN v WHERE v.n = 'a'",
            "SELECT k FROM main.v WHERE n = 'a'",
            "WITH v AS (SELECT 1 AS n) SELECT * FROM v WHERE n = 'a'",
            "DELETE FROM v WHERE n = 'a'",
            "UPDATE v SET n = 1 WHERE low(n) = 'a'",
            "INSERT INTO v SELECT 1, 2",
        ] {
            assert_eq!(seen(&[VIEW], sql), "as it is", "{sql}");
        }
        for view in [
            "CREATE VIEW v AS SELECT DISTINCT name AS n FROM t",
            "CREATE VIEW v AS SELECT count(*) AS n FROM t",
            "CREATE VIEW v AS SELECT max(name) AS n FROM t",
            "CREATE VIEW v AS SELECT name AS n FROM t LIMIT 3",
            "CREATE VIEW v AS SELECT name AS n FROM t UNION SELECT 1",
            "CREATE VIEW v AS SELECT t.name AS n FROM t, t AS u",
            "CREATE VIEW v AS SELECT name AS n FROM t WHERE id IN (SELECT 1)",
            "CREATE VIEW v AS SELECT row_number() OVER () AS n FROM t",
            "CREATE VIEW v AS SELECT name || 'a' FROM t",
            "CREATE VIEW v AS SELECT other(name) AS n FROM t",
            "CREATE VIEW v AS SELECT name AS n FROM u",
            "CREATE VIEW v(n, n) AS SELECT id, name FROM t",
            "CREATE VIEW v(n, m, o) AS SELECT id, name FROM t",
        ] {
            assert_eq!(seen(&[view], "SELECT n FROM v WHERE n = 'a'"), "as it is", "{view}");
        }
    }

    #[test]
    fn views_lie_over_views_and_have_expressions_and_documents() {
        let views = [
            "CREATE VIEW v AS SELECT *, low(name) AS l, name COLLATE NOCASE AS c FROM t ORDER BY id DESC",
            "CREATE VIEW w AS SELECT l m, info AS doc FROM v",
        ];
        assert_eq!(
            seen(&views, "SELECT m FROM w WHERE m = :a AND doc.b[1].c > :b"),
            "SELECT m FROM (SELECT \"v\".\"l\" AS \"m\", \"v\".\"info\" AS \"doc\" FROM (SELECT \"t\".\"id\" AS \"id\", \
             \"t\".\"name\" AS \"name\", \"t\".\"age\" AS \"age\", \"t\".\"info\" AS \"info\", low(name) AS \"l\", \
             name COLLATE NOCASE AS \"c\" FROM t WHERE ((low(name)) = ?1) AND (\"t\".\"info\".b[1].c > ?2) ORDER BY id DESC) AS \"v\" \
             WHERE (\"v\".\"l\" = ?1) AND (\"v\".\"info\".b[1].c > ?2)) AS \"w\" WHERE m = ?1 AND doc.b[1].c > ?2"
        );
        assert_eq!(seen(&views, "SELECT l FROM v WHERE c = 'a'"), "as it is");
    }
}
