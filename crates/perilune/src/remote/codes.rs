//! Errors on the wire: a word that names the kind, then the text for people.

use perilune_key::ArithmeticError;
use perilune_store::Error as StoreError;

use crate::{Error, ErrorCode};

/// The line that a client is told: a word for the kind, and the text. Of one line.
#[must_use]
pub fn line_of(error: &Error) -> String {
    match error {
        Error::Number(error) => format!("{} {error}", arithmetic_word(*error)),
        error => format!("{} {error}", error.code().name()),
    }
}

/// What a server's line says. A word that is none of ours comes from the server's gate.
pub(super) fn to_error(line: &str, address: &str) -> StoreError {
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    if let Some(error) = arithmetic_of(word) {
        return answered(ErrorCode::Number, error.to_string());
    }
    match ErrorCode::from_name(word) {
        Some(ErrorCode::Conflict) => StoreError::Conflict,
        Some(ErrorCode::Restart) => StoreError::Restart,
        Some(ErrorCode::Deadlock) => StoreError::Deadlock,
        Some(ErrorCode::ReadOnly) => StoreError::ReadOnly,
        Some(ErrorCode::ChannelFull) => StoreError::ChannelFull,
        Some(ErrorCode::CommitUnknown) => StoreError::CommitUnknown,
        Some(code) => answered(code, text.to_owned()),
        None => answered(ErrorCode::CannotOpen, refusal(word, line, address)),
    }
}

fn answered(code: ErrorCode, text: String) -> StoreError {
    StoreError::Answered { code: code.number(), text }
}

fn refusal(word: &str, line: &str, address: &str) -> String {
    match word {
        "NOAUTH" | "WRONGPASS" => format!(
            "{address} wants a password: put it in the address, as tcp://:PASSWORD@host, or in $PERILUNE_PASSWORD \
             (the server said: {line})"
        ),
        "ERR" if line.contains("unknown command") => {
            format!("{address} is a Redis server, or an older Perilune: start `perilune serve` there")
        }
        _ => format!("{address} answered: {line}"),
    }
}

const ARITHMETIC: [(ArithmeticError, &str); 5] = [
    (ArithmeticError::Overflow, "NUMBER_OVERFLOW"),
    (ArithmeticError::Underflow, "NUMBER_UNDERFLOW"),
    (ArithmeticError::Inexact, "NUMBER_INEXACT"),
    (ArithmeticError::NotANumber, "NOT_A_NUMBER"),
    (ArithmeticError::Malformed, "NUMBER_MALFORMED"),
];

fn arithmetic_word(error: ArithmeticError) -> &'static str {
    ARITHMETIC.iter().find(|(known, _)| *known == error).map_or("NUMBER", |(_, word)| word)
}

fn arithmetic_of(word: &str) -> Option<ArithmeticError> {
    ARITHMETIC.iter().find(|(_, known)| *known == word).map(|(error, _)| *error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_over_the_wire() {
        for error in [
            StoreError::Deadlock,
            StoreError::ReadOnly,
            StoreError::KeyTooLong { bytes: 9, limit: 8 },
            StoreError::LimitReached { what: "locks", limit: 3 },
            StoreError::Internal("x".to_owned()),
        ] {
            let error = Error::from(error);
            let (code, text) = (error.code(), error.to_string());
            let back = Error::from(to_error(&line_of(&error), "tcp://a:1"));
            assert_eq!((back.code(), back.to_string()), (code, text));
        }
        let inexact = Error::Number(ArithmeticError::Inexact);
        let back = Error::from(to_error(&line_of(&inexact), "tcp://a:1"));
        assert!(matches!(back, Error::Number(ArithmeticError::Inexact)), "{back:?}");
        let refused = to_error("NOAUTH Authentication required.", "tcp://a:1").to_string();
        assert!(refused.contains("PERILUNE_PASSWORD") && refused.contains("tcp://a:1"), "{refused}");
        assert!(to_error("ERR unknown command 'x'", "tcp://a:1").to_string().contains("perilune serve"));
    }
}
