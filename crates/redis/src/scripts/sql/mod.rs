//! What functions of SQL reach at a server besides statements: its commands and nodes, with the rights of who runs the statement.
//!
//! A statement runs without its client first. One whose functions ask for more is run once more, as a transaction of the server's,
//! and its client is lent to them meanwhile; texts that did are known to the thread from then on.
//!
//! Invariants
//! - What is lent goes back before the transaction ends, which looks at it; also when what runs meanwhile panics.
//! - Commands tell their effects with the commit, once.

mod hosted;

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::Arc;

use perilune::{Node, Session};
use perilune_resp::{Answer, ArgumentsBuf, Protocol, Replies};
use perilune_sandbox::sql::Surroundings;
use perilune_sandbox::{Answers, Offer, Question};
use perilune_sql::limits::BUFFER_BYTES;
use perilune_sql::{Asks, Error, Result, SqlState};

pub(crate) use self::hosted::{word, ServerFunctions};

use super::calls::{refusal_of, Caller};
use super::redis::{offer_to_sql, GRAPHS, SQL};
use crate::client::Client;
use crate::command;
use crate::context::Context;
use crate::effects::Effects;
use crate::execution::{Inside, Way};
use crate::server::Server;
use crate::transact::Span;

/// Texts that are known at most.
const KNOWN: usize = 1_000;

/// Whose statement runs.
struct Lent {
    server: Arc<Server>,
    client: Client,
    effects: Effects,
    is_full: bool,
}

/// What a connection of SQL shares with its functions.
#[derive(Default)]
pub(crate) struct Lending {
    lent: RefCell<Option<Lent>>,
    is_wanted: Cell<bool>,
    /// An event loop waits for the statement.
    in_loop: Cell<bool>,
    known: RefCell<HashSet<String>>,
}

impl Lending {
    /// Whether functions have asked for the client that was not lent, since this was asked last; then the text is known.
    pub(crate) fn is_wanted(&self, text: &str) -> bool {
        let is_wanted = self.is_wanted.take();
        let mut known = self.known.borrow_mut();
        if is_wanted && known.len() < KNOWN {
            known.insert(text.to_owned());
        }
        is_wanted
    }

    /// Whether functions of this text are known to ask for the client.
    pub(crate) fn is_known(&self, text: &str) -> bool {
        let known = self.known.borrow();
        !known.is_empty() && known.contains(text)
    }

    /// Lends a client, and what its commands do besides, while `body` runs.
    pub(crate) fn lend<T>(
        &self,
        server: &Arc<Server>,
        is_full: bool,
        client: &mut Client,
        effects: &mut Effects,
        body: impl FnOnce() -> T,
    ) -> T {
        let none = Client::new(0, String::new(), String::new(), false, false);
        let (client_lent, effects_lent) = (std::mem::replace(client, none), std::mem::take(effects));
        let lent = Lent { server: Arc::clone(server), client: client_lent, effects: effects_lent, is_full };
        let take_back = |lent: Lent| (*client, *effects) = (lent.client, lent.effects);
        meanwhile(&self.lent, lent, take_back, body)
    }

    /// Runs a command for a statement, in its transaction, with the rights of its client; its answer, which is no error.
    pub(crate) fn command(
        &self,
        session: &mut Session,
        read_only: bool,
        words: ArgumentsBuf,
    ) -> Result<Answer> {
        self.with_lent(|Lent { server, client, effects, is_full }| {
            let (mut reply, now) = (Vec::new(), client.time());
            let mut caller = Caller::new(server, session, client, effects, now);
            caller.read_only = read_only;
            caller.is_full = *is_full;
            let mut replies = Replies::new(&mut reply, Protocol::Resp3).up_to(BUFFER_BYTES);
            match caller.call(words.as_arguments(), BUFFER_BYTES, &mut replies) {
                ControlFlow::Continue(()) => answer_of(&reply),
                ControlFlow::Break(()) => {
                    Err(caller.failure.take().unwrap_or(perilune::Error::Conflict).into())
                }
            }
        })
    }

    /// Runs a function of a library for a statement, which scripts may not.
    pub(crate) fn function(&self, session: &mut Session, words: &ArgumentsBuf) -> Result<Answer> {
        self.with_lent(|Lent { server, client, effects, .. }| {
            let (mut reply, now, arguments) = (Vec::new(), client.time(), words.as_arguments());
            let Some(luafunc) = command::find(&arguments[0]) else { return answer_of(b"_\r\n") };
            let protocol = std::mem::replace(&mut client.protocol, Protocol::Resp3);
            let mut context = Context { server, session, client, effects, may_park: false };
            let outcome = match context.permit(luafunc, arguments, "lua") {
                Err(text) => Err(hosted::refusal(text.as_bytes())),
                Ok(()) => {
                    let way = Way::Inside(Inside { span: Span::Whole, now, by_script: true });
                    let mut replies = Replies::new(&mut reply, Protocol::Resp3).up_to(BUFFER_BYTES);
                    context.run(luafunc, arguments, way, &mut replies).map(drop).map_err(Error::from)
                }
            };
            context.client.protocol = protocol;
            outcome.and_then(|()| answer_of(&reply))
        })
    }

