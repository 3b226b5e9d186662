//! Numbers that look random, from a seed that is told, and can be given by `PERILUNE_SEED`.

/// Where they come from.
pub(crate) struct Chance(u64);

impl Chance {
    /// Those of test or thread `number`.
    pub(crate) fn new(number: u64) -> Chance {
        let seed = std::env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = seed.unwrap_or_else(|| u64::from(std::process::id()));
        println!("PERILUNE_SEED={seed}");
        Chance((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number << 48 | 1)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
