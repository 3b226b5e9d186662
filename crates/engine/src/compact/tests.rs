//! Compacting: what is given back, and what is left if it is ended at any point.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use perilune_disk::{Disk, Fault, FaultyDisk, RealDisk};
use perilune_store::{Session, Store};

use super::*;
use crate::salvage::tests::{all_of, make, options, set_all, some_nodes, Scratch};
use crate::Database;

fn run(path: &Path, disk: Arc<dyn Disk>) -> Result<CompactReport> {
    compact(path, &options(), &disk, &mut |_, _| {})
}

#[test]
fn what_nothing_uses_is_given_back() {
    let scratch = Scratch::new();
    let path = scratch.path("x.db");
    let nodes = some_nodes(3000);
    make(&path, &nodes);
    let database = Database::open(&path, &options()).unwrap();
    let mut session = database.session().unwrap();
    for at in 0..9000u32 {
        session.set(format!("waste {at}").as_bytes(), &[7; 1500]).unwrap();
    }
    session.remove_prefix(b"waste ").unwrap();
    drop(session);
    database.close().unwrap();
    let report = run(&path, Arc::new(RealDisk)).unwrap();
    assert_eq!(report.nodes, nodes.len() as u64);
    assert!(report.bytes_after < report.bytes_before / 2, "{report:?}");
    assert_eq!(report.bytes_after, fs::metadata(&path).unwrap().len());
    assert!(all_of(&path) == nodes);
    // And it can be written to, over and over.
    let again = some_nodes(4000);
    set_all(&Database::open(&path, &options()).unwrap(), &again);
    assert!(all_of(&path) == again);
    assert!(!scratch.path("x.db-compact").exists());
}

#[test]
fn the_files_of_the_log_go_too() {
    let scratch = Scratch::new();
    let path = scratch.path("x.db");
    let at_fsync = OpenOptions { durability: Some(perilune_store::Durability::Fsync), ..options() };
    let nodes = some_nodes(500);
    set_all(&Database::open(&path, &at_fsync).unwrap(), &nodes);
    assert!(scratch.path("x.db-wal.0").exists());
    run(&path, Arc::new(RealDisk)).unwrap();
    let names = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name());
    let logs: Vec<_> = names.filter(|name| name.to_string_lossy().contains("-wal.")).collect();
    assert!(logs.is_empty(), "{logs:?}");
    assert!(all_of(&path) == nodes);
    // The level is still what it was, and the log begins anew.
    let again = some_nodes(600);
    set_all(&Database::open(&path, &options()).unwrap(), &again);
    assert!(all_of(&path) == again);
}

#[test]
fn databases_in_use_are_refused() {
    let scratch = Scratch::new();
    let path = scratch.path("x.db");
    let nodes = some_nodes(50);
    make(&path, &nodes);
    for read_only in [false, true] {
        let other = Database::open(&path, &OpenOptions { read_only, ..options() }).unwrap();
        let refusal = run(&path, Arc::new(RealDisk)).unwrap_err().to_string();
        assert!(refusal.contains("is in use") || refusal.contains("being read"), "{refusal}");
        other.close().unwrap();
    }
    let missing = run(&scratch.path("y.db"), Arc::new(RealDisk)).unwrap_err().to_string();
    assert!(missing.contains("does not exist") && !scratch.path("y.db").exists(), "{missing}");
    assert!(all_of(&path) == nodes);
}

#[test]
fn damage_is_named_and_nothing_replaced() {
    let scratch = Scratch::new();
    let path = scratch.path("x.db");
    make(&path, &some_nodes(500));
    let page = crate::checkpoint_pages(&path).unwrap().data[3];
    let mut bytes = fs::read(&path).unwrap();
    bytes[page as usize * crate::limits::PAGE + 200] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let refusal = run(&path, Arc::new(RealDisk)).unwrap_err().to_string();
    assert!(refusal.contains(&format!("page {page} ")) && refusal.contains("perilune salvage"), "{refusal}");
    assert!(fs::read(&path).unwrap().len() == bytes.len() && !scratch.path("x.db-compact").exists());
}

/// A disk that fails once, and one that is gone from a call on: as if the process were killed there.
#[test]
fn ended_at_any_call_the_old_file_or_the_new_is_there() {
    let scratch = Scratch::new();
    let path = scratch.path("x.db");
    let nodes = some_nodes(80);
    for is_killed in [false, true] {
        let (mut failed, mut compacted) = (0, 0);
        for call in 1.. {
            // NB: the log, too: that of another database of the name would stay, and each next one be larger.
            for name in ["x.db-shm", "x.db-wal.0", "x.db-wal.1"] {
                let _ = fs::remove_file(scratch.path(name));
            }
            make(&path, &nodes);
            let disk = FaultyDisk::new(Fault::ShortWrite);
            if is_killed {
                disk.fail_from_call(call);
            } else {
                disk.fail_call(call);
            }
            let result = run(&path, Arc::new(disk.clone()));
            failed += u32::from(result.is_err());
            compacted += u32::from(result.is_ok());
            assert!(all_of(&path) == nodes, "call {call}, killed: {is_killed}: {result:?}");
            if disk.calls() < call {
                result.unwrap();
                break;
            }
        }
        assert!(failed > 30 && compacted > 0, "{failed} {compacted}");
    }
}
