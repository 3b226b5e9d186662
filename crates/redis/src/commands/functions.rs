//! FUNCTION, FCALL, FCALL_RO, and of AlchemyDB LUA and LUAFUNC.

use perilune_resp::{parse_integer, Arguments, Replies};
use perilune_sandbox::{Form, Run, Text};
use sha2::{Digest, Sha256};

use crate::commands::scripts::{kill, run, split, Work};
use crate::commands::sql;
use crate::context::Context;
use crate::eviction;
use crate::failure::{refuse, refuse_with, Result};
use crate::numbers::lower;
use crate::pattern;
use crate::refusals::wrong_number;
use crate::scripts::calls::Registered;
use crate::scripts::header::{self, Flags};
use crate::scripts::state::State;
use crate::scripts::watch::{self, Kind};
use crate::scripts::{libraries, Loan};

const NO_MEMORY: &str = "OOM there is no memory for another script";
const HELP: &[&str] = &[
    "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "LOAD [REPLACE] <code>",
    "    Keep a library of functions, for all servers of the database.",
    "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
    "    Say which libraries there are.",
    "DELETE <library>",
    "    Drop a library.",
    "FLUSH [ASYNC|SYNC]",
    "    Drop all libraries.",
    "STATS",
    "    Say which function runs for long, on any server, and how many libraries and functions there are.",
    "KILL",
    "    Stop the functions that run for long, on any server; nothing that they wrote is kept.",
    "DUMP",
    "    Say all libraries as one string, for RESTORE.",
    "RESTORE <dump> [FLUSH|APPEND|REPLACE]",
    "    Keep the libraries of a dump: alone, beside those that there are, or in their place.",
    "HELP",
    "    Print this help.",
];
/// What a dump of libraries begins with.
const DUMP: &[u8] = b"PLF1";
/// Bytes of a digest behind them.
const DIGEST: usize = 8;

fn sandbox<'s>(context: &Context<'s>) -> Result<Loan<'s>> {
    context.server.scripts().take(context.server).map_or_else(|| refuse(NO_MEMORY), Ok)
}

/// FCALL, FCALL_RO.
pub(crate) fn fcall(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    if parse_integer(&arguments[2]).is_none() {
        return refuse("ERR Bad number of keys provided");
    }
    let given = split(arguments)?;
    let mut state = sandbox(context)?;
    let name = String::from_utf8_lossy(&arguments[1]);
    let Some(function) = state.function(context, &name)? else { return refuse("ERR Function not found") };
    let read_only = arguments[0].eq_ignore_ascii_case(b"fcall_ro");
    if read_only && !function.flags.no_writes {
        return refuse("ERR Can not execute a script with write flag using *_ro command.");
    }
    let work = Work {
        run: Run {
            code: function.code,
            form: Form::Function,
            number: 0,
            variant: context.client.protocol.number() as u8,
            name: &function.name,
            keys: given.keys(),
            arguments: given.rest(),
        },
        function: Some(arguments),
        flags: function.flags,
        read_only: function.flags.no_writes,
    };
    run(context, &mut state, work, replies)
}

/// LUAFUNC name args: a function of a library with these arguments, or one of SQL's.
pub(crate) fn luafunc(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut state = sandbox(context)?;
    let name = String::from_utf8_lossy(&arguments[1]);
    let Some(function) = state.function(context, &name)? else {
        drop(state);
        return sql::call(context, &name, arguments.from(2), replies);
    };
    let rest: Vec<Text<'_>> = arguments.from(2).iter().map(Text::from).collect();
    let work = Work {
        run: Run {
            code: function.code,
            form: Form::Positional,
            number: 0,
            variant: context.client.protocol.number() as u8,
            name: &function.name,
            keys: &[],
            arguments: &rest,
        },
        function: Some(arguments),
        flags: function.flags,
        read_only: function.flags.no_writes,
    };
    run(context, &mut state, work, replies)
}

/// LUA code args: code that may set globals, which are gone when it ends.
pub(crate) fn lua(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut state = sandbox(context)?;
    state.refresh(context.session)?;
    let code = match state.open(&arguments[1]) {
        Ok(code) => code,
        Err(text) => return refuse_with(text),
    };
    let rest: Vec<Text<'_>> = arguments.from(2).iter().map(Text::from).collect();
    let work = Work {
        run: Run {
            code,
            form: Form::Open,
            number: 0,
            variant: context.client.protocol.number() as u8,
            name: "lua",
            keys: &[],
            arguments: &rest,
        },
        function: None,
        flags: Flags::default(),
        read_only: false,
    };
    run(context, &mut state, work, replies)
}

