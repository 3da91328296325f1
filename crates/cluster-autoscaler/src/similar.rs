//! Similar groups, and how growth is split among them.
//!
//! Source: Cluster Autoscaler 1.36 `processors/nodegroupset/` (`compare_nodegroups.go`, `aws_nodegroups.go`,
//! `label_nodegroups.go`, `balancing_processor.go`).

use super::view::NodeTemplate;
use nodecast_model::domain::{ResourceName, Resources, Symbol};

/// Labels that may differ between similar groups.
const IGNORED_LABELS: [&str; 14] = [
    "kubernetes.io/hostname",
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "beta.kubernetes.io/fluentd-ds-ready",
    "kops.k8s.io/instancegroup",
    // Of AWS:
    "alpha.eksctl.io/instance-id",
    "alpha.eksctl.io/nodegroup-name",
    "eks.amazonaws.com/nodegroup",
    "k8s.amazonaws.com/eniConfig",
    "lifecycle",
    "topology.ebs.csi.aws.com/zone",
    "topology.k8s.aws/zone-id",
];

/// When groups count as similar.
#[derive(Clone, PartialEq, Debug)]
pub struct Similarity {
    /// `balancing-ignore-label`: further labels that may differ.
    pub ignored_labels: Vec<Symbol>,
    /// `balancing-label`: if there are any, nothing but these labels counts.
    pub labels: Vec<Symbol>,
    /// `memory-difference-ratio`.
    pub memory_difference: f64,
    /// `max-allocatable-difference-ratio`.
    pub allocatable_difference: f64,
    /// `max-free-difference-ratio`.
    pub free_difference: f64,
}

impl Default for Similarity {
    fn default() -> Self {
        Self {
            ignored_labels: Vec::new(),
            labels: Vec::new(),
            memory_difference: 0.015,
            allocatable_difference: 0.05,
            free_difference: 0.05,
        }
    }
}

impl Similarity {
    /// Whether groups with these templates are similar.
    pub fn holds(&self, one: &NodeTemplate, other: &NodeTemplate) -> bool {
        if !self.labels.is_empty() {
            return self.labels.iter().all(|&key| {
                let value = one.labels.get(key);
                value.is_some() && value == other.labels.get(key)
            });
        }
        self.equal_capacity(&one.capacity, &other.capacity)
            && within(&one.allocatable, &other.allocatable, self.allocatable_difference)
            && within(&free(one), &free(other), self.free_difference)
            && self.equal_labels(one, other)
    }

    fn equal_capacity(&self, one: &Resources, other: &Resources) -> bool {
        one.iter().len() == other.iter().len()
            && one.iter().all(|(name, amount)| match other.find(name) {
                Some(others) if name == ResourceName::MEMORY => close(amount, others, self.memory_difference),
                others => others == Some(amount),
            })
    }

    fn equal_labels(&self, one: &NodeTemplate, other: &NodeTemplate) -> bool {
        let ignored = |key: Symbol| IGNORED_LABELS.contains(&key.as_str()) || self.ignored_labels.contains(&key);
        let holds_in = |a: &NodeTemplate, b: &NodeTemplate| {
            a.labels.iter().all(|(key, value)| ignored(key) || b.labels.get(key) == Some(value))
        };
        holds_in(one, other) && holds_in(other, one)
    }
}

fn close(one: i64, other: i64, ratio: f64) -> bool {
    let (larger, smaller) = (one.max(other), one.min(other));
    (larger - smaller) as f64 <= larger as f64 * ratio
}

fn within(one: &Resources, other: &Resources, ratio: f64) -> bool {
    one.iter().len() == other.iter().len()
        && one.iter().all(|(name, amount)| other.find(name).is_some_and(|others| close(amount, others, ratio)))
}

/// What the template's own pods leave.
fn free(template: &NodeTemplate) -> Resources {
    let mut free = template.allocatable.clone();
    for pod in &template.pods {
        let mut requests = pod.spec.requests();
        // Slots for pods are not counted among requests here.
        requests.remove(ResourceName::PODS);
        for (name, amount) in requests.iter().filter(|&(name, amount)| amount != 0 || free_of(template, name)) {
            free.set(name, free.get(name) - amount);
        }
    }
    free
}

fn free_of(template: &NodeTemplate, name: ResourceName) -> bool {
    template.allocatable.find(name).is_some()
}

/// A group's growth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Growth {
    /// The group.
    pub group: usize,
    /// Its size before.
    pub from: i64,
    /// Its size after.
    pub to: i64,
    /// The most it may have.
    pub max: i64,
}

/// Splits new nodes over groups, the smallest first; groups at their maximum take none. Gives back the groups that grow, in
/// order of size before.
pub fn balance(groups: impl IntoIterator<Item = Growth>, new_nodes: i64) -> Vec<Growth> {
    let mut growing: Vec<Growth> = groups.into_iter().filter(|group| group.from < group.max).collect();
    growing.sort_by_key(|group| group.from);
    for group in &mut growing {
        group.to = group.from;
    }
    let mut left = new_nodes.min(growing.iter().map(|group| group.max - group.from).sum());
    // Each round lifts the lowest groups by as much as all of them can take before another is as low or one is full.
    while left > 0 {
        let open = |group: &&Growth| group.to < group.max;
        let Some(lowest) = growing.iter().filter(open).map(|group| group.to).min() else { break };
        for group in growing.iter_mut().filter(|group| group.to == lowest && group.to < group.max) {
            if left > 0 {
                group.to += 1;
                left -= 1;
            }
        }
    }
    growing.retain(|group| group.to > group.from);
    growing
}
