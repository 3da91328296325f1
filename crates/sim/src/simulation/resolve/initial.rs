//! Which nodes and pods of a dump are there when a policy's run begins, and whose they are.
//!
//! What must not live here: how they are taken up (`actors`).

mod examples;
mod job_times;

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::actors::{InitialNode, InitialPlan};
use crate::catalog::Region;
use crate::cloud::Pool;
use crate::cluster::NodeOrigin;
use crate::domain::node_group::group_of_node;
use crate::domain::pod::OwnerKind;
use crate::domain::words::{counted, some_of};
use crate::domain::workload::Job;
use crate::domain::{Labels, NodeClaimObject, SimTime, Symbol, well_known};
use crate::manifests::Manifests;
use crate::single_pass::{Inventory, NamedPod, NodeWithPods};
use crate::standing::{capacity_type_of, claims_by_node, missing_labels, written};
use nodecast_settings::lints::{Lint, setup};
use nodecast_settings::{Autoscaler, Caveats, PolicyVariant, Scenario};

/// What is told of the nodes of a dump, by what is special about them.
#[derive(Default)]
struct Counts {
    gone: Vec<String>,
    fixed: Vec<String>,
    without_price: Vec<String>,
    not_ready: Vec<String>,
    fargate: Vec<String>,
    orphans: Vec<String>,
}

/// What is there when a run begins: the scenario's dump, and the nodes among its manifests.
pub(super) fn initial<'s>(
    scenario: &'s Scenario,
    policy: &'s PolicyVariant,
    region: &Region,
    warnings: &mut Caveats,
) -> Option<InitialPlan<'s>> {
    let stated = nodes_of_manifests(&policy.manifests);
    let dump = scenario.initial.as_deref();
    if dump.is_none() && stated.is_empty() {
        return None;
    }
    let mut counts = Counts::default();
    let mut plan = InitialPlan {
        seen: dump.and_then(Inventory::seen).unwrap_or(SimTime::ZERO),
        nodes: Vec::new(),
        waiting: dump.map_or_else(Vec::new, |dump| dump.waiting.iter().collect()),
        jobs: if dump.is_some() { made_jobs(&policy.manifests) } else { Vec::new() },
        has_groups: dump.is_some(),
        examples: Vec::new(),
    };
    let claims = claims_by_node(dump.map_or(&[], |dump| &dump.node_claims));
    let known: BTreeSet<&str> = dump.into_iter().flat_map(|dump| &dump.nodes).map(|node| &*node.node.name).collect();
    let further = stated.into_iter().filter(|item| !known.contains(&*item.node.name)).map(Cow::Owned);
    for found in dump.into_iter().flat_map(|dump| &dump.nodes).map(Cow::Borrowed).chain(further) {
        let claim = claims.get(&*found.node.name).copied();
        match origin(&found.node.labels, scenario, policy) {
            Some(origin) => plan.nodes.push(node(found, claim, origin, policy, region, &mut counts)),
            None => {
                counts.gone.push(found.node.name.clone());
                // Their controllers make the others again.
                if let Cow::Borrowed(found) = found {
                    let theirs = found.pods.iter();
                    plan.waiting.extend(theirs.filter(|pod| !is_made_again(pod)));
                }
            }
        }
    }
    find_orphans(&plan, &policy.manifests, &mut counts);
    tell(&counts, policy, region, warnings);
    if plan.is_dump() {
        plan.examples = examples::example_nodes(&plan.nodes);
        job_times::warn(&plan, &policy.manifests, warnings);
    }
    Some(plan)
}

/// The Jobs among manifests that a CronJob or ScaledJob among them has made, those that began first first.
fn made_jobs(manifests: &Manifests) -> Vec<&Job> {
    let made = |job: &&Job| manifests.maker_of(job).is_some();
    let mut jobs: Vec<&Job> = manifests.jobs.iter().filter(made).collect();
    jobs.sort_by_key(|job| (job.status.started.is_none(), job.status.started, job.name));
    jobs
}

/// The Node objects among manifests, as a dump of them alone has them.
fn nodes_of_manifests(manifests: &Manifests) -> Vec<NodeWithPods> {
    if manifests.nodes.is_empty() {
        return Vec::new();
    }
    let nodes = Manifests {
        nodes: manifests.nodes.clone(),
        attach_limits: manifests.attach_limits.clone(),
        ..Manifests::default()
    };
    Inventory::from_objects(nodes).0.nodes
}

