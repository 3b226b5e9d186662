//! CREATE LRUINDEX and CREATE LFUINDEX: a hidden column that says how rows are used, and the index on it.
//!
//! It is registered as an index that is being built, from where writers and stamps keep it, and then filled as any other. Rows that
//! are there count as used once, now, and keep nothing until they are used again.
//!
//! Invariant: the column and its index come and go together.

use perilune::Session;

use super::{at_once, check_name, existing, index, root_of};
use crate::catalog::{self, place};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::schema::{Table, UsageKind};
use crate::token::{fold, quote};

/// CREATE LRUINDEX, CREATE LFUINDEX.
pub(super) fn create(
    engine: &Engine,
    session: &mut Session,
    if_not_exists: bool,
    kind: UsageKind,
    table: &str,
) -> Result<()> {
    let name = format!("{}_{}", fold(kind.column()), fold(table));
    let now = engine.stage().now();
    let mut is_there = false;
    at_once(session, |session| {
        let known = existing(session, table)?;
        let of_kind = known.usage.iter().find(|usage| usage.kind == kind);
        let Some(usage) = of_kind else {
            is_there = false;
            return register(session, &name, &known, kind, now);
        };
        // Its maker may have been killed: then this goes on.
        let is_ready =
            |index: &&crate::schema::Index| index.columns.iter().any(|(it, _)| *it == usage.column);
        is_there = known.indexes.iter().find(is_ready).is_some_and(|index| index.ready);
        if is_there && !if_not_exists {
            let what = format!("table {} has its {} already", known.name, kind.column());
            return Err(Error::new(SqlState::EXISTS, what));
        }
        Ok(())
    })?;
    if is_there {
        return Ok(());
    }
    engine.has_defined(session);
    index::fill(engine, session, table, &name)
}

fn register(session: &mut Session, name: &str, table: &Table, kind: UsageKind, now: i64) -> Result<()> {
    check_name(session, name)?;
    if table.over.is_some() {
        let what = "nobody tells when programs use the nodes of a table OVER nodes: it has no such index";
        return Err(Error::new(SqlState::REFUSED, what));
    }
    if table.column(kind.column()).is_some() {
        let what = format!("{} has a column {} of its own: rename that first", table.name, kind.column());
        return Err(Error::new(SqlState::EXISTS, what));
    }
    let table_name = fold(&table.name);
    let root = root_of(session, &format!("{}.", table.root), name)?;
    let kept = format!("{}.%{}", table.root, fold(kind.column()));
    let base = place(&["table", &table_name, "index", name])?;
    session.set(&base.child("sql")?, quote(kind.column()))?;
    session.set(&base.child("root")?, &root)?;
    session.set(&base.child("unique")?, 0)?;
    session.set(&base.child("kept")?, &kept)?;
    session.set(&base.child("since")?, now)?;
    session.set(&base.child("state")?, "building")?;
    session.set(&place(&["index", name])?, &table_name)?;
    catalog::bump(session)
}
