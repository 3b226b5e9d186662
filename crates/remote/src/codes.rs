//! What a server's error line says: a word that names the kind, then the text for people.
//!
//! Example: `CONFLICT another transaction has ...` becomes `Error::Conflict`, so that a runner runs the body again.
//!
//! Invariant: a word that is not known here is an error all the same, with the text that came.

use perilune_store::Error;

use crate::wire::WORDS;

/// The error that a line tells of. A word that is none of ours comes from the server's gate.
pub(crate) fn to_error(line: &str, address: &str) -> Error {
    let (word, text) = line.split_once(' ').unwrap_or((line, ""));
    let Some(kind) = WORDS.into_iter().find(|known| *known == word) else {
        return Error::CannotOpen { place: address.into(), why: refusal(word, line) };
    };
    match kind {
        "CONFLICT" => Error::Conflict,
        "RESTART" => Error::Restart,
        "DEADLOCK" => Error::Deadlock,
        "READ_ONLY" => Error::ReadOnly,
        "CHANNEL_FULL" => Error::ChannelFull,
        "COMMIT_UNKNOWN" => Error::CommitUnknown { why: text.to_owned() },
        "INVALID" => Error::Invalid(text.to_owned()),
        "REFUSED" => Error::Refused(text.to_owned()),
        kind => Error::Answered { kind, text: text.to_owned() },
    }
}

fn refusal(word: &str, line: &str) -> String {
    match word {
        "NOAUTH" | "WRONGPASS" => format!(
            "wants a password: put it in the address, as tcp://:PASSWORD@host, or in $PERILUNE_PASSWORD (the server said: \
             {line})"
        ),
        "ERR" if line.contains("unknown command") => {
            "this is a Redis server, or an older Perilune: start `perilune serve` there".to_owned()
        }
        _ => format!("the server answered: {line}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_their_kind_and_text() {
        assert!(matches!(to_error("CONFLICT run it again", "tcp://a:1"), Error::Conflict));
        assert!(matches!(to_error("INVALID no", "tcp://a:1"), Error::Invalid(why) if why == "no"));
        let far = to_error("KEY_TOO_LONG the key is", "tcp://a:1");
        assert!(
            matches!(&far, Error::Answered { kind: "KEY_TOO_LONG", text } if text == "the key is"),
            "{far:?}"
        );
        let refused = to_error("NOAUTH Authentication required.", "tcp://a:1").to_string();
        assert!(refused.contains("PERILUNE_PASSWORD") && refused.contains("tcp://a:1"), "{refused}");
        assert!(to_error("ERR unknown command 'x'", "tcp://a:1").to_string().contains("perilune serve"));
    }
}
