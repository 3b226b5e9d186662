//! What a setting takes: how its text is read, and how it is told.
//!
//! Invariant: what `parse` answers is the one text for its meaning, and parses to itself.
//!
//! Deliberately absent: kinds that one server alone has. Its table brings them along ([`Kind::Own`]).

/// What a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// yes or no.
    Yes,
    /// An integer within bounds.
    Integer {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// A number of bytes, with k, kb, m, mb, g, gb if need be.
    Bytes {
        /// The least.
        least: i64,
        /// The most.
        most: i64,
    },
    /// Bytes, or percent of something else; then the number is below 0.
    Share,
    /// A port, or `any`, which is told as that and as 0.
    Port,
    /// Permissions.
    Octal,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Any text.
    Text,
    /// Words with blanks between them.
    Words,
    /// What the server reads itself.
    Own(&'static Own),
}

/// A kind that one server has.
#[derive(Debug)]
pub struct Own {
    /// What stands for a value where the usage of a program is told, in capitals: `LETTERS`.
    pub placeholder: &'static str,
    /// Whether it takes several words.
    pub takes_many: bool,
    /// Reads a text, or says what would be right.
    pub parse: fn(&str) -> Result<Parsed, String>,
}

/// A value that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The one text for it.
    pub text: String,
    /// As a number: yes is 1, a choice its place; texts are 0.
    pub number: i64,
}

impl Parsed {
    /// A number, told as one.
    #[must_use]
    pub fn of_number(number: i64) -> Parsed {
        Parsed { text: number.to_string(), number }
    }

    /// A text, which is no number.
    #[must_use]
    pub fn of_text(text: impl Into<String>) -> Parsed {
        Parsed { text: text.into(), number: 0 }
    }
}

impl Kind {
    /// Whether it takes several words.
    #[must_use]
    pub fn takes_many(self) -> bool {
        match self {
            Kind::Words => true,
            Kind::Own(own) => own.takes_many,
            _ => false,
        }
    }

