//! No lever of `nodecast recommend` launches what a flag or a NodePool excludes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast::catalog::{Catalog, InstanceFacts, Region};
use nodecast::domain::{NodePool, well_known};
use nodecast::experiment::axes::Setting;
use nodecast::recommend::recommendation::{
    Allowance, BaselineFacts, Choice, Exclusion, Kind, Lever, Reaches, exclude, levers, requirements, setting,
};
use nodecast::scenario::document::Content;
use nodecast::scenario::{Edit, Limits, Scenario};

use crate::cli::Place;

const CATEGORY: &str = "karpenter.k8s.aws/instance-category";
const FAMILY: &str = "karpenter.k8s.aws/instance-family";
const GENERATION: &str = "karpenter.k8s.aws/instance-generation";
const SIZE: &str = "karpenter.k8s.aws/instance-size";
const TYPE: &str = "node.kubernetes.io/instance-type";
const ARCH: &str = "kubernetes.io/arch";
const BOUGHT: &str = "karpenter.sh/capacity-type";

/// A requirement: key, operator, values.
type Requirement = (&'static str, &'static str, &'static str);

/// Requirements of a NodePool, with the architectures and capacity types that they admit.
fn pools() -> Vec<(Vec<Requirement>, &'static str, &'static str)> {
    vec![
        (vec![(FAMILY, "In", "m7i, c7i"), (BOUGHT, "In", "on-demand")], "amd64", "on-demand"),
        (vec![(TYPE, "In", "r6i.2xlarge, m6a.2xlarge")], "amd64", "on-demand spot"),
        (vec![(FAMILY, "In", "m7g, r8g"), (BOUGHT, "In", "spot")], "arm64", "spot"),
        (vec![(CATEGORY, "In", "c, r"), (ARCH, "NotIn", "arm64"), (BOUGHT, "In", "on-demand")], "amd64", "on-demand"),
        (vec![(CATEGORY, "In", "t"), (GENERATION, "Lt", "4"), (BOUGHT, "In", "on-demand")], "amd64", "on-demand"),
        (vec![(FAMILY, "In", "a1, m5"), (SIZE, "In", "24xlarge"), (BOUGHT, "NotIn", "spot")], "amd64", "on-demand"),
        (vec![(CATEGORY, "In", "c, m"), (BOUGHT, "In", "on-demand")], "amd64 arm64", "on-demand"),
    ]
}

const PODS: &str = "\
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: ledger}
spec:
  replicas: 2
  selector: {matchLabels: {app: ledger}}
  template:
    metadata: {labels: {app: ledger}}
    spec: {containers: [{name: c, image: x, resources: {requests: {cpu: 1500m, memory: 3Gi}}}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      nodeSelector: {karpenter.sh/capacity-type: on-demand}
      containers: [{name: c, image: x, resources: {requests: {cpu: 700m, memory: 1Gi}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: '0 * * * *'
  jobTemplate:
    spec:
      template:
        metadata: {annotations: {karpenter.sh/do-not-disrupt: 'true'}}
        spec: {restartPolicy: Never, containers: [{name: c, image: x, resources: {requests: {cpu: 1, memory: 1Gi}}}]}
";

/// A scenario with one NodePool of these requirements.
fn place(required: &[(&str, &str, &str)]) -> Place {
    let terms: Vec<String> = required
        .iter()
        .map(|(key, operator, values)| {
            let values: Vec<String> = values.split(", ").map(|value| format!("\"{value}\"")).collect();
            format!("{{key: {key}, operator: {operator}, values: [{}]}}", values.join(", "))
        })
        .collect();
    let place = Place::new();
    place.put(
        "objects.yaml",
        &format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: main}}\nspec:\n  template:\n    spec:\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}}\n      requirements: [{}]\n---\n{PODS}",
            terms.join(", ")
        ),
    );
    place.put(
        "scenario.yaml",
        "name: allowed\nregion: us-east-1\nduration: 2h\nmanifests: [objects.yaml]\n\
         policies: [{ name: today, autoscaler: karpenter }]\n",
    );
    place
}

fn with(place: &Place, setting: &Setting) -> Option<Scenario> {
    let edit = |(path, value): &(String, String)| Edit::parse(&format!("{path}={value}")).unwrap();
    let edits: Vec<Edit> = setting.iter().map(edit).collect();
    let catalog = Catalog::embedded().unwrap();
    nodecast::scenario::load_edited(&place.path("scenario.yaml"), catalog, &Limits::default(), &edits)
        .ok()
        .map(|loaded| loaded.0)
}

/// What a lever may set, and what was excluded, under flags.
fn found(place: &Place, region: &Arc<Region>, kinds: &[Kind], ruled_out: &[Kind]) -> (Vec<Lever>, Vec<Exclusion>) {
    let scenario = with(place, &Setting::new()).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let documents =
        nodecast::scenario::documents(&place.path("scenario.yaml"), catalog, &Limits::default(), &[]).unwrap();
    let objects: Vec<Content> = documents.into_iter().map(|document| document.content).collect();
    let allowance = Allowance::new(kinds, ruled_out);
    let known = BaselineFacts {
        scenario: &scenario,
        policy,
        region,
        by_origin: &BTreeMap::new(),
        by_workload: &BTreeMap::new(),
        can_set: &|setting| with(place, setting).is_some(),
        root: &objects[0],
        objects: &objects,
        allowance,
    };
    let (mut all, mut excluded) = levers(&known);
    all.retain(|lever| kinds.contains(&lever.kind));
    let today = Reaches::new(&scenario, policy, region);
    let changed = |setting: &Setting| {
        let scenario = with(place, setting)?;
        Some(Reaches::new(&scenario, scenario.for_policy(None).ok()?, region))
    };
    excluded.extend(exclude(&mut all, allowance, (&today, &requirements(policy)), &changed));
    (all, excluded)
}

/// Whether a pool admits a type, by the requirements that the levers and pools of this test have.
fn admits(pool: &NodePool, facts: &InstanceFacts) -> bool {
    pool.requirements.iter().all(|required| match required.key.as_str() {
        CATEGORY => facts.category.is_some_and(|value| required.has(value)),
        GENERATION => facts.generation.is_some_and(|value| required.has(value.to_string().as_str().into())),
        FAMILY => required.has(facts.family),
        SIZE => required.has(facts.size),
        TYPE => required.has(facts.name),
        ARCH => required.has(facts.arch),
        "karpenter.k8s.aws/instance-cpu" => required.has(facts.vcpus.to_string().as_str().into()),
        _ => true,
    })
}

/// The architectures and capacity types of all nodes that a scenario's pools launch.
fn launched(scenario: &Scenario, region: &Region) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut architectures, mut bought) = (BTreeSet::new(), BTreeSet::new());
    for pool in &scenario.for_policy(None).unwrap().manifests.node_pools {
        let types = region.types.iter().filter(|entry| entry.on_demand.is_some() && admits(pool, &entry.facts));
        architectures.extend(types.map(|entry| entry.facts.arch.to_string()));
        let of_key =
            |value| pool.requirements.iter().all(|required| required.key.as_str() != BOUGHT || required.has(value));
        let all = [well_known::SPOT, well_known::ON_DEMAND].into_iter().filter(|value| of_key(*value));
        bought.extend(all.map(|value| value.to_string()));
    }
    (architectures, bought)
}

