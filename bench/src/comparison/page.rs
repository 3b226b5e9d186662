//! A run as one page of HTML, which needs nothing else: readable on a phone, raw rows included.

use std::path::Path;

use perilune_chart::escaped;

use crate::comparison::causes::Causes;
use crate::comparison::publish::{fact_table, goal_table, named, sections, side_table};
use crate::comparison::result::Run;
use crate::comparison::scaling;
use crate::markup;
use crate::page::{Page, CLASSES, VERDICTS};
use crate::report::Table;
use crate::subject::Result;

const ABOUT: &str = "\
Databases that could stand in each other's place did the same work on one machine in one run, taking turns: 3n+1 by \
many processes on one database, sets and gets, the calls of an XML document, transfers. Each plays by its fastest \
client and in its natural way; what a wrong answer was found in does not count. \
[The guide](../../../docs/guide/benchmarks.md) describes workloads and sides.

Bars are medians, the best first: blue is Perilune (`perilune` in Rust, the others by their clients), grey are others, \
orange are others with nodes mapped to their keys as somebody has published it, where we know a better way. On a \
logarithmic axis each step to the right is ten times as much. *N processes* work on one database at once.
";

/// One page with all that there is, which needs nothing else.
///
/// # Errors
/// A row cannot be written as JSON, a chart not be drawn.
pub(crate) fn html(run: &Run, directory: &Path) -> Result<String> {
    let mut body = String::new();
    let mut add = |table: &Table| {
        body.push_str(&format!("<h2>{}</h2>\n{}", escaped(table.title()), table.html()));
    };
    let causes = Causes::read(directory);
    add(&goal_table(run, &causes));
    body.push_str(&markup::page(&causes.text));
    for section in sections(run) {
        body.push_str(&format!("<h2>{}</h2>\n", escaped(&section.title())));
        body.push_str(&section.drawing(run).svg_below_heading()?);
        body.push_str(&format!(
            "<details><summary>figures</summary>{}</details>\n",
            section.table(run).html()
        ));
    }
    if let Some(table) = scaling::table(run) {
        let (title, rows) = (escaped(table.title()), table.html());
        body.push_str(&format!("<h2>{title}</h2>\n<p>{}</p>\n{rows}", scaling::ABOUT.trim()));
    }
    for table in [side_table(run), fact_table(run)] {
        body.push_str(&format!("<h2>{}</h2>\n{}", escaped(table.title()), table.html()));
    }
    for (title, list) in named(run) {
        let items = list.iter().map(|problem| format!("<li>{}</li>", escaped(problem)));
        body.push_str(&format!("<h2>{title}</h2><ul>{}</ul>", items.collect::<String>()));
    }
    let about = format!("{ABOUT}\n{CLASSES}\n{VERDICTS}");
    let page =
        Page { title: "Perilune beside its peers", about: &about, command: &run.notes.command, body: &body };
    page.html(&run.lines)
}
