//! Labels, label selectors, and the rules for label keys that Karpenter applies.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::symbol::{Symbol, well_known};

/// Labels (or annotations) of an object, sorted by key, each key once. Copies share them until one is changed.
#[derive(Clone, Default)]
pub struct Labels(Option<Arc<Vec<(Symbol, Symbol)>>>);

impl PartialEq for Labels {
    fn eq(&self, other: &Self) -> bool {
        let shared = matches!((&self.0, &other.0), (Some(own), Some(other)) if Arc::ptr_eq(own, other));
        shared || self.entries() == other.entries()
    }
}

impl Eq for Labels {}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Labels").field(&self.entries()).finish()
    }
}

impl Hash for Labels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.entries().hash(state);
    }
}

impl Labels {
    /// No labels.
    pub const fn new() -> Self {
        Self(None)
    }

    fn entries(&self) -> &[(Symbol, Symbol)] {
        self.0.as_ref().map_or(&[], |item| item.as_slice())
    }

    fn change(&mut self) -> &mut Vec<(Symbol, Symbol)> {
        Arc::make_mut(self.0.get_or_insert_default())
    }

    /// The value of `key`.
    pub fn get(&self, key: Symbol) -> Option<Symbol> {
        // Label sets are short and comparing symbols is comparing integers: a scan beats a search by text.
        self.entries().iter().find(|entry| entry.0 == key).map(|entry| entry.1)
    }

    /// Sets `key` to `value`, replacing any older value.
    pub fn set(&mut self, key: Symbol, value: Symbol) {
        match self.entries().binary_search_by(|entry| entry.0.cmp(&key)) {
            Ok(at) if self.entries()[at].1 == value => {}
            Ok(at) => self.change()[at].1 = value,
            Err(at) => self.change().insert(at, (key, value)),
        }
    }

    /// The same labels with `key` set to `value`.
    #[must_use]
    pub fn with(mut self, key: impl Into<Symbol>, value: impl Into<Symbol>) -> Self {
        self.set(key.into(), value.into());
        self
    }

    /// Removes `key`.
    pub fn remove(&mut self, key: Symbol) {
        if self.get(key).is_some() {
            self.change().retain(|entry| entry.0 != key);
        }
    }

    /// Keys and values, in order of key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Symbol, Symbol)> + Clone + '_ {
        self.entries().iter().copied()
    }

    /// Whether there is no label.
    pub fn is_empty(&self) -> bool {
        self.entries().is_empty()
    }

    /// Number of labels.
    pub fn len(&self) -> usize {
        self.entries().len()
    }

    /// Takes over every label of `other`, replacing older values.
    pub fn extend(&mut self, other: &Self) {
        for (key, value) in other.iter() {
            self.set(key, value);
        }
    }
}

impl FromIterator<(Symbol, Symbol)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Symbol, Symbol)>>(entries: I) -> Self {
        let mut labels = Self::new();
        for (key, value) in entries {
            labels.set(key, value);
        }
        labels
    }
}

impl serde::Serialize for Labels {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

/// The operator of one expression of a label selector.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum SelectorOperator {
    /// The value is one of the given ones.
    In,
    /// The value is none of the given ones; holds for an absent key.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
}

/// One expression of a label selector.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SelectorExpression {
    /// The label's key.
    pub key: Symbol,
    /// How its value is tested.
    pub operator: SelectorOperator,
    /// The values of `In` and `NotIn`.
    pub values: Vec<Symbol>,
}

/// A label selector as metav1 defines it: all pairs and all expressions must hold; an empty one selects everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct LabelSelector {
    /// `matchLabels`.
    pub match_labels: Labels,
    /// `matchExpressions`.
    pub expressions: Vec<SelectorExpression>,
}

impl LabelSelector {
    /// Whether the selector accepts an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.expressions.iter().all(|expression| {
                let value = labels.get(expression.key);
                match expression.operator {
                    SelectorOperator::In => value.is_some_and(|v| expression.values.contains(&v)),
                    SelectorOperator::NotIn => value.is_none_or(|v| !expression.values.contains(&v)),
                    SelectorOperator::Exists => value.is_some(),
                    SelectorOperator::DoesNotExist => value.is_none(),
                }
            })
    }
}

