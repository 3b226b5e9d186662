//! Completion of subscripts: which node a line has come to, and what its children are called.
//!
//! `^person(21,"na`, `^person.na` and `node("^person")[21].na` all ask for the children of a node that begin with what
//! stands at the end of the line. It is told from the text alone: a variable that holds a node is not looked at.
//!
//! Deliberately absent: subscripts that are expressions.

use perilune::{Cursor, Node, Session, Subscript};

/// Children that are looked at: an answer comes at once, however many there are.
const LOOKED_AT_MAX: usize = 10_000;

/// How the last subscript is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `.name`
    Field,
    /// A number or a string in quotes.
    Literal,
}

/// Where a line ends: behind a node, in the midst of a subscript.
#[derive(Debug)]
pub(super) struct Place {
    node: Node,
    /// Bytes of the line before what is to be completed.
    pub(super) from: usize,
    /// What of it is there.
    begun: String,
    style: Style,
}

impl Place {
    /// The place at the end of `line`; None if it does not end in a subscript.
    pub(super) fn of(line: &str) -> Option<Place> {
        let mut scan = Scan { line, at: line.rfind('^')? + 1 };
        let name = scan.while_letters(|letter| letter.is_alphanumeric() || letter == '%' || letter == '_');
        let mut node = Node::new(&format!("^{name}")).ok()?;
        // The end of `node("^person")`.
        if matches!(scan.peek(), Some('"' | '\'')) {
            scan.at += 1;
            scan.take(')')?;
        }
        loop {
            match scan.next()? {
                '.' => {
                    let from = scan.at;
                    let name = scan.while_letters(|letter| letter.is_alphanumeric() || letter == '_');
                    if scan.peek().is_none() {
                        return Some(Place { node, from, begun: name.to_owned(), style: Style::Field });
                    }
                    node = node.child(name).ok()?;
                }
                open @ ('(' | '[') => {
                    let close = if open == '(' { ')' } else { ']' };
                    loop {
                        scan.while_letters(char::is_whitespace);
                        let from = scan.at;
                        let Some(subscript) = scan.literal() else {
                            let begun = line[from..].to_owned();
                            return Some(Place { node, from, begun, style: Style::Literal });
                        };
                        node = node.child(&subscript?).ok()?;
                        scan.while_letters(char::is_whitespace);
                        match scan.next()? {
                            ',' => {}
                            end if end == close => break,
                            _ => return None,
                        }
                    }
                }
                _ => return None,
            }
        }
    }

    /// At most `offered_max` children, as they would stand in the line; none if the database cannot be read.
    pub(super) fn complete(&self, session: &mut Session, offered_max: usize) -> Vec<String> {
        let mut children = Cursor::children(&self.node).without_values();
        let mut offered = Vec::new();
        for _ in 0..LOOKED_AT_MAX {
            if offered.len() == offered_max || !children.next(session).unwrap_or(false) {
                break;
            }
            let Ok(subscript) = children.subscript() else { break };
            offered.extend(self.written(&subscript).filter(|text| text.starts_with(&self.begun)));
        }
        offered
    }

    /// The subscript in Lua; None if it cannot be written so.
    fn written(&self, subscript: &Subscript<'_>) -> Option<String> {
        match (subscript, self.style) {
            (Subscript::Number(number), Style::Literal) => Some(number.to_string()),
            (Subscript::Number(_), Style::Field) => None,
            (Subscript::Bytes(bytes), Style::Literal) => {
                Some(quoted(bytes, if self.begun.starts_with('\'') { '\'' } else { '"' }))
            }
            (Subscript::Bytes(bytes), Style::Field) => {
                let text = std::str::from_utf8(bytes).ok()?;
                let first = text.bytes().next()?;
                let is_name = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
                (is_name && !first.is_ascii_digit() && !text.starts_with("__")).then(|| text.to_owned())
            }
        }
    }
}

