//! What CLIENT LIST says of a client, and which clients LIST and KILL mean.
//!
//! Example: `CLIENT KILL TYPE normal MAXAGE 3600` is a [`Filter`] that means each client of that class which has been there
//! for longer. Every loop of every server asks it of its own clients.
//!
//! Invariant: all that a client takes is in [`total`], which is what `maxmemory-clients` counts.

use std::fmt::Write as _;

use perilune_resp::{parse_integer, Arguments};

use crate::client::Client;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::invalidation::redirected;
use crate::numbers::lower;
use crate::topic::Topic;
use perilune_net::seat::Seat;

/// Kinds of clients; there are no replicas and no masters among them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Normal,
    Replication,
    Pubsub,
}

impl Class {
    fn parse(word: &[u8]) -> Result<Class> {
        match &*lower(word) {
            b"normal" => Ok(Class::Normal),
            b"master" | b"replica" | b"slave" => Ok(Class::Replication),
            b"pubsub" => Ok(Class::Pubsub),
            _ => refuse_with(format!("ERR Unknown client type '{}'", String::from_utf8_lossy(word))),
        }
    }

    fn of(client: &Client) -> Class {
        if client.topics.is_some() {
            Class::Pubsub
        } else {
            Class::Normal
        }
    }
}

/// Which clients are meant: those for which all of it is so.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    ids: Option<Vec<i64>>,
    class: Option<Class>,
    user: Option<Vec<u8>>,
    address: Option<Vec<u8>>,
    local_address: Option<Vec<u8>>,
    skips_asker: bool,
}

impl Filter {
    /// Of CLIENT LIST, behind its name.
    pub(crate) fn of_list(words: Arguments<'_>) -> Result<Filter> {
        let mut filter = Filter::default();
        match (words.get(0).map(lower).as_deref(), words.len()) {
            (None, _) => {}
            (Some(b"type"), 2) => filter.class = Some(Class::parse(&words[1])?),
            (Some(b"id"), 2..) => {
                let ids = words.from(1).iter().map(|id| match parse_integer(id) {
                    Some(id) => Ok(id),
                    None => refuse("ERR Invalid client ID"),
                });
                filter.ids = Some(ids.collect::<Result<_>>()?);
            }
            _ => return refuse(SYNTAX),
        }
        Ok(filter)
    }

    /// Of CLIENT KILL, behind its name; `exists` says whether there is a user.
    pub(crate) fn of_kill(words: Arguments<'_>, exists: impl Fn(&[u8]) -> bool) -> Result<Filter> {
        if words.len() == 1 {
            return Ok(Filter { address: Some(words[0].to_vec()), ..Filter::default() });
        }
        if !words.len().is_multiple_of(2) {
            return refuse(SYNTAX);
        }
        let mut filter = Filter { skips_asker: true, ..Filter::default() };
        for at in (0..words.len()).step_by(2) {
            let value = &words[at + 1];
            match &*lower(&words[at]) {
                b"id" => match parse_integer(value) {
                    Some(id @ 1..) => filter.ids = Some(vec![id]),
                    _ => return refuse("ERR client-id should be greater than 0"),
                },
                b"type" => filter.class = Some(Class::parse(value)?),
                b"addr" => filter.address = Some(value.to_vec()),
                b"laddr" => filter.local_address = Some(value.to_vec()),
                b"user" if exists(value) => filter.user = Some(value.to_vec()),
                b"user" => {
                    return refuse_with(format!("ERR No such user '{}'", String::from_utf8_lossy(value)))
                }
                b"skipme" => match &*lower(value) {
                    b"yes" => filter.skips_asker = true,
                    b"no" => filter.skips_asker = false,
                    _ => return refuse(SYNTAX),
                },
                _ => return refuse(SYNTAX),
            }
        }
        Ok(filter)
    }

    /// Whether it means this one; `asker` asks.
    pub(crate) fn means(&self, client: &Client, asker: Seat) -> bool {
        self.ids.as_ref().is_none_or(|ids| ids.contains(&client.id))
            && self.class.is_none_or(|class| class == Class::of(client))
            && self.user.as_ref().is_none_or(|user| client.user_name().as_bytes() == user)
            && self.address.as_ref().is_none_or(|address| client.address.as_bytes() == address)
            && self.local_address.as_ref().is_none_or(|address| client.local_address.as_bytes() == address)
            && !(self.skips_asker && client.id == asker.client)
    }
}

