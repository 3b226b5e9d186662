//! What all servers of a database have done together: each publishes its figures in the tree, once a second if
//! they have changed; INFO adds them up.
//!
//! Invariant: what a dead server has published does not count as present (clients), and is gone with its node.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use perilune::{Durability, Session, TransactionOptions};

use crate::peers;
use crate::server::Server;
use crate::statistics::{Looks, Traffic};
use perilune_net::journal::Level;

/// One server's figures, or the sum of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) number: i64,
    pub(crate) process: u64,
    pub(crate) port: u64,
    pub(crate) started_ms: u64,
    pub(crate) connected: u64,
    pub(crate) connections: u64,
    pub(crate) rejected: u64,
    pub(crate) commands: u64,
    pub(crate) swept: u64,
    pub(crate) commands_each_second: u64,
    pub(crate) evicted: u64,
    /// Clients that wait for keys, or for the end of CLIENT PAUSE.
    pub(crate) blocked: u64,
    pub(crate) tracking_clients: u64,
    pub(crate) tracked_keys: u64,
    pub(crate) tracked_items: u64,
    pub(crate) evicted_clients: u64,
    pub(crate) tracked_prefixes: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) traffic: Traffic,
    pub(crate) traffic_each_second: Traffic,
    /// Bytes of the database that were in use at most, as this server has seen it.
    pub(crate) peak: u64,
}

impl Published {
    /// This server's, now.
    pub(crate) fn now(server: &Server) -> Published {
        let figures = server.measures().figures();
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let Looks { hits, misses } = server.measures().statistics().looks();
        Published {
            number: server.number(),
            process: u64::from(std::process::id()),
            port: u64::from(server.rules().settings().port),
            started_ms: server.measures().started_ms(),
            connected: read(&figures.connected),
            connections: read(&figures.connections),
            rejected: read(&figures.rejected),
            commands: server.measures().statistics().commands(),
            swept: read(&figures.swept),
            commands_each_second: read(&figures.commands_each_second),
            evicted: read(&figures.evicted),
            blocked: (server.commons().blocked().load(Ordering::Relaxed) + server.commons().pause().clients())
                as u64,
            tracking_clients: read(&figures.tracking_clients),
            tracked_keys: read(&figures.tracked_keys),
            tracked_items: read(&figures.tracked_items),
            evicted_clients: read(&figures.evicted_clients),
            tracked_prefixes: read(&figures.tracked_prefixes),
            hits,
            misses,
            traffic: server.measures().statistics().traffic(),
            traffic_each_second: Traffic {
                came: read(&figures.came_each_second),
                went: read(&figures.went_each_second),
            },
            peak: server.measures().memory().peak(),
        }
    }

    fn fields(&mut self) -> [&mut u64; 23] {
        [
            &mut self.process,
            &mut self.port,
            &mut self.started_ms,
            &mut self.connected,
            &mut self.connections,
            &mut self.rejected,
            &mut self.commands,
            &mut self.swept,
            &mut self.commands_each_second,
            &mut self.evicted,
            &mut self.blocked,
            &mut self.tracking_clients,
            &mut self.tracked_keys,
            &mut self.tracked_items,
            &mut self.evicted_clients,
            &mut self.tracked_prefixes,
            &mut self.hits,
            &mut self.misses,
            &mut self.traffic.came,
            &mut self.traffic.went,
            &mut self.traffic_each_second.came,
            &mut self.traffic_each_second.went,
            &mut self.peak,
        ]
    }

    fn to_text(&self) -> String {
        let texts = self.clone().fields().map(|field| field.to_string());
        texts.join(" ")
    }

    /// What cannot be read is 0.
    fn parse(number: i64, text: &str) -> Published {
        let mut published = Published { number, ..Published::default() };
        for (field, word) in published.fields().into_iter().zip(text.split(' ')) {
            *field = word.parse().unwrap_or(0);
        }
        published
    }

    pub(crate) fn add(&mut self, other: &Published) {
        self.connected += other.connected;
        self.connections += other.connections;
        self.rejected += other.rejected;
        self.commands += other.commands;
        self.swept += other.swept;
        self.commands_each_second += other.commands_each_second;
        self.evicted += other.evicted;
        self.blocked += other.blocked;
        self.tracking_clients += other.tracking_clients;
        self.tracked_keys += other.tracked_keys;
        self.tracked_items += other.tracked_items;
        self.evicted_clients += other.evicted_clients;
        self.tracked_prefixes += other.tracked_prefixes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.traffic.came += other.traffic.came;
        self.traffic.went += other.traffic.went;
        self.traffic_each_second.came += other.traffic_each_second.came;
        self.traffic_each_second.went += other.traffic_each_second.went;
        self.peak = self.peak.max(other.peak);
    }
}

/// What a server has published last.
#[derive(Debug)]
pub(crate) struct Publisher {
    last: Published,
    at: Instant,
    /// Why nothing is written, as far as the log has been told.
    stopped: u64,
}

impl Publisher {
    pub(crate) fn new() -> Publisher {
        Publisher { last: Published::default(), at: Instant::now(), stopped: 0 }
    }

    /// Publishes this server's figures, if they have changed. A database that takes no writes has none.
    pub(crate) fn publish(&mut self, server: &Server, session: &mut Session) {
        let figures = server.measures().figures();
        let seconds = self.at.elapsed().as_secs_f64().max(0.001);
        self.at = Instant::now();
        // What it takes between is not seen; where that fails, the next second tells.
        let _ = server.measures().memory().used(server.database());
        self.note_stop(server);
        let (traffic, before) = (server.measures().statistics().traffic(), self.last.traffic);
        for (rate, now, before) in [
            (&figures.commands_each_second, server.measures().statistics().commands(), self.last.commands),
            (&figures.came_each_second, traffic.came, before.came),
            (&figures.went_each_second, traffic.went, before.went),
        ] {
            let each = (now.saturating_sub(before) as f64 / seconds).round() as u64;
            rate.store(each, Ordering::Relaxed);
        }
        let now = Published::now(server);
        if now == self.last || server.number() == 0 {
            return;
        }
        let options =
            TransactionOptions { durability: Some(Durability::None), ..TransactionOptions::default() };
        let written = session.transaction_with(&options, |session| {
            let place = peers::place(server.number())?.with("figures")?;
            session.set(&place, &*now.to_text())
        });
        if written.is_ok() {
            self.last = now;
        }
    }

    /// Says in the log that nothing is written any more, once.
    fn note_stop(&mut self, server: &Server) {
        let stopped = server.measures().memory().stopped();
        if std::mem::replace(&mut self.stopped, stopped) == stopped || stopped == 0 {
            return;
        }
        let why = match stopped {
            2 => "the database was removed or replaced: start the server again",
            _ => "a sync has failed: see to the disk, and end all processes that have the database open",
        };
        server.note(Level::Warning, "writes-stopped", &[("why", why)]);
    }
}

/// The figures of all servers that live, this one first.
pub(crate) fn all(server: &Server, session: &mut Session) -> perilune::Result<Vec<Published>> {
    let mut published = vec![Published::now(server)];
    for number in peers::all(session)? {
        if number == server.number() || !peers::is_alive(session, number)? {
            continue;
        }
        let place = peers::place(number)?.with("figures")?;
        let text = session.get_str(&place)?.unwrap_or_default().to_owned();
        published.push(Published::parse(number, &text));
    }
    Ok(published)
}
