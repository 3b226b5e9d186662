//! CLIENT: what clients know and do of themselves and of each other; MONITOR.
//!
//! LIST, KILL and UNBLOCK ask all loops of all servers of the database; PAUSE tells all servers. MONITOR shows
//! what this server runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_resp::{Arguments, Replies};

use super::tracking;
use crate::asking;
use crate::client::ReplyMode;
use crate::client_list::{self, Filter, Holds};
use crate::connection::Connection;
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::inquiry::Form;
use crate::invalidation::redirected;
use crate::numbers::{integer, lower};
use crate::peers;
use crate::refusals::wrong_number;

const HELP: &[&str] = &[
    "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GETNAME, SETNAME <name>, ID, INFO, SETINFO LIB-NAME|LIB-VER <value>",
    "    Of this connection.",
    "LIST [TYPE (NORMAL|PUBSUB)] [ID <id> ...]",
    "    Clients of all servers of the database.",
    "KILL <addr> | KILL <ID|TYPE|USER|ADDR|LADDR|SKIPME> <value> ...",
    "    Ends connections, of any server.",
    "PAUSE <timeout> [WRITE|ALL], UNPAUSE",
    "    Holds commands back, on all servers.",
    "REPLY (ON|OFF|SKIP), NO-EVICT (ON|OFF), NO-TOUCH (ON|OFF)",
    "TRACKING (ON|OFF) [REDIRECT <id>] [OPTIN] [OPTOUT] [NOLOOP], CACHING (YES|NO), TRACKINGINFO, GETREDIR",
    "    Whether a client, or another one for it, is told when what it has read changes.",
    "UNBLOCK <id> [TIMEOUT|ERROR]",
    "    Ends a waiting command, on any server.",
    "HELP",
    "    Print this help.",
];

pub(crate) fn client(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let word = lower(&arguments[1]);
    let rest = arguments.from(2);
    let fits = match &*word {
        b"id" | b"getname" | b"info" | b"unpause" | b"getredir" | b"trackinginfo" | b"help" => {
            rest.is_empty()
        }
        b"setname" | b"reply" | b"no-evict" | b"no-touch" | b"caching" => rest.len() == 1,
        b"setinfo" => rest.len() == 2,
        b"pause" | b"unblock" => matches!(rest.len(), 1 | 2),
        b"kill" | b"tracking" => !rest.is_empty(),
        _ => true,
    };
    if !fits {
        return refuse_with(wrong_number(&format!("client|{}", String::from_utf8_lossy(&word))));
    }
    match &*word {
        b"list" => {
            Filter::of_list(rest)?;
            ask(context, arguments, Form::Lines)
        }
        b"kill" => {
            Filter::of_kill(rest, |user| {
                std::str::from_utf8(user).is_ok_and(|user| context.server.rules().acl().user(user).is_some())
            })?;
            ask(context, arguments, if rest.len() == 1 { Form::Found } else { Form::Count })
        }
        b"unblock" => {
            integer(&rest[0])?;
            if rest.get(1).is_some_and(|reason| !matches!(&*lower(reason), b"timeout" | b"error")) {
                return refuse("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR");
            }
            ask(context, arguments, Form::Count)
        }
        b"pause" | b"unpause" => pause(context, rest, replies),
        b"reply" => reply(context, &rest[0], replies),
        b"tracking" => tracking::tracking(context, arguments, replies),
        b"caching" => tracking::caching(context, &rest[0], replies),
        b"info" => {
            let connection = size_of::<Connection>();
            let holds = Holds { descriptor: -1, connection, ..Holds::default() }.and_command(arguments);
            replies.verbatim(client_list::line(context.client, holds).as_bytes());
            Ok(())
        }
        _ => of_itself(context, &word, rest, replies),
    }
}

/// Asks all servers.
fn ask(context: &mut Context<'_>, arguments: Arguments<'_>, form: Form) -> Result<()> {
    if !asking::ask(context, arguments, form)? {
        return refuse(
            "ERR this asks all servers, which takes time: it is not allowed inside MULTI or scripts",
        );
    }
    Ok(())
}

/// What concerns the connection alone.
fn of_itself(
    context: &mut Context<'_>,
    word: &[u8],
    rest: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let client = &mut *context.client;
    match word {
        b"id" => replies.integer(client.id),
        b"getname" if client.name.is_empty() => replies.null(),
        b"getname" => replies.bulk(&client.name),
        b"setname" => {
            super::connection::set_name(context, &rest[0])?;
            replies.simple("OK");
        }
        b"setinfo" => {
            if !matches!(&*lower(&rest[0]), b"lib-name" | b"lib-ver") {
                let option = String::from_utf8_lossy(&rest[0]).into_owned();
                return refuse_with(format!("ERR Unrecognized option '{option}'"));
            }
            replies.simple("OK");
        }
        b"no-evict" | b"no-touch" => {
            let is_on = switch(&rest[0])?;
            let flag =
                if word == b"no-evict" { &mut client.keeps_memory } else { &mut client.leaves_untouched };
            *flag = is_on;
            replies.simple("OK");
        }
        b"getredir" => replies.integer(redirected(client.tracking.as_ref())),
        b"trackinginfo" => tracking::tell(client, replies),
        _ => super::help(HELP, replies),
    }
    Ok(())
}

fn switch(word: &[u8]) -> Result<bool> {
    match &*lower(word) {
        b"on" => Ok(true),
        b"off" => Ok(false),
        _ => refuse(SYNTAX),
    }
}

/// CLIENT REPLY.
fn reply(context: &mut Context<'_>, word: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    context.client.reply_mode = match &*lower(word) {
        b"on" => {
            replies.simple("OK");
            ReplyMode::On
        }
        b"off" => ReplyMode::Off,
        b"skip" if context.client.reply_mode == ReplyMode::Off => ReplyMode::Off,
        b"skip" => ReplyMode::SkipsNext,
        _ => return refuse(SYNTAX),
    };
    Ok(())
}

/// CLIENT PAUSE, UNPAUSE: on all servers.
fn pause(context: &mut Context<'_>, rest: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (time, all) = match rest.get(0) {
        None => (0, true),
        Some(time) => {
            let all = match rest.get(1).map(lower).as_deref() {
                None | Some(b"all") => true,
                Some(b"write") => false,
                Some(_) => return refuse("ERR CLIENT PAUSE mode must be WRITE or ALL"),
            };
            let until = super::blocking::milliseconds(time)?;
            let time = until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()));
            (time.as_millis() as u64 + u64::from(until.is_some()), all)
        }
    };
    let server = Arc::clone(context.server);
    for peer in peers::all(context.session)? {
        if peer != server.number() {
            let (time, all) = (time.to_string(), i64::from(all).to_string());
            peers::tell(context.session, peer, ["pause", &time, &all])?;
        }
    }
    server.pause(time, all);
    replies.simple("OK");
    Ok(())
}

/// MONITOR: everything that this server runs from now on.
pub(crate) fn monitor(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if !context.may_park {
        return refuse("ERR MONITOR is not allowed inside MULTI or scripts");
    }
    if !std::mem::replace(&mut context.client.monitors, true) {
        context.server.commons().monitors().add(context.client.seat);
    }
    replies.simple("OK");
    Ok(())
}
