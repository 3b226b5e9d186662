//! One-shot transactions whose leaves are split or merged, by themselves and by others, before they end.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;

use perilune_store::{Error, Span};

use super::{OneShot, Transaction};
use crate::access::Access;
use crate::image::layout::{session, SESSIONS_AT, SESSION_BYTES};
use crate::image::Image;
use crate::limits::{HELD, INLINE_MAX};
use crate::session::{Counter, Seat};
use crate::tree::tests::scratch;
use crate::tree::{Neighbour, Seek, Wanted, Which};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn access(image: &Arc<Image>, session: u16) -> Access {
    Access::new(Seat::new(image.clone(), session))
}

fn begun() -> OneShot {
    let mut one_shot = OneShot::default();
    one_shot.begin();
    one_shot
}

fn get(access: &Access, one_shot: &mut OneShot, key: &[u8]) -> Option<Vec<u8>> {
    let mut value = Vec::new();
    one_shot.get(access, key, &mut value).unwrap().then_some(value)
}

fn count_of(access: &Access, counter: Counter) -> u64 {
    let at = SESSIONS_AT + usize::from(access.seat.id) * SESSION_BYTES;
    access.seat.image.shm.word(at + (session::STATISTICS + counter as usize) * 8).load(Relaxed)
}

fn splits(access: &Access) -> u64 {
    count_of(access, Counter::Splits)
}

fn content(access: &Access) -> Model {
    let (mut key, mut value, mut all) = (Vec::new(), Vec::new(), Model::new());
    let mut from = vec![1];
    let next = Neighbour::Next;
    while access
        .neighbour(
            Which::Main,
            Seek { from: &from, side: next, bound: &[] },
            &mut key,
            Some(Wanted::whole(&mut value)),
            &mut (),
        )
        .unwrap()
    {
        all.insert(key.clone(), value.clone());
        std::mem::swap(&mut from, &mut key);
    }
    all
}

/// A tree of some leaves, `k0000`, `k0010` and so on.
fn grown(access: &Access, count: usize) -> Model {
    let pairs = (0..count).map(|number| (format!("k{:04}", number * 10).into_bytes(), vec![7; 100]));
    let model: Model = pairs.collect();
    for (key, value) in &model {
        access.set(Which::Main, key, value).unwrap();
    }
    model
}

/// What was read of a leaf, by place, by neighbour and by count, is as good of the two that are made of it for a write.
#[test]
fn a_full_leaf_is_split_and_what_was_read_of_it_holds() {
    let access = access(&scratch(4_000), 1);
    let mut model = grown(&access, 400);
    let before = splits(&access);
    for round in 0..300_usize {
        let mut one_shot = begun();
        let first = format!("k{:04}", round * 37 % 4_000).into_bytes();
        assert_eq!(get(&access, &mut one_shot, &first), model.get(&first).cloned(), "{round}");
        let mut found = Vec::new();
        let there = one_shot
            .neighbour(&access, Seek { from: &first, side: Neighbour::Next, bound: &[] }, &mut found, None)
            .unwrap();
        let behind = model.range(first.clone()..).map(|(key, _)| key).find(|key| **key != first);
        assert_eq!(behind, there.then_some(&found), "{round}");
        if round % 3 == 0 {
            let high = [&first[..4], &[0xfe][..]].concat();
            let span = Span { low: &first, high: &high, backwards: false, most: u64::MAX };
            let count = one_shot.count(&access, &span, &mut Vec::new()).unwrap();
            assert_eq!(count as usize, model.range(first.clone()..high).count(), "{round}");
        }
        for (part, len) in [(0, INLINE_MAX / 3), (1, 30), (2, INLINE_MAX / 2), (3, INLINE_MAX * 3 / 4)] {
            let key = [&first[..], &[b'a' + (round % 20) as u8, b'0' + part]].concat();
            one_shot.write(&key, Some(&vec![part; len])).unwrap();
            model.insert(key, vec![part; len]);
        }
        one_shot.write(&first, Some(b"first")).unwrap();
        model.insert(first, b"first".to_vec());
        one_shot.end();
        assert!(access.end_one_shot(&mut one_shot, true).unwrap(), "nobody is in its way: {round}");
    }
    assert!(splits(&access) > before + 30, "hardly any leaf was full");
    assert_eq!(content(&access), model);
}

/// Somebody else splits or merges a leaf between a read and the end, or between two reads: nothing happens.
#[test]
fn what_others_split_or_merge_is_noticed() {
    let image = scratch(4_000);
    let (access, other) = (access(&image, 1), access(&image, 2));
    for between_reads in [false, true] {
        for merges in [false, true] {
            grown(&access, 400);
            let mut one_shot = begun();
            get(&access, &mut one_shot, b"k1000");
            let (counter, before) = match merges {
                true => (Counter::Merges, count_of(&other, Counter::Merges)),
                false => (Counter::Splits, splits(&other)),
            };
            for number in 900..1_100 {
                let key = format!("k{number:04}").into_bytes();
                if merges && key != b"k1000" {
                    other.remove(Which::Main, &key).unwrap();
                } else if number % 10 != 0 {
                    other.set(Which::Main, &key, &[1; 100]).unwrap();
                }
            }
            assert!(count_of(&other, counter) > before, "{merges}");
            let model = content(&other);
            if between_reads {
                let _ = one_shot.get(&access, b"k1005", &mut Vec::new());
            }
            // Much, so that a leaf has no room for it.
            for number in 0..5 {
                let _ = one_shot.write(format!("k1000{number}").as_bytes(), Some(&[2; 1_500]));
            }
            one_shot.end();
            assert!(!access.end_one_shot(&mut one_shot, true).unwrap(), "{between_reads} {merges}");
            assert!(content(&other) == model, "{between_reads} {merges}");
        }
    }
}

