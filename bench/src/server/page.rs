//! A run of the server's suite as one page that needs nothing else: goals, charts, tables, settings, rows.
//!
//! It is made of the same frame as the page of the comparison, so that it is read on a phone as well.

use perilune_chart::escaped;

use crate::machine::Facts;
use crate::report::Table;
use crate::subject::Result;

use super::pictures::Picture;
use super::Results;

/// The page; goals are the first of the tables.
///
/// # Errors
/// A row cannot be written as JSON.
pub(super) fn html(
    results: &Results,
    command: &str,
    facts: &Facts,
    tables: &[Table],
    drawings: &[Picture],
) -> Result<String> {
    let mut body = String::new();
    if !results.problems.is_empty() {
        let items = results.problems.iter().map(|problem| format!("<li>{}</li>", escaped(problem)));
        body.push_str(&format!("<h2>What does not count</h2><ul>{}</ul>\n", items.collect::<String>()));
    }
    let (goals, figures) = tables.split_at(tables.len().min(1));
    let section = |table: &Table| format!("<h2>{}</h2>\n{}", escaped(table.title()), table.html());
    body.extend(goals.iter().map(section));
    for (_, title, drawing) in drawings {
        body.push_str(&format!("<h2>{}</h2>\n{}", escaped(title), drawing.svg()));
    }
    body.extend(figures.iter().map(section));
    let mut rows = vec![["what", "value"].map(str::to_owned).to_vec()];
    rows.extend(facts.iter().map(|(name, value)| vec![name.clone(), value.clone()]));
    body.push_str(&section(&Table::new("Machine, versions and settings", rows)));
    let lines = results.rows.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
    Ok(include_str!("../comparison/page.html")
        .replace("{{command}}", &escaped(command))
        .replace("{{body}}", &body)
        .replace("{{raw}}", &escaped(&lines.join("\n"))))
}
