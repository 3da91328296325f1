//! The simulated EC2.

use super::billing::BillingKeys;
use super::kind::{File, Moment, Name, Number, Or, Placed, Quantity, Share, Show, Text, Whole, kind, words};
use super::names::{Families, InstanceType, InstanceTypes, Zone};
use crate::cloud::credits::CreditMode;
use crate::cloud::market::traces::Availability;
use crate::cloud::quotas::{QuotaClass, QuotaKey};
use crate::cloud::settings::{
    ApiLimits, BillingSettings, BucketSize, CapacityModel, Failures, Interruptions, Quotas, SpotPrices, Times,
};
use crate::cloud::subnets::{Network, Subnet};
use crate::cloud::{BootStages, CapacityReservation, Consistency};
use crate::definition::Ec2Settings;
use crate::domain::node_pool::AmiFamily;
use crate::domain::{HourlyRate, Labels, SimDuration, SimTime, Symbol};
use crate::file::{account, cloud};

section! {
    /// What is not stated is as on an account of some size. Every default here is an assumption;
    /// [fidelity.md](fidelity.md) says what is simplified.
    EC2: "`ec2`", "`ec2`: the simulated EC2";
    example "ec2:
  launch_latency:
    { vm_init: 11s, os_boot: 6s, bootstrap: 11s, register: 2s, cni_ready: 6s, status: 5s, running: 12s, by_type: true, spread: true }
  times:
    fleet_call: 1s
    fleet_call_median: 1s
    shutdown: 35s
    notice_delivery: 2s
    group_reaction: 6s
    group_in_service: 0s
    group_health_check: 0s
  capacity: updown
  spot:
    prices: replay
    file: prices.csv
    price_errors: drawn
    availability: availability.csv
    interruptions: { exposure: 72h, stress: 2, size_factor: true, bursts: true }
  quotas:
    { standard: 5000, graphics: 64, parallel: 0, f: 0, inf: 0, x: 0, dl: 0, trn: 0, hpc: 0, high_memory: 0, other: 0,
      spot: { standard: 640, graphics: 32, parallel: 96, p5: 192, f: 0, inf: 0, x: 128, dl: 0, trn: 0, hpc: 0, high_memory: 0, other: 0 } }
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
  catalog_error:
    - { family: m5, memory_factor: 0.96 }
    - { family: m5, type: m5.large, memory_amount: -400Mi, pods: 20 }
  failures: { abort: 0.05%, never_registers: 0.1%, internal_error: 0.02% }
  network:
    subnets: [{ zone: us-east-1a, cidr: 10.0.32.0/20, in_use: 120, public: true }]
    prefix_delegation: true
  cpu_credits: standard
  capacity_reservations:
    - { id: cr-1, type: m5.large, zone: us-east-1a, count: 4, match: targeted, tags: { team: shop }, at: 1h, until: 20h }
    - { type: p5.48xlarge, zone: us-east-1a, count: 2, reservation_type: capacity-block, per_hour: 31.464, until: 24h }
";
    becomes Ec2Settings, cloud::settings;
    struct Ec2 {
        /// How long a node takes from EC2's answer to Ready: as with these machine images, or stage by stage.
        launch_latency: Or<MachineImages, BootStages>, or "by each node's own machine images";
        /// How long calls, ends of instances and Auto Scaling groups take, exactly.
        times: Times = Times::default(), or "each is drawn";
        /// The Spot market.
        spot: Spot = SpotMarket::default(), or "the defaults of its keys";
        /// How much there is: whatever is asked for; a fixed number in each Spot pool; or pools that come and go as
        /// in recorded availability of 2022 and 2023.
        capacity: Capacity = CapacityModel::Static;
        /// Limits on vCPUs in use, for On-Demand and Spot each. What capacity reservations hold counts, used or not.
        quotas: Limits = Quotas::default(), or "100,000 standard, 0 of P, 1,000 of each other";
        /// Limits on calls, and how consistent reads are.
        api: Or<Unlimited, ApiLimits> = (ApiLimits::default(), Consistency::default()), or "EC2's documented ones";
        /// How often a launch goes wrong by itself.
        failures: Or<NoFailures, Failures> = Failures::default(), or "the defaults of its keys";
        /// What becomes of burstable instances whose CPU credits are spent: their CPU goes down to the baseline, or they go on at a price.
        cpu_credits: Credits, or "EC2's default: standard for t2, unlimited for the others";
        /// The subnets of the nodes.
        network: Network = Network::default(), or "addresses do not run out";
        /// Where real machines differ from what Karpenter expects of their type.
        catalog_error: Vec<CatalogError>, or "as assumed of all types";
        /// On-Demand Capacity Reservations.
        capacity_reservations: Reservations = Vec::new(), or "none";
        /// How the bill is worked out.
        billing: BillingKeys = BillingSettings::default(), or "list prices";
    }
}

