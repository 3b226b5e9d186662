//! Many entries and parts of values at once: built from single steps, since a map in memory has no pages.

use std::ops::Range;

use perilune_store::{
    copy_pieces, count_by_entries, entry_by_step, put_piece, transact, Bulk, Entries, Result, Scan, Session,
    Span, TransactionOptions, Transactions,
};

use crate::session::MemorySession;

impl Bulk for MemorySession {
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
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(None);
        }
        copy_pieces(&value, pieces, out);
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
        value.truncate(self.shared.limits.update_bytes);
        Ok(found)
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        self.check_key(key, 0)?;
        if self.depth() == 0 {
            let options = TransactionOptions::default();
            return transact(self, &options, |session| session.set_piece(key, offset, bytes));
        }
        self.overlay()?;
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(None);
        }
        let length = put_piece(&mut value, offset, bytes, self.shared.limits.value_bytes)?;
        self.overlay()?.write(key, Some(&value));
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
        // NB: in a transaction what was counted would be read.
        if self.transaction.is_some() {
            return Ok(None);
        }
        count_by_entries(self, &span, &mut Vec::new()).map(Some)
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
