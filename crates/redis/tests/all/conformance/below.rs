//! A store whose keys are nodes below one of another store, and whose values are strings there.
//!
//! The suite of `perilune_harness` writes keys of any bytes; a server takes only those that name nodes. So each byte of a key
//! becomes a subscript, by a code of seven bytes of which none is a prefix of another: order, prefixes and what lies between
//! two keys stay as they were. The name of the root is so long that the longest key of the suite is the longest of the
//! server's, and each store has a root of its own. Nothing else is done here: what the store below does wrong is seen.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use perilune_store::{
    entry_by_step, transact, Absent, Added, Addition, Bulk, Change, ChannelOptions, CommitHook, Decision,
    Entries, Error, Facets, Limits, LockOwner, LockRequest, Locks, Message, Messages, Page, Presence, Result,
    Scan, Session, Span, Store, TransactionOptions, Transactions, Watch, WatchId, WatchRequest, Write,
    Writes,
};

/// Bytes of the root's key, and of the code of a byte: 255 of these fill a key.
const ROOT: usize = 115;
const CODE: usize = 7;
const STRING: u8 = 7;

fn code(byte: u8) -> [u8; CODE] {
    let [high, low] = (2 * u16::from(byte)).to_be_bytes();
    [0xE5, 0x80, 0, 0, 0, high, low]
}

/// What keys are called below.
#[derive(Clone)]
struct Names {
    root: Vec<u8>,
    key_bytes: usize,
}

impl Names {
    fn new(number: u32, limits: &Limits) -> Names {
        let name = format!("t{number:0>width$}\0", width = ROOT - 2);
        Names { root: name.into_bytes(), key_bytes: (limits.key_bytes - ROOT) / CODE }
    }

    fn down(&self, key: &[u8]) -> Vec<u8> {
        let (key, end): (_, &[u8]) = match key.split_last() {
            // Where a search begins behind all below the longest key.
            Some((0xFF, rest)) if rest.len() == self.key_bytes => (rest, &[0xFF]),
            _ => (key, &[]),
        };
        let codes = key.iter().flat_map(|byte| code(*byte));
        self.root.iter().copied().chain(codes).chain(end.iter().copied()).collect()
    }

    /// Where a search ends: what lies behind the root belongs to others.
    fn end(&self, end: &[u8]) -> Vec<u8> {
        match end {
            [] => [&self.root[..], &[0xFF]].concat(),
            end => self.down(end),
        }
    }

    fn up(&self, key: &[u8]) -> Vec<u8> {
        let codes = key.strip_prefix(&self.root[..]).expect("a key of this store");
        let (codes, rest) = codes.as_chunks::<CODE>();
        assert!(rest.is_empty(), "a key of this store");
        codes.iter().map(|code| (u16::from_be_bytes([code[5], code[6]]) / 2) as u8).collect()
    }

    fn told(&self, error: Error) -> Error {
        match error {
            Error::KeyTooLong { bytes, .. } => {
                Error::KeyTooLong { bytes: (bytes - ROOT).div_ceil(CODE), limit: self.key_bytes }
            }
            Error::ValueTooLong { bytes, limit } => {
                Error::ValueTooLong { bytes: bytes - 1, limit: limit - 1 }
            }
            other => other,
        }
    }
}

fn string(value: &[u8]) -> Vec<u8> {
    [&[STRING], value].concat()
}

fn strip(value: &mut Vec<u8>) {
    assert_eq!(value.remove(0), STRING, "all values here are strings");
}

/// See the head of this module.
#[derive(Clone)]
pub(super) struct Below<S> {
    store: S,
    names: Arc<Names>,
    limits: Limits,
}

impl<S: Store> Below<S> {
    pub(super) fn new(store: S, number: u32) -> Below<S> {
        let below = store.limits().clone();
        let names = Names::new(number, &below);
        let limits = Limits {
            key_bytes: names.key_bytes,
            value_bytes: below.value_bytes - 1,
            update_bytes: below.update_bytes - 1,
            ..below
        };
        Below { store, names: Arc::new(names), limits }
    }
}

impl<S: Store> Store for Below<S> {
    type Session = BelowSession<S::Session>;
    type Snapshots = Absent;
    type Reports = Absent;

