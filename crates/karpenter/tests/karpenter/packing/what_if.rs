//! Questions to one compiled cluster: each is answered as if the cluster had been built for it, and leaves no trace.

use std::sync::Arc;

use nodecast_karpenter::packing::{
    BoundPod, NodeView, Packer, PackingPlan, PendingPod, ReservedMode, Situation, TieBreak, WhatIf,
};
use nodecast_model::domain::{KarpenterVersion, PodSpec, SimTime, Symbol};
use proptest::prelude::{prop, proptest};
use proptest::test_runner::Config;
use serde_json::json;

use super::properties::{Workload, spec, workload};
use super::world::{World, ZONES};

const TIES: TieBreak = TieBreak::SmallestName;

/// A world whose nodes run the pods of `workloads`, dealt out one after the other whether they may run there or not: what
/// is bound is never judged.
fn running(workloads: &[Workload], nodes: usize) -> World {
    let mut world = World::without_pools();
    world.pool("default", json!({"limits": {"cpu": "48", "nodes": 6}}));
    world.daemon(json!({"cpu": "100m", "tolerations": [{"operator": "Exists"}]}));
    for node in 0..nodes {
        world.node(&format!("node-{node}"), ZONES[node % ZONES.len()], &[]);
    }
    for (number, &workload) in workloads.iter().enumerate() {
        let template = super::world::pod_spec(spec(number, workload));
        for replica in 0..workload.0.min(4) {
            let node = (number * 5 + replica * 3) % nodes;
            world.nodes[node].pods.push((format!("w{number}-{replica}"), Arc::clone(&template)));
        }
    }
    world
}

fn bound(world: &World, gone: &[usize]) -> Vec<Vec<BoundPod<'static>>> {
    let nodes = world.nodes.iter().enumerate();
    nodes
        .map(|(node, this_node)| {
            let pods = this_node.pods.iter();
            pods.map(|(_, spec)| BoundPod {
                namespace: Symbol::new("default"),
                name: "pod",
                spec: leak(spec),
                counts_in_topology: !gone.contains(&node),
            })
            .collect()
        })
        .collect()
}

/// Test worlds are few and small; their specifications may live as long as the process.
fn leak(spec: &Arc<PodSpec>) -> &'static Arc<PodSpec> {
    Box::leak(Box::new(Arc::clone(spec)))
}

fn views<'v>(world: &'v World, bound: &'v [Vec<BoundPod<'v>>], gone: &[usize]) -> Vec<NodeView<'v>> {
    let nodes = world.nodes.iter().zip(bound).enumerate();
    nodes
        .map(|(position, (node, pods))| NodeView { offered: !gone.contains(&position), ..world.view(node, pods) })
        .collect()
}

/// The pods of the nodes at `gone`, to be placed elsewhere, after those that wait.
fn to_place<'v>(world: &'v World, gone: &[usize]) -> (Vec<PendingPod<'v>>, Vec<(usize, usize)>) {
    let mut pods: Vec<PendingPod<'v>> = Vec::new();
    let mut displaced = Vec::new();
    let mut add = |name: &'v str, spec: &'v Arc<PodSpec>| {
        let uid_rank = pods.len() as u64;
        pods.push(PendingPod { namespace: Symbol::new("default"), name, spec, created: SimTime::ZERO, uid_rank });
    };
    for (name, _, spec) in &world.pods {
        add(name, spec);
    }
    for &node in gone {
        for (position, (name, spec)) in world.nodes[node].pods.iter().enumerate() {
            displaced.push((node, position));
            add(name, spec);
        }
    }
    (pods, displaced)
}

/// The answer of a packer and a cluster made for this question alone.
fn afresh(world: &World, gone: &[usize]) -> PackingPlan {
    let bound = bound(world, gone);
    let (nodes, (pods, _)) = (views(world, &bound, gone), to_place(world, gone));
    world.with_packer(|packer| {
        packer.pack(&Situation { nodes: &nodes, pods: &pods, reserved: ReservedMode::Fallback, ties: TIES })
    })
}

