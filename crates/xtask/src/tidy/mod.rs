//! `xtask tidy`: every rule over every source, findings sorted by place.
//!
//! Invariants: a rule is a function from [`Sources`] to findings; each has a test in which it
//! fires on a bad sample, because an instrument that cannot fail measures nothing.

mod dependencies;
mod face;
mod imports;
mod includes;
mod layout;
mod links;
mod named;
mod names;
mod notes;
mod parameters;
mod prose;
mod runs;
mod sizes;
mod unsafety;
mod words;

use std::path::Path;
use std::process::ExitCode;

use crate::finding::Finding;
use crate::sources::Sources;

type Rule = fn(&Sources) -> Vec<Finding>;

const RULES: &[(&str, Rule)] = &[
    ("modules import only what stands above them", imports::check),
    ("C files include only what stands above them", includes::check),
    ("crates depend as the table in house.rs says", dependencies::check),
    ("unsafe code only where allowed, each block with its proof", unsafety::check),
    ("names that name a concept", names::check),
    ("nothing unfinished, nothing that prints in a library", words::check),
    ("sizes of files and functions", sizes::check),
    ("parameters of functions", parameters::check),
    ("what the Rust API shows at once", face::check),
    ("encoding, columns, white space, module heads", layout::check),
    ("relative links in documents lead somewhere", links::check),
    ("targets and variables that documents name", named::check),
    ("design notes and crates are listed", notes::check),
    ("prose that a stranger can read", prose::check),
    ("recorded runs are text and few, pictures are small", runs::check),
];

/// Checks the project under `root`; with `lower`, first takes what shrank out of the ratchet.
pub(crate) fn run(root: &Path, lower: bool) -> ExitCode {
    match read(root, lower) {
        Ok(sources) => report(&sources),
        Err(error) => {
            eprintln!("tidy: cannot read or write the sources under {}: {error}", root.display());
            ExitCode::from(3)
        }
    }
}

fn read(root: &Path, lower: bool) -> std::io::Result<Sources> {
    let mut sources = Sources::read(root)?;
    if lower {
        let text = sizes::lowered(&sources);
        std::fs::write(root.join(sizes::RATCHET), &text)?;
        sources.insert(sizes::RATCHET, text);
    }
    Ok(sources)
}

fn report(sources: &Sources) -> ExitCode {
    let mut total = 0;
    for (title, rule) in RULES {
        let mut findings = rule(sources);
        findings.sort();
        findings.dedup();
        println!("{:>4}  {title}", findings.len());
        total += findings.len();
        for finding in &findings {
            println!("{finding}");
        }
    }
    println!("tidy: {} rules, {total} findings", RULES.len());
    ExitCode::from(u8::from(total > 0))
}
