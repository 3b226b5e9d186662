//! Chance for tests, from a seed that is printed and may be given again by `PERILUNE_SEED`.

/// Numbers that follow from a seed.
pub(crate) struct Chance(u64);

impl Chance {
    /// From the environment, or new.
    pub(crate) fn new() -> Chance {
        let given = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let now = || std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64);
        let seed = given.unwrap_or_else(now);
        println!("PERILUNE_SEED={seed}");
        Chance::of(seed)
    }

    pub(crate) fn of(seed: u64) -> Chance {
        Chance(seed | 1)
    }

    /// A number below another one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // xorshift64*
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }

    /// One of some.
    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}
