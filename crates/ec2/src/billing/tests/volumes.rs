//! What volumes of nodes and of claims cost.

use std::sync::Arc;

use super::{account, at, bill, of_item, pool};
use crate::Ec2;
use crate::bill::BillItem;
use crate::billing::NonComputeUsage;
use crate::billing::disks::Disk;
use crate::settings::{BillingSettings, CloudSettings};
use nodecast_engine::Streams;
use nodecast_model::catalog::PriceQuality;
use nodecast_model::domain::volumes::{DiskClass, NodeVolume, NodeVolumes};
use nodecast_model::domain::{HourlyRate, NodeId, SimDuration, Symbol};
use nodecast_prices::Catalog;

#[test]
fn root_volume_is_billed_for_instance_life() {
    let mut ec2 = account(BillingSettings::default());
    let id = ec2.add_running(pool("m5.large", false), NodeId(0), &NodeVolumes::gp3(20), at(0)).unwrap();
    ec2.terminate(id, at(3_565));
    ec2.mark_terminated(id, at(3_600));
    // 20 GB at 0.08 a month of 730 hours.
    let bill = bill(&mut ec2, at(7_200), SimDuration::ZERO);
    assert_eq!(of_item(&bill, BillItem::RootVolume), "0.002191781");
}

#[test]
fn node_volumes_are_billed_on_one_line() {
    let volume = |gib, volume_type: &str, iops, throughput_mib| NodeVolume {
        gib,
        class: DiskClass { iops, throughput_mib, ..DiskClass::of_type(volume_type) },
    };
    let month = 730 * 3_600;
    for (volumes, cost) in [
        (vec![volume(100, "gp3", 0, 0)], 8.0),
        // 13,000 operations at 0.005 and 875 MiB/s at 0.04 beyond what comes with it.
        (vec![volume(100, "gp3", 16_000, 1_000)], 8.0 + 65.0 + 35.0),
        // 100 GiB at 0.125 and 16,000 operations at 0.065.
        (vec![volume(100, "io2", 16_000, 0)], 12.5 + 1_040.0),
        (vec![volume(50, "gp2", 0, 0), volume(100, "gp3", 3_000, 125)], 5.0 + 8.0),
        (vec![volume(500, "st1", 0, 0), volume(20, "standard", 0, 0)], 22.5 + 1.0),
    ] {
        let mut ec2 = account(BillingSettings::default());
        let node = volumes.iter().copied().collect();
        ec2.add_running(pool("m5.large", false), NodeId(0), &node, at(0)).unwrap();
        let bill = bill(&mut ec2, at(month), SimDuration::ZERO);
        let sum = of_item(&bill, BillItem::RootVolume).parse::<f64>().unwrap();
        assert!((sum - cost).abs() < 1e-5, "{volumes:?}: {sum}");
        assert_eq!(bill.lines.iter().filter(|line| line.item == BillItem::RootVolume).count(), 1);
    }
}

#[test]
fn set_gp3_price_applies_only_to_gp3() {
    let settings = BillingSettings { volume_per_month: HourlyRate::parse("0.2"), ..BillingSettings::default() };
    let mut ec2 = account(settings);
    let of_type = |volume_type| NodeVolume { gib: 100, class: DiskClass::of_type(volume_type) };
    let volumes = [of_type("gp2"), of_type("gp3")].into_iter().collect();
    ec2.add_running(pool("m5.large", false), NodeId(0), &volumes, at(0)).unwrap();
    let bill = bill(&mut ec2, at(730 * 3_600), SimDuration::ZERO);
    let sum = of_item(&bill, BillItem::RootVolume).parse::<f64>().unwrap();
    assert!((sum - 30.0).abs() < 1e-5, "10 of gp2 and 20 of gp3, not {sum}");
    let line = bill.lines.iter().find(|line| line.item == BillItem::RootVolume).unwrap();
    assert_eq!(line.quality, PriceQuality::Published, "the price of gp2 is not the user's own");
}