section! {
    /// Medians; those left out are of Amazon Linux 2023.
    LAUNCH_LATENCY: "`launch_latency`", "`ec2.launch_latency`: stages of a boot";
    impl BootStages {
        /// Request accepted to the machine being up.
        vm_init: Seconds = STANDARD.vm_init;
        /// To the network being up.
        os_boot: Seconds = STANDARD.os_boot;
        /// User data, container runtime, start of the kubelet.
        bootstrap: Seconds = STANDARD.bootstrap;
        /// Kubelet started to node registered.
        register: Seconds = STANDARD.register;
        /// Registered to the network plugin being ready.
        cni_ready: Seconds = STANDARD.cni_ready;
        /// To the post of the kubelet's status that says Ready: exactly so long.
        status: Seconds, or "at any time of its period of 10 s, or half of that without `spread`";
        /// Request accepted to `running`, where billing begins; at most until the network is up.
        running: Seconds, or "12 s";
        /// Whether bare metal, GPUs, local disks and Xen make a boot longer.
        by_type: bool = true;
        /// Whether each boot is drawn around the medians, or takes just these.
        "spread" as fixed: Fixed = false;
    }
}

section! {
    /// What is stated takes exactly so long each time, also no time at all; faults still make calls longer.
    TIMES: "`times`", "`ec2.times`: how long the cloud takes";
    impl Times {
        /// From a CreateFleet call to its answer.
        fleet_call: SimDuration, or "drawn around `fleet_call_median`";
        /// The median of these calls where `fleet_call` does not state them exactly.
        fleet_call_median: SimDuration = Times::FLEET_CALL_MEDIAN;
        /// From the end of an instance being asked for to its being gone.
        shutdown: SimDuration, or "drawn, 35 s in the median, 180 s of bare metal";
        /// From the notice of an interruption to Karpenter reading it.
        notice_delivery: SimDuration, or "drawn, 1.5 s in the median";
        /// From a change to an Auto Scaling group acting on it.
        group_reaction: SimDuration, or "drawn, 6 s in the median";
        /// From an instance of a group running to its being in service.
        group_in_service: SimDuration, or "drawn, up to 15 s";
        /// From an instance of a group being gone to a health check finding that.
        group_health_check: SimDuration, or "drawn, up to 60 s";
    }
}

section! {
    SPOT: "`spot`", "`ec2.spot`: the Spot market";
    becomes SpotMarket, cloud::spot;
    struct Spot {
        /// How prices move: by a seeded process around the level of the price data; not at all; or as recorded in
        /// `file`.
        prices: Prices = PriceSource::Process;
        /// Whether the level of prices is off, for each family by a draw from what is known of the error of the price data; the draw of a seed
        /// is the same for all policies.
        price_errors: Errors, or "`drawn` in comparisons and sweeps, `none` in a run";
        /// Recorded prices: a CSV file with the columns `instance_type`, `zone`, `time`, `price`.
        file: Placed<File>, or "required for `replay`";
        /// Recorded availability, which takes the place of capacity and interruptions for the pools that it names: a
        /// CSV file with the columns `instance_type`, `zone`, `offset_s`, `available`.
        availability: Traces = Vec::new(), or "none";
        /// How often EC2 reclaims instances of its own accord, by the Spot Advisor's bands. `advisor` is another word
        /// for `central`.
        interruptions: Or<Bands, Interruptions> = Interruptions::default();
    }
}

