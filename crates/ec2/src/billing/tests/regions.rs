//! What is billed beside instances where AWS's prices are those of another region, or not known at all.

use std::sync::Arc;

use super::{account, at, of_item, pool};
use crate::bill::BillItem;
use crate::billing::balancers::BalancerUse;
use crate::billing::network::{CrossZone, LoadBalancers, NatGateways, NetworkPrices, Traffic};
use crate::billing::other::{OtherFee, OtherPrice, not_simulated};
use crate::billing::{NonComputeUsage, bill};
use crate::settings::{BillingSettings, CloudSettings};
use crate::{Bill, Ec2, Pool};
use nodecast_engine::Streams;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::volumes::{DiskClass, NodeVolume, NodeVolumes};
use nodecast_model::domain::{BalancerKind, HourlyRate, Money, NodeId, Symbol};
use nodecast_prices::Catalog;

/// An account with a node of 20 GiB in a region's zone.
fn account_in(region: &str, zone: &str, billing: BillingSettings) -> Ec2 {
    let catalog = Catalog::embedded().and_then(|catalog| catalog.region(region)).unwrap();
    let settings = CloudSettings { billing, ..CloudSettings::default() };
    let mut ec2 = Ec2::new(catalog, Streams::new(5), Arc::new(settings), at(86_400));
    let pool = Pool { zone: Symbol::new(zone), ..pool("m5.large", false) };
    ec2.add_running(pool, NodeId(0), &NodeVolumes::gp3(20), at(0)).unwrap();
    ec2
}

/// Ten hours of traffic: 10 GB of images, ten million requests of which half cross zones.
fn traffic(zone: &str) -> Traffic {
    let zones = [zone, "other"].map(Symbol::new).to_vec();
    Traffic { zones, pulled: vec![(NodeId(0), 10_000_000_000)], requests: 10_000_000, ..Traffic::default() }
}

fn ten_hours(mut ec2: Ec2, zone: &str) -> Bill {
    bill(&mut ec2, at(36_000), &NonComputeUsage { traffic: traffic(zone), ..NonComputeUsage::default() })
}

/// Everything stated.
fn stated() -> BillingSettings {
    let rate = |text: &str| HourlyRate::parse(text);
    let gateways = NatGateways {
        count: 2,
        per_hour: rate("0.4"),
        per_gb: Some(Money::from_nanos(400_000_000)),
        s3_endpoint: false,
    };
    let balancers = LoadBalancers {
        count: Some(1),
        per_hour: rate("0.2"),
        per_unit_hour: rate("0.05"),
        ..LoadBalancers::default()
    };
    BillingSettings {
        public_ipv4: rate("0.03"),
        control_plane: rate("0.7"),
        volume_per_month: rate("0.73"),
        network: NetworkPrices {
            load_balancers: Some(balancers),
            nat_gateways: Some(gateways),
            cross_zone: Some(CrossZone {
                per_gb: Some(Money::from_nanos(100_000_000)),
                bytes_per_request: Some(1_000),
                permille: None,
            }),
        },
        ..BillingSettings::default()
    }
}

const STATED: [(BillItem, &str); 8] = [
    (BillItem::RootVolume, "0.200000000"),
    (BillItem::PublicIpv4, "0.300000000"),
    (BillItem::ControlPlane, "7.000000000"),
    (BillItem::LoadBalancer, "2.000000000"),
    (BillItem::LoadBalancerCapacity, "0.500000000"),
    (BillItem::NatGateway, "8.000000000"),
    (BillItem::NatTransfer, "4.000000000"),
    (BillItem::CrossZoneTransfer, "0.500000000"),
];

#[test]
fn set_prices_apply_in_every_region() {
    for (region, zone) in [("cn-north-1", "cn-north-1a"), ("us-west-2", "us-west-2a"), ("us-east-1", "us-east-1a")] {
        let bill = ten_hours(account_in(region, zone, stated()), zone);
        for (item, amount) in STATED {
            assert_eq!(of_item(&bill, item), amount, "{region}: {item:?}");
            let mut this_line = bill.lines.iter().filter(|line| line.item == item);
            assert!(this_line.all(|line| line.quality == PriceQuality::Own), "{region}: {item:?}");
        }
        assert_eq!(bill.unpriced, [], "{region}");
    }
}

#[test]
fn items_without_known_price_are_listed() {
    let network = NetworkPrices {
        load_balancers: Some(LoadBalancers { count: Some(1), ..LoadBalancers::default() }),
        nat_gateways: Some(NatGateways {
            count: 1,
            per_hour: HourlyRate::parse("0.4"),
            per_gb: None,
            s3_endpoint: false,
        }),
        cross_zone: Some(CrossZone { per_gb: None, bytes_per_request: Some(1_000), permille: None }),
    };
    let zone = "cn-north-1a";
    let billing = BillingSettings { network, ..BillingSettings::default() };
    let surplus = vec![(NodeId(0), 1_000_000)];
    let mut ec2 = account_in("cn-north-1", zone, billing);
    let bill =
        bill(&mut ec2, at(36_000), &NonComputeUsage { traffic: traffic(zone), surplus, ..NonComputeUsage::default() });
    let items: Vec<BillItem> = bill.lines.iter().map(|line| line.item).collect();
    assert_eq!(items, [BillItem::Instance, BillItem::NatGateway]);
    assert_eq!(
        bill.unpriced,
        [
            BillItem::RootVolume,
            BillItem::ControlPlane,
            BillItem::LoadBalancer,
            BillItem::LoadBalancerCapacity,
            BillItem::NatTransfer,
            BillItem::CrossZoneTransfer,
            BillItem::CpuCredits
        ]
    );
}

