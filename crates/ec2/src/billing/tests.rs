mod regions;
mod volumes;

use std::sync::Arc;

use proptest::prelude::{prop, proptest};

use super::network::{CrossZone, LoadBalancers, NatGateways, NetworkPrices, Traffic};
use super::{Charge, FargatePod, FargatePrices, ManagedNodes, NonComputeUsage, by_the_hour, charges, is_free};
use crate::bill::BillItem;
use crate::commitments::{Commitments, Platform, ReservedInstances, SavingsPlan};
use crate::faults::{Fault, FaultKind, PoolSelector};
use crate::market::PriceInterval;
use crate::settings::{BillingSettings, CloudSettings, ReplayedPrice, SpotPrices};
use crate::{Bill, CapacityReservation, Ec2, EndedBy, Pool};
use nodecast_engine::Streams;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{HourlyRate, Labels, Money, NodeId, SimDuration, SimTime, Symbol, well_known};
use nodecast_prices::Catalog;

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

/// Prices one after another: each with its length in seconds.
fn prices(parts: &[(&str, i64)]) -> Vec<PriceInterval> {
    let mut from = at(1_000);
    parts
        .iter()
        .map(|&(rate, seconds)| {
            let to = from + SimDuration::from_secs(seconds);
            let rate = HourlyRate::parse(rate).unwrap();
            let interval = PriceInterval { from, to, rate, quality: PriceQuality::Published };
            from = to;
            interval
        })
        .collect()
}

fn charged(parts: &[(&str, i64)]) -> String {
    charges(&prices(parts)).iter().map(|charge| charge.amount).sum::<Money>().to_string()
}

#[test]
fn instances_are_billed_per_second_after_first_minute() {
    assert_eq!(charged(&[("0.096", 45)]), "0.001600000");
    assert_eq!(charged(&[("0.096", 5_400)]), "0.144000000");
    let mut life = prices(&[("0.036", 60)]);
    life[0].to += SimDuration::from_millis(100);
    assert_eq!(charges(&life)[0].amount.to_string(), "0.000610000");
}

#[test]
fn spot_reclaimed_within_first_hour_is_free() {
    assert!(is_free(SimDuration::from_secs(3_599), Some(EndedBy::Ec2)));
    assert!(!is_free(SimDuration::from_secs(3_600), Some(EndedBy::Ec2)));
    assert_eq!(charged(&[("0.04", 3_601)]), "0.040011111");
}

#[test]
fn spot_drained_by_karpenter_is_charged() {
    assert!(!is_free(SimDuration::from_secs(1_910), Some(EndedBy::User)));
    assert_eq!(charged(&[("0.04", 1_910)]), "0.021222222");
}

#[test]
fn price_is_integrated_or_taken_at_hour_start() {
    let life = prices(&[("0.04", 1_800), ("0.05", 1_800)]);
    let total = |charges: Vec<Charge>| charges.iter().map(|charge| charge.amount).sum::<Money>().to_string();
    assert_eq!(total(charges(&life)), "0.045000000");
    assert_eq!(total(charges(&by_the_hour(&life))), "0.040000000");
}

/// The bill of a run without traffic.
fn bill(ec2: &mut Ec2, end: SimTime, into_hour: SimDuration) -> Bill {
    super::bill(ec2, end, &NonComputeUsage { into_hour, ..NonComputeUsage::default() })
}

#[test]
fn managed_instance_pays_one_minute_minimum() {
    let mut ec2 = account(BillingSettings::default());
    for (node, spot) in [(0, false), (1, true), (2, false)] {
        let id = ec2.add_running(pool("m7i.large", spot), NodeId(node), &NodeVolumes::gp3(84), at(0)).unwrap();
        ec2.terminate(id, at(30));
        ec2.mark_terminated(id, at(60));
    }
    let managed = ManagedNodes { nodes: [NodeId(0), NodeId(1)].into(), ..ManagedNodes::default() };
    let bill = super::bill(&mut ec2, at(7_200), &NonComputeUsage { managed, ..NonComputeUsage::default() });
    let fees: Vec<_> = bill.lines.iter().filter(|line| line.item == BillItem::AutoModeFee).collect();
    assert_eq!(fees.len(), 2, "the third is not managed");
    for fee in fees {
        assert_eq!(fee.billed, SimDuration::from_secs(60));
        assert_eq!(fee.amount.to_string(), "0.000201667", "0.0121 for a minute, on Spot too");
    }
    let instance = bill.lines.iter().find(|line| line.item == BillItem::Instance).unwrap();
    assert_eq!((instance.billed, instance.amount.to_string().as_str()), (SimDuration::from_secs(60), "0.001680000"));
}

