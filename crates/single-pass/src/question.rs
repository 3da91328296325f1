//! What is asked of one pass: a cluster as manifests and a dump of its objects describe it.

mod warnings;

use std::collections::BTreeMap;
use std::sync::Arc;

use self::warnings::{warn_of_buffers, warn_of_fargate, warn_of_kinds, warn_of_pools};
use super::{KarpenterSetup, lints};
use nodecast_karpenter::instance_types::{
    InstanceType, OverlayVerdict, complete_classes, complete_pools, lay_overlays, overlay_warnings, types_of_pools,
    user_data_warning,
};
use nodecast_karpenter::release::{Behaviour, leave_out_unread};
use nodecast_manifests::{AttachLimits, Manifests, Namespaces, PodObject, SchedulerVerdict};
use nodecast_model::auto_mode;
use nodecast_model::catalog::Region;
use nodecast_model::domain::pod::{ClaimSource, OwnerKind, PodDisruptionBudget, PodPhase};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::volumes::{PersistentVolumeClaim, Storage};
use nodecast_model::domain::words::counted;
use nodecast_model::domain::workload::{
    DaemonSet, Deployment, ObjectName, ROLLOUT_HASH, StatefulSet, TEMPLATE_HASH, deployment_of_set,
};
use nodecast_model::domain::{
    KarpenterVersion, Labels, NodeClaimObject, NodeClass, NodeObject, NodeOverlay, NodePool, PodSpec, SimTime, Symbol,
    Taint, TaintEffect,
};
use nodecast_model::text::error::nearest;
use nodecast_model::text::{InputError, Warning};

/// When pods that are in no dump are created: after all others.
pub(crate) const LAST: SimTime = SimTime::from_micros(i64::MAX);

/// Where a cluster is, and who packs its pods.
#[derive(Clone, Debug)]
pub struct Setting {
    /// Karpenter's release and flags.
    pub karpenter: KarpenterSetup,
    /// The region.
    pub region: Arc<Region>,
    /// The region whose On-Demand prices that release orders types by
    /// ([`price_list_of`](nodecast_karpenter::instance_types::price_list_of)).
    pub price_list: Arc<Region>,
    /// The zones of the cluster's subnets; empty for all of the region.
    pub zones: Vec<Symbol>,
    /// Whether there may be no NodePool, so that nothing is launched.
    pub without_pools: bool,
}

impl Setting {
    /// All zones of a region, the newest release, and the region's own prices.
    pub fn from_region(region: Arc<Region>) -> Self {
        let price_list = Arc::clone(&region);
        Self { karpenter: KarpenterSetup::default(), region, price_list, zones: Vec::new(), without_pools: false }
    }
}

/// A pod by name.
#[derive(Clone, PartialEq, Debug)]
pub struct NamedPod {
    /// Namespace.
    pub namespace: Symbol,
    /// Name.
    pub name: String,
    /// The workload that made it, for people: `namespace/name`; its own name if it has none.
    pub workload: String,
    /// What it asks for. Pods of one template share it.
    pub spec: Arc<PodSpec>,
    /// When it was created; one that is not in a dump comes after all that are.
    pub created: SimTime,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// When its grace period is over, since 1970, if it is being deleted.
    pub gone_by: Option<SimTime>,
    /// How far it is.
    pub phase: PodPhase,
    /// Whether it is Ready.
    pub ready: bool,
    /// What kube-scheduler said of it.
    pub verdict: SchedulerVerdict,
    /// Where it still runs, if it is among the pods to place because its node is being deleted: positions of the node, and
    /// of the pod among the node's.
    pub leaves: Option<(usize, usize)>,
}

/// A node with the pods on it.
#[derive(Clone, PartialEq, Debug)]
pub struct NodeWithPods {
    /// The node; a cordoned one has the taint that says so.
    pub node: NodeObject,
    /// Its pods that have not ended.
    pub pods: Vec<NamedPod>,
    /// How many volumes of each CSI driver it can attach.
    pub volume_limits: Vec<(Symbol, u32)>,
}

