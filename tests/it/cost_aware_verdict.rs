//! The sentence of a comparison on a cost-aware packer that costs more over the run.

use nodecast::experiment::comparison::{About, Comparison, compare};
use nodecast::experiment::figures::FIGURES;
use nodecast::experiment::points::Point;
use nodecast::experiment::presentation::verdict::verdict;
use nodecast::scenario::Caveats;

const SEEDS: u64 = 4;

fn about(cost_aware: &[&str]) -> About {
    About {
        scenario: "s".into(),
        start: String::new(),
        duration_seconds: 60.0,
        other_duration_seconds: None,
        warm_up_seconds: None,
        region: String::new(),
        currency: "USD".into(),
        price_date: String::new(),
        first_seed: 1,
        replications_planned: SEEDS,
        replications: SEEDS,
        inputs: Vec::new(),
        set: Vec::new(),
        assumptions: Vec::new(),
        cost_aware: cost_aware.iter().map(|&name| name.to_owned()).collect(),
    }
}

/// A comparison of policies with their costs by seed.
fn comparison(cost_aware: &[&str], policies: &[(&str, [f64; SEEDS as usize])]) -> Comparison {
    let cost = FIGURES.iter().position(|figure| figure.name == "cost").unwrap();
    let mut points = Vec::new();
    for (policy, costs) in policies {
        for (seed, &amount) in (1..).zip(costs) {
            let mut figures = vec![None; FIGURES.len()];
            figures[cost] = Some(amount);
            points.push(Point {
                setting: 0,
                policy: (*policy).into(),
                seed,
                figures,
                objectives: Vec::new(),
                event_hash: String::new(),
                unconfirmed: 0.0,
                cost_by_origin: Default::default(),
                spot: false,
                never_registered: 0,
                silent: Vec::new(),
                at_zero_seconds: Default::default(),
                price_date: String::new(),
                warnings: Caveats::new(),
            });
        }
    }
    let names: Vec<String> = policies.iter().map(|(name, _)| (*name).to_owned()).collect();
    compare(about(cost_aware), &names, points, Caveats::new())
}

#[test]
fn cost_aware_policy_that_costs_more_is_explained() {
    const LESS: [f64; 4] = [10.0, 14.0, 9.0, 12.0];
    const MORE: [f64; 4] = [11.0, 15.2, 10.0, 13.1];
    let explained = |comparison: &Comparison| {
        let sentences = verdict(comparison);
        sentences.into_iter().find(|sentence| sentence.contains("cost-aware packer")).unwrap_or_default()
    };
    let words = explained(&comparison(&["full"], &[("usual", LESS), ("full", MORE)]));
    assert!(words.starts_with("full uses the cost-aware packer but costs more than usual."), "{words}");
    assert_eq!(explained(&comparison(&["full"], &[("full", MORE), ("usual", LESS)])), words);
    for (cost_aware, usual, full) in [
        (&["full"][..], MORE, LESS),
        // The sign of the difference is not known.
        (&["full"][..], LESS, [11.0, 13.0, 10.0, 11.0]),
        (&[][..], LESS, MORE),
        (&["usual", "full"][..], LESS, MORE),
    ] {
        let words = explained(&comparison(cost_aware, &[("usual", usual), ("full", full)]));
        assert_eq!(words, "", "{cost_aware:?} {usual:?} {full:?}");
    }
}
