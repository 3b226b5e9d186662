//! The directory of a run: what was run where, raw rows, and tables.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde::Serialize;

use crate::machine::Facts;
use crate::report::Table;
use crate::subject::Result;

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
    let sections: Vec<String> = tables.iter().map(Table::markdown).collect();
    let mut summary = format!("# Results\n\n{}", sections.join("\n"));
    if !problems.is_empty() {
        summary.push_str("\n## Results that do not count\n\n");
        for problem in problems {
            summary.push_str(&format!("- {problem}\n"));
        }
    }
    Ok(fs::write(directory.join("summary.md"), summary)?)
}
