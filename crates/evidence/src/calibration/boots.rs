//! How long nodes take: from EC2's answer to registered, from there to Ready.
//!
//! The stages of the model are not seen one by one. Two sums are: the four stages until the node registers are scaled by one
//! factor, and `cni_ready` by what is left of the second sum once the wait for the kubelet's next status is taken off. What the model
//! makes of a sum, whose median is not the sum of the medians, is found by drawing from it; so are the effects of the instance type.

mod sums;

use std::collections::{BTreeMap, BTreeSet};

use nodecast_observed::claims::{End, Instant, Life, Milestone};
use nodecast_observed::estimate::{Duration, Estimate, LogNormal, median, shrink};

use super::change::{Change, slowed};
use super::{BETWEEN, Fit, FitOutcome, Key, Parameter, Unit, beats_assumed, counted, duration_text};
use crate::cloud::BootStages;
use crate::cloud::boot::BootTraits;
use crate::domain::Symbol;
use crate::domain::node_pool::AmiFamily;
use crate::engine::Streams;

/// Boots drawn from the model to know its mean.
const DRAWS: u64 = 4_000;
/// A node that has not registered by then never will: Karpenter gives its claim up.
///
/// Source: karpenter v1.13 `pkg/controllers/nodeclaim/lifecycle/liveness.go`.
pub(super) const REGISTRATION_LIMIT: f64 = 900.0;
/// Seconds from a claim being made to its call, and what an instance adds to one: what the model takes without any limit on calls.
const BEFORE_CALL: f64 = 0.27;
/// Claims that are made so many seconds after another or later do not wait for its call.
const TOGETHER: f64 = 5.0;
/// Boots of a type, of which there have to be so many before it is looked at alone.
const TYPE_MIN: usize = 20;
/// Sums are taken where they are of more than so many times the launches of which each is known.
const SUMS_TELL_MORE: usize = 4;
/// The section of the scenario.
const SECTION: [&str; 2] = ["ec2", "launch_latency"];

/// What the model makes of boots of some stages and traits.
#[derive(Clone, Copy)]
struct Reference {
    /// Mean and spread of the logarithm of the time to registered.
    log_registered: (f64, f64),
    /// Mean of the time to registered.
    registered: f64,
    /// Mean of the time from registered until the network plugin is ready.
    cni: f64,
    /// Mean of the wait for the status after it.
    status: f64,
}

impl Reference {
    fn new(stages: &BootStages, traits: BootTraits) -> Self {
        let streams = Streams::new(0);
        let draw = |stages: &BootStages, number| stages.draw(traits, &mut streams.nth("calibration", "boot", number));
        let without_status = BootStages { status: Some(0.0), ..*stages };
        let (mut logs, mut registered, mut cni, mut whole) = (Vec::new(), 0.0, 0.0, 0.0);
        for number in 0..DRAWS {
            let boot = draw(stages, number);
            logs.push(libm::log(boot.registered.as_secs_f64().max(1e-6)));
            registered += boot.registered.as_secs_f64();
            whole += (boot.ready - boot.registered).as_secs_f64();
            let bare = draw(&without_status, number);
            cni += (bare.ready - bare.registered).as_secs_f64();
        }
        let count = DRAWS as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let variance = logs.iter().map(|log| (log - mean) * (log - mean)).sum::<f64>() / (count - 1.0);
        Self {
            log_registered: (mean, libm::sqrt(variance)),
            registered: registered / count,
            cni: cni / count,
            status: (whole - cni) / count,
        }
    }
}

/// A boot with what the model would make of it.
struct Boot<'h> {
    life: &'h Life,
    reference: Reference,
}

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let mut parameters: Vec<Parameter> = calls(fit).into_iter().collect();
    // A handful of claims, as one look at them finds, says less than the sums of all launches of the record.
    let told = sums::launches(fit);
    let enough = |(_, boots): &(BootStages, Vec<Boot<'_>>)| boots.len() * SUMS_TELL_MORE >= told;
    let Some((stages, boots)) = boots(fit).filter(enough) else {
        parameters.extend(sums::fit(fit));
        return parameters;
    };
    parameters.extend(until_registered(fit, stages, &boots));
    parameters.extend(until_ready(fit, stages, &boots));
    parameters.extend(by_type(&boots));
    parameters
}

