//! The charts of a run: throughput of commands, throughput over connections, and latency over connections
//! and percentile as surfaces.

use std::fs;
use std::path::Path;

use perilune_chart::{bars, lines, surfaces, Axis, Bar, Drawing, Grid, Scale, Series, Sheet, Whose};

use crate::report::quantity;
use crate::statistics::median;
use crate::subject::Result;

use super::commands::{COMMAND, SCRIPT};
use super::connections::{SECTION, STUDY};
use super::row::Row;
use super::sides::{Side, ALL, ONE, TWO};

/// Percentiles of a surface, from and to, and connections up to.
const SURFACES: [(&str, f64, f64, usize); 5] = [
    ("0 to 100 %", 0.0, 100.0, usize::MAX),
    ("0 to 90 %", 0.0, 90.0, usize::MAX),
    ("90 to 99 %", 90.0, 99.0, usize::MAX),
    ("above 99 %", 99.0, 100.0, usize::MAX),
    ("above 99 %, up to 1,000 connections", 99.0, 100.0, 1_000),
];
/// Steps of a surface's percentiles.
const STEPS: usize = 20;

/// A chart: the name of its files, its title, and what is drawn.
pub(super) type Picture = (String, String, Drawing);

/// Writes the charts below `directory`. Nothing that is kept names them: they can be drawn again.
pub(super) fn write(drawings: &[Picture], directory: &Path) -> Result<()> {
    let charts = directory.join("charts");
    fs::create_dir_all(&charts)?;
    for (name, _, drawing) in drawings {
        fs::write(charts.join(format!("{name}.svg")), drawing.svg()?)?;
        fs::write(charts.join(format!("{name}.png")), drawing.png()?)?;
    }
    Ok(())
}

/// Every chart that the rows have something for.
pub(super) fn drawings(rows: &[Row]) -> Vec<Picture> {
    let mut all = Vec::new();
    for (name, section, pipeline, title) in [
        ("commands", COMMAND, 1, "Commands, one at a time: operations a second"),
        ("pipelines", COMMAND, super::commands::PIPELINE, "Commands in pipelines of 16: operations a second"),
        ("scripts", SCRIPT, 1, "Scripts and round trips: scripts a second"),
    ] {
        for (by_cpu, ending) in [(false, ""), (true, ", of server CPU")] {
            let all_bars = bars_of(rows, section, pipeline, by_cpu);
            if !all_bars.is_empty() {
                let name = if by_cpu { format!("{name}-cpu") } else { name.to_owned() };
                let title = format!("{title}{ending}");
                let scale = Scale::fitting(all_bars.iter().map(|bar| bar.value));
                let unit = if by_cpu { "for each second of server CPU" } else { "a second" };
                let what = if section == SCRIPT { "scripts" } else { "operations" };
                let axis = format!("{what} {unit}");
                let axis = Axis { name: &axis, scale };
                let drawing = bars(&title, "50 connections; longer is better", axis, &all_bars);
                all.push((name, title, drawing));
            }
        }
    }
    let study: Vec<&Row> =
        rows.iter().filter(|row| row.section == SECTION && row.workload == STUDY).collect();
    if study.is_empty() {
        return all;
    }
    let across = Axis { name: "connections", scale: Scale::Logarithmic };
    let series = |value: fn(&Row) -> f64| -> Vec<Series> {
        let sides = ALL.into_iter().map(|side| (side, false)).chain([(ONE, true)]);
        let lines = sides.map(|(side, many)| one_side(&study, side, many, value));
        lines.filter(|one| !one.points.is_empty()).collect()
    };
    let note = "GET, each connection has one under way";
    for (name, title, unit, value) in [
        (
            "throughput",
            "Throughput over connections",
            "requests a second",
            (|row| row.value) as fn(&Row) -> f64,
        ),
        ("throughput-cpu", "Requests in a second of server CPU", "requests a CPU second", Row::per_cpu),
        ("p99", "Latency of all but the slowest 1 % over connections", "microseconds", Row::p99),
    ] {
        let scale = if name == "p99" { Scale::Logarithmic } else { Scale::Linear };
        let drawing = lines(title, note, across, Axis { name: unit, scale }, &series(value));
        all.push((name.to_owned(), title.to_owned(), drawing));
    }
    for (index, (range, from, to, most)) in SURFACES.into_iter().enumerate() {
        let title = format!("Latency over connections and percentile: {range}");
        let drawing = surface(&title, &study, from, to, most);
        all.push((format!("latency-{}", index + 1), title, drawing));
    }
    all
}

