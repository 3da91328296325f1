//! Allowed nodes: the architectures, operating systems, and capacity types that a setting may launch.
//!
//! Each lever passes [`confine`] as it is found and [`Allowance::widening`] as it is set: a NodePool or node group launches what it can launch
//! today, and more only where a flag allows it.
//!
//! Must not decide which levers exist or which of them save.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use nodecast_karpenter::instance_types::{complete_classes, complete_pools, types_of_pools};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::levers::{BaselineFacts, Kind, Level, Lever, Requirements as PoolTerms, Terms, setting, template};
use crate::axes::Setting;
use crate::catalog::Region;
use crate::domain::labels::{auto_mode_label, karpenter_label};
use crate::domain::node_pool::NodePool;
use crate::domain::pod::PodSpec;
use crate::domain::requirements::{Operator, Requirement, Requirements};
use crate::domain::taints::first_untolerated;
use crate::domain::{NodeClass, Symbol, well_known};
use crate::scenario::{PolicyVariant, Scenario};

/// The labels of nodes that no lever widens.
const GUARDED: [Symbol; 3] = [well_known::ARCH, well_known::OS, well_known::CAPACITY_TYPE];
/// The labels that levers of sizes set free.
const SIZES: [Symbol; 2] = [well_known::INSTANCE_SIZE, well_known::INSTANCE_CPU];

/// Values of guarded labels (`GUARDED`) that the nodes of a NodePool or node group may have.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reach([BTreeSet<Symbol>; 3]);

impl Reach {
    /// Values that this one has and `today` lacks, by label.
    fn beyond(&self, today: &Self) -> impl Iterator<Item = (Symbol, BTreeSet<Symbol>)> {
        let all = GUARDED.into_iter().zip(self.0.iter().zip(&today.0));
        all.map(|(label, (reach, today))| (label, reach - today)).filter(|(_, more)| !more.is_empty())
    }

    fn values(&self, label: Symbol) -> &BTreeSet<Symbol> {
        &self.0[GUARDED.iter().position(|guarded| *guarded == label).unwrap_or(0)]
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(BTreeSet::is_empty)
    }
}

/// The nodes that a policy may launch: the reach of each NodePool and node group, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Reaches {
    pools: BTreeMap<Symbol, Reach>,
    groups: BTreeMap<Symbol, Reach>,
}

impl Reaches {
    /// The nodes that `policy` may launch in `region`.
    pub fn new(scenario: &Scenario, policy: &PolicyVariant, region: &Arc<Region>) -> Self {
        let pools = policy.manifests.node_pools.iter().filter(|_| policy.autoscaler.is_karpenter());
        let groups = policy.manifests.node_groups.iter().map(|group| {
            let types = group.instance_types.iter().filter_map(|name| region.instance_type(*name));
            let arch = types.map(|entry| entry.facts.arch).collect();
            let spread = &group.distribution;
            let has_spot = spread.on_demand_percent < 100 && group.max_size > spread.on_demand_base;
            let has_on_demand = spread.on_demand_percent > 0 || spread.on_demand_base > 0;
            let bought = [(has_spot, well_known::SPOT), (has_on_demand, well_known::ON_DEMAND)];
            let bought = bought.into_iter().filter(|way| way.0).map(|way| way.1).collect();
            (group.name, Reach([arch, BTreeSet::new(), bought]))
        });
        Self {
            groups: groups.collect(),
            pools: pools.map(|pool| (pool.name, of_pool(scenario, policy, region, pool))).collect(),
        }
    }

    /// The nodes of a NodePool.
    pub fn pool(&self, name: Symbol) -> Option<&Reach> {
        self.pools.get(&name)
    }
}

