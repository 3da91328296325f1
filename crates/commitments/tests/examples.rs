//! Worked examples of fleets, with figures from an independent calculation in exact fractions.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use nodecast_commitments::{
    Account, Accounts, Bearer, Bill, ChargebackRow, Commitments, FocusFile, FocusVersion, PlanKind, PlanRates,
    Platform, ReservedInstance, RowKind, SavingsPlan, Sharing, Tenancy, Term, UnusedRule, UsageKind, UsageLine, apply,
    chargeback, focus_rows,
};
use nodecast_model::domain::{Currency, HourlyRate, SimDuration, SimTime, Symbol};

const HOUR: i64 = 3_600_000_000;

fn price(text: &str) -> HourlyRate {
    HourlyRate::parse(text).unwrap()
}

/// An hour of usage: cluster `a1` is in account `A`.
fn line(cluster: &str, instance_type: &str, on_demand: &str) -> UsageLine {
    let rate = price(on_demand);
    UsageLine {
        cluster: Symbol::new(cluster),
        account: Symbol::new(&cluster[..1].to_uppercase()),
        node: 0,
        region: Symbol::new("us-east-1"),
        zone: Symbol::new("use1-az1"),
        kind: UsageKind::Instance(Symbol::new(instance_type)),
        platform: Platform::Linux,
        tenancy: Tenancy::Shared,
        list: rate,
        rate,
        ran: SimDuration::from_micros(HOUR),
        is_reservation: false,
    }
}

fn list(instance_type: &str) -> &'static str {
    match instance_type {
        "m5.large" => "0.096",
        "m5.xlarge" => "0.192",
        "m5.2xlarge" => "0.384",
        "c5.xlarge" => "0.17",
        "c5.2xlarge" => "0.34",
        "r5.xlarge" => "0.252",
        "m4.xlarge" => "0.20",
        other => panic!("no price of {other}"),
    }
}

/// Usage as `a1 m5.large, a2 c5.2xlarge 0.5`: cluster, type, and hours, 1 by default.
fn usage(text: &str) -> Vec<UsageLine> {
    let one = |(number, part): (usize, &str)| {
        let words: Vec<&str> = part.split_whitespace().collect();
        let hours: f64 = words.get(2).map_or(1.0, |hours| hours.parse().unwrap());
        let ran = SimDuration::from_micros((hours * HOUR as f64) as i64);
        UsageLine { node: number as u32, ran, ..line(words[0], words[1], list(words[1])) }
    };
    text.split(", ").filter(|part| !part.is_empty()).enumerate().map(one).collect()
}

fn reserved(id: &str, owner: &str, instance_type: &str, count: u32, rate: &str) -> ReservedInstance {
    ReservedInstance {
        id: Symbol::new(id),
        owner: Symbol::new(owner),
        region: Symbol::new("us-east-1"),
        zone: None,
        instance_type: Symbol::new(instance_type),
        platform: Platform::Linux,
        tenancy: Tenancy::Shared,
        count,
        rate: price(rate),
        term: Term::default(),
    }
}

/// A plan with discounts of families in percent; of one family it is an EC2 Instance plan if `instance`.
fn plan(id: &str, owner: &str, instance: bool, commitment: &str, percent: &[(&str, u32)]) -> SavingsPlan {
    let families: Vec<(Symbol, u32)> =
        percent.iter().map(|&(family, percent)| (Symbol::new(family), percent * 10_000)).collect();
    let kind = match families[0].0 {
        family if instance => PlanKind::Instance { family, region: Symbol::new("us-east-1") },
        _ => PlanKind::Compute,
    };
    SavingsPlan {
        id: Symbol::new(id),
        owner: Symbol::new(owner),
        kind,
        commitment: price(commitment),
        rates: PlanRates { families, ..PlanRates::default() },
        term: Term::default(),
    }
}

fn organisation(ids: &[&str]) -> Accounts {
    Accounts::new(ids.iter().map(|id| Account::new(id)), Sharing::Organization)
}

fn bill(accounts: &Accounts, bought: &Commitments, hours: &[Vec<UsageLine>]) -> Bill {
    let hours = hours.iter().zip(0..).map(|(lines, number)| {
        (SimTime::from_micros(number * HOUR), SimTime::from_micros((number + 1) * HOUR), lines.clone())
    });
    Bill::price(accounts, bought, hours)
}

