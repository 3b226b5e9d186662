//! Documents: a JSON value below a node, one node a leaf.
//!
//! Problem: in the tree an array is children with the subscripts 0, 1, 2, which an object may have too, so what was `{"0": 1}`
//! would come back as `[1]`. Idea: a typed object with a property that is an integer gets the value `{}` beside its children,
//! which nobody else looks at: JSdb and `tojson` leave it out.
//!
//! Invariants
//! - Typed, `fetch` answers what `put` was given, for every JSON value whose numbers are integers of 64 bits or doubles.
//! - A leaf takes the place of all that was at its node, so that nothing is stored where no `fetch` finds it.

use perilune::{Cursor, Node, Session, Subscript, SubscriptBuf, Value};
use serde_json::Map;

use crate::error::{change, look};
use crate::leaf::{name, shown, stored};
use crate::{Error, Json, Result, Shape};

/// A JSON value below a node.
#[derive(Clone, Debug)]
pub struct Document {
    node: Node,
    shape: Shape,
}

/// Which children are wanted, as JSdb's `forEachChild` has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Children<'a> {
    /// The first; it need not exist.
    pub from: Option<&'a str>,
    /// The last, with all that it is a prefix of unless it is a number.
    pub to: Option<&'a str>,
    /// What their names begin with.
    pub prefix: Option<&'a str>,
    /// Whether the last comes first.
    pub reverse: bool,
}

impl Document {
    /// The document below `node`, whether or not there is one.
    #[must_use]
    pub fn at(node: Node, shape: Shape) -> Document {
        Document { node, shape }
    }

    /// Its node.
    #[must_use]
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Merges `json` into what is there: properties and elements that it has not stay.
    ///
    /// # Errors
    /// The database's: names longer than a subscript, more levels than a node has.
    pub fn put(&self, session: &mut Session, json: &Json) -> Result<()> {
        change(session, |session| {
            let data = session.data(&self.node)?;
            let is_new = !data.has_value() && !data.has_descendants();
            self.write(session, &mut self.node.clone(), json, is_new)
        })
    }

    /// Puts `json` in the place of all that is there.
    ///
    /// # Errors
    /// As [`Document::put`].
    pub fn replace(&self, session: &mut Session, json: &Json) -> Result<()> {
        change(session, |session| {
            session.delete_tree(&self.node)?;
            self.write(session, &mut self.node.clone(), json, true)
        })
    }

    /// Changes properties: null deletes one, an object is patched, all else takes the place of what is there (RFC 7396).
    ///
    /// # Errors
    /// As [`Document::put`].
    pub fn patch(&self, session: &mut Session, json: &Json) -> Result<()> {
        change(session, |session| self.patch_at(session, &mut self.node.clone(), json))
    }

    /// All of it; `None` if nothing is there.
    ///
    /// # Errors
    /// `NotJson` for bytes that are no UTF-8, and for infinite numbers; else the database's.
    pub fn fetch(&self, session: &mut Session) -> Result<Option<Json>> {
        let entries = session.get_tree(&self.node)?;
        let mut parts = Vec::with_capacity(entries.len());
        for (node, value) in entries {
            let path = node.subscripts()?.split_off(self.node.depth());
            parts.push(Part { node, path, value });
        }
        if parts.is_empty() {
            return Ok(None);
        }
        read(&parts, 0, self.shape).map(Some)
    }

    /// Reads it, has `work` make another value of it, and puts that in its place; `None` deletes it. `work` may run several times.
    ///
    /// # Errors
    /// Those of `work` and as [`Document::put`].
    pub fn update(
        &self,
        session: &mut Session,
        mut work: impl FnMut(Option<Json>) -> Result<Option<Json>>,
    ) -> Result<()> {
        change(session, |session| {
            let before = self.fetch(session)?;
            match work(before)? {
                Some(json) => self.replace(session, &json),
                None => Ok(session.delete_tree(&self.node)?),
            }
        })
    }

    /// The names of its children, in the order of subscripts, without an empty one.
    ///
    /// # Errors
    /// The database's.
    pub fn children(&self, session: &mut Session, wanted: Children<'_>) -> Result<Vec<SubscriptBuf>> {
        look(session, |session| {
            let last = wanted.to.map(|to| self.node.child(to)).transpose()?;
            let mut cursor = Cursor::children(&self.node).without_empty().without_values();
            if let Some(from) = wanted.from {
                cursor.seek(&self.node.child(from)?);
            }
            let mut found = Vec::new();
            while cursor.next(session)? {
                let subscript = cursor.subscript()?.into_owned();
                let text = subscript.to_text();
                if let (Some(last), Some(to)) = (&last, wanted.to) {
                    let is_part = subscript.as_number().is_none() && text.starts_with(to.as_bytes());
                    if !is_part && self.node.child(&subscript)?.encoded() > last.encoded() {
                        break;
                    }
                }
                if wanted.prefix.is_none_or(|prefix| text.starts_with(prefix.as_bytes())) {
                    drop(text);
                    found.push(subscript);
                }
            }
            if wanted.reverse {
                found.reverse();
            }
            Ok(found)
        })
    }

