//! The net bill of random accounts.

use std::sync::Arc;

use proptest::prelude::{Strategy, prop, proptest};

use crate::bill::{Bill, BillItem};
use crate::billing::{NonComputeUsage, over_time};
use crate::commitments::{Commitments, Platform, ReservedInstances, SavingsPlan};
use crate::settings::{BillingSettings, CloudSettings};
use crate::{CapacityReservation, Ec2, Pool};
use nodecast_engine::Streams;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::volumes::NodeVolumes;
use nodecast_model::domain::{HourlyRate, Labels, Money, NodeId, SimDuration, SimTime, Symbol, well_known};
use nodecast_prices::Catalog;

const TYPES: [&str; 4] = ["m5.large", "m5.xlarge", "c5.xlarge", "g5.xlarge"];
const ZONES: [&str; 2] = ["us-east-1a", "us-east-1b"];

fn at(seconds: i64) -> SimTime {
    SimTime::ZERO + SimDuration::from_secs(seconds)
}

fn reserved() -> impl Strategy<Value = ReservedInstances> {
    (0..TYPES.len(), prop::option::of(0..ZONES.len()), 0_u32..4, 0_i64..500_000_000).prop_map(
        |(name, zone, count, rate)| ReservedInstances {
            instance_type: Symbol::new(TYPES[name]),
            platform: Platform::Linux,
            zone: zone.map(|zone| Symbol::new(ZONES[zone])),
            count,
            rate: HourlyRate::from_nanos(rate),
            quality: PriceQuality::Published,
        },
    )
}

fn plan() -> impl Strategy<Value = SavingsPlan> {
    (proptest::bool::ANY, 0_i64..2_000_000_000, 0_u32..=1_000_000, 0_u32..=1_000_000).prop_map(
        |(of_family, commitment, discount, item)| SavingsPlan {
            family: of_family.then(|| Symbol::new("m5")),
            commitment: HourlyRate::from_nanos(commitment),
            discount,
            family_discounts: vec![(Symbol::new("c5"), item)],
            fargate_discount: None,
            quality: PriceQuality::Published,
        },
    )
}

fn reservation() -> impl Strategy<Value = CapacityReservation> {
    (0..TYPES.len(), 0..ZONES.len(), 1_u32..5, 0_i64..9_000, prop::option::of(1_i64..9_000)).prop_map(
        |(name, zone, count, from, span)| CapacityReservation {
            id: Symbol::new("cr-1"),
            instance_type: Symbol::new(TYPES[name]),
            zone: Symbol::new(ZONES[zone]),
            count,
            open: true,
            tags: Labels::new(),
            from: at(from),
            until: span.map(|span| at(from + span)),
            block: false,
            per_hour: None,
        },
    )
}

/// Type, zone, when it runs and for how long, whether it is Spot and whether EC2 takes it back.
type Life = (usize, usize, i64, i64, bool, bool);

fn billed(billing: BillingSettings, reservations: Vec<CapacityReservation>, lives: &[Life], into_hour: i64) -> Bill {
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    let settings = CloudSettings { billing, reservations, ..CloudSettings::default() };
    let mut ec2 = Ec2::new(region, Streams::new(5), Arc::new(settings), at(86_400));
    for (number, &(name, zone, from, span, spot, reclaimed)) in lives.iter().enumerate() {
        let capacity_type = if spot { well_known::SPOT } else { well_known::ON_DEMAND };
        let pool = Pool { instance_type: Symbol::new(TYPES[name]), zone: Symbol::new(ZONES[zone]), capacity_type };
        let node = NodeId(u32::try_from(number).unwrap());
        let id = ec2.add_running(pool, node, &NodeVolumes::gp3(20), at(from)).unwrap();
        if spot && reclaimed {
            ec2.reclaim(id, at(from + span));
        } else {
            ec2.terminate(id, at(from + span));
        }
        ec2.mark_terminated(id, at(from + span + 35));
    }
    super::super::bill(
        &mut ec2,
        END,
        &NonComputeUsage { into_hour: SimDuration::from_secs(into_hour), ..NonComputeUsage::default() },
    )
}

const END: SimTime = SimTime::from_micros(14_000_000_123);

