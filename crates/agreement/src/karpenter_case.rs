//! Reading the cases of Karpenter's suites: catalogs, pools, nodes and pods.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use nodecast_karpenter::instance_types::{InstanceType, Offering, Reservation};
use nodecast_karpenter::packing::{
    BoundPod, MinValuesPolicy, NamespaceView, NodeView, PackingOptions, PackingSetup, PendingPod, PoolView,
    PreferencePolicy, ReservedMode, Situation, TieBreak, Volumes,
};
use nodecast_manifests::{node_from_json, node_pool_from_json, pod_from_json};
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    HourlyRate, KarpenterVersion, Labels, NodeObject, NodePool, PodSpec, Quantity, ResourceName, Resources, SimTime,
    Symbol,
};
use serde_json::Value;

use crate::fields::{flag_or, list, text};
use crate::tally::read_json;

/// A pod of a case.
pub struct CasePod {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: String,
    /// Specification, shared by the pods of one entry.
    pub spec: Arc<PodSpec>,
}

/// A node of a case with what is bound to it.
pub struct CaseNode {
    /// The Node object.
    pub node: NodeObject,
    /// Whether it has a NodeClaim.
    pub managed: bool,
    /// Its pods.
    pub pods: Vec<CasePod>,
}

/// Everything that a case states.
pub struct Case {
    /// Label only.
    pub name: String,
    /// Instance types, overrides applied.
    pub types: Vec<InstanceType>,
    /// Node pools.
    pub pools: Vec<NodePool>,
    /// Daemon templates.
    pub daemons: Vec<Arc<PodSpec>>,
    /// Namespaces with labels.
    pub namespaces: Vec<(Symbol, Labels)>,
    /// Nodes.
    pub nodes: Vec<CaseNode>,
    /// Pending pods.
    pub pods: Vec<CasePod>,
    /// Settings.
    pub options: PackingOptions,
    /// Treatment of reservations.
    pub reserved: ReservedMode,
}

/// The catalogs met so far: `catalogs` if given, else the folder of that name beside the case file, or beside its folder.
pub struct Catalogs {
    given: Option<PathBuf>,
    read: Vec<(PathBuf, Value)>,
}

impl Catalogs {
    /// Catalogs looked for in `given` first.
    pub fn new(given: Option<&Path>) -> Self {
        Self { given: given.map(Path::to_path_buf), read: Vec::new() }
    }

    /// The catalog named by a case in `file`.
    pub fn find(&mut self, file: &Path, name: &str) -> Result<&Value, String> {
        let folder = file.parent().unwrap_or(Path::new("."));
        let mut folders: Vec<PathBuf> = self.given.iter().cloned().collect();
        folders.push(folder.join("catalogs"));
        if let Ok(siblings) = std::fs::read_dir(folder.join("..")) {
            let mut siblings: Vec<PathBuf> = siblings.flatten().map(|entry| entry.path().join("catalogs")).collect();
            siblings.sort();
            folders.extend(siblings);
        }
        let candidates = folders.iter().flat_map(|folder| [folder.join(name), folder.join(format!("{name}.gz"))]);
        let path = candidates.into_iter().find(|path| path.is_file()).ok_or(format!("no catalog {name}"))?;
        if let Some(known) = self.read.iter().position(|(key, _)| *key == path) {
            return Ok(&self.read[known].1);
        }
        let value = read_json(&path)?;
        self.read.push((path, value));
        Ok(&self.read[self.read.len() - 1].1)
    }
}

impl Case {
    /// Reads a case against its catalog.
    pub fn read(case: &Value, catalog: &Value) -> Result<Self, String> {
        let named = |error: nodecast_model::text::InputError| error.to_string();
        let mut types = read_catalog(catalog)?;
        change_offerings(case, &mut types)?;
        let mut nodes = Vec::new();
        for node in list(case, "nodes")? {
            let managed = flag_or(node, "managed", false)?;
            nodes.push(CaseNode { node: node_from_json(&node["node"]).map_err(named)?, managed, pods: pods(node)? });
        }
        let option = |key: &str, other: &str| case["options"][key].as_str() == Some(other);
        let mut namespaces = Vec::new();
        for namespace in list(case, "namespaces")? {
            let name = text(&namespace["metadata"], "name")?.unwrap_or_default();
            namespaces.push((Symbol::new(name), labels(&namespace["metadata"]["labels"])));
        }
        let daemons = list(case, "daemonSets")?.iter();
        Ok(Self {
            name: case["name"].as_str().unwrap_or("?").to_owned(),
            types,
            pools: list(case, "nodePools")?.iter().map(node_pool_from_json).collect::<Result<_, _>>().map_err(named)?,
            daemons: daemons
                .map(|entry| pod_from_json(&entry["pod"]).map(|pod| Arc::new(pod.spec)))
                .collect::<Result<_, _>>()
                .map_err(named)?,
            namespaces,
            nodes,
            pods: pods(case)?,
            options: PackingOptions {
                preferences: if option("preferencePolicy", "Ignore") {
                    PreferencePolicy::Ignore
                } else {
                    PreferencePolicy::Respect
                },
                min_values: if option("minValuesPolicy", "BestEffort") {
                    MinValuesPolicy::BestEffort
                } else {
                    MinValuesPolicy::Strict
                },
                ..PackingOptions::default()
            },
            reserved: if option("reservedMode", "Fallback") { ReservedMode::Fallback } else { ReservedMode::Strict },
        })
    }