/// Effective cost of a cluster in an hour, or in the run.
fn effective(bill: &Bill, cluster: &str, hour: Option<usize>) -> String {
    let account = Symbol::new(&cluster[..1].to_uppercase());
    let bearer = Bearer { cluster: Symbol::new(cluster), account };
    let clusters = hour.map_or(&bill.clusters, |hour| &bill.hours[hour].clusters);
    clusters.get(&bearer).copied().unwrap_or_default().effective().to_string()
}

fn unused(bill: &Bill, id: &str) -> Vec<String> {
    let commitment = bill.commitments.iter().find(|commitment| commitment.id.as_str() == id).unwrap();
    commitment.hours.iter().map(|hour| hour.unused.to_string()).collect()
}

fn totals(bill: &Bill) -> Vec<String> {
    bill.hours.iter().map(|hour| hour.total().to_string()).collect()
}

/// Two accounts, three clusters, three plans, and one Reserved Instance.
fn two_accounts() -> (Commitments, Vec<Vec<UsageLine>>) {
    let plans = vec![
        plan("sp-m5", "B", true, "0.30", &[("m5", 40)]),
        plan("sp-c5", "A", true, "0.102", &[("c5", 40)]),
        plan("sp-all", "A", false, "0.24552", &[("m5", 28), ("c5", 26), ("r5", 30)]),
    ];
    let hours = vec![
        usage("a1 m5.large, a1 m5.2xlarge, a2 c5.2xlarge, a2 r5.xlarge, b1 m5.xlarge, b1 m5.xlarge, b1 c5.xlarge"),
        usage("a1 m5.large, a2 c5.2xlarge 0.5, a2 r5.xlarge 0.5, b1 m5.xlarge"),
        Vec::new(),
    ];
    (Commitments { reserved: vec![reserved("ri-a", "A", "m5.xlarge", 1, "0.12")], plans }, hours)
}

#[test]
fn two_accounts_share_plans_and_reservation() {
    let (bought, hours) = two_accounts();
    let bill = bill(&organisation(&["A", "B"]), &bought, &hours);
    assert_eq!(totals(&bill), ["1.183520000", "0.767520000", "0.767520000"]);
    assert_eq!(bill.total().to_string(), "2.718560000");
    let table = [
        ("a1", ["0.334720000", "0.060000000", "0.000000000"], "0.394720000"),
        ("a2", ["0.448400000", "0.190200000", "0.000000000"], "0.638600000"),
        ("b1", ["0.400400000", "0.117600000", "0.000000000"], "0.518000000"),
    ];
    for (cluster, by_hour, sum) in table {
        assert_eq!([0, 1, 2].map(|hour| effective(&bill, cluster, Some(hour))), by_hour, "{cluster}");
        assert_eq!(effective(&bill, cluster, None), sum);
    }
    let of_owner = |owner: &str| {
        let of_owner = bill.commitments.iter().filter(|commitment| commitment.owner.as_str() == owner);
        of_owner.map(|commitment| commitment.total.unused).sum::<nodecast_model::domain::Money>().to_string()
    };
    assert_eq!((of_owner("A"), of_owner("B")), ("0.624840000".to_owned(), "0.542400000".to_owned()));
    assert_eq!(unused(&bill, "sp-m5"), ["0.000000000", "0.242400000", "0.300000000"]);
    assert_eq!(bill.usage().list.to_string(), "2.210000000");
    let figures = bill.figures();
    let near = |found: Option<f64>, wanted: f64| (found.unwrap() - wanted).abs() < 1e-9;
    assert!(near(figures.coverage, 0.811764706) && near(figures.utilisation, 0.493068585), "{figures:?}");
    assert!(near(figures.savings_rate, -0.230117647), "{figures:?}");
}

fn rows(rule: UnusedRule, discount: u32) -> Vec<ChargebackRow> {
    let accounts = organisation(&["A", "B"]);
    let (bought, hours) = two_accounts();
    chargeback(&accounts, &bill(&accounts, &bought, &hours), &BTreeMap::new(), rule, discount)
}

fn net(rows: &[ChargebackRow]) -> Vec<(RowKind, String)> {
    rows.iter().map(|row| (row.kind, row.net.to_string())).collect()
}

