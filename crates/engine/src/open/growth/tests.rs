//! The disk fails while the files grow: an error before anything is written, and nothing but that.

use std::collections::BTreeMap;
use std::sync::Arc;

use perilune_disk::{Fault, FaultyDisk};
use perilune_store::{Error, Result};

use super::tests::{options, Scratch};
use super::{claim_session, release_session, Attachment};
use crate::access::Access;
use crate::limits::PAGE;
use crate::tree::Which;
use crate::verify;

type Content = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(number: u32) -> Vec<u8> {
    format!("key {number:03}").into_bytes()
}

/// Short values and long ones, of more pages than a new file has.
fn value(number: u32) -> Vec<u8> {
    vec![number as u8; if number.is_multiple_of(3) { 20 * PAGE + 5 } else { 1500 }]
}

fn check(access: &Access, content: &Content, what: &str) {
    let mut value = Vec::new();
    for (key, expected) in content {
        value.clear();
        assert!(access.get(Which::Main, key, &mut value, &mut ()).unwrap(), "{what}");
        assert!(value == *expected, "{what}");
    }
}

/// Writes until the file has grown twice, with the disk failing once or from then on. After each error: it is
/// the one of the disk, the file has not grown, all is there, smaller writes go on, and once there is space
/// the same write is made. Where space is short only once, less is asked for and no write fails. Answers whether the
/// disk was asked as often as to fail.
fn grow(disk: &FaultyDisk, fault: Fault, call: u64, is_lasting: bool) -> bool {
    let what = format!("{fault:?} at call {call}, lasting: {is_lasting}");
    let scratch = Scratch::new();
    let attachment = Attachment::open_on(&scratch.db(), &options(), Arc::new(disk.clone())).unwrap();
    let image = attachment.image().unwrap();
    let access = Access::new(claim_session(image).unwrap());
    let set = |key: &[u8], value: &[u8]| -> Result<()> { access.set(Which::Main, key, value).map(drop) };
    let (mut content, mut failed, mut grown, mut size) = (Content::new(), 0, 0, image.npages());
    set(b"small", b"0").unwrap();
    content.insert(b"small".to_vec(), b"0".to_vec());
    if is_lasting {
        disk.fail_from_call(call);
    } else {
        disk.fail_call(call);
    }
    let last = disk.calls() + call;
    for number in 0.. {
        let (key, value) = (key(number), value(number));
        if let Err(error) = set(&key, &value) {
            failed += 1;
            let is_right = match (fault, &error) {
                (Fault::NoSpace, Error::NoSpace { .. }) => true,
                (Fault::Io | Fault::ShortWrite, Error::Io { source, .. }) => source.raw_os_error() == Some(5),
                _ => false,
            };
            assert!(is_right, "{what}: {error}");
            assert_eq!(image.npages(), size, "{what}");
            check(&access, &content, &what);
            let small = number.to_string().into_bytes();
            set(b"small", &small).unwrap();
            content.insert(b"small".to_vec(), small);
            disk.fail_call(0);
            set(&key, &value).unwrap();
        }
        content.insert(key, value);
        if image.npages() > size {
            (size, grown) = (image.npages(), grown + 1);
        }
        if grown == 2 {
            break;
        }
    }
    disk.fail_call(0);
    let is_reached = disk.calls() >= last;
    let heals_itself = fault == Fault::NoSpace && !is_lasting;
    assert_eq!(failed > 0, is_reached && !heals_itself, "{what}");
    check(&access, &content, &what);
    verify::verify(image).unwrap();
    release_session(&access.seat);
    attachment.close().unwrap();
    let again = scratch.open();
    let access = Access::new(claim_session(again.image().unwrap()).unwrap());
    check(&access, &content, &what);
    release_session(&access.seat);
    is_reached
}

#[test]
fn growth_that_fails_at_any_call_is_an_error_and_heals() {
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        for is_lasting in [false, true] {
            let mut calls = 0;
            for call in 1.. {
                let disk = FaultyDisk::new(fault);
                if !grow(&disk, fault, call, is_lasting) {
                    break;
                }
                calls = call;
            }
            assert!(calls >= 2, "{fault:?}: growing twice asks the disk {calls} times");
        }
    }
}
