//! `timeline`: what is done by hand, and when.

use std::sync::Arc;

use super::super::definition::{Action, TimedAction};
use super::super::error::listed;
use super::super::manifests::PriorityClass;
use super::super::reader::{Fields, Reader};
use super::super::tree::Node;
use super::values::release;
use super::{Files, Placed, ScenarioError};
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime, Symbol};
use crate::scenario::schema::timeline::{SCALE, SCALE_GROUP, STEP};

/// The steps of a timeline.
pub(super) struct Timeline<'n, 's> {
    /// Actions in order of time.
    pub actions: Vec<Placed>,
    /// Load that begins on the way, with its time.
    pub load: Vec<(SimTime, &'n Node<'s>)>,
}

/// Reads `timeline`; `classes` are the priority classes that exist from the start. Steps need not be in order; those at one time keep theirs.
pub(super) fn read<'n, 's>(
    reader: &mut Reader<'s>,
    fields: Fields<'n, 's>,
    files: &mut Files<'_>,
    duration: SimDuration,
    classes: &[PriorityClass],
) -> Result<Timeline<'n, 's>, ScenarioError> {
    let mut timeline = Timeline { actions: Vec::new(), load: Vec::new() };
    for node in fields.optional("timeline", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let step = reader.fields(node, &STEP.shape)?;
        let at_node = step.required(reader, "at")?;
        let at = SimTime::ZERO + reader.duration(at_node, "at")?;
        warn_of_late(reader, at_node, "step", at, duration);
        let given = STEP.one_of.iter().filter(|key| step.get(key).is_some()).count();
        if given != 1 {
            return Err(reader
                .error(node.at, format!("a step does one thing; this one does {given}"))
                .because("this step")
                .help(format!(
                    "give it one of {}; write two steps for two things",
                    listed(STEP.one_of.iter().copied())
                )));
        }
        if let Some(load) = step.get("load") {
            timeline.load.push((at, load));
            continue;
        }
        let stated = (step.get("scale"), step.get("scale_group"), step.get("upgrade_control_plane"));
        let (action, at_text) = match stated {
            (Some(node), ..) => scale(reader, node)?,
            (_, Some(node), _) => scale_group(reader, node)?,
            (.., Some(node)) => (Action::UpgradeControlPlane(release(reader, node, "upgrade_control_plane")?), node.at),
            (None, None, None) => {
                let mut manifests = files.manifests(reader, step, "manifests")?;
                manifests.resolve_priorities(classes)?;
                (Action::Apply(Arc::new(manifests)), node.at)
            }
        };
        timeline.actions.push(Placed { action: TimedAction { at, action }, at: at_text });
    }
    timeline.actions.sort_by_key(|placed| placed.action.at);
    Ok(timeline)
}

/// Warns of what is to happen when the run is over: whoever shortens a run need not take its later steps out.
pub(super) fn warn_of_late(reader: &mut Reader<'_>, node: &Node<'_>, what: &str, at: SimTime, duration: SimDuration) {
    if at >= SimTime::ZERO + duration {
        let message = format!("the {what} at {} is not reached: the run ends at {duration}", at - SimTime::ZERO);
        reader.warn(node.at, message, "after the end of the run", "raise `duration` if it is to happen");
    }
}

fn scale<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<(Action, super::Location), ScenarioError> {
    let fields = reader.fields(node, &SCALE.shape)?;
    let workload = fields.required(reader, "workload")?;
    let replicas = reader.integer(fields.required(reader, "replicas")?, "replicas", 0, 1_000_000)?;
    let replicas = u32::try_from(replicas).unwrap_or(u32::MAX);
    Ok((Action::Scale { workload: object_name(reader, workload)?, replicas }, workload.at))
}

fn scale_group<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<(Action, super::Location), ScenarioError> {
    let fields = reader.fields(node, &SCALE_GROUP.shape)?;
    let name = fields.required(reader, "group")?;
    let desired = reader.integer(fields.required(reader, "desired")?, "desired", 0, 100_000)?;
    let desired = u32::try_from(desired).unwrap_or(u32::MAX);
    Ok((Action::ScaleGroup { group: reader.symbol(name, "group")?, desired }, name.at))
}

/// `namespace/name`, or `name` in the namespace `default`.
pub(super) fn object_name(reader: &Reader<'_>, node: &Node<'_>) -> Result<ObjectName, ScenarioError> {
    let text = reader.text(node, "workload")?;
    let (namespace, name) = text.split_once('/').unwrap_or(("default", text));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err(reader
            .error(node.at, "a workload is named `namespace/name`")
            .because("not such a name")
            .help("write for example `web/frontend`"));
    }
    Ok(ObjectName { namespace: Symbol::new(namespace), name: Symbol::new(name) })
}
