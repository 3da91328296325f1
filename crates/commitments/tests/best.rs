//! The best commitments of demands whose answer is known by construction.

use nodecast_commitments::{
    Account, Accounts, Best, Bill, ClassKey, ClassKind, Commitments, Demand, Objective, Platform, Purchase, Sample,
    Sharing, Tenancy, Term, UsageClass, UsageKind, UsageLine, apply, left_by_class, plans,
};
use nodecast_model::domain::{HourlyRate, SimDuration, SimTime, Symbol};
use proptest::prelude::*;

/// Classes by their discounts of Instance and Compute plans in percent; 0 for none.
fn demand(discounts: &[[u32; 2]], samples: &[(f64, &[f64])]) -> Demand {
    let discount = |percent: u32| (percent > 0).then(|| f64::from(percent) / 100.0);
    let class = |(number, [instance, compute]): (usize, &[u32; 2])| UsageClass {
        name: format!("class {number}"),
        instance: discount(*instance),
        compute: discount(*compute),
    };
    let sample =
        |(path, (weight, used)): (usize, &(f64, &[f64]))| Sample { weight: *weight, path, used: used.to_vec() };
    Demand::new(discounts.iter().enumerate().map(class).collect(), samples.iter().enumerate().map(sample).collect())
}

fn near(found: f64, wanted: f64) -> bool {
    (found - wanted).abs() <= 1e-3 + 1e-4 * wanted.abs()
}

fn check(best: &Best, instance: &[f64], compute: f64, cost: f64) {
    let found = &best.purchase;
    assert!(found.instance.iter().zip(instance).all(|(found, wanted)| near(*found, *wanted)), "{best:?}");
    assert!(near(found.compute, compute) && near(best.result.cost, cost), "{best:?}");
    assert!(best.bound <= best.objective + 1e-12 && best.gap() < 5e-4, "{best:?}");
}

#[test]
fn one_plan_is_quantile_of_its_usage() {
    let hours: Vec<f64> = (1..=10).map(f64::from).collect();
    let samples: Vec<(f64, &[f64])> = hours.iter().map(|used| (1.0, std::slice::from_ref(used))).collect();
    let found = demand(&[[25, 0]], &samples).best(Objective::Mean);
    check(&found, &[2.25], 0.0, found.result.cost);
    // Four hours of ten use 1 to 4: with 40% off any commitment from 2.4 to 3 costs the same, and the smallest is the answer.
    check(&demand(&[[40, 0]], &samples).best(Objective::Mean), &[2.4], 0.0, 4.5);
}

#[test]
fn families_in_turns_need_all_three_plans() {
    let found = demand(&[[40, 25], [40, 25]], &[(12.0, &[10.0, 4.0]), (12.0, &[4.0, 10.0])]);
    check(&found.best(Objective::Mean), &[2.4, 2.4], 4.5, 9.30);
    let none = found.evaluate(&Purchase::none(2));
    assert!(near(none.cost, 14.0) && none.coverage() == 0.0);
    check(&found.restricted(false, |_| true).best(Objective::Mean), &[2.4, 2.4], 0.0, 10.80);
    check(&found.restricted(true, |_| false).best(Objective::Mean), &[0.0, 0.0], 10.5, 10.50);
}

#[test]
fn unequal_discounts_and_weights_are_exact() {
    let hours: [(f64, &[f64]); 4] = [(12.0, &[10.0, 4.0]), (6.0, &[6.0, 4.0]), (4.0, &[2.0, 8.0]), (2.0, &[0.0, 0.0])];
    let found = demand(&[[40, 25], [40, 30]], &hours).best(Objective::Mean);
    assert!(near(found.result.cost, 8.56), "{found:?}");
    check(&found, &[1.36, 2.4], 2.8, 8.56);
}

#[test]
fn worst_paths_ask_for_more() {
    let hours: [(f64, &[f64]); 2] = [(9.0, &[2.0]), (1.0, &[10.0])];
    let found = demand(&[[30, 0]], &hours);
    check(&found.best(Objective::Mean), &[1.4], 0.0, 1.4 + 0.8);
    let safe = found.best(Objective::WorstPaths(0.1));
    assert!(near(safe.purchase.instance[0], 7.0) && near(safe.objective, 7.0), "{safe:?}");
}

#[test]
fn fall_of_load_that_ends_savings() {
    let found = demand(&[[40, 0]], &[(1.0, &[10.0])]);
    let best = found.best(Objective::Mean);
    check(&best, &[6.0], 0.0, 6.0);
    assert!(near(found.break_even(&best.purchase).unwrap(), 0.6));
    assert_eq!(found.break_even(&Purchase { instance: vec![11.0], compute: 0.0 }), None);
}

/// Demands of two or three classes with discounts of which a Compute plan's is the smaller one.
fn demands() -> impl Strategy<Value = Demand> {
    let discounts = prop::collection::vec((10_u32..70, 1_u32..100), 3);
    let hours = prop::collection::vec((1_u32..5, prop::collection::vec(0_u32..20, 3)), 1..30);
    (discounts, hours).prop_map(|(discounts, hours)| {
        let discounts: Vec<[u32; 2]> =
            discounts.into_iter().map(|(instance, share)| [instance, (instance * share / 100).max(1)]).collect();
        let used: Vec<(f64, Vec<f64>)> = hours
            .into_iter()
            .map(|(weight, used)| (f64::from(weight), used.into_iter().map(f64::from).collect()))
            .collect();
        let samples: Vec<(f64, &[f64])> = used.iter().map(|(weight, used)| (*weight, used.as_slice())).collect();
        demand(&discounts, &samples)
    })
}

