//! The socket of a connection to a server: TCP, with TLS or without, or Unix.
//!
//! Invariant: each call ends within the timeout that it was opened with.
//!
//! Deliberately absent: what is said over it (`link`).

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::address::Place;

/// Any kind of socket, which waits no longer than it was told to.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<crate::tls::TlsStream>),
}

impl Stream {
    /// Connects; `timeout` is for that, and for each read and write.
    pub(crate) fn open(place: &Place, timeout: Duration) -> io::Result<Stream> {
        let stream = match place {
            Place::Unix(path) => Stream::Unix(UnixStream::connect(path)?),
            Place::Tcp(host, port) => Stream::Tcp(dial(host, *port, timeout)?),
            #[cfg(feature = "tls")]
            Place::Tls(host, port, proof) => {
                let plain = dial(host, *port, timeout)?;
                Stream::Tls(Box::new(crate::tls::open(plain, host, proof)?))
            }
            #[cfg(not(feature = "tls"))]
            Place::Tls(_, _, proof) => {
                let why = format!("this program was built without the feature `tls` of perilune ({proof:?})");
                return Err(io::Error::new(io::ErrorKind::Unsupported, why));
            }
        };
        if let Some(socket) = stream.tcp() {
            socket.set_read_timeout(Some(timeout))?;
            socket.set_write_timeout(Some(timeout))?;
        }
        if let Stream::Unix(socket) = &stream {
            socket.set_read_timeout(Some(timeout))?;
            socket.set_write_timeout(Some(timeout))?;
        }
        Ok(stream)
    }

    fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Stream::Tcp(stream) => Some(stream),
            Stream::Unix(_) => None,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => Some(stream.get_ref()),
        }
    }

    pub(crate) fn close(&self) {
        // It may be closed already.
        let _ = match (self, self.tcp()) {
            (Stream::Unix(stream), _) => stream.shutdown(Shutdown::Both),
            (_, Some(stream)) => stream.shutdown(Shutdown::Both),
            (_, None) => Ok(()),
        };
    }

    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Tcp(stream) => stream.read(buffer),
            Stream::Unix(stream) => stream.read(buffer),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.read(buffer),
        }
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Stream::Tcp(stream) => stream.write_all(bytes),
            Stream::Unix(stream) => stream.write_all(bytes),
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

/// Connects to the first address of a host that answers.
fn dial(host: &str, port: u16, timeout: Duration) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, timeout) {
            Ok(stream) => {
                stream.set_nodelay(true)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}
