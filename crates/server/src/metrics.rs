//! GET /metrics: what Prometheus asks a server.
//!
//! Invariant: nothing is said that a client without a password may not know: numbers and names of commands.

use std::fmt::Write as _;

use perilune::FigureKind;
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

/// All figures in the text format of Prometheus.
fn figures(server: &Server) -> String {
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
