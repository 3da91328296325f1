//! What becomes of a recommendation before it is written down: resources that are not controlled go, amounts are rounded, policies cap.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/recommender/routines`: `vpa.go`, `cpu_integer_post_processor.go`,
//! `capping_post_processor.go`.

use super::amount::rounded_up;
use super::settings::RecommenderSettings;
use nodecast_model::domain::vertical::{ContainerPolicy, ContainerRecommendation, VerticalPodAutoscaler};
use nodecast_model::domain::{ResourceName, Resources, Symbol};

const WHOLE_CORE: i64 = 1_000;

/// The recommendation as it stands in the status.
pub(super) fn post_process(
    settings: &RecommenderSettings,
    vpa: &VerticalPodAutoscaler,
    mut recommended: ContainerRecommendation,
) -> ContainerRecommendation {
    let policy = vpa.policy_of(recommended.container);
    let round = |rounds: bool, step: i64| if rounds { step } else { 1 };
    let steps = [
        (ResourceName::CPU, round(settings.behaviour.rounds_cpu, settings.round_milli)),
        (ResourceName::MEMORY, round(settings.behaviour.rounds_memory, settings.round_bytes)),
    ];
    for (name, step) in steps {
        let controlled = policy.is_none_or(|policy| policy.controls(name));
        for amounts in each(&mut recommended) {
            if controlled { change(amounts, name, |amount| rounded_up(amount, step)) } else { amounts.remove(name) }
        }
    }
    recommended.uncapped_target = recommended.target.clone();
    if settings.whole_cores && asks_for_whole_cores(vpa, recommended.container) {
        let [target, lower, upper] = each(&mut recommended);
        for amounts in [target, lower, upper] {
            change(amounts, ResourceName::CPU, |milli| rounded_up(milli, WHOLE_CORE));
        }
        change(&mut recommended.uncapped_target, ResourceName::CPU, |milli| rounded_up(milli, WHOLE_CORE));
    }
    let fallback = settings.behaviour.knows_global_maximum.then_some(&settings.max_allowed);
    for amounts in each(&mut recommended) {
        cap_to_policy(amounts, policy, fallback);
    }
    recommended
}

fn each(recommended: &mut ContainerRecommendation) -> [&mut Resources; 3] {
    [&mut recommended.target, &mut recommended.lower_bound, &mut recommended.upper_bound]
}

fn change(amounts: &mut Resources, name: ResourceName, how: impl FnOnce(i64) -> i64) {
    if let Some(amount) = amounts.find(name) {
        amounts.set(name, how(amount));
    }
}

fn asks_for_whole_cores(vpa: &VerticalPodAutoscaler, container: Symbol) -> bool {
    let key = format!("vpa-post-processor.kubernetes.io/{container}_integerCPU");
    vpa.annotations.get(Symbol::new(&key)).is_some_and(|value| value.as_str() == "true")
}

/// Raises amounts to the minimum of a policy, then cuts them to its maximum, or to another where it states none; zero bounds nothing.
fn cap_to_policy(amounts: &mut Resources, policy: Option<&ContainerPolicy>, fallback: Option<&Resources>) {
    for name in [ResourceName::CPU, ResourceName::MEMORY] {
        let least = policy.map_or(0, |policy| policy.min_allowed.get(name));
        let stated = policy.and_then(|policy| policy.max_allowed.find(name));
        let most = stated.or_else(|| fallback.and_then(|fallback| fallback.find(name))).unwrap_or(0);
        change(amounts, name, |amount| {
            let raised = amount.max(least);
            if most > 0 { raised.min(most) } else { raised }
        });
    }
}