#[test]
fn chargeback_shares_unused_commitments_by_rule() {
    let of_clusters = |nets: [&str; 3]| nets.map(|net| (RowKind::Cluster, net.to_owned())).to_vec();
    let total = (RowKind::Total, "2.718560000".to_owned());
    let with = |nets: [&str; 3], rest: &[(RowKind, &str)]| {
        let rest = rest.iter().map(|&(kind, net)| (kind, net.to_owned()));
        [of_clusters(nets), rest.collect(), vec![total.clone()]].concat()
    };
    let effective = ["0.394720000", "0.638600000", "0.518000000"];
    let accounts = [(RowKind::Account, "0.624840000"), (RowKind::Account, "0.542400000")];
    assert_eq!(net(&rows(UnusedRule::Owner, 0)), with(effective, &accounts));
    assert_eq!(net(&rows(UnusedRule::Central, 0)), with(effective, &[(RowKind::Organization, "1.167240000")]));
    let by_usage = rows(UnusedRule::Usage, 0);
    assert_eq!(net(&by_usage), with(["0.830913593", "0.876965122", "1.010681285"], &[]));
    assert_eq!(by_usage[3].saved.to_string(), "-0.508560000", "{by_usage:?}");
}

#[test]
fn discount_of_organisation_keeps_sums() {
    let rows = rows(UnusedRule::Owner, 81_234);
    let (total, parts) = rows.split_last().unwrap();
    assert_eq!(total.discount.to_string(), "-0.220839503");
    for column in 0..15 {
        let sum: nodecast_model::domain::Money = parts.iter().map(|row| row.amounts()[column]).sum();
        assert_eq!(sum, total.amounts()[column], "{}", ChargebackRow::COLUMNS[column + 3]);
    }
}

#[test]
fn account_without_sharing_keeps_its_plan() {
    let (bought, hours) = two_accounts();
    let accounts = [Account::new("A"), Account { shares: false, ..Account::new("B") }];
    let bill = bill(&Accounts::new(accounts, Sharing::Organization), &bought, &hours[..1]);
    assert_eq!(bill.total().to_string(), "1.299520000");
    assert_eq!(unused(&bill, "sp-m5"), ["0.069600000"]);
    assert_eq!(effective(&bill, "a1", None), "0.381120000");
}

#[test]
fn zonal_reservations_of_others_come_first() {
    let total = |zone: &str| {
        let at =
            |cluster: &str, zone: &str| UsageLine { zone: Symbol::new(zone), ..line(cluster, "m4.xlarge", "0.20") };
        let zonal = reserved("ri-c", "C", "m4.xlarge", 1, "0.11");
        let zonal = ReservedInstance { zone: Some(Symbol::new("use1-az1")), ..zonal };
        let bought =
            Commitments { reserved: vec![reserved("ri-a", "A", "m4.xlarge", 1, "0.12"), zonal], plans: vec![] };
        let bill = bill(&organisation(&["A", "B", "C"]), &bought, &[vec![at("a1", zone), at("b1", "use1-az2")]]);
        (bill.total().to_string(), unused(&bill, "ri-c")[0].clone())
    };
    assert_eq!(total("use1-az1"), ("0.230000000".to_owned(), "0.000000000".to_owned()));
    assert_eq!(total("use1-az3"), ("0.430000000".to_owned(), "0.110000000".to_owned()));
}

#[test]
fn plan_of_owner_with_usage_saves_less() {
    let total = |owner: &str| {
        let of = |cluster: &str, kind: &str| vec![line(cluster, kind, list(kind)); 10];
        let bought =
            Commitments { reserved: vec![], plans: vec![plan("sp", owner, false, "1", &[("m5", 10), ("c5", 50)])] };
        let hour = [of("a1", "m5.xlarge"), of("b1", "c5.xlarge")].concat();
        bill(&organisation(&["A", "B", "P"]), &bought, &[hour]).total().to_string()
    };
    assert_eq!((total("A"), total("P")), ("3.508888889".to_owned(), "2.753333333".to_owned()));
}

