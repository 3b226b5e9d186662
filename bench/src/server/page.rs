//! A run of the server's suite as one page that needs nothing else: charts, goals, tables, settings, rows.
//!
//! It is made of the same frame as the page of the comparison, so that it is read on a phone as well.

use perilune_chart::escaped;

use crate::machine::Facts;
use crate::page::{Page, VERDICTS};
use crate::report::Table;
use crate::subject::Result;

use super::pictures::Picture;
use super::table::Found;
use super::Results;

const ABOUT: &str = "\
`perilune serve`, which speaks the protocol of Redis, beside redis-server on one machine, taking turns under the same \
clients. *redis* has one thread for commands; *perilune-1* and *perilune-2* are ours with one and with two, *x 4 \
processes* is four of ours on one port and one database. Nobody waits for a disk (class D4). A section in which an \
answer was wrong does not count. [The guide](../../../docs/guide/benchmarks.md#the-server) describes the sections.

Bars are medians: blue is Perilune, grey is Redis. Clients need the processor as well, so there are two figures: by \
the clock, and for each second of CPU that the server took. The latter decides a goal where server and clients \
together fill the machine's cores. *p99* is the time within which 99 % of the requests were answered.
";

/// The page; goals are the first of the tables.
///
/// # Errors
/// A row cannot be written as JSON, a chart not be drawn.
pub(super) fn html(
    results: &Results,
    command: &str,
    facts: &Facts,
    found: &Found,
    drawings: &[Picture],
) -> Result<String> {
    let mut body = String::new();
    if !results.problems.is_empty() {
        let items = results.problems.iter().map(|problem| format!("<li>{}</li>", escaped(problem)));
        body.push_str(&format!("<h2>What does not count</h2><ul>{}</ul>\n", items.collect::<String>()));
    }
    for (_, title, drawing) in drawings {
        body.push_str(&format!("<h2>{}</h2>\n{}", escaped(title), drawing.svg_below_heading()?));
    }
    let mut section = |table: &Table, id: &str| {
        let title = escaped(table.title());
        body.push_str(&format!("<h2{id}>{title}</h2>\n{}", table.html()));
    };
    for (index, table) in found.tables.iter().enumerate() {
        section(table, if index == 0 { " id=\"goals\"" } else { "" });
    }
    let mut rows = vec![["what", "value"].map(str::to_owned).to_vec()];
    rows.extend(facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]));
    section(&Table::new("Machine, versions and settings", rows), "");
    let about = format!("{ABOUT}\n{VERDICTS} [The goals](#goals) of this run: {}.\n", found.score.words());
    let page = Page { title: "Perilune's server beside Redis", about: &about, command, body: &body };
    page.html(&results.rows)
}