impl LabelSelector {
    /// Whether two selectors state the same, however it is written and in whatever order.
    pub fn says_the_same(&self, other: &Self) -> bool {
        let (requirements, others) = (self.requirements(), other.requirements());
        requirements.iter().all(|one| others.contains(one)) && others.iter().all(|one| requirements.contains(one))
    }

    /// All it requires, as expressions in the order of their keys.
    fn requirements(&self) -> Vec<SelectorExpression> {
        let pair = |(key, value)| SelectorExpression { key, operator: SelectorOperator::In, values: vec![value] };
        let mut all: Vec<SelectorExpression> =
            self.match_labels.iter().map(pair).chain(self.expressions.iter().cloned()).collect();
        for item in &mut all {
            item.values.sort_unstable();
            item.values.dedup();
        }
        all.sort_by(|one, other| (one.key, &one.values).cmp(&(other.key, &other.values)));
        all
    }
}

/// As `kubectl` and KEDA take it: `app=web,!canary,tier in (back,front)`; empty for one that selects everything.
impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, SelectorExpression { key, operator, values }) in self.requirements().iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let values: Vec<&str> = values.iter().map(|value| value.as_str()).collect();
            let list = values.join(",");
            match (operator, values.len()) {
                (SelectorOperator::In, 1) => write!(f, "{comma}{key}={list}")?,
                (SelectorOperator::In, _) => write!(f, "{comma}{key} in ({list})")?,
                (SelectorOperator::NotIn, 1) => write!(f, "{comma}{key}!={list}")?,
                (SelectorOperator::NotIn, _) => write!(f, "{comma}{key} notin ({list})")?,
                (SelectorOperator::Exists, _) => write!(f, "{comma}{key}")?,
                (SelectorOperator::DoesNotExist, _) => write!(f, "{comma}!{key}")?,
            }
        }
        Ok(())
    }
}

/// The labels of a namespace of this name: what it is labelled with, and the label with its name that the API server writes over
/// whatever stands there.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/v1/defaults.go`, `SetDefaults_Namespace`.
#[must_use]
pub fn with_namespace_name(labels: Labels, name: Symbol) -> Labels {
    labels.with("kubernetes.io/metadata.name", name)
}

/// The current name of a label key that Kubernetes or a CSI driver has renamed; other keys stay.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/labels.go`, `NormalizedLabels`.
pub fn normalized_key(key: Symbol) -> Symbol {
    match key {
        well_known::BETA_ZONE | well_known::EBS_ZONE => well_known::ZONE,
        well_known::BETA_REGION => well_known::REGION,
        well_known::BETA_ARCH => well_known::ARCH,
        well_known::BETA_OS => well_known::OS,
        well_known::BETA_INSTANCE_TYPE => well_known::INSTANCE_TYPE,
        _ => key,
    }
}

/// What a node with these labels is labelled with under names that Kubernetes has given up, to which the kubelet (system and
/// architecture) and the cloud's controller (type, zone and region) hold on.
///
/// Source: Kubernetes 1.36 `pkg/kubelet/kubelet_node_status.go`, `initialNode`;
/// `staging/src/k8s.io/cloud-provider/controllers/node/node_controller.go`, `getNodeModifiersFromCloudProvider`.
pub fn deprecated_node_labels(labels: &Labels) -> Labels {
    const NAMES: [(Symbol, Symbol); 5] = [
        (well_known::OS, well_known::BETA_OS),
        (well_known::ARCH, well_known::BETA_ARCH),
        (well_known::INSTANCE_TYPE, well_known::BETA_INSTANCE_TYPE),
        (well_known::ZONE, well_known::BETA_ZONE),
        (well_known::REGION, well_known::BETA_REGION),
    ];
    NAMES.into_iter().filter_map(|(current, deprecated)| Some((deprecated, labels.get(current)?))).collect()
}

/// Whether `key` is a label that Karpenter or its AWS provider sets on every node, so that a pod may ask for it although
/// no NodePool mentions it.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/labels.go`; provider v1.13 `pkg/apis/v1/labels.go`.
pub fn is_well_known(key: Symbol) -> bool {
    WELL_KNOWN.contains(&key)
}

/// The labels of which [`is_well_known`] speaks.
pub fn well_known_labels() -> impl Iterator<Item = Symbol> {
    WELL_KNOWN.iter().copied()
}