    /// Its leaves in order: subscripts below its node, and the value.
    ///
    /// # Errors
    /// As [`Document::fetch`].
    pub fn leaves(&self, session: &mut Session) -> Result<Vec<(Vec<SubscriptBuf>, Json)>> {
        let mut leaves = Vec::new();
        for (node, value) in session.get_tree(&self.node)? {
            let path = node.subscripts()?.split_off(self.node.depth());
            leaves.push((path, shown(&node, &value, self.shape)?));
        }
        Ok(leaves)
    }

    /// How many properties or elements it has. This counts them; it does not read them.
    ///
    /// # Errors
    /// The database's.
    pub fn count(&self, session: &mut Session) -> Result<u64> {
        Ok(session.count_children(&self.node)?)
    }

    /// Deletes it.
    ///
    /// # Errors
    /// The database's.
    pub fn delete(&self, session: &mut Session) -> Result<()> {
        Ok(session.delete_tree(&self.node)?)
    }

    fn write(&self, session: &mut Session, at: &mut Node, json: &Json, is_new: bool) -> Result<()> {
        let mark = at.mark();
        match json {
            Json::Array(items) if !items.is_empty() => {
                if !is_new {
                    session.delete_value(&*at)?;
                }
                for (index, item) in items.iter().enumerate() {
                    let far = || Error::Call(format!("`first` {} is too large", self.shape.first));
                    at.push(self.shape.first.checked_add(index as i64).ok_or_else(far)?)?;
                    self.write(session, at, item, is_new)?;
                    at.truncate(mark);
                }
            }
            Json::Object(map) if !map.is_empty() => {
                self.make_object(session, at, map, is_new)?;
                for (name, item) in map {
                    at.push(name)?;
                    self.write(session, at, item, is_new)?;
                    at.truncate(mark);
                }
            }
            Json::Array(_) | Json::Object(_) if !is_new && session.data(&*at)?.has_descendants() => {}
            leaf => {
                if !is_new {
                    session.delete_tree(&*at)?;
                }
                if let Some(value) = stored(leaf, self.shape) {
                    session.set(&*at, &value)?;
                }
            }
        }
        Ok(())
    }

    /// Gives the node of an object the value that it has beside children: none, or `{}`.
    fn make_object(
        &self,
        session: &mut Session,
        at: &Node,
        map: &Map<String, Json>,
        is_new: bool,
    ) -> Result<()> {
        let has_integer = || map.keys().any(|name| Subscript::from_bytes(name.as_bytes()).as_i64().is_some());
        if self.shape.typed && has_integer() && (is_new || !self.is_array(session, at)?) {
            session.set(at, Value::EmptyMap)?;
        } else if !is_new && session.get(at)?.is_some_and(|value| value != Value::EmptyMap) {
            session.delete_value(at)?;
        }
        Ok(())
    }

    /// Whether an array lies there, of which one element is changed by its subscript.
    fn is_array(&self, session: &mut Session, at: &Node) -> Result<bool> {
        let Some(child) = session.first_child(at)? else { return Ok(false) };
        let begins = child.last()?.and_then(|subscript| subscript.as_i64()) == Some(self.shape.first);
        Ok(begins && session.get(at)? != Some(Value::EmptyMap))
    }

    fn patch_at(&self, session: &mut Session, at: &mut Node, json: &Json) -> Result<()> {
        let Json::Object(map) = json else {
            session.delete_tree(&*at)?;
            return if json.is_null() { Ok(()) } else { self.write(session, at, json, true) };
        };
        if map.is_empty() {
            return self.write(session, at, json, false);
        }
        self.make_object(session, at, map, false)?;
        let mark = at.mark();
        for (name, item) in map {
            at.push(name)?;
            self.patch_at(session, at, item)?;
            at.truncate(mark);
        }
        // What has lost its last property is still an object.
        let data = session.data(&*at)?;
        if self.shape.typed && !data.has_value() && !data.has_descendants() {
            session.set(&*at, Value::EmptyMap)?;
        }
        Ok(())
    }
}

/// A node with a value of a document.
struct Part {
    node: Node,
    path: Vec<SubscriptBuf>,
    value: Value,
}

/// Reads what begins `depth` subscripts below the document's node; `parts` are all of it, in order.
fn read(parts: &[Part], depth: usize, shape: Shape) -> Result<Json> {
    let first = &parts[0];
    let (own, below) = if first.path.len() == depth { (Some(first), &parts[1..]) } else { (None, parts) };
    if let (Some(own), true) = (own, below.is_empty()) {
        return shown(&own.node, &own.value, shape);
    }
    let groups: Vec<&[Part]> = below.chunk_by(|a, b| a.path[depth] == b.path[depth]).collect();
    let is_marked = shape.typed && own.is_some_and(|own| own.value == Value::EmptyMap);
    let in_row = |(index, group): (usize, &&[Part])| {
        group[0].path[depth].as_i64() == shape.first.checked_add(index as i64)
    };
    if !is_marked && groups.iter().enumerate().all(in_row) {
        return groups
            .iter()
            .map(|group| read(group, depth + 1, shape))
            .collect::<Result<_>>()
            .map(Json::Array);
    }
    let mut map = Map::new();
    for group in groups {
        map.insert(name(&group[0].node, &group[0].path[depth])?, read(group, depth + 1, shape)?);
    }
    Ok(Json::Object(map))
}