/// A string of Lua: letters stay, all other bytes become `\ddd`.
fn quoted(bytes: &[u8], quote: char) -> String {
    let mut text = String::from(quote);
    for chunk in bytes.utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                '\\' => text.push_str("\\\\"),
                letter if letter == quote => text.extend(['\\', quote]),
                letter if letter.is_control() => text.push_str(&format!("\\{:03}", u32::from(letter))),
                letter => text.push(letter),
            }
        }
        chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\{byte:03}")));
    }
    text.push(quote);
    text
}

/// Reads a line from left to right.
struct Scan<'l> {
    line: &'l str,
    at: usize,
}

impl<'l> Scan<'l> {
    fn peek(&self) -> Option<char> {
        self.line[self.at..].chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn take(&mut self, wanted: char) -> Option<()> {
        (self.next()? == wanted).then_some(())
    }

    fn while_letters(&mut self, good: impl Fn(char) -> bool) -> &'l str {
        let rest = &self.line[self.at..];
        let end = rest.find(|letter| !good(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    /// A whole number or string: Some(None) if it is neither, None if the line ends in it.
    fn literal(&mut self) -> Option<Option<String>> {
        let quote = self.peek()?;
        if quote != '"' && quote != '\'' {
            let text =
                self.while_letters(|letter| letter.is_alphanumeric() || letter == '.' || letter == '-');
            self.peek()?;
            // As a string, since one that is a number names the same node.
            return Some(text.parse::<f64>().ok().map(|_| text.to_owned()));
        }
        self.at += 1;
        let mut text = String::new();
        loop {
            match self.next()? {
                '\\' => text.push(self.next()?),
                letter if letter == quote => return Some(Some(text)),
                letter => text.push(letter),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The node, what is begun, and how many bytes stand before it.
    fn place(line: &str) -> Option<(String, String, usize)> {
        Place::of(line).map(|place| (place.node.to_string(), place.begun, place.from))
    }

    #[test]
    fn the_node_is_told_from_the_text() {
        let some = |node: &str, begun: &str, from| Some((node.to_owned(), begun.to_owned(), from));
        assert_eq!(place("^a("), some("^a", "", 3));
        assert_eq!(place("^a(21,\"na"), some("^a(21)", "\"na", 6));
        assert_eq!(place("x = ^a(21, 'b').cd"), some("^a(21,\"b\")", "cd", 16));
        assert_eq!(place("^a.b.c."), some("^a(\"b\",\"c\")", "", 7));
        assert_eq!(place("print(node(\"^a\")[2]["), some("^a(2)", "", 20));
        assert_eq!(place("^a(\"x)\\\"y\",-1"), some("^a(\"x)\"\"y\")", "-1", 11));
        for line in ["^a", "2 ^ 3", "^a(1):ge", "^a(1).b.__ = 5", "^a(i).", "^a(1)", "^(", "a("] {
            assert_eq!(place(line), None, "{line}");
        }
    }

    #[test]
    fn children_are_written_as_the_line_has_begun() {
        let dir = std::env::temp_dir().join(format!("perilune-cli-subscripts-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let database = perilune::Database::open(dir.join("t.db")).unwrap();
        let mut session = database.session().unwrap();
        for text in
            ["^p(21,\"name\")", "^p(210)", "^p(3)", "^p(\"n\"\"x\")", "^p(\"na\",1)", "^p(\"no way\")"]
        {
            session.set(&Node::parse(text).unwrap(), 1).unwrap();
        }
        let mut complete = |line: &str| Place::of(line).unwrap().complete(&mut session, 10);
        assert_eq!(complete("^p("), ["3", "21", "210", "\"n\\\"x\"", "\"na\"", "\"no way\""]);
        assert_eq!(complete("^p(21"), ["21", "210"]);
        assert_eq!(complete("^p('na"), ["'na'"]);
        assert_eq!(complete("^p.n"), ["na"]);
        assert_eq!(complete("^p(21)."), ["name"]);
        assert_eq!(complete("^q("), Vec::<String>::new());
        drop(session);
        drop(database);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
