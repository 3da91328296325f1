use super::{Willing, after, app, autoscaler, container, named, pod, recommended, release, replicas};
use crate::{
    Bounds, ControllerKind, LastTermination, NamespaceLimits, NotAdmitted, PodGroup, ResizeCondition, Updater,
    UpdaterSettings, UpdaterView, Verdict, Written, admit, controlling,
};
use nodecast_model::domain::hpa::ScaleTargetRef;
use nodecast_model::domain::vertical::{
    ChangeRequirement, ContainerPolicy, ContainerRecommendation, EvictionRequirement, UpdateMode, VerticalPodAutoscaler,
};
use nodecast_model::domain::{ResourceName, Resources, SimDuration, Symbol};

/// A VerticalPodAutoscaler that wants much more than pods have.
fn growing(mode: UpdateMode) -> VerticalPodAutoscaler {
    let mut vpa = autoscaler(Some(mode));
    vpa.recommendation = Some(vec![recommended("app", 1_000, 1_024)]);
    vpa
}

/// Three pods that request a tenth of it.
fn three() -> PodGroup {
    replicas(["a", "b", "c"].map(|name| pod(name, vec![container("app", 100, 102)])).to_vec())
}

fn pass(updater: &mut Updater, vpa: &VerticalPodAutoscaler, group: &PodGroup, seconds: i64) -> (Willing, Vec<Verdict>) {
    let (limits, groups) = (NamespaceLimits::default(), [group.clone()]);
    let view = UpdaterView { now: after(seconds), vpa, limits: &limits, groups: &groups };
    let mut api = Willing::default();
    let ranked = updater.run(&view, &mut api);
    (api, ranked.into_iter().map(|item| item.verdict).collect())
}

fn once(settings: UpdaterSettings, mode: UpdateMode) -> (usize, usize) {
    let (api, _) = pass(&mut Updater::new(settings), &growing(mode), &three(), 60);
    (api.evicted.len(), api.resized.len())
}

#[test]
fn in_place_or_recreate_is_gated_by_release() {
    let of = |minor, gate| {
        let settings = UpdaterSettings { in_place_or_recreate: gate, ..UpdaterSettings::for_release(release(minor)) };
        once(settings, UpdateMode::InPlaceOrRecreate)
    };
    let (evicts, resizes) = ((1, 0), (0, 1));
    assert_eq!([of(3, None), of(3, Some(true))], [evicts, evicts]);
    assert_eq!([of(4, None), of(4, Some(true))], [evicts, resizes]);
    assert_eq!([of(5, None), of(5, Some(false))], [resizes, evicts]);
    assert_eq!([of(6, None), of(6, Some(false))], [resizes, resizes]);
}

#[test]
fn in_place_mode_exists_since_1_7() {
    let in_place = |minor| {
        once(UpdaterSettings { in_place: true, ..UpdaterSettings::for_release(release(minor)) }, UpdateMode::InPlace)
    };
    assert_eq!([in_place(6), in_place(7)], [(0, 0), (0, 3)]);
    let skipping = |minor| {
        let settings = UpdaterSettings { skip_disruption_budget: true, ..UpdaterSettings::for_release(release(minor)) };
        once(settings, UpdateMode::InPlaceOrRecreate)
    };
    assert_eq!([skipping(6), skipping(7)], [(0, 1), (0, 3)]);
}

#[test]
fn in_place_below_minimum_is_accepted_without_action() {
    let one = replicas(vec![pod("a", vec![container("app", 100, 102)])]);
    let verdicts = |mode| {
        let settings = UpdaterSettings { in_place: true, ..UpdaterSettings::for_release(release(7)) };
        let (api, verdicts) = pass(&mut Updater::new(settings), &growing(mode), &one, 60);
        assert_eq!((api.evicted.len(), api.resized.len()), (0, 0));
        verdicts
    };
    assert_eq!(verdicts(UpdateMode::InPlace), [Verdict::AcceptedNoAction]);
    assert_eq!(verdicts(UpdateMode::InPlaceOrRecreate), [Verdict::Filtered]);
}

#[test]
fn every_release_evicts_where_no_mode_is_stated() {
    for minor in 2..=7 {
        let mut vpa = growing(UpdateMode::Off);
        vpa.update.mode = None;
        let (api, verdicts) = pass(&mut Updater::new(UpdaterSettings::for_release(release(minor))), &vpa, &three(), 60);
        assert_eq!(api.evicted, [named("a")], "1.{minor}");
        assert_eq!(verdicts, [Verdict::Evicted, Verdict::AcceptedNoAction, Verdict::AcceptedNoAction]);
    }
}

