//! The mapping of mg-dbx-bdb, with which "Performance Comparisons of Global Storage Databases" was made:
//! its keys and its calls, on Berkeley DB and LMDB.
//!
//! Invariants
//! - A key is the name and the subscripts, each with its type before it; integers have 4 bytes of the
//!   integral and 4 of the fractional part, then their text.
//! - Each call does what theirs does: `defined` searches for the node and then for what is behind it,
//!   `next` searches for the seed and then behind it, `increment` is a get and a put.
//!
//! Only what their benchmarks call is here; the rest says so.

use crate::globals::mapped::{Entry, Store};
use crate::globals::{Globals, Path, Sub};
use crate::subject::Result;

/// Globals as published, on a store.
pub(crate) struct Published<S> {
    store: S,
    key: Vec<u8>,
    value: Vec<u8>,
    found: Entry,
}

impl<S: Store> Published<S> {
    pub(crate) fn new(store: S) -> Published<S> {
        Published { store, key: Vec::new(), value: Vec::new(), found: Entry::default() }
    }

    fn keep(&mut self, path: &Path) {
        self.key.clear();
        self.key.extend_from_slice(&[0, 3]);
        self.key.extend_from_slice(path.name.as_bytes());
        for sub in &path.subs {
            encode(sub, &mut self.key);
        }
    }

    /// The subscript behind the first `length` bytes of what was found, if that is below them.
    fn found_sub(&self, length: usize) -> Option<Sub> {
        if !self.found.key.starts_with(&self.key[..length]) {
            return None;
        }
        let rest = &self.found.key[length..];
        let (kind, from) = (*rest.get(1)?, rest.get(2..)?);
        let text = if kind == 3 { from } else { from.get(8..)? };
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        let text = String::from_utf8_lossy(&text[..end]);
        Some(if kind == 3 { Sub::Text(text.into()) } else { Sub::read(&text) })
    }
}

/// Appends the component of a subscript.
fn encode(sub: &Sub, key: &mut Vec<u8>) {
    match sub {
        Sub::Text(text) if text.is_empty() => key.extend_from_slice(&[0, 0]),
        Sub::Text(text) => {
            key.extend_from_slice(&[0, 3]);
            key.extend_from_slice(text.as_bytes());
        }
        Sub::Integer(number) => {
            let whole = number.unsigned_abs() as u32;
            let (kind, whole, part) =
                if *number < 0 { (1, u32::MAX - whole, u32::MAX) } else { (2, whole, 0) };
            key.extend_from_slice(&[0, kind]);
            key.extend_from_slice(&whole.to_be_bytes());
            key.extend_from_slice(&part.to_be_bytes());
            key.extend_from_slice(number.to_string().as_bytes());
        }
    }
}

impl<S: Store> Globals for Published<S> {
    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()> {
        self.keep(path);
        self.store.put(&self.key, value)
    }

    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool> {
        self.keep(path);
        value.clear();
        self.store.get(&self.key, value)
    }

    fn data(&mut self, path: &Path) -> Result<u8> {
        self.keep(path);
        self.value.clear();
        let valued = u8::from(self.store.get(&self.key, &mut self.value)?);
        self.key.push(0);
        let below = self.store.seek(&self.key, &mut self.found)? && self.found.key.starts_with(&self.key);
        Ok(valued + if below { 10 } else { 0 })
    }

    fn next(&mut self, path: &Path) -> Result<Option<Sub>> {
        self.keep(path);
        let mut last = Vec::new();
        if let Some(sub) = path.subs.last() {
            encode(sub, &mut last);
        }
        let parent = self.key.len() - last.len();
        let mut found = self.store.seek(&self.key, &mut self.found)?;
        if found && self.found_sub(parent).as_ref() == path.subs.last() {
            self.key.extend_from_slice(&[0, 0xFF]);
            found = self.store.seek(&self.key, &mut self.found)?;
        }
        Ok(if found { self.found_sub(parent) } else { None })
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64> {
        self.keep(path);
        self.value.clear();
        self.store.get(&self.key, &mut self.value)?;
        let now = std::str::from_utf8(&self.value)?;
        let sum = if now.is_empty() { by } else { now.parse::<i64>()? + by };
        self.store.put(&self.key, sum.to_string().as_bytes())?;
        Ok(sum)
    }

    fn kill(&mut self, path: &Path) -> Result<()> {
        self.keep(path);
        let prefix = self.key.len();
        self.store.remove(&self.key)?;
        self.key.push(0);
        while self.store.seek(&self.key, &mut self.found)?
            && self.found.key.starts_with(&self.key[..prefix + 1])
        {
            self.store.remove(&self.found.key)?;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.store.close()
    }
}
