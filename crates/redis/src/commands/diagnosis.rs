//! SLOWLOG, LATENCY and MEMORY.

use std::fmt::Write as _;

use perilune::node;
use perilune_resp::{parse_integer, Arguments, Replies};

use super::info;
use crate::context::Context;
use crate::failure::{refuse, refuse_with, Result, SYNTAX};
use crate::keyspace::Keys;
use crate::numbers::lower;
use crate::refusals::wrong_number;
use crate::settings::Name;
use crate::statistics::{Delays, STEPS};
use crate::{command, slowlog};
use perilune_net::clock::clock;

const SLOWLOG_HELP: &[&str] = &[
    "SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "GET [<count>]",
    "    Return top <count> entries from the slowlog (default: 10, -1 mean all).",
    "    Entries are made of:",
    "    id, timestamp, time in microseconds, arguments array, client IP and port,",
    "    client name",
    "LEN",
    "    Return the length of the slowlog.",
    "RESET",
    "    Reset the slowlog.",
    "HELP",
    "    Print this help.",
];

const LATENCY_HELP: &[&str] = &[
    "LATENCY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return a human readable latency analysis report.",
    "GRAPH <event>",
    "    Return an ASCII latency graph for the <event> class.",
    "HISTORY <event>",
    "    Return time-latency samples for the <event> class.",
    "LATEST",
    "    Return the latest latency samples for all events.",
    "RESET [<event> ...]",
    "    Reset latency data of one or more <event> classes.",
    "    (default: reset all data for all event classes)",
    "HISTOGRAM [COMMAND ...]",
    "    Return a cumulative distribution of latencies in the format of a histogram for the specified command names.",
    "    If no commands are specified then all histograms are replied.",
    "HELP",
    "    Print this help.",
];

const MEMORY_HELP: &[&str] = &[
    "MEMORY <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
    "DOCTOR",
    "    Return memory problems reports.",
    "MALLOC-STATS",
    "    Return what the system says of this process.",
    "PURGE",
    "    Do nothing: memory is a mapped file, which the system purges.",
    "STATS",
    "    Return information about the memory usage of the server.",
    "USAGE <key> [SAMPLES <count>]",
    "    Return memory in bytes used by <key> and its value.",
    "HELP",
    "    Print this help.",
];

fn wrong_word<T>(container: &str, word: &[u8]) -> Result<T> {
    refuse_with(wrong_number(&format!("{container}|{}", String::from_utf8_lossy(word))))
}

pub(crate) fn slow(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match (&*lower(&arguments[1]), arguments.len()) {
        (b"get", 2..=3) => {
            let count = match arguments.get(2).map(parse_integer) {
                None => 10,
                Some(Some(-1)) => usize::MAX,
                Some(Some(count @ 0..)) => count as usize,
                _ => return refuse("ERR count should be greater than or equal to -1"),
            };
            let entries = slowlog::newest(context.session, count)?;
            replies.array(entries.len());
            entries.iter().for_each(|entry| replies.raw(entry));
        }
        (b"len", 2) => replies.count(slowlog::length(context.session)? as usize),
        (b"reset", 2) => {
            slowlog::clear(context.session)?;
            replies.simple("OK");
        }
        (b"help", 2) => super::help(SLOWLOG_HELP, replies),
        (word, _) => return wrong_word("slowlog", word),
    }
    Ok(())
}

pub(crate) fn latency(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let statistics = context.server.measures().statistics();
    let find = |event: &[u8]| {
        let delays = statistics.delays();
        delays.into_iter().find(|(known, _)| known.as_bytes() == event)
    };
    match (&*lower(&arguments[1]), arguments.len()) {
        (b"latest", 2) => {
            let delays = statistics.delays();
            replies.array(delays.len());
            for (event, delays) in delays {
                let last = delays.samples.back().copied();
                replies.array(4);
                replies.bulk(event.as_bytes());
                replies.integer(last.map_or(0, |sample| sample.second));
                replies.integer(last.map_or(0, |sample| sample.milliseconds));
                replies.integer(delays.most);
            }
        }
        (b"history", 3) => {
            let samples = find(&arguments[2]).map(|(_, delays)| delays.samples).unwrap_or_default();
            replies.array(samples.len());
            for sample in samples {
                replies.array(2);
                replies.integer(sample.second);
                replies.integer(sample.milliseconds);
            }
        }
        (b"reset", 2) => {
            let delays = statistics.delays();
            replies.count(delays.keys().filter(|event| statistics.forget_delays(event.as_bytes())).count());
        }
        (b"reset", _) => {
            let events = arguments.from(2);
            replies.count(events.iter().filter(|event| statistics.forget_delays(event)).count());
        }
        (b"graph", 3) => match find(&arguments[2]) {
            Some((event, delays)) => replies.verbatim(graph(event, &delays).as_bytes()),
            None => {
                let event = String::from_utf8_lossy(&arguments[2]);
                return refuse_with(format!("ERR No samples available for event '{event}'"));
            }
        },
        (b"doctor", 2) => replies.verbatim(doctor(context).as_bytes()),
        (b"histogram", _) => histogram(context, arguments.from(2), replies),
        (b"help", 2) => super::help(LATENCY_HELP, replies),
        (word, _) => return wrong_word("latency", word),
    }
    Ok(())
}

