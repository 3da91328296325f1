//! What is remembered of nodes from one reading of a cluster to the next.
//!
//! Between two questions of the disruption loop most nodes keep their pods: what these request together and which of them
//! count in topologies is worked out anew only for a node whose list of pods has changed. Nodes of one type and zone differ
//! in nothing but the host name, which is in no set of requirements.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::input::{BoundPod, NodeView};
use super::node_pods::NodePods;
use super::requirement_table::{RequirementTable, SetId, Undefined};
use super::templates::strict_requirements;
use super::topology::{Rules, SpecNumber, TaintsId, names_host};
use nodecast_model::domain::requirements::{Requirement, Requirements};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::taints::{Taint, first_untolerated};
use nodecast_model::domain::{Labels, PodSpec, Resources, Symbol};

/// How many specifications' requests are remembered before all are forgotten: pods that all differ would let them grow
/// without end.
const KEPT_SPECS_MAX: usize = 20_000;

/// How far a node is looked for beyond its place: so many may have gone at once without those behind them being read anew.
const AHEAD: usize = 16;

/// What is remembered.
#[derive(Default)]
pub(super) struct NodeMemo {
    /// In the order of the last reading, which is mostly that of the next.
    pub(super) nodes: Vec<CachedNode>,
    pub(super) facts: KnownFacts,
}

/// What is remembered beside the nodes themselves.
#[derive(Default)]
pub(super) struct KnownFacts {
    /// What pods request by the address of their specification, which is kept alive.
    requests: KnownRequests,
    /// Requirements by labels, the host name left out.
    label_sets: FxHashMap<Vec<(Symbol, Symbol)>, SetId>,
    /// What the daemons want, once compiled.
    daemons: Option<Vec<Daemon>>,
    /// What the daemons of a node request in all, by its requirements and taints; unless one of them asks for a host.
    expected: FxHashMap<(SetId, TaintsId), Resources>,
}

type KnownRequests = FxHashMap<*const PodSpec, (Arc<PodSpec>, Arc<Resources>)>;

/// A node as it was last read.
pub(super) struct CachedNode {
    name: String,
    pub(super) fixed: Arc<Fixed>,
    pub(super) pods: NodePods,
    /// The numbers of the specifications that they sum up, once given.
    pub(super) specs: Option<Arc<[SpecNumber]>>,
    /// What they leave of it, if that was worked out.
    pub(super) room: Option<FreeCapacity>,
}

/// What the pods and the daemons of a node leave.
pub(super) struct FreeCapacity {
    /// Of so much.
    pub(super) allocatable: Resources,
    /// With these taints, which decide on the daemons.
    pub(super) taints: TaintsId,
    /// Room left, after the daemons that are still to come.
    pub(super) left: SmallVec<[i64; 6]>,
    /// Whether some resource is overdrawn, so that nothing fits any more.
    pub(super) overdrawn: bool,
}

/// What no question changes about a node.
pub(super) struct Fixed {
    pub(super) labels: Labels,
    /// The labels as requirements.
    pub(super) set: SetId,
    /// The NodePool that they name.
    pub(super) pool: Option<Symbol>,
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

/// What a daemon wants of its node.
struct Daemon {
    wanted: SetId,
    host: Option<Requirement>,
    requests: Resources,
}

fn pods_of(pods: &[BoundPod<'_>], known: &mut KnownRequests) -> NodePods {
    if known.len() > KEPT_SPECS_MAX {
        known.clear();
    }
    let requests: Vec<Arc<Resources>> = pods
        .iter()
        .map(|pod| {
            let item = known.entry(Arc::as_ptr(pod.spec));
            let item = item.or_insert_with(|| (Arc::clone(pod.spec), Arc::new(pod.spec.requests())));
            Arc::clone(&item.1)
        })
        .collect();
    NodePods::sum(pods.iter().copied().zip(requests.iter().map(Arc::as_ref)))
}

impl NodeMemo {
    /// The node that stands at a position, as it is now, and what else is known.
    pub(super) fn node(
        &mut self,
        position: usize,
        view: &NodeView<'_>,
        table: &mut RequirementTable,
    ) -> (&mut CachedNode, &mut KnownFacts) {
        let Self { nodes, facts } = self;
        let rest = nodes.get(position..).unwrap_or_default();
        match rest.iter().take(AHEAD).position(|item| item.name == view.name) {
            Some(ahead) => {
                nodes.drain(position..position + ahead);
                facts.renew(&mut nodes[position], view, table);
            }
            None => nodes.insert(position, facts.new_node(view, table)),
        }
        (&mut nodes[position], facts)
    }
}

impl CachedNode {
    /// The numbers of the specifications of its pods, in the order in which these are summed up.
    pub(super) fn numbered(&mut self, rules: &mut Rules) -> Arc<[SpecNumber]> {
        let classes = &self.pods.sums().classes;
        let number = || classes.iter().map(|class| rules.number(class.namespace, &class.spec)).collect();
        Arc::clone(self.specs.get_or_insert_with(number))
    }
}

impl KnownFacts {
    fn new_node(&mut self, view: &NodeView<'_>, table: &mut RequirementTable) -> CachedNode {
        let (fixed, pods) = (self.fixed(view, table), self.pods(view));
        CachedNode { name: view.name.to_owned(), fixed: Arc::new(fixed), pods, specs: None, room: None }
    }

    /// Takes over what has changed about a node.
    fn renew(&mut self, known: &mut CachedNode, view: &NodeView<'_>, table: &mut RequirementTable) {
        let same_pods = match view.summed {
            Some(summed) => known.pods.is(summed),
            None => known.pods.sums().are(view.pods),
        };
        if !same_pods {
            (known.pods, known.specs, known.room) = (self.pods(view), None, None);
        }
        if known.fixed.labels != *view.labels || known.fixed.volume_limits != view.volume_limits {
            (known.fixed, known.room) = (Arc::new(self.fixed(view, table)), None);
        }
    }

    fn fixed(&mut self, view: &NodeView<'_>, table: &mut RequirementTable) -> Fixed {
        Fixed {
            labels: view.labels.clone(),
            set: self.set_of(view.labels, table),
            pool: view.labels.get(well_known::NODEPOOL),
            host_name: host_name(view).to_owned(),
            volume_limits: view.volume_limits.to_vec(),
        }
    }

    fn pods(&mut self, view: &NodeView<'_>) -> NodePods {
        view.summed.cloned().unwrap_or_else(|| pods_of(view.pods, &mut self.requests))
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
