//! A connection: its socket, what has arrived and not been understood, what waits to be sent.
//!
//! Invariants
//! - While [`PENDING_BYTES`] of replies wait, nothing more is read or run: a client that does not read
//!   its replies stops itself, and costs no more memory.
//! - An idle connection keeps no buffers.
//! - No reply is sent before what its command has written is as durable as the database's level wants.
//! - Replies beyond the hard limit of client-output-buffer-limit are not kept, and none of them is sent: the connection is
//!   cut off. Neither is more kept of requests than client-query-buffer-limit allows.
//! - While the client is parked nothing of it is read or run: what it sends waits in the kernel.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use perilune_resp::{Progress, Replies, RequestParser};

use crate::client::{Client, Parked, ReplyMode};
use crate::client_list::Holds;
use crate::limits::{
    PENDING_BYTES, READ_BYTES, ROOM_BYTES, SAID, SAID_BYTES, SUBSCRIBED_AT_ONCE, TURN, TURNS,
};
use crate::loop_state::{Buffers, LoopState};
use crate::rest::{Pending, Work};
use crate::settings::Name;
use perilune_net::stream::Stream;
use perilune_net::weights::Weight;

/// What becomes of a connection when it has been served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It waits for the kernel.
    Waits,
    /// It has more to do; others first.
    Again,
    /// What it has to say waits until what its commands have written is durable.
    Held,
    /// It waits for the kernel, and what it has to say may leave with what others have to say.
    Said,
    /// It has ended.
    Ended,
    /// It has more waiting than its limits allow: it ends, and nothing of that is sent.
    Cut,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) stream: Stream,
    pub(crate) client: Client,
    parser: RequestParser,
    /// What has arrived and has not been run.
    input: Vec<u8>,
    /// There may be whole requests in it.
    unrun: bool,
    /// Replies that the kernel has not taken yet, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// What the kernel has taken and is not counted yet.
    went: u64,
    /// Replies from here on are not sent before the loop has seen to it that what they tell is durable.
    held: Option<usize>,
    /// The kernel may have more to read, or room to write.
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The client will send no more.
    pub(crate) hung_up: bool,
    /// What its commands have taken in the visit under way.
    spent: Duration,
    /// Its end has been decided.
    pub(crate) is_doomed: bool,
    /// It is among those to whom letters have given something to send.
    pub(crate) is_given: bool,
    /// The second, as its loop counts them for `timeout`, in which it was served last.
    pub(crate) served: u64,
    /// Since when more waits to be sent than the soft limit of its class allows.
    slow_since: Option<Instant>,
    /// What it takes, as its server has counted it.
    pub(crate) weight: Option<Weight>,
}

impl Connection {
    /// `bulk_bytes`: of an argument at most.
    pub(crate) fn new(stream: Stream, client: Client, bulk_bytes: usize) -> Connection {
        Connection {
            stream,
            client,
            parser: RequestParser::new(bulk_bytes),
            input: Vec::new(),
            unrun: false,
            output: Vec::new(),
            sent: 0,
            went: 0,
            held: None,
            readable: true,
            writable: true,
            hung_up: false,
            spent: Duration::ZERO,
            is_doomed: false,
            is_given: false,
            served: 0,
            slow_since: None,
            weight: None,
        }
    }

    /// Reads, runs and answers as much as there is, for a while.
    pub(crate) fn serve(&mut self, loop_state: &mut LoopState) -> Outcome {
        self.spent = Duration::ZERO;
        for _ in 0..TURNS {
            match self.turn(loop_state) {
                Ok(Outcome::Again) if self.spent < TURN => {}
                Ok(outcome) => return outcome,
                Err(_) => return Outcome::Ended,
            }
        }
        Outcome::Again
    }