/// Delays as columns of characters, the newest on the right.
fn graph(event: &str, delays: &Delays) -> String {
    let low = delays.samples.iter().map(|sample| sample.milliseconds).min().unwrap_or(0);
    let high = delays.samples.iter().map(|sample| sample.milliseconds).max().unwrap_or(0);
    let mut text = format!("{event} - high {high} ms, low {low} ms (all time high {} ms)\n", delays.most);
    text.push_str(&"-".repeat(80));
    text.push('\n');
    let recent = delays.samples.len().saturating_sub(80);
    for row in (0..4).rev() {
        for sample in delays.samples.iter().skip(recent) {
            let height = (sample.milliseconds - low) * 4 / (high - low).max(1);
            text.push(if height > row || row == 0 { '#' } else { ' ' });
        }
        text.push('\n');
    }
    text
}

fn doctor(context: &Context<'_>) -> String {
    if context.server.rules().live().number(Name::LatencyMonitorThreshold) == 0 {
        return "Delays are not kept: CONFIG SET latency-monitor-threshold <milliseconds> keeps those from there on.\n"
            .to_owned();
    }
    let delays = context.server.measures().statistics().delays();
    if delays.is_empty() {
        return "No delay has been as long as latency-monitor-threshold.\n".to_owned();
    }
    let mut text = String::new();
    for (event, delays) in delays {
        let sum: i64 = delays.samples.iter().map(|sample| sample.milliseconds).sum();
        let mean = sum / delays.samples.len().max(1) as i64;
        let _ = writeln!(
            text,
            "{event}: {} delays, {mean} ms on average, {} ms at most.",
            delays.samples.len(),
            delays.most
        );
    }
    text.push_str("SLOWLOG GET names slow commands; `perilune stat` tells of checkpoints and the disk.\n");
    text
}

fn histogram(context: &Context<'_>, names: Arguments<'_>, replies: &mut Replies<'_>) {
    let is_wanted = |known: &str| {
        let container = known.split('|').next().unwrap_or(known).as_bytes();
        let means =
            |name: &[u8]| name.eq_ignore_ascii_case(known.as_bytes()) || name.eq_ignore_ascii_case(container);
        names.is_empty() || names.iter().any(means)
    };
    let statistics = context.server.measures().statistics();
    let mut told = Vec::new();
    if context.server.rules().live().is_on(Name::LatencyTracking) {
        let wanted = command::counted().filter(|(name, _)| is_wanted(name));
        told.extend(wanted.filter_map(|(name, number)| Some((name, statistics.of(number)?))));
        told.retain(|(_, sums)| sums.timed() > 0);
    }
    replies.map(told.len());
    for (name, sums) in told {
        replies.bulk(name.as_bytes());
        replies.map(2);
        replies.bulk(b"calls");
        replies.integer(sums.timed() as i64);
        replies.bulk(b"histogram_usec");
        // Cumulative, without the steps where nothing came.
        let (mut seen, mut steps) = (0, Vec::new());
        for step in (0..STEPS).filter(|step| sums.steps[*step] > 0) {
            seen += sums.steps[step];
            steps.push((1_i64 << step, seen as i64));
        }
        replies.map(steps.len());
        for (microseconds, count) in steps {
            replies.integer(microseconds);
            replies.integer(count);
        }
    }
}

pub(crate) fn memory(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    match (&*lower(&arguments[1]), arguments.len()) {
        (b"usage", 3 | 5) => return usage(context, arguments, replies),
        (b"stats", 2) => return stats(context, replies),
        (b"doctor", 2) => {
            let used = info::human(info::used(context)?);
            let text = format!(
                "The database takes {used} of its file; what is mapped is shared by all its processes.\n"
            );
            replies.verbatim(text.as_bytes());
        }
        (b"malloc-stats", 2) => {
            replies.verbatim(std::fs::read("/proc/self/status").unwrap_or_default().as_slice());
        }
        (b"purge", 2) => replies.simple("OK"),
        (b"help", 2) => super::help(MEMORY_HELP, replies),
        (word, _) => return wrong_word("memory", word),
    }
    Ok(())
}

/// Bytes of the nodes of a key, their subscripts and values.
fn usage(context: &mut Context<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    if let Some(option) = arguments.get(3) {
        // Everything is always counted.
        let count = arguments.get(4).and_then(parse_integer);
        if lower(option) != &b"samples"[..] || count.is_none_or(|count| count < 0) {
            return refuse(SYNTAX);
        }
    }
    let database = context.client.database;
    let mut keys = Keys::new(context.session, context.effects, database, clock(), false);
    let key = keys.key(&arguments[2])?;
    if keys.open(&key)?.is_none() {
        replies.null();
        return Ok(());
    }
    let size = context.session.tree_size(&key.node)?;
    replies.integer((size.key_bytes + size.value_bytes) as i64);
    Ok(())
}

fn stats(context: &mut Context<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let keys = context.session.count_children(&node!("^redis", context.client.database)?)?;
    let (used, (resident, private)) = (info::used(context)?, info::resident());
    let fields = [
        ("total.allocated", used),
        ("startup.allocated", 0),
        ("keys.count", keys),
        ("keys.bytes-per-key", used / keys.max(1)),
        ("dataset.bytes", used),
        ("process.resident", resident),
        ("process.private", private),
    ];
    replies.map(fields.len());
    for (field, number) in fields {
        replies.bulk(field.as_bytes());
        replies.integer(number as i64);
    }
    Ok(())
}
