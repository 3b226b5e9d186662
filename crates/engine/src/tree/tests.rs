//! The trees against a `BTreeMap`, on memory that belongs to the test.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune_disk::{FileId, RealDisk};
use perilune_shm::latch::{self, State};
use perilune_shm::region::Region;
use perilune_store::{Presence, Span};

use super::{Neighbour, Seek, Wanted, Which};
use crate::access::Access;
use crate::image::layout::{control, Owner};
use crate::image::{Home, Image};
use crate::limits::{INLINE_MAX, PAGE, SEGMENT_RESERVED, USER_KEY_MAX, VOLATILE};
use crate::session::Seat;
use crate::{page, verify};

/// An image on anonymous memory with two empty trees, of which nobody else knows.
pub(crate) fn scratch(pages: u64) -> Arc<Image> {
    let image = Image {
        db: Region::anonymous(pages as usize * PAGE).unwrap(),
        shm: Region::anonymous(Image::shm_bytes(pages)).unwrap(),
        path: PathBuf::from("scratch"),
        shm_path: PathBuf::from("scratch-shm"),
        home: Home::new(FileId { device: 0, inode: 0 }, None, None),
        read_only: false,
        advice: crate::image::Advice::default(),
        ahead: crate::image::Ahead::default(),
        proofs: crate::image::Proofs::default(),
        me: Owner { slot: 0, incarnation: 1 },
        pages_max: pages,
        liveness: Box::new(|_| true),
        disk: Arc::new(RealDisk),
        buffer: std::sync::Mutex::default(),
        wait_limit: crate::limits::WAIT_LIMIT,
        wakes_stopped: false,
        late: std::sync::Mutex::default(),
    };
    image.control(control::NPAGES).store(pages, Relaxed);
    image.control(control::FLUSH).store(1, Relaxed);
    image.control(control::GEN).store(1, Relaxed);
    for (root, which, born) in [(0, Which::Main, 1), (1, Which::Volatile, VOLATILE)] {
        let number = SEGMENT_RESERVED as u32 + root;
        let leaf = page::empty_leaf(which.page_flags());
        page::put_identity(&leaf, number, born);
        perilune_shm::words::copy(&leaf, image.page(number));
        let died = if born == VOLATILE { VOLATILE } else { 0 };
        image.life_word(number).store(u64::from(born) << 32 | u64::from(died), Relaxed);
        latch::release(image.latch(number), State::Tree, 1);
        image.control(which.root_word()).store(number.into(), Relaxed);
    }
    image.control(control::FRONTIER).store(SEGMENT_RESERVED + 2, Relaxed);
    image.control(control::SESSIONS_HIGH).store(8, Relaxed);
    Arc::new(image)
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn key(&mut self) -> Vec<u8> {
        let len = match self.below(20) {
            0 => USER_KEY_MAX as u64 - self.below(3),
            1..=5 => 1 + self.below(12),
            _ => 1 + self.below(4),
        };
        let alphabet: &[u8] = if self.below(3) == 0 { b"a\0\xfe" } else { b"abc\0" };
        let mut key: Vec<u8> =
            (0..len).map(|_| alphabet[self.below(alphabet.len() as u64) as usize]).collect();
        if len > 100 {
            key[3..len as usize - 4].fill(b'x');
        }
        key
    }

    fn value(&mut self) -> Vec<u8> {
        let len = match self.below(40) {
            0 => INLINE_MAX as u64 + self.below(60_000),
            1..=4 => self.below(INLINE_MAX as u64 + 1),
            _ => self.below(40),
        };
        let byte = self.next() as u8;
        (0..len).map(|i| byte.wrapping_add(i as u8)).collect()
    }
}

