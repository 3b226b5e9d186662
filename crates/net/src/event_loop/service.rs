//! What an event loop asks of what it serves, besides running requests (`protocol`): whom it lets in, what letters mean, what
//! is done in each round.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::EventLoop;
use crate::connection::{Connection, Held};
use crate::crew::Crew;
use crate::protocol::Protocol;
use crate::stream::Stream;

/// Sockets that a service registers itself have tokens from here on, up to some thousand below the largest.
pub const OWN_TOKENS: usize = usize::MAX / 4;

/// Somebody who has connected.
#[derive(Clone, Debug)]
pub struct Comer {
    /// Where it comes from, and where it has arrived.
    pub address: String,
    /// See `address`.
    pub local_address: String,
    /// It is on this machine.
    pub is_local: bool,
}

/// What loops hand to each other.
#[derive(Debug)]
pub enum Handed<S: Protocol> {
    /// A new connection.
    Arrived(Box<(Stream, S::Client)>),
    /// A connection that another loop has had.
    Moved(Box<Connection<S>>),
    /// Another loop is to get some of this one's connections.
    Share {
        /// Which.
        with: usize,
    },
}

/// What a loop serves.
pub trait Service: Protocol {
    /// What other threads say to a loop.
    type Letter: From<Handed<Self>> + Send;

    /// What its loops share.
    fn crew(&self) -> &Crew<Self::Letter>;

    /// Lets somebody in.
    ///
    /// # Errors
    /// What is said to who is not let in.
    fn admit(&mut self, comer: Comer) -> Result<Self::Client, &'static [u8]>;

    /// What reads the requests of a new client.
    fn reader(&self) -> Self::Reader;

    /// A letter has come; what is [`Handed`] goes to [`EventLoop::take`].
    fn letter(event_loop: &mut EventLoop<Self>, letter: Self::Letter);

    /// What TLS needs, if there are listeners for it.
    fn tls(&self) -> Option<Arc<rustls::ServerConfig>> {
        None
    }

    /// After so many seconds of silence a client is asked whether it is there; 0: never.
    fn keepalive(&self) -> u64 {
        0
    }

    /// What those have for an address who come by the socket of this machine.
    fn socket_address(&self) -> String {
        String::new()
    }

    /// A client that was admitted has gone.
    fn has_gone(&self) {}

    /// Letters are about to be read.
    fn before_letters(_event_loop: &mut EventLoop<Self>) {}

    /// Letters have been read.
    fn after_letters(_event_loop: &mut EventLoop<Self>) {}

    /// A socket of its own with this token has something.
    fn ring(_event_loop: &mut EventLoop<Self>, _token: usize) {}

    /// All connections have been served: what is done in each round, before replies go.
    fn round(_event_loop: &mut EventLoop<Self>) {}

    /// Whether it has something to do in the next round already.
    fn is_busy(&self) -> bool {
        false
    }

    /// How long the loop may sleep, `most` at most.
    fn sleep(&self, most: Duration) -> Duration {
        most
    }

    /// A time that changes about each millisecond.
    fn tick(&self) -> Instant {
        Instant::now()
    }

    /// A connection has been served.
    #[inline]
    fn visited(&mut self, _token: usize, _client: &mut Self::Client) {}

    /// A connection ends; false: its token must not be used again until [`EventLoop::free`].
    fn ends(&mut self, _token: usize, _client: &mut Self::Client) -> bool {
        true
    }

    /// Waits until what has been written is durable; why it is not.
    fn settle(&mut self) -> Option<String> {
        None
    }

    /// So many bytes have come and gone.
    fn count(&mut self, _came: u64, _went: u64) {}

    /// Bytes that a client may leave unread: at most; as long as it likes; and for how many seconds more than that. 0: any.
    fn unread(&self, _client: &Self::Client) -> [i64; 3] {
        [0; 3]
    }

    /// A client is cut off, which has left so much unread.
    fn cuts_off(&self, _client: &Self::Client, _held: Held) {}

    /// After so many seconds an idle client is sent away; 0: never.
    fn idle_seconds(&self) -> u64 {
        0
    }

    /// Whether a client that does nothing is not idle.
    fn may_idle(_client: &Self::Client) -> bool {
        false
    }

    /// Bytes that all clients may take together; 0: any.
    #[inline]
    fn clients_bytes(&self) -> u64 {
        0
    }

    /// Bytes that a connection takes, and whether it may be cut off where all take too much.
    fn weigh(_connection: &Connection<Self>) -> (usize, bool) {
        (0, true)
    }

    /// One is cut off for that.
    fn counts_eviction(&self) {}

    /// Whether a client that comes from another loop may no longer be served.
    fn is_refused(&self, _client: &Self::Client) -> bool {
        false
    }
}
