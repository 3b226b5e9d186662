//! Prose that a stranger can read: short paragraphs, short lines, doc comments that stand by themselves.
//!
//! What a program can check of that is little: a doc comment that begins with "The same" or "As above" is
//! understood only by whoever reads the file from its beginning, a paragraph of 200 words by hardly anybody.
//!
//! Invariants
//! - Prose of documents is what a renderer would fill: no tables, code, headings, link definitions, comments.
//! - A place that does not keep the rules yet stands in [`EXCEPTIONS`], and only as long as it does not.
//!
//! Deliberately absent: judgement. Whether a sentence is plain the reader of a change decides.

use crate::finding::Finding;
use crate::sources::Sources;

/// Longest line of prose in a document, in characters.
const COLUMNS: usize = 120;
/// Longest paragraph, in words.
const WORDS: usize = 120;
/// How no doc comment begins: it would need the one before it.
const BEGINNINGS: &[&str] = &["The same", "As above"];
/// Paths, by how they begin, that do not keep these rules yet. Take out what is mended; add nothing.
const EXCEPTIONS: &[&str] = &[];
const THIS: &str = "crates/xtask/src/tidy/prose.rs";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    judge(sources, EXCEPTIONS)
}

/// Findings outside the exceptions, and one for each exception that hides none.
fn judge(sources: &Sources, exceptions: &[&str]) -> Vec<Finding> {
    let mut all = Vec::new();
    for (path, text) in sources.texts(&["rs", "c", "h", "cc", "lua"]) {
        beginnings(path, text, &mut all);
    }
    for (path, text) in sources.texts(&["md"]) {
        if path.starts_with("docs/") || !path.contains('/') {
            document(path, text, &mut all);
        }
    }
    let unneeded =
        exceptions.iter().filter(|prefix| !all.iter().any(|found| found.path.starts_with(**prefix)));
    let unneeded = unneeded.map(|prefix| {
        let message = format!("`{prefix}` keeps the rules: take it out of EXCEPTIONS");
        Finding::new(THIS, 1, "prose-exception", message)
    });
    let unneeded: Vec<Finding> = unneeded.collect();
    all.retain(|found| !exceptions.iter().any(|prefix| found.path.starts_with(prefix)));
    all.extend(unneeded);
    all
}

/// Doc comments that begin with a reference to another one.
fn beginnings(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let (mark, said) = comment(line, before);
        let begins = matches!(mark, "*" | "/**") || mark != before;
        if let Some(beginning) = BEGINNINGS.iter().find(|beginning| begins && said.starts_with(**beginning)) {
            let message =
                format!("a doc comment begins with \"{beginning}\"; say what it is, for who reads it alone");
            findings.push(Finding::new(path, index + 1, "prose-beginning", message));
        }
        before = mark;
    }
}

/// Mark and text of a line of a doc comment. In C, `*` stands for the line behind a bare `/**`.
fn comment<'a>(line: &'a str, before: &str) -> (&'static str, &'a str) {
    let line = line.trim_start();
    let marks = ["/**", "///", "//!", "---"];
    let Some(mark) = marks.into_iter().find(|mark| line.starts_with(mark)) else {
        return match line.strip_prefix("* ") {
            Some(said) if before == "/** alone" => ("*", said.trim_start()),
            _ => ("", ""),
        };
    };
    let said = line[mark.len()..].trim();
    (if mark == "/**" && said.is_empty() { "/** alone" } else { mark }, said)
}

/// Lines and paragraphs of a document that are too long.
fn document(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let mut blocks = Blocks::default();
    let mut paragraph = Paragraph::default();
    for (index, line) in text.lines().enumerate() {
        let kind = blocks.kind(line);
        if kind != Kind::Continued {
            findings.extend(paragraph.end(path));
        }
        if kind == Kind::Other {
            continue;
        }
        let columns = line.chars().count();
        if columns > COLUMNS {
            let message = format!("a line of prose of {columns} characters, at most {COLUMNS}; break it");
            findings.push(Finding::new(path, index + 1, "prose-columns", message));
        }
        paragraph.add(index + 1, line);
    }
    findings.extend(paragraph.end(path));
}

/// The paragraph that is being read.
#[derive(Default)]
struct Paragraph {
    line: usize,
    words: usize,
}

