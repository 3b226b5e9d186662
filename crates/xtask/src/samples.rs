//! Bad and good samples for the tests of the rules.

use crate::finding::Finding;
use crate::sources::Sources;

/// A project of these files.
pub(crate) fn project(files: &[(&str, &str)]) -> Sources {
    let mut sources = Sources::default();
    for (path, text) in files {
        sources.insert(path, *text);
    }
    sources
}

/// `path:line` of every finding, sorted.
pub(crate) fn places(mut findings: Vec<Finding>) -> Vec<String> {
    findings.sort();
    findings.dedup();
    let place = |f: &Finding| format!("{}:{}", f.path, f.line);
    findings.iter().map(place).collect()
}
