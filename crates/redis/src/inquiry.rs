//! Questions that clients of this server have asked all event loops of all servers, until they are answered: which clients
//! there are, and orders to them. How they are asked is for `asking`.
//!
//! Example: CLIENT LIST on a database with three servers is a [`Pending`] that waits for the answers of three, and replies
//! with the lines of all; if one of them does not answer in time, with those of two.
//!
//! Invariant: each question is answered once, by the last server that answers or when there was no more time.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use perilune_resp::{parse_integer, Protocol, Replies};

use crate::acl::reply_log;
use crate::invalidation::Place;
use crate::mailbox::Later;
use crate::question::Answer;

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

impl Answer {
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

/// A question that this server's client has asked.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) later: Later,
    pub(crate) form: Form,
    pub(crate) protocol: Protocol,
    /// Servers that have not answered.
    pub(crate) left: usize,
    pub(crate) answer: Answer,
}

/// The questions of a server that are not answered yet.
#[derive(Debug, Default)]
pub(crate) struct Inquiries {
    newest: AtomicU64,
    pending: Mutex<HashMap<u64, Pending>>,
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
    /// A number that no question of this server has had.
    pub(crate) fn next(&self) -> u64 {
        self.newest.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Waits for the answers to question `number`.
    pub(crate) fn expect(&self, number: u64, question: Pending) {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(number, question);
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
