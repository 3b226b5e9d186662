//! RocksDB: the settings of its classes; the table is `peers/rocks.rs`. It is for one process.

use super::{Mapping, Side, ALL_PARTS};
use crate::globals::mapped::Mapped;
use crate::peers::rocks::{open, present};
use crate::subject::Class;

const D4: Side = Side {
    name: "rocksdb",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "Rust",
    settings: "disableWAL, memtable 256 MiB; one process",
    parts: ALL_PARTS,
    processes: false,
    version: || present().map(|()| "7.8 (librocksdb.so.7.8)".to_owned()),
    serve: None,
    open: |site| Ok(Box::new(Mapped::new(open(site)?))),
    player: None,
};

pub(crate) const SIDES: &[Side] = &[D4, Side { class: Class::D1, settings: "sync=1; one process", ..D4 }];
