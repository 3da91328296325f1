//! How far a Job is, as the Job controller has written it down.
//!
//! What must not live here: what a Job is to do (`batch`).
//!
//! Source: Kubernetes 1.36.2 `pkg/controller/job/job_controller.go`, `syncJob`.

use super::common::{count, instant};
use nodecast_model::domain::SimTime;
use nodecast_model::domain::workload::{JobConclusion, JobStatus};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};

static STATUS: Shape = Shape {
    name: "a Job's status",
    keys: &[
        "startTime",
        "succeeded",
        "failed",
        "completedIndexes",
        "failedIndexes",
        "uncountedTerminatedPods",
        "conditions",
    ],
    without_effect: &["active", "ready", "terminating", "completionTime"],
    unsupported: &[],
    strict: false,
};
static UNCOUNTED: Shape = Shape {
    name: "`uncountedTerminatedPods`",
    keys: &["succeeded", "failed"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
/// Conditions of a Job that has ended, or of which the controller only waits for the last pods, and whether it is complete then.
const ENDS: [(&str, bool); 4] =
    [("Complete", true), ("Failed", false), ("SuccessCriteriaMet", true), ("FailureTarget", false)];

/// The status in `node` of a Job of this `spec`, which wants so many `completions`.
///
/// Pods that have ended and that the controller has not added to its counts yet count too. Of an Indexed Job the completed indexes below its
/// completions count and nothing else, and where failures count by index, those that have failed are given up.
///
/// Source: `syncJob`, which tells by `failedIndexes` only where there is a `backoffLimitPerIndex`.
///
/// # Errors
/// If a count is no count, an instant no instant, or the indexes are no list of numbers and spans.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    spec: Option<&Node<'s>>,
    completions: Option<u32>,
) -> Result<JobStatus, InputError> {
    let status = reader.fields(node, &STATUS)?;
    let started = status.optional("startTime", |n, what| instant(reader, n, what))?;
    let [completed, given_up] = ["completedIndexes", "failedIndexes"]
        .map(|key| status.optional(key, |n, what| indexes(reader, n, what, completions)));
    let (succeeded, failed) = (count(reader, status, "succeeded")?, count(reader, status, "failed")?);
    let [uncounted_successes, uncounted_failures] = uncounted(reader, status)?;
    let of_spec = |key| spec.and_then(|spec| spec.get(key)).filter(|node| node.kind != NodeKind::Null);
    let is_indexed = of_spec("completionMode").and_then(Node::as_text) == Some("Indexed");
    let counts_by_index = is_indexed && of_spec("backoffLimitPerIndex").is_some();
    let (completed, given_up) = (completed?, given_up?);
    let succeeded = if is_indexed { completed } else { succeeded }.unwrap_or(0);
    Ok(JobStatus {
        started,
        succeeded: succeeded.saturating_add(uncounted_successes),
        failed: failed.unwrap_or(0).saturating_add(uncounted_failures),
        failed_indexes: given_up.filter(|_| counts_by_index).unwrap_or(0),
        end: end(reader, status)?,
    })
}

/// Pods that have ended well, and that have failed, and that are in no count yet.
fn uncounted<'s>(reader: &mut Reader<'s>, status: Fields<'_, 's>) -> Result<[u32; 2], InputError> {
    let Some(node) = status.get("uncountedTerminatedPods") else { return Ok([0; 2]) };
    let fields = reader.fields(node, &UNCOUNTED)?;
    let number = |key| -> Result<u32, InputError> {
        let pods = fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default();
        Ok(u32::try_from(pods.len()).unwrap_or(u32::MAX))
    };
    Ok([number("succeeded")?, number("failed")?])
}

/// How the Job ended, as its conditions say.
///
/// Source: `job_controller.go`, `IsJobFinished`; `ttlafterfinished_controller.go`, `getFinishAndExpireTime`, which counts from the condition's
/// last transition.
fn end<'s>(reader: &Reader<'s>, status: Fields<'_, 's>) -> Result<Option<JobConclusion>, InputError> {
    let conditions = status.optional("conditions", |n, what| reader.list(n, what))?.unwrap_or_default();
    let holds = |condition: &&Node<'s>, kind: &str| {
        let text = |key| condition.get(key).and_then(Node::as_text);
        text("type") == Some(kind) && text("status") == Some("True")
    };
    for (place, (kind, complete)) in ENDS.into_iter().enumerate() {
        let Some(condition) = conditions.iter().find(|condition| holds(condition, kind)) else { continue };
        // The last two say only what is going to be.
        let stated = condition.get("lastTransitionTime").filter(|node| place < 2 && node.kind != NodeKind::Null);
        let at: Option<SimTime> = stated.map(|node| instant(reader, node, "lastTransitionTime")).transpose()?;
        return Ok(Some(JobConclusion { complete, at }));
    }
    Ok(None)
}

fn indexes(reader: &Reader<'_>, node: &Node<'_>, what: &str, completions: Option<u32>) -> Result<u32, InputError> {
    Ok(count_indexes(&index_spans(reader, node, what)?, completions.unwrap_or(u32::MAX)))
}

