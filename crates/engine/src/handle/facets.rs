//! What a session has beside the core: it decides and writes in one step, leaves the wait for the disk to later, keeps what
//! was read, and can be asked to take less.

use std::time::Duration;

use perilune_store::{
    Bounds, Change, Deferral, Error, Facets, KeptReads, Optimistic, Probe, ProbedChange, ReadSets, Result,
};

use super::operations::check_value;
use super::Session;
use crate::access::check_key;
use crate::limits::{INLINE_MAX, USER_KEY_MAX};
use crate::session::Limit;
use crate::tree::{Action, Which};

fn check_probes(probes: &[Probe<'_>]) -> Result<()> {
    match probes.iter().find(|probe| probe.key.len() > USER_KEY_MAX + 1) {
        Some(probe) => Err(Error::KeyTooLong { bytes: probe.key.len(), limit: USER_KEY_MAX }),
        None => Ok(()),
    }
}

impl Facets for Session {
    type Locks = Session;
    type Watch = Session;
    type Messages = Session;
    type Deferral = Session;
    type Optimistic = Session;
    type ReadSets = Session;
    type Bounds = Session;

    #[inline]
    fn locks(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn watches(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn messages(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn deferral(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn optimistic(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn read_sets(&mut self) -> Option<&mut Session> {
        Some(self)
    }

    #[inline]
    fn bounds(&mut self) -> Option<&mut Session> {
        Some(self)
    }
}

impl Optimistic for Session {
    #[inline]
    fn set_unless_parent(&mut self, key: &[u8], end: &[u8], value: &[u8]) -> Result<bool> {
        self.here_to_write()?;
        check_key(key)?;
        if self.brief.is_open() {
            let Session { access, brief, scratch, .. } = self;
            return brief.set_if_alone(access, (key, end), value, scratch);
        }
        if !self.is_plain() || value.len() > INLINE_MAX {
            return Ok(false);
        }
        let outcome = self.access.write(Which::Main, key, Action::SetIfAlone { value, end })?;
        self.acknowledge(None)?;
        Ok(outcome.changed)
    }

    #[inline]
    fn update_unless_parent(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        self.here_to_write()?;
        check_key(key)?;
        if self.brief.is_open() {
            let Session { access, brief, scratch, .. } = self;
            return brief.update_if_alone(access, key, change, scratch);
        }
        if !self.is_plain() {
            return Ok(());
        }
        self.access.write(Which::Main, key, Action::UpdateIfAlone(change))?;
        self.acknowledge(None)
    }

    fn set_all_unless_parents(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        self.here_to_write()?;
        pairs.iter().try_for_each(|(key, value)| check_key(key).and_then(|()| check_value(value)))?;
        if !self.is_plain() {
            return Ok(false);
        }
        let done = self.access.set_all_if_alone(pairs)?;
        if done {
            self.acknowledge(None)?;
        }
        Ok(done)
    }

    fn change_probed(&mut self, probes: &[Probe<'_>], change: &mut ProbedChange<'_>) -> Result<bool> {
        self.here_to_write()?;
        if !self.is_plain() {
            return Ok(false);
        }
        check_probes(probes)?;
        let done = self.access.change_few(probes, change, &mut self.few)?;
        if done {
            self.acknowledge(None)?;
        }
        Ok(done)
    }

    fn look_probed(&mut self, probes: &[Probe<'_>], look: &mut ProbedChange<'_>) -> Result<bool> {
        self.here()?;
        if self.running.is_some() || self.brief.is_open() || self.snapshot.is_some() {
            return Ok(false);
        }
        check_probes(probes)?;
        self.access.look_few(probes, look, &mut self.few)
    }

    fn begin_attempt(&mut self) -> Result<bool> {
        self.here()?;
        self.moment += 1;
        let plain = self.is_plain() && self.snapshot.is_none() && !self.access.seat.image.read_only;
        if plain {
            self.brief.begin();
        } else {
            self.brief.refuse();
        }
        Ok(plain)
    }

    fn end_attempt(&mut self, keep: bool) -> Result<bool> {
        if !self.brief.is_open() {
            return Ok(false);
        }
        self.brief.end();
        self.moment += 1;
        self.here()?;
        let kept = self.access.end_brief(&mut self.brief, keep)?;
        if kept && keep {
            self.acknowledge(None)?;
        }
        Ok(kept)
    }

    fn was_disturbed(&self) -> bool {
        self.brief.has_met()
    }
}

impl Bounds for Session {
    fn free_up(&mut self, frees: bool) {
        self.access.seat.frees.set(frees);
    }

    fn limit_reads(&mut self, bytes: usize) {
        self.access.fingers.limit_reads(bytes);
    }

    fn is_beyond(&self, bytes: usize) -> bool {
        self.access.fingers.is_beyond(bytes)
    }

    #[inline]
    fn shrink(&mut self, bytes: usize) {
        if self.scratch.capacity() > bytes {
            self.scratch = Vec::new();
        }
    }

    fn pending_bytes(&self) -> usize {
        self.running.as_ref().map_or(0, |running| running.txn.overlay.bytes())
    }

    fn limit_pending(&mut self, bytes: usize) {
        self.pending_max = bytes;
    }

    fn set_wait_limit(&mut self, limit: Duration) {
        self.wait_limit = limit;
        let seat = &self.access.seat;
        seat.set_limit(Limit { wait: limit, ..seat.limit() });
    }

    fn wait_limit(&self) -> Duration {
        self.wait_limit
    }
}

impl Deferral for Session {
    fn defer(&mut self, deferring: bool) {
        self.deferring = deferring;
    }

    fn is_unsettled(&self) -> bool {
        self.unsettled
    }

    fn settle(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.unsettled) {
            return Ok(());
        }
        self.here()?;
        // NB: the flush number of the last record: what was committed before it has no higher one.
        self.await_durable()
    }
}

impl ReadSets for Session {
    fn keep_reads(&mut self) -> Option<KeptReads> {
        self.running.as_mut()?.txn.keep_reads(&self.access)
    }

    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool> {
        self.here()?;
        if self.brief.is_open() {
            return self.brief.fail();
        }
        match &mut self.running {
            Some(running) => running.txn.rest_on(&self.access, kept),
            None => {
                Err(Error::TransactionState("only a transaction rests on what was read: begin one first"))
            }
        }
    }
}
