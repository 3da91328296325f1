//! Random numbers of an execution: SplitMix64, so that a seed means the same everywhere and for ever.

/// A stream of random numbers.
pub struct Random(u64);

impl Random {
    /// The stream of an execution.
    pub fn new(seed: u64, execution: u64) -> Self {
        let mut random = Self(seed);
        random.0 = random.word() ^ execution.wrapping_mul(0xd134_2543_de82_ef95);
        random
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 where that is 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.word() % end.max(1) as u64) as usize
    }

    /// Whether something happens that does so in so many of a hundred cases.
    pub fn happens(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of several.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> Option<&'a T> {
        of.get(self.below(of.len())).copied()
    }
}