    /// Hands the case over as the packer wants it, ties going to the smallest domain name.
    pub fn with<R>(&self, ask: impl FnOnce(PackingSetup<'_>, &Situation<'_>) -> R) -> R {
        self.with_ties(TieBreak::SmallestName, ask)
    }

    /// The same with another treatment of ties.
    pub fn with_ties<R>(&self, ties: TieBreak, ask: impl FnOnce(PackingSetup<'_>, &Situation<'_>) -> R) -> R {
        let pools: Vec<PoolView<'_>> =
            self.pools.iter().map(|pool| PoolView { pool, instance_types: &self.types }).collect();
        let namespaces: Vec<NamespaceView<'_>> =
            self.namespaces.iter().map(|(name, labels)| NamespaceView { name: *name, labels }).collect();
        let bound: Vec<Vec<BoundPod<'_>>> = self.nodes.iter().map(|node| bound_pods(&node.pods)).collect();
        let nodes: Vec<NodeView<'_>> =
            self.nodes.iter().zip(&bound).map(|(node, pods)| node_view(node, pods)).collect();
        let pods = pending_pods(&self.pods);
        let setup = PackingSetup {
            karpenter: KarpenterVersion::V1_13,
            options: self.options,
            pools: &pools,
            daemons: &self.daemons,
            namespaces: &namespaces,
            volumes: Volumes::default(),
            default_spread: None,
        };
        let situation = Situation { nodes: &nodes, pods: &pods, reserved: self.reserved, ties };
        ask(setup, &situation)
    }
}

/// Bound pods as the packer wants them.
pub fn bound_pods(pods: &[CasePod]) -> Vec<BoundPod<'_>> {
    pods.iter()
        .map(|pod| BoundPod { namespace: pod.namespace, name: &pod.name, spec: &pod.spec, counts_in_topology: true })
        .collect()
}

/// A node as the packer wants it.
pub fn node_view<'v>(node: &'v CaseNode, pods: &'v [BoundPod<'v>]) -> NodeView<'v> {
    NodeView {
        name: &node.node.name,
        labels: &node.node.labels,
        taints: &node.node.taints,
        startup_taints: &[],
        capacity: &node.node.capacity,
        allocatable: &node.node.allocatable,
        managed: node.managed,
        initialized: !node.managed || node.node.labels.get(well_known::NODE_INITIALIZED) == Some(well_known::TRUE),
        registered: true,
        offered: true,
        pods,
        summed: None,
        volume_limits: &[],
    }
}

/// Pending pods as the packer wants them: UIDs are `namespace/name`, all creation times are equal.
pub fn pending_pods(pods: &[CasePod]) -> Vec<PendingPod<'_>> {
    let mut order: Vec<usize> = (0..pods.len()).collect();
    order.sort_by_cached_key(|&pod| format!("{}/{}", pods[pod].namespace, pods[pod].name));
    let mut ranks = vec![0; pods.len()];
    for (rank, &pod) in order.iter().enumerate() {
        ranks[pod] = rank as u64;
    }
    pods.iter()
        .zip(ranks)
        .map(|(pod, uid_rank)| PendingPod {
            namespace: pod.namespace,
            name: &pod.name,
            spec: &pod.spec,
            created: SimTime::ZERO,
            uid_rank,
        })
        .collect()
}

/// The pods at `pods`, entries with a count expanded.
fn pods(value: &Value) -> Result<Vec<CasePod>, String> {
    let mut found = Vec::new();
    for entry in list(value, "pods")? {
        let count = entry["count"].as_u64().unwrap_or(0);
        let read = pod_from_json(&entry["pod"]).map_err(|error| error.to_string())?;
        let (namespace, name) = (read.name.namespace, read.name.name);
        let mut spec = read.spec;
        for container in &mut spec.containers {
            // The cases hold pods as the scheduler got them. In a cluster the API server has copied limits into missing
            // requests by then; here nobody did.
            container.limits = Resources::new();
        }
        let spec = Arc::new(spec);
        if count == 0 {
            found.push(CasePod { namespace, name: name.to_string(), spec });
            continue;
        }
        for index in 0..count {
            found.push(CasePod { namespace, name: format!("{name}-{index:05}"), spec: Arc::clone(&spec) });
        }
    }
    Ok(found)
}

/// A map of labels.
fn labels(value: &Value) -> Labels {
    let entries = value.as_object().into_iter().flatten();
    entries.map(|(key, value)| (Symbol::new(key), Symbol::new(value.as_str().unwrap_or_default()))).collect()
}

