//! What a cluster recorded, as the program asks for it and makes a scenario of it: the joint between `nodecast_observed`, which knows
//! no scenario, and drafts of scenarios, which know no source of figures.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use nodecast_observed::estimate::unblurred;
use nodecast_observed::observation::about::WorkloadFigures;
use nodecast_observed::observation::{Observation, Placement, PodLife, WorkloadState};
use nodecast_observed::prometheus::{Answers, Plan, import};

use super::Failure;
use crate::domain::SimDuration;
use crate::domain::words::{counted, rounded};
use crate::report::summary;
use crate::scenario::ScenarioError;
use crate::scenario::draft::{CPU_PER_REQUEST, Draft, Observed, ObservedLoad, ObservedPlacement, ObservedPod};
use crate::scenario::source::Source;

/// The folder with the answers, in that of the observation.
pub const ANSWERS: &str = "answers";
/// Workloads that use less CPU than this on average, thousandths, have no load in a draft: it would move nothing.
const WORTH_A_LOAD_MILLI: f64 = 10.0;
/// Who counts requests of load balancers.
const BALANCER: &str = "alb";
/// How many names a sentence lists.
const NAMED: usize = 5;

/// The plan of a window that ends `to`, or at the last whole hour before `now`, both in seconds since 1970.
///
/// # Errors
/// If the window is none that can be asked for.
pub fn plan_of_window(window: SimDuration, to: Option<i64>, now: i64) -> Result<Plan, Failure> {
    let to = to.unwrap_or(now.div_euclid(3_600) * 3_600);
    Ok(Plan::of_window(to - window.as_secs(), to)?)
}

/// Makes an observation of the answers in `folder`, and says what of the dump it does not know.
///
/// # Errors
/// If an answer is missing or cannot be read, or the answers are of several clusters.
pub fn observation(folder: &Path, dump: &[Source]) -> Result<Observation, Failure> {
    let mut observation = import(&Answers::read(folder)?)?;
    if !dump.is_empty() {
        let serving = Draft::serving_workloads(dump)?;
        observation.about.warnings.extend(unobserved(&observation, &serving));
    }
    Ok(observation)
}

/// Workloads of the dump of which nothing was recorded.
fn unobserved(observation: &Observation, serving: &BTreeSet<String>) -> Option<String> {
    let seen: BTreeSet<&str> =
        observation.about.figures.workloads.iter().map(|workload| workload.workload.as_str()).collect();
    let absent: Vec<&str> = serving.iter().map(String::as_str).filter(|name| !seen.contains(name)).collect();
    if absent.is_empty() {
        return None;
    }
    if absent.len() == serving.len() {
        return Some(
            "none of the dump's workloads appear in the recording: the dump and Prometheus are probably from different clusters".to_owned(),
        );
    }
    let named = absent.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
    let more = if absent.len() > NAMED { ", ..." } else { "" };
    let workloads = counted(absent.len() as u64, "workload of the dump was", "workloads of the dump were");
    Some(format!("{workloads} not recorded: {named}{more}"))
}

/// What a draft of a scenario takes of an observation: for each workload a curve of requests with the CPU of one, or of cores where
/// nobody counted requests.
///
/// # Errors
/// If the observation's window has no begin, or it knows no demand.
pub fn observed(observation: &Observation) -> Result<Observed, Failure> {
    let window = &observation.about.window;
    let start: jiff::Timestamp = window.start.parse().map_err(|_| {
        ScenarioError::new(format!("invalid observation start time `{}`: expected RFC 3339", window.start))
    })?;
    // Millions of rows in a week of many workloads: sorted out once.
    let mut states: BTreeMap<&str, Vec<&WorkloadState>> = BTreeMap::new();
    let workloads = observation.workloads.as_ref().ok_or_else(|| {
        ScenarioError::new("the observation has no `workloads.csv`: no demand of workloads was recorded")
            .help("see `missing` in observation.json for how to record it")
    })?;
    for state in workloads {
        states.entry(&state.workload).or_default().push(state);
    }
    let states = |workload_figures: &WorkloadFigures| {
        states.get(workload_figures.workload.as_str()).map_or(&[][..], Vec::as_slice)
    };
    let figures = observation.about.figures.workloads.iter();
    let rated = observation.about.rates_over_seconds;
    let loads: Vec<ObservedLoad> = figures.filter_map(|figure| load(figure, states(figure), rated)).collect();
    if loads.is_empty() {
        return Err(ScenarioError::new("the observation has neither requests nor CPU usage for any workload")
            .help("see `missing` in observation.json for how to record them")
            .into());
    }
    let placements = observation
        .placements
        .iter()
        .flatten()
        .map(|placement| ((placement.namespace.as_str(), placement.pod.as_str()), placement));
    let placements: BTreeMap<(&str, &str), &Placement> = placements.collect();
    let pods = observation.pods.as_ref();
    let pods = pods.map(|pods| pods.iter().filter_map(|this_pod| pod(this_pod, &placements)).collect());
    Ok(Observed { start, length: SimDuration::from_secs(window.seconds), zones: zones(observation), loads, pods })
}

