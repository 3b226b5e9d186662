//! The one loop that runs something again: a command, what MULTI has queued, a script.
//!
//! Others change the same nodes at the same time, in other threads and other programs. So whatever takes more than one
//! operation is a transaction that may come to nothing, and then begins anew. The engine has two kinds. A *one-shot* one touches
//! a few leaves, has no levels and costs a fraction; it is tried first where the [`Plan`] allows it. A *whole* one can do
//! everything, and the engine itself runs it again until it gets through.
//!
//! ```text
//! let plan = Plan { one_shot: true, whole: Some(TransactionOptions::default()) };
//! context.transact(&plan, replies, |context, replies, span| ...)
//! ```
//!
//! Invariants
//! - A run that comes to nothing has written nothing, and what it has replied and noted is taken back.
//! - What is beyond the means of a one-shot one, tells of events or fails to write is left to a whole one, which answers.
//!
//! Deliberately absent: what a run has changed of its client. Whoever runs what changes clients puts that back as it begins.

use perilune::{FirstTry, Serving, TransactionOptions};
use perilune_resp::Replies;

use crate::context::Context;
use crate::limits::ATTEMPTS;

/// The kind of the transaction that is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    /// It has no levels: a command that fails to write takes all of it with it.
    OneShot,
    /// Each command of it is a level, whose writes alone are taken back when it fails.
    Whole,
}

/// Which kinds of transactions something may be.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// One-shot ones are tried first.
    pub(crate) one_shot: bool,
    /// What follows when they have come to nothing; none: nothing does.
    pub(crate) whole: Option<TransactionOptions>,
}

/// What has become of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It has happened, as a transaction of this kind.
    As(Span),
    /// Nothing of it has happened, since one-shot ones were not enough.
    Nowhere,
}

impl Context<'_> {
    /// Whether several commands may be a one-shot transaction: telling of events is none, nor is comparing what is tracked or
    /// watched.
    pub(crate) fn may_be_one_shot(&self) -> bool {
        let is_told = self.effects.notify != 0 || self.effects.broadcasts();
        self.session.depth() == 0 && !is_told && !self.client.compares()
    }

    /// Runs `body` as one transaction, as often as it takes; what it is told is which kind of transaction is open.
    ///
    /// # Errors
    /// What `body` has failed with, or the commit; nothing has happened then.
    #[inline]
    pub(crate) fn transact(
        &mut self,
        plan: &Plan,
        replies: &mut Replies<'_>,
        mut body: impl FnMut(&mut Context<'_>, &mut Replies<'_>, Span) -> perilune::Result<()>,
    ) -> perilune::Result<Ended> {
        let (start, before) = (replies.position(), self.effects.mark());
        let attempts = if plan.one_shot { ATTEMPTS } else { 0 };
        for _ in 0..attempts {
            let mut has_more = false;
            let Context { server, session, client, effects, .. } = self;
            let attempt = session.attempt(|session| {
                let mut inside = Context { server, session, client, effects, may_park: false };
                body(&mut inside, replies, Span::OneShot)?;
                // A one-shot transaction neither tells of events, nor serving clients that wait for what has come into being.
                has_more = effects.is_unfinished();
                if has_more {
                    return Err(perilune::Error::Conflict);
                }
                Ok(())
            });
            if matches!(attempt, Ok(Some(()))) {
                return Ok(Ended::As(Span::OneShot));
            }
            self.effects.rewind(before);
            self.effects.tally.clear();
            replies.rewind(start);
            match attempt {
                Err(error) if !error.is_retry() => return Err(error),
                // While it meets others at the same nodes it is tried again: that costs less than a whole one.
                _ if has_more || !self.session.was_disturbed() => break,
                _ => {}
            }
        }
        let Some(options) = &plan.whole else { return Ok(Ended::Nowhere) };
        // One-shot ones have been tried where they are of use.
        let options = &TransactionOptions { first_try: FirstTry::Whole, ..options.clone() };
        let server = self.server;
        self.transaction(options, |session, client, effects| {
            replies.rewind(start);
            body(&mut Context { server, session, client, effects, may_park: false }, replies, Span::Whole)
        })?;
        Ok(Ended::As(Span::Whole))
    }
}
