//! Whether a client's user may run a command; what is refused is kept for ACL LOG.
//!
//! Users are shared by all servers and may change at any time, so each command is checked anew. Nearly all users may do
//! everything: of them a client remembers that, with the version of the users, and a check is a comparison of two numbers.
//!
//! Invariant: what a user may not do is not begun.

use std::time::Instant;

use perilune_resp::Arguments;

use crate::acl::{Denied, Entry};
use crate::command::{self, statements, Command, ADMITTED};
use crate::context::Context;
use crate::refusals::{full_name, pattern_denied};
use crate::settings::Name;
use perilune_net::clock::clock;
use perilune_net::journal::{cut, Level};

impl Context<'_> {
    /// Whether the client's user may run this; `place` is where: toplevel, multi or lua. Refusals are kept for
    /// ACL LOG.
    #[inline]
    pub(crate) fn permit(
        &mut self,
        command: &Command,
        arguments: Arguments<'_>,
        place: &'static str,
    ) -> std::result::Result<(), String> {
        if self.client.is_unlimited(self.server.rules().acl()) {
            return Ok(());
        }
        self.permit_by_rules(command, arguments, place)
    }

    /// The command, or the one in its place that reads alone: who may not run SQL reads by SQL_RO.
    #[inline]
    pub(crate) fn as_permitted(
        &mut self,
        command: &'static Command,
        arguments: Arguments<'_>,
    ) -> &'static Command {
        if command.name != "sql" || self.client.is_unlimited(self.server.rules().acl()) {
            return command;
        }
        let user = self.client.user(self.server.rules().acl());
        let may = user.is_some_and(|user| user.check(command, arguments).is_ok());
        match command::find(b"sql_ro").filter(|_| !may && statements::reads(arguments)) {
            Some(other) => other,
            None => command,
        }
    }

    fn permit_by_rules(
        &mut self,
        command: &Command,
        arguments: Arguments<'_>,
        place: &'static str,
    ) -> std::result::Result<(), String> {
        let Some(user) = self.client.user(self.server.rules().acl()) else {
            // It was deleted meanwhile.
            self.client.authenticated = false;
            self.client.closing = true;
            return Err("NOAUTH the user of this connection has been deleted".to_owned());
        };
        if command.is(ADMITTED) {
            return Ok(());
        }
        let Err(denied) = user.check(command, arguments) else { return Ok(()) };
        let argument = |place: usize| arguments.get(place).unwrap_or_default().to_vec();
        let name = full_name(command, arguments);
        let (reason, object, what) = match denied {
            Denied::Command => ("command", name.clone().into_bytes(), format!("run the '{name}' command")),
            Denied::Key(place) => {
                ("key", argument(place), "access one of the keys used as arguments".to_owned())
            }
            Denied::Channel(place) => {
                ("channel", argument(place), "access one of the channels used as arguments".to_owned())
            }
            Denied::Pattern(place) => ("key", argument(place), String::new()),
        };
        let user = self.client.user_name().to_owned();
        self.note_refusal(reason, place, object, user);
        Err(match denied {
            Denied::Pattern(place) => pattern_denied(arguments, place),
            _ => format!("NOPERM this user has no permissions to {what}"),
        })
    }

    /// Keeps a refusal for ACL LOG.
    pub(crate) fn note_refusal(
        &self,
        reason: &'static str,
        context: &'static str,
        object: Vec<u8>,
        user: String,
    ) {
        if reason == "auth" && self.server.notes(Level::Warning) {
            let details = [("user", &*cut(&user)), ("addr", &self.client.address)];
            self.server.note_some(Level::Warning, "authentication failed", &details);
        }
        let (now, time) = (Instant::now(), clock());
        let entry = Entry {
            id: 0,
            count: 1,
            reason,
            context,
            object,
            user,
            client: format!("id={} addr={} db={}", self.client.id, self.client.address, self.client.database),
            last: now,
            created: time,
            updated: time,
        };
        let most = self.server.rules().live().number(Name::AclLogMaxLen);
        self.server.rules().acl().log.add(entry, usize::try_from(most).unwrap_or(usize::MAX));
    }
}
