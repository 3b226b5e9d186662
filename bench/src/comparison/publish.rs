//! A run as a reader gets it: tables, charts, one page of HTML, the section of the project's README.
//!
//! Invariants
//! - A section holds one workload in one class with one number of processes, all sides of it, the fastest
//!   first; ratios are ours to theirs with the interval.
//! - Goals come first, the missed ones before all others.

use std::fs;
use std::path::Path;

use perilune_chart::{bars, Axis, Bar, Drawing, Scale, Whose};

use crate::comparison::causes::Causes;
use crate::comparison::goals::{self, advantage, is_ours, more_is_better, PUBLISHED};
use crate::comparison::result::{Line, Run};
use crate::comparison::scaling;
use crate::report::{quantity, Table};
use crate::statistics::{median, spread, Ratio};
use crate::subject::Result;
use crate::verdict::Verdict;

/// The measured lines of one workload, class and number of processes.
pub(crate) struct Section<'a> {
    workload: &'a str,
    class: &'a str,
    procs: usize,
    keys: u64,
    unit: &'a str,
    lines: Vec<&'a Line>,
}

/// A side in a section.
struct Standing {
    name: String,
    median: f64,
    values: Vec<f64>,
    /// CPU seconds for each second of wall time, and microseconds for each operation.
    cpu: (f64, f64),
}

pub(crate) fn sections(run: &Run) -> Vec<Section<'_>> {
    let mut sections: Vec<Section<'_>> = Vec::new();
    for line in &run.lines {
        let of = |section: &&mut Section<'_>| {
            (section.workload, section.class, section.procs) == (&*line.workload, &*line.class, line.procs)
        };
        match sections.iter_mut().find(of) {
            Some(section) => section.lines.push(line),
            None => sections.push(Section {
                workload: &line.workload,
                class: &line.class,
                procs: line.procs,
                keys: line.keys,
                unit: &line.unit,
                lines: vec![line],
            }),
        }
    }
    sections
}

