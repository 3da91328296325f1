//! The synthetic instances of the packing-quality suite in scenarios/packing, from a seed for each.

use std::fmt::Write as _;

use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};

/// What pods of a Deployment ask for beside CPU and memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wish {
    Nothing,
    ZoneSpread,
    HostAntiAffinity,
    PreferredHostAntiAffinity,
    Zone,
    Arm,
    Gpu,
}

/// A synthetic instance: Deployments until there are so many pods.
struct Instance {
    name: &'static str,
    seed: u64,
    pods: u32,
    /// How often each wish is drawn; the rest asks for nothing more.
    wishes: &'static [(Wish, f64)],
}

const INSTANCES: [Instance; 6] = [
    Instance { name: "mixed-sizes-500", seed: 1, pods: 500, wishes: &[] },
    Instance { name: "mixed-sizes-5000", seed: 2, pods: 5_000, wishes: &[] },
    Instance { name: "zone-spread-2000", seed: 3, pods: 2_000, wishes: &[(Wish::ZoneSpread, 0.7)] },
    Instance { name: "anti-affinity-1000", seed: 4, pods: 1_000, wishes: &[(Wish::HostAntiAffinity, 0.5)] },
    Instance { name: "gpu-600", seed: 5, pods: 600, wishes: &[(Wish::Gpu, 0.5)] },
    Instance {
        name: "constrained-3000",
        seed: 6,
        pods: 3_000,
        wishes: &[
            (Wish::ZoneSpread, 0.3),
            (Wish::HostAntiAffinity, 0.15),
            (Wish::PreferredHostAntiAffinity, 0.1),
            (Wish::Zone, 0.1),
            (Wish::Arm, 0.1),
        ],
    },
];

/// CPU requests in thousandths, the small ones more often.
const CPU: [u32; 12] = [100, 100, 250, 250, 500, 500, 750, 1_000, 1_000, 2_000, 4_000, 8_000];
const ZONES: [&str; 3] = ["us-east-1a", "us-east-1b", "us-east-1c"];

/// A NodePool for the instance that asks for GPUs.
const GPU_POOL: &str = "\
# GPUs of one kind of each generation that is sold in many sizes.
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      taints:
        - { key: nvidia.com/gpu, effect: NoSchedule }
      requirements:
        - { key: karpenter.k8s.aws/instance-family, operator: In, values: [g4dn, g5, g6] }
        - { key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand] }
";

/// The synthetic files: path below the suite, content.
pub fn files() -> Vec<(String, String)> {
    let mut files = Vec::new();
    for instance in &INSTANCES {
        files.push((format!("{}/deployments.yaml", instance.name), deployments(instance)));
        if instance.wishes.iter().any(|(wish, _)| *wish == Wish::Gpu) {
            files.push((format!("{}/nodepool.yaml", instance.name), GPU_POOL.to_owned()));
        }
    }
    files
}

fn deployments(instance: &Instance) -> String {
    let mut random = ChaCha8Rng::seed_from_u64(instance.seed);
    let mut text = format!("# Made by generate.rs from seed {}.\n", instance.seed);
    let (mut number, mut left) = (0, instance.pods);
    while left > 0 {
        // Around 20 replicas, a few Deployments with many more.
        let replicas = (2 + random.random_range(0..36_u32) * random.random_range(1..4_u32)).min(left);
        left -= replicas;
        number += 1;
        deployment(&mut text, number, replicas, wish(instance, &mut random), &mut random);
    }
    text
}

fn wish(instance: &Instance, random: &mut ChaCha8Rng) -> Wish {
    let mut draw: f64 = random.random();
    for (wish, share) in instance.wishes {
        if draw < *share {
            return *wish;
        }
        draw -= share;
    }
    Wish::Nothing
}

fn deployment(text: &mut String, number: u32, replicas: u32, wish: Wish, random: &mut ChaCha8Rng) {
    let app = format!("app-{number:03}");
    let cpu = CPU[random.random_range(0..CPU.len())];
    // Between half a GiB and eight for each vCPU, in steps of 64 MiB.
    let per_cpu = [1_u32, 2, 2, 4, 4, 4, 8, 16][random.random_range(0..8_usize)];
    let memory = (cpu * per_cpu * 512 / 1_000 * random.random_range(75..126_u32) / 100).div_ceil(64).max(1) * 64;
    let selector = format!("{{matchLabels: {{app: {app}}}}}");
    let host_term = format!("{{topologyKey: kubernetes.io/hostname, labelSelector: {selector}}}");
    let mut gpu = String::new();
    let spec = match wish {
        Wish::Nothing => String::new(),
        Wish::ZoneSpread => format!(
            "topologySpreadConstraints: [{{topologyKey: topology.kubernetes.io/zone, maxSkew: 1, whenUnsatisfiable: DoNotSchedule, labelSelector: {selector}}}], "
        ),
        Wish::HostAntiAffinity => format!(
            "affinity: {{podAntiAffinity: {{requiredDuringSchedulingIgnoredDuringExecution: [{host_term}]}}}}, "
        ),
        Wish::PreferredHostAntiAffinity => format!(
            "affinity: {{podAntiAffinity: {{preferredDuringSchedulingIgnoredDuringExecution: [{{weight: 1, podAffinityTerm: {host_term}}}]}}}}, "
        ),
        Wish::Zone => {
            format!("nodeSelector: {{topology.kubernetes.io/zone: {}}}, ", ZONES[random.random_range(0..3_usize)])
        }
        Wish::Arm => "nodeSelector: {kubernetes.io/arch: arm64}, ".to_owned(),
        Wish::Gpu => {
            let gpus = [1, 1, 1, 1, 2, 4][random.random_range(0..6_usize)];
            gpu = format!(", limits: {{nvidia.com/gpu: {gpus}}}");
            "tolerations: [{key: nvidia.com/gpu, operator: Exists}], ".to_owned()
        }
    };
    let _ = writeln!(
        text,
        "---\n{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: {app}}}, spec: {{replicas: {replicas}, selector: {selector}, template: {{metadata: {{labels: {{app: {app}}}}}, spec: {{{spec}containers: [{{name: app, resources: {{requests: {{cpu: {cpu}m, memory: {memory}Mi}}{gpu}}}}}]}}}}}}}}"
    );
}