/// What a connection holds at some time, in bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Holds {
    pub(crate) descriptor: i32,
    /// What the server keeps of any connection.
    pub(crate) connection: usize,
    /// Requests that were not run, as they came, with the one that runs.
    pub(crate) input: usize,
    /// Room of the connection's own buffer behind them.
    pub(crate) input_room: usize,
    /// Arguments of the command that runs.
    pub(crate) arguments: usize,
    /// Replies that wait to be sent, and their buffer.
    pub(crate) output: usize,
    pub(crate) output_buffer: usize,
}

impl Holds {
    /// With the command that asks.
    pub(crate) fn and_command(mut self, arguments: Arguments<'_>) -> Holds {
        let mut request = Vec::new();
        let words = arguments.to_owned();
        words.write_request(&mut request);
        self.input += request.len();
        self.arguments += words.bytes();
        self
    }
}

/// Bytes of a name in two sets, of its client and of its loop, besides its own.
const NAME_BYTES: usize = 64;

/// All that a client takes, in bytes.
pub(crate) fn total(client: &Client, holds: Holds) -> usize {
    let topics = client.topics.as_ref();
    let names = |topic| topics.map_or(0, |topics| topics.names(topic).len());
    let count = Topic::ALL.into_iter().map(names).sum::<usize>();
    let prefixes = client.tracking.as_ref().and_then(|tracking| tracking.prefixes.as_deref());
    holds.connection
        + client.name.len()
        + topics.map_or(0, |topics| topics.bytes)
        + count * NAME_BYTES
        + prefixes.into_iter().flatten().map(|prefix| prefix.len() + NAME_BYTES).sum::<usize>()
        + client.watched.bytes()
        + client.nodes.as_ref().map_or(0, |nodes| nodes.peer.bytes())
        + holds.input
        + holds.input_room
        + holds.arguments
        + client.queue.as_ref().map_or(0, |queue| queue.bytes)
        + holds.output_buffer
}

/// The line that CLIENT LIST and INFO say of a client.
pub(crate) fn line(client: &Client, holds: Holds) -> String {
    let Holds { descriptor, input, input_room, arguments, output, output_buffer, .. } = holds;
    let Client { id, address, local_address, .. } = client;
    let mut text = format!("id={id} addr={address} laddr={local_address} fd={descriptor} name=");
    text.push_str(&String::from_utf8_lossy(&client.name));
    let topics = |topic| client.topics.as_ref().map_or(0, |topics| topics.names(topic).count());
    let queued = client.queue.as_ref();
    let queue = queued.map_or(0, |queue| queue.bytes);
    let command = match client.command {
        None => "NULL".to_owned(),
        Some((command, "")) => command.to_owned(),
        Some((command, word)) => format!("{command}|{word}"),
    };
    let _ = write!(
        text,
        " age={} idle={} flags={} db={} sub={} psub={} ssub={} multi={} qbuf={input} qbuf-free={input_room} \
         argv-mem={arguments} multi-mem={queue} rbs={output_buffer} rbp={output_buffer} obl={output} oll=0 \
         omem={output_buffer} tot-mem={} events=r cmd={command} user={} redir={} resp={}",
        client.since.elapsed().as_secs(),
        client.active.elapsed().as_secs(),
        flags(client),
        client.database,
        topics(Topic::Channel),
        topics(Topic::Pattern),
        topics(Topic::Shard),
        queued.map_or(-1, |queue| queue.commands.len() as i64),
        total(client, holds),
        client.user_name(),
        redirected(client.tracking.as_ref()),
        client.protocol.number(),
    );
    text.push('\n');
    text
}

fn flags(client: &Client) -> String {
    let all = [
        (client.monitors, 'O'),
        (client.topics.is_some(), 'P'),
        (client.queue.is_some(), 'x'),
        (client.parked.as_ref().is_some_and(|parked| parked.gives_up), 'b'),
        (client.tracking.is_some(), 't'),
        (client.has_lost_target(), 'R'),
        (client.tracking.as_ref().is_some_and(|tracking| tracking.prefixes.is_some()), 'B'),
        (client.closing, 'c'),
        (client.address.starts_with('/'), 'U'),
        (client.keeps_memory, 'e'),
        (client.leaves_untouched, 'T'),
    ];
    let text: String = all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, letter)| letter).collect();
    if text.is_empty() {
        "N".to_owned()
    } else {
        text
    }
}
