//! GET /metrics: what Prometheus asks a server.
//!
//! Invariant: nothing is said that a client without a password may not know: numbers and names of commands.

use perilune::FigureKind;
use perilune_net::figures::{Figures, Kind, Step, Values};
use perilune_net::page::Page;

use crate::command;
use crate::published::Published;
use crate::server::Server;
use crate::statistics::STEPS;

impl Page for Server {
    fn is_over(&self) -> bool {
        self.is_stopping()
    }

    fn text(&self) -> String {
        figures(self)
    }
}

/// All figures, in the text format of Prometheus.
fn figures(server: &Server) -> String {
    let mut figures = Figures::default();
    let now = Published::now(server);
    let uptime = server.measures().started().elapsed().as_secs();
    let own = [
        ("connected_clients", Kind::Gauge, "clients of this server", now.connected),
        ("connections_total", Kind::Counter, "clients that have come", now.connections),
        ("rejected_connections_total", Kind::Counter, "clients that were refused", now.rejected),
        ("commands_total", Kind::Counter, "commands", now.commands),
        ("received_bytes_total", Kind::Counter, "bytes that clients have sent", now.traffic.came),
        ("sent_bytes_total", Kind::Counter, "bytes that clients have been sent", now.traffic.went),
        ("expired_keys_total", Kind::Counter, "expired keys that this server has removed", now.swept),
        ("keyspace_hits_total", Kind::Counter, "keys that commands which only read have found", now.hits),
        ("keyspace_misses_total", Kind::Counter, "keys that they have not found", now.misses),
        ("uptime_seconds", Kind::Gauge, "seconds since the start", uptime),
    ];
    for (name, kind, help, value) in own {
        figures.one(&format!("perilune_server_{name}"), kind, help, value);
    }
    commands(server, &mut figures);
    let errors = "perilune_server_errors_total";
    figures.head(errors, Kind::Counter, None);
    for (code, count) in server.measures().statistics().errors() {
        let code: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
        figures.value(errors, &[("code", &code)], count);
    }
    for figure in server.database().stat().unwrap_or_default() {
        let (kind, end) = match figure.kind {
            FigureKind::Count => (Kind::Counter, "_total"),
            _ => (Kind::Gauge, ""),
        };
        figures.one(&format!("perilune_{}{end}", figure.name), kind, figure.meaning, figure.value);
    }
    figures.into_text()
}

/// A histogram of the time that each command takes.
fn commands(server: &Server, figures: &mut Figures) {
    const NAME: &str = "perilune_server_command_seconds";
    figures.head(NAME, Kind::Histogram, Some("how long commands run"));
    for (name, number) in command::counted() {
        let Some(sums) = server.measures().statistics().of(number).filter(|sums| sums.timed() > 0) else {
            continue;
        };
        let mut count = 0;
        let below = (0..STEPS - 1).filter_map(|step| {
            count += sums.steps[step];
            (sums.steps[step] > 0).then_some(Step { bound: (1_u64 << step) as f64 / 1e6, count })
        });
        let (sum, timed) = (sums.microseconds as f64 / 1e6, sums.timed());
        figures.histogram(NAME, "command", &name, Values { below, sum, count: timed });
    }
}