/// The boots of the family that most nodes are of, and the stages that are assumed of it.
fn boots<'h>(fit: &mut Fit<'h>) -> Option<(BootStages, Vec<Boot<'h>>)> {
    let lives: Vec<&'h Life> = fit.history.lives.iter().flatten().filter(|life| booted(life)).collect();
    let family = most_common_family(fit, &lives)?;
    let stages = fit.scenario.ec2.launch_latency.unwrap_or_else(|| BootStages::from_family(family));
    let mut references: BTreeMap<BootTraits, Reference> = BTreeMap::new();
    let mut boots = Vec::new();
    for life in lives.into_iter().filter(|life| family_of(fit, life) == family) {
        let kind = life.instance_type.as_deref().and_then(|name| fit.region.instance_type(Symbol::new(name)));
        let traits = kind.map_or_else(BootTraits::default, |kind| BootTraits::from_facts(&kind.facts));
        let reference = *references.entry(traits).or_insert_with(|| Reference::new(&stages, traits));
        boots.push(Boot { life, reference });
    }
    Some((stages, boots))
}

/// The family of most nodes; a warning where there are others, since the keys hold for all.
fn most_common_family(fit: &mut Fit<'_>, lives: &[&Life]) -> Option<AmiFamily> {
    let mut families: BTreeMap<String, (AmiFamily, usize)> = BTreeMap::new();
    for life in lives {
        let family = family_of(fit, life);
        families.entry(format!("{family:?}")).or_insert((family, 0)).1 += 1;
    }
    let (family, count) = families.values().copied().max_by_key(|(_, count)| *count)?;
    if count < lives.len() && fit.scenario.ec2.launch_latency.is_none() {
        fit.warnings.push(format!(
            "nodes are of {} image families: boots are fitted to the {count} of {family:?}, and `ec2.launch_latency` holds for all",
            families.len()
        ));
    }
    Some(family)
}

/// Whether a boot was seen from its beginning, and is none of those that come to nothing, which are counted elsewhere.
fn booted(life: &Life) -> bool {
    let given_up = matches!(life.end, Some(End::NotRegistered | End::Aborted | End::LaunchFailed));
    !life.truncated && !given_up && life.at(Milestone::Launched).is_some()
}

/// The image family of a node: by its node class, that of its NodePool, or its node group.
fn family_of(fit: &Fit<'_>, life: &Life) -> AmiFamily {
    let manifests = &fit.policy.manifests;
    let pool = life.pool.as_deref().unwrap_or_default();
    let by_pool = manifests
        .node_pools
        .iter()
        .find(|node_pool| node_pool.name.as_str() == pool)
        .map(|node_pool| node_pool.node_class.as_str());
    let class = life.node_class.as_deref().or(by_pool);
    let recorded = class.and_then(|class| fit.history.node_classes.get(class));
    let group = manifests.node_groups.iter().find(|group| group.name.as_str() == pool).map(|group| group.ami_family);
    let of_class =
        class.and_then(|class| manifests.node_classes.iter().find(|node_class| node_class.name.as_str() == class));
    recorded
        .and_then(|name| family_named(name))
        .or(group)
        .or_else(|| of_class.map(|class| class.ami_family))
        .unwrap_or(AmiFamily::AL2023)
}

fn family_named(name: &str) -> Option<AmiFamily> {
    Some(match name {
        "al2" => AmiFamily::AL2,
        "al2023" => AmiFamily::AL2023,
        "bottlerocket" => AmiFamily::Bottlerocket,
        "ubuntu" => AmiFamily::Ubuntu,
        "custom" => AmiFamily::Custom,
        "windows2019" => AmiFamily::Windows2019,
        "windows2022" => AmiFamily::Windows2022,
        "windows2025" => AmiFamily::Windows2025,
        _ => return None,
    })
}

/// The time from EC2's answer to registered; censored if it was not over when the record or the node ended.
fn time_to_register(life: &Life) -> Option<Duration> {
    let launched = life.at(Milestone::Launched)?;
    if let Some(registered) = life.at(Milestone::Registered) {
        let seconds = registered.seconds_since(launched);
        return (seconds > 0.0).then(|| Duration::whole(seconds));
    }
    let until = life.ended().unwrap_or(life.window.until).seconds_since(launched);
    (until > 0.0 && until < REGISTRATION_LIMIT).then(|| Duration::unfinished(until))
}

