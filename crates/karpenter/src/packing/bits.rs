//! Sets of small integers as words of 64 bits.

use smallvec::SmallVec;

/// A bit set of fixed size.
pub(super) type Bits = Box<[u64]>;

/// The empty set over `size` elements.
pub(super) fn empty(size: usize) -> Bits {
    vec![0; size.div_ceil(64)].into_boxed_slice()
}

/// The set of all of `size` elements.
pub(super) fn full(size: usize) -> Bits {
    let mut bits = empty(size);
    bits.fill(u64::MAX);
    if let Some(last) = bits.last_mut() {
        // Bits behind the last element stay clear, so that sets can be counted and compared.
        *last >>= (64 - size % 64) % 64;
    }
    bits
}

/// Adds an element.
pub(super) fn insert(bits: &mut [u64], index: usize) {
    bits[index / 64] |= 1 << (index % 64);
}

/// Takes an element away.
pub(super) fn remove(bits: &mut [u64], index: usize) {
    bits[index / 64] &= !(1 << (index % 64));
}

/// Whether the set has this member.
pub(super) fn contains(bits: &[u64], index: usize) -> bool {
    bits.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
}

/// Keeps what is also in `other`, a set of the same size.
pub(super) fn intersect(bits: &mut [u64], other: &[u64]) {
    for (word, mask) in bits.iter_mut().zip(other) {
        *word &= mask;
    }
}

/// Adds everything in `other`, a set of the same size.
pub(super) fn unite(bits: &mut [u64], other: &[u64]) {
    for (word, mask) in bits.iter_mut().zip(other) {
        *word |= mask;
    }
}

/// Makes the set what `left` is, a part of it; returns how many elements went. Cheaper than to count what is left, as mostly few go.
pub(super) fn shrink_to(bits: &mut [u64], left: &[u64]) -> u32 {
    let mut gone = 0;
    for (word, &left) in bits.iter_mut().zip(left) {
        if *word != left {
            gone += (*word & !left).count_ones();
            *word = left;
        }
    }
    gone
}

/// How many elements there are.
pub(super) fn count(bits: &[u64]) -> u32 {
    bits.iter().map(|word| word.count_ones()).sum()
}

/// Whether the set has an element.
pub(super) fn any(bits: &[u64]) -> bool {
    bits.iter().any(|&word| word != 0)
}

/// Whether two sets of the same size have an element in common.
pub(super) fn intersects(bits: &[u64], other: &[u64]) -> bool {
    bits.iter().zip(other).any(|(word, mask)| word & mask != 0)
}

/// The first element that two sets of the same size have in common.
pub(super) fn first_common(bits: &[u64], other: &[u64]) -> Option<usize> {
    let mut words = bits.iter().zip(other).map(|(word, mask)| word & mask).enumerate();
    words.find(|&(_, word)| word != 0).map(|(position, word)| position * 64 + word.trailing_zeros() as usize)
}

/// The elements in ascending order.
pub(super) fn iter(bits: &[u64]) -> impl Iterator<Item = usize> + Clone + '_ {
    bits.iter().enumerate().flat_map(|(position, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            if rest == 0 {
                return None;
            }
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            Some(position * 64 + bit)
        })
    })
}

/// A bit set that grows as elements are added.
#[derive(Clone, Debug, Default)]
pub(super) struct GrowingBits(SmallVec<[u64; 2]>);

impl GrowingBits {
    /// Adds an element.
    pub(super) fn insert(&mut self, index: usize) {
        if self.0.len() <= index / 64 {
            self.0.resize(index / 64 + 1, 0);
        }
        insert(&mut self.0, index);
    }

    /// Whether an element is in the set.
    pub(super) fn contains(&self, index: usize) -> bool {
        contains(&self.0, index)
    }
}

#[cfg(test)]
mod tests {
    use super::{GrowingBits, any, contains, count, empty, full, insert, intersect, iter, remove, shrink_to};

    #[test]
    fn elements_come_back_in_order_across_words() {
        let mut bits = empty(130);
        for index in [129, 0, 64, 63] {
            insert(&mut bits, index);
        }
        assert_eq!(iter(&bits).collect::<Vec<_>>(), [0, 63, 64, 129]);
        let mut low = full(130);
        low[1..].fill(0);
        intersect(&mut bits, &low);
        assert_eq!((iter(&bits).count(), contains(&bits, 64), contains(&bits, 63)), (2, false, true));
        assert!(!any(&empty(10)));
    }

    #[test]
    fn a_set_that_shrinks_says_how_many_went() {
        let mut bits = full(130);
        let mut left = full(130);
        for index in [3, 64, 65, 129] {
            remove(&mut left, index);
        }
        assert_eq!((shrink_to(&mut bits, &left), shrink_to(&mut bits, &left), count(&bits)), (4, 0, 126));
    }

    #[test]
    fn growing_bit_set_handles_out_of_range_elements() {
        let mut bits = GrowingBits::default();
        bits.insert(200);
        assert!(bits.contains(200) && !bits.contains(10_000) && !bits.contains(199));
    }
}
