//! How often launches come to nothing, and where capacity was short.

use std::collections::BTreeMap;

use nodecast_observed::claims::{End, Life, Milestone};
use nodecast_observed::estimate::{Estimate, Prior, Proportion, proportion_interval, proportion_posterior};

use super::boots::REGISTRATION_LIMIT;
use super::change::Change;
use super::{Fit, FitOutcome, Parameter, Unit, counted};

/// The weight of what is assumed, in launches. An assumption.
const PRIOR_LAUNCHES: f64 = 2_000.0;
/// Pools without capacity that are named.
const POOLS_SHOWN: usize = 5;

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let lives: Vec<&Life> = fit.history.lives.iter().flatten().filter(|life| !life.truncated).collect();
    let launched: Vec<&&Life> = lives.iter().filter(|life| life.at(Milestone::Launched).is_some()).collect();
    let assumed = fit.scenario.ec2.cloud.failures;
    let mut parameters = Vec::new();
    if !launched.is_empty() {
        let aborted = launched.iter().filter(|life| life.end == Some(End::Aborted)).count();
        let silent = launched.iter().filter(|life| never_registered(life)).count();
        let tries = launched.len();
        parameters.push(share(
            fit,
            ("launches given up", "abort", Change::Aborts),
            assumed.abort,
            Proportion { tries, failures: aborted },
        ));
        parameters.push(share(
            fit,
            ("nodes that never register", "never_registers", Change::NeverRegisters),
            assumed.never_registers,
            Proportion { tries, failures: silent },
        ));
    }
    parameters.extend(shortages(fit, lives.len()));
    parameters.into_iter().collect()
}

/// A claim that had its instance for a quarter of an hour and no node.
fn never_registered(life: &Life) -> bool {
    // What was Ready had registered, whoever saw that.
    if life.at(Milestone::Registered).or(life.ready()).is_some() || life.end == Some(End::Aborted) {
        return false;
    }
    let launched = life.at(Milestone::Launched);
    let until = life.ended().unwrap_or(life.window.until);
    life.end == Some(End::NotRegistered)
        || launched.is_some_and(|launched| until.seconds_since(launched) >= REGISTRATION_LIMIT)
}

fn share(
    fit: &Fit<'_>,
    (name, key, change): (&str, &str, fn(f64) -> Change),
    assumed: f64,
    seen: Proportion,
) -> Parameter {
    let none = Estimate { value: 0.0, low: 0.0, high: 1.0, n: 0 };
    let measured = proportion_interval(seen).unwrap_or(none);
    let shown = Parameter {
        assumed: Some(assumed),
        ..Parameter::shown(name, Unit::Share, measured, counted(seen.tries, "launch", "launches"))
    };
    if assumed <= 0.0 {
        return shown;
    }
    let prior = Prior { share: assumed, tries: PRIOR_LAUNCHES };
    let believed = proportion_posterior(prior, seen);
    let sure = prior.interval();
    let is_measured = measured.high - measured.low < sure.high - sure.low;
    let value = if is_measured && seen.failures > 0 { measured.value } else { believed.value };
    // To hundredths of a percent, as far as shares are written; below that nothing is learned.
    let text = |share: f64| format!("{}%", libm::round(share * 1e4) / 1e2);
    Parameter {
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value,
        keys: vec![fit.key(&["ec2", "failures", key], text(value), text(assumed))],
        notes: vec![format!("what is assumed counts as {PRIOR_LAUNCHES} launches")],
        change: Some(change(value)),
        ..shown
    }
}

/// Errors for want of capacity: only shown, since a scenario replays a shortage as a fault.
fn shortages(fit: &Fit<'_>, claims: usize) -> Option<Parameter> {
    let recorded = fit.history.shortages.as_ref()?;
    let failures: usize = recorded.iter().map(|shortage| shortage.count).sum();
    if failures == 0 {
        return None;
    }
    let measured = proportion_interval(Proportion { tries: claims.max(failures), failures })?;
    let mut pools: BTreeMap<String, usize> = BTreeMap::new();
    for shortage in recorded {
        let kind = shortage.instance_type.as_deref().unwrap_or("a type that is not told");
        let zone = shortage.zone.as_deref().map_or_else(String::new, |zone| format!(" in {zone}"));
        *pools.entry(format!("{kind}{zone}")).or_insert(0) += shortage.count;
    }
    let mut pools: Vec<(String, usize)> = pools.into_iter().collect();
    pools.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let from = format!("{} beside {}", counted(failures, "error", "errors"), counted(claims, "claim", "claims"));
    let mut shown = Parameter::shown("answers without capacity", Unit::Share, measured, from);
    shown.notes = pools.into_iter().take(POOLS_SHOWN).map(|(pool, count)| format!("{count} of {pool}")).collect();
    shown.notes.push("no key: replay a shortage with `faults`".to_owned());
    Some(shown)
}
