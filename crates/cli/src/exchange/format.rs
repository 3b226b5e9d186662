//! The formats, by name: which parser reads a file, which writer a dump.

use std::fmt;

use clap::ValueEnum;
use perilune::key::Charset;
use perilune::{Batch, ValueRef};

use crate::exchange::{jsonl, text, zwr};

/// How nodes are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// ^name(1,"x")="value", every type as it is
    Text,
    /// The ZWR extract of YottaDB and GT.M: every value a string
    Zwr,
    /// JSON Lines: {"node":"^name(1)","value":...}, every type as it is
    Jsonl,
}

/// The character set of an extract, as it is named to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CharsetName {
    /// Characters are bytes
    M,
    /// Characters are those of Unicode
    #[value(name = "utf-8")]
    Utf8,
}

impl From<CharsetName> for Charset {
    fn from(name: CharsetName) -> Charset {
        match name {
            CharsetName::M => Charset::M,
            CharsetName::Utf8 => Charset::Utf8,
        }
    }
}

/// What is wrong with a line, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong {
    /// Offset of the first wrong byte in the line.
    pub(crate) at: usize,
    /// What was expected, or why what is there cannot be.
    pub(crate) what: String,
}

impl Wrong {
    pub(crate) fn new(at: usize, what: impl fmt::Display) -> Wrong {
        Wrong { at, what: what.to_string() }
    }
}

/// Reads lines of one format; one parser reads one file.
pub(crate) enum Parser {
    Text(text::Parser),
    Zwr(zwr::Parser),
    Jsonl(jsonl::Parser),
}

impl Parser {
    /// A parser for a file in `format`. `charset` holds for extracts that do not tell theirs.
    pub(crate) fn new(format: Format, charset: Option<Charset>) -> Parser {
        match format {
            Format::Text => Parser::Text(text::Parser::default()),
            Format::Zwr => Parser::Zwr(zwr::Parser::new(charset)),
            Format::Jsonl => Parser::Jsonl(jsonl::Parser),
        }
    }

    /// Takes a line without its end; the node in it, if there is one, goes to `batch`.
    pub(crate) fn line(&mut self, line: &[u8], batch: &mut Batch) -> Result<(), Wrong> {
        match self {
            Parser::Text(parser) => parser.line(line, batch),
            Parser::Zwr(parser) => parser.line(line, batch),
            Parser::Jsonl(parser) => parser.line(line, batch),
        }
    }

    /// Takes the end of the file; `Err`: it cannot end here.
    pub(crate) fn end(&self) -> Result<(), Wrong> {
        match self {
            Parser::Zwr(parser) => parser.end(),
            Parser::Text(_) | Parser::Jsonl(_) => Ok(()),
        }
    }

    /// How many lines at the beginning tell how to read the others.
    pub(crate) fn heading_lines(&self) -> usize {
        match self {
            Parser::Zwr(_) => 2,
            Parser::Text(_) | Parser::Jsonl(_) => 0,
        }
    }
}

/// The format of a file, by its first line.
pub(crate) fn recognise(first_line: &[u8]) -> Format {
    match first_line.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{') => Format::Jsonl,
        Some(b'^') | None => Format::Text,
        Some(_) => Format::Zwr,
    }
}

/// Writes nodes in one format.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Writer {
    Text,
    Zwr(Charset),
    Jsonl,
}