    /// What stands for a value where the usage of a program is told.
    #[must_use]
    pub fn placeholder(self) -> &'static str {
        match self {
            Kind::Yes => "yes|no",
            Kind::Integer { .. } => "N",
            Kind::Bytes { .. } => "BYTES",
            Kind::Share => "BYTES|PERCENT%",
            Kind::Octal => "MODE",
            Kind::Port => "N|any",
            Kind::Choice(_) | Kind::Words => "WORD",
            Kind::Text => "TEXT",
            Kind::Own(own) => own.placeholder,
        }
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// What would be right.
    pub fn parse(self, text: &str) -> Result<Parsed, String> {
        match self {
            Kind::Yes => match &*text.to_ascii_lowercase() {
                "yes" => Ok(Parsed { text: "yes".to_owned(), number: 1 }),
                "no" => Ok(Parsed { text: "no".to_owned(), number: 0 }),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Integer { least, most } => match text.parse() {
                Ok(integer) if (least..=most).contains(&integer) => Ok(Parsed::of_number(integer)),
                Ok(_) => Err(format!("argument must be between {least} and {most} inclusive")),
                Err(_) => Err("argument couldn't be parsed into an integer".to_owned()),
            },
            Kind::Bytes { least, most } => match bytes(text) {
                Some(bytes) if (least..=most).contains(&bytes) => Ok(Parsed::of_number(bytes)),
                Some(_) => Err(format!("argument must be between {least} and {most} inclusive")),
                None => Err("argument must be a memory value".to_owned()),
            },
            Kind::Share => share(text),
            Kind::Port => match text.parse::<u16>() {
                Ok(port) => Ok(Parsed::of_number(i64::from(port))),
                Err(_) if text.eq_ignore_ascii_case("any") => Ok(Parsed::of_text("any")),
                Err(_) => Err("argument must be between 0 and 65535 inclusive, or any".to_owned()),
            },
            Kind::Octal => match i64::from_str_radix(text, 8) {
                Ok(mode) if (0..=0o777).contains(&mode) => {
                    Ok(Parsed { text: format!("{mode:o}"), number: mode })
                }
                _ => Err("argument couldn't be parsed into an octal number from 0 to 777".to_owned()),
            },
            Kind::Choice(words) => choice(words, text),
            Kind::Text => Ok(Parsed::of_text(text)),
            Kind::Words => Ok(Parsed::of_text(text.split_whitespace().collect::<Vec<_>>().join(" "))),
            Kind::Own(own) => (own.parse)(text),
        }
    }
}

fn choice(words: &[&str], text: &str) -> Result<Parsed, String> {
    match words.iter().position(|word| word.eq_ignore_ascii_case(text)) {
        Some(place) => Ok(Parsed { text: words[place].to_owned(), number: place as i64 }),
        None => {
            let words: Vec<_> =
                words.iter().map(|word| if word.is_empty() { "\"\"" } else { *word }).collect();
            Err(format!("argument must be one of the following: {}", words.join(", ")))
        }
    }
}

fn share(text: &str) -> Result<Parsed, String> {
    let wrong = || Err("argument must be a memory or percent value".to_owned());
    match text.strip_suffix('%').map(str::parse::<i64>) {
        Some(Ok(part @ 1..=100)) => Ok(Parsed { text: format!("{part}%"), number: -part }),
        Some(Ok(0)) => Ok(Parsed::of_number(0)),
        Some(Ok(101..)) => Err("percentage argument must be less or equal to 100".to_owned()),
        Some(_) => wrong(),
        None => bytes(text).map_or_else(wrong, |bytes| Ok(Parsed::of_number(bytes))),
    }
}

/// Bytes, as `64`, `64k`, `64kb`, ... say them: `k` is a thousand and `kb` is 1024.
#[must_use]
pub fn bytes(text: &str) -> Option<i64> {
    let text = text.to_ascii_lowercase();
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "b" => 1,
        "k" => 1_000,
        "kb" => 1 << 10,
        "m" => 1_000_000,
        "mb" => 1 << 20,
        "g" => 1_000_000_000,
        "gb" => 1 << 30,
        _ => return None,
    };
    digits.parse::<i64>().ok().filter(|number| *number >= 0)?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_and_told_in_one_way() {
        let bytes = Kind::Bytes { least: 0, most: i64::MAX };
        for (text, number) in [("0", 0), ("1k", 1_000), ("1KB", 1_024), ("2gb", 2 << 30), ("7b", 7)] {
            assert_eq!(bytes.parse(text).unwrap().number, number, "{text}");
        }
        for text in ["", "-1", "1tb", "x", "9999999999gb", "kb"] {
            assert!(bytes.parse(text).is_err(), "{text}");
        }
        assert_eq!(Kind::Octal.parse("0770").unwrap().text, "770");
        for (text, number) in [("0", 0), ("5mb", 5 << 20), ("7%", -7), ("100%", -100), ("0%", 0)] {
            let parsed = Kind::Share.parse(text).unwrap();
            assert_eq!(parsed.number, number, "{text}");
            assert_eq!(Kind::Share.parse(&parsed.text).unwrap(), parsed, "it parses to itself");
        }
        assert!(["101%", "-1%", "%", "x"].iter().all(|text| Kind::Share.parse(text).is_err()));
        assert!(Kind::Octal.parse("1000").is_err() && Kind::Yes.parse("1").is_err());
        assert_eq!(Kind::Choice(&["a", "b"]).parse("B").unwrap(), Parsed { text: "b".to_owned(), number: 1 });
        assert!(Kind::Choice(&["", "b"]).parse("c").unwrap_err().ends_with(": \"\", b"));
        assert_eq!(Kind::Port.parse("ANY").unwrap(), Parsed::of_text("any"));
        assert!(Kind::Port.parse("65536").is_err());
    }

    #[test]
    fn a_server_has_kinds_of_its_own() {
        static EVEN: Own = Own {
            placeholder: "EVEN",
            takes_many: true,
            parse: |text| match text.parse() {
                Ok(number) if number % 2 == 0 => Ok(Parsed::of_number(number)),
                _ => Err("argument must be even".to_owned()),
            },
        };
        let kind = Kind::Own(&EVEN);
        assert_eq!(
            (kind.parse("4").unwrap().number, kind.placeholder(), kind.takes_many()),
            (4, "EVEN", true)
        );
        assert_eq!(kind.parse("3").unwrap_err(), "argument must be even");
    }
}
