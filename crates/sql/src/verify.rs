//! Do tables agree with themselves? Each row is held against its entries in all indexes, and entries are counted; what rows refer
//! to is looked for.
//!
//! Problem: an index lies apart from its table, and what says how a row is used from both; a program that writes nodes, or a
//! fault of ours, may part them. Idea: one pass over rows, each of which looks for what must be there with it; an entry without a
//! row is found by numbers, as there are as many entries as rows that an index holds.
//!
//! Invariants
//! - It writes nothing, and holds one row in memory at a time.
//! - What cannot be computed here, as without Lua, is told, and is no fault.

use perilune::key::decode_int;
use perilune::{node, Cursor, NodeRef, Session, ValueRef as NodeValue};

use crate::answer::Rows;
use crate::catalog;
use crate::computed::compute;
use crate::engine::Engine;
use crate::error::{Result, SqlState};
use crate::limits::FAULTS;
use crate::over::{read_row, table_key};
use crate::row::{index_key, names_row, root_key, Row};
use crate::schema::{Index, Key, Table};
use crate::token::{fold, quote};
use crate::used;
use crate::value::Value;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verified {
    /// How many tables have rows of their own.
    pub tables: u64,
    /// How many rows these have.
    pub rows: u64,
    /// What is wrong, at most 100 times.
    pub faults: Vec<String>,
    /// What could not be looked at, and why.
    pub skipped: Vec<String>,
}

impl Verified {
    fn demand(&mut self, is_right: bool, fault: impl FnOnce() -> String) {
        if !is_right && self.faults.len() < FAULTS {
            self.faults.push(fault());
        }
    }
}

/// Compares all tables with their indexes.
pub(crate) fn verify(engine: &Engine, session: &mut Session) -> Result<Verified> {
    engine.keep_up(session)?;
    let mut report = Verified::default();
    for name in catalog::names(session, &["table"])? {
        let Some(table) = catalog::table(session, &name)? else { continue };
        // Nodes that programs have made have no indexes.
        if table.over.is_none() {
            report.tables += 1;
            look_at(engine, session, &table, &mut report)?;
        }
    }
    Ok(report)
}

fn look_at(engine: &Engine, session: &mut Session, table: &Table, report: &mut Verified) -> Result<()> {
    let root = table_key(table)?;
    let start = NodeRef::from_encoded(root.as_bytes(), false);
    let mut cursor = if table.has_rowid() { Cursor::children(start) } else { Cursor::subtree(start) };
    cursor = cursor.without_values();
    // How many entries each index is to have; none: that is not known.
    let mut entries: Vec<Option<u64>> = table.indexes.iter().map(|index| index.ready.then_some(0)).collect();
    let mut row = Row::new();
    let mut last = None;
    while cursor.next(session)? {
        let key = cursor.node_ref()?.encoded().to_vec();
        let suffix = &key[root.as_bytes().len()..];
        if !names_row(table, suffix) || !read_row(session, table, &key, root.as_bytes().len(), &mut row)? {
            continue;
        }
        report.rows += 1;
        last = decode_int(suffix).or(last);
        used::read(session, table, suffix, &mut row)?;
        if let Err(error) = compute(engine.stage(), session, table, &mut row) {
            for (index, count) in table.indexes.iter().zip(&mut entries) {
                if count.is_some() && is_computed(table, index) {
                    report.skipped.push(format!("index {} of {}: {error}", index.name, table.name));
                    *count = None;
                }
            }
        }
        for (index, count) in table.indexes.iter().zip(&mut entries) {
            let Some(count) = count else { continue };
            if index.holds(&row) {
                *count += 1;
                look_for(session, index, &row, &key, suffix, report)?;
            }
        }
    }
    for (index, count) in table.indexes.iter().zip(&entries) {
        let Some(count) = count else { continue };
        let root = root_key(&index.root)?;
        let there = session.count_valued(NodeRef::from_encoded(root.as_bytes(), false))?;
        report.demand(there == *count, || {
            let what = format!("index {} has {there} entries of {count} rows of {}", index.name, table.name);
            format!("{what}: REINDEX {} makes it anew", index.name)
        });
    }
    look_at_references(engine, session, table, report)?;
    look_at_numbers(session, table, last, report)?;
    look_at_usage(session, table, root.as_bytes(), report)
}

/// Whether an index holds something that is computed of a row, or rows for which that is true.
fn is_computed(table: &Table, index: &Index) -> bool {
    let is_it = |column: usize| table.columns[column].computed.is_some() && !table.columns[column].is_usage();
    index.condition.is_some() || index.columns.iter().any(|(column, _)| is_it(*column))
}

