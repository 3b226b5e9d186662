//! A page with a text for who asks GET /metrics: Prometheus, as a rule. What it says is for the caller.
//!
//! Invariants
//! - One request at a time, [`HEAD`] bytes and [`PATIENCE`] at most: who is slow or hostile costs little, and
//!   no client of the database waits.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::listener::ListenError;

/// Bytes of a request at most.
const HEAD: usize = 8 << 10;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// What is asked and answered.
pub trait Page: Send + Sync + 'static {
    /// Whether nothing more is to be answered.
    fn is_over(&self) -> bool;
    /// The text.
    fn text(&self) -> String;
}

/// Sockets for the page: one at `port` of each of `addresses`, of which those that begin with `-` need not be there.
///
/// # Errors
/// One cannot be had.
pub fn listen(addresses: &str, port: u16) -> Result<Vec<TcpListener>, ListenError<std::convert::Infallible>> {
    let mut listeners = Vec::new();
    for place in addresses.split_whitespace() {
        let optional = place.starts_with('-');
        let address = place.trim_start_matches('-');
        let opened = address
            .parse::<IpAddr>()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
            .and_then(|address| TcpListener::bind(SocketAddr::new(address, port)));
        match opened {
            Ok(listener) => listeners.push(listener),
            Err(_) if optional => {}
            Err(source) => {
                return Err(ListenError::Socket {
                    place: format!("{address} port {port} (metrics)"),
                    source,
                });
            }
        }
    }
    Ok(listeners)
}

/// Starts a thread for each socket; they end when [`wake`] has been called after the page was over.
///
/// # Errors
/// A thread cannot be had.
pub fn serve<P: Page>(page: &Arc<P>, listeners: Vec<TcpListener>) -> io::Result<Vec<JoinHandle<()>>> {
    let start = |listener: TcpListener| {
        let page = Arc::clone(page);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !page.is_over() {
                if let Ok((stream, _)) = listener.accept() {
                    // Who goes away while it is answered has no answer.
                    let _ = answer(&*page, stream);
                } else {
                    // No descriptor is free, for one.
                    thread::sleep(Duration::from_millis(100));
                }
            }
        })
    };
    listeners.into_iter().map(start).collect()
}

/// Makes the threads look whether the server stops.
pub fn wake(addresses: &[SocketAddr]) {
    for address in addresses {
        let _ = TcpStream::connect_timeout(address, Duration::from_millis(200));
    }
}

fn answer(page: &impl Page, mut stream: TcpStream) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1_024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > HEAD || page.is_over() {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut buffer)? {
            0 => return Ok(()),
            came => head.extend_from_slice(&buffer[..came]),
        }
    }
    let line = head.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let mut words = line.split(|byte| *byte == b' ');
    let (status, body) = match (words.next(), words.next()) {
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", page.text()),
        (Some(b"GET"), _) => ("404 Not Found", "GET /metrics\n".to_owned()),
        _ => ("405 Method Not Allowed", "GET /metrics\n".to_owned()),
    };
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}
