//! The one form: lives of claims, pods, pulls, shortages, and how far sources agree.

use std::collections::BTreeMap;

use super::Instant;

/// A step in the life of a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Milestone {
    /// The claim was made.
    Created,
    /// EC2 answered with an instance.
    Launched,
    /// The instance was running.
    Running,
    /// Its node registered.
    Registered,
    /// Its node was Ready.
    Ready,
    /// Karpenter counted it initialized.
    Initialized,
    /// Its deletion was asked for.
    DeletionAsked,
    /// The end of its instance was asked for, or had begun.
    Terminating,
    /// It was gone.
    Gone,
}

impl Milestone {
    /// Its name, for people.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Launched => "launched",
            Self::Running => "running",
            Self::Registered => "registered",
            Self::Ready => "ready",
            Self::Initialized => "initialized",
            Self::DeletionAsked => "deletion asked for",
            Self::Terminating => "terminating",
            Self::Gone => "gone",
        }
    }
}

/// Why a claim ended.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    /// Consolidated.
    Underutilized,
    /// Without pods.
    Empty,
    /// Other than its NodePool or node class wants it.
    Drifted,
    /// Too old.
    Expired,
    /// EC2 took a Spot instance back.
    Interrupted,
    /// EC2 had no capacity.
    LaunchFailed,
    /// EC2 gave the launch up before the machine ran.
    Aborted,
    /// Its node never registered.
    NotRegistered,
    /// Anything else, in the words of the source.
    Other(String),
}

impl End {
    /// What a word of Karpenter's releases or of a run's tables means.
    pub fn from_word(word: &str) -> Self {
        let plain: String = word.trim().to_lowercase().chars().map(|c| if c == '_' { ' ' } else { c }).collect();
        match plain.as_str() {
            "underutilized" | "consolidation" => Self::Underutilized,
            "empty" | "emptiness" => Self::Empty,
            "drifted" | "drift" => Self::Drifted,
            "expired" | "expiration" => Self::Expired,
            "interrupted" | "spot interrupted" | "spotinterruptionkind" | "spotinterruption" => Self::Interrupted,
            "launch failed" | "insufficient capacity" => Self::LaunchFailed,
            "launch aborted" => Self::Aborted,
            "not registered" | "liveness" | "registration timeout" => Self::NotRegistered,
            _ => Self::Other(word.trim().to_owned()),
        }
    }

    /// Its name, for people.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Underutilized => "underutilized",
            Self::Empty => "empty",
            Self::Drifted => "drifted",
            Self::Expired => "expired",
            Self::Interrupted => "interrupted",
            Self::LaunchFailed => "launch failed",
            Self::Aborted => "launch aborted",
            Self::NotRegistered => "not registered",
            Self::Other(word) => word,
        }
    }
}

/// The time over which something was recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// When it began.
    pub from: Instant,
    /// When it ended: what goes on then is censored.
    pub until: Instant,
}

/// The life of one node claim, as far as it was recorded.
#[derive(Clone, PartialEq, Debug)]
pub struct Life {
    /// Its name.
    pub name: String,
    /// The NodePool or node group.
    pub pool: Option<String>,
    /// The node class.
    pub node_class: Option<String>,
    /// The instance type.
    pub instance_type: Option<String>,
    /// The zone.
    pub zone: Option<String>,
    /// `spot`, `on-demand` or `reserved`.
    pub capacity_type: Option<String>,
    /// The machine image's id.
    pub image: Option<String>,
    /// When what happened.
    pub milestones: BTreeMap<Milestone, Instant>,
    /// Why it ended.
    pub end: Option<End>,
    /// Whether it was there, launched, when the record began: lives that ended before are missing.
    pub truncated: bool,
    /// Whether nothing but samples tells of it, which do not say why it ended.
    pub sampled: bool,
    /// The time over which it was looked at.
    pub window: Window,
    /// The stretches of that time, in order, in which a source would have said why it ended: events are kept for an hour, a log begins with
    /// its container.
    pub ends: Vec<Window>,
}

impl Life {
    /// When it came to `milestone`.
    pub fn at(&self, milestone: Milestone) -> Option<Instant> {
        self.milestones.get(&milestone).copied()
    }

    /// Seconds from one milestone to another; `None` if either was not recorded.
    pub fn seconds(&self, from: Milestone, to: Milestone) -> Option<f64> {
        Some(self.at(to)?.seconds_since(self.at(from)?))
    }

    /// The node was Ready, or initialized where that is not known.
    pub fn ready(&self) -> Option<Instant> {
        self.at(Milestone::Ready).or_else(|| self.at(Milestone::Initialized))
    }

    /// When it stopped running of its own: its deletion was asked for, it was on its way out, or gone.
    pub fn ended(&self) -> Option<Instant> {
        [Milestone::DeletionAsked, Milestone::Terminating, Milestone::Gone].iter().find_map(|stage| self.at(*stage))
    }

    /// Whether it is a Spot instance.
    pub fn is_spot(&self) -> bool {
        self.capacity_type.as_deref() == Some("spot")
    }
}

