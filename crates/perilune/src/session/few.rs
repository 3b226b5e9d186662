//! Few nodes changed at once, as a function of what lies around them says: what short transactions are mostly about,
//! at the price of a single write.

use perilune_key::{decode_int, ValueRef};
use perilune_store::{Facets, Look, Optimistic, Probe as StoreProbe};

use crate::backend::BackendSession;
use crate::{IntoValue, NodeRef, Result, Session};

pub use perilune_store::Sight;

/// So many nodes are looked at, and written, at most.
const FEW: usize = 8;

/// A node at which [`Session::change_few`] looks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    node: NodeRef<'a>,
    look: Look,
}

impl<'a> Probe<'a> {
    /// The node itself.
    #[must_use]
    #[inline]
    pub fn at(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), look: Look::At }
    }

    /// The first node with a value in the subtree of this one, itself included; or behind it, if there is none.
    #[must_use]
    #[inline]
    pub fn first(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), look: Look::AtOrNext }
    }

    /// The last node with a value in the subtree of this one, itself included; or before it, if there is none.
    #[must_use]
    #[inline]
    pub fn last(node: impl Into<NodeRef<'a>>) -> Probe<'a> {
        Probe { node: node.into(), look: Look::Previous }
    }
}

/// What lies at the nodes of some probes while nobody else can change it, and what is to be written there. Probes are
/// named by their index.
pub struct Few<'f> {
    few: &'f mut dyn perilune_store::Probed,
    /// The value being written.
    encoded: &'f mut Vec<u8>,
    failed: bool,
}

impl Few<'_> {
    /// What `probe` stands at.
    #[must_use]
    #[inline]
    pub fn sight(&self, probe: usize) -> Sight {
        self.few.sight(probe)
    }

    /// Whether `probe` stands at this node, which has a value.
    #[inline]
    pub fn is_at<'n>(&self, probe: usize, node: impl Into<NodeRef<'n>>) -> bool {
        self.few.is_at(probe, node.into().encoded())
    }

    /// The node that `probe` stands at.
    #[inline]
    pub fn node(&mut self, probe: usize) -> Option<NodeRef<'_>> {
        let is_there = self.few.sight(probe) == Sight::Record;
        is_there.then(|| NodeRef::from_encoded(self.few.key(probe), false))
    }

    /// The only subscript behind `parent` of the node that `probe` stands at, if it is an integer.
    #[inline]
    pub fn index<'n>(&mut self, probe: usize, parent: impl Into<NodeRef<'n>>) -> Option<i64> {
        decode_int(self.few.key_behind(probe, parent.into().encoded())?)
    }

    /// The value of that node, if it is not a long one.
    #[inline]
    pub fn value(&mut self, probe: usize) -> Option<ValueRef<'_>> {
        self.few.value(probe).and_then(|value| ValueRef::decode(value).ok())
    }

    /// Has `probe` stand at the next node with a value.
    #[inline]
    pub fn step(&mut self, probe: usize) -> Sight {
        self.few.step(probe)
    }

    /// Sets the value of `node`, which is that of `probe` or lies close to where that looks, and behind what was written
    /// before.
    #[inline]
    pub fn set<'n>(&mut self, probe: usize, node: impl Into<NodeRef<'n>>, value: impl IntoValue) {
        let node = node.into();
        self.encoded.clear();
        self.failed |= node.is_local() || value.encode_to(self.encoded).is_err();
        self.few.set(probe, node.encoded(), self.encoded);
    }

    /// Deletes the value of `node`, which lies there likewise.
    #[inline]
    pub fn remove<'n>(&mut self, probe: usize, node: impl Into<NodeRef<'n>>) {
        let node = node.into();
        self.failed |= node.is_local();
        self.few.remove(probe, node.encoded());
    }
}

impl std::fmt::Debug for Few<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Few").finish_non_exhaustive()
    }
}

impl Session {
    /// Looks at few nodes and writes few, close to them, as `change` says, all at one moment: while it looks nobody else
    /// can change them. False: nothing was written, since `change` said so, or since that cannot be done in one operation
    /// (inside a transaction, of local nodes, with long values, where what is written lies far from what is looked at, at a
    /// server): then ask in a transaction.
    ///
    /// `change` may run several times while others wait for it: it must neither block, panic nor use the database, and
    /// allocate little. True without a write says that what it saw was one state.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-few-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Probe, Sight, ValueRef};
    ///
    /// // A member, and how many there are.
    /// let (set, member) = (node!("^set")?, node!("^set", "ada")?);
    /// session.set(&set, 0)?;
    /// let done = session.change_few(&[Probe::at(&set), Probe::at(&member)], |few| {
    ///     let Some(ValueRef::Int(count)) = few.value(0) else { return false };
    ///     if few.sight(1) == Sight::Nothing {
    ///         few.set(0, &set, count + 1);
    ///         few.set(1, &member, true);
    ///     }
    ///     true
    /// })?;
    /// assert!(done);
    /// assert_eq!(session.get_int(&set)?, Some(1));
    /// # let _ = std::fs::remove_dir_all(&directory);
    /// # Ok::<(), perilune::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Session::set`].
    #[inline]
    pub fn change_few(
        &mut self,
        probes: &[Probe<'_>],
        mut change: impl FnMut(&mut Few<'_>) -> bool,
    ) -> Result<bool> {
        self.at_probes(probes, |optimistic, probes, encoded| {
            optimistic.change_probed(probes, &mut |few| {
                let mut few = Few { few, encoded, failed: false };
                let is_wanted = change(&mut few);
                Ok(is_wanted && !few.failed)
            })
        })
    }

    /// Looks at few nodes, and keeps nobody out: `look` may see halves of two states. True: it was one, of which `look` has
    /// answered true. False: as with [`Session::change_few`]. `look` may run several times.
    ///
    /// # Errors
    /// As [`Session::get`].
    #[inline]
    pub fn look_few(
        &mut self,
        probes: &[Probe<'_>],
        mut look: impl FnMut(&mut Few<'_>) -> bool,
    ) -> Result<bool> {
        self.at_probes(probes, |optimistic, probes, encoded| {
            optimistic.look_probed(probes, &mut |few| Ok(look(&mut Few { few, encoded, failed: false })))
        })
    }

    /// Hands the probes to the database.
    #[inline(always)]
    fn at_probes(
        &mut self,
        probes: &[Probe<'_>],
        run: impl FnOnce(
            &mut <BackendSession as Facets>::Optimistic,
            &[StoreProbe<'_>],
            &mut Vec<u8>,
        ) -> perilune_store::Result<bool>,
    ) -> Result<bool> {
        if probes.len() > FEW || probes.iter().any(|probe| probe.node.is_local()) {
            return Ok(false);
        }
        let Session { trees, encoded, end, .. } = self;
        let Some(optimistic) = trees.database.optimistic() else { return Ok(false) };
        end.clear();
        for probe in probes.iter().filter(|probe| probe.look == Look::Previous) {
            end.extend_from_slice(probe.node.encoded());
            end.push(perilune_key::range::RANGE_END);
        }
        let mut all = [StoreProbe { key: &[], look: Look::At }; FEW];
        let mut ends = end.as_slice();
        for (to, Probe { node, look }) in all.iter_mut().zip(probes) {
            let mut key = node.encoded();
            if *look == Look::Previous {
                (key, ends) = ends.split_at(key.len() + 1);
            }
            *to = StoreProbe { key, look: *look };
        }
        Ok(run(optimistic, &all[..probes.len()], encoded)?)
    }
}
