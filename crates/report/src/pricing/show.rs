//! Everything known of one instance type in one region.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{AdvisorFigure, GpuFigure, PriceFigure, SCHEMA_VERSION, gib, saving};
use crate::catalog::{AcceleratorKind, InstanceFacts, PriceQuality, Region, RegionType, ZoneIdBasis};
use crate::columns::printed;
use crate::domain::node_pool::AmiFamily;
use crate::domain::symbol::well_known;
use crate::domain::{
    Currency, HourlyRate, KarpenterVersion, NodeClass, NodePool, Requirement, ResourceName, Resources,
};
use crate::figure::{Figure, Unit};
use crate::format::{self, hourly, money};
use crate::summary::{HOURS_PER_MONTH, PROGRAM};
use crate::table::{Cell, Rows};
use nodecast_karpenter::instance_types::{ProviderSettings, instance_types, real_node};

/// Width of the first column.
const LABEL: usize = 22;

/// One instance type: what it is made of, what its nodes offer, what it costs where.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct TypeSheet {
    /// The version of this layout.
    pub schema_version: u32,
    /// The program that wrote it.
    pub program: &'static str,
    /// Its version.
    pub program_version: &'static str,
    /// The region.
    pub region: &'static str,
    /// The currency of every amount.
    pub currency: Currency,
    /// The instance type.
    pub instance_type: &'static str,
    /// What it is made of.
    pub hardware: Hardware,
    /// What its nodes offer to pods.
    pub node: NodeFigures,
    /// The On-Demand price for Linux.
    pub on_demand: Option<PriceFigure>,
    /// The On-Demand price per hour that Karpenter compares, where that is not the one that is billed.
    pub karpenter_per_hour: Option<f64>,
    /// What the Spot Instance Advisor says.
    pub spot_advisor: Option<AdvisorFigure>,
    /// The region's zones, in order of name.
    pub zones: Vec<ZoneFigure>,
}

/// What an instance type is made of.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct Hardware {
    /// vCPUs.
    pub vcpus: u32,
    /// Memory in MiB, as EC2 reports it.
    pub memory_mib: u32,
    /// `amd64` or `arm64`.
    pub arch: &'static str,
    /// Who makes the processor.
    pub cpu_manufacturer: Option<&'static str>,
    /// Sustained clock in MHz.
    pub clock_mhz: Option<u32>,
    /// `nitro` or `xen`; `null` for bare metal.
    pub hypervisor: Option<&'static str>,
    /// Whether it is a whole machine.
    pub bare_metal: bool,
    /// Whether its CPU works on credits.
    pub burstable: bool,
    /// Network bandwidth that can be sustained, in Mbit/s.
    pub network_baseline_mbps: Option<u32>,
    /// Highest network bandwidth in Mbit/s.
    pub network_peak_mbps: Option<u32>,
    /// EBS bandwidth that can be sustained, in Mbit/s.
    pub ebs_baseline_mbps: Option<u32>,
    /// Highest EBS bandwidth in Mbit/s.
    pub ebs_max_mbps: Option<u32>,
    /// Network interfaces of the default network card.
    pub network_interfaces: u32,
    /// IPv4 addresses of each interface.
    pub ipv4_per_interface: u32,
    /// Graphics processors.
    pub gpu: Option<GpuFigure>,
    /// Other accelerators.
    pub accelerator: Option<AcceleratorFigure>,
    /// Local disks together, in GB (10⁹ bytes).
    pub local_storage_gb: u32,
    /// Number of local disks.
    pub local_disks: u32,
}

/// Accelerators other than graphics processors.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct AcceleratorFigure {
    /// `neuron`, `inference`, `fpga` or `media`.
    pub kind: &'static str,
    /// Name as EC2 reports it.
    pub name: &'static str,
    /// How many.
    pub count: u32,
}

/// What nodes of a type offer to pods, with the default kubelet settings and the image family named.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct NodeFigures {
    /// The image family assumed.
    #[schemars(with = "String")]
    pub ami_family: AmiFamily,
    /// The Karpenter release asked about.
    pub karpenter_version: String,
    /// What that release expects of a node before there is one; `null` if it never launches the type.
    pub karpenter: Option<ResourceFigures>,
    /// What the kubelet of a real node reports, by which kube-scheduler places pods.
    pub real: ResourceFigures,
}

/// Resources that a node offers to pods.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ResourceFigures {
    /// CPU in thousandths.
    pub cpu_milli: i64,
    /// Memory in bytes.
    pub memory_bytes: i64,
    /// Disk in bytes.
    pub ephemeral_storage_bytes: i64,
    /// Pods.
    pub pods: i64,
    /// Devices, by the name that pods request.
    pub devices: BTreeMap<&'static str, i64>,
}

