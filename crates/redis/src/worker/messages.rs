//! Messages of channels, given to the connections that are subscribed.

use perilune_resp::Protocol;

use super::Worker;
use crate::topic::{Message, Topic};

/// Gives a message to the connections that are subscribed.
pub(super) fn deliver(worker: &mut Worker, message: &Message) {
    let tokens = worker.service.subscriptions.of_channel(message.topic, &message.channel);
    push_message(worker, message, None, &tokens);
    if message.topic == Topic::Channel {
        for (pattern, tokens) in worker.service.subscriptions.of_patterns(&message.channel) {
            push_message(worker, message, Some(&pattern), &tokens);
        }
    }
}

fn push_message(worker: &mut Worker, message: &Message, pattern: Option<&[u8]>, tokens: &[usize]) {
    let mut frames = [const { None }; 2];
    for token in tokens {
        let Some(connection) = worker.connection(*token) else { continue };
        if connection.is_doomed {
            continue;
        }
        let protocol = connection.client.protocol;
        let frame: &mut Option<Vec<u8>> = &mut frames[usize::from(protocol == Protocol::Resp3)];
        let frame = frame.get_or_insert_with(|| message.frame(protocol, pattern));
        connection.push(frame);
        if worker.is_within(*token) {
            worker.give(*token);
        }
    }
}