fn compare_all(access: &Access, which: Which, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let (mut key, mut value, mut from) = (Vec::new(), Vec::new(), Vec::new());
    for (expected_key, expected_value) in model {
        assert!(access
            .neighbour(
                which,
                Seek { from: &from, side: Neighbour::Next, bound: &[] },
                &mut key,
                Some(Wanted::whole(&mut value)),
                &mut ()
            )
            .unwrap());
        assert_eq!(&key, expected_key);
        assert_eq!(&value, expected_value);
        from.clone_from(&key);
    }
    assert!(!access
        .neighbour(which, Seek { from: &from, side: Neighbour::Next, bound: &[] }, &mut key, None, &mut ())
        .unwrap());
    let mut from = vec![0xff];
    for expected_key in model.keys().rev() {
        assert!(access
            .neighbour(
                which,
                Seek { from: &from, side: Neighbour::Previous, bound: &[] },
                &mut key,
                None,
                &mut ()
            )
            .unwrap());
        assert_eq!(&key, expected_key);
        from.clone_from(&key);
    }
    assert!(!access
        .neighbour(
            which,
            Seek { from: &from, side: Neighbour::Previous, bound: &[] },
            &mut key,
            None,
            &mut ()
        )
        .unwrap());
}

/// Counts between random keys, from either end, up to a number.
fn compare_counts(access: &Access, which: Which, model: &BTreeMap<Vec<u8>, Vec<u8>>, random: &mut Random) {
    let mut key = Vec::new();
    for _ in 0..200 {
        let (low, high) =
            (random.key(), [random.key(), vec![0xff]].into_iter().nth(random.below(2) as usize));
        let (high, backwards) = (high.unwrap_or_default(), random.below(2) == 0);
        let within: Vec<&Vec<u8>> = model.keys().filter(|key| low <= **key && **key < high).collect();
        let most = if random.below(2) == 0 { u64::MAX } else { 1 + random.below(within.len() as u64 + 3) };
        let span = Span { low: &low, high: &high, backwards, most };
        let count = access.count(which, &span, &mut key, &mut ()).unwrap();
        assert_eq!(count, most.min(within.len() as u64), "{span:?}");
        if count == most {
            let at = most as usize - 1;
            let expected = if backwards { within[within.len() - 1 - at] } else { within[at] };
            assert_eq!(key, *expected, "{span:?}");
        }
        let length = random.below(4) as usize;
        let mut groups: Vec<&Vec<u8>> = within.clone();
        groups.dedup_by(|one, other| {
            length > 0 && one.len() >= length && one.get(..length) == other.get(..length)
        });
        let group = |key: &[u8]| if key.len() < length { 0 } else { length };
        let count = access.count_groups(which, &Span { backwards: false, ..span }, &group, &mut key).unwrap();
        assert_eq!(count, most.min(groups.len() as u64), "groups of {length}: {span:?}");
        if count == most {
            assert_eq!(key, *groups[most as usize - 1], "groups of {length}: {span:?}");
        }
    }
}

fn run(seed: u64, which: Which, rounds: usize) {
    let image = scratch(40_000);
    let access = Access::new(Seat::new(image.clone(), 1));
    let mut random = Random(seed);
    let mut model = BTreeMap::new();
    let mut value = Vec::new();
    for round in 0..rounds {
        let key = random.key();
        match random.below(if round / 5000 % 2 == 0 { 6 } else { 12 }) {
            0..=3 => {
                let new = random.value();
                access.set(which, &key, &new).unwrap();
                model.insert(key, new);
            }
            4 => {
                assert_eq!(access.get(which, &key, &mut value, &mut ()).unwrap(), model.contains_key(&key));
                if let Some(expected) = model.get(&key) {
                    assert_eq!(&value, expected, "seed {seed} round {round}");
                }
                let presence = access.presence(which, &key, &mut value).unwrap();
                let below = (Bound::Excluded(&key), Bound::Unbounded);
                let below = model.range::<Vec<u8>, _>(below).next().is_some_and(|(k, _)| k.starts_with(&key));
                let expected = Presence { value: model.contains_key(&key), descendants: below };
                assert_eq!(presence, expected, "seed {seed} round {round}");
            }
            _ => {
                let existed = access.remove(which, &key).unwrap().existed;
                assert_eq!(existed, model.remove(&key).is_some(), "seed {seed} round {round}");
            }
        }
        if round % 4000 == 0 {
            compare_all(&access, which, &model);
            compare_counts(&access, which, &model, &mut random);
            verify::verify(&image).unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}"));
        }
    }
    compare_all(&access, which, &model);
    compare_counts(&access, which, &model, &mut random);
    for key in model.keys().cloned().collect::<Vec<_>>() {
        assert!(access.remove(which, &key).unwrap().existed);
    }
    let report = verify::verify(&image).unwrap();
    assert_eq!(report.records + report.extent_pages, 0);
    assert!(report.leaf_pages <= 2, "{report:?}");
}

