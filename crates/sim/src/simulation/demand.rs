//! Demand: pods that a scenario calls for over time, before any controller decides.

use nodecast_load::Curve;
use nodecast_settings::{Action, PolicyVariant, Requests, Scenario};

use super::forecast;
use crate::domain::workload::ObjectName;
use crate::domain::{SimDuration, SimTime};
use crate::manifests::Manifests;

/// Autoscalers do not follow a peak that is shorter: their default stabilization window.
const WINDOW: SimDuration = SimDuration::from_secs(300);
/// Windows of a run at most.
const WINDOWS_MAX: i64 = 4_096;
/// Share of a pod's CPU request that autoscalers aim for.
const UTILIZATION: f64 = 0.7;
/// CPU request of a pod that has none, in cores.
const REQUEST: f64 = 0.25;

/// Pods that a scenario calls for.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Demand {
    /// Pods created at each time, in order of time.
    created: Vec<(SimTime, f64)>,
    /// Pods of CronJobs per second.
    created_per_second: f64,
    /// Pods at once from each time on, in order of time.
    live: Vec<(SimTime, f64)>,
    has_vertical_autoscalers: bool,
}

impl Demand {
    /// The demand under a policy.
    pub(super) fn new(scenario: &Scenario, policy: &PolicyVariant) -> Self {
        let all = forecast::applied(scenario, policy);
        let mut changes: Vec<(SimTime, f64)> = Vec::new();
        for load in &scenario.load {
            let (curve, cores) = match &load.requests {
                Requests::Open(open) => (&open.curve, load.service.cpu_per_request.as_secs_f64()),
                Requests::Cpu(open) => (&open.curve, 1.0),
                Requests::ClosedLoop { .. } => continue,
            };
            let Some(limits) = limits(&all, load.workload) else { continue };
            let per_pod = UTILIZATION * request(&all, load.workload) / cores.max(1e-9);
            let end = (SimTime::ZERO + scenario.duration).min(load.until.unwrap_or(SimTime::ZERO + scenario.duration));
            changes.extend(replicas(curve, (load.at, end), per_pod, limits));
        }
        changes.extend(scaled(scenario, &all));
        changes.sort_by_key(|(at, _)| *at);
        let mut created: Vec<(SimTime, f64)> = changes.iter().copied().filter(|(_, pods)| *pods > 0.0).collect();
        if let Some(trace) = &scenario.pods {
            created.extend(trace.rows.iter().map(|row| (row.at, f64::from(row.count))));
        }
        created.extend(messages(scenario, &all));
        created.sort_by_key(|(at, _)| *at);
        let mut at_once = all.iter().map(|manifests| forecast::lasting(manifests)).sum::<u64>() as f64;
        let start = std::iter::once((SimTime::ZERO, 0.0));
        let live = start.chain(changes).map(|(at, pods)| {
            at_once += pods;
            (at, at_once)
        });
        let jobs: u64 = all.iter().map(|manifests| forecast::jobs(manifests, scenario)).sum();
        let seconds = scenario.duration.as_secs_f64().max(1.0);
        let has_vertical_autoscalers = all.iter().any(|manifests| !manifests.vertical_autoscalers.is_empty());
        Self { live: live.collect(), created, created_per_second: jobs as f64 / seconds, has_vertical_autoscalers }
    }

    /// Whether VerticalPodAutoscalers change requests, mostly by evicting pods.
    pub(super) fn has_vertical_autoscalers(&self) -> bool {
        self.has_vertical_autoscalers
    }

    /// Pods created from the start to `until`, beyond those that exist at the start.
    pub(super) fn pods_created(&self, until: SimTime) -> f64 {
        let end = self.created.partition_point(|(at, _)| *at <= until);
        self.created[..end].iter().map(|(_, pods)| pods).sum::<f64>() + self.created_per_second * until.as_secs_f64()
    }

    /// Factor by which the peak of pods of the whole run exceeds that of the time to `until`; at least 1.
    pub(super) fn peak_growth(&self, until: SimTime) -> f64 {
        let end = self.live.partition_point(|(at, _)| *at <= until);
        let peak = |live: &[(SimTime, f64)]| live.iter().map(|(_, pods)| *pods).fold(0.0, f64::max);
        let before = peak(&self.live[..end]);
        if before < 1.0 { 1.0 } else { (peak(&self.live) / before).max(1.0) }
    }
}

/// Least and most replicas that an autoscaler gives a workload; `None` without one.
fn limits(all: &[&Manifests], workload: ObjectName) -> Option<(f64, f64)> {
    let is_it = |namespace, name| ObjectName { namespace, name } == workload;
    all.iter().find_map(|manifests| {
        let hpa = manifests.autoscalers.iter().find(|hpa| is_it(hpa.namespace, hpa.target.name));
        let hpa = hpa.map(|hpa| (hpa.min_replicas.unwrap_or(1), hpa.max_replicas));
        let scaled = manifests.scaled_objects.iter().find(|scaled| is_it(scaled.namespace, scaled.target.name));
        let scaled =
            scaled.map(|scaled| (scaled.min_replica_count.unwrap_or(0), scaled.max_replica_count.unwrap_or(100)));
        hpa.or(scaled).map(|(least, most)| (f64::from(least), f64::from(most.max(least))))
    })
}