impl Section<'_> {
    pub(crate) fn title(&self) -> String {
        let what = match self.workload {
            "collatz" => format!("3n+1 over {}", self.keys),
            "set" => "sets of cm(n) in order".to_owned(),
            "get" => "gets of cm(n) in order".to_owned(),
            "set-random" => "sets of cm(n) at random".to_owned(),
            "get-random" => "gets of cm(n) at random".to_owned(),
            "xml" => "XML DOM trace, parse and output".to_owned(),
            "xml-parse" => {
                "XML DOM trace, parse: 116,227 data, 76,713 get, 29,416 set, 3,471 increment".to_owned()
            }
            "xml-output" => "XML DOM trace, output: 33,049 data, 26,455 get, 2,269 next".to_owned(),
            "xml-get" | "xml-data" | "xml-next" => {
                format!("XML DOM trace, {} of the output alone", &self.workload[4..])
            }
            "xml-set" | "xml-increment" => {
                format!("XML DOM trace, {} of the parse alone", &self.workload[4..])
            }
            "bank" => "bank transfers among 1,000 accounts".to_owned(),
            "writers" => "random sets, each durable".to_owned(),
            "batch" => format!("sets, {} in a commit", self.keys),
            other if other.starts_with("connections-") => {
                format!("gets by {} connections at once", self.keys)
            }
            "space-memory" => format!("memory for each of {} small nodes", self.keys),
            "space-disk" => format!("disk for each of {} small nodes", self.keys),
            other => other.to_owned(),
        };
        let processes =
            if self.procs == 1 { "1 process".to_owned() } else { format!("{} processes", self.procs) };
        format!("{}: {what}, {processes}", self.class)
    }

    /// The sides, the best first.
    fn standings(&self) -> Vec<Standing> {
        let mut names: Vec<&str> = self.lines.iter().map(|line| line.backend.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let standing = |name: &str| {
            let mine = || self.lines.iter().filter(|line| line.backend == name);
            let values: Vec<f64> = mine().map(|line| line.value).collect();
            let part: Vec<f64> = mine().map(|line| line.cpu_seconds / line.wall_seconds).collect();
            let each: Vec<f64> = mine().map(|line| line.cpu_seconds / line.operations as f64 * 1e6).collect();
            Standing {
                name: name.to_owned(),
                median: median(&values),
                values,
                cpu: (median(&part), median(&each)),
            }
        };
        let mut standings: Vec<Standing> = names.into_iter().map(standing).collect();
        standings.sort_by(|one, other| one.median.total_cmp(&other.median));
        if more_is_better(self.unit) {
            standings.reverse();
        }
        standings
    }

    /// Our side that others are compared with: in Rust, if it is there.
    fn ours(&self) -> Vec<f64> {
        let of = |name: &str| -> Vec<f64> {
            self.lines.iter().filter(|line| line.backend == name).map(|line| line.value).collect()
        };
        let first = self.lines.iter().find(|line| is_ours(&line.backend)).map_or("", |line| &line.backend);
        match of("perilune") {
            values if values.is_empty() => of(first),
            values => values,
        }
    }

    pub(crate) fn table(&self, run: &Run) -> Table {
        let unit = self.unit;
        let names = [
            "side",
            "client",
            unit,
            "ours is so many times as good",
            "CPU s / wall s",
            "CPU us / operation",
            "published",
        ];
        let mut rows = vec![names.map(str::to_owned).to_vec()];
        let ours = self.ours();
        let mut published: Vec<_> = PUBLISHED
            .iter()
            .filter(|figure| {
                (figure.workload, figure.procs) == (self.workload, self.procs) && self.class == "D4"
            })
            .collect();
        for standing in self.standings() {
            let advantage = advantage(unit, &ours, &standing.values);
            let client = run.notes.sides.iter().find(|side| side.name == standing.name);
            let figure = published
                .iter()
                .position(|figure| figure.name == standing.name)
                .map(|at| published.remove(at));
            let timed = standing.cpu.0.is_finite() && standing.cpu.0 > 0.0;
            rows.push(vec![
                standing.name.clone(),
                client.map_or(String::new(), |side| side.client.clone()),
                format!("{} ±{:.0}%", quantity_of(unit, standing.median), spread(&standing.values) * 100.0),
                match ours.is_empty() {
                    true => "-".to_owned(),
                    false => times(advantage),
                },
                if timed { format!("{:.2}", standing.cpu.0) } else { "-".to_owned() },
                if timed { format!("{:.2}", standing.cpu.1) } else { "-".to_owned() },
                figure.map_or(String::new(), |figure| {
                    format!("{} ({})", quantity_of(unit, figure.value), figure.source)
                }),
            ]);
        }
        for figure in published {
            let text = format!("{} ({})", quantity_of(unit, figure.value), figure.source);
            let dash = || "-".to_owned();
            rows.push(vec![figure.name.to_owned(), dash(), dash(), dash(), dash(), dash(), text]);
        }
        Table::new(&self.title(), rows)
    }

    pub(crate) fn drawing(&self, run: &Run) -> Drawing {
        let bar = |standing: Standing| Bar {
            value: standing.median,
            text: quantity_of(self.unit, standing.median),
            whose: match (is_ours(&standing.name), run.is_published(&standing.name)) {
                (true, _) => Whose::Ours,
                (false, true) => Whose::AsPublished,
                (false, false) => Whose::Theirs,
            },
            label: standing.name,
        };
        let all: Vec<Bar> = self.standings().into_iter().map(bar).collect();
        let good = if more_is_better(self.unit) { "longer is better" } else { "shorter is better" };
        let axis = Axis { name: words(self.unit), scale: Scale::fitting(all.iter().map(|bar| bar.value)) };
        bars(&self.title(), &format!("{good}; medians of the rounds"), axis, &all)
    }

    fn file(&self) -> String {
        format!("{}-{}-{}", self.class, self.workload, self.procs)
    }
}

/// A unit as it stands at an axis.
fn words(unit: &str) -> &str {
    match unit {
        "s" => "seconds",
        "op/s" => "operations a second",
        other => other,
    }
}

/// A quantity with the digits that its unit needs.
pub(crate) fn quantity_of(unit: &str, value: f64) -> String {
    match unit {
        "s" if value < 10.0 => format!("{value:.3}"),
        _ => quantity(value),
    }
}

/// A ratio with its interval, if it has one.
fn times(Ratio { ratio, low, high }: Ratio) -> String {
    match low.is_nan() {
        true => format!("{ratio:.2}x"),
        false => format!("{ratio:.2}x [{low:.2}, {high:.2}]"),
    }
}

/// The goals, the missed ones first.
pub(crate) fn goal_table(run: &Run, causes: &Causes) -> Table {
    let mut rows = vec![["goal", "verdict", "ratio", "nearest peer", "cause"].map(str::to_owned).to_vec()];
    for outcome in goals::outcomes(run) {
        let verdict = outcome.verdict();
        let asked = matches!(verdict, Verdict::Missed | Verdict::Undecided);
        let cause = causes.of.iter().find(|(goal, _)| asked && goal == outcome.goal.text);
        let cause = cause.map_or(String::new(), |(_, cause)| cause.clone());
        let (peer, ratio) =
            outcome.nearest.map_or((String::new(), String::new()), |(peer, ratio)| (peer, times(ratio)));
        rows.push(vec![outcome.goal.text.to_owned(), verdict.word().to_owned(), ratio, peer, cause]);
    }
    Table::new("Goals, against the best mapping of each peer", rows)
}

pub(crate) fn side_table(run: &Run) -> Table {
    let mut rows = vec![["side", "class", "version", "settings"].map(str::to_owned).to_vec()];
    for side in &run.notes.sides {
        let version = side.missing.as_ref().map_or(side.version.clone(), |why| format!("MISSING: {why}"));
        rows.push(vec![side.name.clone(), side.class.clone(), version, side.settings.clone()]);
    }
    Table::new("Sides, versions and settings", rows)
}

