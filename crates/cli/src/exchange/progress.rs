//! A bar on the standard error, if that is a terminal: bytes or pages of a file, or nodes of a database.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanCount, ProgressBar, ProgressState, ProgressStyle};

/// How often the bar of what tells nothing moves.
const TICK: Duration = Duration::from_millis(250);

/// How far a dump or a load has come.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// For a source of `bytes`, if that is known; `name` stands before the bar.
    pub(crate) fn of_bytes(name: &str, bytes: Option<u64>) -> Progress {
        match bytes {
            Some(bytes) => Progress::styled(
                ProgressBar::new(bytes),
                name,
                "{msg} {wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec} {eta}",
            ),
            None => Progress::styled(
                ProgressBar::new_spinner(),
                name,
                "{msg} {spinner} {binary_bytes} {binary_bytes_per_sec} {elapsed}",
            ),
        }
    }

    /// For nodes of which nobody knows how many there are.
    pub(crate) fn of_nodes(name: &str) -> Progress {
        Progress::styled(
            ProgressBar::new_spinner(),
            name,
            "{msg} {spinner} {human_pos} nodes {whole_per_sec}/s {elapsed}",
        )
    }

    /// For what tells nothing of how far it has come: it shows for how long it has been at work.
    pub(crate) fn of_unknown(name: &str) -> Progress {
        let progress = Progress::styled(ProgressBar::new_spinner(), name, "{msg} {spinner} {elapsed}");
        progress.0.enable_steady_tick(TICK);
        progress
    }

    /// For pages, of which [`Progress::of`] tells how many there are.
    pub(crate) fn of_pages(name: &str) -> Progress {
        Progress::styled(ProgressBar::new(0), name, "{msg} {wide_bar} {percent}% {eta}")
    }

    /// Notes the place, and how far it goes.
    pub(crate) fn of(&self, place: u64, all: u64) {
        self.0.set_length(all);
        self.0.set_position(place);
    }

    fn styled(bar: ProgressBar, name: &str, template: &str) -> Progress {
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style.with_key("whole_per_sec", whole_per_second));
        }
        bar.set_message(name.to_owned());
        Progress(bar)
    }

    /// Notes the place; the bar is drawn some times a second.
    pub(crate) fn at(&self, place: u64) {
        self.0.set_position(place);
    }

    /// Writes a line above the bar.
    pub(crate) fn say(&self, line: &str) {
        self.0.suspend(|| eprintln!("{line}"));
    }

    /// Takes the bar away.
    pub(crate) fn end(&self) {
        self.0.finish_and_clear();
    }
}

/// The rate without the digits behind the point, which nobody can read.
fn whole_per_second(state: &ProgressState, out: &mut dyn Write) {
    // A bar that cannot be drawn is not.
    let _ = write!(out, "{}", HumanCount(state.per_sec() as u64));
}
