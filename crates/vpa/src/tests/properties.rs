use proptest::collection::vec;
use proptest::prelude::*;

use super::{MEBIBYTE, Willing, after, app, autoscaler, container, named, pod, recommended, replicas};
use crate::{
    Bounds, ContainerState, NamespaceLimits, OutOfMemory, Recommender, RecommenderSettings, Updater, UpdaterSettings,
    UpdaterView, admit, cap,
};
use nodecast_model::domain::vertical::{ContainerPolicy, ContainerRecommendation, UpdateMode, VerticalPodAutoscaler};
use nodecast_model::domain::{LabelSelector, Labels, ResourceName, Resources};

const BOTH: [ResourceName; 2] = [ResourceName::CPU, ResourceName::MEMORY];

/// What happens to a container: minutes since the last, CPU, memory, and whether it is killed for memory.
fn uses() -> impl Strategy<Value = Vec<(i64, i64, i64, bool)>> {
    vec((1_i64..2_000, 0_i64..20_000, 0_i64..40_000_000_000, prop::bool::weighted(0.1)), 0..60)
}

fn fed(uses: &[(i64, i64, i64, bool)]) -> Recommender {
    let mut recommender = Recommender::new(RecommenderSettings::default());
    recommender.add_pod(named("a"), &Labels::new(), [(app(), 0)], after(0));
    let of = (named("a"), app());
    let mut seconds = 0;
    for (minutes, milli, bytes, killed) in uses {
        seconds += minutes * 60;
        let now = after(seconds);
        recommender.cpu_sample(of, now, *milli, now).unwrap();
        recommender.memory_sample(of, now, *bytes, now).unwrap();
        if *killed {
            let kill = OutOfMemory { at: now, request_bytes: *bytes };
            recommender.out_of_memory(of, kill, None, now).unwrap();
        }
    }
    recommender
}

/// A policy with a minimum and a maximum, of CPU in thousandths and of memory in MiB; zero bounds nothing.
fn policies() -> impl Strategy<Value = ContainerPolicy> {
    let bound = || (0_i64..3_000, 0_i64..3_000);
    (bound(), bound(), any::<bool>()).prop_map(|(cpu, memory, requests_only)| {
        let amounts = |milli, mebibytes: i64| Resources::cpu_memory(milli, mebibytes * MEBIBYTE);
        ContainerPolicy {
            min_allowed: amounts(cpu.0.min(cpu.1), memory.0.min(memory.1)),
            max_allowed: amounts(cpu.0.max(cpu.1), memory.0.max(memory.1)),
            requests_only,
            ..ContainerPolicy::for_container(app())
        }
    })
}

/// A container whose limits, where it has some, are no lower than what it requests.
fn containers() -> impl Strategy<Value = ContainerState> {
    let amount = || (1_i64..4_000, proptest::option::of(0_i64..4_000));
    (amount(), amount()).prop_map(|(cpu, memory)| {
        let mut state = container("app", cpu.0, memory.0);
        for (name, (request, more), unit) in [(BOTH[0], cpu, 1), (BOTH[1], memory, MEBIBYTE)] {
            if let Some(more) = more {
                state.limits.set(name, (request + more) * unit);
            }
        }
        state
    })
}

fn is_ordered(recommendation: &ContainerRecommendation) -> bool {
    BOTH.iter().all(|name| {
        recommendation.lower_bound.get(*name) <= recommendation.target.get(*name)
            && recommendation.target.get(*name) <= recommendation.upper_bound.get(*name)
    })
}

fn is_within(amounts: &Resources, policy: &ContainerPolicy) -> bool {
    BOTH.iter().all(|name| {
        let (amount, most) = (amounts.get(*name), policy.max_allowed.get(*name));
        amount >= policy.min_allowed.get(*name) && (most == 0 || amount <= most)
    })
}

fn with(policy: ContainerPolicy, recommended: ContainerRecommendation) -> VerticalPodAutoscaler {
    let mut vpa = autoscaler(Some(UpdateMode::Recreate));
    vpa.containers.push(policy);
    vpa.recommendation = Some(vec![recommended]);
    vpa
}

