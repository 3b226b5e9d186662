//! `stat`: figures of a database, and what each name takes; for people, as JSON, for Prometheus, or again and
//! again.
//!
//! What a name takes is counted by reading all of its values; figures cost no reading. So `--quick` and `--watch`
//! leave the names out: they are for those who ask often.
//!
//! Invariants
//! - Of a damaged database all that can be read is shown, before the error that says what to do.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, iter};

use clap::{Args, ValueHint};
use perilune::{Database, ErrorCode, Figure, FigureKind, Steps, TreeSize};
use serde_json::{json, Map, Value};

use super::look_at;
use super::table::{show, Table};
use crate::failure::{wrong_use, Result};
use crate::which_database;

/// Lines of `--watch` between two headings.
const HEADING_EVERY: u64 = 20;

/// The figures of `--watch`, which fit in 80 columns.
const WATCHED: [&str; 7] =
    ["writes", "commits", "conflicts", "lock_waits", "log_bytes", "fsyncs", "file_bytes"];

/// What of a database to show, and how.
#[derive(Args, Debug)]
pub(crate) struct StatOptions {
    /// The database, instead of --db
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) path: Option<PathBuf>,
    /// Prints a JSON object, with --watch one a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Prints the text format of Prometheus
    #[arg(long, conflicts_with = "json")]
    pub(crate) prometheus: bool,
    /// Only figures: reads no values
    #[arg(long)]
    pub(crate) quick: bool,
    /// Shows every so many seconds what has happened, events as so many a second, until it is stopped; all figures with
    /// --json
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true, default_missing_value = "1",
          value_parser = seconds, conflicts_with = "prometheus")]
    pub(crate) watch: Option<f64>,
    /// Ends --watch after so many lines
    #[arg(long, value_name = "LINES", requires = "watch")]
    pub(crate) count: Option<u64>,
}

fn seconds(text: &str) -> std::result::Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.01..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "a number of seconds from 0.01 to 86400".to_owned())
}

/// A name, and what it takes; None if that cannot be read.
type NameRow = (String, Option<TreeSize>);

/// Shows figures and names as told.
pub(crate) fn stat(options: &StatOptions, flag: Option<&Path>) -> Result<()> {
    if let (Some(_), Some(word)) = (options.watch, &options.path) {
        is_no_pause(word)?;
    }
    let database = look_at(which_database::only(options.path.as_deref(), flag)?)?;
    if let Some(seconds) = options.watch {
        return watch(&database, seconds, options.count, options.json);
    }
    let figures = figures(&database)?;
    let (names, damage) = if options.quick { (Vec::new(), None) } else { names(&database)? };
    let path = database.path().display().to_string();
    let text = if options.prometheus {
        prometheus(&path, &figures, &names)
    } else if options.json {
        let mut object = as_json(&path, file_bytes(&figures) + log_bytes(database.path()), &figures);
        if !options.quick {
            object.insert("names".to_owned(), names.iter().map(name_as_json).collect());
        }
        format!("{}\n", Value::Object(object))
    } else {
        for_people(&path, &figures, &names, log_bytes(database.path()))
    };
    show(&text)?;
    damage.map_or(Ok(()), |damage| Err(damage.into()))
}

/// Refuses the seconds of `--watch` in place of a database that is not there.
fn is_no_pause(word: &Path) -> Result<()> {
    match word.to_str().filter(|text| seconds(text).is_ok() && !word.exists()) {
        Some(text) => Err(wrong_use(format!("{text} is no database: seconds are given by --watch={text}"))),
        None => Ok(()),
    }
}

/// What the database counts, and who is there.
fn figures(database: &Database) -> Result<Vec<Figure>> {
    let mut figures = database.stat()?;
    let processes = database.processes()?;
    let sessions = processes.iter().map(|process| u64::from(process.sessions)).sum();
    let gauge = |name, value, meaning| Figure { name, kind: FigureKind::Gauge, value, meaning };
    figures.push(gauge("processes", processes.len() as u64, "processes that have it open, with this one"));
    figures.push(gauge("sessions", sessions, "sessions of all processes"));
    Ok(figures)
}

