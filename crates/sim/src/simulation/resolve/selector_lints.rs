//! By which labels anything of a run selects pods.

use std::collections::BTreeSet;

use crate::actors::{Action, Setup, TriggerReader};
use crate::domain::topology::{PodAffinity, PodAffinityTerm};
use crate::domain::which::By;
use crate::domain::{KubernetesBehaviour, LabelSelector, PodSpec, Symbol};
use crate::manifests::Manifests;
use nodecast_settings::Caveats;
use nodecast_settings::lints::setup;

use super::storage;

/// The keys of labels by which something selects pods at some time of the run: budgets, terms of pod (anti-)affinity, spread
/// constraints, Services, triggers, Fargate profiles and `kubectl delete`. What controllers select their own pods by is not among them.
pub(super) fn keys(setup: &Setup<'_>) -> BTreeSet<Symbol> {
    let mut keys = Keys::default();
    let (scenario, policy) = (setup.scenario, setup.policy);
    for part in storage::parts(scenario, &policy.manifests) {
        keys.of_objects(part);
    }
    storage::pods(scenario, &policy.manifests).into_iter().for_each(|(_, spec)| keys.of_pod(spec));
    if let Some(initial) = &setup.initial {
        let of_nodes = initial.nodes.iter().flat_map(|node| &node.found.pods);
        of_nodes.chain(initial.waiting.iter().copied()).for_each(|pod| keys.of_pod(&pod.spec));
    }
    for profile in policy.fargate.iter().flat_map(|fargate| &fargate.profiles) {
        let labels = profile.selectors.iter().flat_map(|selector| &selector.labels);
        keys.0.extend(labels.map(|(key, _)| Symbol::new(key)));
    }
    for step in &setup.timeline {
        match &step.action {
            Action::Delete { which, .. } => {
                if let By::Labels(labels) = &which.by {
                    keys.0.extend(labels.iter().map(|(key, _)| key));
                }
            }
            Action::ScaleObject(plan) => plan.readers.iter().for_each(|reader| keys.of_reader(reader)),
            Action::ScaleJobs(plan) => plan.readers.iter().for_each(|reader| keys.of_reader(reader)),
            _ => {}
        }
    }
    keys.0
}

/// The label of an Indexed Job's pods that they do not have here.
const INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// Says what no pod has though something selects by it, and what the release does not know.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (scenario, policy) = (setup.scenario, setup.policy);
    let release = policy.versions.kubernetes;
    let pods = storage::pods(scenario, &policy.manifests);
    if !release.has(KubernetesBehaviour::AffinityMatchLabelKeys) && pods.iter().any(|(_, spec)| has_keyed_terms(spec)) {
        warnings.add(&setup::AFFINITY_LABEL_KEYS, format!(
            "`matchLabelKeys` and `mismatchLabelKeys` in pod affinity are applied here, but Kubernetes {release} ignores them (supported from \
             1.31). Remove them to match your cluster"
        ));
    }
    if setup.selecting_labels.contains(&Symbol::new(INDEX)) {
        warnings.add(&setup::JOB_INDEX_LABEL, format!(
            "something selects pods by `{INDEX}`, which the pods of Indexed Jobs do not have here: it selects none of them by that; select by \
             `batch.kubernetes.io/job-name` or a label of your own"
        ));
    }
}

fn has_keyed_terms(spec: &PodSpec) -> bool {
    let all = [&spec.pod_affinity, &spec.pod_anti_affinity];
    all.into_iter().any(|item| {
        let preferred = item.preferred.iter().map(|weighted| &weighted.term);
        let mut terms = item.required.iter().chain(preferred);
        terms.any(|term| !term.match_label_keys.is_empty() || !term.mismatch_label_keys.is_empty())
    })
}

#[derive(Default)]
struct Keys(BTreeSet<Symbol>);

impl Keys {
    fn of_objects(&mut self, objects: &Manifests) {
        objects
            .disruption_budgets
            .iter()
            .filter_map(|disruption_budget| disruption_budget.selector.as_ref())
            .for_each(|selector| self.of_selector(selector));
        objects.services.iter().for_each(|service| self.0.extend(service.selector.iter().map(|(key, _)| key)));
        objects.pod_templates.iter().for_each(|pod_template| self.of_pod(&pod_template.spec));
    }

    fn of_pod(&mut self, spec: &PodSpec) {
        self.of_affinity(&spec.pod_affinity);
        self.of_affinity(&spec.pod_anti_affinity);
        for spread in &spec.topology_spread {
            spread.selector.iter().for_each(|item| self.of_selector(item));
            self.0.extend(&spread.match_label_keys);
        }
    }

    fn of_affinity(&mut self, affinity: &PodAffinity) {
        affinity.required.iter().for_each(|term| self.of_term(term));
        affinity.preferred.iter().for_each(|weighted| self.of_term(&weighted.term));
    }

    fn of_term(&mut self, term: &PodAffinityTerm) {
        term.selector.iter().for_each(|item| self.of_selector(item));
        self.0.extend(term.match_label_keys.iter().chain(&term.mismatch_label_keys));
    }

    fn of_reader(&mut self, reader: &TriggerReader) {
        if let TriggerReader::Pods(selector) = reader {
            self.of_selector(selector);
        }
    }

    fn of_selector(&mut self, selector: &LabelSelector) {
        self.0.extend(selector.match_labels.iter().map(|(key, _)| key));
        self.0.extend(selector.expressions.iter().map(|expression| expression.key));
    }
}