/// A zone of the region.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct ZoneFigure {
    /// Name.
    pub zone: &'static str,
    /// Zone id.
    pub zone_id: &'static str,
    /// How the pairing of name and id is known.
    pub zone_id_basis: &'static str,
    /// Whether it offers the type.
    pub offered: bool,
    /// The Spot price.
    pub spot: Option<PriceFigure>,
    /// What Spot saves against On-Demand, as a share.
    pub saving_share: Option<f64>,
}

impl TypeSheet {
    /// What is known of `entry` in `region`, for nodes that the Karpenter release `version` launches.
    pub fn new(region: &Region, entry: &RegionType, version: KarpenterVersion) -> Self {
        let zones = region.zones.iter().enumerate().map(|(at, zone)| {
            let spot = entry.spot(at);
            let rates = spot.zip(entry.on_demand);
            ZoneFigure {
                zone: zone.name.as_str(),
                zone_id: zone.id.as_str(),
                zone_id_basis: match zone.id_basis {
                    ZoneIdBasis::MatchedByOfferings => "matched_by_offerings",
                    ZoneIdBasis::Listed => "listed",
                    ZoneIdBasis::Assigned => "assigned",
                    ZoneIdBasis::Assumed => "assumed",
                },
                offered: entry.offered_in(at),
                spot: spot.map(PriceFigure::from),
                saving_share: rates.and_then(|(spot, on_demand)| saving(spot.rate, on_demand.rate)),
            }
        });
        Self {
            schema_version: SCHEMA_VERSION,
            program: PROGRAM,
            program_version: env!("CARGO_PKG_VERSION"),
            region: region.name.as_str(),
            currency: region.currency,
            instance_type: entry.facts.name.as_str(),
            hardware: hardware(&entry.facts),
            node: node(region, entry, version),
            on_demand: entry.on_demand.map(PriceFigure::from),
            karpenter_per_hour: entry
                .karpenter_price()
                .filter(|_| entry.is_compared_otherwise())
                .map(HourlyRate::as_f64),
            spot_advisor: entry.advisor.map(AdvisorFigure::from),
            zones: zones.collect(),
        }
    }

    /// The sheet as JSON.
    ///
    /// # Errors
    /// Never for a sheet made by [`new`](Self::new): its keys are strings and its numbers finite.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }

    /// The type with its prices in one line.
    fn headline(&self) -> String {
        let amount = |price: &PriceFigure| {
            Figure::new(price.per_hour, Unit::PerHour(self.currency)).estimated(!price.quality.is_fact()).text()
        };
        let spot = self.zones.iter().filter_map(|zone| zone.spot.as_ref());
        let spot = spot.min_by(|one, other| one.per_hour.total_cmp(&other.per_hour));
        let prices = [
            self.on_demand.as_ref().map(|price| format!("On-Demand {}/h", amount(price))),
            spot.map(|price| format!("Spot from {}/h", amount(price))),
        ];
        let prices: Vec<String> = prices.into_iter().flatten().collect();
        let prices = if prices.is_empty() { "no price".to_owned() } else { prices.join(", ") };
        format!("{} in {}: {prices} (Linux, shared tenancy)", self.instance_type, self.region)
    }

    /// The sheet for people, with columns below one another where lines have no more than `width` characters.
    pub fn table(&self, width: Option<usize>) -> String {
        let mut lines = vec![self.headline(), String::new()];
        self.hardware_lines(&mut lines);
        lines.push(String::new());
        self.node_lines(width, &mut lines);
        lines.push(String::new());
        self.price_lines(&mut lines);
        lines.push(String::new());
        lines.extend(self.zone_lines(width));
        let prices = || self.on_demand.iter().chain(self.zones.iter().filter_map(|zone| zone.spot.as_ref()));
        let legend = PriceQuality::legend(|quality| prices().any(|price| price.quality == quality));
        if !legend.is_empty() {
            lines.push(String::new());
            lines.extend(legend);
        }
        printed(&lines, width)
    }

