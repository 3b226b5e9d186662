//! Functions of SQL in Lua: an [`Interpreter`] for `perilune_sql`, made of sandboxes.
//!
//! A function of the schema is the body of a Lua function with its parameters. It runs in a [sandbox](crate::sandbox), where it
//! has Lua's own libraries, `SQL(text, ...)`, which runs a statement in the transaction of the caller's, and what its
//! [`Surroundings`] offer, in the same transaction.
//!
//! Example: `sql.set_interpreter(Rc::new(LuaFunctions::new(Limits::default())))`, then
//! `CREATE FUNCTION double(x) AS 'return 2 * x'` and `SELECT double(21)`.
//!
//! Invariants
//! - NULL is nil, integers up to 2^53 and doubles are numbers, texts and blobs are strings; a larger integer is a string of its
//!   digits, lest it be rounded.
//! - What asks for the transaction to be run again ends the function, whatever it catches.
//! - A function that calls a statement that calls a function has two sandboxes.

mod bridge;
mod convert;
mod source;
mod surroundings;
mod watchdog;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use perilune_sql::{Asks, Change, Error, Function, Interpreter, Result, Shape, SqlState, Value};

use self::bridge::{Bridge, Feed};
use self::convert::{argument, changes, result};
use self::source::source;
use self::surroundings::Nodes;
pub use self::surroundings::{library, Surroundings};
use self::watchdog::Watched;
use crate::sandbox::{Code, Form, Outcome, Pool, Run, Sandbox, Text};

/// What functions may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bytes of memory that one sandbox may use; one is used at a time, unless functions call functions.
    pub memory: usize,
    /// Memory that all sandboxes have together.
    pub pool: Pool,
    /// How long all calls of a statement may take together; none: as long as the statement.
    pub time: Option<Duration>,
}

impl Default for Limits {
    /// 64 MiB, and five seconds.
    fn default() -> Limits {
        Limits { memory: 64 << 20, pool: Pool::default(), time: Some(Duration::from_secs(5)) }
    }
}

/// Rows that an aggregate takes at a time.
const BATCH: usize = 256;

/// The time that functions of a statement have taken.
#[derive(Debug, Default)]
struct StatementClock {
    /// The statement, and the microseconds of its calls that have ended.
    spent: Cell<(u64, u64)>,
    /// When the outermost call that runs is to have ended; 0: none runs.
    until: Cell<u64>,
}

/// A call that runs, on a statement's time.
struct Turn<'a> {
    clock: &'a StatementClock,
    /// Of the outermost call: when it began.
    begun: Option<u64>,
    until: u64,
}

impl StatementClock {
    /// Begins a call of a statement; none if the statement has no time left. A call inside another has the time of that.
    fn begin(&self, statement: u64, limit: u64) -> Option<Turn<'_>> {
        let outer = self.until.get();
        if outer != 0 {
            return Some(Turn { clock: self, begun: None, until: outer });
        }
        let (last, spent) = self.spent.get();
        let spent = if last == statement { spent } else { 0 };
        self.spent.set((statement, spent));
        let (left, now) = (limit.checked_sub(spent).filter(|left| *left > 0)?, watchdog::now());
        let until = now.saturating_add(left);
        self.until.set(until);
        Some(Turn { clock: self, begun: Some(now), until })
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(begun) = self.begun else { return };
        let (statement, spent) = self.clock.spent.get();
        self.clock.spent.set((statement, spent + watchdog::now().saturating_sub(begun)));
        self.clock.until.set(0);
    }
}

/// Texts that a sandbox keeps compiled; then it is made anew.
const COMPILED: usize = 1_000;

/// Runs functions in Lua.
pub struct LuaFunctions {
    limits: Limits,
    around: Box<dyn Surroundings>,
    clock: StatementClock,
    free: RefCell<Vec<State>>,
}

impl LuaFunctions {
    /// An interpreter with these limits, whose functions reach nodes besides.
    #[must_use]
    pub fn new(limits: Limits) -> LuaFunctions {
        LuaFunctions::within(limits, Box::new(Nodes))
    }

    /// An interpreter with these limits, whose functions reach what is around.
    #[must_use]
    pub fn within(limits: Limits, around: Box<dyn Surroundings>) -> LuaFunctions {
        LuaFunctions { limits, around, clock: StatementClock::default(), free: RefCell::default() }
    }

    /// Runs a function: what `read` makes of its reply, and the rows that it has given.
    fn run<T>(
        &self,
        function: &Function,
        arguments: &[Value],
        feed: Feed<'_>,
        asks: &mut dyn Asks,
        read: impl FnOnce(&[u8]) -> std::result::Result<T, String>,
    ) -> Result<(T, Vec<Vec<Value>>)> {
        let limit = self.limits.time.map_or(u64::MAX, watchdog::micros);
        let Some(turn) = self.clock.begin(asks.statement(), limit) else {
            let what = "the functions of the statement take too long: let them do less, or raise the limit";
            return Err(Error::new(SqlState::CANCELLED, format!("{}: {what}", called(function))));
        };
        let until = asks.until().map_or(turn.until, |until| watchdog::at(until).min(turn.until));
        let mut bridge = Bridge::new(asks, &*self.around, function, feed);
        let value = self.with_state(|state| state.call(function, arguments, &mut bridge, until, read))?;
        Ok((value, bridge.given))
    }

