//! A sandbox with what it has compiled.
//!
//! Invariants
//! - What is compiled here is in the tree too, as of the generation that it was compiled in.
//! - A state whose memory or number of scripts has grown large is not used again.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use perilune::Session;
use perilune_sandbox::{Code, Pool, Sandbox};

use crate::scripts::header::{self, Flags};
use crate::scripts::libraries::Libraries;
use crate::scripts::redis;
use crate::scripts::store;
use crate::scripts::watch::Watched;

/// Scripts that one state keeps compiled.
const SCRIPTS: usize = 1_000;
/// Runs of a script in whole transactions behind one that was beyond a one-shot one.
const WHOLE_RUNS: u8 = 32;
/// Runs of a script aside behind one that took too long for an event loop.
const ASIDE_RUNS: u8 = 32;
/// How long a run takes at most if the next one is worth an attempt in an event loop.
const SHORT: Duration = Duration::from_millis(1);

/// A script, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) sha: Arc<str>,
    pub(crate) code: Code,
    pub(crate) flags: Flags,
}

/// One sandbox, used by one run at a time.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) sandbox: Sandbox,
    pub(crate) watched: Arc<Watched>,
    /// Bytes that scripts may use.
    memory: usize,
    generation: i64,
    /// The source that was run last, and its script: it is likely to be the next.
    last: Option<(Box<[u8]>, Script)>,
    by_source: HashMap<Box<[u8]>, Script>,
    by_sha: HashMap<Box<str>, Script>,
    /// Code of LUA, by its text.
    open: HashMap<Box<[u8]>, Code>,
    /// Runs to come in whole transactions, of code that was beyond a one-shot one, by its number.
    whole: Vec<u8>,
    /// Runs to come aside before one in an event loop is tried, by the number of the code; one that is not there has not
    /// run yet.
    aside: Vec<u8>,
    pub(super) libraries: Libraries,
}

impl State {
    /// Of memory that all have together; none if there is none for it.
    pub(crate) fn new(pool: &Pool, memory: usize) -> Option<State> {
        let sandbox = Sandbox::new(redis::offer(), pool, memory)?;
        let watched = Arc::new(Watched::new(sandbox.stopper()));
        Some(State {
            sandbox,
            watched,
            memory,
            generation: 0,
            last: None,
            by_source: HashMap::new(),
            by_sha: HashMap::new(),
            open: HashMap::new(),
            whole: Vec::new(),
            aside: Vec::new(),
            libraries: Libraries::default(),
        })
    }

    /// From now on scripts may use so many bytes.
    #[inline]
    pub(super) fn limit(&mut self, memory: usize) {
        if self.memory != memory {
            self.memory = memory;
            self.sandbox.limit(memory);
        }
    }

    /// Whether it is better thrown away than used again.
    pub(crate) fn is_worn(&self) -> bool {
        self.by_sha.len() + self.open.len() > SCRIPTS || self.sandbox.memory() > self.memory / 4
    }

    /// Whether the next run of `code` is worth an attempt in a one-shot transaction.
    pub(crate) fn may_attempt(&mut self, code: Code) -> bool {
        match self.whole.get_mut(code.0 as usize) {
            Some(0) | None => true,
            Some(runs) => {
                *runs -= 1;
                false
            }
        }
    }

    /// `code` was beyond a one-shot transaction.
    pub(crate) fn is_beyond_one_shot(&mut self, code: Code) {
        *runs_of(&mut self.whole, code, 0) = WHOLE_RUNS;
    }

    /// Whether the next run of `code` is worth an attempt in an event loop.
    pub(crate) fn may_be_in_place(&self, code: Code) -> bool {
        let is_short = self.aside.get(code.0 as usize) == Some(&0);
        is_short && self.whole.get(code.0 as usize).is_none_or(|runs| *runs == 0)
    }

    /// `code` has run aside, in a one-shot transaction.
    pub(crate) fn note_one_shot(&mut self, code: Code, took: Duration) {
        if took <= SHORT {
            let runs = runs_of(&mut self.aside, code, 1);
            *runs = runs.saturating_sub(1);
        }
    }

