//! Pieces of strings, read and written by node.

use perilune::{Node, Session};

/// Writes a piece of the string at `node`, if there is one, and reads one where others may have written; what that answers, as text.
pub fn write_and_read(session: &mut Session, node: &Node, at: usize) -> String {
    let written = session.set_piece(node, at, "piece").map_err(|error| error.code());
    let read = session.get_piece(node, at / 2..at / 2 + 20);
    let read = read.map(|piece| format!("{piece:?}")).map_err(|error| error.code());
    format!("{written:?} {read:?}")
}
