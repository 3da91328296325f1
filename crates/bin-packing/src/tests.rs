//! The bound and the plan against the optimum, which small problems let one find by trying everything.

use proptest::prelude::{Strategy, any, prop, proptest};
use proptest::test_runner::Config;

use super::{Bin, Effort, FreeBin, Item, Problem, bound, plan};

fn thorough(run: impl FnOnce(&mut Effort<'_>)) {
    run(&mut Effort { steps: Effort::THOROUGH, go_on: &mut || true });
}

/// Whether the single items in `mask` fit into one bin.
fn fits(problem: &Problem, singles: &[usize], mask: usize, capacity: &[i64], accepts: &[bool]) -> bool {
    let inside: Vec<usize> = (0..singles.len()).filter(|bit| mask >> bit & 1 == 1).map(|bit| singles[bit]).collect();
    let roomy = (0..problem.resources).all(|resource| {
        inside.iter().map(|&item| problem.items[item].size[resource]).sum::<i64>() <= capacity[resource]
    });
    let accepted = inside.iter().all(|&item| accepts[problem.items[item].group as usize]);
    let few = inside.iter().all(|&item| {
        inside.iter().filter(|&&other| other == item).count() <= problem.items[item].most_per_bin as usize
    });
    roomy && accepted && few
}

/// The least price of bins for all items; `None` if they cannot be packed.
fn optimum(problem: &Problem) -> Option<i64> {
    let counts = problem.items.iter().enumerate();
    let singles: Vec<usize> = counts.flat_map(|(kind, item)| vec![kind; item.count as usize]).collect();
    let all = (1_usize << singles.len()) - 1;
    // What is left after the bins that are there have taken any part of it.
    let mut reachable = vec![false; all + 1];
    reachable[all] = true;
    for free in problem.free.iter().flat_map(|free| vec![free; free.count as usize]) {
        let before = reachable.clone();
        for mask in (1..=all).filter(|&mask| before[mask]) {
            for taken in 1..=all {
                if taken & !mask == 0 && fits(problem, &singles, taken, &free.capacity, &free.accepts) {
                    reachable[mask & !taken] = true;
                }
            }
        }
    }
    let cheapest: Vec<Option<i64>> = (0..=all)
        .map(|mask| {
            let holds = |bin: &&Bin| fits(problem, &singles, mask, &bin.capacity, &bin.accepts);
            problem.bins.iter().filter(holds).map(|bin| bin.price).min()
        })
        .collect();
    let mut least: Vec<Option<i64>> = vec![None; all + 1];
    least[0] = Some(0);
    for mask in 1..=all {
        let lowest = mask & mask.wrapping_neg();
        let mut part = mask;
        while part > 0 {
            if part & lowest != 0
                && let (Some(one), Some(rest)) = (cheapest[part], least[mask & !part])
            {
                least[mask] = Some(least[mask].map_or(one + rest, |known| known.min(one + rest)));
            }
            part = (part - 1) & mask;
        }
    }
    (0..=all).filter(|&mask| reachable[mask]).filter_map(|mask| least[mask]).min()
}

fn item() -> impl Strategy<Value = Item> {
    (prop::collection::vec(1..40_i64, 2), 1..4_u32, prop::option::of(1..3_u32), 0..2_u32)
        .prop_map(|(size, count, most, group)| Item { size, count, most_per_bin: most.unwrap_or(u32::MAX), group })
}

fn bin() -> impl Strategy<Value = Bin> {
    (prop::collection::vec(20..100_i64, 2), 1..1_000_i64, any::<bool>(), any::<bool>())
        .prop_map(|(capacity, price, first, second)| Bin { capacity, price, accepts: vec![first || !second, second] })
}

fn problem() -> impl Strategy<Value = Problem> {
    let everything = Bin { capacity: vec![120, 120], price: 900, accepts: vec![true, true] };
    let free = prop::collection::vec((prop::collection::vec(5..60_i64, 2), any::<bool>()), 0..2);
    (prop::collection::vec(item(), 1..4), prop::collection::vec(bin(), 1..4), free).prop_map(
        move |(items, mut bins, free)| {
            bins.push(everything.clone());
            let free =
                free.into_iter().map(|(capacity, second)| FreeBin { capacity, count: 1, accepts: vec![true, second] });
            Problem { resources: 2, items, bins, free: free.collect() }
        },
    )
}

/// The plan holds every item once, no bin holds more than it can, and the price is the sum.
fn check_plan(problem: &Problem) -> i64 {
    let mut price = 0;
    thorough(|effort| {
        let found = plan(problem, effort);
        let mut packed = vec![0; problem.items.len()];
        for this_bin in &found.bins {
            let bin = &problem.bins[this_bin.bin];
            for resource in 0..problem.resources {
                let size =
                    |&(item, number): &(u32, u32)| problem.items[item as usize].size[resource] * i64::from(number);
                assert!(this_bin.content.iter().map(size).sum::<i64>() <= bin.capacity[resource]);
            }
            for &(item, number) in &this_bin.content {
                let kind = &problem.items[item as usize];
                assert!(number > 0 && number <= kind.most_per_bin && bin.accepts[kind.group as usize]);
                packed[item as usize] += number;
            }
        }
        assert!(problem.items.iter().zip(packed).all(|(item, packed)| item.count == packed));
        assert_eq!(found.price, found.bins.iter().map(|bin| problem.bins[bin.bin].price).sum::<i64>());
        price = found.price;
    });
    price
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases * 8 / 5, ..Config::default() })]

    #[test]
    fn bound_is_below_optimum_and_optimum_below_plan(problem in problem(), steps in 1..2_000_000_u64) {
        let optimum = optimum(&problem).expect("the bin for everything holds each item");
        let mut best = 0;
        thorough(|effort| best = bound(&problem, effort).amount);
        assert!(best <= optimum, "bound {best}, optimum {optimum}");
        let cut = bound(&problem, &mut Effort { steps, go_on: &mut || true }).amount;
        assert!(cut <= optimum, "bound {cut} with {steps} steps, optimum {optimum}");
        let without_free = Problem { free: Vec::new(), ..problem };
        let price = check_plan(&without_free);
        assert!(super::tests::optimum(&without_free).is_some_and(|optimum| optimum <= price));
    }
}