/// The first and the last index of each span of a text such as `1,3-5,7`.
pub(super) fn index_spans(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<Vec<(u32, u32)>, InputError> {
    let text = reader.text(node, what)?;
    spans(text).ok_or_else(|| {
        let shown: String = text.chars().take(80).collect();
        reader
            .error(node.at, format!("`{what}` is no list of indexes: `{shown}`"))
            .because("not a list of numbers and spans")
            .help("write it as the API does, for example \"1,3-5,7\"")
    })
}

/// Source: `pkg/controller/job/indexed_job_utils.go`, `parseIndexesFromString`, which passes over what it cannot read.
fn spans(text: &str) -> Option<Vec<(u32, u32)>> {
    let span = |span: &str| {
        let (first, last) = span.split_once('-').unwrap_or((span, span));
        first.parse::<u32>().ok().zip(last.parse::<u32>().ok())
    };
    text.split(',').filter(|_| !text.is_empty()).map(span).collect()
}

/// How many indexes below `completions` are in these spans.
fn count_indexes(spans: &[(u32, u32)], completions: u32) -> u32 {
    let (mut total, mut next) = (0_u32, 0_u32);
    for &(first, last) in spans {
        // They are in order, and none counts twice.
        let (from, until) = (first.max(next), last.saturating_add(1).min(completions));
        total += until.saturating_sub(from);
        next = next.max(until);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{count_indexes, spans};
    use crate::read_manifests;
    use nodecast_model::domain::SimTime;
    use nodecast_model::domain::workload::{JobConclusion, JobStatus};
    use nodecast_model::text::Source;

    fn status(spec: &str, status: &str) -> Result<JobStatus, String> {
        let text = format!(
            "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a}}\nspec: {{{spec}, template: {{spec: {{containers: [{{name: a, image: a}}]}}}}}}\n\
             status: {{{status}}}\n"
        );
        let read = read_manifests(&Source::new("jobs.yaml", text)).map_err(|error| error.to_string())?;
        Ok(read.jobs[0].status)
    }

    #[test]
    fn job_status_counts_finished_pods_or_indexes() {
        let make = |spec, text| status(spec, text).map(|status| (status.succeeded, status.failed)).unwrap();
        let plain = "succeeded: 3, failed: 1, uncountedTerminatedPods: {succeeded: [a, b], failed: [c]}";
        assert_eq!(make("completions: 9", plain), (5, 2));
        let indexed = "completions: 6, completionMode: Indexed";
        assert_eq!(make(indexed, "succeeded: 9, completedIndexes: \"0,2-3,5-8\""), (4, 0), "none from the sixth on");
        assert_eq!(make(indexed, "active: 2"), (0, 0));
    }

    #[test]
    fn failed_indexes_are_final_with_per_index_backoff() {
        let given_up =
            |spec: &str, text| status(spec, text).map(|status| (status.succeeded, status.failed_indexes)).unwrap();
        let indexed = "completions: 6, completionMode: Indexed";
        let by_index = format!("{indexed}, backoffLimitPerIndex: 0");
        let text = "failed: 3, completedIndexes: \"0\", failedIndexes: \"1,3-4,9\"";
        assert_eq!(given_up(&by_index, text), (1, 3), "there is no tenth index");
        assert_eq!(given_up(indexed, text), (1, 0));
        assert_eq!(given_up("completions: 6, backoffLimitPerIndex: 0", text), (0, 0));
    }

    #[test]
    fn a_job_that_has_ended_says_when() {
        let condition = |kind, holds| {
            format!("conditions: [{{type: {kind}, status: \"{holds}\", lastTransitionTime: \"1970-01-01T00:01:00Z\"}}]")
        };
        let end = |kind, holds| status("completions: 1", &condition(kind, holds)).unwrap().end;
        let at = Some(SimTime::from_micros(60_000_000));
        assert_eq!(end("Complete", "True"), Some(JobConclusion { complete: true, at }));
        assert_eq!(end("Failed", "True"), Some(JobConclusion { complete: false, at }));
        assert_eq!(end("FailureTarget", "True"), Some(JobConclusion { complete: false, at: None }));
        assert_eq!((end("Suspended", "True"), end("Failed", "False")), (None, None));
    }

    #[test]
    fn invalid_job_status_values_are_errors() {
        for (text, words) in [
            ("startTime: soon", "`startTime` is not a point in time: `soon`"),
            ("startTime: {a: b}", "startTime"),
            ("succeeded: -1", "succeeded"),
            ("failed: many", "failed"),
            ("completedIndexes: \"1,x\"", "`completedIndexes` is no list of indexes: `1,x`"),
            ("failedIndexes: \"1-\"", "`failedIndexes` is no list of indexes: `1-`"),
        ] {
            let error = status("completions: 2", text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
        assert!(status("completions: 2", "startTime: null").is_ok_and(|status| status.started.is_none()));
    }

    #[test]
    fn indexes_are_numbers_and_spans() {
        let count = |text, completions| spans(text).map(|spans| count_indexes(&spans, completions));
        assert_eq!(count("", 9), Some(0));
        assert_eq!(count("1,3-5,7", 9), Some(5));
        assert_eq!(count("1,3-5,7", 5), Some(3));
        assert_eq!(count("0-3,2-4", 9), Some(5));
        assert_eq!((count("1,", 9), count("a-b", 9)), (None, None));
    }
}
