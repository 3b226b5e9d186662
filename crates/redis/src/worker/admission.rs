//! Whom a server lets in.

use std::sync::atomic::Ordering;

use perilune::node;

use crate::client::Client;
use crate::limits::CLIENT_NUMBERS;
use crate::loop_state::LoopState;
use crate::settings::Name;
use perilune_net::event_loop::Comer;
use perilune_net::journal::Level;

const DENIED: &[u8] =
    b"-DENIED Perilune runs in protected mode: there is no password, so that only clients of this \
machine are served. Set `requirepass`, or give --protected-mode no if the network is trusted.\r\n";
const FULL: &[u8] = b"-ERR max number of clients reached\r\n";

/// Makes a client of somebody who has connected.
///
/// # Errors
/// What is said to who is refused.
pub(super) fn admit(state: &mut LoopState, comer: Comer) -> Result<Client, &'static [u8]> {
    let Comer { address, local_address, is_local } = comer;
    let (figures, rules) = (state.server.measures().figures(), state.server.rules());
    figures.connections.fetch_add(1, Ordering::Relaxed);
    let full = figures.connected.load(Ordering::Relaxed) >= rules.live().number(Name::MaxClients) as u64;
    let denied = !is_local && rules.live().is_on(Name::ProtectedMode) && rules.is_open();
    if full || denied {
        figures.rejected.fetch_add(1, Ordering::Relaxed);
        let why = if full { "maxclients" } else { "protected-mode" };
        let details = [("addr", &*address), ("why", why)];
        state.server.note_some(Level::Warning, "client refused", &details);
        return Err(if full { FULL } else { DENIED });
    }
    figures.connected.fetch_add(1, Ordering::Relaxed);
    let id = next_number(state);
    let server = &state.server;
    if server.notes(Level::Verbose) {
        let details = [("addr", &*address), ("id", &id.to_string())];
        server.note_some(Level::Verbose, "client connected", &details);
    }
    Ok(Client::new(id, address, local_address, is_local, server.rules().is_open()))
}

/// A number that no other client of the database has had, on any server. They come from the tree many at a time: else who
/// connects again and again, without being let in, would have it written each time.
fn next_number(state: &mut LoopState) -> i64 {
    if let Some(number) = state.chores.numbers.next() {
        return number;
    }
    let session = &mut state.session;
    let last = node!("^redis", "client").and_then(|node| session.increment(&node, CLIENT_NUMBERS));
    // A database that takes no writes still serves readers.
    let Some(last) = last.ok().and_then(perilune::Number::as_i64) else { return 0 };
    state.chores.numbers = last - CLIENT_NUMBERS + 1..last + 1;
    state.chores.numbers.next().unwrap_or(0)
}
