//! Questions to every event loop of every server: which clients there are, and orders to them.
//!
//! Who asks parks its connection. Each loop answers for its own clients; the last one of a server sends what was
//! gathered there to the server that asked, and when all have answered the reply is made.
//!
//! Invariants
//! - No loop waits: a question is a letter, an answer is a letter or a message.
//! - A client that moves from one loop to another is asked once (`event_loop` of `perilune_net`).
//! - A server that does not answer within [`ANSWERED`] is left out.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use perilune::Session;
use perilune_resp::{parse_integer, Arguments, ArgumentsBuf};

use crate::context::Context;
use crate::failure::Result;
use crate::inquiry::{Form, Inquiries, Pending};
use crate::mailbox::Letter;
use crate::peers;
use crate::question::{Answer, Inquiry};
use crate::server::Server;
use perilune_net::seat::Seat;

/// How long a server has to answer.
const ANSWERED: Duration = Duration::from_secs(2);

/// Asks all loops of all servers; false where nothing may wait.
pub(crate) fn ask(context: &mut Context<'_>, arguments: Arguments<'_>, form: Form) -> Result<bool> {
    let server = Arc::clone(context.server);
    let Some(later) = context.park_for_later() else { return Ok(false) };
    let number = server.commons().inquiries().next();
    if let Some(parked) = &mut context.client.parked {
        parked.until = Instant::now().checked_add(ANSWERED);
        parked.asked = Some(number);
    }
    let mut others = Vec::new();
    for peer in peers::all(context.session)? {
        if peer != server.number() && peers::is_alive(context.session, peer)? {
            others.push(peer);
        }
    }
    let protocol = context.client.protocol;
    let pending = Pending { later, form, protocol, left: 1 + others.len(), answer: Answer::default() };
    server.commons().inquiries().expect(number, pending);
    let asker = context.client.seat;
    let letters = letters(&server, arguments.to_owned(), asker, (server.number(), number));
    context.effects.letters.extend(letters);
    let (home, number, client) = (server.number().to_string(), number.to_string(), asker.client.to_string());
    let head = [&b"ask"[..], home.as_bytes(), number.as_bytes(), client.as_bytes()];
    for peer in others {
        peers::tell(context.session, peer, head.into_iter().chain(arguments.iter()))?;
    }
    Ok(true)
}

/// One question for each loop of this server.
fn letters(
    server: &Server,
    words: ArgumentsBuf,
    asker: Seat,
    (from, number): (i64, u64),
) -> Vec<(usize, Letter)> {
    let left = AtomicUsize::new(server.crew().mailboxes().len());
    let inquiry = Arc::new(Inquiry { words, asker, from, number, left, gathered: Mutex::default() });
    (0..server.crew().mailboxes().len()).map(|thread| (thread, Letter::Ask(Arc::clone(&inquiry)))).collect()
}

/// Hands the loops what another server asks: its number, its number of the question, the client, the words.
pub(crate) fn hear_question(server: &Server, words: Arguments<'_>) {
    let words = words.from(1);
    let number = |index: usize| words.get(index).and_then(parse_integer).unwrap_or(0);
    let asker = Seat { thread: usize::MAX, token: usize::MAX, client: number(2) };
    let _order = server.crew().order();
    for (thread, letter) in letters(server, words.from(3).to_owned(), asker, (number(0), number(1) as u64)) {
        server.crew().mailboxes()[thread].post(letter);
    }
}

/// Takes what another server answers: the number of the question, how many, lines.
pub(crate) fn hear_answer(inquiries: &Inquiries, words: Arguments<'_>) {
    let number = |index: usize| words.get(index).and_then(parse_integer).unwrap_or(0);
    let lines = words.get(2).unwrap_or_default().to_vec();
    inquiries.answered(number(0) as u64, &Answer { lines, count: number(1) });
}

/// Takes one loop's answer; the last one's goes to who asked, with all others.
pub(crate) fn answer(inquiry: &Inquiry, server: &Server, session: &mut Session, answer: &Answer) {
    let mut gathered = inquiry.gathered.lock().unwrap_or_else(PoisonError::into_inner);
    gathered.add(answer);
    if inquiry.left.fetch_sub(1, Ordering::AcqRel) > 1 {
        return;
    }
    if inquiry.from == server.number() {
        server.commons().inquiries().answered(inquiry.number, &gathered);
        return;
    }
    let (number, count) = (inquiry.number.to_string(), gathered.count.to_string());
    let words = [&b"answer"[..], number.as_bytes(), count.as_bytes(), &gathered.lines];
    // A server that cannot be told goes on without this one's answer.
    let _ = peers::tell(session, inquiry.from, words);
}
