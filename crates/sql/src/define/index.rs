//! Indexes: made of rows that are there, dropped, made anew, counted.
//!
//! An index is registered first, as one that is being built: from then on all writers keep it. Then rows are taken in, some in each
//! transaction, and at last queries may use it.
//!
//! Invariants
//! - An index that is not ready is used by no query.
//! - An index that cannot be made (two rows are alike) is gone again.
//! - The same CREATE INDEX goes on with an index whose maker was killed; two that make one at once help each other.

use perilune::key::decode_subscript;
use perilune::{Cursor, Node, NodeRef, Session, Value as NodeValue};

use super::{at_once, check_name, check_table_and, existing, missing, root_of};
use crate::catalog::{self, place};
use crate::computed::compute;
use crate::definition::{IndexPart, IndexText};
use crate::elements::{with_elements, Named};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::limits::INDEX_BATCH;
use crate::over::{read_row, table_key};
use crate::row::{index_key, root_key, Row};
use crate::schema::{Collation, Index, Key, Table};
use crate::token::{fold, quote, tokens, Token};
use crate::used;
use crate::write::{names_of, write_entry};

/// What CREATE INDEX says.
pub(super) struct NewIndex<'a> {
    pub(super) name: &'a str,
    pub(super) table: &'a str,
    pub(super) text: &'a IndexText,
    pub(super) unique: bool,
}

/// CREATE INDEX.
pub(super) fn create(
    engine: &Engine,
    session: &mut Session,
    if_not_exists: bool,
    new: &NewIndex<'_>,
) -> Result<()> {
    let NewIndex { name, table, text, unique } = *new;
    let mut is_there = false;
    at_once(session, |session| {
        if is_begun(session, name, table, text, unique)? {
            is_there = false;
            return Ok(());
        }
        is_there = if_not_exists && catalog::table_of_index(session, name)?.is_some();
        if is_there {
            return Ok(());
        }
        register(session, name, table, text, unique)
    })?;
    if is_there {
        return Ok(());
    }
    engine.has_defined(session);
    let built = fill(engine, session, table, name);
    if built.is_err() {
        at_once(session, |session| drop(session, true, name))?;
    }
    built
}

/// Whether somebody is making this very index, or was when he was killed: then it goes on from where he was.
fn is_begun(session: &mut Session, name: &str, table: &str, text: &IndexText, unique: bool) -> Result<bool> {
    if catalog::table_of_index(session, name)?.as_deref() != Some(&fold(table)) {
        return Ok(false);
    }
    let base = place(&["table", &fold(table), "index", &fold(name)])?;
    let is_building = session.get_str(&base.child("state")?)? == Some("building");
    let is_unique = session.get_int(&base.child("unique")?)?.unwrap_or(0) != 0;
    let text = text.text();
    Ok(is_building && is_unique == unique && session.get_str(&base.child("sql")?)? == Some(&text))
}

