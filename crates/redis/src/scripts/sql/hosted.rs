//! The functions that SQL has at a server besides those of the schema: `redis(...)`, and those of libraries.
//!
//! ```text
//! SELECT value FROM redis('LRANGE', 'l', 0, -1)      what a command that reads answers, as rows pk, name, value
//! SELECT total(price, count) FROM item               a function that FUNCTION LOAD has brought, as LUAFUNC calls it
//! ```
//!
//! Functions of the schema, which stand before these, run in sandboxes.
//!
//! Invariant: both are commands, run with the client lent, with its rights.

use std::rc::Rc;
use std::sync::{Arc, Weak};

use perilune::Session;
use perilune_resp::{Answer, ArgumentsBuf};
use perilune_sandbox::sql::LuaFunctions;
use perilune_sql::alchemy::COMMANDS;
use perilune_sql::{
    real_text, Asks, Change, Error, Function, Interpreter, Result, Shape, SqlState, Value, ValueRef,
};

use super::Lending;
use crate::client::Client;
use crate::command::{self, READ};
use crate::context::Context;
use crate::effects::Effects;
use crate::scripts::libraries;
use crate::server::Server;

/// Words that a command in FROM has at most.
const WORDS: usize = 64;
/// What a function of a library has instead of a body if it writes nothing.
const READS: &str = "no-writes";

/// Runs functions at a server.
pub(crate) struct ServerFunctions {
    pub(crate) lua: LuaFunctions,
    pub(crate) lending: Rc<Lending>,
    pub(crate) server: Weak<Server>,
}

impl Interpreter for ServerFunctions {
    fn check(&self, function: &Function) -> Result<()> {
        self.lua.check(function)
    }

    fn find(&self, name: &str, session: &mut Session) -> Result<Option<Function>> {
        if name == COMMANDS {
            return Ok(Some(commands()));
        }
        let Some(server) = self.server.upgrade() else { return Ok(None) };
        if !libraries::are_any(session)? {
            return Ok(None);
        }
        // To load libraries that have changed may take long.
        self.lending.leave_loop()?;
        let Some(mut state) = server.scripts().take(&server) else { return Ok(None) };
        // Libraries that have changed are loaded: that calls nothing, and so is nobody's.
        let mut nobody = Client::new(0, String::new(), String::new(), false, false);
        let mut effects = Effects::default();
        let mut context =
            Context { server: &server, session, client: &mut nobody, effects: &mut effects, may_park: false };
        let found = state.function(&mut context, name)?;
        Ok(found.map(|found| Function {
            name: name.to_owned(),
            parameters: Vec::new(),
            shape: Shape::Value,
            is_deterministic: false,
            body: if found.flags.no_writes { READS.to_owned() } else { String::new() },
            is_of_host: true,
        }))
    }

