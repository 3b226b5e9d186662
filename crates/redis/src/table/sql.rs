//! Rows of SQL.

use crate::command::*;
use crate::commands::sql;
use crate::handler::on_connection;

#[rustfmt::skip]
pub(super) const ROWS: &[Command] = &[
    on_connection("sql", -2, WRITE | GROWS | LONG, "sql", sql::sql,
        "Runs a statement of SQL, with parameters; SELECT, INSERT ... do so by words")
        .in_place(sql::attempt),
    on_connection("sql_ro", -2, READ | LONG, "sql", sql::sql_ro, "Runs a statement of SQL that only reads")
        .in_place(sql::attempt),
];
