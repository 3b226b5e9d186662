//! Rows of transactions.

use crate::command::access;
use crate::command::*;
use crate::commands::transactions;
use crate::handler::on_connection;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("discard", 1, NOSCRIPT | FAST | IMMEDIATE, "transactions", transactions::discard, "Drops what MULTI has queued"),
    on_connection("exec", 1, NOSCRIPT | IMMEDIATE | QUEUED, "transactions", transactions::exec,
        "Runs what MULTI has queued, as one transaction"),
    on_connection("multi", 1, NOSCRIPT | FAST | IMMEDIATE, "transactions", transactions::multi, "Queues commands for EXEC"),
    on_connection("unwatch", 1, NOSCRIPT | FAST, "transactions", transactions::unwatch, "Forgets the keys of WATCH"),
    on_connection("watch", -2, NOSCRIPT | FAST | IMMEDIATE, "transactions", transactions::watch, "Makes EXEC depend on keys").at(ALL)
        .accesses(access::nothing),
];
