//! CREATE TABLE: columns, and constraints of both kinds.
//!
//! Invariant: what the text says is not put together here (`build`), and nothing of it is looked up.

use super::over::{self, OverText};
use super::{Definition, Reader};
use crate::decimal::Digits;
use crate::error::{Error, Result, SqlState};
use crate::schema::{Check, Collation, Column, ForeignKey, Referential, Resolution, Table};
use crate::token::{quote, tokens, Kind};
use crate::value::{Affinity, Value};
use crate::wide;

/// The parts of a key: a column's name, and how its texts are compared.
pub(super) type Parts = Vec<(String, Option<Collation>)>;

/// What a CREATE TABLE says before it is put together.
#[derive(Default)]
pub(super) struct TableText {
    pub(super) columns: Vec<Column>,
    /// Where each lies, if it says so.
    pub(super) places: Vec<Option<Vec<String>>>,
    pub(super) over: Option<OverText>,
    pub(super) cuts: Vec<(usize, usize)>,
    pub(super) primary: Option<(Parts, Resolution, bool)>,
    pub(super) unique: Vec<(Parts, Resolution)>,
    pub(super) checks: Vec<Check>,
    pub(super) foreign_keys: Vec<(Vec<String>, ForeignKey)>,
    pub(super) strict: bool,
}

/// Parses what follows CREATE TABLE.
pub(super) fn create(reader: &mut Reader<'_>) -> Result<Definition> {
    let if_not_exists = reader.if_not_exists()?;
    let name = reader.qualified()?;
    if reader.take("as") {
        return Ok(Definition::CreateTableAs { if_not_exists, name, query: reader.rest_of_text() });
    }
    let start = reader.place();
    read(reader)?;
    let sql_of_table = reader.text_between(start, reader.behind());
    let table = parse_table(&format!("CREATE TABLE {} {sql_of_table}", quote(&name)), &[]);
    // NB: places are those of the text that the user has written.
    let before = start as i64 - (format!("CREATE TABLE {} ", quote(&name)).len() as i64);
    let table = table.map_err(|error| error.moved(before))?;
    Ok(Definition::CreateTable { if_not_exists, name, table: Box::new(table) })
}

/// The table of a CREATE TABLE that the catalog holds, whose columns have these fields.
pub(crate) fn parse_table(sql: &str, fields: &[(String, usize)]) -> Result<Table> {
    let tokens = tokens(sql)?;
    let mut reader = Reader::new(sql, &tokens);
    reader.expect("create")?;
    reader.expect("table")?;
    let name = reader.qualified()?;
    let text = read(&mut reader)?;
    reader.end()?;
    let mut table = text.build(&name, fields)?;
    table.sql = sql.to_owned();
    Ok(table)
}

/// The column that the text of a definition is, for a table that gets it, and whether it is a key.
pub(crate) fn column_of(text: &str) -> Result<(Column, bool)> {
    let tokens = tokens(text)?;
    let mut reader = Reader::new(text, &tokens);
    let mut parsed = TableText::default();
    column(&mut reader, &mut parsed)?;
    reader.end()?;
    let has_key = parsed.primary.is_some() || !parsed.unique.is_empty();
    Ok((parsed.columns.remove(0), has_key))
}

fn read(reader: &mut Reader<'_>) -> Result<TableText> {
    let mut table = TableText::default();
    let start = reader.place();
    if reader.take("over") {
        table.over = Some(over::path(reader)?);
        table.cuts.push((start, reader.behind()));
    }
    reader.expect_sign("(")?;
    loop {
        let first = reader.peek();
        let is_constraint = first.is_some_and(|token| {
            ["constraint", "primary", "unique", "check", "foreign"].iter().any(|word| token.is(word))
        });
        if is_constraint && !table.columns.is_empty() {
            constraint(reader, &mut table)?;
            // SQLite takes constraints without commas between them.
            reader.take_sign(",");
        } else {
            column(reader, &mut table)?;
            if !reader.take_sign(",") && !reader.peek().is_some_and(|token| token.is_sign(")")) {
                return Err(reader.expected(", or )"));
            }
        }
        if reader.take_sign(")") {
            break;
        }
    }
    while let Some(token) = reader.peek() {
        if let (Some(over), true) = (&mut table.over, token.is("readonly")) {
            reader.next();
            over.read_only = true;
            table.cuts.push((token.at, token.end()));
        } else if token.is("strict") {
            reader.next();
            table.strict = true;
        } else {
            // Rows always lie in their key's order: it is taken, and changes nothing.
            reader.expect("without")?;
            reader.expect("rowid")?;
        }
        reader.take_sign(",");
    }
    Ok(table)
}

/// Whether a word ends a column's type.
fn ends_type(word: &str, is_over: bool) -> bool {
    if is_over && word.eq_ignore_ascii_case("at") {
        return true;
    }
    let words = [
        "constraint",
        "primary",
        "not",
        "null",
        "unique",
        "check",
        "default",
        "collate",
        "references",
        "generated",
        "as",
    ];
    words.iter().any(|other| word.eq_ignore_ascii_case(other))
}

