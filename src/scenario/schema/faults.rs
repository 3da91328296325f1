//! What goes wrong.

use super::Value::{Duration, Integer, Map, Number, Share, Text, Words};

section! {
    FAULT: "a fault", "`faults[]`: what goes wrong";
    "A fault has `at` and one thing that goes wrong. Families and types may hold `*`.";
    "faults:
  - { at: 1h, spot_interruption: { fraction: 30%, family: m5, type: m5.large, zone: us-east-1a, before: 10m } }
  - { at: 1h, spot_interruption: { count: 3 } }
  - { at: 1h, node_failure: { count: 1, node_pool: default, family: m5, type: m5.large, zone: us-east-1a, capacity_type: spot, mode: impaired } }
  - { at: 1h, node_failure: { fraction: 10% } }
  - at: 1h
    for: 30m
    insufficient_capacity: { family: m5, type: \"m5.*\", zone: us-east-1a, capacity_type: spot, probability: 80% }
  - { at: 2h, for: 20m, zone_outage: { zone: us-east-1b, mode: power } }
  - { at: 3h, for: 10m, api_throttle: { size: 2, per_second: 1, action: CreateFleet } }
  - { at: 4h, for: 10m, api_error: { code: Unavailable, probability: 50%, action: RunInstances } }
  - { at: 5h, for: 10m, api_latency: { factor: 5 } }
  - { at: 6h, for: 1h, slow_boot: { factor: 3 } }
  - { at: 7h, for: 1h, boot_failure: { probability: 20% } }
  - { at: 8h, for: 1h, price_shock: { factor: 2.5, family: c5, type: c5.large, zone: us-east-1a } }
  - { at: 9h, for: 1h, subnet_exhausted: { zone: us-east-1a } }
  - { at: 10h, for: 1h, quota: { class: standard, vcpus: 64 } }
  - { at: 11h, for: 1h, lost_notices: { probability: 100% } }
";
    one_of: &[
        "spot_interruption",
        "node_failure",
        "insufficient_capacity",
        "zone_outage",
        "api_throttle",
        "api_error",
        "api_latency",
        "slow_boot",
        "boot_failure",
        "price_shock",
        "subnet_exhausted",
        "quota",
        "lost_notices",
    ];
    {
        "at" required: Duration, "When it begins, counted from the start of the run.";
        "for" otherwise("to the end of the run"): Duration, "How long it lasts; a Spot interruption and a node failure happen at once.";
        "spot_interruption" otherwise("-"): Map(&SPOT_INTERRUPTION), "Running Spot instances are interrupted.";
        "node_failure" otherwise("-"): Map(&NODE_FAILURE), "The hardware of running instances fails.";
        "insufficient_capacity" otherwise("-"): Map(&INSUFFICIENT_CAPACITY), "There is no capacity for new instances.";
        "zone_outage" otherwise("-"): Map(&ZONE_OUTAGE), "A zone is lost.";
        "api_throttle" otherwise("-"): Map(&API_THROTTLE), "Calls are limited.";
        "api_error" otherwise("-"): Map(&API_ERROR), "Calls fail on EC2's side.";
        "api_latency" otherwise("-"): Map(&FACTOR), "Calls take longer.";
        "slow_boot" otherwise("-"): Map(&FACTOR), "Boots take longer.";
        "boot_failure" otherwise("-"): Map(&PROBABILITY), "Machines start, but their nodes never register.";
        "price_shock" otherwise("-"): Map(&PRICE_SHOCK), "Spot prices are multiplied; On-Demand stays the limit.";
        "subnet_exhausted" otherwise("-"): Map(&SUBNET_EXHAUSTED), "Subnets have no address left.";
        "quota" otherwise("-"): Map(&QUOTA), "A vCPU quota is another.";
        "lost_notices" otherwise("-"): Map(&PROBABILITY), "Interruption notices get lost on the way to the autoscaler's queue.";
    }
}

section! {
    SPOT_INTERRUPTION: "`spot_interruption`", "`faults[].spot_interruption`";
    "";
    "";
    one_of: &["fraction", "count"];
    {
        "fraction" otherwise("-"): Share(100), "The share of the instances that is struck.";
        "count" otherwise("-"): Integer(0, 1_000_000), "How many are struck.";
        "family" otherwise("all"): Text("instance family"), "Of this family.";
        "type" otherwise("all"): Text("instance type"), "Of this type.";
        "zone" otherwise("all"): Text("zone"), "In this zone.";
        "before" default("2m"): Duration,
            "From the rebalance recommendation to the interruption, 2m to 15m; the notice comes two minutes before the latter.";
    }
}

section! {
    NODE_FAILURE: "`node_failure`", "`faults[].node_failure`";
    "The machines stop serving at once and do not come back. Nobody is told: the node is NotReady when its lease has not been renewed \
     for the grace period, and its pods are evicted when their toleration is over (five minutes unless they say otherwise).";
    "";
    one_of: &["fraction", "count"];
    {
        "fraction" otherwise("-"): Share(100), "The share of the running instances that is struck.";
        "count" otherwise("-"): Integer(0, 1_000_000), "How many are struck.";
        "node_pool" otherwise("all"): Text("NodePool or node group"), "Of this NodePool or node group.";
        "family" otherwise("all"): Text("instance family"), "Of this family.";
        "type" otherwise("all"): Text("instance type"), "Of this type.";
        "zone" otherwise("all"): Text("zone"), "In this zone.";
        "capacity_type" otherwise("both"): Words(&["spot", "on-demand"]), "Of this capacity type.";
        "mode" default("impaired"): Words(&["impaired", "terminated"]),
            "`impaired`: EC2 goes on running and billing the instance, whose status checks fail; its node group, or Karpenter from \
             v1.13 on, ends it. `terminated`: EC2 ends it at once.";
    }
}

section! {
    INSUFFICIENT_CAPACITY: "`insufficient_capacity`", "`faults[].insufficient_capacity`";
    "";
    "";
    {
        "family" otherwise("all"): Text("instance family"), "Of this family.";
        "type" otherwise("all"): Text("instance type"), "Of this type.";
        "zone" otherwise("all"): Text("zone"), "In this zone.";
        "capacity_type" otherwise("both"): Words(&["spot", "on-demand"]), "Of this capacity type.";
        "probability" default("100%"): Share(100), "Probability that a request meets the shortage.";
    }
}

section! {
    ZONE_OUTAGE: "`zone_outage`", "`faults[].zone_outage`";
    "";
    "";
    {
        "zone" required: Text("zone"), "The zone.";
        "mode" default("launch_only"): Words(&["launch_only", "power"]), "Only launches fail, or what runs there is lost too.";
    }
}

section! {
    API_THROTTLE: "`api_throttle`", "`faults[].api_throttle`";
    "";
    "";
    {
        "size" required: Integer(1, 1_000_000), "Tokens that the bucket holds.";
        "per_second" required: Integer(0, 1_000_000), "Tokens that it gains each second.";
        "action" otherwise("all that launch or terminate"):
            Words(&[
                "CreateFleet",
                "RunInstances",
                "TerminateInstances",
                "DescribeInstances",
                "DescribeAutoScalingGroups",
                "SetDesiredCapacity",
            ]),
            "The action.";
    }
}

section! {
    API_ERROR: "`api_error`", "`faults[].api_error`";
    "";
    "";
    {
        "code" default("InternalError"): Words(&["InternalError", "Unavailable"]), "What is answered.";
        "probability" required: Share(100), "Probability for each call.";
        "action" otherwise("all that launch"): Words(&["CreateFleet", "RunInstances"]), "The action.";
    }
}

section! {
    FACTOR: "this fault", "`faults[].api_latency`, `faults[].slow_boot`";
    "";
    "";
    {
        "factor" required: Number(0.1, 100.0), "How many times as long.";
    }
}

section! {
    PROBABILITY: "this fault", "`faults[].boot_failure`, `faults[].lost_notices`";
    "";
    "";
    {
        "probability" required: Share(100), "Probability for each launch, or for each notice.";
    }
}

section! {
    PRICE_SHOCK: "`price_shock`", "`faults[].price_shock`";
    "";
    "";
    {
        "factor" required: Number(0.01, 100.0), "By how much.";
        "family" otherwise("all"): Text("instance family"), "Of this family.";
        "type" otherwise("all"): Text("instance type"), "Of this type.";
        "zone" otherwise("all"): Text("zone"), "In this zone.";
    }
}

section! {
    SUBNET_EXHAUSTED: "`subnet_exhausted`", "`faults[].subnet_exhausted`";
    "";
    "";
    {
        "zone" otherwise("all"): Text("zone"), "In this zone.";
    }
}

section! {
    QUOTA: "`quota`", "`faults[].quota`";
    "";
    "";
    {
        "class" required:
            Words(&["standard", "graphics", "parallel", "f", "inf", "x", "dl", "trn", "hpc", "high_memory", "other"]),
            "The class of instance types.";
        "vcpus" required: Integer(0, 100_000_000), "vCPUs, On-Demand and Spot each.";
    }
}
