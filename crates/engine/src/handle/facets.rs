//! What a session has beside the core: it decides and writes in one step, leaves the wait for the disk to later, keeps what
//! was read, and can be asked to take less.

use std::time::Duration;

use perilune_store::{
    Absent, Bounds, Change, Deferral, Error, Facets, KeptReads, Optimistic, Probe, ProbedChange, ReadSets,
    Result,
};

use super::mode::{Mode, Scene};
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
    type Granular = Absent;
    type Programs = Absent;

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

    #[inline]
    fn granular(&mut self) -> Option<&mut Absent> {
        None
    }

    #[inline]
    fn programs(&mut self) -> Option<&mut Absent> {
        None
    }
}

impl Optimistic for Session {
    #[inline]
    fn set_unless_parent(&mut self, key: &[u8], end: &[u8], value: &[u8]) -> Result<bool> {
        // NB: in a transaction, however it has begun, it cannot be told.
        if self.is_light() {
            return Ok(false);
        }
        let Scene { access, mode, scratch } = self.mode_to_write()?;
        check_key(key)?;
        match mode {
            Mode::Present if value.len() <= INLINE_MAX => {}
            Mode::OneShot(one_shot) => {
                return one_shot.set_unless_parent(access, key, end, value, scratch);
            }
            _ => return Ok(false),
        }
        let outcome = access.write(Which::Main, key, Action::SetUnlessParent { value, end })?;
        self.acknowledge(None)?;
        Ok(outcome.changed)
    }

    #[inline]
    fn update_unless_parent(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        if self.is_light() {
            return Ok(());
        }
        let Scene { access, mode, scratch } = self.mode_to_write()?;
        check_key(key)?;
        match mode {
            Mode::Present => {}
            Mode::OneShot(one_shot) => return one_shot.update_unless_parent(access, key, change, scratch),
            _ => return Ok(()),
        }
        access.write(Which::Main, key, Action::UpdateUnlessParent(change))?;
        self.acknowledge(None)
    }

    fn set_all_unless_parents(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        let Scene { access, mode, .. } = self.mode_to_write()?;
        pairs.iter().try_for_each(|(key, value)| check_key(key).and_then(|()| check_value(value)))?;
        if !matches!(mode, Mode::Present) {
            return Ok(false);
        }
        let done = access.set_all_unless_parents(pairs)?;
        if done {
            self.acknowledge(None)?;
        }
        Ok(done)
    }

    fn change_probed(&mut self, probes: &[Probe<'_>], change: &mut ProbedChange<'_>) -> Result<bool> {
        if !matches!(self.mode_to_write()?.mode, Mode::Present) {
            return Ok(false);
        }
        check_probes(probes)?;
        let done = self.access.change_probed(probes, change, &mut self.probed)?;
        if done {
            self.acknowledge(None)?;
        }
        Ok(done)
    }

    fn look_probed(&mut self, probes: &[Probe<'_>], look: &mut ProbedChange<'_>) -> Result<bool> {
        if !matches!(self.mode_to_read()?.mode, Mode::Present | Mode::Hooked) {
            return Ok(false);
        }
        check_probes(probes)?;
        self.access.look_probed(probes, look, &mut self.probed)
    }

    fn begin_attempt(&mut self) -> Result<bool> {
        self.here()?;
        self.moment += 1;
        let is_present = self.is_present() && self.hook.is_none() && self.snapshot.is_none();
        let plain = is_present && !self.access.seat.image.read_only;
        if plain {
            self.one_shot.begin();
        } else {
            self.one_shot.refuse();
        }
        Ok(plain)
    }

    fn end_attempt(&mut self, keep: bool) -> Result<bool> {
        if !self.one_shot.is_open() || self.is_light() {
            return Ok(false);
        }
        self.one_shot.end();
        self.moment += 1;
        self.here()?;
        let kept = self.access.end_one_shot(&mut self.one_shot, keep)?;
        if kept && keep {
            self.acknowledge(None)?;
        }
        Ok(kept)
    }

    fn was_disturbed(&self) -> bool {
        self.one_shot.was_disturbed() || self.one_shot.was_kept_out()
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
        self.take_over().ok()?;
        self.running.as_mut()?.txn.keep_reads(&self.access)
    }

    fn suspend(&mut self) -> Option<KeptReads> {
        self.take_over().ok()?;
        self.running.as_mut()?.txn.suspend(&self.access)
    }

    fn resume(&mut self, kept: KeptReads) -> Result<()> {
        self.here()?;
        self.take_over()?;
        match &mut self.running {
            Some(running) => running.txn.resume(&self.access, kept),
            _ => {
                Err(Error::TransactionState("only a transaction goes on from what was read: begin one first"))
            }
        }
    }

    fn rest_on(&mut self, kept: &[KeptReads]) -> Result<bool> {
        self.here()?;
        self.take_over()?;
        match &mut self.running {
            Some(running) => running.txn.rest_on(&self.access, kept),
            None => {
                Err(Error::TransactionState("only a transaction rests on what was read: begin one first"))
            }
        }
    }
}
