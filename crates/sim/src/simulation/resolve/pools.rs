//! The NodePools that a policy's Karpenter knows, from the start and as the timeline changes them.
//!
//! What must not live here: what Karpenter does about a changed NodePool (the deciding crates).

use super::storage;
use crate::actors::{Action, Setup, Step};
use crate::domain::node_pool::ConsolidationPolicy;
use crate::domain::{
    KarpenterVersion, NodeClass, NodeGroup, NodePool, PodSpec, Requirement, SimDuration, SimTime, well_known,
};
use crate::manifests::Manifests;
use crate::manifests::{changed_keys, image_update};
use nodecast_karpenter::instance_types::{complete_classes, complete_pools, user_data_warning};
use nodecast_karpenter::packing::{MinValuesPolicy, PreferencePolicy};
use nodecast_karpenter::release::{self, Behaviour};
use nodecast_model::auto_mode;
use nodecast_model::domain::topology::WhenUnsatisfiable;
use nodecast_model::text::error::listed;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, PolicyVariant, Scenario, TimedAction};

/// What the timeline applies.
fn applied(scenario: &Scenario) -> impl Iterator<Item = &Manifests> {
    scenario.timeline.iter().filter_map(|timed| Some(&**timed.action.applied()?))
}

/// The node classes of the manifests, those that come with the timeline, and one of defaults for each that a NodePool names at some time
/// and nobody states.
pub(super) fn classes(scenario: &Scenario, policy: &PolicyVariant, pools: &[NodePool]) -> Vec<NodeClass> {
    let mut classes = policy.manifests.node_classes.clone();
    for class in applied(scenario).flat_map(|later| &later.node_classes) {
        if class.auto_mode == policy.auto_mode.is_some()
            && !classes.iter().any(|this_class| this_class.name == class.name)
        {
            classes.push(class.clone());
        }
    }
    if policy.auto_mode.is_some() {
        for pool in pools {
            if !classes.iter().any(|class| class.name == pool.node_class) {
                classes.push(auto_mode::node_class(pool.node_class));
            }
        }
    }
    let later: Vec<NodePool> = applied(scenario).flat_map(|later| later.node_pools.clone()).collect();
    complete_classes(classes, &later, &scenario.zones)
}

/// The NodePools with what their release's webhook would have added. One that only the timeline applies is there from the start and
/// not ready.
pub(super) fn at_start(scenario: &Scenario, policy: &PolicyVariant, warnings: &mut Caveats) -> Vec<NodePool> {
    let version = policy.versions.karpenter;
    let mut pools = policy.manifests.node_pools.clone();
    for pool in applied(scenario).flat_map(|later| &later.node_pools) {
        if pool.auto_mode == policy.auto_mode.is_some() && !pools.iter().any(|this_pool| this_pool.name == pool.name) {
            pools.push(NodePool { ready: false, ..pool.clone() });
        }
    }
    release::warnings(version, &pools).into_iter().for_each(|text| warnings.add(&setup::KARPENTER_RELEASE, text));
    let behaviour = Behaviour::for_release(version);
    let options = policy.karpenter_options;
    if options.preferences == PreferencePolicy::Ignore && !behaviour.knows_preference_policy {
        warnings.add(
            &setup::OPTION_OF_LATER_KARPENTER,
            format!("`preference_policy` needs Karpenter v1.4; {version} respects preferences"),
        );
    }
    if options.min_values == MinValuesPolicy::BestEffort && !behaviour.knows_min_values_policy {
        warnings.add(
            &setup::OPTION_OF_LATER_KARPENTER,
            format!("`min_values_policy` needs Karpenter v1.6; {version} is strict"),
        );
    }
    if options.reserved_enis > 0 && !behaviour.knows_reserved_enis {
        warnings.add(
            &setup::OPTION_OF_LATER_KARPENTER,
            format!("Karpenter {version} does not have `reserved_enis`, which came with v0.28: it has no effect"),
        );
    }
    warn_about_default_spread(policy, warnings);
    complete_pools(version, &mut pools);
    if policy.auto_mode.is_some() {
        pools.iter_mut().for_each(auto_mode::complete_pool);
    }
    for pool in &pools {
        let name = pool.name;
        let consolidates = pool.legacy && pool.disruption.policy != ConsolidationPolicy::WhenEmpty;
        if consolidates && !Behaviour::for_release(version).knows_consolidation() {
            warnings.add(&setup::CONSOLIDATION_OF_LATER_KARPENTER, format!(
                "Provisioner {name}: Karpenter {version} does not know `consolidation`: its nodes stay until they are interrupted or expire"
            ));
        }
        if pool.disruption.policy == ConsolidationPolicy::Balanced && !Behaviour::for_release(version).weighs_savings {
            warnings.add(&setup::BALANCED_OF_LATER_KARPENTER, format!(
                "NodePool {name}: Karpenter {version} does not know `consolidationPolicy: Balanced`, which came with {}: its API \
                 refuses the NodePool, and here it consolidates as `WhenEmptyOrUnderutilized`",
                KarpenterVersion::V1_14
            ));
        }
        if pool.replicas.is_some() && !policy.feature_gates.static_capacity {
            warnings.add(&setup::STATIC_POOL_OFF, format!(
                "NodePool {name} is static (`replicas`) but the feature gate `static_capacity` is off, so it has no nodes"
            ));
        }
    }
    pools
}

