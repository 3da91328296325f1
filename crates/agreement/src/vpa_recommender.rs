//! Cases of the Vertical Pod Autoscaler's recommender: samples of containers one after the other, and what it makes of them.

use jiff::Timestamp;
use nodecast_model::domain::vertical::VerticalPodAutoscaler;
use nodecast_model::domain::{LabelSelector, Labels, ResourceName, SimDuration, SimTime, Symbol};
use nodecast_vpa::{NotTaken, OutOfMemory, Recommender, RecommenderSettings};
use serde_json::{Map, Value, json};

use crate::fields::{check_read, flag_or, integer, list, note_unread, number_or, text};
use crate::vpa::{amounts, autoscaler, duration, named, quantities, same_answer};

const HOUR: i64 = 3_600;

/// What happens, in the order in which it does at one instant.
#[derive(Clone, PartialEq, Debug)]
enum Step {
    Appear(usize),
    Policy(Value),
    Sample { pod: String, container: Symbol, cpu_milli: Option<i64>, memory_bytes: Option<i64> },
    OutOfMemory { pod: String, container: Symbol, kill: OutOfMemory },
    Restart,
    Recommend,
    Forget,
    Disappear(usize),
}

impl Step {
    fn rank(&self) -> u8 {
        match self {
            Self::Appear(_) => 0,
            Self::Policy(_) => 1,
            Self::Sample { .. } => 2,
            Self::OutOfMemory { .. } => 3,
            Self::Restart => 4,
            Self::Recommend => 5,
            Self::Forget => 6,
            Self::Disappear(_) => 7,
        }
    }
}

struct Pod {
    name: String,
    containers: Vec<Symbol>,
    labels: Labels,
}

/// A recommender in the course of a case.
struct Course<'c> {
    input: &'c Value,
    start: SimTime,
    settings: RecommenderSettings,
    vpa: VerticalPodAutoscaler,
    selector: LabelSelector,
    recommender: Recommender,
    pods: Vec<Pod>,
    alive: Vec<bool>,
    discarded: i64,
    answers: Vec<Value>,
}

/// Compares a case.
pub(crate) fn check(input: &Value, expected: &Value) -> Result<(), String> {
    note_unread(
        "input",
        input,
        &["start", "flags", "annotations", "vpaSpec", "pods", "series", "events", "recommendAt"],
    );
    let mut course = Course::read(input)?;
    for (at, step) in steps(input, &course)? {
        course.take(at, step)?;
    }
    let expected = expected.as_array().ok_or("expected is not a list")?;
    if course.answers.len() != expected.len() {
        return Err(format!("{} answers, expected {}", course.answers.len(), expected.len()));
    }
    for (found, expected) in course.answers.iter().zip(expected) {
        check_read("expected", expected, &["at", "containers", "discarded"])?;
        same_answer("the recommendation", found, expected)?;
    }
    Ok(())
}

impl<'c> Course<'c> {
    fn read(input: &'c Value) -> Result<Self, String> {
        let start: Timestamp =
            text(input, "start")?.ok_or("start is missing")?.parse().map_err(|error| format!("start: {error}"))?;
        let settings = settings(&input["flags"])?;
        let app = (Symbol::new("app"), Symbol::new("app"));
        let mut pods = Vec::new();
        for pod in list(input, "pods")? {
            note_unread("pod", pod, &["name", "containers", "from", "to", "labels"]);
            let mut labels: Labels = [app].into_iter().collect();
            for (key, value) in pod["labels"].as_object().into_iter().flatten() {
                labels.set(Symbol::new(key), Symbol::new(value.as_str().ok_or("labels: not a text")?));
            }
            let containers = list(pod, "containers")?.iter().map(|name| Symbol::new(name.as_str().unwrap_or_default()));
            let name = text(pod, "name")?.unwrap_or_default().to_owned();
            pods.push(Pod { name, containers: containers.collect(), labels });
        }
        Ok(Self {
            input,
            start: SimTime::from_micros(start.as_microsecond()),
            vpa: autoscaler(&input["vpaSpec"], &input["annotations"], &Value::Null)?,
            selector: LabelSelector { match_labels: [app].into_iter().collect(), expressions: Vec::new() },
            recommender: Recommender::new(settings.clone()),
            settings,
            alive: vec![false; pods.len()],
            pods,
            discarded: 0,
            answers: Vec::new(),
        })
    }

    fn instant(&self, seconds: i64) -> SimTime {
        self.start + SimDuration::from_secs(seconds)
    }

