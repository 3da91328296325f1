//! The simulated EC2.

use super::Value::{Duration, Either, File, Free, Integer, List, Map, Number, Scalar, Share, Text, Truth, Words};
use super::billing;

section! {
    EC2: "`ec2`", "`ec2`: the simulated EC2";
    "What is not stated is as on an account of some size. Every default here is an assumption; [fidelity.md](fidelity.md) says what is \
     simplified.";
    "ec2:
  launch_latency: { vm_init: 11s, os_boot: 6s, bootstrap: 11s, register: 2s, cni_ready: 6s, spread: true }
  capacity: updown
  spot:
    prices: replay
    file: prices.csv
    availability: availability.csv
    interruptions: { exposure: 72h, stress: 2, size_factor: true }
  quotas: { standard: 5000, graphics: 64, parallel: 0, f: 0, inf: 0, x: 0, dl: 0, trn: 0, hpc: 0, high_memory: 0, other: 0 }
  api:
    calls: { size: 50, per_second: 5 }
    instances: { size: 1000, per_second: 2 }
    run_calls: { size: 5, per_second: 2 }
    terminate_calls: { size: 100, per_second: 5 }
    terminated_instances: { size: 1000, per_second: 20 }
    describe: { size: 100, per_second: 20 }
    group_reads: { size: 100, per_second: 10 }
    group_writes: { size: 20, per_second: 5 }
    fleet_uses_run_resource_bucket: true
    consistency: eventual
  failures: { abort: 0.05%, never_registers: 0.1%, internal_error: 0.02% }
  network:
    subnets: [{ zone: us-east-1a, cidr: 10.0.32.0/20, in_use: 120 }]
    prefix_delegation: true
  capacity_reservations:
    - { id: cr-1, type: m5.large, zone: us-east-1a, count: 4, match: targeted, tags: { team: shop }, at: 1h, until: 20h }
";
    {
        "launch_latency" otherwise("by each node's own machine images"):
            Either(&Words(&["al2", "al2023", "bottlerocket", "windows"]), &Map(&LAUNCH_LATENCY)),
            "How long a node takes from EC2's answer to Ready: as with these machine images, or stage by stage.";
        "spot" otherwise("the defaults of its keys"): Map(&SPOT), "The Spot market.";
        "capacity" default("static"): Words(&["infinite", "static", "updown"]),
            "How much there is: whatever is asked for; a fixed number in each Spot pool; or pools that come and go as in recorded \
             availability of 2022 and 2023.";
        "quotas" otherwise("100,000 standard, 0 of P, 1,000 of each other"): Map(&QUOTAS),
            "Limits on vCPUs in use, On-Demand and Spot each.";
        "api" otherwise("EC2's documented ones"): Either(&Words(&["unlimited"]), &Map(&API)), "Limits on calls, and how consistent reads are.";
        "failures" otherwise("the defaults of its keys"): Either(&Words(&["none"]), &Map(&FAILURES)), "How often a launch goes wrong by itself.";
        "network" otherwise("addresses do not run out"): Map(&NETWORK), "The subnets of the nodes.";
        "capacity_reservations" otherwise("none"): List(&Map(&RESERVATION)), "On-Demand Capacity Reservations.";
        "billing" otherwise("list prices"): Map(&billing::BILLING), "How the bill is worked out.";
    }
}

section! {
    LAUNCH_LATENCY: "`launch_latency`", "`ec2.launch_latency`: stages of a boot";
    "Medians; those left out are of Amazon Linux 2023.";
    "";
    {
        "vm_init" default("11s"): Duration, "Request accepted to the machine being up.";
        "os_boot" default("6s"): Duration, "To the network being up.";
        "bootstrap" default("11s"): Duration, "User data, container runtime, start of the kubelet.";
        "register" default("2s"): Duration, "Kubelet started to node registered.";
        "cni_ready" default("6s"): Duration, "Registered to the network plugin being ready.";
        "spread" default("true"): Truth, "Whether each boot is drawn around the medians, or takes just these.";
    }
}

section! {
    SPOT: "`spot`", "`ec2.spot`: the Spot market";
    "";
    "";
    {
        "prices" default("process"): Words(&["process", "constant", "replay"]),
            "How prices move: by a seeded process around the level of the price data; not at all; or as recorded in `file`.";
        "file" otherwise("required for `replay`"): File, "Recorded prices: a CSV file with the columns `instance_type`, `zone`, `time`, `price`.";
        "availability" otherwise("none"): File,
            "Recorded availability, which takes the place of capacity and interruptions for the pools that it names: a CSV file with \
             the columns `instance_type`, `zone`, `offset_s`, `available`.";
        "interruptions" default("central"): Either(&Words(&["none", "low", "central", "advisor", "high"]), &Map(&INTERRUPTIONS)),
            "How often EC2 reclaims instances of its own accord, by the Spot Advisor's bands. `advisor` is another word for `central`.";
    }
}

