//! Errors: what is wrong and what to do, with numbers that never change.

use std::collections::BTreeSet;

use crate::fixture::Scratch;
use perilune::{node, Error, ErrorCode, KeyError, Node, NodeRef, Result, StoreError};

#[test]
fn codes_keep_their_numbers() {
    use ErrorCode as C;
    let codes = [
        C::Invalid,
        C::InvalidKey,
        C::KeyTooLong,
        C::ValueTooLong,
        C::Number,
        C::WrongType,
        C::Overlap,
        C::LocalNode,
        C::LimitReached,
        C::Conflict,
        C::Restart,
        C::Rollback,
        C::TransactionTimeout,
        C::TransactionState,
        C::Forked,
        C::Deadlock,
        C::CommitUnknown,
        C::ChannelFull,
        C::ReadOnly,
        C::NotADatabase,
        C::CannotOpen,
        C::NoSpace,
        C::Io,
        C::WritesStopped,
        C::Corrupt,
        C::Refused,
        C::Internal,
        C::Other,
        C::NotDurable,
        C::Busy,
    ];
    let numbers: Vec<i32> = codes.iter().map(|code| code.number()).collect();
    assert_eq!(numbers, (1..=30).collect::<Vec<i32>>());
}

#[test]
fn every_error_speaks() {
    let errors = [
        Error::Conflict,
        Error::Restart,
        Error::Rollback,
        Error::Overlap,
        Error::LocalNode { operation: "watched" },
        Error::WrongType { wanted: "an integer", found: "a string" },
        Error::Key(KeyError::InvalidName),
        Error::Store(StoreError::Deadlock),
        Error::Store(StoreError::Internal("x".to_owned())),
        Error::other("mine"),
    ];
    let texts: BTreeSet<String> = errors.iter().map(Error::to_string).collect();
    assert_eq!(texts.len(), errors.len());
    assert!(texts.iter().all(|text| !text.is_empty()));
}

#[test]
fn bad_names_and_texts_are_refused() {
    for name in ["", "^", "1a", "^1a", "a b", "^^a", "^é", &"x".repeat(256)] {
        let error = Node::new(name).expect_err(name);
        assert_eq!(error.code(), ErrorCode::InvalidKey);
        assert!(error.to_string().contains("letter"), "{error}");
    }
    for text in ["^a(", "^a(1", "^a(1,)", "^a(x)", "^a(\"x)", "^a(1)2", "a()"] {
        let error = Node::parse(text).expect_err(text);
        assert_eq!(error.code(), ErrorCode::InvalidKey);
        assert!(error.to_string().contains("byte"), "{error}");
    }
}

#[test]
fn keys_have_limits() -> Result<()> {
    let mut deep = node!("^a")?;
    for level in 0..255 {
        deep.push(level)?;
    }
    assert!(matches!(deep.push(0), Err(Error::Key(KeyError::TooManySubscripts))));
    assert_eq!(deep.depth(), 255);
    // ^a is 2 bytes, the code of a string 2 more than the string.
    assert!(node!("^a", "x".repeat(1_896)).is_ok());
    assert_eq!(node!("^a", "x".repeat(1_897)).expect_err("too long").code(), ErrorCode::KeyTooLong);
    let error = node!("a", "x".repeat((1 << 20) + 1)).expect_err("too long");
    assert!(matches!(error, Error::Key(KeyError::SubscriptTooLong)));
    for number in [f64::NAN, f64::INFINITY] {
        assert_eq!(node!("^a", number).expect_err("no number").code(), ErrorCode::Number);
    }
    Ok(())
}

#[test]
fn bytes_that_are_no_key_name_nothing() -> Result<()> {
    for bytes in [&b""[..], b"a", b"a\0\xff", b"a\0\xf0abc", b"1\0", b"\xff"] {
        assert!(Node::from_encoded(bytes, false).is_err(), "{bytes:?}");
    }
    let good = node!("^a", 1)?;
    assert_eq!(Node::from_encoded(good.encoded(), false)?, good);
    let scratch = Scratch::new();
    let mut session = scratch.session();
    let long = [b'a'; 2_000];
    let error = session.set(NodeRef::from_encoded(&long, false), 1).expect_err("too long for the store");
    assert_eq!(error.code(), ErrorCode::KeyTooLong);
    Ok(())
}
