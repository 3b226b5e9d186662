//! Channels between threads of one process on memory of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_store::{ChannelOptions, Error, Message, WhenFull};

use super::*;
use crate::image::Image;
use crate::session::Seat;
use crate::tree::tests::scratch;
use crate::tree::{Neighbour, Seek};
use crate::verify;
use crate::watch::Watches;

const NAME: &[u8] = b"channel\0";
const NOW: Option<Duration> = Some(Duration::ZERO);
const LONG: Option<Duration> = Some(Duration::from_secs(30));

struct Bench {
    image: Arc<Image>,
    watches: Arc<Watches>,
}

struct Party {
    access: Access,
    watches: SessionWatches,
}

impl Bench {
    fn new() -> Bench {
        let image = scratch(12_000);
        Bench { watches: Arc::new(Watches::new(image.clone())), image }
    }

    fn party(&self, id: u16) -> Party {
        let access = Access::new(Seat::new(self.image.clone(), id));
        Party { access, watches: SessionWatches::new(self.watches.clone()) }
    }
}

impl Party {
    fn take(&mut self) -> Option<Message> {
        receive(&self.access, &mut self.watches, NAME, NOW).unwrap()
    }

    fn follow(&mut self, after: u64) -> Option<Message> {
        follow(&self.access, &mut self.watches, NAME, after, NOW).unwrap()
    }

    fn post(&self, body: &[u8]) -> Result<u64> {
        post(&self.access, NAME, body)
    }

    fn is_volatile_empty(&self) -> bool {
        let mut key = Vec::new();
        !self
            .access
            .neighbour(
                Which::Volatile,
                Seek { from: b"", side: Neighbour::Next, bound: &[] },
                &mut key,
                None,
                &mut (),
            )
            .unwrap()
    }
}

fn message(number: u64, missed: u64, body: &[u8]) -> Option<Message> {
    Some(Message { number, missed, body: body.to_vec() })
}

#[test]
fn messages_come_in_order_and_once() {
    let bench = Bench::new();
    let (mut a, mut b) = (bench.party(1), bench.party(2));
    assert_eq!(a.take(), None);
    for (number, body) in [(1, &b"x"[..]), (2, b""), (3, &[7; 1 << 20])] {
        assert_eq!(a.post(body).unwrap(), number);
    }
    assert_eq!(b.follow(0), message(1, 0, b"x"));
    assert_eq!(b.follow(2).unwrap().body.len(), 1 << 20);
    assert_eq!(b.follow(3), None);
    assert_eq!(b.follow(u64::MAX), None);
    assert_eq!(a.take(), message(1, 0, b"x"));
    assert_eq!(b.take(), message(2, 0, b""));
    assert_eq!(b.follow(0).unwrap().missed, 2);
    assert_eq!(a.take().unwrap().body, vec![7; 1 << 20]);
    assert_eq!(b.take(), None);
    assert_eq!(a.post(b"y").unwrap(), 4, "numbers go on");
    assert!(matches!(a.post(&vec![0; MESSAGE_MAX + 1]), Err(Error::ValueTooLong { .. })));
    remove_channel(&a.access, NAME).unwrap();
    assert!(a.is_volatile_empty());
    assert_eq!(verify::verify(&bench.image).unwrap().extent_pages, 0);
}

#[test]
fn channels_with_names_inside_each_other_are_apart() {
    let bench = Bench::new();
    let a = bench.party(1);
    let names: Vec<Vec<u8>> =
        [0, 1, 8, 9, 254, 255, 256, 600].map(|more| [b"c\0", &vec![0; more][..]].concat()).into();
    for name in &names {
        post(&a.access, name, name).unwrap();
    }
    for name in &names {
        assert_eq!(range(name).iter().position(|byte| *byte == 0), Some(4), "the first component");
        let found = a.access.atomically(deadline(), |access, txn| receive_in(access, txn, name)).unwrap();
        assert_eq!(found, message(1, 0, name));
        remove_channel(&a.access, name).unwrap();
    }
    assert!(a.is_volatile_empty());
}