/// Made to launched: a call, and what Karpenter takes until it calls.
///
/// Times in whole seconds tell no call of one second: of them the median is only shown.
fn calls(fit: &Fit<'_>) -> Option<Parameter> {
    let mut lives: Vec<(Instant, &Life)> =
        fit.history.lives.iter().flatten().filter_map(|life| Some((life.at(Milestone::Created)?, life))).collect();
    lives.sort_by_key(|(created, life)| (*created, &life.name));
    // Calls of claims that are made together wait for each other, and for the launch template.
    let alone = |place: usize| {
        let before = place.checked_sub(1).and_then(|before| lives.get(before));
        before.is_none_or(|(before, _)| lives[place].0.seconds_since(*before) >= TOGETHER)
    };
    let single = (0..lives.len()).filter(|place| alone(*place)).map(|place| lives[place].1);
    let times = single.filter(|life| !life.truncated);
    let times = times.filter_map(|life| life.seconds(Milestone::Created, Milestone::Launched));
    let times: Vec<f64> = times.filter(|seconds| *seconds >= 0.0).collect();
    let whole = median(&times)?;
    let from = counted(times.len(), "claim", "claims");
    let stated = fit.scenario.ec2.cloud.times;
    if times.iter().all(|seconds| (seconds - libm::round(*seconds)).abs() < 1e-6) || stated.fleet_call.is_some() {
        return Some(Parameter::shown("claim made to launched", Unit::Seconds, whole, from));
    }
    let times: Vec<Duration> = times.iter().map(|seconds| Duration::whole((seconds - BEFORE_CALL).max(0.05))).collect();
    let fitted = LogNormal::fit(&times)?;
    let measured = fitted.median();
    let assumed = stated.fleet_call_median.as_secs_f64();
    let is_measured = beats_assumed(&measured);
    let value =
        if is_measured || assumed <= 0.0 { measured.value } else { shrink(&fitted, assumed, BETWEEN).median.value };
    let text = duration_text(value);
    let span = text.parse().unwrap_or(stated.fleet_call_median);
    Some(Parameter {
        assumed: Some(assumed),
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value,
        keys: vec![fit.key(&["ec2", "times", "fleet_call_median"], text, stated.fleet_call_median.to_string())],
        notes: vec![format!("claim made to launched less {BEFORE_CALL} s until Karpenter calls")],
        change: Some(Change::FleetCall(span)),
        ..Parameter::shown("CreateFleet call", Unit::Seconds, measured, from)
    })
}

fn relative(boot: &Boot<'_>) -> Option<Duration> {
    let time = time_to_register(boot.life)?;
    Some(Duration { seconds: time.seconds / libm::exp(boot.reference.log_registered.0), ..time })
}

fn until_registered(fit: &Fit<'_>, stages: BootStages, boots: &[Boot<'_>]) -> Option<Parameter> {
    let times: Vec<Duration> = boots.iter().filter_map(relative).collect();
    let fitted = LogNormal::fit(&times)?;
    let factor = fitted.median();
    let is_measured = beats_assumed(&factor);
    let value = if is_measured { factor.value } else { shrink(&fitted, 1.0, BETWEEN).median.value };
    let base = boots.iter().map(|boot| boot.reference.log_registered);
    let assumed = libm::exp(base.clone().map(|(mean, _)| mean).sum::<f64>() / boots.len() as f64);
    let spread = base.map(|(_, spread)| spread).sum::<f64>() / boots.len() as f64;
    let mut notes = vec![format!(
        "spread (standard deviation of the logarithm) {:.2} measured, {spread:.2} in the model",
        fitted.spread
    )];
    if fitted.censored > 0 {
        let open = counted(fitted.censored, "boot was", "boots were");
        let how = if fitted.by_likelihood { "fitted by maximum likelihood" } else { "few enough to be left out" };
        notes.push(format!("{open} not over: {how}"));
    }
    Some(Parameter {
        assumed: Some(assumed),
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value: value * assumed,
        keys: slowed_keys(fit, &stages, value),
        notes,
        change: Some(Change::BootUntilRegistered(value, stages)),
        ..Parameter::shown(
            "launched to registered",
            Unit::Seconds,
            factor.times(assumed),
            counted(fitted.n, "boot", "boots"),
        )
    })
}

