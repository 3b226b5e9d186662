//! A table from what its CREATE TABLE says: the key, fields, indexes of UNIQUE.
//!
//! Invariants
//! - Columns of the key have no field in records; the others have the fields that they are given, or the next ones in order.
//! - A PRIMARY KEY of texts and integers names the row's node; of anything else it is a UNIQUE, and rows have numbers.

use super::over;
use super::table::{Parts, TableText};
use crate::error::{Error, Result, SqlState};
use crate::limits::COLUMNS;
use crate::schema::{Collation, Column, Index, Key, Resolution, Table};
use crate::token::{fold, tokens, Kind};
use crate::value::{Affinity, Value};

impl TableText {
    /// Puts the table together; `fields` says which field a column of this name has.
    pub(super) fn build(mut self, name: &str, fields: &[(String, usize)]) -> Result<Table> {
        self.take_key_of_path()?;
        let mut table = Table {
            name: name.to_owned(),
            root: fold(name),
            columns: self.columns,
            fields: Vec::new(),
            key: Key::Rowid { column: None, autoincrement: false },
            key_resolution: Resolution::Abort,
            indexes: Vec::new(),
            checks: self.checks,
            foreign_keys: Vec::new(),
            code_indexes: Vec::new(),
            entries_of: None,
            children: Vec::new(),
            triggers: Vec::new(),
            strict: self.strict,
            usage: Vec::new(),
            is_hashable: false,
            evicts: false,
            over: None,
            sql: String::new(),
            cuts: self.cuts,
            rows: DEFAULT_ROWS,
        };
        check_names(&table)?;
        if let Some((parts, resolution, autoincrement)) = self.primary {
            primary(&mut table, parts, resolution, autoincrement)?;
        }
        for (parts, resolution) in self.unique {
            add_unique(&mut table, &parts, resolution)?;
        }
        for (columns, mut key) in self.foreign_keys {
            key.columns = columns.iter().map(|column| place(&table, column)).collect::<Result<_>>()?;
            table.foreign_keys.push(key);
        }
        check_documents(&table)?;
        if let Some(over) = &self.over {
            over::lay_over(&mut table, over, &self.places)?;
        }
        let mut next = fields.iter().map(|(_, field)| field + 1).max().unwrap_or(0);
        for index in 0..table.columns.len() {
            if table.key_columns().contains(&index) {
                continue;
            }
            let column = &mut table.columns[index];
            let known = fields.iter().find(|(name, _)| name.eq_ignore_ascii_case(&column.name));
            column.field = Some(known.map_or(next, |(_, field)| *field));
            next += usize::from(known.is_none());
        }
        table.fields = vec![None; next];
        for (index, column) in table.columns.iter_mut().enumerate() {
            if let Some(field) = column.field {
                table.fields[field] = Some(index);
            }
            let constant = column.default.as_deref().and_then(constant).unwrap_or(Value::Null);
            column.absent = column.store(constant);
        }
        Ok(table)
    }
}

/// Fails if a document is a part of a key.
fn check_documents(table: &Table) -> Result<()> {
    let is_document = |column: &usize| table.columns[*column].is_document;
    let indexed = table.indexes.iter().flat_map(|index| index.columns.iter().map(|(column, _)| column));
    if table.key_columns().iter().chain(indexed).any(is_document) {
        let what = "a document is no key: index elements of it";
        return Err(Error::new(SqlState::DEFINITION, what));
    }
    Ok(())
}

/// How many rows the planner takes a table to have of which nothing is known.
pub(crate) const DEFAULT_ROWS: f64 = 10_000.0;

fn check_names(table: &Table) -> Result<()> {
    if table.columns.len() > COLUMNS {
        let what = format!("a table has {COLUMNS} columns at most, not {}", table.columns.len());
        return Err(Error::new(SqlState::LIMIT, what));
    }
    for (index, column) in table.columns.iter().enumerate() {
        if table.column(&column.name) != Some(index) || column.name == crate::schema::KEY_COLUMN {
            return Err(Error::new(SqlState::DEFINITION, format!("duplicate column name: {}", column.name)));
        }
    }
    if table.strict {
        let known = ["INT", "INTEGER", "REAL", "TEXT", "BLOB", "ANY"];
        for column in &table.columns {
            if !known.iter().any(|known| known.eq_ignore_ascii_case(&column.declared)) {
                let what = format!(
                    "unknown datatype for {}.{}: \"{}\"; a STRICT table takes INT, INTEGER, REAL, TEXT, BLOB and ANY",
                    table.name, column.name, column.declared
                );
                return Err(Error::new(SqlState::DEFINITION, what));
            }
        }
    }
    Ok(())
}