    fn session(&self) -> Result<Self::Session> {
        let (inner, limit) = (self.store.session()?, self.limits.update_bytes);
        Ok(BelowSession { inner, names: Arc::clone(&self.names), limit })
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    fn snapshots(&self) -> Option<&Absent> {
        None
    }

    fn reports(&self) -> Option<&Absent> {
        None
    }
}

/// A session of [`Below`].
pub(super) struct BelowSession<T> {
    pub(super) inner: T,
    names: Arc<Names>,
    /// Bytes of a value that an update shows.
    limit: usize,
}

impl<T: Bulk + Facets> BelowSession<T> {
    /// Runs something on the store below, and tells its errors in the terms of this one.
    fn with<R>(&mut self, run: impl FnOnce(&mut T, &Names) -> Result<R>) -> Result<R> {
        let names = Arc::clone(&self.names);
        run(&mut self.inner, &names).map_err(|error| names.told(error))
    }

    /// Gives what a search has found.
    fn found(
        &mut self,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
        run: impl FnOnce(&mut T, &Names, &mut Vec<u8>, Option<&mut Vec<u8>>) -> Result<bool>,
    ) -> Result<bool> {
        let (mut deep, mut bytes) = (Vec::new(), Vec::new());
        let wanted = value.is_some().then_some(&mut bytes);
        if !self.with(|inner, names| run(inner, names, &mut deep, wanted))? {
            return Ok(false);
        }
        *key = self.names.up(&deep);
        if let Some(value) = value {
            *value = bytes;
            strip(value);
        }
        Ok(true)
    }
}

impl<T: Bulk + Facets> Session for BelowSession<T> {
    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let is_there = self.with(|inner, names| inner.get(&names.down(key), value))?;
        if is_there {
            strip(value);
        }
        Ok(is_there)
    }

    fn presence(&mut self, key: &[u8]) -> Result<Presence> {
        self.with(|inner, names| inner.presence(&names.down(key)))
    }

    fn next_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.found(key, value, |inner, names, key, value| {
            inner.next_within(&names.down(from), inclusive, &names.end(end), key, value)
        })
    }

    fn previous_within(
        &mut self,
        from: &[u8],
        begin: &[u8],
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        self.found(key, value, |inner, names, key, value| {
            inner.previous_within(&names.down(from), &names.down(begin), key, value)
        })
    }

    fn page(&mut self, span: &Span<'_>, with_values: bool, page: &mut Page) -> Result<()> {
        let mut deep = Page::default();
        self.with(|inner, names| {
            let (low, high) = (names.down(span.low), names.down(span.high));
            inner.page(&Span { low: &low, high: &high, ..*span }, with_values, &mut deep)
        })?;
        page.clear();
        for (key, value) in deep.iter() {
            page.push(&self.names.up(key), if with_values { &value[1..] } else { value });
        }
        if deep.is_last() {
            page.end();
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Result<()> {
        self.with(|inner, names| inner.set(&names.down(key), &string(value)))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        self.with(|inner, names| inner.remove(&names.down(key)))
    }

    fn remove_prefix(&mut self, prefix: &[u8]) -> Result<()> {
        self.with(|inner, names| inner.remove_prefix(&names.down(prefix)))
    }

    fn add(&mut self, key: &[u8], addition: Addition<'_>) -> Result<Added> {
        self.update(key, addition.sum).map(|()| Added::Here)
    }

    fn update(&mut self, key: &[u8], change: &mut Change<'_>) -> Result<()> {
        let mut is_long = false;
        self.with(|inner, names| {
            inner.update(&names.down(key), &mut |old, buffer| {
                let mut own = [0; 64];
                let decision = change(old.map(|old| &old[1..]), &mut own)?;
                let Decision::Write(bytes) = decision else { return Ok(decision) };
                is_long = bytes == buffer.len();
                if is_long {
                    return Ok(Decision::Keep);
                }
                buffer[0] = STRING;
                buffer[1..=bytes].copy_from_slice(&own[..bytes]);
                Ok(Decision::Write(bytes + 1))
            })
        })?;
        if !is_long {
            return Ok(());
        }
        // With its type in front it is a byte more than the buffer takes.
        transact(self, &TransactionOptions::default(), |session| {
            let (mut value, mut own) = (Vec::new(), [0; 64]);
            let old = session.get(key, &mut value)?.then(|| &value[..value.len().min(session.limit)]);
            match change(old, &mut own)? {
                Decision::Keep => Ok(()),
                Decision::Write(bytes) => session.set(key, &own[..bytes]),
                Decision::Remove => session.remove(key).map(drop),
            }
        })
    }

    fn compare_and_set(&mut self, key: &[u8], expected: Option<&[u8]>, new: Option<&[u8]>) -> Result<bool> {
        let (expected, new) = (expected.map(string), new.map(string));
        self.with(|inner, names| inner.compare_and_set(&names.down(key), expected.as_deref(), new.as_deref()))
    }

    fn set_commit_hook(&mut self, hook: Option<CommitHook>) {
        let names = Arc::clone(&self.names);
        self.inner.set_commit_hook(hook.map(|mut hook| -> CommitHook {
            Box::new(move |writes| hook(&mut BelowWrites { writes, names: &names }))
        }));
    }
}

struct BelowWrites<'w> {
    writes: &'w mut dyn Writes,
    names: &'w Names,
}

