//! JSON as a value: read from a text, written as the one text that the same value always has.
//!
//! Invariants
//! - An integer or decimal of up to 18 digits stays exact; other numbers are the nearest doubles. One that is infinite is an error.
//! - Of members with one name the last counts. Members are in the order of subscripts: numbers, then bytes.
//! - A text is read in time that grows with its length alone, and no deeper than `limits::DOCUMENT_DEPTH`.

use perilune::key::parse_literal;
use perilune::{Decimal, Number, Subscript};

use crate::error::{Error, Result, SqlState};
use crate::limits::DOCUMENT_DEPTH;
use crate::value::Value;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Int(i64),
    Decimal(Decimal),
    Double(f64),
    Text(Vec<u8>),
    List(Vec<Json>),
    /// By name, in the order of subscripts.
    Map(Vec<(Vec<u8>, Json)>),
}

impl Json {
    /// Reads a text.
    ///
    /// # Errors
    /// `DOCUMENT`, with the byte at which it is no JSON.
    pub(crate) fn read(text: &[u8]) -> Result<Json> {
        let mut reader = Reader { text, at: 0 };
        let json = reader.value(0)?;
        reader.blanks();
        if reader.at < text.len() {
            return Err(reader.wrong("the end"));
        }
        Ok(json)
    }

    /// The value that a column is set to.
    ///
    /// # Errors
    /// As [`Json::read`] for a text.
    pub(crate) fn of(value: &Value) -> Result<Option<Json>> {
        Ok(Some(match value {
            Value::Null => return Ok(None),
            Value::Integer(integer) => Json::Int(*integer),
            Value::Real(real) => Json::Double(*real),
            Value::Text(text) | Value::Blob(text) => Json::read(text)?,
        }))
    }

    /// The value that an element is set to: a text is a text, unless it is a list or a map.
    pub(crate) fn of_element(value: &Value) -> Option<Json> {
        match value {
            Value::Text(text) if matches!(text.first(), Some(b'{' | b'[')) => {
                Some(Json::read(text).unwrap_or_else(|_| Json::Text(text.clone())))
            }
            Value::Text(text) | Value::Blob(text) => Some(Json::Text(text.clone())),
            other => Json::of(other).ok().flatten(),
        }
    }

    /// The value as an element of a document is seen by SQL: lists and maps as text.
    pub(crate) fn to_value(&self) -> Value {
        match self {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Integer(i64::from(*truth)),
            Json::Int(integer) => Value::Integer(*integer),
            Json::Decimal(decimal) => Value::Real(f64::from(*decimal)),
            Json::Double(double) => Value::Real(*double),
            Json::Text(text) => Value::Text(text.clone()),
            Json::List(_) | Json::Map(_) => Value::Text(self.to_text()),
        }
    }

    /// Its text.
    pub(crate) fn to_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Json::Null => out.extend_from_slice(b"null"),
            Json::Bool(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
            Json::Int(integer) => out.extend_from_slice(integer.to_string().as_bytes()),
            Json::Decimal(decimal) => write_number(&Number::from(*decimal).to_string(), out),
            Json::Double(double) => out.extend_from_slice(format!("{double:?}").as_bytes()),
            Json::Text(text) => write_text(text, out),
            Json::List(all) => {
                out.push(b'[');
                for (at, json) in all.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    json.write(out);
                }
                out.push(b']');
            }
            Json::Map(members) => {
                out.push(b'{');
                for (at, (name, json)) in members.iter().enumerate() {
                    if at > 0 {
                        out.push(b',');
                    }
                    write_text(name, out);
                    out.push(b':');
                    json.write(out);
                }
                out.push(b'}');
            }
        }
    }

    /// The element at a path: names of members, and numbers of list elements from 1.
    pub(crate) fn element(&self, path: &[String]) -> Option<&Json> {
        let Some((first, rest)) = path.split_first() else { return Some(self) };
        let below = match self {
            Json::List(all) => all.get(first.parse::<usize>().ok()?.checked_sub(1)?),
            Json::Map(members) => {
                members.iter().find(|(name, _)| name == first.as_bytes()).map(|(_, json)| json)
            }
            _ => None,
        };
        below?.element(rest)
    }

    /// Sets the element at a path, or removes it; what it lies in must be there, or be a map that begins with it.
    ///
    /// # Errors
    /// `DOCUMENT`, if there is no list or map that it could lie in.
    pub(crate) fn set_element(&mut self, path: &[String], value: Option<Json>) -> Result<()> {
        let Some((first, rest)) = path.split_first() else {
            *self = value.unwrap_or(Json::Null);
            return Ok(());
        };
        match self {
            Json::List(all) => {
                let at = first.parse::<usize>().ok().and_then(|at| at.checked_sub(1));
                let at = at.filter(|at| *at <= all.len()).ok_or_else(|| no_place(first))?;
                match (at < all.len(), rest.is_empty(), value) {
                    (true, true, None) if at + 1 == all.len() => {
                        all.pop();
                    }
                    (true, true, None) => all[at] = Json::Null,
                    (true, _, value) => return all[at].set_element(rest, value),
                    (false, true, Some(value)) => all.push(value),
                    (false, _, None) => {}
                    (false, false, Some(_)) => return Err(no_place(first)),
                }
            }
            Json::Map(members) => {
                let found = members.iter().position(|(name, _)| name == first.as_bytes());
                match (found, rest.is_empty(), value) {
                    (Some(at), true, None) => {
                        members.remove(at);
                    }
                    (Some(at), _, value) => return members[at].1.set_element(rest, value),
                    (None, true, Some(value)) => insert(members, first.as_bytes().to_vec(), value),
                    (None, _, None) => {}
                    (None, false, Some(_)) => return Err(no_place(first)),
                }
            }
            _ => return Err(no_place(first)),
        }
        Ok(())
    }
}

