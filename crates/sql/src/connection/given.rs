//! What a program gives a connection: what runs functions, and what tells the time.
//!
//! Invariant: it holds for the statements that begin afterwards.

use std::rc::Rc;

use super::Connection;
use crate::function::Interpreter;

impl Connection {
    /// Has functions of the schema run by `interpreter` from now on; without one, calling them is an error.
    pub fn set_interpreter(&self, interpreter: Rc<dyn Interpreter>) {
        self.engine.set_interpreter(interpreter);
    }

    /// Has `clock` tell the time by which rows are stamped that have an LRUINDEX, in seconds since 1970, instead of the machine's.
    pub fn set_clock(&self, clock: impl Fn() -> i64 + 'static) {
        self.engine.stage().clock.replace(Some(Box::new(clock)));
    }
}
