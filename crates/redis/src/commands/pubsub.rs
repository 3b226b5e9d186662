//! SUBSCRIBE and its kin, PUBLISH, SPUBLISH, PUBSUB.
//!
//! A client's own list changes at once; the loop's table, and the tree's, when the command has committed. Of many names some
//! are changed, and the rest in slices (`rest`).

use std::collections::HashSet;
use std::sync::Arc;

use perilune_resp::{Arguments, Replies};

use crate::client::Client;
use crate::context::Context;
use crate::effects::Effects;
use crate::failure::{refuse, refuse_with, Result};
use crate::keyspace::Keys;
use crate::leftovers::Work;
use crate::limits::{SUBSCRIBED_AT_ONCE, SUBSCRIBED_BYTES};
use crate::numbers::lower;
use crate::pattern;
use crate::refusals::wrong_number;
use crate::settings::Name;
use crate::subscribers;
use crate::subscriptions::Topics;
use crate::topic::Topic;

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

/// Whether a client may be subscribed to these names, too.
fn admit(context: &Context<'_>, topic: Topic, names: Arguments<'_>) -> Result<()> {
    let none = Topics::default();
    let topics = context.client.topics.as_deref().unwrap_or(&none);
    let most = usize::try_from(context.server.rules().live().number(Name::ClientSubscriptionsLimit))
        .unwrap_or(usize::MAX);
    if topics.total() + names.len() <= most && topics.bytes + names.extent() <= SUBSCRIBED_BYTES {
        return Ok(());
    }
    // Only what is not there yet counts.
    let new: HashSet<&[u8]> = names.iter().filter(|name| !topics.has(topic, name)).collect();
    if topics.total() + new.len() > most {
        return refuse_with(format!(
            "ERR a client may be subscribed to {most} names: use several connections, or patterns, or raise \
             client-subscriptions-limit"
        ));
    }
    if topics.bytes + new.iter().map(|name| name.len()).sum::<usize>() > SUBSCRIBED_BYTES {
        return refuse("ERR the names that this client is subscribed to take too much memory");
    }
    Ok(())
}

/// SUBSCRIBE, PSUBSCRIBE, SSUBSCRIBE.
pub(crate) fn subscribe(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (topic, word) = topic_of(&arguments[0]);
    if context.server.number() == 0 {
        return refuse("ERR the database takes no writes, so that nobody can publish: open it for writing");
    }
    let names = arguments.from(1);
    admit(context, topic, names)?;
    change_some(context, (topic, word, true), names, replies);
    Ok(())
}

/// UNSUBSCRIBE, PUNSUBSCRIBE, SUNSUBSCRIBE: from some names, or from all.
pub(crate) fn unsubscribe(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (topic, word) = topic_of(&arguments[0]);
    if arguments.len() > 1 {
        change_some(context, (topic, word, false), arguments.from(1), replies);
        return Ok(());
    }
    let topics = context.client.topics.as_deref();
    let count = topics.map_or(0, |topics| topics.names(topic).len());
    if count == 0 {
        told(replies, &word, None, topics.map_or(0, |topics| topics.count(topic)));
    } else if count > SUBSCRIBED_AT_ONCE && context.may_park {
        context.put_off(Work::All { topic, word });
    } else {
        leave_some(context.client, context.effects, topic, &word, count, replies);
    }
    Ok(())
}

/// Enters or leaves names: as many as can be done at once, where the others may wait.
fn change_some(
    context: &mut Context<'_>,
    (topic, word, is_in): (Topic, String, bool),
    names: Arguments<'_>,
    replies: &mut Replies<'_>,
) {
    let next = if context.may_park { SUBSCRIBED_AT_ONCE } else { usize::MAX };
    change(context.client, context.effects, Change { topic, word: &word, is_in }, names.first(next), replies);
    if names.len() > next {
        context.put_off(Work::Names { topic, word, is_in, names: names.to_owned(), next });
    }
}

/// Which subscriptions begin, or end, and the word of the replies.
#[derive(Clone, Copy)]
pub(crate) struct Change<'a> {
    pub(crate) topic: Topic,
    pub(crate) word: &'a str,
    pub(crate) is_in: bool,
}

/// Subscribes the client to all of these names, or ends that, and replies once for each.
pub(crate) fn change(
    client: &mut Client,
    effects: &mut Effects,
    Change { topic, word, is_in }: Change<'_>,
    names: Arguments<'_>,
    replies: &mut Replies<'_>,
) {
    let topics = Arc::make_mut(client.topics.get_or_insert_default());
    for name in names.iter() {
        if if is_in { topics.add(topic, name) } else { topics.remove(topic, name) } {
            effects.subscriptions.push((topic, name.to_vec(), is_in));
        }
        told(replies, word, Some(name), topics.count(topic));
    }
    forget_if_empty(client);
}

/// Leaves the first names of a topic; false: there is none any more.
pub(crate) fn leave_some(
    client: &mut Client,
    effects: &mut Effects,
    topic: Topic,
    word: &str,
    most: usize,
    replies: &mut Replies<'_>,
) -> bool {
    let Some(topics) = client.topics.as_mut().map(Arc::make_mut) else { return false };
    let names: Vec<_> = topics.names(topic).take(most).cloned().collect();
    for name in names {
        topics.remove(topic, &name);
        told(replies, word, Some(&name), topics.count(topic));
        effects.subscriptions.push((topic, name, false));
    }
    let is_more = topics.names(topic).len() > 0;
    forget_if_empty(client);
    is_more
}

fn forget_if_empty(client: &mut Client) {
    if client.topics.as_ref().is_some_and(|topics| topics.is_empty()) {
        client.topics = None;
    }
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
