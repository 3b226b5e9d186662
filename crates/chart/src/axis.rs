//! Where values lie on an axis, and which of them are written at it.

/// How values are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// From 0 on, equal steps.
    Linear,
    /// Equal factors; values are positive.
    Logarithmic,
}

/// An axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis<'a> {
    /// What is there, with its unit.
    pub name: &'a str,
    /// How values are laid out.
    pub scale: Scale,
}

/// Values between two bounds, as parts of the way from one to the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    low: f64,
    high: f64,
    scale: Scale,
}

impl Range {
    /// The range that all finite values lie in.
    pub(crate) fn of(values: impl Iterator<Item = f64>, scale: Scale) -> Range {
        let usable = values.filter(|value| value.is_finite() && (*value > 0.0 || scale == Scale::Linear));
        let (low, high) = usable
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let (low, high) = if low.is_finite() { (low, high) } else { (1.0, 1.0) };
        match scale {
            Scale::Linear => Range { low: low.min(0.0), high: if high > 0.0 { high } else { 1.0 }, scale },
            Scale::Logarithmic => Range { low, high: high.max(low * 1.01), scale },
        }
    }

    /// This range, widened to begin and end at powers of ten.
    pub(crate) fn widened(self) -> Range {
        match self.scale {
            Scale::Linear => self,
            Scale::Logarithmic => {
                let power = |value: f64| 10_f64.powf(value);
                Range { low: power(self.low.log10().floor()), high: power(self.high.log10().ceil()), ..self }
            }
        }
    }

    /// Where a value lies: 0 at the low end, 1 at the high one.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let part = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if part.is_finite() {
            part.clamp(0.0, 1.0)
        } else {
            0.0
        }
    }

    /// Values to write at the axis.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        match self.scale {
            Scale::Linear => {
                let rough = (self.high - self.low) / 4.0;
                let power = 10_f64.powf(rough.log10().floor());
                let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
                let step = steps.into_iter().find(|step| *step >= rough).unwrap_or(rough);
                let first = (self.low / step).ceil();
                (0..12)
                    .map(|count| (first + f64::from(count)) * step)
                    .take_while(|value| *value <= self.high * 1.0001)
                    .collect()
            }
            Scale::Logarithmic => {
                let (low, high) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
                (low..=high.min(low + 20)).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }
}

/// A tick in few letters: `0.1`, `20`, `10k`, `2M`.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e6 => format!("{}M", trimmed(value / 1e6)),
        size if size >= 1e3 => format!("{}k", trimmed(value / 1e3)),
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

    #[test]
    fn values_lie_where_they_belong() {
        let range = Range::of([3.0, 40.0, f64::NAN].into_iter(), Scale::Linear);
        assert_eq!((range.part(0.0), range.part(20.0), range.part(99.0)), (0.0, 0.5, 1.0));
        assert_eq!(range.ticks(), [0.0, 10.0, 20.0, 30.0, 40.0]);
        let range = Range::of([0.0, 2.0, 900.0].into_iter(), Scale::Logarithmic).widened();
        assert_eq!(range.ticks(), [1.0, 10.0, 100.0, 1_000.0]);
        assert!((range.part(10.0) - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(range.part(0.0), 0.0);
    }

    #[test]
    fn nothing_and_one_value_have_a_range_too() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            for values in [vec![], vec![0.0], vec![5.0]] {
                let range = Range::of(values.into_iter(), scale);
                assert!(range.part(5.0).is_finite() && range.ticks().len() < 20, "{range:?}");
            }
        }
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!([0.05, 20.0, 19_000.0, 2e6].map(short), ["0.05", "20", "19k", "2M"]);
    }
}
