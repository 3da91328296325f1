//! Which namespaces a cluster with given objects has, and how they are labelled.

use std::collections::BTreeMap;

use super::Manifests;
use nodecast_model::domain::labels::with_namespace_name;
use nodecast_model::domain::{Labels, Symbol};

/// Namespaces by name, each with its labels, the one that the API server writes among them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Namespaces(BTreeMap<Symbol, Labels>);

impl Namespaces {
    /// The namespaces of a cluster in which all of these objects come to be: those that Namespace objects describe, as the first that
    /// names one has it, and those in which workloads and pods stand, which nobody could have created otherwise.
    pub fn from_objects<'m>(objects: impl IntoIterator<Item = &'m Manifests>) -> Self {
        let mut namespaces = Self::default();
        let mut names = Vec::new();
        for objects in objects {
            for namespace in &objects.namespaces {
                namespaces
                    .0
                    .entry(namespace.name)
                    .or_insert_with(|| with_namespace_name(namespace.labels.clone(), namespace.name));
            }
            names.extend(names_in(objects));
        }
        namespaces.with(names)
    }

    /// The same with these; one that nothing describes has no label but its name.
    #[must_use]
    pub fn with(mut self, names: impl IntoIterator<Item = Symbol>) -> Self {
        for name in names {
            self.0.entry(name).or_insert_with(|| with_namespace_name(Labels::new(), name));
        }
        self
    }
}

impl IntoIterator for Namespaces {
    type Item = (Symbol, Labels);
    type IntoIter = std::collections::btree_map::IntoIter<Symbol, Labels>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The namespace of each object that is a pod or makes pods.
fn names_in(objects: &Manifests) -> impl Iterator<Item = Symbol> + '_ {
    let deployments = objects.deployments.iter().map(|deployment| deployment.name);
    let sets = objects.stateful_sets.iter().map(|stateful_set| stateful_set.name);
    let jobs = objects.jobs.iter().map(|job| job.name);
    let crons = objects.cron_jobs.iter().map(|cron_job| cron_job.name);
    let daemons = objects.daemon_sets.iter().map(|daemon_set| daemon_set.name);
    let pods = objects.pods.iter().map(|pod| pod.name);
    let buffers = objects.capacity_buffers.iter().map(|capacity_buffer| capacity_buffer.name);
    let named = deployments.chain(sets).chain(jobs).chain(crons).chain(daemons).chain(pods).chain(buffers);
    named.map(|name| name.namespace).chain(objects.scaled_jobs.iter().map(|scaled_job| scaled_job.namespace))
}

#[cfg(test)]
mod tests {
    use super::Namespaces;
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::{Labels, Symbol};
    use nodecast_model::text::Source;

    fn read(text: &str) -> Manifests {
        read_manifests(&Source::new("objects.yaml", text)).unwrap()
    }

    #[test]
    fn namespace_of_any_object_exists_with_name_label() {
        let start = read(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: sales}}\n---\n\
             apiVersion: v1\nkind: Pod\nmetadata: {name: one, namespace: jobs}\nspec: {containers: [{name: c}]}\n",
        );
        let later = read(
            "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {team: other}}\n---\n\
             apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\n\
             spec: {selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: [{name: c}]}}}\n",
        );
        let found: Vec<(Symbol, Labels)> =
            Namespaces::from_objects([&start, &later]).with([Symbol::new("jobs")]).into_iter().collect();
        let named = |name: &str| Labels::new().with("kubernetes.io/metadata.name", name);
        let expected = [
            (Symbol::new("default"), named("default")),
            (Symbol::new("jobs"), named("jobs")),
            (Symbol::new("shop"), named("shop").with("team", "sales")),
        ];
        assert_eq!(found, expected);
    }
}
