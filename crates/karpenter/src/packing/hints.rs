//! Where the things of a short list are, by their addresses: a hint that spares most searches, and is never believed unseen.

/// How many hints there are, a power of two.
const HINTS: usize = 128;

/// For addresses the position at which each was last found in a list.
pub(super) struct Hints([u8; HINTS]);

impl Default for Hints {
    fn default() -> Self {
        Self([0; HINTS])
    }
}

/// Where the hint of an address stands: blocks of one size lie at regular distances, which multiplying spreads.
fn slot<T>(address: *const T) -> usize {
    ((address.addr() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 57) as usize % HINTS
}

impl Hints {
    /// The position of the first of `list` that `is_it`, of which the address is known.
    pub(super) fn find<T, K>(&mut self, address: *const K, list: &[T], is_it: impl Fn(&T) -> bool) -> Option<usize> {
        let hint = usize::from(self.0[slot(address)]);
        if list.get(hint).is_some_and(&is_it) {
            return Some(hint);
        }
        let found = list.iter().position(is_it)?;
        self.note(address, found);
        Some(found)
    }

    /// What has the address stands at `position` now.
    pub(super) fn note<K>(&mut self, address: *const K, position: usize) {
        if let Ok(position) = u8::try_from(position) {
            self.0[slot(address)] = position;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Hints;

    #[test]
    fn everything_is_found_however_many_share_a_hint() {
        let things: Vec<Box<usize>> = (0..1_000).map(Box::new).collect();
        let mut hints = Hints::default();
        for turn in 0..2 {
            for (position, thing) in things.iter().enumerate() {
                let address = &raw const **thing;
                let found = hints.find(address, &things, |other| std::ptr::eq(&raw const **other, address));
                assert_eq!(found, Some(position), "turn {turn}");
            }
        }
        assert_eq!(hints.find(&raw const things, &things[..0], |_| true), None);
    }
}