/// A cluster with pods that wait for a node.
#[derive(Clone, Debug)]
pub struct PackingQuestion {
    /// Karpenter's release.
    pub karpenter: KarpenterVersion,
    /// The rest of Karpenter's setup.
    pub setup: KarpenterSetup,
    /// The region.
    pub region: Arc<Region>,
    /// The region whose On-Demand prices that release orders types by.
    pub price_list: Arc<Region>,
    /// NodePools, with what the release's webhook adds.
    pub node_pools: Vec<NodePool>,
    /// Their node classes.
    pub node_classes: Vec<NodeClass>,
    /// NodeOverlays over their instance types.
    pub node_overlays: Vec<NodeOverlay>,
    /// Every namespace in which something stands, with its labels.
    pub namespaces: Vec<(Symbol, Labels)>,
    /// One pod for each DaemonSet.
    pub daemons: Vec<Arc<PodSpec>>,
    /// Their DaemonSets, in the same order.
    pub daemon_sets: Vec<ObjectName>,
    /// The nodes that exist.
    pub nodes: Vec<NodeWithPods>,
    /// What Karpenter has written down of those that it launched.
    pub node_claims: Vec<NodeClaimObject>,
    /// Pods without a node, and those of nodes that are being deleted.
    pub pods: Vec<NamedPod>,
    /// Nodes, by position, that somebody else than Karpenter drains: their pods leave whatever `karpenter.sh/do-not-disrupt` says.
    pub drained: Vec<usize>,
    /// PodDisruptionBudgets.
    pub disruption_budgets: Vec<PodDisruptionBudget>,
    /// Volumes and what is claimed of them.
    pub storage: Storage,
    /// What could make the real cluster answer otherwise.
    pub warnings: Vec<Warning>,
}

/// What runs in a cluster.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Inventory {
    /// Its nodes with their pods.
    pub nodes: Vec<NodeWithPods>,
    /// What Karpenter has written down of those that it launched.
    pub node_claims: Vec<NodeClaimObject>,
    /// Pods without a node.
    pub waiting: Vec<NamedPod>,
}

impl Inventory {
    /// What the objects of a dump show to run, and what of it is left out.
    pub fn from_objects(mut objects: Manifests) -> (Self, Vec<Warning>) {
        let mut warnings = std::mem::take(&mut objects.warnings);
        warnings.extend(objects.complete_workloads(&[]));
        let (mut waiting, nodes, _) = split(&mut objects, Vec::new(), &mut warnings);
        waiting.retain(|pod| pod.leaves.is_none());
        (Self { nodes, node_claims: objects.node_claims, waiting }, warnings)
    }

    /// When anything in it was last heard of, since 1970: when the dump was made. `None` if it tells no instant.
    pub fn seen(&self) -> Option<SimTime> {
        last_heard_of(&self.nodes, &self.waiting, &self.node_claims)
    }
}

/// When anything of a cluster was last heard of, since 1970.
pub(crate) fn last_heard_of(
    nodes: &[NodeWithPods],
    waiting: &[NamedPod],
    claims: &[NodeClaimObject],
) -> Option<SimTime> {
    let of_nodes = nodes.iter().flat_map(|node| [node.node.created, node.node.heard_of]).flatten();
    let pods = nodes.iter().flat_map(|node| &node.pods).chain(waiting);
    let of_pods = pods.map(|pod| pod.created).filter(|&at| at < LAST);
    let of_claims = claims.iter().flat_map(|claim| [claim.initialized, claim.last_pod_event]).flatten();
    of_nodes.chain(of_pods).chain(of_claims).max()
}

impl NamedPod {
    /// So many pods of one specification, numbered from 1, at which nothing has looked yet.
    pub fn replicas(namespace: Symbol, name: &str, count: u32, spec: &Arc<PodSpec>) -> Vec<Self> {
        let workload = format!("{namespace}/{name}");
        let numbers = 1..=count;
        numbers.map(|number| waiting_pod(namespace, workload.clone(), format!("{name}-{number}"), spec)).collect()
    }

    /// `namespace/name`.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }
}