fn account(billing: BillingSettings) -> Ec2 {
    account_with(CloudSettings { billing, ..CloudSettings::default() })
}

fn account_with(settings: CloudSettings) -> Ec2 {
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    Ec2::new(region, Streams::new(5), Arc::new(settings), at(60 * 86_400))
}

fn pool(name: &str, spot: bool) -> Pool {
    let capacity_type = if spot { well_known::SPOT } else { well_known::ON_DEMAND };
    Pool { instance_type: Symbol::new(name), zone: Symbol::new("us-east-1a"), capacity_type }
}

fn of_item(bill: &Bill, item: BillItem) -> String {
    bill.lines.iter().filter(|line| line.item == item).map(|line| line.amount).sum::<Money>().to_string()
}

#[test]
fn control_plane_costs_more_under_extended_support() {
    let month = at(730 * 3_600);
    let standard = bill(&mut account(BillingSettings::default()), month, SimDuration::ZERO);
    assert_eq!(of_item(&standard, BillItem::ControlPlane), "73.000000000");
    let extended = BillingSettings { control_plane: HourlyRate::parse("0.6"), ..BillingSettings::default() };
    let extended = bill(&mut account(extended), month, SimDuration::ZERO);
    assert_eq!(of_item(&extended, BillItem::ControlPlane), "438.000000000");
}

#[test]
fn interrupted_first_hour_credits_instance_not_volume() {
    let mut ec2 = account(BillingSettings::default());
    let id = ec2.add_running(pool("m5.large", true), NodeId(0), &NodeVolumes::gp3(20), at(0)).unwrap();
    ec2.reclaim(id, at(1_800));
    ec2.mark_terminated(id, at(1_840));
    let bill = bill(&mut ec2, at(7_200), SimDuration::ZERO);
    let of_instance = |item| bill.lines.iter().filter(|line| line.item == item).map(|line| line.amount).sum::<Money>();
    assert!(of_instance(BillItem::Instance) > Money::ZERO);
    assert_eq!(of_instance(BillItem::Instance) + of_instance(BillItem::FreeFirstHour), Money::ZERO);
    assert!(of_instance(BillItem::RootVolume) > Money::ZERO);
}

#[test]
fn addresses_fees_and_discounts_are_separate_lines() {
    let billing = BillingSettings {
        public_ipv4: HourlyRate::parse("0.005"),
        node_fee: HourlyRate::parse("0.02").unwrap(),
        discount: 100_000,
        ..BillingSettings::default()
    };
    let mut ec2 = account(billing);
    ec2.add_running(pool("m5.large", false), NodeId(0), &NodeVolumes::gp3(0), at(0)).unwrap();
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::PublicIpv4), "0.005000000");
    // A tenth of instance, address and control plane; the vendor's fee is not AWS's.
    assert_eq!(of_item(&bill, BillItem::Discount), "-0.020100000");
    assert_eq!(of_item(&bill, BillItem::NodeFee), "0.020000000");
    assert_eq!(bill.total().to_string(), "0.200900000");
}

