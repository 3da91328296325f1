//! What pods on Fargate cost.
//!
//! Source: AWS price lists of EKS and ECS as quoted in public repositories (2026-07 to 2026-09), Linux on x86. By the second with a minimum
//! of a minute, from the start of the image pull until the pod is deleted.
//!
//! Deviation: a Compute Savings Plan covers Fargate only if it sets `fargate_discount`. That discount applies to
//! vCPUs and memory.

use super::net::{Coverage, of_life};
use super::{Listed, Stretch, billed_time, blank, charge};
use crate::bill::{BillItem, BillLine};
use crate::commitments::{Platform, Usage, UsageKind};
use nodecast_model::catalog::{PriceQuality, Region};
use nodecast_model::domain::{Currency, HourlyRate, NodeId, SimTime, Symbol};

/// Regions whose prices of a vCPU and a GB for an hour are on record, in nano-dollars, and whether a price list has been quoted.
const LISTED: [(&str, i64, i64, bool); 9] = [
    ("us-east-1", 40_480_000, 4_445_000, true),
    ("us-west-2", 40_480_000, 4_445_000, true),
    ("ap-southeast-5", 45_504_000, 4_977_000, true),
    ("eu-central-1", 46_560_000, 5_110_000, true),
    ("ap-northeast-1", 50_560_000, 5_530_000, true),
    ("sa-east-1", 69_600_000, 7_600_000, false),
    ("us-east-2", 40_480_000, 4_445_000, false),
    ("eu-west-1", 40_480_000, 4_445_000, false),
    ("ap-southeast-1", 50_560_000, 5_530_000, false),
];
/// Other regions are taken to cost so many hundredths of us-east-1.
const ELSEWHERE_PERCENT: i64 = 112;
/// A GB of ephemeral storage beyond 20, in nano-dollars an hour.
const STORAGE: i64 = 111_000;
const MIB_PER_GB: i64 = 1_024;

/// What Fargate charges an hour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FargatePrices {
    /// A vCPU.
    pub vcpu: HourlyRate,
    /// A GB of memory.
    pub gb: HourlyRate,
    /// A GB of ephemeral storage beyond 20.
    pub storage: HourlyRate,
    /// How far the prices of a vCPU, of a GB of memory and of a GB of storage can be trusted.
    qualities: [PriceQuality; 3],
}

impl FargatePrices {
    /// Those of a region, with what the user states of a vCPU and of a GB. In regions of another currency than USD all else is zero, as
    /// nobody knows its price.
    pub fn new(region: &Region, vcpu: Option<HourlyRate>, gb: Option<HourlyRate>) -> Self {
        let listed = LISTED.iter().find(|pair| pair.0 == region.name.as_str());
        let base = LISTED[0];
        let elsewhere = |nanos: i64| nanos * ELSEWHERE_PERCENT / 100;
        let (own_vcpu, own_gb, published) =
            listed.map_or_else(|| (elsewhere(base.1), elsewhere(base.2), false), |pair| (pair.1, pair.2, pair.3));
        let listed = if published { PriceQuality::Published } else { PriceQuality::Assumed };
        let quality = |stated: Option<HourlyRate>| stated.map_or(listed, |_| PriceQuality::Own);
        let in_usd = |nanos| HourlyRate::from_nanos(if region.currency == Currency::Usd { nanos } else { 0 });
        Self {
            vcpu: vcpu.unwrap_or(in_usd(own_vcpu)),
            gb: gb.unwrap_or(in_usd(own_gb)),
            storage: in_usd(STORAGE),
            qualities: [quality(vcpu), quality(gb), listed],
        }
    }

    /// How far the less known of the prices of a vCPU and of a GB of memory can be trusted.
    pub fn quality(&self) -> PriceQuality {
        let [vcpu, gb, _] = self.qualities;
        vcpu.max(gb)
    }

    /// What a pod of this size costs an hour.
    pub fn hourly(&self, cpu_milli: i64, memory_mib: i64, storage_gib: i64) -> HourlyRate {
        self.vcpu.scaled(cpu_milli, 1_000)
            + self.gb.scaled(memory_mib, MIB_PER_GB)
            + self.storage.scaled(storage_gib, 1)
    }
}

