//! What nodes, workloads and instants cost follows the net bill, whatever has been bought ahead.

use nodecast::catalog::Catalog;
use nodecast::cloud::BillItem;
use nodecast::domain::Money;
use nodecast::report::{Summary, tables};
use nodecast::scenario::error::Render;
use nodecast::simulation::{self, Outcome};
use proptest::prelude::{Strategy, prop, proptest};

use crate::keda::deployment;

/// Two nodes of a group for an hour, under this bill, with `replicas` small pods on them.
fn run(replicas: u32, ec2: &str) -> Outcome {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    write("web.yaml", &deployment("web", replicas));
    write(
        "scenario.yaml",
        &format!(
            "name: net\nregion: us-east-1\nstart: 2026-01-05T02:20:00Z\nduration: 2h\nmanifests: [web.yaml]\n\
             cluster: {{zones: [us-east-1a]}}\n\
             nodeGroups:\n- {{name: g, instanceTypes: [m5.large], min: 1, desired: 2, max: 3}}\n\
             - {{name: s, instanceTypes: [m5.xlarge], min: 1, desired: 1, max: 3, spot: true}}\n\
             timeline: [{{at: 50m, scale_group: {{group: g, desired: 1}}}}]\n\
             policies: [{{name: only, autoscaler: none}}]\nec2: {{failures: none, {ec2}}}\n"
        ),
    );
    let loaded = nodecast::scenario::load(&directory.path().join("scenario.yaml"));
    let scenario = loaded.unwrap_or_else(|error| panic!("{}", error.render())).0;
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, Catalog::embedded().unwrap(), scenario.seed, &mut |_| {}).unwrap()
}

/// The sum of the column `cost` of a table.
fn column(table: tables::Table, outcome: &Outcome) -> f64 {
    let bytes = tables::bytes(table, outcome).unwrap();
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let place = reader.headers().unwrap().iter().position(|name| name == "cost").unwrap();
    let cells = reader.records().map(|row| row.unwrap()[place].parse::<f64>().unwrap());
    cells.inspect(|cost| assert!(*cost >= 0.0, "{cost}")).sum()
}

/// Holds all figures of cost against each other.
fn check(outcome: &Outcome) {
    let cost = Summary::from_outcome(outcome).cost;
    let near = |one: f64, other: f64, what: &str| assert!((one - other).abs() < 1e-7, "{what}: {one} and {other}");
    let breakdowns = [
        (&cost.by_item, cost.total, "items"),
        (&cost.by_workload, cost.total, "workloads"),
        (&cost.by_price_quality, cost.total, "qualities"),
        (&cost.by_capacity_type, cost.nodes, "capacity types"),
        (&cost.by_family, cost.nodes, "families"),
        (&cost.by_zone, cost.nodes, "zones"),
        (&cost.by_node_origin, cost.nodes, "groups"),
    ];
    for (parts, sum, what) in breakdowns {
        near(parts.iter().map(|part| part.amount).sum(), sum, what);
        assert!(parts.iter().all(|part| (0.0..=1.0).contains(&part.share)), "{what}: {parts:?}");
    }
    let groups = cost.by_label.iter().map(|label| &label.groups).chain([&cost.by_namespace]);
    for groups in groups.filter(|groups| !groups.is_empty()) {
        near(groups.iter().map(|group| group.part.amount).sum(), cost.total, "groups");
    }
    let [idle, unused, unconfirmed] = [cost.idle, cost.unused, cost.unconfirmed];
    assert!([idle, unused, unconfirmed].iter().all(|part| (0.0..=1.0).contains(&part.share)), "{cost:?}");
    assert!(idle.amount + 1e-9 >= unused.amount && idle.amount <= cost.total + 1e-9, "{cost:?}");
    let cluster = cost.by_workload.iter().find(|part| part.name == "(cluster)").map_or(0.0, |part| part.amount);
    near(cost.nodes + unused.amount + cluster, cost.total, "nodes, unused and cluster");
    near(column(tables::nodes, outcome), cost.nodes, "nodes.csv");
    let phases = [cost.phases.starting, cost.phases.useful, cost.phases.draining];
    assert!(phases.iter().all(|part| *part >= 0.0), "{phases:?}");
    near(column(tables::timeline, outcome), phases.iter().sum::<f64>() + unused.amount, "timeline.csv");
    // Of the lines of the bill, by the discount.
    let sum = |wanted: &dyn Fn(BillItem) -> bool| -> f64 {
        outcome.bill.lines.iter().filter(|line| wanted(line.item)).map(|line| line.amount).sum::<Money>().as_f64()
    };
    let all = sum(&|item| !matches!(item, BillItem::Discount | BillItem::NodeFee));
    let left = if all > 0.0 { 1.0 + sum(&|item| item == BillItem::Discount) / all } else { 1.0 };
    near(column(tables::timeline, outcome), sum(&BillItem::is_compute) * left, "compute of bill.csv");
}

