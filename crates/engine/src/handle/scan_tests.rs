//! Who scans changes nothing that others look at: so a writer beside a scan waits for nothing, and repeats nothing.
//!
//! What is left of a scan's cost for others is memory and caches that they share, which
//! `crates/perilune/examples/writer_beside_scan.rs` measures on a quiet machine.

use std::sync::atomic::Ordering::Acquire;

use perilune_store::{
    transact, Bulk, Durability, Entries, FirstTry, Origin, Result, Scan, Session as _, Store,
    TransactionOptions,
};

use super::durability_tests::{key, options, Scratch};
use super::{Database, Session};
use crate::image::layout::control;
use crate::image::Image;
use crate::limits::{PAGE, SEGMENT_RESERVED};
use perilune_shm::{latch, words};

const KEYS: u64 = 20_000;

/// Latch, generations and bytes of every page.
fn pages(image: &Image) -> Vec<(u64, u32, u32, Vec<u8>)> {
    let frontier = image.control(control::FRONTIER).load(Acquire).min(image.npages());
    let numbers = (SEGMENT_RESERVED..frontier).filter(|number| Image::is_data_page(*number));
    let shown = numbers.map(|number| {
        let (number, mut bytes) = (number as u32, Vec::new());
        words::append(image.page(number), 0, PAGE, &mut bytes);
        let life = image.life(number);
        (latch::load(image.latch(number)).raw(), life.born, life.died, bytes)
    });
    shown.collect()
}

/// Reads all keys both ways; how many.
fn scan(session: &mut Session, backwards: bool) -> Result<u64> {
    let (mut entries, mut count) = (Entries::default(), 0);
    let (first, last): (&[u8], &[u8]) = (b"k", b"l");
    let (from, bound) = if backwards { (last, first) } else { (first, last) };
    let (mut at, mut inclusive) = (from.to_vec(), true);
    loop {
        let after: Origin = *entries.origin();
        let scan = Scan { from: &at, inclusive, bound, backwards, values: true, most: 1_000, after };
        if !session.entries(&scan, &mut entries)? {
            return Ok(count);
        }
        count += 1;
        while entries.advance() {
            count += 1;
        }
        entries.key().clone_into(&mut at);
        inclusive = false;
    }
}

#[test]
fn a_scan_changes_nothing_that_others_look_at() -> Result<()> {
    let scratch = Scratch::new();
    let database = Database::open(&scratch.db(), &options(Durability::None))?;
    let (mut writer, mut reader) = (database.session()?, database.session()?);
    for number in 0..KEYS {
        writer.set(&key(number * 7_919 % KEYS), &number.to_le_bytes())?;
    }
    let image = database.image();
    loop {
        let (generation, before) = (image.generation(), pages(&image));
        assert!(before.len() > 50, "some leaves: {}", before.len());
        for backwards in [false, true] {
            assert_eq!(scan(&mut reader, backwards)?, KEYS);
            for first_try in [FirstTry::OneShot, FirstTry::Whole] {
                let options =
                    TransactionOptions { read_only: true, first_try, ..TransactionOptions::default() };
                assert_eq!(transact(&mut reader, &options, |session| scan(session, backwards))?, KEYS);
            }
        }
        let after = pages(&image);
        // A checkpoint of the maintenance thread's may end a generation meanwhile.
        if image.generation() == generation {
            assert!(after == before, "a scan has changed a page or a latch");
            break;
        }
    }
    let before = pages(&image);
    // What is compared would show a change.
    writer.set(&key(1), b"another")?;
    assert!(pages(&image) != before, "a write changes a page");
    Ok(())
}
