//! What is remembered of nodes from one reading of a cluster to the next.
//!
//! Between two questions of the disruption loop most nodes keep their pods: what these request together and which of them
//! count in topologies is worked out anew only for a node whose list of pods has changed. Nodes of one type and zone differ
//! in nothing but the host name, which is in no set of requirements.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::input::{BoundPod, NodeView};
use super::requirement_table::{RequirementTable, SetId, Undefined};
use super::templates::strict_requirements;
use super::topology::{TaintsId, names_host};
use crate::domain::pod::{HostPort, OwnerKind};
use crate::domain::requirements::{Requirement, Requirements};
use crate::domain::symbol::well_known;
use crate::domain::taints::{Taint, first_untolerated};
use crate::domain::{Labels, PodSpec, Resources, Symbol};

/// How many specifications' requests are remembered before all are forgotten: pods that all differ would let them grow
/// without end.
const KEPT_SPECS_MAX: usize = 20_000;

/// What is remembered.
#[derive(Default)]
pub(super) struct NodeMemo {
    /// By name.
    nodes: FxHashMap<String, KeptNode>,
    /// What pods request by the address of their specification, which is kept alive.
    requests: FxHashMap<*const PodSpec, (Arc<PodSpec>, Resources)>,
    /// Requirements by labels, the host name left out.
    label_sets: FxHashMap<Vec<(Symbol, Symbol)>, SetId>,
    /// What the daemons want, once compiled.
    daemons: Option<Vec<Daemon>>,
    /// What the daemons of a node request in all, by its requirements and taints; unless one of them asks for a host.
    expected: FxHashMap<(SetId, TaintsId), Resources>,
}

/// A node as it was last read.
#[derive(Clone)]
pub(super) struct KeptNode {
    pub(super) labels: Arc<Labels>,
    /// The labels as requirements.
    pub(super) set: SetId,
    pub(super) fixed: Arc<Fixed>,
    pub(super) pods: Arc<PodsOfNode>,
}

/// What no question changes about a node.
pub(super) struct Fixed {
    pub(super) host_name: String,
    pub(super) volume_limits: Vec<(Symbol, u32)>,
}

/// The name under which a node is a domain of the host name.
pub(super) fn host_name<'v>(view: &NodeView<'v>) -> &'v str {
    match view.labels.get(well_known::HOSTNAME) {
        Some(name) => name.as_str(),
        None => view.name,
    }
}

/// What the pods of a node come to.
#[derive(Default)]
pub(super) struct PodsOfNode {
    /// In the order of the node's own list.
    list: Vec<KnownPod>,
    /// What they request together.
    pub(super) requests: Resources,
    /// The share of the daemons.
    pub(super) daemon_requests: Resources,
    /// Ports that they open on the host.
    pub(super) ports: Vec<HostPort>,
    /// The places in the list of those that have volumes.
    pub(super) with_volumes: Vec<usize>,
    /// Those that count in topologies, by namespace and specification, in the order in which each is first met.
    pub(super) classes: Vec<CountedPods>,
}

/// A pod of a node.
struct KnownPod {
    namespace: Symbol,
    spec: Arc<PodSpec>,
    /// Its place in [`PodsOfNode::classes`], if it counts in topologies.
    class: Option<u32>,
}

/// Pods of one specification on one node.
pub(super) struct CountedPods {
    pub(super) namespace: Symbol,
    pub(super) spec: Arc<PodSpec>,
    pub(super) pods: i32,
}

impl KnownPod {
    fn is(&self, pod: &BoundPod<'_>) -> bool {
        Arc::ptr_eq(&self.spec, pod.spec)
            && self.namespace == pod.namespace
            && self.class.is_some() == pod.counts_in_topology
    }
}

impl PodsOfNode {
    /// For the pod at a position in the node's list the place of its class, if it counts in topologies.
    pub(super) fn class(&self, position: usize) -> Option<usize> {
        self.list[position].class.map(|class| class as usize)
    }

