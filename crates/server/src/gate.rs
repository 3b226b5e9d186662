//! The one gate: every command of every client is looked up, checked and run here.
//!
//! Invariants
//! - Each command appends exactly one reply, whatever happens.
//! - A command that works with keys runs as one transaction, again when it meets a concurrent change;
//!   its reply is that of the run that was committed.

use std::fmt::Write as _;

use perilune::{Session, TransactionOptions};
use perilune_resp::{Arguments, Replies};

use crate::client::Client;
use crate::failure;
use crate::keyspace::{clock, Keys};
use crate::limits::QUEUE_BYTES;
use crate::server::Server;
use crate::table::{self, Command, Run, ADMITTED, IMMEDIATE, KEEPS, WRITE};

/// What a command works with that is not about keys.
pub(crate) struct Context<'c> {
    pub(crate) server: &'c Server,
    pub(crate) session: &'c mut Session,
    pub(crate) client: &'c mut Client,
}

impl Context<'_> {
    /// Runs one command and appends its reply to `out`.
    pub(crate) fn execute(&mut self, arguments: Arguments<'_>, out: &mut Vec<u8>) {
        let mut replies = Replies::new(out, self.client.protocol);
        let Some(command) = table::find(&arguments[0]) else {
            self.refused(&unknown(arguments), &mut replies);
            return;
        };
        if !command.takes(arguments.len()) {
            self.refused(&wrong_number(command.name), &mut replies);
            return;
        }
        if let (false, Some(word)) = (command.words.is_empty(), arguments.get(1)) {
            if !command.words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
                self.refused(&unknown_word(command.name, word), &mut replies);
                return;
            }
        }
        if !self.client.authenticated && !command.is(ADMITTED) {
            self.refused("NOAUTH Authentication required.", &mut replies);
            return;
        }
        match &mut self.client.queue {
            Some(queue) if !command.is(IMMEDIATE) => {
                let arguments = arguments.to_owned();
                queue.bytes += arguments.bytes();
                if queue.bytes > QUEUE_BYTES {
                    self.refused("ERR the commands queued behind MULTI take too much memory", &mut replies);
                    return;
                }
                queue.commands.push((command, arguments));
                replies.simple("QUEUED");
            }
            _ => self.run(command, arguments, &mut replies),
        }
    }

    fn run(&mut self, command: &'static Command, arguments: Arguments<'_>, replies: &mut Replies<'_>) {
        let start = replies.position();
        let outcome = match command.run {
            Run::Connection(handler) => handler(self, arguments, replies).map_err(perilune::Error::from),
            Run::Keys(handler) => self.run_keys(command, handler, arguments, replies),
        };
        if let Err(error) = outcome {
            replies.rewind(start);
            replies.error(&failure::text_of(&error));
        }
    }

    fn run_keys(
        &mut self,
        command: &Command,
        handler: table::Handler,
        arguments: Arguments<'_>,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let (start, database, now) = (replies.position(), self.client.database, clock());
        if let Some(quick) = command.quick {
            let mut keys = Keys::new(self.session, database, now, false);
            if quick(&mut keys, arguments, replies)? {
                return Ok(());
            }
        }
        let writes = command.is(WRITE | KEEPS);
        let options = TransactionOptions { read_only: !writes, ..TransactionOptions::default() };
        self.session.transaction_with(&options, |session| {
            replies.rewind(start);
            let mut keys = Keys::new(session, database, now, writes);
            Ok(handler(&mut keys, arguments, replies)?)
        })
    }

    /// Runs one command inside the open transaction of EXEC, as a level of its own: what it wrote before
    /// it failed is taken back. Only a conflict is an error here.
    pub(crate) fn run_queued(
        &mut self,
        command: &Command,
        arguments: Arguments<'_>,
        now: i64,
        replies: &mut Replies<'_>,
    ) -> perilune::Result<()> {
        let start = replies.position();
        let outcome = match command.run {
            Run::Connection(handler) => handler(self, arguments, replies).map_err(perilune::Error::from),
            Run::Keys(handler) => {
                let database = self.client.database;
                self.session.transaction(|session| {
                    let mut keys = Keys::new(session, database, now, command.is(WRITE | KEEPS));
                    Ok(handler(&mut keys, arguments, replies)?)
                })
            }
        };
        match outcome {
            Err(error) if error.is_retry() => Err(error),
            Err(error) => {
                replies.rewind(start);
                replies.error(&failure::text_of(&error));
                Ok(())
            }
            Ok(()) => Ok(()),
        }
    }

    /// Answers an error; behind MULTI that makes EXEC refuse.
    fn refused(&mut self, text: &str, replies: &mut Replies<'_>) {
        if let Some(queue) = &mut self.client.queue {
            queue.failed = true;
        }
        replies.error(text);
    }
}

/// The refusal of a wrong number of arguments.
pub(crate) fn wrong_number(name: &str) -> String {
    format!("ERR wrong number of arguments for '{name}' command")
}

/// A part of an argument as a message shows it: up to a zero byte, as C does.
fn shown(bytes: &[u8], most: usize) -> String {
    let bytes = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(&bytes[..bytes.len().min(most)]).into_owned()
}

/// The refusal of a word that a container of commands does not know.
fn unknown_word(container: &str, word: &[u8]) -> String {
    format!("ERR unknown subcommand '{}'. Try {} HELP.", shown(word, 128), container.to_ascii_uppercase())
}

/// The refusal of a name that no command has, with the words of Redis; of what is absent on purpose, why.
fn unknown(arguments: Arguments<'_>) -> String {
    if let Some(reason) = table::absent(&arguments[0]) {
        return reason.to_owned();
    }
    let mut text = format!("ERR unknown command '{}', with args beginning with: ", shown(&arguments[0], 128));
    let mut room = 128;
    for argument in arguments.from(1).iter() {
        if room == 0 {
            break;
        }
        let _ = write!(text, "'{}' ", shown(argument, room));
        room = room.saturating_sub(argument.len() + 3);
    }
    text
}
