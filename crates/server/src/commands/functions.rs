//! FUNCTION, FCALL, FCALL_RO, and of AlchemyDB LUA and LUAFUNC.

use perilune_luahost::sandbox::{Form, Run};
use perilune_resp::{parse_integer, Arguments, Replies};
use sha2::{Digest, Sha256};

use crate::commands::scripts::{run, split, Work};
use crate::failure::{refuse, refuse_with, Result};
use crate::gate::{wrong_number, Context};
use crate::numbers::lower;
use crate::pattern;
use crate::scripts::header::Flags;
use crate::scripts::libraries::{self, Function};
use crate::scripts::{watch, Loan};

const NO_MEMORY: &str = "OOM there is no memory for another script";
/// What a dump of libraries begins with.
const DUMP: &[u8] = b"PLF1";
/// Bytes of a digest behind them.
const DIGEST: usize = 8;

fn sandbox<'s>(context: &Context<'s>) -> Result<Loan<'s>> {
    let server = context.server;
    match server.scripts.take(server) {
        Some(state) => Ok(state),
        None => refuse(NO_MEMORY),
    }
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
    let (keys, rest) = split(arguments)?;
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
            protocol: context.client.protocol.number() as u8,
            name: &function.name,
            keys: &keys,
            arguments: &rest,
        },
        flags: function.flags,
        read_only: function.flags.no_writes,
    };
    run(context, &mut state, work, replies)
}

/// LUAFUNC name args: a function of a library with these arguments.
pub(crate) fn luafunc(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let mut state = sandbox(context)?;
    let name = String::from_utf8_lossy(&arguments[1]);
    let Some(function) = state.function(context, &name)? else { return refuse("ERR Function not found") };
    let rest: Vec<&[u8]> = arguments.from(2).iter().collect();
    let work = Work {
        run: Run {
            code: function.code,
            form: Form::Positional,
            number: 0,
            protocol: context.client.protocol.number() as u8,
            name: &function.name,
            keys: &[],
            arguments: &rest,
        },
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
    let rest: Vec<&[u8]> = arguments.from(2).iter().collect();
    let work = Work {
        run: Run {
            code,
            form: Form::Open,
            number: 0,
            protocol: context.client.protocol.number() as u8,
            name: "lua",
            keys: &[],
            arguments: &rest,
        },
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
        (b"load", 1 | 2) => {
            let replace = rest.len() == 2;
            if replace && !rest[0].eq_ignore_ascii_case(b"replace") {
                let word = String::from_utf8_lossy(&rest[0]).into_owned();
                return refuse_with(format!("ERR Unknown option given: {word}"));
            }
            let name = load(context, &rest[rest.len() - 1], replace)?;
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
            if !watch::kill(context.session)? {
                return refuse("NOTBUSY No scripts in execution right now.");
            }
            replies.simple("OK");
        }
        (b"dump", 0) => replies.bulk(&dump(&libraries::all(context.session)?)),
        (b"restore", 1 | 2) => {
            restore(context, &rest[0], rest.get(1))?;
            replies.simple("OK");
        }
        (b"help", 0) => help(replies),
        _ => {
            let word = String::from_utf8_lossy(&word);
            return refuse_with(wrong_number(&format!("function|{word}")));
        }
    }
    Ok(())
}

/// Checks a library and keeps it; its name.
fn load(context: &mut Context<'_>, source: &[u8], replace: bool) -> Result<String> {
    let (name, code) = match libraries::name_of(source) {
        Ok(found) => found,
        Err(text) => return refuse_with(text),
    };
    let mut state = sandbox(context)?;
    let present = libraries::all(context.session)?;
    if !replace && present.iter().any(|(other, _)| *other == name) {
        return refuse_with(format!("ERR Library '{name}' already exists"));
    }
    let registered = match state.check(context, code) {
        Ok(registered) => registered,
        Err(text) => return refuse_with(text),
    };
    let known = state.functions(context)?;
    let taken = |function: &&Function| {
        function.library != name && registered.iter().any(|new| new.name == function.name)
    };
    if let Some(function) = known.iter().find(taken) {
        return refuse_with(format!("ERR Function {} already exists", function.name));
    }
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
    replies.null();
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
    let present = libraries::all(context.session)?;
    let mut restored = Vec::new();
    for source in codes {
        let checked = libraries::name_of(source)
            .and_then(|(name, code)| state.check(context, code).map(|_| (name, source.to_vec())));
        let library = match checked {
            Ok(library) => library,
            Err(text) => return refuse_with(text),
        };
        if !flush && !replace && present.iter().any(|(other, _)| *other == library.0) {
            return refuse_with(format!("ERR Library {} already exists", library.0));
        }
        restored.push(library);
    }
    if restored.is_empty() && !flush {
        return Ok(());
    }
    libraries::keep(context.session, &restored, flush)?;
    Ok(())
}

fn help(replies: &mut Replies<'_>) {
    let lines = [
        "FUNCTION <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "LOAD [REPLACE] <code>",
        "    Keeps a library of functions, for all servers of the database.",
        "LIST [LIBRARYNAME <pattern>] [WITHCODE]",
        "    Says which libraries there are.",
        "DELETE <library>",
        "FLUSH [ASYNC|SYNC]",
        "STATS",
        "KILL",
        "DUMP",
        "RESTORE <dump> [FLUSH|APPEND|REPLACE]",
    ];
    replies.array(lines.len());
    for line in lines {
        replies.simple(line);
    }
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