/// FUNCTION LOAD, LIST, DELETE, FLUSH, STATS, KILL, DUMP, RESTORE.
pub(crate) fn function(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let word = lower(&arguments[1]);
    let rest = arguments.from(2);
    match (&*word, rest.len()) {
        (b"load", 1..) => {
            let name = load(context, rest)?;
            replies.bulk(name.as_bytes());
        }
        (b"list", _) => return list(context, rest, replies),
        (b"delete", 1) => {
            if !libraries::remove(context.session, &String::from_utf8_lossy(&rest[0]))? {
                return refuse("ERR Library not found");
            }
            replies.simple("OK");
        }
        (b"flush", 0 | 1) => {
            if rest.get(0).is_some_and(|how| !matches!(&*lower(how), b"sync" | b"async")) {
                return refuse("ERR FUNCTION FLUSH only supports SYNC|ASYNC option");
            }
            libraries::keep(context.session, &[], true)?;
            replies.simple("OK");
        }
        (b"stats", 0) => return stats(context, replies),
        (b"kill", 0) => {
            kill(context, Kind::Function)?;
            replies.simple("OK");
        }
        (b"dump", 0) => replies.bulk(&dump(&libraries::all(context.session)?)),
        (b"restore", 1 | 2) => {
            restore(context, &rest[0], rest.get(1))?;
            replies.simple("OK");
        }
        (b"help", 0) => super::help(HELP, replies),
        (b"flush", _) | (b"restore", 3..) => {
            let word = String::from_utf8_lossy(&arguments[1]);
            return refuse_with(format!(
                "ERR unknown subcommand or wrong number of arguments for '{word}'. Try FUNCTION HELP."
            ));
        }
        _ => {
            let word = String::from_utf8_lossy(&word);
            return refuse_with(wrong_number(&format!("function|{word}")));
        }
    }
    Ok(())
}

/// Refuses if memory is short.
fn need_memory(context: &mut Context<'_>) -> Result<()> {
    if eviction::is_limited(context.server.rules()) && !context.make_room(0) {
        return refuse(eviction::FULL);
    }
    Ok(())
}

/// A function that is to be in the library `name` may not be in another one; those in `replaced` go.
fn check_names(
    state: &mut State,
    context: &mut Context<'_>,
    (name, registered): (&str, &[Registered]),
    replaced: &[String],
) -> Result<()> {
    for known in state.functions(context)? {
        let is_so = |new: &Registered| new.name.eq_ignore_ascii_case(&known.name);
        let stays = known.library != name && !replaced.contains(&known.library);
        if let Some(new) = registered.iter().find(|new| stays && is_so(new)) {
            return refuse_with(format!("ERR Function {} already exists", new.name));
        }
    }
    Ok(())
}

/// Checks a library, which options come before, and keeps it; its name.
fn load(context: &mut Context<'_>, arguments: Arguments<'_>) -> Result<String> {
    need_memory(context)?;
    let (options, source) = (arguments.first(arguments.len() - 1), &arguments[arguments.len() - 1]);
    if let Some(option) = options.iter().find(|option| !option.eq_ignore_ascii_case(b"replace")) {
        return refuse_with(format!("ERR Unknown option given: {}", String::from_utf8_lossy(option)));
    }
    let (name, code) = match header::library(source) {
        Ok(found) => found,
        Err(text) => return refuse_with(text),
    };
    let mut state = sandbox(context)?;
    let present = libraries::all(context.session)?;
    if options.is_empty() && present.iter().any(|(other, _)| *other == name) {
        return refuse_with(format!("ERR Library '{name}' already exists"));
    }
    let registered = match state.check(context, code) {
        Ok(registered) => registered,
        Err(text) => return refuse_with(text),
    };
    check_names(&mut state, context, (&name, &registered), &[])?;
    libraries::keep(context.session, &[(name.clone(), source.to_vec())], false)?;
    Ok(name)
}

fn list(context: &mut Context<'_>, rest: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (mut wanted, mut with_code) = (None, false);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match &*lower(word) {
            b"withcode" if !with_code => with_code = true,
            b"libraryname" if wanted.is_none() => match words.next() {
                Some(name) => wanted = Some(name),
                None => return refuse("ERR library name argument was not given"),
            },
            _ => {
                let word = String::from_utf8_lossy(word);
                return refuse_with(format!("ERR Unknown argument {word}"));
            }
        }
    }
    let mut state = sandbox(context)?;
    let functions = state.functions(context)?;
    let mut all = libraries::all(context.session)?;
    all.retain(|(name, _)| wanted.is_none_or(|wanted| pattern::matches(wanted, name.as_bytes())));
    replies.array(all.len());
    for (name, code) in &all {
        replies.map(if with_code { 4 } else { 3 });
        replies.bulk(b"library_name");
        replies.bulk(name.as_bytes());
        replies.bulk(b"engine");
        replies.bulk(b"LUA");
        replies.bulk(b"functions");
        let own: Vec<_> = functions.iter().filter(|function| function.library == *name).collect();
        replies.array(own.len());
        for function in own {
            replies.map(3);
            replies.bulk(b"name");
            replies.bulk(function.name.as_bytes());
            replies.bulk(b"description");
            let description = function.description.as_bytes();
            replies.bulk_or_null(Some(description).filter(|description| !description.is_empty()));
            replies.bulk(b"flags");
            let flags = function.flags.names();
            replies.set(flags.len());
            for flag in flags {
                replies.simple(flag);
            }
        }
        if with_code {
            replies.bulk(b"library_code");
            replies.bulk(code);
        }
    }
    Ok(())
}

