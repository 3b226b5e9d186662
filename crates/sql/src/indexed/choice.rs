//! A view that is a choice: some of the rows of one table, each with columns and expressions under names of their own.
//!
//! ```text
//! CREATE VIEW adult(id, called) AS SELECT id, name FROM person WHERE age > 17
//! ```
//!
//! Invariants
//! - What a condition on its rows says holds for the table's rows as well: it neither counts, nor groups, nor joins.
//! - What is not understood is no choice: then an index stands idle, and no row is missing.

use std::rc::Rc;

use super::{is_any, pure};
use crate::elements::segment;
use crate::error::Result;
use crate::rewrite::outermost;
use crate::schema::{Computed, Key, Table};
use crate::token::{fold, is_keyword, quote, tokens as cut, Kind, Token};

/// What makes a view more than a choice, wherever it stands in its text.
const BEYOND: [&str; 20] = [
    "with",
    "distinct",
    "all",
    "group",
    "having",
    "window",
    "over",
    "filter",
    "limit",
    "union",
    "except",
    "intersect",
    "join",
    "natural",
    "left",
    "cross",
    "indexed",
    "values",
    "exists",
    "using",
];

/// A view that is a choice of rows.
pub(crate) struct Choice {
    /// The view as a table, for its columns' names.
    pub(crate) table: Rc<Table>,
    /// What stands behind FROM.
    source: String,
    /// What each column is.
    parts: Vec<Part>,
    /// What stands behind WHERE.
    pub(super) condition: Option<String>,
    /// What stands behind ORDER BY.
    order: Option<String>,
    /// The functions of indexes that it may call, and a condition on it as well.
    functions: Vec<String>,
    /// See [`Source`].
    pub(super) is_indexed: bool,
}

/// What a column is.
struct Part {
    text: String,
    /// It is a column of the table, or an element of one: a name, which no operator outside takes apart.
    is_name: bool,
    /// It says how it is compared, which a column of a view does in other places than an expression.
    has_collation: bool,
}

/// What the list of a view makes: its columns, each with its name, if it has one, and which of the table it is.
#[derive(Default)]
struct List {
    parts: Vec<Part>,
    columns: Vec<(Option<String>, Option<usize>)>,
}

/// A table that a view may choose from.
pub(crate) struct Source {
    table: Rc<Table>,
    /// The functions of its indexes.
    functions: Vec<String>,
    /// It has an index that columns do not say all of; those of others SQLite finds through views.
    is_indexed: bool,
}

impl Source {
    /// Of a table of the schema.
    pub(crate) fn of(table: &Rc<Table>) -> Result<Source> {
        let mut functions = Vec::new();
        for column in &table.columns {
            let Some(Computed::Expression(text) | Computed::Condition(text)) = &column.computed else {
                continue;
            };
            functions.extend(calls(&cut(text)?));
        }
        let is_indexed = table.columns.iter().any(|column| column.is_hidden());
        Ok(Source { table: Rc::clone(table), functions, is_indexed })
    }
}

impl Choice {
    /// The view of this CREATE VIEW, if it is a choice; `find` answers what it names.
    pub(crate) fn read(sql: &str, find: &dyn Fn(&str) -> Result<Option<Source>>) -> Result<Option<Choice>> {
        let tokens = cut(sql)?;
        let last = tokens.iter().rposition(|token| !token.is_sign(";")).map_or(0, |last| last + 1);
        let text = Text { sql, tokens: &tokens[..last] };
        let Some(body) = text.body() else { return Ok(None) };
        let Some(name) = body.tokens(body.from + 1, body.end).first().and_then(Token::name) else {
            return Ok(None);
        };
        let Some(source) = find(&fold(&name))? else { return Ok(None) };
        Ok(text.choice(&body, &name, source))
    }

    /// What is in the place of the view: a query of its rows for which the terms hold as well.
    pub(super) fn query(&self, terms: &[String]) -> String {
        let list: Vec<String> = self
            .parts
            .iter()
            .zip(&self.table.columns)
            .map(|(part, column)| format!("{} AS {}", part.text, quote(&column.name)))
            .collect();
        let conditions: Vec<String> =
            self.condition.iter().chain(terms).map(|condition| format!("({condition})")).collect();
        let filter = if conditions.is_empty() { "" } else { " WHERE " };
        let order = self.order.as_ref().map_or(String::new(), |order| format!(" ORDER BY {order}"));
        format!(
            "(SELECT {} FROM {}{filter}{}{order})",
            list.join(", "),
            self.source,
            conditions.join(" AND ")
        )
    }