/// A pod on Fargate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FargatePod {
    /// Its node.
    pub node: NodeId,
    /// Its zone.
    pub zone: Symbol,
    /// When its images began to be pulled.
    pub from: SimTime,
    /// When it was gone; `None` while it is there.
    pub until: Option<SimTime>,
    /// vCPUs in thousandths.
    pub cpu_milli: i64,
    /// Memory in MiB.
    pub memory_mib: i64,
    /// Ephemeral storage in GiB beyond 20.
    pub extra_storage_gib: i64,
}

/// The lines of the bill, in order of pods: vCPUs, memory, and storage where there is more than what comes with every pod.
/// What has no price where only stated ones are known is noted as left out.
pub(super) fn lines(
    (pods, prices): &(Vec<FargatePod>, FargatePrices),
    listed: &mut Listed,
    end: SimTime,
) -> Vec<BillLine> {
    let there = || pods.iter().filter(|pod| pod.from < end);
    if !listed.is_known() {
        let ordered =
            |fargate_pod: &FargatePod| [fargate_pod.cpu_milli, fargate_pod.memory_mib, fargate_pod.extra_storage_gib];
        let items = [BillItem::FargateCpu, BillItem::FargateMemory, BillItem::FargateStorage];
        let prices = [prices.vcpu, prices.gb, prices.storage];
        for (position, item) in items.into_iter().enumerate() {
            if prices[position] == HourlyRate::ZERO && there().any(|item| ordered(item)[position] > 0) {
                listed.leave_out(item);
            }
        }
    }
    there().flat_map(|item| of_pod(item, prices, end)).collect()
}

fn of_pod(pod: &FargatePod, prices: &FargatePrices, end: SimTime) -> impl Iterator<Item = BillLine> {
    let to = pod.until.unwrap_or(end).min(end);
    let billed = billed_time(to - pod.from);
    let rates = [
        (BillItem::FargateCpu, prices.vcpu.scaled(pod.cpu_milli, 1_000)),
        (BillItem::FargateMemory, prices.gb.scaled(pod.memory_mib, MIB_PER_GB)),
        (BillItem::FargateStorage, prices.storage.scaled(pod.extra_storage_gib, 1)),
    ];
    let (node, zone, from) = (pod.node, pod.zone, pod.from);
    let priced = rates.into_iter().zip(prices.qualities).filter(|((_, rate), _)| *rate > HourlyRate::ZERO);
    priced.map(move |((item, rate), quality)| BillLine {
        node: Some(node),
        zone: Some(zone),
        billed,
        rate,
        amount: charge(rate, billed),
        quality,
        ..blank(item, None, from, to)
    })
}

/// What the vCPUs (part 0) and the memory (1) of each pod used within a stretch of what Savings Plans may cover, with the pod's position.
pub(super) fn usage(
    pods: &[FargatePod],
    prices: &FargatePrices,
    (from, to): Stretch,
) -> impl Iterator<Item = ((usize, usize), Stretch, Usage)> {
    let running = pods.iter().enumerate().filter_map(move |(number, pod)| {
        let (began, ended) = (pod.from.max(from), pod.until.unwrap_or(to).min(to));
        (began < ended).then_some((number, pod, (began, ended)))
    });
    running.flat_map(|(number, pod, stretch)| {
        let parts = [
            (UsageKind::FargateCpu, prices.vcpu.scaled(pod.cpu_milli, 1_000)),
            (UsageKind::FargateMemory, prices.gb.scaled(pod.memory_mib, MIB_PER_GB)),
        ];
        let (ran, platform) = (stretch.1 - stretch.0, Platform::Linux);
        parts.into_iter().enumerate().map(move |(part, (kind, rate))| {
            ((number, part), stretch, Usage { kind, platform, zone: pod.zone, rate, ran, reserved: false })
        })
    })
}

/// The lines less what is covered of them, and what the plans cost for that. Storage is covered by none.
pub(super) fn net_lines(
    pods: &[FargatePod],
    prices: &FargatePrices,
    coverage: &Coverage,
    end: SimTime,
) -> Vec<BillLine> {
    let pods = pods.iter().enumerate().filter(|(_, pod)| pod.from < end);
    let net = pods.flat_map(|(number, pod)| {
        of_pod(pod, prices, end).flat_map(|line| net_of(line, number, coverage)).collect::<Vec<BillLine>>()
    });
    net.collect()
}

