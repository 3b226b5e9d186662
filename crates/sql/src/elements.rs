//! Elements of documents in a statement: `info.address.city` becomes a call, or the column of an index on it.
//!
//! ```text
//! SELECT info.name FROM t WHERE info.age > 30      SELECT perilune_element("info", 'name') FROM t WHERE "info.age" > 30
//! UPDATE t SET info.a = 1, info.b.c = ?            UPDATE t SET "info" = perilune_set("info", 'a', 1, 'b.c', ?)
//! ... FROM t, each(t.info.tags) AS tag             ... FROM t, json_each(perilune_element(t."info", 'tags')) AS tag
//! ```
//!
//! Invariants
//! - A text without elements is not changed.
//! - The column of an index is taken only beside a value or a parameter, which compare as entries are ordered; a column on the other
//!   side might have SQLite convert what the index holds.

use crate::rewrite::outermost;
use crate::schema::Table;
use crate::token::{fold, quote, Kind, Token};

/// The functions that elements become.
pub(crate) const ELEMENT: &str = "perilune_element";
/// See [`ELEMENT`].
pub(crate) const SET: &str = "perilune_set";

/// A table of a statement, and the names that it has there.
pub(crate) struct Named<'t> {
    pub(crate) table: &'t Table,
    pub(crate) names: Vec<String>,
}

/// An element that the tokens from a place on are.
struct Element {
    /// The table's name there, with its point, or nothing.
    qualifier: String,
    document: String,
    path: Vec<String>,
    /// The token behind it.
    end: usize,
    is_indexed: bool,
}

impl Element {
    fn document(&self) -> String {
        format!("{}{}", self.qualifier, quote(&self.document))
    }

    fn name(&self) -> String {
        format!("{}.{}", self.document, self.path.join("."))
    }
}

/// A statement, as its elements are looked for.
struct Text<'a> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
    tables: &'a [Named<'a>],
}

/// The statement with its elements as SQLite takes them; none: there are none.
pub(crate) fn with_elements(sql: &str, tokens: &[Token<'_>], tables: &[Named<'_>]) -> Option<String> {
    let has_documents = |named: &Named<'_>| named.table.columns.iter().any(|column| column.is_document);
    let is_each = |at: usize| is_each(tokens, at);
    if !tables.iter().any(has_documents) && !(0..tokens.len()).any(is_each) {
        return None;
    }
    let text = Text { sql, tokens, tables };
    let changed = match text.set_clause() {
        Some((from, to)) => {
            format!("{} {} {}", text.read(0, from), text.assignments(from, to), text.read(to, tokens.len()))
        }
        None => text.read(0, tokens.len()),
    };
    (changed != sql).then_some(changed)
}