    /// Lends a sandbox to `body`.
    fn with_state<T>(&self, body: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let free = self.free.borrow_mut().pop();
        let made = || State::new(&*self.around, &self.limits);
        let mut state =
            free.or_else(made).ok_or_else(|| Error::new(SqlState::MEMORY, "no memory for a function"))?;
        let done = body(&mut state);
        if state.count < COMPILED && state.sandbox.memory() < self.limits.memory / 4 {
            self.free.borrow_mut().push(state);
        }
        done
    }
}

impl fmt::Debug for LuaFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LuaFunctions").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl Interpreter for LuaFunctions {
    fn check(&self, function: &Function) -> Result<()> {
        let signature = match function.shape {
            Shape::Aggregate | Shape::Change => Vec::new(),
            Shape::Value | Shape::Rows(_) => vec![b's'; function.parameters.len()],
        };
        self.with_state(|state| state.code(function, &signature).map(drop))
    }

    fn call(&self, function: &Function, arguments: &[Value], asks: &mut dyn Asks) -> Result<Value> {
        self.run(function, arguments, Feed::Nothing, asks, result).map(|(value, _)| value)
    }

    fn fold(&self, function: &Function, rows: &[Value], asks: &mut dyn Asks) -> Result<Value> {
        let width = function.parameters.len().max(1);
        self.run(function, &[], Feed::Group(rows.chunks(width * BATCH)), asks, result).map(|(value, _)| value)
    }

    fn rows(&self, function: &Function, arguments: &[Value], asks: &mut dyn Asks) -> Result<Vec<Vec<Value>>> {
        self.run(function, arguments, Feed::Nothing, asks, |reply| result(reply).map(drop))
            .map(|((), rows)| rows)
    }

    fn change(
        &self,
        function: &Function,
        change: &Change<'_>,
        asks: &mut dyn Asks,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        self.run(function, &[], Feed::Change(change), asks, |reply| changes(reply, change))
            .map(|(changes, _)| changes)
    }
}

/// What errors call a function; a trigger's name says that it is one.
fn called(function: &Function) -> String {
    match function.shape {
        Shape::Change => function.name.clone(),
        _ => format!("function {}", function.name),
    }
}

/// A function's text, compiled for the kinds of arguments that it has been called with.
#[derive(Debug)]
struct Compiled {
    function: Function,
    variants: HashMap<Vec<u8>, Code>,
}

/// A sandbox with what it has compiled.
#[derive(Debug)]
struct State {
    sandbox: Sandbox,
    watched: Arc<Watched>,
    compiled: HashMap<String, Compiled>,
    /// What functions find besides `SQL`.
    names: &'static str,
    /// Texts that were compiled so far.
    count: usize,
    /// Runs so far, which number them.
    runs: u64,
}

impl State {
    fn new(around: &dyn Surroundings, limits: &Limits) -> Option<State> {
        let sandbox = Sandbox::new(around.offer(), &limits.pool, limits.memory)?;
        let watched = watchdog::watch(sandbox.stopper());
        Some(State { sandbox, watched, compiled: HashMap::new(), names: around.names(), count: 0, runs: 0 })
    }

    /// The function, for arguments of these kinds: `n` for nil, `i` for a number, `s` for a string.
    fn code(&mut self, function: &Function, signature: &[u8]) -> Result<Code> {
        let known = self.compiled.get(&function.name).filter(|known| known.function == *function);
        if let Some(code) = known.and_then(|known| known.variants.get(signature)) {
            return Ok(*code);
        }
        if known.is_none() {
            let old = self.compiled.remove(&function.name).map(|old| old.variants).unwrap_or_default();
            old.into_values().for_each(|code| self.sandbox.forget(code));
        }
        let code = self
            .sandbox
            .compile(source(function, self.names, signature).as_bytes(), &format!("@{}", function.name));
        let code =
            code.map_err(|why| Error::new(SqlState::DEFINITION, format!("{}: {why}", called(function))))?;
        self.count += 1;
        let fresh = || Compiled { function: function.clone(), variants: HashMap::new() };
        let compiled = self.compiled.entry(function.name.clone()).or_insert_with(fresh);
        compiled.variants.insert(signature.to_vec(), code);
        Ok(code)
    }

    fn call<T>(
        &mut self,
        function: &Function,
        arguments: &[Value],
        bridge: &mut Bridge<'_>,
        until: u64,
        read: impl FnOnce(&[u8]) -> std::result::Result<T, String>,
    ) -> Result<T> {
        let given: Vec<_> = arguments.iter().map(argument).collect();
        let signature: Vec<u8> = given.iter().map(|(kind, _)| *kind).collect();
        let texts: Vec<Text<'_>> = given.iter().map(|(_, text)| Text::from(&text[..])).collect();
        let code = self.code(function, &signature)?;
        self.runs += 1;
        let run = Run {
            code,
            form: Form::Positional,
            number: self.runs,
            variant: 0,
            name: &function.name,
            keys: &[],
            arguments: &texts,
        };
        self.watched.begin(self.runs, until);
        let outcome = self.sandbox.run(&run, bridge);
        self.watched.end();
        let fail = |state, what: &str| Err(Error::new(state, format!("{}: {what}", called(function))));
        match outcome {
            Outcome::Replied(reply) => read(reply).or_else(|why| fail(SqlState::FUNCTION, &why)),
            Outcome::Ended => match bridge.failure.take() {
                Some(failure) => Err(failure),
                None => fail(SqlState::INTERNAL, "it was ended without a reason; this is a bug"),
            },
            Outcome::Stopped => {
                fail(SqlState::CANCELLED, "it takes too long: let it do less, or raise the limit")
            }
        }
    }
}