/// Values of guarded labels (`GUARDED`) that nodes of a pool may have.
fn of_pool(scenario: &Scenario, policy: &PolicyVariant, region: &Arc<Region>, pool: &NodePool) -> Reach {
    let mut pools = [pool.clone()];
    complete_pools(policy.versions.karpenter, &mut pools);
    let [pool] = &pools;
    let classes: Vec<NodeClass> =
        policy.manifests.node_classes.iter().filter(|class| class.name == pool.node_class).cloned().collect();
    let classes = complete_classes(classes, &pools, &scenario.zones);
    let mut wanted = Requirements::from_labels(&pool.labels);
    pool.requirements.iter().for_each(|required| wanted.add(required.clone()));
    let admits = |label: Symbol, value: Symbol| wanted.get(label).is_none_or(|required| required.has(value));
    let mut reach = Reach::default();
    let types = types_of_pools(region, region, &classes, &pools, policy.provider_settings());
    for entry in types.into_iter().flatten() {
        if entry.requirements.intersects(&wanted).is_err() {
            continue;
        }
        for (place, label) in [well_known::ARCH, well_known::OS].into_iter().enumerate() {
            let values = entry.requirements.get(label).filter(|required| !required.complement);
            let values = values.into_iter().flat_map(|required| required.values.iter().copied());
            reach.0[place].extend(values.filter(|value| admits(label, *value)));
        }
        let bought = entry.offerings.iter().filter(|offering| admits(well_known::ZONE, offering.zone));
        let bought = bought
            .map(|offering| offering.capacity_type)
            .filter(|offering| admits(well_known::CAPACITY_TYPE, *offering));
        reach.0[2].extend(bought);
    }
    reach
}

/// What flags allow beyond the nodes of today.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance {
    /// Whether a lever may bring Spot.
    pub spot: bool,
    /// Whether the lever of architectures may bring another.
    pub architectures: bool,
}

impl Allowance {
    /// What `--levers` and `--without` allow: other architectures only where their lever is named, Spot unless it is ruled out.
    pub fn new(kinds: &[Kind], ruled_out: &[Kind]) -> Self {
        Self { spot: !ruled_out.contains(&Kind::Spot), architectures: kinds.contains(&Kind::Architectures) }
    }

    /// For a user who moves each control himself.
    pub const fn of_controls() -> Self {
        Self { spot: true, architectures: true }
    }

    /// Whether a lever of this kind may add a value of a label.
    fn permits(self, kind: Kind, label: Symbol, value: Symbol) -> bool {
        match label {
            well_known::CAPACITY_TYPE if value == well_known::SPOT => {
                self.spot && matches!(kind, Kind::Spot | Kind::Split)
            }
            well_known::CAPACITY_TYPE => matches!(kind, Kind::Spot | Kind::UnusedCommitments),
            well_known::ARCH => self.architectures && kind == Kind::Architectures,
            _ => false,
        }
    }

    /// The values that `changed` launches and that neither a flag nor today's pools and groups allow a lever of these kinds to add. A NodePool
    /// that is new may launch what the NodePool of its lever does: `source`.
    pub fn widening(
        self,
        (today, changed): (&Reaches, &Reaches),
        kinds: &[Kind],
        source: Option<Symbol>,
    ) -> BTreeSet<Symbol> {
        let nothing = Reach::default();
        let pools = changed.pools.iter().map(|(name, reach)| {
            let before = today.pools.get(name).or_else(|| today.pools.get(&source?));
            (reach, before.unwrap_or(&nothing))
        });
        let groups = changed.groups.iter().map(|(name, reach)| (reach, today.groups.get(name).unwrap_or(&nothing)));
        let beyond = pools.chain(groups).flat_map(|(reach, before)| reach.beyond(before));
        let values = beyond.flat_map(|(label, more)| more.into_iter().map(move |value| (label, value)));
        let forbidden = values.filter(|(label, value)| !kinds.iter().any(|kind| self.permits(*kind, *label, *value)));
        forbidden.map(|(_, value)| value).collect()
    }
}

/// A part of a lever that was not tried, because a NodePool or a flag excludes it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Exclusion {
    /// The kind of lever, as the command line names it.
    pub lever: String,
    /// The object that the lever changes.
    pub subject: String,
    /// The excluded values (`arm64`, `spot`), or the level that was not tried.
    pub excluded: Vec<String>,
    /// The reason, and the option that allows it.
    pub reason: String,
}

impl Exclusion {
    /// Why these values of a lever are not tried.
    pub fn new(lever: &Lever, excluded: Vec<String>, values: &BTreeSet<Symbol>) -> Self {
        let reason = if values.contains(&well_known::SPOT) {
            "it adds Spot, which `--without spot` excludes".to_owned()
        } else if values.iter().any(|value| [well_known::AMD64, well_known::ARM64].contains(value)) {
            format!(
                "{} launches no such nodes today, and no manifest says what an image runs on; name `architectures` in `--levers` to allow it",
                lever.subject
            )
        } else {
            format!("{} launches no such nodes today", lever.subject)
        };
        Self { lever: lever.kind.as_str().to_owned(), subject: lever.subject.clone(), excluded, reason }
    }
}

