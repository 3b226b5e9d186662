//! Numbers of 128 bits without a sign: what a column of AlchemyDB's type U128 holds.
//!
//! SQLite has no such numbers. Such a column is one of texts, `high|low`, two numbers of 64 bits, which its collation `U128` compares
//! by what they are; so all that compares, sorts, groups and joins texts is right as it is (`docs/design/0058-u128.md`).
//!
//! ```text
//! 0|18446744073709551615 < 1|0 < 1|10 < 2|9
//! ```
//!
//! Invariants
//! - A column holds the one text of a number that has no needless zeros, or NULL.
//! - What the collation calls equal has one place in an index. Texts that are no such numbers, which only other columns can hold, come
//!   behind all that are.

use std::borrow::Cow;
use std::cmp::Ordering;

use crate::error::{Error, Result, SqlState};
use crate::value::Value;

/// Whether a declared type is U128; AlchemyDB has it so in all cases of letters. `TEXT` stands behind it where SQLite is told of it.
pub(crate) fn is_wide(declared: &str) -> bool {
    let is_so = declared.as_bytes().get(..4).is_some_and(|word| word.eq_ignore_ascii_case(b"u128"));
    if !is_so {
        return false;
    }
    let mut words = declared.split_whitespace();
    words.next().is_some_and(|word| word.eq_ignore_ascii_case("u128"))
        && words.all(|word| word.eq_ignore_ascii_case("text"))
}

/// The number that a text is.
fn number(text: &[u8]) -> Option<u128> {
    let text = std::str::from_utf8(text).ok()?;
    let (high, low) = text.split_once('|')?;
    let half = |half: &str| {
        let is_digits = !half.is_empty() && half.bytes().all(|byte| byte.is_ascii_digit());
        is_digits.then(|| half.parse::<u64>().ok())?
    };
    Some(u128::from(half(high)?) << 64 | u128::from(half(low)?))
}

/// A number as a text.
fn text(number: u128) -> String {
    format!("{}|{}", number >> 64, number as u64)
}

/// A value as a column of such numbers stores it; what is none stays what it is, for the check to find.
pub(crate) fn stored(value: Value) -> Value {
    match &value {
        Value::Text(bytes) => number(bytes).map_or(value, |number| Value::from(text(number))),
        _ => value,
    }
}

/// Fails for a value that a column of such numbers does not take.
pub(crate) fn check(value: &Value, column: &str) -> Result<()> {
    let told = match value {
        Value::Null => return Ok(()),
        Value::Text(bytes) if number(bytes).is_some() => return Ok(()),
        Value::Text(bytes) => format!("'{}'", String::from_utf8_lossy(bytes)),
        Value::Integer(integer) => integer.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Blob(_) => "a blob".to_owned(),
    };
    let what = format!(
        "{told} is no number of 128 bits, which {column} takes alone: write 'high|low', two numbers of up to {}",
        u64::MAX
    );
    Err(Error::new(SqlState::RANGE, what))
}

/// The collation: by the numbers; what is none comes last, in the order of its bytes.
pub(crate) fn order(text: &[u8], other: &[u8]) -> Ordering {
    match (number(text), number(other)) {
        (Some(one), Some(other)) => one.cmp(&other),
        (Some(_), None) => Ordering::Less,
        (None, Some(_)) => Ordering::Greater,
        (None, None) => text.cmp(other),
    }
}

/// The bytes whose order is that of the collation: the number's digits, of which there are equally many; else `x` and the text.
pub(crate) fn sorted(text: &[u8]) -> Cow<'static, [u8]> {
    match number(text) {
        Some(number) => Cow::Owned(format!("{number:039}").into_bytes()),
        None => Cow::Owned([b"x", text].concat()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_compare_as_their_numbers() {
        let all = [
            "0|0",
            "0|1",
            "0|18446744073709551615",
            "1|0",
            "1|10",
            "2|9",
            "10|1",
            "18446744073709551615|18446744073709551615",
            "",
            "-1|0",
            "0|18446744073709551616",
            "1",
            "1 | 2",
            "1|",
            "1|2|3",
            "|1",
        ];
        for (at, one) in all.iter().enumerate() {
            for (place, other) in all.iter().enumerate() {
                let wanted = at.cmp(&place);
                assert_eq!(order(one.as_bytes(), other.as_bytes()), wanted, "{one} {other}");
                assert_eq!(sorted(one.as_bytes()).cmp(&sorted(other.as_bytes())), wanted, "{one} {other}");
            }
            assert_eq!(check(&Value::from(*one), "t.c").is_ok(), at < 8, "{one}");
        }
        assert_eq!(order(b"01|002", b"1|2"), Ordering::Equal);
        assert_eq!(sorted(b"01|002"), sorted(b"1|2"));
        assert_eq!(stored(Value::from("01|002")), Value::from("1|2"));
        assert_eq!(stored(Value::from("x")), Value::from("x"));
        assert!(check(&Value::Integer(5), "t.c").is_err());
        for (declared, wanted) in [("U128", true), ("u128 TEXT", true), ("U128 INT", false), ("TEXT", false)]
        {
            assert_eq!(is_wide(declared), wanted, "{declared}");
        }
    }
}
