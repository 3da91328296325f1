use super::{START, after, app, autoscaler, named, release};
use crate::{NotTaken, OutOfMemory, Recommender, RecommenderSettings};
use nodecast_model::domain::vertical::{ContainerPolicy, ContainerRecommendation, VerticalPodAutoscaler};
use nodecast_model::domain::{LabelSelector, Labels, Quantity, ResourceName, Resources, Symbol};

const HOUR: i64 = 3_600;
const DAY: i64 = 24 * HOUR;

fn revision(name: &str) -> Labels {
    Labels::new().with("pod-template-hash", name)
}

/// A recommender of a pod `a` that requests so much CPU.
fn recommender(settings: RecommenderSettings, request_milli: i64) -> Recommender {
    let mut recommender = Recommender::new(settings);
    recommender.add_pod(named("a"), &revision("1"), [(app(), request_milli)], START);
    recommender
}

/// So many minutes of use by pod `a`, from a second on.
fn use_of(recommender: &mut Recommender, from: i64, minutes: i64, milli: i64, bytes: i64) {
    for minute in 0..minutes {
        let now = after(from + minute * 60);
        recommender.cpu_sample((named("a"), app()), now, milli, now).unwrap();
        recommender.memory_sample((named("a"), app()), now, bytes, now).unwrap();
    }
}

fn only(recommender: &mut Recommender, vpa: &VerticalPodAutoscaler) -> ContainerRecommendation {
    let all = recommender.recommend(vpa, &LabelSelector::default());
    assert_eq!(all.len(), 1);
    all[0].clone()
}

#[test]
fn cpu_sample_weight_uses_requests_until_1_3() {
    let target = |minor| {
        let mut recommender = recommender(RecommenderSettings::for_release(release(minor)), 4_000);
        use_of(&mut recommender, 0, 30, 100, 1);
        recommender.add_pod(named("a"), &revision("1"), [(app(), 100)], after(HOUR));
        use_of(&mut recommender, HOUR, 30, 1_000, 1);
        only(&mut recommender, &autoscaler(None)).target.cpu_milli()
    };
    assert!(target(3) < 200, "the thirty samples with a large request outweigh the others forty to one");
    assert!(target(4) > 1_000);
}

#[test]
fn settings_unknown_to_release_are_ignored() {
    let target = |minor| {
        let mut settings = RecommenderSettings::for_release(release(minor));
        settings.round_milli = 500;
        settings.round_bytes = 1_000_000_000;
        settings.max_allowed = Resources::cpu_memory(800, 0);
        let mut recommender = recommender(settings, 100);
        use_of(&mut recommender, 0, 60, 600, 400_000_000);
        only(&mut recommender, &autoscaler(None))
    };
    assert_eq!((target(3).target.cpu_milli(), target(3).uncapped_target.cpu_milli()), (716, 716));
    assert_eq!((target(4).target.cpu_milli(), target(4).uncapped_target.cpu_milli()), (800, 1_000));
    assert!(target(4).target.memory_bytes() < 600_000_000);
    assert_eq!(target(5).target.memory_bytes(), 1_000_000_000);
}

#[test]
fn policy_oom_bump_needs_its_gate() {
    let mut policy = ContainerPolicy::for_container(app());
    policy.oom_bump_up_ratio = Some(Quantity::from_nanos(3_000_000_000));
    let target = |minor, per_vpa_config| {
        let mut recommender =
            recommender(RecommenderSettings { per_vpa_config, ..RecommenderSettings::for_release(release(minor)) }, 0);
        let kill = OutOfMemory { at: START, request_bytes: 1_000_000_000 };
        recommender.out_of_memory((named("a"), app()), kill, Some(&policy), START).unwrap();
        only(&mut recommender, &autoscaler(None)).target.memory_bytes()
    };
    assert!(target(5, true) > 3_000_000_000);
    assert!(target(5, false) < 1_600_000_000);
    assert_eq!(target(4, true), target(5, false));
}

