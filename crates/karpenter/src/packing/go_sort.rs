//! The order that Go's `sort.Slice` leaves among equal elements.
//!
//! Karpenter re-sorts its open claims by number of pods before each attempt, with a sort that is unstable above twelve
//! elements; which of two equal claims stands first decides where the next pod goes, so the sort is reproduced step by
//! step.
//!
//! Source: Go 1.27 `src/sort/zsortfunc.go` (pattern-defeating quicksort).

/// One element: the key in the upper half of the word (number of pods), the claim in the lower.
type Entry = u64;

/// An entry for `claim` with `key`.
const fn entry(key: u32, claim: u32) -> Entry {
    ((key as u64) << 32) | claim as u64
}

/// The claim of an entry.
const fn claim_of(entry: Entry) -> usize {
    (entry & 0xffff_ffff) as usize
}

/// Open claims by number of pods, in the order that the last of Go's sorts left.
#[derive(Default)]
pub(super) struct ClaimOrder {
    list: Vec<Entry>,
    change: Change,
}

/// What has changed since the list was sorted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Change {
    #[default]
    None,
    /// The claim at this place has more pods.
    Grown(usize),
    /// A claim was added at the end.
    Added,
    /// Anything.
    All,
}

impl ClaimOrder {
    /// The claims with these numbers of pods, not sorted yet.
    pub(super) fn new(pods: impl Iterator<Item = usize>) -> Self {
        let list = pods.enumerate().map(|(claim, pods)| entry(pods as u32, claim as u32)).collect();
        Self { list, change: Change::All }
    }

    /// How many claims there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// The claim at a place.
    pub(super) fn claim(&self, place: usize) -> usize {
        claim_of(self.list[place])
    }

    /// Adds a claim with one pod at the end.
    pub(super) fn add(&mut self, claim: usize) {
        self.list.push(entry(1, claim as u32));
        self.changed(Change::Added);
    }

    /// Takes over how many pods the claim at a place has now.
    pub(super) fn grow(&mut self, place: usize, pods: usize) {
        self.list[place] = entry(pods as u32, self.claim(place) as u32);
        self.changed(Change::Grown(place));
    }

    fn changed(&mut self, change: Change) {
        self.change = if self.change == Change::None { change } else { Change::All };
    }

    /// Sorts as Go would.
    pub(super) fn sort(&mut self) {
        let change = std::mem::take(&mut self.change);
        if change != Change::None && !self.sort_one(change) {
            sort(&mut self.list);
        }
        debug_assert!(self.list.is_sorted_by_key(|entry| entry >> 32));
    }

    /// Moves the one element of a sorted list that has changed to where Go's sort would, and nothing else; returns whether it
    /// could.
    ///
    /// Where the sampled elements look sorted, the sort of a long list begins with an attempt to finish it by insertion, and
    /// that succeeds: it moves the one element past its neighbours, one after the other. Each attempt to place a pod begins with a
    /// sort, so that going through thousands of claims each time would take most of a pass.
    fn sort_one(&mut self, change: Change) -> bool {
        let list = &mut self.list[..];
        if list.len() < NINTHER || change == Change::All || choose_pivot(list, 0, list.len()).1 != Look::Increasing {
            return false;
        }
        match change {
            Change::Grown(place) => {
                let smaller = list[place + 1..].partition_point(|&other| less(other, list[place]));
                list[place..=place + smaller].rotate_left(1);
            }
            Change::Added => {
                let (&added, before) = list.split_last().unwrap_or((&0, &[]));
                let place = before.partition_point(|&other| !less(added, other));
                list[place..].rotate_right(1);
            }
            Change::None | Change::All => {}
        }
        true
    }
}

const fn less(a: Entry, b: Entry) -> bool {
    a >> 32 < b >> 32
}

const INSERTION: usize = 12;
const NINTHER: usize = 50;
const MOST_EXCHANGES: u32 = 12;

/// Sorts by key, leaving equal keys in the order in which Go would leave them.
fn sort(list: &mut [Entry]) {
    let budget = usize::BITS - list.len().leading_zeros();
    quicksort(list, 0, list.len(), budget);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Increasing,
    Decreasing,
    Unknown,
}

