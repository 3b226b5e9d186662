//! What holds for a statement of somebody who may not do everything: until when, reading only, which tables.
//!
//! A server runs statements of many users. What a statement does to which table SQLite tells when it is prepared, once; whoever
//! runs it is asked each time. So a prepared statement serves users of different rights.
//!
//! Invariants
//! - What a trigger, a foreign key or a view does is not asked for: whoever made it had the right.
//! - What a statement's own pieces do (ON CONFLICT, RETURNING) is.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::time::Instant;

use perilune_sqlite::{constants as sqlite, Action};

use crate::error::{Error, Result, SqlState};

/// What a statement does to a table or view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Rows are looked at.
    Reads,
    /// Rows are inserted, updated or deleted.
    Writes,
    /// Something of the schema is made or dropped; of no table in particular.
    Defines,
}

/// Asked whether a table, in lower case, may be used so.
pub type Permit = dyn Fn(&str, Access) -> bool;

/// What holds for a statement.
#[derive(Clone, Default)]
pub struct Terms {
    /// When a statement over rows ends with 57014 if it has not answered.
    pub until: Option<Instant>,
    /// It may read alone.
    pub read_only: bool,
    /// BEGIN, SAVEPOINT and their kin are refused: others use the session, too.
    pub shared_session: bool,
    /// Which tables it may use; none: all.
    pub permit: Option<Rc<Permit>>,
}

impl fmt::Debug for Terms {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Terms { until, read_only, shared_session, permit } = self;
        let mut debug = f.debug_struct("Terms");
        debug.field("until", until).field("read_only", read_only).field("shared_session", shared_session);
        debug.field("limits_tables", &permit.is_some()).finish()
    }
}

impl Terms {
    /// Fails unless the statement may do all of this.
    pub(crate) fn check(&self, touches: &[Touch], reads: bool) -> Result<()> {
        if self.read_only && !reads {
            return Err(read_only());
        }
        let Some(permit) = &self.permit else { return Ok(()) };
        let refused = touches.iter().find(|touch| !permit(&touch.table, touch.access));
        refused.map_or(Ok(()), |touch| Err(denied(touch.access, &touch.table)))
    }

    /// Fails unless the schema may be changed.
    pub(crate) fn check_definition(&self) -> Result<()> {
        if self.read_only {
            return Err(read_only());
        }
        match &self.permit {
            Some(permit) if !permit("", Access::Defines) => Err(denied(Access::Defines, "")),
            _ => Ok(()),
        }
    }
}

fn read_only() -> Error {
    Error::new(SqlState::READ_ONLY, "only statements that read are run here")
}

fn denied(access: Access, table: &str) -> Error {
    let what = match access {
        Access::Reads => format!("this user may not read {table}"),
        Access::Writes => format!("this user may not change {table}"),
        Access::Defines => "this user may not change the schema".to_owned(),
    };
    Error::new(SqlState::DENIED, what)
}

/// Something that a statement does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    pub(crate) table: String,
    pub(crate) access: Access,
}

/// What the statement does that is being prepared.
#[derive(Debug, Default)]
pub(crate) struct Touches(RefCell<Vec<Touch>>);

impl Touches {
    /// Takes in what SQLite tells.
    pub(crate) fn note(&self, action: &Action<'_>) {
        let (table, access) = match (action.code, action.first) {
            (sqlite::SQLITE_READ, Some(table)) => (table, Access::Reads),
            (sqlite::SQLITE_INSERT | sqlite::SQLITE_UPDATE | sqlite::SQLITE_DELETE, Some(table)) => {
                (table, Access::Writes)
            }
            // What the connection has been told of is a part of the catalog.
            (sqlite::SQLITE_PRAGMA, _) => ("sqlite_schema", Access::Reads),
            _ => return,
        };
        if action.inside.is_some() {
            return;
        }
        let touch = Touch { table: table.to_ascii_lowercase(), access };
        let mut all = self.0.borrow_mut();
        if !all.contains(&touch) {
            all.push(touch);
        }
    }

    /// All of it, and forgets it.
    pub(crate) fn take(&self) -> Vec<Touch> {
        self.0.take()
    }
}