    fn are(&self, pods: &[BoundPod<'_>]) -> bool {
        self.list.len() == pods.len() && self.list.iter().zip(pods).all(|(known, pod)| known.is(pod))
    }

    fn add(&mut self, pod: &BoundPod<'_>, requests: &Resources) {
        self.requests.add(requests);
        if pod.spec.owner == OwnerKind::DaemonSet {
            self.daemon_requests.add(requests);
        }
        self.ports.extend(pod.spec.host_ports());
        if !pod.spec.volumes.is_empty() {
            self.with_volumes.push(self.list.len());
        }
        let class = pod.counts_in_topology.then(|| self.count(pod) as u32);
        self.list.push(KnownPod { namespace: pod.namespace, spec: Arc::clone(pod.spec), class });
    }

    fn count(&mut self, pod: &BoundPod<'_>) -> usize {
        let same = |own: &CountedPods| Arc::ptr_eq(&own.spec, pod.spec) && own.namespace == pod.namespace;
        if let Some(known) = self.classes.iter().position(same) {
            self.classes[known].pods += 1;
            return known;
        }
        self.classes.push(CountedPods { namespace: pod.namespace, spec: Arc::clone(pod.spec), pods: 1 });
        self.classes.len() - 1
    }
}

/// What a daemon wants of its node.
struct Daemon {
    wanted: SetId,
    host: Option<Requirement>,
    requests: Resources,
}

impl NodeMemo {
    /// The node as it is now.
    pub(super) fn node(&mut self, view: &NodeView<'_>, table: &mut RequirementTable) -> KeptNode {
        let known = self.nodes.get(view.name);
        let same = |known: &&KeptNode| *known.labels == *view.labels && known.fixed.volume_limits == view.volume_limits;
        let same_labels = known.filter(same);
        let same_pods = known.filter(|known| known.pods.are(view.pods));
        if let (Some(known), Some(_)) = (same_labels, same_pods) {
            return known.clone();
        }
        let (kept, pods) = (same_labels.cloned(), same_pods.map(|known| Arc::clone(&known.pods)));
        let pods = pods.unwrap_or_else(|| Arc::new(self.pods_of(view.pods)));
        let now = match kept {
            Some(kept) => KeptNode { pods, ..kept },
            None => KeptNode {
                labels: Arc::new(view.labels.clone()),
                set: self.set_of(view.labels, table),
                fixed: Arc::new(Fixed {
                    host_name: host_name(view).to_owned(),
                    volume_limits: view.volume_limits.to_vec(),
                }),
                pods,
            },
        };
        self.nodes.insert(view.name.to_owned(), now.clone());
        now
    }

    /// Forgets nodes that are not among `views`, once they are the most.
    pub(super) fn forget_others(&mut self, views: &[NodeView<'_>]) {
        if self.nodes.len() > 2 * views.len() + 16 {
            let mut nodes = std::mem::take(&mut self.nodes);
            self.nodes = views.iter().filter_map(|view| nodes.remove_entry(view.name)).collect();
        }
    }

    fn pods_of(&mut self, pods: &[BoundPod<'_>]) -> PodsOfNode {
        if self.requests.len() > KEPT_SPECS_MAX {
            self.requests.clear();
        }
        let mut own = PodsOfNode::default();
        for pod in pods {
            let known = self.requests.entry(Arc::as_ptr(pod.spec));
            let known = known.or_insert_with(|| (Arc::clone(pod.spec), pod.spec.requests()));
            own.add(pod, &known.1);
        }
        own
    }

    fn set_of(&mut self, labels: &Labels, table: &mut RequirementTable) -> SetId {
        let shared = labels.iter().filter(|label| label.0 != well_known::HOSTNAME).collect();
        *self.label_sets.entry(shared).or_insert_with(|| table.intern(&Requirements::from_labels(labels)))
    }

    /// What the daemons request that belong on a node: taints and labels are taken strictly, and only the first required
    /// term counts.
    pub(super) fn expected(
        &mut self,
        host: &str,
        (set, id, taints): (SetId, TaintsId, &[Taint]),
        specs: &[PodSpec],
        table: &mut RequirementTable,
    ) -> Resources {
        let Self { daemons, expected, .. } = self;
        if let Some(known) = expected.get(&(set, id)) {
            return known.clone();
        }
        let daemons = daemons.get_or_insert_with(|| {
            let compile = |spec: &PodSpec| {
                let wanted = strict_requirements(spec);
                let host = wanted.get(well_known::HOSTNAME).cloned();
                Daemon { wanted: table.intern(&wanted), host, requests: spec.requests() }
            };
            specs.iter().map(compile).collect()
        });
        let mut sum = Resources::new();
        for (daemon, spec) in daemons.iter().zip(specs) {
            if first_untolerated(taints, &spec.tolerations).is_none()
                && daemon.host.as_ref().is_none_or(|wanted| names_host(wanted, host))
                && table.conflict(set, daemon.wanted, Undefined::Refused).is_none()
            {
                sum.add(&daemon.requests);
            }
        }
        if daemons.iter().all(|daemon| daemon.host.is_none()) {
            expected.insert((set, id), sum.clone());
        }
        sum
    }
}
