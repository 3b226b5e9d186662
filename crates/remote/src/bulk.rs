//! Operations on much at once, over the wire: pieces of values, runs of writes.
//!
//! Example: `set_each` of a thousand pairs sends requests until 64 KiB are under way, and then reads their answers: some
//! round trips, not a thousand.
//!
//! Invariant: each is what its steps would be; only `set_each` may have done a part when it fails, as told by its contract.
//!
//! Deliberately absent: counts. They are taken by walking (`count_by_entries`).

use std::ops::Range;

use perilune_resp::Answer;
use perilune_store::{
    copy_pieces, count_by_entries, entry_by_step, put_piece, Bulk, Entries, Error, Result, Scan, Session,
    Span,
};

use crate::limits::VALUE_BYTES;
use crate::link::unexpected;
use crate::overlay::Seen;
use crate::session::RemoteSession;

impl Bulk for RemoteSession {
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
        self.check_key(key, 0)?;
        if self.running.is_some() {
            let running = self.growing()?;
            let known = match running.overlay.get(key) {
                Seen::Value(found) => Some(Some(found)),
                Seen::Absent => Some(None),
                Seen::Unknown => running.reads.get(key),
            };
            if let Some(known) = known {
                known.iter().for_each(|found| copy_pieces(found, pieces, out));
                return Ok(known.map(<[u8]>::len));
            }
        }
        let places: Vec<Vec<u8>> = pieces
            .iter()
            .flat_map(|piece| [piece.start, piece.end])
            // NB: no value is that long, and the number stays one that the server reads.
            .map(|at| at.min(VALUE_BYTES).to_string().into())
            .collect();
        let arguments: Vec<&[u8]> =
            std::iter::once(key).chain(places.iter().map(|place| &place[..])).collect();
        let found = match self.look("PIECES", &arguments)? {
            Answer::Null => None,
            Answer::Array(parts) => match <[Answer; 2]>::try_from(parts) {
                Ok([Answer::Integer(length), Answer::Bulk(bytes)]) => {
                    *out = bytes;
                    Some(usize::try_from(length).map_err(|_| unexpected("PIECES"))?)
                }
                _ => return Err(unexpected("PIECES")),
            },
            _ => return Err(unexpected("PIECES")),
        };
        let Some(running) = &mut self.running else { return Ok(found) };
        let Some(length) = found else {
            running.reads.value(key, None);
            return Ok(None);
        };
        let mut rest = &out[..];
        for piece in pieces {
            let end = piece.end.min(length);
            let (own, behind) = rest.split_at(end.saturating_sub(piece.start).min(rest.len()));
            rest = behind;
            running.reads.piece(key, piece, length, own);
        }
        if pieces.is_empty() {
            running.reads.piece(key, &(0..0), length, &[]);
        }
        Ok(found)
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
        self.check_write(key, bytes)?;
        let (bytes_then, limit) = (offset.saturating_add(bytes.len()), self.shared.limits.value_bytes);
        if bytes_then > limit {
            return Err(Error::ValueTooLong { bytes: bytes_then, limit });
        }
        if self.is_plain() {
            let offset = offset.to_string();
            return match self.change("PATCH", &[key, offset.as_bytes(), bytes], key, key)? {
                Answer::Integer(length) => Ok(usize::try_from(length).ok()),
                Answer::Null => Ok(None),
                _ => Err(unexpected("PATCH")),
            };
        }
        if self.running.is_none() {
            return self.in_own_transaction(|session| session.set_piece(key, offset, bytes));
        }
        let mut value = Vec::new();
        if !self.get(key, &mut value)? {
            return Ok(None);
        }
        let length = put_piece(&mut value, offset, bytes, self.shared.limits.value_bytes)?;
        self.set(key, &value)?;
        Ok(Some(length))
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        if !self.is_plain() {
            return pairs.iter().try_for_each(|(key, value)| self.set(key, value));
        }
        let good = pairs.iter().position(|(key, value)| self.check_write(key, value).is_err());
        let (good, rest) = pairs.split_at(good.unwrap_or(pairs.len()));
        good.iter().for_each(|(key, _)| self.ahead.touch(key, key));
        self.link.call_each("SET", good.iter().map(|(key, value)| [*key, *value]))?;
        rest.first().map_or(Ok(()), |(key, value)| self.check_write(key, value))
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        count_by_entries(self, span, key)
    }

    fn estimate(&mut self, _low: &[u8], _high: &[u8]) -> Result<Option<u64>> {
        Ok(None)
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
