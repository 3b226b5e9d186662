//! What a case plays on: a database with known content, one party that acts, and the content that is expected
//! afterwards.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use perilune_engine::instrument::{Party, Place, Shape, Tree};
use perilune_store::Result;

/// The party whose operation is killed.
pub(crate) const ACTOR: u16 = 0;
/// The party that looks at what is left, on a private mapping.
pub(crate) const WITNESS: u16 = 5;

/// All records of both trees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Content([BTreeMap<Vec<u8>, Vec<u8>>; 2]);

impl Content {
    fn of(&mut self, tree: Tree) -> &mut BTreeMap<Vec<u8>, Vec<u8>> {
        &mut self.0[tree as usize]
    }

    /// Applies one change.
    pub(crate) fn apply(&mut self, write: &Write) {
        match &write.value {
            Some(value) => self.of(write.tree).insert(write.key.clone(), value.clone()),
            None => self.of(write.tree).remove(&write.key),
        };
    }

    /// Removes all keys with a prefix.
    pub(crate) fn remove_prefix(&mut self, tree: Tree, prefix: &[u8]) {
        self.of(tree).retain(|key, _| !key.starts_with(prefix));
    }

    /// Whether this is what `party` sees.
    pub(crate) fn is_seen_by(&self, party: &Party) -> Result<bool> {
        for tree in [Tree::Main, Tree::Volatile] {
            let mut expected = self.0[tree as usize].iter();
            let mut same = true;
            party.scan(tree, |key, value| {
                same = expected.next().is_some_and(|(k, v)| k == key && v == value);
                same
            })?;
            if !same || expected.next().is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What `party` sees.
    pub(crate) fn seen_by(party: &Party) -> Result<Content> {
        let mut content = Content::default();
        for tree in [Tree::Main, Tree::Volatile] {
            party.scan(tree, |key, value| {
                content.of(tree).insert(key.to_vec(), value.to_vec());
                true
            })?;
        }
        Ok(content)
    }

    /// Some key of the main tree, and its value.
    pub(crate) fn any(&self) -> Option<(&[u8], &[u8])> {
        self.0[0].iter().next().map(|(key, value)| (&key[..], &value[..]))
    }

    /// The changes that lead from here to `other`.
    pub(crate) fn changes_to(&self, other: &Content) -> Vec<Write> {
        let mut writes = Vec::new();
        for tree in [Tree::Main, Tree::Volatile] {
            let (here, there) = (&self.0[tree as usize], &other.0[tree as usize]);
            for key in here.keys().filter(|key| !there.contains_key(*key)) {
                writes.push(Write { tree, key: key.clone(), value: None });
            }
            for (key, value) in there.iter().filter(|(key, value)| here.get(*key) != Some(value)) {
                writes.push(Write { tree, key: key.clone(), value: Some(value.clone()) });
            }
        }
        writes
    }

    /// How many records there are.
    pub(crate) fn count(&self) -> usize {
        self.0.iter().map(BTreeMap::len).sum()
    }
}

/// One change that an operation is to make.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) tree: Tree,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Option<Vec<u8>>,
}

/// An operation, in one call.
pub(crate) type Act = Box<dyn Fn(&Party) -> Result<()>>;

/// What is done and what must come of it.
pub(crate) struct Plan {
    pub(crate) act: Act,
    /// The states after the old one that may be met, each by its changes to the one before.
    pub(crate) stages: Vec<Vec<Write>>,
    /// Whether the operation went the way that the case is about, by the shapes before and after.
    pub(crate) took: fn(&Shape, &Shape) -> bool,
}

/// A directory in memory that goes when dropped.
pub(crate) struct Directory(PathBuf);

impl Directory {
    /// Makes one, on tmpfs if there is one.
    ///
    /// # Errors
    /// What the file system says.
    pub(crate) fn new() -> std::io::Result<Directory> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_path_buf() } else { std::env::temp_dir() };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = above.join(format!("perilune-kill-step-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Directory(path))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A place being prepared by the acting party, whose undo area and ring are thus in use.
pub(crate) struct Setup {
    pub(crate) place: Place,
    pub(crate) actor: Party,
    pub(crate) content: Content,
    directory: Directory,
}

/// Data pages of a setup at its begin.
const PAGES: u64 = 600;
/// Pages it may grow to.
const PAGES_MAX: u64 = 3000;

impl Setup {
    /// An empty place.
    ///
    /// # Errors
    /// What the engine says.
    pub(crate) fn new() -> Result<Setup> {
        let directory = Directory::new().map_err(|source| perilune_store::Error::Io {
            action: "make a directory",
            place: "/dev/shm".into(),
            source,
        })?;
        let place = Place::create(directory.path(), PAGES, PAGES_MAX)?;
        let actor = place.join(ACTOR, &[])?;
        Ok(Setup { place, actor, content: Content::default(), directory })
    }

    /// Where the files are.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Takes note of what the actor has done by other means than [`Setup::set`] and [`Setup::remove`].
    pub(crate) fn refresh(&mut self) -> Result<()> {
        self.content = Content::seen_by(&self.actor)?;
        Ok(())
    }

    /// Sets a value.
    pub(crate) fn set(&mut self, tree: Tree, key: &[u8], value: &[u8]) -> Result<()> {
        self.actor.set(tree, key, value)?;
        self.content.apply(&Write { tree, key: key.into(), value: Some(value.into()) });
        Ok(())
    }

    /// Writes a piece of the value `old` at a key of the main tree; answers the value.
    pub(crate) fn set_piece(
        &mut self,
        key: &[u8],
        mut old: Vec<u8>,
        offset: usize,
        piece: &[u8],
    ) -> Result<Vec<u8>> {
        self.actor.set_piece(key, offset, piece)?;
        old[offset..offset + piece.len()].copy_from_slice(piece);
        self.content.apply(&Write { tree: Tree::Main, key: key.into(), value: Some(old.clone()) });
        Ok(old)
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, tree: Tree, key: &[u8]) -> Result<()> {
        self.actor.remove(tree, key)?;
        self.content.apply(&Write { tree, key: key.into(), value: None });
        Ok(())
    }
}
