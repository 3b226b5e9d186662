//! All tests of the server that may share a process: one program, linked once.
//!
//! Programs of their own have `compare` and `hostility`, which have commands of their own (`make compare`, `make hostility`), and
//! `pieces` and `script_memory`, which measure the memory of their process.

#[path = "../peer/mod.rs"]
mod peer;

mod acl;
mod alchemy;
mod blocking;
mod bounds;
mod broadcast;
mod cache;
mod clients;
mod conformance;
mod cursors;
mod cut_off;
mod elements;
mod entry;
mod events;
mod functions;
mod graphs;
mod held;
mod import;
mod kept;
mod keys;
mod many;
mod maxmemory;
mod moves;
mod operation;
mod peers;
mod protocol;
mod pubsub;
mod ranges;
mod ranks;
mod readers;
mod remote;
mod scripts;
mod scripts_calls;
mod scripts_in_place;
mod secrets;
mod settings;
mod sharing;
mod slices;
mod sql;
mod strangers;
mod surroundings;
mod table;
mod tracking;
mod watching;
