//! Probed nodes, changed at once as a function of what lies around them says: what short transactions are mostly about,
//! at the price of a single write.

use perilune_key::{decode_int, ValueRef};
use perilune_store::{Probe as StoreProbe, ProbeTarget};

use crate::backend::MappedSession;
use crate::{IntoValue, NodeRef, Result, Session};

pub use perilune_store::ProbeResult;

/// So many nodes are looked at, and at most sixteen written.
const PROBES: usize = 17;

/// A node at which [`crate::Conditional::change_probed`] looks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    node: NodeRef<'a>,
    target: ProbeTarget,
}

impl<'a> Probe<'a> {
    /// The node itself.
    #[must_use]
    #[inline]
    pub fn at(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), target: ProbeTarget::At }
    }

    /// The first node with a value in the subtree of this one, itself included; or behind it, if there is none.
    #[must_use]
    #[inline]
    pub fn first(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), target: ProbeTarget::AtOrNext }
    }

    /// The last node with a value in the subtree of this one, itself included; or before it, if there is none.
    #[must_use]
    #[inline]
    pub fn last(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), target: ProbeTarget::Previous }
    }
}

/// What lies at the nodes of some probes while nobody else can change it, and what is to be written there. Probes are
/// named by their index.
pub struct Probed<'f> {
    pub(super) probed: &'f mut dyn perilune_store::Probed,
    /// The value being written.
    pub(super) encoded: &'f mut Vec<u8>,
    pub(super) failed: bool,
}

impl Probed<'_> {
    /// What `probe` stands at.
    #[must_use]
    #[inline]
    pub fn found(&self, probe: usize) -> ProbeResult {
        self.probed.found(probe)
    }

    /// Whether `probe` stands at this node, which has a value.
    #[inline]
    pub fn is_at<'n>(&self, probe: usize, node: impl Into<NodeRef<'n>>) -> bool {
        self.probed.is_at(probe, node.into().encoded())
    }

    /// The node that `probe` stands at.
    #[inline]
    pub fn node(&mut self, probe: usize) -> Option<NodeRef<'_>> {
        let is_there = self.probed.found(probe) == ProbeResult::Record;
        is_there.then(|| NodeRef::from_encoded(self.probed.key(probe), false))
    }

    /// The only subscript behind `parent` of the node that `probe` stands at, if it is an integer.
    #[inline]
    pub fn index<'n>(&mut self, probe: usize, parent: impl Into<NodeRef<'n>>) -> Option<i64> {
        decode_int(self.probed.key_behind(probe, parent.into().encoded())?)
    }

    /// The value of that node, if it is not a long one.
    #[inline]
    pub fn value(&mut self, probe: usize) -> Option<ValueRef<'_>> {
        self.probed.value(probe).and_then(|value| ValueRef::decode(value).ok())
    }

    /// Has `probe` stand at the next node with a value.
    #[inline]
    pub fn step(&mut self, probe: usize) -> ProbeResult {
        self.probed.step(probe)
    }

    /// Sets the value of `node`, which is that of `probe` or lies close to where that looks, and behind what was written
    /// before.
    #[inline]
    pub fn set<'n>(&mut self, probe: usize, node: impl Into<NodeRef<'n>>, value: impl IntoValue) {
        let node = node.into();
        self.encoded.clear();
        self.failed |= node.is_local() || value.encode_to(self.encoded).is_err();
        self.probed.set(probe, node.encoded(), self.encoded);
    }

    /// Deletes the value of `node`, which lies there likewise.
    #[inline]
    pub fn remove<'n>(&mut self, probe: usize, node: impl Into<NodeRef<'n>>) {
        let node = node.into();
        self.failed |= node.is_local();
        self.probed.remove(probe, node.encoded());
    }
}

impl std::fmt::Debug for Probed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Probed").finish_non_exhaustive()
    }
}

impl Session {
    /// Hands the probes to the database.
    #[inline(always)]
    pub(super) fn at_probes(
        &mut self,
        probes: &[Probe<'_>],
        run: impl FnOnce(&mut MappedSession, &[StoreProbe<'_>], &mut Vec<u8>) -> perilune_store::Result<bool>,
    ) -> Result<bool> {
        if probes.len() > PROBES || probes.iter().any(|probe| probe.node.is_local()) {
            return Ok(false);
        }
        let Session { trees, encoded, end, .. } = self;
        let Some(optimistic) = trees.database.optimistic() else { return Ok(false) };
        end.clear();
        for probe in probes.iter().filter(|probe| probe.target == ProbeTarget::Previous) {
            end.extend_from_slice(probe.node.encoded());
            end.push(perilune_key::range::RANGE_END);
        }
        let mut all = [StoreProbe { key: &[], target: ProbeTarget::At }; PROBES];
        let mut ends = end.as_slice();
        for (to, Probe { node, target }) in all.iter_mut().zip(probes) {
            let mut key = node.encoded();
            if *target == ProbeTarget::Previous {
                (key, ends) = ends.split_at(key.len() + 1);
            }
            *to = StoreProbe { key, target: *target };
        }
        Ok(run(optimistic, &all[..probes.len()], encoded)?)
    }
}