/// Whether a NodePool or pod may not constrain `key`: the hostname, and everything in Karpenter's own domains that is
/// not well known.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/labels.go`, `IsRestrictedLabel`.
pub fn is_restricted(key: Symbol) -> bool {
    if is_well_known(key) {
        return false;
    }
    if key == well_known::HOSTNAME {
        return true;
    }
    let domain = key.as_str().split_once('/').map_or("", |(domain, _)| domain);
    ["karpenter.sh", "karpenter.k8s.aws"]
        .iter()
        .any(|text| domain == *text || domain.strip_suffix(text).is_some_and(|sub| sub.ends_with('.')))
}

/// Whether a NodePool may not state `key`, as a requirement or as a label of its nodes. Of what is not well known to pods it may state the
/// class; it may not state its own name, which pods may ask for.
///
/// Source: Karpenter core v1.13 `pkg/apis/crds/karpenter.sh_nodepools.yaml`, the rules of `requirements` and of the template's `labels`, with
/// those that AWS provider v1.13 `hack/validation/requirements.sh` and `labels.sh` add.
pub fn is_restricted_in_pools(key: Symbol) -> bool {
    key == well_known::NODEPOOL || (is_restricted(key) && key != well_known::EC2_NODE_CLASS)
}

/// The same of a Provisioner, which may also state how many pods its nodes take: v1beta1 dropped that label.
///
/// Source: Karpenter core v0.22 `pkg/apis/v1alpha5/provisioner_validation.go`, with the labels that AWS provider v0.22.1
/// `pkg/apis/v1alpha1/register.go` makes well known; its upgrade guide, `website/content/en/v0.32/upgrading/v1beta1-migration.md`.
pub fn is_restricted_in_provisioners(key: Symbol) -> bool {
    key != well_known::INSTANCE_PODS && is_restricted_in_pools(key)
}

/// The label of EKS Auto Mode that takes the place of a label of Karpenter's AWS provider; `None` for every other key, and for labels of
/// the provider that Auto Mode has no counterpart of.
///
/// Source: EKS user guide, `automode/create-node-pool` (2026), supported labels.
pub fn auto_mode_label(karpenter: Symbol) -> Option<Symbol> {
    AUTO_MODE.iter().find(|(key, _)| *key == karpenter).map(|(_, auto)| *auto)
}

/// The label of Karpenter's AWS provider whose place a label of EKS Auto Mode takes.
pub fn karpenter_label(auto: Symbol) -> Option<Symbol> {
    AUTO_MODE.iter().find(|(_, key)| *key == auto).map(|(karpenter, _)| *karpenter)
}

/// Whether `key` is a label of instance types as Karpenter's own AWS provider names them, which no node of EKS Auto Mode has.
pub fn is_of_karpenters_types(key: Symbol) -> bool {
    key.as_str().strip_prefix("karpenter.k8s.aws/").is_some_and(|name| name.starts_with("instance-"))
}

/// Whether a pod may ask nodes of EKS Auto Mode for `key` although no NodePool mentions it; see [`is_well_known`].
pub fn is_well_known_in_auto_mode(key: Symbol) -> bool {
    karpenter_label(key).is_some() || (is_well_known(key) && !is_of_karpenters_types(key))
}

const AUTO_MODE: &[(Symbol, Symbol)] = &[
    (well_known::INSTANCE_CATEGORY, well_known::EKS_INSTANCE_CATEGORY),
    (well_known::INSTANCE_FAMILY, well_known::EKS_INSTANCE_FAMILY),
    (well_known::INSTANCE_GENERATION, well_known::EKS_INSTANCE_GENERATION),
    (well_known::INSTANCE_SIZE, well_known::EKS_INSTANCE_SIZE),
    (well_known::INSTANCE_CPU, well_known::EKS_INSTANCE_CPU),
    (well_known::INSTANCE_CPU_MANUFACTURER, well_known::EKS_INSTANCE_CPU_MANUFACTURER),
    (well_known::INSTANCE_MEMORY, well_known::EKS_INSTANCE_MEMORY),
    (well_known::INSTANCE_EBS_BANDWIDTH, well_known::EKS_INSTANCE_EBS_BANDWIDTH),
    (well_known::INSTANCE_NETWORK_BANDWIDTH, well_known::EKS_INSTANCE_NETWORK_BANDWIDTH),
    (well_known::INSTANCE_HYPERVISOR, well_known::EKS_INSTANCE_HYPERVISOR),
    (well_known::INSTANCE_ENCRYPTION, well_known::EKS_INSTANCE_ENCRYPTION),
    (well_known::INSTANCE_LOCAL_NVME, well_known::EKS_INSTANCE_LOCAL_NVME),
    (well_known::INSTANCE_GPU_NAME, well_known::EKS_INSTANCE_GPU_NAME),
    (well_known::INSTANCE_GPU_MANUFACTURER, well_known::EKS_INSTANCE_GPU_MANUFACTURER),
    (well_known::INSTANCE_GPU_COUNT, well_known::EKS_INSTANCE_GPU_COUNT),
    (well_known::INSTANCE_GPU_MEMORY, well_known::EKS_INSTANCE_GPU_MEMORY),
];

