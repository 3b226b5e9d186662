//! INFO: what there is to know of the servers of this database.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use perilune::{node, Cursor};
use perilune_resp::{Arguments, Replies};

use crate::command;
use crate::context::Context;
use crate::failure::Result;
use crate::keyspace::{databases, expiries, is_due};
use crate::numbers::lower;
use crate::published;
use crate::published::Published;
use crate::settings::Name;
use perilune_net::clock::clock;

type Fields = Vec<(String, String)>;

/// The sections that INFO answers unasked; `commandstats`, `errorstats` and `latencystats` want to be named.
const SECTIONS: [&str; 9] =
    ["Server", "Clients", "Memory", "Persistence", "Stats", "Replication", "CPU", "Servers", "Keyspace"];
/// Keys of a database that are counted.
const COUNTED: u64 = 100_000;
const MORE: [&str; 4] = ["Modules", "Commandstats", "Errorstats", "Latencystats"];

pub(crate) fn info(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let asked: Vec<_> = arguments.from(1).iter().map(lower).collect();
    let named = |word: &str| asked.iter().any(|asked| **asked == *word.as_bytes());
    let all = named("all") || named("everything");
    let common = asked.is_empty() || named("default") || all;
    let servers = published::all(context.server, context.session)?;
    let mut text = String::new();
    for (section, unasked) in
        SECTIONS.map(|name| (name, true)).into_iter().chain(MORE.map(|name| (name, false)))
    {
        let wanted = named(&section.to_ascii_lowercase()) || all || common && unasked;
        if !wanted {
            continue;
        }
        if !text.is_empty() {
            text.push_str("\r\n");
        }
        let _ = write!(text, "# {section}\r\n");
        for (field, value) in fields(context, section, &servers)? {
            let _ = write!(text, "{field}:{value}\r\n");
        }
    }
    replies.verbatim(text.as_bytes());
    Ok(())
}

fn fields(context: &mut Context<'_>, section: &str, servers: &[Published]) -> Result<Fields> {
    let mut sum = Published::default();
    servers.iter().for_each(|server| sum.add(server));
    Ok(match section {
        "Server" => server_fields(context),
        "Clients" => own(vec![
            ("connected_clients", sum.connected.to_string()),
            ("blocked_clients", sum.blocked.to_string()),
            ("tracking_clients", sum.tracking_clients.to_string()),
            ("maxclients", context.server.rules().live().text(Name::MaxClients)),
            ("connected_clients_of_this_server", servers[0].connected.to_string()),
        ]),
        "Memory" => memory_fields(context, sum.peak)?,
        "Persistence" => persistence_fields(context)?,
        "Stats" => own(vec![
            ("total_connections_received", sum.connections.to_string()),
            ("total_commands_processed", sum.commands.to_string()),
            ("instantaneous_ops_per_sec", sum.commands_each_second.to_string()),
            ("total_net_input_bytes", sum.traffic.came.to_string()),
            ("total_net_output_bytes", sum.traffic.went.to_string()),
            ("instantaneous_input_kbps", kilobytes(sum.traffic_each_second.came)),
            ("instantaneous_output_kbps", kilobytes(sum.traffic_each_second.went)),
            ("rejected_connections", sum.rejected.to_string()),
            ("expired_keys", sum.swept.to_string()),
            ("evicted_keys", sum.evicted.to_string()),
            ("evicted_clients", sum.evicted_clients.to_string()),
            ("keyspace_hits", sum.hits.to_string()),
            ("keyspace_misses", sum.misses.to_string()),
            ("tracking_total_keys", sum.tracked_keys.to_string()),
            ("tracking_total_items", sum.tracked_items.to_string()),
            ("tracking_total_prefixes", sum.tracked_prefixes.to_string()),
            (
                "total_error_replies",
                context.server.measures().statistics().errors().values().sum::<u64>().to_string(),
            ),
            ("acl_access_denied_log", context.server.rules().acl().log.len().to_string()),
        ]),
        "Replication" => own(vec![
            ("role", "master".to_owned()),
            ("connected_slaves", "0".to_owned()),
            ("master_failover_state", "no-failover".to_owned()),
            ("master_repl_offset", "0".to_owned()),
            ("second_repl_offset", "-1".to_owned()),
            ("repl_backlog_active", "0".to_owned()),
        ]),
        "CPU" => cpu_fields(),
        "Servers" => server_lines(servers),
        "Keyspace" => keyspace_fields(context)?,
        "Commandstats" => command_fields(context),
        "Latencystats" => latency_fields(context),
        "Errorstats" => {
            let errors = context.server.measures().statistics().errors();
            errors
                .iter()
                .map(|(code, count)| (format!("errorstat_{code}"), format!("count={count}")))
                .collect()
        }
        _ => Vec::new(),
    })
}

fn own(fields: Vec<(&str, String)>) -> Fields {
    fields.into_iter().map(|(name, text)| (name.to_owned(), text)).collect()
}

