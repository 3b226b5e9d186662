//! Redis's keys as nodes of the shared tree; the scheme is docs/format/redis.md.
//!
//! Invariants
//! - A key exists while a node of its subtree has a value.
//! - A string without an expiry is the value of the key's own node; everything else lies below it, and
//!   the first entry of the subtree tells what it is.
//! - A key has an entry in the index of expiries exactly if it has an expiry, or had one.
//! - An expired key counts as absent; commands that write remove it first.
//!
//! Deliberately absent: replies. Commands are in `commands`.

mod contents;
pub(crate) mod element;
mod entry;
mod expiry;
mod list;
mod names;
mod pick;
mod ranks;
mod score;
mod strings;
pub(crate) mod text;
mod walk;
mod zset;

use std::borrow::Cow;
use std::ops::Bound;
use std::sync::LazyLock;

use perilune::{Batch, Cursor, Neighbour, Node, NodeRef, RangeEnds, Session, Steps};

use self::entry::{entry, UNCOUNTED};
use crate::effects::Effects;
use crate::failure::{refuse, Result, WRONG_TYPE};
use crate::limits::{DATABASES, KEY_BYTES};
use crate::name::{self, NAME};
use crate::notify;
use crate::patience::Patience;

pub(crate) use self::contents::Contents;
pub(crate) use self::entry::{Entry, Kind};
pub(crate) use self::expiry::{index as expiries, is_due, readdress, sweep, tell_expired};
pub(crate) use self::list::{List, Side};
pub(crate) use self::names::Names;
pub(crate) use self::pick::pick;
pub(crate) use self::strings::Held;
pub(crate) use self::walk::whole_name;
pub(crate) use self::zset::{Edge, Scored, SortedSet};

/// Bytes that a name takes as a subscript besides its own, and a value with it, as a rule.
const CODE_BYTES: usize = 8;

/// Where the order of a sorted set lies.
pub(crate) const ORDER: &str = "zset order";

/// The nodes of the databases, encoded once.
static ROOTS: LazyLock<Vec<Node>> = LazyLock::new(|| {
    let root = |database| Node::new(NAME).and_then(|name| name.with(database));
    (0..DATABASES).map_while(|database| root(database).ok()).collect()
});

/// A key, ready to be looked up.
#[derive(Clone, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) node: Node,
    cut: bool,
}

impl Key<'_> {
    /// Whether its name is too long for a subscript.
    pub(crate) fn is_cut(&self) -> bool {
        self.cut
    }

    /// The node that holds what a key of this kind holds.
    pub(crate) fn part(&self, kind: Kind) -> Result<Node> {
        Ok(self.node.child(kind.name())?)
    }

    /// The node that holds what a key of this kind holds, made of the key's own node.
    pub(crate) fn into_part(self, kind: Kind) -> Result<Node> {
        Ok(self.node.with(kind.name())?)
    }

    fn expiry(&self) -> Result<Node> {
        Ok(self.node.child("")?)
    }
}

/// The node of a key.
pub(crate) fn key_node(database: i64, name: &[u8]) -> perilune::Result<Node> {
    Node::new(NAME)?.with(database)?.with(&*name::subscript(name, KEY_BYTES))
}

/// The databases that hold anything, in ascending order.
pub(crate) fn databases(session: &mut Session) -> Result<Vec<i64>> {
    let mut cursor = Cursor::children(&Node::new(NAME)?).without_values();
    let mut found = Vec::new();
    // Numbers come before the names of the server's own nodes.
    while cursor.next(session)? {
        match cursor.integer() {
            Some(database) => found.push(database),
            None => break,
        }
    }
    Ok(found)
}

/// The keys of one database, as one command sees them: in a transaction, or for one operation.
#[derive(Debug)]
pub(crate) struct Keys<'s> {
    pub(crate) session: &'s mut Session,
    /// What happens when the command has committed.
    pub(crate) effects: &'s mut Effects,
    /// The number given to SELECT.
    pub(crate) database: i64,
    /// The command's time, in milliseconds since 1970.
    pub(crate) now: i64,
    /// Whether expired keys that are met are removed.
    writes: bool,
    /// How long the command may take.
    pub(crate) patience: Patience,
}

