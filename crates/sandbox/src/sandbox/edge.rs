//! The edge to `c/*.c`: the calls into C, and the functions that C calls.
//!
//! Invariants
//! - The functions in C that touch the Lua state are called with `&mut Sandbox` in the callers' hands;
//!   `sandbox_stop`, which is not among them, touches atomic words.
//! - No Lua error and no panic crosses a frame of the other side: C runs Lua protected and leaves our functions
//!   before it raises; ours catch panics.
#![allow(unsafe_code)]

use std::any::Any;
use std::collections::hash_map::RandomState;
use std::ffi::{c_char, c_int, c_void, CString};
use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::AtomicUsize;

use super::offer::{Offer, RawOffer};
use super::texts::Texts;
use super::{Answers, Code, Form, Outcome, Pool, Question, Run, ANSWER_KEPT};

/// Bytes as the sandbox takes them: `struct text` of sandbox.h.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Text<'a> {
    bytes: *const c_char,
    length: usize,
    lives: PhantomData<&'a [u8]>,
}

impl<'a> From<&'a [u8]> for Text<'a> {
    #[inline]
    fn from(bytes: &'a [u8]) -> Text<'a> {
        Text { bytes: bytes.as_ptr().cast(), length: bytes.len(), lives: PhantomData }
    }
}

impl<'a> Text<'a> {
    pub(super) const EMPTY: Text<'static> = Text { bytes: c"".as_ptr(), length: 0, lives: PhantomData };

    /// # Safety
    /// The bytes are there, unchanged, for `'a`.
    pub(super) unsafe fn bytes(self) -> &'a [u8] {
        if self.length == 0 {
            return &[];
        }
        // SAFETY: C made it of a string's pointer and length; that they last is the caller's promise.
        unsafe { std::slice::from_raw_parts(self.bytes.cast(), self.length) }
    }
}

/// `allowance` of sandbox.h: what an answer may take, and what the host keeps.
#[repr(C)]
struct Allowance {
    room: usize,
    kept: usize,
}

/// `pool` of sandbox.h.
#[repr(C)]
#[derive(Debug)]
pub(super) struct RawPool {
    pub(super) used: AtomicUsize,
    pub(super) limit: AtomicUsize,
}

/// `question` of sandbox.h.
#[repr(C)]
struct RawQuestion {
    library: c_int,
    function: c_int,
}

/// The library that the sandbox's own questions have, and what it asks for.
const OF_SANDBOX: c_int = -1;
const ASK_MODULE: c_int = 0;

type Ask = unsafe extern "C" fn(
    *mut c_void,
    RawQuestion,
    Text<'_>,
    *const [usize; 2],
    usize,
    *mut Allowance,
    *mut Text<'_>,
) -> c_int;

/// `sandbox_run` of sandbox.h.
#[repr(C)]
pub(super) struct RawRun<'a> {
    host: *mut c_void,
    ask: Ask,
    number: u64,
    reference: c_int,
    function: c_int,
    open: c_int,
    positional: c_int,
    loading: c_int,
    variant: c_int,
    seed: u32,
    name: Text<'a>,
    keys: *const Text<'a>,
    key_count: usize,
    arguments: *const Text<'a>,
    argument_count: usize,
}

/// `sandbox` of sandbox.h.
#[repr(C)]
#[derive(Debug)]
pub(super) struct State {
    opaque: [u8; 0],
}

extern "C" {
    #[link_name = "perilune_private_sandbox_new"]
    fn sandbox_new(limit: usize, pool: *const RawPool, offer: *const RawOffer) -> *mut State;
    #[link_name = "perilune_private_sandbox_limit"]
    fn sandbox_limit(state: *mut State, limit: usize);
    #[link_name = "perilune_private_sandbox_free"]
    fn sandbox_free(state: *mut State);
    #[link_name = "perilune_private_sandbox_compile"]
    fn sandbox_compile(
        state: *mut State,
        source: Text<'_>,
        name: *const c_char,
        reference: *mut c_int,
        error: *mut Text<'_>,
    ) -> c_int;
    #[link_name = "perilune_private_sandbox_forget"]
    fn sandbox_forget(state: *mut State, reference: c_int);
    #[link_name = "perilune_private_sandbox_do"]
    fn sandbox_do(state: *mut State, run: *const RawRun<'_>, reply: *mut Text<'_>) -> c_int;
    #[link_name = "perilune_private_sandbox_stop"]
    fn sandbox_stop(state: *mut State, number: u64) -> c_int;
    #[link_name = "perilune_private_sandbox_memory"]
    fn sandbox_memory(state: *const State) -> usize;
    #[link_name = "perilune_private_sandbox_shipped"]
    fn sandbox_shipped(state: *const State) -> c_int;
    #[link_name = "perilune_private_sandbox_ticks"]
    fn sandbox_ticks() -> u64;
    #[link_name = "perilune_private_sandbox_listen"]
    fn sandbox_listen() -> c_int;
    #[link_name = "perilune_private_sandbox_deafen"]
    fn sandbox_deafen();
}

