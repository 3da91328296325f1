//! Pod shapes: what the scheduler needs to know of a pod, worked out once for all pods that are alike.
//!
//! Pods of one template are alike to every filter and every score, so the scheduler works with shapes: a node holds so
//! many pods of this shape and so many of that.

use std::borrow::Cow;
use std::sync::Arc;

use super::topology::KeyIndex;
use super::volumes::PodVolumes;
use nodecast_model::domain::labels::{SelectorExpression, SelectorOperator};
use nodecast_model::domain::pod::HostPort;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::topology::{NodeInclusionPolicy, PodAffinityTerm, TopologySpread, WhenUnsatisfiable};
use nodecast_model::domain::{Container, LabelSelector, Labels, PodSpec, ResourceName, Symbol, Taint, TaintEffect};

/// A pod shape of one [`ClusterView`](super::ClusterView).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ShapeId(pub(super) u32);

impl ShapeId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Pods that are alike to the selectors and terms of others, whatever they ask for: same namespace, labels, terms of
/// pod (anti-)affinity, and claims that one pod may use at a time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct PeerId(pub(super) u32);

impl PeerId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// CPU that a container without a CPU request counts for in the LeastAllocated and MostAllocated scores.
const DEFAULT_MILLI_CPU: i64 = 100;
/// Memory that a container without a memory request counts for there.
const DEFAULT_MEMORY: i64 = 200 << 20;

/// Amounts of the resources that every node has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Amounts {
    /// Thousandths of a CPU.
    pub(super) milli_cpu: i64,
    /// Bytes.
    pub(super) memory: i64,
    /// Bytes.
    pub(super) ephemeral_storage: i64,
}

impl Amounts {
    pub(super) fn add(&mut self, other: &Self, times: i64) {
        self.milli_cpu += other.milli_cpu * times;
        self.memory += other.memory * times;
        self.ephemeral_storage += other.ephemeral_storage * times;
    }
}

/// A spread constraint, made ready for counting.
#[derive(Clone, Debug)]
pub(super) struct SpreadConstraint {
    pub(super) key: KeyIndex,
    pub(super) is_hostname: bool,
    pub(super) max_skew: i64,
    pub(super) min_domains: usize,
    /// The pods counted, `matchLabelKeys` included.
    pub(super) selector: Option<LabelSelector>,
    pub(super) honor_affinity: bool,
    pub(super) honor_taints: bool,
    /// Whether the pod counts itself.
    pub(super) matches_self: bool,
}

/// A term of pod (anti-)affinity, made ready for matching.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct AffinityTerm {
    pub(super) key: KeyIndex,
    namespaces: Vec<Symbol>,
    namespace_selector: Option<LabelSelector>,
    selector: Option<LabelSelector>,
}

impl AffinityTerm {
    /// Whether the term means a pod of shape `pod`.
    ///
    /// Source: Kubernetes 1.36 `pkg/scheduler/framework/types.go`, `AffinityTerm.Matches`.
    pub(super) fn matches(&self, pod: &PodShape) -> bool {
        let in_namespace = self.namespaces.contains(&pod.namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| selector.matches(&pod.namespace_labels));
        in_namespace && self.selector.as_ref().is_some_and(|selector| selector.matches(&pod.spec.labels))
    }
}

/// What all pods of one shape share.
#[derive(Clone, Debug)]
pub struct PodShape {
    /// The pods' namespace.
    pub namespace: Symbol,
    /// That namespace's labels; whoever works a shape out says them.
    pub(super) namespace_labels: Labels,
    /// Their specification.
    pub spec: Arc<PodSpec>,
    /// What they are to others.
    pub(super) peer: PeerId,
    pub(super) requests: Amounts,
    /// Extended resources asked for, zero amounts left out.
    pub(super) extended: Vec<(ResourceName, i64)>,
    /// Requests with the stand-ins for containers that state none; see [`DEFAULT_MILLI_CPU`].
    pub(super) counted: Amounts,
    pub(super) host_ports: Vec<HostPort>,
    /// Images with a tag, and how many containers there are.
    pub(super) images: Vec<Symbol>,
    pub(super) tolerates_unschedulable: bool,
    /// The nodes that the required affinity names by name, if every term does.
    pub(super) named_nodes: Option<Vec<Symbol>>,
    pub(super) hard_spread: Vec<SpreadConstraint>,
    pub(super) soft_spread: Vec<SpreadConstraint>,
    /// The soft constraints are the built-in ones, for which a node may lack a key.
    pub(super) soft_spread_is_default: bool,
    pub(super) required_affinity: Vec<AffinityTerm>,
    pub(super) required_anti_affinity: Vec<AffinityTerm>,
    pub(super) preferred_affinity: Vec<(i64, AffinityTerm)>,
    pub(super) preferred_anti_affinity: Vec<(i64, AffinityTerm)>,
    /// What the pods' volumes ask for; whoever works a shape out says it.
    pub(super) volumes: PodVolumes,
}

