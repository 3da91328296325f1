//! The bill.

use super::Value::{Amount, Free, Integer, List, Map, Number, Price, Share, Text, Words};

section! {
    BILLING: "`billing`", "`ec2.billing`: the bill";
    "Beside the price of instances and volumes.";
    "ec2:
  billing:
    spot_price: hourly_at_start
    public_ipv4: 0.005
    control_plane: 0.10
    volume_per_month: 0.08
    discount: 12%
    node_fee: 0.02
    reserved_instances: [{ type: m5.large, zone: us-east-1a, count: 4, per_hour: 0.06 }]
    savings_plans:
      - { commitment: 1.5, discount: 27% }
      - { family: m5, commitment: 2, discount: 37%, family_discounts: { c5: 30% } }
    load_balancers: { count: 2, per_hour: 0.0225, capacity_units: 3, per_unit_hour: 0.006 }
    nat_gateways: { count: 3, per_hour: 0.045, per_gb: 0.045 }
    cross_zone: { per_gb: 0.02, bytes_per_request: 20k, share: 50% }
";
    {
        "spot_price" default("integrated"): Words(&["integrated", "hourly_at_start"]),
            "Spot is billed by the price at every instant, or by that at the start of each instance-hour.";
        "public_ipv4" otherwise("nodes are private"): Price, "Public IPv4 address of each node, per hour.";
        "control_plane" default("0.10"): Price, "EKS control plane, per hour.";
        "volume_per_month" default("0.08"): Price, "A GiB of gp3, of root volumes and of claims, for a month of 730 hours.";
        "discount" default("0%"): Share(100), "Discount on everything that AWS charges.";
        "node_fee" default("0"): Price, "Licence or vendor fee of each node, per hour.";
        "reserved_instances" otherwise("none"): List(&Map(&RESERVED)), "Reserved Instances.";
        "savings_plans" otherwise("none"): List(&Map(&PLAN)), "Savings Plans.";
        "load_balancers" otherwise("cost nothing"): Map(&LOAD_BALANCERS), "Network load balancers.";
        "nat_gateways" otherwise("cost nothing"): Map(&NAT_GATEWAYS), "NAT gateways, through which nodes pull images.";
        "cross_zone" otherwise("costs nothing"): Map(&CROSS_ZONE), "Requests that cross zones.";
    }
}

section! {
    RESERVED: "a reservation", "`ec2.billing.reserved_instances[]`";
    "";
    "";
    {
        "type" required: Text("instance type"), "Instance type.";
        "zone" otherwise("regional: covers every size of the family"): Text("zone"), "Zone.";
        "count" required: Integer(1, 1_000_000), "How many.";
        "per_hour" required: Price, "What one costs, upfront payment included.";
    }
}

section! {
    PLAN: "a savings plan", "`ec2.billing.savings_plans[]`";
    "";
    "";
    {
        "family" otherwise("a Compute plan: every family"): Text("instance family"), "The family of an EC2 Instance plan.";
        "commitment" required: Price, "What is paid per hour, used or not.";
        "discount" required: Share(100), "Discount on On-Demand.";
        "family_discounts" otherwise("none"): Free("instance family", &Share(100)), "Families with another discount.";
    }
}

section! {
    LOAD_BALANCERS: "`load_balancers`", "`ec2.billing.load_balancers`";
    "";
    "";
    {
        "count" default("1"): Integer(0, 10_000), "How many.";
        "per_hour" default("0.0225"): Price, "What one costs per hour.";
        "capacity_units" default("1"): Number(0.0, 1_000_000.0), "Capacity units that one uses on average.";
        "per_unit_hour" default("0.006"): Price, "What a unit costs per hour.";
    }
}

section! {
    NAT_GATEWAYS: "`nat_gateways`", "`ec2.billing.nat_gateways`";
    "";
    "";
    {
        "count" default("1"): Integer(0, 10_000), "How many, in the first so many zones.";
        "per_hour" default("0.045"): Price, "What one costs per hour.";
        "per_gb" default("0.045"): Price, "What a gigabyte through it costs.";
    }
}

section! {
    CROSS_ZONE: "`cross_zone`", "`ec2.billing.cross_zone`";
    "";
    "";
    {
        "per_gb" default("0.02"): Price, "What a gigabyte costs, both directions together.";
        "bytes_per_request" default("0"): Amount("bytes"), "Bytes that a request moves between nodes.";
        "share" otherwise("that of an even spread over the zones"): Share(100), "Share of requests that leave their zone.";
    }
}
