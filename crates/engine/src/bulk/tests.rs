//! A new file that fails at any call is no database, and says why; one that does not is a whole one.
//!
//! Its space was once allocated past the disk, so that no test could make that fail.

use std::collections::BTreeSet;

use perilune_disk::{Fault, FaultyDisk};

use super::*;
use crate::open::OpenOptions;
use crate::salvage::tests::{all_of, options, some_nodes, Nodes, Scratch};
use crate::Database;

fn write_all(disk: &FaultyDisk, path: &Path, like: &Path, nodes: &Nodes) -> Result<u64> {
    let mut bulk = Bulk::create(disk, path, like)?;
    nodes.iter().try_for_each(|(key, value)| bulk.push(key, value))?;
    bulk.finish(disk, 0)
}

#[test]
fn a_failure_at_any_call_leaves_no_database_and_is_told() {
    let scratch = Scratch::new();
    let (path, like) = (scratch.path("new.db"), scratch.path("like.db"));
    std::fs::write(&like, []).unwrap();
    let nodes = some_nodes(120);
    let whole = FaultyDisk::new(Fault::Io);
    let bytes = write_all(&whole, &path, &like, &nodes).unwrap();
    assert_eq!(bytes, std::fs::metadata(&path).unwrap().len());
    assert!(all_of(&path) == nodes);
    let there_only = OpenOptions { create: false, ..options() };
    for fault in [Fault::NoSpace, Fault::Io, Fault::ShortWrite] {
        let mut failed_at = BTreeSet::new();
        for call in 1..=whole.calls() {
            for name in ["new.db", "new.db-shm"] {
                let _ = std::fs::remove_file(scratch.path(name));
            }
            let disk = FaultyDisk::new(fault);
            disk.fail_call(call);
            match write_all(&disk, &path, &like, &nodes) {
                Err(Error::NoSpace { .. }) => assert_eq!(fault, Fault::NoSpace, "call {call}"),
                Err(Error::Io { action, .. }) if fault != Fault::NoSpace => {
                    failed_at.insert(action);
                }
                other => panic!("call {call}, {fault:?}: {other:?}"),
            }
            let opened = Database::open(&path, &there_only).map(drop);
            // NB: the last call makes meta durable, when all is written.
            assert!(opened.is_err() || call == whole.calls(), "call {call}, {fault:?}");
        }
        let wanted = ["allocate", "sync", "write"];
        assert!(
            fault == Fault::NoSpace || wanted.iter().all(|action| failed_at.contains(action)),
            "{failed_at:?}"
        );
    }
}