/// The life of a pod.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PodLife {
    /// `namespace/name`.
    pub name: String,
    /// `namespace/name` of what made it; `None` where only events tell of it.
    pub workload: Option<String>,
    /// The node.
    pub node: Option<String>,
    /// When its node was Ready, where tables of a run or an observation tell of both.
    pub node_ready: Option<Instant>,
    /// Whether tables of a run or an observation tell of it, in which each of its node's pods is.
    pub of_tables: bool,
    /// Whether a DaemonSet made it.
    pub daemon: bool,
    /// When it was made.
    pub created: Option<Instant>,
    /// When it was bound.
    pub scheduled: Option<Instant>,
    /// When its containers ran.
    pub started: Option<Instant>,
    /// When it was Ready.
    pub ready: Option<Instant>,
    /// When its containers ended by themselves.
    pub finished: Option<Instant>,
    /// Whether they ended badly.
    pub failed: bool,
    /// Whether nothing tells if they did.
    pub outcome_unknown: bool,
    /// When its deletion was asked for.
    pub deletion_asked: Option<Instant>,
    /// When it was gone.
    pub gone: Option<Instant>,
}

/// One pull of an image.
#[derive(Clone, PartialEq, Debug)]
pub struct ImagePull {
    /// The image, as manifests name it.
    pub image: String,
    /// `namespace/name` of the pod.
    pub pod: String,
    /// The node, where it is known.
    pub node: Option<String>,
    /// When it was there.
    pub at: Instant,
    /// How long it took, without waiting for others.
    pub seconds: f64,
    /// Its size as it is stored; not told before Kubernetes 1.30.
    pub bytes: Option<f64>,
}

/// EC2 had no capacity.
#[derive(Clone, PartialEq, Debug)]
pub struct Shortage {
    /// When.
    pub at: Instant,
    /// The instance type, where it is told.
    pub instance_type: Option<String>,
    /// The zone, where it is told.
    pub zone: Option<String>,
    /// How often.
    pub count: usize,
}

/// How long launches took to a condition of their claims, all together: what a histogram tells exactly.
#[derive(Clone, PartialEq, Debug)]
pub struct StageTimes {
    /// The condition.
    pub stage: Milestone,
    /// How many launches came to it.
    pub launches: f64,
    /// How long all of them took from the claim on, seconds.
    pub seconds: f64,
}

/// What a workload was asked for and used, at one instant.
#[derive(Clone, PartialEq, Debug)]
pub struct LoadSample {
    /// `namespace/name`.
    pub workload: String,
    /// When.
    pub at: Instant,
    /// Requests completed per second.
    pub requests_per_second: f64,
    /// CPU in use by all replicas, in thousandths.
    pub cpu_used_milli: f64,
    /// Replicas that served them, where that is told.
    pub replicas: Option<f64>,
}

/// Two sources tell one instant differently.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disagreement {
    /// The claim.
    pub claim: String,
    /// What.
    pub milestone: Milestone,
    /// What is used, and who says so.
    pub used: (Instant, String),
    /// What the other says.
    pub other: (Instant, String),
}

/// What one file gave.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize, schemars::JsonSchema)]
pub struct SourceUse {
    /// The file, as the user named it.
    pub file: String,
    /// What it is.
    pub kind: &'static str,
    /// Lines or objects that told something.
    pub taken: usize,
    /// Lines or objects that no rule took.
    pub left: usize,
    /// The first of these, shortened.
    pub first_left: Option<String>,
    /// What else is to be said.
    pub notes: Vec<String>,
}

/// Everything that was recorded. A list is `None` where no source has such facts, and empty where there were none to record.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct History {
    /// Whether any source would say why a node ended, had one.
    pub ends_told: bool,
    /// Claims in order of name.
    pub lives: Option<Vec<Life>>,
    /// Pods in order of name.
    pub pods: Option<Vec<PodLife>>,
    /// Image pulls in order of time.
    pub pulls: Vec<ImagePull>,
    /// Capacity errors in order of time.
    pub shortages: Option<Vec<Shortage>>,
    /// What workloads were asked for.
    pub loads: Option<Vec<LoadSample>>,
    /// How long launches took, where only their sums are told.
    pub stages: Option<Vec<StageTimes>>,
    /// When Karpenter counted that EC2 took one of its nodes, each as often as it did; `None` where nobody recorded its counters.
    pub reclaims: Option<Vec<Instant>>,
    /// The image family of each node class that was read.
    pub node_classes: BTreeMap<String, String>,
    /// Instants that differ by more than two seconds.
    pub disagreements: Vec<Disagreement>,
    /// The files.
    pub sources: Vec<SourceUse>,
    /// Whether everything comes from a simulation's own tables, whose images are as large as its scenario says.
    pub simulated: bool,
    /// Whether CPU and requests come from counters that somebody sampled now and then, so that what a pod did before its second sample is
    /// in no rate.
    pub sampled: bool,
}

impl History {
    /// The mean number of seconds from a claim's creation to `stage` and how many launches it is of, by the sums of histograms; `None`
    /// where none tells of it.
    pub fn mean_to(&self, stage: Milestone) -> Option<(f64, f64)> {
        let stage = self.stages.iter().flatten().filter(|times| times.stage == stage);
        let (launches, seconds) =
            stage.fold((0.0, 0.0), |(launches, seconds), stage| (launches + stage.launches, seconds + stage.seconds));
        (launches >= 1.0).then(|| (seconds / launches, launches))
    }

    /// The kinds of facts that no source has, by name.
    pub fn not_recorded(&self) -> Vec<&'static str> {
        let kinds = [
            ("nodes", self.lives.is_none()),
            ("pods", self.pods.is_none()),
            ("capacity errors", self.shortages.is_none()),
            ("CPU and requests", self.loads.is_none()),
        ];
        kinds.into_iter().filter(|(_, is_absent)| *is_absent).map(|(name, _)| name).collect()
    }
}