impl<'s> Keys<'s> {
    pub(crate) fn new(
        session: &'s mut Session,
        effects: &'s mut Effects,
        database: i64,
        now: i64,
        writes: bool,
    ) -> Keys<'s> {
        Keys { session, effects, database, now, writes, patience: Patience::Endless }
    }

    /// These keys, for a command that may take only so long.
    #[inline]
    pub(crate) fn with(self, patience: Patience) -> Keys<'s> {
        Keys { patience, ..self }
    }

    /// Notes that the key called `name` is there now, a list or a sorted set, which clients may wait for.
    #[inline]
    pub(crate) fn ready(&mut self, name: &[u8]) {
        self.effects.ready(self.database, name);
    }

    /// Notes an event of the key called `name`.
    #[inline]
    pub(crate) fn notify(&mut self, class: u32, event: &'static str, name: &[u8]) {
        self.effects.notify(class, event, self.database, name);
    }

    /// The node of this database.
    pub(crate) fn root(&self) -> Result<Node> {
        match usize::try_from(self.database).ok().and_then(|database| ROOTS.get(database)) {
            Some(root) => Ok(root.clone()),
            None => Ok(Node::new(NAME)?.with(self.database)?),
        }
    }

    /// The key called `name`.
    pub(crate) fn key<'n>(&self, name: &'n [u8]) -> Result<Key<'n>> {
        let place = name::subscript(name, KEY_BYTES);
        let node = self.root()?.with(&*place)?;
        Ok(Key { name, node, cut: matches!(place, Cow::Owned(_)) })
    }

    /// The nodes of keys and their values, which stand side by side, to be set at once; none if a name is cut.
    pub(crate) fn batch<'p>(
        &self,
        pairs: impl Iterator<Item = (&'p [u8], &'p [u8])> + Clone,
    ) -> Result<Option<Batch>> {
        let root = self.root()?;
        let each = root.encoded().len() + CODE_BYTES;
        let (count, bytes) = pairs.clone().fold((0, 0), |(count, bytes), (name, value)| {
            (count + 1, bytes + name.len() + value.len() + each)
        });
        let mut batch = Batch::with_capacity(count, bytes);
        for (name, value) in pairs {
            if !name::is_whole(name, KEY_BYTES) {
                return Ok(None);
            }
            batch.push_child(&root, name, value)?;
        }
        Ok(Some(batch))
    }

    /// What lies at `key`; an expired one is absent.
    pub(crate) fn open(&mut self, key: &Key<'_>) -> Result<Option<Entry>> {
        let entry = self.look_up(key)?;
        if let (true, Some(entry)) = (self.patience.counts_keys(), &entry) {
            let elements = self.elements(key, entry)?;
            self.patience.bear(elements)?;
        }
        if !self.writes {
            self.effects.looks.note(entry.is_some());
            if entry.is_none() {
                self.notify(notify::MISSED, "keymiss", key.name);
            }
        }
        Ok(entry)
    }

    /// How many elements a key has; a string has none.
    fn elements(&mut self, key: &Key<'_>, entry: &Entry) -> Result<i64> {
        if entry.kind != Kind::List {
            return Ok(entry.figure);
        }
        let part = key.part(entry.kind)?;
        let last =
            self.session.neighbour(Neighbour::LastChild, &part)?.map(|node| node.to_node()).transpose()?;
        let index = last.map(|node| Ok::<_, perilune::Error>(node.last()?.and_then(|index| index.as_i64())));
        Ok(index.transpose()?.flatten().map_or(0, |index| index.saturating_sub(entry.figure)))
    }

    fn look_up(&mut self, key: &Key<'_>) -> Result<Option<Entry>> {
        let end = key.node.encoded().len();
        let from = if key.cut { Bound::Excluded(NodeRef::from(&key.node)) } else { Bound::Unbounded };
        let Some((node, value)) = self.session.first_entry_at(&key.node, from)? else { return Ok(None) };
        if node.encoded().len() == end {
            return Ok(Some(Entry { kind: Kind::String, expires: None, figure: 0, plain: true }));
        }
        if let Some(entry) = entry(&node.encoded()[end..], value) {
            return self.counted(key, entry).map(Some);
        }
        let expiry = key.expiry()?;
        if node != NodeRef::from(&expiry) {
            return refuse("ERR the nodes of this key are not in the scheme of docs/format/redis.md");
        }
        let expires = value.and_then(|value| value.as_i64()).unwrap_or(0);
        if expires <= self.now {
            if self.writes {
                self.session.delete_tree(&key.node)?;
                expiry::forget(self, key, expires)?;
                self.notify(notify::EXPIRED, "expired", key.name);
            }
            return Ok(None);
        }
        let from = Bound::Excluded(NodeRef::from(&expiry));
        match self.session.first_entry_at(&key.node, from)? {
            None => Ok(None),
            Some((node, value)) => match entry(&node.encoded()[end..], value) {
                None => refuse("ERR the nodes of this key are not in the scheme of docs/format/redis.md"),
                Some(entry) => self.counted(key, Entry { expires: Some(expires), ..entry }).map(Some),
            },
        }
    }

    /// Programs may leave the count of elements out: then they are counted.
    fn counted(&mut self, key: &Key<'_>, mut entry: Entry) -> Result<Entry> {
        // NB: the first index of a list may be any.
        if entry.kind != Kind::List && entry.figure == UNCOUNTED {
            let part = key.part(entry.kind)?;
            entry.figure = i64::try_from(self.session.count_children(&part)?).unwrap_or(i64::MAX);
        }
        Ok(entry)
    }

    /// The key called `name`, and what lies there if it is of `kind`.
    ///
    /// Refuses a key of another kind.
    pub(crate) fn find<'n>(&mut self, name: &'n [u8], kind: Kind) -> Result<(Key<'n>, Option<Entry>)> {
        let key = self.key(name)?;
        match self.open(&key)? {
            Some(entry) if entry.kind != kind => refuse(WRONG_TYPE),
            entry => Ok((key, entry)),
        }
    }

    /// Called before the first node below a key is set: a cut key keeps its name.
    pub(crate) fn begin(&mut self, key: &Key<'_>) -> Result<()> {
        if key.cut {
            self.session.set(&key.node, key.name)?;
        }
        Ok(())
    }

    /// Removes `key` with all it holds.
    pub(crate) fn erase(&mut self, key: &Key<'_>, entry: &Entry) -> Result<()> {
        if entry.plain {
            self.session.delete_value(&key.node)?;
            return Ok(());
        }
        self.session.delete_tree(&key.node)?;
        match entry.expires {
            Some(expires) => expiry::forget(self, key, expires),
            None => Ok(()),
        }
    }

    /// Removes a key whose last element has gone.
    pub(crate) fn empty(&mut self, key: &Key<'_>, entry: &Entry) -> Result<()> {
        self.erase(key, entry)?;
        self.tell_gone(key);
        Ok(())
    }

    /// The key has gone with its last element.
    pub(crate) fn tell_gone(&mut self, key: &Key<'_>) {
        self.notify(notify::GENERIC, "del", key.name);
    }

    /// Whether `node`, the first element of `key`, is all it holds: without its value the key is gone.
    pub(crate) fn is_all(&mut self, key: &Key<'_>, entry: &Entry, node: &Node) -> Result<bool> {
        if key.cut || entry.expires.is_some() {
            return Ok(false);
        }
        Ok(self.session.first_entry(&key.node, Bound::Excluded(NodeRef::from(node)))?.is_none())
    }

    /// Sets when `key` expires, or that it does not.
    pub(crate) fn set_expiry(&mut self, key: &Key<'_>, entry: &Entry, expires: Option<i64>) -> Result<()> {
        if let Some(old) = entry.expires {
            expiry::forget(self, key, old)?;
        }
        if entry.kind == Kind::String && !key.cut && entry.plain == expires.is_some() {
            let value = self.string(key, entry)?.to_owned_value();
            self.session.delete_tree(&key.node)?;
            return self.write_string(key, None, value, expires);
        }
        match expires {
            Some(expires) => expiry::note(self, key, expires),
            None => {
                self.session.delete_value(&key.expiry()?)?;
                Ok(())
            }
        }
    }

    /// Copies what lies at `from` to `to`, in place of `target`, which lies there now. The database of
    /// these keys is that of `to`.
    pub(crate) fn copy(
        &mut self,
        from: &Key<'_>,
        entry: &Entry,
        to: &Key<'_>,
        target: Option<&Entry>,
    ) -> Result<()> {
        if let Some(target) = target {
            self.erase(to, target)?;
        }
        if entry.kind == Kind::String {
            let value = self.string(from, entry)?.to_owned_value();
            return self.put_string(to, None, value, entry.expires);
        }
        self.begin(to)?;
        self.ready(to.name);
        self.notify(notify::NEW, "new", to.name);
        self.session.copy(&from.part(entry.kind)?, &to.part(entry.kind)?)?;
        if entry.kind == Kind::Zset {
            self.session.copy(&from.node.child(ORDER)?, &to.node.child(ORDER)?)?;
        }
        match entry.expires {
            Some(expires) => expiry::note(self, to, expires),
            None => Ok(()),
        }
    }

    /// Writes how many elements `key` holds now: with none left it is gone.
    pub(crate) fn set_count(
        &mut self,
        key: &Key<'_>,
        entry: Option<&Entry>,
        kind: Kind,
        count: i64,
    ) -> Result<()> {
        if count <= 0 {
            return match entry {
                Some(entry) => self.empty(key, entry),
                None => Ok(()),
            };
        }
        if entry.is_none() {
            self.begin(key)?;
            self.notify(notify::NEW, "new", key.name);
            if kind == Kind::Zset {
                self.ready(key.name);
            }
        }
        if entry.is_none_or(|entry| entry.figure != count) {
            self.session.set(&key.part(kind)?, count)?;
        }
        Ok(())
    }
}
