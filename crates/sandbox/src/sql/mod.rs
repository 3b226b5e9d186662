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
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use perilune_sql::{Asks, Change, Error, Function, Interpreter, Result, Shape, SqlState, Value, ValueRef};

use self::bridge::{Bridge, Feed};
use self::convert::{argument, changes, digits, result};
use self::source::source;
use self::surroundings::Nodes;
pub use self::surroundings::{library, Surroundings};
use self::watchdog::{Watchdog, Watched};
use crate::sandbox::{deafen, listen, Called, Code, Form, Part, Parts, Pool, Run, Sandbox};

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
#[derive(Debug)]
struct StatementClock {
    /// The statement, and the microseconds of its calls that have ended.
    spent: Cell<(u64, u64)>,
    /// When the outermost call that runs is to have ended; 0: none runs.
    until: Cell<u64>,
    /// The statement's thread keeps away the signal that stops runs, which comes to it during calls alone. This is asked once a
    /// statement, since a call takes no longer than asking.
    is_deaf: Cell<bool>,
}

/// A call that runs, on a statement's time.
struct Turn<'a> {
    clock: &'a StatementClock,
    dog: &'static Watchdog,
    /// Of the outermost call: when it began.
    begun: Option<u64>,
    until: u64,
}

impl StatementClock {
    /// Begins a call of a statement; none if the statement has no time left. A call inside another has the time of that.
    fn begin(&self, statement: u64, limit: u64, dog: &'static Watchdog) -> Option<Turn<'_>> {
        let outer = self.until.get();
        if outer != 0 {
            return Some(Turn { clock: self, dog, begun: None, until: outer });
        }
        let (last, spent) = self.spent.get();
        let spent = if last == statement { spent } else { 0 };
        self.spent.set((statement, spent));
        let (left, now) = (limit.checked_sub(spent).filter(|left| *left > 0)?, dog.now());
        if last != statement || self.is_deaf.get() {
            self.is_deaf.set(listen());
        }
        let until = now.saturating_add(left);
        self.until.set(until);
        Some(Turn { clock: self, dog, begun: Some(now), until })
    }
}

impl Default for StatementClock {
    fn default() -> StatementClock {
        // No statement has this number.
        let spent = Cell::new((u64::MAX, 0));
        StatementClock { spent, until: Cell::new(0), is_deaf: Cell::new(false) }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let Some(begun) = self.begun else { return };
        let (statement, spent) = self.clock.spent.get();
        self.clock.spent.set((statement, spent + self.dog.now().saturating_sub(begun)));
        self.clock.until.set(0);
        if self.clock.is_deaf.get() {
            deafen();
        }
    }
}

/// Texts that a sandbox keeps compiled; then it is made anew.
const COMPILED: usize = 1_000;

/// Runs functions in Lua.
pub struct LuaFunctions {
    limits: Limits,
    around: Box<dyn Surroundings>,
    clock: StatementClock,
    /// Known from the first call on; that of the process that this was forked from is none.
    dog: Cell<Option<&'static Watchdog>>,
    /// Each call takes one out and puts it back.
    #[allow(clippy::vec_box, reason = "what is moved for each row is a pointer")]
    free: RefCell<Vec<Box<State>>>,
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
        let (clock, dog) = (StatementClock::default(), Cell::new(None));
        LuaFunctions { limits, around, clock, dog, free: RefCell::default() }
    }

