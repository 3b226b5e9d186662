//! What is written: values that show which database they belong to.
//!
//! A database has a token, drawn by the first process that writes to it. A value is the token, then the key over and
//! over: a page, a record of the log or a piece of a value that came from another database shows.

use perilune_engine::Session;
use perilune_harness::bank::Random;
use perilune_store::{transact, Error, Result, Session as _, TransactionOptions};

/// Before all other keys.
const TOKEN: &[u8] = b"!token";

/// The database's token, which is drawn if it has none.
///
/// # Errors
/// As [`transact`].
pub(crate) fn token(session: &mut Session, random: &mut Random) -> Result<u64> {
    let drawn = random.below(1 << 31) << 32 | random.below(1 << 31) << 1 | 1;
    transact(session, &TransactionOptions::default(), |session| {
        let mut value = Vec::new();
        if session.get(TOKEN, &mut value)? {
            return number(&value).ok_or_else(|| Error::Refused("the token is damaged".to_owned()));
        }
        session.set(TOKEN, &drawn.to_le_bytes())?;
        Ok(drawn)
    })
}

fn number(value: &[u8]) -> Option<u64> {
    value.get(..8)?.try_into().ok().map(u64::from_le_bytes)
}

/// The value at `key`, of about `bytes` bytes.
pub(crate) fn value(token: u64, key: &[u8], bytes: usize) -> Vec<u8> {
    let mut value = token.to_le_bytes().to_vec();
    while value.len() < bytes {
        value.extend_from_slice(key);
    }
    value
}

/// Whether a value is one of this database's at `key`.
fn is_good(token: u64, key: &[u8], value: &[u8]) -> bool {
    number(value) == Some(token) && value[8..].chunks(key.len()).all(|part| part == key)
}

/// Reads everything; answers the token, if there is one, and how many values there are.
///
/// # Errors
/// What is wrong, in words.
pub(crate) fn check(session: &mut Session) -> std::result::Result<(Option<u64>, u64), String> {
    let engine = |error: Error| error.to_string();
    let (mut key, mut value, mut from) = (Vec::new(), Vec::new(), vec![0]);
    let mut token = None;
    if session.get(TOKEN, &mut value).map_err(engine)? {
        token = number(&value);
    }
    let mut count = 0;
    while session.next(&from, false, &mut key, Some(&mut value)).map_err(engine)? {
        count += 1;
        let is_right = key == TOKEN || token.is_some_and(|token| is_good(token, &key, &value));
        if !is_right {
            return Err(format!("`{}` has a value of another database", key.escape_ascii()));
        }
        std::mem::swap(&mut from, &mut key);
    }
    Ok((token, count))
}
