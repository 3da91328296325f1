//! NodeOverlays and CapacityBuffers of a policy, from the start and as the timeline changes them.
//!
//! What must not live here: what Karpenter makes of them (the deciding crates).

use crate::actors::{Action, Setup, Step};
use crate::domain::capacity_buffer::{BufferShape, CapacityBuffer};
use crate::domain::{NodeOverlay, PodTemplate, SimTime};
use crate::manifests::Manifests;
use nodecast_karpenter::instance_types::{lay_overlays, overlay_warnings, types_of_pools};
use nodecast_karpenter::machine::Buffer;
use nodecast_karpenter::release::Behaviour;
use nodecast_settings::lints::setup;
use nodecast_settings::{Autoscaler, Caveats, PolicyVariant, Scenario};

/// What the policy has from the start and what the timeline has applied up to `at`, the newest of each name.
fn applied<T: Clone, K: PartialEq>(
    scenario: &Scenario,
    policy: &PolicyVariant,
    at: SimTime,
    of: impl Fn(&Manifests) -> &[T],
    key: impl Fn(&T) -> K,
) -> Vec<T> {
    let mut all = of(&policy.manifests).to_vec();
    let later = scenario.timeline.iter().filter(|timed| timed.at <= at).filter_map(|timed| timed.action.applied());
    for item in later.flat_map(|manifests| of(manifests)) {
        match all.iter_mut().find(|other| key(other) == key(item)) {
            Some(other) => *other = item.clone(),
            None => all.push(item.clone()),
        }
    }
    all
}

/// The NodeOverlays that a policy's Karpenter heeds from an instant on: none where it knows none, or the gate is off.
pub(super) fn overlays(scenario: &Scenario, policy: &PolicyVariant, at: SimTime) -> Vec<NodeOverlay> {
    let knows = Behaviour::for_release(policy.versions.karpenter).knows_node_overlays;
    if !policy.autoscaler.is_karpenter() || !policy.feature_gates.node_overlay || !knows {
        return Vec::new();
    }
    applied(scenario, policy, at, |setup| &setup.node_overlays, |item| item.name)
}

/// The CapacityBuffers that a policy's Karpenter heeds from an instant on.
pub(super) fn buffers(scenario: &Scenario, policy: &PolicyVariant, at: SimTime) -> Vec<Buffer> {
    if obstacle(policy).is_some() {
        return Vec::new();
    }
    let buffers = applied(scenario, policy, at, |manifests| &manifests.capacity_buffers, |item| item.name);
    let templates = applied(scenario, policy, at, |manifests| &manifests.pod_templates, |item| item.name);
    let simulated = buffers.into_iter().filter(|buffer| refusal(buffer, &templates).is_none());
    simulated
        .map(|buffer| {
            let template = template_of(&buffer, &templates).map(|template| template.spec.clone());
            Buffer { buffer, template }
        })
        .collect()
}

fn template_of<'t>(buffer: &CapacityBuffer, templates: &'t [PodTemplate]) -> Option<&'t PodTemplate> {
    let BufferShape::Template(name) = buffer.shape else { return None };
    templates.iter().find(|template| template.name.namespace == buffer.name.namespace && template.name.name == name)
}

/// Why nobody keeps room under this policy.
fn obstacle(policy: &PolicyVariant) -> Option<String> {
    let release = policy.versions.karpenter;
    match policy.autoscaler {
        Autoscaler::Karpenter if !Behaviour::for_release(release).knows_capacity_buffers => {
            Some(format!("Karpenter {release} does not know it, which came with v1.14"))
        }
        Autoscaler::Karpenter if !policy.feature_gates.capacity_buffer => {
            Some("Karpenter's feature gate `capacity_buffer` is off".to_owned())
        }
        Autoscaler::Karpenter => None,
        Autoscaler::EksAutoMode => Some("EKS Auto Mode's support for it is unknown".to_owned()),
        Autoscaler::ClusterAutoscaler => Some("Cluster Autoscaler's support for it is not simulated".to_owned()),
        Autoscaler::None => Some("nothing launches nodes".to_owned()),
    }
}

