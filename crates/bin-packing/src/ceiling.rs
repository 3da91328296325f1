//! What a bin's content can be worth at most, proved in integers.
//!
//! For any rates of the resources no content is worth more than the whole capacity at these rates, plus what each item is
//! worth beyond its size at these rates, as often as it fits (Lagrange). Good rates make this the value of the fractional
//! knapsack. The rates are sought with doubles; the worth is then computed in integers from rates rounded to fixed point,
//! so that no rounding can make it too small.

use super::{Compiled, Shelf};

/// Fixed point of rates: a rate of one unit of money for one unit of a resource.
const FIXED: u32 = 40;
/// Steps of the search for good rates.
const STEPS: usize = 24;

/// Moves `rates` to where the worth of the fractional knapsack comes from; `prices` are those of the items. The rates are
/// the last ones used for this bin, or a guess.
pub(super) fn improve_rates(compiled: &Compiled<'_>, shelf: &Shelf, prices: &[f64], rates: &mut Vec<f64>) -> f64 {
    let resources = compiled.resources;
    // A rate of zero would stay zero.
    let dearest = |(&item, &most): (&u32, &u32)| prices[item as usize] * f64::from(most);
    let dearest = shelf.items.iter().zip(&shelf.most).map(dearest).fold(0.0, f64::max);
    for (rate, &capacity) in rates.iter_mut().zip(&shelf.capacity) {
        *rate = if capacity > 0.0 { rate.max(dearest * 1e-6 / capacity) } else { 0.0 };
    }
    let mut best = (f64::INFINITY, rates.clone());
    let mut used = vec![0.0; resources];
    let mut stride = 0.25;
    for _ in 0..STEPS {
        let mut worth: f64 = rates.iter().zip(&shelf.capacity).map(|(rate, amount)| rate * amount).sum();
        used.fill(0.0);
        for (&item, &most) in shelf.items.iter().zip(&shelf.most) {
            let size = compiled.size(item as usize);
            let beyond = prices[item as usize] - size.iter().zip(&*rates).map(|(size, rate)| size * rate).sum::<f64>();
            if beyond > 0.0 {
                worth += beyond * f64::from(most);
                for (used, size) in used.iter_mut().zip(size) {
                    *used += size * f64::from(most);
                }
            }
        }
        if worth < best.0 {
            best.0 = worth;
            best.1.clone_from(rates);
        }
        for ((rate, &used), &capacity) in rates.iter_mut().zip(&used).zip(&shelf.capacity) {
            if capacity > 0.0 {
                *rate *= 1.0 + stride * ((used - capacity) / capacity).clamp(-1.0, 1.0);
            }
        }
        stride *= 0.85;
    }
    *rates = best.1;
    best.0
}

/// The most that a content can be worth, in fixed point of `FIXED` bits, exactly for these whole prices and the rates
/// rounded to fixed point.
pub(super) fn proved(compiled: &Compiled<'_>, capacity: &[i64], shelf: &Shelf, prices: &[i64], rates: &[f64]) -> i128 {
    let scale = (1_u64 << FIXED) as f64;
    // Any non-negative rates prove something, also rounded ones.
    let fixed: Vec<i128> = rates.iter().map(|rate| (rate.max(0.0) * scale) as i128).collect();
    let mut worth: i128 = 0;
    for (&amount, &rate) in capacity.iter().zip(&fixed) {
        worth = worth.saturating_add(i128::from(amount.clamp(0, super::LARGEST_AMOUNT)).saturating_mul(rate));
    }
    for (&item, &most) in shelf.items.iter().zip(&shelf.most) {
        let mut beyond = i128::from(prices[item as usize]) << FIXED;
        for (&size, &rate) in compiled.problem.items[item as usize].size.iter().zip(&fixed) {
            beyond -= i128::from(size.clamp(0, super::LARGEST_AMOUNT)).saturating_mul(rate);
        }
        if beyond > 0 {
            worth = worth.saturating_add(beyond.saturating_mul(i128::from(most)));
        }
    }
    worth
}

/// Whole money, rounded up.
pub(super) fn rounded_up(fixed: i128) -> i128 {
    (fixed + (1 << FIXED) - 1) >> FIXED
}
