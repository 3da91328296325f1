//! What an instance type is made of, the same in every region.

use super::cells::{CellError, Cells};
use crate::domain::Symbol;
use crate::domain::symbol::well_known;

/// The capacity facts of an instance type, as EC2's DescribeInstanceTypes reports them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InstanceFacts {
    /// Name, for example `m5.large`.
    pub name: Symbol,
    /// What stands before the dot: `m5`.
    pub family: Symbol,
    /// What stands after the dot: `large`.
    pub size: Symbol,
    /// The family's leading letters, if its name follows the usual pattern: `m`.
    pub category: Option<Symbol>,
    /// The digits after the leading letters: 5.
    pub generation: Option<u32>,
    /// vCPUs by default.
    pub vcpus: u32,
    /// Memory in MiB, as the API reports it.
    pub memory_mib: u32,
    /// `amd64`, `arm64`, or another text for types that run neither.
    pub arch: Symbol,
    /// `intel`, `amd`, `aws` or `apple`.
    pub cpu_manufacturer: Option<Symbol>,
    /// `nitro` or `xen`; `None` for bare metal.
    pub hypervisor: Option<Symbol>,
    /// Whether it is a whole machine.
    pub bare_metal: bool,
    /// Whether its CPU works on credits.
    pub burstable: bool,
    /// EC2's own flag. Odd in places: m5 and c5 are not current, t2 is.
    pub current_generation: bool,
    /// Whether traffic between instances is encrypted by the hardware.
    pub encryption_in_transit: bool,
    /// Sustained clock in MHz, if reported.
    pub clock_mhz: Option<u32>,
    /// Network bandwidth that can be sustained, in Mbit/s; `None` if unknown.
    pub network_baseline_mbps: Option<u32>,
    /// Highest network bandwidth in Mbit/s; `None` if unknown.
    pub network_peak_mbps: Option<u32>,
    /// EBS bandwidth that can be sustained, in Mbit/s; `None` if it has no dedicated one.
    pub ebs_baseline_mbps: Option<u32>,
    /// Highest EBS bandwidth in Mbit/s; `None` if it has no dedicated one.
    pub ebs_max_mbps: Option<u32>,
    /// Network interfaces of the default network card; 0 if unknown.
    pub enis: u32,
    /// IPv4 addresses of one interface.
    pub ipv4_per_eni: u32,
    /// Branch interfaces for pods; 0 without trunking.
    pub branch_enis: u32,
    /// Elastic Fabric Adapters.
    pub efas: u32,
    /// Graphics processors.
    pub gpu: Option<Gpu>,
    /// Other accelerators.
    pub accelerator: Option<Accelerator>,
    /// Local disks together, in GB (10⁹ bytes).
    pub local_storage_gb: u32,
    /// Number of local disks.
    pub local_disks: u32,
    /// Whether the local disks are NVMe.
    pub local_nvme: bool,
    /// Whether it can be launched as a Spot instance.
    pub spot: bool,
    /// EBS volumes that it can attach, the root volume included, as its CSI driver knows; `None` if it does not.
    pub ebs_volumes: Option<EbsVolumes>,
}

/// How many EBS volumes an instance type can attach, the root volume included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EbsVolumes {
    /// So many volumes, whatever else is attached.
    Alone(u32),
    /// So many volumes and network interfaces beside the first; local disks and accelerators are off it already.
    WithInterfaces(u32),
}

/// The graphics processors of an instance type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gpu {
    /// `nvidia`, `amd` or `habana`.
    pub manufacturer: Symbol,
    /// Name in lower case with dashes, as Karpenter's labels have it.
    pub name: Symbol,
    /// How many.
    pub count: u32,
    /// Memory of each, in MiB.
    pub memory_mib_each: u32,
}

/// Accelerators other than graphics processors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Accelerator {
    /// What they are for.
    pub kind: AcceleratorKind,
    /// Name as the API reports it.
    pub name: Symbol,
    /// How many.
    pub count: u32,
    /// Cores of all together; 0 if not reported.
    pub cores: u32,
}

/// What an accelerator is for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AcceleratorKind {
    /// AWS Inferentia and Trainium.
    Neuron,
    /// Other inference devices.
    Inference,
    /// Field-programmable gate arrays.
    Fpga,
    /// Video transcoders.
    Media,
}

impl InstanceFacts {
    /// A type of which no more is known than its size, for tests and first steps: amd64, current, on Nitro, with four interfaces
    /// of fifteen addresses each.
    pub fn plain(name: &str, vcpus: u32, memory_mib: u32) -> Self {
        let (family, size) = name.split_once('.').unwrap_or((name, ""));
        let (category, generation) = category_and_generation(family);
        Self {
            name: Symbol::new(name),
            family: Symbol::new(family),
            size: Symbol::new(size),
            category: category.map(Symbol::new),
            generation,
            vcpus,
            memory_mib,
            arch: well_known::AMD64,
            cpu_manufacturer: None,
            hypervisor: Some(Symbol::new("nitro")),
            bare_metal: false,
            burstable: false,
            current_generation: true,
            encryption_in_transit: false,
            clock_mhz: None,
            network_baseline_mbps: None,
            network_peak_mbps: None,
            ebs_baseline_mbps: None,
            ebs_max_mbps: None,
            enis: 4,
            ipv4_per_eni: 15,
            branch_enis: 0,
            efas: 0,
            gpu: None,
            accelerator: None,
            local_storage_gb: 0,
            local_disks: 0,
            local_nvme: false,
            spot: true,
            ebs_volumes: None,
        }
    }

