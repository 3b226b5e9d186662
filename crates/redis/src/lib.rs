//! Redis's protocol and commands over the shared tree.
//!
//! A [`Running`] server lets every Redis client use a database that programs have mapped, at the same
//! time, through any number of server processes. What commands do lies in the tree under `^redis`, in the
//! scheme of docs/format/redis.md, for programs to read and write by node.
//!
//! Invariants
//! - One table of commands, and one gate that all of them pass.
//! - Each command is a transaction of the engine; MULTI to EXEC is one.
//! - What a server knows and another of the same database must know lies in the tree.
//! - Nothing of Redis is known below this crate, and nothing of pages in it.
//!
//! Deliberately absent: replication and cluster, which a database that processes share does not need.

#![deny(unsafe_code)]

mod acl;
mod aside;
mod asking;
mod busy_pages;
mod client;
mod client_list;
mod command;
mod commands;
mod commit;
mod commons;
mod connection;
mod context;
mod cron;
mod cursors;
mod dispatch;
mod effects;
mod eviction;
mod execution;
mod expiry;
mod failure;
mod fence;
mod figures;
mod follower;
mod gate;
mod handler;
mod inquiry;
mod invalidation;
mod keyspace;
mod leftovers;
mod limits;
mod loop_state;
mod mailbox;
mod measures;
mod memory;
mod metrics;
mod monitoring;
mod monitors;
mod name;
mod nodes;
mod notify;
mod numbers;
mod password;
mod patience;
mod pattern;
mod pause;
mod peers;
mod permits;
mod published;
mod question;
mod queue;
mod random;
mod rdb;
mod redis;
mod refusals;
mod rules;
mod running;
mod scripts;
mod secrets;
mod server;
mod settings;
mod slowlog;
mod sockets;
mod start_error;
mod statistics;
mod stopwatch;
mod subscribers;
mod subscriptions;
mod table;
mod together;
mod topic;
mod tracking;
mod transact;
mod waits;
mod watched;
mod worker;

pub use perilune_net::files;

pub use crate::password::Password;
pub use crate::rdb::{import_rdb, ImportError, Imported, Streams};
pub use crate::running::{Running, Stopper};
pub use crate::settings::{
    find, why_in_vain, FileError, Kind, Name, Scope, Setting, SettingError, Settings, SETTINGS,
};
pub use crate::start_error::StartError;