impl Writer {
    /// Appends the line of a node. `Err`: why the format cannot hold it.
    pub(crate) fn node(self, key: &[u8], value: &ValueRef<'_>, out: &mut Vec<u8>) -> Result<(), String> {
        match self {
            Writer::Text => text::write(key, value, out),
            Writer::Zwr(charset) => zwr::write(key, value, charset, out),
            Writer::Jsonl => jsonl::write(key, value, out),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use perilune::{Database, Node, Value};

    /// Values of every type, with what is hard about them.
    pub(crate) fn values() -> Vec<Value> {
        let number = |text: &str| Value::from(perilune::key::parse_literal(text.as_bytes()).unwrap());
        let doubles = [0.0, -0.0, 1.0, 0.1, 1e300, 5e-324, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        let bits = [0xfff8_0000_0000_0000u64, 0x7ff0_0000_0000_0001].map(f64::from_bits);
        let mut values =
            vec![Value::Null, Value::Bool(true), Value::Bool(false), Value::EmptyList, Value::EmptyMap];
        values.extend([0, -1, i64::MAX, i64::MIN].map(Value::Int));
        values.extend(["0.5", "-1.25", "1E20", "123456789.012345678"].map(number));
        values.extend(doubles.into_iter().chain(bits).map(Value::Double));
        let strings: [&[u8]; 9] = [
            b"",
            b"text",
            b"5",
            b"a\"b",
            b"\0\x01\n\r\x7f",
            "é\u{ad}\u{2028}\u{e000}😀".as_bytes(),
            b"\xff\xc3",
            b"null",
            b"\xef\xbf\xbe$C(1)",
        ];
        values.extend(strings.map(|bytes| Value::String(bytes.to_vec())));
        values
    }

    /// What a file of these lines would make of an empty database.
    pub(crate) fn parsed(parser: &mut Parser, text: &[u8]) -> Vec<(Node, Value)> {
        let directory =
            std::env::temp_dir().join(format!("perilune-exchange-{}-{:p}", std::process::id(), parser));
        std::fs::create_dir_all(&directory).unwrap();
        let mut session = Database::open(directory.join("t.db")).unwrap().session().unwrap();
        let mut batch = Batch::new();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            parser.line(line, &mut batch).unwrap();
        }
        session.set_each(&batch).unwrap();
        let found = session.get_tree(&Node::new("^x").unwrap()).unwrap();
        // While it is open, its log may get a file more.
        drop(session);
        std::fs::remove_dir_all(&directory).unwrap();
        found
    }

    #[test]
    fn every_value_comes_back_with_its_type() {
        for (format, writer) in [(Format::Text, Writer::Text), (Format::Jsonl, Writer::Jsonl)] {
            let mut text = Vec::new();
            let nodes: Vec<Node> = values()
                .iter()
                .enumerate()
                .map(|(index, value)| {
                    let node = perilune::node!("^x", index, &b"k\xff\0\""[..], "é", -1.5).unwrap();
                    writer.node(node.encoded(), &value.as_ref(), &mut text).unwrap();
                    node
                })
                .collect();
            let found = parsed(&mut Parser::new(format, None), &text);
            assert_eq!(found.len(), nodes.len(), "{}", String::from_utf8_lossy(&text));
            for ((node, value), (found_node, found)) in nodes.iter().zip(values()).zip(found) {
                assert_eq!(*node, found_node);
                let bits = |value: &Value| {
                    let mut bytes = Vec::new();
                    value.encode_into(&mut bytes);
                    bytes
                };
                assert_eq!(bits(&found), bits(&value), "{format:?} {value:?} {found:?}");
            }
        }
    }

    #[test]
    fn formats_are_recognised() {
        assert_eq!(recognise(b"^a(1)=2"), Format::Text);
        assert_eq!(recognise(b" {\"node\":"), Format::Jsonl);
        assert_eq!(recognise(b"GT.M MUPIP EXTRACT UTF-8"), Format::Zwr);
    }

    /// Bytes that look like lines, and bytes that do not.
    #[test]
    fn hostile_bytes_never_panic() {
        let seeds: [&[u8]; 6] = [
            b"^a(1,\"x\",.5)=\"v\"_$C(1,2)",
            b"^a($ZCH(255)_\"\"\"\",1E20)=nan(7ff8000000000001)",
            b"{\"node\":\"^a(1)\",\"value\":{\"decimal\":\"1.5\"}}",
            b"{\"node\":\"^a\",\"value\":{\"hex\":\"00ff\"}}",
            b"22-NOV-2026  01:23:06 ZWR",
            b"label UTF-8",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = |bound: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % bound as u64) as usize
        };
        let mut batch = Batch::new();
        for format in [Format::Text, Format::Zwr, Format::Jsonl] {
            let mut parser = Parser::new(format, None);
            for round in 0..40_000 {
                let mut line = seeds[random(seeds.len())].to_vec();
                for _ in 0..1 + random(3) {
                    let bytes = b"^(),\"$C=_{}[]:.eE019-\0\xff\xc3u\\";
                    let (at, byte) = (random(line.len()), bytes[random(bytes.len())]);
                    match random(3) {
                        0 => line[at] = byte,
                        1 => line.insert(at, byte),
                        _ => line.truncate(at + 1),
                    }
                }
                if let Err(wrong) = parser.line(&line, &mut batch) {
                    assert!(wrong.at <= line.len() && !wrong.what.is_empty(), "{wrong:?}");
                }
                if round % 100 == 0 {
                    (parser, batch) = (Parser::new(format, None), Batch::new());
                }
            }
        }
    }
}
