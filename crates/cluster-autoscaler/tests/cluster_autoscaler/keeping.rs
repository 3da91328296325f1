//! What outlives an iteration makes no difference to the next.

use nodecast_cluster_autoscaler::view::{PodPlace, PodTraits};
use nodecast_model::domain::{NodeId, PodId};
use std::sync::Arc;

use super::lab::{Cloud, Lab, label, program, seconds, spec, spread, taint, traits};

/// Draws that are the same in every run.
struct Lots(u64);

impl Lots {
    fn one_of(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % count
    }
}

/// Pods that ask for different amounts, some of them spread over hosts.
fn kinds() -> Vec<Arc<PodTraits>> {
    let of = |(at, name): (usize, &str)| {
        let mut spec = spec(name, 100 * (at as i64 + 1), 200);
        if at == 1 {
            spec.topology_spread.push(spread(name, "kubernetes.io/hostname", 1, None));
        }
        traits(name, spec)
    };
    ["a", "b", "c"].into_iter().enumerate().map(of).collect()
}

/// Something happens to a cluster: pods come, get nodes and go; nodes come, change and go.
fn change(lab: &mut Lab, lots: &mut Lots, kinds: &[Arc<PodTraits>], ids: &mut usize) {
    for _ in 0..6 {
        *ids += 1;
        let (pods, nodes) = (lab.pods.len(), lab.nodes.len());
        match lots.one_of(7) {
            0..=2 => {
                let at = lab.pod(&kinds[lots.one_of(kinds.len())], PodPlace::Unschedulable);
                lab.pods[at].id = PodId::from_index(*ids);
            }
            3 | 4 if pods > 0 && nodes > 0 => {
                let node = lab.nodes[lots.one_of(nodes)].id;
                lab.pods[lots.one_of(pods)].place = PodPlace::Bound(node);
            }
            5 if pods > 0 => drop(lab.pods.remove(lots.one_of(pods))),
            _ => match lots.one_of(4) {
                0 | 1 => {
                    let at = lab.node(0);
                    lab.nodes[at].id = NodeId::from_index(*ids);
                    lab.nodes[at].labels = label("kubernetes.io/hostname", &format!("host-{ids}"));
                }
                2 if nodes > 2 => drop(lab.nodes.remove(lots.one_of(nodes))),
                _ if nodes > 0 => {
                    let node = &mut lab.nodes[lots.one_of(nodes)];
                    node.unschedulable = !node.unschedulable;
                    match node.taints.is_empty() {
                        true => node.taints.push(taint("some")),
                        false => node.taints.clear(),
                    }
                }
                _ => {}
            },
        }
    }
    lab.elapsed += seconds(10);
}

#[test]
fn program_with_its_last_snapshot_decides_as_without() {
    let (kinds, mut lots, mut ids) = (kinds(), Lots(7), 0);
    let mut lab = Lab::default();
    lab.group("g", (0, 30, 3), 1_000, 2_000);
    let mut program = program(&[("scale-down-unneeded-time", "30s"), ("scale-down-delay-after-add", "10s")]);
    let (mut grown, mut deleted) = (0, 0);
    for round in 0..300 {
        change(&mut lab, &mut lots, &kinds, &mut ids);
        let cloud = || Cloud { targets: lab.cloud.targets.clone(), ..Cloud::default() };
        // A copy begins without a snapshot.
        let from_nothing = program.clone().run_once(&lab.seen(), &mut cloud(), &mut |_| 0);
        let estimated = program.estimate(&lab.seen(), &mut cloud());
        assert_eq!(estimated.took, from_nothing.scale_up.took, "round {round}, estimated");
        // Every third time the program changes before the iteration is over, so that the estimates are made again.
        if round % 3 == 0 {
            program.state_mut();
        }
        let iteration = match round % 5 {
            0 => lab.run(&mut program),
            _ => lab.run_by(|seen, cloud| program.run_estimated(*estimated, seen, cloud, &mut |_| 0)),
        };
        assert_eq!(iteration, from_nothing, "round {round}");
        grown += iteration.scale_up.grown.len();
        deleted += iteration.scale_down.deletions.len();
    }
    assert!(grown > 3 && deleted > 3, "{grown} {deleted}");
}
