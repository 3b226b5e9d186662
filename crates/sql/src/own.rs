//! Functions of the program's: what a connection's statements may call besides those of the schema.
//!
//! Invariant: nobody else sees them, and they stand before functions of the schema that have their names.

use crate::connection::Connection;
use crate::engine::OwnKind;
use crate::error::Result;
use crate::function::{Asks, OwnFunction};
use crate::value::Value;

impl Connection {
    /// Gives statements of this connection a function of the program's, in place of one of the schema of the same name. It takes
    /// `count` arguments, without it any number; `is_deterministic` says that equal ones always give equal answers. It may run
    /// several times for one answer, and may use other sessions; [`Connection::set_asking_function`] is for those that use the
    /// statement's.
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
        let run: Box<OwnFunction> = Box::new(move |_, arguments| run(arguments));
        self.engine.set_own_function(name, count, OwnKind { is_deterministic, asks: false }, Some(run))
    }

    /// Gives statements of this connection a function of the program's, as [`Connection::set_function`], that reads and writes
    /// nodes and runs statements in the transaction of the statement which calls it.
    ///
    /// ```
    /// # use perilune::{node, Database};
    /// # use perilune_sql::{Connection, Value};
    /// let sql = Connection::open()?;
    /// sql.set_asking_function("visits", Some(1), false, |asks, arguments| match &arguments[0] {
    ///     Value::Integer(id) => {
    ///         asks.session().increment(&node!("^visits", *id)?, 1)?;
    ///         Ok(Value::Integer(*id))
    ///     }
    ///     _ => Ok(Value::Null),
    /// })?;
    /// # Ok::<(), perilune_sql::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Connection::set_function`].
    pub fn set_asking_function(
        &self,
        name: &str,
        count: Option<usize>,
        is_deterministic: bool,
        run: impl Fn(&mut dyn Asks, &[Value]) -> Result<Value> + 'static,
    ) -> Result<()> {
        let kind = OwnKind { is_deterministic, asks: true };
        self.engine.set_own_function(name, count, kind, Some(Box::new(run)))
    }

    /// Takes a function of the program's back; one of the schema of the same name is there again.
    ///
    /// # Errors
    /// `REFUSED` while a statement runs.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        self.engine.set_own_function(name, None, OwnKind::default(), None)
    }

    /// Whether there are functions of the program's.
    #[must_use]
    pub fn has_functions(&self) -> bool {
        self.engine.has_own_functions()
    }
}
