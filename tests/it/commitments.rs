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

#[test]
fn year_without_upfront_payment_costs_more_than_all_upfront() {
    let place = Place::new();
    let by_term = |payment: &str, kind: &str| {
        let (out, err, code) = run(&place, C6I, &kind.replace("PAYMENT", payment));
        assert_eq!(code, Some(0), "{err}");
        let said = out + &err;
        let items = ["reserved instances", "savings plans", "unused commitment"];
        let found: Vec<(String, String)> = items.iter().filter_map(|item| billed(&place, item)).collect();
        let sum: f64 = found.iter().map(|(amount, _)| amount.parse::<f64>().unwrap()).sum();
        (sum, found.into_iter().map(|(_, quality)| quality).collect::<Vec<_>>(), said)
    };
    let ri = "reserved_instances: [{ type: c6i.xlarge, count: 1, term: 1y, payment: PAYMENT }]";
    let (all, of_all, said) = by_term("all_upfront", ri);
    assert_eq!((of_all, said.contains("is derived")), (vec!["published".to_owned()], false), "{said}");
    let (none, of_none, said) = by_term("no_upfront", ri);
    assert_eq!(of_none, ["derived"]);
    assert!(said.contains("1.5% higher"), "{said}");
    assert!((none / all - 1.0715).abs() < 1e-4, "{none} and {all}");
    // The plan of the family pays the same for the instance; the rest of its commitment covers nothing.
    let plan = "savings_plans: [{ family: c6i, commitment: 0.5, term: 1y, payment: PAYMENT }]";
    let (sum, qualities, _) = by_term("no_upfront", plan);
    assert!((sum - 0.5).abs() < 1e-9 && qualities == ["derived", "derived"], "{sum} {qualities:?}");
    assert!((amount(&place, "savings plans") - none).abs() < 1e-6);
    assert_eq!(billed(&place, "covered by commitments").unwrap().1, "derived");
}

#[test]
fn user_table_states_no_upfront_discounts_or_is_explained() {
    let place = Place::new();
    let table = |header: &str, line: &str| place.put("prices/commitments.csv", &format!("{header}\n{line}\n"));
    let ri = "reserved_instances: [{ type: c6i.xlarge, count: 1, term: 1y, payment: no_upfront }]";
    place.put("bought.yaml", &scenario(C6I, ri));
    let run =
        || place.nodecast(&["run", "bought.yaml", "--pricing-data", "prices", "--format", "json", "--out", "out"]);
    let columns = "region,family,one_year_all_upfront,three_years_all_upfront";
    table(&format!("{columns},one_year_no_upfront"), "us-west-2,c6i,0.36,0.6,0.3");
    let (_, err, code) = run();
    assert_eq!(code, Some(0), "{err}");
    let (amount, quality) = billed(&place, "reserved instances").unwrap();
    assert!((amount.parse::<f64>().unwrap() - 0.7 * 0.17).abs() < 1e-9 && quality == "published", "{amount} {quality}");
    table("region,family,one_year_no_upfront,three_years_all_upfront", "us-west-2,c6i,0.36,0.6");
    let (_, err, code) = run();
    assert_eq!(code, Some(2), "{err}");
    let err = err.replace("\n  | ", " ");
    assert!(err.contains("commitments.csv, line 1") && err.contains("rename that column"), "{err}");
}