/// The zones in which nodes were seen; `None` if nothing recorded nodes.
fn zones(observation: &Observation) -> Option<BTreeSet<String>> {
    if observation.nodes.is_none() && observation.node_counts.is_none() {
        return None;
    }
    let nodes = observation.nodes.iter().flatten().map(|node| &node.zone);
    let zones = nodes.chain(observation.node_counts.iter().flatten().map(|node_count| &node_count.zone));
    Some(zones.flatten().filter(|zone| !zone.is_empty()).cloned().collect())
}

/// A pod, with what is known of its placement by namespace and name; `None` if it is not known what made it.
fn pod(pod_life: &PodLife, placements: &BTreeMap<(&str, &str), &Placement>) -> Option<ObservedPod> {
    let workload = pod_life.workload.clone()?;
    let namespace = workload.split('/').next().unwrap_or_default();
    let placement = placements.get(&(namespace, pod_life.pod.as_str())).map(|placement| ObservedPlacement {
        gpus: placement.gpus.unwrap_or(0),
        node_selector: placement.node_selector.clone().unwrap_or_default(),
        tolerations: placement.tolerations.clone().unwrap_or_default(),
    });
    Some(ObservedPod {
        name: pod_life.pod.clone(),
        workload,
        placement,
        is_daemon: pod_life.daemon == Some(true),
        created: pod_life.created,
        started: pod_life.started,
        deletion_requested: pod_life.deletion_requested,
        removed: pod_life.removed,
        cpu_milli: pod_life.cpu_request_milli.unwrap_or(0),
        memory_bytes: pod_life.memory_request_bytes.unwrap_or(0),
    })
}

/// The load of a workload with its states, of which rates are over so many seconds; `None` if it is not worth one.
fn load(figures: &WorkloadFigures, states: &[&WorkloadState], rated: Option<i64>) -> Option<ObservedLoad> {
    let cores = figures.cpu_used_milli.filter(|milli| *milli >= WORTH_A_LOAD_MILLI).map(|milli| milli / 1e3);
    let requests = figures.requests_per_second.filter(|rate| *rate > 0.0);
    let per_request = figures.cpu_per_request_seconds.map(SimDuration::from_secs_f64);
    let per_request = per_request.filter(|cpu| *cpu > SimDuration::ZERO).zip(requests);
    // Requests that somebody counted are not to be guessed, whoever failed to measure CPU.
    let unmeasured = requests.filter(|_| figures.cpu_used_milli.is_none()).map(|rate| (CPU_PER_REQUEST, rate, true));
    let per_request = per_request.map(|(cpu, rate)| (cpu, rate, false)).or(unmeasured);
    let make = || states.iter().copied();
    let (curve, basis) = match (per_request, cores) {
        (Some((cpu, rate, is_assumed)), _) => {
            let by = figures.requests_from.as_deref().unwrap_or("the run");
            let each = if is_assumed {
                format!("CPU not measured; assuming {cpu} each")
            } else {
                format!("{cpu} of CPU each")
            };
            let basis = format!("{} requests/s on average, counted by {by}; {each}", rounded(rate));
            // Sums of load balancers are of a period of their own, which ends with their instant.
            let rated = rated.filter(|_| by != BALANCER);
            (curve("requests_per_second", make().filter_map(|item| Some((item, came(item)?))), rated), basis)
        }
        (None, Some(cores)) => {
            let basis = format!("{} cores on average; nobody counts its requests", rounded(cores));
            (curve("cores", make().filter_map(|item| Some((item, used(item)?))), rated), basis)
        }
        (None, None) => return None,
    };
    let cpu_per_request = per_request.map(|(cpu, ..)| cpu);
    let cpu_is_assumed = per_request.is_some_and(|(.., is_assumed)| is_assumed);
    Some(ObservedLoad { workload: figures.workload.clone(), curve: curve?, cpu_per_request, cpu_is_assumed, basis })
}

