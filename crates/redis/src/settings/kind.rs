//! Kinds of settings that Redis alone has: events by letter, percentiles, limits of classes of clients.
//!
//! Invariant: what each answers is the one text for its meaning, and parses to itself.

use perilune_net::settings::{bytes, Kind, Own, Parsed};

/// Letters of notify-keyspace-events; the number is their bits.
pub(super) const EVENTS_OF_KEYS: Kind =
    Kind::Own(&Own { placeholder: "LETTERS", takes_many: false, parse: events });
/// Numbers from 0 to 100.
pub(super) const PERCENTILES: Kind =
    Kind::Own(&Own { placeholder: "PERCENTILES", takes_many: true, parse: percentiles });
/// Groups of class, hard limit, soft limit, seconds.
pub(super) const LIMITS: Kind = Kind::Own(&Own { placeholder: "LIMITS", takes_many: true, parse: limits });

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
    Ok(Parsed::of_text(groups.join(" ")))
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
    Ok(Parsed::of_text(told.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_redis_reads_them() {
        assert_eq!(EVENTS_OF_KEYS.parse("KEA").unwrap().text, "AKE");
        assert_eq!(EVENTS_OF_KEYS.parse("Exg").unwrap().text, "gxE");
        assert!(EVENTS_OF_KEYS.parse("q").is_err());
        assert_eq!(PERCENTILES.parse("0.0 50.0 99.9 -0").unwrap().text, "0 50 99.9 0");
        assert!(["a", "101", "-1", "nan"].iter().all(|text| PERCENTILES.parse(text).is_err()));
        let limits = LIMITS.parse("pubsub 1mb 1kb 5").unwrap().text;
        assert_eq!(limits, "normal 0 0 0 slave 268435456 67108864 60 pubsub 1048576 1024 5");
        assert!(LIMITS.parse("pubsub 1mb 1kb").is_err());
    }
}