section! {
    INTERRUPTIONS: "`interruptions`", "`ec2.spot.interruptions`";
    "AWS publishes how many instances are interrupted, not how long they were exposed; `low` assumes 730h, `central` 72h, `high` 24h.";
    "";
    {
        "exposure" default("72h"): Duration, "How long the instances behind the Advisor's figures were held, at least 1h.";
        "stress" default("1"): Number(0.0, 100.0), "Multiplies the rate.";
        "size_factor" default("true"): Truth, "Whether types of more than 16 vCPUs are interrupted more often.";
    }
}

section! {
    QUOTAS: "`quotas`", "`ec2.quotas`";
    "vCPUs by class of instance types.";
    "";
    {
        "standard" default("100000"): Integer(0, 100_000_000), "Families A, C, D, H, I, M, R, T, Z.";
        "graphics" default("1000"): Integer(0, 100_000_000), "Families G and VT.";
        "parallel" default("0"): Integer(0, 100_000_000), "Family P, which has to be asked for.";
        "f" default("1000"): Integer(0, 100_000_000), "Family F.";
        "inf" default("1000"): Integer(0, 100_000_000), "Family Inf.";
        "x" default("1000"): Integer(0, 100_000_000), "Family X.";
        "dl" default("1000"): Integer(0, 100_000_000), "Family DL.";
        "trn" default("1000"): Integer(0, 100_000_000), "Family Trn.";
        "hpc" default("1000"): Integer(0, 100_000_000), "Family HPC.";
        "high_memory" default("1000"): Integer(0, 100_000_000), "Family U.";
        "other" default("1000"): Integer(0, 100_000_000), "Everything else.";
    }
}

section! {
    API: "`api`", "`ec2.api`: limits on calls";
    "Token buckets, full at the start.";
    "";
    {
        "calls" default("{ size: 50, per_second: 5 }"): Map(&BUCKET), "CreateFleet calls.";
        "instances" default("{ size: 1000, per_second: 2 }"): Map(&BUCKET), "Instances asked for.";
        "run_calls" default("{ size: 5, per_second: 2 }"): Map(&BUCKET), "RunInstances calls.";
        "terminate_calls" default("{ size: 100, per_second: 5 }"): Map(&BUCKET), "TerminateInstances calls.";
        "terminated_instances" default("{ size: 1000, per_second: 20 }"): Map(&BUCKET), "Instances to terminate.";
        "describe" default("{ size: 100, per_second: 20 }"): Map(&BUCKET), "Calls that only read.";
        "group_reads" default("{ size: 100, per_second: 10 }"): Map(&BUCKET), "Calls that read Auto Scaling groups.";
        "group_writes" default("{ size: 20, per_second: 5 }"): Map(&BUCKET), "Calls that change them.";
        "fleet_uses_run_resource_bucket" default("true"): Truth, "Whether fleets draw on `instances` as RunInstances does.";
        "consistency" default("eventual"): Words(&["eventual", "strong"]), "Whether a read may show the state of a moment ago.";
    }
}

section! {
    BUCKET: "a limit on calls", "`ec2.api.calls`, `ec2.api.instances` and so on";
    "";
    "";
    {
        "size" required: Integer(1, 1_000_000), "Tokens that the bucket holds.";
        "per_second" required: Integer(0, 1_000_000), "Tokens that it gains each second.";
    }
}

section! {
    FAILURES: "`failures`", "`ec2.failures`";
    "Probabilities.";
    "";
    {
        "abort" default("0.05%"): Share(100), "EC2 accepts a launch and gives it up before the instance runs.";
        "never_registers" default("0.1%"): Share(100), "The machine runs, but its node never registers.";
        "internal_error" default("0.02%"): Share(100), "EC2 answers a launch call with `InternalError`.";
    }
}

section! {
    NETWORK: "`network`", "`ec2.network`";
    "";
    "";
    {
        "subnets" otherwise("addresses do not run out"): List(&Map(&SUBNET)), "The subnets.";
        "prefix_delegation" default("false"): Truth, "Whether the network plugin takes addresses in prefixes of 16.";
    }
}

section! {
    SUBNET: "a subnet", "`ec2.network.subnets[]`";
    "";
    "";
    {
        "zone" required: Text("zone"), "Its zone.";
        "cidr" required: Text("IPv4 block"), "Its block, from /16 to /28.";
        "in_use" default("0"): Integer(0, 65_536), "Addresses that others use.";
    }
}

section! {
    RESERVATION: "a capacity reservation", "`ec2.capacity_reservations[]`";
    "Paid for, used or not.";
    "";
    {
        "id" otherwise("one is made up"): Text("id"), "Its id, by which NodeClasses may select it.";
        "type" required: Text("instance type"), "Instance type.";
        "zone" required: Text("zone"), "Zone.";
        "count" required: Integer(1, 1_000_000), "Instances that it holds.";
        "match" default("open"): Words(&["open", "targeted"]),
            "Whether matching instances use it by themselves, or only launches that name it.";
        "tags" otherwise("none"): Free("tag", &Scalar), "Its tags.";
        "at" default("0s"): Duration, "When it begins.";
        "until" otherwise("it stays"): Duration, "When it ends; both count from the start of the run.";
    }
}
