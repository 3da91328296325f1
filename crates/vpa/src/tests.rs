//! What the recorded answers do not reach: releases, failures of the real program, and what must always hold.

mod pods;
mod properties;
mod recommendations;

use super::{ContainerState, ControllerKind, PodGroup, PodToUpdate, Resize};
use nodecast_model::domain::hpa::ScaleTargetRef;
use nodecast_model::domain::vertical::{ContainerRecommendation, UpdateMode, VerticalPodAutoscaler};
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Resources, SimDuration, SimTime, Symbol, VerticalPodAutoscalerVersion as Version};

/// A midnight of 2027.
const START: SimTime = SimTime::from_micros(1_803_859_200_000_000);
const MEBIBYTE: i64 = 1 << 20;

fn release(minor: u8) -> Version {
    Version::from_minor(minor).unwrap()
}

fn after(seconds: i64) -> SimTime {
    START + SimDuration::from_secs(seconds)
}

fn named(name: &str) -> ObjectName {
    ObjectName { namespace: Symbol::new("default"), name: Symbol::new(name) }
}

fn app() -> Symbol {
    Symbol::new("app")
}

fn autoscaler(mode: Option<UpdateMode>) -> VerticalPodAutoscaler {
    let target = ScaleTargetRef { kind: Symbol::new("Deployment"), name: app() };
    let mut vpa = VerticalPodAutoscaler::new(named("vpa"), target);
    vpa.update.mode = mode;
    vpa
}

/// A recommendation of so many thousandths and MiB, with bounds at a half and the double of it.
fn recommended(container: &str, milli: i64, mebibytes: i64) -> ContainerRecommendation {
    let amounts =
        |part: i64, whole: i64| Resources::cpu_memory(milli * part / whole, mebibytes * MEBIBYTE * part / whole);
    ContainerRecommendation {
        container: Symbol::new(container),
        target: amounts(1, 1),
        lower_bound: amounts(1, 2),
        upper_bound: amounts(2, 1),
        uncapped_target: amounts(1, 1),
    }
}

fn container(name: &str, milli: i64, mebibytes: i64) -> ContainerState {
    ContainerState {
        name: Symbol::new(name),
        requests: Resources::cpu_memory(milli, mebibytes * MEBIBYTE),
        limits: Resources::new(),
    }
}

fn pod(name: &str, containers: Vec<ContainerState>) -> PodToUpdate {
    PodToUpdate {
        name: named(name),
        uid: name.bytes().map(u64::from).sum(),
        started: Some(START),
        pending: false,
        resize: None,
        containers,
        observed: None,
        restarts_on_resize: false,
        terminations: Vec::new(),
    }
}

/// A ReplicaSet that has all of its pods.
fn replicas(pods: Vec<PodToUpdate>) -> PodGroup {
    PodGroup { controller: ControllerKind::Replicated(pods.len() as i64), pods }
}

/// An API that refuses nothing, and what was asked of it.
#[derive(Default)]
struct Willing {
    evicted: Vec<ObjectName>,
    resized: Vec<Resize>,
}

impl super::Answers for Willing {
    fn evict(&mut self, pod: ObjectName) -> bool {
        self.evicted.push(pod);
        true
    }

    fn resize(&mut self, resize: Resize) -> bool {
        self.resized.push(resize);
        true
    }
}
