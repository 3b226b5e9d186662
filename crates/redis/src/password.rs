//! What a start says of who may enter: whether the user `default` needs a password, and since when.

use std::fmt;

/// Whether the user `default` needs a password.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Password {
    /// None, and other machines are not let in.
    NoneHere,
    /// None, whatever machine it is.
    NoneAnywhere,
    /// The one of `requirepass`.
    Given,
    /// One that was set earlier, or by rules.
    Kept,
    /// There is no such user: all name themselves.
    Off,
}

impl Password {
    /// In the log.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Password::NoneHere | Password::NoneAnywhere => "none",
            Password::Given => "requirepass",
            Password::Kept => "kept",
            Password::Off => "users",
        }
    }
}

impl fmt::Display for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Password::NoneHere => {
                "no password: whoever can connect from this machine enters as the user `default`; others are refused"
            }
            Password::NoneAnywhere => {
                "NO PASSWORD: whoever can connect, from any machine, enters as the user `default`; set `requirepass`"
            }
            Password::Given => "a password is needed: that of `requirepass`",
            Password::Kept => {
                "a password is needed: one that was set earlier and is kept in the database; `requirepass \"\"` clears it"
            }
            Password::Off => "the user `default` is off: clients enter as other users",
        })
    }
}
