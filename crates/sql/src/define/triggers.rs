//! CREATE TRIGGER and CREATE LUATRIGGER, and DROP.
//!
//! Invariant: a trigger stands with its table or view, `^sql("trigger",table,name)`, and goes with it; `^sql("fires",name)` finds it.

use perilune::Session;

use super::{at_once, existing, missing};
use crate::catalog::{self, place};
use crate::definition::{lua_triggers, parse_trigger, TriggerText};
use crate::engine::Engine;
use crate::error::{Error, Result, SqlState};
use crate::exact::make_exact;
use crate::schema::Timing;
use crate::token::fold;

/// Keeps a trigger whose CREATE TRIGGER is `sql`.
pub(super) fn create(engine: &Engine, session: &mut Session, sql: &str) -> Result<()> {
    let parsed = parse_trigger(sql)?;
    if let Some(script) = &parsed.trigger.script {
        engine.interpreter()?.check(script)?;
    }
    at_once(session, |session| keep(session, &parsed, sql))
}

fn keep(session: &mut Session, parsed: &TriggerText, sql: &str) -> Result<()> {
    let (name, table) = (fold(&parsed.trigger.name), fold(&parsed.table));
    if catalog::table_of_trigger(session, &name)?.is_some() {
        if parsed.if_not_exists {
            return Ok(());
        }
        let what = format!("trigger {} already exists", parsed.trigger.name);
        return Err(Error::new(SqlState::EXISTS, what));
    }
    let is_view = catalog::view(session, &table)?.is_some();
    let is_instead = parsed.trigger.timing == Timing::Instead;
    if is_view != is_instead {
        let what = match (is_view, catalog::table(session, &table)?) {
            (false, None) => return Err(Error::new(SqlState::NO_TABLE, format!("no such table: {table}"))),
            (true, _) => format!("cannot create BEFORE or AFTER trigger on view: {table}"),
            (false, _) => format!("cannot create INSTEAD OF trigger on table: {table}"),
        };
        return Err(Error::new(SqlState::DEFINITION, what));
    }
    if !is_view {
        let of = existing(session, &table)?;
        make_exact(&mut parsed.trigger.clone(), &of)?;
    }
    session.set(&place(&["trigger", &table, &name, "sql"])?, sql)?;
    session.set(&place(&["fires", &name])?, &table)?;
    catalog::bump(session)
}

/// Drops what AlchemyDB has as one trigger of up to four kinds.
pub(super) fn drop_lua(session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    let mut is_there = false;
    for trigger in lua_triggers(name) {
        if catalog::table_of_trigger(session, &trigger)?.is_some() {
            drop(session, false, &trigger)?;
            is_there = true;
        }
    }
    if is_there {
        return Ok(());
    }
    missing(if_exists, SqlState::NO_TABLE, &format!("no such trigger: {name}"))
}

pub(super) fn drop(session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    let Some(table) = catalog::table_of_trigger(session, name)? else {
        return missing(if_exists, SqlState::NO_TABLE, &format!("no such trigger: {name}"));
    };
    session.delete_tree(&place(&["trigger", &table, &fold(name)])?)?;
    session.delete_value(&place(&["fires", &fold(name)])?)?;
    catalog::bump(session)
}

/// Removes the triggers of a table or view that goes.
pub(super) fn forget(session: &mut Session, table: &str) -> Result<()> {
    for trigger in catalog::names(session, &["trigger", table])? {
        session.delete_value(&place(&["fires", &trigger])?)?;
    }
    session.delete_tree(&place(&["trigger", table])?)?;
    Ok(())
}
