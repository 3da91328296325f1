//! Events of Kubernetes, of both API versions.
//!
//! Source: core/v1 and events.k8s.io/v1 Event; messages of kubelet 1.30 `pkg/kubelet/images/image_manager.go`, kube-scheduler, and
//! karpenter v1.13 `pkg/events/reason.go`.

use serde_json::Value;

use super::Instant;
use super::ledger::{Fact, Ledger, Subject};
use super::lives::{End, ImagePull, Milestone, Shortage};
use super::values::{at, full_name, instant, number, text};

/// Events that are understood and tell nothing that is fitted.
const PASSED_OVER: [&str; 22] = [
    "Evicted",
    "FailedScheduling",
    "Pulling",
    "RegisteredNode",
    "SpotRebalanceRecommendation",
    "Killing",
    "TriggeredScaleUp",
    "ScaleDown",
    "Created",
    "Nominated",
    "Launched",
    "Registered",
    "Initialized",
    "Unconsolidatable",
    "DisruptionBlocked",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "ScalingReplicaSet",
    "SuccessfulRescale",
    "NodeNotReady",
    "RemovingNode",
    "Starting",
];

/// Takes up one event. Whether its reason is known.
pub(super) fn event(ledger: &mut Ledger, value: &Value) -> bool {
    let Some(reason) = text(value, &["reason"]) else { return false };
    let about = at(value, &["involvedObject"]).or_else(|| at(value, &["regarding"])).unwrap_or(&Value::Null);
    let message = text(value, &["message"]).or_else(|| text(value, &["note"])).unwrap_or_default();
    let Some(when) = first_time(value) else { return false };
    let kind = text(about, &["kind"]).unwrap_or_default();
    ledger.happened(last_time(value).unwrap_or(when), matches!(kind, "Node" | "NodeClaim" | "Machine"));
    match kind {
        "Pod" => pod_event(ledger, (reason, message), about, when),
        "Node" => claim_event(ledger, (reason, message), named(about, Subject::Node), when, value),
        "NodeClaim" | "Machine" => claim_event(ledger, (reason, message), named(about, Subject::Claim), when, value),
        _ => PASSED_OVER.contains(&reason),
    }
}

fn named(about: &Value, subject: fn(String) -> Subject) -> Option<Subject> {
    text(about, &["name"]).map(|name| subject(name.to_owned()))
}

/// When it happened first: later ones are only counted.
fn first_time(value: &Value) -> Option<Instant> {
    let paths: [&[&str]; 4] =
        [&["firstTimestamp"], &["eventTime"], &["deprecatedFirstTimestamp"], &["metadata", "creationTimestamp"]];
    paths.iter().find_map(|path| instant(value, path))
}

/// When it was counted last, which is what it is kept by.
fn last_time(value: &Value) -> Option<Instant> {
    let paths: [&[&str]; 3] = [&["series", "lastObservedTime"], &["lastTimestamp"], &["deprecatedLastTimestamp"]];
    paths.iter().find_map(|path| instant(value, path))
}

fn pod_event(ledger: &mut Ledger, (reason, message): (&str, &str), about: &Value, when: Instant) -> bool {
    let Some(name) = full_name(about) else { return false };
    match reason {
        "Scheduled" => {
            let pod = ledger.pod(&name);
            pod.scheduled = pod.scheduled.or(Some(when));
            pod.node = pod.node.take().or_else(|| message.rsplit_once(" to ").map(|(_, node)| node.trim().to_owned()));
        }
        // The last container to start makes the pod run.
        "Started" => {
            let pod = ledger.pod(&name);
            pod.started = pod.started.max(Some(when));
        }
        "Pulled" => {
            if let Some((image, seconds, bytes)) = pulled(message) {
                ledger.pull(ImagePull { image, pod: name, node: None, at: when, seconds, bytes });
            }
        }
        _ => return PASSED_OVER.contains(&reason),
    }
    true
}