/// Whose node it is; `None` if another policy has its NodePool or group and this one has done away with it. The Cluster Autoscaler
/// knows no NodePools: where it runs, they are gone. A NodePool of EKS Auto Mode is another one than that of its name of Karpenter's own.
fn origin(labels: &Labels, scenario: &Scenario, policy: &PolicyVariant) -> Option<NodeOrigin> {
    let fargate = Symbol::new("fargate");
    if labels.get(well_known::EKS_COMPUTE_TYPE) == Some(fargate) {
        // Which profile is in no label of the node.
        return Some(NodeOrigin::Fargate(fargate));
    }
    let others = || scenario.policies.iter().map(|policy| &*policy.manifests);
    let origin = match labels.get(well_known::NODEPOOL) {
        Some(pool) => NodeOrigin::NodePool(pool),
        None => {
            let (name, _) = group_of_node(|key| labels.get(Symbol::new(key)).map(Symbol::as_str));
            NodeOrigin::NodeGroup(Symbol::new(&name))
        }
    };
    let auto_mode = labels.get(well_known::EKS_COMPUTE_TYPE) == Some(well_known::AUTO);
    let has = |manifests: &Manifests| match origin {
        NodeOrigin::NodePool(pool) => {
            manifests.node_pools.iter().any(|node_pool| node_pool.name == pool && node_pool.auto_mode == auto_mode)
        }
        NodeOrigin::NodeGroup(group) => manifests.node_groups.iter().any(|node_group| node_group.name == group),
        NodeOrigin::Fargate(_) => false,
    };
    let unknown = policy.autoscaler == Autoscaler::ClusterAutoscaler && matches!(origin, NodeOrigin::NodePool(_));
    let gone = (unknown || !has(&policy.manifests)) && others().any(has);
    (!gone).then_some(origin)
}

fn node<'s>(
    mut found: Cow<'s, NodeWithPods>,
    claim: Option<&'s NodeClaimObject>,
    origin: NodeOrigin,
    policy: &PolicyVariant,
    region: &Region,
    counts: &mut Counts,
) -> InitialNode<'s> {
    let manifests = &policy.manifests;
    let release = policy.versions.karpenter;
    let missing = missing_labels(&found.node.labels, &manifests.node_pools, &manifests.node_classes, region, release);
    if !missing.is_empty() {
        found.to_mut().node.labels.extend(&missing);
    }
    let labels = &found.node.labels;
    let pool = pool(labels, region);
    let groups = &policy.manifests.node_groups;
    let group = groups.iter().position(|group| NodeOrigin::NodeGroup(group.name) == origin).filter(|_| pool.is_some());
    let managed = match origin {
        NodeOrigin::NodePool(name) => {
            let knows = policy.manifests.node_pools.iter().any(|node_pool| node_pool.name == name);
            knows && policy.autoscaler.is_karpenter()
        }
        NodeOrigin::NodeGroup(_) => group.is_some(),
        NodeOrigin::Fargate(_) => false,
    };
    let name = &found.node.name;
    let of_fargate = matches!(origin, NodeOrigin::Fargate(_));
    for (holds, names) in [
        (of_fargate, &mut counts.fargate),
        (!managed && !of_fargate, &mut counts.fixed),
        (pool.is_none() && !of_fargate, &mut counts.without_price),
        (!found.node.ready, &mut counts.not_ready),
    ] {
        if holds {
            names.push(name.clone());
        }
    }
    let of_pool = labels.get(well_known::NODEPOOL).is_some();
    let initialized = !of_pool || labels.get(well_known::NODE_INITIALIZED) == Some(well_known::TRUE);
    let created = found.node.created.or(claim.and_then(|claim| claim.created));
    InitialNode {
        written: written(&found, claim, created.filter(|_| initialized)),
        claim: claim.map(|claim| claim.name.as_str()),
        found,
        created,
        initialized,
        origin,
        group,
        pool,
    }
}

/// Where the machine of a node comes from, by its labels.
fn pool(labels: &Labels, region: &Region) -> Option<Pool> {
    let (instance_type, zone) = (labels.get(well_known::INSTANCE_TYPE)?, labels.get(well_known::ZONE)?);
    let capacity_type = capacity_type_of(labels);
    let kind = region.instance_type(instance_type)?;
    let place = region.zone_index(zone)?;
    kind.offered_in(place).then_some(Pool { instance_type, zone, capacity_type })
}

