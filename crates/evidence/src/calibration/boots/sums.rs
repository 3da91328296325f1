//! Boots of which only sums are told, as the histograms of Karpenter's metrics do: how many launches came to a condition of their
//! claim, and how long all of them together took.

use nodecast_observed::claims::{Life, Milestone};
use nodecast_observed::estimate::{Estimate, LogNormal, shrink};

use super::{BootStages, BootTraits, Change, Reference, slowed_keys};
use crate::calibration::{BETWEEN, Fit, FitOutcome, Parameter, Unit, beats_assumed, counted};
use crate::domain::Symbol;

/// What sums tell: the time until nodes register, and only shown what Karpenter takes from there until it counts a node initialized.
pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    until_registered(fit).into_iter().chain(until_initialized(fit)).collect()
}

/// Of how many launches sums tell when they registered.
pub(super) fn launches(fit: &Fit<'_>) -> usize {
    between(fit, Milestone::Launched, Milestone::Registered).map_or(0, |(_, launches)| launches)
}

/// Mean seconds between two conditions, and of how many launches the later one is. Launches still on their way between them shift it
/// by no more than their share.
fn between(fit: &Fit<'_>, from: Milestone, to: Milestone) -> Option<(f64, usize)> {
    let (before, _) = fit.history.mean_to(from)?;
    let (after, launches) = fit.history.mean_to(to)?;
    (after > before).then_some((after - before, libm::round(launches) as usize))
}

/// The mean against that of the model, whose spread is taken: buckets twice as wide as those below them tell none.
fn until_registered(fit: &mut Fit<'_>) -> Option<Parameter> {
    let (mean, n) = between(fit, Milestone::Launched, Milestone::Registered)?;
    let lives: Vec<&Life> = fit.history.lives.iter().flatten().filter(|life| !life.truncated).collect();
    let family = super::most_common_family(fit, &lives).unwrap_or(super::AmiFamily::AL2023);
    let stages = fit.scenario.ec2.launch_latency.unwrap_or_else(|| BootStages::from_family(family));
    let references = references(fit, &lives, &stages);
    let count = references.len() as f64;
    let mean_of = |of: fn(&Reference) -> f64| references.iter().map(of).sum::<f64>() / count;
    let spread = mean_of(|reference| reference.log_registered.1);
    let assumed = libm::exp(mean_of(|reference| reference.log_registered.0));
    let mean_log = libm::log(mean / mean_of(|reference| reference.registered));
    let fitted = LogNormal { mean: mean_log, spread, n, censored: 0, by_likelihood: false };
    let factor = fitted.median();
    let is_measured = beats_assumed(&factor);
    let value = if is_measured { factor.value } else { shrink(&fitted, 1.0, BETWEEN).median.value };
    Some(Parameter {
        assumed: Some(assumed),
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value: value * assumed,
        keys: slowed_keys(fit, &stages, value),
        notes: vec![format!(
            "the mean of a histogram, {mean:.1} s; spread (standard deviation of the logarithm) {spread:.2} as in the model"
        )],
        change: Some(Change::BootUntilRegistered(value, stages)),
        ..Parameter::shown(
            "launched to registered",
            Unit::Seconds,
            factor.times(assumed),
            counted(n, "launch", "launches"),
        )
    })
}

/// What the model makes of the types that were launched; of an average one where none is known.
fn references(fit: &Fit<'_>, lives: &[&Life], stages: &BootStages) -> Vec<Reference> {
    let mut known: std::collections::BTreeMap<BootTraits, Reference> = std::collections::BTreeMap::new();
    let mut of = |traits: BootTraits| *known.entry(traits).or_insert_with(|| Reference::new(stages, traits));
    let kinds = lives.iter().filter_map(|life| fit.region.instance_type(Symbol::new(life.instance_type.as_deref()?)));
    let references: Vec<Reference> = kinds.map(|kind| of(BootTraits::from_facts(&kind.facts))).collect();
    if references.is_empty() { vec![of(BootTraits::default())] } else { references }
}

/// Registered to initialized holds the network plugin, the kubelet's next status, and what Karpenter itself takes: nothing to be told
/// apart.
fn until_initialized(fit: &Fit<'_>) -> Option<Parameter> {
    let (mean, n) = between(fit, Milestone::Registered, Milestone::Initialized)?;
    let measured = Estimate { value: mean, low: mean, high: mean, n };
    let from = counted(n, "launch", "launches");
    let mut shown = Parameter::shown("registered to initialized", Unit::Seconds, measured, from);
    shown.notes.push("a mean; the network plugin cannot be told apart from Karpenter's own time by it".to_owned());
    Some(shown)
}
