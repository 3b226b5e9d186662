//! Extracts in ZWR format, as `MUPIP EXTRACT` of YottaDB and GT.M writes and `MUPIP LOAD` reads them.
//!
//! Two lines come first: a label, with ` UTF-8` at its end if the characters are those of Unicode; and
//! the date, with ` ZWR`. Then a node a line. An extract without these two lines is read, too, and so is what ZWRITE
//! prints, where canonical numbers stand without quotes: they are strings as all others, since M has nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use perilune::key::{is_m_name, read_zwr, split_name, write_zwr, write_zwr_key, Charset, KeyBuf};
use perilune::{Batch, NodeRef, Subscript, ValueRef};

use crate::exchange::format::Wrong;
use crate::exchange::text::read_node;

/// What is wrong with a second line that is not the one of an extract.
const NO_EXTRACT: &str =
    "expected the date and ZWR. A file that `dump` has written begins with ^ or {; of MUPIP \
                          EXTRACT -FORMAT=ZWR is read";

/// Reads the lines of an extract.
pub(crate) struct Parser {
    /// What the user says of the character set.
    told: Option<Charset>,
    charset: Charset,
    next: Next,
    key: Option<KeyBuf>,
    string: Vec<u8>,
}

/// What the next line is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Label,
    Date,
    Node,
}

impl Parser {
    pub(crate) fn new(told: Option<Charset>) -> Parser {
        let charset = told.unwrap_or_default();
        Parser { told, charset, next: Next::Label, key: None, string: Vec::new() }
    }

    /// Takes a line.
    pub(crate) fn line(&mut self, line: &[u8], batch: &mut Batch) -> Result<(), Wrong> {
        match self.next {
            Next::Label if line.first() != Some(&b'^') => {
                let written =
                    if line.trim_ascii_end().ends_with(b"UTF-8") { Charset::Utf8 } else { Charset::M };
                self.charset = self.told.unwrap_or(written);
                self.next = Next::Date;
                Ok(())
            }
            Next::Date => {
                self.next = Next::Node;
                if line.trim_ascii_end().ends_with(b"ZWR") {
                    return Ok(());
                }
                Err(Wrong::new(0, NO_EXTRACT))
            }
            Next::Label | Next::Node => {
                self.next = Next::Node;
                self.node(line, batch)
            }
        }
    }

    /// Takes the end of the file.
    pub(crate) fn end(&self) -> Result<(), Wrong> {
        if self.next == Next::Date {
            Err(Wrong::new(0, NO_EXTRACT))
        } else {
            Ok(())
        }
    }

    fn node(&mut self, line: &[u8], batch: &mut Batch) -> Result<(), Wrong> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        let (key, end) = read_node(&mut self.key, line, self.charset.codes())?;
        let (node, value) = (NodeRef::from_encoded(key.as_bytes(), false), line[end..].trim_ascii_end());
        if matches!(Subscript::from_bytes(value), Subscript::Number(_)) {
            return batch.push(node, value).map_err(|error| Wrong::new(0, error));
        }
        read_zwr(&line[end..], self.charset, &mut self.string)
            .map_err(|error| Wrong::new(end + error.at, error.problem))?;
        batch.push(node, &self.string).map_err(|error| Wrong::new(0, error))
    }
}

/// Appends the two lines before the nodes; the date is that of Greenwich.
pub(crate) fn write_heading(label: &str, charset: Charset, out: &mut Vec<u8>) {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    out.extend_from_slice(label.as_bytes());
    if charset == Charset::Utf8 {
        out.extend_from_slice(b" UTF-8");
    }
    out.extend_from_slice(format!("\n{} ZWR\n", date(seconds)).as_bytes());
}

/// Appends a line: the value as an M program sees it.
pub(crate) fn write(
    key: &[u8],
    value: &ValueRef<'_>,
    charset: Charset,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    let name = split_name(key).map_err(|error| error.to_string())?.0;
    if !is_m_name(name) {
        return Err("M names have at most 31 letters and digits, the first a letter or %".into());
    }
    write_zwr_key(key, charset, out).map_err(|error| error.to_string())?;
    out.push(b'=');
    match value {
        ValueRef::String(bytes) => write_zwr(bytes, charset, out),
        other => {
            let mut text = Vec::new();
            other.write_text(&mut text);
            write_zwr(&text, charset, out);
        }
    }
    out.push(b'\n');
    Ok(())
}

/// `22-NOV-2026  01:23:06` for seconds since 1970.
fn date(seconds: u64) -> String {
    const MONTHS: [&str; 12] =
        ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
    let (mut days, clock) = (seconds / 86_400, seconds % 86_400);
    let leap = |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{:02}-{}-{year}  {hour:02}:{minute:02}:{second:02}", days + 1, MONTHS[month])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::format::tests::values;
    use crate::exchange::format::{tests::parsed, Parser as AnyParser, Writer};
    use perilune::{node, Value};

    #[test]
    fn dates_are_those_of_mupip() {
        assert_eq!(date(0), "01-JAN-1970  00:00:00");
        assert_eq!(date(1_795_310_586), "22-NOV-2026  01:23:06");
        assert_eq!(date(951_782_400), "29-FEB-2000  00:00:00");
        assert_eq!(date(4_107_542_399), "28-FEB-2100  23:59:59");
    }

    #[test]
    fn strings_come_back_in_both_character_sets() {
        for charset in [Charset::M, Charset::Utf8] {
            let strings: Vec<Vec<u8>> = values()
                .into_iter()
                .filter_map(|value| if let Value::String(bytes) = value { Some(bytes) } else { None })
                .chain((0..=255).map(|byte| vec![byte, b'x', byte, byte]))
                .collect();
            let mut text = Vec::new();
            write_heading("of a test", charset, &mut text);
            for (index, string) in strings.iter().enumerate() {
                let node = node!("^x", index, &string[..]).unwrap();
                Writer::Zwr(charset).node(node.encoded(), &ValueRef::String(string), &mut text).unwrap();
            }
            let found = parsed(&mut AnyParser::Zwr(Parser::new(None)), &text);
            assert_eq!(found.len(), strings.len());
            for (index, ((found, value), string)) in found.into_iter().zip(strings).enumerate() {
                assert_eq!(found, node!("^x", index, &string[..]).unwrap());
                assert_eq!(value, Value::String(string));
            }
        }
    }

    #[test]
    fn what_zwrite_prints_is_read() {
        let text = b"^a=1\n^a(1)=-.5\n^a(\"b\")=\"x\"\n";
        let found = parsed(&mut AnyParser::Zwr(Parser::new(None)), text);
        let strings = [(node!("^a"), "1"), (node!("^a", 1), "-.5"), (node!("^a", "b"), "x")];
        for ((node, value), (wanted, string)) in found.into_iter().zip(strings) {
            assert_eq!((node, value), (wanted.unwrap(), Value::String(string.into())));
        }
    }

    #[test]
    fn what_is_no_extract_is_named() {
        let mut parser = Parser::new(None);
        parser.line(b"GT.M MUPIP EXTRACT", &mut Batch::new()).unwrap();
        let wrong = parser.line(b"22-NOV-2026  01:23:06 GLO", &mut Batch::new()).unwrap_err();
        assert!(wrong.what.contains("-FORMAT=ZWR"), "{wrong:?}");
        let wrong = parser.line(b"^a(1)=02", &mut Batch::new()).unwrap_err();
        assert!(wrong.at == 6 && wrong.what.contains("expected a string"), "{wrong:?}");
    }
}