    fn turn(&mut self, loop_state: &mut LoopState) -> io::Result<Outcome> {
        if self.held.is_some() {
            // The loop knows of it already.
            return Ok(Outcome::Waits);
        }
        self.bound(loop_state);
        if self.output.len() >= self.client.replies_end {
            return Ok(Outcome::Cut);
        }
        // Replies of a pipeline that was interrupted by a command aside go together.
        if self.pending() > 0 && (!self.unrun || self.pending() > PENDING_BYTES) {
            self.send()?;
        }
        if self.pending() > PENDING_BYTES {
            return Ok(Outcome::Waits);
        }
        if self.client.closing && self.client.parked.is_none() {
            return Ok(if self.pending() == 0 { Outcome::Ended } else { Outcome::Waits });
        }
        if let Some(parked) = &self.client.parked {
            return Ok(if parked.gives_up && self.hung_up { Outcome::Ended } else { Outcome::Waits });
        }
        // Requests that were not run because the connection had to wait come before new ones.
        let (mut bytes, end) = if self.unrun {
            let bytes = std::mem::take(&mut self.input);
            let end = bytes.len();
            (bytes, end)
        } else if self.readable {
            let kept = std::mem::take(&mut self.input);
            match self.receive(kept, &mut loop_state.lent)? {
                Some(received) => received,
                None => return Ok(if self.client.closing { Outcome::Again } else { Outcome::Waits }),
            }
        } else {
            return Ok(Outcome::Waits);
        };
        let said = self.output.len();
        let used = self.run(loop_state, &bytes[..end]);
        self.keep(&mut bytes, used..end, &mut loop_state.lent);
        let most = loop_state.server.live.number(Name::ClientQueryBufferLimit) as usize;
        if self.output.len() >= self.client.replies_end || self.input.len() > most {
            return Ok(Outcome::Cut);
        }
        if loop_state.is_unsettled() {
            self.held = Some(said);
            return Ok(Outcome::Held);
        }
        let more = self.unrun || self.readable || self.client.closing;
        if self.client.aside.is_none() {
            if !more && self.pending() <= SAID_BYTES {
                return Ok(Outcome::Said);
            }
            self.send()?;
        }
        Ok(if more { Outcome::Again } else { Outcome::Waits })
    }

