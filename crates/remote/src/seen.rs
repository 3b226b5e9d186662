//! What an open transaction sees: its own writes over answers of the server.
//!
//! Example: the first key behind `^a` is the nearer one of two: what the transaction has written there, and what the server
//! has there, skipping what the transaction has removed.
//!
//! Invariants
//! - What it looks at of each answer is a condition of the commit.
//! - A range is read no further than what is answered, so that what others write behind it is no conflict.

use perilune_store::{Granularity, Presence, Result};

use crate::overlay::Seen;
use crate::running::Running;
use crate::search::{Pair, PartOfKey, Search};
use crate::session::RemoteSession;

impl RemoteSession {
    /// What the server has for a search of the open transaction.
    fn read(&mut self, search: &Search<'_>, reach: &[u8]) -> Result<Option<Pair>> {
        let found = self.base(search, reach)?;
        let Running { overlay, reads, .. } = self.growing()?;
        let masked = found.as_ref().is_some_and(|(key, _)| overlay.get(key) != Seen::Unknown);
        reads.found(search, found.as_ref(), masked);
        if let (Granularity::Entry(_), Some((key, _)), false) =
            (search.granularity, &found, masked || !search.forward)
        {
            // The child has no value of its own, or the key would have been it. (Backward it is asked for.)
            let child = search.granularity.part(key);
            if child.len() < key.len() && overlay.get(child) == Seen::Unknown {
                reads.existence(child, false);
            }
        }
        Ok(found)
    }

    /// Whether there is a value at `key`, if the open transaction knows.
    fn knows(&self, key: &[u8]) -> Option<bool> {
        let running = self.running.as_ref()?;
        match running.overlay.get(key) {
            Seen::Value(_) => Some(true),
            Seen::Absent => Some(false),
            Seen::Unknown => running.reads.has(key),
        }
    }

    /// Whether the open transaction sees a value at `key`.
    pub(crate) fn sees_value(&mut self, key: &[u8]) -> Result<bool> {
        if let Some(known) = self.knows(key) {
            return Ok(known);
        }
        let is_there = self.base_presence(key)?.value;
        self.growing()?.reads.existence(key, is_there);
        Ok(is_there)
    }

    /// What the open transaction sees at and below `key`.
    pub(crate) fn seen_presence(&mut self, key: &[u8]) -> Result<Presence> {
        if !self.growing()?.overlay.is_over(key) {
            let known = self.knows(key);
            let Presence { value, descendants } = self.base_presence(key)?;
            let reads = &mut self.growing()?.reads;
            reads.existence(key, value);
            reads.descendants(key, descendants);
            return Ok(Presence { value: known.unwrap_or(value), descendants });
        }
        let value = self.sees_value(key)?;
        let (end, granularity) = ([key, &[0xFF]].concat(), Granularity::Start(key.len()));
        let search = Search {
            forward: true,
            from: key,
            inclusive: false,
            bound: &end,
            with_value: false,
            granularity,
        };
        Ok(Presence { value, descendants: self.seen_first(&search)?.is_some() })
    }

    /// The first pair of a range as the open transaction sees it.
    pub(crate) fn seen_first(&mut self, search: &Search<'_>) -> Result<Option<Pair>> {
        let overlay = &self.growing()?.overlay;
        let end = Some(search.bound).filter(|end| !end.is_empty());
        let own = overlay.after(search.from, search.inclusive, end);
        let own = own.map(|(key, value)| (key.to_vec(), value.to_vec()));
        // Behind what this transaction has written itself nothing is read.
        let bound = own.as_ref().map_or(search.bound, |(key, _)| match search.granularity {
            Granularity::Child(_) | Granularity::Start(_) => search.granularity.part(key),
            Granularity::Whole | Granularity::Entry(_) => key,
        });
        let (mut from, mut inclusive) = (search.from.to_vec(), search.inclusive);
        loop {
            if !bound.is_empty() && from.as_slice() >= bound {
                return Ok(own);
            }
            let narrow = Search { from: &from, inclusive, bound, ..*search };
            let Some((key, value)) = self.read(&narrow, search.bound)? else { return Ok(own) };
            let overlay = &self.growing()?.overlay;
            match overlay.get(&key) {
                Seen::Unknown => return Ok(Some((key, value))),
                _ => match overlay.removed_prefix(&key) {
                    Some(prefix) => {
                        from = prefix.to_vec();
                        from.push(0xFF);
                        inclusive = true;
                    }
                    None => {
                        from = key;
                        inclusive = false;
                    }
                },
            }
        }
    }

    /// The last pair of a range as the open transaction sees it.
    pub(crate) fn seen_last(&mut self, search: &Search<'_>) -> Result<Option<Pair>> {
        let own = self.growing()?.overlay.before(search.from, search.bound);
        let own = own.map(|(key, value)| (key.to_vec(), value.to_vec()));
        let bound = own.as_ref().map_or(search.bound, |(key, _)| key.as_slice());
        let mut from = search.from.to_vec();
        loop {
            let narrow = Search { from: &from, bound, ..*search };
            let Some((key, value)) = self.read(&narrow, search.bound)? else { return Ok(own) };
            let overlay = &self.growing()?.overlay;
            match overlay.get(&key) {
                Seen::Unknown => return Ok(Some((key, value))),
                // The key that this transaction overwrites is the first of the range.
                _ if own.as_ref().is_some_and(|(own, _)| *own == key) => return Ok(own),
                _ => from = overlay.removed_prefix(&key).map_or(key.clone(), <[u8]>::to_vec),
            }
        }
    }
}
