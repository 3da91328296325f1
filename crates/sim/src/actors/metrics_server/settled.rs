//! Pods whose points follow from those of their node: Ready through their last three points, they use CPU for requests alone.
//!
//! Such a pod uses what every other Ready replica of its workload uses, so that its node need not read it and an autoscaler
//! need not look at it: of each workload it is known how many have settled on which node, and what they request together. A
//! pod settles when it is read, and unsettles, its points then kept again, when it loses its readiness or its node is not read
//! any more.

use super::{LONGEST_LAG, MetricsServer, Point, STAMP, mean_use};
use crate::actors::cpu_use::CpuUse;
use crate::actors::load_loop::LoadLoop;
use crate::domain::{NodeId, PodId, SimDuration, SimTime, WorkloadId};
use nodecast_replicas::hpa::{Sample, SettledPods};

/// The settled pods of a workload.
#[derive(Debug, Default)]
pub(super) struct Settled {
    pods: i64,
    /// CPU that they request together, in thousandths.
    request_milli: i128,
    /// How many there are on each node.
    on: Vec<(NodeId, i64)>,
}

/// Where a pod has settled.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) node: NodeId,
    /// CPU that it requests, in thousandths.
    pub(super) request_milli: i64,
}

/// The readings of one node.
#[derive(Debug, Default)]
pub(super) struct NodeReadings {
    /// How old each is when it is known.
    pub(super) age: SimDuration,
    /// When it was last read.
    pub(super) read: SimTime,
    /// The pods that are read by themselves.
    pub(super) one_by_one: Vec<PodId>,
}

impl NodeReadings {
    /// The last reading that is known at `now`. None is as old as the time between two, so that it is the last or the one
    /// before.
    fn known(&self, now: SimTime, resolution: SimDuration) -> SimTime {
        if self.read + self.age <= now { self.read } else { self.read - resolution }
    }

    /// What is known at `now` of a pod that has settled there and uses CPU as `cpu` says, or none.
    pub(super) fn sample(&self, cpu: Option<&CpuUse>, now: SimTime, resolution: SimDuration) -> Sample {
        let at = self.known(now, resolution);
        let from = at - resolution;
        let used = cpu.map_or(0, |cpu| match cpu.rate_since(from) {
            Some(rate) => i128::from(rate) * i128::from(resolution.as_micros()),
            None => cpu.by(at) - cpu.by(from),
        });
        mean_use(used, from, at)
    }
}

impl Settled {
    fn count(&mut self, Place { node, request_milli }: Place, change: i64) {
        self.pods += change;
        self.request_milli += i128::from(request_milli * change);
        match self.on.iter_mut().find(|(key, _)| *key == node) {
            Some((_, pods)) => *pods += change,
            None => self.on.push((node, change)),
        }
        if change < 0 {
            self.on.retain(|(_, pods)| *pods > 0);
        }
    }
}

impl super::Metered {
    /// CPU that its replicas use for requests; `None` where there are none.
    pub(super) fn cpu<'l>(&self, loads: &'l [LoadLoop]) -> Option<&'l CpuUse> {
        self.load.map(|load| &loads[load].cpu)
    }
}

impl super::PodMetrics {
    /// Whether its points follow from those of its node.
    pub(super) fn has_settled(&self, resolution: SimDuration) -> bool {
        let (Some((since, _)), [Some(first), Some(second), Some(third)]) = (self.ready, self.points) else {
            return false;
        };
        // From then on each reading counts for an autoscaler.
        since + LONGEST_LAG + STAMP <= first.at
            && second.at - first.at == resolution
            && third.at - second.at == resolution
    }
}

impl MetricsServer {
    pub(super) fn node(&mut self, node: NodeId) -> &mut NodeReadings {
        if self.nodes.len() <= node.index() {
            self.nodes.resize_with(node.index() + 1, NodeReadings::default);
        }
        &mut self.nodes[node.index()]
    }

    /// The pod's points are not kept from now on.
    pub(super) fn settle(&mut self, pod: PodId, workload: WorkloadId, place: Place) {
        let entry = self.entry(pod);
        (entry.is_read, entry.place) = (false, Some(place));
        if let Some(Some(metered)) = self.workloads.get_mut(workload.index()) {
            metered.settled.count(place, 1);
        }
    }

    /// The pod's points are kept again if it had settled.
    pub(super) fn unsettle(&mut self, pod: PodId, workload: WorkloadId, loads: &[LoadLoop]) {
        let Some(entry) = self.pods.get_mut(&pod) else { return };
        let Some(place) = entry.place.take() else { return };
        let Some(Some(metered)) = self.workloads.get_mut(workload.index()) else { return };
        metered.settled.count(place, -1);
        let cpu = metered.cpu(loads);
        let node = &mut self.nodes[place.node.index()];
        let (read, age, resolution) = (node.read, node.age, self.resolution);
        node.one_by_one.push(pod);
        entry.is_read = true;
        entry.points = [2, 1, 0].map(|back| {
            let at = read - resolution * back;
            Some(Point { at, visible: at + age, used: entry.used(cpu.map_or(0, |cpu| cpu.by(at)), at), memory: None })
        });
    }

    /// Whether the pod has settled.
    pub(in crate::actors) fn is_settled(&self, pod: PodId) -> bool {
        self.place(pod).is_some()
    }

    pub(super) fn place(&self, pod: PodId) -> Option<Place> {
        self.pods.get(&pod)?.place
    }