fn quicksort(list: &mut [Entry], mut a: usize, mut b: usize, mut budget: u32) {
    let (mut balanced, mut partitioned) = (true, true);
    loop {
        let length = b - a;
        if length <= INSERTION {
            insertion_sort(list, a, b);
            return;
        }
        if budget == 0 {
            heap_sort(&mut list[a..b]);
            return;
        }
        if !balanced {
            break_patterns(list, a, b);
            budget -= 1;
        }
        let (mut pivot, mut look) = choose_pivot(list, a, b);
        if look == Look::Decreasing {
            list[a..b].reverse();
            pivot = b - 1 - (pivot - a);
            (balanced, partitioned, look) = (true, true, Look::Increasing);
        }
        if balanced && partitioned && look == Look::Increasing && partial_insertion_sort(list, a, b) {
            return;
        }
        if a > 0 && !less(list[a - 1], list[pivot]) {
            a = partition_equal(list, a, b, pivot);
            continue;
        }
        let (middle, was_partitioned) = partition(list, a, b, pivot);
        partitioned = was_partitioned;
        let (left, right) = (middle - a, b - middle);
        if left < right {
            balanced = left >= length / 8;
            quicksort(list, a, middle, budget);
            a = middle + 1;
        } else {
            balanced = right >= length / 8;
            quicksort(list, middle + 1, b, budget);
            b = middle;
        }
    }
}

fn insertion_sort(list: &mut [Entry], a: usize, b: usize) {
    for i in a + 1..b {
        let mut j = i;
        while j > a && less(list[j], list[j - 1]) {
            list.swap(j, j - 1);
            j -= 1;
        }
    }
}

fn heap_sort(list: &mut [Entry]) {
    let length = list.len();
    for root in (0..=(length - 1) / 2).rev() {
        sift_down(list, root, length);
    }
    for end in (0..length).rev() {
        list.swap(0, end);
        sift_down(list, 0, end);
    }
}

fn sift_down(list: &mut [Entry], mut root: usize, end: usize) {
    loop {
        let mut child = 2 * root + 1;
        if child >= end {
            return;
        }
        if child + 1 < end && less(list[child], list[child + 1]) {
            child += 1;
        }
        if !less(list[root], list[child]) {
            return;
        }
        list.swap(root, child);
        root = child;
    }
}

/// Scatters three elements by a generator seeded with the length.
fn break_patterns(list: &mut [Entry], a: usize, b: usize) {
    let length = b - a;
    let modulus = 1_usize << (usize::BITS - length.leading_zeros());
    let mut state = length as u64;
    let middle = a + length / 4 * 2;
    for position in [middle - 1, middle, middle + 1] {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut other = (state as usize) & (modulus - 1);
        if other >= length {
            other -= length;
        }
        list.swap(position, a + other);
    }
}

fn choose_pivot(list: &[Entry], a: usize, b: usize) -> (usize, Look) {
    let length = b - a;
    let quarter = length / 4;
    let (mut i, mut j, mut k) = (a + quarter, a + quarter * 2, a + quarter * 3);
    let mut exchanges = 0;
    if length >= NINTHER {
        i = median(list, i - 1, i, i + 1, &mut exchanges);
        j = median(list, j - 1, j, j + 1, &mut exchanges);
        k = median(list, k - 1, k, k + 1, &mut exchanges);
    }
    let pivot = median(list, i, j, k, &mut exchanges);
    let look = match exchanges {
        0 => Look::Increasing,
        MOST_EXCHANGES => Look::Decreasing,
        _ => Look::Unknown,
    };
    (pivot, look)
}

/// The index of the median of three elements, counting the exchanges of indices that finding it takes.
fn median(list: &[Entry], x: usize, y: usize, z: usize, exchanges: &mut u32) -> usize {
    let mut ordered = |first: usize, second: usize| {
        if less(list[second], list[first]) {
            *exchanges += 1;
            (second, first)
        } else {
            (first, second)
        }
    };
    let (x, y) = ordered(x, y);
    let (y, _) = ordered(y, z);
    let (_, y) = ordered(x, y);
    y
}

