//! What `cargo test` says about its tests, added up.

/// Passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
}

impl Totals {
    /// Adds up every `test result:` line of a log.
    pub(crate) fn of_log(log: &str) -> Self {
        let mut totals = Self::default();
        for line in log.lines() {
            if let Some((_, counts)) = line.split_once("test result: ") {
                totals.passed += count_before(counts, " passed");
                totals.failed += count_before(counts, " failed");
            }
        }
        totals
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The number that stands before `word`.
fn count_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().filter(|before| before.len() < text.len());
    let digits = before.and_then(|before| before.rsplit(' ').next());
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// The names of the tests that failed.
pub(crate) fn failed_tests(log: &str) -> Vec<&str> {
    let failed = |line: &&str| line.starts_with("test ") && line.ends_with("... FAILED");
    log.lines().filter(failed).collect()
}

/// Bytes of a panic's message that [`why`] shows, of its beginning and of its end.
const SHOWN: usize = 240;

/// Why tests failed, on one line: where the first panics were and what they said, shortened. None: no test panicked.
pub(crate) fn why(log: &str) -> Option<String> {
    let lines: Vec<&str> = log.lines().collect();
    let is_panic = |line: &str| line.starts_with("thread '") && line.contains(" panicked at ");
    let ends = |line: &str| line.is_empty() || line.starts_with("note: run with") || is_panic(line);
    let failed = failed_tests(log);
    let is_of_failed = |line: &str| {
        let name = line.split('\'').nth(1).unwrap_or_default();
        failed.iter().any(|test| test.split(' ').nth(1) == Some(name))
    };
    let mut told = Vec::new();
    for (at, line) in
        lines.iter().enumerate().filter(|(_, line)| is_panic(line) && is_of_failed(line)).take(2)
    {
        let said: Vec<&str> = lines[at + 1..].iter().copied().take_while(|line| !ends(line)).collect();
        told.push(format!("{line} {}", shortened(&said.join(" "))));
    }
    (!told.is_empty()).then(|| told.join("; "))
}

/// A text without its middle, if it is long.
fn shortened(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= 2 * SHOWN {
        return text.to_owned();
    }
    let text = |letters: &[char]| letters.iter().collect::<String>();
    format!("{} [...] {}", text(&letters[..SHOWN]), text(&letters[letters.len() - SHOWN..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = "\
running 2 tests
test a ... ok
test b ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.00s
test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
";

    #[test]
    fn results_are_added_up() {
        let wanted = Totals { passed: 41, failed: 1 };
        assert_eq!(Totals::of_log(LOG), wanted);
        assert_eq!(failed_tests(LOG), ["test b ... FAILED"]);
    }

    #[test]
    fn why_is_what_the_failed_test_said() {
        assert_eq!(why(LOG), None);
        let long = "x".repeat(1000);
        let log = format!(
            "thread 'fine' (7) panicked at a.rs:1:1:\nas it should\n\ntest b ... FAILED\n\
             thread 'b' (8) panicked at b.rs:7:5:\nleft: 1\nright: {long}\nnote: run with `RUST_BACKTRACE=1`\n"
        );
        let told = why(&log).unwrap();
        assert!(told.starts_with("thread 'b' (8) panicked at b.rs:7:5: left: 1 right: xxx"), "{told}");
        assert!(told.contains(" [...] xxx") && told.len() < 600, "{told}");
    }

    #[test]
    fn a_log_without_results_counts_nothing() {
        assert_eq!(Totals::of_log("error: could not compile\n"), Totals::default());
    }
}
