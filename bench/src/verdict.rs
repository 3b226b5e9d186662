//! What came of a goal, by the interval of what was measured.
//!
//! Invariant: a goal is met or missed only if the whole interval says so; where the interval holds both, or where
//! there are too few rounds for one, it is undecided. More rounds decide.

use crate::statistics::Ratio;

/// What came of a goal; those that need a look first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verdict {
    Missed,
    Undecided,
    Met,
    NotMeasured,
}

/// What a goal asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bound {
    AtLeast(f64),
    AtMost(f64),
}

/// How many goals came to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score {
    pub(crate) met: usize,
    pub(crate) missed: usize,
    pub(crate) undecided: usize,
    pub(crate) open: usize,
}

impl Bound {
    /// The verdict on what was measured; None: it was not.
    pub(crate) fn judge(self, reached: Option<Ratio>) -> Verdict {
        let Some(Ratio { low, high, .. }) = reached else { return Verdict::NotMeasured };
        // Comparisons with NaN, of an interval that there is not, are false.
        let (met, missed) = match self {
            Bound::AtLeast(least) => (low >= least, high < least),
            Bound::AtMost(most) => (high <= most, low > most),
        };
        match (met, missed) {
            (true, _) => Verdict::Met,
            (_, true) => Verdict::Missed,
            _ => Verdict::Undecided,
        }
    }

    /// As in `at least 3`.
    pub(crate) fn words(self) -> String {
        match self {
            Bound::AtLeast(least) => format!("at least {least}"),
            Bound::AtMost(most) => format!("at most {most}"),
        }
    }
}

impl Verdict {
    /// The word in tables.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Verdict::Missed => "MISSED",
            Verdict::Undecided => "undecided",
            Verdict::Met => "met",
            Verdict::NotMeasured => "not measured",
        }
    }
}

impl Score {
    pub(crate) fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Missed => &mut self.missed,
            Verdict::Undecided => &mut self.undecided,
            Verdict::Met => &mut self.met,
            Verdict::NotMeasured => &mut self.open,
        } += 1;
    }

    /// As a line says it.
    pub(crate) fn words(&self) -> String {
        let Score { met, missed, undecided, open } = self;
        format!("{met} met, {missed} missed, {undecided} undecided, {open} not measured")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_interval_decides() {
        let judge =
            |bound: Bound, low, high| bound.judge(Some(Ratio { ratio: (low + high) / 2.0, low, high }));
        let least = Bound::AtLeast(3.0);
        assert_eq!(judge(least, 3.0, 3.4), Verdict::Met);
        assert_eq!(judge(least, 2.0, 2.9), Verdict::Missed);
        // What two rounds may give.
        assert_eq!(judge(least, 0.0, 11_279.66), Verdict::Undecided);
        assert_eq!(judge(least, f64::NAN, f64::NAN), Verdict::Undecided);
        let most = Bound::AtMost(10.0);
        assert_eq!(judge(most, 9.0, 10.0), Verdict::Met);
        assert_eq!(judge(most, 10.1, 12.0), Verdict::Missed);
        assert_eq!(judge(most, 9.0, 12.0), Verdict::Undecided);
        assert_eq!(most.judge(None), Verdict::NotMeasured);
    }

    #[test]
    fn a_score_counts_each() {
        let mut score = Score::default();
        for verdict in
            [Verdict::Met, Verdict::Undecided, Verdict::Missed, Verdict::Undecided, Verdict::NotMeasured]
        {
            score.add(verdict);
        }
        assert_eq!(score.words(), "1 met, 1 missed, 2 undecided, 1 not measured");
    }
}