pub(crate) fn fact_table(run: &Run) -> Table {
    let mut rows = vec![["what", "value"].map(str::to_owned).to_vec()];
    rows.extend(run.notes.facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]));
    // Older runs do not know.
    if !run.notes.took.is_empty() {
        rows.push(vec!["seconds of each cell".to_owned(), run.notes.took.join(", ")]);
    }
    Table::new("Machine", rows)
}

/// All tables, for a terminal.
pub(crate) fn text(run: &Run) -> String {
    let mut text: String = sections(run).iter().map(|section| section.table(run).text() + "\n").collect();
    text.push_str(&goal_table(run, &Causes::default()).text());
    for problem in &run.notes.problems {
        text.push_str(&format!("does not count: {problem}\n"));
    }
    for cut in &run.notes.cut {
        text.push_str(&format!("too slow: {cut}\n"));
    }
    text
}

/// What has no row, by why, with a title each.
pub(crate) fn named(run: &Run) -> impl Iterator<Item = (&'static str, &Vec<String>)> {
    let lists = [("What does not count", &run.notes.problems), ("Too slow for its time", &run.notes.cut)];
    lists.into_iter().filter(|(_, list)| !list.is_empty())
}

/// Writes tables and charts of a run to its directory.
///
/// # Errors
/// They cannot be written.
pub(crate) fn write(run: &Run, directory: &Path) -> Result<()> {
    let charts = directory.join("charts");
    fs::create_dir_all(&charts)?;
    let causes = Causes::read(directory);
    let mut summary = format!("# Results\n\n{}\n", goal_table(run, &causes).markdown());
    summary.push_str(&causes.text);
    for section in sections(run) {
        let (file, drawing) = (section.file(), section.drawing(run));
        fs::write(charts.join(format!("{file}.svg")), drawing.svg()?)?;
        fs::write(charts.join(format!("{file}.png")), drawing.png()?)?;
        summary.push_str(&section.table(run).markdown());
        summary.push('\n');
    }
    if let Some(table) = scaling::table(run) {
        summary.push_str(&format!("{}\n{}", table.markdown(), scaling::ABOUT));
    }
    summary.push_str(&side_table(run).markdown());
    for (title, list) in named(run) {
        summary.push_str(&format!("\n## {title}\n\n"));
        summary.extend(list.iter().map(|problem| format!("- {problem}\n")));
    }
    fs::write(directory.join("summary.md"), summary)?;
    let readme = format!(
        "# A run of the comparison\n\n    perilune-bench {}\n\n{}\nRaw rows are in [raw.jsonl](raw.jsonl), \
         tables in [summary.md](summary.md); what they mean, and how to draw \
         them, is in [the guide](../../../docs/guide/benchmarks.md).\n",
        run.notes.command,
        fact_table(run).markdown().replace("## Machine\n\n", "")
    );
    Ok(fs::write(directory.join("README.md"), readme)?)
}

/// The sections of the project's README: goals, and what is most asked for.
pub(crate) fn readme(run: &Run, directory: &Path) -> String {
    let name = directory.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
    let fact = |wanted: &str| {
        let found = run.notes.facts.iter().find(|(name, _)| name == wanted);
        found.map_or("", |(_, value)| value.as_str()).to_owned()
    };
    let mut text = format!(
        "Of the run [{name}](bench/runs/{name}/summary.md) at commit {} on {}.\n\n",
        fact("commit"),
        fact("machine")
    );
    let wanted = [("collatz", 1), ("collatz", 32), ("set", 1), ("get", 1), ("xml", 1), ("writers", 16)];
    let all = sections(run);
    let chosen: Vec<_> = wanted
        .iter()
        .filter_map(|(workload, procs)| {
            let mut fitting = all.iter().filter(|one| one.workload == *workload && one.procs == *procs);
            fitting.next()
        })
        .collect();
    let mut names: Vec<&str> =
        chosen.iter().flat_map(|one| &one.lines).map(|line| line.backend.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !run.is_published(name));
    names.sort_by_key(|name| !is_ours(name));
    let mut rows = vec![vec!["side".to_owned()]];
    rows[0].extend(chosen.iter().map(|one| format!("{} ({})", one.title(), one.unit)));
    for name in names {
        let mut row = vec![name.to_owned()];
        row.extend(chosen.iter().map(|one| {
            let values = run.values(one.workload, one.procs, one.class, name);
            if values.is_empty() {
                "-".to_owned()
            } else {
                quantity_of(one.unit, median(&values))
            }
        }));
        rows.push(row);
    }
    let table = Table::new("Results", rows).markdown().replace("## Results\n\n", "");
    text.push_str(&table);
    text
}
