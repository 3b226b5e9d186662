//! Redis's protocol, as the connections of `perilune_net` know one: bytes in, requests out; requests in, replies out.
//!
//! A connection has a socket and buffers, and knows nothing of what is in them. The loop's own things ([`LoopState`]) take a
//! request from the bytes, have it run, and see to what it did besides its reply.
//!
//! ```text
//! *2 $3 GET $1 a      parsed     Waits for nothing? Not held back by CLIENT PAUSE?
//!                     run        the gate; the reply is behind those before it
//!                     carried    letters to other loops, timers, subscriptions
//! ```
//!
//! Invariants
//! - A request that is put off has done nothing, and its bytes stay where they are.
//! - What a client is told of its subscriptions the tree says as well, or its connection ends.
//!
//! Deliberately absent: reading, sending and how much of it at a time, which is the same for all protocols.

use std::time::Instant;

use perilune_resp::{Replies, RequestParser};

use crate::client::{Client, Parked, ReplyMode};
use crate::client_list::Holds;
use crate::loop_state::LoopState;
use crate::settings::Name;
use perilune_net::connection::Held;
use perilune_net::protocol::{self, Bounds, Output, Progress, Protocol, Waits};
use perilune_net::seat::Seat;

/// A connection of one of Redis's clients.
pub(crate) type Connection = perilune_net::connection::Connection<LoopState>;

impl protocol::Client for Client {
    #[inline]
    fn is_closing(&self) -> bool {
        self.closing
    }

    fn close(&mut self) {
        self.closing = true;
    }

    #[inline]
    fn seat(&self) -> Seat {
        self.seat
    }

    fn sit(&mut self, seat: Seat) {
        self.seat = seat;
    }

    #[inline]
    fn waits(&self) -> Waits {
        match &self.parked {
            None => Waits::No,
            Some(parked) if parked.gives_up => Waits::WhileThere,
            Some(_) => Waits::Yes,
        }
    }

    #[inline]
    fn goes_aside(&self) -> bool {
        self.aside.is_some()
    }

    fn is_movable(&self) -> bool {
        Client::is_movable(self)
    }

    #[inline]
    fn bound(&mut self, end: usize) {
        self.replies_end = end;
    }
}

impl Protocol for LoopState {
    type Client = Client;
    type Reader = RequestParser;

    #[inline]
    fn request(
        &mut self,
        client: &mut Client,
        parser: &mut RequestParser,
        bytes: &[u8],
        output: &mut Output<'_>,
    ) -> Progress {
        let length = match parser.parse(bytes, client.authenticated) {
            Ok(perilune_resp::Progress::Incomplete) => return Progress::Incomplete,
            Ok(perilune_resp::Progress::Complete { used }) => used,
            Err(error) => {
                Replies::new(output.bytes, client.protocol).error(&format!("ERR {error}"));
                client.closing = true;
                return Progress::Incomplete;
            }
        };
        let arguments = parser.arguments(bytes);
        if arguments.is_empty() {
            return Progress::Ran(length);
        }
        if self.holds_back(client, arguments) {
            return Progress::Later;
        }
        if bytes.len() > length && self.may_gather(arguments) {
            if let Some(progress) = self.run_together(client, arguments, length, bytes, output) {
                return progress;
            }
        }
        let (start, tracks) = (output.bytes.len(), client.tracking.is_some());
        if tracks {
            self.remember(client, arguments);
        }
        if !self.run(client, arguments, output.bytes) {
            return Progress::Later;
        }
        if tracks != client.tracking.is_some() {
            self.switch_tracking(client);
        }
        if self.carry_out(client, output, start).is_err() {
            // The tree does not say what the client has just been told.
            client.closing = true;
        }
        if client.reply_mode != ReplyMode::On {
            silence(client, output, start);
        }
        self.commands += 1;
        Progress::Ran(length)
    }

    fn missing(parser: &RequestParser, kept: usize) -> usize {
        parser.missing(kept)
    }

    #[inline]
    fn shrink(parser: &mut RequestParser) {
        parser.shrink();
    }

    #[inline]
    fn begin(&mut self, client: &mut Client) -> Instant {
        let (now, clock) = self.clocks.read();
        client.begin_visit_at(now, clock);
        now
    }

    #[inline]
    fn ended(&self, client: &Client) -> Instant {
        client.active
    }

    #[inline]
    fn end(&mut self, client: &mut Client) {
        let commands = std::mem::take(&mut self.commands);
        self.server.measures().statistics().count_commands(client.seat.thread, commands);
    }

    #[inline]
    fn bounds(&self, client: &Client) -> Bounds {
        let live = self.server.rules().live();
        Bounds {
            requests: live.number(Name::ClientQueryBufferLimit) as usize,
            replies: live.hard_limit(client.output_class()),
        }
    }

    #[inline]
    fn is_unsettled(&self) -> bool {
        LoopState::is_unsettled(self)
    }

    fn refuse(client: &mut Client, why: &str, output: &mut Output<'_>) {
        Replies::new(output.bytes, client.protocol).error(why);
    }
}

/// Takes back the reply that begins at `start`, if CLIENT REPLY says so.
fn silence(client: &mut Client, output: &mut Output<'_>, start: usize) {
    if client.parked.is_some() {
        return;
    }
    // That a subscription begins or ends is no reply but a message, as Redis has it.
    if !client.command.is_some_and(|(name, _)| name.ends_with("subscribe")) {
        output.rewind(start);
    }
    client.reply_mode = match client.reply_mode {
        ReplyMode::SkipsNext => ReplyMode::Skips,
        ReplyMode::Skips => ReplyMode::On,
        other => other,
    };
}

/// Appends the reply to the command that a connection is parked on, if that is by this ticket.
pub(crate) fn answer(connection: &mut Connection, ticket: u64, reply: Vec<u8>) -> Option<Parked> {
    let parked = connection.client.unpark(ticket)?;
    let start = connection.said();
    connection.append(reply);
    let (client, mut output) = connection.parts();
    if client.reply_mode != ReplyMode::On {
        silence(client, &mut output, start);
    }
    Some(parked)
}

/// What a connection holds, for CLIENT LIST.
pub(crate) fn holds(connection: &Connection) -> Holds {
    let Held { descriptor, input, input_room, output, output_buffer } = connection.holds();
    Holds {
        connection: size_of::<Connection>(),
        descriptor,
        input,
        input_room,
        arguments: connection.client.aside.as_ref().map_or(0, |aside| aside.1.bytes()),
        output,
        output_buffer,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use mio::net::UnixStream;
    use perilune_net::connection::Outcome;
    use perilune_net::stream::Stream;

    use super::*;

    #[test]
    fn what_is_not_durable_is_not_told() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let client = Client::new(1, String::new(), String::new(), true, true);
        let mut connection = Connection::new(Stream::Unix(ours), client, RequestParser::new(1 << 16));
        connection.push(b"+BEFORE\r\n+OK\r\n+OK\r\n");
        connection.hold(9);
        assert_eq!(connection.release(Some("MISCONF not on disk")), Outcome::Again);
        assert!(connection.client.closing);
        let mut buffer = [0; 100];
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+BEFORE\r\n-MISCONF not on disk\r\n");
        connection.push(b"+KEPT\r\n+OK\r\n");
        connection.hold(7);
        connection.finish();
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+KEPT\r\n", "who ends is told no more than what is durable");
        connection.push(b"+OK\r\n");
        connection.hold(0);
        let _ = connection.release(None);
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+OK\r\n");
    }
}
