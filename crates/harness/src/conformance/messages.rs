//! Channels: order, bounds, taking and following, and that a post belongs to its transaction.

use std::collections::BTreeMap;
use std::time::Duration;

use perilune_store::{
    ChannelOptions, Error, Facets, Message, Messages, Session, Store, Transactions, WhenFull,
};

use super::{assert_error, begin, has, session, Verdict, PATIENCE};

const NAME: &[u8] = b"channel\0";
const NOW: Option<Duration> = Some(Duration::ZERO);

/// Messages.
pub fn messages<S: Store>(make: &impl Fn() -> S) -> Verdict {
    if session(&make()).messages().is_none() {
        return Verdict::Missing;
    }
    messages_come_in_order(&make());
    channels_are_apart(&make());
    every_sender_keeps_its_order(&make());
    each_message_goes_to_one_receiver(&make());
    a_full_channel_refuses(&make());
    a_full_channel_drops_the_oldest(&make());
    followers_leave_messages(&make());
    a_post_belongs_to_its_transaction(&make());
    a_receipt_belongs_to_its_transaction(&make());
    a_removed_channel_is_empty(&make());
    Verdict::Kept
}

fn body(message: Option<Message>) -> Option<String> {
    message.map(|message| String::from_utf8(message.body).expect("the bodies here are text"))
}

fn take(s: &mut impl Facets) -> Option<String> {
    body(has(s.messages()).receive(NAME, NOW).expect("a receipt"))
}

fn messages_come_in_order<S: Store>(store: &S) {
    let mut s = session(store);
    assert_eq!(has(s.messages()).receive(NAME, NOW).unwrap(), None, "a new channel is empty");
    let numbers = [b"a", b"b", b"c"].map(|body| has(s.messages()).post(NAME, body).unwrap());
    assert_eq!(numbers, [1, 2, 3], "messages are numbered from 1");
    let first = has(s.messages()).receive(NAME, None).unwrap();
    let expected = Message { number: 1, missed: 0, body: b"a".to_vec() };
    assert_eq!(first, Some(expected), "the oldest message comes with its number");
    assert_eq!(take(&mut s).as_deref(), Some("b"));
    assert_eq!(take(&mut session(store)).as_deref(), Some("c"), "any session may receive");
    assert_eq!(take(&mut s), None, "what was taken is gone");
    assert_eq!(has(s.messages()).receive(NAME, Some(Duration::from_millis(5))).unwrap(), None, "a wait ends");
    assert_eq!(has(s.messages()).post(NAME, b"").unwrap(), 4, "numbers go on");
    assert_eq!(take(&mut s).as_deref(), Some(""), "an empty message is a message");
}

fn channels_are_apart<S: Store>(store: &S) {
    let mut s = session(store);
    has(s.messages()).post(b"a\0", b"1").unwrap();
    has(s.messages()).post(b"a\0\x01", b"2").unwrap();
    assert_eq!(body(has(s.messages()).receive(b"a\0\x01", NOW).unwrap()).as_deref(), Some("2"));
    assert_eq!(
        body(has(s.messages()).receive(b"a\0\x01", NOW).unwrap()),
        None,
        "a channel's name is no prefix of another's"
    );
    assert_eq!(body(has(s.messages()).receive(b"a\0", NOW).unwrap()).as_deref(), Some("1"));
}

fn every_sender_keeps_its_order<S: Store>(store: &S) {
    const SENDERS: usize = 3;
    const EACH: usize = 200;
    std::thread::scope(|scope| {
        for sender in 0..SENDERS {
            scope.spawn(move || {
                let mut s = session(store);
                for index in 0..EACH {
                    has(s.messages()).post(NAME, format!("{sender} {index}").as_bytes()).expect("a post");
                }
            });
        }
        let mut s = session(store);
        let mut next = [0; SENDERS];
        let mut last = 0;
        for count in 0..SENDERS * EACH {
            let message = has(s.messages()).receive(NAME, Some(PATIENCE)).expect("a receipt");
            let message = message.unwrap_or_else(|| panic!("message {count} did not come"));
            assert!(message.number > last, "message {} came after {last}", message.number);
            last = message.number;
            let text = body(Some(message)).unwrap_or_default();
            let (sender, index) = text.split_once(' ').expect("sender and index");
            let sender: usize = sender.parse().expect("a sender");
            assert_eq!(index, next[sender].to_string(), "the messages of sender {sender} come in order");
            next[sender] += 1;
        }
        assert_eq!(take(&mut s), None, "nothing comes twice");
    });
}

