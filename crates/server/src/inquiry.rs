//! Questions to every event loop of every server: which clients there are, and orders to them.
//!
//! Who asks parks its connection. Each loop answers for its own clients; the last one of a server sends what was
//! gathered there to the server that asked, and when all have answered the reply is made.
//!
//! Invariants
//! - No loop waits: a question is a letter, an answer is a letter or a message.
//! - A client that moves from one loop to another is asked once (`worker::moves`).
//! - A server that does not answer within [`ANSWERED`] is left out.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use perilune::Session;
use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Protocol, Replies};

use crate::acl::reply_log;
use crate::failure::Result;
use crate::gate::Context;
use crate::mailbox::{Later, Letter, Seat};
use crate::peers;
use crate::server::Server;
use crate::tracking::notice::Place;

/// How long a server has to answer.
const ANSWERED: Duration = Duration::from_secs(2);

/// What the answers become.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// Lines in the order of client numbers.
    Lines,
    /// How many clients it was.
    Count,
    /// OK, or an error if it was none.
    Found,
    /// OK in any case.
    Done,
    /// Where one client is, and whether all have heard; whoever asked goes on with that.
    Target,
    /// What was refused, so many of the newest.
    Refusals(usize),
}

/// What the loops have answered so far.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) lines: Vec<u8>,
    pub(crate) count: i64,
}

impl Answer {
    fn add(&mut self, other: &Answer) {
        self.lines.extend_from_slice(&other.lines);
        self.count += other.count;
    }

    fn reply(&self, form: Form, protocol: Protocol) -> Vec<u8> {
        let mut reply = Vec::new();
        let mut replies = Replies::new(&mut reply, protocol);
        match form {
            Form::Count => replies.integer(self.count),
            Form::Found if self.count == 0 => replies.error("ERR No such client"),
            Form::Found | Form::Done | Form::Target => replies.simple("OK"),
            Form::Refusals(most) => reply_log(&self.lines, most, &mut replies),
            Form::Lines => {
                let mut lines: Vec<&[u8]> = self.lines.split_inclusive(|byte| *byte == b'\n').collect();
                lines.sort_by_key(|line| number_of(line));
                replies.verbatim(&lines.concat());
            }
        }
        reply
    }
}

/// The client's number at the start of a line.
fn number_of(line: &[u8]) -> i64 {
    let digits = line.strip_prefix(b"id=").unwrap_or_default();
    let end = digits.iter().position(|byte| *byte == b' ').unwrap_or(digits.len());
    parse_integer(&digits[..end]).unwrap_or(0)
}

/// A question, as the loops of one server see it.
#[derive(Debug)]
pub(crate) struct Inquiry {
    /// The command, as it was given.
    pub(crate) words: ArgumentsBuf,
    /// Who asks; if it is a client of another server, only its number means anything.
    pub(crate) asker: Seat,
    /// The server that asks, and its number for the question.
    from: i64,
    number: u64,
    left: AtomicUsize,
    gathered: Mutex<Answer>,
}

/// A question that this server's client has asked.
#[derive(Debug)]
struct Pending {
    later: Later,
    form: Form,
    protocol: Protocol,
    /// Servers that have not answered.
    left: usize,
    answer: Answer,
}

/// The questions of a server that are not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    newest: AtomicU64,
    pending: Mutex<HashMap<u64, Pending>>,
    /// Held by who sends a question to the loops, or a client from one to another.
    order: Mutex<()>,
}

impl Pending {
    /// Replies what has been answered.
    fn end(self) {
        match self.form {
            Form::Target => self.later.tell_target(Place::parse(&self.answer.lines), self.left == 0),
            form => self.later.reply(self.answer.reply(form, self.protocol)),
        }
    }
}

impl Inquiries {
    /// While this is held, nobody else sends questions to loops or clients from one to another.
    pub(crate) fn order(&self) -> MutexGuard<'_, ()> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a server's answer; the last one makes the reply.
    pub(crate) fn answered(&self, number: u64, answer: &Answer) {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(question) = pending.get_mut(&number) else { return };
        question.answer.add(answer);
        question.left = question.left.saturating_sub(1);
        if question.left == 0 {
            if let Some(question) = pending.remove(&number) {
                question.end();
            }
        }
    }