impl PackingQuestion {
    /// What the objects of a cluster ask, with pods that are listed apart.
    ///
    /// # Errors
    /// If there is no NodePool and one is asked for, or no pod.
    pub fn new(mut objects: Manifests, listed: Vec<NamedPod>, setting: Setting) -> Result<Self, InputError> {
        let mut warnings = std::mem::take(&mut objects.warnings);
        warnings.extend(objects.complete_workloads(&[]));
        let mut node_pools = std::mem::take(&mut objects.node_pools);
        if node_pools.is_empty() && !setting.without_pools {
            return Err(InputError::new("there is no NodePool in these files: Karpenter launches nothing")
                .help("add the NodePools and EC2NodeClasses: `kubectl get nodepools,ec2nodeclasses -o yaml`"));
        }
        let setup = whose(setting.karpenter, &mut node_pools, &mut objects, &mut warnings);
        let karpenter = setup.release();
        for (_, text) in leave_out_unread(karpenter, &mut node_pools) {
            warnings.push(Warning::from_lint(&lints::UNREAD_POOL, text));
        }
        complete_pools(karpenter, &mut node_pools);
        warn_of_kinds(karpenter, &node_pools, &mut warnings);
        let uses_reservations = Behaviour::for_release(karpenter).uses_reservations(setup.flags.gates);
        warn_of_pools(&node_pools, (&objects.node_classes, uses_reservations), &mut warnings);
        let (daemon_sets, daemons) = daemons(&objects, karpenter).into_iter().unzip();
        let namespaces =
            Namespaces::from_objects([&objects]).with(listed.iter().map(|pod| pod.namespace)).into_iter().collect();
        let (pods, nodes, elsewhere) = split(&mut objects, listed, &mut warnings);
        if pods.is_empty() && nodes.iter().all(|node| node.pods.is_empty()) {
            return Err(without_pods(elsewhere));
        }
        warn_of_buffers(&objects, &mut warnings);
        warn_of_fargate(&objects, &mut warnings);
        super::zone_ids::warn(&node_pools, &pods, (&setting.region, &setting.zones), &mut warnings);
        let mut question = Self {
            karpenter,
            setup,
            price_list: setting.price_list,
            node_classes: complete_classes(objects.node_classes, &node_pools, &setting.zones),
            node_overlays: objects.node_overlays,
            node_pools,
            namespaces,
            daemons,
            daemon_sets,
            nodes,
            node_claims: objects.node_claims,
            pods,
            drained: Vec::new(),
            disruption_budgets: objects.disruption_budgets,
            storage: Storage::new(objects.volume_claims, objects.volumes, objects.storage_classes),
            warnings,
            region: setting.region,
        };
        question.warn_of_user_data();
        question.warn_of_overlays();
        Ok(question)
    }

    /// The instance types of each NodePool, by the same position, as Karpenter believes them to be.
    pub fn instance_types(&self) -> Vec<Vec<InstanceType>> {
        self.laid_types().0
    }

    fn laid_types(&self) -> (Vec<Vec<InstanceType>>, Vec<(Symbol, OverlayVerdict)>) {
        let settings = self.setup.provider;
        let mut types = types_of_pools(&self.price_list, &self.region, &self.node_classes, &self.node_pools, settings);
        let verdicts = lay_overlays(self.karpenter, &self.node_overlays, &self.node_pools, &mut types);
        (types, verdicts)
    }

    /// Names `userData` that changes what nodes offer.
    fn warn_of_user_data(&mut self) {
        for pool in &self.node_pools {
            let class = self.node_classes.iter().find(|class| class.name == pool.node_class);
            let text = class.and_then(|class| user_data_warning(&self.region, class, pool, self.setup.provider));
            self.warnings.extend(text.map(|text| Warning::from_lint(&lints::USER_DATA, text)));
        }
    }