#[test]
fn idle_cost_stays_within_discounted_bill() {
    let outcome = run(0, "billing: {control_plane: 0, discount: 50%}");
    let cost = Summary::from_outcome(&outcome).cost;
    assert!((cost.idle.share - 1.0).abs() < 1e-6 && (cost.idle.amount - cost.total).abs() < 1e-9, "{cost:?}");
    check(&outcome);
}

#[test]
fn unused_reservation_cost_is_separate_from_nodes() {
    let outcome = run(
        0,
        "spot: {interruptions: none}, billing: {control_plane: 0}, capacity_reservations: [{type: m5.large, zone: us-east-1a, count: 3}]",
    );
    let cost = Summary::from_outcome(&outcome).cost;
    // Two places for 50 minutes and a bit, one from then on; m5.large costs 0.096.
    let places = cost.by_item.iter().find(|part| part.name == "capacity reservation").map_or(0.0, |part| part.amount);
    assert!((places - 0.096 * (2.0 + 50.0 / 60.0)).abs() < 0.01, "{cost:?}");
    assert!((places + cost.unused.amount - 6.0 * 0.096).abs() < 1e-3, "{cost:?}");
    // The nodes of the group in these places were launched On-Demand, and so they and their volumes are all that is On-Demand.
    let kinds: Vec<&str> = cost.by_capacity_type.iter().map(|part| part.name.as_str()).collect();
    let on_demand = cost.by_capacity_type.iter().find(|part| part.name == "on-demand").map_or(0.0, |part| part.amount);
    assert!(kinds.len() == 2 && kinds.contains(&"spot"), "{kinds:?}");
    let volumes = 20.0 * 0.08 / 730.0 * (2.0 + 50.0 / 60.0);
    assert!((on_demand - places - volumes).abs() < 1e-3, "{on_demand}, {places} and {volumes}");
    let rate = outcome.record.samples[10].cost_rate.as_f64();
    assert!(rate > 3.0 * 0.096 && rate < 4.5 * 0.096, "three places and a Spot instance: {rate}");
    check(&outcome);
}

/// A bill with random commitments, as a scenario states it.
fn bought() -> impl Strategy<Value = String> {
    let reserved = prop::option::of((1_u32..4, 0_u32..300, proptest::bool::ANY));
    let plan = prop::option::of((0_u32..500, 0_u32..=100, proptest::bool::ANY));
    let held = prop::option::of((1_u32..4, 0_u32..100, prop::option::of(101_u32..200)));
    (reserved, plan, held, 0_u32..=100, 0_u32..=20).prop_map(|(reserved, plan, held, discount, fee)| {
        let mut billing = vec![format!("discount: {discount}%, node_fee: 0.{fee:03}")];
        if let Some((count, rate, zonal)) = reserved {
            let zone = if zonal { "zone: us-east-1a, " } else { "" };
            billing
                .push(format!("reserved_instances: [{{type: m5.large, {zone}count: {count}, per_hour: 0.{rate:03}}}]"));
        }
        if let Some((commitment, discount, of_family)) = plan {
            let family = if of_family { "family: m5, " } else { "" };
            billing.push(format!("savings_plans: [{{{family}commitment: 0.{commitment:03}, discount: {discount}%}}]"));
        }
        let held = held.map_or_else(String::new, |(count, from, until)| {
            let until = until.map_or_else(String::new, |until| format!(", until: {until}m"));
            format!(
                ", capacity_reservations: [{{type: m5.large, zone: us-east-1a, count: {count}, at: {from}m{until}}}]"
            )
        });
        format!("spot: {{interruptions: {{exposure: 1h, stress: 100}}}}, billing: {{{}}}{held}", billing.join(", "))
    })
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: proptest::test_runner::Config::default().cases / 6, failure_persistence: None, ..Default::default() })]

    #[test]
    fn cost_shares_are_valid_for_any_commitment(replicas in 0_u32..40, ec2 in bought()) {
        check(&run(replicas, &ec2));
    }
}