#[test]
fn savings_plan_is_billed_per_clock_hour() {
    let plan = SavingsPlan {
        family: None,
        commitment: HourlyRate::parse("0.048").unwrap(),
        discount: 500_000,
        family_discounts: Vec::new(),
        fargate_discount: None,
        quality: PriceQuality::Published,
    };
    let commitments = Commitments { plans: vec![plan], ..Commitments::default() };
    let mut ec2 = account(BillingSettings { commitments, ..BillingSettings::default() });
    // From half past to the full hour, then gone.
    let id = ec2.add_running(pool("m5.large", false), NodeId(0), &NodeVolumes::gp3(0), at(0)).unwrap();
    ec2.terminate(id, at(1_800));
    let bill = bill(&mut ec2, at(5_400), SimDuration::from_secs(1_800));
    assert_eq!(of_item(&bill, BillItem::Instance), "0.048000000");
    assert_eq!(of_item(&bill, BillItem::Covered), "-0.048000000");
    assert_eq!(of_item(&bill, BillItem::SavingsPlans), "0.024000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCommitment), "0.048000000");
}

/// Twenty m4.large in us-east-1a, at 0.10 On-Demand each.
fn held(open: bool, from: i64, until: Option<i64>) -> CapacityReservation {
    CapacityReservation {
        id: Symbol::new("cr-1"),
        instance_type: Symbol::new("m4.large"),
        zone: Symbol::new("us-east-1a"),
        count: 20,
        open,
        tags: Labels::new(),
        from: at(from),
        until: until.map(at),
        block: false,
        per_hour: None,
    }
}

fn account_holding(reservation: CapacityReservation, commitments: Commitments) -> Ec2 {
    let billing = BillingSettings { commitments, ..BillingSettings::default() };
    account_with(CloudSettings { billing, reservations: vec![reservation], ..CloudSettings::default() })
}

#[test]
fn capacity_reservation_covers_usage_and_shows_idle() {
    let mut ec2 = account_holding(held(true, 0, None), Commitments::default());
    for node in 0..15 {
        ec2.add_running(pool("m4.large", false), NodeId(node), &NodeVolumes::gp3(0), at(0)).unwrap();
    }
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::Instance), "0.000000000");
    assert_eq!(of_item(&bill, BillItem::CapacityReservation), "1.500000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCapacityReservation), "0.500000000");
    let instances = bill.lines.iter().filter(|line| line.item == BillItem::Instance);
    assert!(instances.into_iter().all(|line| line.capacity_type == Some(well_known::RESERVED)));
}

#[test]
fn capacity_reservation_is_billed_per_second() {
    // 24 h 15 min of one instance's worth each.
    let mut ec2 = account_holding(held(true, 3_600, Some(3_600 + 24 * 3_600 + 900)), Commitments::default());
    let bill = bill(&mut ec2, at(48 * 3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::UnusedCapacityReservation), "48.500000000");
}

#[test]
fn usage_beyond_reservation_pays_on_demand() {
    let mut ec2 = account_holding(held(true, 0, Some(1_800)), Commitments::default());
    for node in 0..21 {
        ec2.add_running(pool("m4.large", false), NodeId(node), &NodeVolumes::gp3(0), at(0)).unwrap();
    }
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    // One all hour, twenty for the half hour after the end.
    assert_eq!(of_item(&bill, BillItem::Instance), "1.100000000");
    assert_eq!(of_item(&bill, BillItem::CapacityReservation), "1.000000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCapacityReservation), "0.000000000");
}

#[test]
fn targeted_reservation_needs_explicit_launch() {
    let mut ec2 = account_holding(held(false, 0, None), Commitments::default());
    ec2.add_running(pool("m4.large", false), NodeId(0), &NodeVolumes::gp3(0), at(0)).unwrap();
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::Instance), "0.100000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCapacityReservation), "2.000000000");
}

#[test]
fn plan_discounts_reservation_but_zonal_ri_does_not() {
    let plan = SavingsPlan {
        family: None,
        commitment: HourlyRate::parse("1.00").unwrap(),
        discount: 500_000,
        family_discounts: Vec::new(),
        fargate_discount: None,
        quality: PriceQuality::Published,
    };
    let zonal = ReservedInstances {
        instance_type: Symbol::new("m4.large"),
        platform: Platform::Linux,
        zone: Some(Symbol::new("us-east-1a")),
        count: 1,
        rate: HourlyRate::parse("0.06").unwrap(),
        quality: PriceQuality::Published,
    };
    let commitments = Commitments { plans: vec![plan], reserved: vec![zonal] };
    let mut ec2 = account_holding(held(true, 0, None), commitments);
    ec2.add_running(pool("m4.large", false), NodeId(0), &NodeVolumes::gp3(0), at(0)).unwrap();
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::Covered), "-2.000000000", "all twenty, at half price");
    assert_eq!(of_item(&bill, BillItem::SavingsPlans), "1.000000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCommitment), "0.060000000", "the zonal one covers nothing");
}

