//! Numbers as text: integers as Redis reads and writes them, doubles as its `%.17g`.
//!
//! Example: `12` is an integer; `012`, `+12` and `12 ` are none, and what Redis refuses as none is refused here.
//!
//! Invariant: an integer that is written is read as the same one.

use std::fmt::Write as _;

/// Reads an integer in the one form that Redis takes: no blanks, no plus, no leading zeros, no "-0".
#[must_use]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    // Summed up below zero, where there is one number more.
    digits
        .iter()
        .try_fold(0_i64, |sum, &digit| {
            if !digit.is_ascii_digit() {
                return None;
            }
            sum.checked_mul(10)?.checked_sub(i64::from(digit - b'0'))
        })
        .and_then(|sum| if negative { Some(sum) } else { sum.checked_neg() })
}

/// Appends `integer` in decimal.
pub fn write_integer(integer: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(integer_text(integer, &mut [0; 20]));
}

/// `integer` in decimal, written at the end of `digits`.
#[inline]
pub fn integer_text(integer: i64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    let mut rest = integer.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if integer < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    &digits[at..]
}

/// `double` with 17 significant digits, as C's `%.17g`; infinities as `inf` and `-inf`.
#[must_use]
pub fn format_double(double: f64) -> String {
    if double.is_nan() {
        return "nan".to_owned();
    }
    if double.is_infinite() {
        return if double > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    if double == double.trunc() && double.abs() < 1e15 && (double != 0.0 || double.is_sign_positive()) {
        return format!("{double:.0}");
    }
    let scientific = format!("{double:.16e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let digits = digits.trim_end_matches('0');
    let digits = if digits.is_empty() { "0" } else { digits };
    let mut text = sign.to_owned();
    if !(-4..17).contains(&exponent) {
        text.push_str(&digits[..1]);
        if digits.len() > 1 {
            text.push('.');
            text.push_str(&digits[1..]);
        }
        let _ = write!(text, "e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs());
        return text;
    }
    if exponent < 0 {
        text.push_str("0.");
        text.extend(std::iter::repeat_n('0', exponent.unsigned_abs() as usize - 1));
        text.push_str(digits);
        return text;
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        text.push_str(digits);
        text.extend(std::iter::repeat_n('0', whole - digits.len()));
    } else {
        text.push_str(&digits[..whole]);
        text.push('.');
        text.push_str(&digits[whole..]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_have_one_form() {
        for good in [0, 1, -1, 10, 4_096, i64::MAX, i64::MIN] {
            let mut text = Vec::new();
            write_integer(good, &mut text);
            assert_eq!(text, good.to_string().as_bytes());
            assert_eq!(parse_integer(&text), Some(good));
        }
        let wrong: [&[u8]; 12] = [
            b"",
            b"-",
            b"-0",
            b"+1",
            b" 1",
            b"1 ",
            b"01",
            b"1a",
            b"9223372036854775808",
            b"-9223372036854775809",
            b"99999999999999999999",
            b"1.0",
        ];
        for text in wrong {
            assert_eq!(parse_integer(text), None, "{}", String::from_utf8_lossy(text));
        }
    }

    /// What C's printf("%.17g") prints.
    #[test]
    fn doubles_have_seventeen_digits() {
        let pairs = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-17.0, "-17"),
            (0.1, "0.10000000000000001"),
            (1.5, "1.5"),
            (3.3, "3.2999999999999998"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (1.5e300, "1.5000000000000001e+300"),
            (1e-4, "0.0001"),
            (1e-5, "1.0000000000000001e-05"),
            (123456.789, "123456.789"),
            (5e-324, "4.9406564584124654e-324"),
            (1e15, "1000000000000000"),
            (-0.5, "-0.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (double, text) in pairs {
            assert_eq!(format_double(double), text);
        }
    }
}
