//! Latencies as counts in buckets that grow with them, so that those of many processes add up.
//!
//! A bucket is at most 1/64 of its latency wide; what is below 64 ns has a bucket for each nanosecond.

use serde::{Deserialize, Serialize};

/// Buckets of each power of two, as a power of two.
const FINE: u32 = 6;

/// Counts of latencies in nanoseconds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

/// The buckets that hold anything: how a process tells its histogram.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Buckets(Vec<(usize, u64)>);

fn bucket(nanoseconds: u64) -> usize {
    let bits = 64 - nanoseconds.leading_zeros();
    let shift = bits.saturating_sub(FINE + 1);
    ((shift as usize) << FINE) + (nanoseconds >> shift) as usize
}

/// The highest latency of a bucket.
fn highest(bucket: usize) -> u64 {
    let shift = (bucket >> FINE).saturating_sub(1) as u32;
    let fine = (bucket - ((shift as usize) << FINE)) as u64;
    ((fine + 1) << shift) - 1
}

impl Histogram {
    /// Counts one latency.
    #[inline]
    pub(crate) fn add(&mut self, nanoseconds: u64) {
        self.add_many(bucket(nanoseconds), 1);
    }

    fn add_many(&mut self, bucket: usize, count: u64) {
        if bucket >= self.counts.len() {
            self.counts.resize(bucket + 1, 0);
        }
        self.counts[bucket] += count;
        self.total += count;
    }

    /// What a process tells of it.
    pub(crate) fn buckets(&self) -> Buckets {
        let counts = self.counts.iter().copied().enumerate();
        Buckets(counts.filter(|(_, count)| *count > 0).collect())
    }

    /// Adds what a process has told.
    pub(crate) fn merge(&mut self, told: &Buckets) {
        for (bucket, count) in &told.0 {
            self.add_many(*bucket, *count);
        }
    }

    /// Microseconds within which this part (0 to 100) of all was answered; NaN of nothing.
    pub(crate) fn percentile(&self, percent: f64) -> f64 {
        if self.total == 0 {
            return f64::NAN;
        }
        let wanted = ((percent / 100.0 * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return highest(bucket) as f64 / 1e3;
            }
        }
        f64::NAN
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_narrow() {
        let mut last = None;
        for nanoseconds in (0..5_000).chain((13..60).map(|power| (1 << power) - 1)).chain([u64::MAX >> 1]) {
            let (at, top) = (bucket(nanoseconds), highest(bucket(nanoseconds)));
            assert!(top >= nanoseconds && top - nanoseconds <= nanoseconds / 64, "{nanoseconds}: {top}");
            if nanoseconds < 5_000 {
                assert!(last <= Some(at), "{nanoseconds}");
                last = Some(at);
            }
        }
    }

    #[test]
    fn percentiles_of_two_processes_are_those_of_all() {
        let (mut one, mut other, mut all) = Default::default();
        let parts: [&mut Histogram; 2] = [&mut one, &mut other];
        for number in 1..=1_000 {
            parts[number % 2].add(number as u64 * 1_000);
        }
        for part in parts {
            Histogram::merge(&mut all, &part.buckets());
        }
        for (percent, wanted) in [(0.0, 1.0), (50.0, 500.0), (99.0, 990.0), (100.0, 1_000.0)] {
            let found = all.percentile(percent);
            assert!(found >= wanted && found <= wanted * 1.02, "{percent}: {found}");
        }
        assert!(Histogram::default().percentile(50.0).is_nan());
    }
}
