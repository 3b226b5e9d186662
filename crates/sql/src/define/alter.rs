//! ALTER TABLE: other names, columns that come and go.
//!
//! No row is touched. A column that comes has no field in the rows that are there, which means its default; one that goes leaves
//! its field behind. The text of the CREATE TABLE is changed where the change lies, so that it says what the user has written.
//!
//! Invariant: a column's field number is never given to another one.

use perilune::{Session, Value as NodeValue};

use super::coded::refuse_entries;
use super::{check_digits, check_name, check_table, existing, write_table};
use crate::catalog::{self, place};
use crate::definition::{column_of, constant, parse_table};
use crate::error::{Error, Result, SqlState};
use crate::schema::{Computed, Table};
use crate::token::{fold, quote, tokens, Kind, Token};

/// RENAME TO.
pub(super) fn rename_table(session: &mut Session, table: &str, name: &str) -> Result<()> {
    let table = existing(session, table)?;
    refuse_entries(&table)?;
    let (old, new) = (fold(&table.name), fold(name));
    if old != new {
        check_name(session, name)?;
        if !table.triggers.is_empty() {
            let what = "a table with triggers keeps its name: drop them first";
            return Err(Error::new(SqlState::REFUSED, what));
        }
        let moved = [&["table"][..], &["stat"], &["sequence"]];
        for path in moved {
            let (from, to) = (place(&[path, &[&old[..]]].concat())?, place(&[path, &[&new[..]]].concat())?);
            session.copy(&from, &to)?;
            session.delete_tree(&from)?;
        }
    }
    for kind in ["index", "coded"] {
        for index in catalog::names(session, &["table", &new, kind])? {
            session.set(&place(&["index", &index])?, &new)?;
        }
    }
    // `CREATE TABLE name` is how each text begins.
    let head = format!("CREATE TABLE {}", quote(&table.name));
    let body = renamed(
        table.sql.strip_prefix(&head).unwrap_or(&table.sql).trim_start(),
        |token| references(token, &old),
        name,
    )?;
    session.set(&place(&["table", &new, "sql"])?, format!("CREATE TABLE {} {body}", quote(name)))?;
    for key in &table.foreign_keys {
        let parent = fold(&key.parent);
        let parent = if parent == old { &new } else { &parent };
        session.delete_value(&place(&["table", parent, "child", &old])?)?;
        session.set(&place(&["table", parent, "child", &new])?, 1)?;
    }
    for child in table.children.iter().filter(|child| **child != old) {
        let node = place(&["table", child, "sql"])?;
        if let Some(sql) = session.get_str(&node)?.map(str::to_owned) {
            session.set(&node, renamed(&sql, |token| references(token, &old), name)?)?;
        }
    }
    catalog::bump(session)
}

