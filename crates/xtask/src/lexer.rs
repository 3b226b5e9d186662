//! Just enough of Rust's lexical rules to tell code from comments and strings.
//!
//! Invariants: `code` and `comments` have as many lines as the text, and each line the same
//! length in bytes as before; what does not belong is blanked, so positions stay true.
//!
//! It does not parse. Functions are found by matching braces in the blanked code.

/// A source text taken apart.
#[derive(Clone, Debug)]
pub(crate) struct Lexed {
    /// The text with comments and the insides of strings blanked.
    pub(crate) code: String,
    /// The text with everything but comments blanked.
    pub(crate) comments: String,
}

/// A function with a body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    /// Line of `fn`, from 1.
    pub(crate) line: usize,
    /// Lines from `fn` to the closing brace, both included.
    pub(crate) lines: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Code,
    Comment,
    Blank,
}

/// Takes `text` apart.
pub(crate) fn lex(text: &str) -> Lexed {
    let bytes = text.as_bytes();
    let mut parts = Vec::with_capacity(bytes.len());
    while parts.len() < bytes.len() {
        let at = parts.len();
        let (part, length) = next_part(text, at);
        let end = (at + length.max(1)).min(bytes.len());
        parts.resize(end, part);
        // The quotes stay, so that an empty string is still visible as one.
        for position in [at, end - 1] {
            if part == Part::Blank && bytes[position] == b'"' {
                parts[position] = Part::Code;
            }
        }
    }
    Lexed { code: keep(bytes, &parts, Part::Code), comments: keep(bytes, &parts, Part::Comment) }
}

fn keep(bytes: &[u8], parts: &[Part], wanted: Part) -> String {
    let keep = |(&byte, &part)| if byte == b'\n' || part == wanted { byte } else { b' ' };
    let kept = bytes.iter().zip(parts).map(keep);
    String::from_utf8_lossy(&kept.collect::<Vec<u8>>()).into_owned()
}

/// What starts at `at`, and how long it is.
fn next_part(text: &str, at: usize) -> (Part, usize) {
    let rest = &text.as_bytes()[at..];
    match rest {
        [b'/', b'/', ..] => (Part::Comment, rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => (Part::Comment, block_comment(rest)),
        [b'"', ..] => (Part::Blank, quoted(rest, b'"')),
        [b'\'', ..] => quote(&text[at..]),
        [byte, ..] if is_word(*byte) => {
            let length = rest.iter().take_while(|&&b| is_word(b)).count();
            match &rest[..length] {
                b"r" | b"br" | b"cr" => raw_string(rest, length),
                _ => (Part::Code, length),
            }
        }
        _ => (Part::Code, 1),
    }
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], close: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == close => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// A character literal, or the tick of a lifetime.
fn quote(rest: &str) -> (Part, usize) {
    let mut letters = rest.char_indices().skip(1);
    match (letters.next(), letters.next()) {
        (Some((_, '\\')), _) => (Part::Blank, quoted(rest.as_bytes(), b'\'')),
        (Some(_), Some((end, '\''))) => (Part::Blank, end + 1),
        _ => (Part::Code, 1),
    }
}

/// A raw string whose prefix has `prefix` bytes, or just that word (`r#fn` is an identifier).
fn raw_string(rest: &[u8], prefix: usize) -> (Part, usize) {
    let hashes = rest[prefix..].iter().take_while(|&&b| b == b'#').count();
    let open = prefix + hashes;
    if rest.get(open) != Some(&b'"') {
        return (Part::Code, prefix);
    }
    let mut close = vec![b'"'];
    close.resize(1 + hashes, b'#');
    let inside = &rest[open + 1..];
    let end = inside.windows(close.len()).position(|window| window == close.as_slice());
    (Part::Blank, end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

/// Positions of `word` in blanked code, as a whole word.
pub(crate) fn words<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    code.match_indices(word).map(|(at, _)| at).filter(move |&at| {
        let before = at == 0 || !is_word(bytes[at - 1]);
        let after = bytes.get(at + word.len()).is_none_or(|&b| !is_word(b));
        before && after
    })
}

/// Line of a position, from 1.
pub(crate) fn line_at(text: &str, position: usize) -> usize {
    1 + text.as_bytes()[..position].iter().filter(|&&b| b == b'\n').count()
}

/// The identifier at the start of `text`, after white space.
pub(crate) fn identifier(text: &str) -> &str {
    let text = text.trim_start();
    let end = text.bytes().position(|b| !is_word(b)).unwrap_or(text.len());
    &text[..end]
}

/// Every function with a body in blanked code.
pub(crate) fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for at in words(code, "fn") {
        let name = identifier(&code[at + 2..]);
        if name.is_empty() {
            continue;
        }
        if let Some(end) = body_end(code, at) {
            let line = line_at(code, at);
            let lines = line_at(code, end) + 1 - line;
            found.push(Function { name: name.to_string(), line, lines });
        }
    }
    found
}

/// Position of the brace that closes the first body after `from`; none if a `;` comes first.
pub(crate) fn body_end(code: &str, from: usize) -> Option<usize> {
    let bytes = code.as_bytes();
    let (mut depth, mut braces) = (0usize, 0usize);
    for (at, &byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth = depth.saturating_sub(1),
            b'{' => braces += 1,
            b'}' if braces <= 1 => return (braces == 1).then_some(at),
            b'}' => braces -= 1,
            b';' if depth == 0 && braces == 0 => return None,
            _ => {}
        }
    }
    None
}

/// Lines (from 1, both included) of items that exist only in tests.
pub(crate) fn test_lines(code: &str) -> Vec<(usize, usize)> {
    let mut ranges = Vec::new();
    for (at, _) in code.match_indices("#[cfg(") {
        let Some(close) = code[at..].find(']') else {
            continue;
        };
        let condition = &code[at..at + close];
        let is_test = words(condition, "test").next().is_some();
        if !is_test || condition.contains("not(test") {
            continue;
        }
        if let Some(end) = body_end(code, at + close + 1) {
            ranges.push((line_at(code, at), line_at(code, end)));
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text = "let a = \"todo!()\"; // dbg!\nlet b = r#\"fn x() {\"#; /* { /* } */ */ let c;";
        let lexed = lex(text);
        assert!(!lexed.code.contains("todo"));
        assert!(!lexed.code.contains("dbg"));
        assert!(!lexed.code.contains('{'));
        assert!(lexed.code.contains("let c;"));
        assert!(lexed.comments.contains("// dbg!"));
        assert_eq!(lexed.code.len(), text.len());
        assert_eq!(lexed.code.find('\n'), text.find('\n'));
    }

    #[test]
    fn lifetimes_are_not_characters() {
        let lexed = lex("fn f<'a>(x: &'a str) -> char { '{' } const Q: u8 = b'\\''; fn g() {}");
        let names: Vec<_> = functions(&lexed.code).into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["f", "g"]);
    }

    #[test]
    fn functions_are_measured_from_fn_to_brace() {
        let code = "trait T { fn no(x: [u8; 4]); }\nfn yes(a: [u8; 2])\n{\n  if a {\n  }\n}\n";
        let found = functions(&lex(code).code);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].lines), (2, 5));
    }

    #[test]
    fn test_modules_are_found() {
        let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\nfn c() {}\n";
        assert_eq!(test_lines(&lex(code).code), [(2, 5)]);
        assert!(test_lines("#[cfg(not(test))]\nmod x {\n}\n").is_empty());
    }
}
