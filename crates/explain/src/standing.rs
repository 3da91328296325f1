//! Why a node of a cluster as it stands stays: asked of a dump, without a run.

use serde::Serialize;

use super::{
    BudgetFigures, MethodFigures, NodeExplanation, RemovalFigures, ScaleDownFigures, Subject, explain, position_of_node,
};
use crate::actors::inquiry::SCALE_DOWN_DISABLED;
use crate::catalog::{Catalog, Region};
use crate::cluster::{NodeOrigin, NodePhase};
use crate::domain::{HourlyRate, NodeId, SimDuration, SimTime, well_known};
use crate::report::drain::GroupRoom;
use crate::report::summary::PROGRAM;
use crate::scenario::draft::{Draft, Wishes};
use crate::scenario::source::{InMemoryFiles, Source};
use crate::scenario::{Autoscaler, ScenarioError};
use nodecast_single_pass::PackingQuestion;
use nodecast_single_pass::standing::{Standing, rate_of_node};

/// The version of the layout of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// Why a node of a cluster stays.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct StandingExplanation {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// The instant of the dump; `None` where nothing in it has a time. Spans of the rest count from it.
    pub as_of: Option<String>,
    /// The release of Karpenter that was asked.
    pub karpenter: String,
    /// Origin of the release.
    pub karpenter_source: String,
    /// Open feature gates, by Karpenter's names.
    pub feature_gates: Vec<&'static str>,
    /// The dump's Cluster Autoscaler, where that was asked.
    pub cluster_autoscaler: Option<ClusterAutoscalerOfDump>,
    /// ISO 4217 code of the currency of every amount.
    pub currency: &'static str,
    /// The node.
    pub node: NodeExplanation,
}

/// The Cluster Autoscaler of a dump.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, schemars::JsonSchema)]
pub struct ClusterAutoscalerOfDump {
    /// The release that is reproduced.
    pub release: String,
    /// Its Deployment, `namespace/name`.
    pub deployment: String,
}

/// The position in the question of the node called `name`.
///
/// # Errors
/// If there is none.
pub fn find_node(question: &PackingQuestion, name: &str) -> Result<usize, ScenarioError> {
    let names = question.nodes.iter().map(|node| node.node.name.as_str());
    position_of_node(name, names).map_err(|help| {
        let help = match question.nodes.is_empty() {
            true => "this file has no Node objects; add the output of `kubectl get nodes -o yaml`".to_owned(),
            false => help,
        };
        ScenarioError::new(format!("no node `{name}` in this cluster")).help(help)
    })
}

/// Explains why the node called `name` stays.
///
/// # Errors
/// If there is none.
pub fn explain_standing(question: &PackingQuestion, name: &str) -> Result<StandingExplanation, ScenarioError> {
    let position = find_node(question, name)?;
    let (node, name) = (NodeId::from_index(position), question.nodes[position].node.name.as_str());
    let mut standing = Standing::from_question(question);
    let (now, answer) = (standing.now, standing.about_node(node));
    let state = standing.cluster.node(node);
    let label = |key| state.labels.get(key).map(|value| value.to_string());
    let from_now = |at: SimTime| (at - now).as_secs_f64();
    let mut found = NodeExplanation {
        drain: None,
        name: name.to_owned(),
        origin: state.origin.name().to_string(),
        instance_type: label(well_known::INSTANCE_TYPE),
        capacity_type: label(well_known::CAPACITY_TYPE)
            .or_else(|| label(well_known::EKS_CAPACITY_TYPE).map(|kind| kind.to_lowercase().replace('_', "-"))),
        zone: label(well_known::ZONE),
        per_hour: rate_of_node(&question.region, &state.labels).map_or(0.0, HourlyRate::as_f64),
        because: None,
        methods: Vec::new(),
        consolidatable_from_seconds: None,
        nominated_until_seconds: None,
        budgets: Vec::new(),
        together: Vec::new(),
        removal: None,
        replacement: None,
        cluster_autoscaler: None,
        decisions: Vec::new(),
    };
    let name_of = |node: NodeId| standing.cluster.node(node).name.to_string();
    match answer {
        None => found.because = Some(no_say(question, &standing, node)),
        Some(answer) => {
            let methods = answer.methods.into_iter().map(|(method, reasons)| MethodFigures { method, reasons });
            found.methods = methods.collect();
            found.consolidatable_from_seconds = answer.consolidatable_from.map(from_now);
            found.nominated_until_seconds = answer.nominated_until.map(from_now);
            let budgets = answer.budgets.into_iter().map(|(reason, nodes)| BudgetFigures { reason, nodes });
            found.budgets = budgets.collect();
            found.together = answer.together.into_iter().map(name_of).collect();
            let figures = |removal| {
                RemovalFigures::new(&removal, name_of, |pod| {
                    let workload = standing.cluster.workload(standing.cluster.pod(pod).workload);
                    (standing.pod_name(pod), workload.name.to_string())
                })
            };
            found.removal = answer.removal.map(figures);
            found.replacement = answer.replacement.map(figures);
        }
    }
    let as_of = jiff::Timestamp::from_microsecond(now.as_micros()).ok().filter(|_| now > SimTime::ZERO);
    Ok(StandingExplanation {
        schema_version: SCHEMA_VERSION,
        program: PROGRAM,
        program_version: env!("CARGO_PKG_VERSION"),
        as_of: as_of.map(|at| at.to_string()),
        karpenter: question.karpenter.to_string(),
        karpenter_source: question.setup.source.clone(),
        feature_gates: question.setup.flags.gates.open(),
        cluster_autoscaler: None,
        currency: question.region.currency.code(),
        node: found,
    })
}