    /// Says whether an event loop waits for what runs from now on.
    pub(crate) fn set_in_loop(&self, in_loop: bool) {
        self.in_loop.set(in_loop);
    }

    /// Has the statement run aside, if an event loop waits for it.
    fn leave_loop(&self) -> Result<()> {
        match self.in_loop.get() {
            true => self.with_lent(|_| Ok(())),
            false => Ok(()),
        }
    }

    /// Does something with what is lent; without it the statement ends, and runs once more with it.
    fn with_lent<T>(&self, body: impl FnOnce(&mut Lent) -> Result<T>) -> Result<T> {
        match &mut *self.lent.borrow_mut() {
            Some(lent) => body(lent),
            None => {
                self.is_wanted.set(true);
                // NB: no function catches it, and it does not have the transaction run again.
                Err(perilune::Error::Rollback.into())
            }
        }
    }
}

/// The answer in these bytes, if it is no error.
fn answer_of(reply: &[u8]) -> Result<Answer> {
    match Answer::parse(reply) {
        Ok(Some((Answer::Error(text), _))) => Err(hosted::refusal(&text)),
        Ok(Some((answer, _))) => Ok(answer),
        _ => Err(Error::new(SqlState::INTERNAL, "a command has answered nothing; this is a bug")),
    }
}

/// Puts something in a place while `body` runs, and gives it to `take_back` then, also if `body` panics: a client whose command
/// has failed so is to stay the user that it was.
fn meanwhile<L, T>(
    place: &RefCell<Option<L>>,
    lent: L,
    take_back: impl FnOnce(L),
    body: impl FnOnce() -> T,
) -> T {
    struct Back<'a, L, F: FnOnce(L)> {
        place: &'a RefCell<Option<L>>,
        before: Option<L>,
        take_back: Option<F>,
    }
    impl<L, F: FnOnce(L)> Drop for Back<'_, L, F> {
        fn drop(&mut self) {
            let lent = self.place.replace(self.before.take());
            if let (Some(lent), Some(take_back)) = (lent, self.take_back.take()) {
                take_back(lent);
            }
        }
    }
    let _back = Back { place, before: place.replace(Some(lent)), take_back: Some(take_back) };
    body()
}

/// The surroundings of the functions of a connection.
pub(crate) struct Around(pub(crate) Rc<Lending>);

impl Surroundings for Around {
    fn offer(&self) -> &'static Offer {
        offer_to_sql()
    }

    fn place(&self) -> usize {
        SQL
    }

    fn graphs(&self) -> Option<usize> {
        Some(GRAPHS)
    }

    fn refuses(&self, node: &Node) -> Option<String> {
        refusal_of(node)
    }

    fn names(&self) -> &'static [(&'static str, &'static str)] {
        &[("alchemy", "local alchemy = client")]
    }

    fn answer(&self, asks: &mut dyn Asks, question: Question<'_>, answer: &mut Vec<u8>) -> Result<()> {
        self.0.with_lent(|Lent { server, client, effects, is_full }| {
            let (read_only, now) = (asks.is_read_only(), client.time());
            let mut caller = Caller::new(server, asks.session(), client, effects, now);
            caller.read_only = read_only;
            caller.is_full = *is_full;
            match caller.answer(question, answer) {
                ControlFlow::Continue(()) => Ok(()),
                ControlFlow::Break(()) => {
                    Err(caller.failure.take().unwrap_or(perilune::Error::Conflict).into())
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{catch_unwind, AssertUnwindSafe};

    use super::*;

    #[test]
    fn what_is_lent_comes_back_whatever_happens() {
        let place = RefCell::new(Some(1));
        let mut back = 0;
        assert_eq!(meanwhile(&place, 2, |lent| back = lent, || place.borrow_mut().replace(3)), Some(2));
        assert_eq!((back, place.borrow().as_ref()), (3, Some(&1)));
        let body = || {
            let _used = place.borrow_mut();
            panic!("a command fails");
        };
        assert!(catch_unwind(AssertUnwindSafe(|| meanwhile(&place, 4, |lent| back = lent, body))).is_err());
        assert_eq!((back, place.into_inner()), (4, Some(1)));
    }
}