impl PodShape {
    /// Works a shape out. `key` numbers topology keys; `default_selector` selects the pods that the built-in spread
    /// constraints count.
    pub(super) fn new(
        namespace: Symbol,
        spec: &Arc<PodSpec>,
        peer: PeerId,
        default_selector: Option<LabelSelector>,
        mut key: impl FnMut(Symbol) -> KeyIndex,
    ) -> Self {
        let requests = spec.requests();
        let counted = counted_spec(spec).requests();
        let amounts = |from: &nodecast_model::domain::Resources| Amounts {
            milli_cpu: from.cpu_milli(),
            memory: from.memory_bytes(),
            ephemeral_storage: from.get(ResourceName::EPHEMERAL_STORAGE),
        };
        let mut term = |term: &PodAffinityTerm| affinity_term(term, namespace, &spec.labels, key(term.topology_key));
        let required_affinity = spec.pod_affinity.required.iter().map(&mut term).collect();
        let required_anti_affinity = spec.pod_anti_affinity.required.iter().map(&mut term).collect();
        let mut weighted = |terms: &[nodecast_model::domain::topology::WeightedPodAffinityTerm]| {
            terms.iter().map(|weighted| (weighted.weight, term(&weighted.term))).collect()
        };
        let preferred_affinity = weighted(&spec.pod_affinity.preferred);
        let preferred_anti_affinity = weighted(&spec.pod_anti_affinity.preferred);
        let (hard_spread, soft_spread) = spread_constraints(spec, default_selector, &mut key);
        Self {
            namespace,
            namespace_labels: Labels::new(),
            spec: Arc::clone(spec),
            peer,
            requests: amounts(&requests),
            extended: requests.iter().filter(|&(name, amount)| is_extended(name) && amount > 0).collect(),
            counted: amounts(&counted),
            host_ports: spec.host_ports().filter(|port| port.port != 0).collect(),
            images: images(spec),
            tolerates_unschedulable: tolerates_unschedulable(spec),
            named_nodes: named_nodes(spec),
            hard_spread,
            soft_spread,
            soft_spread_is_default: spec.topology_spread.is_empty(),
            required_affinity,
            required_anti_affinity,
            preferred_affinity,
            preferred_anti_affinity,
            volumes: PodVolumes::default(),
        }
    }

    /// Whether the pods have terms of pod affinity or anti-affinity, so that they bear on the placing of others.
    pub(super) fn has_affinity_terms(&self) -> bool {
        !(self.required_affinity.is_empty()
            && self.required_anti_affinity.is_empty()
            && self.preferred_affinity.is_empty()
            && self.preferred_anti_affinity.is_empty())
    }

    /// Whether where other pods are matters to these pods.
    pub(super) fn minds_others(&self) -> bool {
        self.has_affinity_terms()
            || !self.hard_spread.is_empty()
            || !self.soft_spread.is_empty()
            || !self.volumes.one_pod.is_empty()
    }

    /// Whether the pods ask for neither CPU nor memory, so that balance does not concern them.
    pub(super) const fn is_best_effort(&self) -> bool {
        self.requests.milli_cpu == 0 && self.requests.memory == 0
    }

    /// Whether the pods tolerate `taint`.
    pub(super) fn tolerates(&self, taint: &Taint) -> bool {
        self.spec.tolerations.iter().any(|toleration| toleration.tolerates(taint))
    }
}