    /// Says what becomes of NodeOverlays.
    fn warn_of_overlays(&mut self) {
        if self.node_overlays.is_empty() {
            return;
        }
        if self.setup.knows_gates && !self.setup.flags.gates.node_overlay {
            self.node_overlays.clear();
            let text = "NodeOverlays: Karpenter's feature gate NodeOverlay is off; instance types keep their own prices and capacity";
            self.warnings.push(Warning::from_lint(&lints::OVERLAYS_IGNORED, text));
            return;
        }
        let (_, verdicts) = self.laid_types();
        let told = overlay_warnings(self.karpenter, &self.node_overlays, &verdicts);
        self.warnings.extend(told.into_iter().map(|text| Warning::from_lint(&lints::OVERLAY, text)));
        if !verdicts.is_empty() && !self.setup.knows_gates {
            let text = "NodeOverlays count as if Karpenter's feature gate NodeOverlay were on; prices are those that Karpenter \
                        compares with them, and EC2 bills its own";
            self.warnings.push(Warning::from_lint(&lints::OVERLAY_GATE_ASSUMED, text));
        }
    }

    /// The same with these nodes, by position, drained as by `kubectl drain`: their pods look for another place, those with the annotation
    /// `karpenter.sh/do-not-disrupt` too, which is Karpenter's alone.
    #[must_use]
    pub fn draining(mut self, nodes: &[usize]) -> Self {
        for &node in nodes {
            self.nodes[node].node.deleting = true;
        }
        self.pods.retain(|pod| pod.leaves.is_none());
        self.pods.extend(leaving(&self.nodes));
        self.drained = nodes.to_vec();
        self
    }

    /// The same as if Karpenter packed what it runs anew: its nodes are gone, and their pods wait. Pods that belong to their node,
    /// daemons and static ones, are gone with it.
    #[must_use]
    pub fn repacked(mut self) -> Self {
        let (anew, kept) =
            self.nodes.into_iter().partition(|node| node.node.labels.get(well_known::NODEPOOL).is_some());
        (self.nodes, self.node_claims) = (kept, Vec::new());
        self.pods.retain(|pod| pod.leaves.is_none());
        let of_node = |pod: &NamedPod| matches!(pod.spec.owner, OwnerKind::DaemonSet | OwnerKind::Node);
        let nodes: Vec<NodeWithPods> = anew;
        for mut pod in nodes.into_iter().flat_map(|node| node.pods).filter(|pod| !of_node(pod) && !pod.deleting) {
            Arc::make_mut(&mut pod.spec).node_name = None;
            (pod.phase, pod.ready, pod.verdict) = (PodPhase::Pending, false, SchedulerVerdict::Unschedulable);
            self.pods.push(pod);
        }
        self.pods.extend(leaving(&self.nodes));
        self
    }

    /// The position of the pod called `given`: by its name with or without its namespace, or by its workload, whose first
    /// pod is meant.
    ///
    /// # Errors
    /// If none is called so.
    pub fn find(&self, given: &str) -> Result<usize, InputError> {
        let short = |text: &str| text.rsplit('/').next() == Some(given);
        let named = self.pods.iter().position(|pod| pod.full_name() == given || pod.name == given);
        let owned = || self.pods.iter().position(|pod| pod.workload == given || short(&pod.workload));
        if let Some(found) = named.or_else(owned) {
            return Ok(found);
        }
        let bound = |node: &&NodeWithPods| node.pods.iter().any(|pod| pod.full_name() == given || pod.name == given);
        if let Some(node) = self.nodes.iter().find(bound) {
            let name = &node.node.name;
            return Err(InputError::new(format!("pod `{given}` does not wait: it is on node {name}")));
        }
        let full: Vec<String> = self.pods.iter().flat_map(|pod| [pod.full_name(), pod.name.clone()]).collect();
        let error = InputError::new(format!("no pod called `{given}` waits for a node"));
        Err(match nearest(given, full.iter().map(String::as_str)) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help("name a pod as `namespace/name`; the answer without --explain lists them"),
        })
    }
}

