//! An explanation as people read it.

mod groups;

use crate::domain::{ResourceName, Symbol};
use crate::report::columns::fitted;
use crate::report::format::{bought_as, counted, karpenter_label, money, span};
use crate::standing::{ClusterAutoscalerOfDump, StandingExplanation};
use crate::{
    DecisionExplanation, EventFigures, Explanation, MethodFigures, NodeExplanation, PodExplanation, PodFigures,
    RemovalFigures, SchedulerFigures, VerticalFigures,
};

/// Events of a pod that are printed; JSON has all.
const EVENTS_MAX: usize = 12;

/// The text of an explanation.
pub fn text(explanation: &Explanation) -> String {
    text_within(explanation, None)
}

/// The same in lines of no more than `width` characters.
pub fn text_within(explanation: &Explanation, width: Option<usize>) -> String {
    let at = span(explanation.at_seconds);
    let mut lines = Vec::new();
    if let Some(node) = &explanation.node {
        about_node(node, &format!(" at {at}"), explanation.currency, &mut lines);
    }
    if let Some(decision) = &explanation.decision {
        about_decision(decision, &at, explanation.currency, &mut lines);
    }
    if let Some(pod) = &explanation.pod {
        about_pod(pod, &at, &mut lines);
    }
    fitted(lines.join("\n") + "\n", width)
}

/// The explanation of a node in a cluster dump, in lines of no more than `width` characters.
pub fn standing_text(explanation: &StandingExplanation, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    let as_of = explanation.as_of.as_ref().map_or_else(String::new, |at| format!(" as of {at}"));
    let when = match &explanation.node.cluster_autoscaler {
        // Its own lines name it.
        Some(_) => as_of,
        None => {
            let StandingExplanation { karpenter, karpenter_source, feature_gates, .. } = explanation;
            format!("{as_of}, by {}", karpenter_label(karpenter, karpenter_source, feature_gates))
        }
    };
    about_node(&explanation.node, &when, explanation.currency, &mut lines);
    if let Some(ClusterAutoscalerOfDump { release, deployment }) = &explanation.cluster_autoscaler {
        lines.push(format!("  Cluster Autoscaler {release}, from the dump's Deployment {deployment}"));
    }
    fitted(lines.join("\n") + "\n", width)
}

fn about_node(node: &NodeExplanation, when: &str, currency: &str, lines: &mut Vec<String>) {
    let kind = |part: &Option<String>| part.clone().unwrap_or_default();
    // A machine of Fargate has no type.
    let (bought, own_type) = (bought_as(&kind(&node.capacity_type)).to_owned(), kind(&node.instance_type));
    let machine = if own_type == kind(&node.capacity_type) { bought } else { format!("{bought} {own_type}") };
    lines.push(format!(
        "node {} ({machine}, {}, {}/h, {}){when}{}",
        node.name,
        kind(&node.zone),
        money(currency, node.per_hour),
        node.origin,
        verdict(node)
    ));
    if let Some(because) = &node.because {
        lines.push(format!("  {because}"));
    }
    if let Some(drain) = &node.drain {
        let reason = drain.reason.map_or_else(String::new, |reason| format!(" ({reason})"));
        lines.push(format!("  draining since {}{reason}", span(drain.since_seconds)));
        lines.extend(drain.kept_by.iter().map(|pod| format!("    blocked by pod {pod}")));
    }
    about_methods(node, lines);
    if let Some(since) = node.consolidatable_from_seconds.filter(|&from| from < 0.0) {
        lines.push(format!(
            "  consolidatable for {} (consolidateAfter has elapsed since the last pod change)",
            span(-since)
        ));
    } else if let Some(from) = node.consolidatable_from_seconds {
        lines.push(format!("  consolidatable from {}, unless a pod is added or removed", span(from)));
    }
    if let Some(until) = node.nominated_until_seconds {
        lines.push(format!("  nominated for pods until {}", span(until)));
    }
    for budget in node.budgets.iter().filter(|budget| budget.nodes == Some(0)) {
        lines.push(format!("  the NodePool's disruption budget allows no disruption now for {}", budget.reason));
    }
    if !node.together.is_empty() {
        lines.push(format!("  multi-node consolidation would take {} together", node.together.join(", ")));
    }
    if let Some(replacement) = node.replacement.as_ref().filter(|replacement| replacement.because.is_none()) {
        lines.push("  drift replacement, ignoring blockers:".to_owned());
        about_removal(replacement, currency, lines);
    }
    if let Some(removal) = &node.removal {
        lines.push("  single-node consolidation, ignoring blockers:".to_owned());
        about_removal(removal, currency, lines);
    }
    if let Some(found) = &node.cluster_autoscaler {
        lines.push(format!("  the Cluster Autoscaler{}", groups::of_group(found)));
        groups::about_node(found, lines);
    }
    if !node.decisions.is_empty() {
        lines.push(format!("  decisions about this node in this run: {}", node.decisions.join(", ")));
    }
}