/// Threads count in one-shot transactions, and add keys that make leaves split all the time: no count is lost.
#[test]
fn counts_survive_splits_beside_them() {
    const THREADS: u16 = 3;
    const ROUNDS: u64 = 400;
    let image = scratch(8_000);
    let number =
        |value: Option<Vec<u8>>| value.and_then(|value| value.try_into().ok()).map_or(0, u64::from_le_bytes);
    let done: u64 = std::thread::scope(|scope| {
        let counting = |thread: u16| {
            let access = access(&image, thread + 1);
            let mut done = 0;
            for round in 0..ROUNDS {
                let mut one_shot = begun();
                let counter = format!("k{:02}", round % 7).into_bytes();
                let (mut value, own) = (Vec::new(), format!("k{:02}-{thread}-{round}", round % 7));
                let read = one_shot.get(&access, &counter, &mut value).map(|found| found.then_some(value));
                let Ok(read) = read else { continue };
                let count = number(read) + 1;
                let written = one_shot
                    .write(&counter, Some(&count.to_le_bytes()))
                    .and_then(|()| one_shot.write(own.as_bytes(), Some(&[thread as u8; 600])));
                one_shot.end();
                done += u64::from(written.is_ok() && access.end_one_shot(&mut one_shot, true).unwrap());
            }
            assert!(splits(&access) > 0, "no leaf was full");
            done
        };
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || counting(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let all = content(&access(&image, 9));
    let counters = all.iter().filter(|(key, _)| key.len() == 3);
    let counted: u64 = counters.clone().map(|(_, value)| number(Some(value.clone()))).sum();
    assert_eq!((counted, all.len() - counters.count()), (done, done as usize));
    assert!(done > ROUNDS / 2, "{done}: hardly any was one_shot");
}

/// As many as one record of the tiny engine has room for.
const FEW_OF_TINY: usize = 80;

/// Ends one that only writes, which nobody disturbs.
fn write_all(access: &Access, writes: &[(Vec<u8>, Option<Vec<u8>>)]) -> bool {
    let mut one_shot = begun();
    for (key, value) in writes {
        match value {
            Some(value) => one_shot.write(key, Some(value)).unwrap(),
            None => drop(one_shot.remove(access, key).unwrap()),
        }
    }
    one_shot.end();
    let done = access.end_one_shot(&mut one_shot, true).unwrap();
    assert!(!one_shot.was_disturbed(), "nobody is there");
    done
}

/// Many writes in one place, where all leaves are full or of an earlier generation: room is found for them, page by page. They
/// were once refused as if somebody had been in the way, since a page cannot be split before it is copied; and as if they were
/// in too many leaves, since what came before a full leaf was parted from it few by few.
#[test]
fn many_writes_find_room_in_whatever_generation() {
    let image = scratch(4_000);
    let access = access(&image, 1);
    let mut model = Model::new();
    for round in 0..12_usize {
        image.control(crate::image::layout::control::GEN).store(round as u64 / 2 + 1, Relaxed);
        let count = [17, 100, 600][round % 3];
        let count = if cfg!(feature = "tiny") { count.min(FEW_OF_TINY) } else { count };
        let write = |step: usize| {
            // Behind all others, before all others, and among them.
            let number = match round % 4 {
                0 => 50_000 + round * 1_000 + step,
                1 => 50_000 - round * 1_000 - step,
                _ => step * 7_919 % 100_003,
            };
            (format!("k{number:06}").into_bytes(), Some(vec![round as u8; 30 + step % 50]))
        };
        let writes: Vec<_> = (0..count).map(write).collect();
        assert!(write_all(&access, &writes), "nobody is in its way: {round}, {count}");
        model.extend(writes.into_iter().filter_map(|(key, value)| Some((key, value?))));
        assert!(content(&access) == model, "{round}");
    }
}

/// Each in a leaf of its own, and more than a session notes as latched, was refused: MSET tried that in vain, and then kept all
/// other writers out.
#[test]
fn writes_to_many_leaves_are_of_one_shot() {
    let image = scratch(4_000);
    let access = access(&image, 1);
    let mut model = Model::new();
    for number in 0..FEW_OF_TINY * 3 {
        let (key, value) = (format!("k{number:06}").into_bytes(), vec![1; INLINE_MAX / 2]);
        access.set(Which::Main, &key, &value).unwrap();
        model.insert(key, value);
    }
    let writes: Vec<_> = model.keys().step_by(3).map(|key| (key.clone(), Some(vec![2; 30]))).collect();
    assert!(writes.len() > HELD && write_all(&access, &writes));
    model.extend(writes.into_iter().filter_map(|(key, value)| Some((key, value?))));
    assert!(content(&access) == model);
    assert_eq!(access.seat.held().0, Vec::new(), "all are released");
}

/// A whole transaction that goes on from a one-shot one copies and splits the leaves that were read there, and knows nothing but
/// their words. That was once a conflict with itself: the body ran again.
#[test]
fn a_whole_transaction_follows_the_leaves_that_it_splits_and_copies() {
    for is_old in [false, true] {
        let image = scratch(4_000);
        let (access, other) = (access(&image, 1), access(&image, 2));
        let mut model = grown(&access, 400);
        let control = image.control(crate::image::layout::control::GEN);
        for round in 0..20_usize {
            let mut one_shot = begun();
            let key = |number: usize| format!("k{number:04}").into_bytes();
            let near = round * 191 % 3_900;
            for number in [near, near + 3, near + 50] {
                assert_eq!(get(&access, &mut one_shot, &key(number)), model.get(&key(number)).cloned());
            }
            one_shot.write(&key(near + 3), Some(&[1; 10])).unwrap();
            let mut txn = Transaction::new();
            access.hand_over(&mut one_shot, &mut txn).unwrap();
            assert!(access.txn_get(&mut txn, Which::Main, &key(near + 7), &mut Vec::new()).is_ok());
            for part in 0..150 {
                let new = [&key(near)[..], format!("-{part:03}").as_bytes()].concat();
                txn.set(Which::Main, &new, &[part as u8; 60]);
                model.insert(new, vec![part as u8; 60]);
            }
            model.insert(key(near + 3), vec![1; 10]);
            if is_old {
                control.fetch_add(1, Relaxed);
            }
            let is_disturbed = round % 5 == 4;
            if is_disturbed {
                other.set(Which::Main, &key(near + 50), b"theirs").unwrap();
                assert!(matches!(access.commit(&mut txn, None), Err(Error::Conflict)), "{round}");
                model = content(&other);
                continue;
            }
            let before = (splits(&access), count_of(&access, Counter::Copies));
            access.commit(&mut txn, None).unwrap();
            let (split, copied) = (splits(&access) - before.0, count_of(&access, Counter::Copies) - before.1);
            assert!(split > 0 && (copied > 0) == is_old, "{round}: {split}, {copied}");
            assert!(content(&access) == model, "{round}");
        }
    }
}

/// One-shot transactions of up to 1,024 writes beside a model: values that come, change and go, some of them read before, at
/// places that lie together and apart; checkpoints between two of them, and while one is open.
#[test]
fn many_writes_beside_a_model() {
    let mut state = 7_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize % end
    };
    let image = scratch(6_000);
    let access = access(&image, 1);
    let control = image.control(crate::image::layout::control::GEN);
    let (mut model, mut refused) = (Model::new(), 0);
    for round in 0..400_usize {
        let most = if cfg!(feature = "tiny") { FEW_OF_TINY } else { 1_024 };
        let count = 1 + [below(16), below(100), below(most)][round % 3].min(most - 1);
        let (start, step, longest) = (below(3_000), [1, 1, 3, 40][below(4)], [20, 60, 90][below(3)]);
        let (mut changed, mut one_shot) = (model.clone(), begun());
        for at in 0..count {
            let number = match step {
                40 => below(4_000),
                _ if round % 2 == 0 => start + at * step,
                _ => start + count * step - at * step,
            };
            // Not all of one length, so that some keys begin others.
            let key = [format!("k{number:05}").as_bytes(), &b"longer"[..below(3) * 3]].concat();
            if below(4) == 0 {
                let mut value = Vec::new();
                // NB: an error is that the tiny engine reads fewer leaves: it has failed, and its end says so.
                let Ok(found) = one_shot.get(&access, &key, &mut value) else { break };
                assert_eq!(found.then_some(value), changed.get(&key).cloned(), "{round}");
            }
            if below(3) == 0 {
                let Ok(was_there) = one_shot.remove(&access, &key) else { break };
                assert_eq!(was_there, changed.remove(&key).is_some(), "{round}");
            } else {
                let value = vec![round as u8; below(longest)];
                one_shot.write(&key, Some(&value)).unwrap();
                changed.insert(key, value);
            }
            if below(2_000) == 0 {
                control.fetch_add(1, Relaxed);
            }
        }
        one_shot.end();
        let is_written = access.end_one_shot(&mut one_shot, true).unwrap();
        assert!(!one_shot.was_disturbed() && !one_shot.was_kept_out(), "nobody is there: {round}");
        if is_written {
            model = changed;
        } else {
            // More than one record of the tiny engine.
            assert!(count > 16, "{round}: {count}");
            refused += 1;
        }
        assert!(content(&access) == model, "{round}");
        control.fetch_add(u64::from(below(8) == 0), Relaxed);
    }
    let most = if cfg!(feature = "tiny") { 200 } else { 0 };
    assert!(refused <= most, "{refused}: hardly any was one_shot");
}
