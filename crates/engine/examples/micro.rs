//! Costs of single operations, for a look while working on them.

use perilune_engine::{Database, OpenOptions};
use perilune_store::{Decision, Session, Store, TransactionOptions};
use std::time::Instant;

fn best(name: &str, count: u64, mut run: impl FnMut(u64)) {
    let mut best = f64::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        for i in 0..count {
            run(i);
        }
        best = best.min(start.elapsed().as_nanos() as f64 / count as f64);
    }
    println!("{name:28} {best:8.1} ns");
}

fn key(n: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(b"Step\0");
    let bytes = n.to_be_bytes();
    let skip = (n.leading_zeros() / 8) as usize;
    out.push(0x60 + (8 - skip) as u8);
    out.extend_from_slice(&bytes[skip..]);
}

fn main() {
    let only_transactions = std::env::args().nth(2).is_some();
    let keys: u64 = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let dir = std::env::temp_dir().join(format!("perilune-micro-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let db = Database::open(&dir.join("m.db"), &OpenOptions::default()).unwrap();
    let mut s = db.session().unwrap();
    let (mut k, mut v, mut k2) = (Vec::new(), Vec::new(), Vec::new());
    let start = Instant::now();
    for n in 0..keys {
        key(n, &mut k);
        s.set(&k, b"12345678").unwrap();
    }
    println!("load sequential             {:8.1} ns", start.elapsed().as_nanos() as f64 / keys as f64);
    let count = 300_000.min(keys * 4);
    let random = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) % keys;
    if !only_transactions {
        best("key only", count, |i| key(random(i), &mut k));
        best("get random", count, |i| {
            key(random(i), &mut k);
            assert!(s.get(&k, &mut v).unwrap());
        });
        best("get same", count, |_| {
            assert!(s.get(&k, &mut v).unwrap());
        });
        best("get sequential", count, |i| {
            key(i % keys, &mut k);
            assert!(s.get(&k, &mut v).unwrap());
        });
        best("set random", count, |i| {
            key(random(i), &mut k);
            s.set(&k, b"87654321").unwrap();
        });
        best("set same", count, |_| s.set(&k, b"87654321").unwrap());
        best("increment same", count, |_| {
            s.update(b"counter", &mut |current, buffer| {
                let old = current.map_or(0, |b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
                buffer[..8].copy_from_slice(&(old + 1).to_le_bytes());
                Ok(Decision::Write(8))
            })
            .unwrap();
        });
        k = b"Step\0".to_vec();
        best("next sequential", count, |_| {
            if !s.next(&k, false, &mut k2, None).unwrap() {
                k2 = b"Step\0".to_vec();
            }
            std::mem::swap(&mut k, &mut k2);
        });
        best("next sequential with value", count, |_| {
            if !s.next(&k, false, &mut k2, Some(&mut v)).unwrap() {
                k2 = b"Step\0".to_vec();
            }
            std::mem::swap(&mut k, &mut k2);
        });
    }
    best("transaction 2+2", count, |i| loop {
        s.begin(&TransactionOptions::default()).unwrap();
        key(random(i), &mut k);
        key(random(i + 1), &mut k2);
        s.get(&k, &mut v).unwrap();
        s.get(&k2, &mut v).unwrap();
        s.set(&k, b"aaaaaaaa").unwrap();
        s.set(&k2, b"bbbbbbbb").unwrap();
        if s.commit().is_ok() {
            break;
        }
    });
    drop(s);
    let start = Instant::now();
    db.close().unwrap();
    println!("close {:?}", start.elapsed());
    std::fs::remove_dir_all(dir).unwrap();
}
