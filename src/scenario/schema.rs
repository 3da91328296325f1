//! The form of a scenario file: its sections, their keys, and what each key means.
//!
//! What lives here: the one description that the readers in `file` take their keys from, and what is made of it, the
//! [JSON Schema](json_schema) for editors and the [reference](mod@reference) for people. A key that is not described is refused,
//! and `tests/it/schema.rs` shows that each described one is read: that nonsense under it is refused, that it is required or
//! not as stated, and that stating its default changes nothing.
//!
//! What must not: how a value is read (`file`), what a manifest may hold (`manifests`).

/// `$given` if there is one, else `$otherwise`.
macro_rules! given_or {
    (; $otherwise:expr) => {
        $otherwise
    };
    ($given:expr; $otherwise:expr) => {
        $given
    };
}

/// Whether a key has to be there, and what holds if it is not.
macro_rules! presence {
    (required) => {
        $crate::scenario::schema::Presence::Required
    };
    (default $value:literal) => {
        $crate::scenario::schema::Presence::Default($value)
    };
    (otherwise $what:literal) => {
        $crate::scenario::schema::Presence::Otherwise($what)
    };
}

/// A section: `NAME: "what messages call it", "its heading"; "about it"; "an example"; { "key" presence: value, "meaning"; }`.
macro_rules! section {
    (
        $name:ident: $called:literal, $title:literal;
        $about:expr;
        $example:expr;
        $(one_of: $one_of:expr;)?
        $(unsupported: $unsupported:expr;)?
        $(without_effect: $without_effect:expr;)?
        $(strict: $strict:literal;)?
        { $($key:literal $presence:ident $(($without:literal))?: $value:expr, $meaning:expr;)* }
    ) => {
        #[doc = concat!("The section ", $title, ".")]
        pub static $name: $crate::scenario::schema::Section = $crate::scenario::schema::Section {
            shape: $crate::scenario::reader::Shape {
                name: $called,
                keys: &[$($key),*],
                without_effect: given_or!($($without_effect)?; &[]),
                unsupported: given_or!($($unsupported)?; &[]),
                strict: given_or!($($strict)?; true),
            },
            title: $title,
            about: $about,
            example: $example,
            one_of: given_or!($($one_of)?; &[]),
            keys: &[$($crate::scenario::schema::Key {
                name: $key,
                presence: presence!($presence $($without)?),
                value: $value,
                meaning: $meaning,
            }),*],
        };
    };
}

pub mod billing;
pub mod cluster;
pub mod ec2;
pub mod faults;
pub mod json_schema;
pub mod load;
pub mod metrics;
pub mod policies;
pub mod rates;
pub mod reference;
pub mod timeline;
pub mod whole;

use super::reader::Shape;
use crate::domain::versions::{ClusterAutoscalerVersion, KarpenterVersion, KubernetesVersion};

/// A map with fixed keys.
#[derive(Debug)]
pub struct Section {
    /// What the reader checks keys against.
    pub shape: Shape,
    /// Its heading in the reference.
    pub title: &'static str,
    /// What it is for, in Markdown; may be empty.
    pub about: &'static str,
    /// Keys of a scenario that use it, as YAML; empty where the section that holds it shows it.
    pub example: &'static str,
    /// Keys of which exactly one is given; empty if there is no such choice.
    pub one_of: &'static [&'static str],
    /// Its keys.
    pub keys: &'static [Key],
}

impl Section {
    /// The key called `name`.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

/// A key of a section.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Whether it has to be there.
    pub presence: Presence,
    /// What stands under it.
    pub value: Value,
    /// What it means, in Markdown.
    pub meaning: &'static str,
}

