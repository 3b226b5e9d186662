//! Commands that wait: BLPOP, BRPOP, BLMOVE, BRPOPLPUSH, BLMPOP, BZPOPMIN, BZPOPMAX, BZMPOP, WAIT.
//!
//! One that finds nothing puts its client into the queues of its keys, in the transaction that found
//! nothing; the reply comes from whoever brings a key into being (see `queue`), or when the time is over.
//! Where nothing may wait, inside EXEC and scripts, they answer at once as if it were.

use std::sync::atomic::Ordering;
use std::sync::Arc;
use std::time::{Duration, Instant};

use perilune::TransactionOptions;
use perilune_resp::{parse_integer, Arguments, Replies};

use super::{count_option, lists, numbered, zsets};
use crate::client::Queued;
use crate::context::Context;
use crate::failure::{refuse, Result, SYNTAX};
use crate::keyspace::{Keys, Kind, Side};
use crate::numbers::{integer, lower};
use crate::queue::{self, Waiter, Waits, Wanted as _};
use crate::redis::Redis;
use perilune_net::clock::clock;

/// What is to be taken.
#[derive(Clone, Copy, Debug)]
enum Taking {
    Element(Side),
    Elements(Side, usize),
    /// With the element put elsewhere, as LMOVE does by the same arguments.
    Move,
    /// The highest, or the lowest.
    Member(bool),
    Members(bool, usize),
}

/// What a command wants, read from its arguments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    arguments: Arguments<'a>,
    keys: Arguments<'a>,
    taking: Taking,
    timeout: &'a [u8],
}

impl Waits for Redis {
    type Wanted<'a> = Wanted<'a>;
}

