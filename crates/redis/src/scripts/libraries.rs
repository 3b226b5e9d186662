//! Libraries of functions: `^redis("function",library)` holds the code, `^redis("function")` how often
//! libraries have changed. A sandbox loads all of them again when that number is another one.
//!
//! Invariants
//! - A function's name is in one library, in whatever case.
//! - What cannot be loaded is not kept; a library that a program has written by node and that does not load
//!   has no functions.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use perilune::{node, NodeRef, RangeEnds, Session, Subscript};
use perilune_sandbox::{Code, Form, Outcome, Run};

use crate::context::Context;
use crate::scripts::calls::{Caller, Registered};
use crate::scripts::header::{library, Flags};
use crate::scripts::state::State;
use crate::scripts::watch::Kind;
use perilune_net::clock::clock;

/// How long a library may take to define its functions.
const LOADING: Duration = Duration::from_millis(500);

/// A function.
#[derive(Clone, Debug)]
pub(crate) struct Function {
    pub(crate) library: String,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) flags: Flags,
    pub(crate) code: Code,
}

/// What a sandbox has loaded.
#[derive(Debug, Default)]
pub(crate) struct Libraries {
    version: i64,
    /// By their names in lower case.
    functions: BTreeMap<String, Function>,
}

/// How often libraries have changed.
fn version(session: &mut Session) -> perilune::Result<i64> {
    Ok(session.get_int(&node!("^redis", "function")?)?.unwrap_or(0))
}

/// Whether there has ever been a library.
pub(crate) fn are_any(session: &mut Session) -> perilune::Result<bool> {
    Ok(version(session)? != 0)
}

/// All libraries with their code, by name.
pub(crate) fn all(session: &mut Session) -> perilune::Result<Vec<(String, Vec<u8>)>> {
    let place = node!("^redis", "function")?;
    let (mut found, mut from) = (Vec::new(), place.clone());
    while let Some((node, value)) = session.first_entry(&place, Bound::Excluded(NodeRef::from(&from)))? {
        let mut code = Vec::new();
        value.write_text(&mut code);
        let name = match node.last()? {
            Some(Subscript::Bytes(name)) => String::from_utf8_lossy(&name).into_owned(),
            Some(Subscript::Number(number)) => number.to_string(),
            None => String::new(),
        };
        let next = node.to_node()?;
        found.push((name, code));
        from = next;
    }
    Ok(found)
}

/// Writes libraries, in one transaction: with `alone` there are no others afterwards.
pub(crate) fn keep(
    session: &mut Session,
    libraries: &[(String, Vec<u8>)],
    alone: bool,
) -> perilune::Result<()> {
    session.transaction(|session| {
        let place = node!("^redis", "function")?;
        let next = session.get_int(&place)?.unwrap_or(0) + 1;
        if alone {
            session.delete_tree(&place)?;
        }
        session.set(&place, next)?;
        for (name, code) in libraries {
            session.set(&node!("^redis", "function", &**name)?, &code[..])?;
        }
        Ok(())
    })
}

/// Removes a library; false if there is none.
pub(crate) fn remove(session: &mut Session, name: &str) -> perilune::Result<bool> {
    session.transaction(|session| {
        let place = node!("^redis", "function", name)?;
        if !session.data(&place)?.has_value() {
            return Ok(false);
        }
        session.delete_value(&place)?;
        session.increment(&node!("^redis", "function")?, 1)?;
        Ok(true)
    })
}

impl State {
    /// Loads what has changed; answers the function called so.
    pub(crate) fn function(
        &mut self,
        context: &mut Context<'_>,
        name: &str,
    ) -> perilune::Result<Option<Function>> {
        self.update(context)?;
        Ok(self.libraries.functions.get(&name.to_ascii_lowercase()).cloned())
    }

    /// All functions, by name, after loading what has changed.
    pub(crate) fn functions(&mut self, context: &mut Context<'_>) -> perilune::Result<Vec<Function>> {
        self.update(context)?;
        Ok(self.libraries.functions.values().cloned().collect())
    }

    fn update(&mut self, context: &mut Context<'_>) -> perilune::Result<()> {
        let version = version(context.session)?;
        if version == self.libraries.version {
            return Ok(());
        }
        for (_, function) in std::mem::take(&mut self.libraries.functions) {
            self.sandbox.forget(function.code);
        }
        for (name, source) in all(context.session)? {
            let loaded = library(&source).and_then(|(_, code)| self.load(context, code));
            for registered in loaded.unwrap_or_default() {
                let function = function(&name, registered);
                self.libraries.functions.insert(function.name.to_ascii_lowercase(), function);
            }
        }
        self.libraries.version = version;
        Ok(())
    }

    /// Loads a library, and lets go of it again; what it defines.
    pub(crate) fn check(
        &mut self,
        context: &mut Context<'_>,
        code: &[u8],
    ) -> Result<Vec<Registered>, String> {
        let registered = self.load(context, code)?;
        for function in &registered {
            self.sandbox.forget(Code(function.code));
        }
        if registered.is_empty() {
            return Err("ERR No functions registered".to_owned());
        }
        Ok(registered)
    }

    /// Runs the code of a library; the functions that it defines.
    fn load(&mut self, context: &mut Context<'_>, code: &[u8]) -> Result<Vec<Registered>, String> {
        let compiled = self
            .sandbox
            .compile(code, "@user_function")
            .map_err(|error| format!("ERR Error compiling function: {error}"))?;
        let number = self.watched.begin_within(context.server.measures().started(), Kind::Function, LOADING);
        context.server.scripts().wake();
        let mut caller =
            Caller::new(context.server, context.session, context.client, context.effects, clock());
        caller.loading = true;
        let run = Run {
            code: compiled,
            form: Form::Library,
            number,
            variant: 2,
            name: "",
            keys: &[],
            arguments: &[],
        };
        let outcome = match self.sandbox.run(&run, &mut caller) {
            Outcome::Replied(b"") => Ok(()),
            Outcome::Replied(error) => {
                let text = String::from_utf8_lossy(&error[1..]).trim_end().to_owned();
                let text = text.strip_prefix("ERR ").unwrap_or(&text);
                let text = text.split(" script: ").next().unwrap_or(text);
                Err(format!("ERR Error registering functions: {text}"))
            }
            Outcome::Ended | Outcome::Stopped => Err("ERR FUNCTION LOAD timeout".to_owned()),
        };
        let registered = std::mem::take(&mut caller.registered);
        self.watched.end();
        self.sandbox.forget(compiled);
        outcome.map(|()| registered)
    }
}

fn function(library: &str, registered: Registered) -> Function {
    Function {
        library: library.to_owned(),
        name: registered.name,
        description: registered.description,
        flags: registered.flags,
        code: Code(registered.code),
    }
}
