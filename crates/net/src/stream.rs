//! The socket of a connection: TCP, with TLS or without, or Unix.
//!
//! Invariants
//! - A read or write never waits.
//! - A read that does not fill its buffer has emptied the socket: that is what edge-triggered events want.
//!
//! Deliberately absent: what is kept of what the kernel does not take (`connection`).

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use socket2::{SockRef, TcpKeepalive};

use crate::tls::TlsStream;

/// Any kind of socket.
#[derive(Debug)]
pub enum Stream {
    /// Plain.
    Tcp(TcpStream),
    /// Of this machine.
    Unix(UnixStream),
    /// With TLS on it.
    Tls(Box<TlsStream>),
}

impl Stream {
    /// Replies go at once, and a peer that has been silent for `keepalive` seconds is asked whether it is there.
    pub fn prepare(&self, keepalive: u64) {
        let stream = match self {
            Stream::Tcp(stream) => stream,
            Stream::Tls(stream) => &stream.socket,
            Stream::Unix(_) => return,
        };
        // What fails here is noticed when the socket is used.
        let _ = stream.set_nodelay(true);
        if keepalive > 0 {
            let asked = TcpKeepalive::new().with_time(Duration::from_secs(keepalive));
            let _ = SockRef::from(stream).set_tcp_keepalive(&asked);
        }
    }

    /// Whether bytes that it has taken wait for the kernel.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.has_unsent())
    }

    /// Whether a read would tell the end of it, though no event will say so.
    #[inline]
    pub fn has_ended(&self) -> bool {
        matches!(self, Stream::Tls(stream) if stream.has_ended())
    }

    /// Sends what it has taken.
    #[inline]
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Tls(stream) => stream.flush(),
            _ => Ok(()),
        }
    }

    /// Where a TCP connection has arrived.
    pub fn local_address(&self) -> String {
        match self {
            Stream::Tcp(stream) => stream.local_addr(),
            Stream::Tls(stream) => stream.socket.local_addr(),
            Stream::Unix(_) => return String::new(),
        }
        .map_or_else(|_| String::new(), |address| address.to_string())
    }

    /// Its number in this process.
    pub fn descriptor(&self) -> i32 {
        match self {
            Stream::Tcp(stream) => stream.as_raw_fd(),
            Stream::Unix(stream) => stream.as_raw_fd(),
            Stream::Tls(stream) => stream.socket.as_raw_fd(),
        }
    }

    /// What a poll registers.
    pub fn source(&mut self) -> &mut dyn Source {
        match self {
            Stream::Tcp(stream) => stream,
            Stream::Unix(stream) => stream,
            Stream::Tls(stream) => &mut stream.socket,
        }
    }

    /// Reads what there is, as far as it fits.
    ///
    /// # Errors
    /// The system's, or TLS's.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    /// Writes what it takes at once.
    ///
    /// # Errors
    /// The system's, or TLS's.
    #[inline]
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.write(bytes),
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tls(stream) => stream.write(bytes),
        }
    }
}
