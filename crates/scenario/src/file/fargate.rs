//! EKS on Fargate, as the scenario and its policies state it.

use super::overlays::lay;
use super::{Reading, ScenarioError};
use crate::definition::FargateSettings;
use crate::domain::Currency;
use crate::error::Warning;
use crate::manifests::Manifests;
use crate::reader::Fields;
use crate::schema::fargate::{FargateKeys, ProfileKeys};
use crate::tree::{Location, NodeKind};
use nodecast_model::fargate::{Profile, SELECTORS_MOST};
use nodecast_settings::lints;

/// Lays what is stated over what holds, and beside it the profiles that ClusterConfigs bring.
///
/// # Errors
/// If two profiles have one name, or nobody knows what it costs.
pub(super) fn lay_over<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    settings: &mut FargateSettings,
    (stated, brought): (Option<FargateKeys>, Vec<Profile>),
) -> Result<(), ScenarioError> {
    if stated.is_none() && brought.is_empty() {
        return Ok(());
    }
    let has_profiles = stated.as_ref().is_none_or(|item| item.profiles.is_some());
    if let Some(stated) = stated {
        lay_stated(settings, stated);
    }
    // One that is stated as a ClusterConfig has it is the same profile.
    let brought: Vec<Profile> = brought.into_iter().filter(|item| !settings.profiles.contains(item)).collect();
    refuse_namesakes(reading, fields, &settings.profiles, &brought)?;
    settings.profiles.extend(brought);
    if settings.profiles.is_empty() && !has_profiles {
        let text = "`fargate` has no profile: nothing runs on Fargate";
        let help = "add `profiles`, each with a name and the namespaces that it selects";
        reading.note(vec![Warning::from_lint(&lints::file::NO_FARGATE_PROFILE, text).help(help)]);
    }
    let has_prices = settings.vcpu_hour.is_some() && settings.gb_hour.is_some();
    if !settings.profiles.is_empty() && !has_prices && reading.region().currency != Currency::Usd {
        return Err(reading
            .error(place(fields), format!("what Fargate costs in {} is not known", reading.region().name))
            .because("no price")
            .help("state `fargate: {vcpu_hour: ..., gb_hour: ...}` in the currency of the region"));
    }
    Ok(())
}

/// The profiles of a policy's ClusterConfigs, next to those that it states or has of the scenario: one takes the place of that of its
/// name in the scenario's ClusterConfigs, as an object does that is applied again. A policy that states that it has none has none.
///
/// # Errors
/// As [`lay_over`].
pub(super) fn bring<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    settings: &mut FargateSettings,
    (base, manifests): (&Manifests, &Manifests),
) -> Result<(), ScenarioError> {
    let stated = fields.get("fargate").and_then(|field| field.get("profiles"));
    if stated.is_some_and(|item| matches!(&item.kind, NodeKind::Seq(items) if items.is_empty())) {
        return Ok(());
    }
    let brought = &manifests.fargate_profiles;
    let is_replaced =
        |known: &Profile| base.fargate_profiles.contains(known) && brought.iter().any(|newer| newer.name == known.name);
    settings.profiles.retain(|known| !is_replaced(known));
    lay_over(reading, fields, settings, (None, brought.clone()))
}

fn lay_stated(settings: &mut FargateSettings, stated: FargateKeys) {
    lay(&mut settings.profiles, stated.profiles);
    lay(&mut settings.vcpu_quota, stated.vcpu_quota);
    lay(&mut settings.burst, stated.launch_burst);
    lay(&mut settings.per_second, stated.launches_per_second);
    lay(&mut settings.start_time, stated.start_time);
    lay(&mut settings.pull_rate, stated.pull_rate);
    lay(&mut settings.round_robin, stated.spread);
    lay(&mut settings.sidecar_cpu_milli, stated.sidecar_cpu.map(|cpus| libm::ceil(cpus * 1e3) as i64));
    lay(&mut settings.sidecar_memory, stated.sidecar_memory);
    settings.vcpu_hour = stated.vcpu_hour.or(settings.vcpu_hour);
    settings.gb_hour = stated.gb_hour.or(settings.gb_hour);
}

/// Where what is said of Fargate stands: the key, else the manifests.
fn place(fields: Fields<'_, '_>) -> Location {
    fields.get("fargate").or_else(|| fields.get("manifests")).map_or(fields.at, |node| node.at)
}

/// Of several profiles that fit a pod the first by name takes it, so that each has a name of its own.
fn refuse_namesakes(
    reading: &Reading<'_, '_>,
    fields: Fields<'_, '_>,
    stated: &[Profile],
    brought: &[Profile],
) -> Result<(), ScenarioError> {
    let all: Vec<_> = stated.iter().chain(brought).map(|item| item.name).collect();
    let Some(second) = (1..all.len()).find(|&at| all[..at].contains(&all[at])) else { return Ok(()) };
    let (name, is_brought) = (all[second], second >= stated.len());
    let also = if is_brought { ": one of them in an eksctl ClusterConfig (`fargateProfiles`)" } else { "" };
    Err(reading
        .error(place(fields), format!("duplicate Fargate profile name `{name}`{also}"))
        .because("here")
        .help("give each its own name: of several that fit a pod the first by name takes it"))
}

/// A profile, with as many selectors as EKS allows.
///
/// # Errors
/// If it has none, or more than five.
pub(crate) fn profile<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    profile_keys: ProfileKeys,
) -> Result<Profile, ScenarioError> {
    if profile_keys.selectors.is_empty() || profile_keys.selectors.len() > SELECTORS_MOST {
        return Err(reading
            .error(
                fields.at,
                format!("the profile `{}` has {} selectors", profile_keys.name, profile_keys.selectors.len()),
            )
            .because("one to five")
            .help("give it one selector at least and five at most; two profiles may serve one namespace"));
    }
    Ok(Profile { name: profile_keys.name, selectors: profile_keys.selectors })
}
