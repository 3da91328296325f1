//! How fast nodes pull images, and how large these are.
//!
//! The model of a pull is an overhead, the bytes at the rate of pulling, and the bytes at that of unpacking. Kubelets tell one time for
//! all three: what is left of it without the overhead is fitted as bytes over a rate, and the share of unpacking taken as assumed.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_observed::claims::{ImagePull, Instant, PodLife};
use nodecast_observed::estimate::{Estimate, slope_through_zero};

use super::change::Change;
use super::{Fit, Parameter, Taken, Unit, beats_assumed, counted, pods};
use crate::actors::{BIND, CONTAINER_START, PULL_OVERHEAD};
use crate::domain::{PodSpec, Symbol};

/// Smaller images say more of the registry than of the rate.
const BYTES_MIN: f64 = 50e6;
/// Bytes on disk of one compressed byte. An assumption: layers of text and machine code compress to about two fifths.
const STORED: f64 = 2.5;
/// Half of what the times of a run's own pulls are rounded to, in seconds.
const RESOLUTION_OF_RUNS: f64 = 0.05;
/// The least share of the time that pulling takes where unpacking goes as fast as assumed; below, unpacking is faster too.
const PULLING_MIN: f64 = 0.02;

/// Pulls on one node that went on at a time: they share what the node has.
struct Sample {
    bytes: f64,
    seconds: f64,
    images: usize,
}

pub(super) fn fit(fit: &mut Fit<'_>) -> Vec<Parameter> {
    let samples = if fit.history.pulls.is_empty() { of_run(fit) } else { of_events(&fit.history.pulls) };
    let mut parameters: Vec<Parameter> = rates(fit, &samples).into_iter().collect();
    parameters.extend(sizes(fit));
    parameters
}

/// Pulls that overlap on a node, together: kubelets do not say how long one waited for another's bytes.
fn of_events(pulls: &[ImagePull]) -> Vec<Sample> {
    let mut by_node: BTreeMap<Option<&str>, Vec<&ImagePull>> = BTreeMap::new();
    for pull in pulls.iter().filter(|pull| pull.bytes.is_some()) {
        by_node.entry(pull.node.as_deref()).or_default().push(pull);
    }
    let mut samples = Vec::new();
    for (node, mut pulls) in by_node {
        let begin = |pull: &ImagePull| pull.at.plus_seconds(-pull.seconds);
        pulls.sort_by_key(|pull| (begin(pull), pull.at));
        let mut open: Option<(Sample, Instant, Instant)> = None;
        for pull in pulls {
            let bytes = pull.bytes.unwrap_or(0.0) / STORED;
            match &mut open {
                Some((sample, from, until)) if node.is_some() && begin(pull) < *until => {
                    *until = pull.at.max(*until);
                    let seconds = until.seconds_since(*from);
                    *sample = Sample { bytes: sample.bytes + bytes, seconds, images: sample.images + 1 };
                }
                _ => {
                    samples.extend(open.take().map(|(sample, _, _)| sample));
                    open = Some((Sample { bytes, seconds: pull.seconds, images: 1 }, begin(pull), pull.at));
                }
            }
        }
        samples.extend(open.map(|(sample, _, _)| sample));
    }
    samples.retain(|sample| sample.bytes * STORED >= BYTES_MIN * sample.images as f64);
    samples
}

/// Pulls of a simulation: of the first pod on each node that needed an image, whose size the scenario states or assumes.
fn of_run(fit: &Fit<'_>) -> Vec<Sample> {
    let mut by_node: BTreeMap<&str, Vec<(Instant, Instant, &PodLife)>> = BTreeMap::new();
    for pod in &fit.history.pods {
        if let (Some(node), Some(scheduled), Some(started)) = (&pod.node, pod.scheduled, pod.started) {
            by_node.entry(node).or_default().push((scheduled, started, pod));
        }
    }
    let specs = pods::specs(&fit.policy.manifests);
    let mut samples = Vec::new();
    for pods in by_node.values_mut() {
        pods.sort_by(|a, b| (a.0, &a.2.name).cmp(&(b.0, &b.2.name)));
        let mut there: BTreeSet<&str> = BTreeSet::new();
        let mut idle = Instant(0);
        for (scheduled, started, pod) in pods.iter() {
            let Some(spec) = pod.workload.as_deref().and_then(|name| specs.get(name)) else { continue };
            let new: Vec<&str> = images(spec).filter(|image| there.insert(image)).collect();
            if new.is_empty() {
                continue;
            }
            let from = idle.max(scheduled.plus_seconds(BIND.as_secs_f64()));
            let until = started.plus_seconds(-CONTAINER_START.as_secs_f64());
            idle = idle.max(until);
            let bytes: f64 = new.iter().map(|image| fit.scenario.images.size_of(Symbol::new(image)) as f64).sum();
            let sample = Sample { bytes, seconds: until.seconds_since(from), images: new.len() };
            // Init containers run in between, volumes are waited for, and what takes no time was there already.
            let is_plain = spec.init_containers.is_empty() && spec.volumes.is_empty();
            let is_pull = sample.seconds > PULL_OVERHEAD.as_secs_f64() && bytes >= BYTES_MIN * new.len() as f64;
            if is_plain && is_pull {
                samples.push(sample);
            }
        }
    }
    samples
}

