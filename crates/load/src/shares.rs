//! How a node's CPU is shared when its pods want more than it has.

/// Pods of one kind on a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Contenders {
    /// How many.
    pub count: i64,
    /// CPU that each would use if there were enough, in thousandths.
    pub wanted_milli: i64,
    /// What each requests, in thousandths: its weight.
    pub weight: i64,
}

/// CPU that one pod of each kind gets of `capacity_milli`: what it wants if that is less than its part by weight; what such
/// pods leave over goes to the others, again by weight.
///
/// Source: the kernel's fair scheduler with `cpu.weight` from requests, Kubernetes 1.36 `pkg/kubelet/cm/helpers_linux.go`.
pub fn shares(capacity_milli: i64, kinds: &[Contenders]) -> Vec<i64> {
    let mut order: Vec<usize> = (0..kinds.len()).collect();
    // Those that want least of their part first.
    order.sort_by(|&a, &b| {
        let (a, b) = (kinds[a], kinds[b]);
        let (left, right) =
            (i128::from(a.wanted_milli) * i128::from(b.weight), i128::from(b.wanted_milli) * i128::from(a.weight));
        left.cmp(&right)
    });
    let mut left = i128::from(capacity_milli.max(0));
    let mut weights: i128 = kinds.iter().map(|kind| i128::from(kind.count) * i128::from(kind.weight)).sum();
    let mut shares = vec![0; kinds.len()];
    for position in order {
        let kind = kinds[position];
        let part = if weights > 0 { left * i128::from(kind.weight) / weights } else { 0 };
        let given = i128::from(kind.wanted_milli).min(part);
        shares[position] = i64::try_from(given).unwrap_or(i64::MAX);
        left -= given * i128::from(kind.count);
        weights -= i128::from(kind.count) * i128::from(kind.weight);
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::{Contenders, shares};

    fn kind(count: i64, wanted_milli: i64, weight: i64) -> Contenders {
        Contenders { count, wanted_milli, weight }
    }

    #[test]
    fn sufficient_capacity_grants_full_demand() {
        assert_eq!(shares(4_000, &[kind(2, 1_500, 100), kind(1, 1_000, 900)]), [1_500, 1_000]);
    }

    #[test]
    fn what_lacks_lacks_in_proportion_to_requests() {
        assert_eq!(shares(3_000, &[kind(1, 5_000, 500), kind(1, 5_000, 1_000)]), [1_000, 2_000]);
        assert_eq!(shares(3_000, &[kind(3, 5_000, 500)]), [1_000]);
    }

    #[test]
    fn what_one_leaves_over_goes_to_the_others() {
        // The first wants less than its part of 1500; the two others share the rest.
        assert_eq!(shares(3_000, &[kind(1, 600, 1_000), kind(2, 5_000, 500)]), [600, 1_200]);
        assert_eq!(shares(3_000, &[kind(2, 5_000, 500), kind(1, 600, 1_000)]), [1_200, 600]);
        assert_eq!(shares(1_000, &[]), [0; 0]);
    }
}
