//! LMDB: the settings of its classes; the table is `peers/lmdb/ordered.rs`.

use super::{Mapping, Side, EMBEDDED, PUBLISHED_PARTS};
use crate::globals::mapped::Mapped;
use crate::globals::published::Published;
use crate::globals::Globals;
use crate::peers::lmdb::ordered::open;
use crate::subject::Class;

const D4: Side = Side {
    name: "lmdb",
    settings: "MDB_NOSYNC | MDB_WRITEMAP | MDB_NOTLS; the reader renewed for each operation",
    version: crate::peers::lmdb::version,
    open: |site| open(site).map(|store| Box::new(Mapped::new(store)) as Box<dyn Globals>),
    ..EMBEDDED
};
const D1: Side = Side { class: Class::D1, settings: "flags 0 (fdatasync at every commit), MDB_NOTLS", ..D4 };

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side { class: Class::D3, settings: "MDB_NOSYNC, mdb_env_sync each second", ..D4 },
    Side { class: Class::D2, settings: "as D1, many puts in a transaction", ..D1 },
    D1,
    Side {
        name: "lmdb-published",
        mapping: Mapping::Published,
        settings: "mg-dbx-bdb's keys and calls; flags of D4",
        parts: PUBLISHED_PARTS,
        open: |site| open(site).map(|store| Box::new(Published::new(store)) as Box<dyn Globals>),
        ..D4
    },
    Side {
        name: "lmdb-published",
        mapping: Mapping::Published,
        settings: "mg-dbx-bdb's keys and calls; MDB_NOTLS alone, as published",
        parts: PUBLISHED_PARTS,
        open: |site| open(site).map(|store| Box::new(Published::new(store)) as Box<dyn Globals>),
        ..D1
    },
];
