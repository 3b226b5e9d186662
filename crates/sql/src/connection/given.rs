//! What a program gives a connection: functions, and what runs and times them.
//!
//! Invariant: it holds for the statements that begin afterwards.

use std::rc::Rc;

use super::Connection;
use crate::error::Result;
use crate::function::Interpreter;
use crate::value::Value;

impl Connection {
    /// Has functions of the schema run by `interpreter` from now on; without one, calling them is an error.
    pub fn set_interpreter(&self, interpreter: Rc<dyn Interpreter>) {
        self.engine.set_interpreter(interpreter);
    }

    /// Gives statements of this connection a function of the program's, in place of one of the schema of the same name. It takes
    /// `count` arguments, without it any number; `is_deterministic` says that equal ones always give equal answers. It may run
    /// several times for one answer, and may use other sessions.
    ///
    /// ```
    /// # use perilune_sql::{Connection, Value};
    /// let sql = Connection::open()?;
    /// sql.set_function("words", Some(1), true, |arguments| match &arguments[0] {
    ///     Value::Text(text) => Ok(Value::from(text.split(|byte| *byte == b' ').count() as i64)),
    ///     _ => Ok(Value::Null),
    /// })?;
    /// assert!(sql.has_functions());
    /// # Ok::<(), perilune_sql::Error>(())
    /// ```
    ///
    /// # Errors
    /// `EXISTS` for the name of a function that every database has; `REFUSED` while a statement runs.
    pub fn set_function(
        &self,
        name: &str,
        count: Option<usize>,
        is_deterministic: bool,
        run: impl Fn(&[Value]) -> Result<Value> + 'static,
    ) -> Result<()> {
        self.engine.set_own_function(name, count, is_deterministic, Some(Box::new(run)))
    }

    /// Takes a function of the program's back; one of the schema of the same name is there again.
    ///
    /// # Errors
    /// `REFUSED` while a statement runs.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        self.engine.set_own_function(name, None, false, None)
    }

    /// Whether there are functions of the program's.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        self.engine.has_own_functions()
    }

    /// Has `clock` tell the time by which rows are stamped that have an LRUINDEX, in seconds since 1970, instead of the machine's.
    pub fn set_clock(&self, clock: impl Fn() -> i64 + 'static) {
        self.engine.stage().clock.replace(Some(Box::new(clock)));
    }
}
