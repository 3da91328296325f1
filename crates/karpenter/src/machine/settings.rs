//! What Karpenter is told when it starts.

use std::sync::Arc;

use crate::packing::{DefaultSpread, MinValuesPolicy, PackerKind, PreferencePolicy};
use nodecast_model::domain::controller_time::AutoscalerTime;
use nodecast_model::domain::{
    CapacityBuffer, FeatureGates, KarpenterVersion, KubernetesVersion, Labels, NodeClass, PodSpec, SimDuration,
    SimTime, Symbol,
};

/// Karpenter's own settings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KarpenterSettings {
    /// `batch-idle-duration`.
    pub batch_idle: SimDuration,
    /// `batch-max-duration`.
    pub batch_max: SimDuration,
    /// Whether an interruption queue is set up (`interruption-queue`). Releases before v0.22 have none.
    pub interruption_queue: bool,
    /// `preference-policy`; releases before v1.4 always respect preferences.
    pub preferences: PreferencePolicy,
    /// `min-values-policy`; releases before v1.6 are always strict.
    pub min_values: MinValuesPolicy,
    /// Who packs pods that wait.
    pub packer: PackerKind,
    /// Feature gates.
    pub gates: FeatureGates,
}

impl Default for KarpenterSettings {
    fn default() -> Self {
        Self {
            batch_idle: SimDuration::from_secs(1),
            batch_max: SimDuration::from_secs(10),
            interruption_queue: true,
            preferences: PreferencePolicy::Respect,
            min_values: MinValuesPolicy::Strict,
            packer: PackerKind::Karpenter,
            gates: FeatureGates::default(),
        }
    }
}

/// Everything that Karpenter is told when it starts, but for pools and instance types.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Its release.
    pub release: KarpenterVersion,
    /// The release of the control plane.
    pub kubernetes: KubernetesVersion,
    /// Flags and feature gates.
    pub flags: KarpenterSettings,
    /// Node classes.
    pub node_classes: Vec<NodeClass>,
    /// Every namespace in which a pod may stand, with its labels, the one with its name among them.
    pub namespaces: Vec<(Symbol, Labels)>,
    /// Whether there are capacity reservations.
    pub reservations: bool,
    /// What launches claims.
    pub provider: Provider,
    /// How ties are broken.
    pub ties: Ties,
    /// How long its loops take; `None` for no time at all.
    pub time: Option<AutoscalerTime>,
    /// Unix time in whole seconds at the instant zero.
    pub epoch: i64,
    /// When its controllers start.
    pub begins: SimTime,
    /// CapacityBuffers.
    pub buffers: Vec<Buffer>,
    /// When new images come out that replace those in use, beside those for another release of Kubernetes; `None` for never.
    pub images: Option<ImageReleases>,
    /// `scheduler-config`, with the Services of the cluster.
    pub default_spread: DefaultSpread,
}

/// A CapacityBuffer with what it looks like.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// The object.
    pub buffer: CapacityBuffer,
    /// The pods of its PodTemplate; `None` where it names none, or one that is not there.
    pub template: Option<Arc<PodSpec>>,
}

/// New machine images on a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ImageReleases {
    /// Time between two.
    pub every: SimDuration,
    /// An instant at which one comes out, since 1970.
    pub one: SimDuration,
}

impl ImageReleases {
    /// One every so often, at 18:00 UTC of a day of the week from 0 for Monday on: assumed, as the day is. Day 0 of 1970 was a Thursday.
    pub const fn weekly(every: SimDuration, weekday: i64) -> Self {
        Self { every, one: SimDuration::from_secs((weekday + 4) % 7 * 86_400 + 18 * 3_600) }
    }

    /// The first release after `now`, where the run begins at `epoch` in seconds since 1970.
    pub fn next(self, now: SimTime, epoch: i64) -> SimTime {
        let since = now.as_micros() + epoch * 1_000_000 - self.one.as_micros();
        let every = self.every.as_micros().max(1);
        now + SimDuration::from_micros(every - since.rem_euclid(every))
    }
}

/// What launches claims.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provider {
    /// AWS: Karpenter's provider chooses pools and calls CreateFleet.
    Aws,
    /// A provider that is handed the claim and chooses itself, as kwok does.
    Plain,
}

/// How ties between topology domains are broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ties {
    /// By name.
    ByName,
    /// By chance, from this seed, in each pass anew.
    Seeded(u64),
}

impl Settings {
    /// A release on AWS with the defaults of everything else, for a cluster that starts now.
    pub fn new(release: KarpenterVersion, kubernetes: KubernetesVersion) -> Self {
        Self {
            release,
            kubernetes,
            flags: KarpenterSettings::default(),
            node_classes: Vec::new(),
            namespaces: Vec::new(),
            reservations: false,
            provider: Provider::Aws,
            ties: Ties::ByName,
            time: None,
            epoch: 0,
            begins: SimTime::ZERO,
            buffers: Vec::new(),
            images: None,
            default_spread: DefaultSpread::default(),
        }
    }

    /// Unix time in whole seconds.
    pub const fn unix_seconds(&self, now: SimTime) -> i64 {
        self.epoch + now.as_micros().div_euclid(1_000_000)
    }
}