/// How long a cluster is run on until its Cluster Autoscaler has looked at it.
const UNTIL_LOOKED: SimDuration = SimDuration::from_secs(30);

/// What the Cluster Autoscaler of a dump says of a node, if the dump has one that sees it: asked half a minute after it was started on the
/// cluster as it stands.
///
/// Deviation: a dump has no times since nodes are unneeded. The time counts from the start of the Cluster Autoscaler.
///
/// # Errors
/// If no scenario can be made of the dump.
pub fn by_cluster_autoscaler(
    dump: &[Source],
    name: &str,
    (region, catalog): (&Region, &Catalog),
) -> Result<Option<(ScaleDownFigures, ClusterAutoscalerOfDump)>, ScenarioError> {
    let region = Some(region.name.as_str().to_owned());
    let wishes = Wishes { name: "standing".to_owned(), region, ..Wishes::default() };
    let draft = Draft::of_dump(dump, &wishes, catalog)?;
    let held = InMemoryFiles::from_texts(draft.files.iter().map(|file| (&*file.name, &*file.text)));
    let Some(first) = draft.files.first() else { return Ok(None) };
    let (mut scenario, _) = crate::scenario::of_texts(&first.name, &held, catalog)?;
    scenario.duration = UNTIL_LOOKED;
    let policy = scenario.policies.iter().find(|policy| policy.autoscaler == Autoscaler::ClusterAutoscaler);
    // Only what runs today is asked.
    let Some(policy) = policy.filter(|policy| policy.name == scenario.policies[0].name) else { return Ok(None) };
    let subject = Subject::Node { name: name.to_owned(), at: SimTime::ZERO + UNTIL_LOOKED };
    let answer = explain(&scenario, policy, catalog, scenario.seed, &subject);
    let figures = answer.ok().and_then(|answer| answer.node).and_then(|node| node.cluster_autoscaler);
    let deployment = Draft::cluster_autoscaler(dump)?.unwrap_or_default();
    let program = ClusterAutoscalerOfDump { release: policy.versions.cluster_autoscaler.to_string(), deployment };
    Ok(figures.map(|figures| (figures, program)))
}

/// What the Cluster Autoscaler of a dump, if it has one that takes nodes away, makes of the size of a node's group.
///
/// # Errors
/// If no scenario can be made of the dump.
pub fn group_room(
    dump: &[Source],
    name: &str,
    of_cluster: (&Region, &Catalog),
) -> Result<Option<GroupRoom>, ScenarioError> {
    let figures = by_cluster_autoscaler(dump, name, of_cluster)?.map(|(figures, _)| figures);
    let figures = figures.filter(|figure| figure.not_looked_at.as_deref() != Some(SCALE_DOWN_DISABLED));
    Ok(figures.and_then(|figure| {
        let (group, nodes, least) = (figure.group?, figure.group_nodes?, figure.group_min?);
        Some(GroupRoom { group, nodes, least })
    }))
}

/// Why Karpenter has no say about a node.
fn no_say(question: &PackingQuestion, standing: &Standing, node: NodeId) -> String {
    let state = standing.cluster.node(node);
    match state.origin {
        NodeOrigin::NodeGroup(_) if state.labels.get(well_known::EKS_NODEGROUP).is_none() => {
            "it belongs to no NodePool and to no known node group: Karpenter does not disrupt it".to_owned()
        }
        NodeOrigin::NodeGroup(group) => format!("node group {group} owns it: Karpenter does not disrupt it"),
        NodeOrigin::Fargate(profile) => format!("it runs on Fargate (profile {profile}) and is removed with its pod"),
        NodeOrigin::NodePool(_) if state.phase > NodePhase::Registered => "it is being removed".to_owned(),
        NodeOrigin::NodePool(pool) if !question.node_pools.iter().any(|node_pool| node_pool.name == pool) => {
            format!("its NodePool {pool} is not in the dump, so its disruption settings are unknown")
        }
        NodeOrigin::NodePool(_) => {
            format!("Karpenter {} has no disruption loop that could be asked", question.karpenter)
        }
    }
}