/// The names as far as they can be read, and the first damage that was met.
fn names(database: &Database) -> Result<(Vec<NameRow>, Option<perilune::Error>)> {
    let mut session = database.session()?;
    let (mut rows, mut damage) = (Vec::new(), None);
    let mut at = readable(session.first_name(false), &mut damage)?.flatten();
    while let Some(node) = at {
        let size = readable(session.tree_size(&node), &mut damage)?;
        rows.push((node.to_string(), size));
        at = readable(session.next(&node), &mut damage)?.flatten();
    }
    Ok((rows, damage))
}

/// What was read; None where it is damaged, of which the first is kept.
fn readable<T>(read: perilune::Result<T>, damage: &mut Option<perilune::Error>) -> Result<Option<T>> {
    match read {
        Err(error) if error.code() == ErrorCode::Corrupt => {
            damage.get_or_insert(error);
            Ok(None)
        }
        read => Ok(Some(read?)),
    }
}

fn for_people(path: &str, figures: &[Figure], names: &[NameRow], log: u64) -> String {
    let mut text = format!("{path}: {} bytes, and {log} of its log\n", file_bytes(figures));
    if !names.is_empty() {
        let columns = ["name<", "children", "values", "key bytes", "value bytes", "bytes/node"];
        let mut table = Table::new(&columns);
        let sum =
            names.iter().filter_map(|(_, size)| size.as_ref()).fold(TreeSize::default(), |sum, size| {
                TreeSize {
                    children: sum.children + size.children,
                    values: sum.values + size.values,
                    key_bytes: sum.key_bytes + size.key_bytes,
                    value_bytes: sum.value_bytes + size.value_bytes,
                }
            });
        let all = (format!("{} names", names.len()), Some(sum));
        for (name, size) in names.iter().chain(iter::once(&all)) {
            let mut row = vec![name.clone()];
            match size {
                Some(size) => {
                    let numbers = [size.children, size.values, size.key_bytes, size.value_bytes];
                    row.extend(numbers.map(|number| number.to_string()));
                    row.push(format!("{:.1}", size.bytes_per_node()));
                }
                None => row.push("damaged".to_owned()),
            }
            table.row(row);
        }
        text.push('\n');
        text.push_str(&table.text());
    }
    let mut table = Table::new(&["figure<", "value", "meaning<"]);
    for figure in figures {
        table.row(vec![figure.name.to_owned(), figure.value.to_string(), figure.meaning.to_owned()]);
    }
    text.push('\n');
    text.push_str(&table.text());
    text
}

fn as_json(path: &str, bytes: u64, figures: &[Figure]) -> Map<String, Value> {
    let values: Map<_, _> =
        figures.iter().map(|figure| (figure.name.to_owned(), json!(figure.value))).collect();
    let object = [("path", json!(path)), ("bytes", json!(bytes)), ("figures", Value::Object(values))];
    object.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

fn name_as_json((name, size): &NameRow) -> Value {
    let Some(size) = size else { return json!({"name": name, "damaged": true}) };
    json!({"name": name, "children": size.children, "values": size.values, "key_bytes": size.key_bytes,
           "value_bytes": size.value_bytes, "bytes_per_node": size.bytes_per_node()})
}

/// The text format of Prometheus, for a file that its node exporter collects, or a small server.
fn prometheus(path: &str, figures: &[Figure], names: &[NameRow]) -> String {
    let quoted = |text: &str| text.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
    let path = quoted(path);
    let mut text = String::new();
    for figure in figures {
        let (ending, kind) = match figure.kind {
            FigureKind::Count => ("_total", "counter"),
            FigureKind::Gauge => ("", "gauge"),
        };
        let (name, meaning, value) = (figure.name, figure.meaning, figure.value);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "# HELP perilune_{name}{ending} {meaning}\n# TYPE perilune_{name}{ending} {kind}\n\
             perilune_{name}{ending}{{db=\"{path}\"}} {value}\n"
        );
    }
    type Part = (&'static str, &'static str, fn(&TreeSize) -> u64);
    let parts: [Part; 4] = [
        ("children", "children of the name", |size| size.children),
        ("values", "nodes with a value below the name", |size| size.values),
        ("key_bytes", "bytes of their keys", |size| size.key_bytes),
        ("value_bytes", "bytes of their values", |size| size.value_bytes),
    ];
    for (part, meaning, value) in parts.iter().filter(|_| !names.is_empty()) {
        let _ = write!(text, "# HELP perilune_tree_{part} {meaning}\n# TYPE perilune_tree_{part} gauge\n");
        for (name, size) in names {
            let (name, Some(size)) = (quoted(name), size) else { continue };
            let _ = writeln!(text, "perilune_tree_{part}{{db=\"{path}\",name=\"{name}\"}} {}", value(size));
        }
    }
    text
}