/// The answer in a few words, for the first line.
fn verdict(node: &NodeExplanation) -> String {
    let is_open = |method: &MethodFigures| {
        let stays = node.replacement.as_ref().filter(|_| method.method == "drift");
        method.reasons.is_empty() && stays.is_none_or(|replacement| replacement.because.is_none())
    };
    let words = match node.methods.iter().find(|method| is_open(method)) {
        _ if node.drain.is_some() => "is draining",
        Some(open) => match open.method {
            "empty" => "can be removed, because it is empty",
            "drift" => "can be replaced, because it is drifted",
            _ => "can be consolidated",
        },
        None if node.methods.is_empty() => match (&node.cluster_autoscaler, &node.because) {
            (Some(found), _) if found.goes => "the Cluster Autoscaler removes it now",
            (Some(_), _) => "the Cluster Autoscaler does not remove it now",
            (None, Some(_)) => "cannot be disrupted",
            (None, None) => return String::new(),
        },
        None => "cannot be disrupted",
    };
    format!(": {words}")
}

/// The blockers of each method. A drifted node without blockers stays if its pods have no other place.
fn about_methods(node: &NodeExplanation, lines: &mut Vec<String>) {
    for method in &node.methods {
        let stays = node.replacement.as_ref().filter(|_| method.method == "drift");
        let stays = stays.and_then(|stay| stay.because.as_ref());
        match (method.reasons.is_empty(), stays) {
            (true, Some(why)) => lines.push(format!("  drift: cannot be replaced: {why}")),
            (true, None) => lines.push(format!("  {}: no blockers", method.method)),
            (false, _) => {
                let reasons: Vec<&str> = method.reasons.iter().chain(stays).map(String::as_str).collect();
                lines.push(format!("  {}: blocked: {}", method.method, reasons.join("; ")));
            }
        }
    }
}

fn about_removal(removal: &RemovalFigures, currency: &str, lines: &mut Vec<String>) {
    let because = removal.because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let price =
        if removal.per_hour > 0.0 { format!(" (now {}/h)", money(currency, removal.per_hour)) } else { String::new() };
    lines.push(format!("    {}{because}{price}", removal.verdict));
    for launch in &removal.launches {
        let cheapest = launch.cheapest.as_ref().map_or_else(
            || "no type available".to_owned(),
            |name| {
                let price = launch.per_hour.map_or_else(String::new, |price| format!(" at {}", money(currency, price)));
                format!("from {name}{price}")
            },
        );
        lines.push(format!(
            "    new node of NodePool {}: one of {}, {cheapest}",
            launch.node_pool,
            counted(launch.types, "type", "types")
        ));
    }
    let goes_with_node = |pod: &&PodFigures| pod.to == "stays" && pod.because.is_none();
    lines.extend(
        removal.pods.iter().filter(|pod| !goes_with_node(pod)).map(|pod| format!("    {}", about_destination(pod))),
    );
    let count = removal.pods.iter().filter(goes_with_node).count() as u64;
    if count > 0 {
        let pods = counted(count, "pod of a DaemonSet, or static", "pods of DaemonSets, or static");
        lines.push(format!("    {pods}: removed with the node"));
    }
}

fn about_destination(pod: &PodFigures) -> String {
    let to = match (&pod.node, pod.to) {
        (Some(node), _) => format!("to {node}"),
        (None, "new node") => "to a new node".to_owned(),
        (None, "nowhere") => "no destination".to_owned(),
        (None, other) => other.to_owned(),
    };
    let because = pod.because.as_ref().map_or_else(String::new, |why| format!(", {why}"));
    let went = match &pod.went_to {
        Some(node) if pod.node.as_ref() == Some(node) => "; as planned".to_owned(),
        Some(node) => format!("; kube-scheduler chose {node}"),
        None => String::new(),
    };
    format!("{} ({}): {to}{because}{went}", pod.pod, pod.workload)
}

fn about_decision(decision: &DecisionExplanation, at: &str, currency: &str, lines: &mut Vec<String>) {
    let because = decision.because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    let what = match &decision.scale_up {
        Some(_) => "scale up".to_owned(),
        None => format!("remove {}", decision.nodes.join(", ")),
    };
    lines
        .push(format!("decision {} at {at}: {what} ({}), {}{because}", decision.id, decision.reason, decision.outcome));
    if decision.scale_up.is_some() || !decision.scale_down.is_empty() {
        return groups::about_decision(decision, lines);
    }
    lines.extend(decision.replacements.iter().map(|replacement| format!("  replacement: {replacement}")));
    match &decision.removal {
        Some(removal) => {
            lines.push("  decision and planned destinations:".to_owned());
            about_removal(removal, currency, lines);
        }
        None => lines.push("  its nodes no longer exist".to_owned()),
    }
    if let Some(elsewhere) = elsewhere(decision) {
        lines.push(format!("  {elsewhere}"));
    }
    lines.extend(decision.launched.iter().map(|item| format!("  launched {item}")));
    about_events(&decision.events, lines);
}