    /// What an autoscaler that asks for CPU is told at `now` of the settled pods of a workload.
    pub(in crate::actors) fn settled_pods(
        &self,
        workload: WorkloadId,
        loads: &[LoadLoop],
        now: SimTime,
    ) -> SettledPods {
        let Some(metered) = self.metered(workload) else { return SettledPods::default() };
        let &Settled { pods, request_milli, ref on } = &metered.settled;
        let cpu = metered.cpu(loads);
        // Nothing that is known at `now` is older than three readings.
        let even = cpu.map_or(Some(0), |cpu| cpu.rate_since(now - self.resolution * 3));
        let usage_milli = match even {
            Some(rate) => i128::from(pods) * i128::from(rate / 1_000),
            None => on
                .iter()
                .map(|&(node, pods)| {
                    let sample = self.nodes[node.index()].sample(cpu, now, self.resolution);
                    i128::from(pods) * i128::from(sample.milli)
                })
                .sum(),
        };
        SettledPods { pods, usage_milli, request_milli }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::actors::load_steps::LoadSteps;
    use crate::actors::metrics_server::Metered;
    use crate::actors::setup::LoadPlan;
    use crate::actors::usage_loop::StatedMemory;
    use crate::domain::pod::{Container, PodSpec};
    use crate::domain::workload::ObjectName;
    use crate::domain::{Resources, Symbol};
    use crate::engine::Streams;

    const WORKLOAD: WorkloadId = WorkloadId(0);
    const RESOLUTION: SimDuration = SimDuration::from_secs(15);

    /// metrics-server with one workload, whose pods settle or do not, and the workload's load.
    struct Rig {
        server: MetricsServer,
        loads: Vec<LoadLoop>,
        spec: PodSpec,
    }

    impl Rig {
        fn new(settles: bool) -> Self {
            let workload = ObjectName { namespace: Symbol::new("default"), name: Symbol::new("web") };
            let plan = LoadPlan { workload, exact: false, parts: Vec::new(), steps: LoadSteps::default() };
            let mut load = LoadLoop::new(&plan, &Streams::new(1), RESOLUTION);
            load.id = Some(WORKLOAD);
            let metered = Metered { scaled: true, load: Some(0), settles, settled: Settled::default() };
            let server = MetricsServer { workloads: vec![Some(metered)], ..MetricsServer::with_resolution(RESOLUTION) };
            let container = Container { requests: Resources::cpu_memory(250, 7), ..Container::default() };
            Self { server, loads: vec![load], spec: PodSpec { containers: vec![container], ..PodSpec::default() } }
        }

        fn read(&mut self, node: NodeId, now: SimTime) {
            self.server.node(node).read = now;
            let mut pods = std::mem::take(&mut self.server.node(node).one_by_one);
            pods.retain(|&pod| {
                self.server.read(pod, (WORKLOAD, &self.spec), node, (&self.loads, StatedMemory::default()), now)
            });
            self.server.node(node).one_by_one.append(&mut pods);
        }

        /// What happens in one second of the story: two nodes, three pods, of which one loses its readiness for a while.
        fn live_through(&mut self, second: i64) {
            let now = at(second);
            match second {
                3 => (0..3).for_each(|pod| self.server.begin_to_read(PodId(pod), NodeId(pod % 2))),
                5 => (0..3).for_each(|pod| {
                    self.server.pod_ready(PodId(pod), WORKLOAD, &mut self.loads, now);
                }),
                0 | 20 | 41 | 90 | 91 | 140 => self.loads[0].cpu.set_rate(second * 7_919 % 900_001, now),
                120 => {
                    self.server.pod_unready(PodId(2), WORKLOAD, &mut self.loads, now);
                }
                150 => {
                    self.server.pod_ready(PodId(2), WORKLOAD, &mut self.loads, now);
                }
                _ => {}
            }
            for (node, phase) in [(NodeId(0), 4), (NodeId(1), 11)] {
                if second % 15 == phase && !(node == NodeId(1) && second > 240) {
                    self.read(node, now);
                }
            }
            if second == 251 {
                // The second node is not read any more.
                self.server.unsettle(PodId(1), WORKLOAD, &self.loads);
            }
        }

        fn sample(&self, pod: u32, now: SimTime) -> Option<Sample> {
            self.server.sample(PodId(pod), (WORKLOAD, Some(at(2))), &self.loads, now)
        }
    }

    fn at(second: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(second)
    }

    #[test]
    fn settled_pod_samples_match_individual_readings() {
        let (mut settling, mut read) = (Rig::new(true), Rig::new(false));
        for rig in [&mut settling, &mut read] {
            rig.server.node(NodeId(0)).age = SimDuration::from_millis(12_400);
            rig.server.node(NodeId(1)).age = SimDuration::from_millis(300);
        }
        let mut settled_for: BTreeMap<u32, usize> = BTreeMap::new();
        for second in 0..400 {
            let now = at(second);
            settling.live_through(second);
            read.live_through(second);
            let mut sums = SettledPods::default();
            for pod in 0..3 {
                let sample = read.sample(pod, now);
                assert_eq!(settling.sample(pod, now), sample, "pod {pod} after {second} s");
                if settling.server.is_settled(PodId(pod)) {
                    *settled_for.entry(pod).or_default() += 1;
                    sums.pods += 1;
                    sums.usage_milli += sample.map_or(0, |sample| i128::from(sample.milli));
                    sums.request_milli += 250;
                }
            }
            assert_eq!(settling.server.settled_pods(WORKLOAD, &settling.loads, now), sums, "after {second} s");
            assert_eq!(read.server.settled_pods(WORKLOAD, &read.loads, now), SettledPods::default());
        }
        let spells: Vec<usize> = settled_for.into_values().collect();
        assert_eq!(spells, [351, 210, 287]);
    }
}