fn net_of(line: BillLine, pod: usize, coverage: &Coverage) -> Vec<BillLine> {
    let pieces = match line.item {
        BillItem::FargateCpu => coverage.of_fargate((pod, 0)),
        BillItem::FargateMemory => coverage.of_fargate((pod, 1)),
        _ => None,
    };
    match pieces {
        Some(pieces) => of_life(line.rate, std::slice::from_ref(&line), pieces, coverage.qualities()),
        None => vec![line],
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::{FargatePod, FargatePrices, lines};
    use crate::bill::BillItem;
    use crate::billing::listed::Listed;
    use nodecast_model::catalog::{PriceQuality, Region};
    use nodecast_model::domain::{HourlyRate, Money, NodeId, SimDuration, SimTime, Symbol};
    use nodecast_prices::Catalog;

    fn at(seconds: i64) -> SimTime {
        SimTime::ZERO + SimDuration::from_secs(seconds)
    }

    fn region(name: &str) -> Arc<Region> {
        Catalog::embedded().and_then(|catalog| catalog.region(name)).unwrap()
    }

    fn prices(name: &str) -> FargatePrices {
        FargatePrices::new(&region(name), None, None)
    }

    #[test]
    fn foreign_currency_bills_only_set_prices() {
        let china = region("cn-north-1");
        let stated = HourlyRate::parse("0.35");
        let pod = FargatePod {
            node: NodeId(0),
            zone: Symbol::new("cn-north-1a"),
            from: at(0),
            until: None,
            cpu_milli: 2_000,
            memory_mib: 4_096,
            extra_storage_gib: 0,
        };
        let mut listed = Listed::from_region(&china);
        let billed = lines(&(vec![pod], FargatePrices::new(&china, stated, None)), &mut listed, at(3_600));
        let told: Vec<_> = billed.iter().map(|line| (line.item, line.amount.to_string(), line.quality)).collect();
        assert_eq!(told, [(BillItem::FargateCpu, "0.700000000".to_owned(), PriceQuality::Own)]);
        assert_eq!(listed.into_unpriced(), [BillItem::FargateMemory], "nothing is said of storage that nobody orders");
    }

    #[test]
    fn set_fargate_price_is_marked_user_provided() {
        let prices = FargatePrices::new(&region("eu-south-2"), HourlyRate::parse("0.04"), None);
        assert_eq!(prices.qualities, [PriceQuality::Own, PriceQuality::Assumed, PriceQuality::Assumed]);
        assert_eq!(prices.quality(), PriceQuality::Assumed);
    }

    #[test]
    fn worked_sizes_cost_what_the_list_gives() {
        let this_prices = prices("us-east-1");
        assert_eq!(this_prices.hourly(1_000, 3 * 1_024, 0).to_string(), "0.053815000");
        assert_eq!(this_prices.hourly(2_000, 9 * 1_024, 0).to_string(), "0.120965000");
        assert_eq!(this_prices.quality(), PriceQuality::Published);
        assert_eq!(prices("eu-south-2").quality(), PriceQuality::Assumed);
        assert_eq!(prices("eu-south-2").vcpu.to_string(), "0.045337600");
    }

    #[test]
    fn fargate_pod_pays_at_least_one_minute() {
        let pod = |until| FargatePod {
            node: NodeId(0),
            zone: Symbol::new("us-east-1a"),
            from: at(100),
            until,
            cpu_milli: 250,
            memory_mib: 512,
            extra_storage_gib: 95,
        };
        let mut listed = Listed::from_region(&region("us-east-1"));
        let mut of = |until| lines(&(vec![pod(until)], prices("us-east-1")), &mut listed, at(3_700));
        let short = of(Some(at(130)));
        assert_eq!(
            short.iter().map(|line| line.item).collect::<Vec<_>>(),
            [BillItem::FargateCpu, BillItem::FargateMemory, BillItem::FargateStorage]
        );
        assert!(short.iter().all(|line| line.billed == SimDuration::from_secs(60)));
        let sum = |lines: &[crate::BillLine]| lines.iter().map(|line| line.amount).sum::<Money>().to_string();
        // 0.01012 + 0.0022225 + 0.010545 for an hour.
        assert_eq!(sum(&of(None)), "0.022887500");
    }
}