/// Warns of default constraints that this release does not have, or that Karpenter alone requires.
fn warn_about_default_spread(policy: &PolicyVariant, warnings: &mut Caveats) {
    let version = policy.versions.karpenter;
    if policy.default_spread.is_empty() {
        return;
    }
    if !Behaviour::for_release(version).knows_default_spread {
        warnings.add(
            &setup::OPTION_OF_LATER_KARPENTER,
            format!(
                "Karpenter {version} does not have `scheduler_config`, which is on `main` after v1.14: it has no effect"
            ),
        );
    } else if policy
        .default_spread
        .iter()
        .any(|topology_spread| topology_spread.when_unsatisfiable == WhenUnsatisfiable::DoNotSchedule)
    {
        warnings.add(
            &setup::DEFAULT_SPREAD,
            "`scheduler_config` has a default constraint with `DoNotSchedule`, which kube-scheduler on EKS cannot have: Karpenter launches \
             nodes for a spread that the pods need not keep, so the cost is too high. Set `ScheduleAnyway`, or give the pods the constraint"
                .to_owned(),
        );
    }
}

/// Warns of `userData` that changes what nodes offer.
pub(super) fn warn_about_user_data(setup: &Setup<'_>, warnings: &mut Caveats) {
    for pool in &setup.node_pools {
        let Some(class) = setup.node_classes.iter().find(|class| class.name == pool.node_class) else { continue };
        let warning = user_data_warning(&setup.region, class, pool, setup.policy.provider_settings());
        warning.into_iter().for_each(|text| warnings.add(&nodecast_single_pass::lints::USER_DATA, text));
    }
}

/// Warns of nodes with Windows.
///
/// Deviation: Nodes with Windows cost the same as nodes with Linux: the bill omits the licence.
pub(super) fn warn_about_licences(classes: &[NodeClass], policy: &PolicyVariant, warnings: &mut Caveats) {
    let classes =
        classes.iter().filter(|_| policy.autoscaler.is_karpenter()).map(|class| (class.ami_family, class.name));
    let groups = policy.manifests.node_groups.iter().map(|node_group| (node_group.ami_family, node_group.name));
    if let Some((_, name)) = classes.chain(groups).find(|class| class.0.is_windows()) {
        warnings.add(
            &setup::WINDOWS_LICENCE,
            format!("{name}: Windows nodes are billed at Linux prices, without the licence, so the cost is too low"),
        );
    }
}

/// Images come out so often, about: a longer run meets a new one.
const IMAGES_AGE: SimDuration = SimDuration::from_secs(7 * 86_400);

/// Warns of images that would be replaced by newer ones during the run, and of releases of images that replace nothing.
pub(super) fn warn_about_images(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (scenario, policy) = (setup.scenario, setup.policy);
    if !policy.autoscaler.is_karpenter() || policy.auto_mode.is_some() {
        return;
    }
    let version = policy.versions.karpenter;
    let replaces = Behaviour::for_release(version).replaces_drifted;
    let is_used = |class: &&NodeClass| setup.node_pools.iter().any(|pool| pool.node_class == class.name);
    let newest = setup.node_classes.iter().filter(is_used).find(|class| class.newest_images);
    match (policy.karpenter_options.image_release_every, newest) {
        (None, Some(class)) if replaces && scenario.duration > IMAGES_AGE => warnings.add(&setup::NO_IMAGE_RELEASES, format!(
            "EC2NodeClass {} takes the newest image, and none comes out during the run: Karpenter replaces its nodes as drifted for each that does \
             (`karpenter: {{ image_release_every: 14d }}` states how often)",
            class.name
        )),
        (Some(_), _) if !replaces => warnings.add(&setup::IMAGE_RELEASES_UNUSED, format!(
            "`image_release_every` has no effect: Karpenter {version} does not replace nodes for new images"
        )),
        (Some(_), None) => warnings.add(&setup::IMAGE_RELEASES_UNUSED,
            "no EC2NodeClass takes the newest image (`@latest`, a name with `*`, tags): `image_release_every` changes nothing",
        ),
        _ => {}
    }
}

