//! What the Cluster Autoscaler weighed, as people read it.

use crate::report::format::{counted, span};
use crate::{DecisionExplanation, GroupFigures, OptionFigures, RoundFigures, ScaleDownFigures, ScaleUpFigures};

/// How a scale-up ends, and what is made of the pod.
pub(super) fn outcome(weighed: &ScaleUpFigures) -> String {
    let pod = match &weighed.pod {
        Some(standing) if weighed.groups.is_empty() => return standing.clone(),
        Some(standing) => format!("{standing}; "),
        None => String::new(),
    };
    let drawn = if weighed.by_lot { ", chosen at random among equals" } else { "" };
    format!("{pod}scale-up {}{drawn}", weighed.result)
}

/// One line for each group.
pub(super) fn about_groups(weighed: &ScaleUpFigures, lines: &mut Vec<String>) {
    // Where no scale-up is tried nothing is known of groups.
    let known = |group: &&GroupFigures| {
        group.skipped.is_some()
            || !group.reasons.is_empty()
            || group.option.is_some()
            || weighed.result == "NoOptionsAvailable"
    };
    let shown = weighed.groups.iter().filter(known);
    lines
        .extend(shown.map(|group| format!("    {} ({} of {}): {}", group.group, group.nodes, group.max, about(group))));
}

fn about(group: &GroupFigures) -> String {
    if let Some(why) = &group.skipped {
        return why.clone();
    }
    let option = group.option.as_ref().map(about_option);
    let refused = match group.reasons.as_slice() {
        [] => None,
        reasons => Some(format!("the pod does not fit its nodes: {}", reasons.join(", "))),
    };
    let grows = group.grows_to.map(|to| format!("grows to {}", counted(to.unsigned_abs(), "node", "nodes")));
    let parts: Vec<String> = [refused, option, grows].into_iter().flatten().collect();
    if parts.is_empty() { "no pending pod fits its nodes".to_owned() } else { parts.join("; ") }
}

fn about_option(option: &OptionFigures) -> String {
    let mut text = format!("{} for {}", counted(option.nodes, "node", "nodes"), counted(option.pods, "pod", "pods"));
    for round in &option.rounds {
        text.push_str(&format!(", {}", about_round(round)));
    }
    text
}

fn about_round(round: &RoundFigures) -> String {
    let figure = round.figure.map_or_else(String::new, |figure| {
        if figure.fract() == 0.0 { format!(" {figure}") } else { format!(" {figure:.4}") }
    });
    let verdict = if round.left { "kept" } else { "out" };
    format!("{}{figure} ({verdict})", round.expander)
}

/// The group of a node, to follow the program's name.
pub(super) fn of_group(found: &ScaleDownFigures) -> String {
    match (&found.group, found.group_nodes, found.group_min) {
        (Some(group), Some(nodes), Some(min)) => {
            format!(" (group {group} has {}, at least {min}):", counted(nodes.unsigned_abs(), "node", "nodes"))
        }
        _ => ":".to_owned(),
    }
}

/// Why a node stays, or that it goes.
pub(super) fn about_node(found: &ScaleDownFigures, lines: &mut Vec<String>) {
    let mut say = |text: String| lines.push(format!("    {text}"));
    if let Some(why) = &found.not_looked_at {
        say(format!("not evaluated: {why}"));
    }
    if let (Some(share), Some(resource)) = (found.utilization, &found.resource) {
        let threshold = found.threshold.map_or_else(String::new, |most| {
            let side = if share > most { "above" } else { "at or below" };
            format!(", {side} the threshold of {:.0}%", 100.0 * most)
        });
        say(format!("{:.1}% of its {resource} requested{threshold}", 100.0 * share));
    }
    if let Some(since) = found.unneeded_since_seconds {
        let until =
            found.waits_until_seconds.map_or_else(String::new, |until| format!("; removable after {}", span(until)));
        say(format!("unneeded since {}{until}", span(since)));
    }
    if let Some(until) = found.cooldown_until_seconds {
        say(format!("scale-down is in cooldown until {}", span(until)));
    }
    if let Some(reason) = found.reason {
        let pod = match (&found.blocking_pod, found.blocking_reason) {
            (Some(pod), Some(why)) => format!(" {pod} ({why})"),
            _ => String::new(),
        };
        say(format!("stays: {reason}{pod}"));
    }
    if found.reason == Some("RecentlyUnremovable")
        && let Some(before) = &found.found_before
    {
        say(format!("from an earlier check: {before}"));
    }
    if found.goes {
        let evicted = match found.evicts.as_slice() {
            [] => "empty".to_owned(),
            pods => format!("evicting {}", pods.join(", ")),
        };
        say(format!("goes now, {evicted}"));
    }
}

/// A decision of the Cluster Autoscaler.
pub(super) fn about_decision(decision: &DecisionExplanation, lines: &mut Vec<String>) {
    if let Some(weighed) = &decision.scale_up {
        lines.push(format!("  options considered: {}", outcome(weighed)));
        about_groups(weighed, lines);
    }
    for found in &decision.scale_down {
        lines.push(format!("  {}{}", found.node, of_group(found)));
        about_node(found, lines);
    }
    super::about_events(&decision.events, lines);
}
