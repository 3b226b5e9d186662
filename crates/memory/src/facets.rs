//! Which facets of `perilune_store` the store in memory has besides the required core: locks, watches, messages,
//! and `Optimistic`, whose operations decide and write in one step.
//!
//! The mapped file does such a step under a page's latch. Here each is an ordinary transaction; inside an open one
//! it does nothing, and the caller reads and writes instead.

use perilune_store::{
    transact, Absent, Change, Facets, Optimistic, Probe, ProbedChange, Result, Session, TransactionOptions,
    Transactions,
};

use crate::probed;
use crate::session::MemorySession;

impl Facets for MemorySession {
    type Locks = MemorySession;
    type Watch = MemorySession;
    type Messages = MemorySession;
    type Deferral = Absent;
    type Optimistic = MemorySession;
    type ReadSets = Absent;
    type Bounds = Absent;
    type Granular = Absent;
    type Programs = Absent;

    fn locks(&mut self) -> Option<&mut MemorySession> {
        Some(self)
    }

    fn watches(&mut self) -> Option<&mut MemorySession> {
        Some(self)
    }

    fn messages(&mut self) -> Option<&mut MemorySession> {
        Some(self)
    }

    /// Nothing here becomes durable, so that there is no later moment to defer it to.
    fn deferral(&mut self) -> Option<&mut Absent> {
        None
    }

    fn optimistic(&mut self) -> Option<&mut MemorySession> {
        Some(self)
    }

    fn read_sets(&mut self) -> Option<&mut Absent> {
        None
    }

    fn bounds(&mut self) -> Option<&mut Absent> {
        None
    }

    fn granular(&mut self) -> Option<&mut Absent> {
        None
    }

    fn programs(&mut self) -> Option<&mut Absent> {
        None
    }
}

impl MemorySession {
    /// Whether `key` has a value, or nothing lies behind it and before `end`.
    fn is_no_parent(&mut self, key: &[u8], end: &[u8]) -> Result<bool> {
        Ok(self.get(key, &mut Vec::new())? || !self.next_within(key, false, end, &mut Vec::new(), None)?)
    }
}

/// Where what begins with `key` ends; empty: nowhere.
fn end_of(key: &[u8]) -> Vec<u8> {
    let mut end = key.to_vec();
    while end.pop_if(|last| *last == 0xFF).is_some() {}
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    end
}

impl Optimistic for MemorySession {
    fn begin_attempt(&mut self) -> Result<bool> {
        Ok(false)
    }

    fn end_attempt(&mut self, _keep: bool) -> Result<bool> {
        Ok(false)
    }

    fn was_disturbed(&self) -> bool {
        false
    }

    fn set_unless_parent(&mut self, key: &[u8], end: &[u8], value: &[u8]) -> Result<bool> {
        if self.depth() > 0 {
            return Ok(false);
        }
        transact(self, &TransactionOptions::default(), |session| {
            let is_wanted = session.is_no_parent(key, end)?;
            if is_wanted {
                session.set(key, value)?;
            }
            Ok(is_wanted)
        })
    }

    fn update_unless_parent(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        if self.depth() > 0 {
            return Ok(());
        }
        transact(self, &TransactionOptions::default(), |session| {
            if session.is_no_parent(key, &end_of(key))? {
                session.update(key, change)?;
            }
            Ok(())
        })
    }

    fn set_all_unless_parents(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<bool> {
        if self.depth() > 0 {
            return Ok(false);
        }
        transact(self, &TransactionOptions::default(), |session| {
            for (key, _) in pairs {
                if !session.is_no_parent(key, &end_of(key))? {
                    return Ok(false);
                }
            }
            pairs.iter().try_for_each(|(key, value)| session.set(key, value))?;
            Ok(true)
        })
    }

    fn change_probed(&mut self, probes: &[Probe<'_>], change: &mut ProbedChange<'_>) -> Result<bool> {
        probes.iter().try_for_each(|probe| self.check_key(probe.key, 1))?;
        if self.depth() > 0 {
            return Ok(false);
        }
        transact(self, &TransactionOptions::default(), |session| probed::change(session, probes, change))
    }

    fn look_probed(&mut self, probes: &[Probe<'_>], look: &mut ProbedChange<'_>) -> Result<bool> {
        self.change_probed(probes, look)
    }
}
