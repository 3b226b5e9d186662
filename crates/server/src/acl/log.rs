//! ACL LOG: what this server has refused lately.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Within which time the same refusal counts up instead of being kept again.
const SAME: Duration = Duration::from_secs(60);

/// Refusals of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) id: u64,
    pub(crate) count: i64,
    /// auth, command, key, channel.
    pub(crate) reason: &'static str,
    /// toplevel, multi, lua.
    pub(crate) context: &'static str,
    /// What was refused.
    pub(crate) object: Vec<u8>,
    pub(crate) user: String,
    /// As in CLIENT LIST.
    pub(crate) client: String,
    pub(crate) since: Instant,
    pub(crate) last: Instant,
    /// Milliseconds since 1970.
    pub(crate) created: i64,
    pub(crate) updated: i64,
}

/// The newest first.
#[derive(Debug, Default)]
pub(crate) struct Log(Mutex<(u64, VecDeque<Entry>)>);

impl Log {
    fn entries(&self) -> MutexGuard<'_, (u64, VecDeque<Entry>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a refusal, `most` of them at most.
    pub(crate) fn add(&self, mut entry: Entry, most: usize) {
        let (next, entries) = &mut *self.entries();
        entry.object.truncate(256);
        let same = entries.iter().position(|known| {
            (known.reason, known.context, &known.object, &known.user)
                == (entry.reason, entry.context, &entry.object, &entry.user)
                && known.last.elapsed() < SAME
        });
        if let Some(known) = same.and_then(|place| entries.remove(place)) {
            entry = Entry {
                count: known.count + 1,
                id: known.id,
                since: known.since,
                created: known.created,
                ..entry
            };
        } else {
            entry.id = *next;
            *next += 1;
        }
        entries.push_front(entry);
        entries.truncate(most);
    }

    pub(crate) fn newest(&self, count: usize) -> Vec<Entry> {
        self.entries().1.iter().take(count).cloned().collect()
    }

    pub(crate) fn clear(&self) {
        self.entries().1.clear();
    }
}
