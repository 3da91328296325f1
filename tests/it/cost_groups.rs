//! Cost by namespace and by label: it sums to the bill whatever the groups are, and compares requests with usage.

use nodecast::catalog::Catalog;
use nodecast::domain::{Labels, Money, Symbol};
use nodecast::report::Summary;
use nodecast::report::summary::CostGroup;
use nodecast::scenario::{Edit, Limits};
use nodecast::simulation::{self, Outcome};
use proptest::prelude::*;
use proptest::sample::select;

use crate::synthetic;

fn group<'g>(groups: &'g [CostGroup], name: &str) -> &'g CostGroup {
    groups.iter().find(|group| group.part.name == name).unwrap_or_else(|| panic!("no {name} in {groups:?}"))
}

/// An hour of a scenario that is shipped, with these edits.
fn simulated(scenario: &str, edits: &[(&str, &str)]) -> Outcome {
    let edits: Vec<Edit> =
        [("duration", "1h")].iter().chain(edits).map(|(path, value)| Edit::new(path, value).unwrap()).collect();
    let catalog = Catalog::embedded().unwrap();
    let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(scenario).join("scenario.yaml");
    let loaded = nodecast::scenario::load_edited(&file, catalog, &Limits::default(), &edits);
    let (scenario, _) = loaded.unwrap_or_else(|error| panic!("{error:?}"));
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(&scenario, policy, catalog, scenario.seed, &mut |_| {}).unwrap()
}

proptest! {
    #[test]
    fn groups_sum_to_bill_for_any_labels(
        namespaces in (select(vec!["a", "b"]), select(vec!["a", "b"])),
        values in (select(vec![None, Some(""), Some("x"), Some("(idle)")]), select(vec![None, Some("x"), Some("y")])),
        amounts in prop::collection::vec(0_i64..2_000_000_000, 7),
    ) {
        let mut outcome = synthetic::outcome();
        let facts = [(namespaces.0, values.0), (namespaces.1, values.1)];
        for (workload, (namespace, value)) in outcome.record.workloads.iter_mut().zip(facts) {
            workload.name.namespace = Symbol::new(namespace);
            workload.labels = value.map_or_else(Labels::new, |value| Labels::new().with("team", value));
        }
        for (line, amount) in outcome.bill.lines.iter_mut().zip(amounts) {
            line.amount = Money::from_nanos(amount.into());
        }
        let cost = Summary::from_outcome(&outcome).cost;
        prop_assert_eq!(cost.by_namespace.is_empty(), namespaces.0 == namespaces.1);
        let groups = cost.by_label.iter().map(|label| &label.groups).chain([&cost.by_namespace]);
        for groups in groups.filter(|groups| !groups.is_empty()) {
            let sum: f64 = groups.iter().map(|group| group.part.amount).sum();
            prop_assert!((sum - cost.total).abs() < 1e-6, "{} of {}", sum, cost.total);
            prop_assert!(groups.is_sorted_by(|one, next| one.part.amount >= next.part.amount), "{:?}", groups);
        }
    }
}

#[test]
fn efficiency_is_usage_over_requests() {
    let cost = Summary::from_outcome(&synthetic::outcome()).cost;
    let web = group(&cost.by_namespace, "web");
    // 800m for 45 minutes, and a quarter of a GiB for the hour.
    assert_eq!(web.cpu.map(|cpu| (cpu.measured, cpu.used)), Some((2.15, 0.6)));
    assert_eq!(web.memory.map(|memory| (memory.used, memory.efficiency)), Some((0.25, Some(0.116_279))));
    assert_eq!((group(&cost.by_namespace, "(idle)").cpu, group(&cost.by_namespace, "(cluster)").memory), (None, None));
    let daemons = group(&cost.by_namespace, "kube-system").cpu.unwrap();
    assert_eq!((daemons.measured, daemons.efficiency), (0.0, None));
    assert!(daemons.requested > 0.0);
}

#[test]
fn labels_group_workloads_of_scenario() {
    let outcome = simulated("shop-day", &[("output.cost_by", "[app, no-such-label, app]")]);
    let cost = Summary::from_outcome(&outcome).cost;
    let labels: Vec<&str> = cost.by_label.iter().map(|label| label.label.as_str()).collect();
    assert_eq!(labels, ["app", "no-such-label"]);
    let of_workload = cost.by_workload.iter().find(|part| part.name == "shop/search").unwrap().amount;
    assert!((group(&cost.by_label[0].groups, "search").part.amount - of_workload).abs() < 1e-9);
    let of_pods = cost.by_workload.iter().filter(|part| !part.name.starts_with('(')).map(|part| part.amount);
    assert!((group(&cost.by_label[1].groups, "(none)").part.amount - of_pods.sum::<f64>()).abs() < 1e-7);
    let cpu = group(&cost.by_namespace, "shop").cpu.unwrap();
    assert!(cpu.efficiency.is_some_and(|share| (0.2..1.0).contains(&share)) && cpu.measured < cpu.requested, "{cpu:?}");
}

#[test]
fn memory_of_scenario_usage_counts() {
    let cost = Summary::from_outcome(&simulated("right-sizing", &[])).cost;
    let measured: Vec<&CostGroup> = cost
        .by_namespace
        .iter()
        .filter(|group| group.memory.is_some_and(|memory| memory.efficiency.is_some_and(|share| share > 0.0)))
        .collect();
    assert!(!measured.is_empty(), "{:?}", cost.by_namespace);
}
