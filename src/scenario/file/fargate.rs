//! EKS on Fargate, as the scenario and its policies state it.

use super::overlays::lay;
use super::{Reading, ScenarioError};
use crate::domain::Currency;
use crate::policy::fargate::Profile;
use crate::scenario::definition::FargateSettings;
use crate::scenario::error::{Effect, Warning};
use crate::scenario::reader::Fields;
use crate::scenario::schema::fargate::{FargateKeys, ProfileKeys};

/// Lays what is stated over what holds.
///
/// # Errors
/// If two profiles have one name, or nobody knows what it costs.
pub(super) fn lay_over<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    settings: &mut FargateSettings,
    stated: FargateKeys,
) -> Result<(), ScenarioError> {
    let node = fields.required(&reading.reader, "fargate")?;
    let has_profiles = stated.profiles.is_some();
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
    if settings.profiles.is_empty() && !has_profiles {
        let text = "`fargate` has no profile: nothing runs on Fargate";
        let help = "add `profiles`, each with a name and the namespaces that it selects";
        reading.note(vec![Warning::new(text).help(help).with_effect(Effect::ChangesAnswer)]);
    }
    let names: Vec<_> = settings.profiles.iter().map(|own| own.name).collect();
    if let Some(place) = (1..names.len()).find(|&place| names[..place].contains(&names[place])) {
        return Err(reading
            .error(node.at, format!("two Fargate profiles are called `{}`", names[place]))
            .because("here")
            .help("give each its own name: of several that fit a pod the first by name takes it"));
    }
    let has_prices = settings.vcpu_hour.is_some() && settings.gb_hour.is_some();
    if !settings.profiles.is_empty() && !has_prices && reading.region().currency != Currency::Usd {
        return Err(reading
            .error(node.at, format!("what Fargate costs in {} is not known", reading.region().name))
            .because("no price")
            .help("state `vcpu_hour` and `gb_hour` in the currency of the region"));
    }
    Ok(())
}

/// Selectors that a profile may have.
const SELECTORS_MOST: usize = 5;

/// A profile, with as many selectors as EKS allows.
///
/// # Errors
/// If it has none, or more than five.
pub(in crate::scenario) fn profile<'s>(
    reading: &Reading<'_, 's>,
    fields: Fields<'_, 's>,
    own: ProfileKeys,
) -> Result<Profile, ScenarioError> {
    if own.selectors.is_empty() || own.selectors.len() > SELECTORS_MOST {
        return Err(reading
            .error(fields.at, format!("the profile `{}` has {} selectors", own.name, own.selectors.len()))
            .because("one to five")
            .help("give it one selector at least and five at most; two profiles may serve one namespace"));
    }
    Ok(Profile { name: own.name, selectors: own.selectors })
}
