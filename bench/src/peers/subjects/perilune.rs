//! Perilune by its Rust API.

use perilune::{Database, Durability, Neighbour, Node, Session, Steps, ValueRef};

use super::{Mapping, Side, Site, ALL_PARTS};
use crate::globals::{sub, Globals, Keys, Path, Sub};
use crate::peers::perilune::{options, FILE};
use crate::subject::{Class, Pair, Result};

const NONE: Side = Side {
    name: "perilune",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Rust",
    settings: "durability none",
    parts: ALL_PARTS,
    processes: true,
    version: || Ok(env!("CARGO_PKG_VERSION").to_owned()),
    serve: None,
    open,
    player: None,
};
const FSYNC: Side = Side { class: Class::D1, settings: "durability fsync, group commit", ..NONE };

pub(crate) const SIDES: &[Side] = &[
    NONE,
    Side { class: Class::D3, settings: "durability periodic: at most 50 ms are lost", ..NONE },
    Side { class: Class::D2, settings: "durability fsync, many sets in a transaction", ..FSYNC },
    FSYNC,
    // The same once more: what differs between two sides that do not differ.
    Side { name: TWIN, ..NONE },
];

/// Takes part only where it is asked for by name.
pub(crate) const TWIN: &str = "perilune-twin";

/// The level of a class.
pub(crate) fn level(class: Class) -> Durability {
    match class {
        Class::D1 | Class::D2 => Durability::Fsync,
        Class::D3 => Durability::Periodic,
        Class::D4 => Durability::None,
    }
}

fn open(site: &Site) -> Result<Box<dyn Globals>> {
    let path = site.directory.join(FILE);
    // A test slows Perilune by this, to see that a slower side is seen as slower.
    let delay = std::env::var("PERILUNE_BENCH_SLOWED").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    let database = options().durability(level(site.class)).open(path)?;
    let session = database.session()?;
    let nodes = [Node::new("^pair")?, Node::new("^pair")?];
    Ok(Box::new(Open { session, keys: Keys::default(), nodes, delay, _database: database }))
}

/// A value as text.
fn append(found: &ValueRef<'_>, to: &mut Vec<u8>) {
    match found {
        ValueRef::String(bytes) => to.extend_from_slice(bytes),
        other => to.extend_from_slice(other.to_string().as_bytes()),
    }
}

struct Open {
    session: Session,
    keys: Keys,
    nodes: [Node; 2],
    /// Turns of an idle loop before each operation: 0 but in that test.
    delay: u32,
    _database: Database,
}

impl Open {
    #[inline]
    fn idle(&self) {
        for _ in 0..self.delay {
            std::hint::spin_loop();
        }
    }

    fn sibling(&mut self, which: Neighbour, path: &Path) -> Result<Option<Sub>> {
        match self.session.neighbour(which, &*self.keys.node(path)?)? {
            Some(found) => found.last()?.as_ref().map(sub).transpose(),
            None => Ok(None),
        }
    }
}

impl Globals for Open {
    #[inline]
    fn set(&mut self, path: &Path, value: &[u8]) -> Result<()> {
        self.idle();
        Ok(self.session.set(&*self.keys.node(path)?, value)?)
    }

    #[inline]
    fn get(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        self.idle();
        let found = self.session.get_ref(&*self.keys.node(path)?)?;
        Ok(found.map(|found| append(&found, value)).is_some())
    }

    fn data(&mut self, path: &Path) -> Result<u8> {
        Ok(self.session.data(&*self.keys.node(path)?)?.number())
    }

    fn next(&mut self, path: &Path) -> Result<Option<Sub>> {
        self.sibling(Neighbour::Next, path)
    }

    fn previous(&mut self, path: &Path) -> Result<Option<Sub>> {
        self.sibling(Neighbour::Previous, path)
    }

    fn query(&mut self, path: &Path, value: &mut Vec<u8>) -> Result<Option<Vec<Sub>>> {
        let found = self.session.neighbour(Neighbour::NextValued, &*self.keys.node(path)?)?;
        let Some(found) = found.map(|found| found.to_node()).transpose()? else { return Ok(None) };
        value.clear();
        if let Some(text) = self.session.get_ref(&found)? {
            append(&text, value);
        }
        found.subscripts()?.iter().map(sub).collect::<Result<_>>().map(Some)
    }

    fn increment(&mut self, path: &Path, by: i64) -> Result<i64> {
        let sum = self.session.increment(&*self.keys.node(path)?, by)?;
        sum.as_i64().ok_or_else(|| "a counter is no integer".into())
    }

    fn kill(&mut self, path: &Path) -> Result<()> {
        Ok(self.session.delete_tree(&*self.keys.node(path)?)?)
    }

    fn merge(&mut self, from: &Path, to: &Path) -> Result<()> {
        self.nodes[0].clone_from(self.keys.node(from)?);
        Ok(self.session.merge(&self.nodes[0], &*self.keys.node(to)?)?)
    }

    fn set_all(&mut self, paths: &[Path], value: &[u8]) -> Result<()> {
        let nodes = paths.iter().map(|path| self.keys.node(path).cloned()).collect::<Result<Vec<_>>>()?;
        Ok(self.session.set_many(nodes.iter().map(|node| (node, value)))?)
    }

    #[inline]
    fn get_integer(&mut self, path: &Path) -> Result<Option<i64>> {
        self.idle();
        Ok(self.session.get_int(&*self.keys.node(path)?)?)
    }

    #[inline]
    fn set_integer(&mut self, path: &Path, value: i64) -> Result<()> {
        Ok(self.session.set(&*self.keys.node(path)?, value)?)
    }

    fn update_pair(&mut self, paths: &[Path; 2], change: &mut dyn FnMut(Pair) -> Pair) -> Result<()> {
        for (node, path) in self.nodes.iter_mut().zip(paths) {
            node.clone_from(self.keys.node(path)?);
        }
        let [first, second] = &self.nodes;
        Ok(self.session.transaction(|session| {
            let new = change([session.get_int(first)?, session.get_int(second)?]);
            for (node, value) in [first, second].into_iter().zip(new) {
                if let Some(value) = value {
                    session.set(node, value)?;
                }
            }
            Ok(())
        })?)
    }
}
