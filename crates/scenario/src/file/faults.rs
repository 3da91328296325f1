//! `faults`: what goes wrong when.

use super::timeline::warn_of_late;
use super::{Reading, ScenarioError};
use crate::cloud::faults::{Fault, FaultKind, PoolSelector, Struck};
use crate::cloud::quotas::QuotaClass;
use crate::domain::{SimTime, well_known};
use crate::reader::Fields;
use crate::schema::Section;
use crate::schema::faults::{FaultEntry, NODE_FAILURE, NodeFailure, Quota, SpotInterruption};

/// Faults that begin before the end of the run, in order of time. What begins after it is checked like the rest, and then left out.
pub(super) fn in_order(mut faults: Vec<Fault>, end: SimTime) -> Vec<Fault> {
    faults.retain(|fault| fault.at < end);
    faults.sort_by_key(|fault| fault.at);
    faults
}

/// A fault with its end.
pub(crate) fn fault<'s>(
    reading: &mut Reading<'_, 's>,
    _: Fields<'_, 's>,
    entry: FaultEntry,
) -> Result<Fault, ScenarioError> {
    let ((at, place), kind) = (entry.at, entry.kind);
    let duration = reading.duration;
    warn_of_late(&mut reading.reader, place, "fault", at, duration);
    let until = match (entry.length, kind.is_instant()) {
        (Some((_, place)), true) => {
            let what =
                if matches!(kind, FaultKind::NodeFailure { .. }) { "a node failure" } else { "a Spot interruption" };
            return Err(reading
                .error(place, format!("{what} is instantaneous"))
                .because("has no effect")
                .help("remove `for`"));
        }
        (None, true) => at,
        (Some((length, _)), false) => at + length,
        (None, false) => SimTime::ZERO + duration,
    };
    Ok(Fault { at, until, kind })
}

/// What is wrong with a fault that is nothing, or several things.
pub(crate) fn none_or_many(
    reading: &Reading<'_, '_>,
    section: &Section,
    fields: Fields<'_, '_>,
    given: usize,
) -> ScenarioError {
    reading
        .error(fields.at, format!("a fault entry must have exactly one kind; this one has {given}"))
        .because("this fault")
        .help(format!("give it one of {}", section.one_of.join(", ")))
}

/// What is wrong with a fault that says twice or not at all how many instances it strikes.
pub(crate) fn no_victims(
    reading: &Reading<'_, '_>,
    section: &Section,
    fields: Fields<'_, '_>,
    _: usize,
) -> ScenarioError {
    let given: Vec<_> =
        ["fraction", "count", "node"].into_iter().filter_map(|key| Some((key, fields.get(key)?))).collect();
    let [(first, _), (second, node), ..] = given.as_slice() else {
        return fields.required(&reading.reader, "fraction").err().unwrap_or_else(|| {
            reading.error(fields.at, "no targets selected").because("this fault").help("give it a `count`")
        });
    };
    let how = if std::ptr::eq(section, &raw const NODE_FAILURE) { "struck" } else { "interrupted" };
    reading
        .error(node.at, format!("`{first}` and `{second}` both say how many are {how}"))
        .because("the second of the two")
        .help("take one of them out")
}

/// Another vCPU quota.
pub(crate) fn quota(
    reading: &mut Reading<'_, '_>,
    fields: Fields<'_, '_>,
    quota: Quota,
) -> Result<FaultKind, ScenarioError> {
    let Quota { class, vcpus, capacity_type } = quota;
    if class == QuotaClass::P5 && capacity_type == Some(well_known::ON_DEMAND) {
        let at = fields.get("class").map_or(fields.at, |node| node.at);
        return Err(reading
            .error(at, "On-Demand has no quota `p5`")
            .because("a class of Spot only")
            .help("use `class: parallel`, which includes P5"));
    }
    Ok(FaultKind::Quota { class, capacity_type, vcpus })
}

/// An interruption of Spot instances.
pub(crate) fn spot_interruption(
    _: &mut Reading<'_, '_>,
    _: Fields<'_, '_>,
    spot_interruption: SpotInterruption,
) -> Result<FaultKind, ScenarioError> {
    let SpotInterruption { victims, family, instance_type, zone, before } = spot_interruption;
    let pools = PoolSelector { family, instance_type, zone, capacity_type: None };
    Ok(FaultKind::SpotInterruption { pools, victims, before })
}

/// A failure of hardware.
pub(crate) fn node_failure(
    _: &mut Reading<'_, '_>,
    _: Fields<'_, '_>,
    node_failure: NodeFailure,
) -> Result<FaultKind, ScenarioError> {
    let NodeFailure { victims, node_pool, family, instance_type, zone, capacity_type, mode } = node_failure;
    let pools = PoolSelector { family, instance_type, zone, capacity_type };
    Ok(FaultKind::NodeFailure { struck: Struck { pools, node_pool, victims }, mode })
}
