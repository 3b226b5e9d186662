//! Messages of channels, given to the connections that are subscribed.

use perilune_resp::Protocol;

use super::Worker;
use crate::topic::{Message, Topic};

impl Worker {
    /// Gives a message to the connections that are subscribed.
    pub(super) fn deliver(&mut self, message: &Message) {
        let tokens = self.loop_state.subscriptions.of_channel(message.topic, &message.channel);
        self.push_message(message, None, &tokens);
        if message.topic == Topic::Channel {
            for (pattern, tokens) in self.loop_state.subscriptions.of_patterns(&message.channel) {
                self.push_message(message, Some(&pattern), &tokens);
            }
        }
    }

    fn push_message(&mut self, message: &Message, pattern: Option<&[u8]>, tokens: &[usize]) {
        let mut frames = [const { None }; 2];
        for token in tokens {
            let Some(Some(connection)) = self.connections.get_mut(*token) else { continue };
            if connection.is_doomed {
                continue;
            }
            let protocol = connection.client.protocol;
            let frame: &mut Option<Vec<u8>> = &mut frames[usize::from(protocol == Protocol::Resp3)];
            let frame = frame.get_or_insert_with(|| message.frame(protocol, pattern));
            connection.push(frame);
            if self.is_within(*token) {
                self.give(*token);
            }
        }
    }
}