#[test]
fn small_group_is_resized_but_not_evicted() {
    let settings = UpdaterSettings { skip_disruption_budget: true, ..UpdaterSettings::default() };
    let mut group = replicas(vec![pod("a", vec![container("app", 100, 102)])]);
    let mut updater = Updater::new(settings);
    let vpa = growing(UpdateMode::InPlaceOrRecreate);
    assert_eq!(pass(&mut updater, &vpa, &group, 60).1, [Verdict::Resized]);
    group.pods[0].resize = Some(ResizeCondition::Infeasible);
    assert_eq!(pass(&mut updater, &vpa, &group, 120).1, [Verdict::Filtered]);
    group.pods[0].resize = None;
    group.pods[0].restarts_on_resize = true;
    assert_eq!(pass(&mut updater, &vpa, &group, 180).1, [Verdict::Filtered]);
}

#[test]
fn pending_resize_is_evicted_late_in_all_modes() {
    let mut group = three();
    group.pods[0].resize = Some(ResizeCondition::Deferred);
    let mut updater = Updater::new(UpdaterSettings::default());
    let vpa = growing(UpdateMode::Recreate);
    let mut first_of = |seconds| pass(&mut updater, &vpa, &group, seconds).1[0];
    assert_eq!([first_of(0), first_of(300), first_of(301)], [Verdict::Filtered, Verdict::Filtered, Verdict::Evicted]);
}

/// A LimitRange of pods whose maximum is so many thousandths.
fn pod_maximum(milli: i64) -> NamespaceLimits {
    let max = Resources::cpu_memory(milli, 0);
    let mut limits = NamespaceLimits::default();
    limits.add_pod(&Bounds { max, ..Bounds::default() });
    limits
}

/// A container whose limits are twice what it requests.
fn limited(name: &str, milli: i64) -> super::ContainerState {
    let mut state = container(name, milli, 100);
    state.limits = Resources::cpu_memory(2 * milli, 200 << 20);
    state
}

#[test]
fn failing_admission_leaves_pod_unchanged() {
    let vpa = growing(UpdateMode::Recreate);
    let pod = [limited("app", 100), limited("side", 10)];
    let admission = admit(&vpa, &pod, true, &pod_maximum(1_000));
    assert_eq!(admission.untouched, Some(NotAdmitted::Crash));
    assert!(admission.containers.iter().zip(&pod).all(|(item, before)| item.requests == before.requests));
    let alone = admit(&vpa, &pod[..1], true, &pod_maximum(1_000));
    assert_eq!((alone.untouched, alone.containers[0].limits.cpu_milli()), (None, 1_000));
}

#[test]
fn ineffective_limit_range_keeps_container_requests() {
    let admission =
        admit(&growing(UpdateMode::Recreate), &[limited("app", 100), limited("side", 10)], true, &pod_maximum(9_000));
    let side = &admission.containers[1];
    assert_eq!((side.requests.cpu_milli(), side.limits.cpu_milli(), side.written.len()), (10, 20, 4));
}

#[test]
fn updater_crash_on_one_pod_spares_others() {
    let mut group = three();
    for pod in &mut group.pods {
        pod.containers = vec![limited("app", 100)];
    }
    group.pods[0].containers.push(limited("side", 10));
    let (vpa, limits) = (growing(UpdateMode::Recreate), pod_maximum(1_000));
    let view = UpdaterView { now: after(60), vpa: &vpa, limits: &limits, groups: &[group] };
    let mut api = Willing::default();
    let ranked = Updater::new(UpdaterSettings::default()).run(&view, &mut api);
    assert_eq!((ranked[0].verdict, api.evicted), (Verdict::Crash, vec![named("b")]));
}

#[test]
fn groups_have_separate_budgets_except_custom_controllers() {
    let (mut custom, mut gone) = (three(), three());
    custom.controller = ControllerKind::Custom;
    gone.controller = ControllerKind::Replicated(0);
    let (vpa, limits, groups) = (growing(UpdateMode::Auto), NamespaceLimits::default(), [three(), custom, gone]);
    let mut api = Willing::default();
    Updater::new(UpdaterSettings::default())
        .run(&UpdaterView { now: after(60), vpa: &vpa, limits: &limits, groups: &groups }, &mut api);
    assert_eq!(api.evicted.len(), 1 + 3);
}

#[test]
fn without_a_recommendation_nothing_happens() {
    let vpa = autoscaler(Some(UpdateMode::Recreate));
    assert_eq!(
        admit(&vpa, &[container("app", 1, 1)], true, &NamespaceLimits::default()).untouched,
        Some(NotAdmitted::NoRecommendation)
    );
    let (api, verdicts) = pass(&mut Updater::new(UpdaterSettings::default()), &vpa, &three(), 86_400);
    assert_eq!((api.evicted.len(), verdicts[0]), (0, Verdict::ChangeTooSmall));
}