/// Warns of machines that are to be had for oneself alone.
///
/// Deviation: an instance with dedicated tenancy costs the same as one with shared tenancy. The bill omits its higher
/// price, and the fee for each hour in which a region has such instances.
pub(super) fn warn_about_tenancy(setup: &Setup<'_>, warnings: &mut Caveats) {
    let (scenario, policy) = (setup.scenario, setup.policy);
    if !Behaviour::for_release(policy.versions.karpenter).labels_tenancy {
        return;
    }
    let alone = |requirement: &Requirement| {
        requirement.key == well_known::INSTANCE_TENANCY && !requirement.has(well_known::DEFAULT)
    };
    let pool = setup.node_pools.iter().find(|pool| pool.requirements.iter().any(alone));
    let asks = |spec: &PodSpec| {
        let selected = spec.node_selector.get(well_known::INSTANCE_TENANCY);
        selected.is_some_and(|tenancy| tenancy != well_known::DEFAULT)
            || spec.node_affinity.required.iter().any(|term| term.requirements().iter().any(alone))
    };
    let by_pods = || storage::pods(scenario, &policy.manifests).iter().any(|(_, spec)| asks(spec));
    let who = match pool {
        Some(pool) => format!("NodePool {} asks", pool.name),
        None if !setup.node_pools.is_empty() && by_pods() => "pods ask".to_owned(),
        None => return,
    };
    warnings.add(
        &setup::DEDICATED_TENANCY,
        format!("{who} for dedicated tenancy, which is billed at shared-tenancy prices, so the cost is too low"),
    );
}

/// The steps by which node classes and NodePools take the form that is applied at `at`.
pub(super) fn replaced(at: SimTime, later: &Manifests, scenario: &Scenario, policy: &PolicyVariant) -> Vec<Step> {
    if !policy.autoscaler.is_karpenter() {
        return Vec::new();
    }
    let managed = policy.auto_mode.is_some();
    let classes = later.node_classes.iter().filter(|node_class| node_class.auto_mode == managed).cloned().collect();
    let classes = complete_classes(classes, &[], &scenario.zones);
    let mut pools: Vec<NodePool> =
        later.node_pools.iter().filter(|node_pool| node_pool.auto_mode == managed).cloned().collect();
    complete_pools(policy.versions.karpenter, &mut pools);
    if managed {
        pools.iter_mut().for_each(auto_mode::complete_pool);
    }
    let classes = classes.into_iter().map(|class| Action::ReplaceClass(Box::new(class)));
    let pools = pools.into_iter().map(|pool| Action::ReplacePool(Box::new(pool)));
    classes.chain(pools).map(|action| Step { at, action }).collect()
}

/// The keys of a node group that change without effect, for people: all that nothing here uses, and of the others those that tell why
/// `later` is not what an update makes of `before`.
fn without_effect(before: &NodeGroup, later: &NodeGroup, is_other: bool) -> String {
    let (mut keys, used) = changed_keys(before, later);
    if is_other {
        keys.extend(used);
        let item = [("labels", before.labels != later.labels), ("taints", before.taints != later.taints)];
        keys.extend(item.iter().filter(|(_, differs)| *differs && !before.managed).map(|(key, _)| *key));
    }
    keys.sort_unstable();
    if keys.is_empty() { String::new() } else { format!(" ({} changed without effect)", listed(keys)) }
}

/// The steps by which node groups change at `at`; only what an update of a group can change does.
pub(super) fn updated(
    at: SimTime,
    later: &Manifests,
    (earlier, policy): (&[TimedAction], &PolicyVariant),
    warnings: &mut Caveats,
) -> Vec<Step> {
    let mut steps = Vec::new();
    for group in &later.node_groups {
        let name = group.name;
        let known = earlier.iter().rev().filter_map(|timed| timed.action.applied());
        let known = known.flat_map(|item| &item.node_groups).find(|node_group| node_group.name == name);
        let Some(before) = policy.manifests.node_groups.iter().find(|node_group| node_group.name == name) else {
            warnings.add(&setup::GROUP_LATE, format!(
                "timeline at {at}: node group {name} is not made during a run: state it from the start, with `desired: 0`"
            ));
            continue;
        };
        let updated = NodeGroup {
            min_size: group.min_size,
            max_size: group.max_size,
            desired_size: group.desired_size,
            states_desired: group.states_desired,
            update_config: if before.managed { group.update_config } else { before.update_config },
            warm_pool: if before.managed { group.warm_pool } else { before.warm_pool },
            labels: if before.managed { group.labels.clone() } else { before.labels.clone() },
            taints: if before.managed { group.taints.clone() } else { before.taints.clone() },
            ..before.clone()
        };
        // Tags come from the cluster, too, and who made a group is no matter.
        let alike = NodeGroup {
            tags: before.tags.clone(),
            own_tags: before.own_tags.clone(),
            eksctl_cluster: before.eksctl_cluster,
            statement: before.statement.clone(),
            ..group.clone()
        };
        let keys = without_effect(before, group, updated != alike);
        if updated != alike || !keys.is_empty() {
            let also = if before.managed {
                ", labels, taints, `updateConfig`, `warmPoolConfig`, and the release or image of nodes"
            } else {
                ""
            };
            warnings.add(&setup::GROUP_UPDATE, format!(
                "timeline at {at}: an update of node group {name} changes its sizes{also}; what else is stated takes another group{keys}. No node is \
                 replaced for it: cost and evictions of a real update are missing, so both may be too low"
            ));
        }
        steps.push(Step { at, action: Action::UpdateGroup(Box::new(updated)) });
        let image = image_update(known.unwrap_or(before), group);
        steps.extend(image.map(|update| Step { at, action: Action::UpdateVersion(update) }));
    }
    steps
}