#[test]
fn single_operations_agree_with_a_map() {
    // The tiny engine is tested beside the whole one, and without optimization.
    for seed in if cfg!(feature = "tiny") { 1..2 } else { 1..4 } {
        run(0x9e37_79b9 * seed, Which::Main, 20_000);
        run(0x9e37_79b9 * seed + 1, Which::Volatile, 6_000);
    }
}

/// Pairs that ascend, mostly: near each other, far from each other, or somewhere in the tree again.
fn some_run(random: &mut Random, model: &BTreeMap<Vec<u8>, Vec<u8>>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let most = if random.below(4) == 0 { 3000 } else { 40 };
    let count = 1 + random.below(most);
    let stem = random.key();
    let stem = if random.below(2) == 0 { &stem[..] } else { model.keys().next_back().unwrap_or(&stem) };
    let stem = &stem[..stem.len().min(USER_KEY_MAX - 16)];
    let (start, step) = (random.below(1 << 20), 1 + random.below(300));
    let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = (0..count)
        .map(|index| {
            let near = [stem, &(start + index * step).to_be_bytes()[4..]].concat();
            let key = if random.below(30) == 0 { random.key() } else { near };
            let value = if random.below(4) == 0 { random.value() } else { vec![index as u8; 9] };
            (key, value)
        })
        .collect();
    if random.below(5) > 0 {
        pairs.sort_by(|a, b| a.0.cmp(&b.0));
    }
    pairs
}

#[test]
fn runs_agree_with_a_map() {
    for seed in 1..4 {
        let image = scratch(40_000);
        let access = Access::new(Seat::new(image.clone(), 1));
        let mut random = Random(0x9e37_79b9 * seed);
        let mut model = BTreeMap::new();
        for round in 0..40 {
            let pairs = some_run(&mut random, &model);
            let run: Vec<(&[u8], &[u8])> = pairs.iter().map(|(key, value)| (&key[..], &value[..])).collect();
            access.set_run(&run).unwrap();
            model.extend(pairs);
            for key in (0..30).map(|_| random.key()) {
                assert_eq!(access.remove(Which::Main, &key).unwrap().existed, model.remove(&key).is_some());
            }
            if round % 20 == 7 {
                crate::control::cut(&image, 0).unwrap();
            }
            verify::verify(&image).unwrap_or_else(|error| panic!("seed {seed} round {round}: {error}"));
        }
        compare_all(&access, Which::Main, &model);
    }
}

#[test]
fn a_run_fills_its_leaves() {
    let image = scratch(4_000);
    let access = Access::new(Seat::new(image.clone(), 1));
    let keys: Vec<Vec<u8>> =
        (0..20_000).map(|index| format!("customers/{index:08}/name").into_bytes()).collect();
    // What is there already lies on both sides of what comes.
    access.set(Which::Main, b"a", b"first").unwrap();
    access.set(Which::Main, b"z", b"last").unwrap();
    for chunk in keys.chunks(5_000) {
        let run: Vec<(&[u8], &[u8])> = chunk.iter().map(|key| (&key[..], &b"some value"[..])).collect();
        access.set_run(&run).unwrap();
    }
    let report = verify::verify(&image).unwrap();
    assert_eq!(report.records, 20_002);
    let raw = 20_000 * (page::record_bytes(8, 10) + 8);
    assert!(report.leaf_pages as usize * PAGE < raw * 5 / 4, "{report:?}: leaves are not filled");
}