    /// The columns of a table of instance types.
    pub const COLUMNS: &[&str] = &[
        "instance_type",
        "vcpus",
        "memory_mib",
        "arch",
        "cpu_manufacturer",
        "hypervisor",
        "bare_metal",
        "burstable",
        "current_generation",
        "encryption_in_transit",
        "clock_mhz",
        "network_baseline_mbps",
        "network_peak_mbps",
        "ebs_baseline_mbps",
        "ebs_max_mbps",
        "enis",
        "ipv4_per_eni",
        "branch_enis",
        "efas",
        "gpu_manufacturer",
        "gpu_name",
        "gpu_count",
        "gpu_memory_mib_each",
        "accelerator_kind",
        "accelerator_name",
        "accelerator_count",
        "accelerator_cores",
        "local_storage_gb",
        "local_disk_count",
        "local_nvme",
        "spot",
        "ebs_volumes",
        "ebs_volumes_alone",
    ];
    /// How many of them, at the end, a table need not have.
    pub const OPTIONAL_COLUMNS: usize = 2;

    /// The facts that one line of a table states; its cells stand in the order of [`COLUMNS`](Self::COLUMNS).
    ///
    /// # Errors
    /// If a cell cannot be understood.
    pub fn from_cells(cells: &mut Cells<'_>) -> Result<Self, CellError> {
        let name = cells.required()?;
        let Some((family, size)) = name.as_str().split_once('.') else {
            return Err(cells.malformed(&format!("`{name}` has no dot")));
        };
        let (category, generation) = category_and_generation(family);
        Ok(Self {
            name,
            family: Symbol::new(family),
            size: Symbol::new(size),
            category: category.map(Symbol::new),
            generation,
            vcpus: positive(cells)?,
            memory_mib: positive(cells)?,
            arch: cells.required()?,
            cpu_manufacturer: cells.symbol(),
            hypervisor: cells.symbol(),
            bare_metal: cells.flag()?,
            burstable: cells.flag()?,
            current_generation: cells.flag()?,
            encryption_in_transit: cells.flag()?,
            clock_mhz: known(cells)?,
            network_baseline_mbps: known(cells)?,
            network_peak_mbps: known(cells)?,
            ebs_baseline_mbps: known(cells)?,
            ebs_max_mbps: known(cells)?,
            enis: cells.count()?,
            ipv4_per_eni: cells.count()?,
            branch_enis: cells.count()?,
            efas: cells.count()?,
            gpu: gpu(cells)?,
            accelerator: accelerator(cells)?,
            local_storage_gb: cells.count()?,
            local_disks: cells.count()?,
            local_nvme: cells.flag()?,
            spot: cells.flag()?,
            ebs_volumes: ebs_volumes(cells)?,
        })
    }
}

fn positive(cells: &mut Cells<'_>) -> Result<u32, CellError> {
    match cells.count()? {
        0 => Err(cells.malformed("is zero or empty")),
        count => Ok(count),
    }
}

fn known(cells: &mut Cells<'_>) -> Result<Option<u32>, CellError> {
    Ok(Some(cells.count()?).filter(|&count| count > 0))
}

fn ebs_volumes(cells: &mut Cells<'_>) -> Result<Option<EbsVolumes>, CellError> {
    let (volumes, alone) = (known(cells)?, cells.flag()?);
    Ok(volumes.map(if alone { EbsVolumes::Alone } else { EbsVolumes::WithInterfaces }))
}

fn gpu(cells: &mut Cells<'_>) -> Result<Option<Gpu>, CellError> {
    let (manufacturer, name, count, memory_mib_each) = (cells.symbol(), cells.symbol(), cells.count()?, cells.count()?);
    Ok(manufacturer.zip(name).map(|(manufacturer, name)| Gpu { manufacturer, name, count, memory_mib_each }))
}

fn accelerator(cells: &mut Cells<'_>) -> Result<Option<Accelerator>, CellError> {
    let kind = match cells.text() {
        "" => None,
        "neuron" => Some(AcceleratorKind::Neuron),
        "inference" => Some(AcceleratorKind::Inference),
        "fpga" => Some(AcceleratorKind::Fpga),
        "media" => Some(AcceleratorKind::Media),
        other => return Err(cells.malformed(&format!("`{other}` is not neuron, inference, fpga or media"))),
    };
    let (name, count, cores) = (cells.symbol(), cells.count()?, cells.count()?);
    Ok(kind.zip(name).map(|(kind, name)| Accelerator { kind, name, count, cores }))
}

/// The leading letters of a family's name and the number after them; between the two a part such as `-6tb` may stand.
///
/// Source: Karpenter's AWS provider v1.13 `pkg/providers/instancetype/types.go`, `instanceTypeScheme`.
fn category_and_generation(family: &str) -> (Option<&str>, Option<u32>) {
    let letters = family.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(family.len());
    let (category, rest) = family.split_at(letters);
    let after_size = rest.strip_prefix('-').and_then(|part| {
        let part = part.trim_start_matches(|c: char| c.is_ascii_digit());
        part.strip_prefix("tb")
    });
    let rest = after_size.unwrap_or(rest);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    match rest[..digits].parse() {
        Ok(generation) if !category.is_empty() => (Some(category), Some(generation)),
        _ => (None, None),
    }
}

#[cfg(test)]
mod tests {
    use super::category_and_generation;

    #[test]
    fn category_and_generation_follow_the_name() {
        assert_eq!(category_and_generation("m5"), (Some("m"), Some(5)));
        assert_eq!(category_and_generation("c6gd"), (Some("c"), Some(6)));
        assert_eq!(category_and_generation("u-6tb1"), (Some("u"), Some(1)));
        assert_eq!(category_and_generation("u7i-12tb"), (Some("u"), Some(7)));
        assert_eq!(category_and_generation("p6-b200"), (Some("p"), Some(6)));
        assert_eq!(category_and_generation("mac-m4pro"), (None, None));
    }
}