fn each_message_goes_to_one_receiver<S: Store>(store: &S) {
    const RECEIVERS: usize = 3;
    const COUNT: u64 = 300;
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    std::thread::scope(|scope| {
        let receive = || {
            let mut s = session(store);
            let mut numbers = Vec::new();
            while let Some(message) = has(s.messages()).receive(NAME, Some(PATIENCE)).expect("a receipt") {
                if message.body == b"end" {
                    break;
                }
                numbers.push(message.number);
            }
            numbers
        };
        let receivers: Vec<_> = (0..RECEIVERS).map(|_| scope.spawn(receive)).collect();
        let mut s = session(store);
        for _ in 0..COUNT {
            has(s.messages()).post(NAME, b"work").unwrap();
        }
        for _ in 0..RECEIVERS {
            has(s.messages()).post(NAME, b"end").unwrap();
        }
        for receiver in receivers {
            let numbers = receiver.join().expect("a receiver ends");
            assert!(numbers.is_sorted(), "a receiver gets its messages in order");
            for number in numbers {
                *seen.entry(number).or_default() += 1;
            }
        }
    });
    let expected: BTreeMap<_, _> = (1..=COUNT).map(|number| (number, 1)).collect();
    assert!(seen == expected, "each of {COUNT} messages goes to exactly one of {RECEIVERS} receivers");
}

fn a_full_channel_refuses<S: Store>(store: &S) {
    let mut s = session(store);
    let options = |messages, bytes| ChannelOptions { messages, bytes, when_full: WhenFull::Refuse };
    assert_error!(
        has(s.messages()).create_channel(NAME, options(0, 1)),
        Error::Invalid(_),
        "a channel for no message"
    );
    assert_error!(
        has(s.messages()).create_channel(NAME, options(1_000_001, 1)),
        Error::Invalid(_),
        "one for too many"
    );
    has(s.messages()).create_channel(NAME, options(2, 1_000)).unwrap();
    has(s.messages()).post(NAME, b"a").unwrap();
    has(s.messages()).post(NAME, b"b").unwrap();
    assert_error!(
        has(s.messages()).post(NAME, b"c"),
        Error::ChannelFull,
        "the third message in a channel for two"
    );
    assert_eq!(take(&mut s).as_deref(), Some("a"));
    has(s.messages()).post(NAME, b"c").expect("there is room again");
    assert_eq!((take(&mut s).as_deref(), take(&mut s).as_deref()), (Some("b"), Some("c")));
    has(s.messages()).create_channel(NAME, options(100, 10)).unwrap();
    has(s.messages()).post(NAME, b"123456").unwrap();
    assert_error!(
        has(s.messages()).post(NAME, b"12345"),
        Error::ChannelFull,
        "eleven bytes in a channel for ten"
    );
    has(s.messages()).post(NAME, b"1234").expect("ten bytes fit");
}

fn a_full_channel_drops_the_oldest<S: Store>(store: &S) {
    let mut s = session(store);
    has(s.messages())
        .create_channel(NAME, ChannelOptions { messages: 3, bytes: 1_000, when_full: WhenFull::DropOldest })
        .unwrap();
    for text in ["a", "b", "c", "d", "e"] {
        has(s.messages()).post(NAME, text.as_bytes()).unwrap();
    }
    let first = has(s.messages()).follow(NAME, 0, NOW).unwrap();
    let expected = Message { number: 3, missed: 2, body: b"c".to_vec() };
    assert_eq!(first, Some(expected), "a follower is told how many it missed");
    let late =
        has(s.messages()).follow(NAME, 1, NOW).unwrap().map(|message| (message.number, message.missed));
    assert_eq!(late, Some((3, 1)), "one that knows the first has missed one less");
    let left: Vec<_> = std::iter::from_fn(|| take(&mut s)).collect();
    assert_eq!(left, ["c", "d", "e"], "the newest three are left");
}

