//! What a pod's volumes ask of a node: where they can be reached, and how many more it can attach.
//!
//! What must not live here: binding claims, attaching volumes.

use super::node::NodeEntry;
use super::plugins::{Reason, Refusal, Rejection};
use super::shape::PodShape;
use nodecast_model::domain::labels::normalized_key;
use nodecast_model::domain::pod::{ClaimSource, NodeSelectorTerm};
use nodecast_model::domain::volumes::Storage;
use nodecast_model::domain::{PodSpec, Symbol};

/// Driver and name of a claim.
type DriverClaim = (Symbol, Symbol);

/// What the volumes of a pod ask of a node. Pods of one template that ask the same are alike to the scheduler.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct PodVolumes {
    /// The alternatives of each volume that is bound and not everywhere: one of each has to hold.
    pub bound: Vec<Vec<NodeSelectorTerm>>,
    /// The same of the classes of claims that wait for their first pod.
    pub unbound: Vec<Vec<NodeSelectorTerm>>,
    /// Claims that no other pod uses: driver and how many.
    pub own: Vec<(Symbol, u32)>,
    /// Claims that other pods may use: driver and name.
    pub shared: Vec<DriverClaim>,
    /// Claims that pods name and one pod of the cluster may use at a time. Those of a StatefulSet's template are their pod's alone.
    pub one_pod: Vec<Symbol>,
    /// A claim that the pod names and that is not there, if there is one: no node takes the pod before it is.
    pub missing: Option<Symbol>,
}

impl PodVolumes {
    /// What the volumes of a pod called `pod` ask for, as the claims are now. Of claims that do not exist only those count that the pod
    /// names: others are made with it or before it.
    pub fn new(storage: &Storage, namespace: Symbol, pod: &str, spec: &PodSpec) -> Self {
        let mut all = Self::default();
        for volume in &spec.volumes {
            let Some(claim) = storage.claim(namespace, &volume.claim_name(pod)) else {
                if volume.source == ClaimSource::Named && all.missing.is_none() {
                    all.missing = Some(volume.claim);
                }
                continue;
            };
            if claim.one_pod && matches!(volume.source, ClaimSource::Named) {
                all.one_pod.push(claim.name);
            }
            let driver = match storage.bound(claim) {
                Some(bound) => {
                    all.bound.extend(places(&bound.node_affinity));
                    bound.driver
                }
                None => storage.class_of(claim).map(|class| {
                    all.unbound.extend(places(&class.allowed_topologies));
                    class.provisioner
                }),
            };
            match (driver, volume.source) {
                (None, _) => {}
                (Some(driver), ClaimSource::Named) => all.shared.push((driver, claim.name)),
                (Some(driver), ClaimSource::Ephemeral(_) | ClaimSource::Template(_)) => {
                    match all.own.iter_mut().find(|pair| pair.0 == driver) {
                        Some(pair) => pair.1 += 1,
                        None => all.own.push((driver, 1)),
                    }
                }
            }
        }
        all.shared.sort_unstable();
        all.shared.dedup();
        all.one_pod.sort_unstable();
        all.one_pod.dedup();
        all
    }

    /// Whether the pod has no volume of a driver.
    pub const fn is_empty(&self) -> bool {
        self.own.is_empty() && self.shared.is_empty() && self.bound.is_empty() && self.unbound.is_empty()
    }
}

/// How many claims that one pod of the cluster may use at a time pods of two shapes have in common.
pub(super) fn claims_in_common(one: &PodShape, other: &PodShape) -> usize {
    if one.namespace != other.namespace {
        return 0;
    }
    one.volumes.one_pod.iter().filter(|claim| other.volumes.one_pod.contains(claim)).count()
}

/// Whether the claims that the pod names are there.
///
/// Source: Kubernetes 1.36 `plugins/volumebinding/volume_binding.go`, `PreFilter`.
pub(super) fn check_claims(shape: &PodShape) -> Result<(), Refusal> {
    shape.volumes.missing.map_or(Ok(()), |claim| Err(Refusal::unresolvable(Reason::ClaimMissing(claim))))
}