#[test]
fn network_load_balancer_bills_hours_and_lcus() {
    let balancers = LoadBalancers { count: Some(2), milli_units: Some(1_500), ..LoadBalancers::default() };
    let network = NetworkPrices { load_balancers: Some(balancers), ..NetworkPrices::default() };
    let bill =
        bill(&mut account(BillingSettings { network, ..BillingSettings::default() }), at(36_000), SimDuration::ZERO);
    // Ten hours of two: 20 x 0.0225, and 20 x 1.5 x 0.006.
    assert_eq!(of_item(&bill, BillItem::LoadBalancer), "0.450000000");
    assert_eq!(of_item(&bill, BillItem::LoadBalancerCapacity), "0.180000000");
}

#[test]
fn image_pulls_cross_nat_gateway_and_zones() {
    let network = NetworkPrices {
        nat_gateways: Some(NatGateways { count: 1, per_hour: None, per_gb: None, s3_endpoint: false }),
        cross_zone: Some(CrossZone { per_gb: None, bytes_per_request: Some(1_000), permille: None }),
        ..NetworkPrices::default()
    };
    let mut ec2 = account(BillingSettings { network, ..BillingSettings::default() });
    let zones: Vec<Symbol> = ["us-east-1a", "us-east-1b"].map(Symbol::new).to_vec();
    for (node, &zone) in (0..).zip(&zones) {
        let pool = Pool { zone, ..pool("m5.large", false) };
        ec2.add_running(pool, NodeId(node), &NodeVolumes::gp3(0), at(0)).unwrap();
    }
    let pulled = vec![(NodeId(0), 3_000_000_000), (NodeId(1), 3_000_000_000)];
    let traffic = Traffic { zones, pulled, requests: 10_000_000, ..Traffic::default() };
    let bill = super::bill(&mut ec2, at(5_400), &NonComputeUsage { traffic, ..NonComputeUsage::default() });
    assert_eq!(of_item(&bill, BillItem::NatGateway), "0.090000000", "an hour begun is an hour paid");
    assert_eq!(of_item(&bill, BillItem::NatTransfer), "0.270000000", "6 GB at 0.045");
    let crossing = |node| {
        let lines = bill.lines.iter().filter(|line| line.item == BillItem::CrossZoneTransfer && line.node == node);
        lines.map(|line| line.amount).sum::<Money>().to_string()
    };
    assert_eq!(crossing(Some(NodeId(0))), "0.000000000", "its zone has the gateway");
    assert_eq!(crossing(Some(NodeId(1))), "0.060000000", "3 GB at 0.02");
    assert_eq!(crossing(None), "0.100000000", "half of 10 GB of requests at 0.02");
}

#[test]
fn endpoint_and_zones_in_use_lower_transfer() {
    let transfer = |s3_endpoint, spread| {
        let network = NetworkPrices {
            nat_gateways: Some(NatGateways { count: 2, per_hour: None, per_gb: None, s3_endpoint }),
            cross_zone: Some(CrossZone { per_gb: None, bytes_per_request: Some(3_000), permille: None }),
            ..NetworkPrices::default()
        };
        let mut ec2 = account(BillingSettings { network, ..BillingSettings::default() });
        let pool = Pool { zone: Symbol::new("us-east-1a"), ..pool("m5.large", false) };
        ec2.add_running(pool, NodeId(0), &NodeVolumes::gp3(0), at(0)).unwrap();
        let zones: Vec<Symbol> = ["us-east-1a", "us-east-1b", "us-east-1c"].map(Symbol::new).to_vec();
        let from_ecr = [(NodeId(0), 7_000_000_000)].into();
        let pulled = vec![(NodeId(0), 9_000_000_000)];
        let traffic = Traffic { zones, pulled, from_ecr, spread, requests: 2_000_000, ..Traffic::default() };
        let bill = super::bill(&mut ec2, at(3_600), &NonComputeUsage { traffic, ..NonComputeUsage::default() });
        [BillItem::NatTransfer, BillItem::CrossZoneTransfer].map(|item| of_item(&bill, item))
    };
    assert_eq!(transfer(false, 0), ["0.405000000", "0.080000000"], "9 GB at 0.045; two thirds of 6 GB at 0.02");
    assert_eq!(transfer(true, 2), ["0.090000000", "0.060000000"], "2 GB; half of 6 GB");
    assert_eq!(transfer(true, 1)[1], "0.000000000", "all pods are in one zone");
}

