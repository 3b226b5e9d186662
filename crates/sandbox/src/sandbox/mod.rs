//! Fenced-in LuaJIT states for scripts of clients who are not trusted: libraries of the host's choice, limits, a way to stop.
//!
//! A host says once what its sandboxes [offer](Offer), makes as many as it has scripts running at a time, and answers what
//! the scripts ask ([`Answers`]). `tests/library.rs` of this crate is a host with a library of its own.
//!
//! Invariants
//! - A script reaches the outside only by its [`Answers`].
//! - Memory is bounded by the sandbox's limit, and by that of the [`Pool`] which it shares with others; what the host answers
//!   and keeps counts. A script in Lua or in the libraries here ends soon after
//!   [`Stopper::stop`]; what its host does for it ends as the host ends it.
//! - What a script leaves behind - globals, tables of libraries - no other script finds.
//!
//! The C sources are in `crates/sandbox/c`. Deliberately absent: commands, transactions, threads.

mod calling;
mod edge;
mod offer;
mod texts;
mod values;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

pub(crate) use self::edge::{deafen, listen};
pub use self::edge::{ticks, Text};
use self::edge::{Raw, RawPool};
pub use self::offer::{Format, HostFunction, Library, Offer};
pub use self::texts::Texts;
pub use self::values::{Part, Parts, Value, Values};

/// Bytes of stack that a thread needs for scripts: LuaJIT's own functions recurse as deep as a script asks
/// them to, up to the bound of Lua's stack, which is more than threads usually have.
pub const SCRIPT_STACK: usize = 64 << 20;

/// A call of a function of a library.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The number of the library in the host's [`Offer`].
    pub library: usize,
    /// The number of the function there.
    pub function: usize,
    /// What it is called with: of a [`Library::new`] one [`Value`] each.
    pub arguments: Texts<'a>,
    /// Bytes that the answer may take.
    pub room: usize,
    /// Bytes that the host may keep for the run from now on, as writes of its transaction.
    pub keeps: usize,
}

/// What a script's host does for it.
pub trait Answers {
    /// Answers a question by appending to `answer`: of a [`Library::new`] what [`Values`] writes, nothing being nil. `Break`
    /// ends the script at once, whatever it catches.
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()>;

    /// Appends the source of the module called `name`, for `require`; nothing: there is none.
    fn module(&mut self, name: &[u8], answer: &mut Vec<u8>) -> ControlFlow<()> {
        let _ = (name, answer);
        ControlFlow::Continue(())
    }

    /// Bytes of memory that the host keeps for the run until its end: they count as the script's.
    fn kept(&self) -> usize {
        0
    }
}

/// A compiled function in one sandbox, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Code(pub i32);

/// How a function is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Keys and arguments are the globals KEYS and ARGV.
    Script,
    /// Keys and arguments are the function's.
    Function,
    /// The code defines functions; it gets neither keys nor arguments.
    Library,
    /// The arguments are those of the function.
    Positional,
    /// The arguments are those of the function, which may set globals; these are gone after the run.
    Open,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The compiled code to run.
    pub code: Code,
    /// How it gets its keys and arguments.
    pub form: Form,
    /// Its number, by which it can be stopped: positive, and not given before in this sandbox.
    pub number: u64,
    /// Which variant of the reply is wanted, as the host's [`Format`] numbers them: Redis's has the version of RESP.
    pub variant: u8,
    /// What errors call it.
    pub name: &'a str,
    /// Its keys.
    pub keys: &'a [Text<'a>],
    /// Its arguments.
    pub arguments: &'a [Text<'a>],
}

/// How a run has ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome<'s> {
    /// With a result or an error; the reply has it in the format that the host offers.
    Replied(&'s [u8]),
    /// By its host's `Break`.
    Ended,
    /// By [`Stopper::stop`].
    Stopped,
}

