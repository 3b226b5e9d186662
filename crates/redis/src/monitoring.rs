//! How MONITOR is shown a command: as a line, to each client that monitors, by the loop that has it.
//!
//! Invariant: passwords are shown to nobody (`secrets`).

use std::sync::Arc;

use perilune_resp::Arguments;

use crate::context::Context;
use crate::mailbox::Letter;

/// Shows monitors a command that is about to run, for its client or for a script of it.
#[cold]
pub(crate) fn show(context: &mut Context<'_>, arguments: Arguments<'_>, by_script: bool) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let client = &context.client;
    let from = match client.address.strip_suffix(":0") {
        _ if by_script => "lua".to_owned(),
        Some(path) => format!("unix:{path}"),
        None => client.address.to_string(),
    };
    let mut text = format!("+{}.{:06} [{} {from}]", now.as_secs(), now.subsec_micros(), client.database);
    for argument in arguments.iter() {
        text.push_str(" \"");
        for byte in argument {
            match byte {
                b'"' | b'\\' => text.extend(['\\', char::from(*byte)]),
                b'\n' => text.push_str("\\n"),
                b'\r' => text.push_str("\\r"),
                b'\t' => text.push_str("\\t"),
                b' '..=b'~' => text.push(char::from(*byte)),
                _ => text.push_str(&format!("\\x{byte:02x}")),
            }
        }
        text.push('"');
    }
    text.push_str("\r\n");
    let bytes: Arc<[u8]> = text.into_bytes().into();
    for seat in context.server.commons().monitors().all() {
        context.effects.letters.push((seat.thread, Letter::Push { seat, bytes: Arc::clone(&bytes) }));
    }
}
