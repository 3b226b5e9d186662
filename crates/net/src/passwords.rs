//! Passwords of a user, kept as hashes, and what becomes of who guesses them.
//!
//! Whoever reads what a server keeps must not learn passwords from it; whoever measures how long it takes to be turned away,
//! neither; and whoever tries one after another is to be slow, without others waiting for him. So a password is kept as its
//! SHA-256, a wrong one is compared with all of them to their ends, and each connection counts its [`Attempts`]: a few are
//! answered at once, the next ones later and later, and then it ends.
//!
//! ```
//! use perilune_net::passwords::{Attempts, Passwords};
//!
//! let mut passwords = Passwords::default();
//! assert!(!passwords.admit(b""), "nobody, until something is said");
//! passwords.add_text("secret").unwrap();
//! assert!(passwords.admit(b"secret") && !passwords.admit(b"Secret"));
//!
//! let mut attempts = Attempts::default();
//! let delays: Vec<_> = (0..5).map(|_| attempts.fail().delay.as_millis()).collect();
//! assert_eq!(delays, [0, 0, 0, 250, 500]);
//! ```
//!
//! Invariants
//! - No password is kept, and none can be told.
//! - A wrong password takes as long as any other wrong one of its length.
//!
//! Deliberately absent: who the users are, and what they may do. SHA-256 without salt is what Redis's files of users have: a
//! password that can be guessed offline is no password.

use std::fmt::Write as _;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::limits::{ENTRIES, ENTRIES_AT_ONCE, ENTRY_DELAY, ENTRY_DELAY_MOST, PASSWORDS};

/// SHA-256 in hexadecimal.
#[must_use]
pub fn hashed(password: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(password) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// Whether a text is a hash, as [`hashed`] writes them.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// There are [`PASSWORDS`] already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooMany;

/// The passwords with which a user may enter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passwords {
    /// Any password is right.
    any: bool,
    hashes: Vec<String>,
}

impl Passwords {
    /// Whether any password is right.
    #[must_use]
    pub fn are_needless(&self) -> bool {
        self.any
    }

    /// What is kept of each.
    #[must_use]
    pub fn hashes(&self) -> &[String] {
        &self.hashes
    }

    /// Forgets all of them. Any password is right then, or none.
    pub fn clear(&mut self, any: bool) {
        *self = Passwords { any, hashes: Vec::new() };
    }

    /// Makes this the only one; with an empty one none is needed.
    pub fn set(&mut self, password: &str) {
        self.clear(password.is_empty());
        if !self.any {
            self.hashes.push(hashed(password.as_bytes()));
        }
    }

    /// One more.
    ///
    /// # Errors
    /// There are too many.
    pub fn add_text(&mut self, password: &str) -> Result<(), TooMany> {
        self.add(hashed(password.as_bytes()))
    }

    /// One more, of which the hash is known.
    ///
    /// # Errors
    /// There are too many.
    pub fn add(&mut self, hash: String) -> Result<(), TooMany> {
        self.any = false;
        if self.hashes.contains(&hash) {
            return Ok(());
        }
        if self.hashes.len() >= PASSWORDS {
            return Err(TooMany);
        }
        self.hashes.push(hash);
        Ok(())
    }

    /// Takes one away; whether it was there.
    pub fn remove(&mut self, hash: &str) -> bool {
        let place = self.hashes.iter().position(|known| known == hash);
        place.is_some_and(|place| {
            self.hashes.remove(place);
            true
        })
    }

    /// Whether this is a right one. Takes the same time for every wrong one.
    #[must_use]
    pub fn admit(&self, password: &[u8]) -> bool {
        let given = hashed(password);
        let right = self.hashes.iter().fold(false, |found, known| found | are_same(known, &given));
        self.any || right
    }
}

/// Whether two hashes are the same, compared to their ends.
fn are_same(left: &str, right: &str) -> bool {
    let pairs = left.bytes().zip(right.bytes());
    pairs.fold(0, |differences, (left, right)| differences | (left ^ right)) == 0
}

/// How a wrong password is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// After this time; zero: at once.
    pub delay: Duration,
    /// Then the connection ends.
    pub ends: bool,
}

/// Wrong passwords of a connection since the last right one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attempts(u32);

impl Attempts {
    /// One more: the later it is answered the more there were, and behind many the connection ends.
    pub fn fail(&mut self) -> Refusal {
        self.0 = self.0.saturating_add(1);
        let delay = match self.0.checked_sub(ENTRIES_AT_ONCE + 1) {
            Some(again) => ENTRY_DELAY.saturating_mul(1 << again.min(16)).min(ENTRY_DELAY_MOST),
            None => Duration::ZERO,
        };
        Refusal { delay, ends: self.0 >= ENTRIES }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_come_and_go() {
        let mut passwords = Passwords::default();
        passwords.clear(true);
        assert!(passwords.are_needless() && passwords.admit(b"x"));
        passwords.set("a");
        assert!(passwords.admit(b"a") && !passwords.admit(b"b") && !passwords.admit(b""));
        let hash = hashed(b"b");
        assert!(is_hash(&hash) && !is_hash(&hash.to_uppercase()) && !is_hash(&hash[1..]));
        passwords.add(hash.clone()).unwrap();
        passwords.add(hash.clone()).unwrap();
        assert_eq!(passwords.hashes().len(), 2, "one that is there is not added");
        assert!(passwords.admit(b"a") && passwords.admit(b"b"));
        assert!(passwords.remove(&hash) && !passwords.remove(&hash) && !passwords.admit(b"b"));
        passwords.set("");
        assert!(passwords.admit(b"a") && passwords.hashes().is_empty());
        for number in 0..PASSWORDS {
            passwords.add_text(&number.to_string()).unwrap();
        }
        assert_eq!(passwords.add_text("more"), Err(TooMany));
        assert!(!passwords.are_needless() && passwords.admit(b"0"));
    }

    #[test]
    fn who_guesses_waits_longer_and_longer_and_is_sent_away() {
        let mut attempts = Attempts::default();
        let refusals: Vec<_> = (0..ENTRIES).map(|_| attempts.fail()).collect();
        let delays: Vec<_> = refusals.iter().map(|refusal| refusal.delay).collect();
        assert!(delays.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!((delays[0], delays[ENTRIES as usize - 1]), (Duration::ZERO, ENTRY_DELAY_MOST));
        assert_eq!(refusals.iter().filter(|refusal| refusal.ends).count(), 1, "the last one ends it");
        assert!(Attempts(u32::MAX).fail().ends);
    }
}