/// The table of this name, whose columns may change.
fn altered(session: &mut Session, table: &str) -> Result<Table> {
    let table = existing(session, table)?;
    refuse_entries(&table)?;
    if table.over.is_some() {
        let what = "drop a table OVER nodes and create it anew: the nodes stay";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    Ok(table)
}

/// Fails for a document, whose nodes bear its name.
fn refuse_document(table: &Table, column: usize) -> Result<()> {
    if table.columns[column].is_document {
        let what = "a document keeps its name and its place: its nodes lie there";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    Ok(())
}

/// Whether a token is the name of this table behind REFERENCES, or before a point.
fn references(place: &Place<'_>, name: &str) -> bool {
    place.is_name(name) && (place.before == "references" || place.after == ".")
}

/// A name in a text, and what stands beside it.
struct Place<'a> {
    name: String,
    before: &'a str,
    after: &'a str,
}

impl Place<'_> {
    fn is_name(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// The text with other names where `is_meant` says so.
fn renamed(text: &str, is_meant: impl Fn(&Place<'_>) -> bool, name: &str) -> Result<String> {
    let tokens = tokens(text)?;
    let (mut out, mut end) = (String::new(), 0);
    for (at, token) in tokens.iter().enumerate() {
        if !matches!(token.kind, Kind::Word | Kind::Name) {
            continue;
        }
        let before = at.checked_sub(1).map_or(String::new(), |before| fold(tokens[before].text));
        let after = tokens.get(at + 1).map_or("", |after| after.text);
        let place = Place { name: token.name().unwrap_or_default(), before: &before, after };
        if is_meant(&place) {
            out.push_str(&text[end..token.at]);
            out.push_str(&quote(name));
            end = token.end();
        }
    }
    out.push_str(&text[end..]);
    Ok(out)
}

/// Puts a table's new text into the catalog, and checks it.
fn set_text(session: &mut Session, table: &Table, sql: &str, fields: &[(String, usize)]) -> Result<()> {
    let parsed = parse_table(sql, fields)?;
    check_table(session, &parsed)?;
    write_table(session, &parsed)?;
    let _ = table;
    catalog::bump(session)
}

/// The fields of a table's columns, and those of dropped ones.
fn fields(session: &mut Session, table: &Table) -> Result<Vec<(String, usize)>> {
    let base = place(&["table", &fold(&table.name), "field"])?;
    let mut fields = Vec::new();
    for field in 0..table.fields.len() {
        if let Some(NodeValue::String(name)) = session.get(&base.child(field as i64)?)? {
            fields.push((String::from_utf8_lossy(&name).into_owned(), field));
        }
    }
    Ok(fields)
}

/// RENAME COLUMN.
pub(super) fn rename_column(session: &mut Session, table: &str, column: &str, name: &str) -> Result<()> {
    let table = altered(session, table)?;
    let at = place_of(&table, column)?;
    refuse_document(&table, at)?;
    if table.column(name).is_some_and(|other| other != at) {
        return Err(Error::new(SqlState::EXISTS, format!("duplicate column name: {name}")));
    }
    let is_column = |place: &Place<'_>| {
        place.is_name(column)
            && place.after != "("
            && place.before != "references"
            && place.before != "constraint"
    };
    let start = table.sql.find('(').unwrap_or(0);
    let body = renamed(&table.sql[start..], is_column, name)?;
    let sql = format!("{}{body}", &table.sql[..start]);
    let mut fields = fields(session, &table)?;
    for (other, _) in fields.iter_mut().filter(|(other, _)| other.eq_ignore_ascii_case(column)) {
        name.clone_into(other);
    }
    for index in catalog::names(session, &["table", &fold(&table.name), "index"])? {
        let node = place(&["table", &fold(&table.name), "index", &index, "sql"])?;
        if let Some(sql) = session.get_str(&node)?.map(str::to_owned) {
            session.set(&node, renamed(&sql, |place| place.is_name(column), name)?)?;
        }
    }
    set_text(session, &table, &sql, &fields)
}

fn place_of(table: &Table, column: &str) -> Result<usize> {
    let what = || Error::new(SqlState::NO_COLUMN, format!("no such column: \"{column}\""));
    let at = table.column(column).ok_or_else(what)?;
    if table.columns[at].is_usage() {
        let what = format!("{column} is its index's: drop that");
        return Err(Error::new(SqlState::REFUSED, what));
    }
    Ok(at)
}

/// ADD HASHABILITY.
pub(super) fn add_hashability(session: &mut Session, table: &str) -> Result<()> {
    let table = altered(session, table)?;
    session.set(&place(&["table", &fold(&table.name), "hashability"])?, 1)?;
    catalog::bump(session)
}

/// SET DIRTY.
pub(super) fn set_dirty(session: &mut Session, table: &str) -> Result<()> {
    let table = altered(session, table)?;
    if table.key_columns().is_empty() {
        let what =
            format!("EVICT names rows by a PRIMARY KEY of integers and texts, and {} has none", table.name);
        return Err(Error::new(SqlState::REFUSED, what));
    }
    session.set(&place(&["table", &fold(&table.name), "dirty"])?, 1)?;
    catalog::bump(session)
}

/// ADD COLUMN.
pub(super) fn add_column(session: &mut Session, table: &str, text: &str) -> Result<()> {
    let table = altered(session, table)?;
    let (column, has_key) = column_of(text)?;
    check_digits(&column)?;
    let refuse = |what: &str| Err(Error::new(SqlState::REFUSED, what));
    if has_key {
        return refuse("a column that is added is no PRIMARY KEY and not UNIQUE: create an index afterwards");
    }
    if column.generated.is_some() {
        return refuse("a column that is added is not generated: rows that are there do not have its values");
    }
    let default = column.default.as_deref().map(constant);
    if matches!(default, Some(None)) {
        return refuse("the default of a column that is added is a constant");
    }
    let has_default = matches!(default, Some(Some(ref value)) if !value.is_null());
    if column.not_null.is_some() && !has_default {
        return refuse("Cannot add a NOT NULL column with default value NULL");
    }
    if table.column(&column.name).is_some() {
        return Err(Error::new(SqlState::EXISTS, format!("duplicate column name: {}", column.name)));
    }
    let end = table.columns.iter().rfind(|column| !column.is_hidden()).map_or(0, |last| last.span.1);
    let sql = format!("{}, {text}{}", &table.sql[..end], &table.sql[end..]);
    let fields = fields(session, &table)?;
    set_text(session, &table, &sql, &fields)
}

/// DROP COLUMN.
pub(super) fn drop_column(session: &mut Session, table: &str, column: &str) -> Result<()> {
    let table = altered(session, table)?;
    let at = place_of(&table, column)?;
    refuse_document(&table, at)?;
    let name = &table.columns[at].name;
    let refuse =
        |why: &str| Err(Error::new(SqlState::REFUSED, format!("cannot drop column \"{name}\": {why}")));
    if table.key_columns().contains(&at) {
        return refuse("PRIMARY KEY");
    }
    if table.columns.iter().filter(|column| !column.is_hidden()).count() == 1 {
        return refuse("no other columns exist");
    }
    if table.indexes.iter().any(|index| index.columns.iter().any(|(column, _)| *column == at)) {
        return refuse("an index or UNIQUE needs it: drop that first");
    }
    let names_it = |text: &str| -> Result<bool> {
        Ok(tokens(text)?.iter().filter_map(Token::name).any(|other| other.eq_ignore_ascii_case(name)))
    };
    for column in &table.columns {
        if let Some(Computed::Expression(text) | Computed::Condition(text)) = &column.computed {
            if names_it(text)? {
                return refuse("an index computes with it: drop that first");
            }
        }
    }
    if table.foreign_keys.iter().any(|key| key.columns.contains(&at)) {
        return refuse("a REFERENCES needs it");
    }
    let (start, end) = table.columns[at].span;
    let (start, end) = match at {
        0 => (start, table.columns[1].span.0),
        _ => (table.columns[at - 1].span.1, end),
    };
    let sql = format!("{}{}", &table.sql[..start], &table.sql[end..]);
    let mut fields = fields(session, &table)?;
    for (other, field) in &mut fields {
        if other.eq_ignore_ascii_case(name) {
            // The number stays taken.
            other.clear();
            session.set(&place(&["table", &fold(&table.name), "field"])?.child(*field as i64)?, "")?;
        }
    }
    set_text(session, &table, &sql, &fields)
}