/// Lets the signal that stops runs come to this thread; whether the thread kept it away.
pub(crate) fn listen() -> bool {
    // SAFETY: it changes which signals come to this thread; that of ours breaks nothing when it comes.
    unsafe { sandbox_listen() != 0 }
}

/// Keeps that signal away from this thread.
pub(crate) fn deafen() {
    // SAFETY: as above.
    unsafe { sandbox_deafen() }
}

/// A counter of the processor, by which short times are told apart for less than a clock takes; 0 where there is none. What
/// it counts, and whether it ever goes back, the caller finds out.
#[inline]
#[must_use]
pub fn ticks() -> u64 {
    // SAFETY: it reads a register.
    unsafe { sandbox_ticks() }
}

/// A state of C, and the pool that it takes its memory from.
#[derive(Debug)]
pub(super) struct Raw {
    pub(super) state: NonNull<State>,
    /// Of the random numbers that its calls have.
    pub(super) seed: u64,
    /// It is there as long as the state, which takes memory from it.
    _pool: Pool,
}

// SAFETY: a Lua state belongs to no thread; its users take turns, since all but `stop` is reached through
// `&mut Sandbox`, of which there is one for a state.
unsafe impl Send for Raw {}
// SAFETY: shared references are only used for `stop`, which touches atomic words of the state, and by `Sandbox`'s own
// methods, which have it to themselves (see above).
unsafe impl Sync for Raw {}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: made by sandbox_new, and nobody has it any more; the pool is there until it has ended.
        unsafe { sandbox_free(self.state.as_ptr()) }
    }
}

/// The host of a run, and what came of its answers.
pub(super) struct Bridge<'h> {
    host: &'h mut dyn Answers,
    answer: &'h mut Vec<u8>,
    panic: Option<Box<dyn Any + Send>>,
}