#[test]
fn unknown_or_outdated_samples_are_rejected() {
    let mut recommender = recommender(RecommenderSettings::default(), 0);
    let of = (named("a"), app());
    assert_eq!(recommender.cpu_sample((named("b"), app()), START, 1, START), Err(NotTaken::UnknownContainer));
    assert_eq!(
        recommender.cpu_sample((named("a"), Symbol::new("x")), START, 1, START),
        Err(NotTaken::UnknownContainer)
    );
    assert_eq!(recommender.cpu_sample(of, after(60), 1, after(60)), Ok(()));
    assert_eq!(recommender.cpu_sample(of, after(60), 1, after(60)), Err(NotTaken::Outdated));
    assert_eq!(recommender.memory_sample(of, after(60), 1, after(60)), Ok(()));
    assert_eq!(recommender.memory_sample(of, after(60), 2, after(60)), Ok(()), "of the same instant counts");
    assert_eq!(recommender.memory_sample(of, after(59), 1, after(60)), Err(NotTaken::Outdated));
}

#[test]
fn samples_older_than_eight_days_are_dropped() {
    let mut recommender = recommender(RecommenderSettings::default(), 0);
    use_of(&mut recommender, 0, 1, 500, 1);
    recommender.forget(after(8 * DAY - HOUR));
    assert_eq!(recommender.recommend(&autoscaler(None), &LabelSelector::default()).len(), 1);
    recommender.forget(after(8 * DAY - 1));
    assert_eq!(recommender.recommend(&autoscaler(None), &LabelSelector::default()).len(), 1, "once an hour");
    recommender.forget(after(8 * DAY));
    assert_eq!(recommender.recommend(&autoscaler(None), &LabelSelector::default()), []);
    use_of(&mut recommender, 9 * DAY, 1, 500, 1);
    assert_eq!(recommender.recommend(&autoscaler(None), &LabelSelector::default()).len(), 1, "and begins anew");
}

#[test]
fn vpa_ignores_other_namespaces_and_labels() {
    let mut recommender = recommender(RecommenderSettings::default(), 0);
    let mut elsewhere = named("a");
    elsewhere.namespace = Symbol::new("elsewhere");
    recommender.add_pod(elsewhere, &revision("1"), [(Symbol::new("other"), 0)], START);
    recommender.add_pod(named("b"), &revision("2"), [(Symbol::new("side"), 0)], START);
    let mut names = |selector: &LabelSelector| -> Vec<&str> {
        let all = recommender.recommend(&autoscaler(None), selector);
        all.into_iter().map(|item| item.container.as_str()).collect()
    };
    assert_eq!(names(&LabelSelector::default()), ["app", "side"]);
    assert_eq!(names(&LabelSelector { match_labels: revision("2"), expressions: Vec::new() }), ["side"]);
}

#[test]
fn named_container_policy_ignores_wildcard_policy() {
    let mut all = ContainerPolicy::for_container(Symbol::new("*"));
    all.min_allowed = Resources::cpu_memory(2_000, 0);
    let mut vpa = autoscaler(None);
    vpa.containers.push(all);
    let mut recommender = recommender(RecommenderSettings::default(), 0);
    assert_eq!(only(&mut recommender, &vpa).target.cpu_milli(), 2_000);
    let mut container_policy = ContainerPolicy::for_container(app());
    container_policy.controlled_resources = Some(vec![ResourceName::CPU]);
    vpa.containers.push(container_policy);
    let recommended = only(&mut recommender, &vpa);
    assert_eq!((recommended.target.cpu_milli(), recommended.target.find(ResourceName::MEMORY)), (25, None));
}

#[test]
fn pod_with_other_labels_has_separate_history() {
    let mut recommender = recommender(RecommenderSettings::default(), 0);
    use_of(&mut recommender, 0, 10, 2_000, 1);
    recommender.add_pod(named("a"), &revision("2"), [], after(HOUR));
    let mut of = |name: &str| {
        let selector = LabelSelector { match_labels: revision(name), expressions: Vec::new() };
        recommender.recommend(&autoscaler(None), &selector)[0].target.cpu_milli()
    };
    assert!(of("1") > 2_000);
    assert_eq!(of("2"), 25);
}
