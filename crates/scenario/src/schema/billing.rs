//! The bill.

use super::Form;
use super::kind::{Memory, Millionths, Number, Or, Permille, Whole, kind, words};
use super::names::{InstanceType, Zone};
use crate::cloud::billing::eks_fees::{CapabilityFee, EksFees};
use crate::cloud::billing::network::{CrossZone, LoadBalancers, NatGateways, NetworkPrices};
use crate::cloud::billing::other::OtherFee;
use crate::cloud::commitments::{Commitments, Platform, ReservedInstances, SavingsPlan};
use crate::cloud::settings::BillingSettings;
use crate::domain::{Capability, HourlyRate, Money, Symbol};
use crate::file::commitments;

section! {
    /// Beside the price of instances and volumes.
    BILLING: "`billing`", "`ec2.billing`: the bill";
    example "ec2:
  billing:
    spot_price: hourly_at_start
    public_ipv4: 0.005
    control_plane: 0.10
    control_plane_tier: 1.65
    capabilities:
      - { type: argocd, items: 40 }
      - { type: ack, items: 120, per_hour: 0.0045, per_item_hour: 0.00005 }
    hybrid_vcpus: 64
    hybrid_vcpu_hour: 0.02
    volume_per_month: 0.08
    discount: 12%
    node_fee: 0.02
    other: [{ name: logs, per_month: 120 }, { name: Internet egress, per_gb: 0.09 }, { name: ECR, per_gb: 0.10, gb_per_month: 250 }]
    reserved_instances:
      - { type: m5.large, zone: us-east-1a, count: 4, per_hour: 0.06 }
      - { type: m7g.large, count: 2, term: 1y, payment: no_upfront }
      - { type: m6i.xlarge, platform: windows, count: 1, per_hour: 0.30 }
    savings_plans:
      - { commitment: 1.5, discount: 27%, fargate_discount: 20% }
      - { family: m5, commitment: 2, discount: 37%, family_discounts: { c5: 30% } }
      - { family: c7g, commitment: 2, term: 3y, payment: all_upfront }
    load_balancers: { count: 2, per_hour: 0.0225, capacity_units: 3, per_unit_hour: 0.006, bytes_per_request: 20k, connections_per_request: 0.1 }
    nat_gateways: { count: 3, per_hour: 0.045, per_gb: 0.045, s3_endpoint: true }
    cross_zone: { per_gb: 0.02, bytes_per_request: 20k, share: 50% }   # bytes_per_request: unknown where nobody measured them
";
    becomes BillingSettings, |_, _, own: Self| {
        let network = NetworkPrices {
            load_balancers: own.load_balancers,
            nat_gateways: own.nat_gateways,
            cross_zone: own.cross_zone,
        };
        let eks = EksFees {
            tier: own.control_plane_tier,
            capabilities: own.capabilities,
            hybrid_vcpus: own.hybrid_vcpus,
            hybrid_vcpu_hour: own.hybrid_vcpu_hour,
        };
        Ok(BillingSettings {
            hourly_at_start: own.spot_price,
            public_ipv4: own.public_ipv4,
            control_plane: own.control_plane,
            volume_per_month: own.volume_per_month,
            discount: own.discount,
            node_fee: own.node_fee,
            eks,
            other: own.other,
            network,
            commitments: Commitments { reserved: own.reserved_instances, plans: own.savings_plans },
        })
    };
    struct BillingKeys {
        /// Spot is billed by the price at every instant, or by that at the start of each instance-hour.
        spot_price: BilledBy = false;
        /// Public IPv4 address of each node, per hour; of none whose node class states `associatePublicIPAddress: false`.
        public_ipv4: HourlyRate, or "0.005 for nodes in public subnets and of node classes with `associatePublicIPAddress`";
        /// EKS control plane, per hour.
        control_plane: HourlyRate, or "0.10, and 0.50 more from the end of EKS's standard support of the release on";
        /// Tier of the control plane (`cluster.control_plane_tier`), per hour, in addition to `control_plane`.
        control_plane_tier: HourlyRate, or "AWS's price: `xl` 1.65, `2xl` 3.40, `4xl` 6.90, `8xl` 13.90; `standard` costs nothing more";
        /// EKS Capabilities.
        capabilities: Vec<CapabilityKeys>, or "those of an eksctl ClusterConfig, without items";
        /// vCPUs of hybrid nodes, which are billed for the whole run and run no pods here.
        hybrid_vcpus: Whole<0, 100_000_000> = 0;
        /// One of these vCPUs, per hour.
        hybrid_vcpu_hour: HourlyRate, or "AWS's price for a month of 730 hours with this number: 0.020 for the first 576,000 vCPU-hours, then 0.014, 0.010, 0.008, and 0.006";
        /// A GiB of gp3, of root volumes and of claims, for a month of 730 hours.
        volume_per_month: HourlyRate, or "the region's price";
        /// Discount on everything that AWS charges.
        discount: Millionths = 0;
        /// Licence or vendor fee of each node, per hour.
        node_fee: HourlyRate = HourlyRate::ZERO;
        /// Lines of the bill that are not simulated, as logs, Container Insights, Internet egress, ECR, VPC endpoints, or EBS snapshots;
        /// `discount` is not on them.
        other: Vec<OtherKeys> = Vec::new(), or "none";
        /// Reserved Instances.
        reserved_instances: Vec<ReservedKeys> = Vec::new(), or "none";
        /// Savings Plans.
        savings_plans: Vec<PlanKeys> = Vec::new(), or "none";
        /// Load balancers; `none` leaves them out of the bill.
        load_balancers: Or<NoBalancers, BalancerKeys> = Some(LoadBalancers::default()), or "those that Services and Ingresses call for";
        /// NAT gateways, through which nodes and pods on Fargate pull images.
        nat_gateways: NatGateways, or "those that an eksctl ClusterConfig orders, else none";
        /// Requests that cross zones.
        cross_zone: CrossZone, or "costs nothing";
    }
}

