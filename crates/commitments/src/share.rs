//! Exact sharing of amounts: largest remainders, and rounding of amounts in nano-dollar-microseconds.

use nodecast_model::domain::Money;

/// Microseconds of an hour.
pub(crate) const HOUR: i128 = 3_600_000_000;

/// Shares `amount` out by weights. The shares sum to it: what rounding down leaves goes, one by one, to the largest remainders, of equal ones
/// to the first. Without any weight all shares are zero. No share of a non-negative amount is negative.
pub(crate) fn largest_remainder(amount: i128, weights: &[i128]) -> Vec<i128> {
    let weights = scaled_down(amount, weights);
    let sum: i128 = weights.iter().sum();
    if sum <= 0 {
        return vec![0; weights.len()];
    }
    let mut shares: Vec<i128> = weights.iter().map(|weight| (amount * weight).div_euclid(sum)).collect();
    let rest = amount - shares.iter().sum::<i128>();
    let mut order: Vec<usize> = (0..weights.len()).filter(|&at| weights[at] > 0).collect();
    order.sort_by_key(|&at| std::cmp::Reverse((amount * weights[at]).rem_euclid(sum)));
    for at in order.into_iter().take(usize::try_from(rest).unwrap_or(0)) {
        shares[at] += 1;
    }
    shares
}

/// The weights, all divided by one power of two if the products with `amount` would not fit.
fn scaled_down(amount: i128, weights: &[i128]) -> Vec<i128> {
    let sum: i128 = weights.iter().sum();
    let needed = 256 - sum.leading_zeros() - amount.unsigned_abs().leading_zeros();
    let shift = needed.saturating_sub(126);
    weights.iter().map(|weight| weight >> shift).collect()
}

/// Money of `amount` nano-dollar-microseconds per hour, to the nearest nano-dollar.
pub(crate) fn rounded(amount: i128) -> Money {
    Money::from_nanos((amount + HOUR / 2).div_euclid(HOUR))
}

/// The rounded sum of exact amounts, shared out to them.
pub(crate) fn rounded_shares(exact: &[i128]) -> Vec<Money> {
    let total = rounded(exact.iter().sum()).as_nanos();
    largest_remainder(total, exact).into_iter().map(Money::from_nanos).collect()
}

#[cfg(test)]
mod tests {
    use super::{largest_remainder, rounded_shares};

    #[test]
    fn shares_sum_to_amount() {
        assert_eq!(largest_remainder(10, &[1, 1, 1]), [4, 3, 3]);
        assert_eq!(largest_remainder(10, &[1, 0, 4, 1]), [2, 0, 7, 1]);
        assert_eq!(largest_remainder(0, &[1, 2]), [0, 0]);
        assert_eq!(largest_remainder(5, &[0, 0]), [0, 0]);
        let huge = [1_i128 << 90, 1 << 91, 1 << 90];
        assert_eq!(largest_remainder(1 << 60, &huge), [1 << 58, 1 << 59, 1 << 58]);
        let shares = rounded_shares(&[1_800_000_000, 1_800_000_000, 0]);
        assert_eq!(shares.iter().map(|share| share.as_nanos()).collect::<Vec<_>>(), [1, 0, 0]);
    }
}
