//! Commitments: prices by term, the order in which plans apply, and the usage that they cover.

use nodecast::catalog::PriceQuality;
use nodecast::cloud::commitments::{Commitments, Platform, ReservedInstances, SavingsPlan, Usage, UsageKind, cover};
use nodecast::domain::{Accrual, HourlyRate, SimDuration, Symbol};

use crate::cli::Place;

const HOUR: SimDuration = SimDuration::from_secs(3_600);

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
fn no_upfront_year_costs_more_than_all_upfront() {
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
fn user_commitment_table_sets_no_upfront_discounts() {
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

/// Usage of a whole hour.
fn used(instance_type: &str, on_demand: &str) -> Usage {
    Usage {
        kind: UsageKind::Instance(Symbol::new(instance_type)),
        platform: Platform::Linux,
        zone: Symbol::new("us-east-1a"),
        rate: HourlyRate::parse(on_demand).unwrap(),
        ran: HOUR,
        reserved: false,
    }
}

fn reserved(instance_type: &str, zone: Option<&str>, count: u32, per_hour: &str) -> ReservedInstances {
    ReservedInstances {
        instance_type: Symbol::new(instance_type),
        platform: Platform::Linux,
        zone: zone.map(Symbol::new),
        count,
        rate: HourlyRate::parse(per_hour).unwrap(),
        quality: PriceQuality::Published,
    }
}

/// Total of the summary that a run prints.
fn total(out: &str) -> f64 {
    let summary: serde_json::Value = serde_json::from_str(out).unwrap();
    summary["cost"]["total"].as_f64().unwrap()
}

/// A plan with discounts in percent by family; an EC2 Instance plan if `family` is given.
fn plan(family: Option<&str>, commitment: &str, percent: &[(&str, u32)]) -> SavingsPlan {
    SavingsPlan {
        family: family.map(Symbol::new),
        commitment: HourlyRate::parse(commitment).unwrap(),
        discount: 0,
        family_discounts: percent.iter().map(|&(name, share)| (Symbol::new(name), share * 10_000)).collect(),
        fargate_discount: None,
        quality: PriceQuality::Published,
    }
}

/// The bill of an hour, its unused part, and what each usage costs, whatever the order of what was bought.
fn hour_of(reserved: &[ReservedInstances], plans: &[SavingsPlan], usage: &[Usage]) -> (String, String, Vec<String>) {
    let mut bought = Commitments { reserved: reserved.to_vec(), plans: plans.to_vec() };
    let hour = cover(&bought, usage, HOUR);
    bought.reserved.reverse();
    bought.plans.reverse();
    assert_eq!(cover(&bought, usage, HOUR), hour, "in another order");
    let on_demand = |(one, covered): (&Usage, SimDuration)| Accrual::new(one.rate, one.ran - covered);
    let left: Accrual = usage.iter().zip(hour.shares.iter().map(|share| share.covered)).map(on_demand).sum();
    let bill = hour.reserved_fees + hour.plan_fees + left.total();
    let parts = usage
        .iter()
        .zip(&hour.shares)
        .map(|(one, share)| (on_demand((one, share.covered)).total() + share.by_reserved + share.by_plans).to_string());
    (bill.to_string(), (hour.reserved_unused + hour.plan_unused).to_string(), parts.collect())
}

#[test]
fn three_plans_and_a_reservation_share_an_hour() {
    let reserved = [reserved("m5.xlarge", None, 1, "0.12")];
    let plans = [
        plan(Some("m5"), "0.30", &[("m5", 40)]),
        plan(Some("c5"), "0.102", &[("c5", 40)]),
        plan(None, "0.24552", &[("m5", 28), ("c5", 26), ("r5", 30)]),
    ];
    let first = [
        used("m5.large", "0.096"),
        used("m5.2xlarge", "0.384"),
        used("c5.2xlarge", "0.34"),
        used("r5.xlarge", "0.252"),
        used("m5.xlarge", "0.192"),
        used("m5.xlarge", "0.192"),
        used("c5.xlarge", "0.17"),
    ];
    let (bill, unused, parts) = hour_of(&reserved, &plans, &first);
    assert_eq!((bill.as_str(), unused.as_str()), ("1.183520000", "0.000000000"));
    // The reservation covers m5.large and half of one m5.xlarge. m5.2xlarge: 0.1272 and 0.06912 of plans, 0.076 On-Demand.
    assert_eq!(parts[..2], ["0.060000000", "0.272320000"]);
    assert_eq!(parts[3..6], ["0.176400000", "0.117600000", "0.115200000"]);
    let half = |usage: Usage| Usage { ran: SimDuration::from_secs(1_800), ..usage };
    let second = [
        used("m5.large", "0.096"),
        half(used("c5.2xlarge", "0.34")),
        half(used("r5.xlarge", "0.252")),
        used("m5.xlarge", "0.192"),
    ];
    let (bill, unused, parts) = hour_of(&reserved, &plans, &second);
    assert_eq!((bill.as_str(), unused.as_str()), ("0.767520000", "0.399720000"));
    assert_eq!(parts, ["0.060000000", "0.102000000", "0.088200000", "0.117600000"]);
    let (bill, unused, _) = hour_of(&reserved, &plans, &[]);
    assert_eq!((bill.as_str(), unused.as_str()), ("0.767520000", "0.767520000"));
}

#[test]
fn highest_discount_of_any_plan_comes_first() {
    let usage = [used("m5.xlarge", "0.192"), used("c5.xlarge", "0.17")];
    let plans = [plan(None, "0.10", &[("m5", 30), ("c5", 20)]), plan(None, "0.10", &[("m5", 60), ("c5", 40)])];
    let (bill, unused, parts) = hour_of(&[], &plans, &usage);
    assert_eq!((bill.as_str(), unused.as_str()), ("0.206333333", "0.000000000"));
    assert_eq!(parts, ["0.076800000", "0.129533333"]);
    // Two EC2 Instance plans of one family, bought in different years: the better one is used first.
    let usage = [used("r6i.xlarge", "0.252"), used("r6i.2xlarge", "0.504")];
    let plans = [plan(Some("r6i"), "0.20", &[("r6i", 20)]), plan(Some("r6i"), "0.40", &[("r6i", 50)])];
    let (bill, unused, _) = hour_of(&[], &plans, &usage);
    // It covers all for 0.378.
    assert_eq!((bill.as_str(), unused.as_str()), ("0.600000000", "0.222000000"));
    // Instance plans come before a Compute plan with a higher discount.
    let plans = [plan(None, "0.10", &[("r6i", 60)]), plan(Some("r6i"), "0.504", &[("r6i", 0)])];
    let (bill, unused, _) = hour_of(&[], &plans, &usage);
    assert_eq!((bill.as_str(), unused.as_str()), ("0.606000000", "0.000000000"), "0.252 of list is 0.1008");
}

#[test]
fn lower_price_comes_first_among_equal_discounts() {
    // AWS's illustrative prices; a third off has no exact price in millionths, so the sum is right to a cent.
    let mut usage = vec![used("c5.9xlarge", "4"), used("w5.24xlarge", "10")];
    usage.extend([used("vcpu.one", "1.5"); 10]);
    usage.extend([used("gb.one", "2"); 5]);
    let with = |commitment: &str| {
        let percent = [("c5", 50), ("w5", 20), ("gb", 50)];
        let mut plan = plan(None, commitment, &percent);
        plan.family_discounts.push((Symbol::new("vcpu"), 333_333));
        hour_of(&[], &[plan], &usage)
    };
    let (bill, _, parts) = with("15");
    assert!(bill.starts_with("28.0000"), "{bill}");
    assert_eq!((parts[0].as_str(), parts[12].as_str()), ("2.000000000", "1.000000000"), "GB before c5 before vCPU");
    assert!(with("25").0.starts_with("25.0000"));
    assert_eq!(with("6").2[0], "3.000000000", "5 GB for 5, and half of c5");
}

#[test]
fn shared_commitments_cost_sum_of_parts() {
    let xlarge = used("m5.xlarge", "0.192");
    // 24 units: the 2xlarge bears 0.24, each large 0.06.
    let usage = [used("m5.2xlarge", "0.384"), used("m5.large", "0.096"), used("m5.large", "0.096")];
    let (bill, _, parts) = hour_of(&[reserved("m5.xlarge", None, 3, "0.12")], &[], &usage);
    assert_eq!((bill.as_str(), parts.join(" ").as_str()), ("0.360000000", "0.240000000 0.060000000 0.060000000"));
    // One reservation for three nodes: 3 x 0.168.
    assert_eq!(hour_of(&[reserved("m5.xlarge", None, 1, "0.12")], &[], &[xlarge; 3]).0, "0.504000000");
    // Zonal before regional: both nodes are covered.
    let bought = [reserved("m4.xlarge", None, 1, "0.12"), reserved("m4.xlarge", Some("us-east-1a"), 1, "0.11")];
    let in_b = Usage { zone: Symbol::new("us-east-1b"), ..used("m4.xlarge", "0.20") };
    assert_eq!(hour_of(&bought, &[], &[used("m4.xlarge", "0.20"), in_b]).0, "0.230000000");
    // The high discount takes the money that the low one would waste.
    let mut usage = vec![xlarge; 10];
    usage.extend([used("c5.xlarge", "0.17"); 10]);
    let compute = plan(None, "1", &[("m5", 10), ("c5", 50)]);
    assert_eq!(hour_of(&[], &[compute], &usage).0, "2.753333333");
    let compute = plan(None, "0.56", &[("m5", 30)]);
    assert_eq!(hour_of(&[], &[compute], &[xlarge; 6]).0, "0.912000000");
}

#[test]
fn order_of_plans_in_the_scenario_changes_nothing() {
    let place = Place::new();
    let groups = "{ name: r, instanceType: r6i.xlarge, desired: 2 }, { name: m, instanceType: m6i.xlarge, desired: 1 }";
    let dear = "{ commitment: 0.12, discount: 10%, family_discounts: { r6i: 25% } }";
    let cheap = "{ commitment: 0.27, discount: 35%, family_discounts: { r6i: 50% } }";
    let with = |first: &str, second: &str| {
        let (out, err, code) = run(&place, groups, &format!("savings_plans: [{first}, {second}]"));
        assert_eq!(code, Some(0), "{err}");
        total(&out)
    };
    let (one, other) = (with(dear, cheap), with(cheap, dear));
    assert!((one - other).abs() < 1e-12, "{one} and {other}");
    // The better plan pays 0.252 for both r6i and 0.018 for 0.027692 of m6i, the other 0.12 for 0.133333 of it; 0.030974 of 0.192 is left.
    assert!((one - 0.420_974_359).abs() < 1e-6, "{one}");
}

#[test]
fn reservation_covers_usage_of_its_platform_only() {
    let windows = |usage: Usage| Usage { platform: Platform::Windows, ..usage };
    let bought =
        |platform: Platform, count: u32| [ReservedInstances { platform, ..reserved("r5.large", None, count, "0.08") }];
    let large = used("r5.large", "0.126");
    let bill = |bought: &[ReservedInstances], usage: &[Usage]| hour_of(bought, &[], usage).0;
    // Linux ones cover no Windows usage, of whatever size.
    assert_eq!(bill(&bought(Platform::Linux, 1), &[windows(large)]), "0.206000000");
    assert_eq!(bill(&bought(Platform::Windows, 1), &[large]), "0.206000000");
    assert_eq!(bill(&bought(Platform::Windows, 1), &[windows(large), large]), "0.206000000");
    // Windows, RHEL and SUSE ones have no size flexibility.
    let double = used("r5.xlarge", "0.252");
    assert_eq!(bill(&bought(Platform::Linux, 2), &[double]), "0.160000000");
    for platform in [Platform::Windows, Platform::Rhel, Platform::Suse] {
        assert_eq!(bill(&bought(platform, 2), &[Usage { platform, ..double }]), "0.412000000", "{platform:?}");
        assert_eq!(bill(&bought(platform, 1), &[Usage { platform, ..large }]), "0.080000000", "{platform:?}");
    }
    // A zonal one has a platform as well, and a plan covers any.
    let zonal = [ReservedInstances { zone: Some(Symbol::new("us-east-1a")), ..bought(Platform::Linux, 1)[0] }];
    assert_eq!(bill(&zonal, &[windows(large)]), "0.206000000");
    let half = [plan(Some("r5"), "0.063", &[("r5", 50)])];
    assert_eq!(hour_of(&[], &half, &[windows(large)]).0, "0.063000000");
}

#[test]
fn windows_nodes_need_reservations_for_windows() {
    let place = Place::new();
    let groups = "{ name: w, instanceType: r6i.xlarge, desired: 1, amiFamily: WindowsServer2022FullContainer }, \
                  { name: l, instanceType: r6i.xlarge, desired: 1 }";
    let unused = |of: &str| {
        let (out, err, code) =
            run(&place, groups, &format!("reserved_instances: [{{ count: 2, per_hour: 0.1, {of} }}]"));
        assert_eq!(code, Some(0), "{err}");
        (amount(&place, "unused commitment"), out + &err)
    };
    // Two reservations for a pair of nodes, one of which is not of their platform.
    assert!((unused("type: r6i.xlarge").0 - 0.1).abs() < 1e-9);
    assert!((unused("type: r6i.xlarge, platform: windows").0 - 0.1).abs() < 1e-9);
    assert!((unused("type: r6i.large").0 - 0.0).abs() < 1e-9, "both are one xlarge of Linux");
    assert!((unused("type: r6i.large, platform: windows").0 - 0.2).abs() < 1e-9);
    let (amount, said) = unused("type: r6i.xlarge, platform: rhel");
    assert!((amount - 0.2).abs() < 1e-9 && said.contains("for rhel cover nothing"), "{amount} {said}");
    let by_term =
        "reserved_instances: [{ type: r6i.xlarge, count: 1, platform: windows, term: 1y, payment: all_upfront }]";
    let (_, err, code) = run(&place, groups, by_term);
    assert_eq!(code, Some(2), "{err}");
    assert!(err.contains("no rates of Reserved Instances for windows"), "{err}");
}
