//! ACL LOG: what this server has refused lately, and what all have told of theirs.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Progress, Replies, RequestParser};

use crate::question::Answer;
use perilune_net::clock::clock;

/// Within which time the same refusal counts up instead of being kept again.
const SAME: Duration = Duration::from_secs(60);

/// Bytes that are kept of what was refused, and of the name of who was.
const SHOWN: usize = 256;

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
        entry.object.truncate(SHOWN);
        let end = (0..=SHOWN).rev().find(|end| entry.user.is_char_boundary(*end));
        entry.user.truncate(end.unwrap_or(0));
        let same = entries.iter().position(|known| {
            (known.reason, known.context, &known.object, &known.user)
                == (entry.reason, entry.context, &entry.object, &entry.user)
                && known.last.elapsed() < SAME
        });
        if let Some(known) = same.and_then(|place| entries.remove(place)) {
            entry = Entry { count: known.count + 1, id: known.id, created: known.created, ..entry };
        } else {
            entry.id = *next;
            *next += 1;
        }
        entries.push_front(entry);
        entries.truncate(most);
    }

    /// What ACL LOG is answered by this server: its entries, each as a request of its fields; or they are dropped.
    pub(crate) fn asked(&self, words: Arguments<'_>) -> Answer {
        let mut answer = Answer::default();
        if words.get(2).is_some_and(|word| word.eq_ignore_ascii_case(b"reset")) {
            self.clear();
            return answer;
        }
        for entry in &self.entries().1 {
            let numbers =
                [entry.count, entry.id as i64, entry.created, entry.updated].map(|it| it.to_string());
            let texts = [entry.reason, entry.context, &entry.user, &entry.client].map(str::as_bytes);
            let words = numbers.iter().map(String::as_bytes).chain(texts).chain([&entry.object[..]]);
            words.collect::<ArgumentsBuf>().write_request(&mut answer.lines);
        }
        answer
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries().1.len()
    }

    fn clear(&self) {
        self.entries().1.clear();
    }
}

/// Replies what servers have answered, the newest `most` first.
pub(crate) fn reply(mut told: &[u8], most: usize, replies: &mut Replies<'_>) {
    let mut entries: Vec<ArgumentsBuf> = Vec::new();
    let mut parser = RequestParser::default();
    while let Ok(Progress::Complete { used }) = parser.parse(told, true) {
        entries.push(parser.arguments(told).to_owned());
        told = &told[used..];
    }
    let number = |entry: &ArgumentsBuf, index: usize| {
        entry.as_arguments().get(index).and_then(parse_integer).unwrap_or(0)
    };
    entries.sort_by_key(|entry| std::cmp::Reverse(number(entry, 3)));
    entries.truncate(most);
    replies.array(entries.len());
    let now = clock();
    for entry in &entries {
        replies.map(10);
        replies.bulk(b"count");
        replies.integer(number(entry, 0));
        let text = |field: &str, index: usize, replies: &mut Replies<'_>| {
            replies.bulk(field.as_bytes());
            replies.bulk(entry.as_arguments().get(index).unwrap_or_default());
        };
        for (field, index) in [("reason", 4), ("context", 5), ("object", 8), ("username", 6)] {
            text(field, index, replies);
        }
        replies.bulk(b"age-seconds");
        replies.double((now - number(entry, 2)).max(0) as f64 / 1_000.0);
        text("client-info", 7, replies);
        for (field, index) in [("entry-id", 1), ("timestamp-created", 2), ("timestamp-last-updated", 3)] {
            replies.bulk(field.as_bytes());
            replies.integer(number(entry, index));
        }
    }
}
