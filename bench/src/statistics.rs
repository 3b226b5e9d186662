//! Medians, spread, and ratios with an interval.

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
    fn equal_sides_have_one_in_their_interval() {
        let (a, b) = ([100.0, 103.0, 98.0, 101.0, 99.0], [101.0, 97.0, 102.0, 100.0, 104.0]);
        let same = ratio(&a, &b);
        assert!(same.low <= 1.0 && 1.0 <= same.high, "{same:?}");
        let slower = ratio(&a.map(|value| value * 1.2), &b);
        assert!(slower.low > 1.0 && slower.low <= slower.ratio && slower.ratio <= slower.high, "{slower:?}");
        assert!(ratio(&a, &[]).low.is_nan());
    }
}