/// Tries to finish a list that is almost sorted; returns whether it is sorted now.
fn partial_insertion_sort(list: &mut [Entry], a: usize, b: usize) -> bool {
    let mut i = a + 1;
    for _ in 0..5 {
        while i < b && !less(list[i], list[i - 1]) {
            i += 1;
        }
        if i == b {
            return true;
        }
        if b - a < NINTHER {
            return false;
        }
        list.swap(i, i - 1);
        if i - a >= 2 {
            let mut j = i - 1;
            while j >= 1 && less(list[j], list[j - 1]) {
                list.swap(j, j - 1);
                j -= 1;
            }
        }
        if b - i >= 2 {
            let mut j = i + 1;
            while j < b && less(list[j], list[j - 1]) {
                list.swap(j, j - 1);
                j += 1;
            }
        }
    }
    false
}

/// Moves what equals the pivot to the front and returns where the larger ones begin.
fn partition_equal(list: &mut [Entry], a: usize, b: usize, pivot: usize) -> usize {
    list.swap(a, pivot);
    let (mut i, mut j) = (a + 1, b - 1);
    loop {
        while i <= j && !less(list[a], list[i]) {
            i += 1;
        }
        while i <= j && less(list[a], list[j]) {
            j -= 1;
        }
        if i > j {
            return i;
        }
        list.swap(i, j);
        i += 1;
        j -= 1;
    }
}

/// Moves what is smaller than the pivot before it; returns the pivot's place and whether nothing had to move.
fn partition(list: &mut [Entry], a: usize, b: usize, pivot: usize) -> (usize, bool) {
    list.swap(a, pivot);
    let (mut i, mut j) = (a + 1, b - 1);
    let mut nothing_moved = true;
    loop {
        while i <= j && less(list[i], list[a]) {
            i += 1;
        }
        while i <= j && !less(list[j], list[a]) {
            j -= 1;
        }
        if i > j {
            list.swap(j, a);
            return (j, nothing_moved);
        }
        nothing_moved = false;
        list.swap(i, j);
        i += 1;
        j -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::{ClaimOrder, claim_of, entry, sort};

    fn sorted(keys: &[u32]) -> Vec<usize> {
        let mut list: Vec<u64> = keys.iter().enumerate().map(|(i, &key)| entry(key, i as u32)).collect();
        sort(&mut list);
        assert!(list.is_sorted_by_key(|e| e >> 32));
        list.into_iter().map(claim_of).collect()
    }

    #[test]
    fn up_to_twelve_elements_the_sort_is_stable() {
        assert_eq!(sorted(&[2, 1, 2, 1, 1, 2]), [1, 3, 4, 0, 2, 5]);
    }

    #[test]
    fn a_sorted_list_is_left_as_it_is() {
        let keys: Vec<u32> = (0..200).map(|i| i / 7).collect();
        assert_eq!(sorted(&keys), (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn every_shape_of_list_ends_sorted_and_complete() {
        let mut state = 7_u64;
        for length in 0..300_u64 {
            for modulus in [1, 2, 5, 1_000] {
                let keys: Vec<u32> = (0..length)
                    .map(|_| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        ((state >> 33) % modulus) as u32
                    })
                    .collect();
                let mut seen = sorted(&keys);
                seen.sort_unstable();
                assert_eq!(seen, (0..length as usize).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn one_change_sorts_as_whole_list() {
        for seed in 1..40_u64 {
            let mut state = seed;
            let mut draw = |below: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % below
            };
            let start = draw(90);
            let mut order = ClaimOrder::new((0..start).map(|_| 1 + draw(9)));
            order.sort();
            for _ in 0..400 {
                let mut whole = order.list.clone();
                if order.len() < 2 || draw(4) == 0 {
                    whole.push(entry(1, order.len() as u32));
                    order.add(order.len());
                } else {
                    let place = draw(order.len());
                    whole[place] += 1 << 32;
                    order.grow(place, (whole[place] >> 32) as usize);
                }
                sort(&mut whole);
                order.sort();
                assert_eq!(order.list, whole);
            }
        }
    }

    #[test]
    fn grown_claim_moves_as_in_go_sort() {
        // Fourteen claims of one pod; the first receives a second pod. The list is no longer increasing at its front,
        // so the partition with the pivot in the middle runs, which exchanges elements: a stable sort would not.
        let mut keys = vec![1; 14];
        keys[0] = 2;
        let order = sorted(&keys);
        assert_eq!(order.last(), Some(&0));
        assert_ne!(order, (1..14).chain([0]).collect::<Vec<_>>());
    }
}
