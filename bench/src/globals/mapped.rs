//! Globals on an ordered map of bytes: the best mapping we know, the same for every such peer.
//!
//! Invariants
//! - A key is Perilune's (docs/format/keys.md): it sorts as globals do, a subtree is what begins with
//!   the key of its root, and no code begins with 00 or FF. So each operation takes the fewest searches.
//! - Values are the caller's bytes; integers are 8 bytes where the caller says that they are.

use crate::globals::{sub, Globals, Keys, Path, Sub};
use crate::subject::{Pair, Result};

/// A key and its value.
#[derive(Debug, Default)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// Another session was in the way: the transaction is to be run again.
#[derive(Debug)]
pub(crate) struct Conflict;

impl std::fmt::Display for Conflict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("two transactions were in each other's way")
    }
}

impl std::error::Error for Conflict {}

/// An ordered map of bytes. Outside `begin` and `commit` each call is its own transaction.
pub(crate) trait Store {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool>;

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    fn remove(&mut self, key: &[u8]) -> Result<()>;

    /// Finds the first entry at or behind a key, or the last before it. False if there is none; then nobody looks at
    /// what is in `found`.
    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool>;

    /// Finds the first entry at or behind a key.
    fn seek(&mut self, from: &[u8], found: &mut Entry) -> Result<bool> {
        self.search(from, false, found)
    }

    /// Finds the last entry before a key.
    fn seek_before(&mut self, to: &[u8], found: &mut Entry) -> Result<bool> {
        self.search(to, true, found)
    }

    /// Begins a transaction that writes.
    fn begin(&mut self) -> Result<()>;

    /// Ends it, durable as the class says.
    fn commit(&mut self) -> Result<()>;

    /// Ends it without effect.
    fn abort(&mut self) -> Result<()>;

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// Globals on a store.
pub(crate) struct Mapped<S> {
    store: S,
    keys: Keys,
    key: Vec<u8>,
    value: Vec<u8>,
    found: Entry,
}

impl<S: Store> Mapped<S> {
    pub(crate) fn new(store: S) -> Mapped<S> {
        Mapped { store, keys: Keys::default(), key: Vec::new(), value: Vec::new(), found: Entry::default() }
    }

    /// Keeps the key of a path, with a byte behind it if one is given.
    #[inline]
    fn keep(&mut self, path: &Path, behind: Option<u8>) -> Result<()> {
        self.key.clear();
        self.key.extend_from_slice(self.keys.node(path)?.encoded());
        self.key.extend(behind);
        Ok(())
    }

    /// Runs `body` as a transaction, again where two were in each other's way.
    fn within<R>(&mut self, mut body: impl FnMut(&mut Self) -> Result<R>) -> Result<R> {
        loop {
            let done = self.store.begin().and_then(|()| body(self)).and_then(|result| {
                self.store.commit()?;
                Ok(result)
            });
            match done {
                Err(error) => {
                    self.store.abort()?;
                    if !error.is::<Conflict>() {
                        return Err(error);
                    }
                }
                done => return done,
            }
        }
    }

    /// The subscript behind the first `length` bytes of the key that was found.
    fn found_sub(&self, length: usize) -> Result<Sub> {
        sub(&perilune::key::decode_subscript(&self.found.key[length..])?.0)
    }

    /// The length of the key of the parent.
    fn parent(&mut self, path: &Path) -> Result<usize> {
        let node = self.keys.node(path)?;
        node.pop();
        Ok(node.encoded().len())
    }
}

fn is_seed(path: &Path) -> bool {
    matches!(path.subs.last(), Some(Sub::Text(text)) if text.is_empty())
}

fn integer(bytes: &[u8]) -> Result<i64> {
    Ok(i64::from_le_bytes(bytes.try_into().map_err(|_| "an integer is not of 8 bytes")?))
}

impl<S: Store> Globals for Mapped<S> {
    #[inline]
    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()> {
        self.store.put(self.keys.node(path)?.encoded(), value)
    }

    #[inline]
    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        self.store.get(self.keys.node(path)?.encoded(), value)
    }

    fn data(&mut self, path: &Path) -> Result<u8> {
        self.keep(path, None)?;
        if !self.store.seek(&self.key, &mut self.found)? || !self.found.key.starts_with(&self.key) {
            return Ok(0);
        }
        if self.found.key.len() > self.key.len() {
            return Ok(10);
        }
        self.key.push(1);
        let below = self.store.seek(&self.key, &mut self.found)?;
        let below = below && self.found.key.starts_with(&self.key[..self.key.len() - 1]);
        Ok(if below { 11 } else { 1 })
    }