    fn hardware_lines(&self, lines: &mut Vec<String>) {
        let hardware = &self.hardware;
        let mut line = |label: &str, text: String| lines.push(format!("{label:<LABEL$}{text}"));
        let mut processor = vec![hardware.arch.to_owned()];
        processor.extend(hardware.cpu_manufacturer.map(str::to_owned));
        processor.extend(hardware.clock_mhz.map(|mhz| format!("{} GHz", f64::from(mhz) / 1_000.0)));
        processor.push(
            hardware
                .hypervisor
                .unwrap_or(if hardware.bare_metal { "bare metal" } else { "no hypervisor known" })
                .to_owned(),
        );
        if hardware.burstable {
            processor.push("burstable".to_owned());
        }
        line("vCPU", format!("{} ({})", hardware.vcpus, processor.join(", ")));
        line("memory", gib(hardware.memory_mib));
        if let Some(gpu) = &hardware.gpu {
            line("GPU", format!("{}, {} each", gpu.in_words(), gib(gpu.memory_mib_each)));
        }
        if let Some(device) = &hardware.accelerator {
            line("accelerator", format!("{} x {} ({})", device.count, device.name, device.kind));
        }
        if hardware.local_storage_gb > 0 {
            let disks = format::counted(u64::from(hardware.local_disks), "disk", "disks");
            line("local storage", format!("{} GB on {disks}", format::count(u64::from(hardware.local_storage_gb))));
        }
        line("network", bandwidth(hardware.network_baseline_mbps, hardware.network_peak_mbps));
        line("EBS", bandwidth(hardware.ebs_baseline_mbps, hardware.ebs_max_mbps));
        line(
            "network interfaces",
            match hardware.network_interfaces {
                0 => "unknown".to_owned(),
                count => format!("{count} with {} IPv4 addresses each", hardware.ipv4_per_interface),
            },
        );
    }

    fn node_lines(&self, width: Option<usize>, lines: &mut Vec<String>) {
        let node = &self.node;
        let mut rows = Vec::new();
        let mut row = |label: &str, figure: &dyn Fn(&ResourceFigures) -> Option<String>| {
            rows.push((format!("  {label}"), node.karpenter.as_ref().and_then(figure), figure(&node.real)));
        };
        row("CPU", &|resources| Some(format!("{}m", resources.cpu_milli)));
        row("memory", &|resources| Some(mib(resources.memory_bytes)));
        row("disk", &|resources| Some(mib(resources.ephemeral_storage_bytes)));
        row("pods", &|resources| Some(resources.pods.to_string()));
        let names = node
            .karpenter
            .iter()
            .chain([&node.real])
            .flat_map(|resource_figures| resource_figures.devices.keys().copied());
        for name in names.collect::<std::collections::BTreeSet<_>>() {
            row(name, &|resources| resources.devices.get(name).map(i64::to_string));
        }
        let table = Rows::new(rows)
            .text("allocatable per node", |row| row.0.clone())
            .number(format!("Karpenter {} estimates", node.karpenter_version), |row| row.1.clone())
            .number("actual node", |row| row.2.clone())
            .widths(&[LABEL]);
        lines.extend(table.table().lines(width));
        lines.push(format!("  (image {:?}, default kubelet settings)", node.ami_family));
        if node.karpenter.is_none() {
            let refusal = format!("does not launch this type with {:?} images", node.ami_family);
            lines.push(format!("  Karpenter {} {refusal}", node.karpenter_version));
        }
    }

    fn price_lines(&self, lines: &mut Vec<String>) {
        let currency = self.currency;
        let on_demand = self.on_demand.as_ref().map_or_else(
            || "no price known".to_owned(),
            |price| {
                let month = money(currency.code(), price.per_hour * HOURS_PER_MONTH);
                let hour = hourly(currency, price.per_hour);
                let known = format!("{}, {}", price.quality.as_str(), price.as_of);
                format!("{hour} per hour, {month} per month of 730 h ({known})")
            },
        );
        lines.push(format!("{:<LABEL$}{on_demand}", format!("On-Demand ({})", currency.code())));
        if let Some(compared) = self.karpenter_per_hour {
            let why = "dedicated-tenancy price, which Karpenter uses for bare-metal types";
            lines.push(format!("{:<LABEL$}{} per hour: {why}", "Karpenter compares", hourly(currency, compared)));
        }
        let interrupted = self.spot_advisor.as_ref().map_or_else(
            || "unknown (not listed by Spot Advisor)".to_owned(),
            |spot_advisor| {
                let saving = format!("average saving {}%", spot_advisor.savings_percent);
                format!("{} of Spot instances per 30 days (Spot Advisor; {saving})", spot_advisor.interrupted)
            },
        );
        lines.push(format!("{:<LABEL$}{interrupted}", "interrupted"));
    }