fn register(session: &mut Session, name: &str, table: &str, text: &IndexText, unique: bool) -> Result<()> {
    check_name(session, name)?;
    let mut table = existing(session, table)?;
    if table.over.is_some() {
        let what = "a table OVER nodes has no index: programs that write nodes would not keep it";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    for (part, _) in &text.parts {
        let IndexPart::Column(column) = part else { continue };
        let at = table.column(column).or_else(|| table.add_element(column));
        if at.is_some_and(|at| table.columns[at].is_document) {
            let what = format!("{column} is a document: index elements of it, as {column}.name");
            return Err(Error::new(SqlState::DEFINITION, what));
        }
        if at.is_some_and(|at| table.columns[at].is_usage()) {
            let what = format!("{column} has an index, and is in no other");
            return Err(Error::new(SqlState::DEFINITION, what));
        }
        if at.is_none() {
            let what = format!("table {} has no column named {column}", table.name);
            return Err(Error::new(SqlState::NO_COLUMN, what));
        }
    }
    if text.has_expressions() {
        check_expressions(session, &table, text, unique)?;
    }
    let (name, table_name) = (fold(name), fold(&table.name));
    let root = root_of(session, &format!("{}.", table.root), &name)?;
    let base = place(&["table", &table_name, "index", &name])?;
    session.set(&base.child("sql")?, text.text())?;
    session.set(&base.child("root")?, &root)?;
    session.set(&base.child("unique")?, i64::from(unique))?;
    session.set(&base.child("state")?, "building")?;
    session.set(&place(&["index", &name])?, &table_name)?;
    catalog::bump(session)
}

/// Has SQLite read an index with expressions, beside an empty table: what it refuses is none.
fn check_expressions(session: &mut Session, table: &Table, text: &IndexText, unique: bool) -> Result<()> {
    for text in text.expressions() {
        let tokens = tokens(text)?;
        let is_rowid = |token: &Token<'_>| ["rowid", "oid", "_rowid_"].iter().any(|word| token.is(word));
        let unknown = tokens.iter().find(|token| is_rowid(token) && table.column(token.text).is_none());
        if let Some(token) = unknown {
            let what = format!("no such column: {}: an index names an INTEGER PRIMARY KEY", token.text);
            return Err(Error::new(SqlState::NO_COLUMN, what));
        }
    }
    let unique = if unique { "UNIQUE " } else { "" };
    let index = format!("CREATE {unique}INDEX \"%index\" ON {}{}", quote(&table.name), text.body());
    let named = [Named { table, names: vec![fold(&table.name)] }];
    let index = with_elements(&index, &tokens(&index)?, &named).unwrap_or(index);
    check_table_and(session, table, &index)
}

/// Takes all rows into an index, and has queries use it.
pub(super) fn fill(engine: &Engine, session: &mut Session, table: &str, name: &str) -> Result<()> {
    let base = place(&["table", &fold(table), "index", &fold(name)])?;
    loop {
        let mut is_done = false;
        at_once(session, |session| {
            is_done = take_batch(engine, session, table, name, &base)?;
            if is_done {
                session.set(&base.child("state")?, "ready")?;
                session.delete_value(&base.child("at")?)?;
                catalog::bump(session)?;
            }
            Ok(())
        })?;
        if is_done {
            return Ok(());
        }
    }
}

/// Takes some rows in, from where it was left; answers whether there are no more.
fn take_batch(engine: &Engine, session: &mut Session, table: &str, name: &str, base: &Node) -> Result<bool> {
    engine.refresh(session)?;
    let table = existing(session, table)?;
    let index = table.indexes.iter().find(|index| index.name.eq_ignore_ascii_case(name));
    let index = index.ok_or_else(|| Error::new(SqlState::NO_TABLE, format!("no such index: {name}")))?;
    let root = table_key(&table)?;
    let mut cursor = Cursor::subtree(NodeRef::from_encoded(root.as_bytes(), false)).without_values();
    if let Some(NodeValue::String(at)) = session.get(&base.child("at")?)? {
        cursor.seek_past(NodeRef::from_encoded(&[root.as_bytes(), &at].concat(), false));
    }
    let mut row = Row::new();
    for _ in 0..INDEX_BATCH {
        if !cursor.next(session)? {
            return Ok(true);
        }
        let key = cursor.node_ref()?.encoded().to_vec();
        if read_row(session, &table, &key, root.as_bytes().len(), &mut row)? {
            take_row(engine, session, &table, index, &mut row, &key[root.as_bytes().len()..])?;
        }
    }
    let at = cursor.node_ref()?.encoded()[root.as_bytes().len()..].to_vec();
    session.set(&base.child("at")?, &at)?;
    Ok(false)
}

fn take_row(
    engine: &Engine,
    session: &mut Session,
    table: &Table,
    index: &Index,
    row: &mut Row,
    suffix: &[u8],
) -> Result<()> {
    compute(engine.stage(), session, table, row)?;
    used::read(session, table, suffix, row)?;
    if !index.holds(row) {
        return Ok(());
    }
    let mut entry = root_key(&index.root)?;
    let alone = index_key(index, row, suffix, &mut entry)?;
    if alone {
        let node = NodeRef::from_encoded(entry.as_bytes(), false);
        let is_other = match session.get(node)? {
            None => false,
            Some(NodeValue::Int(rowid)) => perilune::key::decode_int(suffix) != Some(rowid),
            Some(NodeValue::String(other)) => other != suffix,
            Some(_) => true,
        };
        if is_other {
            let columns = names_of(table, index);
            return Err(Error::new(SqlState::UNIQUE, format!("UNIQUE constraint failed: {columns}")));
        }
    }
    write_entry(session, table, alone, entry.as_bytes(), suffix)
}

/// DROP INDEX.
pub(super) fn drop(session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    let Some(table) = catalog::table_of_index(session, name)? else {
        if name.to_ascii_lowercase().starts_with("sqlite_autoindex_") {
            let what = "index associated with UNIQUE or PRIMARY KEY constraint cannot be dropped";
            return Err(Error::new(SqlState::REFUSED, what));
        }
        return missing(if_exists, SqlState::NO_TABLE, &format!("no such index: {name}"));
    };
    let name = fold(name);
    let base = place(&["table", &table, "index", &name])?;
    if let Some(root) = session.get_str(&base.child("root")?)?.map(str::to_owned) {
        session.delete_tree(&Node::new(&format!("^{root}"))?)?;
    }
    if let Some(kept) = session.get_str(&base.child("kept")?)?.map(str::to_owned) {
        session.delete_tree(NodeRef::from_encoded(root_key(&kept)?.as_bytes(), false))?;
    }
    session.delete_tree(&base)?;
    session.delete_tree(&place(&["stat", &table, "index", &name])?)?;
    session.delete_value(&place(&["index", &name])?)?;
    catalog::bump(session)
}

/// The tables that a statement means which names one, an index, or none.
fn meant(session: &mut Session, name: Option<&str>) -> Result<Vec<String>> {
    let Some(name) = name else { return catalog::names(session, &["table"]) };
    if catalog::table(session, name)?.is_some() {
        return Ok(vec![name.to_owned()]);
    }
    match catalog::table_of_index(session, name)? {
        Some(table) => Ok(vec![table]),
        None => Err(Error::new(SqlState::NO_TABLE, format!("no such table or index: {name}"))),
    }
}

/// REINDEX.
pub(super) fn reindex(engine: &Engine, session: &mut Session, name: Option<&str>) -> Result<()> {
    // A collation's name means all indexes that use it; making all anew does no harm.
    let is_collation = name.is_some_and(|name| Collation::of(name).is_some());
    let name = name.filter(|_| !is_collation);
    for table in meant(session, name)? {
        let Some(table) = catalog::table(session, &table)? else { continue };
        let is_meant = |index: &Index| {
            name.is_none_or(|name| {
                name.eq_ignore_ascii_case(&table.name) || name.eq_ignore_ascii_case(&index.name)
            })
        };
        for index in table.indexes.iter().filter(|index| is_meant(index)) {
            at_once(session, |session| make_anew(engine, session, &table, index))?;
        }
    }
    Ok(())
}

/// Makes all entries of an index anew, in one transaction.
fn make_anew(engine: &Engine, session: &mut Session, table: &Table, index: &Index) -> Result<()> {
    engine.refresh(session)?;
    session.delete_tree(&Node::new(&format!("^{}", index.root))?)?;
    let root = table_key(table)?;
    let mut cursor = Cursor::subtree(NodeRef::from_encoded(root.as_bytes(), false)).without_values();
    let mut row = Row::new();
    while cursor.next(session)? {
        let key = cursor.node_ref()?.encoded().to_vec();
        if read_row(session, table, &key, root.as_bytes().len(), &mut row)? {
            take_row(engine, session, table, index, &mut row, &key[root.as_bytes().len()..])?;
        }
    }
    Ok(())
}

/// ANALYZE.
pub(super) fn analyze(session: &mut Session, name: Option<&str>) -> Result<()> {
    for name in meant(session, name)? {
        let Some(table) = catalog::table(session, &name)? else { continue };
        let root = table_key(&table)?;
        let root = NodeRef::from_encoded(root.as_bytes(), false);
        let rows = match (&table.over, &table.key) {
            (over, Key::Rowid { .. }) if over.is_some() || table.has_documents() => {
                session.count_children(root)?
            }
            _ => session.count_valued(root)?,
        };
        let mut counted = Vec::new();
        for index in &table.indexes {
            counted.push((fold(&index.name), distinct(session, index)?));
        }
        at_once(session, |session| {
            let base = place(&["stat", &fold(&name)])?;
            session.delete_tree(&base)?;
            session.set(&base.child("rows")?, rows)?;
            for (index, counts) in &counted {
                for (at, count) in counts.iter().enumerate() {
                    let node = base.child("index")?.child(&**index)?.child(at as i64 + 1)?;
                    session.set(&node, *count)?;
                }
            }
            catalog::bump(session)
        })?;
    }
    Ok(())
}

/// How many different values the first column of an index has, the first two together, and so on.
fn distinct(session: &mut Session, index: &Index) -> Result<Vec<u64>> {
    let root = root_key(&index.root)?;
    let mut cursor = Cursor::subtree(NodeRef::from_encoded(root.as_bytes(), false)).without_values();
    let mut counts = vec![0; index.columns.len()];
    let mut before: Vec<u8> = Vec::new();
    while cursor.next(session)? {
        let key = &cursor.node_ref()?.encoded()[root.as_bytes().len()..];
        let mut end = 0;
        for count in &mut counts {
            let length = decode_subscript(&key[end..]).map_err(perilune::Error::from)?.1;
            end += length;
            *count += u64::from(before.get(..end) != Some(&key[..end]));
        }
        before.clear();
        before.extend_from_slice(key);
    }
    Ok(counts)
}