fn kind(size: &[i64], count: u32) -> Item {
    Item { size: size.to_vec(), count, most_per_bin: u32::MAX, group: 0 }
}

fn offered(capacity: &[i64], price: i64) -> Bin {
    Bin { capacity: capacity.to_vec(), price, accepts: vec![true] }
}

#[test]
fn items_over_half_a_bin_use_separate_bins() {
    let problem =
        Problem { resources: 1, items: vec![kind(&[51], 10)], bins: vec![offered(&[100], 7_000)], free: Vec::new() };
    thorough(|effort| assert_eq!(bound(&problem, effort).amount, 70_000));
    assert_eq!(check_plan(&problem), 70_000);
}

#[test]
fn bin_mix_fills_both_resources() {
    // One kind wants the first resource, the other the second; only together they fill a bin.
    let problem = Problem {
        resources: 2,
        items: vec![kind(&[30, 10], 30), kind(&[10, 30], 30)],
        bins: vec![offered(&[40, 40], 1_000), offered(&[30, 10], 600)],
        free: Vec::new(),
    };
    thorough(|effort| assert_eq!(bound(&problem, effort).amount, 30_000));
    assert_eq!(check_plan(&problem), 30_000);
}

#[test]
fn existing_bin_lowers_bound_by_its_capacity() {
    let bins = vec![offered(&[100], 1_000)];
    let items = vec![kind(&[50], 4)];
    let free = vec![FreeBin { capacity: vec![100], count: 1, accepts: vec![true] }];
    let problem = Problem { resources: 1, items, bins, free };
    thorough(|effort| assert_eq!(bound(&problem, effort).amount, 1_000));
}