/// Shows every `seconds` what has happened since: counts as events a second, gauges as they are.
fn watch(database: &Database, seconds: f64, count: Option<u64>, as_lines: bool) -> Result<()> {
    let pause = Duration::from_secs_f64(seconds);
    let (mut before, mut at) = (figures(database)?, Instant::now());
    let mut shown = 0;
    while count.is_none_or(|count| shown < count) {
        thread::sleep(pause);
        let now = figures(database)?;
        let passed = at.elapsed().as_secs_f64();
        at = Instant::now();
        let row = now.iter().zip(&before).map(|(now, before)| match now.kind {
            FigureKind::Count => (now.name, now.value.saturating_sub(before.value) as f64 / passed),
            FigureKind::Gauge => (now.name, now.value as f64),
        });
        let row: Vec<(&str, f64)> = row.collect();
        let text = if as_lines {
            let object: Map<_, _> =
                row.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            format!("{}\n", Value::Object(object))
        } else {
            let row: Vec<_> = row.into_iter().filter(|(name, _)| WATCHED.contains(name)).collect();
            watched(&row, shown.is_multiple_of(HEADING_EVERY))
        };
        if !show(&text)? {
            return Ok(());
        }
        before = now;
        shown += 1;
    }
    Ok(())
}

/// One line, with the heading before it.
fn watched(row: &[(&str, f64)], with_heading: bool) -> String {
    let width = |name: &str| name.len().max(9);
    let mut text = String::new();
    if with_heading {
        let words = row.iter().map(|(name, _)| format!("{name:>0$}", width(name)));
        text = words.collect::<Vec<_>>().join(" ") + "\n";
    }
    let words = row.iter().map(|(name, value)| format!("{value:>0$.0}", width(name)));
    text + &words.collect::<Vec<_>>().join(" ") + "\n"
}

/// Bytes of the file.
fn file_bytes(figures: &[Figure]) -> u64 {
    figures.iter().find(|figure| figure.name == "file_bytes").map_or(0, |figure| figure.value)
}

/// Bytes of the log's segments.
fn log_bytes(path: &Path) -> u64 {
    let mut bytes = 0;
    let stem = format!("{}-wal.", path.file_name().unwrap_or_default().to_string_lossy());
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.map_or_else(|| PathBuf::from("."), Path::to_owned);
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(&stem) {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_gets_its_text() {
        let figures = [Figure { name: "writes", kind: FigureKind::Count, value: 7, meaning: "writes" }];
        let names = [("^a\"\\".to_owned(), Some(TreeSize { values: 3, ..TreeSize::default() }))];
        let text = prometheus("x.db", &figures, &names);
        assert!(text.starts_with(
            "# HELP perilune_writes_total writes\n# TYPE perilune_writes_total counter\n\
             perilune_writes_total{db=\"x.db\"} 7\n"
        ));
        assert!(text.contains("perilune_tree_values{db=\"x.db\",name=\"^a\\\"\\\\\"} 3\n"), "{text}");
        assert!(!prometheus("x.db", &figures, &[]).contains("tree"));
    }

    #[test]
    fn what_is_watched_fits_a_terminal() {
        let row = WATCHED.map(|name| (name, 1.0));
        assert!(watched(&row, true).lines().all(|line| line.len() < 80));
    }

    #[test]
    fn lines_stand_under_their_heading() {
        let row = [("writes", 1234.6), ("a_long_figure", 5.0)];
        assert_eq!(watched(&row, true), "   writes a_long_figure\n     1235             5\n");
        assert_eq!(watched(&row, false), "     1235             5\n");
    }
}