fn purchases() -> impl Strategy<Value = Purchase> {
    (prop::collection::vec(0.0_f64..20.0, 3), 0.0_f64..40.0)
        .prop_map(|(instance, compute)| Purchase { instance, compute })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn cost_is_convex_between_purchases(demand in demands(), one in purchases(), other in purchases(), at in 0.0_f64..1.0) {
        let mix = |one: f64, other: f64| one * (1.0 - at) + other * at;
        let instance = one.instance.iter().zip(&other.instance).map(|(&one, &other)| mix(one, other)).collect();
        let between = Purchase { instance, compute: mix(one.compute, other.compute) };
        let cost = |purchase: &Purchase| demand.evaluate(purchase).cost;
        prop_assert!(cost(&between) <= mix(cost(&one), cost(&other)) + 1e-9);
    }

    #[test]
    fn best_beats_every_other_purchase(demand in demands(), other in purchases()) {
        let best = demand.best(Objective::Mean);
        prop_assert!(best.gap() < 0.0035, "{best:?}");
        prop_assert!(best.bound <= demand.evaluate(&other).cost + 1e-9);
        for (compute, instance) in [(true, false), (false, true), (false, false)] {
            let part = demand.restricted(compute, |_| instance).best(Objective::Mean);
            prop_assert!(best.bound <= part.bound + 1e-6 && best.result.cost <= part.result.cost + 4e-3, "{best:?} {part:?}");
        }
    }

    #[test]
    fn more_commitment_covers_no_less(demand in demands(), purchase in purchases(), more in 0.0_f64..5.0) {
        let raised = Purchase { compute: purchase.compute + more, ..purchase.clone() };
        prop_assert!(demand.evaluate(&raised).coverage() >= demand.evaluate(&purchase).coverage() - 1e-12);
        let result = demand.evaluate(&purchase);
        prop_assert!((0.0..=1.0 + 1e-12).contains(&result.coverage()));
        prop_assert!((-1e-12..=1.0 + 1e-12).contains(&result.utilisation()));
    }
}

/// The billing engine has the same cost as the search.
#[test]
fn engine_prices_best_purchase_alike() {
    let family = |name: &str| ClassKey { region: Symbol::new("eu-west-1"), kind: ClassKind::Family(Symbol::new(name)) };
    let line = |name: &str, dollars: i64, node: u32| UsageLine {
        cluster: Symbol::new("shop"),
        account: Symbol::new("A"),
        node,
        region: Symbol::new("eu-west-1"),
        zone: Symbol::new("euw1-az1"),
        kind: UsageKind::Instance(Symbol::new(name)),
        platform: Platform::Linux,
        tenancy: Tenancy::Shared,
        list: HourlyRate::from_nanos(dollars * 1_000_000_000),
        rate: HourlyRate::from_nanos(dollars * 1_000_000_000),
        ran: SimDuration::from_secs(3_600),
        is_reservation: false,
    };
    let hours = [[10, 4], [4, 10]].map(|used| vec![line("m5.large", used[0], 0), line("c5.large", used[1], 1)]);
    let at = |hour: i64| SimTime::from_micros(hour * 3_600_000_000);
    let accounts = Accounts::new([Account::new("A"), Account::new("P")], Sharing::Organization);
    let keys = [family("c5"), family("m5")];
    let class = |key: &ClassKey| UsageClass { name: key.name(), instance: Some(0.4), compute: Some(0.25) };
    let classes: Vec<(ClassKey, UsageClass)> = keys.iter().map(|key| (*key, class(key))).collect();
    let sample = |lines: &Vec<UsageLine>| {
        let hour = apply(&accounts, &Commitments::default(), lines, (at(0), at(1)));
        let left = left_by_class(lines, &hour);
        Sample { weight: 1.0, path: 0, used: keys.iter().map(|key| left[key]).collect() }
    };
    let demand = Demand::new(classes.iter().map(|pair| pair.1.clone()).collect(), hours.iter().map(sample).collect());
    let best = demand.best(Objective::Mean);
    check(&best, &[2.4, 2.4], 4.5, 9.30);
    let plans = plans(&classes, &best.purchase, (Symbol::new("P"), "new-"), Term::default());
    assert_eq!(
        plans.iter().map(|plan| plan.id.as_str()).collect::<Vec<_>>().join(" "),
        "new-eu-west-1-c5 new-eu-west-1-m5 new-compute"
    );
    let bought = Commitments { reserved: Vec::new(), plans };
    let hours = hours.into_iter().zip(0..).map(|(lines, hour)| (at(hour), at(hour + 1), lines));
    let bill = Bill::price(&accounts, &bought, hours);
    assert!((bill.total().as_f64() / 2.0 - best.result.cost).abs() < 1e-6, "{} {best:?}", bill.total());
    let figures = bill.figures();
    assert!((figures.coverage.unwrap() - best.result.coverage()).abs() < 1e-6, "{figures:?}");
    assert!((figures.utilisation.unwrap() - best.result.utilisation()).abs() < 1e-6, "{figures:?}");
    assert!((figures.savings_rate.unwrap() - best.result.savings_rate()).abs() < 1e-6, "{figures:?}");
}