/// Adds to each level of a NodePool's requirements the values of today where it would launch more, and returns what that excludes.
pub(super) fn confine(known: &BaselineFacts<'_>, levers: &mut [Lever]) -> Vec<Exclusion> {
    let mut all = Vec::new();
    for pool in &known.policy.manifests.node_pools {
        let path = format!("{}.requirements", template(pool));
        let today = of_pool(known.scenario, known.policy, known.region, pool);
        let is_own = |lever: &&mut Lever| {
            lever.levels.iter().flat_map(|level| &level.requirements).any(|terms| terms.path == path)
        };
        for lever in levers.iter_mut().filter(is_own) {
            let kind = lever.kind;
            let mut excluded: BTreeSet<Symbol> = BTreeSet::new();
            for level in &mut lever.levels {
                excluded.extend(pin(known, (pool, &path, &today), kind, level));
            }
            if !excluded.is_empty() {
                let values = excluded.iter().map(ToString::to_string).collect();
                all.push(Exclusion::new(lever, values, &excluded));
            }
        }
    }
    all
}

/// Keeps a level of a pool to what the pool launches today; the values that this excludes.
fn pin(
    known: &BaselineFacts<'_>,
    (pool, path, today): (&NodePool, &str, &Reach),
    kind: Kind,
    level: &mut Level,
) -> BTreeSet<Symbol> {
    // A lever of sizes may be set as well, and levers that are set together launch more than each alone.
    let free = SIZES.map(|key| label(pool, key));
    let sizes = free.iter().filter(|_| kind == Kind::Families).map(|key| (*key, &[][..]));
    let terms = level.requirements.iter().filter(|terms| terms.path == path);
    let terms = terms.map(|terms| (terms.key, terms.terms.as_slice()));
    let changed = with(pool, terms.chain(sizes));
    let reach = of_pool(known.scenario, known.policy, known.region, &changed);
    if today.is_empty() {
        return BTreeSet::new();
    }
    let mut excluded = BTreeSet::new();
    for (key, more) in reach.beyond(today) {
        let more: BTreeSet<Symbol> =
            more.into_iter().filter(|value| !known.allowance.permits(kind, key, *value)).collect();
        // Levers whose own matter it is are left out level by level.
        if more.is_empty() || level.requirements.iter().any(|terms| terms.key == label(pool, key)) {
            continue;
        }
        let values: Vec<&str> = today.values(key).iter().map(|value| value.as_str()).collect();
        let key = label(pool, key);
        let terms = vec![json!({"key": key.as_str(), "operator": "In", "values": values})];
        level.requirements.push(Terms { path: path.to_owned(), key, terms });
        excluded.extend(more);
    }
    excluded
}

/// Takes out the levels that launch nodes which neither `allowance` nor the NodePools and node groups of `today` allow, and returns them.
/// `changed` has the nodes of a setting.
pub fn exclude(
    levers: &mut Vec<Lever>,
    allowance: Allowance,
    (today, requires): (&Reaches, &PoolTerms),
    changed: &(dyn Fn(&Setting) -> Option<Reaches> + Sync),
) -> Vec<Exclusion> {
    let of_level = |lever: &Lever, level: &Level| {
        let alone = Lever { levels: vec![level.clone()], ..lever.clone() };
        let reaches = changed(&setting(&[alone], &vec![1], requires))?;
        let source = lever.subject.strip_prefix("NodePool ").map(Symbol::new);
        Some(allowance.widening((today, &reaches), &[lever.kind], source))
    };
    let of_lever = |lever: &Lever| -> Vec<BTreeSet<Symbol>> {
        lever.levels.iter().map(|level| of_level(lever, level).unwrap_or_default()).collect()
    };
    let found: Vec<Vec<BTreeSet<Symbol>>> = levers.par_iter().map(of_lever).collect();
    let mut excluded = Vec::new();
    for (lever, found) in levers.iter_mut().zip(found) {
        let labels = lever.levels.iter().zip(&found).filter(|(_, values)| !values.is_empty());
        let labels: Vec<String> = labels.map(|(level, _)| level.label.clone()).collect();
        if !labels.is_empty() {
            let values = found.iter().flatten().copied().collect();
            excluded.push(Exclusion::new(lever, labels, &values));
        }
        let mut found = found.into_iter();
        lever.levels.retain(|_| found.next().is_none_or(|values| values.is_empty()));
    }
    levers.retain(|lever| !lever.levels.is_empty());
    excluded
}