impl Writes for BelowWrites<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(Write<'_>)) {
        self.writes.for_each(&mut |write| match write {
            Write::RemovePrefix(key) => visit(Write::RemovePrefix(&self.names.up(key))),
            Write::Set(key, value) => visit(Write::Set(&self.names.up(key), &value[1..])),
            Write::Remove(key) => visit(Write::Remove(&self.names.up(key))),
        });
    }

    fn set(&mut self, key: &[u8], value: &[u8]) {
        self.writes.set(&self.names.down(key), &string(value));
    }

    fn remove(&mut self, key: &[u8]) {
        self.writes.remove(&self.names.down(key));
    }

    fn get(&mut self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        let is_there = self.writes.get(&self.names.down(key), value)?;
        if is_there {
            strip(value);
        }
        Ok(is_there)
    }
}

impl<T: Bulk + Facets> Bulk for BelowSession<T> {
    fn get_pieces(
        &mut self,
        key: &[u8],
        pieces: &[Range<usize>],
        out: &mut Vec<u8>,
    ) -> Result<Option<usize>> {
        let behind = |at: usize| at.saturating_add(1);
        let pieces: Vec<_> = pieces.iter().map(|piece| behind(piece.start)..behind(piece.end)).collect();
        let length = self.with(|inner, names| inner.get_pieces(&names.down(key), &pieces, out))?;
        Ok(length.map(|length| length - 1))
    }

    fn set_piece(&mut self, key: &[u8], offset: usize, bytes: &[u8]) -> Result<Option<usize>> {
        let length = self.with(|inner, names| inner.set_piece(&names.down(key), offset + 1, bytes))?;
        Ok(length.map(|length| length - 1))
    }

    fn preview_within(
        &mut self,
        from: &[u8],
        inclusive: bool,
        end: &[u8],
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        self.found(key, Some(value), |inner, names, key, value| {
            let value = value.expect("one is wanted");
            inner.preview_within(&names.down(from), inclusive, &names.end(end), key, value)
        })
    }

    fn entries(&mut self, scan: &Scan<'_>, out: &mut Entries) -> Result<bool> {
        entry_by_step(self, scan, out)
    }

    fn are_current(&self, _entries: &Entries) -> bool {
        false
    }

    fn set_each(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        self.with(|inner, names| {
            let deep: Vec<_> = pairs.iter().map(|(key, value)| (names.down(key), string(value))).collect();
            let deep: Vec<_> = deep.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            inner.set_each(&deep)
        })
    }

    fn count(&mut self, span: &Span<'_>, key: &mut Vec<u8>) -> Result<u64> {
        let mut deep = Vec::new();
        let count = self.with(|inner, names| {
            let (low, high) = (names.down(span.low), names.down(span.high));
            inner.count(&Span { low: &low, high: &high, ..*span }, &mut deep)
        })?;
        if count == span.most && count > 0 {
            *key = self.names.up(&deep);
        }
        Ok(count)
    }

    fn estimate(&mut self, _: &[u8], _: &[u8]) -> Result<Option<u64>> {
        Ok(None)
    }

    fn count_groups(
        &mut self,
        _: &Span<'_>,
        _: &dyn Fn(&[u8]) -> usize,
        _: &mut Vec<u8>,
    ) -> Result<Option<u64>> {
        Ok(None)
    }
}

impl<T: Bulk + Facets> Transactions for BelowSession<T> {
    fn begin(&mut self, options: &TransactionOptions) -> Result<()> {
        self.inner.begin(options)
    }