/// Whether something makes a pod again that is gone.
fn is_made_again(pod: &NamedPod) -> bool {
    !matches!(pod.spec.owner, OwnerKind::None | OwnerKind::Node)
}

/// Pods whose workload is not in the scenario, but for those that a Job's end has begun to delete: nothing would make them again.
fn find_orphans(plan: &InitialPlan<'_>, manifests: &Manifests, counts: &mut Counts) {
    let mut known: BTreeSet<(OwnerKind, String)> = BTreeSet::new();
    known.extend(manifests.deployments.iter().map(|deployment| (OwnerKind::ReplicaSet, deployment.name.to_string())));
    known.extend(
        manifests.stateful_sets.iter().map(|stateful_set| (OwnerKind::StatefulSet, stateful_set.name.to_string())),
    );
    known.extend(manifests.daemon_sets.iter().map(|daemon_set| (OwnerKind::DaemonSet, daemon_set.name.to_string())));
    known.extend(manifests.jobs.iter().map(|job| (OwnerKind::Job, job.name.to_string())));
    known.extend(manifests.cron_jobs.iter().map(|cron_job| (OwnerKind::Job, cron_job.name.to_string())));
    known.extend(
        manifests
            .scaled_jobs
            .iter()
            .map(|scaled_job| (OwnerKind::Job, format!("{}/{}", scaled_job.namespace, scaled_job.name))),
    );
    let is_orphan = |pod: &&NamedPod| match pod.spec.owner {
        OwnerKind::None => false,
        OwnerKind::Node => true,
        OwnerKind::Job if pod.deleting => false,
        OwnerKind::Job => {
            let maker = pod.workload.rsplit_once('-').map_or("", |(name, _)| name);
            ![&*pod.workload, maker].iter().any(|name| known.contains(&(OwnerKind::Job, (*name).to_owned())))
        }
        // A Deployment of its controller's name stands in for that, or one of its own name.
        OwnerKind::Other => {
            let stands_in = |name: String| known.contains(&(OwnerKind::ReplicaSet, name));
            !stands_in(pod.workload.clone()) && !stands_in(pod.full_name())
        }
        owner => !known.contains(&(owner, pod.workload.clone())),
    };
    let pods = plan.nodes.iter().flat_map(|node| &node.found.pods);
    counts.orphans.extend(pods.filter(is_orphan).map(NamedPod::full_name));
}

fn tell(counts: &Counts, policy: &PolicyVariant, region: &Region, warnings: &mut Caveats) {
    let name = &policy.name;
    let nodes = |names: &[String]| counted(names.len() as u64, "node", "nodes");
    let mut warn = |lint: &'static Lint, names: &[String], text: String| {
        if !names.is_empty() {
            warnings.add(lint, format!("policy {name}: {text} ({})", some_of(names)));
        }
    };
    let Counts { gone, fixed, without_price, not_ready, fargate, orphans } = counts;
    let waits = "their pods start as pending";
    warn(
        &setup::NODES_OF_OTHER_POLICY,
        gone,
        format!("starts without {} whose NodePool or node group does not exist in this policy; {waits}", nodes(gone)),
    );
    let stay = "they stay as in the dump and are never replaced";
    warn(&setup::UNMANAGED_NODES, fixed, format!("this policy does not manage {} from the dump; {stay}", nodes(fixed)));
    let region = region.name;
    warn(
        &setup::NODES_WITHOUT_PRICE,
        without_price,
        format!(
            "no price in {region} for the instance types of {} from the dump; they cost nothing here, so the total is too low",
            nodes(without_price)
        ),
    );
    let theirs = "they are removed with their pods, take no others, and cost nothing here, so the total is too low";
    warn(&setup::FARGATE_NODES, fargate, format!("on Fargate {} of the dump: {theirs}", nodes(fargate)));
    warn(
        &setup::NODES_NOT_READY,
        not_ready,
        format!("not Ready for the whole run, as in the dump: {}", nodes(not_ready)),
    );
    let pods = counted(orphans.len() as u64, "pod from the dump has", "pods from the dump have");
    warn(
        &setup::PODS_WITHOUT_CONTROLLER,
        orphans,
        format!("{pods} no controller in this scenario; such a pod is not recreated once deleted"),
    );
}