fn stats(context: &mut Context<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let mut state = sandbox(context)?;
    let functions = state.functions(context)?.len();
    let libraries = libraries::all(context.session)?.len();
    replies.map(2);
    replies.bulk(b"running_script");
    match watch::running(context.session)? {
        None => replies.null(),
        Some(running) => {
            replies.map(3);
            replies.bulk(b"name");
            replies.bulk(&running.name);
            replies.bulk(b"command");
            let command = running.command.as_arguments();
            replies.array(command.len());
            command.iter().for_each(|word| replies.bulk(word));
            replies.bulk(b"duration_ms");
            replies.integer(running.runs_ms);
        }
    }
    replies.bulk(b"engines");
    replies.map(1);
    replies.bulk(b"LUA");
    replies.map(2);
    replies.bulk(b"libraries_count");
    replies.count(libraries);
    replies.bulk(b"functions_count");
    replies.count(functions);
    Ok(())
}

/// All libraries in one text, with a digest: for FUNCTION RESTORE.
fn dump(all: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = DUMP.to_vec();
    for (_, code) in all {
        bytes.extend_from_slice(&(code.len() as u64).to_le_bytes());
        bytes.extend_from_slice(code);
    }
    let digest = Sha256::digest(&bytes);
    bytes.extend_from_slice(&digest[..DIGEST]);
    bytes
}

/// The codes in a dump; none if it is none.
fn undump(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (content, digest) = bytes.split_at_checked(bytes.len().checked_sub(DIGEST)?)?;
    if digest != &Sha256::digest(content)[..DIGEST] {
        return None;
    }
    let mut rest = content.strip_prefix(DUMP)?;
    let mut codes = Vec::new();
    while !rest.is_empty() {
        let (length, behind) = rest.split_first_chunk::<8>()?;
        let (code, behind) = behind.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
        codes.push(code);
        rest = behind;
    }
    Some(codes)
}

fn restore(context: &mut Context<'_>, bytes: &[u8], policy: Option<&[u8]>) -> Result<()> {
    need_memory(context)?;
    let policy = policy.map(|policy| lower(policy).into_owned());
    let (flush, replace) = match policy.as_deref() {
        None | Some(b"append") => (false, false),
        Some(b"replace") => (false, true),
        Some(b"flush") => (true, false),
        Some(_) => {
            return refuse("ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.")
        }
    };
    let Some(codes) = undump(bytes) else { return refuse("ERR DUMP payload version or checksum are wrong") };
    let mut state = sandbox(context)?;
    let present: Vec<_> = libraries::all(context.session)?.into_iter().map(|(name, _)| name).collect();
    let (mut restored, mut functions): (Vec<(String, Vec<u8>)>, Vec<Registered>) = (Vec::new(), Vec::new());
    for source in codes {
        let checked =
            header::library(source).and_then(|(name, code)| Ok((name, state.check(context, code)?)));
        let (name, registered) = match checked {
            Ok(library) => library,
            Err(text) => return refuse_with(text),
        };
        if !flush && !replace && present.contains(&name) {
            return refuse_with(format!("ERR Library {name} already exists"));
        }
        restored.push((name, source.to_vec()));
        functions.extend(registered);
    }
    let replaced: Vec<_> = match flush {
        true => present,
        false => restored.iter().map(|(name, _)| name.clone()).collect(),
    };
    check_names(&mut state, context, ("", &functions), &replaced)?;
    if !restored.is_empty() || flush {
        libraries::keep(context.session, &restored, flush)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_come_back_whole_or_not_at_all() {
        let all = vec![("a".to_owned(), b"code a".to_vec()), ("b".to_owned(), Vec::new())];
        let bytes = dump(&all);
        assert_eq!(undump(&bytes), Some(vec![&b"code a"[..], b""]));
        for end in 0..bytes.len() {
            assert_eq!(undump(&bytes[..end]), None);
        }
    }
}
