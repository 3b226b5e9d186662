//! Rows of messages.

use crate::command::*;
use crate::commands::pubsub;
use crate::handler::{on_connection, on_keys};

const GROUP: &str = "pubsub";
const SUBSCRIBES: u32 = PUBSUB | NOSCRIPT | SUBSCRIBED;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("psubscribe", -2, SUBSCRIBES, GROUP, pubsub::subscribe, "Subscribes to channels by patterns")
        .channels(Channels::Patterns),
    on_keys("publish", 3, PUBSUB | FAST | POSTS, NONE, GROUP, pubsub::publish, "Sends a message to a channel")
        .channels(Channels::First),
    on_keys("pubsub", -2, PUBSUB | LONG, NONE, GROUP, pubsub::pubsub, "Says who is subscribed to what")
        .with(&["channels", "help", "numpat", "numsub", "shardchannels", "shardnumsub"]),
    on_connection("punsubscribe", -1, SUBSCRIBES, GROUP, pubsub::unsubscribe, "Ends subscriptions to patterns"),
    on_keys("spublish", 3, PUBSUB | FAST | POSTS, ONE, GROUP, pubsub::publish, "Sends a message to a channel of a shard")
        .channels(Channels::First),
    on_connection("ssubscribe", -2, SUBSCRIBES, GROUP, pubsub::subscribe, "Subscribes to channels of a shard").at(ALL)
        .channels(Channels::All),
    on_connection("subscribe", -2, SUBSCRIBES, GROUP, pubsub::subscribe, "Subscribes to channels")
        .channels(Channels::All),
    on_connection("sunsubscribe", -1, SUBSCRIBES, GROUP, pubsub::unsubscribe, "Ends subscriptions to channels of a shard").at(ALL),
    on_connection("unsubscribe", -1, SUBSCRIBES, GROUP, pubsub::unsubscribe, "Ends subscriptions to channels"),
];
