//! Objects of Kubernetes: NodeClaims (and the Machines before them), Nodes, Pods and node classes, as `kubectl get -o yaml`, `-o json`
//! and `--watch --output-watch-events` print them.
//!
//! Source: `karpenter.sh/v1` NodeClaim, its status conditions in karpenter v1.13 `pkg/apis/v1/nodeclaim_status.go`.

use serde_json::Value;

use super::ledger::{Fact, Ledger, Subject};
use super::lives::Milestone;
use super::values::{at, full_name, instant, items, text};
use super::{Instant, kubernetes_events};

/// The conditions of a claim that are milestones.
const CONDITIONS: [(&str, Milestone); 3] =
    [("Launched", Milestone::Launched), ("Registered", Milestone::Registered), ("Initialized", Milestone::Initialized)];

/// Seconds after the start of its containers at which a pod that turns Ready has been Ready before. An assumption: applications that load large
/// models take up to half an hour, and readiness that fails does so at any time of a life of days.
const READY_AGAIN: f64 = 3_600.0;

/// Makes a fact of a text.
type FactOf = fn(String) -> Fact;

/// Labels of Nodes and claims, and what they tell.
const LABELS: [(&str, FactOf); 5] = [
    ("karpenter.sh/nodepool", Fact::Pool),
    ("karpenter.sh/provisioner-name", Fact::Pool),
    ("node.kubernetes.io/instance-type", Fact::InstanceType),
    ("topology.kubernetes.io/zone", Fact::Zone),
    ("karpenter.sh/capacity-type", Fact::CapacityType),
];

/// Takes up one object, or the items of a list. Whether it is one that tells anything.
pub(super) fn object(ledger: &mut Ledger, value: &Value) {
    let kind = text(value, &["kind"]).unwrap_or_default();
    if kind.ends_with("List") {
        for item in items(value, &["items"]) {
            // Items of a typed list need not say what they are.
            let named = text(item, &["kind"]).unwrap_or(kind.trim_end_matches("List"));
            one(ledger, named, item);
        }
        return;
    }
    one(ledger, kind, value);
}

fn one(ledger: &mut Ledger, kind: &str, value: &Value) {
    let told = match kind {
        "NodeClaim" | "Machine" => claim(ledger, value).is_some(),
        "Node" => node(ledger, value).is_some(),
        "Pod" => pod(ledger, value).is_some(),
        "EC2NodeClass" | "AWSNodeTemplate" => node_class(ledger, value).is_some(),
        "Event" => kubernetes_events::event(ledger, value),
        _ => false,
    };
    if told {
        ledger.taken();
    } else {
        let name = text(value, &["metadata", "name"]).unwrap_or_default();
        ledger.left(&format!("{kind} {name}"));
    }
}

/// Takes up one line of a watch. `first` says whether it is the first that tells of its object.
pub(super) fn change(ledger: &mut Ledger, value: &Value, first: &mut dyn FnMut(&str) -> bool) {
    let (Some(change), Some(object)) = (text(value, &["type"]), value.get("object")) else {
        return ledger.left("a change without an object");
    };
    let kind = text(object, &["kind"]).unwrap_or_default();
    if change == "BOOKMARK" {
        return ledger.taken();
    }
    one(ledger, kind, object);
    let name = text(object, &["metadata", "name"]).unwrap_or_default();
    let is_claim = matches!(kind, "NodeClaim" | "Machine");
    // A watch begins with an ADDED for each that is there: what is launched by then had a life before.
    if first(&format!("{kind}/{name}")) && is_claim && change == "ADDED" && condition(object, "Launched").is_some() {
        ledger.note(Subject::Claim(name.to_owned()), Fact::Truncated);
    }
}

/// When a condition became true.
fn condition(value: &Value, wanted: &str) -> Option<Instant> {
    let conditions = items(value, &["status", "conditions"]);
    let one = conditions.iter().find(|condition| text(condition, &["type"]) == Some(wanted))?;
    (text(one, &["status"]) == Some("True")).then(|| instant(one, &["lastTransitionTime"])).flatten()
}

fn labels(ledger: &mut Ledger, subject: &Subject, value: &Value) {
    if let Some(labels) = at(value, &["metadata", "labels"]) {
        for (label, fact) in LABELS {
            ledger.note_text(subject, text(labels, &[label]), fact);
        }
    }
}

/// The instance id of `aws:///ZONE/INSTANCE`.
pub(super) fn instance_of(provider_id: &str) -> Option<&str> {
    provider_id.rsplit('/').next().filter(|id| id.starts_with("i-"))
}