fn followers_leave_messages<S: Store>(store: &S) {
    let (mut s, mut t) = (session(store), session(store));
    has(s.messages()).post(NAME, b"a").unwrap();
    has(s.messages()).post(NAME, b"b").unwrap();
    for follower in [&mut s, &mut t] {
        let (mut after, mut read) = (0, Vec::new());
        while let Some(message) = has(follower.messages()).follow(NAME, after, NOW).unwrap() {
            assert_eq!(message.missed, 0, "nothing was dropped");
            after = message.number;
            read.push(message.body);
        }
        assert_eq!(read, [b"a", b"b"], "each follower reads all");
    }
    assert_eq!(take(&mut s).as_deref(), Some("a"), "and leaves them to be received");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            let message = has(session(store).messages()).follow(NAME, 2, Some(PATIENCE)).expect("a wait");
            message.map(|message| message.number)
        });
        has(s.messages()).post(NAME, b"c").unwrap();
        assert_eq!(waiting.join().expect("the follower ends"), Some(3), "a waiting follower is woken");
    });
}

fn a_post_belongs_to_its_transaction<S: Store>(store: &S) {
    let (mut s, mut t) = (session(store), session(store));
    begin(&mut s);
    assert_eq!(has(s.messages()).post(NAME, b"rolled back").unwrap(), 0, "a post inside has no number yet");
    s.rollback().unwrap();
    begin(&mut s);
    s.set(b"a\0", b"1").unwrap();
    has(s.messages()).post(NAME, b"outer").unwrap();
    begin(&mut s);
    has(s.messages()).post(NAME, b"inner").unwrap();
    s.rollback().unwrap();
    begin(&mut s);
    has(s.messages()).post(NAME, b"kept").unwrap();
    s.commit().unwrap();
    assert_eq!(take(&mut t), None, "nothing is posted before the commit");
    s.commit().unwrap();
    assert_eq!((take(&mut t).as_deref(), take(&mut t).as_deref()), (Some("outer"), Some("kept")));
    assert_eq!(take(&mut t), None, "what was rolled back never comes");
    // A conflict posts nothing.
    begin(&mut s);
    assert!(s.get(b"a\0", &mut Vec::new()).unwrap());
    has(s.messages()).post(NAME, b"conflict").unwrap();
    t.set(b"a\0", b"2").unwrap();
    assert_error!(s.commit(), Error::Conflict, "a commit after a read that no longer holds");
    assert_eq!(take(&mut t), None, "a conflict posts nothing");
}

fn a_receipt_belongs_to_its_transaction<S: Store>(store: &S) {
    let mut s = session(store);
    has(s.messages()).post(NAME, b"a").unwrap();
    begin(&mut s);
    assert_eq!(take(&mut s).as_deref(), Some("a"), "a message can be taken inside");
    assert_eq!(take(&mut s), None, "once");
    let waiting = has(s.messages()).receive(NAME, Some(PATIENCE));
    assert_error!(waiting, Error::TransactionState(_), "a receipt that would have to wait inside");
    s.rollback().unwrap();
    begin(&mut s);
    assert_eq!(take(&mut s).as_deref(), Some("a"), "a rollback puts it back");
    s.commit().unwrap();
    assert_eq!(take(&mut s), None, "a commit takes it");
}

fn a_removed_channel_is_empty<S: Store>(store: &S) {
    let mut s = session(store);
    has(s.messages())
        .create_channel(NAME, ChannelOptions { messages: 1, ..ChannelOptions::default() })
        .unwrap();
    has(s.messages()).post(NAME, b"a").unwrap();
    has(s.messages()).remove_channel(NAME).unwrap();
    has(s.messages()).remove_channel(NAME).unwrap();
    assert_eq!(take(&mut s), None, "its messages are gone");
    has(s.messages()).post(NAME, b"b").unwrap();
    has(s.messages()).post(NAME, b"c").expect("its bounds too");
    assert_eq!((take(&mut s).as_deref(), take(&mut s).as_deref()), (Some("b"), Some("c")));
}
