//! Whose pod a pod is: the owner of its owner, as it stood at any hour of the window.

use std::collections::BTreeMap;

use nodecast_model::text::InputError;

use super::answer_reader::AnswerReader;

/// What made a pod.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Owner {
    /// Namespace and name.
    pub(super) workload: String,
    /// Its kind; empty of a pod that nothing made.
    pub(super) kind: String,
}

/// The owners of pods, by namespace and name.
#[derive(Debug, Default)]
pub(super) struct Owners {
    pods: BTreeMap<(String, String), Owner>,
}

type Named = BTreeMap<(String, String), (String, String)>;

impl Owners {
    /// # Errors
    /// If an answer cannot be read.
    pub(super) fn from_answer_reader(told: &mut AnswerReader<'_>) -> Result<Self, InputError> {
        let replica_sets = owners(told, "replicaset_owners", "replicaset")?;
        let jobs = owners(told, "job_owners", "job_name")?;
        let mut pods = BTreeMap::new();
        for (pod, (kind, name)) in owners(told, "owners", "pod")? {
            let namespace = pod.0.clone();
            let item = (namespace.clone(), name.clone());
            let above = match kind.as_str() {
                "ReplicaSet" => replica_sets.get(&item).cloned().or_else(|| of_template(&name)),
                "Job" => jobs.get(&item).cloned(),
                _ => None,
            };
            let (kind, name) = above.filter(|(kind, _)| !kind.is_empty()).unwrap_or((kind, name));
            let name = if kind.is_empty() { pod.1.clone() } else { name };
            pods.insert(pod, Owner { workload: format!("{namespace}/{name}"), kind });
        }
        Ok(Self { pods })
    }

    /// The owner of a pod.
    pub(super) fn of_pod(&self, namespace: &str, pod: &str) -> Option<&Owner> {
        self.pods.get(&(namespace.to_owned(), pod.to_owned()))
    }

    /// All workloads that a pod was of, with their kinds.
    pub(super) fn workloads(&self) -> impl Iterator<Item = &Owner> {
        self.pods.values()
    }
}

/// Kind and name of the owner of each object of an answer. Of several, the one that owned it last.
fn owners(told: &mut AnswerReader<'_>, role: &str, label: &str) -> Result<Named, InputError> {
    let mut last: BTreeMap<(String, String), (i64, (String, String))> = BTreeMap::new();
    for series in told.series(role)? {
        let Some(seen) = series.samples.last().map(|sample| sample.at) else { continue };
        let none = |text: &str| if text == "<none>" { String::new() } else { text.to_owned() };
        let owner = (none(series.label("owner_kind")), none(series.label("owner_name")));
        let key = (series.label("namespace").to_owned(), series.label(label).to_owned());
        let entry = last.entry(key).or_insert_with(|| (seen, owner.clone()));
        if (entry.0, !entry.1.0.is_empty()) < (seen, !owner.0.is_empty()) {
            *entry = (seen, owner);
        }
    }
    Ok(last.into_iter().map(|(key, (_, owner))| (key, owner)).collect())
}

/// The Deployment of a ReplicaSet whose owner is not known: its name without the hash of the template.
fn of_template(replica_set: &str) -> Option<(String, String)> {
    let (name, hash) = replica_set.rsplit_once('-')?;
    let is_hash = (6..=10).contains(&hash.len())
        && hash.bytes().all(|byte| b"0123456789bcdfghjklmnpqrstvwxz".contains(&byte) || byte.is_ascii_hexdigit());
    is_hash.then(|| ("Deployment".to_owned(), name.to_owned()))
}
