//! Medians, spread, and the ratio of two medians with its 95 % interval (by the bootstrap: drawn again from the
//! rounds).

use crate::data::Random;

const RESAMPLES: usize = 2_000;

/// A ratio of two medians, with the bounds of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ratio {
    pub(crate) ratio: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// The median; NaN of nothing.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Half the distance of the quartiles, as a part of the median: 0.03 is +-3 %.
pub(crate) fn spread(values: &[f64]) -> f64 {
    (quantile(values, 0.75) - quantile(values, 0.25)) / 2.0 / median(values)
}

/// `median(above) / median(below)` with its interval by the bootstrap: both sides are drawn again from
/// their own rounds, and the middle 95 % of the ratios is kept. The same rounds give the same interval.
pub(crate) fn ratio(above: &[f64], below: &[f64]) -> Ratio {
    let mut random = Random::new(1);
    let mut draw = |values: &[f64]| {
        let drawn: Vec<f64> =
            values.iter().map(|_| values[random.below(values.len() as u64) as usize]).collect();
        median(&drawn)
    };
    let ratio = median(above) / median(below);
    if above.is_empty() || below.is_empty() {
        return Ratio { ratio, low: f64::NAN, high: f64::NAN };
    }
    let drawn: Vec<f64> = (0..RESAMPLES).map(|_| draw(above) / draw(below)).collect();
    Ratio { ratio, low: quantile(&drawn, 0.025), high: quantile(&drawn, 0.975) }
}

/// How many times as much `above` is as `below` where both were measured in turn, a round beside a round: the
/// geometric mean of the rounds' ratios, with its interval by Student's t of their logarithms. A round that
/// only one of them has is left out; of fewer than two there is no interval (NaN).
pub(crate) fn paired(above: &[f64], below: &[f64]) -> Ratio {
    let logs: Vec<f64> = above.iter().zip(below).map(|(above, below)| (above / below).ln()).collect();
    let (mean, variance) = moments(&logs);
    let error = (variance / logs.len() as f64).sqrt();
    around(mean, error, logs.len() as f64 - 1.0)
}

/// How many times as much `above` is as `below` where the rounds have nothing to do with each other, as those of
/// two runs: Welch's interval.
pub(crate) fn unpaired(above: &[f64], below: &[f64]) -> Ratio {
    let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<_>>();
    let ((high, one), (low, other)) = (moments(&logs(above)), moments(&logs(below)));
    let (one, other) = (one / above.len() as f64, other / below.len() as f64);
    let part = |error: f64, count: usize| error * error / (count as f64 - 1.0);
    let freedom = (one + other).powi(2) / (part(one, above.len()) + part(other, below.len()));
    around(high - low, (one + other).sqrt(), if one + other > 0.0 { freedom } else { 1.0 })
}

/// The mean and the variance as estimated from a sample: NaN of one value.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (values.len() as f64 - 1.0))
}

fn around(mean: f64, error: f64, freedom: f64) -> Ratio {
    let width = if freedom >= 1.0 { student(freedom) * error } else { f64::NAN };
    Ratio { ratio: mean.exp(), low: (mean - width).exp(), high: (mean + width).exp() }
}

/// What Student's t exceeds to one side in 2.5 % of cases, at most a hundredth too much.
fn student(freedom: f64) -> f64 {
    const TABLE: [f64; 10] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228];
    TABLE.get(freedom as usize - 1).copied().unwrap_or(1.96 + 2.7 / freedom)
}

/// The value below which this part of the values lies, interpolated.
fn quantile(values: &[f64], part: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = part * last as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_spread() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(spread(&[8.0, 9.0, 10.0, 11.0, 12.0]), 0.1);
        assert_eq!(spread(&[5.0]), 0.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn what_disturbs_both_sides_of_a_round_widens_no_interval() {
        let below = [100.0, 50.0, 80.0, 120.0, 100.0];
        let above = [110.0, 56.0, 87.0, 131.0, 111.0];
        let found = paired(&above, &below);
        assert!(found.low > 1.08 && found.low < found.ratio && found.high < 1.13, "{found:?}");
        let apart = unpaired(&above, &below);
        assert!(apart.low < 1.0 && apart.high > 1.3, "{apart:?}");
        assert!(paired(&[1.0], &[1.0]).low.is_nan() && unpaired(&[1.0], &[1.0]).high.is_nan());
        // Rounds that agree leave nothing between the ends but rounding.
        let exact = paired(&[2.0; 3], &[1.0; 3]);
        assert!((exact.low - 2.0).abs() < 1e-9 && (exact.high - 2.0).abs() < 1e-9, "{exact:?}");
        let same = unpaired(&[2.0; 3], &[2.0; 3]);
        assert!((same.low - 1.0).abs() < 1e-9 && (same.high - 1.0).abs() < 1e-9, "{same:?}");
    }

    /// Of many pairs of samples of the same distribution about one in twenty may seem to differ.
    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say() {
        let mut random = Random::new(7);
        let mut sample = || -> Vec<f64> {
            let mut noise = || random.below(1_000) as f64 / 1_000.0;
            (0..5).map(|_| 100.0 + noise() + noise() + noise()).collect()
        };
        let (mut pairs, mut apart) = (0, 0);
        for _ in 0..2_000 {
            let (one, other) = (sample(), sample());
            let holds = |found: Ratio| found.low <= 1.0 && 1.0 <= found.high;
            pairs += u32::from(holds(paired(&one, &other)));
            apart += u32::from(holds(unpaired(&one, &other)));
        }
        assert!((1_860..=1_960).contains(&pairs), "{pairs}");
        assert!((1_860..=1_970).contains(&apart), "{apart}");
    }

    #[test]
    fn equal_sides_have_one_in_their_interval() {
        let (a, b) = ([100.0, 103.0, 98.0, 101.0, 99.0], [101.0, 97.0, 102.0, 100.0, 104.0]);
        let same = ratio(&a, &b);
        assert!(same.low <= 1.0 && 1.0 <= same.high, "{same:?}");
        let slower = ratio(&a.map(|value| value * 1.2), &b);
        assert!(slower.low > 1.0 && slower.low <= slower.ratio && slower.ratio <= slower.high, "{slower:?}");
        assert!(ratio(&a, &[]).low.is_nan());
    }
}