section! {
    /// Either `per_month` or `per_gb`.
    OTHER: "another line", "`ec2.billing.other[]`";
    becomes OtherFee, commitments::other;
    struct OtherKeys {
        /// Its name in the bill.
        name: super::kind::Name;
        /// Its price for a month of 730 hours.
        per_month: PerGb, or "`per_gb` is required";
        /// Its price per gigabyte.
        per_gb: PerGb, or "`per_month` is required";
        /// Gigabytes of a month of 730 hours, for `per_gb`.
        gb_per_month: Thousandths, or "those that requests move through load balancers (`load_balancers.bytes_per_request`)";
    }
}

section! {
    /// What one costs is stated, or follows from `term` and `payment`: AWS's rates of standard Reserved Instances for the family in the region.
    /// One year without upfront payment costs 1.0715 times the all-upfront price, a derived price.
    RESERVED: "a reservation", "`ec2.billing.reserved_instances[]`";
    becomes ReservedInstances, commitments::reserved;
    struct ReservedKeys {
        /// Instance type.
        "type" as instance_type["instance type"]: InstanceType;
        /// Operating system of the instances that they cover.
        platform: PlatformName = Platform::Linux;
        /// Zone.
        zone["zone"]: Zone, or "regional: those for Linux cover every size of the family";
        /// How many.
        count: Whole<1, 1_000_000>;
        /// What one costs, upfront payment included.
        per_hour: HourlyRate, or "by `term` and `payment`";
        /// How long it was bought for.
        term: Term, or "`per_hour` is required";
        /// How much of it was paid ahead.
        payment: Payment, or "required with `term`";
    }
}

section! {
    /// The discount is stated, or, of an EC2 Instance plan, follows from `term` and `payment`: such plans cost what standard Reserved Instances do.
    /// Plans of one kind apply together, the highest discount of any plan first.
    PLAN: "a savings plan", "`ec2.billing.savings_plans[]`";
    becomes SavingsPlan, commitments::plan;
    struct PlanKeys {
        /// The family of an EC2 Instance plan.
        family["instance family"]: super::kind::Name, or "a Compute plan: every family";
        /// What is paid per hour, used or not.
        commitment: HourlyRate;
        /// Discount on On-Demand.
        discount: Millionths, or "by `term` and `payment`";
        /// How long it was bought for.
        term: Term, or "`discount` is required";
        /// How much of it was paid ahead.
        payment: Payment, or "required with `term`";
        /// Families with another discount.
        family_discounts["instance family"]: FamilyDiscounts = Vec::new(), or "none";
        /// Discount of a Compute plan on vCPUs and memory of pods on Fargate.
        fargate_discount: Millionths, or "it is not used for Fargate";
    }
}

section! {
    /// Prices are known for us-east-2, and for `argocd` and `ack` in us-west-2. Other regions use those of us-east-2, with a warning.
    CAPABILITY: "a capability", "`ec2.billing.capabilities[]`";
    becomes CapabilityFee, |_, _, own: Self| {
        Ok(CapabilityFee {
            kind: own.kind,
            items: own.items,
            per_hour: own.per_hour,
            per_item_hour: own.per_item_hour,
        })
    };
    struct CapabilityKeys {
        /// Which one.
        "type" as kind: CapabilityName;
        /// Argo CD's Applications, resources that ACK manages, or instances of KRO's ResourceGraphDefinitions.
        items: Whole<0, 100_000_000> = 0;
        /// The capability, per hour.
        per_hour: HourlyRate, or "AWS's price";
        /// An item, per hour.
        per_item_hour: HourlyRate, or "AWS's price";
    }
}

words! {
    /// A capability.
    CapabilityName: Capability, "argocd" => Capability::ArgoCd, "ack" => Capability::Ack, "kro" => Capability::Kro
}

