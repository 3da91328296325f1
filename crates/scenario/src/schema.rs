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

/// The type of a field: what its kind reads, or perhaps nothing.
macro_rules! field_type {
    ($kind:ty $(, $(or $words:literal,)? default $default:expr)?) => {
        <$kind as $crate::schema::kind::Kind>::Value
    };
    ($kind:ty, $($optional:tt)*) => {
        Option<<$kind as $crate::schema::kind::Kind>::Value>
    };
}

/// `$given` if there is one, else `$otherwise`, as types.
macro_rules! value_type {
    (; $otherwise:ty) => {
        $otherwise
    };
    ($given:ty; $otherwise:ty) => {
        $given
    };
}

/// The value of a field, read from `$fields`.
macro_rules! field_value {
    ($reading:ident, $fields:ident, $key:expr, $kind:ty) => {
        <$kind as $crate::schema::kind::Kind>::read($reading, $fields.required(&$reading.reader, $key)?, $key)?
    };
    ($reading:ident, $fields:ident, $key:expr, $kind:ty, $(or $words:literal,)? default $default:expr) => {
        match $fields.get($key) {
            Some(node) => <$kind as $crate::schema::kind::Kind>::read($reading, node, $key)?,
            None => $default,
        }
    };
    ($reading:ident, $fields:ident, $key:expr, $kind:ty, $($optional:tt)+) => {
        match $fields.get($key) {
            Some(node) => Some(<$kind as $crate::schema::kind::Kind>::read($reading, node, $key)?),
            None => None,
        }
    };
}

/// Whether a key has to be there, and what holds if it is not.
macro_rules! presence {
    ($kind:ty) => {
        $crate::schema::Presence::Required
    };
    ($kind:ty, or $words:literal $(, default $default:expr)?) => {
        $crate::schema::Presence::Otherwise($words)
    };
    ($kind:ty, $shown:ident $default:expr) => {
        $crate::schema::Presence::Default(|| <$kind as $crate::schema::kind::Show>::show(&$default))
    };
}