fn bars_of(rows: &[Row], section: &str, pipeline: usize, by_cpu: bool) -> Vec<Bar> {
    let rows: Vec<&Row> =
        rows.iter().filter(|row| row.section == section && row.pipeline == pipeline).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &rows {
        if !names.contains(&row.workload.as_str()) {
            names.push(&row.workload);
        }
    }
    let mut bars = Vec::new();
    for name in names {
        for side in ALL {
            let of = rows.iter().filter(|row| row.workload == name && row.backend == side.name());
            let values: Vec<f64> = of.map(|row| if by_cpu { row.per_cpu() } else { row.value }).collect();
            if !values.is_empty() {
                let value = median(&values);
                bars.push(Bar {
                    label: format!("{name} {}", side.name()),
                    value: if value.is_finite() { value } else { 0.0 },
                    text: quantity(value),
                    whose: if side == Side::Redis { Whose::Theirs } else { Whose::Ours },
                });
            }
        }
    }
    bars
}

/// A side with one process, or with many.
fn one_side(study: &[&Row], side: Side, many: bool, value: fn(&Row) -> f64) -> Series {
    let mut points: Vec<(f64, f64)> = Vec::new();
    let mut name = side.name().to_owned();
    let mine: Vec<&&Row> =
        study.iter().filter(|row| row.backend == side.name() && (row.servers > 1) == many).collect();
    for row in mine.iter().filter(|row| row.round == 0) {
        let rounds = mine.iter().filter(|other| other.connections == row.connections);
        points.push((row.connections as f64, median(&rounds.map(|row| value(row)).collect::<Vec<_>>())));
        if many {
            name = format!("{} x {} processes", side.name(), row.servers);
        }
    }
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    Series { name, ours: side != Side::Redis, points }
}

fn surface(title: &str, study: &[&Row], from: f64, to: f64, most: usize) -> Drawing {
    let chosen: Vec<&Row> =
        study.iter().copied().filter(|row| row.connections <= most && row.servers == 1).collect();
    let mut levels: Vec<usize> = chosen.iter().map(|row| row.connections).collect();
    levels.sort_unstable();
    levels.dedup();
    let percentiles: Vec<f64> =
        (0..=STEPS).map(|step| from + (to - from) * step as f64 / STEPS as f64).collect();
    let height = |row: &Row, percent: f64| {
        let nearest = row
            .curve
            .iter()
            .min_by(|one, other| (one.0 - percent).abs().total_cmp(&(other.0 - percent).abs()));
        nearest.map_or(f64::NAN, |(_, microseconds)| microseconds / 1e3)
    };
    let sheet = |side: Side| {
        let row = |level: &usize| {
            let row = chosen.iter().find(|row| row.backend == side.name() && row.connections == *level);
            row.map_or_else(Vec::new, |row| percentiles.iter().map(|percent| height(row, *percent)).collect())
        };
        Sheet { name: side.name().to_owned(), heights: levels.iter().map(row).collect() }
    };
    let levels: Vec<f64> = levels.iter().map(|level| *level as f64).collect();
    let sheets: Vec<Sheet> = [Side::Redis, TWO].map(sheet).to_vec();
    let axis = |name, scale| Axis { name, scale };
    surfaces(
        title,
        "",
        Grid { axis: axis("connections", Scale::Logarithmic), values: &levels },
        Grid { axis: axis("percent of the requests", Scale::Linear), values: &percentiles },
        axis("milliseconds", Scale::Logarithmic),
        &sheets,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_study_has_lines_and_surfaces_of_both_servers() {
        let row = |side, connections: usize, servers| Row {
            connections,
            servers,
            latency_us: vec![1.0, 2.0, 3.0, 4.0, 5.0],
            curve: (0..=100).map(|percent| (f64::from(percent), 1.0 + f64::from(percent))).collect(),
            ..Row::figure(SECTION, STUDY, side, "op/s", 1e5 / connections as f64)
        };
        let mut rows = vec![row(ONE, 64_000, 4)];
        for level in [1, 10, 100] {
            rows.extend(ALL.map(|side| row(side, level, 1)));
        }
        let drawings = drawings(&rows);
        let names: Vec<&str> = drawings.iter().map(|(name, ..)| name.as_str()).collect();
        let surfaces: Vec<String> = (1..=5).map(|number| format!("latency-{number}")).collect();
        let wanted: Vec<&str> = ["throughput", "throughput-cpu", "p99"]
            .into_iter()
            .chain(surfaces.iter().map(String::as_str))
            .collect();
        assert_eq!(names, wanted);
        let svg = drawings[0].2.svg().unwrap();
        assert!(svg.contains("perilune-1 x 4 processes") && svg.contains("redis\n"), "{svg}");
        // Two surfaces of two by twenty fields.
        let svg = drawings[3].2.svg().unwrap();
        let faces = svg.lines().filter(|line| line.starts_with("<polygon") && !line.contains("#FFFFFF"));
        assert_eq!(faces.count(), 2 * 2 * STEPS);
    }
}