/// Whether kube-scheduler followed the plan, where it is known.
fn elsewhere(decision: &DecisionExplanation) -> Option<String> {
    let pods = &decision.removal.as_ref()?.pods;
    let known = pods.iter().filter(|pod| pod.node.is_some() && pod.went_to.is_some());
    let other = known.clone().filter(|pod| pod.node != pod.went_to).count();
    (other > 0).then(|| {
        format!(
            "{other} of {} pods landed elsewhere: Karpenter only checks that capacity exists; kube-scheduler chooses the node",
            known.count()
        )
    })
}

fn about_events(events: &[EventFigures], lines: &mut Vec<String>) {
    lines.extend(events.iter().take(EVENTS_MAX).map(|event| {
        let node = event.node.as_ref().map_or_else(String::new, |node| format!(" {node}"));
        let message = if event.message.is_empty() { String::new() } else { format!(": {}", event.message) };
        format!("  {:>9}  {}{node}{message}", span(event.at_seconds), event.kind)
    }));
    if events.len() > EVENTS_MAX {
        lines.push(format!("  + {} more events", events.len() - EVENTS_MAX));
    }
}

fn about_pod(pod: &PodExplanation, at: &str, lines: &mut Vec<String>) {
    let state = match (&pod.node, pod.waits) {
        (Some(node), _) if pod.found => format!("was on {node} at the start"),
        (Some(node), _) => format!("was scheduled to {node} at {at}"),
        (None, true) => format!("is pending at {at}"),
        (None, false) => format!("is not pending at {at}: it was deleted before it was scheduled"),
    };
    lines.push(format!("pod {} of {} {state}", pod.name, pod.workload));
    about_events(&pod.events, lines);
    if !pod.kube_scheduler.is_empty() {
        lines.push("  kube-scheduler result per node:".to_owned());
        lines.extend(pod.kube_scheduler.iter().map(|item| format!("    {}", about_verdict(item))));
    }
    if let Some(karpenter) = &pod.karpenter {
        let when = pod.claimed_at_seconds.map_or_else(String::new, |at| format!(" just before {}", span(at)));
        lines.push(format!("  Karpenter{when}: {karpenter}"));
    }
    if let Some(weighed) = &pod.cluster_autoscaler {
        let when = match (&pod.grown_by, pod.grown_at_seconds) {
            (Some(id), Some(at)) => format!(" at {} (decision {id})", span(at)),
            _ => String::new(),
        };
        lines.push(format!("  the Cluster Autoscaler{when}: {}", groups::outcome(weighed)));
        groups::about_groups(weighed, lines);
    }
    let mut verdicts = String::new();
    pod.node_pools.iter().for_each(|pool| pool.write(&mut verdicts));
    lines.extend(verdicts.lines().map(|line| format!("  {line}")));
    if let Some(decision) = &pod.evicted_by {
        lines.push(format!("  evicted because decision {decision} removed its node"));
    }
    if let Some(successor) = &pod.replaced_by {
        let place = match &pod.replaced_on {
            Some(node) => format!("on {node}"),
            None => "which was never scheduled".to_owned(),
        };
        lines.push(format!("  replaced by {successor}, {place}"));
    }
    if let Some(vertical) = &pod.vertical {
        about_requests(vertical, lines);
    }
}

/// What is recommended for the containers of a pod, and what becomes of it.
fn about_requests(vertical_figures: &VerticalFigures, lines: &mut Vec<String>) {
    let at = span(vertical_figures.at_seconds);
    lines.push(format!(
        "  VerticalPodAutoscaler {} (mode {:?}) after {at}: {}",
        vertical_figures.autoscaler, vertical_figures.mode, vertical_figures.because
    ));
    for resource in &vertical_figures.resources {
        let name = ResourceName(Symbol::new(&resource.resource));
        let text = |amount: Option<i64>| amount.map_or_else(|| "nothing".to_owned(), |amount| name.format(amount));
        let capped = match &resource.capped_by[..] {
            [] => String::new(),
            by => format!(", {} but for {}", text(resource.uncapped_target), by.join(" and ")),
        };
        lines.push(format!(
            "    {} {name}: requests {}, recommended {} (bounds {} to {}){capped}",
            resource.container,
            text(resource.request),
            name.format(resource.target),
            text(resource.lower_bound),
            text(resource.upper_bound)
        ));
    }
}

fn about_verdict(scheduler_figures: &SchedulerFigures) -> String {
    match scheduler_figures.total {
        Some(total) => {
            let scores: Vec<String> =
                scheduler_figures.scores.iter().map(|(plugin, score)| format!("{plugin} {score}")).collect();
            format!("{}: fits, total {total} ({})", scheduler_figures.node, scores.join(", "))
        }
        None => format!("{}: {}", scheduler_figures.node, scheduler_figures.reasons.join(", ")),
    }
}
