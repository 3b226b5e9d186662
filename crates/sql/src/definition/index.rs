//! CREATE INDEX: columns, elements, expressions, and which rows it holds.
//!
//! The catalog keeps what follows the table's name, in a form that is read by the code that reads the statement:
//! `"city" COLLATE NOCASE, (lower(name)) WHERE (age > 17)`. A program of before expressions fails at it, and so writes nothing.
//!
//! Invariant: names of the table do not stand before columns there, so that the table may get another one.

use super::table::{collation, element_or_name};
use super::{Definition, Reader};
use crate::error::{Error, Result, SqlState};
use crate::schema::Collation;
use crate::token::{fold, quote, tokens, without_parentheses, Kind, Token};

/// What an index holds of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum IndexPart {
    /// A column, or an element by its path with points.
    Column(String),
    Expression(String),
}

/// What an index is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexText {
    pub(crate) parts: Vec<(IndexPart, Option<Collation>)>,
    /// Which rows it holds; none: all.
    pub(crate) condition: Option<String>,
}

impl IndexText {
    /// As the catalog keeps it.
    pub(crate) fn text(&self) -> String {
        let part = |(part, collation): &(IndexPart, Option<Collation>)| {
            let part = match part {
                IndexPart::Column(name) => quote(name),
                IndexPart::Expression(text) => format!("({text})"),
            };
            match collation {
                Some(collation) => format!("{part} COLLATE {}", collation.name()),
                None => part,
            }
        };
        let parts = self.parts.iter().map(part).collect::<Vec<_>>().join(", ");
        match &self.condition {
            Some(condition) => format!("{parts} WHERE ({condition})"),
            None => parts,
        }
    }

    /// As CREATE INDEX has it behind the table, but for the first parenthesis, where elements stand as the user writes them.
    pub(crate) fn body(&self) -> String {
        let part = |(part, collation): &(IndexPart, Option<Collation>)| {
            let part = match part {
                IndexPart::Column(name) if name.contains('.') => name.clone(),
                IndexPart::Column(name) => quote(name),
                IndexPart::Expression(text) => format!("({text})"),
            };
            let by = collation.map_or(String::new(), |collation| format!(" COLLATE {}", collation.name()));
            format!("{part}{by}")
        };
        let parts = self.parts.iter().map(part).collect::<Vec<_>>().join(", ");
        let condition = self.condition.as_ref().map(|condition| format!(" WHERE ({condition})"));
        format!("({parts}){}", condition.unwrap_or_default())
    }

    /// Its expressions, with the condition.
    pub(crate) fn expressions(&self) -> impl Iterator<Item = &String> {
        let of = |(part, _): &'_ (IndexPart, Option<Collation>)| matches!(part, IndexPart::Expression(_));
        let parts = self.parts.iter().filter(move |part| of(part)).map(|(part, _)| match part {
            IndexPart::Column(text) | IndexPart::Expression(text) => text,
        });
        parts.chain(&self.condition)
    }

    /// Whether SQLite is to look at it, as it has expressions.
    pub(crate) fn has_expressions(&self) -> bool {
        self.condition.is_some()
            || self.parts.iter().any(|(part, _)| matches!(part, IndexPart::Expression(_)))
    }
}

/// What an index is whose entries code keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CodeIndexText {
    /// What stands for its values in a WHERE.
    pub(crate) function: String,
    /// The type of its values.
    pub(crate) declared: String,
    pub(crate) constructor: String,
    pub(crate) destructor: Option<String>,
}

/// Parses what follows CREATE INDEX and CREATE UNIQUE INDEX.
pub(super) fn create(reader: &mut Reader<'_>, unique: bool) -> Result<Definition> {
    let if_not_exists = reader.if_not_exists()?;
    let name = reader.qualified()?;
    reader.expect("on")?;
    let table = reader.name()?;
    reader.expect_sign("(")?;
    let parts = parts(reader, &table)?;
    reader.expect_sign(")")?;
    if let Some(function) = of_code(reader, &parts, unique)? {
        let text = code_index(reader, function)?;
        return Ok(Definition::CreateCodeIndex { if_not_exists, name, table, text });
    }
    let condition = condition(reader, &table)?;
    let text = IndexText { parts, condition };
    Ok(Definition::CreateIndex { if_not_exists, name, table, text, unique })
}