#[test]
fn threads_set_runs_in_one_another() {
    let image = scratch(20_000);
    std::thread::scope(|scope| {
        for id in 1..=4u16 {
            let image = image.clone();
            scope.spawn(move || {
                let access = Access::new(Seat::new(image, id));
                for round in 0..20u32 {
                    let keys: Vec<[u8; 6]> = (0..2_000u32)
                        .map(|index| {
                            let [_, a, b, c] = (round * 2_000 + index).to_be_bytes();
                            [b'r', a, b, c, 0, id as u8]
                        })
                        .collect();
                    let run: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &key[..])).collect();
                    access.set_run(&run).unwrap();
                }
            });
        }
    });
    assert_eq!(verify::verify(&image).unwrap().records, 4 * 40_000);
}

#[test]
fn first_touch_after_a_new_generation_copies_the_path() {
    let image = scratch(4_000);
    let access = Access::new(Seat::new(image.clone(), 1));
    for i in 0..3000u32 {
        access.set(Which::Main, &i.to_be_bytes(), &i.to_le_bytes()).unwrap();
    }
    let (old, root) = crate::control::cut(&image, 0).unwrap();
    assert_eq!(old, 1);
    for i in (0..3000u32).step_by(7) {
        access.set(Which::Main, &i.to_be_bytes(), b"new").unwrap();
    }
    verify::verify(&image).unwrap();
    assert_ne!(image.control(control::ROOT).load(Relaxed) as u32, root);
    let mut value = Vec::new();
    for i in 0..3000u32 {
        assert!(access.get(Which::Main, &i.to_be_bytes(), &mut value, &mut ()).unwrap());
        let expected = if i % 7 == 0 { b"new".to_vec() } else { i.to_le_bytes().to_vec() };
        assert_eq!(value, expected);
    }
}

#[test]
fn threads_count_on_common_counters() {
    let image = scratch(4_000);
    std::thread::scope(|scope| {
        for id in 1..=4 {
            let image = image.clone();
            scope.spawn(move || {
                let access = Access::new(Seat::new(image, id));
                let mut random = Random(u64::from(id) * 77);
                for _ in 0..20_000 {
                    let key = [b'c', random.below(3) as u8];
                    access
                        .update(Which::Main, &key, &mut |current, buffer| {
                            let old =
                                current.map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                            buffer[..8].copy_from_slice(&(old + 1).to_le_bytes());
                            Ok(perilune_store::Decision::Write(8))
                        })
                        .unwrap();
                    let key = (random.below(5000) as u32).to_be_bytes();
                    if random.below(3) == 0 {
                        access.remove(Which::Main, &key).unwrap();
                    } else {
                        access.set(Which::Main, &key, &vec![7; random.below(300) as usize]).unwrap();
                    }
                }
            });
        }
    });
    verify::verify(&image).unwrap();
    let access = Access::new(Seat::new(image, 1));
    let (mut value, mut sum) = (Vec::new(), 0);
    for counter in 0..3 {
        assert!(access.get(Which::Main, &[b'c', counter], &mut value, &mut ()).unwrap());
        sum += u64::from_le_bytes(value[..].try_into().unwrap());
    }
    assert_eq!(sum, 80_000);
}

