//! Rows of the connection.

use crate::command::*;
use crate::commands::{clients, connection};
use crate::handler::on_connection;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("auth", -2, NOSCRIPT | FAST | ADMITTED, "connection", connection::auth, "Gives the password")
        .secrets(1),
    on_connection("client", -2, NOSCRIPT, "connection", clients::client, "Of this connection, and of the others")
        .with(&["caching", "getname", "getredir", "help", "id", "info", "kill", "list", "no-evict", "no-touch", "pause", "reply", "setinfo",
            "setname", "tracking", "trackinginfo", "unblock", "unpause"])
        .for_operators(&["kill", "list", "no-evict", "pause", "unblock", "unpause"]),
    on_connection("echo", 2, FAST, "connection", connection::echo, "Answers what it is told"),
    on_connection("hello", -1, NOSCRIPT | FAST | ADMITTED | IMMEDIATE, "connection", connection::hello, "Chooses the protocol")
        .secrets(1),
    on_connection("ping", -1, FAST | SUBSCRIBED, "connection", connection::ping, "Answers PONG, or what it is told"),
    on_connection("quit", -1, SUBSCRIBED | NOSCRIPT | FAST | ADMITTED | IMMEDIATE, "connection", connection::quit, "Ends the connection"),
    on_connection("reset", 1, SUBSCRIBED | NOSCRIPT | FAST | ADMITTED | IMMEDIATE, "connection", connection::reset,
        "As if the client had just connected"),
    on_connection("select", 2, FAST, "connection", connection::select, "Chooses the database")
        .or_statement(statements::is_select),
];