#[test]
fn groups_come_before_other_accounts() {
    let found = |sharing: Sharing| {
        let group = |id: &str| Account { group: Some(Symbol::new("x")), ..Account::new(id) };
        let accounts = Accounts::new([group("A"), group("B"), Account::new("C")], sharing);
        let one = "a m5.xlarge, b m5.xlarge, c m5.xlarge, c m5.xlarge, c m5.xlarge, c m5.xlarge";
        let bought = Commitments { reserved: vec![], plans: vec![plan("sp", "A", false, "0.56", &[("m5", 30)])] };
        let bill = bill(&accounts, &bought, &[usage(one)]);
        let clusters = ["a", "b", "c"].map(|cluster| effective(&bill, cluster, None));
        (clusters.join(" "), bill.unused().to_string(), bill.total().to_string())
    };
    let wanted = |clusters: &str, unused: &str, total: &str| (clusters.to_owned(), unused.to_owned(), total.to_owned());
    assert_eq!(
        found(Sharing::Organization),
        wanted("0.134400000 0.155520000 0.622080000", "0.000000000", "0.912000000")
    );
    assert_eq!(
        found(Sharing::Prioritized),
        wanted("0.134400000 0.134400000 0.643200000", "0.000000000", "0.912000000")
    );
    assert_eq!(found(Sharing::Restricted), wanted("0.134400000 0.134400000 0.768000000", "0.291200000", "1.328000000"));
}

#[test]
fn order_of_plans_changes_nothing() {
    let p1 = plan("p1", "A", false, "0.10", &[("m5", 30), ("c5", 20)]);
    let p2 = plan("p2", "A", false, "0.10", &[("m5", 60), ("c5", 40)]);
    for plans in [vec![p1.clone(), p2.clone()], vec![p2, p1]] {
        let bought = Commitments { reserved: vec![], plans };
        let bill = bill(&organisation(&["A"]), &bought, &[usage("a1 m5.xlarge, a1 c5.xlarge")]);
        assert_eq!(bill.total().to_string(), "0.206333333");
        assert_eq!(bill.usage().on_demand.to_string(), "0.006333333");
    }
}

/// AWS's own illustration of a Compute plan with Fargate.
#[test]
fn fargate_memory_and_vcpu_are_two_usages() {
    let instance = |name: &str| UsageKind::Instance(Symbol::new(name));
    let prices = [
        (instance("c5.9xlarge"), "2"),
        (instance("c5.24xlarge"), "8"),
        (UsageKind::FargateCpu, "1"),
        (UsageKind::FargateMemory, "1"),
    ];
    let prices = prices.map(|(kind, text)| (kind, price(text))).to_vec();
    let with = |commitment: &str| {
        let rates = PlanRates { prices: prices.clone(), ..PlanRates::default() };
        let plan = SavingsPlan { rates, ..plan("sp", "A", false, commitment, &[("x", 0)]) };
        let fargate = |kind: UsageKind, count: i64, rate: &str| UsageLine {
            kind,
            ran: SimDuration::from_micros(count * HOUR),
            ..line("a1", "none", rate)
        };
        let hour = vec![
            line("a1", "c5.9xlarge", "4"),
            UsageLine { platform: Platform::Windows, ..line("a1", "c5.24xlarge", "10") },
            fargate(UsageKind::FargateCpu, 10, "1.5"),
            fargate(UsageKind::FargateMemory, 5, "2"),
        ];
        let bought = Commitments { reserved: vec![], plans: vec![plan] };
        let bill = bill(&organisation(&["A"]), &bought, &[hour]);
        let usage = bill.usage();
        [bill.total(), usage.on_demand, usage.fargate, bill.unused()].map(|amount| amount.to_string())
    };
    assert_eq!(with("25"), ["25.000000000", "0.000000000", "0.000000000", "0.000000000"]);
    assert_eq!(with("15"), ["28.000000000", "10.000000000", "3.000000000", "0.000000000"]);
}

#[test]
fn tier_comes_before_size() {
    let found = |count: u32| {
        let bought = Commitments { reserved: vec![reserved("ri", "A", "m5.xlarge", count, "0.12")], plans: vec![] };
        let bill = bill(&organisation(&["A", "B"]), &bought, &[usage("a m5.2xlarge, b m5.large, b m5.large")]);
        [effective(&bill, "a", None), effective(&bill, "b", None)]
    };
    assert_eq!(found(3), ["0.240000000", "0.120000000"]);
    assert_eq!(found(2), ["0.240000000", "0.192000000"], "the owner's 2xlarge takes all");
}

