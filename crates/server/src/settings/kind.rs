//! What a setting takes: how its text is read, and how it is told.
//!
//! Invariant: what `parse` answers is the one text for its meaning, and parses to itself.

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
    /// Letters of notify-keyspace-events.
    Events,
    /// Numbers from 0 to 100.
    Percentiles,
    /// Groups of class, hard limit, soft limit, seconds.
    Limits,
}

/// A value that was understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// As CONFIG GET tells it.
    pub text: String,
    /// As a number: yes is 1, a choice its place, events their bits; texts are 0.
    pub number: i64,
}

/// Events by letter, with the bits of Redis.
pub(crate) const EVENTS: [(char, i64); 14] = [
    ('g', 4),
    ('$', 8),
    ('l', 16),
    ('s', 32),
    ('h', 64),
    ('z', 128),
    ('x', 256),
    ('e', 512),
    ('t', 1024),
    ('d', 8192),
    ('K', 1),
    ('E', 2),
    ('m', 2048),
    ('n', 16384),
];
/// What `A` stands for.
const EVENTS_ALL: i64 = 4 | 8 | 16 | 32 | 64 | 128 | 256 | 512 | 1024 | 8192;

/// The classes of client-output-buffer-limit.
pub(crate) const CLASSES: [&str; 3] = ["normal", "slave", "pubsub"];

impl Kind {
    /// Whether it takes several words.
    #[must_use]
    pub fn takes_many(self) -> bool {
        matches!(self, Kind::Words | Kind::Limits | Kind::Percentiles)
    }

    /// Reads `text`.
    ///
    /// # Errors
    /// What would be right, as CONFIG SET says it.
    pub fn parse(self, text: &str) -> Result<Parsed, String> {
        let number = |number: i64| Parsed { text: number.to_string(), number };
        match self {
            Kind::Yes => match &*text.to_ascii_lowercase() {
                "yes" => Ok(Parsed { text: "yes".to_owned(), number: 1 }),
                "no" => Ok(Parsed { text: "no".to_owned(), number: 0 }),
                _ => Err("argument must be 'yes' or 'no'".to_owned()),
            },
            Kind::Integer { least, most } => match text.parse() {
                Ok(integer) if (least..=most).contains(&integer) => Ok(number(integer)),
                Ok(_) => Err(format!("argument must be between {least} and {most} inclusive")),
                Err(_) => Err("argument couldn't be parsed into an integer".to_owned()),
            },
            Kind::Bytes { least, most } => match bytes(text) {
                Some(bytes) if (least..=most).contains(&bytes) => Ok(number(bytes)),
                Some(_) => Err(format!("argument must be between {least} and {most} inclusive")),
                None => Err("argument must be a memory value".to_owned()),
            },
            Kind::Share => match text.strip_suffix('%').map(str::parse::<i64>) {
                Some(Ok(part @ 1..=100)) => Ok(Parsed { text: format!("{part}%"), number: -part }),
                Some(Ok(0)) => Ok(number(0)),
                Some(Ok(101..)) => Err("percentage argument must be less or equal to 100".to_owned()),
                Some(_) => Err("argument must be a memory or percent value".to_owned()),
                None => match bytes(text) {
                    Some(bytes) => Ok(number(bytes)),
                    None => Err("argument must be a memory or percent value".to_owned()),
                },
            },
            Kind::Port => match text.parse::<u16>() {
                Ok(port) => Ok(number(i64::from(port))),
                Err(_) if text.eq_ignore_ascii_case("any") => {
                    Ok(Parsed { text: "any".to_owned(), number: 0 })
                }
                Err(_) => Err("argument must be between 0 and 65535 inclusive, or any".to_owned()),
            },
            Kind::Octal => match i64::from_str_radix(text, 8) {
                Ok(mode) if (0..=0o777).contains(&mode) => {
                    Ok(Parsed { text: format!("{mode:o}"), number: mode })
                }
                _ => Err("argument couldn't be parsed into an octal number from 0 to 777".to_owned()),
            },
            Kind::Choice(words) => match words.iter().position(|word| word.eq_ignore_ascii_case(text)) {
                Some(place) => Ok(Parsed { text: words[place].to_owned(), number: place as i64 }),
                None => {
                    let words: Vec<_> =
                        words.iter().map(|word| if word.is_empty() { "\"\"" } else { *word }).collect();
                    Err(format!("argument must be one of the following: {}", words.join(", ")))
                }
            },
            Kind::Text => Ok(Parsed { text: text.to_owned(), number: 0 }),
            Kind::Words => {
                Ok(Parsed { text: text.split_whitespace().collect::<Vec<_>>().join(" "), number: 0 })
            }
            Kind::Events => events(text),
            Kind::Limits => limits(text),
            Kind::Percentiles => percentiles(text),
        }
    }
}