/// Why Karpenter keeps no room for a buffer that it knows.
fn refusal(buffer: &CapacityBuffer, templates: &[PodTemplate]) -> Option<String> {
    if let Some(strategy) = buffer.other_strategy {
        return Some(format!("the strategy `{strategy}` is not simulated"));
    }
    if buffer.api_version.as_str().ends_with("/v1alpha1") {
        return Some(
            "the CRD of Karpenter v1.14 serves `autoscaling.x-k8s.io/v1beta1` alone, and the API server refuses `v1alpha1`"
                .to_owned(),
        );
    }
    match buffer.shape {
        BufferShape::Template(name) if template_of(buffer, templates).is_none() => {
            Some(format!("PodTemplate {name} does not exist"))
        }
        BufferShape::Other(kind, name) => Some(format!("the pods of {kind} {name} are not looked at")),
        _ => None,
    }
}

/// Warns of what does not count, and says why.
pub(super) fn warn(setup: &Setup<'_>, warnings: &mut Caveats) {
    warn_of_overlays(setup, warnings);
    let (scenario, policy) = (setup.scenario, setup.policy);
    let last = SimTime::ZERO + scenario.duration;
    let templates = applied(scenario, policy, last, |manifests| &manifests.pod_templates, |item| item.name);
    for buffer in applied(scenario, policy, last, |manifests| &manifests.capacity_buffers, |item| item.name) {
        if let Some(why) = obstacle(policy).or_else(|| refusal(&buffer, &templates)) {
            warnings.add(
                &setup::BUFFER_IGNORED,
                format!("CapacityBuffer {}: reserves no capacity here: {why}", buffer.name),
            );
        }
    }
}

fn warn_of_overlays(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (scenario, policy) = (setup.scenario, setup.policy);
    let release = policy.versions.karpenter;
    let last = SimTime::ZERO + scenario.duration;
    let stated = applied(scenario, policy, last, |setup| &setup.node_overlays, |item| item.name);
    if stated.is_empty() || !policy.autoscaler.is_karpenter() {
        return;
    }
    let knows = Behaviour::for_release(release).knows_node_overlays;
    if policy.auto_mode.is_some() || (knows && !policy.feature_gates.node_overlay) {
        let why = match policy.auto_mode {
            Some(_) => "EKS Auto Mode's support for them is unknown",
            None => "Karpenter's feature gate `node_overlay` is off",
        };
        warnings.add(&nodecast_single_pass::lints::OVERLAYS_IGNORED, format!("NodeOverlays are ignored: {why}"));
        return;
    }
    let provider = policy.provider_settings();
    let (pools, classes) = (&setup.node_pools, &setup.node_classes);
    let mut types = types_of_pools(&setup.price_list, &setup.region, classes, pools, provider);
    let verdicts = lay_overlays(release, &stated, pools, &mut types);
    overlay_warnings(release, &stated, &verdicts)
        .into_iter()
        .for_each(|text| warnings.add(&nodecast_single_pass::lints::OVERLAY, text));
}

/// The steps by which overlays and buffers change that are applied at `at`.
pub(super) fn replaced(at: SimTime, later: &Manifests, scenario: &Scenario, policy: &PolicyVariant) -> Vec<Step> {
    let mut steps = Vec::new();
    if !later.node_overlays.is_empty() && policy.autoscaler.is_karpenter() {
        steps.push(Step { at, action: Action::ReplaceOverlays(overlays(scenario, policy, at)) });
    }
    if (!later.capacity_buffers.is_empty() || !later.pod_templates.is_empty()) && obstacle(policy).is_none() {
        steps.push(Step { at, action: Action::ReplaceBuffers(buffers(scenario, policy, at)) });
    }
    steps
}
