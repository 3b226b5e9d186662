//! Character data: parts of texts, comments and CDATA sections read and changed in place.
//!
//! Offsets and lengths count UTF-16 units from 0, as the DOM says, in every language. A range may reach behind the end;
//! one that begins there or would cut a character in two is an error.

use perilune::Session;

use crate::{Dom, DomError, DomNode, NodeKind, Record, Result};

/// How many UTF-16 units a text has.
fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

/// The byte at which the unit `offset` begins.
fn byte_at(text: &str, offset: usize) -> Result<usize> {
    let mut seen = 0;
    for (byte, c) in text.char_indices() {
        if seen >= offset {
            break;
        }
        seen += c.len_utf16();
        if seen == offset {
            return Ok(byte + c.len_utf8());
        }
    }
    if seen == offset {
        return Ok(0);
    }
    Err(DomError::IndexSize { offset, length: units(text) })
}

/// The bytes of `count` units from `offset`, at most to the end.
fn range(text: &str, offset: usize, count: usize) -> Result<std::ops::Range<usize>> {
    let from = byte_at(text, offset)?;
    let rest = &text[from..];
    let to = if count >= units(rest) { rest.len() } else { byte_at(rest, count)? };
    Ok(from..from + to)
}

impl Dom {
    fn character_data(&self, session: &mut Session, node: DomNode) -> Result<Record> {
        let record = self.record(session, node)?;
        match record.kind {
            NodeKind::Text | NodeKind::CData | NodeKind::Comment => Ok(record),
            _ => Err(DomError::Hierarchy("only texts, CDATA sections and comments have character data")),
        }
    }

    /// How many UTF-16 units the text has.
    ///
    /// # Errors
    /// `Hierarchy` for nodes without character data; `NotFound`; the database's.
    pub fn data_length(&self, session: &mut Session, node: DomNode) -> Result<usize> {
        Ok(units(&self.character_data(session, node)?.value))
    }

    /// `count` units from `offset`.
    ///
    /// # Errors
    /// As [`Dom::data_length`]; `IndexSize`.
    pub fn substring_data(
        &self,
        session: &mut Session,
        node: DomNode,
        offset: usize,
        count: usize,
    ) -> Result<String> {
        let text = self.character_data(session, node)?.value;
        let range = range(&text, offset, count)?;
        Ok(text[range].to_owned())
    }

    /// Puts `new` in place of `count` units from `offset`: with 0 it inserts, with an empty text it deletes.
    ///
    /// # Errors
    /// As [`Dom::substring_data`]; `InvalidCharacter`.
    pub fn replace_data(
        &self,
        session: &mut Session,
        node: DomNode,
        offset: usize,
        count: usize,
        new: &str,
    ) -> Result<()> {
        self.atomically(session, |session| {
            let mut text = self.character_data(session, node)?.value;
            let range = range(&text, offset, count)?;
            text.replace_range(range, new);
            self.set_value(session, node, &text)
        })
    }

    /// Appends `more` to the text.
    ///
    /// # Errors
    /// As [`Dom::data_length`]; `InvalidCharacter`.
    pub fn append_data(&self, session: &mut Session, node: DomNode, more: &str) -> Result<()> {
        self.atomically(session, |session| {
            let mut text = self.character_data(session, node)?.value;
            text.push_str(more);
            self.set_value(session, node, &text)
        })
    }

    /// Cuts a text or CDATA section in two at `offset`; the second part, a new node behind the first, is returned.
    ///
    /// # Errors
    /// As [`Dom::substring_data`]; `Hierarchy` for comments.
    pub fn split_text(&self, session: &mut Session, node: DomNode, offset: usize) -> Result<DomNode> {
        self.atomically(session, |session| {
            let record = self.character_data(session, node)?;
            if !record.is_text() {
                return Err(DomError::Hierarchy("only texts and CDATA sections are split"));
            }
            let (before, behind) = record.value.split_at(byte_at(&record.value, offset)?);
            let new = self.create(session, &Record::new(record.kind, &record.name, behind))?;
            self.set_value(session, node, before)?;
            if let Some(parent) = record.parent {
                self.insert_before(session, parent, new, record.next_sibling)?;
            }
            Ok(new)
        })
    }

    /// The text of `node` with the texts and CDATA sections right beside it.
    ///
    /// # Errors
    /// As [`Dom::data_length`].
    pub fn whole_text(&self, session: &mut Session, node: DomNode) -> Result<String> {
        self.at_one_moment(session, |session| {
            let mut first = self.character_data(session, node)?;
            while let Some(previous) = first.previous_sibling {
                let record = self.record(session, previous)?;
                if !record.is_text() {
                    break;
                }
                first = record;
            }
            let mut text = first.value;
            let mut next = first.next_sibling;
            while let Some(node) = next {
                let record = self.record(session, node)?;
                if !record.is_text() {
                    break;
                }
                text.push_str(&record.value);
                next = record.next_sibling;
            }
            Ok(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_count_utf16_units() {
        let text = "aé𝄞z";
        assert_eq!(units(text), 5);
        assert_eq!([0, 1, 2, 4, 5].map(|at| byte_at(text, at).unwrap()), [0, 1, 3, 7, 8]);
        assert!(matches!(byte_at(text, 3), Err(DomError::IndexSize { offset: 3, length: 5 })));
        assert!(byte_at(text, 6).is_err());
        assert_eq!(byte_at("", 0).unwrap(), 0);
        assert_eq!(range(text, 1, 99).unwrap(), 1..8);
        assert_eq!(range(text, 5, 1).unwrap(), 8..8);
        assert!(range(text, 1, 2).is_err(), "half a character");
    }
}
