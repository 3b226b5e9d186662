//! When keys expire.

use perilune_resp::{Arguments, Replies};

use crate::failure::{refuse, refuse_with, Result};
use crate::keyspace::Keys;
use crate::notify;
use crate::numbers::{integer, lower};

/// How a time is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Seconds,
    Milliseconds,
    SecondsSince1970,
    MillisecondsSince1970,
}

impl Unit {
    /// The unit that an option of SET and GETEX stands for.
    pub(crate) fn of_option(option: &[u8]) -> Option<Unit> {
        Some(match option {
            b"ex" => Unit::Seconds,
            b"px" => Unit::Milliseconds,
            b"exat" => Unit::SecondsSince1970,
            b"pxat" => Unit::MillisecondsSince1970,
            _ => return None,
        })
    }

    /// The time in milliseconds since 1970; none if it is beyond what 64 bits hold.
    fn resolve(self, time: i64, now: i64) -> Option<i64> {
        let ms = match self {
            Unit::Seconds | Unit::SecondsSince1970 => time.checked_mul(1_000)?,
            Unit::Milliseconds | Unit::MillisecondsSince1970 => time,
        };
        match self {
            Unit::Seconds | Unit::Milliseconds => ms.checked_add(now),
            Unit::SecondsSince1970 | Unit::MillisecondsSince1970 => Some(ms),
        }
    }
}

/// A time at which a value that is being set expires, in milliseconds since 1970.
pub(crate) fn deadline(argument: &[u8], unit: Unit, now: i64, command: &str) -> Result<i64> {
    let time = integer(argument)?;
    match unit.resolve(time, now).filter(|_| time > 0) {
        Some(deadline) => Ok(deadline),
        None => refuse_with(format!("ERR invalid expire time in '{command}' command")),
    }
}

/// Under which condition EXPIRE and its kin set a time.
#[derive(Default)]
struct Condition {
    absent: bool,
    present: bool,
    greater: bool,
    less: bool,
}

impl Condition {
    fn parse(arguments: Arguments<'_>) -> Result<Condition> {
        let mut condition = Condition::default();
        for word in arguments.iter() {
            match &*lower(word) {
                b"nx" => condition.absent = true,
                b"xx" => condition.present = true,
                b"gt" => condition.greater = true,
                b"lt" => condition.less = true,
                _ => {
                    let word = String::from_utf8_lossy(word).into_owned();
                    return refuse_with(format!("ERR Unsupported option {word}"));
                }
            }
        }
        if condition.absent && (condition.present || condition.greater || condition.less) {
            return refuse("ERR NX and XX, GT or LT options at the same time are not compatible");
        }
        if condition.greater && condition.less {
            return refuse("ERR GT and LT options at the same time are not compatible");
        }
        Ok(condition)
    }

    fn holds(&self, old: Option<i64>, new: i64) -> bool {
        // Without an expiry a key lives for ever: later than any time.
        !(self.absent && old.is_some()
            || self.present && old.is_none()
            || self.greater && old.is_none_or(|old| new <= old)
            || self.less && old.is_some_and(|old| new >= old))
    }
}

/// EXPIRE, PEXPIRE, EXPIREAT, PEXPIREAT.
pub(crate) fn expire(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (unit, command) = match &*lower(&arguments[0]) {
        b"expire" => (Unit::Seconds, "expire"),
        b"pexpire" => (Unit::Milliseconds, "pexpire"),
        b"expireat" => (Unit::SecondsSince1970, "expireat"),
        _ => (Unit::MillisecondsSince1970, "pexpireat"),
    };
    let condition = Condition::parse(arguments.from(3))?;
    let Some(expires) = unit.resolve(integer(&arguments[2])?, keys.now) else {
        return refuse_with(format!("ERR invalid expire time in '{command}' command"));
    };
    let key = keys.key(&arguments[1])?;
    let done = match keys.open(&key)? {
        Some(entry) if condition.holds(entry.expires, expires) => {
            if expires <= keys.now {
                keys.erase(&key, &entry)?;
                keys.notify(notify::GENERIC, "del", key.name);
            } else {
                keys.set_expiry(&key, &entry, Some(expires))?;
                keys.notify(notify::GENERIC, "expire", key.name);
            }
            true
        }
        _ => false,
    };
    replies.truth(done);
    Ok(())
}

/// TTL, PTTL, EXPIRETIME, PEXPIRETIME.
pub(crate) fn ttl(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    let answer = match keys.open(&key)? {
        None => -2,
        Some(entry) => match (entry.expires, &*lower(&arguments[0])) {
            (None, _) => -1,
            (Some(expires), b"ttl") => (expires - keys.now).saturating_add(500) / 1_000,
            (Some(expires), b"pttl") => expires - keys.now,
            (Some(expires), b"expiretime") => expires.saturating_add(500) / 1_000,
            (Some(expires), _) => expires,
        },
    };
    replies.integer(answer);
    Ok(())
}

pub(crate) fn persist(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let key = keys.key(&arguments[1])?;
    let done = match keys.open(&key)? {
        Some(entry) if entry.expires.is_some() => {
            keys.set_expiry(&key, &entry, None)?;
            keys.notify(notify::GENERIC, "persist", key.name);
            true
        }
        _ => false,
    };
    replies.truth(done);
    Ok(())
}