fn no_place(name: &str) -> Error {
    let what = format!("there is no list or map in which {name} could lie: set what is around it first");
    Error::new(SqlState::DOCUMENT, what)
}

/// Puts a member where it belongs in the order of subscripts.
pub(super) fn insert(members: &mut Vec<(Vec<u8>, Json)>, name: Vec<u8>, json: Json) {
    let order = |a: &[u8], b: &[u8]| match (Subscript::from_bytes(a), Subscript::from_bytes(b)) {
        (Subscript::Number(a), Subscript::Number(b)) => a.cmp(&b),
        (Subscript::Number(_), Subscript::Bytes(_)) if !b.is_empty() => std::cmp::Ordering::Less,
        (Subscript::Bytes(_), Subscript::Number(_)) if !a.is_empty() => std::cmp::Ordering::Greater,
        _ => a.cmp(b),
    };
    match members.binary_search_by(|(known, _)| order(known, &name)) {
        Ok(at) => members[at].1 = json,
        Err(at) => members.insert(at, (name, json)),
    }
}

/// NB: the canonical form of a decimal has no zero before its point; JSON wants it.
fn write_number(text: &str, out: &mut Vec<u8>) {
    let digits = text.strip_prefix('-').unwrap_or(text);
    out.extend_from_slice(&text.as_bytes()[..text.len() - digits.len()]);
    if digits.starts_with('.') {
        out.push(b'0');
    }
    out.extend_from_slice(digits.as_bytes());
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
}

