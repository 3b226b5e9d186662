//! The directory of a run: README.md (command and machine), raw.jsonl (rows), summary.md (tables). Writes it, and
//! reads the words back to draw a run again.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::machine::Facts;
use crate::report::Table;
use crate::subject::Result;

/// The title above what does not count.
const PROBLEMS: &str = "\n## Results that do not count\n\n";

/// What a run says of itself in words: its command, what it ran on, and what does not count.
pub(crate) struct Said {
    pub(crate) command: String,
    pub(crate) facts: Facts,
    pub(crate) problems: Vec<String>,
}

/// Reads what [`write_run`] has written in words.
///
/// # Errors
/// There is no run.
pub(crate) fn read_words(directory: &Path) -> Result<Said> {
    let read = |name: &str| {
        let path = directory.join(name);
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    };
    let (readme, summary) = (read("README.md")?, read("summary.md")?);
    let command = readme.lines().find_map(|line| line.strip_prefix("    perilune-bench "));
    let fact = |line: &str| {
        let (name, value) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        Some((name.to_owned(), value.replace("\\|", "|")))
    };
    let facts = readme.lines().filter_map(fact).filter(|(name, _)| !["what", "---"].contains(&name.as_str()));
    let problems =
        summary.split_once(PROBLEMS).map_or("", |(_, rest)| rest.split("\n\n").next().unwrap_or(rest));
    Ok(Said {
        command: command.unwrap_or_default().to_owned(),
        facts: facts.collect(),
        problems: problems.lines().filter_map(|line| line.strip_prefix("- ")).map(str::to_owned).collect(),
    })
}

/// Writes rows as JSON Lines.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_rows<R: Serialize>(path: &Path, rows: &[R]) -> Result<()> {
    let named = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    let mut file = std::io::BufWriter::new(fs::File::create(path).map_err(named)?);
    for row in rows {
        serde_json::to_writer(&mut file, row)?;
        file.write_all(b"\n").map_err(named)?;
    }
    Ok(file.flush().map_err(named)?)
}

/// Writes `README.md`, `raw.jsonl` and `summary.md` to `directory`, making it.
///
/// # Errors
/// The directory holds a run already, or cannot be written.
pub(crate) fn write_run<R: Serialize>(
    directory: &Path,
    what: &str,
    facts: &Facts,
    rows: &[R],
    tables: &[Table],
    problems: &[String],
) -> Result<()> {
    let raw = directory.join("raw.jsonl");
    if raw.exists() {
        return Err(format!("{} holds a run: give another --run-dir", directory.display()).into());
    }
    fs::create_dir_all(directory)?;
    write_rows(&raw, rows)?;
    let command: Vec<String> = std::env::args().skip(1).collect();
    let mut readme = format!("# A run of {what}\n\n    perilune-bench {}\n\n", command.join(" "));
    readme.push_str("| what | value |\n| --- | --- |\n");
    for (name, value) in facts {
        readme.push_str(&format!("| {name} | {} |\n", value.replace('|', "\\|")));
    }
    readme
        .push_str("\nRaw rows are in [raw.jsonl](raw.jsonl), tables in [summary.md](summary.md); what they ");
    readme.push_str("mean is in [the guide](../../../docs/guide/benchmarks.md).\n");
    fs::write(directory.join("README.md"), readme)?;
    write_summary(directory, tables, problems)
}

/// Writes the tables of a run, and what does not count.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn write_summary(directory: &Path, tables: &[Table], problems: &[String]) -> Result<()> {
    let sections: Vec<String> = tables.iter().map(Table::markdown).collect();
    let mut summary = format!("# Results\n\n{}", sections.join("\n"));
    if !problems.is_empty() {
        summary.push_str(PROBLEMS);
        for problem in problems {
            summary.push_str(&format!("- {problem}\n"));
        }
    }
    Ok(fs::write(directory.join("summary.md"), summary)?)
}