#[test]
fn oversized_items_and_free_bins_are_ignored() {
    let problem = Problem {
        resources: 1,
        items: vec![kind(&[500], 4), kind(&[10], 10), kind(&[60], 2)],
        bins: vec![offered(&[100], 1_000), offered(&[20], 0)],
        free: Vec::new(),
    };
    thorough(|effort| assert_eq!(bound(&problem, effort).amount, 2_000));
}

#[test]
fn stopped_search_returns_best_bound_so_far() {
    let items: Vec<Item> = (1..60).map(|size| kind(&[size, 61 - size], 20)).collect();
    let bins = vec![offered(&[64, 128], 900), offered(&[128, 64], 950), offered(&[200, 200], 2_500)];
    let problem = Problem { resources: 2, items, bins, free: Vec::new() };
    let early = bound(&problem, &mut Effort { steps: Effort::THOROUGH, go_on: &mut || false });
    let mut late = early;
    thorough(|effort| late = bound(&problem, effort));
    assert!(early.amount > 0 && !early.finished);
    assert!(late.amount >= early.amount);
}

#[test]
fn bins_of_one_group_leave_other_prices_alone() {
    // Of 70 kinds one fits into a bin, which the fractional knapsack takes for almost two. The other group's bins are searched.
    let mut items: Vec<Item> = (0..70).map(|kind| Item { size: vec![51, kind], ..kind_of(0, 1) }).collect();
    items.push(Item { size: vec![51, 1], ..kind_of(1, 10) });
    let bin =
        |price: i64, group: usize| Bin { capacity: vec![100, 5_000], price, accepts: vec![group == 0, group == 1] };
    let problem = Problem { resources: 2, items, bins: vec![bin(100, 0), bin(1_000, 1)], free: Vec::new() };
    thorough(|effort| {
        let amount = bound(&problem, effort).amount;
        assert!((10_000 + 70 * 51 - 100..=17_000).contains(&amount), "{amount}");
    });
}

/// A number of items of a group that take nothing.
fn kind_of(group: u32, count: u32) -> Item {
    Item { size: Vec::new(), count, most_per_bin: u32::MAX, group }
}

/// 24 kinds of items, of which every second may be in a bin once, and 36 bins of six sizes. A fixed sequence makes them of the seed.
fn mixture(seed: u64) -> Problem {
    let mut state = seed;
    let mut draw = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % below) as i64
    };
    let item = |number: u32| {
        let cpu = [100, 250, 500, 1_000, 2_000, 4_000][draw(6) as usize];
        let memory = cpu * (1 + draw(8)) / 2 + draw(200);
        let count = 5 + draw(60) as u32;
        let most_per_bin = if number % 2 == 1 { 1 } else { u32::MAX };
        Item { size: vec![cpu, memory], count, most_per_bin, group: 0 }
    };
    let items = (0..24).map(item).collect();
    let families = [(2, 30), (2, 26), (4, 36), (4, 33), (8, 46), (8, 41)];
    let sizes = (0..6).flat_map(|size| families.map(|family| (size, family)));
    let bins = sizes.map(|(size, (ratio, rate))| {
        let (cpus, noise) = (2_i64 << size, draw(40_000) << size);
        offered(&[cpus * 1_000 - 170, cpus * 500 * ratio - 300], cpus * rate * 1_000 + noise)
    });
    Problem { resources: 2, items, bins: bins.collect(), free: Vec::new() }
}

#[test]
fn plans_of_many_kinds_are_near_bound() {
    let (mut price, mut least) = (0, 0);
    for problem in [0, 7, 9].map(mixture) {
        thorough(|effort| price += plan(&problem, effort).price);
        thorough(|effort| least += bound(&problem, effort).amount);
    }
    assert!(price as f64 <= least as f64 * 1.034, "{price} above {least}");
}