impl<'a> queue::Wanted<'a> for Wanted<'a> {
    fn parse(arguments: Arguments<'a>) -> Result<Wanted<'a>> {
        let last = arguments.len().saturating_sub(1);
        let some = |taking| (arguments.from(1).first(last.saturating_sub(1)), taking, last);
        let (keys, taking, timeout) = match arguments.get(0).map(lower).as_deref() {
            Some(b"blpop") => some(Taking::Element(Side::Left)),
            Some(b"brpop") => some(Taking::Element(Side::Right)),
            Some(b"bzpopmin") => some(Taking::Member(false)),
            Some(b"bzpopmax") => some(Taking::Member(true)),
            Some(b"brpoplpush") => (arguments.from(1).first(1), Taking::Move, last),
            Some(b"blmove") => {
                Side::parse(&arguments[3])?;
                Side::parse(&arguments[4])?;
                (arguments.from(1).first(1), Taking::Move, last)
            }
            Some(b"blmpop") => {
                let (keys, rest) = numbered(arguments, 2)?;
                let Some(side) = rest.get(0) else { return refuse(SYNTAX) };
                let side = Side::parse(side)?;
                (keys, Taking::Elements(side, count_option(rest.from(1))?), 1)
            }
            Some(b"bzmpop") => {
                let (keys, rest) = numbered(arguments, 2)?;
                let highest = match rest.get(0).map(lower).as_deref() {
                    Some(b"min") => false,
                    Some(b"max") => true,
                    _ => return refuse(SYNTAX),
                };
                (keys, Taking::Members(highest, count_option(rest.from(1))?), 1)
            }
            _ => return refuse(SYNTAX),
        };
        Ok(Wanted { arguments, keys, taking, timeout: arguments.get(timeout).unwrap_or_default() })
    }

    fn keys(&self) -> Arguments<'a> {
        self.keys
    }

    fn kind(&self) -> Kind {
        match self.taking {
            Taking::Element(_) | Taking::Elements(..) | Taking::Move => Kind::List,
            Taking::Member(_) | Taking::Members(..) => Kind::Zset,
        }
    }

    fn attempt(&self, keys: &mut Keys<'_>, only: Option<&[u8]>, replies: &mut Replies<'_>) -> Result<bool> {
        for name in self.keys.iter().filter(|name| only.is_none_or(|only| only == *name)) {
            let taken = match self.taking {
                Taking::Element(side) => lists::pop_named(keys, name, side, replies)?,
                Taking::Elements(side, count) => lists::pop_some(keys, name, side, count, replies)?,
                Taking::Member(highest) => zsets::pop_named(keys, name, highest, replies)?,
                Taking::Members(highest, count) => zsets::pop_some(keys, name, highest, count, replies)?,
                Taking::Move if !lists::has_elements(keys, name)? => false,
                Taking::Move => {
                    lists::lmove(keys, self.arguments, replies)?;
                    true
                }
            };
            if taken {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Wanted<'_> {
    /// Where nothing may wait.
    fn nothing(&self, replies: &mut Replies<'_>) {
        match self.taking {
            Taking::Move => replies.null(),
            _ => replies.null_array(),
        }
    }
}

/// When the seconds of an argument are over; none for 0, which is never.
fn seconds(argument: &[u8]) -> Result<Option<Instant>> {
    const WRONG: &str = "ERR timeout is not a float or out of range";
    let text = std::str::from_utf8(argument).ok().filter(|text| !text.is_empty() && !text.contains(' '));
    let Some(time) = text.and_then(|text| text.parse::<f64>().ok()).filter(|time| !time.is_nan()) else {
        return refuse(WRONG);
    };
    let time = (time * 1000.0).ceil();
    // Redis has so many milliseconds overflow, and calls that negative.
    if time < 0.0 || time >= i64::MAX as f64 {
        return refuse("ERR timeout is negative");
    }
    if time == 0.0 {
        return Ok(None);
    }
    Ok(Instant::now().checked_add(Duration::from_millis(time as u64)))
}

/// All of them but WAIT.
pub(crate) fn take(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let wanted = Wanted::parse(arguments)?;
    let until = seconds(wanted.timeout)?;
    let (server, may_wait) = (Arc::clone(context.server), context.may_park && context.server.number() != 0);
    let waiter = Waiter {
        seat: context.client.seat,
        parking: context.client.coming_ticket(),
        protocol: context.client.protocol,
        database: context.client.database,
    };
    let (start, now) = (replies.position(), clock());
    if may_wait {
        // Before anybody can see it in the queue, so that who pushes here looks there.
        server.commons().blocked().fetch_add(1, Ordering::AcqRel);
    }
    let mut ticket = None;
    let outcome = context.transaction(&TransactionOptions::default(), |session, _, effects| {
        replies.rewind(start);
        ticket = None;
        let mut keys = Keys::new(session, effects, waiter.database, now, true);
        if wanted.attempt(&mut keys, None, replies)? {
            return Ok(());
        }
        if may_wait {
            ticket = Some(queue::enter(session, server.number(), &waiter, arguments, wanted.keys)?);
        } else {
            wanted.nothing(replies);
        }
        Ok(())
    });
    match (outcome, ticket) {
        (Ok(()), Some(ticket)) => park(context, until, ticket, &wanted),
        (outcome, _) => {
            if may_wait {
                server.commons().blocked().fetch_sub(1, Ordering::AcqRel);
            }
            outcome?;
        }
    }
    Ok(())
}

fn park(context: &mut Context<'_>, until: Option<Instant>, ticket: i64, wanted: &Wanted<'_>) {
    let (database, protocol) = (context.client.database, context.client.protocol);
    let Some(parked) = context.park() else { return };
    parked.until = until;
    parked.gives_up = true;
    Replies::new(&mut parked.too_late, protocol).null_array();
    let keys = wanted.keys.iter().map(<[u8]>::to_vec).collect();
    parked.queued = Some(Queued { ticket, database, keys });
}

/// When the milliseconds of an argument are over; none for 0, which is never.
pub(super) fn milliseconds(argument: &[u8]) -> Result<Option<Instant>> {
    match parse_integer(argument) {
        None => refuse("ERR timeout is not an integer or out of range"),
        Some(..=-1) => refuse("ERR timeout is negative"),
        Some(0) => Ok(None),
        Some(time) => Ok(Instant::now().checked_add(Duration::from_millis(time.unsigned_abs()))),
    }
}

/// WAIT: there are no replicas, and servers of one database need none.
pub(crate) fn wait(
    context: &mut Context<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let replicas = integer(&arguments[1])?;
    let until = milliseconds(&arguments[2])?;
    if replicas > 0 {
        if let Some(parked) = context.park() {
            parked.until = until;
            parked.gives_up = true;
            parked.too_late = b":0\r\n".to_vec();
            return Ok(());
        }
    }
    replies.integer(0);
    Ok(())
}
