//! Errors on the wire: a word that names the kind, then the text for people. This end says it; `perilune_remote` reads it.

use crate::Error;

/// The line that a client is told: a word for the kind, and the text. Of one line.
#[must_use]
pub fn line_of(error: &Error) -> String {
    format!("{} {error}", error.word())
}
