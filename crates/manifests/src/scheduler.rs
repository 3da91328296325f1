//! KubeSchedulerConfiguration: how the scheduler that places all pods scores nodes.
//!
//! Source: Kubernetes 1.36 `staging/src/k8s.io/kube-scheduler/config/v1/types.go`, `types_pluginargs.go`.

use crate::lints;
use nodecast_model::domain::fit_scoring::{FitScoring, FitStrategy};
use nodecast_model::domain::{ResourceName, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

/// What a KubeSchedulerConfiguration sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchedulerSettings {
    /// `percentageOfNodesToScore`; 0 adapts to the size of the cluster.
    pub percentage_of_nodes_to_score: u8,
    /// How NodeResourcesFit scores.
    pub fit: FitScoring,
}

static CONFIGURATION: Shape = Shape {
    name: "a KubeSchedulerConfiguration",
    keys: &["apiVersion", "kind", "percentageOfNodesToScore", "profiles"],
    without_effect: &[
        "metadata",
        "clientConnection",
        "delayCacheUntilActive",
        "enableContentionProfiling",
        "enableProfiling",
        "healthzBindAddress",
        "leaderElection",
        "metricsBindAddress",
        "parallelism",
    ],
    unsupported: &[
        ("extenders", "nobody else is asked"),
        ("podInitialBackoffSeconds", "pods wait for a second at first"),
        ("podMaxBackoffSeconds", "pods wait for ten seconds at most"),
    ],
    strict: false,
};
static PROFILE: Shape = Shape {
    name: "a scheduler profile",
    keys: &["schedulerName", "percentageOfNodesToScore", "pluginConfig"],
    without_effect: &[],
    unsupported: &[("plugins", "the default plugins run, with their default weights")],
    strict: false,
};
static PLUGIN: Shape =
    Shape { name: "`pluginConfig`", keys: &["name", "args"], without_effect: &[], unsupported: &[], strict: false };
static FIT: Shape = Shape {
    name: "`args` of NodeResourcesFit",
    keys: &["scoringStrategy"],
    without_effect: &["apiVersion", "kind"],
    unsupported: &[("ignoredResources", "every resource counts"), ("ignoredResourceGroups", "every resource counts")],
    strict: false,
};
static STRATEGY: Shape = Shape {
    name: "`scoringStrategy`",
    keys: &["type", "resources", "requestedToCapacityRatio"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static RATIO: Shape = Shape {
    name: "`requestedToCapacityRatio`",
    keys: &["shape"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static POINT: Shape = Shape {
    name: "a point of `shape`",
    keys: &["utilization", "score"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static RESOURCE: Shape = Shape {
    name: "a resource of `scoringStrategy`",
    keys: &["name", "weight"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A KubeSchedulerConfiguration object: its first profile places all pods.
pub(super) fn scheduler<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<SchedulerSettings, InputError> {
    let fields = reader.fields(object, &CONFIGURATION)?;
    let mut settings = SchedulerSettings {
        percentage_of_nodes_to_score: percentage(reader, fields)?.unwrap_or(0),
        ..Default::default()
    };
    let profiles = fields.optional("profiles", |n, what| reader.list(n, what))?.unwrap_or_default();
    let Some((first, others)) = profiles.split_first() else { return Ok(settings) };
    if let Some(other) = others.first() {
        let message = "only the first scheduler profile is simulated; it schedules all pods";
        reader.left_out(&lints::SCHEDULER_PROFILES, other.at, message, "");
    }
    let profile = reader.fields(first, &PROFILE)?;
    if let Some(percentage) = percentage(reader, profile)? {
        settings.percentage_of_nodes_to_score = percentage;
    }
    for node in profile.optional("pluginConfig", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let plugin = reader.fields(node, &PLUGIN)?;
        let name_node = plugin.required(reader, "name")?;
        let name = reader.text(name_node, "name")?;
        match (name, plugin.get("args")) {
            ("NodeResourcesFit", Some(args)) => settings.fit = fit(reader, args)?,
            ("NodeResourcesFit", None) => {}
            _ => {
                let shown: String = name.chars().take(80).collect();
                let message =
                    format!("`args` of the scheduler plugin `{shown}` are not simulated: it has its defaults");
                reader.left_out(&lints::SCHEDULER_ARGS, name_node.at, message, "");
            }
        }
    }
    Ok(settings)
}

fn percentage<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Result<Option<u8>, InputError> {
    let stated = fields.optional("percentageOfNodesToScore", |n, what| reader.integer(n, what, 0, 100))?;
    Ok(stated.map(|percent| u8::try_from(percent).unwrap_or(100)))
}

fn fit<'s>(reader: &mut Reader<'s>, args: &Node<'s>) -> Result<FitScoring, InputError> {
    const TYPES: &[(&str, usize)] = &[("LeastAllocated", 0), ("MostAllocated", 1), ("RequestedToCapacityRatio", 2)];
    let fields = reader.fields(args, &FIT)?;
    let Some(node) = fields.get("scoringStrategy") else { return Ok(FitScoring::default()) };
    let strategy = reader.fields(node, &STRATEGY)?;
    let kind = match strategy.optional("type", |n, what| reader.choice(n, what, TYPES))? {
        Some(1) => FitStrategy::MostAllocated,
        Some(2) => FitStrategy::RequestedToCapacityRatio(points(reader, strategy)?),
        _ => FitStrategy::LeastAllocated,
    };
    let mut scoring = FitScoring { strategy: kind, ..FitScoring::default() };
    let stated = strategy.optional("resources", |n, what| reader.list(n, what))?.unwrap_or_default();
    if !stated.is_empty() {
        scoring.resources.clear();
    }
    for node in stated {
        let resource = reader.fields(node, &RESOURCE)?;
        let name: Symbol = reader.symbol(resource.required(reader, "name")?, "name")?;
        let weight = resource.optional("weight", |n, what| reader.integer(n, what, 1, 100))?.unwrap_or(1);
        scoring.resources.push((ResourceName(name), weight));
    }
    Ok(scoring)
}

/// The points of the ratio's polygon, which must rise in utilization.
fn points<'s>(reader: &mut Reader<'s>, strategy: Fields<'_, 's>) -> Result<Vec<(i64, i64)>, InputError> {
    let ratio = strategy.required(reader, "requestedToCapacityRatio")?;
    let shape = reader.fields(ratio, &RATIO)?.required(reader, "shape")?;
    let mut points: Vec<(i64, i64)> = Vec::new();
    for node in reader.list(shape, "shape")? {
        let point = reader.fields(node, &POINT)?;
        let number =
            |key, most| -> Result<i64, InputError> { reader.integer(point.required(reader, key)?, key, 0, most) };
        let (utilization, score) = (number("utilization", 100)?, number("score", 10)?);
        if points.last().is_some_and(|&(before, _)| before >= utilization) {
            return Err(reader
                .error(node.at, "the points of `shape` rise in `utilization`")
                .because("not above the one before")
                .help("order them by `utilization`, each once"));
        }
        points.push((utilization, score));
    }
    if points.is_empty() {
        return Err(reader
            .error(shape.at, "`shape` has no point")
            .because("nothing to score by")
            .help("write for example `[{ utilization: 0, score: 0 }, { utilization: 100, score: 10 }]`"));
    }
    Ok(points)
}
