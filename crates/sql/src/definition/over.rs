//! CREATE TABLE ... OVER: the nodes that are rows, and where each column lies below them.
//!
//! ```text
//! OVER ^person(id)                    rows ^person(7)
//! OVER ^shop("lines", country, no)    rows ^shop("lines","NO",7)
//! name TEXT AT ("name")               ^person(7,"name")      the name of the column, if nothing is said
//! born INT AT ("birth", "year")       ^person(7,"birth","year")
//! note TEXT AT VALUE                  ^person(7) itself
//! ```

use perilune::key::KeyBuf;

use super::{Reader, TableText};
use crate::error::{Error, Result, SqlState};
use crate::schema::{Key, Over, Place, Table};
use crate::token::{fold, Kind};

/// What follows OVER.
#[derive(Debug, Default)]
pub(super) struct OverText {
    /// The name of the global.
    root: String,
    /// Subscripts that all rows have.
    constants: Vec<String>,
    /// The columns that are the subscripts behind them.
    keys: Vec<String>,
    pub(super) read_only: bool,
}

/// Takes what follows OVER.
pub(super) fn path(reader: &mut Reader<'_>) -> Result<OverText> {
    let mut over = OverText::default();
    reader.expect_sign("^")?;
    if reader.take_sign("%") {
        over.root.push('%');
    }
    over.root.push_str(&reader.name()?);
    while reader.take_sign(".") {
        over.root.push('.');
        over.root.push_str(&reader.name()?);
    }
    reader.expect_sign("(")?;
    loop {
        let place = reader.place();
        match constant(reader) {
            Some(constant) if over.keys.is_empty() => over.constants.push(constant),
            Some(_) => {
                let what =
                    "subscripts that all rows have stand before the columns: OVER ^shop(\"lines\", no)";
                return Err(Error::new(SqlState::REFUSED, what).at(place));
            }
            None => over.keys.push(reader.name()?),
        }
        if !reader.take_sign(",") {
            break;
        }
    }
    reader.expect_sign(")")?;
    if over.keys.is_empty() {
        return Err(reader.expected("a column that is a subscript: OVER ^person(id)"));
    }
    Ok(over)
}

/// Takes a number or a text in quotes.
fn constant(reader: &mut Reader<'_>) -> Option<String> {
    let token = reader.peek()?;
    let constant = match token.kind {
        Kind::Number => token.text.to_owned(),
        Kind::Name | Kind::Text => token.name()?,
        _ => return None,
    };
    reader.next();
    Some(constant)
}

/// Takes what follows AT.
pub(super) fn place(reader: &mut Reader<'_>) -> Result<Vec<String>> {
    if reader.take("value") {
        return Ok(Vec::new());
    }
    reader.expect_sign("(")?;
    let mut path = Vec::new();
    loop {
        path.push(
            constant(reader).ok_or_else(|| reader.expected("a subscript: a number or a text in quotes"))?,
        );
        if !reader.take_sign(",") {
            break;
        }
    }
    reader.expect_sign(")")?;
    Ok(path)
}

/// The codes of subscripts.
fn codes(subscripts: &[String]) -> Result<Vec<u8>> {
    let mut key = KeyBuf::global("x").map_err(perilune::Error::from)?;
    let root = key.as_bytes().len();
    for subscript in subscripts {
        key.push_bytes(subscript.as_bytes()).map_err(perilune::Error::from)?;
    }
    Ok(key.as_bytes()[root..].to_vec())
}

impl TableText {
    /// The columns that a table OVER nodes has as its key, unless it says so itself.
    pub(super) fn take_key_of_path(&mut self) -> Result<()> {
        let Some(over) = &self.over else { return Ok(()) };
        let parts: Vec<_> = over.keys.iter().map(|name| (name.clone(), None)).collect();
        match &self.primary {
            None => self.primary = Some((parts, crate::schema::Resolution::Abort, false)),
            Some((told, ..)) => {
                let told = told.iter().map(|(name, _)| fold(name));
                if !told.eq(over.keys.iter().map(|name| fold(name))) {
                    let what = "the PRIMARY KEY of a table OVER nodes is the columns that its subscripts are";
                    return Err(Error::new(SqlState::DEFINITION, what));
                }
            }
        }
        Ok(())
    }
}

/// Makes a table one over nodes.
pub(super) fn lay_over(table: &mut Table, over: &OverText, places: &[Option<Vec<String>>]) -> Result<()> {
    let reserved = ["sql", "redis"];
    if reserved.contains(&&over.root[..]) {
        let what = format!("^{} is kept for other uses: no table lies over it", over.root);
        return Err(Error::new(SqlState::DEFINITION, what));
    }
    let is_key = match &table.key {
        Key::Rowid { column, .. } => column.is_some(),
        Key::Columns(_) => true,
    };
    let is_refused = !table.indexes.is_empty() || !table.foreign_keys.is_empty();
    if !is_key || is_refused || table.columns.iter().any(|column| column.generated.is_some()) {
        let what = "a table OVER nodes has columns INTEGER and TEXT as its key, and no UNIQUE, REFERENCES or generated \
                    column: programs that write nodes would not keep them";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    let mut all = Vec::with_capacity(table.columns.len());
    for (at, column) in table.columns.iter().enumerate() {
        let told = places.get(at).and_then(Option::as_ref);
        all.push(match (table.key_columns().contains(&at), told) {
            (true, None) => Place::Key,
            (true, Some(_)) => {
                let what = format!("{} is a subscript of the row, and lies nowhere else", column.name);
                return Err(Error::new(SqlState::DEFINITION, what));
            }
            (false, None) => Place::Below(codes(std::slice::from_ref(&column.name))?),
            (false, Some(path)) => Place::Below(codes(path)?),
        });
    }
    for (at, place) in all.iter().enumerate() {
        if *place != Place::Key && all[..at].contains(place) {
            let what = format!("{} lies where another column does", table.columns[at].name);
            return Err(Error::new(SqlState::DEFINITION, what));
        }
    }
    table.root.clone_from(&over.root);
    table.over = Some(Over { prefix: codes(&over.constants)?, places: all, read_only: over.read_only });
    Ok(())
}
