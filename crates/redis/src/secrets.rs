//! What nobody is shown: commands whose arguments are passwords, or may be.
//!
//! Who watches (MONITOR, SLOWLOG) sees neither AUTH nor HELLO, and of commands for operators no arguments, as in Redis. One
//! place says which these are, and a test goes through the table.

use perilune_resp::Arguments;

use crate::command::{Command, ADMIN, ADMITTED};

/// Whether a command is for operators, or lets clients in: MONITOR leaves it out.
pub(crate) fn is_private(command: &Command, arguments: Arguments<'_>) -> bool {
    command.is(ADMIN | ADMITTED) || !command.words.is_empty() && command.is_called_for_operators(arguments)
}
