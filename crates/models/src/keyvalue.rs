//! Key/value stores: documents by key, found by those of their properties that are indexed.
//!
//! Invariants
//! - After every call the entries of an index that was there at the call agree with the documents. An index that is added or
//!   deleted has its entries made or taken away by `reindex`, as in JSdb.
//! - Only properties of the first level are indexed, by their text; an empty one, and what has children, is in no index.

use perilune::{Node, Session, Value};

use crate::error::{change, look};
use crate::fields::children;
use crate::leaf::{name, stored, text};
use crate::{Document, Error, Json, Result, Shape};

/// Documents by key, below a node.
#[derive(Clone, Debug)]
pub struct KeyValue {
    node: Node,
    shape: Shape,
}

/// An index: its property, and what is done to values before they are entered.
struct Index {
    property: String,
    transform: Option<String>,
}

impl KeyValue {
    /// The store below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node, shape: Shape) -> KeyValue {
        KeyValue { node, shape }
    }

    /// Adds a document; false if the key is empty or is there.
    ///
    /// # Errors
    /// `Transform`; the database's, also for an indexed value that is longer than a subscript.
    pub fn add(&self, session: &mut Session, key: &str, json: &Json) -> Result<bool> {
        change(session, |session| {
            if key.is_empty() || self.exists(session, key)? {
                return Ok(false);
            }
            self.enter(session, key, json)?;
            Ok(true)
        })
    }

    /// Puts a document in the place of the one with that key; false if there is none.
    ///
    /// # Errors
    /// As [`KeyValue::add`].
    pub fn edit(&self, session: &mut Session, key: &str, json: &Json) -> Result<bool> {
        change(session, |session| {
            if !self.remove(session, key)? {
                return Ok(false);
            }
            self.enter(session, key, json)?;
            Ok(true)
        })
    }

    /// Deletes a document; false if there is none.
    ///
    /// # Errors
    /// As [`KeyValue::add`].
    pub fn delete(&self, session: &mut Session, key: &str) -> Result<bool> {
        change(session, |session| self.remove(session, key))
    }

    /// The document with that key.
    ///
    /// # Errors
    /// The database's, and those of reading it.
    pub fn get(&self, session: &mut Session, key: &str) -> Result<Option<Json>> {
        self.document(key)?.fetch(session)
    }

    /// The keys of the documents whose property has that value, as it was entered: of `toLowerCase` in lower case. `None` if the
    /// index has no entry at all.
    ///
    /// # Errors
    /// The database's.
    pub fn keys_by_index(
        &self,
        session: &mut Session,
        property: &str,
        value: &Json,
    ) -> Result<Option<Vec<String>>> {
        look(session, |session| self.keys(session, property, value))
    }

    /// The documents of [`KeyValue::keys_by_index`], with their keys.
    ///
    /// # Errors
    /// The database's, and those of reading them.
    pub fn by_index(
        &self,
        session: &mut Session,
        property: &str,
        value: &Json,
    ) -> Result<Option<Vec<(String, Json)>>> {
        look(session, |session| {
            let Some(keys) = self.keys(session, property, value)? else { return Ok(None) };
            let mut found = Vec::with_capacity(keys.len());
            for key in keys {
                let json = self.document(&key)?.fetch(session)?;
                found.push((key, json.unwrap_or_else(|| Json::Object(serde_json::Map::new()))));
            }
            Ok(Some(found))
        })
    }

    /// Has a property indexed from now on: documents that are there are entered by [`KeyValue::reindex`].
    ///
    /// # Errors
    /// `Transform` for another one than `toLowerCase`, `toString` and `toInteger`; `Call` for an empty name.
    pub fn add_index(&self, session: &mut Session, property: &str, transform: Option<&str>) -> Result<()> {
        if property.is_empty() {
            return Err(Error::Call("an index needs the name of a property".to_owned()));
        }
        if let Some(transform) = transform {
            transformed(String::new(), Some(transform))?;
        }
        let node = self.node.child("indices")?.with(property)?;
        change(session, |session| {
            session.delete_tree(&node)?;
            session.set(&node.child("index")?, "true")?;
            if let Some(transform) = transform {
                session.set(&node.child("transform")?, transform)?;
            }
            Ok(())
        })
    }

    /// Has a property indexed no longer. Entries stay until [`KeyValue::reindex`].
    ///
    /// # Errors
    /// The database's.
    pub fn delete_index(&self, session: &mut Session, property: &str) -> Result<()> {
        Ok(session.delete_tree(&self.node.child("indices")?.with(property)?)?)
    }

    /// The properties that are indexed.
    ///
    /// # Errors
    /// The database's.
    pub fn indices(&self, session: &mut Session) -> Result<Vec<String>> {
        let found = look(session, |session| self.known_indices(session))?;
        Ok(found.into_iter().map(|index| index.property).collect())
    }

    /// Makes all entries of all indices anew.
    ///
    /// # Errors
    /// As [`KeyValue::add`].
    pub fn reindex(&self, session: &mut Session) -> Result<()> {
        change(session, |session| {
            session.delete_tree(&self.node.child("index_by")?)?;
            for entry in self.wanted_entries(session)? {
                session.set(&entry, "")?;
            }
            Ok(())
        })
    }

    /// Which entries of indices are missing or too many, as texts; none if all agree.
    ///
    /// # Errors
    /// As [`KeyValue::add`].
    pub fn check(&self, session: &mut Session) -> Result<Vec<String>> {
        look(session, |session| {
            let mut wanted: Vec<String> =
                self.wanted_entries(session)?.iter().map(ToString::to_string).collect();
            let mut wrong = Vec::new();
            for (node, _) in session.get_tree(&self.node.child("index_by")?)? {
                let node = node.to_string();
                match wanted.iter().position(|wanted| *wanted == node) {
                    Some(at) => drop(wanted.swap_remove(at)),
                    None => wrong.push(format!("{node} is an entry of no document")),
                }
            }
            wrong.extend(wanted.into_iter().map(|node| format!("{node} is missing")));
            Ok(wrong)
        })
    }

    fn document(&self, key: &str) -> Result<Document> {
        Ok(Document::at(self.node.child("content")?.with(key)?, self.shape))
    }

    fn exists(&self, session: &mut Session, key: &str) -> Result<bool> {
        let data = session.data(&self.node.child("content")?.with(key)?)?;
        Ok(data.has_value() || data.has_descendants())
    }

    fn enter(&self, session: &mut Session, key: &str, json: &Json) -> Result<()> {
        let document = self.document(key)?;
        document.replace(session, json)?;
        if !self.exists(session, key)? {
            // Without a value of its own the key would not be there.
            session.set(document.node(), "")?;
        }
        for index in self.known_indices(session)? {
            if let Some(entry) = self.entry(session, &index, key)? {
                session.set(&entry, "")?;
            }
        }
        Ok(())
    }

    fn remove(&self, session: &mut Session, key: &str) -> Result<bool> {
        if key.is_empty() || !self.exists(session, key)? {
            return Ok(false);
        }
        for index in self.known_indices(session)? {
            if let Some(entry) = self.entry(session, &index, key)? {
                session.delete_value(&entry)?;
            }
        }
        session.delete_tree(self.document(key)?.node())?;
        Ok(true)
    }

    fn keys(&self, session: &mut Session, property: &str, value: &Json) -> Result<Option<Vec<String>>> {
        let entries = self.node.child("index_by")?.with(property)?;
        if !session.data(&entries)?.has_descendants() {
            return Ok(None);
        }
        let value = stored(value, self.shape).unwrap_or(Value::Null);
        let at = entries.with(&text(value.as_ref()))?;
        let keys = children(session, &at)?;
        keys.iter().map(|key| name(&at, key)).collect::<Result<_>>().map(Some)
    }

    fn known_indices(&self, session: &mut Session) -> Result<Vec<Index>> {
        let node = self.node.child("indices")?;
        let mut found = Vec::new();
        for property in children(session, &node)? {
            let transform = session.get(&node.child(&property)?.with("transform")?)?;
            let transform =
                transform.map(|value| String::from_utf8_lossy(&text(value.as_ref())).into_owned());
            found.push(Index { property: name(&node, &property)?, transform });
        }
        Ok(found)
    }

    /// All entries that the documents ask for.
    fn wanted_entries(&self, session: &mut Session) -> Result<Vec<Node>> {
        let indices = self.known_indices(session)?;
        let content = self.node.child("content")?;
        let mut wanted = Vec::new();
        for key in children(session, &content)? {
            let key = name(&content, &key)?;
            for index in &indices {
                wanted.extend(self.entry(session, index, &key)?);
            }
        }
        Ok(wanted)
    }

    /// The entry of a document in an index; `None` if its property has no value, or an empty one.
    fn entry(&self, session: &mut Session, index: &Index, key: &str) -> Result<Option<Node>> {
        let property = self.node.child("content")?.with(key)?.with(&index.property)?;
        let Some(value) = session.get(&property)? else { return Ok(None) };
        let value =
            String::from_utf8(text(value.as_ref())).map_err(|_| Error::NotJson(property.to_string()))?;
        let value = transformed(value, index.transform.as_deref())?;
        if value.is_empty() {
            return Ok(None);
        }
        Ok(Some(self.node.child("index_by")?.with(&index.property)?.with(&value)?.with(key)?))
    }
}

/// A value as an index has it.
fn transformed(value: String, transform: Option<&str>) -> Result<String> {
    match transform {
        None | Some("" | "toString") => Ok(value),
        Some("toLowerCase") => Ok(value.to_lowercase()),
        Some("toInteger") => Ok(leading_integer(&value)),
        Some(other) => Err(Error::Transform(other.to_owned())),
    }
}

/// What JavaScript's parseInt makes of it; empty where that is no number.
fn leading_integer(text: &str) -> String {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let bare = digits[..end].trim_start_matches('0');
    match (end, bare) {
        (0, _) => String::new(),
        (_, "") => "0".to_owned(),
        (_, bare) => format!("{sign}{bare}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_those_of_parse_int() {
        let cases =
            [("12", "12"), (" 7x", "7"), ("-03.9", "-3"), ("+5", "5"), ("x", ""), ("", ""), ("-0", "0")];
        for (text, want) in cases {
            assert_eq!(leading_integer(text), want, "{text:?}");
        }
    }
}
