//! GET /metrics: what Prometheus asks a server.
//!
//! Invariants
//! - One request at a time, [`HEAD`] bytes and [`PATIENCE`] at most: who is slow or hostile costs little, and
//!   no client of the database waits.
//! - Nothing is said that a client without a password may not know: numbers and names of commands.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use perilune::FigureKind;

use crate::command;
use crate::published::Published;
use crate::server::Server;
use crate::settings::{Name, Settings};
use crate::start_error::StartError;
use crate::statistics::STEPS;

/// Bytes of a request at most.
const HEAD: usize = 8 << 10;
/// How long a request may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// The sockets of `metrics-port` and `metrics-bind`; none if the port is 0.
pub(crate) fn listen(settings: &Settings) -> Result<Vec<TcpListener>, StartError> {
    let port = settings.number(Name::MetricsPort) as u16;
    if port == 0 {
        return Ok(Vec::new());
    }
    let mut listeners = Vec::new();
    for place in settings.text(Name::MetricsBind).split_whitespace() {
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
                return Err(StartError::Listen { place: format!("{address} port {port} (metrics)"), source });
            }
        }
    }
    Ok(listeners)
}

/// Starts a thread for each socket; they end when [`wake`] has been called after the server stopped.
pub(crate) fn serve(server: &Arc<Server>, listeners: Vec<TcpListener>) -> io::Result<Vec<JoinHandle<()>>> {
    let start = |listener: TcpListener| {
        let server = Arc::clone(server);
        thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            while !server.is_stopping() {
                if let Ok((stream, _)) = listener.accept() {
                    // Who goes away while it is answered has no answer.
                    let _ = answer(&server, stream);
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
pub(crate) fn wake(addresses: &[SocketAddr]) {
    for address in addresses {
        let _ = TcpStream::connect_timeout(address, Duration::from_millis(200));
    }
}

fn answer(server: &Server, mut stream: TcpStream) -> io::Result<()> {
    let end = Instant::now() + PATIENCE;
    let mut head = Vec::new();
    let mut buffer = [0; 1_024];
    while !head.windows(4).any(|window| window == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || head.len() > HEAD || server.is_stopping() {
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
        (Some(b"GET"), Some(b"/metrics")) => ("200 OK", text(server)),
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

/// All figures in the text format of Prometheus.
fn text(server: &Server) -> String {
    let mut text = String::new();
    let now = Published::now(server);
    let own = [
        ("connected_clients", "gauge", "clients of this server", now.connected),
        ("connections_total", "counter", "clients that have come", now.connections),
        ("rejected_connections_total", "counter", "clients that were refused", now.rejected),
        ("commands_total", "counter", "commands", now.commands),
        ("received_bytes_total", "counter", "bytes that clients have sent", now.traffic.came),
        ("sent_bytes_total", "counter", "bytes that clients have been sent", now.traffic.went),
        ("expired_keys_total", "counter", "expired keys that this server has removed", now.swept),
        ("keyspace_hits_total", "counter", "keys that commands which only read have found", now.hits),
        ("keyspace_misses_total", "counter", "keys that they have not found", now.misses),
        ("uptime_seconds", "gauge", "seconds since the start", server.started.elapsed().as_secs()),
    ];
    for (name, kind, help, value) in own {
        let _ = write!(
            text,
            "# HELP perilune_server_{name} {help}\n# TYPE perilune_server_{name} {kind}\nperilune_server_{name} {value}\n"
        );
    }
    commands(server, &mut text);
    let _ = writeln!(text, "# TYPE perilune_server_errors_total counter");
    for (code, count) in server.statistics.errors() {
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        let _ = writeln!(text, "perilune_server_errors_total{{code=\"{code}\"}} {count}");
    }
    for figure in server.database.stat().unwrap_or_default() {
        let (kind, end) = match figure.kind {
            FigureKind::Count => ("counter", "_total"),
            _ => ("gauge", ""),
        };
        let name = format!("perilune_{}{end}", figure.name);
        let _ =
            write!(text, "# HELP {name} {}\n# TYPE {name} {kind}\n{name} {}\n", figure.meaning, figure.value);
    }
    text
}

/// A histogram of the time that each command takes.
fn commands(server: &Server, text: &mut String) {
    const NAME: &str = "perilune_server_command_seconds";
    let _ = write!(text, "# HELP {NAME} how long commands run\n# TYPE {NAME} histogram\n");
    for (name, number) in command::counted() {
        let Some(sums) = server.statistics.of(number).filter(|sums| sums.timed() > 0) else { continue };
        let mut seen = 0;
        for step in 0..STEPS - 1 {
            seen += sums.steps[step];
            if sums.steps[step] > 0 {
                let bound = (1_u64 << step) as f64 / 1e6;
                let _ = writeln!(text, "{NAME}_bucket{{command=\"{name}\",le=\"{bound}\"}} {seen}");
            }
        }
        let _ = writeln!(text, "{NAME}_bucket{{command=\"{name}\",le=\"+Inf\"}} {}", sums.timed());
        let _ = writeln!(text, "{NAME}_sum{{command=\"{name}\"}} {}", sums.microseconds as f64 / 1e6);
        let _ = writeln!(text, "{NAME}_count{{command=\"{name}\"}} {}", sums.timed());
    }
}