/// Whether `each(` stands here.
fn is_each(tokens: &[Token<'_>], at: usize) -> bool {
    tokens[at].is("each") && tokens.get(at + 1).is_some_and(|next| next.is_sign("("))
}

/// The subscript that tokens from `at` on add to a path, and the token behind it.
pub(crate) fn segment(tokens: &[Token<'_>], at: usize) -> Option<(String, usize)> {
    let token = tokens.get(at)?;
    let before = tokens.get(at.checked_sub(1)?)?;
    let is_beside = token.at == before.end();
    if token.is_sign(".") {
        let name = tokens.get(at + 1).filter(|name| !name.text.starts_with('['))?;
        let is_name = matches!(name.kind, Kind::Word | Kind::Name);
        return is_name.then(|| name.name()).flatten().map(|name| (name, at + 2));
    }
    if token.kind == Kind::Number && is_beside {
        let digits = token.text.strip_prefix('.')?;
        let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        return is_plain.then(|| (digits.to_owned(), at + 1));
    }
    if token.text.starts_with('[') && is_beside {
        let inside = &token.text[1..token.text.len() - 1];
        let name = inside.strip_prefix('\'').and_then(|name| name.strip_suffix('\'')).unwrap_or(inside);
        return (!name.is_empty() && !name.contains('.')).then(|| (name.to_owned(), at + 1));
    }
    None
}

impl Text<'_> {
    /// The element that begins at a token, if one does.
    fn element(&self, at: usize) -> Option<Element> {
        let token = self.tokens.get(at).filter(|token| matches!(token.kind, Kind::Word | Kind::Name))?;
        if at > 0 && self.tokens[at - 1].is_sign(".") || token.text.starts_with('[') {
            return None;
        }
        let name = fold(&token.name()?);
        let qualified = self.tables.iter().find(|named| named.names.contains(&name));
        let (qualifier, document, mut end, tables): (_, _, _, Vec<&Named<'_>>) = match qualified {
            Some(named) => {
                let (column, end) = segment(self.tokens, at + 1)?;
                (format!("{}.", token.text), fold(&column), end, vec![named])
            }
            None => (String::new(), name, at + 1, self.tables.iter().collect()),
        };
        let is_it = |named: &&Named<'_>| {
            let column = named.table.column(&document).map(|column| &named.table.columns[column]);
            column.is_some_and(|column| column.is_document)
        };
        let table = tables.into_iter().find(is_it)?.table;
        let mut path = Vec::new();
        while let Some((part, behind)) = segment(self.tokens, end) {
            path.push(part);
            end = behind;
        }
        if path.is_empty() {
            return None;
        }
        let mut element = Element { qualifier, document, path, end, is_indexed: false };
        let name = element.name();
        element.is_indexed =
            table.columns.iter().any(|column| column.element.is_some() && column.name == name);
        Some(element)
    }

    /// Whether what stands at `at` is compared with a value or a parameter, which follows.
    fn is_compared(&self, at: usize) -> bool {
        let Some(operator) = self.tokens.get(at) else { return false };
        let signs = ["=", "==", "<", ">", "<=", ">=", "<>", "!="];
        let is_sign = signs.iter().any(|sign| operator.is_sign(sign)) || operator.is("is");
        let is_between = operator.is("between");
        let is_plain = |at: usize| {
            let at = at + usize::from(self.tokens.get(at).is_some_and(|token| token.is_sign("-")));
            let is_value = |token: &Token<'_>| {
                matches!(token.kind, Kind::Number | Kind::Text | Kind::Blob | Kind::Parameter)
                    || token.is("null")
            };
            let ends = |token: &Token<'_>| {
                let words = ["and", "or", "order", "group", "limit", "returning", "union", "then", "collate"];
                token.is_sign(")") || token.is_sign(";") || words.iter().any(|word| token.is(word))
            };
            self.tokens.get(at).is_some_and(is_value) && self.tokens.get(at + 1).is_none_or(ends)
        };
        is_sign && is_plain(at + 1) || is_between && is_plain(at + 1) && is_plain(at + 3)
    }

    /// The text of some tokens, with elements as they are read.
    fn read(&self, from: usize, to: usize) -> String {
        let mut out = String::new();
        let (mut at, mut end) = (from, self.tokens.get(from).map_or(self.sql.len(), |token| token.at));
        while at < to {
            if let Some(element) = self.element(at).filter(|element| element.end <= to) {
                out.push_str(&self.sql[end..self.tokens[at].at]);
                if element.is_indexed && self.is_compared(element.end) {
                    out.push_str(&format!("{}{}", element.qualifier, quote(&element.name())));
                } else {
                    let path = element.path.iter().map(|part| format!(", '{}'", part.replace('\'', "''")));
                    out.push_str(&format!("{ELEMENT}({}{})", element.document(), path.collect::<String>()));
                }
                at = element.end;
                end = self.tokens[at - 1].end();
            } else {
                if is_each(self.tokens, at) {
                    out.push_str(&self.sql[end..self.tokens[at].at]);
                    out.push_str("json_each");
                    end = self.tokens[at].end();
                }
                at += 1;
            }
        }
        if to > from {
            out.push_str(&self.sql[end..self.tokens[to - 1].end()]);
        }
        out
    }

    /// Which tokens are the assignments of an UPDATE that sets elements.
    fn set_clause(&self) -> Option<(usize, usize)> {
        let outer = outermost(self.tokens);
        let verb = outer.iter().copied().find(|at| self.tokens[*at].is("update"))?;
        let set = outer.iter().copied().find(|at| *at > verb && self.tokens[*at].is("set"))? + 1;
        let ends = |at: &usize| {
            *at > set
                && ["where", "from", "order", "limit", "returning"]
                    .iter()
                    .any(|word| self.tokens[*at].is(word))
        };
        let end = outer.iter().copied().find(ends).unwrap_or(self.tokens.len());
        let sets = |at: usize| {
            let element = self.element(at);
            element.is_some_and(|element| self.tokens.get(element.end).is_some_and(|sign| sign.is_sign("=")))
        };
        let starts = std::iter::once(set).chain(self.commas(set, end).into_iter().map(|comma| comma + 1));
        starts.into_iter().any(sets).then_some((set, end))
    }

    /// The commas between assignments.
    fn commas(&self, from: usize, to: usize) -> Vec<usize> {
        let inside = outermost(&self.tokens[from..to]).into_iter().map(|at| from + at);
        inside.filter(|at| self.tokens[*at].is_sign(",")).collect()
    }

    /// The assignments, those of elements of one document as one.
    fn assignments(&self, from: usize, to: usize) -> String {
        let (mut plain, mut sets) = (Vec::new(), Vec::<(String, String)>::new());
        let mut start = from;
        for end in self.commas(from, to).into_iter().chain([to]) {
            let element = self.element(start);
            match element.filter(|element| self.tokens.get(element.end).is_some_and(|sign| sign.is_sign("=")))
            {
                Some(element) => {
                    let value = self.read(element.end + 1, end);
                    let argument = format!(", '{}', {value}", element.path.join(".").replace('\'', "''"));
                    match sets.iter_mut().find(|(document, _)| *document == element.document) {
                        Some((_, arguments)) => arguments.push_str(&argument),
                        None => sets.push((element.document.clone(), argument)),
                    }
                }
                None => plain.push(self.read(start, end)),
            }
            start = end + 1;
        }
        let set = |(document, arguments): (String, String)| {
            let document = quote(&document);
            format!("{document} = {SET}({document}{arguments})")
        };
        plain.extend(sets.into_iter().map(set));
        plain.join(", ")
    }
}
