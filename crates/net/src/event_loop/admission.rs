//! How clients come to a loop: accepted by the first one, refused or given to the one of those awake that has fewest.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;

use mio::net::TcpStream;

use super::{Comer, EventLoop, Handed, Service};
use crate::connection::Connection;
use crate::protocol::Client;
use crate::seat::Seat;
use crate::stream::Stream;
use crate::tls::TlsStream;

impl<S: Service> EventLoop<S> {
    pub(super) fn accept_tcp(&mut self, number: usize) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.tcp.get(number)) {
            match listener.accept() {
                Ok((stream, address)) => {
                    let Some(stream) = self.dress(stream, number) else { continue };
                    let is_local = match address.ip() {
                        IpAddr::V4(ip) => ip.is_loopback(),
                        IpAddr::V6(ip) => ip.is_loopback(),
                    };
                    let local_address = stream.local_address();
                    self.admit(stream, Comer { address: address.to_string(), local_address, is_local });
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
        let config = self.service.tls()?;
        // Without memory for it the client is told by the end of its connection.
        Some(Stream::Tls(Box::new(TlsStream::new(socket, &config).ok()?)))
    }

    pub(super) fn accept_unix(&mut self) {
        while let Some(listener) = self.listeners.as_ref().and_then(|listeners| listeners.unix.as_ref()) {
            match listener.accept() {
                Ok((stream, _)) => {
                    let address = self.service.socket_address();
                    let comer = Comer { local_address: address.clone(), address, is_local: true };
                    self.admit(Stream::Unix(stream), comer);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn admit(&mut self, mut stream: Stream, comer: Comer) {
        let client = match self.service.admit(comer) {
            Ok(client) => client,
            Err(why) => {
                let _ = stream.write(why);
                return;
            }
        };
        stream.prepare(self.service.keepalive());
        let crew = self.service.crew();
        let awake = crew.mailboxes().iter().take(crew.awake().count());
        let Some(target) = awake.min_by_key(|mailbox| mailbox.load.load(Ordering::Relaxed)) else { return };
        target.load.fetch_add(1, Ordering::Relaxed);
        target.post(Handed::Arrived(Box::new((stream, client))).into());
    }

    pub(super) fn arrive(&mut self, mut stream: Stream, mut client: S::Client) {
        let token = self.free_token();
        if !self.register(stream.source(), token) {
            self.free.push(token);
            return self.forget_one();
        }
        client.sit(Seat { thread: self.thread, token, client: client.seat().client });
        let mut connection = Connection::new(stream, client, self.service.reader());
        connection.served = self.seconds;
        self.connections[token] = Some(connection);
        self.serve(token);
    }
}
