//! What clients of a measurement send, and what must be answered to it.
//!
//! Invariants
//! - Requests are made before the clock runs, and shared by all connections.
//! - Every answer is compared: strings and states to the last byte, numbers by their kind.
//! - What LPUSH pushes in a number of requests, LPOP pops in as many: an empty list is a wrong answer.

use serde::{Deserialize, Serialize};

use crate::data::Random;
use crate::subject::Result;

/// Keys that strings are set and read at.
const KEYS: u64 = 10_000;
/// Lists, hashes, sets and sorted sets.
const COLLECTIONS: u64 = 1_000;
/// Fields and members that may be in each.
const MEMBERS: u64 = 1_000;
/// Keys of one MSET, as redis-benchmark has them.
const MSET: u64 = 10;
/// The value of all strings, and its bulk.
const VALUE: &str = "value-0123456789";
const BULK: &[u8] = b"$16\r\nvalue-0123456789\r\n";

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Job {
    Set,
    Get,
    Incr,
    Lpush,
    Lpop,
    Sadd,
    Hset,
    Zadd,
    Mset,
    /// A script of so many calls, GET and SET in turn.
    Eval(usize),
    /// The calls of a script as single requests, each sent when the one before it is answered.
    Trips(usize),
    /// Nothing: what any request costs.
    Ping,
    /// Every key of [`Job::Get`] is set once, when this is done [`Job::whole`] times.
    Fill,
}

/// The commands that are compared, with their names; pops behind pushes.
pub(crate) const COMMANDS: [(&str, Job); 9] = [
    ("SET", Job::Set),
    ("GET", Job::Get),
    ("INCR", Job::Incr),
    ("LPUSH", Job::Lpush),
    ("LPOP", Job::Lpop),
    ("SADD", Job::Sadd),
    ("HSET", Job::Hset),
    ("ZADD", Job::Zadd),
    ("MSET", Job::Mset),
];

/// What is to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Exactly(&'static [u8]),
    /// An integer.
    Number,
}

impl Expected {
    /// Is this whole reply right?
    #[inline]
    pub(crate) fn suits(self, reply: &[u8]) -> bool {
        match self {
            Expected::Exactly(bytes) => reply == bytes,
            Expected::Number => reply[0] == b':',
        }
    }
}

/// Requests that are sent at once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) bytes: Vec<u8>,
    pub(crate) expected: Vec<Expected>,
}

/// All batches of a job, to be sent one after the other and again from the first.
#[derive(Clone, Debug)]
pub(crate) struct Requests {
    pub(crate) batches: Vec<Batch>,
    /// Batches of one operation, each sent when the one before it is answered.
    pub(crate) exchanges: usize,
}

impl Job {
    /// The requests, `pipeline` in a batch.
    pub(crate) fn requests(self, pipeline: usize) -> Requests {
        let mut random = Random::new(pipeline as u64);
        // A whole number of rounds over the collections.
        let batches = (KEYS / pipeline as u64).next_multiple_of(COLLECTIONS);
        let mut number = 0;
        let mut batch = || {
            let mut batch = Batch::default();
            for _ in 0..pipeline {
                self.add(number, &mut random, &mut batch);
                number += 1;
            }
            batch
        };
        let batches = (0..batches).map(|_| batch()).collect();
        let exchanges = if let Job::Trips(calls) = self { calls } else { 1 };
        Requests { batches, exchanges }
    }

    /// Operations that do it once for each key; 0 where that means nothing.
    pub(crate) fn whole(self) -> u64 {
        match self {
            Job::Fill => KEYS,
            _ => 0,
        }
    }

    fn add(self, number: u64, random: &mut Random, batch: &mut Batch) {
        let key = |at: u64| format!("key:{at:012}");
        let of = |kind: &str| format!("{kind}:{:06}", number % COLLECTIONS);
        let mut any = || key(random.below(KEYS));
        let ok = Expected::Exactly(b"+OK\r\n");
        let bulk = Expected::Exactly(BULK);
        let (words, expected): (Vec<String>, Expected) = match self {
            Job::Set => (vec!["SET".into(), any(), VALUE.into()], ok),
            Job::Fill => (vec!["SET".into(), key(number % KEYS), VALUE.into()], ok),
            Job::Get => (vec!["GET".into(), any()], bulk),
            Job::Incr => (vec!["INCR".into(), any().replace("key", "counter")], Expected::Number),
            Job::Lpush => (vec!["LPUSH".into(), of("list"), VALUE.into()], Expected::Number),
            Job::Lpop => (vec!["LPOP".into(), of("list")], bulk),
            Job::Sadd => (vec!["SADD".into(), of("set"), member(random)], Expected::Number),
            Job::Hset => (vec!["HSET".into(), of("hash"), member(random), VALUE.into()], Expected::Number),
            Job::Zadd => {
                let score = random.below(1_000_000).to_string();
                (vec!["ZADD".into(), of("zset"), score, member(random)], Expected::Number)
            }
            Job::Mset => {
                let mut words = vec!["MSET".to_owned()];
                for _ in 0..MSET {
                    words.extend([any(), VALUE.to_owned()]);
                }
                (words, ok)
            }
            Job::Ping => (vec!["PING".into()], Expected::Exactly(b"+PONG\r\n")),
            Job::Eval(calls) => (vec!["EVAL".into(), script(calls), "1".into(), any(), VALUE.into()], bulk),
            Job::Trips(calls) => match number % calls.max(1) as u64 % 2 {
                0 => (vec!["GET".into(), any()], bulk),
                _ => (vec!["SET".into(), any(), VALUE.into()], ok),
            },
        };
        request(&mut batch.bytes, &words);
        batch.expected.push(expected);
    }
}

