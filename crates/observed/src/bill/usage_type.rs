//! What AWS's usage types say: region prefix, instance type, and the group of costs that a line belongs to.
//!
//! Names: AWS, "Understanding your usage types" of the Cost and Usage Report's dictionary, and the price lists of EC2, EKS and Elastic
//! Load Balancing of 2026-08; "Understand codes for Amazon VPC in billing and usage reports" of the VPC user guide. A usage type that is not known is a group of its own under its own name, never nothing.

use std::borrow::Cow;

use super::line::{BillLine, ChargeKind};

/// A group of costs of a cluster.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Group {
    /// Instances, On-Demand or under a commitment.
    NodesOnDemand,
    /// Instances, Spot.
    NodesSpot,
    /// Volumes with their IOPS and throughput; not snapshots.
    Ebs,
    /// The hours of the control plane, extended support included.
    ControlPlane,
    /// What EKS Auto Mode takes for managing instances.
    AutoMode,
    /// vCPU and memory of Fargate.
    Fargate,
    /// Load balancers and their capacity units.
    LoadBalancers,
    /// Traffic between zones of a region.
    BetweenZones,
    /// Hours and bytes of NAT gateways.
    Nat,
    /// Public IPv4 addresses in use.
    PublicIpv4,
    /// CPU of burstable instances beyond their credits.
    CpuCredits,
    /// Capacity reservations, used or not.
    CapacityReservations,
    /// Fees and unused parts of Savings Plans and reservations.
    Commitments,
    /// Discounts in lines of their own.
    Discounts,
    /// Everything else, by its usage type.
    Rest(String),
}

impl Group {
    /// The group of a line.
    pub fn from_line(line: &BillLine) -> Self {
        match line.kind {
            ChargeKind::CommitmentFee | ChargeKind::UnusedCommitment => return Self::Commitments,
            ChargeKind::Discount => return Self::Discounts,
            _ => {}
        }
        let (head, _) = line.usage_type.split_once(':').unwrap_or((&line.usage_type, ""));
        match (line.service.as_str(), head) {
            (_, "BoxUsage" | "DedicatedUsage" | "HostBoxUsage") => Self::NodesOnDemand,
            (_, "SpotUsage") => Self::NodesSpot,
            (_, "UnusedBox" | "Reservation" | "UnusedDed" | "DedicatedRes") => Self::CapacityReservations,
            (_, "EBS") if line.usage_type.starts_with("EBS:Volume") => Self::Ebs,
            (_, "AmazonEKS-Hours") => Self::ControlPlane,
            (_, head) if head.starts_with("Fargate-") => Self::Fargate,
            (_, "EKS-Auto") => Self::AutoMode,
            ("AWSELB", _) | (_, "LoadBalancerUsage" | "LCUUsage") => Self::LoadBalancers,
            (_, "DataTransfer-Regional-Bytes") => Self::BetweenZones,
            (_, head) if head.starts_with("NatGateway-") => Self::Nat,
            // An address that is not in use is no node's.
            (_, "PublicIPv4") if line.usage_type == "PublicIPv4:InUseAddress" => Self::PublicIpv4,
            (_, "CPUCredits") => Self::CpuCredits,
            _ => Self::Rest(line.usage_type.clone()),
        }
    }

    /// Its name for a table.
    pub fn name(&self) -> Cow<'_, str> {
        Cow::Borrowed(match self {
            Self::NodesOnDemand => "nodes, On-Demand",
            Self::NodesSpot => "nodes, Spot",
            Self::Ebs => "EBS volumes",
            Self::ControlPlane => "control plane",
            Self::AutoMode => "EKS Auto Mode",
            Self::Fargate => "Fargate",
            Self::LoadBalancers => "load balancers",
            Self::BetweenZones => "traffic between zones",
            Self::Nat => "NAT gateways",
            Self::PublicIpv4 => "public IPv4 addresses",
            Self::CpuCredits => "CPU credits",
            Self::CapacityReservations => "capacity reservations",
            Self::Commitments => "commitments",
            Self::Discounts => "discounts",
            Self::Rest(usage_type) if usage_type.is_empty() => "without a usage type",
            Self::Rest(usage_type) => usage_type,
        })
    }

    /// Whether these are instances by the hour.
    pub const fn is_nodes(&self) -> bool {
        matches!(self, Self::NodesOnDemand | Self::NodesSpot)
    }
}

/// A usage type without the prefix of its region (`USW2-`), which every region but us-east-1 has, and there some services: letters and a
/// digit, or `EU-`, the oldest. `EKS-Auto:...` begins with no region.
pub fn without_region(usage_type: &str) -> &str {
    let letters = usage_type.bytes().take_while(u8::is_ascii_uppercase).count();
    let digits = usage_type.bytes().skip(letters).take_while(u8::is_ascii_digit).count();
    let rest = usage_type[letters + digits..].strip_prefix('-');
    match rest {
        Some(rest) if (2..=4).contains(&letters) && (digits == 1 || &usage_type[..letters] == "EU") => rest,
        _ => usage_type,
    }
}

/// The instance type that a usage type names (`SpotUsage:m5.large`); empty where it names none.
pub fn instance_type(usage_type: &str) -> &str {
    match usage_type.split_once(':') {
        Some((
            "BoxUsage" | "SpotUsage" | "DedicatedUsage" | "HostBoxUsage" | "UnusedBox" | "Reservation" | "UnusedDed"
            | "DedicatedRes",
            name,
        )) => name,
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::{instance_type, without_region};

    #[test]
    fn usage_type_drops_only_region_prefix() {
        for (whole, rest) in [
            ("USW2-BoxUsage:m5.large", "BoxUsage:m5.large"),
            ("EU-SpotUsage:c5.xlarge", "SpotUsage:c5.xlarge"),
            ("APN1-EBS:VolumeUsage.gp3", "EBS:VolumeUsage.gp3"),
            ("USE1-AmazonEKS-Hours:perCluster", "AmazonEKS-Hours:perCluster"),
            ("AmazonEKS-Hours:perCluster", "AmazonEKS-Hours:perCluster"),
            ("NatGateway-Bytes", "NatGateway-Bytes"),
            ("LCUUsage", "LCUUsage"),
            ("EKS-Auto:m5.large-management-hours", "EKS-Auto:m5.large-management-hours"),
            ("USE1-EKS-Auto:m5.large-management-hours", "EKS-Auto:m5.large-management-hours"),
            ("DataTransfer-Regional-Bytes", "DataTransfer-Regional-Bytes"),
            ("ABCDE-x", "ABCDE-x"),
            ("é-x", "é-x"),
            ("", ""),
        ] {
            assert_eq!(without_region(whole), rest);
        }
        assert_eq!(instance_type("SpotUsage:m5zn.2xlarge"), "m5zn.2xlarge");
        assert_eq!(instance_type("EBS:VolumeUsage.gp3"), "");
    }
}
