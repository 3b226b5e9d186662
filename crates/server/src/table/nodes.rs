//! Rows of the family PERILUNE.*: nodes for programs that open a database by its server's address.
//!
//! They are one command each for COMMAND and ACL, and one handler: docs/format/wire.md says what they take.

use super::row::*;
use crate::commands::{nodes::serve, shipped};

/// They reach every node, those of the server's own bookkeeping too: ACL calls them dangerous.
const NODES: u32 = NOSCRIPT | DANGEROUS;

const fn row(name: &'static str, arity: i64, flags: u32, summary: &'static str) -> Command {
    on_connection(name, arity, NODES | flags, "nodes", serve, summary)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    row("perilune.cas", 6, FAST, "Sets the value of a node if it is what it is said to be"),
    row("perilune.channel", 5, 0, "Creates a channel of messages, or changes its bounds"),
    row("perilune.commit", -4, 0, "Checks what a transaction has read, and writes what it has written"),
    row("perilune.data", 2, FAST, "Says whether a node has a value, and descendants"),
    row("perilune.del", 2, FAST, "Removes the value of a node"),
    row("perilune.follow", 4, BLOCKING, "Reads a message and leaves it"),
    row("perilune.get", 2, FAST, "Reads the value of a node"),
    row("perilune.hello", 2, FAST, "Says which version of the wire the server speaks, and its limits"),
    row("perilune.incr", 4, FAST, "Adds to the number at a node"),
    row("perilune.kill", 2, 0, "Removes a node and all below it"),
    row("perilune.lock", -5, BLOCKING | NO_MULTI, "Takes locks on nodes, all or none"),
    row("perilune.lockcount", 3, FAST, "Says how often a lock is held"),
    row("perilune.next", 5, FAST, "Finds the first node in a range"),
    row("perilune.patch", 4, 0, "Writes a part of the value of a node"),
    row("perilune.pieces", -2, 0, "Reads parts of the value of a node"),
    row("perilune.post", 3, FAST, "Posts a message"),
    row("perilune.prev", 4, FAST, "Finds the last node in a range"),
    row("perilune.receive", 3, BLOCKING, "Takes a message"),
    on_connection("perilune.run", 5, NODES | NO_MULTI | LONG, "nodes", shipped::run, "Runs a function of a program as a transaction"),
    row("perilune.set", 3, FAST, "Writes the value of a node"),
    row("perilune.unchannel", 2, 0, "Removes a channel and its messages"),
    row("perilune.unlock", 3, FAST | NO_MULTI, "Releases a lock once"),
    row("perilune.unlockall", 2, NO_MULTI, "Releases all locks of an owner"),
    row("perilune.unwatch", 2, NO_MULTI, "Ends a watch"),
    row("perilune.wait", 3, BLOCKING | NO_MULTI, "Waits for what is watched"),
    row("perilune.walk", 8, 0, "Finds many steps of a walk"),
    row("perilune.watch", -3, NO_MULTI, "Watches nodes"),
];
