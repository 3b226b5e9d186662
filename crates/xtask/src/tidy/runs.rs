//! What is recorded stays small: `bench/runs` is text, the newest run of each suite; pictures are few.
//!
//! Charts and pages of a run are left out of the sum: git ignores them, since `perilune-bench report` draws
//! them again from the rows.

use crate::finding::Finding;
use crate::house::{PICTURES_BYTES_MAX, RUNS_BYTES_MAX};
use crate::sources::{self, Sources};

const RUNS: &str = "bench/runs";
/// Suffixes of what a run consists of.
const TEXT: &[&str] = &["md", "jsonl", "json", "sh", "out", "txt"];
const PICTURES: &[&str] = &["svg", "png", "jpg", "gif"];

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    let (mut runs, mut pictures) = (0, 0);
    for (path, bytes) in sources.sizes() {
        let suffix = sources::suffix(path);
        if !path.starts_with("bench/runs/") {
            pictures += if PICTURES.contains(&suffix) { bytes } else { 0 };
        } else if is_drawn_again(path) {
            continue;
        } else if TEXT.contains(&suffix) {
            runs += bytes;
        } else {
            let message =
                "no text; a run is README.md, summary.md and rows: leave out what can be drawn again";
            findings.push(Finding::new(path, 1, "runs", message));
        }
    }
    if runs > RUNS_BYTES_MAX {
        let message = format!(
            "{runs} bytes of runs, at most {RUNS_BYTES_MAX}; keep the newest run of each suite, git has the others"
        );
        findings.push(Finding::new(RUNS, 1, "runs", message));
    }
    if pictures > PICTURES_BYTES_MAX {
        let message = format!("{pictures} bytes of pictures, at most {PICTURES_BYTES_MAX}; remove some");
        findings.push(Finding::new("docs", 1, "pictures", message));
    }
    findings
}

/// What git ignores below a run.
fn is_drawn_again(path: &str) -> bool {
    path.contains("/charts/") || sources::name(path) == "index.html"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn what_is_no_text_or_too_much_is_found() {
        let many = "x".repeat(RUNS_BYTES_MAX as usize);
        let large = "x".repeat(PICTURES_BYTES_MAX as usize + 1);
        let bad = project(&[
            ("bench/runs/a/profile.svg", "<svg/>"),
            ("bench/runs/a/raw.jsonl", &many),
            ("bench/runs/b/README.md", "x"),
            ("docs/guide/tree.png", &large),
        ]);
        assert_eq!(places(check(&bad)), ["bench/runs:1", "bench/runs/a/profile.svg:1", "docs:1"]);
    }

    #[test]
    fn what_git_ignores_does_not_count() {
        let large = "x".repeat(RUNS_BYTES_MAX as usize + 1);
        let good = project(&[("bench/runs/a/charts/a.svg", &*large), ("bench/runs/a/index.html", &large)]);
        assert_eq!(check(&good), []);
    }
}