fn claim(ledger: &mut Ledger, value: &Value) -> Option<()> {
    let subject = Subject::Claim(text(value, &["metadata", "name"])?.to_owned());
    ledger.note_at(&subject, Milestone::Created, instant(value, &["metadata", "creationTimestamp"]), false);
    ledger.note_at(&subject, Milestone::DeletionAsked, instant(value, &["metadata", "deletionTimestamp"]), false);
    for (name, milestone) in CONDITIONS {
        ledger.note_at(&subject, milestone, condition(value, name), false);
    }
    labels(ledger, &subject, value);
    ledger.note_text(&subject, text(value, &["status", "imageID"]), Fact::Image);
    ledger.note_text(&subject, text(value, &["status", "nodeName"]), Fact::Node);
    ledger.note_text(&subject, text(value, &["spec", "nodeClassRef", "name"]), Fact::NodeClass);
    ledger.note_text(&subject, text(value, &["status", "providerID"]).and_then(instance_of), Fact::Instance);
    Some(())
}

/// A Node tells of the claim that made it, or stands for itself where a node group made it.
fn node(ledger: &mut Ledger, value: &Value) -> Option<()> {
    let name = text(value, &["metadata", "name"])?;
    let group = text(value, &["metadata", "labels", "eks.amazonaws.com/nodegroup"]);
    let subject = match group {
        Some(_) => Subject::Claim(name.to_owned()),
        None => Subject::Node(name.to_owned()),
    };
    ledger.note_text(&subject, group, Fact::Pool);
    let capacity = text(value, &["metadata", "labels", "eks.amazonaws.com/capacityType"]);
    let capacity = capacity.map(|word| if word == "SPOT" { "spot" } else { "on-demand" });
    ledger.note_text(&subject, capacity, Fact::CapacityType);
    labels(ledger, &subject, value);
    ledger.note_at(&subject, Milestone::Registered, instant(value, &["metadata", "creationTimestamp"]), false);
    ledger.note_at(&subject, Milestone::Ready, condition(value, "Ready"), false);
    Some(())
}

fn node_class(ledger: &mut Ledger, value: &Value) -> Option<()> {
    let name = text(value, &["metadata", "name"])?;
    let aliases = items(value, &["spec", "amiSelectorTerms"]).iter().filter_map(|term| text(term, &["alias"]));
    let family = text(value, &["spec", "amiFamily"])
        .map(str::to_lowercase)
        .or_else(|| aliases.map(|alias| alias.split('@').next().unwrap_or_default().to_owned()).next())?;
    ledger.node_class(name, &family);
    Some(())
}

/// The workload of a pod: what owns it, without the hash of a ReplicaSet or the time of a CronJob's Job.
fn owner(value: &Value) -> Option<(String, bool)> {
    let namespace = text(value, &["metadata", "namespace"]).unwrap_or("default");
    let owner = items(value, &["metadata", "ownerReferences"]).first()?;
    let name = text(owner, &["name"])?;
    let kind = text(owner, &["kind"])?;
    let hash = text(value, &["metadata", "labels", "pod-template-hash"]);
    let name = match (kind, hash) {
        ("ReplicaSet", Some(hash)) => name.strip_suffix(&format!("-{hash}")).unwrap_or(name),
        // A CronJob's Jobs are called after the minute that they were due.
        ("Job", _) => match name.rsplit_once('-') {
            Some((cron, minute)) if minute.len() >= 8 && minute.bytes().all(|byte| byte.is_ascii_digit()) => cron,
            _ => name,
        },
        _ => name,
    };
    Some((format!("{namespace}/{name}"), kind == "DaemonSet"))
}

fn pod(ledger: &mut Ledger, value: &Value) -> Option<()> {
    let name = full_name(value.get("metadata")?)?;
    let (workload, daemon) = owner(value)?;
    let statuses = items(value, &["status", "containerStatuses"]);
    let restarted = statuses.iter().any(|status| super::values::number(status, &["restartCount"]).unwrap_or(0.0) > 0.0);
    let running = |status: &Value| instant(status, &["state", "running", "startedAt"]);
    let ended = |status: &Value| instant(status, &["state", "terminated", "startedAt"]);
    let started = statuses.iter().filter_map(|status| running(status).or_else(|| ended(status))).max();
    let finished = statuses.iter().filter_map(|status| instant(status, &["state", "terminated", "finishedAt"])).max();
    let pod = ledger.pod(&name);
    (pod.workload, pod.daemon) = (Some(workload), daemon);
    pod.node = text(value, &["spec", "nodeName"]).map(str::to_owned);
    pod.created = instant(value, &["metadata", "creationTimestamp"]);
    pod.scheduled = condition(value, "PodScheduled");
    // After a restart the times are those of the last start, and readiness came before it or flapped.
    let mut came_back = false;
    if !restarted {
        (pod.started, pod.finished) = (started, finished);
        let ready = condition(value, "Ready").filter(|_| finished.is_none());
        // A condition tells of its last change alone: of those that a watch tells one after the other the first is it.
        let first = pod.ready.into_iter().chain(ready).min();
        let late = |ready: &Instant| started.is_some_and(|started| ready.seconds_since(started) > READY_AGAIN);
        pod.ready = first.filter(|ready| !late(ready));
        came_back = first.is_some_and(|ready| late(&ready));
    }
    pod.failed = text(value, &["status", "phase"]) == Some("Failed");
    if came_back {
        ledger.came_back(name);
    }
    Some(())
}