    fn commit(&mut self) -> Result<()> {
        self.with(|inner, _| inner.commit())
    }

    fn rollback(&mut self) -> Result<()> {
        self.inner.rollback()
    }

    fn depth(&self) -> usize {
        self.inner.depth()
    }

    fn validate(&mut self) -> Result<()> {
        self.inner.validate()
    }

    fn retry(&mut self) -> Result<()> {
        self.inner.retry()
    }

    fn give_up(&mut self) {
        self.inner.give_up();
    }

    fn restarts(&self) -> u32 {
        self.inner.restarts()
    }
}

impl<T: Bulk + Facets> Facets for BelowSession<T> {
    type Locks = Self;
    type Watch = Self;
    type Messages = Self;
    type Deferral = Absent;
    type Optimistic = Absent;
    type ReadSets = Absent;
    type Bounds = Absent;
    type Granular = Absent;
    type Programs = Absent;

    fn locks(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn watches(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn messages(&mut self) -> Option<&mut Self> {
        Some(self)
    }

    fn deferral(&mut self) -> Option<&mut Absent> {
        None
    }

    fn optimistic(&mut self) -> Option<&mut Absent> {
        None
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

/// A facet that the store below has: the test says which these are.
fn has<T>(facet: Option<&mut T>) -> &mut T {
    facet.expect("the store below has it")
}

impl<T: Bulk + Facets> Locks for BelowSession<T> {
    fn new_lock_owner(&mut self) -> LockOwner {
        has(self.inner.locks()).new_lock_owner()
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        // NB: a server finds out the ancestors by itself.
        let names: Vec<_> = requests.iter().map(|request| self.names.down(request.name)).collect();
        let requests = requests.iter().zip(&names);
        let deep: Vec<_> = requests
            .map(|(request, name)| LockRequest { name, ancestors: &[], mode: request.mode })
            .collect();
        has(self.inner.locks()).lock(owner, &deep, timeout)
    }

    fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> Result<bool> {
        let name = self.names.down(name);
        has(self.inner.locks()).unlock(owner, &name)
    }

    fn unlock_all(&mut self, owner: LockOwner) -> Result<()> {
        has(self.inner.locks()).unlock_all(owner)
    }

    fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> Result<u32> {
        let name = self.names.down(name);
        has(self.inner.locks()).lock_count(owner, &name)
    }
}

impl<T: Bulk + Facets> Watch for BelowSession<T> {
    fn watch(&mut self, requests: &[WatchRequest<'_>]) -> Result<WatchId> {
        let keys: Vec<_> = requests.iter().map(|request| self.names.down(request.key)).collect();
        let requests = requests.iter().zip(&keys);
        let deep: Vec<_> =
            requests.map(|(request, key)| WatchRequest { key, scope: request.scope }).collect();
        has(self.inner.watches()).watch(&deep)
    }

    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        has(self.inner.watches()).wait(id, timeout)
    }

    fn watch_descriptor(&mut self, id: WatchId) -> Result<i32> {
        has(self.inner.watches()).watch_descriptor(id)
    }

    fn unwatch(&mut self, id: WatchId) {
        has(self.inner.watches()).unwatch(id);
    }
}

impl<T: Bulk + Facets> BelowSession<T> {
    /// Channels are of the whole database: their names begin with the root's.
    fn channel(&self, name: &[u8]) -> Vec<u8> {
        // NB: and have no zeros.
        let bytes: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
        [&self.names.root[..ROOT - 1], bytes.as_bytes()].concat()
    }
}

impl<T: Bulk + Facets> Messages for BelowSession<T> {
    fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> Result<()> {
        let name = self.channel(name);
        has(self.inner.messages()).create_channel(&name, options)
    }

    fn post(&mut self, name: &[u8], body: &[u8]) -> Result<u64> {
        let name = self.channel(name);
        has(self.inner.messages()).post(&name, body)
    }

    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        let name = self.channel(name);
        has(self.inner.messages()).receive(&name, timeout)
    }

    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        let name = self.channel(name);
        has(self.inner.messages()).follow(&name, after, timeout)
    }

    fn remove_channel(&mut self, name: &[u8]) -> Result<()> {
        let name = self.channel(name);
        has(self.inner.messages()).remove_channel(&name)
    }
}