fn column(reader: &mut Reader<'_>, table: &mut TableText) -> Result<()> {
    let start = reader.place();
    let name = reader.name()?;
    let mut declared: Vec<String> = Vec::new();
    while let Some(token) = reader.peek() {
        if token.is_sign("(") && !declared.is_empty() {
            let inside = reader.parenthesized()?;
            let last = declared.pop().unwrap_or_default();
            declared.push(format!("{last}({inside})"));
            continue;
        }
        match (token.kind, token.name()) {
            (Kind::Word, Some(word)) if !ends_type(&word, table.over.is_some()) => declared.push(word),
            (Kind::Name | Kind::Text, Some(word)) => declared.push(word),
            _ => break,
        }
        reader.next();
    }
    let declared = declared.join(" ");
    let is_document = ["json", "luatable"].iter().any(|word| declared.eq_ignore_ascii_case(word));
    let is_wide = wide::is_wide(&declared);
    let affinity = match is_document {
        true => Affinity::Blob,
        false if is_wide => Affinity::Text,
        false => Affinity::of(&declared),
    };
    let decimal = Digits::of(&declared).filter(|digits| digits.is_kept());
    let mut column = Column {
        name: name.clone(),
        decimal,
        affinity,
        declared,
        collation: if is_wide { Collation::Wide } else { Collation::Binary },
        not_null: None,
        default: None,
        generated: None,
        absent: Value::Null,
        field: None,
        span: (start, start),
        is_document: is_document && table.over.is_none(),
        element: None,
        computed: None,
    };
    table.places.push(None);
    while column_constraint(reader, &mut column, table)? {}
    column.span.1 = reader.behind();
    table.columns.push(column);
    Ok(())
}

/// Takes one constraint of a column, if one follows.
fn column_constraint(reader: &mut Reader<'_>, column: &mut Column, table: &mut TableText) -> Result<bool> {
    let mut label = None;
    if reader.take("constraint") {
        label = Some(reader.name()?);
    }
    let own = || vec![(column.name.clone(), None)];
    if reader.take("primary") {
        reader.expect("key")?;
        let descends = reader.take("desc");
        if !descends {
            reader.take("asc");
        }
        let resolution = on_conflict(reader)?;
        let autoincrement = reader.take("autoincrement");
        if table.primary.is_some() {
            return Err(Error::new(SqlState::DEFINITION, "a table has one PRIMARY KEY").at(reader.place()));
        }
        table.primary = Some((own(), resolution, autoincrement));
    } else if reader.take("not") {
        reader.expect("null")?;
        column.not_null = Some(on_conflict(reader)?);
    } else if reader.take("null") {
        on_conflict(reader)?;
    } else if reader.take("unique") {
        let resolution = on_conflict(reader)?;
        table.unique.push((own(), resolution));
    } else if reader.take("check") {
        let expression = reader.parenthesized()?;
        table.checks.push(Check { name: label.unwrap_or_else(|| expression.clone()), expression });
    } else if reader.take("default") {
        let is_expression = reader.peek().is_some_and(|token| token.is_sign("("));
        column.default = Some(if is_expression { reader.parenthesized()? } else { reader.literal()? });
    } else if reader.take("collate") {
        column.collation = collation(reader)?;
    } else if reader.take("references") {
        let key = references(reader)?;
        table.foreign_keys.push((vec![column.name.clone()], key));
    } else if table.over.is_some() && reader.peek().is_some_and(|token| token.is("at")) {
        let start = reader.place();
        reader.next();
        let place = over::place(reader)?;
        table.cuts.push((start, reader.behind()));
        if let Some(last) = table.places.last_mut() {
            *last = Some(place);
        }
    } else if reader.peek().is_some_and(|token| token.is("generated") || token.is("as")) {
        if reader.take("generated") {
            reader.expect("always")?;
        }
        reader.expect("as")?;
        column.generated = Some(reader.parenthesized()?);
        let _ = reader.take("stored") || reader.take("virtual");
    } else if label.is_some() {
        return Err(reader.expected("a constraint"));
    } else {
        return Ok(false);
    }
    Ok(true)
}

fn constraint(reader: &mut Reader<'_>, table: &mut TableText) -> Result<()> {
    let label = if reader.take("constraint") { Some(reader.name()?) } else { None };
    if reader.take("primary") {
        reader.expect("key")?;
        let parts = key_parts(reader)?;
        let resolution = on_conflict(reader)?;
        if table.primary.is_some() {
            return Err(Error::new(SqlState::DEFINITION, "a table has one PRIMARY KEY").at(reader.place()));
        }
        table.primary = Some((parts, resolution, false));
    } else if reader.take("unique") {
        let parts = key_parts(reader)?;
        let resolution = on_conflict(reader)?;
        table.unique.push((parts, resolution));
    } else if reader.take("check") {
        let expression = reader.parenthesized()?;
        on_conflict(reader)?;
        table.checks.push(Check { name: label.unwrap_or_else(|| expression.clone()), expression });
    } else if reader.take("foreign") {
        reader.expect("key")?;
        let columns = names(reader)?;
        reader.expect("references")?;
        let key = references(reader)?;
        table.foreign_keys.push((columns, key));
    } else {
        return Err(reader.expected("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY"));
    }
    Ok(())
}

