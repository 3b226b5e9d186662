//! What scripts ask of nodes, besides commands: whether their client may, in which transaction, and the answer.
//!
//! Invariants
//! - A script reaches by node what its client could reach by PERILUNE.*, and no more.
//! - It never sees halves of two states.

use std::ops::ControlFlow;

use perilune::{Levels, Serving, TransactionOptions};
use perilune_resp::ArgumentsBuf;
use perilune_sandbox::nodes::{self, Terms};
use perilune_sandbox::{Question, Texts, Values};

use super::Caller;
use crate::acl::User;
use crate::command;
use crate::failure::{self, Failure};
use crate::scripts::shipped;
use crate::transact::Span;

impl Caller<'_> {
    /// An operation of a node, if the client may ask for it.
    pub(super) fn node(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let Question { arguments: texts, room, keeps, .. } = question;
        let operation = nodes::operation(&texts);
        let start = answer.len();
        if self.span == Span::Whole && self.stopwatch.is_none() {
            self.context.session.limit_pending(self.before + self.written + keeps);
        }
        let outcome = match self.may_ask(operation) {
            Ok(()) if self.shipped => {
                let terms = Terms {
                    writes: true,
                    fence: self.fence.map(|fence| &**fence),
                    room,
                    shipped: self.shipped,
                };
                let outcome = shipped::answer(self.context.session, texts, &terms, answer);
                self.note_written();
                match outcome {
                    Ok(()) => return ControlFlow::Continue(()),
                    Err(error) => {
                        self.failure = Some(error);
                        return ControlFlow::Break(());
                    }
                }
            }
            Ok(()) => self.node_of_script(texts, operation, room, answer),
            refused => refused,
        };
        match outcome {
            Ok(()) => {}
            Err(error) if error.is_retry() && self.stopwatch.is_none() => {
                self.failure = Some(error);
                return ControlFlow::Break(());
            }
            Err(error) => {
                answer.truncate(start);
                Values::new(answer).error(failure::text_of(&error).as_bytes());
            }
        }
        ControlFlow::Continue(())
    }

    fn node_of_script(
        &mut self,
        texts: Texts<'_>,
        operation: &[u8],
        room: usize,
        answer: &mut Vec<u8>,
    ) -> perilune::Result<()> {
        let terms = Terms {
            writes: !self.read_only,
            fence: self.fence.map(|fence| &**fence),
            room,
            shipped: self.shipped,
        };
        self.context.client.locked |= operation == b"grab";
        if self.stopwatch.is_some() && !self.context.client.watched.is_empty() {
            return self.node_watching(texts, &terms, answer);
        }
        let outcome = nodes::answer(self.context.session, texts, &terms, answer).map_err(Failure::from);
        if self.span == Span::Whole && self.stopwatch.is_none() {
            self.note_written();
        }
        outcome?;
        // A script never sees halves of two states: it might not end.
        if self.span == Span::OneShot {
            self.context.session.validate()?;
        }
        Ok(())
    }

    /// An operation of a node that is no part of a transaction, for a client that watches keys: these are compared.
    fn node_watching(
        &mut self,
        texts: Texts<'_>,
        terms: &Terms<'_>,
        answer: &mut Vec<u8>,
    ) -> perilune::Result<()> {
        let start = answer.len();
        self.context.transaction(&TransactionOptions::default(), |session, _, _| {
            answer.truncate(start);
            Ok(nodes::answer(session, texts, terms, answer).map_err(Failure::from)?)
        })
    }

    /// Whether the client may ask for an operation of a node: who may run the commands PERILUNE.* that do the same, which
    /// takes all keys and channels, and from another machine a password.
    fn may_ask(&mut self, operation: &[u8]) -> perilune::Result<()> {
        if self.loading {
            return Ok(failure::refuse("ERR a library reaches no nodes while it is loaded")?);
        }
        if !self.context.client.is_local && self.context.server.rules().is_open() {
            return Ok(failure::refuse(
                "NOAUTH nodes are for clients of other machines with a password only",
            )?);
        }
        if self.context.client.is_unlimited(self.context.server.rules().acl()) {
            return Ok(());
        }
        let user = self.context.client.user(self.context.server.rules().acl());
        let may = |name: &&str| {
            let words: ArgumentsBuf = [name, "node"].into_iter().collect();
            let command = command::find(name.as_bytes());
            let check = |user: &User, command| user.check(command, words.as_arguments()).is_ok();
            matches!((user, command), (Some(user), Some(command)) if check(user, command))
        };
        let Some(refused) = commands(operation).iter().find(|name| !may(name)) else { return Ok(()) };
        let word = if self.shipped { "REFUSED" } else { "NOPERM" };
        Ok(failure::refuse_with(format!(
            "{word} this user has no permissions to reach nodes so: it may not run the '{refused}' command with all \
             keys and channels"
        ))?)
    }
}

/// The commands that do what an operation does, or a part of it.
fn commands(operation: &[u8]) -> &'static [&'static str] {
    match operation {
        b"get" | b"value" | b"json_own" => &["perilune.get"],
        b"data" => &["perilune.data"],
        b"next" | b"previous" | b"count" => &["perilune.next"],
        b"after" | b"before" | b"step" | b"json" => &["perilune.next", "perilune.get"],
        b"set" | b"number" | b"null" | b"empty_list" | b"empty_map" => &["perilune.set"],
        b"incr" => &["perilune.incr"],
        b"cas" => &["perilune.cas"],
        b"delete" => &["perilune.del"],
        b"kill" => &["perilune.kill"],
        b"merge" => &["perilune.get", "perilune.next", "perilune.set"],
        b"copy" => &["perilune.get", "perilune.next", "perilune.set", "perilune.kill"],
        b"grab" => &["perilune.lock"],
        _ => &[],
    }
}
