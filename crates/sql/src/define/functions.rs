//! CREATE FUNCTION, CREATE AGGREGATE and DROP, and functions where a definition is tried out.
//!
//! Invariant: no function of the schema has the name of one of SQLite's.

use perilune::Session;
use perilune_sqlite::{Connection as Scratch, FunctionKind};

use super::missing;
use crate::catalog::{self, place};
use crate::engine::is_of_sqlite;
use crate::error::{Error, Result, SqlState};
use crate::function::{Function, Shape};
use crate::token::{fold, tokens, Token};

/// Keeps a function whose CREATE FUNCTION is `sql`.
pub(super) fn create(
    session: &mut Session,
    or_replace: bool,
    if_not_exists: bool,
    function: &Function,
    sql: &str,
) -> Result<()> {
    let name = &function.name;
    if name.len() > 255 {
        return Err(Error::new(SqlState::LIMIT, "a name has 255 bytes at most"));
    }
    if is_of_sqlite(name)? || name.starts_with("perilune_") {
        let what = format!("{name} is a function that every database has: choose another name");
        return Err(Error::new(SqlState::EXISTS, what));
    }
    let is_table = catalog::table(session, name)?.is_some() || catalog::view(session, name)?.is_some();
    if is_table && matches!(function.shape, Shape::Rows(_)) {
        let what = format!("{name} is a table or view: a function that answers rows needs a name of its own");
        return Err(Error::new(SqlState::EXISTS, what));
    }
    if catalog::function(session, name)?.is_some() {
        if if_not_exists {
            return Ok(());
        }
        if !or_replace {
            let what = format!("function {name} already exists: CREATE OR REPLACE FUNCTION replaces it");
            return Err(Error::new(SqlState::EXISTS, what));
        }
    }
    refuse_indexed(session, name, "replaced")?;
    session.set(&place(&["function", name, "sql"])?, sql)?;
    catalog::bump(session)
}

pub(super) fn drop(session: &mut Session, if_exists: bool, name: &str) -> Result<()> {
    if catalog::function(session, name)?.is_none() {
        return missing(if_exists, SqlState::NO_FUNCTION, &format!("no such function: {name}"));
    }
    refuse_indexed(session, name, "dropped")?;
    refuse_called(session, name)?;
    session.delete_tree(&place(&["function", &fold(name)])?)?;
    catalog::bump(session)
}

/// Fails if an index holds what the function answers: with another function, entries would be others than what is looked for.
fn refuse_indexed(session: &mut Session, name: &str, what: &str) -> Result<()> {
    for table in catalog::names(session, &["table"])? {
        for index in catalog::names(session, &["table", &table, "index"])? {
            let node = place(&["table", &table, "index", &index, "sql"])?;
            let Some(sql) = session.get_str(&node)?.map(str::to_owned) else { continue };
            let tokens = tokens(&sql)?;
            let is_call = |pair: &[Token<'_>]| {
                pair[1].is_sign("(") && pair[0].name().is_some_and(|other| other.eq_ignore_ascii_case(name))
            };
            if tokens.windows(2).any(is_call) {
                let what = format!(
                    "{name} cannot be {what}, as index {index} of {table} is on it: drop the index, and create it again afterwards"
                );
                return Err(Error::new(SqlState::REFUSED, what));
            }
        }
    }
    Ok(())
}

/// Fails if an index that code keeps calls the function when it is dropped.
fn refuse_called(session: &mut Session, name: &str) -> Result<()> {
    for table in catalog::names(session, &["table"])? {
        for index in catalog::names(session, &["table", &table, "coded"])? {
            let node = place(&["table", &table, "coded", &index, "destructor"])?;
            if session.get_str(&node)?.is_some_and(|other| other.eq_ignore_ascii_case(name)) {
                let what = format!(
                    "{name} is called when index {index} of {table} is dropped: drop the index first"
                );
                return Err(Error::new(SqlState::REFUSED, what));
            }
        }
    }
    Ok(())
}

/// Gives a connection on which a definition is tried out the functions of the schema that its text names.
pub(super) fn lend(session: &mut Session, scratch: &Scratch<()>, sql: &str) -> Result<()> {
    let tokens = tokens(sql)?;
    for (token, behind) in tokens.iter().zip(tokens.iter().skip(1)) {
        let Some(name) = token.name().filter(|_| behind.is_sign("(") && token.text.len() <= 300) else {
            continue;
        };
        // A table's expressions have no rows but their own.
        let function = catalog::function(session, &name)?;
        if let Some(function) = function.filter(|function| function.shape == Shape::Value) {
            let kind = FunctionKind { deterministic: function.is_deterministic, direct_only: false };
            scratch.add_function(
                &function.name,
                function.parameters.len() as i32,
                kind,
                |(), _, _| Ok(()),
            )?;
        }
    }
    Ok(())
}