#[test]
fn limits_that_are_kept_bound_the_request() {
    let mut vpa = growing(UpdateMode::Initial);
    vpa.containers.push(ContainerPolicy { requests_only: true, ..ContainerPolicy::for_container(app()) });
    let admission = admit(&vpa, &[limited("app", 100)], true, &NamespaceLimits::default());
    let container = &admission.containers[0];
    assert_eq!((container.requests.cpu_milli(), container.limits.cpu_milli()), (200, 200));
    assert!(container.written.iter().all(|(place, _)| *place == Written::Requests));
}

#[test]
fn narrowest_limit_range_and_last_default_apply() {
    let bounds = |min, max, default| Bounds {
        min: Resources::cpu_memory(min, 0),
        max: Resources::cpu_memory(max, 0),
        default: Resources::cpu_memory(default, 0),
    };
    let mut limits = NamespaceLimits::default();
    limits.add_container(&bounds(10, 500, 100));
    limits.add_container(&bounds(20, 900, 200));
    assert_eq!(limits.container, Some(bounds(20, 500, 200)));
}

#[test]
fn oldest_vpa_of_controller_owns_pod() {
    let of = |name: &str, created| VerticalPodAutoscaler { created, name: named(name), ..autoscaler(None) };
    let other = ScaleTargetRef { kind: Symbol::new("Deployment"), name: Symbol::new("other") };
    let all = [
        of("young", Some(after(9))),
        of("b", Some(after(5))),
        of("a", Some(after(5))),
        VerticalPodAutoscaler { target: other, ..of("oldest", Some(after(1))) },
    ];
    let found = controlling(&all, Symbol::new("default"), all[0].target);
    assert_eq!(found.map(|vpa| vpa.name), Some(named("a")));
    assert_eq!(controlling(&all, Symbol::new("elsewhere"), all[0].target), None);
}

/// Three pods that have what is wanted, of which the first was killed for memory eight minutes after its start.
fn killed() -> PodGroup {
    let mut group = three();
    for pod in &mut group.pods {
        pod.containers = vec![container("app", 900, 1_024)];
    }
    let ran_for = SimDuration::from_secs(8 * 60);
    group.pods[0].terminations.push(LastTermination { container: app(), out_of_memory: true, ran_for });
    group
}

#[test]
fn quick_oom_threshold_comes_from_policy_if_gated() {
    let first = |minor, per_vpa_config, seconds| {
        let mut vpa = growing(UpdateMode::Recreate);
        vpa.update.evict_after_oom = Some(SimDuration::from_secs(seconds));
        let settings = UpdaterSettings { per_vpa_config, ..UpdaterSettings::for_release(release(minor)) };
        pass(&mut Updater::new(settings), &vpa, &killed(), 60).1[0]
    };
    assert_eq!([first(5, true, 60), first(5, true, 500)], [Verdict::YoungInRange, Verdict::Evicted]);
    assert_eq!([first(5, false, 60), first(4, true, 60)], [Verdict::Evicted, Verdict::Evicted]);
}

#[test]
fn quick_oom_without_change_keeps_pod() {
    let mut group = killed();
    group.pods[0].containers = vec![container("app", 1_000, 1_024)];
    let mut vpa = growing(UpdateMode::Recreate);
    vpa.recommendation.iter_mut().flatten().for_each(|item| item.lower_bound = Resources::cpu_memory(1_001, 0));
    let verdicts = pass(&mut Updater::new(UpdaterSettings::default()), &vpa, &group, 60).1;
    assert_eq!(verdicts[..2], [Verdict::OomWithoutChange, Verdict::Evicted]);
}

#[test]
fn containers_unseen_by_admission_are_ignored() {
    let mut group = killed();
    group.pods[0].observed = Some(vec![Symbol::new("side")]);
    group.pods[1].containers = vec![container("app", 1, 1)];
    group.pods[1].observed = Some(Vec::new());
    let verdicts = pass(&mut Updater::new(UpdaterSettings::default()), &growing(UpdateMode::Recreate), &group, 60).1;
    assert_eq!(verdicts, [Verdict::YoungInRange; 3]);
}

#[test]
fn missing_target_counts_as_zero_for_eviction_requirements() {
    let mut vpa = growing(UpdateMode::Recreate);
    vpa.recommendation = Some(vec![ContainerRecommendation {
        target: Resources::new().with(ResourceName::CPU, 1_000),
        lower_bound: Resources::new().with(ResourceName::CPU, 500),
        ..ContainerRecommendation::for_container(app())
    }]);
    let mut first = |change| {
        let resources = vec![ResourceName::MEMORY];
        vpa.update.eviction_requirements = vec![EvictionRequirement { resources, change }];
        pass(&mut Updater::new(UpdaterSettings::default()), &vpa, &three(), 60).1[0]
    };
    assert_eq!(first(ChangeRequirement::TargetHigherThanRequests), Verdict::EvictionRequirement);
    assert_eq!(first(ChangeRequirement::TargetLowerThanRequests), Verdict::Evicted);
}
