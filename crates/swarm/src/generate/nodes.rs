//! What launches nodes: Karpenter in several releases, the Cluster Autoscaler, fixed groups; and the nodes for the system.

use super::{Draft, Fleet};
use crate::case::{Part, Section};

const CLASS: &str = "apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: { name: default }
spec: { amiSelectorTerms: [{ alias: al2023@latest }], role: node }
";

/// Releases, and the part that launches nodes.
pub fn launcher(draft: &mut Draft) -> (String, Part) {
    match draft.random.between(1, 11) {
        1..=6 => karpenter(draft),
        7 => provisioner(draft),
        8 => auto_mode(draft),
        9..=10 => groups(draft, true),
        _ => groups(draft, false),
    }
}

fn families(draft: &mut Draft) -> &'static str {
    draft.random.pick(&["[m5, m6i]", "[c5, m5, r5]", "[c6i, m6i, r6i, m6a]", "[m5, t3]", "[c7g, m7g, m6i]"])
}

fn karpenter(draft: &mut Draft) -> (String, Part) {
    let release = draft.random.pick(&["v1.0", "v1.3", "v1.6", "v1.8", "v1.11", "v1.13", "v1.14"]);
    let kubernetes = draft.random.pick(&["1.31", "1.33", "1.36"]);
    let capacity = draft.random.pick(&["[on-demand]", "[spot, on-demand]", "[spot]"]);
    let policy = draft.random.pick(&["WhenEmptyOrUnderutilized", "WhenEmpty"]);
    let after = draft.random.pick(&["0s", "30s", "2m"]);
    let expire = draft.random.pick(&["720h", "Never", "1h"]);
    let budget = draft.random.happens(40).then(|| draft.random.between(1, 3));
    draft.node_budget = budget;
    let budgets = budget.map_or(String::new(), |nodes| format!(", budgets: [{{ nodes: \"{nodes}\" }}]"));
    let families = families(draft);
    let pool = format!(
        "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{ name: default }}
spec:
  template:
    spec:
      nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }}
      expireAfter: {expire}
      requirements:
        - {{ key: karpenter.sh/capacity-type, operator: In, values: {capacity} }}
        - {{ key: karpenter.k8s.aws/instance-family, operator: In, values: {families} }}
        - {{ key: kubernetes.io/arch, operator: In, values: [amd64, arm64] }}
  disruption: {{ consolidationPolicy: {policy}, consolidateAfter: {after}{budgets} }}
---
{CLASS}"
    );
    // Of each choice of families one type of four vCPUs and 16 GiB.
    let machine = match families.contains("m7g") {
        true => ("m7g.xlarge", "arm64"),
        false if families.contains("m5") => ("m5.xlarge", "amd64"),
        false => ("m6i.xlarge", "amd64"),
    };
    draft.fleet = Some(Fleet {
        label: ("karpenter.sh/nodepool", "default"),
        machine,
        capacity: if capacity == "[on-demand]" {
            "karpenter.sh/capacity-type: on-demand"
        } else {
            "karpenter.sh/capacity-type: spot"
        },
        pool: Some(pool.clone()),
        is_scaled: true,
    });
    let name = format!("karpenter {release} {capacity} {policy} {after} {expire}");
    let texts = vec![(Section::Policy, "autoscaler: karpenter\n".to_owned()), (Section::Manifests, pool)];
    let part = Part::new(name, texts);
    // Spot alone may be sold out.
    let part = if capacity == "[spot]" { part.holding_up() } else { part };
    (format!("kubernetes: \"{kubernetes}\", karpenter: {release}"), part)
}

