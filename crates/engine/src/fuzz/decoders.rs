//! Records in a ring, lists of runs, keys and values, of any bytes.

use std::sync::atomic::Ordering::Relaxed;

use super::run;
use crate::image::layout::{session, Run, SESSIONS_AT, SESSION_BYTES, SESSION_RING};
use crate::limits::{KEY_MAX, PAGE, RING};
use crate::session::extent::{self, List};
use crate::session::patch::{self, Parts, Patch};
use crate::session::Seat;
use crate::tree::tests::scratch;

#[test]
fn records_take_any_bytes() {
    let image = scratch(400);
    let seat = Seat::new(image.clone(), 1);
    run("records", 20_000, |random| {
        let word = |offset| image.shm.word(SESSIONS_AT + SESSION_BYTES + SESSION_RING + offset % RING);
        let position = random.below(4 * RING) & !7;
        let len = if random.below(8) == 0 { random.next() as u32 } else { 32 + 8 * random.below(40) as u32 };
        for offset in (0..400).step_by(8) {
            let small = random.next() & 0x0000_0030_000f_0303;
            let bits = if random.below(3) == 0 { random.next() } else { small };
            word(position + offset).store(bits, Relaxed);
        }
        let counts = [1, 2, u64::from(u32::MAX), 1 << 32 | 1, random.next()][random.below(5)];
        word(position).store(u64::from(len), Relaxed);
        word(position + 24).store(counts, Relaxed);
        let head = position + if random.below(2) == 0 { (len as usize).next_multiple_of(8) } else { RING };
        seat.head_words()[session::HEAD].store(head as u64, Relaxed);
        let Ok(record) = seat.read_record(position as u64) else { return 0 };
        let Ok(ops) = record.ops() else { return 0 };
        assert!(ops.iter().all(|op| op.key.len() <= KEY_MAX));
        1
    });
}

#[test]
fn lists_of_runs_take_any_bytes() {
    let image = scratch(400);
    run("lists of runs", 30_000, |random| {
        let mut list = Vec::new();
        let pages: Vec<Run> = (0..random.below(9))
            .map(|_| Run { first: random.below(420) as u32, pages: random.below(20) as u32 })
            .collect();
        let len = pages.iter().map(|run| run.pages as usize * PAGE).sum::<usize>();
        list.extend_from_slice(&(len.saturating_sub(random.below(PAGE)) as u64).to_le_bytes());
        list.extend_from_slice(&(pages.len() as u64).to_le_bytes());
        pages.iter().for_each(|run| list.extend_from_slice(&run.to_word().to_le_bytes()));
        for _ in 0..random.below(3) {
            let at = random.below(list.len());
            list[at] = random.next() as u8;
        }
        list.truncate(list.len() - if random.below(8) == 0 { random.below(9) } else { 0 });
        let Some((len, runs)) = extent::parse(&image, &list) else { return 0 };
        let mut out = Vec::new();
        extent::append(&image, &runs, len, &mut out);
        assert_eq!(out.len(), len);
        1
    });
}

#[test]
fn patches_take_any_bytes() {
    let image = scratch(400);
    run("patches", 30_000, |random| {
        let runs = vec![Run { first: 300, pages: 2 }, Run { first: 310, pages: 1 + random.below(3) as u32 }];
        let pages: u32 = runs.iter().map(|run| run.pages).sum();
        let mut value =
            List::new(pages as usize * PAGE - random.below(PAGE), runs.clone()).as_bytes().to_vec();
        value.extend_from_slice(&1_u64.to_le_bytes());
        value.extend_from_slice(&runs[1].to_word().to_le_bytes());
        for _ in 0..random.below(4) {
            let (offset, len) = (random.below(3 * PAGE), random.below(40));
            patch::encode([Patch { offset, bytes: &random.bytes(len) }], &mut value);
        }
        for _ in 0..random.below(3) {
            let at = random.below(value.len());
            value[at] = random.next() as u8;
        }
        value.truncate(value.len() - if random.below(8) == 0 { random.below(9) } else { 0 });
        let Some(parts) = Parts::of(&value) else { return 0 };
        let Some((_, runs)) = extent::parse(&image, parts.list) else { return 0 };
        let Some(patches) = patch::decode(parts.patches) else { return 0 };
        patch::write(&image, &runs, &patches);
        1
    });
}

#[test]
fn keys_and_values_take_any_bytes() {
    use perilune_key::{
        code_len, decode_subscript, key_text, parse_key, prefix_ends, range, subscripts, validate, KeyBuf,
        Space, ValueRef, MAX_ENCODED,
    };
    run("keys and values", 30_000, |random| {
        let mut bytes = match KeyBuf::global("name") {
            Ok(mut key) if random.below(3) > 0 => {
                for _ in 0..random.below(5) {
                    let short = random.below(12);
                    let _ = match random.below(2) {
                        0 => key.push_int((random.next() as i64) >> random.below(64)),
                        _ => key.push_bytes(&random.bytes(short)),
                    };
                }
                key.as_bytes().to_vec()
            }
            _ => {
                let len = random.below(60);
                random.bytes(len)
            }
        };
        for _ in 0..random.below(3) {
            if let Some(last) = bytes.len().checked_sub(1) {
                bytes[random.below(last + 1)] = random.next() as u8;
            }
        }
        let depth = validate(&bytes);
        assert_eq!(depth.is_ok(), KeyBuf::from_encoded(&bytes, MAX_ENCODED).is_ok());
        let _ = (code_len(&bytes), decode_subscript(&bytes), range::name_of(&bytes));
        let _ = subscripts(&bytes).map(|all| all.take_while(Result::is_ok).count());
        let _ = prefix_ends(&bytes).map(|all| all.count());
        let _ = range::child_of(&bytes[..bytes.len() / 2], &bytes);
        let _ = parse_key(&bytes);
        let value = ValueRef::decode(&bytes).map(|value| value.write_text(&mut Vec::new()));
        if let Ok(text) = key_text(Space::Global, &bytes) {
            assert_eq!(parse_key(&text).unwrap().key.as_bytes(), bytes, "{text}");
        }
        u64::from(depth.is_ok()) + u64::from(value.is_ok())
    });
}
