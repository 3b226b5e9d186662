//! What runs when a command is called, and how a row of the table is written.
//!
//! ```text
//! on_keys("strlen", 2, READ | FAST, ONE, "string", strings::strlen, "Says how long a string is")
//! ```
//!
//! A command that works with keys gets a [`Keys`] and runs inside a transaction, again when it meets a concurrent change; one
//! that works with the connection or the server gets a [`Context`] and sees to that itself.

use perilune_resp::{Arguments, Replies};

use crate::command::{Command, Description, Places, Runs, NONE};
use crate::context::Context;
use crate::failure::Result;
use crate::keyspace::Keys;
use crate::notify;
use crate::redis::Redis;

/// A command that works with keys, inside a transaction.
pub(crate) type Handler = fn(&mut Keys<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<()>;
/// One that answers outside a transaction, by one operation; false if that cannot answer.
pub(crate) type Quick = fn(&mut Keys<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<bool>;
/// Several requests of one command, each a list of arguments, answered by one operation; how many of them, 0: none, since that
/// cannot answer. A failure has done nothing.
pub(crate) type Together = fn(&mut Keys<'_>, &[Arguments<'_>], &mut Replies<'_>) -> Result<usize>;
/// A command that works with the connection or the server.
pub(crate) type ConnectionHandler = fn(&mut Context<'_>, Arguments<'_>, &mut Replies<'_>) -> Result<()>;
/// What is tried in the event loop, of a command that may take long; false: it has done nothing, and is to run aside.
pub(crate) type InPlace = fn(&mut Context<'_>, &'static Command, Arguments<'_>, &mut Replies<'_>) -> bool;

/// What runs.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Run {
    Keys(Handler),
    Connection(ConnectionHandler),
}

/// The ways to run a command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handlers {
    pub(crate) run: Run,
    pub(crate) quick: Option<Quick>,
    /// The classes of events that the quick way is for, whose telling takes a transaction.
    pub(crate) quick_tells: u32,
    pub(crate) in_place: Option<InPlace>,
    /// What is tried with several requests that have arrived together.
    pub(crate) together: Option<Together>,
}

impl Runs for Redis {
    type Handlers = Handlers;
}

impl Handlers {
    const fn of(run: Run) -> Handlers {
        Handlers { run, quick: None, quick_tells: 0, in_place: None, together: None }
    }
}

impl Command {
    /// What is tried first, outside a transaction, unless anybody is told of strings.
    pub(crate) const fn quick(self, quick: Quick) -> Command {
        self.quick_unless(notify::STRING | notify::NEW, quick)
    }

    /// What is tried first unless anybody is told of events of any of these classes: all that it could have.
    pub(crate) const fn quick_unless(mut self, classes: u32, quick: Quick) -> Command {
        self.runs.quick = Some(quick);
        self.runs.quick_tells = classes;
        self
    }

    /// What is tried with several requests that have arrived together, under the conditions of its quick way.
    pub(crate) const fn together(mut self, together: Together) -> Command {
        self.runs.together = Some(together);
        self
    }

    /// What is tried in the event loop, before it runs aside.
    pub(crate) const fn in_place(mut self, attempt: InPlace) -> Command {
        self.runs.in_place = Some(attempt);
        self
    }
}

/// The row of a command that works with keys.
pub(crate) const fn on_keys(
    name: &'static str,
    arity: i64,
    flags: u32,
    keys: Places,
    group: &'static str,
    handler: Handler,
    summary: &'static str,
) -> Command {
    let description = Description { name, arity, keys, group, summary };
    Command::new(description, flags, Handlers::of(Run::Keys(handler))).on_keys()
}

/// The row of a command that works with the connection or the server.
pub(crate) const fn on_connection(
    name: &'static str,
    arity: i64,
    flags: u32,
    group: &'static str,
    handler: ConnectionHandler,
    summary: &'static str,
) -> Command {
    let description = Description { name, arity, keys: NONE, group, summary };
    Command::new(description, flags, Handlers::of(Run::Connection(handler)))
}
