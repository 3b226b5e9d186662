//! Replies of all elements of a key: names and values of every kind, more than one reading has, and counts that other programs
//! have left wrong.

use std::collections::BTreeMap;

use crate::peer::{Client, Ours, Place};
use perilune::node;
use perilune_redis::Settings;
use perilune_resp::Answer;

fn start(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, Settings { threads: 1, ..Settings::default() });
    let client = Client::connect(&ours.socket);
    (ours, client)
}

/// Names that are text, integers, decimals, empty, escaped, and too long to be kept whole, between many that are plain.
fn names() -> Vec<Vec<u8>> {
    let mut names: Vec<Vec<u8>> = (0..700).map(|number| format!("member:{number:04}").into_bytes()).collect();
    names.extend((-300..300).map(|number: i64| (number * 7_919).to_string().into_bytes()));
    names.extend((0..100).map(|number: u8| vec![number, 0, 1, number % 3, b'x', 2, 0]));
    names.extend(["", "1.5", "-.25", "007", "-0", "10000000000000000000", "$", "a\r\nb"].map(Vec::from));
    names.extend([
        vec![0],
        vec![1; 501],
        vec![0xFF; 3],
        vec![b'x'; 1_000],
        vec![b'x'; 1_001],
        vec![b'm'; 5_000],
    ]);
    names
}

fn value_of(name: &[u8]) -> Vec<u8> {
    [&b"value of "[..], name].concat()
}

fn all(answer: Answer) -> Vec<Vec<u8>> {
    let (Answer::Array(elements) | Answer::Set(elements)) = answer else { panic!("{answer:?}") };
    elements
        .into_iter()
        .map(|element| match element {
            Answer::Bulk(bytes) => bytes,
            other => panic!("{other:?}"),
        })
        .collect()
}

fn sorted(mut names: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    names.sort();
    names
}

#[test]
fn all_elements_of_a_key_are_answered() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let names = names();
    for name in &names {
        client.call([&b"SADD"[..], b"s", name]);
        client.call([&b"HSET"[..], b"h", name, &value_of(name)]);
        client.call([&b"RPUSH"[..], b"l", name]);
    }
    // A value that is counted is kept as an integer.
    client.call(["HINCRBY", "h", "counted", "-1234567"]);
    assert_eq!(sorted(all(client.line("smembers s"))), sorted(names.clone()));
    let mut fields: BTreeMap<Vec<u8>, Vec<u8>> =
        names.iter().map(|name| (name.clone(), value_of(name))).collect();
    fields.insert(b"counted".to_vec(), b"-1234567".to_vec());
    let pairs = all(client.line("hgetall h"));
    let found: BTreeMap<_, _> = pairs.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    assert_eq!((pairs.len(), &found), (2 * fields.len(), &fields));
    let (keys, values) = (all(client.line("hkeys h")), all(client.line("hvals h")));
    assert_eq!(keys.into_iter().zip(values).collect::<BTreeMap<_, _>>(), fields);
    assert_eq!(all(client.line("lrange l 0 -1")), names);
    for (start, last) in [(0, 0), (1, 1), (3, 700), (699, 705), (1_000, 1_400), (names.len() - 1, 9_999)] {
        let expected = &names[start..names.len().min(last + 1)];
        assert_eq!(all(client.line(&format!("lrange l {start} {last}"))), expected, "{start} {last}");
    }
    // Inside EXEC they see what it has written.
    client.line("multi");
    client.line("srem s 7919");
    client.line("lpush l first");
    client.line("smembers s");
    client.line("lrange l 0 3");
    let Answer::Array(replies) = client.line("exec") else { panic!("replies") };
    assert_eq!(all(replies[2].clone()).len(), names.len() - 1);
    assert_eq!(all(replies[3].clone()), [&[b"first".to_vec()], &names[..3]].concat());
    assert_eq!((all(client.line("smembers none")).len(), all(client.line("hgetall none")).len()), (0, 0));
}

/// The count that a program has left at a key is no more than a guess of how many elements follow.
#[test]
fn a_wrong_count_makes_no_wrong_reply() {
    let place = Place::new();
    let (ours, mut client) = start(&place);
    for number in 0..300 {
        client.line(&format!("sadd s m{number}"));
        client.line(&format!("hset h f{number} v{number}"));
        client.line(&format!("rpush l e{number}"));
    }
    let mut session = ours.database.session().expect("a session");
    for count in [1, 299, 301, 100_000_000] {
        session.set(&node!("^redis", 0, "s", "set").expect("a node"), count).expect("a count");
        session.set(&node!("^redis", 0, "h", "hash").expect("a node"), count).expect("a count");
        assert_eq!(all(client.line("smembers s")).len(), 300, "{count}");
        assert_eq!(all(client.line("hgetall h")).len(), 600, "{count}");
        assert_eq!(all(client.line("hvals h")).len(), 300, "{count}");
    }
    // What is missing in a list is empty; what is no number is none of its elements.
    session.delete_value(&node!("^redis", 0, "l", "list", 100).expect("a node")).expect("an element");
    session.set(&node!("^redis", 0, "l", "list", 50.5).expect("a node"), "between").expect("a value");
    session.set(&node!("^redis", 0, "l", "list", 60, "below").expect("a node"), "below").expect("a value");
    session.set(&node!("^redis", 0, "l", "list", 70).expect("a node"), 77).expect("a value");
    let elements = all(client.line("lrange l 0 -1"));
    let expected: Vec<Vec<u8>> = (0..300)
        .map(|number| match number {
            100 => Vec::new(),
            70 => b"77".to_vec(),
            number => format!("e{number}").into_bytes(),
        })
        .collect();
    assert_eq!(elements, expected);
}