/// A place in a text of JSON.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, expected: &str) -> Error {
        let found = match self.text.get(self.at) {
            Some(byte) => format!("not {:?}", char::from(*byte)),
            None => "and the text ends".to_owned(),
        };
        Error::new(SqlState::DOCUMENT, format!("no JSON: at byte {} comes {expected}, {found}", self.at))
    }

    fn blanks(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    /// Takes a sign, blanks before it aside, if it is next.
    fn take(&mut self, sign: u8) -> bool {
        self.blanks();
        let is = self.text.get(self.at) == Some(&sign);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        self.blanks();
        if depth > DOCUMENT_DEPTH {
            let what = format!("lists and maps stand at most {DOCUMENT_DEPTH} deep in a document");
            return Err(Error::new(SqlState::LIMIT, what));
        }
        let rest = &self.text[self.at..];
        for (word, json) in [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))] {
            if rest.starts_with(word.as_bytes()) {
                self.at += word.len();
                return Ok(json);
            }
        }
        match rest.first() {
            Some(b'{') => self.map(depth),
            Some(b'[') => self.list(depth),
            Some(b'"') => self.string().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.wrong("a value")),
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut all = Vec::new();
        if self.take(b']') {
            return Ok(Json::List(all));
        }
        loop {
            all.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Ok(Json::List(all));
            }
            if !self.take(b',') {
                return Err(self.wrong(", or ]"));
            }
        }
    }

    fn map(&mut self, depth: usize) -> Result<Json> {
        self.at += 1;
        let mut members = Vec::new();
        if self.take(b'}') {
            return Ok(Json::Map(members));
        }
        loop {
            self.blanks();
            if self.text.get(self.at) != Some(&b'"') {
                return Err(self.wrong("a name in quotes"));
            }
            let name = self.string()?;
            if !self.take(b':') {
                return Err(self.wrong(":"));
            }
            let json = self.value(depth + 1)?;
            insert(&mut members, name, json);
            if self.take(b'}') {
                return Ok(Json::Map(members));
            }
            if !self.take(b',') {
                return Err(self.wrong(", or }"));
            }
        }
    }

    fn number(&mut self) -> Result<Json> {
        let start = self.at;
        let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
        while self.text.get(self.at).is_some_and(is_part) {
            self.at += 1;
        }
        let text = &self.text[start..self.at];
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let has_zeros = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
        let number = match parse_literal(text) {
            Ok(Number::Int(integer)) => Some(Json::Int(integer)),
            Ok(Number::Decimal(decimal)) => Some(Json::Decimal(decimal)),
            Err(_) => {
                let double = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
                double.filter(|double| double.is_finite()).map(Json::Double)
            }
        };
        let ends = digits.last().is_some_and(u8::is_ascii_digit);
        match number.filter(|_| !has_zeros && ends && digits[0] != b'.') {
            Some(number) => Ok(number),
            None => {
                self.at = start;
                Err(self.wrong("a number"))
            }
        }
    }

    fn string(&mut self) -> Result<Vec<u8>> {
        self.at += 1;
        let mut out = Vec::new();
        loop {
            let plain = self.text[self.at..].iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1F));
            let Some(length) = plain else {
                self.at = self.text.len();
                return Err(self.wrong("the end of a text"));
            };
            out.extend_from_slice(&self.text[self.at..self.at + length]);
            self.at += length;
            match self.text[self.at] {
                b'"' => {
                    self.at += 1;
                    return Ok(out);
                }
                b'\\' => self.escape(&mut out)?,
                _ => return Err(self.wrong("a character that is written with \\")),
            }
        }
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let plain = match self.text.get(self.at + 1) {
            Some(b'u') => return self.unicode(out),
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(sign @ (b'"' | b'\\' | b'/')) => *sign,
            _ => return Err(self.wrong("an escape")),
        };
        out.push(plain);
        self.at += 2;
        Ok(())
    }

    /// `\u` and four digits, perhaps two of them.
    fn unicode(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let unit = |at: usize| -> Option<u32> {
            let digits = self.text.get(at..at + 6)?.strip_prefix(b"\\u")?;
            let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
            is_hex.then(|| u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok())?
        };
        let first = unit(self.at).ok_or_else(|| self.wrong("\\u and four digits"))?;
        let pair = unit(self.at + 6).filter(|low| (0xDC00..0xE000).contains(low));
        let (code, length) = match (first, pair) {
            (0xD800..0xDC00, Some(low)) => (0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00), 12),
            _ => (first, 6),
        };
        let character = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
        out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &str) -> String {
        match Json::read(json.as_bytes()) {
            Ok(json) => String::from_utf8(json.to_text()).expect("text"),
            Err(error) => error.message().to_owned(),
        }
    }

    #[test]
    fn a_text_becomes_the_one_that_its_value_has() {
        for (given, told) in [
            (
                r#" { "b" : [1, 2.50, -0.5, 1e300, {}], "a": null , "10":1,"9":[] } "#,
                r#"{"9":[],"10":1,"a":null,"b":[1,2.5,-0.5,1e300,{}]}"#,
            ),
            (r#"{"a":1,"a":2,"":3}"#, r#"{"":3,"a":2}"#),
            (r#""\u00e9\ud83d\ude00\n\"\/""#, "\"é😀\\n\\\"/\""),
            ("true", "true"),
            ("123456789012345678", "123456789012345678"),
            ("[1,]", "no JSON: at byte 3 comes a value, not ']'"),
            ("{\"a\" 1}", "no JSON: at byte 5 comes :, not '1'"),
            ("01", "no JSON: at byte 0 comes a number, not '0'"),
            ("\"a", "no JSON: at byte 2 comes the end of a text, and the text ends"),
            ("1 2", "no JSON: at byte 2 comes the end, not '2'"),
            ("", "no JSON: at byte 0 comes a value, and the text ends"),
            ("1e999", "no JSON: at byte 0 comes a number, not '1'"),
        ] {
            assert_eq!(text(given), told, "{given}");
            if Json::read(given.as_bytes()).is_ok() {
                assert_eq!(text(told), told);
            }
        }
        assert!(text(&"[".repeat(1_000_000)).contains("deep"));
    }

    #[test]
    fn elements_are_read_and_set_by_paths() {
        let path = |text: &str| text.split('.').map(str::to_owned).collect::<Vec<_>>();
        let mut json = Json::read(br#"{"a":{"b":[1,{"c":"x"}]}}"#).expect("JSON");
        assert_eq!(json.element(&path("a.b.2.c")), Some(&Json::Text(b"x".to_vec())));
        assert_eq!(json.element(&path("a.b.3")), None);
        json.set_element(&path("a.b.3"), Some(Json::Null)).expect("a place");
        json.set_element(&path("a.b.1"), Some(Json::Bool(true))).expect("a place");
        json.set_element(&path("a.b.2.c"), None).expect("a place");
        json.set_element(&path("new"), Some(Json::Int(7))).expect("a place");
        assert_eq!(json.to_text(), br#"{"a":{"b":[true,{},null]},"new":7}"#);
        assert!(json.set_element(&path("no.where"), Some(Json::Null)).is_err());
        assert!(json.set_element(&path("a.b.9"), Some(Json::Null)).is_err());
    }
}