section! {
    /// AWS publishes how many instances are interrupted, not how long they were exposed; `low` assumes 730h,
    /// `central` 72h, `high` 24h.
    INTERRUPTIONS: "`interruptions`", "`ec2.spot.interruptions`";
    rest Interruptions::default();
    impl Interruptions {
        /// How long the instances behind the Advisor's figures were held, at least 1h.
        "exposure" as exposure_hours: Exposure = Interruptions::default().exposure_hours;
        /// Multiplies the rate.
        stress: Number<0, 100_000> = Interruptions::default().stress;
        /// Whether types of more than 16 vCPUs are interrupted more often.
        size_factor: bool = Interruptions::default().size_factor;
        /// Whether the reclaims of a pool come in bursts, no more often on average: of the times between two, three in four are half an
        /// hour in the mean and the rest as long as the rate leaves (published availability traces of 2022 and 2023). Changes nothing
        /// where `capacity: updown`, whose pools go in bursts anyway.
        bursts: bool = Interruptions::default().bursts;
    }
}

section! {
    /// vCPUs by class of instance types.
    QUOTAS: "`quotas`", "`ec2.quotas`";
    struct QuotaKeys: {} aside {
        /// Families A, C, D, H, I, M, R, T, Z.
        standard: Vcpus = default_quota(QuotaClass::Standard);
        /// Families G and VT.
        graphics: Vcpus = default_quota(QuotaClass::Graphics);
        /// Family P, which has to be asked for.
        parallel: Vcpus = default_quota(QuotaClass::Parallel);
        /// Family F.
        f: Vcpus = default_quota(QuotaClass::F);
        /// Family Inf.
        inf: Vcpus = default_quota(QuotaClass::Inf);
        /// Family X.
        x: Vcpus = default_quota(QuotaClass::X);
        /// Family DL.
        dl: Vcpus = default_quota(QuotaClass::Dl);
        /// Family Trn.
        trn: Vcpus = default_quota(QuotaClass::Trn);
        /// Family HPC.
        hpc: Vcpus = default_quota(QuotaClass::Hpc);
        /// Family U.
        high_memory: Vcpus = default_quota(QuotaClass::HighMemory);
        /// Everything else.
        other: Vcpus = default_quota(QuotaClass::Other);
        /// Limits for Spot where they differ.
        spot: SpotLimits, or "the limits above";
    }
}

section! {
    /// vCPUs by class of instance types. A class that is not listed has its limit of `quotas`.
    SPOT_QUOTAS: "`spot`", "`ec2.quotas.spot`";
    struct SpotQuotaKeys: {} aside {
        /// Families A, C, D, H, I, M, R, T, Z.
        standard: Vcpus, or "as in `quotas`";
        /// Families G and VT.
        graphics: Vcpus, or "as in `quotas`";
        /// Families P4, P3, and P2.
        parallel: Vcpus, or "as in `quotas`";
        /// Families P5 and later.
        p5: Vcpus, or "`parallel` of `quotas`";
        /// Family F.
        f: Vcpus, or "as in `quotas`";
        /// Family Inf.
        inf: Vcpus, or "as in `quotas`";
        /// Family X.
        x: Vcpus, or "as in `quotas`";
        /// Family DL.
        dl: Vcpus, or "as in `quotas`";
        /// Family Trn.
        trn: Vcpus, or "as in `quotas`";
        /// Family HPC.
        hpc: Vcpus, or "as in `quotas`";
        /// Family U.
        high_memory: Vcpus, or "as in `quotas`";
        /// Everything else.
        other: Vcpus, or "as in `quotas`";
    }
}

