//! The keys that are worth least, of many samples: as in Redis a few are sampled and the best candidates are kept.

/// Candidates that are kept.
pub(crate) const POOL: usize = 16;

/// A key that may go; the higher the score, the sooner.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    pub(crate) score: i64,
    pub(crate) database: i64,
    pub(crate) name: Vec<u8>,
}

/// The best candidates, the best one last.
#[derive(Debug, Default)]
pub(crate) struct Pool(Vec<Candidate>);

impl Pool {
    /// Takes a candidate in, if it is among the best.
    pub(crate) fn add(&mut self, candidate: Candidate) {
        let same = |other: &Candidate| other.database == candidate.database && other.name == candidate.name;
        self.0.retain(|other| !same(other));
        let place = self.0.partition_point(|other| other.score < candidate.score);
        self.0.insert(place, candidate);
        if self.0.len() > POOL {
            self.0.remove(0);
        }
    }

    /// The best one, which leaves the pool.
    pub(crate) fn take(&mut self) -> Option<Candidate> {
        self.0.pop()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_keeps_the_best() {
        let mut pool = Pool::default();
        for score in 0..100 {
            let score = score * 37 % 100;
            pool.add(Candidate { score, database: 0, name: score.to_string().into_bytes() });
        }
        let scores: Vec<i64> = pool.0.iter().map(|candidate| candidate.score).collect();
        assert_eq!(scores, (84..100).collect::<Vec<_>>());
        pool.add(Candidate { score: 1_000, database: 0, name: b"90".to_vec() });
        assert_eq!((pool.0.len(), pool.0[POOL - 1].score), (POOL, 1_000));
    }
}