/// The function of an index that code keeps, `(function()) TYPE constructor`, if a type stands behind the parts.
fn of_code(
    reader: &Reader<'_>,
    parts: &[(IndexPart, Option<Collation>)],
    unique: bool,
) -> Result<Option<String>> {
    let is_type = |token: Token<'_>| token.kind == Kind::Word && !token.is("where");
    if !reader.peek().is_some_and(is_type) {
        return Ok(None);
    }
    let wrong = || {
        reader.expected("WHERE, or a function without arguments before the type of an index that code keeps")
    };
    let [(IndexPart::Expression(text), None)] = parts else { return Err(wrong()) };
    let tokens = tokens(text)?;
    match &tokens[..] {
        [name, open, close] if open.is_sign("(") && close.is_sign(")") && !unique => {
            name.name().map(Some).ok_or_else(wrong)
        }
        _ => Err(wrong()),
    }
}

fn code_index(reader: &mut Reader<'_>, function: String) -> Result<CodeIndexText> {
    let declared = reader.name()?;
    let constructor = reader.name()?;
    let destructor = match reader.peek() {
        Some(token) if !token.is_sign(";") => Some(reader.name()?),
        _ => None,
    };
    Ok(CodeIndexText { function, declared, constructor, destructor })
}

/// What the catalog says of an index.
pub(crate) fn parse_index(text: &str) -> Result<IndexText> {
    let tokens = tokens(text)?;
    let mut reader = Reader::new(text, &tokens);
    let parts = parts(&mut reader, "")?;
    let condition = condition(&mut reader, "")?;
    reader.end()?;
    Ok(IndexText { parts, condition })
}

fn condition(reader: &mut Reader<'_>, table: &str) -> Result<Option<String>> {
    if !reader.take("where") {
        return Ok(None);
    }
    if reader.peek().is_none() {
        return Err(reader.expected("a condition"));
    }
    let text = reader.rest_of_text();
    plain(&text, table).map(Some)
}

fn parts(reader: &mut Reader<'_>, table: &str) -> Result<Vec<(IndexPart, Option<Collation>)>> {
    let mut parts = Vec::new();
    loop {
        let start = reader.place();
        let text = reader.until(&["collate", "asc", "desc", "where"])?;
        if text.is_empty() {
            return Err(reader.expected("a column or an expression"));
        }
        let part = part(&plain(text, table)?).map_err(|error| error.moved(start as i64))?;
        let collation = if reader.take("collate") { Some(collation(reader)?) } else { None };
        // Both directions are walked alike.
        let _ = reader.take("asc") || reader.take("desc");
        if reader.peek().is_some_and(|token| token.is("nulls")) {
            let what = "unsupported use of NULLS in an index: NULL is less than all";
            return Err(Error::new(SqlState::REFUSED, what).at(reader.place()));
        }
        parts.push((part, collation));
        if !reader.take_sign(",") {
            return Ok(parts);
        }
    }
}

fn part(text: &str) -> Result<IndexPart> {
    let tokens = tokens(text)?;
    let mut reader = Reader::new(text, &tokens);
    let is_literal = tokens.first().is_some_and(|token| {
        token.kind == Kind::Text || ["null", "true", "false"].iter().any(|word| token.is(word))
    });
    let name = element_or_name(&mut reader);
    Ok(match name.and_then(|name| reader.end().map(|()| name)) {
        Ok(name) if !is_literal || tokens[0].kind == Kind::Text => IndexPart::Column(name),
        _ => IndexPart::Expression(text.to_owned()),
    })
}

/// An expression without parentheses around it, and without its table's name before columns.
fn plain(text: &str, table: &str) -> Result<String> {
    let tokens = tokens(text)?;
    let within = without_parentheses(&tokens);
    let (Some(first), Some(last)) = (within.first(), within.last()) else { return Ok(text.to_owned()) };
    let (mut out, mut end) = (String::new(), first.at);
    for (at, token) in within.iter().enumerate() {
        let is_table = matches!(token.kind, Kind::Word | Kind::Name)
            && token.name().is_some_and(|name| fold(&name) == fold(table))
            && (at == 0 || !within[at - 1].is_sign("."));
        if let (true, Some(point)) = (is_table, within.get(at + 1).filter(|next| next.is_sign("."))) {
            out.push_str(&text[end..token.at]);
            end = point.end();
        }
    }
    out.push_str(&text[end..last.end()]);
    Ok(out)
}