    /// What a column is inside; none: it is none, or one that is compared otherwise there.
    pub(super) fn column(&self, name: &str) -> Option<String> {
        let part = &self.parts[self.table.column(name)?];
        match (part.is_name, part.has_collation) {
            (true, _) => Some(part.text.clone()),
            (false, true) => None,
            (false, false) => Some(format!("({})", part.text)),
        }
    }

    /// Whether a call of this function may stand inside as well.
    pub(super) fn may_call(&self, name: &str) -> bool {
        pure::is_pure(name) || self.functions.iter().any(|known| known == name)
    }

    /// The choice as what another view may choose from.
    pub(crate) fn source(&self) -> Source {
        let functions = self.functions.clone();
        Source { table: Rc::clone(&self.table), functions, is_indexed: self.is_indexed }
    }
}

/// A CREATE VIEW, as its parts are looked for.
struct Text<'a> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
}

/// Where the parts of a CREATE VIEW are, by numbers of tokens.
struct Body<'a> {
    all: &'a [Token<'a>],
    name: String,
    /// The names of columns, where they are said.
    columns: Option<Vec<String>>,
    list: usize,
    from: usize,
    filter: Option<usize>,
    order: Option<usize>,
    end: usize,
}

impl<'a> Body<'a> {
    fn tokens(&self, from: usize, to: usize) -> &'a [Token<'a>] {
        self.all.get(from..to).unwrap_or(&[])
    }
}