/// Who launches nodes: EKS Auto Mode where all NodePools are its own, else the Karpenter that is asked for, to which pools of Auto Mode
/// are nothing.
fn whose(
    karpenter: KarpenterSetup,
    pools: &mut Vec<NodePool>,
    objects: &mut Manifests,
    warnings: &mut Vec<Warning>,
) -> KarpenterSetup {
    if pools.is_empty() || !pools.iter().all(|pool| pool.auto_mode) {
        for pool in pools.iter().filter(|pool| pool.auto_mode) {
            let text = format!("NodePool {} is of EKS Auto Mode and is left out: others are Karpenter's", pool.name);
            warnings.push(Warning::from_lint(&lints::AUTO_MODE_POOL_IGNORED, text));
        }
        pools.retain(|pool| !pool.auto_mode);
        objects.node_classes.retain(|node_class| !node_class.auto_mode);
        return karpenter;
    }
    pools.iter_mut().for_each(auto_mode::complete_pool);
    objects.node_classes.retain(|node_class| node_class.auto_mode);
    for pool in &*pools {
        if !objects.node_classes.iter().any(|node_class| node_class.name == pool.node_class) {
            objects.node_classes.push(auto_mode::node_class(pool.node_class));
        }
    }
    objects
        .daemon_sets
        .iter_mut()
        .filter(|daemon_set| auto_mode::is_part_of_nodes(daemon_set))
        .for_each(auto_mode::keep_off);
    let kubernetes = karpenter.kubernetes;
    KarpenterSetup { kubernetes, ..KarpenterSetup::of_release(KarpenterVersion::AUTO_MODE, "EKS Auto Mode") }
}

/// One pod for each DaemonSet. Since v0.25 the newest of its pods represents it, as admission left it, with the required node
/// affinity of the template; where there is no pod, or before v0.25, the template as its object has it does. A DaemonSet that is in no file is
/// known by its pods.
///
/// Source: Karpenter core v1.13 `pkg/controllers/state/cluster.go`, `UpdateDaemonSet`;
/// `pkg/controllers/provisioning/provisioner.go`, `getDaemonSetPods`.
fn daemons(objects: &Manifests, karpenter: KarpenterVersion) -> Vec<(ObjectName, Arc<PodSpec>)> {
    let live = |set: &DaemonSet| {
        let matches = |pod: &&PodObject| {
            pod.spec.owner == OwnerKind::DaemonSet
                && pod.name.namespace == set.name.namespace
                && pod.controller == Some(set.name.name)
        };
        let newest = objects.pods.iter().filter(matches).max_by_key(|pod| pod.created)?;
        let mut spec = unpinned(&newest.spec);
        spec.node_affinity.required.clone_from(&set.template.node_affinity.required);
        Some(Arc::new(spec))
    };
    let representative = |set: &DaemonSet| {
        let live = if Behaviour::for_release(karpenter).reads_daemon_pods { live(set) } else { None };
        let template = set.template.as_written.as_ref().unwrap_or(&set.template);
        (set.name, live.unwrap_or_else(|| Arc::clone(template)))
    };
    let mut daemons: Vec<(ObjectName, Arc<PodSpec>)> = objects.daemon_sets.iter().map(representative).collect();
    let mut seen: BTreeMap<ObjectName, ()> = objects.daemon_sets.iter().map(|set| (set.name, ())).collect();
    for pod in objects.pods.iter().filter(|pod| pod.spec.owner == OwnerKind::DaemonSet) {
        let set = ObjectName { namespace: pod.name.namespace, name: pod.controller.unwrap_or(pod.name.name) };
        if seen.insert(set, ()).is_none() {
            daemons.push((set, Arc::new(unpinned(&pod.spec))));
        }
    }
    daemons
}

/// A daemon's specification without the term by which the DaemonSet controller pins each pod to its node.
fn unpinned(spec: &PodSpec) -> PodSpec {
    let mut spec = PodSpec { node_name: None, ..spec.clone() };
    let required = &mut spec.node_affinity.required;
    for term in required.iter_mut() {
        term.fields.clear();
    }
    // A term that pinned and nothing else leaves every node open.
    if required.iter().any(|term| term.expressions.is_empty()) {
        required.clear();
    }
    spec
}

/// There is nothing to place: of the pods in the files, so many name a node that is in none.
fn without_pods(elsewhere: usize) -> InputError {
    if elsewhere == 0 {
        return InputError::new("there is no pod in these files").help(
            "add Deployments or StatefulSets, a dump from `kubectl get pods -A -o yaml`, or a .csv of name,replicas,cpu,memory",
        );
    }
    InputError::new(format!(
        "no pod in these files waits for a node: {} its node (`spec.nodeName`), which is in no file",
        counted(elsewhere as u64, "pod names", "pods name")
    ))
    .help("add the nodes: `kubectl get nodes -o yaml`; a pod that names its node asks no scheduler, and nothing is launched for it")
}

