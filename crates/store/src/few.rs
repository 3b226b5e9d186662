//! A change of few keys that is decided while nobody else can change them: what is looked at, seen and written.

use crate::Result;

/// Which record [`Probe`] looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Look {
    /// That at its key.
    At,
    /// The first one at its key or behind it.
    AtOrNext,
    /// The last one before its key.
    Previous,
}

/// A key at which [`crate::Session::change_few`] looks.
#[derive(Clone, Copy, Debug)]
pub struct Probe<'a> {
    /// The key; unlike others it may be one 0xFF longer than the limit.
    pub key: &'a [u8],
    /// Which record from there.
    pub look: Look,
}

/// What a probe has come upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sight {
    /// A record, which is the wanted one.
    Record,
    /// There is none.
    Nothing,
    /// Nobody can say: what would tell was not looked at.
    Unknown,
}

/// The keys around some probes, while nobody else can change them, and what is to be written there.
///
/// Probes are named by their index.
pub trait Few {
    /// What `probe` stands at.
    fn sight(&self, probe: usize) -> Sight;

    /// Whether `probe` stands at a record with this key.
    fn is_at(&self, probe: usize, key: &[u8]) -> bool;

    /// The key of the record that `probe` stands at; empty if there is none.
    fn key(&mut self, probe: usize) -> &[u8];

    /// What follows `start` in that key; none if it does not begin so.
    fn key_behind(&mut self, probe: usize, start: &[u8]) -> Option<&[u8]> {
        self.key(probe).strip_prefix(start)
    }

    /// The value of the record that `probe` stands at; none if there is none, or it is a long one.
    fn value(&mut self, probe: usize) -> Option<&[u8]>;

    /// Has `probe`, which stands at a record, stand at the one behind it, and answers what that is.
    fn step(&mut self, probe: usize) -> Sight;

    /// Notes that `key` is to have this value. It lies at `probe` or close to where that looks, and behind what was noted
    /// before.
    fn set(&mut self, probe: usize, key: &[u8], value: &[u8]);

    /// The same, and `key` is to have no value.
    fn remove(&mut self, probe: usize, key: &[u8]);
}

/// Looks, notes what is to be written, and answers whether that is to be done: false is to leave all as it is.
pub type FewChange<'a> = dyn FnMut(&mut dyn Few) -> Result<bool> + 'a;
