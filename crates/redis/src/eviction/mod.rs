//! `maxmemory`: what the database takes, whether that is too much, and room for what wants to be written.
//!
//! What counts is the pages of the file that hold something now: all of the database, nodes of programs too, since
//! that is what an operator has to provide; not what only the last checkpoint or a snapshot keeps, since that goes by
//! itself, and not the memory of servers, since the kernel bounds that.
//!
//! Invariants
//! - Without `maxmemory` a command pays one load.
//! - A command evicts at most [`EVICTED_AT_ONCE`] keys, and some more for each KiB that it brings.
//! - A command is refused only by a fresh measure.
//!
//! Deliberately absent: eviction for what programs write by node; they have `max_size`.

mod evict;

use std::sync::atomic::Ordering;
use std::time::Instant;

use perilune::{Serving, Session};
use perilune_resp::Arguments;

use self::evict::Evicted;
use crate::command::{Command, GROWS, IMMEDIATE, QUEUED};
use crate::context::Context;
use crate::effects::Effects;
use crate::failure::Result;
use crate::memory::{Use, BEGIN};
use crate::rules::Rules;
use crate::server::Server;
use crate::settings::{Name, Policy};

/// The refusal of a command that would need more memory.
pub(crate) const FULL: &str = "OOM command not allowed when used memory > 'maxmemory'.";

/// Keys that a small command evicts at most.
const EVICTED_AT_ONCE: usize = 8;

/// What commands may bring, as a part of the limit, before it is measured anew in any case.
const PART: u64 = 64;

/// Whether there is a limit at all.
#[inline]
pub(crate) fn is_limited(rules: &Rules) -> bool {
    rules.live().number(Name::MaxMemory) > 0
}

impl Context<'_> {
    /// Whether a command may run as far as memory goes; evicts keys if the policy says so, each in a transaction of its
    /// own. EXEC may if all that is queued may.
    #[cold]
    pub(crate) fn has_room(&mut self, command: &Command, arguments: Arguments<'_>) -> bool {
        // What is queued takes memory, too.
        if command.is(GROWS) || self.client.queue.is_some() && !command.is(IMMEDIATE) {
            return self.make_room(arguments.iter().map(<[u8]>::len).sum::<usize>() as u64);
        }
        let queue = self.client.queue.as_ref().filter(|queue| command.is(QUEUED) && !queue.failed);
        let grows = queue.filter(|queue| queue.commands.iter().any(|(command, _)| command.is(GROWS)));
        grows.map(|queue| queue.bytes as u64).is_none_or(|bytes| self.make_room(bytes))
    }

    /// Sees to it that there is room for so many bytes: true if there is, or is about to be.
    pub(crate) fn make_room(&mut self, bytes: u64) -> bool {
        // Inside a transaction it is too late: what it reads must stay. It was asked before.
        if self.session.depth() > 0 {
            return true;
        }
        // A database that cannot be measured tells what is wrong with it when it is written to.
        make_room(self.server, self.session, self.effects, bytes).unwrap_or(true)
    }

    /// Notes that a command uses its keys, for the policies that count uses.
    #[cold]
    pub(crate) fn note_uses(&mut self, command: &Command, arguments: Arguments<'_>) {
        let untouched = self.client.leaves_untouched && command.name != "touch";
        if untouched || UNTOUCHING.contains(&command.name) {
            return;
        }
        let (uses, rates) = (&self.server.measures().memory().uses, evict::rates(self.server.rules()));
        for place in command.key_places(arguments).unwrap_or_default() {
            if let Some(key) = arguments.get(place) {
                uses.note(self.client.database, key, rates);
            }
        }
    }
}

/// Commands that ask about keys without using them.
const UNTOUCHING: [&str; 7] = ["exists", "expiretime", "object", "pexpiretime", "pttl", "ttl", "type"];

/// Whether the policy counts uses.
#[inline]
pub(crate) fn counts_uses(rules: &Rules) -> bool {
    policy(rules).counts_uses()
}

/// What `maxmemory-policy` says.
pub(crate) fn policy(rules: &Rules) -> Policy {
    Policy::of(rules.live().number(Name::MaxMemoryPolicy))
}

/// What is known of a key's uses.
pub(crate) fn uses_of(server: &Server, database: i64, key: &[u8]) -> Use {
    server.measures().memory().uses.of(database, key, evict::rates(server.rules()))
}

/// How RESTORE says that a key was used before.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Before {
    Idle(u32),
    Counter(u8),
}

/// A key has been restored: used now, unless it is said how before; of that counts what the policy counts.
pub(crate) fn restored(server: &Server, database: i64, key: &[u8], before: Option<Before>) {
    let (uses, policy) = (&server.measures().memory().uses, policy(server.rules()));
    match before {
        _ if !policy.counts_uses() => {}
        Some(Before::Idle(idle)) if policy.is_lru() => uses.set(database, key, Use { idle, counter: BEGIN }),
        Some(Before::Counter(counter)) if policy.is_lfu() => {
            uses.set(database, key, Use { idle: 0, counter })
        }
        _ => uses.note(database, key, evict::rates(server.rules())),
    }
}

fn make_room(server: &Server, session: &mut Session, effects: &mut Effects, bytes: u64) -> Result<bool> {
    let memory = server.measures().memory();
    let most = server.rules().live().number(Name::MaxMemory).max(0) as u64;
    if most == 0 {
        return Ok(true);
    }
    let brought = memory.brought.fetch_add(bytes, Ordering::Relaxed) + bytes;
    let much = brought > most / PART;
    let used = if much { memory.used_now(server.database()) } else { memory.used(server.database()) };
    if used? <= most {
        return Ok(true);
    }
    let policy = policy(server.rules());
    if policy == Policy::NoEviction {
        return Ok(memory.used_now(server.database())? <= most);
    }
    // Twice of what comes, so that what is used shrinks until pages are free.
    let (mut wanted, mut evicted, begun) = (2 * bytes + 1, 0, Instant::now());
    let keys = EVICTED_AT_ONCE + (bytes / 1_024) as usize;
    while wanted > 0 && evicted < keys {
        session.free_up(true);
        let one = evict::one(server, session, effects, policy);
        session.free_up(false);
        match one? {
            Evicted::Key(freed) => {
                wanted = wanted.saturating_sub(freed);
                evicted += 1;
            }
            // The next command goes on: what is cleared is room, too.
            Evicted::Entries => return Ok(true),
            Evicted::Nothing => break,
        }
    }
    server.note_delay("eviction-cycle", begun.elapsed());
    Ok(evicted > 0 || memory.used_now(server.database())? <= most)
}