#[test]
fn fargate_pods_pull_images_through_nat_gateway() {
    let network = NetworkPrices {
        nat_gateways: Some(NatGateways { count: 1, per_hour: None, per_gb: None, s3_endpoint: false }),
        cross_zone: Some(CrossZone { per_gb: None, bytes_per_request: Some(0), permille: None }),
        ..NetworkPrices::default()
    };
    let mut ec2 = account(BillingSettings { network, ..BillingSettings::default() });
    let zones: Vec<Symbol> = ["us-east-1a", "us-east-1b"].map(Symbol::new).to_vec();
    let pod = |(node, &zone)| FargatePod {
        node: NodeId(node),
        zone,
        from: at(60),
        until: Some(at(180)),
        cpu_milli: 250,
        memory_mib: 512,
        extra_storage_gib: 0,
    };
    let pods: Vec<FargatePod> = (0..).zip(&zones).map(pod).collect();
    let prices = FargatePrices::new(ec2.region(), None, None);
    let pulled = vec![(NodeId(0), 2_000_000_000), (NodeId(1), 2_000_000_000)];
    let traffic = Traffic { zones, pulled, ..Traffic::default() };
    let bill = super::bill(
        &mut ec2,
        at(3_600),
        &NonComputeUsage { traffic, fargate: Some((pods, prices)), ..NonComputeUsage::default() },
    );
    assert_eq!(of_item(&bill, BillItem::NatTransfer), "0.180000000", "4 GB at 0.045");
    let crossing: Vec<_> = bill.lines.iter().filter(|line| line.item == BillItem::CrossZoneTransfer).collect();
    let told: Vec<_> = crossing.iter().map(|line| (line.node, line.from, line.to, line.amount.to_string())).collect();
    assert_eq!(told, [(Some(NodeId(1)), at(60), at(180), "0.040000000".to_owned())], "2 GB at 0.02");
}

#[test]
fn spot_bill_range_stays_below_on_demand() {
    let constant = || CloudSettings { prices: SpotPrices::Constant, ..CloudSettings::default() };
    let with = |types: &[(&str, bool)], settings| {
        let mut ec2 = account_with(settings);
        for (node, &(name, spot)) in (0..).zip(types) {
            ec2.add_running(pool(name, spot), NodeId(node), &NodeVolumes::gp3(20), at(0)).unwrap();
        }
        bill(&mut ec2, at(3_600), SimDuration::ZERO)
    };
    assert!(with(&[("m5.large", false)], constant()).spot_range.is_none());
    let bill = with(&[("m5.large", true), ("c5.large", false)], constant());
    let range = bill.spot_range.unwrap();
    let quality = bill.lines.iter().find(|line| line.capacity_type == Some(well_known::SPOT)).unwrap().quality;
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    let (low, high) = region.spot_error(quality).unwrap();
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-6, "{one} is not {other}");
    let (spot, total) = (range.spot.as_f64(), bill.total().as_f64());
    near(range.low.as_f64(), total - spot + spot * low as f64 / 1_000.0);
    near(range.high.as_f64(), total - spot + spot * high as f64 / 1_000.0);
    let record = |name: &str, rate: &str| ReplayedPrice {
        instance_type: Symbol::new(name),
        zone: Symbol::new("us-east-1a"),
        at: at(0),
        rate: HourlyRate::parse(rate).unwrap(),
    };
    let prices = SpotPrices::Replay(vec![record("m5.large", "0.05")]);
    let recorded = with(&[("m5.large", true)], CloudSettings { prices, ..CloudSettings::default() });
    assert!(recorded.spot_range.is_none(), "what was recorded is not off");
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    let on_demand = region.instance_type(Symbol::new("m5.large")).unwrap().on_demand.unwrap().rate.as_f64();
    let shock = Fault {
        at: at(0),
        until: at(7_200),
        kind: FaultKind::PriceShock { pools: PoolSelector::default(), permille: 2_500 },
    };
    let bill = with(&[("m5.large", true)], CloudSettings { faults: vec![shock], ..constant() });
    let (range, volumes) = (bill.spot_range.unwrap(), bill.total().as_f64() - bill.spot_range.unwrap().spot.as_f64());
    assert!(range.high.as_f64() <= volumes + on_demand + 1e-6, "{range:?}");
}