/// Whether a resource is counted by name rather than in [`Amounts`] or as a pod slot.
pub(super) fn is_extended(name: ResourceName) -> bool {
    ![ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS].contains(&name)
}

/// The specification with stand-ins for CPU and memory requests that containers leave out.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/util/pod_resources.go` and `component-helpers/resource`,
/// `NonMissingContainerRequests`.
fn counted_spec(spec: &PodSpec) -> PodSpec {
    let mut counted = spec.clone();
    let fill = |container: &mut Container| {
        let stated = container.effective_requests();
        for (name, amount) in [(ResourceName::CPU, DEFAULT_MILLI_CPU), (ResourceName::MEMORY, DEFAULT_MEMORY)] {
            if stated.find(name).is_none() {
                container.requests.set(name, amount);
            }
        }
    };
    // A pod-level limit stands in for the pod-level request only where no container states one; keep it doing so.
    for (name, limit) in spec.pod_limits.iter().flat_map(nodecast_model::domain::Resources::iter) {
        let stated = spec.containers.iter().any(|container| container.effective_requests().find(name).is_some());
        let pod_level = counted.pod_requests.get_or_insert_default();
        if !stated && pod_level.find(name).is_none() {
            pod_level.set(name, limit);
        }
    }
    counted.containers.iter_mut().for_each(fill);
    counted.init_containers.iter_mut().for_each(|init| fill(&mut init.container));
    counted
}

/// The images of all containers, `:latest` where no tag or digest is given.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/imagelocality/image_locality.go`, `normalizedImageName`.
fn images(spec: &PodSpec) -> Vec<Symbol> {
    let init = spec.init_containers.iter().map(|init| &init.container);
    init.chain(&spec.containers).map(|container| normalized_image(&container.image)).collect()
}

/// The name under which an image is known to a node.
pub(super) fn normalized_image(image: &str) -> Symbol {
    let last_slash = image.rfind('/').map_or(0, |at| at + 1);
    if image[last_slash..].contains(':') { Symbol::new(image) } else { Symbol::new(&format!("{image}:latest")) }
}

fn tolerates_unschedulable(spec: &PodSpec) -> bool {
    let taint = Taint::new(well_known::TAINT_UNSCHEDULABLE, TaintEffect::NoSchedule);
    spec.tolerations.iter().any(|toleration| toleration.tolerates(&taint))
}

/// The node names that required affinity lists, if every term lists some: then no other node is looked at.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/nodeaffinity/node_affinity.go`, `PreFilter`.
fn named_nodes(spec: &PodSpec) -> Option<Vec<Symbol>> {
    let terms = &spec.node_affinity.required;
    if terms.is_empty() {
        return None;
    }
    let mut all: Vec<Symbol> = Vec::new();
    for term in terms {
        let mut lists = term
            .fields
            .iter()
            .filter(|field| {
                field.key.as_str() == "metadata.name"
                    && field.operator == nodecast_model::domain::requirements::Operator::In
            })
            .map(|field| &field.values);
        let first = lists.next()?;
        let mut names: Vec<Symbol> = first.clone();
        for other in lists {
            names.retain(|name| other.contains(name));
        }
        all.extend(names);
    }
    all.sort_unstable();
    all.dedup();
    Some(all)
}

/// The term of a pod of this namespace with these labels.
fn affinity_term(term: &PodAffinityTerm, namespace: Symbol, labels: &Labels, key: KeyIndex) -> AffinityTerm {
    let own_only = term.namespaces.is_empty() && term.namespace_selector.is_none();
    AffinityTerm {
        key,
        namespaces: if own_only { vec![namespace] } else { term.namespaces.clone() },
        namespace_selector: term.namespace_selector.clone(),
        selector: term.selector_of(labels).map(Cow::into_owned),
    }
}

