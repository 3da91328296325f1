//! Commitments: prices by term, the order in which plans apply, and the usage that they cover.

use crate::cli::Place;

/// A scenario whose node groups run for an hour, with nothing else on the bill than `billing` adds.
fn scenario(groups: &str, billing: &str) -> String {
    format!(
        "name: bought\nregion: us-west-2\nstart: 2026-03-01T00:00:00Z\nduration: 1h\nnodeGroups: [{groups}]\n\
         ec2: {{ billing: {{ control_plane: 0, volume_per_month: 0, {billing} }} }}\n"
    )
}

/// Standard output, standard error and the exit code of a run.
fn run(place: &Place, groups: &str, billing: &str) -> (String, String, Option<i32>) {
    place.put("bought.yaml", &scenario(groups, billing));
    place.nodecast(&["run", "bought.yaml", "--format", "json", "--out", "out"])
}

/// Amount and price quality of an item of the bill.
fn billed(place: &Place, item: &str) -> Option<(String, String)> {
    let bill = std::fs::read_to_string(place.path("out/bill.csv")).unwrap();
    let column = |name: &str| bill.lines().next()?.split(',').position(|title| title == name);
    let (amount, quality) = (column("amount")?, column("price_quality")?);
    let line = bill.lines().find(|line| line.starts_with(&format!("{item},")))?;
    let cell = |at: usize| line.split(',').nth(at).map(str::to_owned);
    Some((cell(amount)?, cell(quality)?))
}

fn amount(place: &Place, item: &str) -> f64 {
    billed(place, item).map_or(0.0, |(amount, _)| amount.parse().unwrap())
}

const C6I: &str = "{ name: c, instanceType: c6i.xlarge, desired: 1 }";

#[test]
fn discount_keeps_thousandths_of_a_percent() {
    let place = Place::new();
    // c6i.xlarge costs 0.17; at the plan's price 0.12485 an hour of it is 26.5588 % off.
    let (_, err, code) = run(&place, C6I, "savings_plans: [{ commitment: 1, discount: 26.5588% }]");
    assert_eq!(code, Some(0), "{err}");
    let of_plan = amount(&place, "savings plans");
    assert!((of_plan - 0.12485).abs() < 5e-7, "{of_plan}");
    // The discount of the account, of what nothing covers.
    let (out, err, code) = run(&place, C6I, "discount: 12.345%");
    assert_eq!(code, Some(0), "{err}");
    assert!((amount(&place, "discount") + 0.12345 * 0.17).abs() < 1e-9, "{out}");
}
