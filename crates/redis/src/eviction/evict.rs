//! Which key goes, by the rule of `maxmemory-policy`, and its removal.
//!
//! As in Redis a few keys are sampled and the best candidates of many samples are kept in a pool. A sample is
//! a place drawn by chance and the keys that follow it, since a place costs some dozens of searches, a step one.
//! Of keys with an expiry samples come from the index of expiries; `volatile-ttl` takes its first entry.
//!
//! Invariant: a key is removed only if it is there and as worthless as when it was sampled.

use std::sync::atomic::Ordering;

use perilune::{Cursor, Node, Session, ValueRef};

use crate::commit;
use crate::effects::Effects;
use crate::failure::Result;
use crate::keyspace;
use crate::keyspace::Keys;
use crate::memory::{lock, Candidate, Rates, POOL};
use crate::name::NAME;
use crate::notify;
use crate::random;
use crate::rules::Rules;
use crate::server::Server;
use crate::settings::{Name, Policy};
use perilune_net::clock::clock;

/// Samples that find nothing to evict before it is given up.
const TRIES: usize = 16;
/// Nodes of a key whose bytes are counted.
const COUNTED: usize = 64;

/// The database and the name of a key.
type Named = (i64, Vec<u8>);

/// What became of the wish to evict a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Evicted {
    /// One went, that took about so many bytes.
    Key(u64),
    /// None was found yet, since the index of expiries is full of keys that are gone; some of it was cleared.
    Entries,
    /// There is none that may go.
    Nothing,
}

/// Evicts one key.
pub(super) fn one(
    server: &Server,
    session: &mut Session,
    effects: &mut Effects,
    policy: Policy,
) -> Result<Evicted> {
    // NB: all that the pool holds may be gone, by FLUSHDB for example.
    for _ in 0..TRIES + POOL {
        let (mut sampled, is_all) = sample(server, session, effects, policy)?;
        let chosen = if policy.counts_uses() {
            let mut pool = lock(&server.measures().memory().pool);
            sampled.into_iter().for_each(|candidate| pool.add(candidate));
            pool.take()
        } else {
            sampled.pop()
        };
        let Some(candidate) = chosen else {
            return Ok(if is_all { Evicted::Nothing } else { Evicted::Entries });
        };
        // It may have been used since it came into the pool.
        if score(server, policy, candidate.database, &candidate.name) < candidate.score {
            continue;
        }
        if let Some(freed) = remove(session, effects, policy, &candidate)? {
            server.measures().figures().evicted.fetch_add(1, Ordering::Relaxed);
            return Ok(Evicted::Key(freed));
        }
    }
    Ok(Evicted::Nothing)
}

pub(super) fn rates(rules: &Rules) -> Rates {
    Rates { factor: rules.live().number(Name::LfuLogFactor), decay: rules.live().number(Name::LfuDecayTime) }
}

/// How gladly a key is evicted now.
fn score(server: &Server, policy: Policy, database: i64, name: &[u8]) -> i64 {
    if !policy.counts_uses() {
        return 0;
    }
    let known = server.measures().memory().uses.of(database, name, rates(server.rules()));
    if policy.is_lru() {
        i64::from(known.idle)
    } else {
        i64::from(u8::MAX - known.counter)
    }
}

/// Some keys that may go; and, if there is none, whether that is so in the whole database.
fn sample(
    server: &Server,
    session: &mut Session,
    effects: &mut Effects,
    policy: Policy,
) -> Result<(Vec<Candidate>, bool)> {
    let count = if policy.counts_uses() {
        server.rules().live().number(Name::MaxMemorySamples).max(1) as usize
    } else {
        1
    };
    let (names, is_all) = if policy.is_volatile() {
        of_index(session, count, policy == Policy::VolatileTtl)?
    } else {
        (of_keys(session, effects, count)?, true)
    };
    let candidate =
        |(database, name): Named| Candidate { score: score(server, policy, database, &name), database, name };
    Ok((names.into_iter().map(candidate).collect(), is_all))
}