#[test]
fn a_full_channel_refuses_or_drops() {
    let bench = Bench::new();
    let mut a = bench.party(1);
    let bounds = |messages, bytes, when_full| {
        create_channel(&a.access, NAME, ChannelOptions { messages, bytes, when_full })
    };
    assert!(matches!(bounds(0, 1, WhenFull::Refuse), Err(Error::Invalid(_))));
    assert!(matches!(bounds(1_000_001, 1, WhenFull::Refuse), Err(Error::Invalid(_))));
    assert!(matches!(bounds(1, 0, WhenFull::Refuse), Err(Error::Invalid(_))));
    bounds(2, 10, WhenFull::Refuse).unwrap();
    a.post(b"12345").unwrap();
    assert!(matches!(a.post(b"123456"), Err(Error::ChannelFull)));
    a.post(b"6").unwrap();
    assert!(matches!(a.post(b""), Err(Error::ChannelFull)));
    create_channel(
        &a.access,
        NAME,
        ChannelOptions { messages: 3, bytes: 10, when_full: WhenFull::DropOldest },
    )
    .unwrap();
    assert_eq!(a.post(b"12345").unwrap(), 3);
    assert!(matches!(a.post(&[0; 11]), Err(Error::ChannelFull)), "larger than the channel");
    assert_eq!(a.follow(0), message(2, 1, b"6"));
    a.post(b"1234567").unwrap();
    assert_eq!(a.follow(1), message(4, 2, b"1234567"));
    assert_eq!(a.take(), message(4, 3, b"1234567"));
    a.post(b"8").unwrap();
    assert_eq!(a.take(), message(5, 0, b"8"), "told once what was dropped");
}

#[test]
fn posts_and_receipts_belong_to_their_transaction() {
    let bench = Bench::new();
    let (a, mut b) = (bench.party(1), bench.party(2));
    let failed = a.access.atomically(deadline(), |access, txn| {
        post_in(access, txn, NAME, b"never")?;
        Err::<(), _>(Error::Refused("no".into()))
    });
    assert!(matches!(failed, Err(Error::Refused(_))));
    a.access
        .atomically(deadline(), |access, txn| {
            assert_eq!(receive_in(access, txn, NAME)?, None);
            for body in [b"1", b"2", b"3"] {
                post_in(access, txn, NAME, body)?;
            }
            assert_eq!(receive_in(access, txn, NAME)?, message(1, 0, b"1"));
            assert_eq!(follow_in(access, txn, NAME, 0)?, message(2, 1, b"2"));
            assert_eq!(b.take(), None, "nothing is posted before the commit");
            Ok(())
        })
        .unwrap();
    assert_eq!(b.take(), message(2, 0, b"2"));
    assert_eq!(b.take(), message(3, 0, b"3"));
}

#[test]
fn each_message_goes_to_one_receiver_that_sleeps() {
    const EACH: u64 = 300;
    let bench = Bench::new();
    let mut counts: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        let receivers: Vec<_> = (1..=3)
            .map(|id| {
                let bench = &bench;
                scope.spawn(move || {
                    let mut party = bench.party(id);
                    let (mut bodies, mut last) = (Vec::new(), 0);
                    loop {
                        let found = receive(&party.access, &mut party.watches, NAME, LONG).unwrap();
                        let message = found.expect("a message within 30 s");
                        assert!(message.number > last);
                        last = message.number;
                        if message.body == b"end" {
                            return bodies;
                        }
                        bodies.push(message.body);
                    }
                })
            })
            .collect();
        let senders: Vec<_> = (4..=6)
            .map(|id| {
                let bench = &bench;
                scope.spawn(move || {
                    let party = bench.party(id);
                    (0..EACH).for_each(|index| _ = party.post(format!("{id} {index}").as_bytes()).unwrap());
                })
            })
            .collect();
        senders.into_iter().for_each(|sender| sender.join().unwrap());
        (0..3).for_each(|_| _ = bench.party(7).post(b"end").unwrap());
        for body in receivers.into_iter().flat_map(|receiver| receiver.join().unwrap()) {
            *counts.entry(body).or_default() += 1;
        }
    });
    assert_eq!(counts.len() as u64, 3 * EACH);
    assert!(counts.values().all(|count| *count == 1));
}

#[test]
fn a_wait_for_a_message_ends() {
    let bench = Bench::new();
    let mut a = bench.party(1);
    let start = Instant::now();
    let timeout = Duration::from_millis(20);
    assert_eq!(receive(&a.access, &mut a.watches, NAME, Some(timeout)).unwrap(), None);
    assert_eq!(follow(&a.access, &mut a.watches, NAME, 3, Some(timeout)).unwrap(), None);
    assert!(start.elapsed() >= 2 * timeout);
    // More channels than a session keeps watches of.
    for name in 0..20_u8 {
        let name = [b'c', name, 0];
        assert_eq!(receive(&a.access, &mut a.watches, &name, Some(Duration::from_millis(1))).unwrap(), None);
        post(&a.access, &name, &name).unwrap();
        let found = receive(&a.access, &mut a.watches, &name, LONG).unwrap();
        assert_eq!(found, message(1, 0, &name));
    }
}
