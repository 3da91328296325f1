//! What a scenario says, as plain data with every reference checked: the cluster, what happens to it, and the policies to try.
//!
//! What lives here: the types that readers fill in and simulations take ([`Scenario`], [`PolicyVariant`] and their parts), and what an answer
//! leaves out or assumes ([`Caveats`]). What must not: how a file says it (`nodecast-scenario`), and what comes of it (`nodecast-sim`).

mod actions;
mod caveat;
pub mod lints;
mod load;
mod metrics;
mod objectives;
mod pod_trace;
mod policy;
mod stated;

use std::collections::BTreeMap;
use std::sync::Arc;

use nodecast_ec2::{BootStages, CloudSettings};
use nodecast_karpenter::instance_types::Measured;
use nodecast_model::domain::words::counted;
use nodecast_model::domain::{SimDuration, Symbol};
pub use nodecast_model::text::error::Effect;
use nodecast_model::text::error::{InputError, Warning, listed, nearest};
use serde::{Deserialize, Serialize};

use self::lints::Lint;
pub use actions::{Action, TimedAction};
pub use caveat::{Caveat, Caveats};
pub use load::{Detail, LoadSpec, OpenRequests, Requests, StartUpUse, UsageSpec};
pub use metrics::{AdapterRule, KafkaTopic, Outage, QueueKind, QueueSpec, SeriesKind, SeriesOwner, SeriesSpec};
pub use objectives::{WaitLimit, WaitMeasure, Waiting};
pub use pod_trace::{PodTrace, TraceEnd, TraceRow};
pub use policy::{
    AutoMode, Autoscaler, FargateSettings, KarpenterOptions, PolicyVariant, VerticalSettings, namespace_limits,
};
pub use stated::{
    CostOf, ImageSettings, MetricsServer, Objectives, OutputSettings, Phases, PrometheusSettings, Scenario,
    StartupTaint, WorkloadTimes,
};

/// What is special about EC2 in this scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ec2Settings {
    /// Stages of a boot; `None` for those of each node's own family of machine images.
    pub launch_latency: Option<BootStages>,
    /// What is known of the real machines of a type, by type.
    pub measured: BTreeMap<Symbol, Measured>,
    /// Prices, capacity, interruptions, faults and billing.
    pub cloud: Arc<CloudSettings>,
}

/// What a calibration gave, by paths of keys.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Calibrated {
    /// The file.
    pub file: String,
    /// Values that hold as they were measured.
    pub measured: Vec<String>,
    /// Values between what was measured and what is assumed, because there was little to measure.
    pub shrunk: Vec<String>,
    /// What can be fitted and the scenario states itself.
    pub stated: Vec<String>,
    /// What can be fitted and is still assumed.
    pub assumed: Vec<String>,
}

impl Calibrated {
    /// How much was measured, in a line.
    pub fn in_short(&self) -> String {
        let values = |paths: &[String]| counted(paths.len() as u64, "value", "values");
        let mut parts = vec![format!("{} measured", values(&self.measured))];
        if !self.shrunk.is_empty() {
            parts.push(format!("{} partly measured", values(&self.shrunk)));
        }
        if !self.stated.is_empty() {
            parts.push(format!("stated: {}", self.stated.join(", ")));
        }
        if !self.assumed.is_empty() {
            parts.push(format!("assumed: {}", self.assumed.join(", ")));
        }
        format!("{} ({})", parts.join("; "), self.file)
    }

    /// What the answer rests on, in sentences.
    pub fn assumptions(&self) -> Vec<String> {
        let list = |paths: &[String]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
        let sentence =
            |words: &str, paths: &[String]| (!paths.is_empty()).then(|| format!("{words}: {}.", list(paths)));
        let file = &self.file;
        [
            sentence(&format!("Measured on a cluster, by {file}"), &self.measured),
            sentence(&format!("Between measured and assumed, by {file}, since little was recorded"), &self.shrunk),
            sentence("Set in the scenario", &self.stated),
            sentence("Assumed (not set, not measured)", &self.assumed),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

/// What a scenario's author assumed.
#[derive(Clone, PartialEq, Debug)]
pub struct Assumption {
    /// The sentence.
    pub text: String,
    /// The part of the bill that rests on it; `None` where nobody says.
    pub cost_of: Option<CostOf>,
}

/// A file that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InputFile {
    /// Path as the scenario names it.
    pub path: String,
    /// SHA-256 in hexadecimal.
    pub sha256: String,
}

impl Scenario {
    /// Lets the level of Spot prices be off by a draw of each seed, unless the scenario says whether it is: what a comparison of policies
    /// rests on should hold for the prices that may be, not for one of them.
    pub fn draw_price_errors(&mut self) {
        if self.ec2.cloud.price_errors.is_none() {
            Arc::make_mut(&mut self.ec2.cloud).price_errors = Some(true);
        }
    }

    /// No warnings yet, where `allow` silences some.
    pub fn caveats(&self) -> Caveats {
        Caveats::allowing(&self.allow, &self.silenced)
    }

    /// Removes the warnings that `allow` silences, and records their lints.
    pub fn silence(&mut self, warnings: &mut Vec<Warning>) {
        let allowed = |warning: &Warning| warning.lint().map(Lint::id).filter(|id| self.allow.contains(id));
        self.silenced = warnings.iter().filter_map(allowed).collect();
        warnings.retain(|warning| allowed(warning).is_none());
    }

    /// The policy called `name`; the first where no name is given.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn for_policy(&self, name: Option<&str>) -> Result<&PolicyVariant, InputError> {
        let names = || self.policies.iter().map(|policy| policy.name.as_str());
        let wanted = name.or_else(|| names().next()).unwrap_or_default();
        self.policies.iter().find(|policy| policy.name == wanted).ok_or_else(|| {
            let known = listed(names());
            let help = nearest(wanted, names())
                .map_or_else(|| format!("it has {known}"), |near| format!("did you mean `{near}`? available: {known}"));
            InputError::new(format!("no policy `{wanted}` in this scenario")).help(help)
        })
    }
}

impl WorkloadTimes {
    /// How long a pod with an end runs unless the scenario says it: assumed, as the other times are.
    pub const RUN_TIME: SimDuration = SimDuration::from_secs(60);

    /// How long a pod runs that ends by itself.
    pub fn run_time(&self) -> SimDuration {
        self.run_time.unwrap_or(Self::RUN_TIME)
    }
}

impl ImageSettings {
    /// Compressed bytes of an image.
    pub fn size_of(&self, image: Symbol) -> i64 {
        self.sizes.get(&image).copied().unwrap_or(self.size)
    }
}
