//! What each release of the Vertical Pod Autoscaler does: a record of switches, made once for every release.
//!
//! Source: the releases' change logs and code, kubernetes/autoscaler `vertical-pod-autoscaler` 1.2 to 1.7.

use nodecast_model::domain::VerticalPodAutoscalerVersion;
use nodecast_model::domain::vertical::UpdateMode;

/// What a release does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Behaviour {
    /// Up to 1.3 a CPU sample weighs as much as the container requests, in cores; from 1.4 on all weigh the same.
    pub weighs_cpu_by_request: bool,
    /// `--round-cpu-millicores` (1.4).
    pub rounds_cpu: bool,
    /// `--round-memory-bytes` (1.5).
    pub rounds_memory: bool,
    /// `--container-recommendation-max-allowed-cpu` and `-memory` (1.4).
    pub knows_global_maximum: bool,
    /// The feature gate PerVPAConfig (1.5, off by default).
    pub knows_per_vpa_config: bool,
    /// The mode InPlaceOrRecreate.
    pub in_place_or_recreate: InPlaceGate,
    /// The mode InPlace, behind its feature gate (1.7, off by default).
    pub knows_in_place: bool,
    /// `--in-place-skip-disruption-budget` (1.7).
    pub knows_skipped_budget: bool,
    /// What a VerticalPodAutoscaler without a mode means; `Auto` and `Recreate` do the same.
    pub default_mode: UpdateMode,
}

/// How a release has the mode InPlaceOrRecreate. Where it is off, pods of that mode are evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InPlaceGate {
    /// The mode is not known.
    Unknown,
    /// Behind a feature gate that is off by default (1.4).
    OffByDefault,
    /// Behind one that is on by default (1.5).
    OnByDefault,
    /// Always on (1.6).
    Fixed,
}

impl InPlaceGate {
    /// Whether pods are resized in place where the feature gate is stated so, or not at all.
    pub fn is_on(self, stated: Option<bool>) -> bool {
        match self {
            Self::Unknown => false,
            Self::OffByDefault => stated.unwrap_or(false),
            Self::OnByDefault => stated.unwrap_or(true),
            Self::Fixed => true,
        }
    }
}

const ROWS: usize = (VerticalPodAutoscalerVersion::NEWEST - VerticalPodAutoscalerVersion::OLDEST) as usize + 1;

static BEHAVIOURS: [Behaviour; ROWS] = {
    let mut rows = [behaviour(VerticalPodAutoscalerVersion::OLDEST); ROWS];
    let mut row = 0;
    while row < ROWS {
        rows[row] = behaviour(VerticalPodAutoscalerVersion::OLDEST + row as u8);
        row += 1;
    }
    rows
};

const fn behaviour(minor: u8) -> Behaviour {
    Behaviour {
        weighs_cpu_by_request: minor <= 3,
        rounds_cpu: minor >= 4,
        rounds_memory: minor >= 5,
        knows_global_maximum: minor >= 4,
        knows_per_vpa_config: minor >= 5,
        in_place_or_recreate: match minor {
            ..=3 => InPlaceGate::Unknown,
            4 => InPlaceGate::OffByDefault,
            5 => InPlaceGate::OnByDefault,
            _ => InPlaceGate::Fixed,
        },
        knows_in_place: minor >= 7,
        knows_skipped_budget: minor >= 7,
        default_mode: if minor >= 6 { UpdateMode::Recreate } else { UpdateMode::Auto },
    }
}

impl Behaviour {
    /// That of a release.
    pub fn for_release(release: VerticalPodAutoscalerVersion) -> &'static Self {
        &BEHAVIOURS[usize::from(release.minor() - VerticalPodAutoscalerVersion::OLDEST)]
    }
}
