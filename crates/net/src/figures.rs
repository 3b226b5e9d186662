//! Figures of a server as Prometheus reads them, in its text format.
//!
//! ```
//! use perilune_net::figures::{Figures, Kind};
//!
//! let mut figures = Figures::default();
//! figures.one("clients", Kind::Gauge, "clients of this server", 3);
//! figures.head("errors_total", Kind::Counter, None);
//! figures.value("errors_total", &[("code", "ERR")], 2);
//! let text = figures.into_text();
//! assert!(text.contains("TYPE clients gauge\nclients 3\n"));
//! assert!(text.ends_with("TYPE errors_total counter\nerrors_total{code=\"ERR\"} 2\n"));
//! ```
//!
//! Invariant: what stands in a label or a help text cannot end it.
//!
//! Deliberately absent: which figures there are, and who asks (`page`).

use std::fmt::{Display, Write as _};

/// What a figure does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// It grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How many values are below each of some bounds.
    Histogram,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        }
    }
}

/// A histogram's values, of one set of labels.
#[derive(Clone, Debug)]
pub struct Values<I> {
    /// How many are at or below each bound, both in ascending order.
    pub below: I,
    /// All values added up.
    pub sum: f64,
    /// How many there are.
    pub count: u64,
}

/// A bound of a histogram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The bound.
    pub bound: f64,
    /// How many values are at or below it.
    pub count: u64,
}

/// The text, as far as it is written.
#[derive(Debug, Default)]
pub struct Figures(String);

impl Figures {
    /// Says what the values are that come next.
    pub fn head(&mut self, name: &str, kind: Kind, help: Option<&str>) {
        if let Some(help) = help {
            let help = help.replace('\\', "\\\\").replace('\n', "\\n");
            let _ = writeln!(self.0, "# HELP {name} {help}");
        }
        let _ = writeln!(self.0, "# TYPE {name} {}", kind.name());
    }

    /// A value under some labels.
    pub fn value(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (place, (label, text)) in labels.iter().enumerate() {
            let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            let _ = write!(self.0, "{}{label}=\"{text}\"", if place == 0 { "{" } else { "," });
        }
        let _ = writeln!(self.0, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    /// A figure that has one value.
    pub fn one(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.head(name, kind, Some(help));
        self.value(name, &[], value);
    }

    /// The values of a histogram whose [`Figures::head`] has been said, under one label of that text.
    pub fn histogram(
        &mut self,
        name: &str,
        label: &str,
        text: &str,
        values: Values<impl Iterator<Item = Step>>,
    ) {
        let label = (label, text);
        let bucket = format!("{name}_bucket");
        for step in values.below {
            self.value(&bucket, &[label, ("le", &step.bound.to_string())], step.count);
        }
        self.value(&bucket, &[label, ("le", "+Inf")], values.count);
        self.value(&format!("{name}_sum"), &[label], values.sum);
        self.value(&format!("{name}_count"), &[label], values.count);
    }

    /// All of it.
    #[must_use]
    pub fn into_text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_end_with_everything() {
        let mut figures = Figures::default();
        let below = [Step { bound: 0.001, count: 1 }, Step { bound: 0.002, count: 4 }].into_iter();
        figures.histogram("seconds", "command", "get", Values { below, sum: 0.5, count: 5 });
        let lines = [
            "seconds_bucket{command=\"get\",le=\"0.001\"} 1",
            "seconds_bucket{command=\"get\",le=\"0.002\"} 4",
            "seconds_bucket{command=\"get\",le=\"+Inf\"} 5",
            "seconds_sum{command=\"get\"} 0.5",
            "seconds_count{command=\"get\"} 5",
        ];
        assert_eq!(figures.into_text().lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn nothing_ends_a_label_or_a_help_text() {
        let mut figures = Figures::default();
        figures.head("x", Kind::Counter, Some("a\nb"));
        figures.value("x", &[("code", "\"} 1\nforged 2")], 0);
        assert_eq!(
            figures.into_text(),
            "# HELP x a\\nb\n# TYPE x counter\nx{code=\"\\\"} 1\\nforged 2\"} 0\n"
        );
    }
}