fn ask(world: &World, packer: &mut Packer<'_>, questions: &[Vec<usize>]) -> Vec<PackingPlan> {
    let bound = bound(world, &[]);
    let nodes = views(world, &bound, &[]);
    let mut cluster = packer.cluster(&nodes);
    let mut answers = Vec::new();
    for gone in questions {
        let (pods, displaced) = to_place(world, gone);
        let mut question = WhatIf::placing(&pods, ReservedMode::Fallback, TIES).without(gone);
        question.displaced = &displaced;
        answers.push(packer.simulate(&mut cluster, &question));
    }
    answers
}

proptest! {
    #![proptest_config(Config { cases: Config::default().cases / 4, ..Config::default() })]

    #[test]
    fn compiled_cluster_matches_freshly_built_cluster(
        workloads in prop::collection::vec(workload(), 1..8),
        waiting in prop::collection::vec(workload(), 0..3),
        nodes in 2..9_usize,
        picks in prop::collection::vec(prop::collection::btree_set(0..9_usize, 0..4), 1..5),
    ) {
        let mut world = running(&workloads, nodes);
        for (number, &own) in waiting.iter().enumerate() {
            world.pods(&format!("waiting-{number}"), own.0.min(3), spec(number, own));
        }
        let mut questions: Vec<Vec<usize>> =
            picks.iter().map(|gone| gone.iter().copied().filter(|&node| node < nodes).collect()).collect();
        questions.push(questions[0].clone());
        let answers = world.with_packer(|packer| ask(&world, packer, &questions));
        for (gone, answer) in questions.iter().zip(answers) {
            assert_eq!(answer, afresh(&world, gone), "without {gone:?}");
        }
    }
}

/// Three nodes of four cores; the first runs one pod of a core, which fits on either of the others.
fn three_nodes(release: KarpenterVersion) -> World {
    let mut world = World::new();
    world.karpenter = release;
    world.node("node-0", ZONES[0], &[("a", json!({"cpu": "1"}))]);
    world.node("node-1", ZONES[0], &[]);
    world.node("node-2", ZONES[0], &[]);
    world
}

fn node_for_the_running_pod(world: &World, unsettled: &[usize]) -> Vec<usize> {
    let bound = bound(world, &[]);
    let nodes = views(world, &bound, &[]);
    let (pods, displaced) = to_place(world, &[0]);
    let plan = world.with_packer(|packer| {
        let mut cluster = packer.cluster(&nodes);
        let mut question = WhatIf::placing(&pods, ReservedMode::Fallback, TIES).without(&[0]);
        (question.displaced, question.unsettled, question.running) = (&displaced, unsettled, &[0]);
        packer.simulate(&mut cluster, &question)
    });
    plan.existing.iter().map(|placement| placement.node).collect()
}

#[test]
fn v1_14_keeps_running_pods_off_unsettled_nodes() {
    assert_eq!(node_for_the_running_pod(&three_nodes(KarpenterVersion::V1_13), &[1]), [1]);
    assert_eq!(node_for_the_running_pod(&three_nodes(KarpenterVersion::V1_14), &[1]), [2]);
    assert_eq!(node_for_the_running_pod(&three_nodes(KarpenterVersion::V1_14), &[1, 2]), [0; 0]);
    assert_eq!(node_for_the_running_pod(&three_nodes(KarpenterVersion::V1_14), &[]), [1]);
}

#[test]
fn plan_stops_above_requested_claim_count() {
    let mut world = World::new();
    world.pods("big", 5, json!({"cpu": "15"}));
    let (pods, _) = to_place(&world, &[]);
    let claims = |most_claims: usize| {
        world.with_packer(|packer| {
            let mut cluster = packer.cluster(&[]);
            let mut question = WhatIf::placing(&pods, ReservedMode::Fallback, TIES);
            question.most_claims = most_claims;
            packer.simulate(&mut cluster, &question).claims.len()
        })
    };
    assert_eq!((claims(1), claims(4), claims(usize::MAX)), (2, 5, 5));
}
