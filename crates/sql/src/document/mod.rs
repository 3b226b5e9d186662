//! Documents: JSON that lies as nodes below a row, each member a node, which Lua and clients read and write as well.
//!
//! ```text
//! ^users(7,"info") = 04                    {"address":{"city":"Oslo"},"tags":["a","b"]}
//! ^users(7,"info","address","city") = "Oslo"
//! ^users(7,"info","tags",1) = "a"
//! ```
//!
//! A list is children from 1 on without a gap; the value at its own node says whether an empty one is a list or a map, and that
//! what would read as a list is a map. So a document comes back as it was written.
//!
//! Invariants
//! - A change writes the nodes that differ, and no others.
//! - Whatever programs have put there is read as some document.

mod json;

use perilune::key::KeyBuf;
use perilune::{Cursor, NodeRef, Session, SubscriptBuf, ValueRef};

pub(crate) use self::json::Json;
use crate::error::{Error, Result, SqlState};

/// A node and what lies below it.
#[derive(Debug, Default)]
struct Tree {
    value: Option<Json>,
    /// It bears the value of a map without members.
    is_map: bool,
    children: Vec<(SubscriptBuf, Tree)>,
}

impl Tree {
    fn into_json(self) -> Option<Json> {
        if self.children.is_empty() {
            return self.value;
        }
        let is_next = |(at, (subscript, _)): (usize, &(SubscriptBuf, Tree))| match subscript {
            SubscriptBuf::Number(number) => number.as_i64() == Some(at as i64 + 1),
            SubscriptBuf::Bytes(_) => false,
        };
        let is_list = !self.is_map && self.children.iter().enumerate().all(is_next);
        let mut members = Vec::new();
        let mut all = Vec::new();
        for (subscript, child) in self.children {
            let Some(json) = child.into_json() else { continue };
            if is_list {
                all.push(json);
            } else {
                json::insert(&mut members, subscript.to_text().into_owned(), json);
            }
        }
        if is_list {
            return Some(Json::List(all));
        }
        // As Lua's tables have a node's own value beside children.
        if let Some(own) = self.value.filter(|own| !matches!(own, Json::List(_) | Json::Map(_))) {
            json::insert(&mut members, b"__".to_vec(), own);
        }
        Some(Json::Map(members))
    }
}

/// The value of one node as JSON.
pub(crate) fn scalar(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Bool(truth) => Json::Bool(truth),
        ValueRef::Int(integer) => Json::Int(integer),
        ValueRef::Decimal(decimal) => Json::Decimal(decimal),
        ValueRef::Double(double) => Json::Double(double),
        ValueRef::String(text) => Json::Text(text.to_vec()),
        ValueRef::EmptyList => Json::List(Vec::new()),
        ValueRef::EmptyMap => Json::Map(Vec::new()),
        record @ ValueRef::Record(_) => Json::Text(record.to_string().into_bytes()),
    }
}

fn node(key: &[u8]) -> NodeRef<'_> {
    NodeRef::from_encoded(key, false)
}

/// Reads the document at a node; none: there is nothing.
pub(crate) fn load(session: &mut Session, key: &[u8]) -> Result<Option<Json>> {
    let mut cursor = Cursor::subtree(node(key));
    let depth = node(key).to_node()?.depth();
    let mut root = Tree::default();
    while cursor.next(session)? {
        let found = cursor.node_ref()?.to_node()?;
        let mut place = &mut root;
        for subscript in found.subscripts()?.into_iter().skip(depth) {
            let is_last = place.children.last().is_some_and(|(last, _)| *last == subscript);
            if !is_last {
                place.children.push((subscript, Tree::default()));
            }
            let last = place.children.len() - 1;
            place = &mut place.children[last].1;
        }
        if let Some(value) = cursor.value()? {
            place.is_map = matches!(value, ValueRef::EmptyMap);
            place.value = Some(scalar(value));
        }
    }
    Ok(root.into_json())
}

/// Makes the document at a node another one, of which `old` is there.
pub(crate) fn store(
    session: &mut Session,
    key: &mut KeyBuf,
    old: Option<&Json>,
    new: Option<&Json>,
) -> Result<()> {
    if old == new {
        return Ok(());
    }
    match (old, new) {
        (Some(Json::List(old)), Some(Json::List(new))) if !old.is_empty() && !new.is_empty() => {
            for at in 0..old.len().max(new.len()) {
                let name = (at + 1).to_string();
                below(session, key, name.as_bytes(), |session, key| {
                    store(session, key, old.get(at), new.get(at))
                })?;
            }
            Ok(())
        }
        (Some(Json::Map(old)), Some(Json::Map(new))) if !old.is_empty() && !new.is_empty() => {
            let find = |all: &[(Vec<u8>, Json)], name: &[u8]| all.iter().position(|(known, _)| known == name);
            for (name, json) in old.iter().filter(|(name, _)| find(new, name).is_none()) {
                below(session, key, name, |session, key| store(session, key, Some(json), None))?;
            }
            for (name, json) in new {
                let before = find(old, name).map(|at| &old[at].1);
                below(session, key, name, |session, key| store(session, key, before, Some(json)))?;
            }
            Ok(())
        }
        (old, new) => {
            if matches!(old, Some(Json::List(_) | Json::Map(_))) {
                session.delete_tree(node(key.as_bytes()))?;
            } else if new.is_none() && old.is_some() {
                session.delete_value(node(key.as_bytes()))?;
            }
            new.map_or(Ok(()), |new| put(session, key, new))
        }
    }
}

/// Writes a document where nothing is.
fn put(session: &mut Session, key: &mut KeyBuf, json: &Json) -> Result<()> {
    let at = node(key.as_bytes());
    match json {
        Json::Null => session.set(at, ValueRef::Null)?,
        Json::Bool(truth) => session.set(at, ValueRef::Bool(*truth))?,
        Json::Int(integer) => session.set(at, *integer)?,
        Json::Decimal(decimal) => session.set(at, ValueRef::Decimal(*decimal))?,
        Json::Double(double) => session.set(at, *double)?,
        Json::Text(text) => session.set(at, ValueRef::String(text))?,
        Json::List(all) => {
            session.set(at, ValueRef::EmptyList)?;
            for (number, json) in all.iter().enumerate() {
                let name = (number + 1).to_string();
                below(session, key, name.as_bytes(), |session, key| put(session, key, json))?;
            }
        }
        Json::Map(members) => {
            session.set(at, ValueRef::EmptyMap)?;
            for (name, json) in members {
                below(session, key, name, |session, key| put(session, key, json))?;
            }
        }
    }
    Ok(())
}

/// Does something at a child, by the name of a member.
fn below(
    session: &mut Session,
    key: &mut KeyBuf,
    name: &[u8],
    body: impl FnOnce(&mut Session, &mut KeyBuf) -> Result<()>,
) -> Result<()> {
    let mark = key.mark();
    key.push_bytes(name).map_err(|_| {
        let what = "names in a document, and how deep they lie, make its keys too long: shorten them";
        Error::new(SqlState::LIMIT, what)
    })?;
    let result = body(session, key);
    key.truncate(mark);
    result
}