/// The integral of the published price over a life, with the 60 s minimum, in plain arithmetic by the second. Prices stand
/// for at least 15 minutes, so that a minute that begins and ends at one price has had no other.
fn integral(ec2: &mut Ec2, pool: Pool, from: i64, to: i64) -> f64 {
    // Beyond the end of a short life its last price holds.
    let mut price = |second: i64| ec2.market().price(pool, at(second.min(to - 1))).unwrap().0.as_f64() / 3_600.0;
    let last = to.max(from + 60);
    let mut sum = 0.0;
    for minute in (from..last).step_by(60) {
        let until = last.min(minute + 60);
        let (first, end) = (price(minute), price(until - 1));
        sum += if first.to_bits() == end.to_bits() {
            first * (until - minute) as f64
        } else {
            (minute..until).map(&mut price).sum()
        };
    }
    sum
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: proptest::test_runner::Config::default().cases * 2 / 5, ..Default::default() })]

    /// A thousand lives: a hundred accounts of ten.
    #[test]
    fn bill_integrates_price_over_instance_lives(
        lives in prop::collection::vec((0_usize..4, 0_i64..100_000, 1_i64..20_000, proptest::bool::ANY, proptest::bool::ANY), 10),
    ) {
        let mut ec2 = account(BillingSettings::default());
        let names = ["m5.large", "c5.xlarge", "r5.2xlarge", "m6g.large"];
        let mut expected = Vec::new();
        for (number, &(name, from, span, spot, reclaimed)) in lives.iter().enumerate() {
            let pool = pool(names[name], spot);
            let id = ec2.add_running(pool, NodeId(number as u32), &NodeVolumes::gp3(20), at(from)).unwrap();
            if spot && reclaimed {
                ec2.reclaim(id, at(from + span));
            } else {
                ec2.terminate(id, at(from + span));
            }
            ec2.mark_terminated(id, at(from + span + 35));
            let is_free = spot && reclaimed && span < 3_600;
            expected.push(if is_free { 0.0 } else { integral(&mut ec2, pool, from, from + span) });
        }
        let bill = bill(&mut ec2, at(200_000), SimDuration::ZERO);
        for (number, expected) in expected.into_iter().enumerate() {
            let of_life = bill.lines.iter().filter(|line| {
                matches!(line.item, BillItem::Instance | BillItem::FreeFirstHour) && line.node == Some(NodeId(number as u32))
            });
            let billed = of_life.map(|line| line.amount).sum::<Money>().as_f64();
            // A change within a second is billed to the microsecond.
            assert!((billed - expected).abs() < 1e-5, "{billed} against {expected}");
        }
        let sum = bill.lines.iter().map(|line| line.amount).sum::<Money>();
        assert_eq!(bill.total(), sum, "the bill is its lines");
        let charged = |line: &&crate::BillLine| line.item == BillItem::Instance;
        for line in bill.lines.iter().filter(charged) {
            assert_eq!(line.amount, super::charge(line.rate, line.billed), "each line is its price times its time");
        }
    }
}

#[test]
fn extended_support_adds_cost_unless_price_is_set() {
    let (month, half) = (at(730 * 3_600), at(365 * 3_600));
    let bill = |billing| {
        super::bill(
            &mut account(billing),
            month,
            &NonComputeUsage { extended: vec![(half, month)], ..NonComputeUsage::default() },
        )
    };
    let by_eks = bill(BillingSettings::default());
    assert_eq!(of_item(&by_eks, BillItem::ControlPlane), "73.000000000");
    assert_eq!(of_item(&by_eks, BillItem::ExtendedSupport), "182.500000000", "365 hours at 0.50");
    let stated = bill(BillingSettings { control_plane: HourlyRate::parse("0.1"), ..BillingSettings::default() });
    assert_eq!(of_item(&stated, BillItem::ExtendedSupport), "0.000000000");
}

