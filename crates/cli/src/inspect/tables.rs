//! `check`: whether the tables of SQL agree with their indexes.
//!
//! Invariant: a database whose nodes cannot be read is damaged, whatever its tables are: then they are not looked at.

use std::rc::Rc;
use std::thread;
use std::time::Duration;

use perilune::{Database, Session, TransactionOptions};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::SCRIPT_STACK;
use perilune_sql::{Connection, Verified};

/// How long a check may take that is a transaction, as of a database that is only read.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Looks at all tables of a database that is sound, and adds what is wrong to `faults`.
pub(super) fn check(database: &Database, is_sound: bool, faults: &mut Vec<String>) -> Verified {
    if !is_sound {
        return Verified::default();
    }
    // Functions in Lua, which an index may be on, take a stack.
    let looked = thread::scope(|scope| {
        let builder = thread::Builder::new().name("check".to_owned()).stack_size(SCRIPT_STACK);
        builder.spawn_scoped(scope, || look(database)).map(|running| running.join())
    });
    let found = match looked {
        Ok(Ok(Ok(found))) => found,
        Ok(Ok(Err(error))) => {
            faults.push(format!("tables: {error}"));
            return Verified::default();
        }
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            let skipped = vec![format!("tables: a thread cannot be started: {error}")];
            return Verified { skipped, ..Verified::default() };
        }
    };
    faults.extend(found.faults.iter().cloned());
    found
}

fn look(database: &Database) -> perilune_sql::Result<Verified> {
    let sql = Connection::open()?;
    sql.set_interpreter(Rc::new(LuaFunctions::new(Limits::default())));
    if let Ok(mut snapshot) = database.snapshot() {
        return sql.verify(&mut snapshot);
    }
    let mut session: Session = database.session()?;
    let options = TransactionOptions { read_only: true, timeout: PATIENCE, ..TransactionOptions::default() };
    Ok(session.transaction_with(&options, |session| Ok(sql.verify(session)?))?)
}