    /// Makes the reply of what has been answered so far.
    pub(crate) fn give_up(&self, number: u64) {
        let question = self.pending.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(question) = question {
            question.end();
        }
    }
}

/// Asks all loops of all servers; false where nothing may wait.
pub(crate) fn ask(context: &mut Context<'_>, arguments: Arguments<'_>, form: Form) -> Result<bool> {
    let server = Arc::clone(context.server);
    let Some(later) = context.park_for_later() else { return Ok(false) };
    let number = server.inquiries.newest.fetch_add(1, Ordering::Relaxed) + 1;
    if let Some(parked) = &mut context.client.parked {
        parked.until = Instant::now().checked_add(ANSWERED);
        parked.asked = Some(number);
    }
    let mut others = Vec::new();
    for peer in peers::all(context.session)? {
        if peer != server.number && peers::is_alive(context.session, peer)? {
            others.push(peer);
        }
    }
    let protocol = context.client.protocol;
    let pending = Pending { later, form, protocol, left: 1 + others.len(), answer: Answer::default() };
    server.inquiries.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(number, pending);
    let asker = context.client.seat;
    let letters = letters(&server, arguments.to_owned(), asker, (server.number, number));
    context.effects.letters.extend(letters);
    let (home, number, client) = (server.number.to_string(), number.to_string(), asker.client.to_string());
    let head = [&b"ask"[..], home.as_bytes(), number.as_bytes(), client.as_bytes()];
    for peer in others {
        peers::tell(context.session, peer, head.into_iter().chain(arguments.iter()))?;
    }
    Ok(true)
}

/// The same question for each loop of this server.
fn letters(
    server: &Server,
    words: ArgumentsBuf,
    asker: Seat,
    (from, number): (i64, u64),
) -> Vec<(usize, Letter)> {
    let left = AtomicUsize::new(server.mailboxes.len());
    let inquiry = Arc::new(Inquiry { words, asker, from, number, left, gathered: Mutex::default() });
    (0..server.mailboxes.len()).map(|thread| (thread, Letter::Ask(Arc::clone(&inquiry)))).collect()
}

/// Hands the loops what another server asks: its number, its number of the question, the client, the words.
pub(crate) fn hear_question(server: &Server, words: Arguments<'_>) {
    let words = words.from(1);
    let number = |index: usize| words.get(index).and_then(parse_integer).unwrap_or(0);
    let asker = Seat { thread: usize::MAX, token: usize::MAX, client: number(2) };
    let _order = server.inquiries.order();
    for (thread, letter) in letters(server, words.from(3).to_owned(), asker, (number(0), number(1) as u64)) {
        server.mailboxes[thread].post(letter);
    }
}

/// Takes what another server answers: the number of the question, how many, lines.
pub(crate) fn hear_answer(server: &Server, words: Arguments<'_>) {
    let number = |index: usize| words.get(index).and_then(parse_integer).unwrap_or(0);
    let lines = words.get(2).unwrap_or_default().to_vec();
    server.inquiries.answered(number(0) as u64, &Answer { lines, count: number(1) });
}

impl Inquiry {
    /// Takes one loop's answer; the last one's goes to who asked, with all others.
    pub(crate) fn answer(&self, server: &Server, session: &mut Session, answer: &Answer) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.add(answer);
        if self.left.fetch_sub(1, Ordering::AcqRel) > 1 {
            return;
        }
        if self.from == server.number {
            server.inquiries.answered(self.number, &gathered);
            return;
        }
        let (number, count) = (self.number.to_string(), gathered.count.to_string());
        let words = [&b"answer"[..], number.as_bytes(), count.as_bytes(), &gathered.lines];
        // A server that cannot be told goes on without this one's answer.
        let _ = peers::tell(session, self.from, words);
    }
}
