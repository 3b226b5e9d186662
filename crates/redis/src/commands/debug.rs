//! DEBUG: what suites of tests ask for.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use perilune_resp::{Arguments, Replies};

use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, NO_KEY};
use crate::keyspace::Keys;
use crate::loop_state::LoopState;
use crate::mailbox::Mailbox;
use crate::numbers::{double, integer, lower};
use crate::refusals::wrong_number;
use perilune_net::clock::clock;
use perilune_net::event_loop::Handed;

const HELP: &[&str] = &[
    "DEBUG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANGE-REPL-ID",
    "    Do nothing: there is no replication.",
    "LISTPACK, QUICKLIST-PACKED-THRESHOLD, STRINGMATCH-LEN, SET-DISABLE-DENY-SCRIPTS, REPLICATE, RELOAD",
    "    Do nothing: there is nothing of the kind, and nothing to load.",
    "ERROR <string>",
    "    Return <string> as an error.",
    "LOOPS [count]",
    "    Let so many event loops of this server have clients from now on; show how many do, and how many clients each has.",
    "OBJECT <key>",
    "    Show how a key lies in the tree.",
    "PANIC",
    "    End this server as a fault of its own would.",
    "PROTOCOL <type>",
    "    Reply with a value of a type, for tests of clients.",
    "SET-ACTIVE-EXPIRE <0|1>",
    "    Stop or start the removal of expired keys by this server.",
    "SLEEP <seconds>",
    "    Answer after so long; other clients are served.",
    "HELP",
    "    Print this help.",
];

/// How long DEBUG SLEEP waits at most.
const SLEEP: Duration = Duration::from_secs(3_600);

pub(crate) fn debug(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match (&*lower(&arguments[1]), arguments.len()) {
        (b"sleep", 3) => {
            let seconds = double(&arguments[2])?;
            let wait = Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(SLEEP).min(SLEEP);
            match context.park() {
                None => std::thread::sleep(wait.min(Duration::from_secs(1))),
                Some(parked) => {
                    parked.until = Some(Instant::now() + wait);
                    parked.too_late = b"+OK\r\n".to_vec();
                    return Ok(());
                }
            }
            replies.simple("OK");
        }
        (b"set-active-expire", 3) => {
            let on = &arguments[2] != b"0";
            context.server.expires().store(on, Ordering::Relaxed);
            replies.simple("OK");
        }
        (b"loops", 2 | 3) => return loops(context, arguments.get(2), replies),
        (b"object", 3) => return object(context, &arguments[2], replies),
        (b"error", 3) => return refuse_with(String::from_utf8_lossy(&arguments[2]).into_owned()),
        (b"panic", 2) => panic!("DEBUG PANIC"),
        (b"protocol", 3) => return protocol(&arguments[2], replies),
        (b"reload" | b"loadaof" | b"change-repl-id", _)
        | (b"listpack" | b"quicklist-packed-threshold" | b"stringmatch-len", _)
        | (b"set-disable-deny-scripts" | b"replicate", _) => replies.simple("OK"),
        (b"help", 2) => super::help(HELP, replies),
        (b"jmap", _) => return refuse("ERR there is no Java here"),
        (word, _) => return refuse_with(wrong_number(&format!("debug|{}", String::from_utf8_lossy(word)))),
    }
    Ok(())
}

fn loops(context: &mut Context<'_>, count: Option<&[u8]>, replies: &mut Replies<'_>) -> Result<()> {
    let server = context.server;
    if let Some(count) = count {
        let before = server.crew().awake().fix(usize::try_from(integer(count)?).unwrap_or(1));
        for with in before..server.crew().awake().count() {
            server.crew().mailboxes()[..before]
                .iter()
                .for_each(|mailbox| mailbox.post(Handed::<LoopState>::Share { with }.into()));
        }
        server.crew().mailboxes().iter().for_each(Mailbox::wake);
    }
    replies.array(1 + server.crew().mailboxes().len());
    replies.integer(server.crew().awake().count() as i64);
    for mailbox in server.crew().mailboxes().iter() {
        replies.integer(mailbox.load.load(Ordering::Relaxed) as i64);
    }
    Ok(())
}

fn object(context: &mut Context<'_>, name: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    let database = context.client.database;
    let mut keys = Keys::new(context.session, context.effects, database, clock(), false);
    let key = keys.key(name)?;
    let Some(entry) = keys.open(&key)? else { return refuse(NO_KEY) };
    let size = context.session.tree_size(&key.node)?;
    let text = format!(
        "Value at:{} refcount:1 encoding:nodes kind:{} nodes:{} serializedlength:{} lru:0 lru_seconds_idle:0",
        key.node,
        entry.kind.name(),
        size.values,
        size.key_bytes + size.value_bytes
    );
    replies.simple(&text);
    Ok(())
}

fn protocol(kind: &[u8], replies: &mut Replies<'_>) -> Result<()> {
    match &*lower(kind) {
        b"string" => replies.bulk(b"Hello World"),
        b"integer" => replies.integer(12_345),
        b"double" => replies.double(1.625),
        b"null" => replies.null(),
        b"array" => {
            replies.array(3);
            (0..3).for_each(|number| replies.integer(number));
        }
        b"set" => {
            replies.set(3);
            (0..3).for_each(|number| replies.integer(number));
        }
        b"map" => {
            replies.map(3);
            for number in 0..3 {
                replies.integer(number);
                replies.truth(number == 1);
            }
        }
        b"verbatim" => replies.verbatim(b"This is a verbatim\nstring"),
        b"true" => replies.truth(true),
        b"false" => replies.truth(false),
        _ => {
            return refuse(
                "ERR Wrong protocol type name. Please use one of the following: \
                 string|integer|double|null|array|set|map|verbatim|true|false",
            );
        }
    }
    Ok(())
}
