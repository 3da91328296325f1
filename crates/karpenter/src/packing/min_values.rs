//! `minValues`: how many different values of a label the instance types of a claim must keep between them.
//!
//! Source: Karpenter core v1.13 `pkg/cloudprovider/types.go`, `SatisfiesMinValues`.

use std::collections::BTreeSet;

use crate::instance_types::InstanceType;
use nodecast_model::domain::Symbol;
use nodecast_model::domain::requirements::Requirements;

/// The keys for which `types` offer too few different values, with the number that they do offer. All values of a type
/// that can have several count.
pub(super) fn shortfalls(
    requirements: &Requirements,
    types: &[InstanceType],
    left: impl Iterator<Item = usize> + Clone,
) -> Vec<(Symbol, u32)> {
    let mut short = Vec::new();
    for requirement in requirements {
        let Some(least) = requirement.min_values else { continue };
        let mut values = BTreeSet::new();
        for index in left.clone() {
            if let Some(requirement) = types[index].requirements.get(requirement.key) {
                values.extend(requirement.values.iter().copied());
            }
        }
        let found = u32::try_from(values.len()).unwrap_or(u32::MAX);
        if found < least {
            short.push((requirement.key, found));
        }
    }
    short
}

/// The first label for which the types at `left` offer fewer different values than its `minValues` asks for.
pub fn min_values_missed(
    requirements: &Requirements,
    types: &[InstanceType],
    left: impl Iterator<Item = usize> + Clone,
) -> Option<Symbol> {
    shortfalls(requirements, types, left).into_iter().next().map(|(key, _)| key)
}
