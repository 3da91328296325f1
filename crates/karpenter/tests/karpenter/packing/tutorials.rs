//! What the tutorials observed of Karpenter v0.16.0 and v0.18.1 when it sized nodes.

use std::sync::Arc;

use nodecast_karpenter::instance_types::{InstanceType, ProviderSettings, default_requirements, instance_types};
use nodecast_karpenter::packing::{
    PackingOptions, PackingPlan, PackingSetup, PendingPod, PoolView, ReservedMode, Situation, TieBreak, Volumes, pack,
};
use nodecast_model::domain::node_pool::KubeletConfig;
use nodecast_model::domain::requirements::{Operator, Requirement};
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::{
    KarpenterVersion, Labels, NodeClass, NodePool, PodSpec, ResourceName, SimTime, Symbol, Taint, TaintEffect,
};
use nodecast_prices::Catalog;
use serde_json::json;

use super::world::pod_spec;

/// Packs `count` equal pods on an empty cluster of `region`; gives the plan and each pool's types.
fn packed(
    version: KarpenterVersion,
    region: &str,
    pools: &[NodePool],
    daemons: &[Arc<PodSpec>],
    pod: &Arc<PodSpec>,
    count: usize,
) -> (PackingPlan, Vec<Vec<InstanceType>>) {
    let region = Catalog::embedded().unwrap().region(region).unwrap();
    let class = NodeClass::named("default");
    let pools: Vec<NodePool> = pools
        .iter()
        .map(|pool| {
            let mut pool = pool.clone();
            pool.requirements.extend(default_requirements(version, &pool));
            pool.kubelet = Some(KubeletConfig::default());
            pool
        })
        .collect();
    let settings = ProviderSettings::for_version(version);
    let types: Vec<Vec<InstanceType>> =
        pools.iter().map(|pool| instance_types(&region, &class, pool, settings)).collect();
    let views: Vec<PoolView<'_>> =
        pools.iter().zip(&types).map(|(pool, instance_types)| PoolView { pool, instance_types }).collect();
    let names: Vec<String> = (0..count).map(|number| format!("pod-{number}")).collect();
    let pods: Vec<PendingPod<'_>> = names
        .iter()
        .enumerate()
        .map(|(rank, name)| PendingPod {
            namespace: well_known::DEFAULT,
            name,
            spec: pod,
            created: SimTime::ZERO,
            uid_rank: rank as u64,
        })
        .collect();
    let setup = PackingSetup {
        karpenter: version,
        options: PackingOptions::default(),
        pools: &views,
        daemons,
        namespaces: &[],
        volumes: Volumes::default(),
        default_spread: None,
    };
    let ties = TieBreak::Seeded { seed: 1, pass: 1 };
    let plan = pack(setup, &Situation { nodes: &[], pods: &pods, reserved: ReservedMode::Strict, ties });
    (plan, types)
}

fn daemons(count: usize) -> Vec<Arc<PodSpec>> {
    let everywhere = json!([{"operator": "Exists"}]);
    let all = [
        json!({"cpu": "25m", "tolerations": everywhere}),
        json!({"cpu": "100m", "tolerations": everywhere}),
        json!({"cpu": "200m", "memory": "200Mi"}),
        json!({"cpu": "500m", "memory": "100Mi"}),
    ];
    all.into_iter().take(count).map(pod_spec).collect()
}

/// The first tutorial's Provisioner: Spot, nothing smaller than xlarge.
fn xlarge_and_up() -> NodePool {
    let small = ["nano", "micro", "small", "medium", "large"].map(Symbol::new);
    NodePool {
        requirements: vec![
            Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT),
            Requirement::new(well_known::INSTANCE_SIZE, Operator::NotIn, small),
        ],
        labels: Labels::new().with("intent", "apps"),
        ..NodePool::named("default")
    }
}