fn words(text: &str) -> BTreeSet<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// Each level of each lever alone, and with each level of the lever of families.
fn choices(levers: &[Lever]) -> Vec<Choice> {
    let none: Choice = vec![0; levers.len()];
    let mut all = vec![none.clone()];
    for (place, lever) in levers.iter().enumerate() {
        for level in 1..=lever.levels.len() {
            let mut alone = none.clone();
            alone[place] = level;
            let others = levers.iter().enumerate().filter(|(_, other)| other.kind == Kind::Families);
            for (other, families) in others.filter(|(other, _)| *other != place) {
                all.extend((1..=families.levels.len()).map(|level| {
                    let mut pair = alone.clone();
                    pair[other] = level;
                    pair
                }));
            }
            all.push(alone);
        }
    }
    all
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn no_lever_launches_what_is_excluded() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let pool_kinds = [Kind::Families, Kind::Sizes, Kind::Spot, Kind::Split];
    let flags: [(&[Kind], &[Kind]); 3] = [
        (&pool_kinds, &[]),
        (&[Kind::Families, Kind::Sizes, Kind::Split], &[Kind::Spot]),
        (&[Kind::Families, Kind::Architectures, Kind::Split], &[Kind::Spot]),
    ];
    for (required, architectures, bought) in pools() {
        let place = place(&required);
        for (kinds, ruled_out) in flags {
            let (levers, _) = found(&place, &region, kinds, ruled_out);
            let scenario = with(&place, &Setting::new()).unwrap();
            let today = requirements(scenario.for_policy(None).unwrap());
            for choice in choices(&levers) {
                let Some(changed) = with(&place, &setting(&levers, &choice, &today)) else { continue };
                let (own_architectures, own_bought) = launched(&changed, &region);
                let by_lever =
                    levers.iter().zip(&choice).any(|(lever, level)| lever.kind == Kind::Architectures && *level > 0);
                assert!(
                    by_lever || own_architectures.is_subset(&words(architectures)),
                    "{required:?} {kinds:?} {choice:?}: {own_architectures:?}"
                );
                assert!(
                    !ruled_out.contains(&Kind::Spot) || own_bought.is_subset(&words(bought)),
                    "{required:?} {kinds:?} {choice:?}: {own_bought:?}"
                );
            }
        }
    }
}

#[test]
fn exclusions_name_values_and_the_option() {
    let region = Catalog::embedded().unwrap().region("us-east-1").unwrap();
    let place = place(&[(FAMILY, "In", "m7i"), (BOUGHT, "In", "on-demand")]);
    let (levers, excluded) = found(&place, &region, &[Kind::Families, Kind::Split], &[Kind::Spot]);
    let of_kind = |kind: Kind| excluded.iter().find(|exclusion| exclusion.lever == kind.as_str()).unwrap();
    assert_eq!(of_kind(Kind::Families).excluded, ["arm64"]);
    assert!(of_kind(Kind::Families).reason.contains("name `architectures` in `--levers`"));
    assert!(
        of_kind(Kind::Split).excluded.contains(&"StatefulSets on nodes of their own, Spot and On-Demand".to_owned())
    );
    assert!(of_kind(Kind::Split).reason.contains("`--without spot`"));
    // The part of the lever that adds no Spot stays.
    let split = levers.iter().find(|lever| lever.kind == Kind::Split).unwrap();
    assert!(split.levels.iter().any(|level| level.label == "StatefulSets on nodes of their own"));
    // Without the flag, nothing of it is excluded.
    let (levers, excluded) = found(&place, &region, &[Kind::Split], &[]);
    assert!(levers[0].levels.iter().any(|level| level.label.ends_with("Spot and On-Demand")));
    assert!(excluded.iter().all(|exclusion| exclusion.lever != "split"), "{excluded:?}");
}