/// Each transaction moves one key to another place, so there are always as many; values of all lengths make leaves split
/// and merge meanwhile.
#[test]
fn a_count_is_that_of_one_moment() {
    const KEYS: u64 = 3_000;
    const MOVES: usize = 4_000;
    let image = scratch(20_000);
    let access = Access::new(Seat::new(image.clone(), 1));
    for key in 0..KEYS {
        access.set(Which::Main, &(2 * key as u32).to_be_bytes(), &[7; 60]).unwrap();
    }
    std::thread::scope(|scope| {
        // Gone at the end of this block, by a failure too: then who counts ends.
        let moving = Arc::new(());
        let (is_moving, image) = (Arc::downgrade(&moving), image.clone());
        let counting = scope.spawn(move || {
            let access = Access::new(Seat::new(image, 2));
            let mut rounds = 0;
            while is_moving.strong_count() > 0 || rounds < 10 {
                for backwards in [false, true] {
                    let span = Span { low: &[0], high: &[0xff], backwards, most: u64::MAX };
                    assert_eq!(access.count(Which::Main, &span, &mut Vec::new(), &mut ()).unwrap(), KEYS);
                }
                rounds += 1;
            }
        });
        let mut random = Random(77);
        let mut places: Vec<u32> = (0..KEYS as u32).map(|key| 2 * key).collect();
        for _ in 0..MOVES {
            let at = random.below(KEYS) as usize;
            let (old, new) = (places[at], random.below(4 * KEYS) as u32);
            if places.contains(&new) {
                continue;
            }
            let value = vec![7; random.below(900) as usize];
            let deadline = Instant::now() + Duration::from_secs(60);
            let moved = access.atomically(deadline, |_, txn| {
                txn.remove(Which::Main, &old.to_be_bytes());
                txn.set(Which::Main, &new.to_be_bytes(), &value);
                Ok(())
            });
            moved.unwrap();
            places[at] = new;
        }
        drop(moving);
        counting.join().unwrap();
    });
}

/// Heads, ends and values are found where they are, by guesses and digests that others' splits make wrong.
#[test]
fn what_is_remembered_is_no_more_than_a_guess() {
    let image = scratch(20_000);
    let [reader, writer] = [1, 2].map(|id| Access::new(Seat::new(image.clone(), id)));
    let key = |number: usize, rest: &str| format!("^name element:{number:08}{rest}").into_bytes();
    let (mut found, mut value, mut digested) = (Vec::new(), Vec::new(), 0);
    let mut there = vec![false; 20_000];
    for round in 0..20_000 {
        // The root rests now and then.
        if round % 4_000 < 2_000 {
            let new = round * 7_919 % there.len();
            writer.set(Which::Main, &key(new, "a"), b"a value that is a little longer").unwrap();
            there[new] = true;
        }
        let wanted = round * 31 * 7_919 % there.len();
        let [low, at, high] = ["", "a", "b"].map(|rest| key(wanted, rest));
        let is_there = reader.get(Which::Main, &at, &mut value, &mut ()).unwrap();
        let (from, side, bound) = match round % 2 {
            0 => (&low, Neighbour::AtOrNext, &high),
            _ => (&high, Neighbour::Previous, &low),
        };
        let is_found =
            reader.neighbour(Which::Main, Seek { from, side, bound }, &mut found, None, &mut ()).unwrap();
        assert_eq!((is_there, is_found), (there[wanted], there[wanted]), "{wanted} in {round}");
        assert!(!is_found || found == at);
        digested += usize::from(reader.fingers.root.tells(&at));
    }
    assert!(digested > 1_000, "{digested}");
}

#[test]
fn an_estimate_is_near_the_truth_and_exact_in_a_leaf() {
    let image = scratch(4_000);
    let access = Access::new(Seat::new(Arc::clone(&image), 1));
    let key = |number: u32| format!("k{number:06}").into_bytes();
    let about = |low: u32, high: u32| {
        access.read(|| super::estimate(&image, Which::Main, &key(low), &key(high))).unwrap()
    };
    assert_eq!(about(0, 10), 0, "of an empty tree");
    (0..20_000_u32).for_each(|number| {
        access.set(Which::Main, &key(number * 7_919 % 20_000), b"some value").map(drop).unwrap();
    });
    for (low, high) in [(0, 20_000), (3_000, 9_000), (10, 2_000), (19_000, 20_000), (500, 15_500)] {
        let (found, truth) = (about(low, high) as f64, f64::from(high - low));
        assert!((0.5..2.0).contains(&(found / truth)), "{low}..{high}: {found}");
    }
    assert_eq!((about(7, 7), about(9, 3)), (0, 0));
    let exact = (0..19_990).filter(|low| about(*low, low + 4) == 4).count();
    assert!(exact > 15_000, "{exact} of 19,990 lie in one leaf");
}