/// The requests of a workload in a state. A workload that is scaled to zero has nobody who would count any; otherwise one whose requests nobody
/// recorded just then goes on as before.
fn came(state: &WorkloadState) -> Option<f64> {
    state.requests_per_second.or(nothing_runs(state))
}

/// The cores that a workload uses in a state, likewise.
fn used(state: &WorkloadState) -> Option<f64> {
    state.cpu_used_milli.map(|milli| milli / 1e3).or(nothing_runs(state))
}

/// Zero where a workload is to have no replica, and has none.
fn nothing_runs(state: &WorkloadState) -> Option<f64> {
    (state.replicas_desired == Some(0) && state.replicas_ready.unwrap_or(0) == 0).then_some(0.0)
}

/// A curve as the file that a load names, of rates over so many seconds; `None` if it has fewer than two rows.
fn curve<'s>(
    column: &str,
    points: impl Iterator<Item = (&'s WorkloadState, f64)>,
    rated: Option<i64>,
) -> Option<String> {
    let mut points: Vec<(i64, f64)> = points.map(|(item, value)| (item.at.as_micros(), value.max(0.0))).collect();
    if let Some(seconds) = rated {
        points = unblurred(&points, seconds * 1_000_000);
        // The run begins with what held then.
        let before = points.iter().take_while(|(at, _)| *at <= 0).count().saturating_sub(1);
        points.drain(..before);
        points.iter_mut().take(1).for_each(|point| point.0 = point.0.max(0));
    }
    let mut text = format!("t_seconds,{column}\n");
    for (at, value) in &points {
        let (seconds, micros) = (at.div_euclid(1_000_000), at.rem_euclid(1_000_000));
        let fraction = if micros == 0 { String::new() } else { format!(".{micros:06}") };
        // More decimals are not known of a rate.
        let value = if rated.is_some() { summary::rounded(*value, 6) } else { *value };
        let _ = writeln!(text, "{seconds}{fraction},{value}");
    }
    (points.len() >= 2).then_some(text)
}

#[cfg(test)]
mod tests {
    use nodecast_observed::observation::about::{About, Figures, Window, WorkloadFigures};
    use nodecast_observed::observation::{Observation, WorkloadState};

    use super::observed;
    use crate::domain::SimTime;

    fn state(workload: &str, minute: i64, rate: Option<f64>, milli: f64) -> WorkloadState {
        let at = SimTime::from_micros(minute * 60_000_000);
        let (requests_per_second, cpu_used_milli) = (rate, Some(milli));
        WorkloadState { at, workload: workload.into(), requests_per_second, cpu_used_milli, ..WorkloadState::default() }
    }

    #[test]
    fn measured_requests_precede_cpu_and_idle_is_skipped() {
        let figures = |workload: &str, rate: Option<f64>, milli: f64| WorkloadFigures {
            workload: workload.to_owned(),
            requests_per_second: rate,
            cpu_used_milli: Some(milli),
            cpu_per_request_seconds: rate.map(|rate| milli / 1e3 / rate),
            ..WorkloadFigures::default()
        };
        let item = [("a/web", Some(10.0), 250.0), ("a/worker", None, 1_500.0), ("a/idle", None, 2.0)];
        let about = About {
            window: Window::new(1_791_849_600, 1_791_849_720),
            figures: Figures {
                workloads: item.iter().map(|(name, rate, milli)| figures(name, *rate, *milli)).collect(),
                ..Figures::default()
            },
            ..About::default()
        };
        let workloads =
            (0..2).flat_map(|at| item.iter().map(move |(name, rate, milli)| state(name, at, *rate, *milli))).collect();
        let loads =
            observed(&Observation { about, workloads: Some(workloads), ..Observation::default() }).unwrap().loads;
        assert_eq!(loads.iter().map(|load| load.workload.as_str()).collect::<Vec<_>>(), ["a/web", "a/worker"]);
        assert_eq!(loads[0].curve, "t_seconds,requests_per_second\n0,10\n60,10\n");
        assert_eq!(loads[0].cpu_per_request.map(|cpu| cpu.to_string()).as_deref(), Some("25ms"));
        assert_eq!(loads[1].curve, "t_seconds,cores\n0,1.5\n60,1.5\n");
    }