proptest! {
    #[test]
    fn target_is_ordered_within_bounds_and_policy(uses in uses(), policy in policies()) {
        let mut recommender = fed(&uses);
        let mut vpa = autoscaler(None);
        let free = recommender.recommend(&vpa, &LabelSelector::default());
        prop_assert!(free.iter().all(is_ordered), "{free:?}");
        vpa.containers.push(policy.clone());
        for own in recommender.recommend(&vpa, &LabelSelector::default()) {
            prop_assert!(is_ordered(&own), "{own:?}");
            for amounts in [&own.target, &own.lower_bound, &own.upper_bound] {
                prop_assert!(is_within(amounts, &policy), "{own:?}");
            }
            prop_assert_eq!(&own.uncapped_target, &free[0].target);
        }
    }

    #[test]
    fn asking_changes_no_answer(uses in uses()) {
        let mut recommender = fed(&uses);
        let vpa = autoscaler(None);
        let first = recommender.recommend(&vpa, &LabelSelector::default());
        recommender.checkpoints(&vpa, &LabelSelector::default(), after(0));
        prop_assert_eq!(recommender.recommend(&vpa, &LabelSelector::default()), first);
    }

    #[test]
    fn restored_checkpoint_is_written_identically(uses in uses()) {
        let (vpa, all) = (autoscaler(None), LabelSelector::default());
        let mut recommender = fed(&uses);
        let first = recommender.checkpoints(&vpa, &all, after(1_000_000_000));
        let mut restarted = Recommender::new(RecommenderSettings::default());
        restarted.restore(vpa.name, &first);
        let second = restarted.checkpoints(&vpa, &all, after(1_000_000_000));
        prop_assert_eq!(first.len(), second.len());
        for (first, second) in first.iter().zip(&second) {
            let told = |checkpoint: &crate::Checkpoint| (checkpoint.container, checkpoint.first_sample, checkpoint.last_sample, checkpoint.samples);
            prop_assert_eq!(told(first), told(second));
            for (first, second) in [(&first.cpu, &second.cpu), (&first.memory, &second.memory)] {
                prop_assert!((first.total - second.total).abs() <= first.total * 1e-12);
                // Buckets at the ends that weigh next to nothing go.
                prop_assert!(first.weights.windows(second.weights.len().max(1)).any(|part| part == second.weights) || first.weights.is_empty());
            }
        }
    }

    #[test]
    fn no_request_is_admitted_above_its_limit(
        state in containers(), policy in policies(), milli in 1_i64..8_000, mebibytes in 1_i64..8_000, max in 1_i64..5_000,
    ) {
        let vpa = with(policy, recommended("app", milli, mebibytes));
        let mut limits = NamespaceLimits::default();
        limits.add_container(&Bounds { max: Resources::cpu_memory(max, max * MEBIBYTE), ..Bounds::default() });
        let admitted = admit(&vpa, &[state], true, &limits);
        let own = &admitted.containers[0];
        for name in BOTH {
            prop_assert!(own.limits.find(name).is_none_or(|limit| own.requests.get(name) <= limit), "{own:?}");
        }
    }

    #[test]
    fn pod_recommendation_stays_within_policy_despite_limit_range(
        state in containers(), policy in policies(), milli in 1_i64..8_000, mebibytes in 1_i64..8_000,
        min in 0_i64..2_000, max in 1_i64..5_000,
    ) {
        let policy = ContainerPolicy { requests_only: false, ..policy };
        let vpa = with(policy.clone(), recommended("app", milli, mebibytes));
        let mut limits = NamespaceLimits::default();
        let amounts = |of: i64| Resources::cpu_memory(of, of * MEBIBYTE);
        let bounds = Bounds { min: amounts(min), max: amounts(max), default: amounts(max) };
        limits.add_container(&bounds);
        limits.add_pod(&Bounds { default: Resources::new(), ..bounds });
        let capped = cap(vpa.recommendation.as_deref().unwrap(), &vpa, &[state], &limits).unwrap();
        for own in &capped.containers {
            for amounts in [&own.target, &own.lower_bound, &own.upper_bound] {
                prop_assert!(is_within(amounts, &policy), "{own:?}");
            }
        }
    }

    #[test]
    fn updater_keeps_pods_required_by_tolerance(
        requests in vec(1_i64..3_000, 1..12), pending in 0_usize..4, tolerance in 0.0_f64..1.0, in_place in any::<bool>(),
    ) {
        let mode = if in_place { UpdateMode::InPlaceOrRecreate } else { UpdateMode::Recreate };
        let mut vpa = with(ContainerPolicy::for_container(app()), recommended("app", 1_000, 100));
        vpa.update.mode = Some(mode);
        let pods = requests.iter().enumerate().map(|(at, milli)| {
            let mut own = pod(&format!("p{at}"), vec![container("app", *milli, 100)]);
            own.pending = at < pending;
            own
        });
        let (groups, limits) = ([replicas(pods.collect())], NamespaceLimits::default());
        let settings = UpdaterSettings { eviction_tolerance: tolerance, ..UpdaterSettings::default() };
        let mut api = Willing::default();
        Updater::new(settings).run(&UpdaterView { now: after(60), vpa: &vpa, limits: &limits, groups: &groups }, &mut api);
        let wanted = requests.len();
        let is_pending = |name: &_| groups[0].pods.iter().any(|pod| pod.name == *name && pod.pending);
        let disrupted = api.evicted.iter().filter(|name| !is_pending(name)).count() + api.resized.len();
        let running = wanted - pending.min(wanted);
        let tolerated = (wanted as f64 * tolerance) as usize;
        if tolerated == 0 {
            prop_assert!(disrupted <= 1);
        } else {
            prop_assert!(disrupted == 0 || running - disrupted >= wanted - tolerated);
        }
        prop_assert!(wanted >= 2 || disrupted == 0, "fewer than two replicas are left alone");
    }
}