    /// What looks after calls in this process.
    #[inline]
    fn dog(&self) -> Result<&'static Watchdog> {
        if let Some(dog) = self.dog.get().filter(|dog| dog.is_here()) {
            return Ok(dog);
        }
        let dog = Watchdog::current().ok_or_else(|| {
            let what =
                "there is no thread to be had that ends functions in time: end some, or raise `ulimit -u`";
            Error::new(SqlState::MEMORY, what)
        })?;
        self.dog.set(Some(dog));
        Ok(dog)
    }

    /// Runs a function: what `read` makes of its reply, and the rows that it has given.
    #[inline]
    fn run<T>(
        &self,
        called: Named<'_>,
        arguments: &[ValueRef<'_>],
        feed: Feed<'_>,
        asks: &mut dyn Asks,
        read: impl FnOnce(Part<'_>, Parts<'_>) -> std::result::Result<T, String>,
    ) -> Result<(T, Vec<Vec<Value>>)> {
        let function = called.function();
        let limit = self.limits.time.map_or(u64::MAX, watchdog::micros);
        let dog = self.dog()?;
        let Some(turn) = self.clock.begin(asks.statement(), limit, dog) else {
            let what = "the functions of the statement take too long: let them do less, or raise the limit";
            return Err(Error::new(SqlState::CANCELLED, format!("{}: {what}", title(function))));
        };
        let until = asks.until().map_or(turn.until, |until| dog.at(until).min(turn.until));
        let mut bridge = Bridge::new(asks, &*self.around, function, feed);
        let value = self.with_state(|state| {
            let code = state.code(called)?;
            if !state.watched.is_by(dog) {
                state.watched = dog.watch(state.sandbox.stopper());
            }
            state.call(function, code, arguments, &mut bridge, until, read)
        })?;
        Ok((value, bridge.given()))
    }

    /// Lends a sandbox to `body`.
    #[inline]
    fn with_state<T>(&self, body: impl FnOnce(&mut State) -> Result<T>) -> Result<T> {
        let free = self.free.borrow_mut().pop();
        let mut state = match free {
            Some(state) => state,
            None => {
                let made = State::new(&*self.around, &self.limits, self.dog()?).map(Box::new);
                made.ok_or_else(|| Error::new(SqlState::MEMORY, "no memory for a function"))?
            }
        };
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
        self.with_state(|state| state.code(Named::Lent(function)).map(drop))
    }

    fn call(
        &self,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        asks: &mut dyn Asks,
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()> {
        let read = |part: Part<'_>, parts: Parts<'_>| result(part, parts, answer);
        self.run(Named::Shared(function), arguments, Feed::Nothing, asks, read).map(drop)
    }

    fn fold(&self, function: &Function, rows: &[Value], asks: &mut dyn Asks) -> Result<Value> {
        let width = function.parameters.len().max(1);
        let feed = Feed::Group(rows.chunks(width * BATCH));
        let read = |part: Part<'_>, parts: Parts<'_>| result(part, parts, Value::of);
        self.run(Named::Lent(function), &[], feed, asks, read).map(|(value, _)| value)
    }

    fn rows(&self, function: &Function, arguments: &[Value], asks: &mut dyn Asks) -> Result<Vec<Vec<Value>>> {
        let arguments: Vec<_> = arguments.iter().map(Value::as_ref).collect();
        let read = |part: Part<'_>, parts: Parts<'_>| result(part, parts, |_| ());
        self.run(Named::Lent(function), &arguments, Feed::Nothing, asks, read).map(|((), rows)| rows)
    }

    fn change(
        &self,
        function: &Function,
        change: &Change<'_>,
        asks: &mut dyn Asks,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        let read = |part: Part<'_>, parts: Parts<'_>| changes(part, parts, change);
        self.run(Named::Lent(function), &[], Feed::Change(change), asks, read).map(|(changes, _)| changes)
    }
}

/// What errors call a function; a trigger's name says that it is one.
fn title(function: &Function) -> String {
    match function.shape {
        Shape::Change => function.name.clone(),
        _ => format!("function {}", function.name),
    }
}

/// The function that is called: one that is shared is known by its pointer.
#[derive(Clone, Copy)]
enum Named<'a> {
    Shared(&'a Rc<Function>),
    Lent(&'a Function),
}

impl<'a> Named<'a> {
    fn function(self) -> &'a Function {
        match self {
            Named::Shared(function) => function,
            Named::Lent(function) => function,
        }
    }
}

/// Functions that a sandbox knows by their pointers.
const RECENT: usize = 8;

/// A sandbox with what it has compiled.
#[derive(Debug)]
struct State {
    sandbox: Sandbox,
    watched: Arc<Watched>,
    compiled: HashMap<String, (Function, Code)>,
    /// Those called last, of those compiled. They are held here, so that no other function has the place of one.
    recent: Vec<(Rc<Function>, Code)>,
    /// What functions find besides `SQL`.
    names: &'static [(&'static str, &'static str)],
    /// Texts that were compiled so far.
    count: usize,
    /// Runs so far, which number them.
    runs: u64,
}

impl State {
    fn new(around: &dyn Surroundings, limits: &Limits, dog: &'static Watchdog) -> Option<State> {
        let sandbox = Sandbox::new(around.offer(), &limits.pool, limits.memory)?;
        let watched = dog.watch(sandbox.stopper());
        let (compiled, recent, names) = (HashMap::new(), Vec::with_capacity(RECENT), around.names());
        Some(State { sandbox, watched, compiled, recent, names, count: 0, runs: 0 })
    }

    /// What runs the function.
    #[inline]
    fn code(&mut self, named: Named<'_>) -> Result<Code> {
        let Named::Shared(shared) = named else { return self.compiled(named.function()) };
        if let Some((_, code)) = self.recent.iter().find(|(known, _)| Rc::ptr_eq(known, shared)) {
            return Ok(*code);
        }
        let code = self.compiled(shared)?;
        if self.recent.len() == RECENT {
            self.recent.remove(0);
        }
        self.recent.push((Rc::clone(shared), code));
        Ok(code)
    }

    /// What runs the function, which is compiled unless it is known by its name.
    fn compiled(&mut self, function: &Function) -> Result<Code> {
        match self.compiled.get(&function.name) {
            Some((known, code)) if known == function => return Ok(*code),
            Some((_, code)) => {
                self.sandbox.forget(*code);
                self.compiled.remove(&function.name);
                self.recent.retain(|(known, _)| known.name != function.name);
            }
            None => {}
        }
        let text = source(function, self.names);
        let code = self.sandbox.compile(text.as_bytes(), &format!("@{}", function.name));
        let code =
            code.map_err(|why| Error::new(SqlState::DEFINITION, format!("{}: {why}", title(function))))?;
        self.count += 1;
        self.compiled.insert(function.name.clone(), (function.clone(), code));
        Ok(code)
    }

    #[inline]
    fn call<T>(
        &mut self,
        function: &Function,
        code: Code,
        arguments: &[ValueRef<'_>],
        bridge: &mut Bridge<'_>,
        until: u64,
        read: impl FnOnce(Part<'_>, Parts<'_>) -> std::result::Result<T, String>,
    ) -> Result<T> {
        self.runs += 1;
        let run = Run {
            code,
            form: Form::Positional,
            number: self.runs,
            variant: 0,
            name: &function.name,
            keys: &[],
            arguments: &[],
        };
        let digits = digits(arguments);
        let mut digits = digits.iter();
        let given = arguments.iter().map(|value| argument(value, &mut digits));
        self.watched.begin(self.runs, until);
        let called = self.sandbox.call(&run, given, bridge);
        self.watched.end();
        let fail = |state, what: &str| Err(Error::new(state, format!("{}: {what}", title(function))));
        let read = |part, parts| read(part, parts).or_else(|why| fail(SqlState::FUNCTION, &why));
        match called {
            Called::Value(value) => read(Part::Value(value), Parts::new(&[])),
            Called::Parts(mut parts) => match parts.next() {
                Some(part) => read(part, parts),
                None => fail(SqlState::INTERNAL, "it has answered nothing; this is a bug"),
            },
            Called::Ended => match bridge.failure() {
                Some(failure) => Err(failure),
                None => fail(SqlState::INTERNAL, "it was ended without a reason; this is a bug"),
            },
            Called::Stopped => {
                fail(SqlState::CANCELLED, "it takes too long: let it do less, or raise the limit")
            }
        }
    }
}