impl<'h> Bridge<'h> {
    /// A bridge to this host; `answer` is memory for what it answers.
    pub(super) fn new(host: &'h mut dyn Answers, answer: &'h mut Vec<u8>) -> Bridge<'h> {
        Bridge { host, answer, panic: None }
    }

    /// Goes on with the panic that the host has met, if it has.
    pub(super) fn end(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

unsafe extern "C" fn ask_host(
    host: *mut c_void,
    asked: RawQuestion,
    words: Text<'_>,
    spans: *const [usize; 2],
    count: usize,
    allowed: *mut Allowance,
    answer: *mut Text<'_>,
) -> c_int {
    // SAFETY: `host` is the bridge that `Raw::run` has on its stack, and lends to nobody else during the run.
    let bridge = unsafe { &mut *host.cast::<Bridge<'_>>() };
    // SAFETY: C leaves the bytes and the spans, `count` of them, alone until the question is answered, which no argument
    // outlives. Where there are none, there may be no place.
    let arguments = unsafe {
        let spans = if count == 0 { &[] } else { std::slice::from_raw_parts(spans, count) };
        Texts { bytes: words.bytes(), spans }
    };
    if bridge.answer.capacity() > ANSWER_KEPT {
        // C counts it no more.
        *bridge.answer = Vec::new();
    }
    bridge.answer.clear();
    // SAFETY: C gives a place for both, which nobody else uses meanwhile.
    let allowed = unsafe { &mut *allowed };
    // NB: answers as long as this are not counted; what is kept always is.
    let (keeps, room) = (allowed.room, allowed.room.max(ANSWER_KEPT));
    let (library, function) = (asked.library, asked.function);
    let flow = catch_unwind(AssertUnwindSafe(|| match (usize::try_from(library), function) {
        (Ok(library), function) => {
            let question = Question { library, function: function as usize, arguments, room, keeps };
            bridge.host.answer(question, bridge.answer)
        }
        (Err(_), ASK_MODULE) if library == OF_SANDBOX => {
            bridge.host.module(arguments.get(0).unwrap_or_default(), bridge.answer)
        }
        // ASK_NOTHING.
        _ => ControlFlow::Continue(()),
    }));
    allowed.kept = bridge.host.kept();
    // SAFETY: C gives the place for the answer, and uses it before it asks again or the run ends.
    unsafe { *answer = Text::from(&bridge.answer[..]) };
    match flow {
        Ok(ControlFlow::Continue(())) => 0,
        Ok(ControlFlow::Break(())) => 1,
        Err(panic) => {
            bridge.panic = Some(panic);
            1
        }
    }
}

impl Raw {
    pub(super) fn new(offer: &'static Offer, memory: usize, pool: &Pool) -> Option<Raw> {
        // SAFETY: it takes any number; the pool lives as long as the state, which keeps it, and the offer for ever.
        let state = NonNull::new(unsafe { sandbox_new(memory, &raw const *pool.0, &raw const offer.raw) });
        let seed = RandomState::new().hash_one(memory);
        state.map(|state| Raw { state, seed, _pool: pool.clone() })
    }

    pub(super) fn limit(&self, memory: usize) {
        // SAFETY: the state lives and is the caller's alone; it takes any number.
        unsafe { sandbox_limit(self.state.as_ptr(), memory) }
    }

    pub(super) fn memory(&self) -> usize {
        // SAFETY: the state lives, and the caller has it to itself.
        unsafe { sandbox_memory(self.state.as_ptr()) }
    }

    pub(super) fn shipped(&self) -> Code {
        // SAFETY: the state lives; the number was given when it was made and never changes.
        Code(unsafe { sandbox_shipped(self.state.as_ptr()) })
    }

    pub(super) fn stop(&self, number: u64) -> bool {
        // SAFETY: the state lives; the function touches atomic words of it.
        unsafe { sandbox_stop(self.state.as_ptr(), number) != 0 }
    }

    pub(super) fn compile(&self, source: &[u8], name: &str) -> Result<Code, String> {
        let name = CString::new(name).unwrap_or_default();
        let (mut reference, mut error) = (0, Text::EMPTY);
        // SAFETY: the state lives and is the caller's alone; source and name last for the call.
        let good = unsafe {
            sandbox_compile(
                self.state.as_ptr(),
                Text::from(source),
                name.as_ptr(),
                &mut reference,
                &mut error,
            )
        };
        if good != 0 {
            return Ok(Code(reference));
        }
        // SAFETY: C keeps the text until the next call on this state.
        Err(String::from_utf8_lossy(unsafe { error.bytes() }).into_owned())
    }

    pub(super) fn forget(&self, code: Code) {
        // SAFETY: the state lives and is the caller's alone; any number is taken.
        unsafe { sandbox_forget(self.state.as_ptr(), code.0) }
    }

    /// `answer` is memory for what the host answers.
    pub(super) fn run(&self, run: &Run<'_>, host: &mut dyn Answers, answer: &mut Vec<u8>) -> Outcome<'_> {
        // Each run has numbers of its own: those of the last one may be what a `math.randomseed` chose.
        let seed = RandomState::new().hash_one(run.number) as u32;
        let mut bridge = Bridge::new(host, answer);
        let raw = raw_run(run, &mut bridge, seed);
        let mut reply = Text::EMPTY;
        // SAFETY: the state lives and is the caller's alone; all that `raw` points to outlives the call, and the bridge
        // is used by nobody else until it returns.
        let outcome = unsafe { sandbox_do(self.state.as_ptr(), &raw, &mut reply) };
        bridge.end();
        match outcome {
            // SAFETY: C keeps the reply until the next call on this state, which needs `&mut Sandbox`.
            REPLIED => Outcome::Replied(unsafe { reply.bytes() }),
            ENDED => Outcome::Ended,
            _ => Outcome::Stopped,
        }
    }
}

/// How runs end: RUN_... of run.h.
pub(super) const REPLIED: c_int = 0;
pub(super) const ENDED: c_int = 1;

/// A run as C takes it; the bridge is lent to C for as long.
#[inline]
pub(super) fn raw_run<'a>(run: &Run<'a>, bridge: &mut Bridge<'_>, seed: u32) -> RawRun<'a> {
    RawRun {
        host: (&raw mut *bridge).cast(),
        ask: ask_host,
        number: run.number,
        reference: run.code.0,
        function: c_int::from(run.form == Form::Function),
        open: c_int::from(run.form == Form::Open),
        positional: c_int::from(matches!(run.form, Form::Open | Form::Positional)),
        loading: c_int::from(run.form == Form::Library),
        variant: c_int::from(run.variant),
        seed,
        name: Text::from(run.name.as_bytes()),
        keys: run.keys.as_ptr(),
        key_count: run.keys.len(),
        arguments: run.arguments.as_ptr(),
        argument_count: run.arguments.len(),
    }
}
