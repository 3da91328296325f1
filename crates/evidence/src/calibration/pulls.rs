//! How fast nodes pull images, and how large these are.
//!
//! The model of a pull is an overhead, the bytes at the rate of pulling, and the bytes at that of unpacking. Kubelets tell one time for
//! all three: what is left of it without the overhead is fitted as bytes over a rate, and the share of unpacking taken as assumed.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_observed::claims::{ImagePull, Instant, PodLife};
use nodecast_observed::estimate::{Estimate, slope_through_zero};

use super::change::Change;
use super::{Fit, FitOutcome, Parameter, Unit, beats_assumed, counted, pods};
use crate::domain::{PodSpec, Symbol};
use nodecast_sim::actors::{BIND, CONTAINER_START, PULL_OVERHEAD};

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

/// Pulls of a simulation or an observation: of the first pod on each node that needed an image, whose size the scenario states or assumes. A list of
/// the pods that a cluster has now does not show which was the first, nor whether the image was there already.
fn of_run(fit: &Fit<'_>) -> Vec<Sample> {
    let mut by_node: BTreeMap<&str, Vec<(Instant, Instant, &PodLife)>> = BTreeMap::new();
    for pod in fit.history.pods.iter().flatten().filter(|pod| pod.of_tables) {
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
            // Init containers run in between, volumes are waited for, and what takes no time was there already. A pod outside the host's
            // network that is bound before its node is Ready waits for the network plugin, as one of a DaemonSet does on a new node.
            let has_network = spec.host_network || pod.node_ready.map_or(!pod.daemon, |ready| ready <= *scheduled);
            let is_plain = spec.init_containers.is_empty() && spec.volumes.is_empty() && has_network;
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

/// Seconds for a byte as they were measured and as they are taken, and the rates that they come to.
struct Slopes {
    measured: Estimate,
    is_measured: bool,
    taken: f64,
    /// The rates of pulling and unpacking that are assumed.
    assumed: (f64, f64),
}

impl Slopes {
    fn new(points: &[(f64, f64)], resolution: f64, assumed: (f64, f64)) -> Option<Self> {
        let fitted = slope_through_zero(points)?.slope;
        // All may be rounded the same way.
        let (sum, squares) = points.iter().fold((0.0, 0.0), |(sum, squares), (x, _)| (sum + x, squares + x * x));
        let rounded = resolution * sum / squares;
        let measured = Estimate { low: fitted.low - rounded, high: fitted.high + rounded, ..fitted };
        let is_measured = points.len() > 1 && beats_assumed(&measured);
        let both = 1.0 / assumed.0 + 1.0 / assumed.1;
        // One pull alone, or pulls that differ much: halfway, in the logarithm.
        let taken = if is_measured { measured.value } else { libm::sqrt(measured.value * both) };
        (fitted.value > 0.0).then_some(Self { measured, is_measured, taken, assumed })
    }

    /// Whether pulls take less time than unpacking alone is assumed to: then both rates are raised by one factor.
    fn beats_unpacking(&self) -> bool {
        self.taken - 1.0 / self.assumed.1 < self.taken * PULLING_MIN
    }

    /// The rate of pulling that seconds for a byte come to.
    fn pull_rate(&self, slope: f64) -> f64 {
        let (pull, unpack) = self.assumed;
        if self.beats_unpacking() {
            return pull * (1.0 / pull + 1.0 / unpack) / slope;
        }
        1.0 / (slope - 1.0 / unpack).max(slope * PULLING_MIN)
    }

    /// The rates of pulling and unpacking that are taken.
    fn rates(&self) -> (f64, f64) {
        let (pull, unpack) = self.assumed;
        let new = self.pull_rate(self.taken);
        (new, if self.beats_unpacking() { unpack * new / pull } else { unpack })
    }
}

fn rates(fit: &Fit<'_>, samples: &[Sample]) -> Option<Parameter> {
    let overhead = PULL_OVERHEAD.as_secs_f64();
    let points: Vec<(f64, f64)> =
        samples.iter().map(|sample| (sample.bytes, sample.seconds - overhead * sample.images as f64)).collect();
    let images = &fit.scenario.images;
    let assumed = (images.pull_rate as f64, images.unpack_rate as f64);
    let resolution = if fit.history.simulated { RESOLUTION_OF_RUNS } else { 0.0 };
    let slopes = Slopes::new(&points, resolution, assumed)?;
    let rounded = |value: f64| (libm::round(value / 1e5) * 1e5).max(1e5) as i64;
    let (pull, unpack) = slopes.rates();
    let mut keys = vec![fit.key(&["images", "pull_rate"], bytes_text(rounded(pull)), bytes_text(images.pull_rate))];
    let mut notes = vec![format!("the time of a pull less {overhead} s for each image; unpacking as assumed")];
    if slopes.beats_unpacking() {
        let unpacking = bytes_text(images.unpack_rate);
        keys.push(fit.key(&["images", "unpack_rate"], bytes_text(rounded(unpack)), unpacking));
        notes = vec!["faster than unpacking alone is assumed to be: both rates by one factor".to_owned()];
    }
    if !fit.history.simulated {
        notes.push(format!("compressed sizes taken as the stored ones over {STORED}"));
    }
    let of = |slope| slopes.pull_rate(slope);
    let Estimate { value, low, high, n } = slopes.measured;
    let measured = Estimate { value: of(value), low: of(high), high: of(low), n };
    Some(Parameter {
        assumed: Some(assumed.0),
        taken: if slopes.is_measured { FitOutcome::Measured } else { FitOutcome::Shrunk },
        value: pull,
        keys,
        notes,
        change: Some(Change::PullRates(rounded(pull), rounded(unpack))),
        ..Parameter::shown("images pulled per second", Unit::BytesPerSecond, measured, counted(n, "pull", "pulls"))
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
            taken: FitOutcome::Measured,
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