section! {
    /// Token buckets, full at the start.
    API: "`api`", "`ec2.api`: limits on calls";
    becomes (ApiLimits, Consistency), cloud::api;
    impl ApiLimits: {
        /// CreateFleet calls.
        "calls" as mutating: BucketSize = ApiLimits::default().mutating;
        /// Instances asked for.
        "instances" as launched_instances: BucketSize = ApiLimits::default().launched_instances;
        /// RunInstances calls.
        run_calls: BucketSize = ApiLimits::default().run_calls;
        /// TerminateInstances calls.
        terminate_calls: BucketSize = ApiLimits::default().terminate_calls;
        /// Instances to terminate.
        terminated_instances: BucketSize = ApiLimits::default().terminated_instances;
        /// Calls that only read.
        describe: BucketSize = ApiLimits::default().describe;
        /// Calls that read Auto Scaling groups.
        group_reads: BucketSize = ApiLimits::default().group_reads;
        /// Calls that change them.
        group_writes: BucketSize = ApiLimits::default().group_writes;
        /// Whether fleets draw on `instances` as RunInstances does.
        fleet_uses_run_resource_bucket: bool = ApiLimits::default().fleet_uses_run_resource_bucket;
    } aside {
        /// Whether a read may show the state of a moment ago.
        consistency: Reads = Consistency::Eventual;
    }
}

section! {
    BUCKET: "a limit on calls", "`ec2.api.calls`, `ec2.api.instances` and so on";
    impl BucketSize {
        /// Tokens that the bucket holds.
        size: Whole<1, 1_000_000>;
        /// Tokens that it gains each second.
        per_second: Whole<0, 1_000_000>;
    }
}

section! {
    /// Probabilities.
    FAILURES: "`failures`", "`ec2.failures`";
    impl Failures {
        /// EC2 accepts a launch and gives it up before the instance runs.
        abort: Share<100> = Failures::default().abort;
        /// The machine runs, but its node never registers.
        never_registers: Share<100> = Failures::default().never_registers;
        /// EC2 answers a launch call with `InternalError`.
        internal_error: Share<100> = Failures::default().internal_error;
    }
}

section! {
    NETWORK: "`network`", "`ec2.network`";
    impl Network {
        /// The subnets.
        subnets: Vec<SubnetKeys> = Vec::new(), or "addresses do not run out";
        /// Whether the network plugin takes addresses in prefixes of 16, as it also says by `ENABLE_PREFIX_DELEGATION` of the DaemonSet `aws-node` or of
        /// eksctl's add-on `vpc-cni`; nodes of managed groups then take up to 110 pods, or 250 from 30 vCPUs on.
        prefix_delegation: bool = false;
    }
}

section! {
    SUBNET: "a subnet", "`ec2.network.subnets[]`";
    becomes Subnet, account::subnet;
    struct SubnetKeys {
        /// Its zone.
        zone["zone"]: Zone;
        /// Its block, from /16 to /28.
        cidr["IPv4 block"]: Block;
        /// Addresses that others use.
        in_use: Whole<0, 65_536> = 0;
        /// Whether its nodes have public addresses, which are billed.
        public: bool = false;
    }
}

section! {
    /// Karpenter packs by its estimate of a type (the memory that EC2's API states, less 7.5 %, unless it has learned of a
    /// node) until the node has registered; kube-scheduler sees what the node reports. What a node reports is assumed
    /// where nothing is stated. Of entries that name the same type the last one counts.
    CATALOG_ERROR: "an entry of `catalog_error`", "`ec2.catalog_error[]`: what real machines hold";
    struct CatalogError {
        /// Of this family.
        family["instance family"]: Families, or "all";
        /// Of this type.
        "type" as instance_type["instance type"]: InstanceTypes, or "all";
        /// The memory that the kubelet reports (`status.capacity`), as a factor of what EC2's API states.
        memory_factor: Number<1, 2_000>, or "1 if `memory_amount` is given, else as assumed";
        /// Bytes more than that, or less: `-300Mi`.
        memory_amount: MoreOrLess, or "0";
        /// Pods that the kubelet accepts.
        pods: Whole<1, 10_000>, or "as the node class or the type has it";
    }
}