    fn next(&mut self, path: &Path) -> Result<Option<Sub>> {
        let parent = self.parent(path)?;
        self.keep(path, (!is_seed(path)).then_some(0xFF))?;
        if self.store.seek(&self.key, &mut self.found)? && self.found.key.starts_with(&self.key[..parent]) {
            return self.found_sub(parent).map(Some);
        }
        Ok(None)
    }

    fn previous(&mut self, path: &Path) -> Result<Option<Sub>> {
        let parent = self.parent(path)?;
        self.keep(path, None)?;
        if is_seed(path) {
            self.key.truncate(parent);
            self.key.push(0xFF);
        }
        let found = self.store.seek_before(&self.key, &mut self.found)?;
        let inside = self.found.key.starts_with(&self.key[..parent]) && self.found.key.len() > parent;
        if found && inside {
            return self.found_sub(parent).map(Some);
        }
        Ok(None)
    }

    fn query(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<Option<Vec<Sub>>> {
        self.keep(path, Some(0))?;
        if !self.store.seek(&self.key, &mut self.found)? {
            return Ok(None);
        }
        let name = path.name.len() + 1;
        if !self.found.key.starts_with(&self.key[..name]) {
            return Ok(None);
        }
        value.clear();
        value.extend_from_slice(&self.found.value);
        let (mut subs, mut at) = (Vec::new(), name);
        while at < self.found.key.len() {
            let (found, length) = perilune::key::decode_subscript(&self.found.key[at..])?;
            subs.push(sub(&found)?);
            at += length;
        }
        Ok(Some(subs))
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64> {
        self.within(|this| {
            let node = this.keys.node(path)?;
            this.value.clear();
            this.store.get(node.encoded(), &mut this.value)?;
            let now = std::str::from_utf8(&this.value)?;
            let sum = if now.is_empty() { by } else { now.parse::<i64>()? + by };
            this.store.put(node.encoded(), sum.to_string().as_bytes())?;
            Ok(sum)
        })
    }

    fn kill(&mut self, path: &Path) -> Result<()> {
        self.within(|this| {
            this.keep(path, None)?;
            let prefix = this.key.len();
            while this.store.seek(&this.key, &mut this.found)? {
                if !this.found.key.starts_with(&this.key[..prefix]) {
                    break;
                }
                this.store.remove(&this.found.key)?;
                this.key.truncate(prefix);
                this.key.extend_from_slice(&this.found.key[prefix..]);
                this.key.push(0);
            }
            Ok(())
        })
    }

    fn merge(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.within(|this| {
            let target = this.keys.node(to)?.encoded().to_vec();
            this.keep(from, None)?;
            let prefix = this.key.len();
            while this.store.seek(&this.key, &mut this.found)? {
                if !this.found.key.starts_with(&this.key[..prefix]) {
                    break;
                }
                this.value.clear();
                this.value.extend_from_slice(&target);
                this.value.extend_from_slice(&this.found.key[prefix..]);
                this.store.put(&this.value, &this.found.value)?;
                this.key.truncate(prefix);
                this.key.extend_from_slice(&this.found.key[prefix..]);
                this.key.push(0);
            }
            Ok(())
        })
    }

    fn set_all(&mut self, paths: &[Path], value: &[u8]) -> Result<()> {
        self.within(|this| {
            for path in paths {
                this.store.put(this.keys.node(path)?.encoded(), value)?;
            }
            Ok(())
        })
    }

    #[inline]
    fn get_integer(&mut self, path: &Path) -> Result<Option<i64>> {
        self.value.clear();
        if self.store.get(self.keys.node(path)?.encoded(), &mut self.value)? {
            return integer(&self.value).map(Some);
        }
        Ok(None)
    }

    #[inline]
    fn set_integer(&mut self, path: &Path, value: i64) -> Result<()> {
        self.store.put(self.keys.node(path)?.encoded(), &value.to_le_bytes())
    }

    fn update_pair(&mut self, paths: &[Path; 2], change: &mut dyn FnMut(Pair) -> Pair) -> Result<()> {
        self.within(|this| {
            let new = change([this.get_integer(&paths[0])?, this.get_integer(&paths[1])?]);
            for (path, value) in paths.iter().zip(new) {
                if let Some(value) = value {
                    this.set_integer(path, value)?;
                }
            }
            Ok(())
        })
    }

    fn close(&mut self) -> Result<()> {
        self.store.close()
    }
}