section! {
    /// Without `count`, Network Load Balancers stand behind Services of type LoadBalancer (Classic ones where no controller makes another), and
    /// Application Load Balancers behind the Ingresses of the AWS Load Balancer Controller and of EKS Auto Mode; what they are used is what the
    /// workloads behind them answer. One that goes before the run ends is billed by begun hours.
    LOAD_BALANCERS: "`load_balancers`", "`ec2.billing.load_balancers`";
    becomes Option<LoadBalancers>, |_, _, own: Self| {
        Ok(Some(LoadBalancers {
            count: own.count,
            per_hour: own.per_hour,
            milli_units: own.capacity_units,
            per_unit_hour: own.per_unit_hour,
            bytes_per_request: own.bytes_per_request,
            connections_permille: own.connections_per_request,
        }))
    };
    struct BalancerKeys {
        /// How many network load balancers.
        count: Whole<0, 10_000>, or "those that Services and Ingresses call for";
        /// What one costs per hour.
        per_hour: HourlyRate, or "AWS's price of its kind in the region";
        /// Capacity units that one uses on average.
        capacity_units: Thousandths, or "as many as its requests come to; 1 with `count`";
        /// What a unit costs per hour.
        per_unit_hour: HourlyRate, or "AWS's price of its kind in the region";
        /// Bytes that a request moves, its answer included.
        bytes_per_request["bytes"]: Memory = LoadBalancers::BYTES_PER_REQUEST;
        /// Connections that are opened for a request.
        connections_per_request: Thousandths = LoadBalancers::CONNECTIONS_PERMILLE;
    }
}

section! {
    NAT_GATEWAYS: "`nat_gateways`", "`ec2.billing.nat_gateways`";
    impl NatGateways {
        /// How many, in the first so many zones.
        count: Whole<0, 10_000> = 1;
        /// What one costs per hour.
        per_hour: HourlyRate, or "AWS's price in the region";
        /// What a gigabyte through it costs.
        per_gb: PerGb, or "AWS's price in the region";
        /// Whether S3 has a gateway endpoint, which costs nothing: layers of images of private ECR repositories of the region then do not
        /// pass the gateways.
        s3_endpoint: bool = false;
    }
}

section! {
    CROSS_ZONE: "`cross_zone`", "`ec2.billing.cross_zone`";
    impl CrossZone {
        /// What a gigabyte costs, both directions together.
        per_gb: PerGb, or "0.02";
        /// Bytes that a request moves between nodes. Where nobody measured them, `unknown` bills no requests and warns that the cost is
        /// too low.
        bytes_per_request: RequestBytes = Some(0);
        /// Share of requests that leave their zone.
        "share" as permille: Permille, or "that of an even spread over the zones in which pods with load run";
    }
}

words! {
    /// No load balancers in the bill.
    NoBalancers: Option<LoadBalancers>, "none" => None
}

words! {
    /// Bytes that nobody measured.
    UnknownBytes: Option<i64>, "unknown" => None
}

words! {
    /// How long something was bought for, in years.
    Term: u32, "1y" => 1, "3y" => 3
}

words! {
    /// Platform of Reserved Instances.
    PlatformName: Platform,
    "linux" => Platform::Linux, "windows" => Platform::Windows, "rhel" => Platform::Rhel, "suse" => Platform::Suse
}

words! {
    /// Whether all of it was paid ahead.
    Payment: bool, "no_upfront" => false, "all_upfront" => true
}

words! {
    /// By which price Spot is billed: whether by that at the start of each hour.
    BilledBy: bool, "integrated" => false, "hourly_at_start" => true
}

kind! {
    /// A number in thousandths.
    Thousandths: Number<0, 1_000_000_000> => u32, |_, _, _, units| Ok(libm::round(units * 1_000.0) as u32);
    show |units| (f64::from(*units) / 1_000.0).to_string()
}

kind! {
    /// Bytes that were measured or are stated, or `unknown`.
    RequestBytes: Option<i64> = Form::Either(Box::new(Form::Amount("bytes")), Box::new(UnknownBytes::form())), |reading, node, what| {
        if node.as_text() == Some("unknown") {
            return UnknownBytes::read(reading, node, what);
        }
        Memory::read(reading, node, what).map(Some)
    };
    show |bytes| bytes.map_or_else(|| "unknown".to_owned(), |bytes| bytes.to_string())
}

kind! {
    /// What a gigabyte costs.
    PerGb: HourlyRate => Money, |_, _, _, rate| Ok(Money::from_nanos(i128::from(rate.as_nanos())));
    show |price| price.to_string().trim_end_matches('0').trim_end_matches('.').to_owned()
}

kind! {
    /// Discounts of single families: a map from family to share.
    FamilyDiscounts: Vec<(Symbol, u32)> = Form::Free("", Box::new(Millionths::form())), |reading, node, what| {
        let mut discounts = Vec::new();
        for entry in reading.reader.entries(node, what)? {
            if !reading.region().types.iter().any(|kind| kind.facts.family.as_str() == entry.key) {
                return Err(reading.unknown_family(entry.key_at, &entry.key));
            }
            discounts.push((Symbol::new(&entry.key), Millionths::read(reading, &entry.value, "discount")?));
        }
        Ok(discounts)
    }
}
