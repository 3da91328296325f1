//! The pods bound to a node, summed up: what a pass wants to know of them.

use std::sync::Arc;

use super::hints::Hints;
use super::input::BoundPod;
use nodecast_model::domain::pod::{HostPort, OwnerKind};
use nodecast_model::domain::{PodSpec, Resources, Symbol};

/// The pods bound to a node, summed up. Who keeps it from pass to pass for as long as the node has these pods, and they count in
/// topologies as they do, spares the packer looking at each. Copies share what they hold.
#[derive(Clone, Default)]
pub struct NodePods(Arc<PodsOfNode>);

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
    /// Those that have volumes.
    pub(super) with_volumes: Vec<VolumePod>,
    /// Those that count in topologies, by namespace and specification, in the order in which each is first met.
    pub(super) classes: Vec<CountedPods>,
    /// Whether one of these keeps other pods away by required anti-affinity.
    pub(super) repel: bool,
}

/// A pod of a node.
struct KnownPod {
    what: What,
    /// Its place in [`PodsOfNode::with_volumes`], if it has any.
    volumes: Option<u32>,
}

/// What a pod is.
enum What {
    /// One that counts in topologies, with its place in [`PodsOfNode::classes`].
    Counted(u32),
    /// Another.
    Other(Symbol, Arc<PodSpec>),
}

/// A pod with volumes.
pub(super) struct VolumePod {
    pub(super) namespace: Symbol,
    pub(super) name: String,
    pub(super) spec: Arc<PodSpec>,
}

/// Pods of one specification on one node.
pub(super) struct CountedPods {
    pub(super) namespace: Symbol,
    pub(super) spec: Arc<PodSpec>,
    pub(super) pods: i32,
}

impl std::fmt::Debug for NodePods {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} pods", self.0.list.len())
    }
}

impl NodePods {
    /// The sum of these pods, each with what it requests.
    pub fn sum<'p>(pods: impl IntoIterator<Item = (BoundPod<'p>, &'p Resources)>) -> Self {
        let pods = pods.into_iter();
        let most = pods.size_hint().1.unwrap_or(0);
        let (list, classes) = (Vec::with_capacity(most), Vec::with_capacity(most));
        let this_pods = PodsOfNode { list, classes, ..PodsOfNode::default() };
        let mut sum = Sum { own: this_pods, facts: Vec::with_capacity(most), places: Hints::default() };
        for (pod, requests) in pods {
            sum.add(&pod, requests);
        }
        let finish = sum.finish();
        Self(Arc::new(finish))
    }

    /// The specifications of those that count in topologies, each once, with their namespace.
    pub(crate) fn active_specs(&self) -> impl Iterator<Item = (Symbol, &Arc<PodSpec>)> {
        self.0.classes.iter().map(|class| (class.namespace, &class.spec))
    }

    /// What they come to.
    pub(super) fn sums(&self) -> &PodsOfNode {
        &self.0
    }

    /// Whether the two are copies of one.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl PodsOfNode {
    /// For the pod at a position in the node's list the place of its class, if it counts in topologies.
    pub(super) fn class(&self, position: usize) -> Option<usize> {
        match self.list[position].what {
            What::Counted(class) => Some(class as usize),
            What::Other(..) => None,
        }
    }

    /// Whether these are the pods, in this order.
    pub(super) fn are(&self, pods: &[BoundPod<'_>]) -> bool {
        self.list.len() == pods.len() && self.list.iter().zip(pods).all(|(known, pod)| self.is_known(known, pod))
    }

    fn is_known(&self, known: &KnownPod, pod: &BoundPod<'_>) -> bool {
        let same_name = |place: u32| self.with_volumes[place as usize].name == pod.name;
        let (namespace, spec, counted) = match &known.what {
            What::Counted(class) => {
                let class = &self.classes[*class as usize];
                (class.namespace, &class.spec, true)
            }
            What::Other(namespace, spec) => (*namespace, spec, false),
        };
        Arc::ptr_eq(spec, pod.spec)
            && namespace == pod.namespace
            && counted == pod.counts_in_topology
            && known.volumes.is_none_or(same_name)
    }
}

/// A sum under way.
struct Sum<'p> {
    own: PodsOfNode,
    /// Of each class.
    facts: Vec<ClassFacts<'p>>,
    /// Of the classes, by the address of their specification.
    places: Hints,
}

struct ClassFacts<'p> {
    /// What one of its pods requests, which is added up when all pods are known: many pods are of few classes.
    requests: &'p Resources,
    /// Whether it has neither volumes nor ports on the host.
    plain: bool,
}

impl<'p> Sum<'p> {
    fn add(&mut self, pod: &BoundPod<'p>, requests: &'p Resources) {
        let known = if pod.counts_in_topology { self.class(pod) } else { None };
        if let Some(class) = known.filter(|&class| self.facts[class].plain) {
            self.own.classes[class].pods += 1;
            self.own.list.push(KnownPod { what: What::Counted(class as u32), volumes: None });
            return;
        }
        let pods = &mut self.own;
        pods.ports.extend(pod.spec.host_ports());
        let volumes = (!pod.spec.volumes.is_empty()).then_some(pods.with_volumes.len() as u32);
        if volumes.is_some() {
            let (name, spec) = (pod.name.to_owned(), Arc::clone(pod.spec));
            pods.with_volumes.push(VolumePod { namespace: pod.namespace, name, spec });
        }
        let what = if pod.counts_in_topology {
            let class = known.unwrap_or_else(|| self.new_class(pod, requests));
            self.own.classes[class].pods += 1;
            What::Counted(class as u32)
        } else {
            self.request(pod.spec, requests, 1);
            What::Other(pod.namespace, Arc::clone(pod.spec))
        };
        self.own.list.push(KnownPod { what, volumes });
    }

    fn class(&mut self, pod: &BoundPod<'p>) -> Option<usize> {
        let same = |counted_pods: &CountedPods| {
            Arc::ptr_eq(&counted_pods.spec, pod.spec) && counted_pods.namespace == pod.namespace
        };
        self.places.find(Arc::as_ptr(pod.spec), &self.own.classes, same)
    }

    fn new_class(&mut self, pod: &BoundPod<'p>, requests: &'p Resources) -> usize {
        let PodsOfNode { classes, repel, .. } = &mut self.own;
        *repel |= !pod.spec.pod_anti_affinity.required.is_empty();
        classes.push(CountedPods { namespace: pod.namespace, spec: Arc::clone(pod.spec), pods: 0 });
        let plain = pod.spec.host_ports().next().is_none() && pod.spec.volumes.is_empty();
        self.facts.push(ClassFacts { requests, plain });
        self.places.note(Arc::as_ptr(pod.spec), classes.len() - 1);
        classes.len() - 1
    }

    fn request(&mut self, spec: &PodSpec, requests: &Resources, pods: i32) {
        self.own.requests.add_times(requests, pods.into());
        if spec.owner == OwnerKind::DaemonSet {
            self.own.daemon_requests.add_times(requests, pods.into());
        }
    }

    fn finish(mut self) -> PodsOfNode {
        for class in 0..self.facts.len() {
            let CountedPods { spec, pods, .. } = &self.own.classes[class];
            let (spec, pods) = (Arc::clone(spec), *pods);
            self.request(&spec, self.facts[class].requests, pods);
        }
        self.own
    }
}