fn auto_mode(draft: &mut Draft) -> (String, Part) {
    let kubernetes = draft.random.pick(&["1.31", "1.33", "1.36"]);
    // Its own pool consolidates; a second one of the user's may have the same nodes for less.
    let spot = draft.random.happens(50);
    let pool = "apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: cheap }
spec:
  weight: 10
  template:
    spec:
      nodeClassRef: { group: eks.amazonaws.com, kind: NodeClass, name: default }
      requirements:
        - { key: karpenter.sh/capacity-type, operator: In, values: [spot, on-demand] }
        - { key: eks.amazonaws.com/instance-category, operator: In, values: [c, m, r] }
  disruption: { consolidationPolicy: WhenEmpty, consolidateAfter: 1m }
";
    let mut texts = vec![(Section::Policy, "autoscaler: eks-auto-mode\n".to_owned())];
    texts.extend(spot.then(|| (Section::Manifests, pool.to_owned())));
    (format!("kubernetes: \"{kubernetes}\""), Part::new(format!("auto mode, own pool: {spot}"), texts))
}

fn provisioner(draft: &mut Draft) -> (String, Part) {
    let release = draft.random.pick(&["v0.18.1", "v0.22.1", "v0.27.5"]);
    let empty = draft.random.happens(50);
    let removal = if empty { "ttlSecondsAfterEmpty: 30" } else { "consolidation: { enabled: true }" };
    let text = format!(
        "apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {{ name: default }}
spec:
  providerRef: {{ name: default }}
  {removal}
  requirements:
    - {{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }}
    - {{ key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, c5] }}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {{ name: default }}
spec: {{ subnetSelector: {{ a: b }}, securityGroupSelector: {{ a: b }} }}
"
    );
    let texts = vec![(Section::Policy, "autoscaler: karpenter\n".to_owned()), (Section::Manifests, text)];
    (format!("kubernetes: \"1.23\", karpenter: {release}"), Part::new(format!("karpenter {release} {removal}"), texts))
}

fn groups(draft: &mut Draft, scaled: bool) -> (String, Part) {
    let kubernetes = draft.random.pick(&["1.33", "1.36"]);
    let spot = draft.random.happens(40);
    let types = draft.random.pick(&["[m5.xlarge]", "[m5.xlarge, m6i.xlarge, m5a.xlarge]", "[c5.2xlarge, c6i.2xlarge]"]);
    let (most, desired) = if scaled { (40, draft.random.between(0, 3)) } else { (12, 12) };
    let least = if scaled { 0 } else { 12 };
    let text = format!(
        "apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: {{ name: swarm, region: us-east-1 }}
managedNodeGroups:
  - {{ name: a, instanceTypes: {types}, minSize: {least}, desiredCapacity: {desired}, maxSize: {most}, spot: {spot}, iam: {{ withAddonPolicies: {{ autoScaler: true }} }} }}
  - {{ name: b, instanceTypes: [m6i.2xlarge], minSize: {least}, desiredCapacity: {desired}, maxSize: {most}, iam: {{ withAddonPolicies: {{ autoScaler: true }} }} }}
"
    );
    draft.fleet = (types != "[c5.2xlarge, c6i.2xlarge]").then_some(Fleet {
        label: ("eks.amazonaws.com/nodegroup", "a"),
        machine: ("m5.xlarge", "amd64"),
        capacity: if spot {
            "eks.amazonaws.com/capacityType: SPOT"
        } else {
            "eks.amazonaws.com/capacityType: ON_DEMAND"
        },
        pool: None,
        is_scaled: scaled,
    });
    let policy = if scaled {
        let expander = draft.random.pick(&["least-waste", "random", "most-pods"]);
        format!(
            "autoscaler: cluster-autoscaler\nflags: {{ expander: {expander}, scale-down-unneeded-time: 3m, scale-down-delay-after-add: 2m }}\n"
        )
    } else {
        "autoscaler: none\n".to_owned()
    };
    let name = if scaled { "cluster autoscaler" } else { "fixed groups" };
    let part =
        Part::new(format!("{name} {types} spot={spot}"), vec![(Section::Policy, policy), (Section::Manifests, text)]);
    // Groups that nobody scales do not settle, and those of Spot may be sold out; the Cluster Autoscaler keeps nodes that it may not move pods from.
    (format!("kubernetes: \"{kubernetes}\""), part.holding_up())
}