fn server_fields(context: &Context<'_>) -> Fields {
    let server = context.server;
    let seconds = server.measures().started().elapsed().as_secs();
    let system = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let program = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    own(vec![
        ("redis_version", "7.0.15".to_owned()),
        ("perilune_version", env!("CARGO_PKG_VERSION").to_owned()),
        ("redis_mode", "standalone".to_owned()),
        ("os", format!("Linux {} {}", system.trim(), std::env::consts::ARCH)),
        ("arch_bits", usize::BITS.to_string()),
        ("multiplexing_api", "epoll".to_owned()),
        ("process_id", std::process::id().to_string()),
        ("run_id", server.measures().run_id().to_owned()),
        ("tcp_port", server.rules().settings().port.to_string()),
        ("server_time_usec", (clock() * 1_000).to_string()),
        ("uptime_in_seconds", seconds.to_string()),
        ("uptime_in_days", (seconds / 86_400).to_string()),
        ("io_threads", server.rules().settings().threads.to_string()),
        ("threads_awake", server.crew().awake().count().to_string()),
        ("executable", program),
        (
            "config_file",
            server
                .rules()
                .settings()
                .file
                .as_ref()
                .map_or_else(String::new, |path| path.display().to_string()),
        ),
        ("server_number", server.number().to_string()),
        ("database_file", server.database().path().display().to_string()),
    ])
}

/// A number of bytes as Redis tells a rate.
fn kilobytes(bytes: u64) -> String {
    format!("{:.2}", bytes as f64 / 1_024.0)
}

/// A number of bytes for people.
pub(crate) fn human(bytes: u64) -> String {
    let units = [(1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")];
    match units.iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, letter)) => format!("{:.2}{letter}", bytes as f64 / *unit as f64),
        None => format!("{bytes}B"),
    }
}

/// Bytes of this process that are in memory: all, and those it does not share.
pub(crate) fn resident() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        let number =
            line.and_then(|line| line.split_whitespace().next()).and_then(|word| word.parse::<u64>().ok());
        number.unwrap_or(0) * 1_024
    };
    (field("VmRSS:"), field("RssAnon:"))
}

/// Bytes of the database that are used.
pub(crate) fn used(context: &Context<'_>) -> Result<u64> {
    Ok(context.server.measures().memory().used(context.server.database())?)
}

/// How many nodes stand below `^redis(name)`, up to a bound.
fn count_below(context: &mut Context<'_>, name: &str) -> Result<u64> {
    let mut cursor = Cursor::children(&node!("^redis", name)?).without_values();
    let mut count = 0;
    while count < COUNTED && cursor.next(context.session)? {
        count += 1;
    }
    Ok(count)
}

fn memory_fields(context: &mut Context<'_>, peak: u64) -> Result<Fields> {
    let (scripts, libraries) = (count_below(context, "script")?, count_below(context, "function")?);
    let used = used(context)?;
    let peak = peak.max(context.server.measures().memory().peak());
    let (resident, private) = resident();
    let most = context.server.rules().live().number(Name::MaxMemory).max(0) as u64;
    Ok(own(vec![
        ("used_memory", used.to_string()),
        ("used_memory_human", human(used)),
        ("used_memory_peak", peak.to_string()),
        ("used_memory_peak_human", human(peak)),
        ("used_memory_rss", resident.to_string()),
        ("used_memory_rss_human", human(resident)),
        ("used_memory_dataset", used.to_string()),
        ("process_private_bytes", private.to_string()),
        ("number_of_cached_scripts", scripts.to_string()),
        ("number_of_libraries", libraries.to_string()),
        ("mem_clients_normal", context.server.crew().weights().total().to_string()),
        ("maxmemory", most.to_string()),
        ("maxmemory_human", human(most)),
        ("maxmemory_policy", context.server.rules().live().text(Name::MaxMemoryPolicy)),
        ("mem_fragmentation_ratio", "1.00".to_owned()),
        ("mem_allocator", "shared mapping".to_owned()),
    ]))
}

fn persistence_fields(context: &Context<'_>) -> Result<Fields> {
    let figures = context.server.database().stat()?;
    let value =
        |name: &str| figures.iter().find(|figure| figure.name == name).map_or(0, |figure| figure.value);
    let level = value("durability");
    let status = if value("writes_stopped") == 0 { "ok" } else { "err" };
    let mut fields = own(vec![
        ("loading", "0".to_owned()),
        ("durability", ["none", "periodic", "fsync"][(level as usize).min(2)].to_owned()),
        ("rdb_bgsave_in_progress", "0".to_owned()),
        ("rdb_last_save_time", super::server::last_save(context)?.to_string()),
        ("rdb_last_bgsave_status", "ok".to_owned()),
        ("aof_enabled", u8::from(level > 0).to_string()),
        ("aof_rewrite_in_progress", "0".to_owned()),
        ("aof_last_bgrewrite_status", "ok".to_owned()),
        ("aof_last_write_status", status.to_owned()),
    ]);
    // What `perilune stat` tells of the disk.
    let wanted = [
        "checkpoints",
        "checkpoint_age_ms",
        "log_bytes",
        "fsyncs",
        "replay_bytes",
        "file_bytes",
        "free_bytes",
        "writes_stopped",
    ];
    for figure in figures {
        if wanted.contains(&figure.name) {
            fields.push((figure.name.to_owned(), figure.value.to_string()));
        }
    }
    Ok(fields)
}