/// Keys of one database, drawn by chance from those that have any.
fn of_keys(session: &mut Session, effects: &mut Effects, count: usize) -> Result<Vec<Named>> {
    let all = keyspace::databases(session)?;
    let first = random::below(all.len().max(1) as u64) as usize;
    for offset in 0..all.len() {
        let database = all[(first + offset) % all.len()];
        let mut keys = Keys::new(session, effects, database, clock(), false);
        let root = keys.root()?;
        let Some(picked) = keys.pick()? else { continue };
        let mut cursor = Cursor::children(&root).without_values();
        cursor.seek(&keys.key(&picked)?.node);
        let mut names = Vec::with_capacity(count);
        while names.len() < count && cursor.next(keys.session)? {
            let place = cursor.node()?;
            names.extend(keyspace::whole_name(keys.session, &place)?.map(|name| (database, name)));
        }
        return Ok(names);
    }
    Ok(Vec::new())
}

/// Keys that have an expiry: the first ones to expire, or by chance; and whether the index has been seen to its end.
fn of_index(session: &mut Session, count: usize, first: bool) -> Result<(Vec<Named>, bool)> {
    for _ in 0..TRIES {
        let (names, removed) = of_index_once(session, count, first)?;
        if !names.is_empty() || removed == 0 {
            return Ok((names, true));
        }
    }
    Ok((Vec::new(), false))
}

/// Keys that have an expiry, from one look at the index, and how many entries were about keys that are gone.
fn of_index_once(session: &mut Session, count: usize, first: bool) -> Result<(Vec<Named>, usize)> {
    let index = keyspace::expiries()?;
    let mut cursor = Cursor::subtree(&index).without_values();
    if !first {
        let Some(time) = keyspace::pick(session, &index)? else { return Ok((Vec::new(), 0)) };
        cursor.seek(&index.child(&time)?);
    }
    let (mut names, mut stale) = (Vec::with_capacity(count), Vec::new());
    while names.len() < count && stale.len() < COUNTED && cursor.next(session)? {
        let entry = cursor.node()?;
        match named(session, &entry)? {
            Some(name) => names.push(name),
            None => stale.push(entry),
        }
    }
    // What FLUSHDB has left there is in the way of what can go.
    if !stale.is_empty() {
        session.transaction(|session| {
            for entry in &stale {
                if named(session, entry)?.is_none() {
                    session.delete_value(entry)?;
                }
            }
            Ok(())
        })?;
    }
    Ok((names, stale.len()))
}

/// The key that an entry of the index is about; none if it does not expire then.
fn named(session: &mut Session, entry: &Node) -> Result<Option<Named>> {
    let Some((database, _)) = keyspace::is_due(session, entry)? else { return Ok(None) };
    let Some(key) = entry.last()? else { return Ok(None) };
    let place = Node::new(NAME)?.with(database)?.with(&key)?;
    Ok(keyspace::whole_name(session, &place)?.map(|name| (database, name)))
}

/// Removes a key, in a transaction; about how many bytes it took. None if it is not there, or not one of these.
fn remove(
    session: &mut Session,
    effects: &mut Effects,
    policy: Policy,
    candidate: &Candidate,
) -> Result<Option<u64>> {
    let before = effects.mark();
    let freed = session.transaction(|session| {
        effects.rewind(before);
        let mut keys = Keys::new(session, effects, candidate.database, clock(), true);
        let key = keys.key(&candidate.name)?;
        let Some(entry) = keys.open(&key)? else { return Ok(None) };
        if policy.is_volatile() && entry.expires.is_none() {
            return Ok(None);
        }
        let freed = bytes(keys.session, &key.node)?;
        keys.erase(&key, &entry)?;
        keys.notify(notify::EVICTED, "evicted", &candidate.name);
        commit::finish(effects, session)?;
        Ok(Some(freed))
    })?;
    Ok(freed)
}

/// Bytes of the first nodes of a key.
fn bytes(session: &mut Session, node: &Node) -> Result<u64> {
    let mut cursor = Cursor::subtree(node);
    let mut bytes = 0;
    for _ in 0..COUNTED {
        if !cursor.next(session)? {
            break;
        }
        let value = match cursor.value()? {
            Some(ValueRef::String(bytes)) => bytes.len(),
            _ => 8,
        };
        bytes += cursor.node_ref()?.encoded().len() + value;
    }
    Ok(bytes as u64)
}
