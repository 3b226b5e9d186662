//! What concerns a connection and not the keys.

use std::time::Instant;

use perilune_resp::{parse_integer, Arguments, Protocol, Replies};

use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::leftovers::{Pending, Work};
use crate::numbers::{integer, lower};
use crate::refusals::wrong_number;

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
    if !(0..context.server.rules().databases()).contains(&database) {
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
    if context.client.monitors {
        context.server.commons().monitors().remove(context.client.seat);
    }
    let topics = context.client.reset(context.server.rules().is_open());
    replies.speak(Protocol::Resp2);
    match topics {
        // Whoever is told that it is done is subscribed to nothing any more, wherever it is asked.
        Some(topics) => context.put_off(Work::Pending(Pending::leaving(topics), b"+RESET\r\n".to_vec())),
        None => replies.simple("RESET"),
    }
    Ok(())
}

const WRONG_PASSWORD: &str = "WRONGPASS invalid username-password pair or user is disabled.";

/// Whether `user` and `password` are right; then the client is that user.
fn admit(context: &mut Context<'_>, command: &[u8], user: &[u8], password: &[u8]) -> bool {
    let version = context.server.rules().acl().version();
    if let Some(user) = context.server.rules().acl().admit(user, password) {
        context.client.enter(user, version);
        return true;
    }
    context.note_refusal("auth", "toplevel", command.to_vec(), String::from_utf8_lossy(user).into_owned());
    false
}

/// Answers a wrong password: the later the more there were, and behind many the connection ends. The loop serves others
/// meanwhile.
fn turn_away(context: &mut Context<'_>) -> Result<()> {
    let protocol = context.client.protocol;
    let refusal = context.client.attempts.fail();
    context.client.closing |= refusal.ends;
    if refusal.delay.is_zero() {
        return refuse(WRONG_PASSWORD);
    }
    let Some(parked) = context.park() else { return refuse(WRONG_PASSWORD) };
    parked.until = Instant::now().checked_add(refusal.delay);
    parked.gives_up = true;
    Replies::new(&mut parked.too_late, protocol).error(WRONG_PASSWORD);
    context.server.measures().statistics().count_error(WRONG_PASSWORD);
    Ok(())
}

pub(crate) fn auth(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match (arguments.len(), arguments.get(1), arguments.get(2)) {
        (2, Some(password), _) => {
            if context.server.rules().is_open() {
                return refuse(
                    "ERR AUTH <password> called without any password configured for the default user. \
                     Are you sure your configuration is correct?",
                );
            }
            if !admit(context, &arguments[0], b"default", password) {
                return turn_away(context);
            }
        }
        (3, Some(user), Some(password)) => {
            if !admit(context, &arguments[0], user, password) {
                return turn_away(context);
            }
        }
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
                if !admit(context, &arguments[0], user, password) {
                    return turn_away(context);
                }
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

pub(super) fn set_name(context: &mut Context<'_>, name: &[u8]) -> Result<()> {
    if !name.iter().all(|byte| (b'!'..=b'~').contains(byte)) {
        return refuse("ERR Client names cannot contain spaces, newlines or special characters.");
    }
    context.client.name = name.to_vec();
    Ok(())
}