fn cpu_fields() -> Fields {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may hold blanks; user and system time are the 12th and 13th behind it.
    let words: Vec<_> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let seconds = |place: usize| {
        // A tick is a hundredth of a second on every Linux that programs see.
        let ticks = words.get(place).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
        format!("{:.6}", ticks / 100.0)
    };
    own(vec![("used_cpu_sys", seconds(12)), ("used_cpu_user", seconds(11))])
}

fn server_lines(servers: &[Published]) -> Fields {
    let now = clock() as u64;
    let line = |server: &Published| {
        format!(
            "pid={},port={},clients={},commands={},ops_per_sec={},uptime={}",
            server.process,
            server.port,
            server.connected,
            server.commands,
            server.commands_each_second,
            now.saturating_sub(server.started_ms) / 1_000
        )
    };
    let lines = servers.iter().map(|server| (format!("server{}", server.number), line(server)));
    [("servers".to_owned(), servers.len().to_string())].into_iter().chain(lines).collect()
}

/// NB: keys are counted one by one, and who watches a server asks often: beyond a bound it is "at least".
fn keyspace_fields(context: &mut Context<'_>) -> Result<Fields> {
    let mut fields = Vec::new();
    let expiring = expiring(context)?;
    for database in databases(context.session)? {
        let mut cursor = Cursor::children(&node!("^redis", database)?).without_values();
        let mut count = 0;
        while count < COUNTED && cursor.next(context.session)? {
            count += 1;
        }
        let (expires, left) = expiring.get(&database).copied().unwrap_or_default();
        let average = left / expires.max(1);
        let more = if count == COUNTED { ",at_least=1" } else { "" };
        let text = format!("keys={count},expires={expires},avg_ttl={average}{more}");
        fields.push((format!("db{database}"), text));
    }
    Ok(fields)
}

/// By database: how many keys expire, and how many milliseconds they have left together.
fn expiring(context: &mut Context<'_>) -> Result<BTreeMap<i64, (i64, i64)>> {
    let mut cursor = Cursor::subtree(&expiries()?).without_values();
    let (mut found, mut count, now) = (BTreeMap::new(), 0, clock());
    while count < COUNTED && cursor.next(context.session)? {
        count += 1;
        let entry = cursor.node()?;
        let Some((database, time)) = is_due(context.session, &entry)? else { continue };
        let (expires, left) = found.entry(database).or_insert((0_i64, 0_i64));
        *expires += 1;
        *left = left.saturating_add((time - now).max(0));
    }
    Ok(found)
}

fn command_fields(context: &Context<'_>) -> Fields {
    let statistics = context.server.measures().statistics();
    let told = command::counted().filter_map(|(name, number)| Some((name, statistics.of(number)?)));
    told.map(|(name, sums)| {
        let each = sums.microseconds as f64 / sums.calls.max(1) as f64;
        let text = format!(
            "calls={},usec={},usec_per_call={each:.2},rejected_calls={},failed_calls={}",
            sums.calls, sums.microseconds, sums.rejected, sums.failed
        );
        (format!("cmdstat_{name}"), text)
    })
    .collect()
}

fn latency_fields(context: &Context<'_>) -> Fields {
    let statistics = context.server.measures().statistics();
    let live = context.server.rules().live();
    let mut fields = Vec::new();
    if !live.is_on(Name::LatencyTracking) {
        return fields;
    }
    let wanted = live.text(Name::LatencyTrackingInfoPercentiles);
    for (name, number) in command::counted() {
        let Some(sums) = statistics.of(number).filter(|sums| sums.timed() > 0) else { continue };
        // The upper end of the step that holds so many of the calls.
        let percentile = |wanted: f64| {
            let mut seen = 0;
            let step = sums.steps.iter().position(|count| {
                seen += count;
                seen as f64 >= (wanted / 100.0 * sums.timed() as f64).max(1.0)
            });
            (1_u64 << step.unwrap_or(0)) as f64
        };
        let told = wanted.split(' ').filter_map(|text| Some((text, text.parse().ok()?)));
        let told: Vec<_> = told.map(|(text, wanted)| format!("p{text}={:.3}", percentile(wanted))).collect();
        fields.push((format!("latency_percentiles_usec_{name}"), told.join(",")));
    }
    fields
}