    /// `code` takes longer than a loop waits.
    pub(crate) fn stays_aside(&mut self, code: Code) {
        *runs_of(&mut self.aside, code, 1) = ASIDE_RUNS;
    }

    /// That of the last [`State::refresh`].
    pub(crate) fn generation(&self) -> i64 {
        self.generation
    }

    /// Forgets what other servers have dropped.
    pub(crate) fn refresh(&mut self, session: &mut Session) -> perilune::Result<()> {
        let generation = store::generation(session)?;
        if generation != self.generation {
            self.last = None;
            self.by_source.clear();
            for (_, script) in self.by_sha.drain() {
                self.sandbox.forget(script.code);
            }
            for (_, code) in self.open.drain() {
                self.sandbox.forget(code);
            }
            self.whole.clear();
            self.aside.clear();
            self.generation = generation;
        }
        Ok(())
    }

    /// The script that a command called `name` gives by its source or its SHA1, if it is compiled.
    pub(crate) fn compiled(&mut self, name: &str, given: &[u8]) -> Option<Script> {
        if is_by_sha(name) {
            return self.by_sha.get(str::from_utf8(given).ok()?).cloned();
        }
        if let Some((_, script)) = self.last.as_ref().filter(|(last, _)| **last == *given) {
            return Some(script.clone());
        }
        let script = self.by_source.get(given)?;
        self.last = Some((given.into(), script.clone()));
        Some(script.clone())
    }

    /// The script with this source; compiled, and kept in the tree, if it is new. The text of a refusal else.
    pub(crate) fn by_source(&mut self, session: &mut Session, source: &[u8]) -> Result<Script, String> {
        if let Some(script) = self.compiled("eval", source) {
            return Ok(script);
        }
        let sha = store::sha(source);
        let script = self.compile(&sha, source)?;
        // A database that takes no writes still runs scripts; EVALSHA finds no others then.
        let _ = store::keep(session, &sha, source);
        self.by_source.insert(source.into(), script.clone());
        Ok(script)
    }

    /// The script with this SHA, which is in lower case; none if there is none in the tree.
    pub(crate) fn by_sha(
        &mut self,
        session: &mut Session,
        sha: &str,
    ) -> perilune::Result<Option<Result<Script, String>>> {
        if let Some(script) = self.by_sha.get(sha) {
            return Ok(Some(Ok(script.clone())));
        }
        let Some(source) = store::source(session, sha)? else { return Ok(None) };
        Ok(Some(self.compile(sha, &source)))
    }

    /// The code of LUA with this text.
    pub(crate) fn open(&mut self, source: &[u8]) -> Result<Code, String> {
        if let Some(code) = self.open.get(source) {
            return Ok(*code);
        }
        let code = self
            .sandbox
            .compile(source, "@lua")
            .map_err(|error| format!("ERR Error compiling script (new function): {error}"))?;
        self.open.insert(source.into(), code);
        Ok(code)
    }

    fn compile(&mut self, sha: &str, source: &[u8]) -> Result<Script, String> {
        if let Some(script) = self.by_sha.get(sha) {
            return Ok(script.clone());
        }
        let (flags, code) = header::split(source)?;
        let code = self
            .sandbox
            .compile(code, "@user_script")
            .map_err(|error| format!("ERR Error compiling script (new function): {error}"))?;
        let flags = flags.unwrap_or_default();
        let script = Script { sha: sha.into(), code, flags };
        self.by_sha.insert(sha.into(), script.clone());
        Ok(script)
    }
}

/// The runs to come of `code`; `unknown`: of one that is not there.
fn runs_of(runs: &mut Vec<u8>, code: Code, unknown: u8) -> &mut u8 {
    let index = code.0 as usize;
    if runs.len() <= index {
        runs.resize(index + 1, unknown);
    }
    &mut runs[index]
}

/// Whether the command called so, in lower case, gives a script by its SHA1.
pub(crate) fn is_by_sha(name: &str) -> bool {
    name.starts_with("evalsha")
}