/// A section of the scenario file, described once: a table for messages, schema and reference, and a struct with its reader.
///
/// It has what it is for (the doc comment, Markdown), the table's name, what messages call it, its heading, an example where no
/// section that holds it shows one, and keys. A key has its meaning (the doc comment), its name (`"for" as length` where a field
/// cannot be called so), what a text or number is (`["bytes"]`), its [`Kind`](kind::Kind), and what holds without it:
///
/// - `key: K;` has to be there;
/// - `key: K = value;` has a default, which the reference prints as the kind writes it;
/// - `key: K, or "words";` is `None` without it; `key: K = value, or "words";` is this value, for which words say more;
/// - `key: K, over value;` is `None` without it too, for what is laid over something else, in the end over this value.
///
/// `struct S { keys }` makes a struct with a reader, and `impl T { keys }` a reader for a struct of another crate, whose other fields are
/// as in `rest`. `becomes T, function;` checks the struct or makes something else
/// of it once it is read. Of a section that is read by hand all keys are `aside` (below).
///
/// Keys may be in groups, `struct S: { keys } aside { keys } one field: T, error { keys } { keys }`: those `aside` are read by
/// hand, and of those after `one` exactly one is given, each of which makes a `T`; `error` says what is wrong if it is not so.
/// `also { fields }` at the end are fields that no key states and that are filled in later.
macro_rules! section {
    ($(#[doc = $about:literal])* $name:ident: $called:literal, $title:literal; $(example $example:literal;)?
     $(without_effect $without_effect:expr;)? $(one_of [$($choice:literal),* $(,)?];)?
     $(becomes $value:ty, $convert:expr;)? struct $target:ident $($groups:tt)+) => {
        section_of! {
            [[$($about)*] $name: $called, $title, [$($example)?] [$($without_effect)?] [$($($choice)*)?]
             [$($value, $convert)?] [struct Debug] [] $target]
            $($groups)+
        }
    };
    ($(#[doc = $about:literal])* $name:ident: $called:literal, $title:literal; $(example $example:literal;)?
     $(becomes $value:ty, $convert:expr;)? $(rest $rest:expr;)? impl $target:ident $($groups:tt)+) => {
        section_of! {
            [[$($about)*] $name: $called, $title, [$($example)?] [] [] [$($value, $convert)?]
             [impl] [$($rest)?] $target]
            $($groups)+
        }
    };
}

/// The table of a section.
macro_rules! section_table {
    ([$($about:literal)*] $name:ident: $called:literal, $title:literal, [$($example:literal)?] [$($without_effect:expr)?]
     [$($choice:expr,)*] [$([$key:expr, [$($meaning:literal)+] [$($label:literal)?] $kind:ty; $presence:expr])*]) => {
        #[doc = concat!("The section ", $title, ".")]
        pub static $name: $crate::schema::Section = $crate::schema::Section {
            shape: $crate::reader::Shape {
                name: $called,
                keys: &[$($key),*],
                without_effect: given_or!($($without_effect)?; &[]),
                unsupported: &[],
                strict: given_or!($($without_effect.is_empty())?; true),
            },
            title: $title,
            about: concat!($($about),*),
            example: given_or!($($example)?; ""),
            one_of: &[$($choice),*],
            keys: &[$($crate::schema::Key {
                name: $key,
                presence: $presence,
                form: <$kind as $crate::schema::kind::Kind>::form,
                label: given_or!($($label)?; ""),
                meaning: concat!($($meaning),+),
            }),*],
        };
    };
}

/// The struct of a section; none for a section of another crate's struct.
macro_rules! section_struct {
    (struct [$($derive:ident)*] $(#[$about:meta])* $target:ident { $($(#[$meaning:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive($($derive),*)]
        pub struct $target {
            $($(#[$meaning])* pub(crate) $field: $type,)*
        }
    };
    (impl $($nothing:tt)*) => {};
}

/// The table, the struct and the reader of a section.
macro_rules! section_of {
    ([$($header:tt)*] { $($keys:tt)* }) => {
        section_of! { [$($header)*]: { $($keys)* } }
    };
    ([[$($about:literal)*] $name:ident: $called:literal, $title:literal, [$($example:literal)?] [$($without_effect:expr)?]
      [$($stated:literal)*] [$($value:ty, $convert:expr)?] [$how:ident $($derive:ident)*] [$($rest:expr)?] $target:ident]:
     $({
        $($(#[doc = $meaning:literal])+ $($key:literal as)? $field:ident $([$label:literal])?: $kind:ty
          $(= $default:expr)? $(, or $words:literal)? $(, over $over:expr)?;)*
     }
     $(aside {
        $($(#[doc = $aside_meaning:literal])+ $($aside_key:literal as)? $aside_field:ident $([$aside_label:literal])?:
          $aside_kind:ty
          $(= $aside_default:expr)? $(, or $aside_words:literal)? $(, over $aside_over:expr)?;)*
     })?
     $(one $choice:ident: $choice_type:ty, $choice_error:path {
        $($(#[doc = $choice_meaning:literal])+ $choice_key:ident $([$choice_label:literal])?: $choice_kind:ty;)*
     })?)+
     $(also { $($(#[doc = $also_meaning:literal])+ pub $also:ident: $also_type:ty,)* })?) => {
        section_table! {
            [$($about)*] $name: $called, $title, [$($example)?] [$($without_effect)?]
            [$($stated,)* $($($(stringify!($choice_key),)*)?)+]
            [$(
                $([given_or!($($key)?; stringify!($field)), [$($meaning)+] [$($label)?] $kind;
                   presence!($kind $(, or $words)? $(, over $over)? $(, default $default)?)])*
                $($([given_or!($($aside_key)?; stringify!($aside_field)), [$($aside_meaning)+] [$($aside_label)?] $aside_kind;
                   presence!($aside_kind $(, or $aside_words)? $(, over $aside_over)? $(, default $aside_default)?)])*)?
                $($([stringify!($choice_key), [$($choice_meaning)+] [$($choice_label)?] $choice_kind;
                   $crate::schema::Presence::Otherwise("-")])*)?
            )+]
        }

        section_struct! {
            $how [$($derive)*]
            #[doc = concat!("What stands under ", $title, ".")]
            $(#[doc = $about])*
            $target {
                $(
                    $($(#[doc = $meaning])+ $field: field_type!($kind $(, or $words)? $(, over $over)? $(, default $default)?),)*
                    $(#[doc = "What the one key makes of it that is given."] $choice: $choice_type,)?
                )+
                $($($(#[doc = $also_meaning])+ $also: $also_type,)*)?
            }
        }

        impl $crate::schema::kind::Kind for $target {
            type Value = value_type!($($value)?; Self);

            fn form() -> $crate::schema::Form {
                $crate::schema::Form::Map(&$name)
            }

            fn read<'s>(
                reading: &mut $crate::file::Reading<'_, 's>,
                node: &$crate::tree::Node<'s>,
                _: &str,
            ) -> Result<Self::Value, $crate::ScenarioError> {
                let fields = reading.reader.fields(node, &$name.shape)?;
                // Of a section that is read by hand only the names of keys are checked here.
                let _ = fields;
                let stated = Self {
                    $(
                        $($field: field_value!(reading, fields, given_or!($($key)?; stringify!($field)), $kind
                            $(, or $words)? $(, over $over)? $(, default $default)?),)*
                        $($choice: {
                            let given = $name.given(fields);
                            let [(key, node)] = given.as_slice() else {
                                return Err($choice_error(reading, &$name, fields, given.len()));
                            };
                            match *key {
                                $(key if key == stringify!($choice_key) => {
                                    <$choice_kind as $crate::schema::kind::Kind>::read(reading, node, key)?
                                })*
                                _ => return Err($choice_error(reading, &$name, fields, given.len())),
                            }
                        },)?
                    )+
                    $($($also: Default::default(),)*)?
                    $(..$rest)?
                };
                $(let stated = ($convert)(reading, fields, stated)?;)?
                Ok(stated)
            }
        }
    };
}

pub mod assumptions;
pub(crate) mod billing;
pub(crate) mod cluster;
pub(crate) mod ec2;
pub(crate) mod fargate;
pub(crate) mod faults;
pub(crate) mod groups;
pub mod json_schema;
pub(crate) mod kind;
pub(crate) mod load;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod policies;
pub(crate) mod rates;
pub mod reference;
pub(crate) mod timeline;
pub(crate) mod usage;
pub(crate) mod vertical;
pub mod whole;

use super::reader::{Fields, Shape};
use super::tree::Node;
use crate::domain::versions::{
    ClusterAutoscalerVersion, KarpenterVersion, KubernetesVersion, VerticalPodAutoscalerVersion,
};

/// A map with fixed keys.
#[derive(Debug)]
pub struct Section {
    /// What the reader checks keys against.
    pub shape: Shape,
    /// Its heading in the reference.
    pub title: &'static str,
    about: &'static str,
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

    /// What it is for, in Markdown; may be empty.
    pub fn about(&self) -> &'static str {
        self.about.trim_start()
    }

    /// The keys of `one_of` that are given.
    pub(crate) fn given<'n, 's>(&self, fields: Fields<'n, 's>) -> Vec<(&'static str, &'n Node<'s>)> {
        self.one_of.iter().filter_map(|&key| Some((key, fields.get(key)?))).collect()
    }
}

/// A key of a section.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// Whether it has to be there.
    pub presence: Presence,
    form: fn() -> Form,
    label: &'static str,
    meaning: &'static str,
}

impl Key {
    /// What stands under it.
    pub fn form(&self) -> Form {
        (self.form)().called(self.label)
    }

    /// What it means, in Markdown.
    pub fn meaning(&self) -> &'static str {
        self.meaning.trim_start()
    }
}

/// Whether a key has to be there.
#[derive(Clone, Copy, Debug)]
pub enum Presence {
    /// It has.
    Required,
    /// Leaving it out is the same as stating this (YAML).
    Default(fn() -> String),
    /// What holds without it, in words.
    Otherwise(&'static str),
}

/// How a value is written.
#[derive(Clone, Debug)]
pub enum Form {
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
    Words(Vec<&'static str>),
    /// A release that is reproduced.
    Release(Program),
    /// Text, a number or a truth value.
    Scalar,
    /// A list.
    List(Box<Self>),
    /// A list of values, or one of them alone.
    OneOrMore(Box<Self>),
    /// A section.
    Map(&'static Section),
    /// A map with keys of the user's own: what they are, and what stands under them.
    Free(&'static str, Box<Self>),
    /// One or the other.
    Either(Box<Self>, Box<Self>),
}

impl Form {
    /// The same, with what a text, a number or a key of the user's own is where its kind does not say it.
    fn called(self, label: &'static str) -> Self {
        match self {
            Self::Text("") => Self::Text(label),
            Self::Amount(_) if !label.is_empty() => Self::Amount(label),
            Self::Free("", inner) => Self::Free(label, inner),
            Self::List(inner) => Self::List(Box::new(inner.called(label))),
            form => form,
        }
    }
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
    /// The Vertical Pod Autoscaler.
    VerticalPodAutoscaler,
}

/// The release of KEDA that is reproduced.
pub(super) const KEDA: &str = "2.20";

impl Program {
    /// Its releases, oldest first, as a scenario writes them.
    pub fn releases(self) -> Vec<String> {
        let minors = |oldest: u8| (oldest..=KubernetesVersion::NEWEST).map(|minor| format!("1.{minor}")).collect();
        match self {
            Self::Karpenter => {
                let all = KarpenterVersion::ALL.into_iter().chain([KarpenterVersion::MAIN]);
                all.map(|release| release.to_string()).collect()
            }
            Self::Kubernetes => minors(KubernetesVersion::OLDEST),
            Self::ClusterAutoscaler => minors(ClusterAutoscalerVersion::OLDEST),
            Self::Keda => vec![KEDA.to_owned()],
            Self::VerticalPodAutoscaler => {
                VerticalPodAutoscalerVersion::all().map(|autoscaler_version| autoscaler_version.to_string()).collect()
            }
        }
    }
}

/// Every section, in the order of the reference: a section comes after the one that holds it.
pub static SECTIONS: &[&Section] = &[
    &whole::SCENARIO,
    &cluster::VERSIONS,
    &cluster::CLUSTER,
    &cluster::STARTUP_TAINT,
    &cluster::NODE_GROUP,
    &cluster::TAINT,
    &policies::POLICY,
    &policies::KARPENTER,
    &policies::SCHEDULER_CONFIG,
    &policies::POD_TOPOLOGY_SPREAD,
    &policies::DEFAULT_CONSTRAINT,
    &policies::GATES,
    &policies::AUTO_MODE,
    &fargate::FARGATE,
    &fargate::PROFILE,
    &fargate::SELECTOR,
    &vertical::VERTICAL,
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
    &usage::USAGE,
    &usage::START_UP,
    &timeline::STEP,
    &timeline::SCALE,
    &timeline::SCALE_GROUP,
    &groups::UPDATE_GROUP,
    &groups::REFRESH_GROUP,
    &groups::UPDATE_CONFIG,
    &groups::REPAIR,
    &groups::WARM_POOL,
    &timeline::NODES,
    &timeline::DRAIN,
    &timeline::DELETE,
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
    &ec2::TIMES,
    &ec2::SPOT,
    &ec2::INTERRUPTIONS,
    &ec2::QUOTAS,
    &ec2::SPOT_QUOTAS,
    &ec2::API,
    &ec2::BUCKET,
    &ec2::FAILURES,
    &ec2::NETWORK,
    &ec2::SUBNET,
    &ec2::CATALOG_ERROR,
    &ec2::RESERVATION,
    &billing::BILLING,
    &billing::OTHER,
    &billing::RESERVED,
    &billing::PLAN,
    &billing::CAPABILITY,
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
    &assumptions::ASSUMPTION,
    &assumptions::COST_OF,
];
