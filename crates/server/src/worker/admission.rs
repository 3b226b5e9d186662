//! How clients come to a loop: accepted by the first thread, refused or given to the one of those awake that has fewest.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;
use perilune::node;

use super::{Handed, Worker};
use crate::client::Client;
use crate::connection::Connection;
use crate::limits::CLIENT_NUMBERS;
use crate::mailbox::Letter;
use crate::settings::Name;
use perilune_net::journal::Level;
use perilune_net::seat::Seat;
use perilune_net::stream::Stream;
use perilune_net::tls::TlsStream;

const DENIED: &[u8] =
    b"-DENIED Perilune runs in protected mode: there is no password, so that only clients of this \
machine are served. Set `requirepass`, or give --protected-mode no if the network is trusted.\r\n";
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

impl Worker {
    pub(super) fn accept_tcp(&mut self, number: usize) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.tcp.get(number)) {
            match listener.accept() {
                Ok((stream, address)) => {
                    let Some(stream) = self.dress(stream, number) else { continue };
                    let local = match address.ip() {
                        IpAddr::V4(ip) => ip.is_loopback(),
                        IpAddr::V6(ip) => ip.is_loopback(),
                    };
                    let here = stream.local_address();
                    self.admit(stream, (address.to_string(), here), local);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // None is left, or no descriptor is: the next connection tries again.
                Err(_) => return,
            }
        }
    }

    /// The stream of a socket that came to listener `number`: with TLS or without.
    fn dress(&self, socket: TcpStream, number: usize) -> Option<Stream> {
        let tls_from = self.listeners.as_ref().map_or(0, |listeners| listeners.tls_from);
        if number < tls_from {
            return Some(Stream::Tcp(socket));
        }
        let config = self.loop_state.server.tls.as_ref()?;
        // Without memory for it the client is told by the end of its connection.
        Some(Stream::Tls(Box::new(TlsStream::new(socket, config).ok()?)))
    }

    pub(super) fn accept_unix(&mut self) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.unix.as_ref()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let path = self.loop_state.server.settings.unix_socket.as_ref();
                    let address = path.map_or_else(String::new, |path| format!("{}:0", path.display()));
                    self.admit(Stream::Unix(stream), (address.clone(), address), true);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, (address, here): (String, String), local: bool) {
        let server = &self.loop_state.server;
        let (figures, live) = (&server.figures, &server.live);
        figures.connections.fetch_add(1, Ordering::Relaxed);
        let full = figures.connected.load(Ordering::Relaxed) >= live.number(Name::MaxClients) as u64;
        let denied = !local && live.is_on(Name::ProtectedMode) && server.is_open();
        if full || denied {
            figures.rejected.fetch_add(1, Ordering::Relaxed);
            let why = if full { "maxclients" } else { "protected-mode" };
            server.note_some(Level::Warning, "client refused", &[("addr", &address), ("why", why)]);
            let _ = stream.write(if full { FULL } else { DENIED });
            return;
        }
        figures.connected.fetch_add(1, Ordering::Relaxed);
        stream.prepare(live.number(Name::TcpKeepalive) as u64);
        let id = self.next_number();
        let server = &self.loop_state.server;
        if server.notes(Level::Verbose) {
            server.note_some(
                Level::Verbose,
                "client connected",
                &[("addr", &address), ("id", &id.to_string())],
            );
        }
        let client = Client::new(id, (address, here), local, server.is_open());
        let awake = server.mailboxes.iter().take(server.awake.count());
        let Some(target) = awake.min_by_key(|mailbox| mailbox.load.load(Ordering::Relaxed)) else { return };
        target.load.fetch_add(1, Ordering::Relaxed);
        target.post(Letter::Handed(Handed::Arrived(Box::new((stream, client)))));
    }

    /// A number that no other client of the database has had, on any server. They come from the tree many at a time: else who
    /// connects again and again, without being let in, would have it written each time.
    fn next_number(&mut self) -> i64 {
        if let Some(number) = self.numbers.next() {
            return number;
        }
        let session = &mut self.loop_state.session;
        let last = node!("^redis", "client").and_then(|node| session.increment(&node, CLIENT_NUMBERS));
        // A database that takes no writes still serves readers.
        let Some(last) = last.ok().and_then(perilune::Number::as_i64) else { return 0 };
        self.numbers = last - CLIENT_NUMBERS + 1..last + 1;
        self.numbers.next().unwrap_or(0)
    }

    pub(super) fn arrive(&mut self, (mut stream, mut client): (Stream, Client)) {
        let token = self.free_token();
        if !self.register(stream.source(), token) {
            self.free.push(token);
            return self.forget_one();
        }
        client.seat = Seat { thread: self.loop_state.thread, token, client: client.id };
        let mut connection = Connection::new(stream, client, self.loop_state.server.bulk_bytes);
        connection.served = self.seconds;
        self.connections[token] = Some(connection);
        self.serve(token);
    }
}