    fn call(
        &self,
        function: &Rc<Function>,
        arguments: &[ValueRef<'_>],
        asks: &mut dyn Asks,
        answer: &mut dyn FnMut(ValueRef<'_>),
    ) -> Result<()> {
        if !function.is_of_host {
            return self.lua.call(function, arguments, asks, answer);
        }
        if asks.is_read_only() && function.body != READS {
            let what = format!("{} may write: declare it with the flag no-writes", function.name);
            return Err(Error::new(SqlState::READ_ONLY, what));
        }
        let name = [b"LUAFUNC".to_vec(), function.name.clone().into_bytes()];
        let words: ArgumentsBuf =
            name.into_iter().chain(arguments.iter().map(|it| word(&Value::of(*it)))).collect();
        answer(value(self.lending.function(asks.session(), &words)?)?.as_ref());
        Ok(())
    }

    fn fold(&self, function: &Function, rows: &[Value], asks: &mut dyn Asks) -> Result<Value> {
        self.lua.fold(function, rows, asks)
    }

    fn rows(&self, function: &Function, arguments: &[Value], asks: &mut dyn Asks) -> Result<Vec<Vec<Value>>> {
        if !function.is_of_host {
            return self.lua.rows(function, arguments, asks);
        }
        let words: ArgumentsBuf = arguments.iter().map(word).collect();
        let name = words.as_arguments().get(0).unwrap_or_default();
        if !command::find(name).is_some_and(|command| command.is(READ)) {
            let what =
                format!("{COMMANDS}() takes commands that read keys: {}", String::from_utf8_lossy(name));
            return Err(Error::new(SqlState::REFUSED, what));
        }
        rows(self.lending.command(asks.session(), true, words)?)
    }

    fn change(
        &self,
        function: &Function,
        change: &Change<'_>,
        asks: &mut dyn Asks,
    ) -> Result<Option<Vec<(usize, Value)>>> {
        self.lua.change(function, change, asks)
    }
}

/// The table of what a command answers.
fn commands() -> Function {
    Function {
        name: COMMANDS.to_owned(),
        parameters: (0..WORDS).map(|at| format!("word{at}")).collect(),
        shape: Shape::Rows(["pk", "name", "value"].map(str::to_owned).to_vec()),
        is_deterministic: false,
        body: String::new(),
        is_of_host: true,
    }
}

/// A value as a word of a command; NULL is an empty one.
pub(crate) fn word(value: &Value) -> Vec<u8> {
    match value {
        Value::Null => Vec::new(),
        Value::Integer(integer) => integer.to_string().into_bytes(),
        Value::Real(real) => real_text(*real).into_bytes(),
        Value::Text(bytes) | Value::Blob(bytes) => bytes.clone(),
    }
}

/// What a command has answered as rows: their numbers, what a value belongs to, and the values.
fn rows(answer: Answer) -> Result<Vec<Vec<Value>>> {
    let named = |pairs: Vec<(Answer, Answer)>| -> Result<Vec<Vec<Value>>> {
        let pairs = pairs.into_iter().enumerate();
        pairs.map(|(at, (name, it))| Ok(vec![number(at), value(name)?, value(it)?])).collect()
    };
    match answer {
        Answer::Null => Ok(Vec::new()),
        Answer::Map(all) => named(in_pairs(all)),
        Answer::Array(all) | Answer::Set(all) | Answer::Push(all) => {
            // Members with their scores.
            let are_pairs = !all.is_empty()
                && all.iter().all(|one| matches!(one, Answer::Array(pair) if pair.len() == 2));
            if are_pairs {
                return named(
                    all.into_iter()
                        .flat_map(|one| match one {
                            Answer::Array(pair) => in_pairs(pair),
                            _ => Vec::new(),
                        })
                        .collect(),
                );
            }
            let all = all.into_iter().enumerate();
            all.map(|(at, one)| Ok(vec![number(at), Value::Null, value(one)?])).collect()
        }
        one => Ok(vec![vec![number(0), Value::Null, value(one)?]]),
    }
}

fn number(at: usize) -> Value {
    Value::Integer(at as i64 + 1)
}

fn in_pairs(all: Vec<Answer>) -> Vec<(Answer, Answer)> {
    let mut all = all.into_iter();
    let mut pairs = Vec::new();
    while let (Some(name), Some(value)) = (all.next(), all.next()) {
        pairs.push((name, value));
    }
    pairs
}

/// A reply as a value of SQL: lists and maps as JSON.
fn value(answer: Answer) -> Result<Value> {
    Ok(match answer {
        Answer::Null => Value::Null,
        Answer::Integer(integer) => Value::Integer(integer),
        Answer::Double(double) => Value::Real(double),
        Answer::Boolean(truth) => Value::Integer(i64::from(truth)),
        Answer::Simple(bytes) | Answer::Bulk(bytes) | Answer::Big(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Value::from(text),
            Err(bytes) => Value::Blob(bytes.into_bytes()),
        },
        Answer::Error(bytes) => return Err(refusal(&bytes)),
        many => {
            let mut json = String::new();
            write_json(&many, &mut json);
            Value::from(json)
        }
    })
}

fn write_json(answer: &Answer, out: &mut String) {
    let mut list = |open: char, all: &[Answer], separators: &[char], close: char| {
        out.push(open);
        for (at, one) in all.iter().enumerate() {
            if at > 0 {
                out.push(separators[at % separators.len()]);
            }
            write_json(one, out);
        }
        out.push(close);
    };
    match answer {
        Answer::Array(all) | Answer::Set(all) | Answer::Push(all) => list('[', all, &[','], ']'),
        Answer::Map(all) => list('{', all, &[',', ':'], '}'),
        Answer::Null => out.push_str("null"),
        Answer::Integer(integer) => out.push_str(&integer.to_string()),
        Answer::Double(double) if double.is_finite() => out.push_str(&real_text(*double)),
        Answer::Double(_) => out.push_str("null"),
        Answer::Boolean(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Answer::Simple(bytes) | Answer::Error(bytes) | Answer::Bulk(bytes) | Answer::Big(bytes) => {
            write_string(&String::from_utf8_lossy(bytes), out);
        }
    }
}

fn write_string(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => out.extend(['\\', letter]),
            letter if letter < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            letter => out.push(letter),
        }
    }
    out.push('"');
}

/// The error of a command as one of the statement.
pub(super) fn refusal(text: &[u8]) -> Error {
    let text = String::from_utf8_lossy(text);
    let state = match text.split(' ').next().unwrap_or("") {
        "NOPERM" | "NOAUTH" => SqlState::DENIED,
        "OOM" => SqlState::SPACE,
        "READONLY" => SqlState::READ_ONLY,
        _ => SqlState::FUNCTION,
    };
    Error::new(state, text.into_owned())
}

impl ServerFunctions {
    /// Those of a server, over its sandboxes for functions of the schema.
    pub(crate) fn new(lua: LuaFunctions, lending: Rc<Lending>, server: &Arc<Server>) -> ServerFunctions {
        ServerFunctions { lua, lending, server: Arc::downgrade(server) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_rows_and_values() {
        let bulk = |text: &str| Answer::Bulk(text.as_bytes().to_vec());
        let map = rows(Answer::Map(vec![bulk("a"), bulk("b")])).expect("rows");
        assert_eq!(map, [vec![Value::from(1), Value::from("a"), Value::from("b")]]);
        let scores = rows(Answer::Array(vec![Answer::Array(vec![bulk("m"), Answer::Double(1.5)])]));
        assert_eq!(scores.expect("rows"), [vec![Value::from(1), Value::from("m"), Value::from(1.5)]]);
        assert_eq!(rows(Answer::Null).expect("rows"), Vec::<Vec<Value>>::new());
        let nested = Answer::Map(vec![bulk("a\"\n"), Answer::Array(vec![Answer::Integer(1), Answer::Null])]);
        assert_eq!(value(nested).expect("a value"), Value::from("{\"a\\\"\\u000a\":[1,null]}"));
        assert_eq!(value(Answer::Error(b"NOPERM no".to_vec())).expect_err("one").state(), SqlState::DENIED);
    }
}