/// How a call with values has ended.
#[derive(Clone, Debug)]
pub enum Called<'s> {
    /// With a value.
    Value(Value<'s>),
    /// With a table, a long text or an error: the reply, in the form of [`Values`].
    Parts(Parts<'s>),
    /// By its host's `Break`.
    Ended,
    /// By [`Stopper::stop`].
    Stopped,
}

/// Memory that sandboxes have together: what all of them take is bounded, too.
#[derive(Clone, Debug)]
pub struct Pool(Arc<RawPool>);

impl Pool {
    /// A pool of so many bytes.
    #[must_use]
    pub fn new(bytes: usize) -> Pool {
        Pool(Arc::new(RawPool { used: AtomicUsize::new(0), limit: AtomicUsize::new(bytes) }))
    }

    /// Changes its size to so many bytes. What is in use already stays.
    pub fn limit(&self, bytes: usize) {
        self.0.limit.store(bytes, Ordering::Relaxed);
    }

    /// Bytes that its sandboxes have taken.
    #[must_use]
    pub fn used(&self) -> usize {
        self.0.used.load(Ordering::Relaxed)
    }
}

impl Default for Pool {
    /// A pool without a bound.
    fn default() -> Pool {
        Pool::new(usize::MAX)
    }
}

/// A LuaJIT state of its own for scripts, with its limits.
#[derive(Debug)]
pub struct Sandbox {
    raw: Arc<Raw>,
    /// Room for the host's answers, kept from run to run.
    answer: Vec<u8>,
}

/// Bytes of an answer that are kept.
const ANSWER_KEPT: usize = 64 << 10;

/// Stops runs of a sandbox from other threads.
#[derive(Clone, Debug)]
pub struct Stopper {
    raw: Arc<Raw>,
}

impl Stopper {
    /// Makes the run with this number end; to be called again every few milliseconds while it answers true,
    /// which means that the run has not ended yet.
    #[must_use]
    pub fn stop(&self, number: u64) -> bool {
        self.raw.stop(number)
    }
}

impl Sandbox {
    /// A state whose scripts may use `memory` bytes of those of `pool`, together with what it keeps for them; none if there
    /// is no memory for it.
    #[must_use]
    pub fn new(offer: &'static Offer, pool: &Pool, memory: usize) -> Option<Sandbox> {
        Raw::new(offer, memory, pool).map(|raw| Sandbox { raw: Arc::new(raw), answer: Vec::new() })
    }

    /// From now on its scripts may use `memory` bytes.
    pub fn limit(&mut self, memory: usize) {
        self.raw.limit(memory);
    }

    /// A handle that stops its runs.
    #[must_use]
    pub fn stopper(&self) -> Stopper {
        Stopper { raw: Arc::clone(&self.raw) }
    }

    /// Bytes in use.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.raw.memory()
    }

    /// What runs a function that a program has sent: [`Form::Positional`], with one argument, the request
    /// of `bindings/lua/perilune/ship.lua`; the reply is its answer. It asks what [`Library::nodes`] asks, which must be offered.
    #[must_use]
    pub fn shipped(&self) -> Code {
        self.raw.shipped()
    }

    /// Compiles text, which errors call `name`.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn compile(&mut self, source: &[u8], name: &str) -> Result<Code, String> {
        self.raw.compile(source, name)
    }

    /// Frees compiled code, which is then not run any more.
    pub fn forget(&mut self, code: Code) {
        self.raw.forget(code);
    }

    /// Runs compiled code; `host` answers what it asks. The reply lasts until the next call.
    ///
    /// # Panics
    /// With a panic of `host`.
    pub fn run(&mut self, run: &Run<'_>, host: &mut dyn Answers) -> Outcome<'_> {
        let outcome = self.raw.run(run, host, &mut self.answer);
        if self.answer.capacity() > ANSWER_KEPT {
            self.answer = Vec::new();
        }
        outcome
    }

    /// Calls a compiled function with these values, instead of the run's arguments, as [`Form::Positional`] does; the host's
    /// [`Format`] is one of values. What it answers lasts until the next call. An integer beyond 2^53 becomes the nearest double.
    ///
    /// # Panics
    /// With a panic of `host`.
    #[inline]
    pub fn call<'v>(
        &mut self,
        run: &Run<'_>,
        values: impl ExactSizeIterator<Item = Value<'v>>,
        host: &mut dyn Answers,
    ) -> Called<'_> {
        let called = self.raw.call(run, values, host, &mut self.answer);
        if self.answer.capacity() > ANSWER_KEPT {
            self.answer = Vec::new();
        }
        called
    }
}
