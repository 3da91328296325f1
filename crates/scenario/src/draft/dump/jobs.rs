//! Jobs of a dump: which go on, and whose they are.
//!
//! What must not live here: Jobs whose pods a trace makes (`passing`, `recorded`).

use std::collections::BTreeMap;

use super::objects::Object;
use super::{Dump, Notes};
use crate::domain::words::counted;
use crate::tree::Node;

/// Kinds that make Jobs, and that are simulated.
const MAKERS: [&str; 2] = ["CronJob", "ScaledJob"];

/// Whether a Job has ended, or only waits for its last pods to end.
pub(super) fn has_ended(job: &Object<'_>) -> bool {
    const ENDS: [&str; 4] = ["Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"];
    let conditions = job.at(&["status", "conditions"]).map_or(&[][..], Node::items);
    let text = |condition: &Node<'_>, key| condition.get(key).and_then(Node::as_text).map(str::to_owned);
    conditions.iter().any(|condition| {
        text(condition, "status").as_deref() == Some("True")
            && text(condition, "type").is_some_and(|kind| ENDS.contains(&&*kind))
    })
}

/// Whether a CronJob or a ScaledJob made an object.
fn is_made_again(object: &Object<'_>) -> bool {
    object.owner().is_some_and(|owner| MAKERS.contains(&&*owner.called()))
}

/// A run that does not begin with the dump's moment has none of the Jobs that a CronJob or a ScaledJob had made by then.
pub(super) fn leave_out_made(dump: &mut Dump<'_>) {
    dump.carried.retain(|object| object.kind != "Job" || !is_made_again(object));
}

/// Tells of Jobs that something made which is not simulated: they go on as Jobs of their own.
pub(super) fn tell_of_foreign(dump: &Dump<'_>, notes: &mut Notes) {
    let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
    for job in dump.carried.iter().filter(|item| item.kind == "Job" && !is_made_again(item)) {
        if let Some(owner) = job.owner() {
            *kinds.entry(owner.called()).or_default() += 1;
        }
    }
    for (kind, count) in kinds {
        let jobs = counted(count, &format!("Job of {kind} goes"), &format!("Jobs of {kind} go"));
        notes.warn(format!("{kind} is not simulated: the {jobs} on as if made by hand, and nothing makes others"));
    }
}