const WELL_KNOWN: &[Symbol] = &[
    well_known::NODEPOOL,
    well_known::CAPACITY_TYPE,
    well_known::ZONE,
    well_known::REGION,
    well_known::INSTANCE_TYPE,
    well_known::ARCH,
    well_known::OS,
    well_known::WINDOWS_BUILD,
    well_known::ZONE_ID,
    well_known::INSTANCE_CATEGORY,
    well_known::INSTANCE_FAMILY,
    well_known::INSTANCE_GENERATION,
    well_known::INSTANCE_SIZE,
    well_known::INSTANCE_CPU,
    well_known::INSTANCE_CPU_MANUFACTURER,
    well_known::INSTANCE_CPU_CLOCK_MHZ,
    well_known::INSTANCE_MEMORY,
    well_known::INSTANCE_EBS_BANDWIDTH,
    well_known::INSTANCE_NETWORK_BANDWIDTH,
    well_known::INSTANCE_HYPERVISOR,
    well_known::INSTANCE_ENCRYPTION,
    well_known::INSTANCE_LOCAL_NVME,
    well_known::INSTANCE_CAPABILITY_FLEX,
    well_known::INSTANCE_TENANCY,
    well_known::INSTANCE_GPU_NAME,
    well_known::INSTANCE_GPU_MANUFACTURER,
    well_known::INSTANCE_GPU_COUNT,
    well_known::INSTANCE_GPU_MEMORY,
    well_known::INSTANCE_ACCELERATOR_NAME,
    well_known::INSTANCE_ACCELERATOR_MANUFACTURER,
    well_known::INSTANCE_ACCELERATOR_COUNT,
    well_known::CAPACITY_RESERVATION_ID,
    well_known::CAPACITY_RESERVATION_TYPE,
    well_known::CAPACITY_RESERVATION_INTERRUPTIBLE,
    well_known::PLACEMENT_GROUP_ID,
    well_known::PLACEMENT_GROUP_PARTITION,
];

#[cfg(test)]
mod tests {
    use super::{
        LabelSelector, Labels, SelectorExpression, SelectorOperator, deprecated_node_labels, is_restricted,
        is_well_known, normalized_key,
    };
    use crate::domain::symbol::Symbol;

    #[test]
    fn empty_selector_matches_all_and_notin_accepts_missing() {
        let labels = Labels::new().with("app", "web");
        assert!(LabelSelector::default().matches(&labels));
        let not_in = SelectorExpression {
            key: Symbol::new("tier"),
            operator: SelectorOperator::NotIn,
            values: vec![Symbol::new("cache")],
        };
        assert!(LabelSelector { expressions: vec![not_in], ..LabelSelector::default() }.matches(&labels));
    }

    #[test]
    fn nodes_also_have_deprecated_label_names() {
        let labels = Labels::new().with("kubernetes.io/os", "linux").with("topology.kubernetes.io/zone", "us-east-1a");
        let expected = Labels::new()
            .with("beta.kubernetes.io/os", "linux")
            .with("failure-domain.beta.kubernetes.io/zone", "us-east-1a");
        assert_eq!(deprecated_node_labels(&labels), expected);
        for (key, value) in expected.iter() {
            assert_eq!(labels.get(normalized_key(key)), Some(value));
        }
    }

    #[test]
    fn karpenters_domains_are_restricted_unless_well_known() {
        assert!(is_restricted(Symbol::new("karpenter.sh/initialized")));
        assert!(is_restricted(Symbol::new("sub.karpenter.k8s.aws/anything")));
        assert!(!is_restricted(Symbol::new("karpenter.sh/capacity-type")));
        assert!(!is_restricted(Symbol::new("notkarpenter.sh/x")));
        assert!(is_well_known(Symbol::new("topology.kubernetes.io/zone")));
    }
}
