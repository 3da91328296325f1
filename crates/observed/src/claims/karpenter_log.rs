//! The log of Karpenter's controller, one JSON object a line or in console form, as the releases from v0.28 on write it.
//!
//! Lines are told apart by their message and read by the names of their fields, never by position.
//!
//! Source: karpenter v0.32 to v1.13, log statements of `pkg/controllers` and `pkg/operator/logging/logging.go`.

use serde_json::Value;

use super::ledger::{Fact, Ledger, Subject};
use super::lives::{End, Milestone, Shortage};
use super::objects::instance_of;
use super::values::{items, text};
use super::{Instant, log_lines};

/// Messages that are understood and tell nothing that is fitted. The claim of a pass has its own line.
const PASSED_OVER: [&str; 4] =
    ["found provisionable pod(s)", "computed new nodeclaim(s) to fit pod(s)", "tainted node", "deleted node"];

/// Takes up a whole line. A line that is not JSON, as other programs of the pod write them, is counted among those left.
pub(super) fn line(ledger: &mut Ledger, line: &str) {
    match log_lines::fields(line) {
        Some(value) if taken(ledger, &value).is_some() => ledger.taken(),
        Some(value) => ledger.left(text(&value, &["message"]).unwrap_or(line)),
        None => ledger.left(line),
    }
}

fn taken(ledger: &mut Ledger, value: &Value) -> Option<()> {
    let message = text(value, &["message"])?;
    let when = instant(value)?;
    ledger.logged(when);
    let message = message.replace("machine", "nodeclaim");
    if PASSED_OVER.contains(&message.as_str()) {
        return Some(());
    }
    let milestone = match message.as_str() {
        "created nodeclaim" => Milestone::Created,
        "launched nodeclaim" => Milestone::Launched,
        "registered nodeclaim" => Milestone::Registered,
        "initialized nodeclaim" => Milestone::Initialized,
        "deleted nodeclaim" => Milestone::Gone,
        "initiating delete from interruption message" => return interruption(ledger, value, when),
        "failed launching nodeclaim" => return failed(ledger, value, when),
        _ if message.starts_with("disrupting ") => return disrupted(ledger, value, &message, when),
        _ => return None,
    };
    let subject = claim(value)?;
    ledger.note_at(&subject, milestone, Some(when), true);
    let pool = text(value, &["NodePool", "name"]).or_else(|| text(value, &["nodepool"]));
    ledger.note_text(&subject, pool.or_else(|| text(value, &["provisioner"])), Fact::Pool);
    ledger.note_text(&subject, text(value, &["instance-type"]), Fact::InstanceType);
    ledger.note_text(&subject, text(value, &["zone"]), Fact::Zone);
    ledger.note_text(&subject, text(value, &["capacity-type"]), Fact::CapacityType);
    ledger.note_text(&subject, text(value, &["provider-id"]).and_then(instance_of), Fact::Instance);
    ledger.note_text(&subject, text(value, &["Node", "name"]).or_else(|| text(value, &["node"])), Fact::Node);
    Some(())
}

/// The time of a line: text of ISO 8601, or seconds since 1970, which zap writes where nobody sets another form.
fn instant(value: &Value) -> Option<Instant> {
    let time = value.get("time").or_else(|| value.get("ts"))?;
    match time.as_f64() {
        Some(seconds) => Some(Instant(0).plus_seconds(seconds)),
        None => Instant::parse(time.as_str()?),
    }
}

/// The claim that a line is about.
fn claim(value: &Value) -> Option<Subject> {
    let name = text(value, &["NodeClaim", "name"]).or_else(|| text(value, &["nodeclaim"]));
    name.or_else(|| text(value, &["machine"])).map(|name| Subject::Claim(name.to_owned()))
}

fn interruption(ledger: &mut Ledger, value: &Value, when: Instant) -> Option<()> {
    let node = text(value, &["Node", "name"]).or_else(|| text(value, &["node"]));
    let subject = claim(value).or_else(|| node.map(|node| Subject::Node(node.to_owned())))?;
    ledger.note_at(&subject, Milestone::DeletionAsked, Some(when), true);
    ledger.note(subject, Fact::End(End::from_word(text(value, &["messageKind"])?)));
    Some(())
}

fn failed(ledger: &mut Ledger, value: &Value, when: Instant) -> Option<()> {
    let error = text(value, &["error"]).unwrap_or_default().to_lowercase();
    if error.contains("insufficientinstancecapacity") || error.contains("insufficient capacity") {
        ledger.shortage(Shortage { at: when, instance_type: None, zone: None, count: 1 });
        if let Some(subject) = claim(value) {
            ledger.note(subject, Fact::End(End::LaunchFailed));
        }
    }
    Some(())
}

/// A command of the disruption controller: the reason by release, and each candidate.
fn disrupted(ledger: &mut Ledger, value: &Value, message: &str, when: Instant) -> Option<()> {
    // From v1.9 on `Reason/ID: decision: ...`, from v1.0 a field of its own, before it `disrupting via METHOD ACTION, terminating ...`.
    let command = text(value, &["command"]).and_then(|command| command.split('/').next());
    let via = message.split_once("via ").and_then(|(_, rest)| rest.split([' ', ',']).next());
    let end = End::from_word(command.or_else(|| text(value, &["reason"])).or(via)?);
    let mut end_of = |subject: Subject| {
        ledger.note_at(&subject, Milestone::DeletionAsked, Some(when), true);
        ledger.note(subject, Fact::End(end.clone()));
    };
    let listed = items(value, &["disrupted-nodes"]);
    for candidate in listed {
        let node = text(candidate, &["Node", "name"]).map(|node| Subject::Node(node.to_owned()));
        if let Some(subject) = claim(candidate).or(node) {
            end_of(subject);
        }
    }
    if listed.is_empty() {
        // `terminating 2 candidates NODE/TYPE/CT, NODE/TYPE/CT and replacing with ...`, from v0.37 on `... nodes (P pods) NODE/...`.
        let (_, rest) = message.split_once(", terminating ")?;
        let rest = rest.split(" and replacing").next().unwrap_or(rest);
        let candidates = rest.split([' ', ',']).filter(|word| word.matches('/').count() >= 2);
        for candidate in candidates {
            end_of(Subject::Node(candidate.split('/').next().unwrap_or_default().to_owned()));
        }
    }
    Some(())
}