fn place(table: &Table, column: &str) -> Result<usize> {
    table.column(column).ok_or_else(|| {
        let what = format!("table {} has no column named {column}", table.name);
        Error::new(SqlState::NO_COLUMN, what)
    })
}

/// Makes the PRIMARY KEY what names rows, or a UNIQUE.
fn primary(table: &mut Table, parts: Parts, resolution: Resolution, autoincrement: bool) -> Result<()> {
    let columns: Vec<usize> = parts.iter().map(|(name, _)| place(table, name)).collect::<Result<_>>()?;
    if let [only] = columns[..] {
        if table.columns[only].declared.eq_ignore_ascii_case("integer") {
            table.key = Key::Rowid { column: Some(only), autoincrement };
            table.key_resolution = resolution;
            return Ok(());
        }
    }
    if autoincrement {
        return Err(Error::new(
            SqlState::DEFINITION,
            "AUTOINCREMENT is only allowed on an INTEGER PRIMARY KEY",
        ));
    }
    let is_natural = |(index, part): (&usize, &(String, Option<Collation>))| {
        let column = &table.columns[*index];
        let collation = part.1.unwrap_or(column.collation);
        let is_text = column.affinity == Affinity::Text && part.1.is_none();
        (is_text || column.affinity == Affinity::Integer)
            && matches!(collation, Collation::Binary | Collation::Node)
    };
    let mut sorted = columns.clone();
    sorted.sort_unstable();
    sorted.dedup();
    let is_natural = sorted.len() == columns.len() && columns.iter().zip(&parts).all(is_natural);
    for column in &columns {
        let column = &mut table.columns[*column];
        column.not_null.get_or_insert(Resolution::Abort);
        if is_natural && column.affinity == Affinity::Text {
            column.collation = Collation::Node;
        }
    }
    if is_natural {
        table.key = Key::Columns(columns);
        table.key_resolution = resolution;
        return Ok(());
    }
    add_unique(table, &parts, resolution)
}

/// Adds the index of a UNIQUE, unless there is one.
fn add_unique(table: &mut Table, parts: &Parts, resolution: Resolution) -> Result<()> {
    let columns: Vec<(usize, Collation)> = parts
        .iter()
        .map(|(name, collation)| {
            let column = place(table, name)?;
            Ok((column, index_collation(&table.columns[column], *collation)))
        })
        .collect::<Result<_>>()?;
    let is_key = columns.iter().map(|(column, _)| *column).eq(table.key_columns().iter().copied());
    if is_key || table.indexes.iter().any(|index| index.columns == columns) {
        return Ok(());
    }
    let number = table.indexes.len() + 1;
    table.indexes.push(Index {
        name: format!("sqlite_autoindex_{}_{number}", table.name),
        root: format!("unique{number}"),
        columns,
        condition: None,
        unique: true,
        resolution,
        ready: true,
        rows_each: Vec::new(),
    });
    Ok(())
}

/// How an index compares texts of a column.
pub(crate) fn index_collation(column: &Column, told: Option<Collation>) -> Collation {
    match told.unwrap_or(column.collation) {
        // Entries are in the order of bytes.
        Collation::Node => Collation::Binary,
        other => other,
    }
}

/// The value of a default that is a literal.
pub(crate) fn constant(text: &str) -> Option<Value> {
    let tokens = tokens(text).ok()?;
    let (negative, token) = match tokens[..] {
        [token] => (false, token),
        [sign, token] if token.kind == Kind::Number => (sign.is_sign("-"), token),
        _ => return None,
    };
    match token.kind {
        Kind::Text => token.name().map(Value::from),
        Kind::Number => {
            let text = if negative { format!("-{}", token.text) } else { token.text.to_owned() };
            match (text.parse::<i64>(), text.parse::<f64>()) {
                (Ok(integer), _) => Some(Value::Integer(integer)),
                (_, Ok(real)) => Some(Value::Real(real)),
                _ => None,
            }
        }
        Kind::Blob => {
            let digits = &token.text.as_bytes()[2..token.text.len() - 1];
            let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
            digits.chunks(2).map(byte).collect::<Option<Vec<u8>>>().map(Value::Blob)
        }
        Kind::Word if token.is("null") => Some(Value::Null),
        Kind::Word if token.is("true") => Some(Value::Integer(1)),
        Kind::Word if token.is("false") => Some(Value::Integer(0)),
        _ => None,
    }
}