/// The keys of stages up to registered that take `factor` times as long.
fn slowed_keys(fit: &Fit<'_>, stages: &BootStages, factor: f64) -> Vec<Key> {
    let new = slowed(*stages, factor);
    let stage =
        |name, new: f64, old: f64| fit.key(&[SECTION[0], SECTION[1], name], duration_text(new), duration_text(old));
    vec![
        stage("vm_init", new.vm_init, stages.vm_init),
        stage("os_boot", new.os_boot, stages.os_boot),
        stage("bootstrap", new.bootstrap, stages.bootstrap),
        stage("register", new.register, stages.register),
    ]
}

fn until_ready(fit: &mut Fit<'_>, stages: BootStages, boots: &[Boot<'_>]) -> Option<Parameter> {
    let spans = |boot: &Boot<'_>| Some(boot.life.ready()?.seconds_since(boot.life.at(Milestone::Registered)?));
    let times: Vec<f64> = boots.iter().filter_map(spans).filter(|seconds| *seconds >= 0.0).collect();
    let reference = boots.first()?.reference;
    let n = times.len();
    let mean = mean_with_error(&times)?;
    // The mean of what is left is proportional to the key.
    let scale = stages.cni_ready / reference.cni.max(1e-9);
    let least = 0.05;
    let of = |seconds: f64| ((seconds - reference.status) * scale).max(least);
    let measured = Estimate { value: of(mean.value), low: of(mean.low), high: of(mean.high), n };
    let is_measured = beats_assumed(&measured);
    let spread = measured.log_width() / (2.0 * 1.96) * libm::sqrt(n as f64);
    let fitted = LogNormal { mean: libm::log(measured.value), spread, n, censored: 0, by_likelihood: false };
    let shrunk =
        if stages.cni_ready > 0.0 { shrink(&fitted, stages.cni_ready, BETWEEN).median.value } else { measured.value };
    let value = if is_measured { measured.value } else { shrunk };
    let mut notes = vec![format!(
        "{:.1} s from registered to Ready on average, less {:.1} s until the kubelet's next status",
        mean.value, reference.status
    )];
    if boots.iter().all(|boot| boot.life.at(Milestone::Ready).is_none()) {
        notes.push("up to Initialized, as no Node tells when it was Ready".to_owned());
    }
    if mean.value <= reference.status {
        fit.warnings
            .push("nodes are Ready sooner after registering than the kubelet's status alone would take".to_owned());
    }
    let keys =
        vec![fit.key(&[SECTION[0], SECTION[1], "cni_ready"], duration_text(value), duration_text(stages.cni_ready))];
    Some(Parameter {
        assumed: Some(stages.cni_ready),
        taken: if is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value,
        keys,
        notes,
        change: Some(Change::CniReady(value, stages)),
        ..Parameter::shown("registered to network ready", Unit::Seconds, measured, counted(n, "boot", "boots"))
    })
}

/// A mean with its 95 % interval; of one value the interval that its assumed spread makes.
fn mean_with_error(values: &[f64]) -> Option<Estimate> {
    let logs: Vec<f64> = values.to_vec();
    let n = logs.len();
    if n == 0 {
        return None;
    }
    let mean = logs.iter().sum::<f64>() / n as f64;
    let squares: f64 = logs.iter().map(|value| (value - mean) * (value - mean)).sum();
    let deviation = if n > 1 { libm::sqrt(squares / (n - 1) as f64) } else { mean * BETWEEN };
    let quantile = if n > 1 { crate::statistics::student_t_quantile(0.975, (n - 1) as f64) } else { 1.96 };
    let error = quantile * deviation / libm::sqrt(n as f64);
    Some(Estimate { value: mean, low: mean - error, high: mean + error, n })
}

/// Types of which there are enough boots: what the model leaves over of each.
fn by_type(boots: &[Boot<'_>]) -> Vec<Parameter> {
    let types: BTreeSet<&str> = boots.iter().filter_map(|boot| boot.life.instance_type.as_deref()).collect();
    let of_type = |name: &str| {
        let boot = boots.iter().filter(|boot| boot.life.instance_type.as_deref() == Some(name));
        let times: Vec<Duration> = boot.filter_map(relative).collect();
        let fitted = LogNormal::fit(&times)?;
        let parameter = Parameter::shown(
            format!("launched to registered, {name}"),
            Unit::Factor,
            fitted.median(),
            counted(fitted.n, "boot", "boots"),
        );
        (fitted.n >= TYPE_MIN && fitted.n < boots.len()).then_some(Parameter { assumed: Some(1.0), ..parameter })
    };
    types.into_iter().filter_map(of_type).collect()
}