/// Whether a key has to be there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Presence {
    /// It has.
    Required,
    /// Leaving it out is the same as stating this (YAML).
    Default(&'static str),
    /// What holds without it, in words.
    Otherwise(&'static str),
}

/// What stands under a key.
#[derive(Debug)]
pub enum Value {
    /// Text; what it names.
    Text(&'static str),
    /// A name that a folder may have.
    FolderName,
    /// The path of a file, relative to the scenario.
    File,
    /// The name of a workload.
    Workload,
    /// A truth value.
    Truth,
    /// A whole number within bounds.
    Integer(i64, i64),
    /// A number within bounds.
    Number(f64, f64),
    /// A number of 0 or more, perhaps with a suffix of Kubernetes (`1k`, `120Mi`); its unit.
    Amount(&'static str),
    /// A number, perhaps with such a suffix.
    Quantity,
    /// A span of time.
    Duration,
    /// A span of time that may be negative.
    SignedDuration,
    /// A share (`30%` or `0.3`) up to so many percent.
    Share(u32),
    /// A price in the region's currency.
    Price,
    /// A calendar time.
    Instant,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A release that is reproduced.
    Release(Program),
    /// Text, a number or a truth value.
    Scalar,
    /// A list.
    List(&'static Value),
    /// A list of values, or one of them alone.
    OneOrMore(&'static Value),
    /// A section.
    Map(&'static Section),
    /// A map with keys of the user's own: what they are, and what stands under them.
    Free(&'static str, &'static Value),
    /// One or the other.
    Either(&'static Value, &'static Value),
}

/// A program whose releases are reproduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Program {
    /// Karpenter.
    Karpenter,
    /// Kubernetes.
    Kubernetes,
    /// Cluster Autoscaler.
    ClusterAutoscaler,
    /// KEDA.
    Keda,
}

/// The release of KEDA that is reproduced.
pub(super) const KEDA: &str = "2.20";

impl Program {
    /// Its releases, oldest first, as a scenario writes them.
    pub fn releases(self) -> Vec<String> {
        let minors = |oldest: u8| (oldest..=KubernetesVersion::NEWEST).map(|minor| format!("1.{minor}")).collect();
        match self {
            Self::Karpenter => KarpenterVersion::ALL.map(|version| version.to_string()).to_vec(),
            Self::Kubernetes => minors(KubernetesVersion::OLDEST),
            Self::ClusterAutoscaler => minors(ClusterAutoscalerVersion::OLDEST),
            Self::Keda => vec![KEDA.to_owned()],
        }
    }
}

/// Every section, in the order of the reference: a section comes after the one that holds it.
pub static SECTIONS: &[&Section] = &[
    &whole::SCENARIO,
    &cluster::VERSIONS,
    &cluster::CLUSTER,
    &cluster::NODE_GROUP,
    &cluster::TAINT,
    &policies::POLICY,
    &policies::KARPENTER,
    &policies::GATES,
    &policies::HANDLER,
    &policies::CONTROLLER_TIME,
    &policies::CONTROLLER_MANAGER_TIME,
    &policies::SCHEDULER_TIME,
    &policies::KARPENTER_TIME,
    &policies::CLUSTER_AUTOSCALER_TIME,
    &load::LOAD,
    &load::REQUESTS,
    &rates::STEP,
    &rates::RAMP,
    &rates::SINE,
    &rates::DIURNAL,
    &rates::BURST,
    &load::CLOSED_LOOP,
    &load::UNCERTAINTY,
    &load::SERVICE,
    &load::MEMORY,
    &timeline::STEP,
    &timeline::SCALE,
    &timeline::SCALE_GROUP,
    &metrics::PROMETHEUS,
    &metrics::ISTIO,
    &metrics::SERIES,
    &metrics::RULE,
    &metrics::OUTAGE,
    &metrics::METRICS_SERVER,
    &metrics::PHASES,
    &metrics::QUEUE,
    &metrics::EXTERNAL_METRIC,
    &metrics::EXTERNAL_VALUE,
    &whole::PODS,
    &whole::WORKLOAD,
    &whole::IMAGES,
    &ec2::EC2,
    &ec2::LAUNCH_LATENCY,
    &ec2::SPOT,
    &ec2::INTERRUPTIONS,
    &ec2::QUOTAS,
    &ec2::API,
    &ec2::BUCKET,
    &ec2::FAILURES,
    &ec2::NETWORK,
    &ec2::SUBNET,
    &ec2::RESERVATION,
    &billing::BILLING,
    &billing::RESERVED,
    &billing::PLAN,
    &billing::LOAD_BALANCERS,
    &billing::NAT_GATEWAYS,
    &billing::CROSS_ZONE,
    &faults::FAULT,
    &faults::SPOT_INTERRUPTION,
    &faults::NODE_FAILURE,
    &faults::INSUFFICIENT_CAPACITY,
    &faults::ZONE_OUTAGE,
    &faults::API_THROTTLE,
    &faults::API_ERROR,
    &faults::FACTOR,
    &faults::PROBABILITY,
    &faults::PRICE_SHOCK,
    &faults::SUBNET_EXHAUSTED,
    &faults::QUOTA,
    &whole::OBJECTIVES,
    &whole::WAITS,
    &whole::OUTPUT,
];