#[test]
fn load_balancers_are_billed_by_kind_and_traffic() {
    use crate::billing::balancers::BalancerUse;
    use nodecast_model::domain::BalancerKind::{Application, Classic, Network};
    let used = |kind, requests| BalancerUse { kind, requests, from: at(0), to: at(36_000) };
    let balancers =
        vec![used(Network, 1_000_000), used(Application, 500_000), used(Application, 0), used(Classic, 100_000)];
    let traffic = Traffic { balancers, ..Traffic::default() };
    let bill = |network| {
        let billing = BillingSettings { network, ..BillingSettings::default() };
        super::bill(
            &mut account(billing),
            at(36_000),
            &NonComputeUsage { traffic: traffic.clone(), ..NonComputeUsage::default() },
        )
    };
    let amounts = |bill: &Bill, item| {
        let lines = bill.lines.iter().filter(|line| line.item == item);
        lines.map(|line| line.amount.to_string()).collect::<Vec<_>>()
    };
    // Ten hours: two application ones at 0.0225, a network one at 0.0225, a classic one at 0.025. At 20 kB a request, 10 GB at 0.008 for
    // each gigabyte that makes a unit for an hour, 20 GB at 0.006, 2 GB at 0.008.
    let by_load = bill(NetworkPrices::default());
    assert_eq!(amounts(&by_load, BillItem::LoadBalancer), ["0.450000000", "0.225000000", "0.250000000"]);
    assert_eq!(amounts(&by_load, BillItem::LoadBalancerCapacity), ["0.080000000", "0.120000000", "0.016000000"]);
    // With small requests that open a connection each, connections lead: 500,000 of 90,000 for a unit; a classic one has only bytes.
    let small = LoadBalancers { bytes_per_request: 100, connections_permille: 1_000, ..LoadBalancers::default() };
    let by_connections = bill(NetworkPrices { load_balancers: Some(small), ..NetworkPrices::default() });
    let capacity = amounts(&by_connections, BillItem::LoadBalancerCapacity);
    assert_eq!(capacity, ["0.044444444", "0.002083333", "0.000080000"]);
    let none = bill(NetworkPrices { load_balancers: None, ..NetworkPrices::default() });
    assert_eq!(amounts(&none, BillItem::LoadBalancer).len(), 0);
}

#[test]
fn load_balancer_is_billed_per_started_hour() {
    use crate::billing::balancers::BalancerUse;
    use nodecast_model::domain::BalancerKind::Network;
    let used = |from, to| BalancerUse { kind: Network, requests: 0, from: at(from), to: at(to) };
    let traffic = Traffic {
        balancers: vec![used(18_000, 36_000), used(0, 36_000), used(0, 3_601), used(0, 3_600)],
        ..Traffic::default()
    };
    let bill = super::bill(
        &mut account(BillingSettings::default()),
        at(36_000),
        &NonComputeUsage { traffic, ..NonComputeUsage::default() },
    );
    let lines = bill.lines.iter().filter(|line| line.item == BillItem::LoadBalancer);
    let told: Vec<_> = lines.map(|line| (line.from, line.to, line.amount.to_string())).collect();
    assert_eq!(
        told,
        [
            (at(0), at(3_600), "0.022500000".to_owned()),
            (at(0), at(3_601), "0.045000000".to_owned()),
            (at(0), at(36_000), "0.225000000".to_owned()),
            (at(18_000), at(36_000), "0.112500000".to_owned())
        ]
    );
}

#[test]
fn surplus_cpu_credits_are_charged_per_vcpu_hour() {
    let mut ec2 = account(BillingSettings::default());
    for (node, kind) in (0..).zip(["t3.medium", "t4g.large"]) {
        ec2.add_running(pool(kind, false), NodeId(node), &NodeVolumes::gp3(0), at(0)).unwrap();
    }
    let surplus = vec![(NodeId(0), 1_600_000), (NodeId(1), 500_000)];
    let bill = super::bill(&mut ec2, at(3_600), &NonComputeUsage { surplus, ..NonComputeUsage::default() });
    let lines: Vec<_> = bill.lines.iter().filter(|line| line.item == BillItem::CpuCredits).collect();
    assert_eq!(lines[0].amount.to_string(), "0.080000000", "1.6 vCPU-hours at 0.05");
    assert_eq!(lines[1].amount.to_string(), "0.020000000", "half a one at 0.04");
    assert_eq!((lines[0].node, lines[0].billed), (Some(NodeId(0)), SimDuration::from_secs(5_760)));
}