/// The name of a label on nodes of the pool.
fn label(pool: &NodePool, symbol: Symbol) -> Symbol {
    if pool.auto_mode { auto_mode_label(symbol).unwrap_or(symbol) } else { symbol }
}

/// Whether a label is one that levers keep to the values of today.
pub(crate) fn is_guarded(label: Symbol) -> bool {
    GUARDED.contains(&karpenter_label(label).unwrap_or(label))
}

/// The pool with terms in place of its requirements on their labels.
fn with<'t>(pool: &NodePool, changes: impl Iterator<Item = (Symbol, &'t [Value])>) -> NodePool {
    let mut pool = pool.clone();
    for (key, terms) in changes {
        pool.requirements.retain(|required| required.key != key);
        pool.requirements.extend(terms.iter().filter_map(|term| requirement(key, term)));
    }
    pool
}

/// A requirement from its manifest form.
fn requirement(key: Symbol, term: &Value) -> Option<Requirement> {
    let operator = match term.get("operator")?.as_str()? {
        "In" => Operator::In,
        "NotIn" => Operator::NotIn,
        "Exists" => Operator::Exists,
        "DoesNotExist" => Operator::DoesNotExist,
        "Gt" => Operator::Gt,
        "Lt" => Operator::Lt,
        _ => return None,
    };
    let values = term.get("values").and_then(Value::as_array).into_iter().flatten();
    Some(Requirement::new(key, operator, values.filter_map(Value::as_str).map(Symbol::new)))
}

/// Workloads whose pods must not be interrupted and may be on Spot, by `Kind namespace/name`: StatefulSets, and pods that are not to be
/// disrupted.
pub fn fragile_on_spot(scenario: &Scenario, policy: &PolicyVariant, region: &Arc<Region>) -> BTreeSet<String> {
    let manifests = &policy.manifests;
    let stays =
        |pod: &PodSpec| pod.annotations.get(well_known::DO_NOT_DISRUPT).is_some_and(|value| value.as_str() == "true");
    let sets = manifests.stateful_sets.iter().map(|set| ("StatefulSet", set.name, &*set.template));
    let deployments =
        manifests.deployments.iter().map(|deployment| ("Deployment", deployment.name, &*deployment.template));
    let jobs = manifests.jobs.iter().map(|job| ("Job", job.name, &*job.spec.template));
    let timed = manifests.cron_jobs.iter().map(|job| ("CronJob", job.name, &*job.job.template));
    let others = deployments.chain(jobs).chain(timed).filter(|workload| stays(workload.2));
    let reaches = Reaches::new(scenario, policy, region);
    let has_spot = |pool: &&NodePool| {
        reaches.pool(pool.name).is_some_and(|reach| reach.values(well_known::CAPACITY_TYPE).contains(&well_known::SPOT))
    };
    let pools: Vec<&NodePool> = manifests.node_pools.iter().filter(has_spot).collect();
    let on_spot = |template: &PodSpec| pools.iter().any(|pool| takes_on_spot(pool, template));
    sets.chain(others).filter(|workload| on_spot(workload.2)).map(|(kind, name, _)| format!("{kind} {name}")).collect()
}

/// Whether a pod may be on a Spot node of the pool, as far as the pool's taints and labels say.
fn takes_on_spot(pool: &NodePool, template: &PodSpec) -> bool {
    let mut node = Requirements::from_labels(&pool.labels);
    pool.requirements.iter().for_each(|required| node.add(required.clone()));
    node.add(Requirement::equals(well_known::NODEPOOL, pool.name));
    node.add(Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT));
    let fits = |wanted: &Requirements| node.intersects(wanted).is_ok();
    let terms = &template.node_affinity.required;
    first_untolerated(&pool.taints, &template.tolerations).is_none()
        && fits(&Requirements::from_labels(&template.node_selector))
        && (terms.is_empty() || terms.iter().any(|term| fits(&term.requirements())))
}