/// Hard and soft constraints. A pod without any constraint gets the built-in soft ones (hostname 3, zone 5) if
/// `default_selector` is there to say what they count.
///
/// Source: Kubernetes 1.36 `pkg/scheduler/framework/plugins/podtopologyspread/plugin.go` (`systemDefaultConstraints`)
/// and `common.go` (`filterTopologySpreadConstraints`, `buildDefaultConstraints`).
fn spread_constraints(
    spec: &PodSpec,
    default_selector: Option<LabelSelector>,
    mut key: impl FnMut(Symbol) -> KeyIndex,
) -> (Vec<SpreadConstraint>, Vec<SpreadConstraint>) {
    let mut ready = |constraint: &TopologySpread| {
        let selector = constraint.selector.as_ref().map(|selector| {
            let mut selector = selector.clone();
            for &key in &constraint.match_label_keys {
                if let Some(value) = spec.labels.get(key) {
                    let operator = SelectorOperator::In;
                    selector.expressions.push(SelectorExpression { key, operator, values: vec![value] });
                }
            }
            selector
        });
        SpreadConstraint {
            key: key(constraint.topology_key),
            is_hostname: constraint.topology_key == well_known::HOSTNAME,
            max_skew: constraint.max_skew,
            min_domains: usize::try_from(constraint.min_domains.unwrap_or(1)).unwrap_or(1),
            matches_self: selector.as_ref().is_some_and(|selector| selector.matches(&spec.labels)),
            selector,
            honor_affinity: constraint.node_affinity_policy == NodeInclusionPolicy::Honor,
            honor_taints: constraint.node_taints_policy == NodeInclusionPolicy::Honor,
        }
    };
    if !spec.topology_spread.is_empty() {
        let of_kind = |kind| spec.topology_spread.iter().filter(move |c| c.when_unsatisfiable == kind);
        let hard = of_kind(WhenUnsatisfiable::DoNotSchedule).map(&mut ready).collect();
        return (hard, of_kind(WhenUnsatisfiable::ScheduleAnyway).map(&mut ready).collect());
    }
    let Some(selector) = default_selector else { return (Vec::new(), Vec::new()) };
    let soft = [(well_known::HOSTNAME, 3), (well_known::ZONE, 5)].map(|(topology_key, max_skew)| {
        ready(&TopologySpread {
            topology_key,
            max_skew,
            when_unsatisfiable: WhenUnsatisfiable::ScheduleAnyway,
            selector: Some(selector.clone()),
            min_domains: None,
            node_affinity_policy: NodeInclusionPolicy::Honor,
            node_taints_policy: NodeInclusionPolicy::Ignore,
            match_label_keys: Vec::new(),
        })
    });
    (Vec::new(), soft.into())
}

#[cfg(test)]
mod tests {
    use super::{PeerId, PodShape, normalized_image};
    use nodecast_model::domain::symbol::well_known;
    use nodecast_model::domain::{Container, LabelSelector, Labels, PodSpec, ResourceName, Resources};
    use std::sync::Arc;

    fn shape(spec: PodSpec, default_selector: Option<LabelSelector>) -> PodShape {
        PodShape::new(well_known::DEFAULT, &Arc::new(spec), PeerId(0), default_selector, |_| 0)
    }

    #[test]
    fn missing_requests_have_defaults_only_in_scores() {
        let cpu_only = Container { requests: Resources::new().with(ResourceName::CPU, 250), ..Container::default() };
        let shape = shape(PodSpec { containers: vec![cpu_only, Container::default()], ..PodSpec::default() }, None);
        assert_eq!((shape.requests.milli_cpu, shape.requests.memory), (250, 0));
        assert_eq!((shape.counted.milli_cpu, shape.counted.memory), (350, 400 << 20));
    }

    #[test]
    fn default_spread_applies_to_pods_without_constraints() {
        let app = LabelSelector { match_labels: Labels::new().with("app", "web"), ..LabelSelector::default() };
        assert_eq!(shape(PodSpec::default(), Some(app)).soft_spread.len(), 2);
        assert!(shape(PodSpec::default(), None).soft_spread.is_empty());
    }

    #[test]
    fn images_without_a_tag_mean_latest() {
        assert_eq!(normalized_image("registry:5000/app").as_str(), "registry:5000/app:latest");
        assert_eq!(normalized_image("registry:5000/app:v1").as_str(), "registry:5000/app:v1");
        assert_eq!(normalized_image("app@sha256:0f").as_str(), "app@sha256:0f");
    }
}