#[test]
fn set_gp3_price_leaves_other_volumes_unpriced() {
    let zone = "cn-north-1a";
    let billing = BillingSettings { volume_per_month: HourlyRate::parse("0.73"), ..BillingSettings::default() };
    let with = |class| {
        let mut ec2 = account_in("cn-north-1", zone, billing.clone());
        let volumes: NodeVolumes = [NodeVolume { gib: 100, class }].into_iter().collect();
        let pool = Pool { zone: Symbol::new(zone), ..pool("m5.large", false) };
        ec2.add_running(pool, NodeId(1), &volumes, at(0)).unwrap();
        let bill = ten_hours(ec2, zone);
        (of_item(&bill, BillItem::RootVolume), bill.unpriced.contains(&BillItem::RootVolume))
    };
    let gp3 = DiskClass::of_type("gp3");
    assert_eq!(with(gp3), ("1.200000000".to_owned(), false), "120 GiB at a thousandth an hour");
    let fast = DiskClass { throughput_mib: 500, ..gp3 };
    assert_eq!(with(fast), ("1.200000000".to_owned(), true), "its size alone");
    assert_eq!(with(DiskClass::of_type("gp2")), ("0.200000000".to_owned(), true), "the other node's alone");
}

#[test]
fn network_has_regional_fees_with_their_quality() {
    let nat_gateways = Some(NatGateways { count: 1, per_hour: None, per_gb: None, s3_endpoint: false });
    let network = NetworkPrices { nat_gateways, ..NetworkPrices::default() };
    let zone = "us-west-2a";
    let billing = BillingSettings { network, ..BillingSettings::default() };
    let bill = ten_hours(account_in("us-west-2", zone, billing), zone);
    let quality = |item| bill.lines.iter().find(|line| line.item == item).unwrap().quality;
    assert_eq!(of_item(&bill, BillItem::NatGateway), "0.450000000");
    assert_eq!(quality(BillItem::NatGateway), PriceQuality::Published);
    assert_eq!(quality(BillItem::NatTransfer), PriceQuality::Published);
    assert_eq!(quality(BillItem::ControlPlane), PriceQuality::Published);
    let nat = |region: &str, zone: &str| {
        let network = NetworkPrices { nat_gateways, ..NetworkPrices::default() };
        let billing = BillingSettings { network, ..BillingSettings::default() };
        let bill = ten_hours(account_in(region, zone, billing), zone);
        let line = bill.lines.iter().find(|line| line.item == BillItem::NatGateway).unwrap();
        (line.amount.to_string(), line.quality)
    };
    assert_eq!(nat("sa-east-1", "sa-east-1a"), ("0.930000000".to_owned(), PriceQuality::Published));
    // The fee of us-east-1 times the ratio of On-Demand prices.
    assert_eq!(nat("eu-west-3", "eu-west-3a"), ("0.525000000".to_owned(), PriceQuality::Assumed));
    let balancers = LoadBalancers { count: Some(1), ..LoadBalancers::default() };
    let network = NetworkPrices { load_balancers: Some(balancers), ..NetworkPrices::default() };
    let zone = "ca-central-1a";
    let billing = BillingSettings { network, ..BillingSettings::default() };
    let bill = ten_hours(account_in("ca-central-1", zone, billing), zone);
    assert_eq!(of_item(&bill, BillItem::LoadBalancer), "0.247500000");
    assert_eq!(of_item(&bill, BillItem::LoadBalancerCapacity), "0.066000000");
}

#[test]
fn other_lines_are_billed_by_month_and_gigabyte() {
    let fee = |name: &str, price| OtherFee { name: Symbol::new(name), price };
    let money = Money::from_nanos;
    let other = vec![
        fee("Logs of the platform", OtherPrice::PerMonth(money(730_000_000_000))),
        fee("ECR", OtherPrice::PerGb { price: money(100_000_000), milli_gb: Some(73_000) }),
        fee("Internet egress", OtherPrice::PerGb { price: money(90_000_000), milli_gb: None }),
    ];
    let zone = "us-east-1a";
    let mut ec2 =
        account_in("us-east-1", zone, BillingSettings { other, discount: 100_000, ..BillingSettings::default() });
    let used = BalancerUse { kind: BalancerKind::Application, requests: 1_000_000, from: at(0), to: at(36_000) };
    let traffic = Traffic { balancers: vec![used], ..Traffic::default() };
    let bill = bill(&mut ec2, at(36_000), &NonComputeUsage { traffic, ..NonComputeUsage::default() });
    let amount = |name: &str| of_item(&bill, BillItem::Other(Symbol::new(name)));
    assert_eq!(amount("Logs of the platform"), "10.000000000");
    assert_eq!(amount("ECR"), "0.100000000");
    // A million requests of 20 kB are 20 GB.
    assert_eq!(amount("Internet egress"), "1.800000000");
    assert_eq!(not_simulated(&bill.lines), ["Container Insights", "VPC endpoints", "EBS snapshots"]);
    let named: Vec<&str> = bill.lines.iter().map(|line| line.item.name()).collect();
    assert!(named.contains(&"ECR") && bill.lines.iter().all(|line| line.item.name() != "other"));
}

#[test]
fn node_fee_is_the_users_own_price() {
    let node_fee = HourlyRate::parse("0.02").unwrap();
    let mut ec2 = account(BillingSettings { node_fee, ..BillingSettings::default() });
    ec2.add_running(pool("m5.large", false), NodeId(0), &NodeVolumes::gp3(20), at(0)).unwrap();
    let bill = super::bill(&mut ec2, at(3_600), nodecast_model::domain::SimDuration::ZERO);
    let fee = bill.lines.iter().find(|line| line.item == BillItem::NodeFee).unwrap();
    assert_eq!(fee.quality, PriceQuality::Own);
}