fn images(spec: &PodSpec) -> impl Iterator<Item = &str> {
    let init = spec.init_containers.iter().map(|init| init.container.image.as_str());
    init.chain(spec.containers.iter().map(|container| container.image.as_str()))
}

fn rates(fit: &mut Fit<'_>, samples: &[Sample]) -> Option<Parameter> {
    let overhead = PULL_OVERHEAD.as_secs_f64();
    let points: Vec<(f64, f64)> =
        samples.iter().map(|sample| (sample.bytes, sample.seconds - overhead * sample.images as f64)).collect();
    let fitted = slope_through_zero(&points)?.slope;
    if fitted.value <= 0.0 {
        fit.warnings.push("images are pulled faster than the overhead of a pull alone: no rate is fitted".to_owned());
        return None;
    }
    // All may be rounded the same way.
    let (sum, squares) = points.iter().fold((0.0, 0.0), |(sum, squares), (x, _)| (sum + x, squares + x * x));
    let rounded = if fit.history.simulated { RESOLUTION_OF_RUNS * sum / squares } else { 0.0 };
    let slope = Estimate { low: fitted.low - rounded, high: fitted.high + rounded, ..fitted };
    let images = &fit.scenario.images;
    let (pull, unpack) = (images.pull_rate as f64, images.unpack_rate as f64);
    let is_measured = samples.len() > 1 && beats_assumed(&slope);
    let assumed_slope = 1.0 / pull + 1.0 / unpack;
    // One pull alone: halfway, in the logarithm.
    let slope_taken = if is_measured { slope.value } else { libm::sqrt(slope.value * assumed_slope) };
    let unpacking = 1.0 / unpack;
    let alone = |slope: f64| 1.0 / (slope - unpacking).max(slope * PULLING_MIN);
    let both = slope_taken - unpacking < slope_taken * PULLING_MIN;
    let factor = assumed_slope / slope_taken;
    let (new_pull, new_unpack) = if both { (pull * factor, unpack * factor) } else { (alone(slope_taken), unpack) };
    let measured = match both {
        true => Estimate {
            value: pull * assumed_slope / slope.value,
            low: pull * assumed_slope / slope.high,
            high: pull * assumed_slope / slope.low,
            n: slope.n,
        },
        false => Estimate { value: alone(slope.value), low: alone(slope.high), high: alone(slope.low), n: slope.n },
    };
    let rate = |value: f64| (libm::round(value / 1e5) * 1e5).max(1e5) as i64;
    let mut keys = vec![fit.key(&["images", "pull_rate"], bytes_text(rate(new_pull)), bytes_text(images.pull_rate))];
    let mut notes = vec![format!("{} less {overhead} s for each image; unpacking as assumed", "time of a pull")];
    if both {
        keys.push(fit.key(&["images", "unpack_rate"], bytes_text(rate(new_unpack)), bytes_text(images.unpack_rate)));
        notes = vec!["faster than unpacking alone is assumed to be: both rates by one factor".to_owned()];
    }
    if !fit.history.simulated {
        notes.push(format!("compressed sizes taken as the stored ones over {STORED}"));
    }
    Some(Parameter {
        assumed: Some(pull),
        taken: if is_measured { Taken::Measured } else { Taken::Shrunk },
        value: new_pull,
        keys,
        notes,
        change: Some(Change::PullRates(rate(new_pull), rate(new_unpack))),
        ..Parameter::shown(
            "images pulled per second",
            Unit::BytesPerSecond,
            measured,
            counted(samples.len(), "pull", "pulls"),
        )
    })
}

/// Bytes as a scenario writes them.
fn bytes_text(bytes: i64) -> String {
    match bytes {
        _ if bytes % 1_000_000 == 0 => format!("{}M", bytes / 1_000_000),
        _ if bytes % 1_000 == 0 => format!("{}k", bytes / 1_000),
        _ => bytes.to_string(),
    }
}

/// The compressed sizes of images that the scenario's manifests name.
fn sizes(fit: &Fit<'_>) -> Vec<Parameter> {
    let specs = pods::specs(&fit.policy.manifests);
    let named: BTreeSet<&str> = specs.values().flat_map(|spec| images(spec)).collect();
    let mut stored: BTreeMap<&str, (f64, usize)> = BTreeMap::new();
    for pull in fit.history.pulls.iter().filter(|pull| named.contains(pull.image.as_str())) {
        if let Some(bytes) = pull.bytes {
            let size = stored.entry(&pull.image).or_insert((bytes, 0));
            *size = (bytes, size.1 + 1);
        }
    }
    let of = |(image, (bytes, n)): (&str, (f64, usize))| {
        let size = (libm::round(bytes / STORED / 1e5) * 1e5).max(1e5) as i64;
        let symbol = Symbol::new(image);
        let assumed = fit.scenario.images.size_of(symbol);
        let value = size as f64;
        Parameter {
            assumed: Some(assumed as f64),
            taken: Taken::Measured,
            keys: vec![fit.key(&["images", "sizes", image], bytes_text(size), bytes_text(assumed))],
            notes: vec![format!("{bytes:.0} bytes stored, over {STORED}")],
            change: Some(Change::ImageSizes(BTreeMap::from([(symbol, size)]))),
            ..Parameter::shown(
                format!("size of {image}"),
                Unit::Bytes,
                Estimate { value, low: value, high: value, n },
                counted(n, "pull", "pulls"),
            )
        }
    };
    stored.into_iter().map(of).collect()
}