    fn zone_lines(&self, width: Option<usize>) -> Vec<String> {
        let price = |zone: &ZoneFigure| match &zone.spot {
            Some(spot) => Cell::from(Figure::new(spot.per_hour, Unit::PerHour(self.currency))),
            None => Cell::from(if zone.offered { "no Spot" } else { "not offered" }),
        };
        let known = |zone: &ZoneFigure, date: bool| {
            zone.spot.as_ref().map(|spot| if date { spot.as_of } else { spot.quality.as_str() })
        };
        Rows::new(&self.zones)
            .text("zone", |zone| zone.zone)
            .text("zone id", |zone| zone.zone_id)
            .number("Spot per hour", |zone| price(zone))
            .number("saving", |zone| zone.saving_share.map(Figure::share))
            .text("source", |zone| known(zone, false))
            .text("date", |zone| known(zone, true))
            .missing("")
            .table()
            .lines(width)
    }
}

fn hardware(facts: &InstanceFacts) -> Hardware {
    Hardware {
        vcpus: facts.vcpus,
        memory_mib: facts.memory_mib,
        arch: facts.arch.as_str(),
        cpu_manufacturer: facts.cpu_manufacturer.map(|maker| maker.as_str()),
        clock_mhz: facts.clock_mhz,
        hypervisor: facts.hypervisor.map(|hypervisor| hypervisor.as_str()),
        bare_metal: facts.bare_metal,
        burstable: facts.burstable,
        network_baseline_mbps: facts.network_baseline_mbps,
        network_peak_mbps: facts.network_peak_mbps,
        ebs_baseline_mbps: facts.ebs_baseline_mbps,
        ebs_max_mbps: facts.ebs_max_mbps,
        network_interfaces: facts.enis,
        ipv4_per_interface: facts.ipv4_per_eni,
        gpu: facts.gpu.map(GpuFigure::from),
        accelerator: facts.accelerator.map(|device| AcceleratorFigure {
            kind: match device.kind {
                AcceleratorKind::Neuron => "neuron",
                AcceleratorKind::Inference => "inference",
                AcceleratorKind::Fpga => "fpga",
                AcceleratorKind::Media => "media",
            },
            name: device.name.as_str(),
            count: device.count,
        }),
        local_storage_gb: facts.local_storage_gb,
        local_disks: facts.local_disks,
    }
}

/// What nodes of the type offer, launched for a NodePool that asks for just this type with the image that the release
/// uses by default.
fn node(region: &Region, entry: &RegionType, version: KarpenterVersion) -> NodeFigures {
    let ami_family = if version.is_since(0, 35) { AmiFamily::AL2023 } else { AmiFamily::AL2 };
    let class = NodeClass { ami_family, ..NodeClass::named(well_known::DEFAULT) };
    let mut pool = NodePool::named(well_known::DEFAULT);
    pool.requirements.push(Requirement::equals(well_known::INSTANCE_TYPE, entry.facts.name));
    let types = instance_types(region, &class, &pool, ProviderSettings::for_version(version));
    let expected = types.iter().find(|kind| kind.name == entry.facts.name && !kind.offerings.is_empty());
    NodeFigures {
        ami_family,
        karpenter_version: version.to_string(),
        karpenter: expected.map(|expected| resources(&expected.allocatable)),
        real: resources(&real_node(&entry.facts, &class, &class.kubelet).allocatable),
    }
}

fn resources(amounts: &Resources) -> ResourceFigures {
    const PLAIN: [ResourceName; 4] =
        [ResourceName::CPU, ResourceName::MEMORY, ResourceName::EPHEMERAL_STORAGE, ResourceName::PODS];
    let devices = amounts.iter().filter(|(name, _)| !PLAIN.contains(name));
    ResourceFigures {
        cpu_milli: amounts.cpu_milli(),
        memory_bytes: amounts.memory_bytes(),
        ephemeral_storage_bytes: amounts.get(ResourceName::EPHEMERAL_STORAGE),
        pods: amounts.pods(),
        devices: devices.map(|(name, amount)| (name.0.as_str(), amount)).collect(),
    }
}

/// Whole MiB, rounded down.
fn mib(bytes: i64) -> String {
    format!("{} MiB", format::whole((bytes >> 20) as f64))
}

/// Bandwidth for people: `1.876 Gbit/s, at most 12.5 Gbit/s`.
fn bandwidth(baseline_mbps: Option<u32>, peak_mbps: Option<u32>) -> String {
    let gbit = |mbps: u32| format!("{} Gbit/s", f64::from(mbps) / 1_000.0);
    match (baseline_mbps, peak_mbps) {
        (Some(baseline), Some(peak)) if baseline < peak => {
            format!("{} sustained, {} at most", gbit(baseline), gbit(peak))
        }
        (Some(both), _) => gbit(both),
        (None, Some(peak)) => format!("{} at most", gbit(peak)),
        (None, None) => "unknown".to_owned(),
    }
}
