//! Local trees: names without `^`, in memory, private to one session handle.
//!
//! They implement the back ends' own trait, so that every operation on nodes is written once.
//!
//! Invariants
//! - A local tree is seen by its session only and is gone with it.
//! - Levels follow the session's transaction: what a rolled back (or run again) level wrote to local
//!   trees is taken back with it.
//! - Keys and values are bounded ([`limits::LOCAL_KEY_BYTES`], [`limits::VALUE_BYTES`]), checked on write.
//!
//! Deliberately absent: locks, watches, messages (those of the database take local names, too), and
//! the commit hook, which sees the database's writes only.

mod map;

use std::ops::Range;

use perilune_store::{
    copy_pieces, count_by_entries, entry_by_step, page_by_steps, put_piece, Added, Addition, Bulk, Change,
    CommitHook, Decision, Entries, Error, Page, Presence, Result, Scan, Session, Span, TransactionOptions,
    Transactions, UpdateBuffer,
};

use self::map::ByteMap;
use crate::limits;

/// The trees of one session.
#[derive(Debug, Default)]
pub(crate) struct LocalTrees {
    map: ByteMap,
}

impl LocalTrees {
    fn write(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        if key.len() > limits::LOCAL_KEY_BYTES {
            return Err(Error::KeyTooLong { bytes: key.len(), limit: limits::LOCAL_KEY_BYTES });
        }
        // One byte is the type.
        if value.len() > limits::VALUE_BYTES + 1 {
            return Err(Error::ValueTooLong { bytes: value.len(), limit: limits::VALUE_BYTES });
        }
        self.map.set(key, value);
        Ok(())
    }
}

const NO_LEVEL: &str = "no transaction is open: begin one first";

fn copy(from: &[u8], to: &mut Vec<u8>) {
    to.clear();
    to.extend_from_slice(from);
}

fn answer(found: Option<map::Pair<'_>>, key: &mut Vec<u8>, value: Option<&mut Vec<u8>>) -> bool {
    let Some((found_key, found_value)) = found else { return false };
    copy(found_key, key);
    if let Some(value) = value {
        copy(found_value, value);
    }
    true
}

impl Session for LocalTrees {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        Ok(match self.map.get(key) {
            Some(found) => {
                copy(found, value);
                true
            }
            None => false,
        })
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        Ok(Presence {
            value: self.map.get(key).is_some(),
            descendants: self.map.after(key, false).is_some_and(|(found, _)| found.starts_with(key)),
        })
    }

    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let found = self.map.after(from, inclusive);
        Ok(answer(found.filter(|(key, _)| end.is_empty() || key.as_slice() < end), key, value))
    }

    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        Ok(answer(self.map.before(from).filter(|(key, _)| key.as_slice() >= begin), key, value))
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        page_by_steps(self, span, with_values, page)
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.write(key, value)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.map.remove(key))
    }

    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.map.remove_prefix(prefix);
        Ok(())
    }

    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added> {
        self.update(key, addition.sum).map(|()| Added::Here)
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        let mut buffer: UpdateBuffer = [0; 64];
        match change(self.map.get(key).map(Vec::as_slice), &mut buffer)? {
            Decision::Keep => Ok(()),
            Decision::Write(bytes) => match buffer.get(..bytes) {
                Some(value) => self.write(key, value),
                None => Err(Error::Internal("an update wrote past its buffer".to_owned())),
            },
            Decision::Remove => {
                self.map.remove(key);
                Ok(())
            }
        }
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        if self.map.get(key).map(Vec::as_slice) != expected {
            return Ok(false);
        }
        match new {
            Some(value) => self.write(key, value)?,
            None => {
                self.map.remove(key);
            }
        }
        Ok(true)
    }

    fn set_commit_hook(&mut self, _hook: Option<CommitHook>) {}
}

impl Bulk for LocalTrees {
    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        entry_by_step(self, scan, out)
    }

    fn are_current(&self, _entries: &Entries) -> bool {
        false
    }

    fn get_pieces(
        &mut self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let Some(value) = self.map.get(key) else { return Ok(None) };
        copy_pieces(value, pieces, out);
        Ok(Some(value.len()))
    }

    fn preview_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self.next_within(from, inclusive, end, key, Some(value))?;
        value.truncate(size_of::<UpdateBuffer>());
        Ok(found)
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        let Some(mut value) = self.map.get(key).cloned() else { return Ok(None) };
        let length = put_piece(&mut value, offset, bytes, limits::VALUE_BYTES)?;
        self.write(key, &value)?;
        Ok(Some(length))
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, value)| self.set(key, value))
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        count_by_entries(self, span, key)
    }

    fn estimate(&mut self, low: &[u8], high: &[u8]) -> Result<Option<u64>> {
        let span = Span { low, high, backwards: false, most: u64::MAX };
        self.count(&span, &mut Vec::new()).map(Some)
    }

    fn count_groups(
        &mut self,
        _span: &Span<'_>,
        _group: &dyn Fn(&[u8]) -> usize,
        _key: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl Transactions for LocalTrees {
    fn begin(&mut self, _options: &TransactionOptions) -> Result<()> {
        self.map.begin();
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if self.map.commit() {
            Ok(())
        } else {
            Err(Error::TransactionState(NO_LEVEL))
        }
    }

    fn rollback(&mut self) -> Result<()> {
        if self.map.rollback() {
            Ok(())
        } else {
            Err(Error::TransactionState(NO_LEVEL))
        }
    }

    fn depth(&self) -> usize {
        self.map.depth()
    }

    fn validate(&mut self) -> Result<()> {
        Ok(())
    }

    fn retry(&mut self) -> Result<()> {
        Ok(())
    }

    fn give_up(&mut self) {}

    fn restarts(&self) -> u32 {
        0
    }
}
