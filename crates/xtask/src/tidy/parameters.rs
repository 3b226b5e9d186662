//! What a function asks for: six parameters at most, `self` aside, and no unnamed tuple where others call it.
//!
//! Who calls a function with seven things in a row, or with a pair in parentheses, cannot read which is which; a struct names
//! them. Pairs in an iterator or a slice are what the standard library's maps have, and are left alone.
//!
//! It does not look at a `const fn`, which fills a row of a table, nor at what C calls, whose form is C's.

use crate::finding::Finding;
use crate::lexer::{self, line_at};
use crate::sources::Sources;

const RULE: &str = "parameters";
/// So many parameters a function has at most, `self` aside.
const MOST: usize = 6;

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in sources.texts(&["rs"]) {
        let code = lexer::lex(text).code;
        for at in lexer::words(&code, "fn") {
            if let Some(complaint) = judge(&code, at) {
                findings.push(Finding::new(path, line_at(&code, at), RULE, complaint));
            }
        }
    }
    findings
}

/// What is wrong with the function whose `fn` stands at `at`.
fn judge(code: &str, at: usize) -> Option<String> {
    let line = code[..at].rfind('\n').map_or(0, |end| end + 1);
    let qualifiers: Vec<&str> = code[line..at].split_whitespace().collect();
    let is_of = |word: &str| qualifiers.iter().any(|qualifier| qualifier.starts_with(word));
    let own = parameters(&code[at + 2..])?;
    let own = || own.iter().filter(|parameter| !is_self(parameter));
    let count = own().count();
    if count > MOST && !is_of("const") && !is_of("extern") {
        return Some(format!("{count} parameters, {MOST} at most: a struct would name them"));
    }
    let tuple = own().find(|parameter| is_of("pub") && is_tuple(parameter))?;
    Some(format!("`{}`: an unnamed tuple as a parameter; pass its parts, or a struct", tuple.trim()))
}

/// The parameters behind a function's `fn`; None if that is no function's.
fn parameters(rest: &str) -> Option<Vec<&str>> {
    let name = rest.trim_start().trim_start_matches(|letter: char| letter == '_' || letter.is_alphanumeric());
    let list = if name.starts_with('<') { &name[closing(name)? + 1..] } else { name };
    if !list.starts_with('(') || rest.trim_start() == name {
        return None;
    }
    let inside = &list[1..closing(list)?];
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    for (at, byte) in brackets(inside) {
        match byte {
            b',' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts.retain(|part| !part.trim().is_empty());
    Some(parts)
}

/// Where the bracket closes that `text` begins with.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in brackets(text) {
        match byte {
            b'(' | b'[' | b'{' | b'<' => depth += 1,
            b')' | b']' | b'}' | b'>' if depth == 1 => return Some(at),
            b')' | b']' | b'}' | b'>' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The bytes of `text` but for the `>` of an arrow.
fn brackets(text: &str) -> impl Iterator<Item = (usize, u8)> + '_ {
    let arrow = |at: usize| at > 0 && matches!(text.as_bytes()[at - 1], b'-' | b'=');
    text.bytes().enumerate().filter(move |(at, byte)| *byte != b'>' || !arrow(*at))
}

fn is_self(parameter: &str) -> bool {
    let bare = parameter.trim().trim_start_matches('&');
    let mut words = bare.split(|letter: char| letter.is_whitespace() || letter == ':');
    words.find(|word| !word.is_empty() && !word.starts_with('\'') && *word != "mut") == Some("self")
}

/// Whether it is taken apart as a tuple, or has the type of one.
fn is_tuple(parameter: &str) -> bool {
    let is_one = |text: &str| {
        let text = text.trim().trim_start_matches('&').trim_start();
        let lifetime = text.strip_prefix('\'').and_then(|rest| rest.split_once(' '));
        let text = lifetime.map_or(text, |(_, rest)| rest.trim_start());
        let text = text.strip_prefix("mut ").unwrap_or(text);
        text.starts_with('(') && closing(text).is_some_and(|end| text[..end].contains(','))
    };
    let kind = parameter.split_once(':').map_or("", |(_, kind)| kind);
    is_one(parameter) || is_one(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::project;

    fn found(text: &str) -> Vec<String> {
        check(&project(&[("crates/key/src/a.rs", text)])).iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn many_parameters_are_found() {
        assert_eq!(found("fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}\n").len(), 1);
        assert_eq!(
            found("fn f<T: Fn(u8) -> u8>(\n  &mut self, a: u8, b: u8, c: u8,\n d: u8, e: u8, f: T,\n) {}\n")
                .len(),
            0
        );
        assert_eq!(found("const fn f(a: u8, b: u8, c: u8, d: u8, e: u8, f: u8, g: u8) {}\n").len(), 0);
        assert_eq!(
            found("fn f(a: (u8, u8), b: [u8; 2], c: M<u8, u8>, d: u8, e: u8, f: impl Fn(u8, u8) -> u8) {}\n")
                .len(),
            0
        );
    }

    #[test]
    fn tuples_that_others_must_make_are_found() {
        assert_eq!(found("pub fn f((a, b): (u8, u8)) {}\n").len(), 1);
        assert_eq!(found("    pub(super) fn f<'a>(&'a self, pair: &'a (u8, u8)) {}\n").len(), 1);
        assert_eq!(found("fn f((a, b): (u8, u8)) {}\n").len(), 0);
        assert_eq!(found("pub fn f(of: &(impl A + ?Sized), all: &[(u8, u8)], unit: ()) {}\n").len(), 0);
        assert_eq!(found("pub fn f(g: fn(u8, u8, u8, u8, u8, u8, u8)) {}\n").len(), 0);
    }
}