/// CPU request of a pod of a workload, in cores.
fn request(all: &[&Manifests], workload: ObjectName) -> f64 {
    let found = all.iter().flat_map(|manifests| &manifests.deployments).find(|deployment| deployment.name == workload);
    let cores = found.map_or(0.0, |deployment| deployment.template.requests().cpu_milli() as f64 / 1e3);
    if cores > 0.0 { cores } else { REQUEST }
}

/// Changes of the replicas that follow a curve: one replica per `per_pod` of the highest rate of each window, within limits.
fn replicas(
    curve: &Curve,
    (from, until): (SimTime, SimTime),
    per_pod: f64,
    (least, most): (f64, f64),
) -> Vec<(SimTime, f64)> {
    let length = (until - from).as_micros().max(0);
    let window = WINDOW.as_micros().max(length / WINDOWS_MAX);
    let mut highest = vec![0.0_f64; usize::try_from(length / window + 1).unwrap_or(0)];
    let steps: Vec<_> = curve.steps_from_start().take_while(|step| step.from.as_micros() <= length).collect();
    let ends = steps.iter().skip(1).map(|step| step.from.as_micros()).chain([length]);
    for (step, end) in steps.iter().zip(ends) {
        let [first, last] = [step.from.as_micros(), end].map(|at| usize::try_from(at / window).unwrap_or(0));
        highest.iter_mut().take(last + 1).skip(first).for_each(|rate| *rate = rate.max(step.rate));
    }
    let mut now = least;
    let mut changes = Vec::new();
    for (at, rate) in (0_i64..).map(|position| from + SimDuration::from_micros(position * window)).zip(highest) {
        let wanted = libm::ceil(rate / per_pod).clamp(least, most);
        if (wanted - now).abs() > 0.0 {
            changes.push((at, wanted - now));
            now = wanted;
        }
    }
    changes
}

/// Changes of replicas that the timeline states.
fn scaled(scenario: &Scenario, all: &[&Manifests]) -> Vec<(SimTime, f64)> {
    let mut replicas: std::collections::BTreeMap<ObjectName, u32> = all
        .iter()
        .flat_map(|manifests| &manifests.deployments)
        .map(|deployment| (deployment.name, deployment.replicas.unwrap_or(1)))
        .collect();
    let change = |step: &nodecast_settings::TimedAction| match &step.action {
        Action::Scale { workload, replicas: now } => {
            let before = replicas.insert(*workload, *now).unwrap_or(0);
            Some((step.at, f64::from(*now) - f64::from(before)))
        }
        _ => None,
    };
    scenario.timeline.iter().filter_map(change).collect()
}

/// Pods of ScaledJobs, which take the messages of queues.
fn messages(scenario: &Scenario, all: &[&Manifests]) -> Vec<(SimTime, f64)> {
    let mut created = Vec::new();
    let is_job = |name: ObjectName| {
        let mut jobs = all.iter().flat_map(|manifests| &manifests.scaled_jobs);
        jobs.any(|job| ObjectName { namespace: job.namespace, name: job.name } == name)
    };
    for queue in scenario.queues.iter().filter(|queue| is_job(queue.workload)) {
        let Some(open) = &queue.messages else { continue };
        let steps: Vec<_> = open.curve.steps_from_start().take_while(|step| step.from < scenario.duration).collect();
        let ends = steps.iter().skip(1).map(|step| step.from).chain([scenario.duration]);
        for (step, end) in steps.iter().zip(ends) {
            let messages = step.rate * (end - step.from).as_secs_f64();
            // A long step is spread over its length.
            let parts = ((end - step.from).as_micros() / WINDOW.as_micros()).clamp(1, WINDOWS_MAX);
            let each = messages / parts as f64 / f64::from(queue.messages_per_job.max(1));
            created.extend(
                (0..parts).map(|part| {
                    (SimTime::ZERO + step.from + SimDuration::from_micros(WINDOW.as_micros() * part), each)
                }),
            );
        }
    }
    created
}

#[cfg(test)]
mod tests {
    use super::replicas;
    use crate::domain::{SimDuration, SimTime};
    use nodecast_load::{Curve, CurveStep};

    #[test]
    fn replicas_follow_curve_within_limits() {
        let minute = |minutes: i64| SimDuration::from_secs(minutes * 60);
        let steps = [(0, 30.0), (20, 95.0), (40, 400.0), (60, 0.0)];
        let curve = Curve::from_steps(steps.map(|(at, rate)| CurveStep { from: minute(at), rate }).to_vec());
        let start = SimTime::ZERO + minute(7);
        let changes = replicas(&curve, (start, start + minute(90)), 10.0, (2.0, 25.0));
        // The window in which a rate ends has its highest rate.
        let expected = [(0, 1.0), (20, 7.0), (40, 15.0), (65, -23.0)].map(|(at, pods)| (start + minute(at), pods));
        assert_eq!(changes, expected);
    }
}