/// A map of quantities.
pub fn resources(value: &Value) -> Result<Resources, String> {
    let mut resources = Resources::new();
    for (name, amount) in value.as_object().into_iter().flatten() {
        let name = ResourceName(Symbol::new(name));
        let amount = amount.as_str().unwrap_or_default();
        let quantity: Quantity = amount.parse().map_err(|error| format!("{name} {amount}: {error}"))?;
        resources.set(name, name.amount(quantity));
    }
    Ok(resources)
}

/// A price, exact to the nano-unit.
pub fn rate(value: &Value) -> Result<HourlyRate, String> {
    let price = value.as_f64().ok_or_else(|| format!("{value} is not a price"))?;
    HourlyRate::parse(&format!("{price:.9}")).ok_or_else(|| format!("{value} is not a price"))
}

/// The instance types of a catalog.
pub fn read_catalog(catalog: &Value) -> Result<Vec<InstanceType>, String> {
    let optional: Vec<Symbol> =
        list(catalog, "optionalLabels")?.iter().filter_map(Value::as_str).map(Symbol::new).collect();
    list(catalog, "instanceTypes")?.iter().map(|item| read_type(item, &optional)).collect()
}

fn read_type(this_value: &Value, optional: &[Symbol]) -> Result<InstanceType, String> {
    let name = Symbol::new(this_value["name"].as_str().unwrap_or_default());
    let capacity = resources(&this_value["resources"])?;
    let mut allocatable = capacity.clone();
    allocatable.subtract(&resources(&this_value["overhead"])?);
    let mut instance_type = InstanceType {
        name,
        requirements: Arc::new(
            labels(&this_value["labels"]).iter().map(|(key, value)| Requirement::equals(key, value)).collect(),
        ),
        capacity,
        allocatable,
        offerings: list(this_value, "offerings")?.iter().map(read_offering).collect::<Result<_, _>>()?,
    };
    let stated = Arc::make_mut(&mut instance_type.requirements);
    for &key in optional.iter().chain([&well_known::WINDOWS_BUILD]) {
        if stated.get(key).is_none() {
            stated.add(Requirement::new(key, Operator::DoesNotExist, []));
        }
    }
    stated.add(Requirement::equals(well_known::INSTANCE_TYPE, name));
    stated.add(Requirement::equals(well_known::OS, well_known::LINUX));
    stated.add(Requirement::equals(well_known::REGION, Symbol::new("us-east-1")));
    state_offerings(&mut instance_type);
    Ok(instance_type)
}

fn read_offering(value: &Value) -> Result<Offering, String> {
    let symbol = |key: &str| Symbol::new(value[key].as_str().unwrap_or_default());
    let reservation = value["reservationId"].as_str().map(|id| Reservation {
        id: Symbol::new(id),
        block_ends: None,
        free: value["reservationCapacity"].as_u64().and_then(|free| u32::try_from(free).ok()).unwrap_or(0),
    });
    Ok(Offering {
        zone: symbol("zone"),
        zone_id: None,
        capacity_type: symbol("capacityType"),
        price: rate(&value["price"])?,
        available: flag_or(value, "available", true)?,
        reservation,
        overlay: None,
    })
}

/// Requirements that follow from the offerings, available or not.
fn state_offerings(instance_type: &mut InstanceType) {
    let offerings = &instance_type.offerings;
    let zones = Requirement::new(well_known::ZONE, Operator::In, offerings.iter().map(|offering| offering.zone));
    let kinds = Requirement::new(
        well_known::CAPACITY_TYPE,
        Operator::In,
        offerings.iter().map(|offering| offering.capacity_type),
    );
    let ids = offerings.iter().filter_map(|offering| offering.reservation.map(|reservation| reservation.id));
    let ids = Requirement::new(well_known::CAPACITY_RESERVATION_ID, Operator::In, ids);
    let requirements = Arc::make_mut(&mut instance_type.requirements);
    for requirement in [zones, kinds, ids] {
        requirements.remove(requirement.key);
        requirements.add(requirement);
    }
}

/// Applies what a case changes of its catalog's offerings.
pub fn change_offerings(case: &Value, types: &mut [InstanceType]) -> Result<(), String> {
    for added in list(case, "addOfferings")? {
        let offering = read_offering(&added["offering"])?;
        let name = added["type"].as_str().unwrap_or_default();
        let instance_type = types
            .iter_mut()
            .find(|instance_type| instance_type.name.as_str() == name)
            .ok_or(format!("no type {name}"))?;
        instance_type.offerings.push(offering);
        state_offerings(instance_type);
    }
    for change in list(case, "offeringOverrides")? {
        let names: Option<Vec<&str>> =
            change["types"].as_array().map(|names| names.iter().filter_map(Value::as_str).collect());
        let is = |key: &str, value: Symbol| change[key].as_str().is_none_or(|wanted| wanted == value.as_str());
        let available = flag_or(change, "available", true)?;
        for instance_type in types.iter_mut() {
            if names.as_ref().is_some_and(|names| !names.contains(&instance_type.name.as_str())) {
                continue;
            }
            for offering in &mut instance_type.offerings {
                if is("zone", offering.zone) && is("capacityType", offering.capacity_type) {
                    offering.available = available;
                }
            }
        }
    }
    Ok(())
}
