//! Requests in pieces, hostile bytes, and replies that a client reads back.

use perilune_resp::{Answer, ArgumentsBuf, Progress, Protocol, Replies, RequestParser};
use proptest::collection::vec;
use proptest::prelude::*;

/// All requests in `bytes`, which arrive cut at `cuts`.
fn requests(bytes: &[u8], cuts: &[usize], trusted: bool) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let mut ends: Vec<usize> = cuts.iter().map(|cut| cut % (bytes.len() + 1)).collect();
    ends.push(bytes.len());
    ends.sort_unstable();
    let (mut parser, mut start, mut all) = (RequestParser::default(), 0, Vec::new());
    for end in ends {
        while start < end {
            match parser.parse(&bytes[start..end], trusted).map_err(|error| error.to_string())? {
                Progress::Incomplete => break,
                Progress::Complete { used } => {
                    let arguments = parser.arguments(&bytes[start..end]);
                    all.push(arguments.iter().map(<[u8]>::to_vec).collect());
                    start += used;
                }
            }
        }
    }
    Ok(all)
}

proptest! {
    #[test]
    fn requests_survive_any_cuts(
        sent in vec(vec(vec(any::<u8>(), 0..40), 1..6), 0..6),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let mut bytes = Vec::new();
        for request in &sent {
            request.iter().collect::<ArgumentsBuf>().write_request(&mut bytes);
        }
        prop_assert_eq!(requests(&bytes, &cuts, true), Ok(sent));
    }

    #[test]
    fn hostile_bytes_are_refused_or_wait(
        bytes in vec(prop_oneof![Just(b'*'), Just(b'$'), Just(b'\r'), Just(b'\n'), Just(b'1'), Just(b'-'), any::<u8>()], 0..200),
        cuts in vec(any::<usize>(), 0..6),
    ) {
        // Cut or not, the same is understood before anything is refused.
        let (whole, cut) = (requests(&bytes, &[], true), requests(&bytes, &cuts, true));
        prop_assert_eq!(whole, cut);
        let _ = requests(&bytes, &cuts, false);
        let _ = Answer::parse(&bytes);
    }

    #[test]
    fn replies_are_read_back(bulk in vec(any::<u8>(), 0..50), integer in any::<i64>(), double in any::<f64>()) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let mut out = Vec::new();
            let mut replies = Replies::new(&mut out, protocol);
            let mark = replies.begin_array();
            replies.bulk(&bulk);
            replies.integer(integer);
            replies.null();
            replies.map(1);
            replies.simple("OK");
            replies.error("ERR one\r\nline");
            replies.double(double);
            replies.end_array(mark, 5);
            for end in 0..out.len() {
                prop_assert_eq!(Answer::parse(&out[..end]), Ok(None));
            }
            let (answer, used) = Answer::parse(&out).unwrap().unwrap();
            prop_assert_eq!(used, out.len());
            let Answer::Array(elements) = answer else { panic!("an array") };
            prop_assert_eq!(&elements[..3], &[Answer::Bulk(bulk.clone()), Answer::Integer(integer), Answer::Null]);
            let text = match &elements[4] {
                Answer::Bulk(text) => String::from_utf8_lossy(text).parse().unwrap(),
                Answer::Double(double) => *double,
                other => panic!("{other:?}"),
            };
            prop_assert!(text == double || double.is_nan() && text.is_nan());
        }
    }
}

#[test]
fn refusals_have_the_words_of_redis() {
    let long = [&b"*"[..], &vec![b'1'; 70_000]].concat();
    let cases: [(&[u8], bool, &str); 11] = [
        (b"*x\r\n", true, "invalid multibulk length"),
        (b"*1048577\r\n", true, "invalid multibulk length"),
        (b"*11\r\n", false, "unauthenticated multibulk length"),
        (b"*1\r\n$20000\r\n", false, "unauthenticated bulk length"),
        (b"*1\r\n$-1\r\n", true, "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", true, "invalid bulk length"),
        (b"*1\r\nx", true, "expected '$', got 'x'"),
        (b"*1\r\n\r", true, "expected '$', got '?'"),
        (b"set \"a\r\n", true, "unbalanced quotes in request"),
        (&long, true, "too big mbulk count string"),
        (&long[1..], true, "too big inline request"),
    ];
    for (bytes, trusted, text) in cases {
        assert_eq!(requests(bytes, &[], trusted), Err(format!("Protocol error: {text}")));
    }
}

/// Promised bytes cost nothing until they come, and a large request in small pieces is looked at once:
/// a second look at each piece would take hours here.
#[test]
fn large_requests_cost_what_they_bring() {
    let mut parser = RequestParser::default();
    assert_eq!(parser.parse(b"*2\r\n$536870912\r\n", true), Ok(Progress::Incomplete));
    assert_eq!(parser.missing(16), 536_870_914);
    let many = 1 << 20;
    let mut bytes = format!("*{many}\r\n").into_bytes();
    let mut parser = RequestParser::default();
    for index in 0..many {
        assert_eq!(parser.parse(&bytes, true), Ok(Progress::Incomplete), "{index}");
        bytes.extend_from_slice(b"$1\r\na\r\n");
    }
    assert_eq!(parser.parse(&bytes, true), Ok(Progress::Complete { used: bytes.len() }));
    assert_eq!(parser.arguments(&bytes).len(), many);
}

#[test]
fn requests_that_ask_for_nothing_are_complete() {
    assert_eq!(
        requests(b"*0\r\n*-1\r\n\r\nping\n", &[], true).unwrap(),
        [vec![], vec![], vec![], vec![b"ping".to_vec()]]
    );
}

proptest! {
    /// What is bounded begins as what is not, and goes beyond its end by no more than a head.
    #[test]
    fn replies_are_bounded(bulks in vec(vec(any::<u8>(), 0..50), 0..20), integer in any::<i64>(), end in 0_usize..600) {
        for protocol in [Protocol::Resp2, Protocol::Resp3] {
            let (mut whole, mut cut, mut behind) = (Vec::new(), Vec::new(), Vec::new());
            for (bounded, out) in [(false, &mut whole), (true, &mut cut)] {
                let replies = Replies::new(out, protocol);
                let mut replies = if bounded { replies.up_to(end) } else { replies };
                for bulk in &bulks {
                    replies.bulk(bulk);
                    replies.integer(integer);
                    replies.verbatim(bulk);
                    replies.null();
                    replies.error("ERR so");
                }
                behind.clear();
                let mut found = replies.beside(&mut behind);
                found.bulk(b"some bytes");
                let is_full = found.is_full();
                replies.raw(&behind);
                prop_assert_eq!(is_full, bounded && replies.is_full());
            }
            prop_assert_eq!(cut.len() >= end, whole.len() >= end);
            prop_assert!(cut.len() < end + 32 && (cut.len() >= end || cut == whole));
            prop_assert!(whole.starts_with(&cut[..cut.len().min(end)]));
        }
    }
}