fn sum<'a>(lines: impl IntoIterator<Item = &'a crate::BillLine>) -> Money {
    lines.into_iter().map(|line| line.amount).sum()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: proptest::test_runner::Config::default().cases * 6 / 5, ..Default::default() })]

    #[test]
    fn net_bill_equals_bill_without_negative_parts(
        lives in prop::collection::vec((0..TYPES.len(), 0..ZONES.len(), 0_i64..12_000, 1_i64..9_000, proptest::bool::ANY, proptest::bool::ANY), 0..8),
        reserved in prop::collection::vec(reserved(), 0..3),
        plans in prop::collection::vec(plan(), 0..3),
        reservations in prop::collection::vec(reservation(), 0..3),
        discount in 0_u32..=1_000_000,
        into_hour in 0_i64..3_600,
    ) {
        let billing = BillingSettings {
            commitments: Commitments { reserved, plans },
            discount,
            node_fee: HourlyRate::from_nanos(7),
            ..BillingSettings::default()
        };
        let bill = billed(billing, reservations, &lives, into_hour);
        let total = bill.total();
        assert!(bill.net().iter().all(|line| Money::ZERO <= line.amount && line.amount <= total));
        assert!(bill.net().iter().all(|line| line.rate >= HourlyRate::ZERO && line.from <= line.to));
        assert_eq!(sum(bill.net()), total);
        let taken_back = [BillItem::Covered, BillItem::Discount, BillItem::FreeFirstHour];
        assert!(bill.net().iter().all(|line| !taken_back.contains(&line.item)));
        // What is charged for volumes and the like is there as it was, but for the discount.
        let others = |lines: &[crate::BillLine]| sum(lines.iter().filter(|line| !line.item.is_compute() && line.item != BillItem::Discount && line.item != BillItem::NodeFee));
        let off = others(&bill.lines).as_nanos() * i128::from(discount) / 1_000_000;
        assert!((others(&bill.lines).as_nanos() - off - others(bill.net()).as_nanos()).abs() <= 1);
        // What was paid between instants is what was paid.
        let instants: Vec<SimTime> = (0..200).map(|number| at(number * 60)).collect();
        let spent = over_time(&bill, &instants, END);
        assert!(spent.iter().all(|spent| spent.amount >= Money::ZERO && spent.rate >= HourlyRate::ZERO));
        let compute = sum(bill.net().iter().filter(|line| line.item.is_compute()));
        assert_eq!(spent.into_iter().map(|spent| spent.amount).sum::<Money>(), compute);
    }
}

fn two_hours_of_m5_large(billing: BillingSettings, reservations: Vec<CapacityReservation>) -> Bill {
    billed(
        BillingSettings { control_plane: Some(HourlyRate::ZERO), ..billing },
        reservations,
        &[(0, 0, 0, 7_200, false, false)],
        0,
    )
}

fn net_of_node(bill: &Bill) -> Money {
    let of_node = |line: &&crate::BillLine| line.node.is_some() && line.item.is_compute();
    sum(bill.net().iter().filter(of_node))
}

#[test]
fn node_bears_plan_cost_and_discount() {
    // Half of each hour at half price: 0.048 On-Demand and 0.024 by the plan.
    let plan = SavingsPlan {
        family: None,
        commitment: HourlyRate::parse("0.024").unwrap(),
        discount: 500_000,
        family_discounts: Vec::new(),
        fargate_discount: None,
        quality: PriceQuality::Published,
    };
    let commitments = Commitments { plans: vec![plan], ..Commitments::default() };
    let billing = BillingSettings { commitments, discount: 250_000, ..BillingSettings::default() };
    let bill = two_hours_of_m5_large(billing, Vec::new());
    assert_eq!(net_of_node(&bill).to_string(), "0.108000000", "two hours of 0.072, a quarter off");
    let spent = over_time(&bill, &[at(1_800)], END)[0];
    assert_eq!(spent.rate.to_string(), "0.054000000");
}

#[test]
fn node_pays_only_for_used_reservation_capacity() {
    let held = CapacityReservation {
        id: Symbol::new("cr-1"),
        instance_type: Symbol::new("m5.large"),
        zone: Symbol::new("us-east-1a"),
        count: 2,
        open: true,
        tags: Labels::new(),
        from: at(3_600),
        until: Some(at(10_800)),
        block: false,
        per_hour: None,
    };
    let bill = two_hours_of_m5_large(BillingSettings::default(), vec![held]);
    assert_eq!(net_of_node(&bill).to_string(), "0.192000000", "an hour outside, an hour inside");
    let unused = bill.net().iter().filter(|line| line.node.is_none() && line.item.is_compute());
    assert_eq!(sum(unused).to_string(), "0.288000000", "one place for an hour, two for the next");
    let rates = over_time(&bill, &[at(1_800), at(5_400), at(9_000), at(12_000)], END);
    let rates: Vec<String> = rates.iter().map(|spent| format!("{:.3}", spent.rate)).collect();
    assert_eq!(rates, ["0.096", "0.192", "0.192", "0.000"]);
}
