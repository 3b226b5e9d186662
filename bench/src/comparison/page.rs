//! A run as one page of HTML, which needs nothing else: readable on a phone, raw rows included.

use std::path::Path;

use perilune_chart::escaped;

use crate::comparison::causes::Causes;
use crate::comparison::publish::{fact_table, goal_table, named, sections, side_table};
use crate::comparison::result::Run;
use crate::comparison::scaling;
use crate::report::Table;
use crate::subject::Result;

/// One page with all that there is, which needs nothing else.
///
/// # Errors
/// A row cannot be written as JSON.
pub(crate) fn html(run: &Run, directory: &Path) -> Result<String> {
    let mut body = String::new();
    let mut add = |table: &Table| {
        body.push_str(&format!("<h2>{}</h2>\n{}", escaped(table.title()), table.html()));
    };
    let causes = Causes::read(directory);
    add(&goal_table(run, &causes));
    add(&fact_table(run));
    body.push_str(&format!("<p>{}</p>\n", escaped(&causes.text).replace("\n\n", "</p><p>")));
    for section in sections(run) {
        body.push_str(&format!("<h2>{}</h2>\n", escaped(&section.title())));
        body.push_str(&section.drawing(run).svg());
        body.push_str(&format!(
            "<details><summary>figures</summary>{}</details>\n",
            section.table(run).html()
        ));
    }
    if let Some(table) = scaling::table(run) {
        let (title, rows) = (escaped(table.title()), table.html());
        body.push_str(&format!("<h2>{title}</h2>\n<p>{}</p>\n{rows}", scaling::ABOUT.trim()));
    }
    body.push_str(&format!("<h2>Sides, versions and settings</h2>\n{}", side_table(run).html()));
    for (title, list) in named(run) {
        let items = list.iter().map(|problem| format!("<li>{}</li>", escaped(problem)));
        body.push_str(&format!("<h2>{title}</h2><ul>{}</ul>", items.collect::<String>()));
    }
    let lines = run.lines.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
    let raw = escaped(&lines.join("\n"));
    Ok(include_str!("page.html")
        .replace("{{command}}", &escaped(&run.notes.command))
        .replace("{{body}}", &body)
        .replace("{{raw}}", &raw))
}
