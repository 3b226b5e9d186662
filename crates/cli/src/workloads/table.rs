//! The results of `bench lua`: medians and spreads beside targets and published figures, as a table and as bars.

use std::collections::BTreeMap;
use std::fmt::Write;

use perilune_chart::{bars, Axis, Bar, Drawing, Scale, Whose};

use crate::workloads::published::{Target, Workload, WORKLOADS};

/// The values of all rounds by workload.
#[derive(Debug, Default)]
pub(crate) struct Results {
    values: BTreeMap<String, Vec<f64>>,
}

impl Results {
    /// Adds a round's value.
    pub(crate) fn add(&mut self, name: &str, value: f64) {
        self.values.entry(name.to_owned()).or_default().push(value);
    }

    /// Workload, round from 1, value.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&'static Workload, usize, f64)> + '_ {
        WORKLOADS.iter().flat_map(|workload| {
            let values = self.values.get(workload.name).into_iter().flatten();
            values.enumerate().map(move |(index, value)| (workload, index + 1, *value))
        })
    }

    /// The median of a workload, and half the distance of its quartiles.
    fn median(&self, name: &str) -> Option<(f64, f64)> {
        let mut sorted = self.values.get(name)?.clone();
        sorted.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (sorted.len() - 1) as f64;
            let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        Some((at(0.5), (at(0.75) - at(0.25)) / 2.0))
    }

    fn limit(&self, target: Target) -> Option<f64> {
        match target {
            Target::None => None,
            Target::AtMost(limit) => Some(limit),
            Target::Above(other, more) => Some(self.median(other)?.0 + more),
            Target::Times(other, times) => Some(self.median(other)?.0 * times),
        }
    }

    /// Lines for people.
    pub(crate) fn table(&self) -> String {
        let mut out =
            String::from("workload                median    spread  unit  published    target          \n");
        for workload in WORKLOADS {
            let Some((median, spread)) = self.median(workload.name) else { continue };
            let published = workload.published.map_or(String::new(), |value| value.to_string());
            let verdict = self.limit(workload.target).map_or(String::new(), |limit| {
                let met = if median <= limit { "met" } else { "MISSED" };
                format!("{} {met}", digits(limit))
            });
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "{:<20} {:>9} {:>9}  {:<4}  {published:>9}  {verdict:>14}  {}",
                workload.name,
                digits(median),
                digits(spread),
                workload.unit,
                workload.what
            );
        }
        out
    }

    /// How many times faster than published, for what was published.
    pub(crate) fn chart(&self, lua: &str) -> Drawing {
        let all: Vec<Bar> = WORKLOADS
            .iter()
            .filter_map(|workload| {
                let (median, _) = self.median(workload.name).filter(|(median, _)| *median > 0.0)?;
                let value = workload.published? / median;
                let unit = workload.unit;
                let text = format!("{value:.1} x, {} {unit}", digits(median));
                Some(Bar { label: workload.name.to_owned(), value, text, whose: Whose::Ours })
            })
            .collect();
        let scale = Scale::fitting(all.iter().map(|bar| bar.value));
        let axis = Axis { name: "times as fast", scale };
        bars(&format!("{lua}: times as fast as published of lua-yottadb 2.1"), "longer is better", axis, &all)
    }
}

/// Three significant digits, and no fewer than the whole ones.
fn digits(value: f64) -> String {
    let whole = if value >= 1.0 { value.log10().floor() as usize + 1 } else { 1 };
    format!("{value:.*}", 4usize.saturating_sub(whole).min(3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(values: &[(&str, f64)]) -> Results {
        let mut results = Results::default();
        values.iter().for_each(|(name, value)| results.add(name, *value));
        results
    }

    #[test]
    fn medians_lie_between_and_are_judged() {
        let results = results(&[
            ("get", 90.0),
            ("get", 130.0),
            ("get", 100.0),
            ("engine-get", 20.0),
            ("get-method", 150.1),
            ("node-26", 2.5),
        ]);
        assert_eq!(results.median("get"), Some((100.0, 10.0)));
        let table = results.table();
        let line = |name: &str| table.lines().find(|line| line.starts_with(name)).expect("a line").to_owned();
        assert!(line("get ").contains("120.0 met"), "{table}");
        assert!(line("get-method ").contains("150.0 MISSED"), "{table}");
        assert!(line("node-26 ").contains("4.9") && line("node-26 ").contains("2.500 met"), "{table}");
        assert!(!table.contains("settree"), "{table}");
        assert_eq!(results.rows().count(), 6);
    }

    #[test]
    fn only_what_was_published_has_a_bar() {
        let svg = results(&[("node-26", 0.49), ("get", 1.0), ("signals", 0.0)]).chart("Lua").svg().unwrap();
        assert!(svg.contains("10.0 x, 0.490 us") && !svg.contains("get\n"), "{svg}");
    }

    #[test]
    fn digits_are_three_or_all_whole_ones() {
        assert_eq!(
            [0.0, 0.01418, 1.25, 48.14, 3185.4].map(digits),
            ["0.000", "0.014", "1.250", "48.14", "3185"]
        );
    }
}