/// The alternatives under the keys that nodes carry; none if the volume is everywhere.
fn places(terms: &[NodeSelectorTerm]) -> Option<Vec<NodeSelectorTerm>> {
    let mut terms = terms.to_vec();
    terms.iter_mut().flat_map(|term| &mut term.expressions).for_each(|e| e.key = normalized_key(e.key));
    (!terms.is_empty()).then_some(terms)
}

/// Whether the node can attach what the pod would add.
///
/// Deviation: a volume counts while a pod on the node uses it, not until it is detached.
///
/// Source: Kubernetes 1.36 `plugins/nodevolumelimits/csi.go`, `Filter`; KEP 5030 for drivers that a node lacks. Assumption: the words of that
/// refusal, and that evictions do not help.
pub(super) fn check_limits(shape: &PodShape, entry: &NodeEntry) -> Result<(), Refusal> {
    let volumes = &shape.volumes;
    let uses = |driver: &Symbol| {
        volumes.own.iter().any(|volume| volume.0 == *driver) || volumes.shared.iter().any(|shared| shared.0 == *driver)
    };
    if entry.node.missing_drivers.iter().any(uses) {
        return Err(Refusal::unresolvable(Reason::DriverMissing));
    }
    let exceeded = |&(driver, limit): &(Symbol, u32)| {
        let volume = shape.volumes.own.iter().find(|volume| volume.0 == driver).map_or(0, |volume| volume.1);
        let of_driver = shape.volumes.shared.iter().filter(|shared| shared.0 == driver);
        let new = of_driver.filter(|shared| !entry.attached.holds(shape.namespace, **shared)).count();
        let more = volume as usize + new;
        more > 0 && entry.attached.count(driver) + more > limit as usize
    };
    if entry.node.volume_limits.iter().any(exceeded) {
        return Err(Refusal::resolvable(Reason::VolumeCount));
    }
    Ok(())
}

/// Whether the pod's volumes can be reached from the node.
///
/// Source: Kubernetes 1.36 `plugins/volumebinding/volume_binding.go`, `Filter`, and `binder.go`, `FindPodVolumes`.
pub(super) fn check_places(shape: &PodShape, entry: &NodeEntry) -> Result<(), Rejection> {
    let elsewhere = |all: &[Vec<NodeSelectorTerm>]| {
        let here =
            |terms: &Vec<NodeSelectorTerm>| terms.iter().any(|term| term.accepts(&entry.node.labels, &entry.node.name));
        !all.iter().all(here)
    };
    let mut reasons = Vec::new();
    if elsewhere(&shape.volumes.unbound) {
        reasons.push(Reason::VolumeBinding);
    }
    if elsewhere(&shape.volumes.bound) {
        reasons.push(Reason::VolumeNodeAffinity);
    }
    if reasons.is_empty() { Ok(()) } else { Err(Rejection { reasons, resolvable_by_eviction: false }) }
}

/// The volumes that the pods of a node use.
#[derive(Clone, Debug, Default)]
pub(super) struct Attached {
    own: Vec<(Symbol, u32)>,
    /// Namespace and claim, with how many pods use it.
    shared: Vec<((Symbol, DriverClaim), u32)>,
}

impl Attached {
    fn count(&self, driver: Symbol) -> usize {
        let number: u32 = self.own.iter().filter(|pair| pair.0 == driver).map(|pair| pair.1).sum();
        number as usize + self.shared.iter().filter(|shared| shared.0.1.0 == driver).count()
    }

    fn holds(&self, namespace: Symbol, claim: DriverClaim) -> bool {
        self.shared.iter().any(|shared| shared.0 == (namespace, claim))
    }

    /// Adds what one pod uses, or takes it away.
    pub(super) fn change(&mut self, shape: &PodShape, added: bool) {
        for &(driver, count) in &shape.volumes.own {
            change(&mut self.own, driver, count, added);
        }
        for &claim in &shape.volumes.shared {
            change(&mut self.shared, (shape.namespace, claim), 1, added);
        }
    }
}