    /// Reads into the thread's buffer, or behind what the connection has kept, and answers that and where
    /// what has come ends; none when nothing came.
    fn receive(&mut self, mut kept: Vec<u8>, lent: &mut Buffers) -> io::Result<Option<(Vec<u8>, usize)>> {
        let (mut buffer, start) = if kept.is_empty() {
            (std::mem::take(&mut lent.input), 0)
        } else {
            let start = kept.len();
            // NB: the room is filled with zeros for each read, so it is no more than a read may fill.
            let missing = self.parser.missing(start);
            let room = missing.clamp(READ_BYTES, ROOM_BYTES);
            if kept.capacity() - start < room {
                // Twice as much as before, but no more than is missing: what nothing will come into counts as well.
                kept.reserve_exact(room.max(missing.min(start)));
            }
            kept.resize(start + room, 0);
            (kept, start)
        };
        let outcome = loop {
            match self.stream.read(&mut buffer[start..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                outcome => break outcome,
            }
        };
        let came = match outcome {
            Ok(0) => {
                self.readable = false;
                // What was asked before the end is answered first.
                self.client.closing = true;
                0
            }
            Ok(came) => {
                // Edge-triggered: a read that did not fill its buffer has emptied the socket, unless the
                // end has come, too: that is told once, with the bytes before it.
                let has_ended = self.hung_up || self.stream.has_ended();
                self.readable = start + came == buffer.len() || has_ended;
                lent.traffic.came += came as u64;
                came
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                0
            }
            Err(error) => {
                // The buffer is the thread's: without it the next connection would seem to have ended.
                self.keep(&mut buffer, 0..start, lent);
                return Err(error);
            }
        };
        if came > 0 {
            return Ok(Some((buffer, start + came)));
        }
        self.keep(&mut buffer, 0..start, lent);
        Ok(None)
    }

    /// Runs the requests in `bytes`, and answers how many bytes they took.
    fn run(&mut self, loop_state: &mut LoopState, bytes: &[u8]) -> usize {
        self.borrow(&mut loop_state.lent);
        self.bound(loop_state);
        let (mut used, mut commands) = (0, 0);
        self.unrun = false;
        let (now, clock) = loop_state.clocks.read();
        self.client.begin_visit_at(now, clock);
        // Each command notes when it has ended.
        let until = now + TURN.saturating_sub(self.spent);
        while used < bytes.len() && !self.client.closing {
            if self.client.parked.is_some() || self.pending() > PENDING_BYTES || self.client.active > until {
                self.unrun = true;
                break;
            }
            if self.output.len() >= self.client.replies_end {
                break;
            }
            match self.parser.parse(&bytes[used..], self.client.authenticated) {
                Ok(Progress::Incomplete) => break,
                Ok(Progress::Complete { used: length }) => {
                    let arguments = self.parser.arguments(&bytes[used..]);
                    if !arguments.is_empty() && loop_state.holds_back(&mut self.client, arguments) {
                        self.unrun = true;
                        break;
                    }
                    used += length;
                    if !arguments.is_empty() {
                        let start = self.output.len();
                        let tracks = self.client.tracking.is_some();
                        if tracks {
                            loop_state.remember(&mut self.client, arguments);
                        }
                        if !loop_state.run(&mut self.client, arguments, &mut self.output) {
                            used -= length;
                            self.unrun = true;
                            break;
                        }
                        if tracks != self.client.tracking.is_some() {
                            loop_state.switch_tracking(&mut self.client);
                        }
                        self.put_off_changes(loop_state, start);
                        if loop_state.carry_out(&self.client).is_err() {
                            // The tree does not say what the client has just been told.
                            self.client.closing = true;
                        }
                        self.silence(start);
                        commands += 1;
                    }
                }
                Err(error) => {
                    let mut replies = Replies::new(&mut self.output, self.client.protocol);
                    replies.error(&format!("ERR {error}"));
                    self.client.closing = true;
                }
            }
        }
        loop_state.server.statistics.count_commands(self.client.seat.thread, commands);
        self.spent += self.client.active.saturating_duration_since(now);
        used
    }

    /// The end of its replies.
    pub(crate) fn said(&self) -> usize {
        self.output.len()
    }

    /// Has a command that changes many subscriptions at once, an EXEC, answered when they are so: its reply begins at `start`.
    pub(crate) fn put_off_changes(&mut self, loop_state: &mut LoopState, start: usize) {
        if loop_state.effects.subscriptions.len() > SUBSCRIBED_AT_ONCE {
            let changes = std::mem::take(&mut loop_state.effects.subscriptions);
            let reply = self.output.split_off(start.max(self.sent));
            self.client.put_off(Work::Pending(Pending::of_changes(changes), reply));
        }
    }

    /// Takes over how long its replies may be.
    fn bound(&mut self, loop_state: &LoopState) {
        let most = loop_state.server.live.hard_limit(self.client.output_class());
        self.client.replies_end = self.sent.saturating_add(most);
    }

    /// Lets go what was held back until it was durable. If it is not, one error takes the place of what would have
    /// told that it is, and the connection ends.
    pub(crate) fn release(&mut self, failure: Option<&str>) -> Outcome {
        let Some(said) = self.held.take() else { return Outcome::Waits };
        if let Some(text) = failure {
            self.output.truncate(said.max(self.sent));
            Replies::new(&mut self.output, self.client.protocol).error(text);
            self.client.closing = true;
        }
        if self.send().is_err() {
            return Outcome::Ended;
        }
        let more = self.unrun || self.readable || self.hung_up || self.client.closing;
        if more {
            Outcome::Again
        } else {
            Outcome::Waits
        }
    }

    /// Takes back the reply that begins at `start`, if CLIENT REPLY says so.
    fn silence(&mut self, start: usize) {
        if self.client.reply_mode == ReplyMode::On || self.client.parked.is_some() {
            return;
        }
        // That a subscription begins or ends is no reply but a message, as Redis has it.
        if !self.client.command.is_some_and(|(name, _)| name.ends_with("subscribe")) {
            self.output.truncate(start.max(self.sent));
        }
        self.client.reply_mode = match self.client.reply_mode {
            ReplyMode::SkipsNext => ReplyMode::Skips,
            ReplyMode::Skips => ReplyMode::On,
            other => other,
        };
    }

    /// Whether nothing of it is under way, so that another loop can go on with it.
    pub(crate) fn is_movable(&self) -> bool {
        let is_quiet = self.held.is_none() && !self.unrun && self.pending() == 0;
        is_quiet && !self.hung_up && !self.client.closing && !self.is_slow() && self.client.is_movable()
    }

    /// Replies that wait to be sent, in bytes.
    pub(crate) fn waiting(&self) -> usize {
        self.pending()
    }

    /// What it holds, for CLIENT LIST.
    pub(crate) fn holds(&self) -> Holds {
        Holds {
            connection: size_of::<Connection>(),
            descriptor: self.stream.descriptor(),
            input: self.input.len(),
            input_room: self.input.capacity() - self.input.len(),
            arguments: self.client.aside.as_ref().map_or(0, |aside| aside.1.bytes()),
            output: self.pending(),
            output_buffer: self.output.capacity(),
        }
    }

    /// Takes one of the thread's buffers for replies, if it has none of its own.
    fn borrow(&mut self, lent: &mut Buffers) {
        if self.output.capacity() == 0 {
            self.output = lent.outputs.pop().unwrap_or_default();
        }
    }

    /// Appends the reply to the command that it is parked on, if that is by this ticket.
    pub(crate) fn answer(&mut self, ticket: u64, reply: Vec<u8>) -> Option<Parked> {
        let parked = self.client.unpark(ticket)?;
        let start = self.output.len();
        if self.output.is_empty() {
            self.output = reply;
        } else {
            self.output.extend_from_slice(&reply);
        }
        self.silence(start);
        Some(parked)
    }

    /// Appends what belongs to no request.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    /// What its class may leave unread: whether that is within the limits. Beyond the soft one it may be for so many
    /// seconds; a limit of 0 is none.
    pub(crate) fn is_within(&mut self, [hard, soft, seconds]: [i64; 3]) -> bool {
        let waiting = self.pending() as i64;
        if soft == 0 || waiting < soft {
            self.slow_since = None;
        } else if self.slow_since.get_or_insert_with(Instant::now).elapsed().as_secs() as i64
            >= seconds.max(1)
        {
            return false;
        }
        hard == 0 || waiting < hard
    }

    /// Whether it is beyond its soft limit.
    pub(crate) fn is_slow(&self) -> bool {
        self.slow_since.is_some()
    }

    /// Keeps what is left in `bytes`, and gives the thread its buffer back.
    fn keep(&mut self, bytes: &mut Vec<u8>, left: Range<usize>, lent: &mut Buffers) {
        if left.is_empty() {
            let bytes = std::mem::take(bytes);
            if lent.input.is_empty() {
                lent.input = bytes;
            }
            self.parser.shrink();
            return;
        }
        if lent.input.is_empty() {
            self.input = bytes[left].to_vec();
            // NB: it stays as long as it is; to fill it with zeros each time would cost more than a command.
            lent.input = std::mem::take(bytes);
        } else {
            bytes.truncate(left.end);
            bytes.drain(..left.start);
            self.input = std::mem::take(bytes);
        }
    }

    fn pending(&self) -> usize {
        self.output.len() - self.sent + usize::from(self.stream.has_unsent())
    }

    /// Sends what the kernel takes.
    fn send(&mut self) -> io::Result<()> {
        while self.writable && self.stream.has_unsent() {
            match self.stream.flush() {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        while self.writable && self.sent < self.output.len() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(taken) => {
                    self.sent += taken;
                    self.went += taken as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.writable = false,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.sent == self.output.len() {
            self.output.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Gives the buffer of replies back when it is empty, and tells what has been sent.
    pub(crate) fn settle(&mut self, lent: &mut Buffers) {
        lent.traffic.went += std::mem::take(&mut self.went);
        if self.output.is_empty() && self.output.capacity() > 0 {
            let mut output = std::mem::take(&mut self.output);
            if lent.outputs.len() < SAID {
                output.shrink_to(READ_BYTES);
                lent.outputs.push(output);
            }
        }
    }

    /// Sends what waits, when others do so, too.
    pub(crate) fn speak(&mut self) -> Outcome {
        if self.held.is_none() && self.send().is_err() {
            return Outcome::Ended;
        }
        Outcome::Waits
    }

    /// Sends what waits, before a command that takes long. If that fails, the next visit tells.
    pub(crate) fn flush(&mut self) {
        if self.held.is_none() {
            let _ = self.send();
        }
    }

    /// Lets go of all that waits to be sent: nobody is to get it.
    pub(crate) fn discard(&mut self) {
        self.output.truncate(self.sent);
        self.held = None;
    }

    /// Sends what waits, and nothing more.
    pub(crate) fn finish(&mut self) {
        if let Some(said) = self.held.take() {
            // Who ends now is not told what may yet be undone.
            self.output.truncate(said.max(self.sent));
        }
        self.writable = true;
        let _ = self.send();
        if let Stream::Tls(stream) = &mut self.stream {
            stream.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use mio::net::UnixStream;

    use super::*;

    #[test]
    fn what_is_not_durable_is_not_told() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let client = Client::new(1, (String::new(), String::new()), true, true);
        let mut connection = Connection::new(Stream::Unix(ours), client, READ_BYTES);
        connection.output.extend_from_slice(b"+BEFORE\r\n+OK\r\n+OK\r\n");
        connection.held = Some(9);
        assert_eq!(connection.release(Some("MISCONF not on disk")), Outcome::Again);
        assert!(connection.client.closing);
        let mut buffer = [0; 100];
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+BEFORE\r\n-MISCONF not on disk\r\n");
        connection.output.extend_from_slice(b"+KEPT\r\n+OK\r\n");
        connection.held = Some(7);
        connection.finish();
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+KEPT\r\n", "who ends is told no more than what is durable");
        connection.output.extend_from_slice(b"+OK\r\n");
        connection.held = Some(0);
        let _ = connection.release(None);
        let came = theirs.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..came], b"+OK\r\n");
    }
}