    #[test]
    fn absent_tables_are_named_or_left_open() {
        let Err(error) = observed(&Observation { about: window(), ..Observation::default() }) else {
            panic!("no demand")
        };
        let shown = error.text(miette::GraphicalTheme::none()).unwrap();
        assert!(shown.contains("`workloads.csv`"), "{shown}");
        let rates = WorkloadFigures { workload: "b/api".to_owned(), cpu_used_milli: Some(900.0), ..Default::default() };
        let about = About { figures: Figures { workloads: vec![rates], ..Figures::default() }, ..window() };
        let workloads = Some((0..3).map(|minute| state("b/api", minute, None, 900.0)).collect());
        let absent = Observation { about, workloads, ..Observation::default() };
        let demand = observed(&absent).unwrap();
        assert_eq!((demand.pods, demand.zones), (None, None));
        let recorded = Observation { pods: Some(Vec::new()), node_counts: Some(Vec::new()), ..absent };
        let demand = observed(&recorded).unwrap();
        assert_eq!((demand.pods, demand.zones), (Some(Vec::new()), Some(Default::default())));
    }

    fn window() -> About {
        About { window: Window::new(1_793_664_000, 1_793_664_300), ..About::default() }
    }

    fn load(figures: WorkloadFigures, workloads: Vec<WorkloadState>) -> crate::scenario::draft::ObservedLoad {
        let figures = Figures { workloads: vec![figures], ..Figures::default() };
        let about = About { window: Window::new(1_791_849_600, 1_791_849_900), figures, ..About::default() };
        let observed = observed(&Observation { about, workloads: Some(workloads), ..Observation::default() }).unwrap();
        observed.loads.into_iter().next().unwrap()
    }

    #[test]
    fn workload_scaled_to_zero_gets_no_load() {
        let figures = WorkloadFigures {
            workload: "a/web".to_owned(),
            requests_per_second: Some(10.0),
            cpu_used_milli: Some(250.0),
            cpu_per_request_seconds: Some(0.025),
            ..WorkloadFigures::default()
        };
        let of = |minute, rate, wanted| WorkloadState {
            replicas_desired: Some(wanted),
            replicas_ready: Some(wanted),
            cpu_used_milli: None,
            ..state("a/web", minute, rate, 0.0)
        };
        // A scrape that was missed in the second minute; none from the third to the fifth.
        let states = vec![of(0, Some(10.0), 2), of(1, None, 2), of(2, None, 0), of(3, None, 0), of(4, Some(5.0), 1)];
        let curve = "t_seconds,requests_per_second\n0,10\n120,0\n180,0\n240,5\n";
        assert_eq!(load(figures.clone(), states.clone()).curve, curve);
        let idle = WorkloadFigures { requests_per_second: None, cpu_per_request_seconds: None, ..figures };
        let used = |workload_state: WorkloadState| WorkloadState {
            requests_per_second: None,
            cpu_used_milli: workload_state.requests_per_second.map(|rate| rate * 100.0),
            ..workload_state
        };
        let curve = "t_seconds,cores\n0,1\n120,0\n180,0\n240,0.5\n";
        assert_eq!(load(idle, states.into_iter().map(used).collect()).curve, curve);
    }

    #[test]
    fn counted_requests_are_replayed_without_cpu_data() {
        let figures = WorkloadFigures {
            workload: "a/web".to_owned(),
            requests_per_second: Some(10.0),
            ..WorkloadFigures::default()
        };
        let states = (0..2).map(|at| WorkloadState { cpu_used_milli: None, ..state("a/web", at, Some(10.0), 0.0) });
        let load = load(figures, states.collect());
        assert_eq!(load.curve, "t_seconds,requests_per_second\n0,10\n60,10\n");
        assert!(load.cpu_is_assumed && load.cpu_per_request.is_some_and(|cpu| cpu.to_string() == "10ms"), "{load:?}");
        assert!(load.basis.ends_with("CPU not measured; assuming 10ms each"), "{}", load.basis);
    }
}
