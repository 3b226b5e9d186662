//! Rows of the family PERILUNE.*: nodes for programs that open a database by its server's address.
//!
//! They are one command each for COMMAND and ACL, and one handler: docs/format/wire.md says what they take.

use crate::command::*;
use crate::commands::{nodes::serve, shipped};
use crate::handler::on_connection;

/// They reach every node but what servers keep (`fence`), which operators reach, too: ACL calls them dangerous. None that
/// changes anything is fast: who may run what is quick may not therefore write everything.
const NODES: u32 = NOSCRIPT | DANGEROUS;

const fn row(name: &'static str, arity: i64, flags: u32, summary: &'static str) -> Command {
    on_connection(name, arity, NODES | flags, "nodes", serve, summary)
}

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    row("perilune.cas", 6, WRITE, "Sets the value of a node if it is what it is said to be"),
    row("perilune.channel", 5, WRITE | PUBSUB, "Creates a channel of messages, or changes its bounds"),
    row("perilune.commit", -4, WRITE, "Checks what a transaction has read, and writes what it has written"),
    row("perilune.data", 2, READ | FAST, "Says whether a node has a value, and descendants"),
    row("perilune.del", 2, WRITE, "Removes the value of a node"),
    row("perilune.follow", 4, READ | PUBSUB | BLOCKING, "Reads a message and leaves it"),
    row("perilune.get", 2, READ | FAST, "Reads the value of a node"),
    row("perilune.hello", 2, FAST, "Says which version of the wire the server speaks, and its limits"),
    row("perilune.incr", 4, WRITE, "Adds to the number at a node"),
    row("perilune.kill", 2, WRITE, "Removes a node and all below it"),
    row("perilune.lock", -5, BLOCKING | NO_MULTI, "Takes locks on nodes, all or none"),
    row("perilune.lockcount", 3, FAST, "Says how often a lock is held"),
    row("perilune.next", 5, READ | FAST, "Finds the first node in a range"),
    row("perilune.patch", 4, WRITE, "Writes a part of the value of a node"),
    row("perilune.peek", 3, READ | PUBSUB, "Reads the message that would be taken after others"),
    row("perilune.pieces", -2, READ, "Reads parts of the value of a node"),
    row("perilune.post", 3, WRITE | PUBSUB, "Posts a message"),
    row("perilune.prev", 4, READ | FAST, "Finds the last node in a range"),
    row("perilune.receive", 3, WRITE | PUBSUB | BLOCKING, "Takes a message"),
    on_connection("perilune.run", 5, NODES | WRITE | NO_MULTI | LONG, "nodes", shipped::run, "Runs a program's function as a transaction"),
    row("perilune.see", -3, READ, "Reads for a transaction, of one state with what that has read"),
    row("perilune.set", 3, WRITE, "Writes the value of a node"),
    row("perilune.unchannel", 2, WRITE | PUBSUB, "Removes a channel and its messages"),
    row("perilune.unlock", 3, FAST | NO_MULTI, "Releases a lock once"),
    row("perilune.unlockall", 2, NO_MULTI, "Releases all locks of an owner"),
    row("perilune.unwatch", 2, NO_MULTI, "Ends a watch"),
    row("perilune.wait", 3, READ | BLOCKING | NO_MULTI, "Waits for what is watched"),
    row("perilune.walk", 8, READ, "Finds many steps of a walk"),
    row("perilune.watch", -3, READ | NO_MULTI, "Watches nodes"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// `+@fast` gave the right to write any node. What each belongs to was looked at, and stands here.
    #[test]
    fn each_is_in_the_categories_that_were_meant() {
        let reviewed = [
            ("cas", "write slow"),
            ("channel", "write pubsub slow"),
            ("commit", "write slow"),
            ("data", "read fast"),
            ("del", "write slow"),
            ("follow", "read pubsub slow blocking"),
            ("get", "read fast"),
            ("hello", "fast"),
            ("incr", "write slow"),
            ("kill", "write slow"),
            ("lock", "slow blocking"),
            ("lockcount", "fast"),
            ("next", "read fast"),
            ("patch", "write slow"),
            ("peek", "read pubsub slow"),
            ("pieces", "read slow"),
            ("post", "write pubsub slow"),
            ("prev", "read fast"),
            ("receive", "write pubsub slow blocking"),
            ("run", "write slow scripting"),
            ("see", "read slow"),
            ("set", "write slow"),
            ("unchannel", "write pubsub slow"),
            ("unlock", "fast"),
            ("unlockall", "slow"),
            ("unwatch", "slow"),
            ("wait", "read slow blocking"),
            ("walk", "read slow"),
            ("watch", "read slow"),
        ];
        let meant: Vec<_> = reviewed
            .iter()
            .map(|(name, categories)| {
                let mut all: Vec<&str> = categories.split(' ').chain(["dangerous"]).collect();
                all.sort_unstable();
                (format!("perilune.{name}"), all)
            })
            .collect();
        let told: Vec<_> = ROWS
            .iter()
            .map(|row| {
                let mut all = row.categories();
                all.sort_unstable();
                (row.name.to_owned(), all)
            })
            .collect();
        assert_eq!(told, meant);
    }
}
