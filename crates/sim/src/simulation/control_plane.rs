//! Warnings about controllers that waited for a limit of the control plane, with the tier that lifts it.
//!
//! Must not: decide who waits (actors do).

use crate::actors::Setup;
use crate::domain::controller_time::CallRate;
use crate::domain::{ControlPlaneTier, KubernetesVersion, SimDuration};
use crate::world::controller_loops::{AutoscalerPasses, LimitFacts};
use crate::world::record::ControllerLoops;

/// The wait on a limit from which on a warning tells of it.
const LONG_WAIT: SimDuration = SimDuration::from_secs(10);
/// The time for which calls wait without a pause from which on a warning names a way out.
const LONG_HELD: SimDuration = SimDuration::from_secs(30);
/// Controllers of kube-controller-manager, whose limits no tier is known to raise.
const CONTROLLERS: [&str; 4] =
    ["replicaset-controller", "statefulset-controller", "daemonset-controller", "job-controller"];

/// A warning for each client whose calls waited long, and for autoscalers that did.
pub(super) fn held(setup: &Setup<'_>, loops: &ControllerLoops) -> Vec<String> {
    let (tier, version) = (setup.policy.control_plane_tier, setup.policy.versions.kubernetes);
    let time = setup.policy.controller_time;
    let by_tier = time.scheduler.is_some_and(|time| !time.is_stated());
    let limits = loops.limits.iter().filter(|limit| limit.longest >= LONG_WAIT || limit.held > LONG_HELD);
    let limits = limits.map(|limit| format!("{}{}", waited(limit), way_out(limit, (tier, version), by_tier)));
    let passes = loops.autoscalers.filter(|passes| passes.longest >= LONG_WAIT);
    let stated = time.controller_manager.is_some_and(|time| time.autoscaler_syncs.is_some());
    limits.chain(passes.map(|passes| late_passes(&passes, tier, stated))).collect()
}

fn waited(limit: &LimitFacts) -> String {
    format!(
        "{}: {} of {} API calls were delayed by the client limit of {}/s, longest {:.1} s (see `controller_time`)",
        limit.client,
        limit.delayed,
        limit.calls,
        limit.rate.per_second,
        limit.longest.as_secs_f64()
    )
}

/// What lifts a limit that held a controller up for long; `by_tier` if the scheduler's goes by the tier.
fn way_out(limit: &LimitFacts, (tier, version): (ControlPlaneTier, KubernetesVersion), by_tier: bool) -> String {
    if limit.held <= LONG_HELD {
        return String::new();
    }
    let held = format!("; calls waited for {:.0} s without a pause", limit.held.as_secs_f64());
    if CONTROLLERS.contains(&limit.client) {
        return format!("{held}, and no tier of the control plane is known to raise this limit");
    }
    if limit.client != "kube-scheduler" || !by_tier {
        return held;
    }
    match lifting(limit, tier, version) {
        Some((tier, left)) if left <= LONG_HELD => format!("{held}; `cluster.control_plane_tier: {tier}` lifts that"),
        Some((tier, left)) => {
            format!("{held}; `cluster.control_plane_tier: {tier}` shortens that to about {:.0} s", left.as_secs_f64())
        }
        None => format!("{held}; no larger tier schedules faster"),
    }
}

/// The smallest tier that schedules faster and holds the calls up for no longer than [`LONG_HELD`], else the fastest, with the time for
/// which it still holds them up.
fn lifting(
    limit: &LimitFacts,
    tier: ControlPlaneTier,
    version: KubernetesVersion,
) -> Option<(ControlPlaneTier, SimDuration)> {
    let calls = limit.held.as_secs_f64() * f64::from(limit.rate.per_second) + f64::from(limit.rate.burst);
    let larger = ControlPlaneTier::ALL.into_iter().filter(|other| *other > tier && other.is_offered(version));
    let faster: Vec<(ControlPlaneTier, SimDuration)> = larger
        .filter_map(|other| {
            let CallRate { per_second, burst } = other.scheduler_calls(version, 0);
            let left = ((calls - f64::from(burst)) / f64::from(per_second)).max(0.0);
            (per_second > limit.rate.per_second).then(|| (other, SimDuration::from_secs_f64(left)))
        })
        .collect();
    let lifts = faster.iter().find(|(_, left)| *left <= LONG_HELD);
    lifts.or_else(|| faster.iter().min_by_key(|(tier, left)| (*left, *tier))).copied()
}

/// A warning about autoscalers that waited to be evaluated.
fn late_passes(passes: &AutoscalerPasses, tier: ControlPlaneTier, stated: bool) -> String {
    let more = ControlPlaneTier::ALL.into_iter().find(|other| other.autoscaler_syncs() > tier.autoscaler_syncs());
    let way_out = match more {
        Some(more) if !stated => {
            format!("; with `cluster.control_plane_tier: {more}` it is {}", more.autoscaler_syncs())
        }
        _ => String::new(),
    };
    format!(
        "horizontal-pod-autoscaler: {} of {} passes waited for one of {} that run at a time, the longest {:.1} s, so replicas follow \
         their metrics late{way_out}",
        passes.delayed,
        passes.passes,
        passes.at_once,
        passes.longest.as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::{
        AutoscalerPasses, CallRate, ControlPlaneTier, KubernetesVersion, LimitFacts, SimDuration, late_passes, way_out,
    };

    fn held(client: &'static str, seconds: i64, rate: CallRate) -> LimitFacts {
        let held = SimDuration::from_secs(seconds);
        LimitFacts { client, rate, calls: 9_000, delayed: 8_000, longest: held, held }
    }

    fn way_out_on(tier: ControlPlaneTier, seconds: i64, rate: CallRate) -> String {
        way_out(&held("kube-scheduler", seconds, rate), (tier, KubernetesVersion::default()), true)
    }

    #[test]
    fn smallest_tier_that_lifts_is_named() {
        let standard = |seconds| way_out_on(ControlPlaneTier::Standard, seconds, CallRate::new(50, 100));
        assert_eq!(standard(30), "");
        assert!(standard(70).ends_with("`cluster.control_plane_tier: xl` lifts that"), "{}", standard(70));
        assert!(standard(140).ends_with("`cluster.control_plane_tier: 2xl` lifts that"), "{}", standard(140));
        assert!(standard(220).ends_with("`cluster.control_plane_tier: 4xl` lifts that"), "{}", standard(220));
        assert!(standard(800).ends_with("4xl` shortens that to about 99 s"), "{}", standard(800));
    }

    #[test]
    fn fastest_tier_names_no_other() {
        let way_out = way_out_on(ControlPlaneTier::Xl4, 45, CallRate::new(400, 400));
        assert!(way_out.ends_with("no larger tier schedules faster"), "{way_out}");
    }

    #[test]
    fn limit_of_controllers_has_no_tier() {
        let limit = held("job-controller", 50, CallRate::new(20, 30));
        let told = way_out(&limit, (ControlPlaneTier::Standard, KubernetesVersion::default()), true);
        assert!(told.contains("no tier of the control plane is known"), "{told}");
    }

    #[test]
    fn late_passes_name_the_next_tier() {
        let passes = AutoscalerPasses { at_once: 50, passes: 90, delayed: 40, longest: SimDuration::from_secs(12) };
        let on = |stated| late_passes(&passes, ControlPlaneTier::Xl, stated);
        assert!(on(false).ends_with("with `cluster.control_plane_tier: 2xl` it is 100"), "{}", on(false));
        assert!(!on(true).contains("tier"), "{}", on(true));
    }
}