impl Paragraph {
    fn add(&mut self, line: usize, text: &str) {
        if self.words == 0 {
            self.line = line;
        }
        self.words += text.split_whitespace().count();
    }

    fn end(&mut self, path: &str) -> Option<Finding> {
        let Self { line, words } = std::mem::take(self);
        let message =
            || format!("a paragraph of {words} words, at most {WORDS}; split it, or make a list of it");
        (words > WORDS).then(|| Finding::new(path, line, "prose-paragraph", message()))
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// No prose: blank, or a part of a table, of code, of a heading.
    Other,
    /// The first line of a paragraph or of an item of a list.
    First,
    /// A further line of it.
    Continued,
}

/// Where in a document the reader is.
#[derive(Default)]
struct Blocks {
    fenced: bool,
    commented: bool,
    in_paragraph: bool,
}

impl Blocks {
    fn kind(&mut self, line: &str) -> Kind {
        let kind = self.judge(line);
        self.in_paragraph = kind != Kind::Other;
        kind
    }

    fn judge(&mut self, line: &str) -> Kind {
        let text = line.trim();
        let fence = text.starts_with("```");
        self.fenced ^= fence;
        self.commented |= text.starts_with("<!--");
        if self.commented || self.fenced || fence {
            self.commented &= !text.contains("-->");
            return Kind::Other;
        }
        let is_definition = text.starts_with('[') && text.contains("]: ");
        if text.is_empty() || text.starts_with(['|', '#', '<']) || is_definition {
            return Kind::Other;
        }
        if is_item(text) {
            return Kind::First;
        }
        match (self.in_paragraph, line.starts_with("    ")) {
            (true, _) => Kind::Continued,
            (false, true) => Kind::Other,
            (false, false) => Kind::First,
        }
    }
}

/// Whether a line begins an item of a list.
fn is_item(text: &str) -> bool {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let numbered = digits > 0 && text[digits..].starts_with(". ");
    numbered || text.starts_with("- ") || text.starts_with("* ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn doc_comments_that_lean_on_another_are_found() {
        let bad = project(&[
            ("crates/key/src/a.rs", "//! As above.\n\n/// The same of b.\nfn a() {}\n"),
            ("include/a.h", "/** The same. */\n\n/**\n * As above.\n */\n"),
            ("bindings/lua/a.lua", "--- The same, twice.\n"),
        ]);
        let found = ["bindings/lua/a.lua:1", "crates/key/src/a.rs:1", "crates/key/src/a.rs:3"];
        assert_eq!(places(judge(&bad, &[])), [&found[..], &["include/a.h:1", "include/a.h:4"]].concat());
        let text = "/// A page, from\n/// The same file.\n// The same of b.\nfn a() {}\n";
        assert_eq!(judge(&project(&[("crates/key/src/a.rs", text)]), &[]), []);
    }

    #[test]
    fn long_lines_and_paragraphs_are_found() {
        let line = "word ".repeat(20);
        let long = format!("{}\n", line.trim_end()).repeat(7);
        let text = format!("# A\n\n{}\n\n{long}\n- {}\n  {long}", "x".repeat(121), line.trim_end());
        let bad = project(&[("docs/b/a.md", &text), ("A.md", &long)]);
        assert_eq!(places(judge(&bad, &[])), ["A.md:1", "docs/b/a.md:3", "docs/b/a.md:5", "docs/b/a.md:13"]);
    }

    #[test]
    fn what_no_renderer_fills_may_be_long() {
        let long = "x ".repeat(200);
        let text = format!(
            "# {long}\n| {long} |\n```\n{long}\n```\n<!-- a\n{long}\n-->\n[a]: {long}\n\n    {long}\n    {long}\n"
        );
        let good = project(&[("docs/a.md", &text), ("crates/key/README.md", &long)]);
        assert_eq!(judge(&good, &[]), []);
    }

    #[test]
    fn an_exception_hides_its_place_until_it_is_not_needed() {
        let bad = project(&[("docs/a/b.md", &"x".repeat(121)), ("docs/c.md", "short\n")]);
        assert_eq!(judge(&bad, &["docs/a/"]), []);
        assert_eq!(places(judge(&bad, &["docs/a/", "docs/c.md"])), [format!("{THIS}:1")]);
    }
}
