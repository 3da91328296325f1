//! What EBS volumes cost, those of nodes and those of claims.
//!
//! Source: AWS pricing of EBS, 2025-10-28. What is ordered is billed, used or not: size, and of gp3, io1 and io2 also I/O
//! operations and throughput beyond what comes with the size.
//!
//! Deviation: operations on `standard` volumes are not billed.

use super::{HOURS_PER_MONTH, Listed, billed_time, blank, charge};
use crate::bill::{BillItem, BillLine};
use nodecast_model::catalog::{PriceQuality, VolumePrices};
use nodecast_model::domain::volumes::{DiskClass, NodeVolumes};
use nodecast_model::domain::{HourlyRate, SimTime, Symbol};

/// I/O operations and MiB per second that come with a gp3 volume.
const GP3_IOPS: i64 = 3_000;
const GP3_THROUGHPUT: i64 = 125;
/// I/O operations per second of io2 up to which the first price holds, and up to which the second does.
const IO2_TIERS: [i64; 2] = [32_000, 64_000];

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

/// What volumes cost in a region, and how far that can be trusted.
#[derive(Clone, Copy, Debug)]
pub(super) struct ListedVolumes {
    /// `None` where they are not known in the region's currency.
    prices: Option<VolumePrices>,
    /// What the user states of a GiB of gp3.
    gp3: Option<HourlyRate>,
    quality: PriceQuality,
    /// Of gp3, of which the user may have stated what a GiB costs.
    quality_of_gp3: PriceQuality,
}

impl ListedVolumes {
    /// The region's prices, else those of us-east-1 where these are in its currency, with what the user states of a GiB of gp3.
    pub(super) fn new(listed: Option<VolumePrices>, gp3: Option<HourlyRate>, as_us_east: bool) -> Self {
        let quality = if listed.is_some() { PriceQuality::Published } else { PriceQuality::Assumed };
        let prices = listed.or_else(|| as_us_east.then_some(VolumePrices::US_EAST_1));
        let prices = prices.map(|price| VolumePrices { gp3: gp3.unwrap_or(price.gp3), ..price });
        Self { prices, gp3, quality, quality_of_gp3: gp3.map_or(quality, |_| PriceQuality::Own) }
    }

    /// What the volumes of a node cost together for a month, and how well that is known of the least known; `None` where nothing is.
    pub(super) fn of_node(&self, volumes: &NodeVolumes, listed: &mut Listed) -> Option<(HourlyRate, PriceQuality)> {
        let mut sum: Option<(HourlyRate, PriceQuality)> = None;
        for volume in volumes.iter() {
            if let Some((per_month, quality)) = self.per_month(volume.gib, volume.class, BillItem::RootVolume, listed) {
                let (before, worst) = sum.unwrap_or((HourlyRate::ZERO, PriceQuality::Own));
                sum = Some((before + per_month, worst.max(quality)));
            }
        }
        let is_free = volumes.iter().next().is_none();
        sum.or_else(|| is_free.then_some((HourlyRate::ZERO, PriceQuality::Own)))
    }

    /// What a volume costs for a month, and how that is known. What has no price is noted as left out of the item.
    fn per_month(
        &self,
        gib: i64,
        class: DiskClass,
        item: BillItem,
        listed: &mut Listed,
    ) -> Option<(HourlyRate, PriceQuality)> {
        if let Some(prices) = &self.prices {
            return Some(self.by_list(prices, gib, class));
        }
        let is_gp3 = class.volume_type.is_none_or(|volume_type| volume_type.as_str() == "gp3");
        let is_plain = class.ordered_iops(gib) <= GP3_IOPS && i64::from(class.throughput_mib) <= GP3_THROUGHPUT;
        if !is_gp3 || !is_plain || self.gp3.is_none() {
            listed.leave_out(item);
        }
        Some((self.gp3.filter(|_| is_gp3)?.scaled(gib.max(0), 1), PriceQuality::Own))
    }

    /// What a volume costs for a month by these prices: as gp3 where its type is not known.
    fn by_list(&self, prices: &VolumePrices, gib: i64, class: DiskClass) -> (HourlyRate, PriceQuality) {
        let iops = class.ordered_iops(gib);
        let times = |price: HourlyRate, count: i64| price.scaled(count.max(0), 1);
        let size = |per_gib| times(per_gib, gib);
        let gp3 = || {
            let throughput = times(prices.gp3_throughput, i64::from(class.throughput_mib) - GP3_THROUGHPUT);
            size(prices.gp3) + times(prices.gp3_iops, iops - GP3_IOPS) + throughput
        };
        let [first, second, third] = prices.io2_iops;
        let [up_to, beyond] = IO2_TIERS;
        let of_io2 = || {
            let in_tiers = times(first, iops.min(up_to)) + times(second, iops.min(beyond) - up_to);
            size(prices.io2) + in_tiers + times(third, iops - beyond)
        };
        match class.type_name() {
            "gp3" => (gp3(), self.quality_of_gp3),
            "gp2" => (size(prices.gp2), self.quality),
            "io1" => (size(prices.io1) + times(prices.io1_iops, iops), self.quality),
            "io2" => (of_io2(), self.quality),
            "st1" => (size(prices.st1), self.quality),
            "sc1" => (size(prices.sc1), self.quality),
            "standard" => (size(prices.standard), self.quality),
            _ => (gp3(), PriceQuality::Assumed),
        }
    }
}

/// The lines of the bill, in the order of `disks`.
pub(super) fn lines(disks: &[Disk], volumes: ListedVolumes, listed: &mut Listed, end: SimTime) -> Vec<BillLine> {
    let line = |disk: &Disk| {
        let item = BillItem::PersistentVolume;
        let (per_month, quality) = volumes.per_month(i64::from(disk.gib), disk.class, item, listed)?;
        let to = disk.until.unwrap_or(end).min(end);
        let rate = per_month.scaled(1, HOURS_PER_MONTH);
        let billed = billed_time(to - disk.from);
        Some(BillLine {
            billed,
            rate,
            amount: charge(rate, billed),
            quality,
            zone: disk.zone,
            ..blank(item, None, disk.from, to)
        })
    };
    disks.iter().filter(|disk| disk.from < end).filter_map(line).collect()
}
