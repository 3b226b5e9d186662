//! The server's log: a line for each event, in logfmt or JSON, to a file or to standard error.
//!
//! Invariants
//! - A line is written with one call, so that lines of several servers in one file stay whole.
//! - What clients send stands in quotes, escaped: no line can be forged.
//! - A log that cannot be written stops nobody.
//! - Nobody fills the disk with it who need not be known to do so: of each kind of event that strangers can cause some lines a
//!   second are written, and then how many more there were.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Lines of the log a second, of each kind that anybody can cause who reaches the server, and letters of a name in them.
const STRANGERS_LINES: u32 = 10;
const STRANGERS_LETTERS: usize = 64;

/// How much an event matters; the setting `loglevel` names the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For who looks for a mistake.
    Debug = 0,
    /// What clients do.
    Verbose = 1,
    /// What an operator wants to know.
    Notice = 2,
    /// What an operator should see to.
    Warning = 3,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Verbose => "verbose",
            Level::Notice => "notice",
            Level::Warning => "warning",
        }
    }
}

/// Opens the file at `path`, to append; one that is made is not for everybody to read.
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).append(true).mode(0o640).open(path)
}

/// The log.
#[derive(Debug)]
pub struct Journal {
    path: Option<PathBuf>,
    /// None: standard error.
    file: Mutex<Option<File>>,
    json: bool,
    /// By event.
    floods: Mutex<BTreeMap<&'static str, Flood>>,
}

/// Lines of an event that strangers cause.
#[derive(Debug)]
struct Flood {
    level: Level,
    /// When the second began that is counted.
    since: Instant,
    lines: u32,
    /// Those that were not written.
    more: u64,
}

impl Journal {
    /// Opens the file at `path`, to append.
    pub fn open(path: Option<PathBuf>, json: bool) -> io::Result<Journal> {
        let file = path.as_deref().map(open).transpose()?;
        Ok(Journal { path, file: Mutex::new(file), json, floods: Mutex::default() })
    }

    /// Whether it goes to a file of its own.
    pub fn is_file(&self) -> bool {
        self.path.is_some()
    }

    /// Opens the file again, which was moved away; if that fails the old one stays.
    pub fn reopen(&self) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let file = open(path)?;
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
        Ok(())
    }

    /// Writes an event with what is known of it.
    pub fn write(&self, level: Level, event: &str, details: &[(&str, &str)]) {
        let line = if self.json { json(level, event, details) } else { logfmt(level, event, details) };
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = match &mut *file {
            Some(file) => file.write_all(line.as_bytes()),
            None => io::stderr().write_all(line.as_bytes()),
        };
    }

    /// Writes an event that anybody can cause, unless there were many of its kind in this second.
    pub fn write_some(&self, level: Level, event: &'static str, details: &[(&str, &str)]) {
        let (mut floods, now) = (self.floods(), Instant::now());
        let flood = floods.entry(event).or_insert(Flood { level, since: now, lines: 0, more: 0 });
        if flood.is_over(now) {
            self.end(event, flood, now);
        }
        if flood.lines < STRANGERS_LINES {
            flood.lines += 1;
            self.write(level, event, details);
        } else {
            flood.more += 1;
        }
    }

    /// Writes how many events were left out, of the seconds that are over. Called each second.
    pub fn tell_floods(&self) {
        let now = Instant::now();
        for (event, flood) in
            self.floods().iter_mut().filter(|(_, flood)| flood.more > 0 && flood.is_over(now))
        {
            self.end(event, flood, now);
        }
    }

    fn end(&self, event: &str, flood: &mut Flood, now: Instant) {
        if flood.more > 0 {
            let more = [("text", &*format!("{} more like this", flood.more))];
            self.write(flood.level, event, &more);
        }
        *flood = Flood { level: flood.level, since: now, lines: 0, more: 0 };
    }

    fn floods(&self) -> MutexGuard<'_, BTreeMap<&'static str, Flood>> {
        self.floods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Flood {
    fn is_over(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= Duration::from_secs(1)
    }
}

/// What a client calls something, as far as a line shows it.
pub fn cut(name: &str) -> Cow<'_, str> {
    match name.char_indices().nth(STRANGERS_LETTERS) {
        None => Cow::Borrowed(name),
        Some((end, _)) => Cow::Owned(format!("{}...", &name[..end])),
    }
}

fn logfmt(level: Level, event: &str, details: &[(&str, &str)]) -> String {
    let mut line = format!("time={} level={} pid={}", now(), level.name(), std::process::id());
    for (name, value) in [("event", event)].iter().chain(details) {
        let plain = !value.is_empty()
            && value.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"=\\".contains(&byte));
        let _ =
            if plain { write!(line, " {name}={value}") } else { write!(line, " {name}={}", quoted(value)) };
    }
    line.push('\n');
    line
}

fn json(level: Level, event: &str, details: &[(&str, &str)]) -> String {
    let mut line =
        format!("{{\"time\":\"{}\",\"level\":\"{}\",\"pid\":{}", now(), level.name(), std::process::id());
    for (name, value) in [("event", event)].iter().chain(details) {
        let _ = write!(line, ",\"{name}\":{}", quoted(value));
    }
    line.push_str("}\n");
    line
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            '\n' => quoted.push_str("\\n"),
            letter if (letter as u32) < 0x20 || letter as u32 == 0x7f => {
                let _ = write!(quoted, "\\u{:04x}", letter as u32);
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The time in UTC, as RFC 3339 has it.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    stamp(since.as_secs(), since.subsec_millis())
}

fn stamp(seconds: u64, milliseconds: u32) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that the odd day of a leap year comes last.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (era * 400 + year_of_era, month + 3),
        _ => (era * 400 + year_of_era + 1, month - 9),
    };
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{milliseconds:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cannot_be_forged() {
        let details = [("user", "a\nlevel=notice"), ("port", "6379"), ("empty", "")];
        let line = logfmt(Level::Warning, "no entry", &details);
        assert!(
            line.ends_with(" event=\"no entry\" user=\"a\\nlevel=notice\" port=6379 empty=\"\"\n"),
            "{line}"
        );
        assert_eq!(line.matches('\n').count(), 1);
        let line = json(Level::Notice, "x", &[("name", "\"\u{1}\\")]);
        assert!(line.ends_with(",\"event\":\"x\",\"name\":\"\\\"\\u0001\\\\\"}\n"), "{line}");
    }

    #[test]
    fn names_are_cut_between_letters() {
        assert_eq!(cut("ada"), "ada");
        assert_eq!(cut(&"ä".repeat(STRANGERS_LETTERS)), "ä".repeat(STRANGERS_LETTERS));
        assert_eq!(cut(&"ä".repeat(16_000)), "ä".repeat(STRANGERS_LETTERS) + "...");
    }

    #[test]
    fn times_are_told_as_calendars_have_them() {
        for (second, told) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399, "2000-02-28T23:59:59.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (951_868_800, "2000-03-01T00:00:00.000Z"),
            (1_795_347_459, "2026-11-22T11:37:39.000Z"),
            (4_102_444_800, "2100-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(stamp(second, 0), told);
        }
    }
}
