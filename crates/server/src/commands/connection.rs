//! What concerns a connection and not the keys.

use std::fmt::Write as _;

use perilune_resp::{parse_integer, Arguments, Protocol, Replies};

use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::gate::{wrong_number, Context};
use crate::limits::DATABASES;
use crate::numbers::{integer, lower};

pub(crate) fn ping(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match arguments.len() {
        1 | 2 if context.client.topics.is_some() && context.client.protocol == Protocol::Resp2 => {
            replies.array(2);
            replies.bulk(b"pong");
            replies.bulk(arguments.get(1).unwrap_or_default());
        }
        1 => replies.simple("PONG"),
        2 => replies.bulk(&arguments[1]),
        _ => return refuse_with(wrong_number("ping")),
    }
    Ok(())
}

pub(crate) fn echo(_: &mut Context<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    replies.bulk(&arguments[1]);
    Ok(())
}

pub(crate) fn select(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let database = integer(&arguments[1])?;
    if !(0..DATABASES).contains(&database) {
        return refuse("ERR DB index is out of range");
    }
    context.client.database = database;
    replies.simple("OK");
    Ok(())
}

pub(crate) fn quit(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    context.client.closing = true;
    replies.simple("OK");
    Ok(())
}

pub(crate) fn reset(context: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    context.client.reset(context.server.is_open(), context.effects);
    replies.speak(Protocol::Resp2);
    replies.simple("RESET");
    Ok(())
}

/// Whether `user` and `password` are right; else a refusal.
fn admit(context: &mut Context<'_>, user: &[u8], password: &[u8]) -> Result<()> {
    let version = context.server.acl.version();
    if let Some(user) = context.server.acl.admit(user, password) {
        context.client.enter(user, version);
        return Ok(());
    }
    context.note_refusal("auth", "toplevel", b"auth".to_vec(), String::from_utf8_lossy(user).into_owned());
    refuse("WRONGPASS invalid username-password pair or user is disabled.")
}

pub(crate) fn auth(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match (arguments.len(), arguments.get(1), arguments.get(2)) {
        (2, Some(password), _) => {
            if context.server.is_open() {
                return refuse(
                    "ERR AUTH <password> called without any password configured for the default user. \
                     Are you sure your configuration is correct?",
                );
            }
            admit(context, b"default", password)?;
        }
        (3, Some(user), Some(password)) => admit(context, user, password)?,
        _ => return refuse(SYNTAX),
    }
    replies.simple("OK");
    Ok(())
}

/// The protocol that HELLO asks for, and what else it says.
pub(crate) fn hello(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let protocol = match arguments.get(1).map(parse_integer) {
        None => context.client.protocol,
        Some(Some(2)) => Protocol::Resp2,
        Some(Some(3)) => Protocol::Resp3,
        Some(Some(_)) => return refuse("NOPROTO unsupported protocol version"),
        Some(None) => return refuse("ERR Protocol version is not an integer or out of range"),
    };
    let mut name = None;
    let mut words = arguments.from(2).iter();
    while let Some(word) = words.next() {
        match (&*lower(word), words.len()) {
            (b"auth", 2..) => {
                let (user, password) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                admit(context, user, password)?;
            }
            (b"setname", 1..) => name = words.next(),
            _ => {
                let word = String::from_utf8_lossy(word).into_owned();
                return refuse_with(format!("ERR Syntax error in HELLO option '{word}'"));
            }
        }
    }
    if !context.client.authenticated {
        return refuse(
            "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH \
             <user> <pass> option can be used to authenticate the client and select the RESP protocol version at \
             the same time",
        );
    }
    if let Some(name) = name {
        set_name(context, name)?;
    }
    context.client.protocol = protocol;
    replies.speak(protocol);
    replies.map(7);
    for (field, text) in [("server", "perilune"), ("version", env!("CARGO_PKG_VERSION"))] {
        replies.bulk(field.as_bytes());
        replies.bulk(text.as_bytes());
    }
    for (field, number) in [("proto", protocol.number()), ("id", context.client.id)] {
        replies.bulk(field.as_bytes());
        replies.integer(number);
    }
    for (field, text) in [("mode", "standalone"), ("role", "master")] {
        replies.bulk(field.as_bytes());
        replies.bulk(text.as_bytes());
    }
    replies.bulk(b"modules");
    replies.array(0);
    Ok(())
}

fn set_name(context: &mut Context<'_>, name: &[u8]) -> Result<()> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return refuse("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    context.client.name = name.to_vec();
    Ok(())
}

/// CLIENT ID, GETNAME, SETNAME, INFO.
pub(crate) fn client(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (word, wanted) = match &*lower(&arguments[1]) {
        b"id" => ("id", 2),
        b"getname" => ("getname", 2),
        b"setname" => ("setname", 3),
        _ => ("info", 2),
    };
    if arguments.len() != wanted {
        return refuse_with(wrong_number(&format!("client|{word}")));
    }
    match word {
        "id" => replies.integer(context.client.id),
        "getname" if context.client.name.is_empty() => replies.null(),
        "getname" => replies.bulk(&context.client.name),
        "setname" => {
            set_name(context, &arguments[2])?;
            replies.simple("OK");
        }
        _ => replies.verbatim(line(context).as_bytes()),
    }
    Ok(())
}

/// The client in the form of CLIENT LIST.
fn line(context: &Context<'_>) -> String {
    let client = &context.client;
    let mut text = format!("id={} addr={} name=", client.id, client.address);
    text.push_str(&String::from_utf8_lossy(&client.name));
    let queued = client.queue.as_ref().map_or(-1, |queue| queue.commands.len() as i64);
    let _ = writeln!(
        text,
        " age={} db={} multi={queued} user={} resp={}",
        client.since.elapsed().as_secs(),
        client.database,
        client.user_name(),
        client.protocol.number()
    );
    text
}