/// Image, seconds without waiting, and bytes of `Successfully pulled image "X" in 4.2s (5.1s including waiting). Image size: N bytes.`
fn pulled(message: &str) -> Option<(String, f64, Option<f64>)> {
    let rest = message.strip_prefix("Successfully pulled image \"")?;
    let (image, rest) = rest.split_once("\" in ")?;
    let seconds = go_duration(rest.split(' ').next()?.trim_end_matches('.'))?;
    let bytes = rest.split_once("Image size: ").and_then(|(_, size)| size.split(' ').next()?.parse().ok());
    Some((image.to_owned(), seconds, bytes))
}

/// Seconds of a duration as Go prints it: `1m4.2s`, `850.3ms`.
pub(super) fn go_duration(text: &str) -> Option<f64> {
    let (mut seconds, mut number) = (0.0, String::new());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_digit() || c == '.' {
            number.push(c);
            rest = &rest[c.len_utf8()..];
            continue;
        }
        let units = [("ms", 1e-3), ("µs", 1e-6), ("us", 1e-6), ("ns", 1e-9), ("h", 3_600.0), ("m", 60.0), ("s", 1.0)];
        let (unit, factor) = units.iter().find(|(unit, _)| rest.starts_with(unit))?;
        seconds += number.parse::<f64>().ok()? * factor;
        number.clear();
        rest = &rest[unit.len()..];
    }
    (number.is_empty() && !text.is_empty()).then_some(seconds)
}

fn claim_event(
    ledger: &mut Ledger,
    (reason, message): (&str, &str),
    subject: Option<Subject>,
    when: Instant,
    value: &Value,
) -> bool {
    let Some(subject) = subject else { return false };
    match reason {
        "NodeReady" => ledger.note_at(&subject, Milestone::Ready, Some(when), false),
        "SpotInterrupted" => ledger.note(subject, Fact::End(End::Interrupted)),
        "TerminatingOnInterruption" => ledger.note_at(&subject, Milestone::DeletionAsked, Some(when), false),
        "DisruptionTerminating" => {
            // `Disrupting Node: Underutilized/Delete`, and `Disrupting NodeClaim: ...`.
            let end = message.split_once(": ").and_then(|(_, why)| why.split('/').next());
            if let Some(end) = end {
                ledger.note(subject.clone(), Fact::End(End::from_word(end)));
            }
            ledger.note_at(&subject, Milestone::DeletionAsked, Some(when), false);
        }
        "InsufficientCapacityError" => {
            let count = number(value, &["count"]).or_else(|| number(value, &["series", "count"])).unwrap_or(1.0);
            ledger.shortage(Shortage { at: when, instance_type: None, zone: None, count: count.max(1.0) as usize });
            ledger.note(subject, Fact::End(End::LaunchFailed));
        }
        _ => return PASSED_OVER.contains(&reason),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::{go_duration, pulled};

    #[test]
    fn durations_are_read_as_go_prints_them() {
        let millis = |text| go_duration(text).map(|seconds| (seconds * 1_000.0).round() as i64);
        assert_eq!(millis("1m4.2s"), Some(64_200));
        assert_eq!(millis("850.3ms"), Some(850));
        assert_eq!((millis("4"), millis(""), millis("4x")), (None, None, None));
    }

    #[test]
    fn image_pull_event_reads_optional_size() {
        let new = "Successfully pulled image \"a/b:1\" in 7.320s (7.620s including waiting). Image size: 300 bytes.";
        assert_eq!(pulled(new), Some(("a/b:1".to_owned(), 7.32, Some(300.0))));
        let old = "Successfully pulled image \"a/b:1\" in 850ms (850ms including waiting)";
        assert_eq!(pulled(old), Some(("a/b:1".to_owned(), 0.85, None)));
        let older = "Successfully pulled image \"a/b:1\" in 2.5s";
        assert_eq!(pulled(older), Some(("a/b:1".to_owned(), 2.5, None)));
        assert_eq!(pulled("Container image \"a/b:1\" already present on machine"), None);
    }
}
