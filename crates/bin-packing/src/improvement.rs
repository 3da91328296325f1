//! Making a packing cheaper: bins that are worth little for their price are taken apart and their items packed anew.

use super::plan::{PackedBin, Packing, Repacker};
use super::{Compiled, Effort};

/// Rounds without success after which the search ends.
const PATIENCE: usize = 120;
/// Bins taken apart at once at most.
const TAKEN_MAX: usize = 14;

/// Improves the packing until the effort or the patience is spent.
pub(super) fn improve(
    compiled: &Compiled<'_>,
    repacker: &mut Repacker<'_>,
    packing: &mut Packing,
    effort: &mut Effort<'_>,
) {
    let mut failures = 0;
    let mut round: u64 = 0;
    while failures < PATIENCE && packing.bins.len() > 1 {
        round += 1;
        let taken = victims(repacker, packing, round);
        match repacked(compiled, repacker, packing, &taken, round, effort) {
            Some(better) => {
                *packing = better;
                failures = 0;
            }
            None => failures += 1,
        }
        if !effort.spend(packing.bins.len() * 8) {
            return;
        }
    }
}

/// Bins to take apart: the ones worth least for their price, and others picked by number.
fn victims(repacker: &Repacker<'_>, packing: &Packing, round: u64) -> Vec<usize> {
    let count = packing.bins.len();
    let mut order: Vec<(f64, usize)> =
        packing.bins.iter().enumerate().map(|(position, bin)| (repacker.worth_for_price(bin), position)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let wanted = (2 + (round as usize * 5) % (TAKEN_MAX - 1)).min(count);
    let from_worst = match round % 3 {
        0 => wanted,
        1 => wanted / 2,
        _ => 1,
    };
    let mut taken: Vec<usize> = order.iter().take(from_worst).map(|(_, position)| *position).collect();
    let mut draw = round;
    for _ in 0..wanted * 4 {
        if taken.len() >= wanted {
            break;
        }
        draw = mixed(draw);
        let position = (draw % count as u64) as usize;
        if !taken.contains(&position) {
            taken.push(position);
        }
    }
    taken.sort_unstable();
    taken
}

/// The packing with the bins at `taken` packed anew, if that is cheaper.
fn repacked(
    compiled: &Compiled<'_>,
    repacker: &mut Repacker<'_>,
    packing: &Packing,
    taken: &[usize],
    round: u64,
    effort: &mut Effort<'_>,
) -> Option<Packing> {
    let mut left = vec![0_u32; compiled.problem.items.len()];
    let mut kept: Vec<PackedBin> = Vec::with_capacity(packing.bins.len());
    let mut saved = 0;
    for (position, bin) in packing.bins.iter().enumerate() {
        if taken.binary_search(&position).is_ok() {
            saved += compiled.problem.bins[bin.bin].price;
            for &(item, number) in &bin.content {
                left[item as usize] += number;
            }
        } else {
            kept.push(bin.clone());
        }
    }
    if round.is_multiple_of(2) {
        repacker.absorb(&mut kept, &mut left);
    }
    let new = repacker.greedy(&mut left, Some(round), saved, effort)?;
    if left.iter().any(|&number| number > 0) {
        return None;
    }
    let spent: i64 = new.iter().map(|bin| compiled.problem.bins[bin.bin].price).sum();
    debug_assert!(spent < saved, "a packing for {spent} takes the place of one for {saved}");
    kept.extend(new);
    Some(Packing { bins: kept, price: packing.price - saved + spent })
}

/// The finalizer of SplitMix64: a fixed sequence that looks arbitrary.
pub(super) const fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