impl<'a> Text<'a> {
    /// The parts of the CREATE VIEW, if it has those of a choice alone.
    fn body(&self) -> Option<Body<'a>> {
        let outer = outermost(self.tokens);
        let find = |word: &str| outer.iter().copied().find(|at| self.tokens[*at].is(word));
        let (view, select) = (find("view")?, find("as")? + 1);
        let head = &self.tokens[view + 1..select - 1];
        let head = match head {
            [one, two, three, rest @ ..] if one.is("if") && two.is("not") && three.is("exists") => rest,
            _ => head,
        };
        let head = match head {
            [_, point, rest @ ..] if point.is_sign(".") => rest,
            _ => head,
        };
        let (name, columns) = match head {
            [name] => (name.name()?, None),
            [name, open, inside @ .., close] if open.is_sign("(") && close.is_sign(")") => {
                let names: Option<Vec<String>> =
                    inside.iter().filter(|token| !token.is_sign(",")).map(Token::name).collect();
                (name.name()?, Some(names?))
            }
            _ => return None,
        };
        let body = self.tokens.get(select + 1..)?;
        let is_beyond = |token: &Token<'_>| token.is("select") || is_any(token, &BEYOND);
        if !self.tokens[select].is("select") || body.iter().any(is_beyond) {
            return None;
        }
        let after = |word: &str| outer.iter().copied().find(|at| *at > select && self.tokens[*at].is(word));
        let (filter, order) = (after("where"), after("order"));
        let end = self.tokens.len();
        Some(Body {
            all: self.tokens,
            name,
            columns,
            list: select + 1,
            from: after("from")?,
            filter,
            order,
            end,
        })
    }

    fn choice(&self, body: &Body<'_>, name: &str, source: Source) -> Option<Choice> {
        let Source { table, functions, is_indexed } = source;
        let named = body.tokens(body.from + 1, body.filter.or(body.order).unwrap_or(body.end));
        let of = match named {
            [_] => name.to_owned(),
            [_, alias] if !is_keyword(alias) => alias.name()?,
            [_, word, alias] if word.is("as") => alias.name()?,
            _ => return None,
        };
        if named.iter().any(|token| !matches!(token.kind, Kind::Word | Kind::Name)) {
            return None;
        }
        let is_pure = |name: &String| pure::is_pure(name) || functions.contains(name);
        if !calls(&self.tokens[body.list..]).iter().all(is_pure) {
            return None;
        }
        let condition = body.filter.map(|at| self.text(at + 1, body.order.unwrap_or(body.end)));
        let order = body.order.map(|at| self.text(at + 2, body.end));
        let mut list = List::default();
        for (from, to) in self.items(body.list, body.from) {
            self.item(from, to, &of, &table, &mut list)?;
        }
        let List { parts, mut columns } = list;
        if let Some(names) = &body.columns {
            if names.len() != columns.len() {
                return None;
            }
            columns.iter_mut().zip(names).for_each(|((name, _), said)| *name = Some(said.clone()));
        }
        // Where the view shows the key of the table's rows, it has the indexes that code keeps of them.
        let shown = |key: &usize| columns.iter().position(|(_, column)| *column == Some(*key));
        let key: Vec<usize> = table.primary_key().iter().map_while(shown).collect();
        let has_key = !key.is_empty() && key.len() == table.primary_key().len();
        let code_indexes = if has_key { table.code_indexes.clone() } else { Vec::new() };
        let mut made = Table {
            name: body.name.clone(),
            columns: Vec::new(),
            indexes: Vec::new(),
            key: Key::Columns(key),
            code_indexes,
            ..(*table).clone()
        };
        for (name, column) in columns {
            let name = name?;
            if made.column(&name).is_some() || is_any_word(&name, &super::viewed::WORDS) {
                return None;
            }
            let mut of = table.columns[column.unwrap_or(0)].clone();
            (of.name, of.element, of.computed) = (name, None, None);
            of.is_document &= column.is_some();
            made.columns.push(of);
        }
        let source = self.text(body.from + 1, body.filter.or(body.order).unwrap_or(body.end));
        Some(Choice { table: Rc::new(made), source, parts, condition, order, functions, is_indexed })
    }

    /// The text of some tokens.
    fn text(&self, from: usize, to: usize) -> String {
        match (self.tokens.get(from), to.checked_sub(1).and_then(|last| self.tokens.get(last))) {
            (Some(first), Some(last)) if first.at < last.end() => self.sql[first.at..last.end()].to_owned(),
            _ => String::new(),
        }
    }

    /// Whether the tokens are a name and what points below it.
    fn is_element(&self, from: usize, to: usize) -> bool {
        let is_name = matches!(self.tokens[from].kind, Kind::Word | Kind::Name);
        let mut at = from + 1;
        while let Some((_, behind)) = segment(&self.tokens[..to], at) {
            at = behind;
        }
        is_name && at == to
    }

    /// The tokens between commas.
    fn items(&self, from: usize, to: usize) -> Vec<(usize, usize)> {
        let commas = outermost(&self.tokens[from..to]).into_iter().map(|at| from + at);
        let commas: Vec<usize> = commas.filter(|at| self.tokens[*at].is_sign(",")).collect();
        let starts = std::iter::once(from).chain(commas.iter().map(|at| at + 1));
        starts.zip(commas.iter().copied().chain([to])).collect()
    }

    /// Takes in the columns that an item of the list makes.
    fn item(&self, from: usize, to: usize, of: &str, table: &Table, list: &mut List) -> Option<()> {
        let List { parts, columns } = list;
        let column_text = |at: usize| format!("{}.{}", quote(of), quote(&table.columns[at].name));
        let mut add = |at: usize, name: Option<String>| {
            parts.push(Part { text: column_text(at), is_name: true, has_collation: false });
            columns.push((Some(name.unwrap_or_else(|| table.columns[at].name.clone())), Some(at)));
        };
        let is_of = |token: &Token<'_>| token.name().is_some_and(|name| name.eq_ignore_ascii_case(of));
        let column = |token: &Token<'_>| {
            let name = token.name().filter(|_| token.kind != Kind::Text);
            name.and_then(|name| table.column(&name)).filter(|at| !table.columns[*at].is_hidden())
        };
        let item = &self.tokens[from..to];
        let unqualified = match item {
            [name, point, rest @ ..] if point.is_sign(".") && is_of(name) => rest,
            _ => item,
        };
        match unqualified {
            [star] if star.is_sign("*") => {
                let seen = (0..table.columns.len()).filter(|at| !table.columns[*at].is_hidden());
                seen.for_each(|at| add(at, None));
            }
            [only] if column(only).is_some() => add(column(only)?, None),
            [only, alias] if column(only).is_some() && !is_any(alias, &super::viewed::WORDS) => {
                add(column(only)?, Some(alias.name()?))
            }
            [only, word, alias] if column(only).is_some() && word.is("as") => {
                add(column(only)?, Some(alias.name()?))
            }
            _ => {
                let (end, name) = match item {
                    [.., word, alias] if item.len() > 2 && word.is("as") => (to - 2, Some(alias.name()?)),
                    _ => (to, None),
                };
                let has_collation = self.tokens[from..end].iter().any(|token| token.is("collate"));
                parts.push(Part {
                    text: self.text(from, end),
                    is_name: self.is_element(from, end),
                    has_collation,
                });
                columns.push((name, None));
            }
        }
        Some(())
    }
}

fn is_any_word(name: &str, words: &[&str]) -> bool {
    words.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// The names before parentheses, in lower case, but for words of SQL.
fn calls(tokens: &[Token<'_>]) -> Vec<String> {
    let is_call = |pair: &&[Token<'_>]| {
        pair[1].is_sign("(")
            && matches!(pair[0].kind, Kind::Word | Kind::Name)
            && !is_any(&pair[0], &super::viewed::WORDS)
            && !is_any(&pair[0], &["select", "by", "where", "from", "decimal", "numeric", "varchar", "char"])
    };
    tokens.windows(2).filter(is_call).filter_map(|pair| pair[0].name()).map(|name| fold(&name)).collect()
}
