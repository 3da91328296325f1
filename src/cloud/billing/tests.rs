use std::sync::Arc;

use proptest::prelude::{prop, proptest};

use super::{Charge, bill, by_the_hour, charges, is_free};
use crate::catalog::{Catalog, PriceQuality};
use crate::cloud::bill::BillItem;
use crate::cloud::commitments::{CapacityReservation, Commitments, SavingsPlan};
use crate::cloud::market::PriceInterval;
use crate::cloud::settings::{BillingSettings, CloudSettings};
use crate::cloud::{Bill, Ec2, EndedBy, Pool};
use crate::domain::{HourlyRate, Money, NodeId, SimDuration, SimTime, Symbol, well_known};
use crate::engine::Streams;

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
fn short_lives_are_billed_for_a_minute_and_long_ones_by_the_second() {
    assert_eq!(charged(&[("0.096", 45)]), "0.001600000");
    assert_eq!(charged(&[("0.096", 5_400)]), "0.144000000");
    let mut life = prices(&[("0.036", 60)]);
    life[0].to += SimDuration::from_millis(100);
    assert_eq!(charges(&life)[0].amount.to_string(), "0.000610000");
}

#[test]
fn spot_that_ec2_ends_within_its_first_hour_is_free_and_a_second_after_it_is_not() {
    assert!(is_free(SimDuration::from_secs(3_599), Some(EndedBy::Ec2)));
    assert!(!is_free(SimDuration::from_secs(3_600), Some(EndedBy::Ec2)));
    assert_eq!(charged(&[("0.04", 3_601)]), "0.040011111");
}

#[test]
fn spot_that_karpenter_drains_after_a_warning_is_charged() {
    assert!(!is_free(SimDuration::from_secs(1_910), Some(EndedBy::User)));
    assert_eq!(charged(&[("0.04", 1_910)]), "0.021222222");
}

#[test]
fn a_price_that_changes_during_the_hour_is_integrated_or_taken_at_its_start() {
    let life = prices(&[("0.04", 1_800), ("0.05", 1_800)]);
    let total = |charges: Vec<Charge>| charges.iter().map(|charge| charge.amount).sum::<Money>().to_string();
    assert_eq!(total(charges(&life)), "0.045000000");
    assert_eq!(total(charges(&by_the_hour(&life))), "0.040000000");
}

fn account(billing: BillingSettings) -> Ec2 {
    let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
    let settings = CloudSettings { billing, ..CloudSettings::default() };
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
fn the_control_plane_costs_73_a_month_and_438_under_extended_support() {
    let month = at(730 * 3_600);
    let standard = bill(&mut account(BillingSettings::default()), month, SimDuration::ZERO);
    assert_eq!(of_item(&standard, BillItem::ControlPlane), "73.000000000");
    let extended = BillingSettings { control_plane: HourlyRate::parse("0.6").unwrap(), ..BillingSettings::default() };
    let extended = bill(&mut account(extended), month, SimDuration::ZERO);
    assert_eq!(of_item(&extended, BillItem::ControlPlane), "438.000000000");
}

#[test]
fn an_interrupted_first_hour_is_credited_and_its_volume_is_not() {
    let mut ec2 = account(BillingSettings::default());
    let id = ec2.add_running(pool("m5.large", true), NodeId(0), 20, at(0)).unwrap();
    ec2.reclaim(id, at(1_800));
    ec2.mark_terminated(id, at(1_840));
    let bill = bill(&mut ec2, at(7_200), SimDuration::ZERO);
    let of_instance = |item| bill.lines.iter().filter(|line| line.item == item).map(|line| line.amount).sum::<Money>();
    assert!(of_instance(BillItem::Instance) > Money::ZERO);
    assert_eq!(of_instance(BillItem::Instance) + of_instance(BillItem::FreeFirstHour), Money::ZERO);
    assert!(of_instance(BillItem::RootVolume) > Money::ZERO);
}

#[test]
fn addresses_fees_and_discounts_are_lines_of_their_own() {
    let billing = BillingSettings {
        public_ipv4: HourlyRate::parse("0.005"),
        node_fee: HourlyRate::parse("0.02").unwrap(),
        discount_permille: 100,
        ..BillingSettings::default()
    };
    let mut ec2 = account(billing);
    ec2.add_running(pool("m5.large", false), NodeId(0), 0, at(0)).unwrap();
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::PublicIpv4), "0.005000000");
    // A tenth of instance, address and control plane; the vendor's fee is not AWS's.
    assert_eq!(of_item(&bill, BillItem::Discount), "-0.020100000");
    assert_eq!(of_item(&bill, BillItem::NodeFee), "0.020000000");
    assert_eq!(bill.total().to_string(), "0.200900000");
}

