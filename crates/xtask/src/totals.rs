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
    fn a_log_without_results_counts_nothing() {
        assert_eq!(Totals::of_log("error: could not compile\n"), Totals::default());
    }
}