section! {
    /// Paid for, used or not.
    RESERVATION: "a capacity reservation", "`ec2.capacity_reservations[]`";
    becomes CapacityReservation, account::reservation;
    impl CapacityReservation {
        /// Its id, by which NodeClasses may select it.
        id["id"]: Name = Symbol::new(""), or "one is made up";
        /// Instance type.
        "type" as instance_type["instance type"]: InstanceType;
        /// Zone.
        zone["zone"]: Zone;
        /// Instances that it holds.
        count: Whole<1, 1_000_000>;
        /// Whether matching instances use it by themselves, or only launches that name it.
        "match" as open: Matching = true;
        /// Its tags.
        tags["tag"]: Labels = Labels::new(), or "none";
        /// When it begins.
        "at" as from: Moment = SimTime::ZERO;
        /// When it ends; both count from the start of the run. A Capacity Block needs it.
        until: Moment, or "it stays";
        /// Whether it is a Capacity Block, which is paid for up front and whose instances EC2 takes back half an hour before it ends; only
        /// launches that name it use it.
        "reservation_type" as block: ReservationType = false;
        /// What a Capacity Block costs by the hour and instance: its price over its time.
        per_hour: HourlyRate, or "the On-Demand price";
    }
}

/// The Spot market: prices, how often EC2 reclaims instances, and recorded availability.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SpotMarket {
    /// How prices move.
    pub prices: SpotPrices,
    /// Whether their level is off by a draw, where that is stated.
    pub price_errors: Option<bool>,
    /// How often EC2 reclaims instances.
    pub interruptions: Interruptions,
    /// Recorded availability.
    pub traces: Vec<Availability>,
}

/// Where prices come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PriceSource {
    /// A seeded process.
    Process,
    /// They do not move.
    Constant,
    /// Records.
    Replay,
}

/// The stages of Amazon Linux 2023.
const STANDARD: BootStages = BootStages::from_family(AmiFamily::AL2023);

words! {
    /// How prices move.
    Prices: PriceSource,
    "process" => PriceSource::Process, "constant" => PriceSource::Constant, "replay" => PriceSource::Replay
}

words! {
    /// How much there is.
    Capacity: CapacityModel,
    "infinite" => CapacityModel::Infinite, "static" => CapacityModel::Static, "updown" => CapacityModel::UpDown
}

words! {
    /// Whose machine images boot.
    MachineImages: BootStages,
    "al2" => BootStages::from_family(AmiFamily::AL2),
    "al2023" => STANDARD,
    "bottlerocket" => BootStages::from_family(AmiFamily::Bottlerocket),
    "windows" => BootStages::from_family(AmiFamily::Windows2022),
}

words! {
    /// How often EC2 reclaims instances.
    Bands: Interruptions,
    "none" => Interruptions { exposure_hours: None, ..Interruptions::CENTRAL },
    "low" => Interruptions { exposure_hours: Some(Interruptions::LOW_HOURS), ..Interruptions::CENTRAL },
    "central" => Interruptions::CENTRAL,
    "advisor" => Interruptions::CENTRAL,
    "high" => Interruptions { exposure_hours: Some(Interruptions::HIGH_HOURS), ..Interruptions::CENTRAL },
}

words! {
    /// Limits that nobody reaches.
    Unlimited: (ApiLimits, Consistency), "unlimited" => (ApiLimits::UNLIMITED, Consistency::Eventual)
}

words! {
    /// How consistent reads are.
    Reads: Consistency, "eventual" => Consistency::Eventual, "strong" => Consistency::Strong
}

words! {
    /// Nothing goes wrong by itself.
    NoFailures: Failures, "none" => Failures::NONE
}

words! {
    /// Who uses a reservation: whether matching instances do by themselves.
    Matching: bool, "open" => true, "targeted" => false
}

words! {
    /// What a capacity reservation is.
    ReservationType: bool, "default" => false, "capacity-block" => true
}

kind! {
    /// A number of bytes, which may be negative.
    MoreOrLess: Quantity => i64, |_, _, _, bytes| Ok(libm::round(bytes) as i64)
}

/// A limit on vCPUs.
type Vcpus = Whole<0, 100_000_000>;

/// The default limit of a class, On-Demand and Spot each.
fn default_quota(class: QuotaClass) -> u32 {
    Quotas::default().limit(QuotaKey { class, spot: false })
}

