//! Relative links in documents lead to a file, a directory or a heading that exists, and so do paths in backticks.
//!
//! Links to other sites are not followed: a check must not need the network.

use crate::finding::Finding;
use crate::sources::Sources;

const RULE: &str = "dead-link";
/// How a path from the root begins.
const ROOTS: &[&str] =
    &[".ci/", "bench/", "bindings/", "crates/", "docs/", "examples/", "include/", "packaging/"];

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["md"]) {
        for (line, target) in links(text) {
            if let Some(message) = judge(sources, path, target) {
                findings.push(Finding::new(path, line, RULE, message));
            }
        }
        // A recorded run names what there was when it ran.
        if !path.starts_with("bench/runs/") {
            let missing = quoted_paths(text).into_iter().filter(|(_, named)| !sources.exists(named));
            let finding = |(line, named)| {
                Finding::new(
                    path,
                    line,
                    "dead-path",
                    format!("`{named}`: there is no such file or directory"),
                )
            };
            findings.extend(missing.map(finding));
        }
    }
    findings
}

fn judge(sources: &Sources, path: &str, target: &str) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let found = if file.is_empty() { Some(path.to_string()) } else { resolve(path, file) };
    let Some(found) = found.filter(|found| sources.exists(found)) else {
        return Some(format!("`{target}` leads nowhere; links are relative to the document"));
    };
    let text = sources.text(&found).filter(|_| !anchor.is_empty() && found.ends_with(".md"))?;
    let missing = !anchors(text).iter().any(|known| known == anchor);
    missing.then(|| format!("no heading `#{anchor}` in {found}"))
}

/// Path of `target` seen from the document `path`; none if it leaves the project.
fn resolve(path: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        return None;
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// Lines outside code fences.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        (!fenced && !fence).then_some((index + 1, line))
    })
}

/// Targets of `[text](target)` and `[name]: target`, with their lines.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for (at, _) in line.match_indices("](") {
            let in_code = line[..at].matches('`').count() % 2 == 1 && line[at..].contains('`');
            let rest = &line[at + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            if !in_code {
                found.push((number, &rest[..end]));
            }
        }
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            found.push((number, target.split(' ').next().unwrap_or(target)));
        }
    }
    found
}

/// Paths from the root that stand in backticks, `{a,b}` written out, with their lines.
fn quoted_paths(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        for quoted in line.split('`').skip(1).step_by(2) {
            let is_path = ROOTS.iter().any(|root| quoted.starts_with(root));
            if is_path
                && !quoted.contains([' ', '*', '<', ':', '#'])
                && !quoted.contains("NNNN")
                && !quoted.contains("DATE")
            {
                let named = alternatives(quoted).into_iter();
                found.extend(named.map(|path| (number, path.trim_end_matches('/').to_string())));
            }
        }
    }
    found
}

/// `a/{b,c}/d` as `a/b/d` and `a/c/d`.
fn alternatives(path: &str) -> Vec<String> {
    let parts = path.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)));
    let Some((before, (inside, behind))) = parts else {
        return vec![path.to_string()];
    };
    inside.split(',').flat_map(|one| alternatives(&format!("{before}{one}{behind}"))).collect()
}

/// The anchors of the headings, as the common renderers make them.
fn anchors(text: &str) -> Vec<String> {
    let heading = |(_, line): (usize, &str)| {
        let title = line.trim_start_matches('#');
        (title.len() < line.len()).then(|| anchor(title.trim()))
    };
    prose(text).filter_map(heading).collect()
}

fn anchor(title: &str) -> String {
    let keep = |letter: char| match letter {
        ' ' => Some('-'),
        '-' | '_' => Some(letter),
        _ if letter.is_alphanumeric() => Some(letter.to_ascii_lowercase()),
        _ => None,
    };
    title.chars().filter_map(keep).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn dead_links_are_found() {
        let bad = project(&[
            (
                "docs/a.md",
                "# One Thing\n[b](b.md)\n[c](../c.md#two)\n[me](#other)\n[out](../../x)\n[r]: gone.md\n",
            ),
            ("c.md", "# Two things\n"),
        ]);
        let lines = [2, 3, 4, 5, 6].map(|line| format!("docs/a.md:{line}"));
        assert_eq!(places(check(&bad)), lines);
    }

    #[test]
    fn paths_that_lead_nowhere_are_found() {
        let text =
            "`crates/key/a.rs`\n`crates/key/{a,b}.rs`, `crates/x/`\n`other/c`, `crates/*/src`, `docs/a b`\n";
        let bad = project(&[("docs/a.md", text), ("crates/key/a.rs", ""), ("bench/runs/r.md", text)]);
        assert_eq!(places(check(&bad)), ["docs/a.md:2", "docs/a.md:2"]);
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text =
            "# One, `two` Thing\n[x](https://x.org/y) [d](./b/) [b](b/c.md#a-b)\n[me](#one-two-thing)\n\
             ```\n[x](gone)\n```\n`[x](gone)`\n";
        let good = project(&[("docs/a.md", text), ("docs/b/c.md", "## A b\n")]);
        assert_eq!(check(&good), []);
    }
}