/// Pods without a node, the nodes with theirs, and how many pods are on nodes that are in no file.
fn split(
    objects: &mut Manifests,
    listed: Vec<NamedPod>,
    warnings: &mut Vec<Warning>,
) -> (Vec<NamedPod>, Vec<NodeWithPods>, usize) {
    let mut nodes: Vec<NodeWithPods> =
        objects.nodes.drain(..).map(|node| with_limits(node, &objects.attach_limits)).collect();
    let places: BTreeMap<Symbol, usize> =
        nodes.iter().enumerate().map(|(place, node)| (Symbol::new(&node.node.name), place)).collect();
    let mut deployed: Vec<NamedPod> =
        objects.deployments.iter().flat_map(|deployment| missing_pods(deployment, &objects.pods)).collect();
    let storage_is_known = !(objects.volume_claims.is_empty() && objects.storage_classes.is_empty());
    for set in &objects.stateful_sets {
        let missing = missing_ordinals(set, &objects.pods);
        for pod in missing.iter().filter(|_| storage_is_known) {
            make_claims(pod, &mut objects.volume_claims);
        }
        deployed.extend(missing);
    }
    let stated = objects.pods.drain(..).filter(|pod| !pod.phase.is_terminal()).map(named);
    let (mut waiting, mut elsewhere, mut with_volumes) = (Vec::new(), 0_usize, 0_usize);
    for mut pod in stated.chain(deployed).chain(listed) {
        let place = pod.spec.node_name.map(|node| places.get(&node).copied());
        if !storage_is_known && !pod.spec.volumes.is_empty() {
            with_volumes += usize::from(place.is_none());
            Arc::make_mut(&mut pod.spec).volumes.clear();
        }
        match place {
            Some(Some(place)) => nodes[place].pods.push(pod),
            Some(None) => elsewhere += 1,
            // The DaemonSet controller and the kubelet find these a place themselves.
            None if matches!(pod.spec.owner, OwnerKind::DaemonSet | OwnerKind::Node) => {}
            None => waiting.push(pod),
        }
    }
    if elsewhere > 0 {
        warnings.push(
            Warning::from_lint(
                &lints::NODES_MISSING,
                format!("{} on nodes that are in no file: left out", counted(elsewhere as u64, "pod runs", "pods run")),
            )
            .help("add the nodes: `kubectl get nodes -o yaml`"),
        );
    }
    if with_volumes > 0 {
        warnings.push(
            Warning::from_lint(
                &lints::VOLUMES_MISSING,
                format!(
                    "persistent volumes bind no pod to a zone: {} some, and no claim is in these files",
                    counted(with_volumes as u64, "waiting pod has", "waiting pods have")
                ),
            )
            .help("add them: `kubectl get pvc,pv,storageclasses,csinodes -A -o yaml`"),
        );
    }
    waiting.extend(leaving(&nodes));
    (waiting, nodes, elsewhere)
}

/// The pods of nodes that are being deleted, which look for another place.
fn leaving(nodes: &[NodeWithPods]) -> Vec<NamedPod> {
    let mut leaving = Vec::new();
    for (place, node) in nodes.iter().enumerate().filter(|(_, node)| node.node.deleting) {
        let pods = node.pods.iter().enumerate();
        leaving.extend(pods.map(|(position, pod)| NamedPod { leaves: Some((place, position)), ..pod.clone() }));
    }
    leaving
}

fn with_limits(node: NodeObject, limits: &[AttachLimits]) -> NodeWithPods {
    let limit = limits.iter().find(|limit| limit.node.as_str() == node.name);
    let volume_limits = limit.map_or(Vec::new(), |limit| limit.drivers.clone());
    NodeWithPods { node: completed(node), pods: Vec::new(), volume_limits }
}

