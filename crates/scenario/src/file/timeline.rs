//! `timeline`: what is done by hand, and when.

mod updates;

use std::sync::Arc;

use super::{Placed, Reading, ScenarioError};
use crate::definition::{Action, LoadSpec, TimedAction};
use crate::domain::which::{By, ObjectKind, Which};
use crate::domain::{KubernetesVersion, SimDuration, SimTime, Symbol};
use crate::error::listed;
use crate::manifests::Manifests;
use crate::reader::{Fields, Reader};
use crate::schema::Section;
use crate::schema::cluster::Tier;
use crate::schema::groups::{RefreshGroup, UpdateGroup};
use crate::schema::kind::{Kind, Moment};
use crate::schema::load::LoadEntry;
use crate::schema::timeline::{Delete, Drain, Nodes, STEP, Scale, ScaleGroup};
use crate::tree::{Location, Node};
use nodecast_settings::lints;

/// The steps of a timeline.
pub(super) struct Timeline<'n, 's> {
    /// Actions in order of time.
    pub actions: Vec<Placed>,
    /// Load that begins on the way, with its time.
    load: Vec<(SimTime, &'n Node<'s>)>,
}

/// Reads `timeline`; `base` holds what exists from the start. Steps need not be in order; those at one time keep theirs.
pub(super) fn read<'n, 's>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'n, 's>,
    base: &Manifests,
) -> Result<Timeline<'n, 's>, ScenarioError> {
    let mut timeline = Timeline { actions: Vec::new(), load: Vec::new() };
    for node in fields.optional("timeline", |n, what| reading.reader.list(n, what))?.unwrap_or_default() {
        let step = reading.reader.fields(node, &STEP.shape)?;
        let at_node = step.required(&reading.reader, "at")?;
        let at = Moment::read(reading, at_node, "at")?;
        let duration = reading.duration;
        warn_of_late(&mut reading.reader, at_node.at, "step", at, duration);
        let given = STEP.given(step);
        let [(what, node)] = given.as_slice() else {
            return Err(reading
                .error(node.at, format!("a step must have exactly one action; this one has {}", given.len()))
                .because("this step")
                .help(format!(
                    "give it one of {}; write two steps for two things",
                    listed(STEP.one_of.iter().copied())
                )));
        };
        let (action, place) = match *what {
            "load" => {
                timeline.load.push((at, node));
                continue;
            }
            "scale" => {
                let Scale { workload: (workload, place), replicas } = Scale::read(reading, node, what)?;
                (Action::Scale { workload, replicas }, place)
            }
            "scale_group" => {
                let ScaleGroup { group: (group, place), desired } = ScaleGroup::read(reading, node, what)?;
                (Action::ScaleGroup { group, desired }, place)
            }
            "update_group" => updates::update(UpdateGroup::read(reading, node, what)?),
            "refresh_group" => updates::refresh(RefreshGroup::read(reading, node, what)?),
            "upgrade_control_plane" => {
                (Action::UpgradeControlPlane(KubernetesVersion::read(reading, node, what)?), node.at)
            }
            "control_plane_tier" => (Action::ChangeControlPlaneTier(Tier::read(reading, node, what)?), node.at),
            "cordon" => (Action::Cordon(Nodes::read(reading, node, what)?), node.at),
            "uncordon" => (Action::Uncordon(Nodes::read(reading, node, what)?), node.at),
            "drain" => (Drain::read(reading, node, what)?, node.at),
            "delete" => (Delete::read(reading, node, what)?, node.get("name").map_or(node.at, |name| name.at)),
            _ => {
                let mut manifests = reading.files.manifests(&reading.reader, step, "manifests")?;
                let earlier = timeline.actions.iter().filter_map(|placed| Some(&**placed.action.action.applied()?));
                manifests.tell_apart(&std::iter::once(base).chain(earlier).collect::<Vec<_>>());
                reading.note(manifests.complete_workloads(&[base]));
                manifests.resolve_priorities(&base.priority_classes)?;
                reading.note(manifests.admit(&[base]));
                (Action::Apply(Arc::new(manifests)), node.at)
            }
        };
        timeline.actions.push(Placed { action: TimedAction { at, action }, at: place });
    }
    timeline.actions.sort_by_key(|placed| placed.action.at);
    Ok(timeline)
}

/// A deletion; only objects that come to be during a run are chosen by their labels.
pub(crate) fn deletion<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    delete: Delete,
) -> Result<Action, ScenarioError> {
    let ((kind, at), namespace) = (delete.kind, delete.namespace);
    let by_labels = matches!(delete.by, By::Labels(_));
    if by_labels && !kind.is_generated() {
        let name = kind.as_str();
        return Err(reading
            .error(fields.get("labels").map_or(at, |node| node.at), format!("a {name} is deleted by its name"))
            .because("only pods, NodeClaims and nodes are chosen by labels")
            .help(if kind.has_namespace() { "write for example `name: shop/web`" } else { "write its `name`" }));
    }
    if let Some((_, place)) = namespace.filter(|_| !by_labels || kind != ObjectKind::Pod) {
        return Err(reading
            .error(place, "`namespace` belongs to pods that are chosen by labels")
            .because("has no meaning here")
            .help("take it out; a name states its namespace itself: `shop/web`"));
    }
    let namespace = namespace.map_or(Symbol::new("default"), |(name, _)| name);
    Ok(Action::Delete { kind, namespace, which: Which { by: delete.by, most: delete.count } })
}

/// What is wrong with a step that says twice or not at all which objects it means.
pub(crate) fn no_choice(reading: &Reading<'_, '_>, _: &Section, fields: Fields<'_, '_>, given: usize) -> ScenarioError {
    let error = if given == 0 { "says of nothing which it means" } else { "says by name and by labels which it means" };
    reading
        .error(fields.at, format!("the step {error}"))
        .because("this step")
        .help("give it one of `name` and `labels`")
}

/// The loads that begin on the way.
pub(super) fn loads<'s>(
    reading: &mut Reading<'_, 's>,
    timeline: &Timeline<'_, 's>,
) -> Result<Vec<LoadSpec>, ScenarioError> {
    let mut loads = Vec::new();
    for (at, node) in &timeline.load {
        reading.step = Some(*at);
        loads.push(LoadEntry::read(reading, node, "load")?);
    }
    Ok(loads)
}

/// Warns of what is to happen when the run is over: whoever shortens a run need not take its later steps out.
pub(super) fn warn_of_late(reader: &mut Reader<'_>, place: Location, what: &str, at: SimTime, duration: SimDuration) {
    if at >= SimTime::ZERO + duration {
        let message = format!("the {what} at {} never happens: the run ends at {duration}", at - SimTime::ZERO);
        reader.warn(
            &lints::file::LATE_STEP,
            place,
            message,
            "after the end of the run",
            "raise `duration` if it is to happen",
        );
    }
}
