//! SUBSCRIBE and its kin, PUBLISH, SPUBLISH, PUBSUB.
//!
//! A client's own list changes at once; the loop's table, and the tree's, when the command has committed.

use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, refuse_with, Result};
use crate::gate::{wrong_number, Context};
use crate::keyspace::Keys;
use crate::limits::SUBSCRIBED_BYTES;
use crate::numbers::lower;
use crate::pattern;
use crate::subscribers::{self, Topic};

const HELP: &[&str] = &[
    "PUBSUB <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "CHANNELS [<pattern>]",
    "    Say which channels have subscribers, on any server.",
    "NUMPAT",
    "    Say how many patterns are subscribed to.",
    "NUMSUB [<channel> ...]",
    "    Say how many subscribers channels have, those of patterns apart.",
    "SHARDCHANNELS [<pattern>]",
    "    Say which channels of shards have subscribers.",
    "SHARDNUMSUB [<shardchannel> ...]",
    "    Say how many subscribers channels of shards have.",
    "HELP",
    "    Print this help.",
];

/// The topic that a command is about, by the first letter of its name, and its answer's first word.
fn topic_of(name: &[u8]) -> (Topic, String) {
    let word = String::from_utf8_lossy(&lower(name)).into_owned();
    let topic = match word.as_bytes() {
        [b'p', b's' | b'u', ..] => Topic::Pattern,
        [b's', b's' | b'u' | b'p', b'u' | b'n', b'b' | b's', ..] if word != "subscribe" => Topic::Shard,
        _ => Topic::Channel,
    };
    (topic, word)
}

fn told(replies: &mut Replies<'_>, word: &str, name: Option<&[u8]>, count: usize) {
    replies.push(3);
    replies.bulk(word.as_bytes());
    replies.bulk_or_null(name);
    replies.count(count);
}

/// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE.
pub(crate) fn subscribe(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (topic, word) = topic_of(&arguments[0]);
    if context.server.number == 0 {
        return refuse("ERR the database takes no writes, so that nobody can publish: open it for writing");
    }
    for name in arguments.from(1).iter() {
        let topics = context.client.topics.get_or_insert_default();
        if topics.bytes + name.len() > SUBSCRIBED_BYTES {
            return refuse("ERR the names that this client is subscribed to take too much memory");
        }
        if topics.add(topic, name) {
            context.effects.subscriptions.push((topic, name.to_vec(), true));
        }
        told(replies, &word, Some(name), topics.count(topic));
    }
    Ok(())
}

/// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE: from some names, or from all.
pub(crate) fn unsubscribe(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (topic, word) = topic_of(&arguments[0]);
    let mut none = Box::default();
    let topics = context.client.topics.as_mut().unwrap_or(&mut none);
    let names: Vec<Vec<u8>> = match arguments.len() {
        1 => topics.names(topic).cloned().collect(),
        _ => arguments.from(1).iter().map(<[u8]>::to_vec).collect(),
    };
    if names.is_empty() {
        told(replies, &word, None, topics.count(topic));
    }
    for name in names {
        if topics.remove(topic, &name) {
            context.effects.subscriptions.push((topic, name.clone(), false));
        }
        told(replies, &word, Some(&name), topics.count(topic));
    }
    if context.client.topics.as_ref().is_some_and(|topics| topics.is_empty()) {
        context.client.topics = None;
    }
    Ok(())
}

/// PUBLISH, SPUBLISH.
pub(crate) fn publish(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let shard = arguments[0].first().is_some_and(|letter| letter.eq_ignore_ascii_case(&b's'));
    let topic = if shard { Topic::Shard } else { Topic::Channel };
    replies.integer(subscribers::publish(keys.session, keys.effects, topic, &arguments[1], &arguments[2])?);
    Ok(())
}

/// PUBSUB CHANNELS, NUMSUB, NUMPAT, SHARDCHANNELS, SHARDNUMSUB, HELP: over all servers.
pub(crate) fn pubsub(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let word = lower(&arguments[1]);
    match (&*word, arguments.len()) {
        (b"channels" | b"shardchannels", 2 | 3) => {
            let topic = if word.first() == Some(&b's') { Topic::Shard } else { Topic::Channel };
            let mut known = subscribers::known(keys.session, topic)?;
            if let Some(wanted) = arguments.get(2) {
                known.retain(|name| pattern::matches(wanted, name));
            }
            replies.array(known.len());
            known.iter().for_each(|name| replies.bulk(name));
        }
        (b"numsub" | b"shardnumsub", _) => {
            let topic = if word.first() == Some(&b's') { Topic::Shard } else { Topic::Channel };
            replies.array(2 * (arguments.len() - 2));
            for name in arguments.from(2).iter() {
                replies.bulk(name);
                replies.integer(subscribers::count(keys.session, topic, name)?);
            }
        }
        (b"numpat", 2) => replies.count(subscribers::known(keys.session, Topic::Pattern)?.len()),
        (b"help", 2) => super::help(HELP, replies),
        (b"numpat" | b"help", _) => {
            return refuse_with(wrong_number(&format!("pubsub|{}", String::from_utf8_lossy(&word))))
        }
        _ => {
            return refuse_with(format!(
                "ERR unknown subcommand or wrong number of arguments for '{}'. Try PUBSUB HELP.",
                String::from_utf8_lossy(&arguments[1])
            ))
        }
    }
    Ok(())
}
