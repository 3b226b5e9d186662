//! What concerns the server.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use perilune::Durability;
use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, Result};
use crate::gate::Context;
use crate::keyspace::clock;
use crate::numbers::lower;
use crate::settings::Name;

pub(crate) fn time(_: &mut Context<'_>, _: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    replies.array(2);
    replies.bulk_integer(since.as_secs() as i64);
    replies.bulk_integer(i64::from(since.subsec_micros()));
    Ok(())
}

/// INFO: the sections server, clients, persistence and stats.
pub(crate) fn info(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let asked: Vec<_> = arguments.from(1).iter().map(lower).collect();
    let wants = |section: &str| {
        asked.is_empty()
            || asked.iter().any(|word| {
                matches!(&**word, b"all" | b"default" | b"everything") || **word == *section.as_bytes()
            })
    };
    let server = context.server;
    let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed).to_string();
    let sections: [(&str, Vec<(&str, String)>); 4] = [
        (
            "Server",
            vec![
                ("redis_version", "7.0.15".to_owned()),
                ("perilune_version", env!("CARGO_PKG_VERSION").to_owned()),
                ("redis_mode", "standalone".to_owned()),
                ("process_id", std::process::id().to_string()),
                ("tcp_port", server.settings.port.to_string()),
                ("server_time_usec", (clock() * 1_000).to_string()),
                ("uptime_in_seconds", server.started.elapsed().as_secs().to_string()),
                ("io_threads", server.settings.threads.to_string()),
            ],
        ),
        (
            "Clients",
            vec![
                ("connected_clients", load(&server.figures.connected)),
                ("maxclients", server.live.text(Name::MaxClients)),
            ],
        ),
        (
            "Persistence",
            vec![(
                "durability",
                server.settings.durability.map_or("as the database has it", level).to_owned(),
            )],
        ),
        (
            "Stats",
            vec![
                ("total_connections_received", load(&server.figures.connections)),
                ("total_commands_processed", load(&server.figures.commands)),
                ("rejected_connections", load(&server.figures.rejected)),
                ("expired_keys_swept", load(&server.figures.swept)),
            ],
        ),
    ];
    let mut text = String::new();
    for (section, fields) in sections.iter().filter(|(section, _)| wants(&section.to_ascii_lowercase())) {
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {section}\r\n");
        for (field, value) in fields {
            let _ = write!(text, "{field}:{value}\r\n");
        }
    }
    replies.verbatim(text.as_bytes());
    Ok(())
}

fn level(durability: Durability) -> &'static str {
    match durability {
        Durability::None => "none",
        Durability::Periodic => "periodic",
        Durability::Fsync => "fsync",
    }
}

/// SHUTDOWN: as SIGTERM does; what is written is kept, since there is nothing to save.
pub(crate) fn shutdown(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    _: &mut Replies<'_>,
) -> Result<()> {
    for word in arguments.from(1).iter() {
        if !matches!(&*lower(word), b"nosave" | b"save" | b"now" | b"force") {
            return refuse(crate::failure::SYNTAX);
        }
    }
    context.client.closing = true;
    context.server.stop();
    Ok(())
}