fn change<K: PartialEq>(counts: &mut Vec<(K, u32)>, key: K, by: u32, added: bool) {
    match counts.iter().position(|entry| entry.0 == key) {
        Some(at) if added => counts[at].1 += by,
        Some(at) if counts[at].1 <= by => drop(counts.swap_remove(at)),
        Some(at) => counts[at].1 -= by,
        None if added => counts.push((key, by)),
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::PodVolumes;
    use crate::{
        ClusterView, PendingPod, Placement, Predicates, Scheduler, SchedulerConfig, SchedulerNode, ShapeId, TieBreak,
    };
    use nodecast_model::domain::pod::{NodeSelectorExpression, NodeSelectorTerm};
    use nodecast_model::domain::requirements::Operator;
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{KubernetesVersion, Labels, NodeId, PodId, PodSpec, Symbol};

    fn in_zone(zone: &str) -> Vec<NodeSelectorTerm> {
        let values = vec![Symbol::new(zone)];
        let expressions = vec![NodeSelectorExpression { key: well_known::ZONE, operator: Operator::In, values }];
        vec![NodeSelectorTerm { expressions, fields: Vec::new() }]
    }

    fn view(zones: &[&str], limit: u32) -> ClusterView {
        let mut view = ClusterView::default();
        for (id, zone) in zones.iter().enumerate() {
            let node = SchedulerNode {
                labels: Labels::new().with(well_known::ZONE, *zone),
                allocatable: [(nodecast_model::domain::ResourceName::PODS, 110)].into_iter().collect(),
                volume_limits: vec![(well_known::EBS_DRIVER, limit)],
                ..SchedulerNode::default()
            };
            view.add_node(NodeId::from_index(id), node);
        }
        view
    }

    fn shape(view: &mut ClusterView, volumes: PodVolumes) -> ShapeId {
        view.shape_with_volumes(well_known::DEFAULT, &Arc::new(PodSpec::default()), None, volumes)
    }

    fn place(view: &ClusterView, shape: ShapeId) -> Result<NodeId, String> {
        let mut scheduler = Scheduler::new(SchedulerConfig::default());
        let pod = PendingPod { id: PodId(90), shape, pinned_to: None };
        match scheduler.schedule(view, &pod, TieBreak::of_version(KubernetesVersion::default(), 0)) {
            Placement::Node(chosen) => Ok(chosen.node),
            Placement::Unschedulable(why) => Err(why.message(KubernetesVersion::default())),
        }
    }

    #[test]
    fn bound_volume_keeps_pod_in_zone() {
        let mut view = view(&["a", "b"], 9);
        let there = shape(&mut view, PodVolumes { bound: vec![in_zone("b")], ..PodVolumes::default() });
        assert_eq!(place(&view, there), Ok(NodeId(1)));
        let nowhere = shape(&mut view, PodVolumes { bound: vec![in_zone("c")], ..PodVolumes::default() });
        let refusal = "0/2 nodes are available: 2 node(s) had volume node affinity conflict.";
        assert_eq!(place(&view, nowhere), Err(refusal.to_owned()));
        let unbound = shape(&mut view, PodVolumes { unbound: vec![in_zone("c")], ..PodVolumes::default() });
        let refusal = "0/2 nodes are available: 2 node(s) didn't find available persistent volumes to bind.";
        assert_eq!(place(&view, unbound), Err(refusal.to_owned()));
    }

    #[test]
    fn pod_with_missing_claim_is_unschedulable() {
        let mut view = view(&["a", "b"], 9);
        let waiting = shape(&mut view, PodVolumes { missing: Some(Symbol::new("data")), ..PodVolumes::default() });
        let refusal = "0/2 nodes are available: persistentvolumeclaim \"data\" not found.";
        assert_eq!(place(&view, waiting), Err(refusal.to_owned()));
        let mut predicates = Predicates::default();
        assert!([NodeId(0), NodeId(1)].iter().all(|&node| !predicates.passes(&view, waiting, node)));
    }

    #[test]
    fn read_write_once_pod_claim_is_exclusive() {
        let mut view = view(&["a", "b"], 9);
        let claim = || PodVolumes { one_pod: vec![Symbol::new("data")], ..PodVolumes::default() };
        let this_shape = shape(&mut view, claim());
        let urgent = Arc::new(PodSpec { priority: 9, ..PodSpec::default() });
        let urgent = view.shape_with_volumes(well_known::DEFAULT, &urgent, None, claim());
        let elsewhere = view.shape_with_volumes(Symbol::new("other"), &Arc::new(PodSpec::default()), None, claim());
        assert!(place(&view, this_shape).is_ok());
        view.place(NodeId(1), PodId(0), this_shape);
        let refusal = "0/2 nodes are available: 2 node has pod using PersistentVolumeClaim with the same name and \
            ReadWriteOncePod access mode.";
        assert_eq!(place(&view, this_shape), Err(refusal.to_owned()));
        let bound = shape(&mut view, PodVolumes { bound: vec![in_zone("b")], ..claim() });
        assert_eq!(place(&view, bound), Err(refusal.to_owned()), "that goes before where the volume is");
        assert!(place(&view, elsewhere).is_ok(), "a claim of another namespace");
        let mut predicates = Predicates::default();
        assert!([NodeId(0), NodeId(1)].iter().all(|&node| !predicates.passes(&view, this_shape, node)));
        let mut scheduler = Scheduler::new(SchedulerConfig::default());
        let pod = PendingPod { id: PodId(91), shape: urgent, pinned_to: None };
        let tie = TieBreak::of_version(KubernetesVersion::default(), 0);
        assert!(matches!(scheduler.schedule(&view, &pod, tie), Placement::Unschedulable(_)));
        let found = scheduler.preempt(&view, &pod, &[], 0).unwrap();
        assert_eq!((found.node, found.victims), (NodeId(1), vec![PodId(0)]));
        view.forget_pod(PodId(0));
        assert!(place(&view, this_shape).is_ok() && predicates.passes(&view, this_shape, NodeId(0)));
    }

    #[test]
    fn missing_driver_refuses_pods_with_its_volumes() {
        let mut view = view(&["a"], 2);
        let (other, ebs) = (Symbol::new("efs.csi.aws.com"), well_known::EBS_DRIVER);
        let own = |driver| PodVolumes { own: vec![(driver, 1)], ..PodVolumes::default() };
        let shared = PodVolumes { shared: vec![(ebs, Symbol::new("data"))], ..PodVolumes::default() };
        let [efs, ebs_own, shared] = [own(other), own(ebs), shared].map(|volumes| shape(&mut view, volumes));
        let node = SchedulerNode {
            allocatable: [(nodecast_model::domain::ResourceName::PODS, 110)].into_iter().collect(),
            missing_drivers: vec![ebs],
            ..SchedulerNode::default()
        };
        view.add_node(NodeId(0), node.clone());
        let refusal = "0/1 nodes are available: 1 node(s) did not have the CSI driver of a volume.";
        assert_eq!([ebs_own, shared].map(|shape| place(&view, shape)), [(); 2].map(|()| Err(refusal.to_owned())));
        assert_eq!(place(&view, efs), Ok(NodeId(0)));
        view.add_node(NodeId(0), SchedulerNode { missing_drivers: Vec::new(), ..node });
        assert_eq!(place(&view, ebs_own), Ok(NodeId(0)));
    }

    #[test]
    fn node_volume_limit_counts_shared_volume_once() {
        let mut view = view(&["a"], 2);
        let pod_volumes = PodVolumes { own: vec![(well_known::EBS_DRIVER, 1)], ..PodVolumes::default() };
        let shared = (well_known::EBS_DRIVER, Symbol::new("shared"));
        let shared = PodVolumes { shared: vec![shared], ..PodVolumes::default() };
        let (shape, shared) = (shape(&mut view, pod_volumes), shape(&mut view, shared));
        view.place(NodeId(0), PodId(0), shape);
        view.place(NodeId(0), PodId(1), shared);
        assert_eq!(place(&view, shared), Ok(NodeId(0)));
        let refusal = "0/1 nodes are available: 1 node(s) exceed max volume count.";
        assert_eq!(place(&view, shape), Err(refusal.to_owned()));
        view.forget_pod(PodId(1));
        assert_eq!(place(&view, shape), Ok(NodeId(0)));
    }
}
