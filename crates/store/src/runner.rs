//! The runner of transactions: a body that is run, and run again, until what it saw and wrote is one state.
//!
//! Others write meanwhile. So a commit may find that what the body has read is no longer so, and then nothing of it happens
//! and it begins anew. The body may also have failed *because* it saw halves of two states; that is no error to tell
//! anybody.
//!
//! Example: `transact(session, &options, |session| { ... })` moves money from one account to another.
//!
//! Invariant: no error of a body escapes that rests on halves of two states: before it does, what the body has read is
//! validated.
//!
//! Deliberately absent: undoing what a body has done besides. It may run several times.

use crate::{Result, Session, TransactionOptions, Transactions};

/// Runs `body` as a transaction and again on conflict, until it commits, fails or times out.
///
/// Called inside an open transaction it runs `body` once, as a nested level: an error rolls back that
/// level only, a conflict or restart passes through to the outermost runner.
///
/// # Errors
/// The body's own error (after a check that what it saw was one state), `TransactionTimeout`, `Conflict`
/// with [`TransactionOptions::never_exclusive`], or the commit's.
pub fn transact<S: Transactions + ?Sized, R>(
    session: &mut S,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut S) -> Result<R>,
) -> Result<R> {
    if session.depth() > 0 {
        return nested(session, options, body);
    }
    loop {
        session.begin(options)?;
        let error = match body(session) {
            Ok(result) => match session.commit() {
                Ok(()) => return Ok(result),
                Err(error) => error,
            },
            // It says nothing of what was seen, and looking at that again would be another wait.
            Err(error) if error.is_wait() => error,
            // NB: an error that rests on two halves of different states must not escape.
            Err(error) if !error.is_retry() => match session.validate() {
                Ok(()) => error,
                Err(conflict) => conflict,
            },
            Err(error) => error,
        };
        while session.depth() > 0 {
            session.rollback()?;
        }
        if !error.is_retry() {
            session.give_up();
            return Err(error);
        }
        session.retry()?;
    }
}

fn nested<S: Transactions + ?Sized, R>(
    session: &mut S,
    options: &TransactionOptions,
    mut body: impl FnMut(&mut S) -> Result<R>,
) -> Result<R> {
    let depth = session.depth();
    session.begin(options)?;
    let result = body(session);
    while session.depth() > depth + 1 {
        session.rollback()?;
    }
    match result {
        Ok(result) => session.commit().map(|()| result),
        Err(error) => {
            session.rollback()?;
            Err(error)
        }
    }
}

/// Copies the values at `keys`, in order, as of one moment.
///
/// # Errors
/// As [`Session::get`].
pub fn get_many<S: Session + ?Sized>(session: &mut S, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>> {
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    transact(session, &options, |session| {
        keys.iter()
            .map(|key| {
                let mut value = Vec::new();
                Ok(session.get(key, &mut value)?.then_some(value))
            })
            .collect()
    })
}
