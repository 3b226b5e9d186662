//! DROP of tables, views, indexes, triggers and functions.
//!
//! Invariant: what goes with a thing goes in the same transaction, after whoever refers to it was asked.

use perilune::{node, Node, NodeRef, Session};

use super::{coded, existing, functions, index, missing, triggers};
use crate::answer::Nowhere;
use crate::catalog::{self, place};
use crate::definition::Dropped;
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::row::root_key;
use crate::token::{fold, quote};

/// Drops something, in the caller's transaction.
pub(super) fn drop(
    engine: &Engine,
    session: &mut Session,
    kind: Dropped,
    if_exists: bool,
    name: &str,
) -> Result<()> {
    match kind {
        Dropped::Table => drop_table(engine, session, if_exists, name),
        Dropped::Index => drop_index(engine, session, if_exists, name),
        Dropped::View => drop_view(session, if_exists, name),
        Dropped::Trigger => triggers::drop(session, if_exists, name),
        Dropped::LuaTrigger => triggers::drop_lua(session, if_exists, name),
        Dropped::Function => functions::drop(session, if_exists, name),
    }
}

fn drop_view(session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    if catalog::view(session, name)?.is_none() {
        return missing(if_exists, SqlState::NO_TABLE, &format!("no such view: {name}"));
    }
    session.delete_tree(&place(&["view", &fold(name)])?)?;
    triggers::forget(session, &fold(name))?;
    catalog::bump(session)
}

fn drop_index(engine: &Engine, session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    if let Some(table) = catalog::table_of_index(session, name)? {
        let table = existing(session, &table)?;
        if let Some(index) = table.code_indexes.iter().find(|index| index.name == fold(name)) {
            return coded::drop(engine, session, &table, index);
        }
    }
    index::drop(session, if_exists, name)
}

pub(super) fn drop_table(engine: &Engine, session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    let Some(table) = catalog::table(session, name)? else {
        if catalog::view(session, name)?.is_some() {
            return Err(Error::new(SqlState::NO_TABLE, format!("use DROP VIEW to delete view {name}")));
        }
        return missing(if_exists, SqlState::NO_TABLE, &format!("no such table: {name}"));
    };
    coded::refuse_entries(&table)?;
    for index in &table.code_indexes {
        coded::drop(engine, session, &table, index)?;
    }
    let table = if table.code_indexes.is_empty() { table } else { existing(session, name)? };
    let name = fold(name);
    if table.over.is_none() && table.children.iter().any(|child| *child != name) {
        // Rows that refer to it are asked, as if each row were deleted; without triggers, as in SQLite.
        triggers::forget(session, &name)?;
        catalog::bump(session)?;
        engine.has_defined(session);
        engine.run_statement(session, &format!("DELETE FROM {}", quote(&name)), &[], &mut Nowhere)?;
    }
    for index in &table.indexes {
        session.delete_tree(&Node::new(&format!("^{}", index.root))?)?;
        session.delete_value(&place(&["index", &fold(&index.name)])?)?;
    }
    for usage in &table.usage {
        session.delete_tree(NodeRef::from_encoded(root_key(&usage.root)?.as_bytes(), false))?;
    }
    for key in &table.foreign_keys {
        session.delete_value(&place(&["table", &fold(&key.parent), "child", &name])?)?;
    }
    // Nodes that programs have made are theirs.
    if table.over.is_none() {
        session.delete_tree(&Node::new(&format!("^{}", table.root))?)?;
    }
    let children = table.children;
    session.delete_tree(&place(&["table", &name])?)?;
    // Who refers to it goes on doing so, should there be one of this name again.
    for child in children.iter().filter(|child| **child != name) {
        session.set(&place(&["table", &name, "child", child])?, 1)?;
    }
    triggers::forget(session, &name)?;
    session.delete_tree(&place(&["stat", &name])?)?;
    session.delete_value(&node!("^sql", "sequence", &*name)?)?;
    catalog::bump(session)
}
