//! CLIENT PAUSE: which requests wait until it ends.

use std::sync::Arc;
use std::time::Duration;

use perilune_resp::Arguments;

use super::LoopState;
use crate::client::Client;
use crate::command::{statements, Command, POSTS, WRITE};
use crate::pause::Paused;
use crate::scripts::{header, store};
use perilune_net::clock::clock;

impl LoopState {
    /// Whether CLIENT PAUSE keeps this request of a client from being run now; then it is parked.
    #[inline]
    pub(crate) fn holds_back(&mut self, client: &mut Client, arguments: Arguments<'_>) -> bool {
        match self.server.commons().pause().state() {
            None => false,
            Some(Paused { until, all }) => self.hold_back(client, arguments, until, all),
        }
    }

    #[cold]
    fn hold_back(&mut self, client: &mut Client, arguments: Arguments<'_>, until: i64, all: bool) -> bool {
        let Some(command) = statements::of(arguments) else { return false };
        // What is no command is refused at once.
        if !command.takes(arguments.len()) {
            return false;
        }
        // A script may write whatever it does, unless it says that it does not.
        let writes = |command: &Command| {
            command.is(WRITE | POSTS)
                || matches!(command.name, "eval" | "evalsha" | "fcall" | "lua" | "luafunc" | "perilune.run")
        };
        // NB: a function is looked for in the client's name, as if it had queued nothing.
        let queue = client.queue.take();
        let held = match command.name {
            // Who pauses may want to go on.
            "client" => false,
            "exec" => {
                let mut queued = queue.iter().flat_map(|queue| &queue.commands);
                all || queued.any(|(command, arguments)| {
                    writes(command) && !self.only_reads(client, command, arguments.as_arguments())
                })
            }
            _ => all || queue.is_none() && writes(command) && !self.only_reads(client, command, arguments),
        };
        client.queue = queue;
        if held {
            self.pause(client, Duration::from_millis(until.saturating_sub(clock()).max(1).unsigned_abs()));
        }
        held
    }

    /// Whether the script or function that a command runs has the flag `no-writes`.
    fn only_reads(&mut self, client: &mut Client, command: &Command, arguments: Arguments<'_>) -> bool {
        let Some(what) = arguments.get(1) else { return false };
        let says_so =
            |source: &[u8]| matches!(header::split(source), Ok((Some(flags), _)) if flags.no_writes);
        match command.name {
            "eval" => says_so(what),
            "evalsha" => {
                let sha = String::from_utf8_lossy(what).to_ascii_lowercase();
                matches!(store::source(&mut self.session, &sha), Ok(Some(source)) if says_so(&source))
            }
            "fcall" => {
                let server = Arc::clone(&self.server);
                let Some(mut state) = server.scripts().take(&server) else { return false };
                let function = state.function(&mut self.context(client), &String::from_utf8_lossy(what));
                matches!(function, Ok(Some(function)) if function.flags.no_writes)
            }
            _ => false,
        }
    }
}