#[test]
fn a_plan_is_paid_by_the_clock_hour_and_what_it_does_not_cover_is_shown() {
    let plan = SavingsPlan {
        family: None,
        commitment: HourlyRate::parse("0.048").unwrap(),
        discount_permille: 500,
        family_discounts: Vec::new(),
    };
    let commitments = Commitments { plans: vec![plan], ..Commitments::default() };
    let mut ec2 = account(BillingSettings { commitments, ..BillingSettings::default() });
    // From half past to the full hour, then gone.
    let id = ec2.add_running(pool("m5.large", false), NodeId(0), 0, at(0)).unwrap();
    ec2.terminate(id, at(1_800));
    let bill = bill(&mut ec2, at(5_400), SimDuration::from_secs(1_800));
    assert_eq!(of_item(&bill, BillItem::Instance), "0.048000000");
    assert_eq!(of_item(&bill, BillItem::Covered), "-0.048000000");
    assert_eq!(of_item(&bill, BillItem::SavingsPlans), "0.024000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCommitment), "0.048000000");
}

#[test]
fn what_runs_in_a_capacity_reservation_costs_nothing_more_and_what_is_unused_is_shown() {
    let zone = Symbol::new("us-east-1a");
    let held = CapacityReservation { instance_type: Symbol::new("m4.large"), zone, count: 20 };
    let commitments = Commitments { capacity: vec![held], ..Commitments::default() };
    let mut ec2 = account(BillingSettings { commitments, ..BillingSettings::default() });
    for node in 0..15 {
        ec2.add_running(pool("m4.large", false), NodeId(node), 0, at(0)).unwrap();
    }
    let bill = bill(&mut ec2, at(3_600), SimDuration::ZERO);
    // m4.large costs 0.10 On-Demand.
    assert_eq!(of_item(&bill, BillItem::Instance), "1.500000000");
    assert_eq!(of_item(&bill, BillItem::Covered), "-1.500000000");
    assert_eq!(of_item(&bill, BillItem::CapacityReservation), "1.500000000");
    assert_eq!(of_item(&bill, BillItem::UnusedCapacityReservation), "0.500000000");
}

/// The integral of the published price over a life, with the 60 s minimum, in plain arithmetic by the second.
fn integral(ec2: &mut Ec2, pool: Pool, from: i64, to: i64) -> f64 {
    let last = to.max(from + 60);
    (from..last)
        .map(|second| {
            // Beyond the end of a short life its last price holds.
            let instant = at(second.min(to - 1));
            ec2.market().price(pool, instant).unwrap().0.as_f64() / 3_600.0
        })
        .sum()
}

proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 100, ..Default::default() })]

    #[test]
    fn the_bill_is_the_integral_of_the_price_over_instance_lives(
        lives in prop::collection::vec((0_usize..4, 0_i64..100_000, 1_i64..20_000, proptest::bool::ANY), 10),
    ) {
        let mut ec2 = account(BillingSettings::default());
        let names = ["m5.large", "c5.xlarge", "r5.2xlarge", "m6g.large"];
        let mut expected = Vec::new();
        for (number, &(name, from, span, spot)) in lives.iter().enumerate() {
            let pool = pool(names[name], spot);
            let id = ec2.add_running(pool, NodeId(number as u32), 20, at(from)).unwrap();
            ec2.terminate(id, at(from + span));
            ec2.mark_terminated(id, at(from + span + 35));
            expected.push(integral(&mut ec2, pool, from, from + span));
        }
        let bill = bill(&mut ec2, at(200_000), SimDuration::ZERO);
        for (number, expected) in expected.into_iter().enumerate() {
            let of_life = bill.lines.iter().filter(|line| {
                line.item == BillItem::Instance && line.node == Some(NodeId(number as u32))
            });
            let billed = of_life.map(|line| line.amount).sum::<Money>().as_f64();
            // A change within a second is billed to the microsecond.
            assert!((billed - expected).abs() < 1e-5, "{billed} against {expected}");
        }
    }
}
