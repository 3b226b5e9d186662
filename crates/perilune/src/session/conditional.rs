//! Single operations that decide and write: at the price of one write, what else takes a transaction.
//!
//! The condition is looked at while the pages are latched, so that whoever writes there at the same time waits, and nothing runs
//! twice. Example: SET of a server writes a value unless the node has only descendants ([`Conditional::set_unless_parent`]).
//!
//! Invariant: false, or `None`, means that nothing was written, and that a transaction can do it.

use perilune_key::ValueRef;
use perilune_store::Optimistic;

use super::values::revise;
use crate::{Batch, IntoValue, NodeRef, Probe, Probed, Result, Session};

/// Writes on a condition that is checked in the same operation.
pub trait Conditional {
    /// Sets the value of `node` if it has one, or has no descendants: what writers of whole subtrees and of
    /// single values want of each other. False: nothing was written, since it has descendants and no
    /// value, or since that cannot be told in one operation: then ask in a transaction.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_unless_parent<'n>(&mut self, node: impl Into<NodeRef<'n>>, value: impl IntoValue) -> Result<bool>;

    /// Sets the nodes of `batch`, all or none and at one moment, if each of them has a value or no descendants: as
    /// [`Conditional::set_unless_parent`] of many. Of a node that is in it twice the last value counts. False: nothing was
    /// written, since that is not so, or cannot be told in one operation, as with more than 256 nodes: then ask
    /// in a transaction. The batch is sorted then.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn set_all_unless_parents(&mut self, batch: &mut Batch) -> Result<bool>;

    /// Replaces the value of `node` by the integer that `change` makes of it, and returns that. `None`:
    /// nothing was written, as it has no value, one of more than 63 bytes, or `change` made nothing of it.
    /// `change` may run several times, and must neither allocate, block, panic nor use the database.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn revise_integer<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        change: impl FnMut(ValueRef<'_>) -> Option<i64>,
    ) -> Result<Option<i64>>;

    /// Replaces the value of `node` by the integer that `change` makes of it, and returns that, as [`Conditional::revise_integer`]
    /// does; a node that has neither a value nor descendants counts, too: `change` is shown `None` then. Of a
    /// local node, and where that cannot be told in one operation, nothing is written.
    ///
    /// # Errors
    /// As [`Session::set`].
    fn revise_integer_unless_parent<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        change: impl FnMut(Option<ValueRef<'_>>) -> Option<i64>,
    ) -> Result<Option<i64>>;

    /// Looks at up to 17 nodes and writes up to 16 close to them, as `change` says, all at one moment: while it looks nobody else
    /// can change them. False: nothing was written, since `change` said so, or since that cannot be done in one operation
    /// (inside a transaction, of local nodes, with long values, where what is written lies far from what is looked at, at a
    /// server): then ask in a transaction.
    ///
    /// `change` may run several times while others wait for it: it must neither block, panic nor use the database, and
    /// allocate little. True without a write says that what it saw was one state.
    ///
    /// ```
    /// # let directory = std::env::temp_dir().join(format!("perilune-doc-probed-{}", std::process::id()));
    /// # std::fs::create_dir_all(&directory).unwrap();
    /// # let mut session = perilune::Database::open(directory.join("t.db"))?.session()?;
    /// use perilune::{node, Conditional, Probe, ProbeResult, ValueRef};
    ///
    /// // A member, and how many there are.
    /// let (set, member) = (node!("^set")?, node!("^set", "ada")?);
    /// session.set(&set, 0)?;
    /// let done = session.change_probed(&[Probe::at(&set), Probe::at(&member)], |probed| {
    ///     let Some(ValueRef::Int(count)) = probed.value(0) else { return false };
    ///     if probed.found(1) == ProbeResult::Nothing {
    ///         probed.set(0, &set, count + 1);
    ///         probed.set(1, &member, true);
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
    fn change_probed(
        &mut self,
        probes: &[Probe<'_>],
        change: impl FnMut(&mut Probed<'_>) -> bool,
    ) -> Result<bool>;

    /// Looks at up to 17 nodes, and keeps nobody out: `look` may see halves of two states. True: it was one, of which `look` has
    /// answered true. False: as with [`Conditional::change_probed`]. `look` may run several times.
    ///
    /// # Errors
    /// As [`Session::get`].
    fn look_probed(
        &mut self,
        probes: &[Probe<'_>],
        look: impl FnMut(&mut Probed<'_>) -> bool,
    ) -> Result<bool>;
}

impl Conditional for Session {
    #[inline]
    fn set_unless_parent<'n>(&mut self, node: impl Into<NodeRef<'n>>, value: impl IntoValue) -> Result<bool> {
        let node = node.into();
        self.encoded.clear();
        value.encode_to(&mut self.encoded)?;
        perilune_key::range::subtree_end(node.encoded(), &mut self.end);
        if node.is_local() {
            return Ok(false);
        }
        let Some(optimistic) = self.trees.database.optimistic() else { return Ok(false) };
        Ok(optimistic.set_unless_parent(node.encoded(), &self.end, &self.encoded)?)
    }

    fn set_all_unless_parents(&mut self, batch: &mut Batch) -> Result<bool> {
        let pairs = batch.distinct_pairs();
        let Some(optimistic) = self.trees.database.optimistic() else { return Ok(false) };
        Ok(optimistic.set_all_unless_parents(&pairs)?)
    }

    #[inline]
    fn revise_integer<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        mut change: impl FnMut(ValueRef<'_>) -> Option<i64>,
    ) -> Result<Option<i64>> {
        let node = node.into();
        let tree = self.trees.of(node.is_local());
        revise(|update| tree.update(node.encoded(), update), |old| old.and_then(&mut change))
    }

    #[inline]
    fn revise_integer_unless_parent<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        change: impl FnMut(Option<ValueRef<'_>>) -> Option<i64>,
    ) -> Result<Option<i64>> {
        let node = node.into();
        if node.is_local() {
            return Ok(None);
        }
        let Some(optimistic) = self.trees.database.optimistic() else { return Ok(None) };
        revise(|update| optimistic.update_unless_parent(node.encoded(), update), change)
    }

    #[inline]
    fn change_probed(
        &mut self,
        probes: &[Probe<'_>],
        mut change: impl FnMut(&mut Probed<'_>) -> bool,
    ) -> Result<bool> {
        self.at_probes(probes, |optimistic, probes, encoded| {
            optimistic.change_probed(probes, &mut |probed| {
                let mut probed = Probed { probed, encoded, failed: false };
                let is_wanted = change(&mut probed);
                Ok(is_wanted && !probed.failed)
            })
        })
    }

    #[inline]
    fn look_probed(
        &mut self,
        probes: &[Probe<'_>],
        mut look: impl FnMut(&mut Probed<'_>) -> bool,
    ) -> Result<bool> {
        self.at_probes(probes, |optimistic, probes, encoded| {
            optimistic
                .look_probed(probes, &mut |probed| Ok(look(&mut Probed { probed, encoded, failed: false })))
        })
    }
}