    fn take(&mut self, at: i64, step: Step) -> Result<(), String> {
        let now = self.instant(at);
        match step {
            Step::Appear(index) => {
                self.alive[index] = true;
                self.appear(index, now);
            }
            Step::Policy(spec) => self.vpa = autoscaler(&spec, &self.input["annotations"], &Value::Null)?,
            Step::Sample { pod, container, cpu_milli, memory_bytes } => {
                let of = (named(&pod), container);
                if let Some(milli) = cpu_milli {
                    let taken = self.recommender.cpu_sample(of, now, milli, now);
                    self.note(taken)?;
                }
                if let Some(bytes) = memory_bytes {
                    let taken = self.recommender.memory_sample(of, now, bytes, now);
                    self.note(taken)?;
                }
            }
            Step::OutOfMemory { pod, container, kill } => {
                let policy = self.vpa.policy_of(container);
                let taken = self.recommender.out_of_memory((named(&pod), container), kill, policy, now);
                self.note(taken)?;
            }
            Step::Restart => self.restart(now),
            Step::Recommend => self.recommend(at),
            Step::Forget => self.recommender.forget(now),
            Step::Disappear(index) => {
                self.alive[index] = false;
                self.recommender.remove_pod(named(&self.pods[index].name));
            }
        }
        Ok(())
    }

    fn appear(&mut self, index: usize, now: SimTime) {
        let pod = &self.pods[index];
        // No release of the cases weighs by what is requested.
        let containers = pod.containers.iter().map(|container| (*container, 0));
        self.recommender.add_pod(named(&pod.name), &pod.labels, containers, now);
    }

    fn note(&mut self, taken: Result<(), NotTaken>) -> Result<(), String> {
        match taken {
            Ok(()) => Ok(()),
            Err(NotTaken::Outdated) => {
                self.discarded += 1;
                Ok(())
            }
            Err(NotTaken::UnknownContainer) => Err("a sample is of no container".to_owned()),
        }
    }

    fn restart(&mut self, now: SimTime) {
        let kept = self.recommender.checkpoints(&self.vpa, &self.selector, now);
        self.recommender = Recommender::new(self.settings.clone());
        self.recommender.restore(self.vpa.name, &kept);
        for index in 0..self.pods.len() {
            if self.alive[index] {
                self.appear(index, now);
            }
        }
    }

    fn recommend(&mut self, at: i64) {
        let mut containers = Map::new();
        for item in self.recommender.recommend(&self.vpa, &self.selector) {
            let told = json!({
                "target": amounts(&item.target),
                "lowerBound": amounts(&item.lower_bound),
                "upperBound": amounts(&item.upper_bound),
                "uncappedTarget": amounts(&item.uncapped_target),
            });
            containers.insert(item.container.to_string(), told);
        }
        self.answers.push(json!({"at": at, "containers": containers, "discarded": self.discarded}));
    }
}

/// Flags that are read.
const FLAGS: [&str; 16] = [
    "pod-recommendation-min-cpu-millicores",
    "pod-recommendation-min-memory-mb",
    "cpu-integer-post-processor-enabled",
    "container-recommendation-max-allowed-cpu",
    "container-recommendation-max-allowed-memory",
    "cpu-histogram-decay-half-life",
    "memory-aggregation-interval",
    "memory-aggregation-interval-count",
    "recommendation-lower-bound-cpu-percentile",
    "recommendation-margin-fraction",
    "recommendation-upper-bound-cpu-percentile",
    "target-cpu-percentile",
    "target-memory-percentile",
    "round-cpu-millicores",
    "round-memory-bytes",
    "featureGates",
];

fn settings(flags: &Value) -> Result<RecommenderSettings, String> {
    let mut settings = RecommenderSettings::default();
    note_unread("flags", flags, &FLAGS);
    note_unread("featureGates", &flags["featureGates"], &["PerVPAConfig"]);
    let number = |key: &str, default: f64| number_or(flags, key, default);
    settings.pod_minimum_milli = number("pod-recommendation-min-cpu-millicores", settings.pod_minimum_milli)?;
    settings.pod_minimum_mebibytes = number("pod-recommendation-min-memory-mb", settings.pod_minimum_mebibytes)?;
    settings.margin = number("recommendation-margin-fraction", settings.margin)?;
    settings.cpu.target = number("target-cpu-percentile", settings.cpu.target)?;
    settings.cpu.lower = number("recommendation-lower-bound-cpu-percentile", settings.cpu.lower)?;
    settings.cpu.upper = number("recommendation-upper-bound-cpu-percentile", settings.cpu.upper)?;
    settings.memory.target = number("target-memory-percentile", settings.memory.target)?;
    let whole = |key: &str, default: i64| integer(flags, key).map(|number| number.unwrap_or(default));
    settings.memory_interval_count = whole("memory-aggregation-interval-count", settings.memory_interval_count)?;
    settings.round_milli = whole("round-cpu-millicores", settings.round_milli)?;
    settings.round_bytes = whole("round-memory-bytes", settings.round_bytes)?;
    settings.cpu_half_life = duration(flags, "cpu-histogram-decay-half-life")?.unwrap_or(settings.cpu_half_life);
    settings.memory_interval = duration(flags, "memory-aggregation-interval")?.unwrap_or(settings.memory_interval);
    settings.whole_cores = flag_or(flags, "cpu-integer-post-processor-enabled", false)?;
    settings.per_vpa_config = flag_or(&flags["featureGates"], "PerVPAConfig", false)?;
    for name in [ResourceName::CPU, ResourceName::MEMORY] {
        let most = &flags[format!("container-recommendation-max-allowed-{name}")];
        if !most.is_null() {
            let stated = quantities(&json!({ name.to_string(): most }))?;
            settings.max_allowed.set(name, stated.get(name));
        }
    }
    Ok(settings)
}

