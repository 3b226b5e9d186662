//! Work that waits for others: locks, messages, watches; each with a check of its own.
//!
//! - Under a lock a number is read and written by two operations. It keeps its promises only if the lock
//!   excludes everybody, also when its holder is killed between the two.
//! - Messages are counted by the transactions that post and take them: the counts and what is left in the
//!   channel always agree, and numbers only rise.
//! - A watched number that has changed without a touch is a lost wake.

use std::path::Path;
use std::time::Duration;

use perilune_engine::Session;
use perilune_harness::bank::Random;
use perilune_harness::counters::Ledger;
use perilune_harness::number;
use perilune_store::{
    transact, Error, LockMode, LockOwner, LockRequest, Locks as _, Messages as _, Result, TransactionOptions,
    Watch as _, WatchRequest, WatchScope,
};

/// Longest wait for a lock; far below the time after which a worker counts as hanging.
const LOCK_WAIT: Duration = Duration::from_millis(300);
/// Longest wait of a watcher for a touch.
const WATCH_WAIT: Duration = Duration::from_millis(20);
/// A commit can be seen before its watchers are woken, for as long as its process is stopped in between.
const NOTICE_WAIT: Duration = Duration::from_secs(4);

/// Names of locks.
pub(crate) const LOCKS: u64 = 4;
const CHANNEL: &[u8] = b"storm";
const POSTED: &[u8] = b"messages\0posted";
const TAKEN: &[u8] = b"messages\0taken";
const LAST: &[u8] = b"messages\0last";

/// The number that is changed under lock `name`.
pub(crate) fn locked_key(name: u64) -> Vec<u8> {
    [b"locked\0", &name.to_be_bytes()[..]].concat()
}

fn lock_name(name: u64) -> Vec<u8> {
    [b"lock\0", &name.to_be_bytes()[7..], b"\0"].concat()
}

fn lock(session: &mut Session, owner: LockOwner, name: u64, mode: LockMode) -> Result<bool> {
    let name = lock_name(name);
    session.lock(owner, &[LockRequest { name: &name, ancestors: &[5], mode }], Some(LOCK_WAIT))
}

/// Adds 1 to a number under its lock, by a read and a write.
pub(crate) fn locked_increment(
    session: &mut Session,
    owner: LockOwner,
    name: u64,
    ledger: &mut Ledger,
) -> Result<()> {
    if !lock(session, owner, name, LockMode::Exclusive)? {
        return Ok(());
    }
    let failed = |source| Error::Io { action: "write the ledger", place: "ledger".into(), source };
    let key = locked_key(name);
    let old = number::get(session, &key)?;
    ledger.attempt().map_err(failed)?;
    number::set(session, &key, old + 1)?;
    ledger.acknowledge().map_err(failed)?;
    release(session, owner, name)
}

fn release(session: &mut Session, owner: LockOwner, name: u64) -> Result<()> {
    match session.unlock(owner, &lock_name(name))? {
        true => Ok(()),
        false => Err(Error::Internal(format!("lock {name} was held and cannot be released"))),
    }
}

/// Takes two locks in any order, or a shared one on all: circles of waiters come to be.
pub(crate) fn tangle(session: &mut Session, owner: LockOwner, random: &mut Random) -> Result<()> {
    let taken = if random.below(3) == 0 {
        let all = LockRequest { name: b"lock\0", ancestors: &[], mode: LockMode::Shared };
        session.lock(owner, &[all], Some(LOCK_WAIT)).map(drop)
    } else {
        let first = random.below(LOCKS);
        let second = (first + 1 + random.below(LOCKS - 1)) % LOCKS;
        lock(session, owner, first, LockMode::Exclusive)
            .and_then(|_| lock(session, owner, second, LockMode::Exclusive))
            .map(drop)
    };
    session.unlock_all(owner)?;
    match taken {
        Err(Error::Deadlock) => Ok(()),
        taken => taken,
    }
}

fn add(session: &mut Session, key: &[u8]) -> Result<()> {
    let old = number::get(session, key)?;
    number::set(session, key, old + 1)
}

/// Posts a message and counts it.
pub(crate) fn post(session: &mut Session, random: &mut Random) -> Result<()> {
    let body = vec![7; random.below(300) as usize];
    let posted = transact(session, &TransactionOptions::default(), |session| {
        session.post(CHANNEL, &body)?;
        add(session, POSTED)
    });
    match posted {
        Err(Error::ChannelFull) => Ok(()),
        posted => posted,
    }
}

/// Takes a message and counts it; false when there is none.
pub(crate) fn take(session: &mut Session) -> Result<bool> {
    transact(session, &TransactionOptions::default(), |session| {
        let Some(message) = session.receive(CHANNEL, Some(Duration::ZERO))? else { return Ok(false) };
        let last = number::get(session, LAST)?;
        if message.number <= last || message.body.iter().any(|byte| *byte != 7) {
            return Err(Error::Internal(format!("message {} came after message {last}", message.number)));
        }
        number::set(session, LAST, message.number)?;
        add(session, TAKEN)?;
        Ok(true)
    })
}

/// Takes all messages that are left and compares the counts. Nobody else may be at work.
pub(crate) fn check_messages(session: &mut Session) -> Result<std::result::Result<(), String>> {
    while take(session)? {}
    let (posted, taken) = (number::get(session, POSTED)?, number::get(session, TAKEN)?);
    Ok(if posted == taken { Ok(()) } else { Err(format!("messages: {posted} posted, {taken} taken")) })
}

/// Watches a number that others change.
pub(crate) fn watch(session: &mut Session, key: &[u8]) -> Result<()> {
    let id = session.watch(&[WatchRequest { key, scope: WatchScope::Key }])?;
    let before = number::get(session, key)?;
    let touched = session.wait(id, Some(WATCH_WAIT))?;
    if !touched && number::get(session, key)? != before && !session.wait(id, Some(NOTICE_WAIT))? {
        return Err(Error::Internal("a watched number has changed and nobody was told".to_owned()));
    }
    session.unwatch(id);
    Ok(())
}

/// Where the promises of worker `worker` for the number under lock `name` are.
pub(crate) fn ledger_path(dir: &Path, name: u64, worker: usize) -> std::path::PathBuf {
    dir.join(format!("locked-{name}-{worker}"))
}
