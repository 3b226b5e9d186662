//! The worked example of the guide: an ordered map in the memory of one process. It takes part only where it is asked
//! for by name.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

use super::{Side, EMBEDDED};
use crate::globals::mapped::{Entry, Mapped, Store};
use crate::subject::Result;

pub(crate) const SIDES: &[Side] = &[Side {
    name: NAME,
    settings: "BTreeMap of one process, gone with it",
    processes: false,
    version: || Ok("of Rust's library".to_owned()),
    open: |_site| Ok(Box::new(Mapped::new(Example::default()))),
    ..EMBEDDED
}];

pub(crate) const NAME: &str = "example";

/// A key, and what it had before.
type Undo = (Vec<u8>, Option<Vec<u8>>);

/// A map, and what a transaction has changed.
#[derive(Default)]
pub(crate) struct Example {
    nodes: BTreeMap<Vec<u8>, Vec<u8>>,
    undo: Option<Vec<Undo>>,
}

impl Example {
    fn change(&mut self, key: &[u8], value: Option<&[u8]>) {
        let before = match value {
            Some(value) => self.nodes.insert(key.to_vec(), value.to_vec()),
            None => self.nodes.remove(key),
        };
        if let Some(undo) = &mut self.undo {
            undo.push((key.to_vec(), before));
        }
    }
}

impl Store for Example {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let found = self.nodes.get(key);
        value.extend_from_slice(found.map_or(&[], Vec::as_slice));
        Ok(found.is_some())
    }

    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.change(key, Some(value));
        Ok(())
    }

    fn remove(&mut self, key: &[u8]) -> Result<()> {
        self.change(key, None);
        Ok(())
    }

    fn search(&mut self, at: &[u8], before: bool, found: &mut Entry) -> Result<bool> {
        let entry = match before {
            true => self.nodes.range::<[u8], _>((Unbounded, Excluded(at))).next_back(),
            false => self.nodes.range::<[u8], _>((Included(at), Unbounded)).next(),
        };
        let Some((key, value)) = entry else { return Ok(false) };
        (found.key, found.value) = (key.clone(), value.clone());
        Ok(true)
    }

    fn begin(&mut self) -> Result<()> {
        self.undo = Some(Vec::new());
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        self.undo = None;
        Ok(())
    }

    fn abort(&mut self) -> Result<()> {
        for (key, before) in self.undo.take().into_iter().flatten().rev() {
            self.change(&key, before.as_deref());
        }
        Ok(())
    }
}
