//! What the EBS volumes of claims cost.
//!
//! Source: AWS pricing of EBS, us-east-1, 2026. What is ordered is billed, used or not: size, and of gp3, io1 and io2 also I/O
//! operations and throughput beyond what comes with the size.
//!
//! Deviation: operations of io2 beyond 32,000 cost what the first do, and those that `standard` volumes are billed for are
//! not counted.

use super::{HOURS_PER_MONTH, billed_time, blank, charge};
use crate::catalog::PriceQuality;
use crate::cloud::bill::{BillItem, BillLine};
use crate::domain::volumes::DiskClass;
use crate::domain::{HourlyRate, SimTime, Symbol};

/// An EBS volume of a claim, or one made by hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Disk {
    /// Where it is, if that is known.
    pub zone: Option<Symbol>,
    /// Its size in GiB.
    pub gib: u32,
    /// What it was ordered as.
    pub class: DiskClass,
    /// When it was made; the start of the run for one that was there.
    pub from: SimTime,
    /// When it was deleted.
    pub until: Option<SimTime>,
}

/// Prices for a month, in nano-units.
struct Prices {
    per_gib: i64,
    /// For each operation per second, and how many come with the size.
    per_iops: (i64, i64),
    /// For each MiB per second, and how many come with the size.
    per_mib: (i64, i64),
}

impl Prices {
    /// The prices of a volume type; those of gp3 for one that is not known, with `false`.
    fn of(volume_type: &str, gp3: HourlyRate) -> (Self, bool) {
        let of_size = |per_gib| (Self { per_gib, per_iops: (0, 0), per_mib: (0, 0) }, true);
        let with_iops = |per_gib| (Self { per_gib, per_iops: (65_000_000, 0), per_mib: (0, 0) }, true);
        let gp3 = Self { per_gib: gp3.as_nanos(), per_iops: (5_000_000, 3_000), per_mib: (40_000_000, 125) };
        match volume_type {
            "gp3" => (gp3, true),
            "gp2" => of_size(100_000_000),
            "io1" | "io2" => with_iops(125_000_000),
            "st1" => of_size(45_000_000),
            "sc1" => of_size(15_000_000),
            "standard" => of_size(50_000_000),
            _ => (gp3, false),
        }
    }

    fn per_month(&self, disk: &Disk) -> HourlyRate {
        let (gib, class) = (i64::from(disk.gib), disk.class);
        let iops = if class.iops > 0 { i64::from(class.iops) } else { i64::from(class.iops_per_gib) * gib };
        let beyond = |(price, included): (i64, i64), ordered: i64| price * (ordered - included).max(0);
        let sum = self.per_gib * gib + beyond(self.per_iops, iops);
        HourlyRate::from_nanos(sum + beyond(self.per_mib, i64::from(class.throughput_mib)))
    }
}

/// The lines of the bill, in the order of `disks`; `gp3` is a GiB of gp3 for a month.
pub(super) fn lines<'d>(
    disks: &'d [Disk],
    gp3: HourlyRate,
    quality: PriceQuality,
    end: SimTime,
) -> impl Iterator<Item = BillLine> + 'd {
    disks.iter().filter(move |disk| disk.from < end).map(move |disk| {
        let (prices, known) = Prices::of(disk.class.volume_type.map_or("gp3", Symbol::as_str), gp3);
        let to = disk.until.unwrap_or(end).min(end);
        let rate = prices.per_month(disk).scaled(1, HOURS_PER_MONTH);
        let billed = billed_time(to - disk.from);
        BillLine {
            billed,
            rate,
            amount: charge(rate, billed),
            quality: if known { quality } else { PriceQuality::Assumed },
            zone: disk.zone,
            ..blank(BillItem::PersistentVolume, None, disk.from, to)
        }
    })
}
