//! Axes: what they show, and how values lie on them.
//!
//! Invariant: any finite or infinite value lies at some place of an axis, those outside of it at its ends.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;

/// Times the least value from which the greatest makes a scale of equal steps useless.
const WIDE: f64 = 20.0;
/// Part of the way to the next power of ten that the shortest bar has at least.
const SHORTEST: f64 = 1.5;

/// How values are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on, equal steps.
    Linear,
    /// Equal factors; values are positive.
    Logarithmic,
}

impl Scale {
    /// The one on which values can be told apart: logarithmic where the greatest is more than 20 times the least.
    pub fn fitting(values: impl Iterator<Item = f64>) -> Scale {
        let positive = values.filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) =
            positive.fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one), high.max(one)));
        match high > low * WIDE {
            true => Scale::Logarithmic,
            false => Scale::Linear,
        }
    }
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// What is there, with its unit.
    pub name: &'a str,
    /// How values are laid out.
    pub scale: Scale,
}

impl Axis<'_> {
    /// What is written at the axis.
    pub(crate) fn words(&self) -> String {
        let ending = if self.scale == Scale::Logarithmic { " (logarithmic)" } else { "" };
        format!("{}{ending}", self.name)
    }
}

/// Values between two bounds.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Values {
    /// The axis that all finite values lie on: from 0, or between powers of ten.
    pub(crate) fn of(values: impl Iterator<Item = f64>, scale: Scale) -> Values {
        let (low, high) = bounds(values, scale);
        match scale {
            Scale::Linear => {
                Values { low: low.min(0.0), high: if high > 0.0 { high * 1.02 } else { 1.0 }, scale }
            }
            Scale::Logarithmic => {
                let low = 10_f64.powf((low / SHORTEST).log10().floor());
                Values { low, high: 10_f64.powf(high.log10().ceil()).max(low * 10.0), scale }
            }
        }
    }

    /// The axis from the least of the values to the greatest.
    pub(crate) fn between(values: impl Iterator<Item = f64>, scale: Scale) -> Values {
        let (low, high) = bounds(values, scale);
        Values { low, high: if high > low { high } else { low + low.abs().max(1.0) }, scale }
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if part.is_nan() {
            return 0.0;
        }
        part.clamp(0.0, 1.0)
    }
}

fn bounds(values: impl Iterator<Item = f64>, scale: Scale) -> (f64, f64) {
    let usable = values.filter(|value| value.is_finite() && (*value > 0.0 || scale == Scale::Linear));
    let (low, high) = usable
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    if low.is_finite() {
        (low, high)
    } else {
        (1.0, 1.0)
    }
}

impl Ranged for Values {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        begin + (self.part(*value) * f64::from(end - begin)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        if self.scale == Scale::Linear {
            return RangedCoordf64::from(self.low..self.high).key_points(hint);
        }
        let (low, high) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
        let step = (high - low).unsigned_abs().div_ceil(hint.max_num_points().max(1) as u32).max(1);
        (low..=high).step_by(step as usize).map(|power| 10_f64.powi(power)).collect()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Values {
    fn format(value: &f64) -> String {
        short(*value)
    }
}

/// A value in few letters: `0.1`, `20`, `10k`, `2M`.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        size if size >= 1e3 => format!("{}k", trimmed(value / 1e3)),
        size if size > 0.0 && size < 1e-3 => format!("{value:.0e}"),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::coord::ranged1d::BoldPoints;

    #[test]
    fn values_lie_where_they_belong() {
        let linear = Values::of([3.0, 40.0, f64::NAN].into_iter(), Scale::Linear);
        assert_eq!((linear.map(&0.0, (0, 102)), linear.map(&20.0, (0, 102))), (0, 50));
        assert_eq!(linear.map(&99.0, (0, 102)), 102);
        assert_eq!(linear.key_points(BoldPoints(5)), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let factors = Values::of([0.0, 2.0, 900.0].into_iter(), Scale::Logarithmic);
        assert_eq!(factors.key_points(BoldPoints(5)), [1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!((factors.map(&10.0, (0, 300)), factors.map(&0.0, (0, 300))), (100, 0));
        // Of many powers some are written.
        let many = Values::of([1.0, 1e12].into_iter(), Scale::Logarithmic);
        assert_eq!(many.key_points(BoldPoints(4)), [0.1, 1e3, 1e7, 1e11]);
    }

    #[test]
    fn nothing_and_one_value_have_an_axis_too() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [vec![], vec![0.0], vec![5.0], vec![f64::INFINITY]] {
                for axis in
                    [Values::of(values.iter().copied(), scale), Values::between(values.into_iter(), scale)]
                {
                    assert!(axis.low < axis.high && axis.part(5.0).is_finite(), "{axis:?}");
                    assert!(axis.key_points(BoldPoints(5)).len() < 20, "{axis:?}");
                }
            }
        }
    }

    #[test]
    fn what_is_far_apart_has_factors() {
        assert_eq!(Scale::fitting([0.1, 0.3, f64::NAN].into_iter()), Scale::Linear);
        assert_eq!(Scale::fitting([0.1, 2.1, 0.0].into_iter()), Scale::Logarithmic);
        assert_eq!(Scale::fitting([].into_iter()), Scale::Linear);
    }

    #[test]
    fn values_are_short() {
        assert_eq!(
            [0.05, 20.0, 19_000.0, 2e6, 0.0, 1e-5].map(short),
            ["0.05", "20", "19k", "2M", "0", "1e-5"]
        );
    }
}