/// `64`, `64k`, `64kb`, ...: as in redis.conf, `k` is a thousand and `kb` is 1024.
fn bytes(text: &str) -> Option<i64> {
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

fn events(text: &str) -> Result<Parsed, String> {
    let mut bits = 0;
    for letter in text.chars() {
        bits |= match (letter, EVENTS.iter().find(|(known, _)| *known == letter)) {
            ('A', _) => EVENTS_ALL,
            (_, Some((_, bit))) => *bit,
            _ => return Err("Invalid event class character. Use 'Ag$lshzxeKEtmdn'.".to_owned()),
        };
    }
    let mut told = String::new();
    if bits & EVENTS_ALL == EVENTS_ALL {
        told.push('A');
    }
    for (letter, bit) in EVENTS {
        let in_all = EVENTS_ALL & bit != 0 && bits & EVENTS_ALL == EVENTS_ALL;
        if bits & bit != 0 && !in_all {
            told.push(letter);
        }
    }
    Ok(Parsed { text: told, number: bits })
}

/// What `text` says of each class, the last time that it does; classes that it does not name have their defaults.
///
/// # Errors
/// In Redis's words.
pub(crate) fn output_limits(text: &str) -> Result<[[i64; 3]; 3], &'static str> {
    let mut limits = [[0; 3], [256 << 20, 64 << 20, 60], [32 << 20, 8 << 20, 60]];
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.is_empty() || !words.len().is_multiple_of(4) {
        return Err("Wrong number of arguments in buffer limit configuration.");
    }
    for group in words.chunks(4) {
        let class = if group[0].eq_ignore_ascii_case("replica") { "slave" } else { group[0] };
        let Some(place) = CLASSES.iter().position(|known| known.eq_ignore_ascii_case(class)) else {
            return Err("Invalid client class specified in buffer limit configuration.");
        };
        let seconds = group[3].parse::<i64>().ok().filter(|seconds| *seconds >= 0);
        let (Some(hard), Some(soft), Some(seconds)) = (bytes(group[1]), bytes(group[2]), seconds) else {
            return Err("Error in hard, soft or soft_seconds setting in buffer limit configuration.");
        };
        limits[place] = [hard, soft, seconds];
    }
    Ok(limits)
}

fn limits(text: &str) -> Result<Parsed, String> {
    let limits = output_limits(text)?;
    let groups: Vec<_> = CLASSES
        .iter()
        .zip(limits)
        .map(|(class, [hard, soft, seconds])| format!("{class} {hard} {soft} {seconds}"))
        .collect();
    Ok(Parsed { text: groups.join(" "), number: 0 })
}

fn percentiles(text: &str) -> Result<Parsed, String> {
    let mut told = Vec::new();
    for word in text.split_whitespace() {
        match word.parse::<f64>() {
            Ok(percentile) if (0.0..=100.0).contains(&percentile) => told.push(percentile.abs().to_string()),
            Ok(_) => {
                return Err(
                    "latency-tracking-info-percentiles parameters should sit between [0.0,100.0]".to_owned()
                )
            }
            Err(_) => return Err("Invalid latency-tracking-info-percentiles parameters".to_owned()),
        }
    }
    Ok(Parsed { text: told.join(" "), number: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_redis_reads_them() {
        let bytes = Kind::Bytes { least: 0, most: i64::MAX };
        for (text, number) in [("0", 0), ("1k", 1_000), ("1KB", 1_024), ("2gb", 2 << 30), ("7b", 7)] {
            assert_eq!(bytes.parse(text).unwrap().number, number, "{text}");
        }
        for text in ["", "-1", "1tb", "x", "9999999999gb", "kb"] {
            assert!(bytes.parse(text).is_err(), "{text}");
        }
        assert_eq!(Kind::Events.parse("KEA").unwrap().text, "AKE");
        assert_eq!(Kind::Events.parse("Exg").unwrap().text, "gxE");
        assert!(Kind::Events.parse("q").is_err());
        assert_eq!(Kind::Octal.parse("0770").unwrap().text, "770");
        for (text, number) in [("0", 0), ("5mb", 5 << 20), ("7%", -7), ("100%", -100), ("0%", 0)] {
            assert_eq!(Kind::Share.parse(text).unwrap().number, number, "{text}");
        }
        assert!(["101%", "-1%", "%", "x"].iter().all(|text| Kind::Share.parse(text).is_err()));
        assert_eq!(Kind::Percentiles.parse("0.0 50.0 99.9 -0").unwrap().text, "0 50 99.9 0");
        assert!(["a", "101", "-1", "nan"].iter().all(|text| Kind::Percentiles.parse(text).is_err()));
        assert!(Kind::Octal.parse("1000").is_err() && Kind::Yes.parse("1").is_err());
        let limits = Kind::Limits.parse("pubsub 1mb 1kb 5").unwrap().text;
        assert_eq!(limits, "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 1024 5");
        assert!(Kind::Limits.parse("pubsub 1mb 1kb").is_err());
    }
}
