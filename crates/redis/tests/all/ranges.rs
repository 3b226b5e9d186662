//! Ranges and ranks of sorted sets against a sorted vector, and that a range by bytes is sought, not walked to.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::peer::{Client, Ours, Place};
use perilune_redis::Settings;
use perilune_resp::Answer;

fn start(place: &Place) -> (Ours, Client) {
    let ours = Ours::start(place, Settings { threads: 1, ..Settings::default() });
    let client = Client::connect(&ours.socket);
    (ours, client)
}

fn bulks(members: impl IntoIterator<Item = Vec<u8>>) -> Answer {
    Answer::Array(members.into_iter().map(Answer::Bulk).collect())
}

/// Names that are numbers, empty, with the bytes that are escaped, and around the limit of what is kept whole.
fn members() -> Vec<Vec<u8>> {
    let mut members: Vec<Vec<u8>> = (0..40).map(|number| format!("m{number:03}").into_bytes()).collect();
    members.extend((0..20).map(|number| (number * 7).to_string().into_bytes()));
    members.extend([b"".to_vec(), vec![0], vec![0, 1], vec![1; 501], vec![0xFF; 3], vec![b'x'; 1_000]]);
    members.extend([vec![b'x'; 1_001], vec![b'y'; 5_000], [vec![b'w'; 999], vec![0; 9]].concat()]);
    members.sort();
    members
}

#[test]
fn ranges_by_bytes_are_those_of_a_sorted_vector() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let members = members();
    for member in &members {
        client.call([&b"ZADD"[..], b"lex", b"0", member]);
    }
    let mut edges = members.clone();
    edges.extend([b"m".to_vec(), b"m0205".to_vec(), vec![b'x'; 1_500], vec![b'z'; 2_000], vec![b'a'; 2_000]]);
    for low in &edges {
        for high in [&members[members.len() / 2], low, &members[members.len() - 2], &members[0]] {
            for (open, shut) in [(&b"["[..], &b"("[..]), (b"(", b"[")] {
                let (from, to) = ([open, low].concat(), [shut, high].concat());
                let inside = |member: &&Vec<u8>| {
                    (*member > low || *member == low && open == b"[")
                        && (*member < high || *member == high && shut == b"[")
                };
                let expected: Vec<Vec<u8>> = members.iter().filter(inside).cloned().collect();
                let shown = (low.escape_ascii().to_string(), high.escape_ascii().to_string());
                let count = Answer::Integer(expected.len() as i64);
                assert_eq!(client.call([&b"ZLEXCOUNT"[..], b"lex", &from, &to]), count, "{shown:?}");
                assert_eq!(
                    client.call([&b"ZRANGEBYLEX"[..], b"lex", &from, &to]),
                    bulks(expected.clone()),
                    "{shown:?}"
                );
                let limited = expected.iter().rev().skip(1).take(2).cloned();
                assert_eq!(
                    client.call([&b"ZREVRANGEBYLEX"[..], b"lex", &to, &from, b"LIMIT", b"1", b"2"]),
                    bulks(limited),
                    "{shown:?}"
                );
            }
        }
    }
    let half = [&b"("[..], &members[members.len() / 2]].concat();
    let removed = members.len() - members.len() / 2 - 1;
    assert_eq!(client.call([&b"ZREMRANGEBYLEX"[..], b"lex", &half, b"+"]), Answer::Integer(removed as i64));
    let left = members[..=members.len() / 2].iter().cloned();
    assert_eq!(client.line("zrange lex 0 -1"), bulks(left));
}

#[test]
fn ranks_and_counts_are_those_of_a_sorted_vector() {
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let mut scored: Vec<(i64, Vec<u8>)> =
        members().into_iter().enumerate().map(|(at, member)| ((at % 9) as i64 - 4, member)).collect();
    for (score, member) in &scored {
        client.call([&b"ZADD"[..], b"z", score.to_string().as_bytes(), member]);
    }
    // What sorts by its digest is left to the test above.
    scored.sort();
    let count = scored.len() as i64;
    for (rank, (_, member)) in (0..).zip(&scored) {
        let back = count - 1 - rank;
        assert_eq!(client.call([&b"ZRANK"[..], b"z", member]), Answer::Integer(rank));
        assert_eq!(client.call([&b"ZREVRANK"[..], b"z", member]), Answer::Integer(back));
        let some = (rank.to_string(), (rank + 2).to_string());
        let expected: Vec<_> = scored.iter().skip(rank as usize).take(3).map(|(_, it)| it.clone()).collect();
        assert_eq!(client.line(&format!("zrange z {} {}", some.0, some.1)), bulks(expected));
        let expected: Vec<_> =
            scored.iter().rev().skip(rank as usize).take(3).map(|(_, it)| it.clone()).collect();
        assert_eq!(client.line(&format!("zrevrange z {} {}", some.0, some.1)), bulks(expected));
    }
    for low in -6..7_i64 {
        for high in -6..7_i64 {
            let within = scored.iter().filter(|(score, _)| (low..=high).contains(score)).count();
            assert_eq!(client.line(&format!("zcount z {low} {high}")), Answer::Integer(within as i64));
            let within = scored.iter().filter(|(score, _)| *score > low && *score < high).count();
            assert_eq!(client.line(&format!("zcount z ({low} ({high}")), Answer::Integer(within as i64));
        }
    }
    assert_eq!(client.line("zcount z -inf +inf"), Answer::Integer(count));
}

/// A parser's stack kept as a sorted set of names, read by `ZRANGEBYLEX ... LIMIT 0 1`, took a walk each time: a
/// minute for a small document. A walk to the end of 20,000 took 18 ms, measured once on two shared cores, so that these
/// ranges would take minutes; sought they take a second.
#[test]
fn a_place_among_many_is_sought() {
    const MEMBERS: usize = 20_000;
    let place = Place::new();
    let (_ours, mut client) = start(&place);
    let start = Instant::now();
    let mut waiting = 0;
    for first in (0..MEMBERS).step_by(500) {
        let mut line = String::from("zadd lex");
        for number in first..first + 500 {
            let _ = write!(line, " 0 m{number:06}");
        }
        assert_eq!(client.line(&line), Answer::Integer(500));
    }
    for first in (0..MEMBERS).step_by(500) {
        let mut lines = String::new();
        for number in first..first + 500 {
            let _ = write!(lines, "ZRANGEBYLEX lex [m{number:06} + LIMIT 0 1\r\n");
            let _ = write!(lines, "ZREVRANGEBYLEX lex (m{number:06} - LIMIT 0 1\r\n");
            waiting += 2;
        }
        client.send(lines.as_bytes());
        for number in first..first + 500 {
            assert_eq!(client.receive(), Some(bulks([format!("m{number:06}").into_bytes()])));
            let before = number.checked_sub(1).map(|before| format!("m{before:06}").into_bytes());
            assert_eq!(client.receive(), Some(bulks(before)));
            waiting -= 2;
        }
    }
    assert_eq!(waiting, 0);
    assert!(start.elapsed() < Duration::from_secs(15), "walked, not sought: {:?}", start.elapsed());
}