/// Looks for the entry that an index has of a row.
fn look_for(
    session: &mut Session,
    index: &Index,
    row: &Row,
    key: &[u8],
    suffix: &[u8],
    report: &mut Verified,
) -> Result<()> {
    let mut entry = root_key(&index.root)?;
    let alone = index_key(index, row, suffix, &mut entry)?;
    let found = session.get_ref(NodeRef::from_encoded(entry.as_bytes(), false))?;
    let is_right = match (alone, found) {
        (_, None) => false,
        (false, Some(_)) => true,
        (true, Some(NodeValue::Int(rowid))) => decode_int(suffix) == Some(rowid),
        (true, Some(NodeValue::String(other))) => other == suffix,
        (true, Some(_)) => false,
    };
    report.demand(is_right, || {
        let key = NodeRef::from_encoded(key, false);
        format!("{key} is not in index {}: REINDEX {} makes it anew", index.name, index.name)
    });
    Ok(())
}

/// Rows that this table's rows refer to are there; those that a cache has evicted are elsewhere.
fn look_at_references(
    engine: &Engine,
    session: &mut Session,
    table: &Table,
    report: &mut Verified,
) -> Result<()> {
    for key in &table.foreign_keys {
        let Some(parent) = catalog::table(session, &key.parent)? else { continue };
        let of_key = || parent.primary_key().iter().map(|at| parent.columns[*at].name.clone()).collect();
        let parents = if key.parent_columns.is_empty() { of_key() } else { key.parent_columns.clone() };
        let own: Vec<String> =
            key.columns.iter().map(|at| format!("c.{}", quote(&table.columns[*at].name))).collect();
        let (same, there): (Vec<String>, Vec<String>) = (
            parents.iter().zip(&own).map(|(parent, own)| format!("p.{} = {own}", quote(parent))).collect(),
            own.iter().map(|own| format!("{own} IS NOT NULL")).collect(),
        );
        let sql = format!(
            "SELECT count(*) FROM {} AS c WHERE {} AND NOT EXISTS (SELECT 1 FROM {} AS p WHERE {})",
            quote(&table.name),
            there.join(" AND "),
            quote(&parent.name),
            same.join(" AND ")
        );
        let mut rows = Rows::default();
        match engine.run_statement(session, &sql, &[], &mut rows) {
            Ok(_) => {}
            Err(error) if error.state() == SqlState::MISS => {
                report.skipped.push(format!("what {} refers to in {}: {error}", table.name, parent.name));
                continue;
            }
            Err(error) => return Err(error),
        }
        let lost = match rows.first() {
            Some(Value::Integer(lost)) => *lost,
            _ => 0,
        };
        report.demand(lost == 0, || {
            let what = format!("{lost} rows of {} refer to rows of {}", table.name, parent.name);
            format!("{what} that are not there: delete them, or insert what is missing")
        });
    }
    Ok(())
}

/// The largest number of a row is none that AUTOINCREMENT would give.
fn look_at_numbers(
    session: &mut Session,
    table: &Table,
    last: Option<i64>,
    report: &mut Verified,
) -> Result<()> {
    let (Key::Rowid { autoincrement: true, .. }, Some(last)) = (&table.key, last) else { return Ok(()) };
    let given = session.get_int(&node!("^sql", "sequence", &*fold(&table.name))?)?.unwrap_or(0);
    report.demand(last <= given.max(0), || {
        format!("{} has a row {last}, and its AUTOINCREMENT has given {given} numbers", table.name)
    });
    Ok(())
}

/// What is kept of how a row is used belongs to one.
fn look_at_usage(session: &mut Session, table: &Table, root: &[u8], report: &mut Verified) -> Result<()> {
    for usage in &table.usage {
        let kept = root_key(&usage.root)?;
        let mut cursor = Cursor::subtree(NodeRef::from_encoded(kept.as_bytes(), false)).without_values();
        while cursor.next(session)? {
            let place = cursor.node_ref()?.encoded().to_vec();
            let row = [root, &place[kept.as_bytes().len()..]].concat();
            let is_row =
                matches!(session.get_ref(NodeRef::from_encoded(&row, false))?, Some(NodeValue::Record(_)));
            report.demand(is_row, || format!("{} is kept of no row", NodeRef::from_encoded(&place, false)));
        }
    }
    Ok(())
}