/// A node under present labels, and with the taint of a cordoned one.
fn completed(mut node: NodeObject) -> NodeObject {
    if let Some(pool) = node.labels.get(well_known::PROVISIONER_NAME)
        && node.labels.get(well_known::NODEPOOL).is_none()
    {
        node.labels.set(well_known::NODEPOOL, pool);
    }
    let cordon =
        Taint { key: well_known::TAINT_UNSCHEDULABLE, value: well_known::EMPTY, effect: TaintEffect::NoSchedule };
    if node.unschedulable && !node.taints.iter().any(|taint| taint.key == cordon.key) {
        node.taints.push(cordon);
    }
    node
}

fn named(pod: PodObject) -> NamedPod {
    let (namespace, name) = (pod.name.namespace, pod.name.name.as_str().to_owned());
    let workload = match (pod.spec.owner, pod.controller) {
        (OwnerKind::ReplicaSet, Some(set)) => {
            let hash = [TEMPLATE_HASH, ROLLOUT_HASH].iter().find_map(|key| pod.spec.labels.get(Symbol::new(key)));
            let made = deployment_of_set(set.as_str(), hash.map(Symbol::as_str));
            format!("{namespace}/{}", made.unwrap_or(set.as_str()))
        }
        (_, Some(controller)) => format!("{namespace}/{controller}"),
        (_, None) => format!("{namespace}/{name}"),
    };
    NamedPod {
        namespace,
        name,
        workload,
        spec: Arc::new(pod.spec),
        created: pod.created.unwrap_or(LAST),
        deleting: pod.deleting,
        gone_by: pod.gone_by,
        phase: pod.phase,
        ready: pod.ready,
        verdict: pod.verdict,
        leaves: None,
    }
}

/// The replicas of a Deployment that are not among `pods`.
fn missing_pods(deployment: &Deployment, pods: &[PodObject]) -> Vec<NamedPod> {
    let ObjectName { namespace, name } = deployment.name;
    let matches = |pod: &&PodObject| {
        pod.name.namespace == namespace
            && pod.spec.owner == OwnerKind::ReplicaSet
            && !pod.phase.is_terminal()
            && deployment.selector.matches(&pod.spec.labels)
    };
    let exist = u32::try_from(pods.iter().filter(matches).count()).unwrap_or(u32::MAX);
    let wanted = deployment.replicas.unwrap_or(1);
    NamedPod::replicas(namespace, name.as_str(), wanted.saturating_sub(exist), &deployment.template)
}

/// The pods of a StatefulSet that are not among `pods`.
fn missing_ordinals(set: &StatefulSet, pods: &[PodObject]) -> Vec<NamedPod> {
    let ObjectName { namespace, name } = set.name;
    let exists = |pod: &PodObject, text: &str| {
        pod.name.namespace == namespace && pod.name.name.as_str() == text && !pod.phase.is_terminal()
    };
    let ordinals = (0..set.replicas.unwrap_or(1)).map(|place| set.first_ordinal.saturating_add(place));
    ordinals
        .map(|ordinal| format!("{name}-{ordinal}"))
        .filter(|text| !pods.iter().any(|pod| exists(pod, text)))
        .map(|text| waiting_pod(namespace, format!("{namespace}/{name}"), text, &set.template))
        .collect()
}

/// The claims that a StatefulSet has made for a pod before anybody looks for its place.
fn make_claims(pod: &NamedPod, claims: &mut Vec<PersistentVolumeClaim>) {
    let templates = pod.spec.volumes.iter().filter(|volume| matches!(volume.source, ClaimSource::Template(_)));
    for made in templates.filter_map(|volume| PersistentVolumeClaim::made_for(volume, pod.namespace, &pod.name)) {
        if !claims.iter().any(|claim| claim.namespace == made.namespace && claim.name == made.name) {
            claims.push(made);
        }
    }
}

/// A pod that nothing has looked at yet.
fn waiting_pod(namespace: Symbol, workload: String, name: String, spec: &Arc<PodSpec>) -> NamedPod {
    NamedPod {
        namespace,
        name,
        workload,
        spec: Arc::clone(spec),
        created: LAST,
        deleting: false,
        gone_by: None,
        phase: PodPhase::Pending,
        ready: false,
        verdict: SchedulerVerdict::NotAsked,
        leaves: None,
    }
}
