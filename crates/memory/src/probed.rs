//! A step that looks at a few keys, decides, and writes at once (`change_probed` of the facet `Optimistic`), as a
//! transaction.
//!
//! The mapped file may answer that it cannot see a key in its one step (`ProbeResult::Unknown`), and wants keys close
//! together. Here every key can be seen, wherever it lies.

use perilune_store::{Error, Probe, ProbeResult, ProbeTarget, Probed, ProbedChange, Result, Session};

use crate::session::MemorySession;

/// Runs `change` in the open transaction, and writes what it has noted if it says so.
pub(crate) fn change(
    session: &mut MemorySession,
    probes: &[Probe<'_>],
    change: &mut ProbedChange<'_>,
) -> Result<bool> {
    let mut view = View { session, stands: Vec::new(), writes: Vec::new(), error: None };
    for probe in probes {
        view.stand(view.stands.len(), probe.key, probe.target);
    }
    let is_wanted = change(&mut view);
    let View { writes, error, .. } = view;
    error.map_or(Ok(()), Err)?;
    if !is_wanted? {
        return Ok(false);
    }
    for (key, value) in writes {
        match value {
            Some(value) => session.set(&key, &value)?,
            None => session.remove(&key).map(drop)?,
        }
    }
    Ok(true)
}

/// A key and its value; of a key to be removed there is none.
type Pair = (Vec<u8>, Option<Vec<u8>>);

struct View<'a> {
    session: &'a mut MemorySession,
    /// The record that each probe stands at.
    stands: Vec<Option<(Vec<u8>, Vec<u8>)>>,
    writes: Vec<Pair>,
    /// What a look has met.
    error: Option<Error>,
}

impl View<'_> {
    /// Has a probe stand where a look from `key` leads.
    fn stand(&mut self, probe: usize, key: &[u8], target: ProbeTarget) {
        let (mut found, mut value) = (Vec::new(), Vec::new());
        let is_there = match target {
            ProbeTarget::At => {
                found.extend_from_slice(key);
                self.session.get(key, &mut value)
            }
            ProbeTarget::AtOrNext => self.session.next(key, true, &mut found, Some(&mut value)),
            ProbeTarget::Previous => self.session.previous(key, &mut found, Some(&mut value)),
        };
        self.put(probe, is_there, (found, value));
    }

    fn put(&mut self, probe: usize, is_there: Result<bool>, record: (Vec<u8>, Vec<u8>)) {
        let record = match is_there {
            Ok(is_there) => is_there.then_some(record),
            Err(error) => {
                self.error.get_or_insert(error);
                None
            }
        };
        if probe == self.stands.len() {
            self.stands.push(record);
        } else {
            self.stands[probe] = record;
        }
    }
}

impl Probed for View<'_> {
    fn found(&self, probe: usize) -> ProbeResult {
        match self.stands[probe] {
            Some(_) => ProbeResult::Record,
            None if self.error.is_some() => ProbeResult::Unknown,
            None => ProbeResult::Nothing,
        }
    }

    fn is_at(&self, probe: usize, key: &[u8]) -> bool {
        self.stands[probe].as_ref().is_some_and(|(found, _)| found == key)
    }

    fn key(&mut self, probe: usize) -> &[u8] {
        self.stands[probe].as_ref().map_or(&[], |(key, _)| key)
    }

    fn value(&mut self, probe: usize) -> Option<&[u8]> {
        self.stands[probe].as_ref().map(|(_, value)| value.as_slice())
    }

    fn step(&mut self, probe: usize) -> ProbeResult {
        let Some((from, _)) = self.stands[probe].take() else { return ProbeResult::Unknown };
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let is_there = self.session.next(&from, false, &mut key, Some(&mut value));
        self.put(probe, is_there, (key, value));
        self.found(probe)
    }

    fn set(&mut self, _probe: usize, key: &[u8], value: &[u8]) {
        self.writes.push((key.to_vec(), Some(value.to_vec())));
    }

    fn remove(&mut self, _probe: usize, key: &[u8]) {
        self.writes.push((key.to_vec(), None));
    }
}
