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
    let complete = left.iter().all(|&number| number == 0);
    let spent: i64 = new.iter().map(|bin| compiled.problem.bins[bin.bin].price).sum();
    (complete && spent < saved).then(|| {
        kept.extend(new);
        Packing { bins: kept, price: packing.price - saved + spent }
    })
}

/// The finalizer of SplitMix64: a fixed sequence that looks arbitrary.
pub(super) const fn mixed(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::super::{Bin, Compiled, Effort, Item, Problem};
    use super::{PackedBin, Packing, Repacker, improve};

    #[test]
    fn bins_without_a_price_stay_as_they_are() {
        let item = Item { size: vec![3], count: 20, most_per_bin: 20, group: 0 };
        let bin = Bin { capacity: vec![100], price: 0, accepts: vec![true] };
        let problem = Problem { resources: 1, items: vec![item], bins: vec![bin], free: Vec::new() };
        let compiled = Compiled::new(&problem);
        let mut repacker = Repacker::new(&compiled, &[1.0]);
        let nearly_empty = PackedBin { bin: 0, content: vec![(0, 1)] };
        let mut packing = Packing { bins: vec![nearly_empty; 20], price: 0 };
        let before = packing.bins.clone();
        let mut effort = Effort { steps: Effort::CHECK, go_on: &mut || true };
        improve(&compiled, &mut repacker, &mut packing, &mut effort);
        assert_eq!((packing.bins, packing.price), (before, 0));
    }
}