kind! {
    /// Limits on vCPUs by class; of a class that is not named the default.
    Limits: QuotaKeys => Quotas, |reading, node, _, _| {
        let fields = reading.reader.fields(node, &QUOTAS.shape)?;
        let mut quotas = Quotas::default();
        for class in QuotaClass::ALL.into_iter().filter(|class| *class != QuotaClass::P5) {
            if let Some(limit) = fields.get(class.as_str()) {
                quotas = quotas.with(class, Vcpus::read(reading, limit, class.as_str())?);
            }
        }
        let spot = fields.get("spot").map(|spot| SpotLimits::read(reading, spot, "spot")).transpose()?;
        Ok(spot.into_iter().flatten().fold(quotas, |quotas, (class, vcpus)| quotas.with_spot(class, vcpus)))
    }
}

kind! {
    /// Limits on vCPUs of Spot by class.
    SpotLimits: SpotQuotaKeys => Vec<(QuotaClass, u32)>, |reading, node, _, _| {
        let fields = reading.reader.fields(node, &SPOT_QUOTAS.shape)?;
        let stated = QuotaClass::ALL.into_iter().filter_map(|class| Some((class, fields.get(class.as_str())?)));
        stated.map(|(class, limit)| Ok((class, Vcpus::read(reading, limit, class.as_str())?))).collect()
    }
}

kind! {
    /// A span of time as a number of seconds.
    Seconds: SimDuration => f64, |_, _, _, span| Ok(span.as_secs_f64());
    show |seconds| SimDuration::from_secs_f64(*seconds).to_string()
}

kind! {
    /// Whether something is drawn, as whether it is fixed.
    Fixed: bool => bool, |_, _, _, spread| Ok(!spread);
    show |fixed| (!fixed).to_string()
}

kind! {
    /// How long instances are held, in hours.
    Exposure: SimDuration => Option<f64>, |reading, node, _, exposure| {
        if exposure.as_secs() >= 3_600 {
            return Ok(Some(exposure.as_secs_f64() / 3_600.0));
        }
        Err(reading
            .error(node.at, "the exposure is the time for which instances are held, at least an hour")
            .because("too short")
            .help("write `730h` for few, `72h` for the default, `24h` for many interruptions"))
    };
    show |hours| hours.map_or_else(String::new, |hours| format!("{hours}h"))
}

kind! {
    /// A file of recorded availability.
    Traces: File => Vec<Availability>, |reading, node, _, name| {
        let (bytes, shown) = reading.table(node, &name)?;
        crate::file::availability::traces(&bytes, &shown, reading.region())
    }
}

kind! {
    /// The number of addresses of an IPv4 block such as `10.0.32.0/20`.
    Block: Text => u32, |reading, node, _, text| {
        let parts = text.split_once('/').and_then(|(address, bits)| {
            let address: std::net::Ipv4Addr = address.parse().ok()?;
            let bits: u32 = bits.parse().ok()?;
            (16..=28).contains(&bits).then_some((address, bits))
        });
        match parts {
            Some((_, bits)) => Ok(1 << (32 - bits)),
            None => Err(reading
                .error(node.at, format!("`{text}` is not the block of a subnet"))
                .because("not a block from /16 to /28")
                .help("write for example `10.0.32.0/20`")),
        }
    }
}

kind! {
    /// Capacity reservations; one without an id gets one by its position.
    Reservations: Vec<CapacityReservation> => Vec<CapacityReservation>, |reading, node, _, reservations| {
        let mut known: Vec<CapacityReservation> = Vec::new();
        for ((mut one, item), number) in reservations.into_iter().zip(node.items()).zip(1_u32..) {
            if one.id.as_str().is_empty() {
                one.id = Symbol::new(&format!("cr-{number:017x}"));
            }
            let id = one.id;
            if known.iter().any(|other| other.id == id) {
                return Err(reading
                    .error(item.at, format!("there are two capacity reservations `{id}`"))
                    .because("the second of them")
                    .help("give each an `id` of its own"));
            }
            known.push(one);
        }
        Ok(known)
    }
}

impl Show for BucketSize {
    fn show(bucket: &Self) -> String {
        format!("{{ size: {}, per_second: {} }}", bucket.size, bucket.per_second)
    }
}

words! {
    /// What becomes of a burstable instance whose CPU credits are spent.
    Credits: CreditMode, "standard" => CreditMode::Standard, "unlimited" => CreditMode::Unlimited
}

words! {
    /// Whether the level of Spot prices is off by a draw.
    Errors: bool, "drawn" => true, "none" => false
}
