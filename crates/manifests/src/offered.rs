//! Labels and values by which no node of the region could be found: legal, and most likely not meant.

use crate::lints;
use nodecast_model::catalog::{InstanceFacts, Region};
use nodecast_model::domain::Symbol;
use nodecast_model::domain::labels::{karpenter_label, well_known_labels};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::text::error::{listed, nearest};
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::Node;

/// Of more known values than this, none but the nearest is named.
const NAMED_MAX: usize = 8;

/// The domain of labels that Karpenter's AWS provider keeps for itself.
const DOMAIN: &str = "karpenter.k8s.aws/";

/// Labels of the domain that NodePools may state: those that pods may ask for, and the class.
///
/// Source: AWS provider v1.13 `pkg/apis/v1/labels.go`.
pub(super) fn labels() -> impl Iterator<Item = Symbol> {
    well_known_labels().filter(|label| label.as_str().starts_with(DOMAIN)).chain([well_known::EC2_NODE_CLASS])
}

/// Warns if `key`, which stands at `node`, is in Karpenter's own domain but none of its labels.
pub(super) fn warn_of_unknown_label<'s>(reader: &mut Reader<'s>, key: Symbol, node: &Node<'s>) {
    if !key.as_str().starts_with(DOMAIN) || labels().any(|label| label == key) {
        return;
    }
    let help = nearest(key.as_str(), labels().map(Symbol::as_str)).map_or_else(
        || format!("labels under `{DOMAIN}` are Karpenter's own"),
        |near| format!("did you mean `{near}`?"),
    );
    reader.warn(
        &lints::UNKNOWN_KARPENTER_LABEL,
        node.at,
        format!("no node has the label `{key}`"),
        "not a label of Karpenter's",
        &help,
    );
}

/// Warns of each of `values`, which stand at `nodes`, that no node of the region has under the label `key`.
pub(super) fn warn_of_unknown_values<'s>(reader: &mut Reader<'s>, key: Symbol, values: &[Symbol], nodes: &[Node<'s>]) {
    let Some(region) = reader.region() else { return };
    if key == well_known::INSTANCE_TYPE {
        for (node, &name) in nodes.iter().zip(values) {
            if let Err(help) = reader.check_instance_type(name) {
                reader.warn(
                    &lints::UNKNOWN_INSTANCE_TYPE,
                    node.at,
                    format!("unknown instance type `{name}`"),
                    "the region has no such type",
                    &help,
                );
            }
        }
        return;
    }
    let Some((what, known)) = known_values(key, region) else { return };
    for (node, &value) in nodes.iter().zip(values).filter(|(_, value)| !known.holds(region, **value)) {
        let all = known.all(region);
        let names = || all.iter().map(|name| name.as_str());
        let help = match nearest(value.as_str(), names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if all.len() <= NAMED_MAX => format!("known are {}", listed(names())),
            None => format!("nothing in {} has it", region.name),
        };
        reader.warn(&lints::UNKNOWN_LABEL_VALUE, node.at, format!("`{value}` is not {what}"), "matches nothing", &help);
    }
}

/// Which values a label has in a region.
enum LabelValues {
    /// These.
    Names(Vec<Symbol>),
    /// What instance types have.
    OfTypes(fn(&InstanceFacts) -> Option<Symbol>),
}

impl LabelValues {
    fn holds(&self, region: &Region, value: Symbol) -> bool {
        match self {
            Self::Names(names) => names.contains(&value),
            Self::OfTypes(of) => region.types.iter().any(|entry| of(&entry.facts) == Some(value)),
        }
    }

    fn all(&self, region: &Region) -> Vec<Symbol> {
        match self {
            Self::Names(names) => names.clone(),
            Self::OfTypes(of) => {
                let mut all: Vec<Symbol> = region.types.iter().filter_map(|entry| of(&entry.facts)).collect();
                all.sort_unstable();
                all.dedup();
                all
            }
        }
    }
}

/// What the values of a label are, and which there are in the region; `None` for labels of which that is not known.
fn known_values(key: Symbol, region: &Region) -> Option<(&'static str, LabelValues)> {
    let key = karpenter_label(key).unwrap_or(key);
    if key == well_known::INSTANCE_FAMILY {
        Some(("an instance family of the region", LabelValues::OfTypes(|facts| Some(facts.family))))
    } else if key == well_known::INSTANCE_SIZE {
        Some(("an instance size of the region", LabelValues::OfTypes(|facts| Some(facts.size))))
    } else if key == well_known::INSTANCE_CATEGORY {
        Some(("an instance category of the region", LabelValues::OfTypes(|facts| facts.category)))
    } else if key == well_known::ARCH {
        Some(("an architecture", LabelValues::OfTypes(|facts| Some(facts.arch))))
    } else if key == well_known::ZONE {
        Some(("a zone of the region", LabelValues::Names(region.zones.iter().map(|zone| zone.name).collect())))
    } else if key == well_known::CAPACITY_TYPE {
        Some((
            "a capacity type",
            LabelValues::Names(vec![well_known::SPOT, well_known::ON_DEMAND, well_known::RESERVED]),
        ))
    } else {
        None
    }
}