/// Takes columns in parentheses, as keys and indexes have them.
pub(super) fn key_parts(reader: &mut Reader<'_>) -> Result<Parts> {
    reader.expect_sign("(")?;
    let mut parts = Vec::new();
    loop {
        let is_call = reader.peek_second().is_some_and(|token| token.is_sign("("));
        if is_call || reader.peek().is_some_and(|token| token.is_sign("(")) {
            let what = "expressions prohibited in PRIMARY KEY and UNIQUE constraints: CREATE UNIQUE INDEX takes them";
            return Err(Error::new(SqlState::REFUSED, what).at(reader.place()));
        }
        let name = element_or_name(reader)?;
        let collation = if reader.take("collate") { Some(collation(reader)?) } else { None };
        // Both directions are walked alike.
        let _ = reader.take("asc") || reader.take("desc");
        parts.push((name, collation));
        if !reader.take_sign(",") {
            break;
        }
    }
    reader.expect_sign(")")?;
    Ok(parts)
}

/// Takes the name of a column, or that of an element, `info.address.city`.
pub(super) fn element_or_name(reader: &mut Reader<'_>) -> Result<String> {
    let mut name = reader.name()?;
    while let Some(part) = reader.segment() {
        name.push('.');
        name.push_str(&part);
    }
    Ok(name)
}

fn names(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    reader.expect_sign("(")?;
    let mut names = vec![reader.name()?];
    while reader.take_sign(",") {
        names.push(reader.name()?);
    }
    reader.expect_sign(")")?;
    Ok(names)
}

pub(super) fn collation(reader: &mut Reader<'_>) -> Result<Collation> {
    let place = reader.place();
    let name = reader.name()?;
    Collation::of(&name).ok_or_else(|| {
        let what =
            format!("no such collation sequence: {name}; there are BINARY, NOCASE, RTRIM, NODE and U128");
        Error::new(SqlState::DEFINITION, what).at(place)
    })
}

fn on_conflict(reader: &mut Reader<'_>) -> Result<Resolution> {
    if !reader.peek().is_some_and(|token| token.is("on")) {
        return Ok(Resolution::Abort);
    }
    reader.next();
    reader.expect("conflict")?;
    let kinds = [
        ("rollback", Resolution::Rollback),
        ("abort", Resolution::Abort),
        ("fail", Resolution::Fail),
        ("ignore", Resolution::Ignore),
        ("replace", Resolution::Replace),
    ];
    match kinds.iter().find(|(word, _)| reader.take(word)) {
        Some((_, resolution)) => Ok(*resolution),
        None => Err(reader.expected("ROLLBACK, ABORT, FAIL, IGNORE or REPLACE")),
    }
}

/// Parses what follows REFERENCES.
fn references(reader: &mut Reader<'_>) -> Result<ForeignKey> {
    let parent = reader.name()?;
    let has_columns = reader.peek().is_some_and(|token| token.is_sign("("));
    let parent_columns = if has_columns { names(reader)? } else { Vec::new() };
    let mut key = ForeignKey {
        columns: Vec::new(),
        parent,
        parent_columns,
        on_delete: Referential::NoAction,
        on_update: Referential::NoAction,
    };
    loop {
        if reader.take("on") {
            let deletes = reader.take("delete");
            if !deletes {
                reader.expect("update")?;
            }
            let action = action(reader)?;
            if deletes {
                key.on_delete = action;
            } else {
                key.on_update = action;
            }
        } else if reader.take("match") {
            reader.name()?;
        } else if reader.peek().is_some_and(|token| token.is("deferrable"))
            || reader.peek().is_some_and(|token| token.is("not"))
                && reader.peek_second().is_some_and(|token| token.is("deferrable"))
        {
            let is_not = reader.take("not");
            reader.expect("deferrable")?;
            if reader.take("initially") && !reader.take("immediate") {
                reader.expect("deferred")?;
                if !is_not {
                    let what = "constraints are checked at once: leave INITIALLY DEFERRED out";
                    return Err(Error::new(SqlState::REFUSED, what).at(reader.behind()));
                }
            }
        } else {
            return Ok(key);
        }
    }
}

fn action(reader: &mut Reader<'_>) -> Result<Referential> {
    if reader.take("cascade") {
        return Ok(Referential::Cascade);
    }
    if reader.take("restrict") {
        return Ok(Referential::Restrict);
    }
    if reader.take("no") {
        reader.expect("action")?;
        return Ok(Referential::NoAction);
    }
    reader.expect("set")?;
    if reader.take("null") {
        return Ok(Referential::SetNull);
    }
    reader.expect("default")?;
    Ok(Referential::SetDefault)
}