fn member(random: &mut Random) -> String {
    format!("member:{:06}", random.below(MEMBERS))
}

/// GET and SET in turn, and what was read last: written out if that is short.
fn script(calls: usize) -> String {
    const GET: &str = "v=redis.call('GET',KEYS[1]) ";
    const SET: &str = "redis.call('SET',KEYS[1],ARGV[1]) ";
    match calls {
        0..=10 => {
            let calls: String = (0..calls).map(|call| if call % 2 == 0 { GET } else { SET }).collect();
            format!("local v {calls}return v")
        }
        _ => format!("local v for i=1,{} do {GET}{SET}end return v", calls / 2),
    }
}

/// Adds a request to what is to be sent.
pub(crate) fn request<T: AsRef<[u8]>>(to: &mut Vec<u8>, words: &[T]) {
    to.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        let word = word.as_ref();
        to.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        to.extend_from_slice(word);
        to.extend_from_slice(b"\r\n");
    }
}

/// Bytes of the reply that `bytes` begin with, if all of it is there: a line or a bulk, as the requests
/// here are answered.
///
/// # Errors
/// It is none.
pub(crate) fn reply(bytes: &[u8]) -> Result<Option<usize>> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let line = end + 1;
    match bytes[0] {
        b'+' | b'-' | b':' | b'_' => Ok(Some(line)),
        b'$' => {
            let length = std::str::from_utf8(&bytes[1..end])?.trim_end().parse::<i64>()?;
            let whole = if length < 0 { line } else { line + length as usize + 2 };
            Ok((bytes.len() >= whole).then_some(whole))
        }
        other => Err(format!("a reply begins with byte {other}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushes_and_pops_meet_at_the_same_lists() {
        for pipeline in [1, 16] {
            let lists = |job: Job, word: usize| -> Vec<String> {
                let batches = job.requests(pipeline).batches;
                let text: Vec<u8> = batches.iter().flat_map(|batch| batch.bytes.clone()).collect();
                let text = String::from_utf8(text).unwrap();
                text.split('*').skip(1).map(|request| request.lines().nth(word).unwrap().to_owned()).collect()
            };
            let (pushed, popped) = (lists(Job::Lpush, 4), lists(Job::Lpop, 4));
            assert_eq!(pushed, popped);
            assert_eq!(pushed.len() as u64 % COLLECTIONS, 0);
        }
    }

    #[test]
    fn replies_are_counted_when_they_are_whole() {
        for (bytes, length) in [
            (&b"+OK\r\n:1\r\n"[..], Some(5)),
            (b"$3\r\nabc\r\n+", Some(9)),
            (b"$-1\r\n", Some(5)),
            (b"$3\r\nabc\r", None),
            (b"$3", None),
        ] {
            assert_eq!(reply(bytes).unwrap(), length, "{bytes:?}");
        }
        assert!(reply(b"hello\r\n").is_err());
    }

    #[test]
    fn an_error_or_a_missing_value_suits_nothing() {
        for job in COMMANDS.map(|(_, job)| job).into_iter().chain([Job::Ping, Job::Eval(2), Job::Trips(2)]) {
            let requests = job.requests(1);
            for reply in [&b"-ERR no\r\n"[..], b"$-1\r\n", b"_\r\n"] {
                assert!(requests.batches.iter().all(|batch| !batch.expected[0].suits(reply)), "{job:?}");
            }
        }
    }

    #[test]
    fn scripts_have_as_many_calls_as_they_say() {
        for calls in [1, 2, 5, 10] {
            assert_eq!(script(calls).matches("redis.call").count(), calls);
        }
        assert!(script(100).contains("1,50"));
    }
}