fn smallest_cores(plan: &PackingPlan, types: &[Vec<InstanceType>], claim: usize) -> i64 {
    let claim = &plan.claims[claim];
    let cores = claim
        .instance_types
        .iter()
        .map(|instance_type| types[claim.pool][instance_type.index as usize].capacity.cpu_milli());
    cores.min().unwrap() / 1_000
}

#[test]
fn four_daemons_need_eight_cores_in_v0_16() {
    let pod = pod_spec(json!({"cpu": "1", "memory": "2G", "nodeSelector": {"intent": "apps"}}));
    for (version, cores) in [(KarpenterVersion::V0_16, 8), (KarpenterVersion::V1_13, 4)] {
        let (plan, types) = packed(version, "ap-southeast-1", &[xlarge_and_up()], &daemons(4), &pod, 3);
        assert_eq!(plan.claims.len(), 1);
        assert_eq!(plan.claims[0].requests.to_string(), "cpu 3825m, memory 6166575Ki, pods 7");
        assert_eq!(smallest_cores(&plan, &types, 0), cores, "{version}");
        let architectures = ["amd64", "arm64"].map(|arch| {
            let is = |index: u32| {
                types[0][index as usize].requirements.get(well_known::ARCH).unwrap().has(Symbol::new(arch))
            };
            plan.claims[0].instance_types.iter().any(|instance_type| is(instance_type.index))
        });
        assert_eq!(architectures, [true, true], "nothing limits the architecture");
    }
}

#[test]
fn v0_16_spot_types_follow_on_demand_price() {
    let pod = pod_spec(json!({"cpu": "1", "memory": "2G"}));
    let (plan, types) = packed(KarpenterVersion::V0_16, "us-east-1", &[xlarge_and_up()], &daemons(4), &pod, 3);
    let on_demand = |index: u32| {
        let offerings = types[0][index as usize].offerings.iter();
        offerings
            .filter(|offering| offering.capacity_type == well_known::ON_DEMAND)
            .map(|offering| offering.price)
            .min()
            .unwrap()
    };
    assert!(plan.claims[0].instance_types.is_sorted_by_key(|instance_type| on_demand(instance_type.index)));
}

#[test]
fn v0_18_sizes_grow_for_one_core_pods() {
    let pool = NodePool {
        requirements: vec![Requirement::equals(well_known::CAPACITY_TYPE, well_known::SPOT)],
        ..NodePool::named("default")
    };
    let pod = pod_spec(json!({"cpu": "1"}));
    // Sixteen pods need more than 16 cores; EC2 sells a few sizes between 16 and 32.
    for (count, requests, cores) in
        [(5, "cpu 5125m, pods 7", 8..=8), (15, "cpu 15125m, pods 17", 16..=16), (16, "cpu 16125m, pods 18", 17..=32)]
    {
        let pools = std::slice::from_ref(&pool);
        let (plan, types) = packed(KarpenterVersion::V0_18, "cn-north-1", pools, &daemons(2), &pod, count);
        assert_eq!(plan.claims.len(), 1);
        assert_eq!(plan.claims[0].requests.to_string(), requests);
        let smallest = smallest_cores(&plan, &types, 0);
        assert!(cores.contains(&smallest), "{count} pods on {smallest} cores");
        assert!(plan.claims[0].instance_types.is_sorted_by_key(|instance_type| instance_type.price));
    }
}