#[test]
fn claim_volumes_are_billed_while_they_exist() {
    let disk = |volume_type: Option<&str>, more: DiskClass| Disk {
        zone: Some(Symbol::new("us-east-1a")),
        gib: 100,
        class: DiskClass { volume_type: volume_type.map(Symbol::new), ..more },
        from: at(0),
        until: None,
    };
    let ordered = DiskClass { iops: 4_000, throughput_mib: 225, ..DiskClass::default() };
    let each = DiskClass { iops_per_gib: 20, ..DiskClass::default() };
    let month = 730 * 3_600;
    for (disk, cost) in [
        (disk(None, DiskClass::default()), "8.00"),
        (disk(Some("gp3"), ordered), "17.00"),
        (disk(Some("gp2"), ordered), "10.00"),
        (disk(Some("io1"), each), "142.50"),
        (disk(Some("sc1"), DiskClass::default()), "1.50"),
        (Disk { from: at(month / 2), ..disk(Some("gp2"), ordered) }, "5.00"),
        (Disk { until: Some(at(month / 4)), ..disk(Some("gp2"), ordered) }, "2.50"),
        (Disk { from: at(month), ..disk(Some("gp2"), ordered) }, "0.00"),
    ] {
        let mut ec2 = account(BillingSettings::default());
        let bill = super::super::bill(
            &mut ec2,
            at(month),
            &NonComputeUsage { disks: vec![disk], ..NonComputeUsage::default() },
        );
        let sum = of_item(&bill, BillItem::PersistentVolume).parse::<f64>().unwrap();
        assert!((sum - cost.parse::<f64>().unwrap()).abs() < 1e-5, "{disk:?}: {sum}");
    }
    let unknown = vec![disk(Some("sbg1"), DiskClass::default())];
    let mut ec2 = account(BillingSettings::default());
    let bill =
        super::super::bill(&mut ec2, at(month), &NonComputeUsage { disks: unknown, ..NonComputeUsage::default() });
    let line = bill.lines.iter().find(|line| line.item == BillItem::PersistentVolume).unwrap();
    assert_eq!(line.quality, PriceQuality::Assumed);
}

#[test]
fn iops_per_gib_are_capped_at_maximum() {
    let each = |volume_type: &str, iops_per_gib| DiskClass { iops_per_gib, ..DiskClass::of_type(volume_type) };
    for (class, gib, ordered) in [
        (each("io1", 50), 4_096, 64_000),
        (each("io1", 80), 100, 5_000),
        (each("io2", 1_000), 1_024, 256_000),
        (each("gp3", 500), 1_000, 80_000),
        (each("gp3", 600), 4, 2_400),
        (DiskClass { iops: 20_000, ..DiskClass::of_type("io1") }, 100, 5_000),
    ] {
        assert_eq!(class.ordered_iops(gib), ordered, "{class:?} of {gib} GiB");
    }
    let month = 730 * 3_600;
    let disk = Disk { zone: None, gib: 4_096, class: each("io1", 50), from: at(0), until: None };
    let mut ec2 = account(BillingSettings::default());
    let bill =
        super::super::bill(&mut ec2, at(month), &NonComputeUsage { disks: vec![disk], ..NonComputeUsage::default() });
    let sum = of_item(&bill, BillItem::PersistentVolume).parse::<f64>().unwrap();
    assert!((sum - (512.0 + 4_160.0)).abs() < 1e-4, "4,096 GiB at 0.125 and 64,000 operations at 0.065, not {sum}");
}

#[test]
fn volumes_cost_what_they_do_in_their_region() {
    let region = Catalog::embedded().and_then(|catalog| catalog.region("eu-central-1")).unwrap();
    let month = 730 * 3_600;
    let class = |volume_type: &str, iops| DiskClass {
        volume_type: Some(Symbol::new(volume_type)),
        iops,
        ..DiskClass::default()
    };
    let of_class = |class| Disk { zone: None, gib: 100, class, from: at(0), until: None };
    let disks = [of_class(class("gp3", 0)), of_class(class("io2", 70_000))];
    let billed = |stated| {
        let billing = BillingSettings { volume_per_month: stated, ..BillingSettings::default() };
        let settings = Arc::new(CloudSettings { billing, ..CloudSettings::default() });
        let mut ec2 = Ec2::new(Arc::clone(&region), Streams::new(5), settings, at(month));
        let bill = super::super::bill(
            &mut ec2,
            at(month),
            &NonComputeUsage { disks: disks.to_vec(), ..NonComputeUsage::default() },
        );
        let lines = bill.lines.into_iter().filter(|line| line.item == BillItem::PersistentVolume);
        lines.map(|line| (line.amount.as_f64(), line.quality)).collect::<Vec<_>>()
    };
    let near = |one: f64, other: f64| assert!((one - other).abs() < 1e-4, "{one} is not {other}");
    let listed = billed(None);
    near(listed[0].0, 9.52);
    near(listed[1].0, 14.90 + 32_000.0 * 0.078 + 32_000.0 * 0.0546 + 6_000.0 * 0.03822);
    assert!(listed.iter().all(|line| line.1 == PriceQuality::Published));
    let stated = billed(HourlyRate::parse("0.05"));
    near(stated[0].0, 5.0);
    assert_eq!((stated[0].1, stated[1]), (PriceQuality::Own, listed[1]));
}