/// What happens in the order in which it does.
fn steps(input: &Value, course: &Course<'_>) -> Result<Vec<(i64, Step)>, String> {
    let mut steps: Vec<(i64, Step)> = Vec::new();
    let second = |value: &Value, key: &str| integer(value, key)?.ok_or_else(|| format!("{key} is missing"));
    for (index, pod) in list(input, "pods")?.iter().enumerate() {
        steps.push((second(pod, "from")?, Step::Appear(index)));
        if let Some(to) = integer(pod, "to")? {
            steps.push((to, Step::Disappear(index)));
        }
    }
    for series in list(input, "series")? {
        read_series(series, &mut steps)?;
    }
    for event in list(input, "events")? {
        steps.push((second(event, "at")?, read_event(event, course)?));
    }
    let mut last = 0;
    for at in list(input, "recommendAt")? {
        let at = at.as_i64().ok_or("recommendAt: not a whole number")?;
        last = last.max(at);
        steps.push((at, Step::Recommend));
    }
    steps.extend((1..=last / HOUR).map(|hour| (hour * HOUR, Step::Forget)));
    // After the last recommendation nobody asks.
    steps.retain(|(at, _)| *at <= last);
    steps.sort_by_key(|(at, step)| (*at, step.rank()));
    Ok(steps)
}

fn sample(value: &Value, cpu_milli: Option<i64>, memory_bytes: Option<i64>) -> Result<Step, String> {
    let pod = text(value, "pod")?.unwrap_or_default().to_owned();
    let container = Symbol::new(text(value, "container")?.unwrap_or_default());
    Ok(Step::Sample { pod, container, cpu_milli, memory_bytes })
}

fn read_event(event: &Value, course: &Course<'_>) -> Result<Step, String> {
    let known =
        ["at", "pod", "container", "cpuMilli", "memoryBytes", "oomRequestBytes", "happenedAt", "restart", "vpaSpec"];
    note_unread("event", event, &known);
    if !event["vpaSpec"].is_null() {
        return Ok(Step::Policy(event["vpaSpec"].clone()));
    }
    if flag_or(event, "restart", false)? {
        return Ok(Step::Restart);
    }
    if let Some(request_bytes) = integer(event, "oomRequestBytes")? {
        let at = integer(event, "happenedAt")?.or(integer(event, "at")?).unwrap_or_default();
        let kill = OutOfMemory { at: course.instant(at), request_bytes };
        let pod = text(event, "pod")?.unwrap_or_default().to_owned();
        return Ok(Step::OutOfMemory {
            pod,
            container: Symbol::new(text(event, "container")?.unwrap_or_default()),
            kill,
        });
    }
    sample(event, integer(event, "cpuMilli")?, integer(event, "memoryBytes")?)
}

fn read_series(series: &Value, steps: &mut Vec<(i64, Step)>) -> Result<(), String> {
    let known = [
        "pod",
        "container",
        "from",
        "every",
        "samples",
        "cpuMilli",
        "memoryBytes",
        "cpuMilliAdd",
        "memoryBytesAdd",
        "lcg",
    ];
    note_unread("series", series, &known);
    note_unread("lcg", &series["lcg"], &["seed", "cpu", "mem"]);
    let whole = |key: &str| integer(series, key).map(Option::unwrap_or_default);
    let (from, every, samples) = (whole("from")?, whole("every")?, whole("samples")?);
    let (cpu_add, memory_add) = (whole("cpuMilliAdd")?, whole("memoryBytesAdd")?);
    let (cpu, memory) = (runs(&series["cpuMilli"])?, runs(&series["memoryBytes"])?);
    let lcg = &series["lcg"];
    let mut state = integer(lcg, "seed")?.unwrap_or_default();
    let mut drawn = |range: &Value| -> Option<i64> {
        let (low, high) = (range[0].as_i64()?, range[1].as_i64()?);
        state = (state * 1_103_515_245 + 12_345) % (1 << 31);
        Some(low + state * (high - low + 1) / (1 << 31))
    };
    for i in 0..samples {
        let listed = |values: &[i64], add: i64| {
            let at = usize::try_from(i).ok()?.checked_rem(values.len())?;
            Some(values[at] + i * add)
        };
        let (cpu, memory) = if lcg.is_null() {
            (listed(&cpu, cpu_add), listed(&memory, memory_add))
        } else {
            (drawn(&lcg["cpu"]), drawn(&lcg["mem"]))
        };
        steps.push((from + i * every, sample(series, cpu, memory)?));
    }
    Ok(())
}

/// A list of numbers, each given with how often it stands there.
fn runs(value: &Value) -> Result<Vec<i64>, String> {
    let mut values = Vec::new();
    for run in value.as_array().into_iter().flatten() {
        let (count, value) = (run[0].as_u64(), run[1].as_i64());
        let (count, value) = count.zip(value).ok_or_else(|| format!("{run} is not a count and a value"))?;
        values.extend(std::iter::repeat_n(value, count as usize));
    }
    Ok(values)
}