#[test]
fn heavier_provisioner_wins_and_skips_other_daemons() {
    let taint = Taint::new(Symbol::new("team"), TaintEffect::NoSchedule);
    let banana = NodePool {
        weight: 10,
        taints: vec![taint],
        labels: Labels::new().with("billing-team", "my-team"),
        requirements: vec![Requirement::equals(well_known::CAPACITY_TYPE, well_known::ON_DEMAND)],
        ..NodePool::named("banana")
    };
    let pod = pod_spec(json!({"cpu": "1", "tolerations": [{"key": "team", "operator": "Exists"}]}));
    let pools = [NodePool::named("default"), banana];
    let (plan, types) = packed(KarpenterVersion::V0_18, "us-east-1", &pools, &daemons(2), &pod, 3);
    assert_eq!(plan.claims[0].node_pool.as_str(), "banana");
    assert_eq!((plan.claims[0].requests.cpu_milli(), plan.claims[0].requests.pods()), (3_125, 5));
    assert_eq!(smallest_cores(&plan, &types, 0), 4);
    let first: Vec<&str> = plan.claims[0]
        .instance_types
        .iter()
        .map(|instance_type| instance_type.name.as_str())
        .filter(|name| ["t3a.xlarge", "c5a.xlarge", "t3.xlarge", "c6i.xlarge", "c5.xlarge"].contains(name))
        .collect();
    assert_eq!(first, ["t3a.xlarge", "c5a.xlarge", "t3.xlarge", "c5.xlarge", "c6i.xlarge"]);
    let fruitless = pod_spec(json!({"cpu": "1"}));
    let (plan, _) = packed(KarpenterVersion::V0_18, "us-east-1", &pools, &daemons(2), &fruitless, 3);
    assert_eq!(plan.claims[0].node_pool.as_str(), "default", "who does not tolerate the taint goes elsewhere");
}

#[test]
fn v0_4_packs_equal_constraints_separately() {
    let pool = NodePool::named("default");
    let pod = pod_spec(json!({"cpu": "1", "memory": "1Gi"}));
    let (plan, types) = packed(KarpenterVersion::V0_4, "us-east-1", &[pool], &daemons(2), &pod, 8);
    assert_eq!((plan.claims.len(), plan.claims[0].pods.len()), (1, 8));
    assert!(plan.claims[0].instance_types.len() <= 20);
    assert!(smallest_cores(&plan, &types, 0) > 8, "eight cores less what is reserved do not hold eight pods of one");
    let own_key = plan.claims[0].requirements.get(Symbol::new("node.k8s.aws/capacity-type")).unwrap();
    assert!(own_key.has(well_known::ON_DEMAND) && !own_key.has(well_known::SPOT), "its default is On-Demand");
}

#[test]
fn v0_4_and_v0_6_choose_different_provisioners() {
    let pools =
        [NodePool::named("apple"), NodePool::named("default"), NodePool { weight: 9, ..NodePool::named("zebra") }];
    let taken = |version, pod: serde_json::Value| {
        let (plan, _) = packed(version, "us-east-1", &pools, &[], &pod_spec(pod), 1);
        plan.claims[0].node_pool.as_str()
    };
    let zebra = json!({"cpu": "1", "nodeSelector": {"karpenter.sh/provisioner-name": "zebra"}});
    assert_eq!(taken(KarpenterVersion::V0_4, json!({"cpu": "1"})), "default");
    assert_eq!(taken(KarpenterVersion::V0_6, json!({"cpu": "1"})), "apple");
    assert_eq!(taken(KarpenterVersion::V0_18, json!({"cpu": "1"})), "zebra", "by weight");
    for version in [KarpenterVersion::V0_4, KarpenterVersion::V0_6, KarpenterVersion::V0_18] {
        assert_eq!(taken(version, zebra.clone()), "zebra", "{version}");
    }
}

#[test]
fn v0_6_reserves_devices_for_requesting_pods() {
    for (pod, wanted) in
        [(json!({"cpu": "1"}), false), (json!({"cpu": "1", "requests": {"nvidia.com/gpu": "1"}}), true)]
    {
        let pool = NodePool::named("default");
        let (plan, types) = packed(KarpenterVersion::V0_6, "us-east-1", &[pool], &[], &pod_spec(pod), 1);
        let gpus = |index: u32| types[0][index as usize].capacity.get(ResourceName::NVIDIA_GPU) > 0;
        assert!(plan.claims[0].instance_types.iter().all(|instance_type| gpus(instance_type.index) == wanted));
    }
}
