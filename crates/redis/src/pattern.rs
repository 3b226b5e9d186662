//! Patterns of KEYS and SCAN: `*`, `?`, `[a-z]`, `[^a]`, and `\` before any of them.
//!
//! Invariant: matching takes at most length of pattern times length of text, also for hostile patterns.

/// Whether `text` matches `pattern`.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut from) = (0, 0);
    // Behind the last star, and where in the text it was tried last.
    let mut retry: Option<(usize, usize)> = None;
    loop {
        if pattern.get(at) == Some(&b'*') {
            at += 1;
            retry = Some((at, from));
            continue;
        }
        let step = match text.get(from) {
            Some(byte) => one(&pattern[at..], *byte),
            None if at == pattern.len() => return true,
            None => return false,
        };
        match (step, retry) {
            (Some(width), _) => {
                at += width;
                from += 1;
            }
            (None, Some((behind, tried))) => {
                at = behind;
                from = tried + 1;
                retry = Some((behind, from));
            }
            (None, None) => return false,
        }
    }
}

/// How many bytes of `pattern` match one `byte`; none if they do not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [] => None,
        [b'?', ..] => Some(1),
        [b'\\', escaped, ..] => (*escaped == byte).then_some(2),
        [b'[', class @ ..] => {
            let (inside, width) = in_class(class, byte);
            inside.then_some(1 + width)
        }
        [literal, ..] => (*literal == byte).then_some(1),
    }
}

/// Whether `byte` is of the class, and how many bytes that takes with its bracket; one that does not
/// end reaches to the end of the pattern.
fn in_class(class: &[u8], byte: u8) -> (bool, usize) {
    let (negated, mut at) = if class.first() == Some(&b'^') { (true, 1) } else { (false, 0) };
    let mut inside = false;
    loop {
        match &class[at..] {
            [] => return (inside != negated, at),
            [b']', ..] => return (inside != negated, at + 1),
            [b'\\', escaped, ..] => {
                inside |= *escaped == byte;
                at += 2;
            }
            [first, b'-', last, ..] => {
                inside |= (*first.min(last)..=*first.max(last)).contains(&byte);
                at += 3;
            }
            [literal, ..] => {
                inside |= *literal == byte;
                at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_in_redis() {
        let good = [
            ("*", ""),
            ("h?llo", "hello"),
            ("h*llo", "heeeello"),
            ("h[ae]llo", "hallo"),
            ("h[^e]llo", "hallo"),
            ("h[a-b]llo", "hbllo"),
            ("h[b-a]llo", "hallo"),
            ("a\\*b", "a*b"),
            ("*a*b*", "xxaxxbxx"),
            ("**", "x"),
            ("[\\]]", "]"),
            ("[a", "a"),
            ("", ""),
        ];
        for (pattern, text) in good {
            assert!(matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        let wrong =
            [("", "a"), ("?", ""), ("h[^e]llo", "hello"), ("a\\*b", "aab"), ("abc", "abcd"), ("*a", "ab")];
        for (pattern, text) in wrong {
            assert!(!matches(pattern.as_bytes(), text.as_bytes()), "{pattern} {text}");
        }
        // Exponential in a naive matcher.
        assert!(!matches(&b"a*".repeat(5_000), &b"a".repeat(4_000)));
    }
}