#[test]
fn equal_clusters_share_pro_rata() {
    let bought = Commitments { reserved: vec![reserved("ri", "A", "m5.xlarge", 1, "0.12")], plans: vec![] };
    let bill = bill(&organisation(&["A"]), &bought, &[usage("a1 m5.xlarge, a2 m5.xlarge, a3 m5.xlarge")]);
    for cluster in ["a1", "a2", "a3"] {
        assert_eq!(effective(&bill, cluster, None), "0.168000000");
    }
}

#[test]
fn focus_rows_split_shared_usage() {
    let (bought, hours) = two_accounts();
    let names = |id: &str, name: &str| Account { name: Symbol::new(name), is_payer: id == "B", ..Account::new(id) };
    let accounts = Accounts::new([names("A", "shop"), names("B", "data")], Sharing::Organization);
    let span = (SimTime::ZERO, SimTime::from_micros(HOUR));
    let hour = apply(&accounts, &bought, &hours[0], span);
    let start = "2026-11-30T23:00:00Z".parse().unwrap();
    let file = FocusFile { version: FocusVersion::V1_3, start, currency: Currency::Usd, accounts };
    let rows: Vec<BTreeMap<&str, String>> =
        focus_rows(&bought, &hours[0], &hour).iter().map(|row| row.cells(&file).into_iter().collect()).collect();
    let found = |wanted: &dyn Fn(&BTreeMap<&str, String>) -> bool, columns: &[&str]| -> Vec<String> {
        let chosen = rows.iter().filter(|row| wanted(row));
        chosen.map(|row| columns.iter().map(|column| row[column].as_str()).collect::<Vec<_>>().join(" ")).collect()
    };
    let costs =
        ["ConsumedQuantity", "ListCost", "ContractedCost", "BilledCost", "EffectiveCost", "CommitmentDiscountId"];
    assert_eq!(
        found(&|row| row["SkuMeter"] == "BoxUsage:c5.2xlarge", &costs),
        [
            "0.500000000 0.170000000 0.170000000 0.000000000 0.102000000 sp-c5",
            "0.500000000 0.170000000 0.170000000 0.170000000 0.170000000 ",
        ]
    );
    let of_plan = ["ChargeCategory", "PricingCategory", "BilledCost", "EffectiveCost", "CommitmentDiscountStatus"];
    let quantity = ["CommitmentDiscountQuantity", "CommitmentDiscountUnit", "CommitmentDiscountType", "SubAccountName"];
    let columns = [of_plan.as_slice(), &quantity].concat();
    assert_eq!(
        found(&|row| row["CommitmentDiscountId"] == "sp-c5", &columns),
        [
            "Usage Committed 0.000000000 0.102000000 Used 0.102000000 USD Savings Plan shop",
            "Purchase Standard 0.102000000 0.000000000  0.102000000 USD Savings Plan shop",
        ]
    );
    let of_reservation = ["BilledCost", "EffectiveCost", "CommitmentDiscountQuantity", "CommitmentDiscountUnit"];
    assert_eq!(
        found(&|row| row["CommitmentDiscountId"] == "ri-a", &of_reservation),
        [
            "0.000000000 0.060000000 4.000000000 Normalized Hours",
            "0.000000000 0.060000000 4.000000000 Normalized Hours",
            "0.120000000 0.000000000 8.000000000 Normalized Hours",
        ]
    );
    let first = &rows[0];
    let period = ["BillingPeriodStart", "BillingPeriodEnd", "ChargePeriodStart", "ChargePeriodEnd"];
    assert_eq!(
        period.map(|column| first[column].as_str()),
        ["2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z", "2026-11-30T23:00:00Z", "2026-12-01T00:00:00Z"]
    );
    assert_eq!((first["BillingAccountId"].as_str(), first["SubAccountId"].as_str()), ("B", "A"));
    assert_eq!(first["Tags"], r#"{"aws:eks:cluster-name":"a1"}"#);
    assert!(first["ResourceId"].starts_with("i-0") && first["ResourceId"].len() == 19, "{}", first["ResourceId"]);
}
