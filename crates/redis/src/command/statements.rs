//! Requests that are statements of SQL: AlchemyDB's words as commands, told from Redis's by their shape.
//!
//! ```text
//! INSERT INTO users VALUES (1,'Ada')            a statement, by its first word
//! SELECT 1                                      Redis's: a database
//! SELECT name FROM users WHERE id = 1           a statement: more than one argument, or one of several words
//! SCAN 0 MATCH a*                               Redis's: a cursor
//! SCAN * FROM users                             a statement: no cursor, and a FROM
//! DUMP key                                      Redis's
//! DUMP TABLE users, DUMP users TO MYSQL         statements
//! ```
//!
//! Such a request is the command SQL in another framing: whoever may run that may run these, and rules, statistics and limits are
//! those of SQL. Where a user may not, statements that read are SQL_RO.
//!
//! Invariant: what Redis answers without an error is never a statement.

use perilune_resp::Arguments;

use super::{find, Command};

/// The words that begin statements and are no commands.
const WORDS: [&[u8]; 21] = [
    b"alter",
    b"analyze",
    b"create",
    b"delete",
    b"denorm",
    b"desc",
    b"describe",
    b"drop",
    b"evict",
    b"execute",
    b"explain",
    b"insert",
    b"interpret",
    b"norm",
    b"prepare",
    b"reindex",
    b"replace",
    b"show",
    b"update",
    b"values",
    b"with",
];

/// The command that a request is for.
#[inline]
pub(crate) fn of(arguments: Arguments<'_>) -> Option<&'static Command> {
    match find(&arguments[0]) {
        Some(command) => match command.statement {
            Some(is_statement) if is_statement(arguments) => find(b"sql"),
            _ => Some(command),
        },
        None => beginning(arguments),
    }
}

/// The command SQL, if the first word begins a statement.
#[cold]
fn beginning(arguments: Arguments<'_>) -> Option<&'static Command> {
    WORDS.iter().any(|word| arguments[0].eq_ignore_ascii_case(word)).then(|| find(b"sql")).flatten()
}

/// Whether a request that is SQL's in another framing only reads, unless by functions.
pub(crate) fn reads(arguments: Arguments<'_>) -> bool {
    let words: [&[u8]; 6] = [b"select", b"scan", b"desc", b"describe", b"show", b"explain"];
    words.iter().any(|word| arguments[0].eq_ignore_ascii_case(word))
}

/// Whether a SELECT is a statement.
pub(crate) fn is_select(arguments: Arguments<'_>) -> bool {
    let is_number = |at: usize| arguments.get(at).is_some_and(|text| text.iter().all(u8::is_ascii_digit));
    let is_query = |text: &[u8]| text.iter().any(|byte| byte.is_ascii_whitespace() || *byte == b'(');
    match arguments.len() {
        2 => is_query(&arguments[1]),
        count => count > 2 && !(is_number(1) && is_number(2)),
    }
}

/// Whether a SCAN is a statement.
pub(crate) fn is_scan(arguments: Arguments<'_>) -> bool {
    let is_cursor = |text: &[u8]| {
        let digits = text.strip_prefix(b"-").or(text.strip_prefix(b"+")).unwrap_or(text);
        digits.iter().all(u8::is_ascii_digit)
    };
    let has_from =
        |text: &[u8]| text.split(u8::is_ascii_whitespace).any(|word| word.eq_ignore_ascii_case(b"from"));
    arguments.get(1).is_some_and(|first| !is_cursor(first)) && arguments.from(1).iter().any(has_from)
}

/// Whether a DUMP is a statement.
pub(crate) fn is_dump(arguments: Arguments<'_>) -> bool {
    let is = |at: usize, word: &str| {
        arguments.get(at).is_some_and(|given| given.eq_ignore_ascii_case(word.as_bytes()))
    };
    arguments.len() > 2 && (is(1, "table") || is(2, "to"))
}

#[cfg(test)]
mod tests {
    use perilune_resp::ArgumentsBuf;

    use super::*;

    #[test]
    fn shapes_tell_statements() {
        let is = |words: &[&str]| {
            let words: ArgumentsBuf = words.iter().collect();
            of(words.as_arguments()).map(|command| command.name)
        };
        for redis in [&["SELECT", "1"][..], &["select", "x"], &["SELECT", ""]] {
            assert_eq!(is(redis), Some("select"), "{redis:?}");
        }
        for redis in
            [&["SCAN", "0"][..], &["SCAN", "-7", "MATCH", "from"], &["SCAN", "x", "COUNT", "5"], &["SCAN"]]
        {
            assert_eq!(is(redis), Some("scan"), "{redis:?}");
        }
        for redis in [&["DUMP", "key"][..], &["DUMP", "a key"], &["DUMP", "a", "b"]] {
            assert_eq!(is(redis), Some("dump"), "{redis:?}");
        }
        assert_eq!(is(&["SELECT", "1", "2"]), Some("select"));
        assert_eq!(is(&["GET", "FROM"]), Some("get"));
        assert_eq!(is(&["TABLE", "t"]), None);
        for sql in [
            &["SELECT", "name", "FROM", "users"][..],
            &["SELECT", "name FROM users"],
            &["SELECT", "now()"],
            &["SCAN", "*", "FROM", "t"],
            &["SCAN", "* from t"],
            &["DUMP", "t", "TO", "MYSQL"],
            &["insert", "INTO", "t"],
            &["Norm", "user:*"],
        ] {
            assert_eq!(is(sql), Some("sql"), "{sql:?}");
        }
    }
}
