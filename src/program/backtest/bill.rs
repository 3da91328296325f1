//! The bill of the judged time beside the simulated one: `nodecast-observed` reads it, here it meets the simulations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nodecast_observed::bill::{
    Amount, CapacityType, Cluster, ComparedBill, Contents, Format, Group, Ledger, LinesRead, LinkKind, NodeKey,
    ReadOptions, Rule, Share, Totals, chain, price_held, read_file,
};

use nodecast_model::text::InputError;
use nodecast_observed::observation::{ABOUT_FILE, cluster_name};
use serde::Deserialize;

use super::super::Failure;
use crate::cloud::BillItem;
use crate::domain::words::counted;
use crate::domain::{HourlyRate, Money, SimDuration, SimTime, Symbol, well_known};
use crate::evidence::backtest::figures::Window;
use crate::evidence::backtest::history::{Charge, History, NodeLife};
use crate::evidence::backtest::{BillComparison, BillLink, BillPart};
use crate::report::format::money;

/// Groups of a smaller share of what is simulated are not worth a hint.
const HINT_SHARE: f64 = 0.01;
/// How many stretches of hours without a line are named.
const GAPS_NAMED: usize = 3;
/// A group is far beyond the bill where it is simulated at so many times of what was billed.
const BEYOND: f64 = 1.5;

/// What to read of bills.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct BillRequest {
    /// Bill for the evaluated period, to compare with the simulated bill: AWS Cost and Usage Report or FOCUS export, as CSV, gzip, or
    /// Parquet. Repeatable
    #[arg(long = "bill", value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Cluster name in the bill's tags and ARNs [default: the name the observation was selected by, or the scenario's]
    #[arg(long, value_name = "NAME", requires = "files")]
    pub cluster: Option<String>,
    /// Share of unattributed bill lines to assign to this cluster, by usage type, for example nat=100%
    #[arg(long = "share", value_name = "TYPE=PERCENT", requires = "files")]
    pub shares: Vec<String>,
}

/// A bill of the cluster, and the files that it was read from.
pub struct RecordedBill {
    totals: Totals,
    files: Vec<String>,
    ignored: Vec<String>,
}

/// Costs of a simulated bill by the group of the real one that they belong to; instances stand apart.
fn group_of(item: Symbol) -> Group {
    const GROUPS: [(BillItem, Group); 27] = [
        (BillItem::RootVolume, Group::Ebs),
        (BillItem::WarmPoolVolume, Group::Ebs),
        (BillItem::WarmPool, Group::NodesOnDemand),
        (BillItem::PersistentVolume, Group::Ebs),
        (BillItem::ControlPlane, Group::ControlPlane),
        (BillItem::ExtendedSupport, Group::ControlPlane),
        (BillItem::ControlPlaneTier, Group::ControlPlane),
        (BillItem::LoadBalancer, Group::LoadBalancers),
        (BillItem::LoadBalancerCapacity, Group::LoadBalancers),
        (BillItem::NatGateway, Group::Nat),
        (BillItem::NatTransfer, Group::Nat),
        (BillItem::CrossZoneTransfer, Group::BetweenZones),
        (BillItem::PublicIpv4, Group::PublicIpv4),
        (BillItem::CpuCredits, Group::CpuCredits),
        (BillItem::ReservedInstances, Group::Commitments),
        (BillItem::SavingsPlans, Group::Commitments),
        (BillItem::UnusedCommitment, Group::Commitments),
        (BillItem::Covered, Group::Commitments),
        (BillItem::CapacityReservation, Group::CapacityReservations),
        (BillItem::UnusedCapacityReservation, Group::CapacityReservations),
        (BillItem::Discount, Group::Discounts),
        (BillItem::FreeFirstHour, Group::NodesSpot),
        (BillItem::NodeFee, Group::AutoMode),
        (BillItem::AutoModeFee, Group::AutoMode),
        (BillItem::FargateCpu, Group::Fargate),
        (BillItem::FargateMemory, Group::Fargate),
        (BillItem::FargateStorage, Group::Fargate),
    ];
    let known = GROUPS.into_iter().find(|(key, _)| key.as_str() == item.as_str());
    known.map_or_else(|| Group::Rest(item.to_string()), |(_, group)| group)
}

/// What an observation says of what chose it.
#[derive(Deserialize)]
struct Chosen {
    #[serde(default)]
    cluster: Vec<String>,
}

/// The name of the cluster that chose an observation, if it is one and a matcher names it.
pub fn observed_name(recorded: &Path) -> Option<String> {
    let text = std::fs::read_to_string(recorded.join(ABOUT_FILE)).ok()?;
    let chosen: Chosen = serde_json::from_str(&text).ok()?;
    cluster_name(&chosen.cluster).map(str::to_owned)
}

/// Reads the lines of the cluster in the judged time.
///
/// # Errors
/// If a file cannot be used, or no line is the cluster's.
pub fn read(
    request: &BillRequest,
    default_name: &str,
    record: &History,
    judged: Window,
) -> Result<RecordedBill, Failure> {
    let instant = |at: SimTime| {
        let micros = record.start.as_microsecond() + at.as_micros();
        jiff::Timestamp::from_microsecond(micros).unwrap_or(record.start)
    };
    let options = ReadOptions { window: Some((instant(judged.from), instant(judged.until))), ..ReadOptions::default() };
    let shares =
        request.shares.iter().map(|text| Share::parse(text)).collect::<Result<Vec<_>, _>>().map_err(refused)?;
    let cluster_shares = shares.clone();
    let cluster = Cluster {
        name: request.cluster.clone().unwrap_or_else(|| default_name.to_owned()),
        node_pools: record
            .nodes
            .iter()
            .flatten()
            .map(|node| node.origin.to_string())
            .filter(|name| !name.is_empty())
            .collect(),
        shares,
        ..Cluster::default()
    };
    let mut ledger = Ledger::new(cluster);
    let mut ignored = Vec::new();
    let mut tables: Vec<(&Path, LinesRead)> = Vec::new();
    for file in &request.files {
        ledger.next_file();
        match read_file(file, &options, &mut |line| ledger.take(line)).map_err(refused)? {
            Contents::Lines(read) => tables.push((file, read)),
            // Daily totals name no resources, and OpenCost's costs are guesses until they are reconciled.
            _ => ignored.push(format!("{} names no resources: it is left out of the comparison", file.display())),
        }
    }
    one_account_of_charges(&tables)?;
    if tables.is_empty() {
        return Err(refused(
            InputError::new(
                "no file of the bill says which resource a charge is of, so none can be told to be the cluster's",
            )
            .help("give a Cost and Usage Report or a FOCUS export, with resource ids"),
        ));
    }
    if let Some(none) = outside(&tables, options.window) {
        return Err(none);
    }
    let totals = ledger.finish().map_err(refused)?;
    ignored.extend(flaws(&totals, record, options.window));
    for share in &cluster_shares {
        let is_used = |rule: &Rule| matches!(rule, Rule::Share(pattern) if pattern == &share.pattern);
        if !totals.rules.keys().any(is_used) {
            ignored.push(format!("no line of the judged time fits --share {}: it changes nothing", share.pattern));
        }
    }
    let files = request.files.iter().map(|file| file.display().to_string()).collect();
    Ok(RecordedBill { totals, files, ignored })
}

fn refused(error: InputError) -> Failure {
    error.into()
}

/// Refuses two accounts of the same charges: a report of cost and usage and a FOCUS export of one time have no id in common by which to tell.
fn one_account_of_charges(tables: &[(&Path, LinesRead)]) -> Result<(), Failure> {
    let is_focus = |read: &LinesRead| matches!(read.format, Format::Focus(_));
    let overlap = |one: &LinesRead, other: &LinesRead| {
        one.span.zip(other.span).is_some_and(|(one, other)| one.0 < other.1 && other.0 < one.1)
    };
    for (place, (file, read)) in tables.iter().enumerate() {
        let twice = tables[..place].iter().find(|(_, other)| is_focus(read) != is_focus(other) && overlap(read, other));
        if let Some((other, _)) = twice {
            let (one, other) = (other.display(), file.display());
            return Err(refused(
                InputError::new(format!(
                    "{one} and {other} are of the same time in two formats: every charge would count twice"
                ))
                .help("use only one of them"),
            ));
        }
    }
    Ok(())
}

/// The error where rows were read and none is of the judged time.
fn outside(tables: &[(&Path, LinesRead)], window: Option<(jiff::Timestamp, jiff::Timestamp)>) -> Option<Failure> {
    let rows: u64 = tables.iter().map(|(_, read)| read.rows).sum();
    let outside: u64 = tables.iter().map(|(_, read)| read.outside).sum();
    let (from, until) = window.filter(|_| rows > 0 && outside == rows)?;
    Some(refused(
        InputError::new(format!("no charge of the bill begins in the judged time, from {from} to {until}"))
            .help("give the bill of that time, by the hour: a line of a day or a month counts where it begins"),
    ))
}

/// What makes a bill say less, or more, than the cluster cost.
fn flaws(totals: &Totals, record: &History, window: Option<(jiff::Timestamp, jiff::Timestamp)>) -> Vec<String> {
    let mut flaws = Vec::new();
    let lines = |count: u64| counted(count, "line", "lines");
    if totals.repeated.lines > 0 {
        flaws.push(format!("{} of the bill stand there twice, and count once", lines(totals.repeated.lines)));
    }
    if totals.same_id.lines > 0 {
        flaws.push(format!(
            "{} of the bill have the id of another of the same hour and another amount, and count beside it: give the files of one version of the export",
            lines(totals.same_id.lines)
        ));
    }
    let mut gaps = totals.hours_without_lines();
    if let Some(((from, until), (first, last))) = window.zip(totals.span).filter(|_| totals.is_hourly()) {
        // The hour in which the time begins may have begun before it.
        let hour = jiff::SignedDuration::from_hours(1);
        gaps.splice(0..0, Some((from, first)).filter(|_| first.duration_since(from) >= hour));
        gaps.extend(Some((last, until)).filter(|_| until.duration_since(last) >= hour));
    }
    let gaps: Vec<String> = gaps.iter().map(|(from, until)| format!("{from} to {until}")).collect();
    if !gaps.is_empty() {
        let more = if gaps.len() > GAPS_NAMED { ", ..." } else { "" };
        let named = gaps.iter().take(GAPS_NAMED).cloned().collect::<Vec<_>>().join(", ");
        flaws.push(format!("no line of the bill is of {named}{more}: a part of the export may be missing"));
    }
    if !totals.is_hourly() {
        flaws.extend(window.zip(totals.span).and_then(|(window, span)| beyond(window, span)));
    }
    if record.charges.is_none() && spot_without_hours(totals).any(|(_, hours, _)| hours > Amount::ZERO) {
        flaws.push(
            "lines of the bill longer than an hour do not say what Spot cost in which hour: the mean price of each pool stands for it"
                .to_owned(),
        );
    }
    if totals.nodes.is_empty() && record.nodes.iter().flatten().any(NodeLife::was_launched) {
        flaws.push(
            "no line of the bill is of a node: the tag that names the cluster was not activated then, or instances do not carry it"
                .to_owned(),
        );
    }
    flaws
}

/// What a bill of lines longer than an hour leaves out of the judged time, or has beyond it: each counts whole where it begins.
fn beyond(
    (from, until): (jiff::Timestamp, jiff::Timestamp),
    (first, last): (jiff::Timestamp, jiff::Timestamp),
) -> Option<String> {
    (first != from || last != until).then(|| {
        format!(
            "lines of the bill are longer than an hour and count whole where they begin: those from {first} to {last} stand for the judged \
             time, from {from} to {until}; judge whole days, or give a bill by the hour"
        )
    })
}

impl RecordedBill {
    /// What was left out, a sentence each.
    pub fn warnings(&self) -> impl Iterator<Item = &String> {
        self.ignored.iter()
    }

    /// Refuses a bill in another currency than that of the simulations.
    ///
    /// # Errors
    /// If it is.
    pub fn refuse_other_currency(&self, simulated: &str) -> Result<(), Failure> {
        let billed = &self.totals.currency;
        if billed.is_empty() || billed == simulated {
            return Ok(());
        }
        Err(refused(
            InputError::new(format!(
                "the bill is in `{billed}` and the simulation in {simulated}: they cannot be compared"
            ))
            .help(format!("export the bill in {simulated}: nothing here converts between currencies")),
        ))
    }

    /// The currency.
    pub fn currency(&self) -> &str {
        &self.totals.currency
    }

    /// The charges that simulations know, as lines of a record that has no bill of its own: hours of instances at what they cost,
    /// everything else spread over the judged time, and so what lines longer than an hour say of Spot.
    pub fn charges(&self, record: &History, judged: Window) -> Vec<Charge> {
        let mut charges = Vec::new();
        for (key, hour) in &self.totals.spot {
            let from = SimTime::from_micros(key.hour.as_microsecond() - record.start.as_microsecond());
            let until = (from + SimDuration::from_secs(3_600)).min(judged.until);
            let kind = (key.instance_type.as_str(), key.zone.as_str(), well_known::SPOT);
            charges.push(instance(kind, (from, until), hour.hours, hour.cost));
        }
        for (key, hours, cost) in spot_without_hours(&self.totals) {
            let kind = (key.instance_type.as_str(), key.zone.as_str(), well_known::SPOT);
            charges.push(instance(kind, (judged.from, judged.until), hours, cost));
        }
        for (key, node) in self.totals.nodes.iter().filter(|(key, _)| key.capacity == CapacityType::OnDemand) {
            let kind = (key.instance_type.as_str(), key.zone.as_str(), well_known::ON_DEMAND);
            charges.push(instance(kind, (judged.from, judged.until), node.hours, node.amortised));
        }
        for (group, amount) in ComparedBill::amortised(&self.totals).groups {
            if is_simulated(&group) {
                charges.push(Charge {
                    item: Symbol::new(&group.name()),
                    instance_type: None,
                    zone: None,
                    capacity_type: None,
                    from: judged.from,
                    until: judged.until,
                    machine_time: judged.length(),
                    amount: amount.money(),
                });
            }
        }
        charges
    }

    /// The bill beside the mean of the simulated ones.
    pub fn compared(&self, simulations: &[History], judged: Window) -> BillComparison {
        let (observed, simulated) = (ComparedBill::amortised(&self.totals), mean_bill(simulations, judged));
        let links = chain(&observed, &simulated);
        let held = price_held(&observed, &simulated, &self.totals.held_prices());
        let totals = &self.totals;
        let part = |name: String, sums: &nodecast_observed::bill::Sums| BillPart {
            name,
            lines: sums.lines,
            amount: sums.amortised.as_f64(),
        };
        BillComparison {
            files: self.files.clone(),
            cluster: totals.cluster.clone(),
            currency: totals.currency.clone(),
            unblended: totals.total().unblended.as_f64(),
            amortised: links.observed.as_f64(),
            simulated: links.simulated.as_f64(),
            links: links
                .links
                .iter()
                .map(|link| BillLink { what: words(&link.kind), amount: link.amount.as_f64() })
                .collect(),
            at_one_price_list_observed: held.observed.as_f64(),
            at_one_price_list_simulated: held.simulated.as_f64(),
            rules: totals.rules.iter().map(|(rule, sums)| part(rule.name(), sums)).collect(),
            left_out: totals.left_out.iter().map(|(kind, sums)| part(kind.name().to_string(), sums)).collect(),
            others: totals.others.total().amortised.as_f64(),
            unbilled: unbilled(&observed, &simulated).map(|unbilled| unbilled.1).sum(),
            hints: hints(&observed, &simulated, &totals.currency),
        }
    }
}

fn words(kind: &LinkKind) -> String {
    let bought = |capacity: &CapacityType| match capacity {
        CapacityType::OnDemand => "On-Demand",
        CapacityType::Spot => "Spot",
    };
    match kind {
        LinkKind::NotSimulated(group) => format!("not simulated: {}", group.name()),
        LinkKind::Price(capacity) => format!("prices of {} nodes", bought(capacity)),
        LinkKind::Hours(capacity, size) => format!("hours of {} nodes, {size}", bought(capacity)),
        LinkKind::Group(group) => group.name().into_owned(),
    }
}

/// Groups that the simulation has and the bill has nothing of: most are what `init` assumes, or what no line of the bill names the cluster for.
fn unbilled<'b>(observed: &'b ComparedBill, simulated: &'b ComparedBill) -> impl Iterator<Item = (&'b Group, f64)> {
    let billed = |group: &Group| observed.groups.get(group).is_some_and(|group| group.as_f64() != 0.0);
    let amounts = simulated.groups.iter().map(|(group, amount)| (group, amount.as_f64()));
    amounts.filter(move |(group, amount)| *amount > 0.0 && !billed(group))
}

/// What to do about what is simulated and not billed, or far beyond the bill.
fn hints(observed: &ComparedBill, simulated: &ComparedBill, currency: &str) -> Vec<String> {
    let whole: f64 = simulated.groups.values().map(|group| group.as_f64()).sum();
    let is_much = |amount: f64| amount > HINT_SHARE * whole;
    let none = unbilled(observed, simulated).filter(|(_, amount)| is_much(*amount)).map(|(group, amount)| {
        let remedy = match group {
            Group::Nat => "if others' lines hold it, give its share with --share nat=100%, else take `nat_gateways` out of `ec2.billing`",
            Group::BetweenZones => "if the bill has it under no name, give its share with --share 'DataTransfer-Regional-Bytes=100%', else take `cross_zone` out of `ec2.billing`",
            Group::LoadBalancers => "give their share with --share, or tag them with the cluster",
            _ => "take out of the scenario what assumes it",
        };
        format!("{} of {} is simulated and the bill has none of it: {remedy}.", money(currency, amount), group.name())
    });
    let beyond = simulated.groups.iter().filter_map(|(group, amount)| {
        let (number, billed) = (amount.as_f64(), observed.groups.get(group)?.as_f64());
        let is_far = billed > 0.0 && number > BEYOND * billed && is_much(number - billed);
        let what = if *group == Group::Nat {
            "see count and prices under `ec2.billing.nat_gateways`"
        } else {
            "see what assumes it"
        };
        is_far.then(|| {
            format!(
                "{} is billed at {} and simulated at {}: {what}.",
                group.name(),
                money(currency, billed),
                money(currency, number)
            )
        })
    });
    none.chain(beyond).collect()
}

/// Whether simulations may have such costs: all but those that no item of theirs is of.
fn is_simulated(group: &Group) -> bool {
    !matches!(group, Group::Rest(_))
}

fn span(hours: Amount) -> SimDuration {
    // An hour is 3.6e9 microseconds, and an amount has twelve decimals.
    SimDuration::from_micros(i64::try_from(hours.as_picos().saturating_mul(36) / 10_000).unwrap_or(i64::MAX))
}

/// What Spot pools took in lines longer than an hour, which do not say in which hours: each pool with hours and cost.
fn spot_without_hours(totals: &Totals) -> impl Iterator<Item = (&NodeKey, Amount, Amount)> {
    let mut told: BTreeMap<(&str, &str), (Amount, Amount)> = BTreeMap::new();
    for (key, hour) in &totals.spot {
        let (hours, cost) = told.entry((&key.instance_type, &key.zone)).or_default();
        *hours += hour.hours;
        *cost += hour.cost;
    }
    let pools = totals.nodes.iter().filter(|(key, _)| key.capacity == CapacityType::Spot);
    pools.filter_map(move |(key, node)| {
        let (hours, cost) = told.get(&(key.instance_type.as_str(), key.zone.as_str())).copied().unwrap_or_default();
        let (hours, cost) = (node.hours - hours, node.amortised - cost);
        (hours != Amount::ZERO || cost != Amount::ZERO).then_some((key, hours, cost))
    })
}

fn instance(
    (instance_type, zone, capacity_type): (&str, &str, Symbol),
    (from, until): (SimTime, SimTime),
    hours: Amount,
    cost: Amount,
) -> Charge {
    Charge {
        item: Symbol::new(BillItem::Instance.as_str()),
        instance_type: Some(Symbol::new(instance_type)),
        zone: (!zone.is_empty()).then(|| Symbol::new(zone)),
        capacity_type: Some(capacity_type),
        from,
        until,
        machine_time: span(hours).max(SimDuration::ZERO),
        amount: cost.money(),
    }
}

/// The mean over the seeds of what the judged time was charged.
fn mean_bill(simulations: &[History], judged: Window) -> ComparedBill {
    let mut groups: BTreeMap<Group, Money> = BTreeMap::new();
    let mut nodes: BTreeMap<(CapacityType, String), (i128, Money)> = BTreeMap::new();
    for charge in simulations.iter().flat_map(|history| history.charges.iter().flatten()) {
        let amount = charge.within(judged);
        match charge.instance_type.filter(|_| charge.is_instance()) {
            Some(instance_type) => {
                let spot = charge.capacity_type == Some(well_known::SPOT);
                let capacity = if spot { CapacityType::Spot } else { CapacityType::OnDemand };
                let sums = nodes.entry((capacity, instance_type.to_string())).or_default();
                sums.0 += i128::from(judged.overlap(charge.from, charge.until).as_micros());
                sums.1 += amount;
            }
            None => *groups.entry(group_of(charge.item)).or_default() += amount,
        }
    }
    let seeds = simulations.len().max(1) as i128;
    let mean = |money: Money| Money::from_nanos(money.as_nanos() / seeds);
    let groups: Vec<(Group, Money)> = groups.into_iter().map(|(group, money)| (group, mean(money))).collect();
    let nodes =
        nodes.into_iter().filter(|(_, (micros, _))| *micros > 0).map(|((capacity, instance_type), (micros, money))| {
            // Micro-seconds to pico-hours, and the price of the hours in all.
            let hours = Amount::from_picos(micros * 10_000 / 36 / seeds);
            let nanos = money.as_nanos() * 3_600_000_000 / micros;
            (capacity, instance_type, hours, HourlyRate::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX)))
        });
    ComparedBill::simulated(groups, nodes)
}

#[cfg(test)]
mod tests {

    use nodecast_observed::bill::{Cluster, Ledger, ReadOptions, read_bytes};

    use super::{BillItem, ComparedBill, RecordedBill, flaws, group_of, well_known};
    use crate::domain::{Money, SimDuration, SimTime, Symbol};
    use crate::evidence::backtest::figures::{HeldPrices, Window};
    use crate::evidence::backtest::history::{Charge, History};

    const HEADER: &str = "line_item_usage_account_id,line_item_line_item_type,line_item_usage_start_date,line_item_usage_end_date,\
        line_item_product_code,line_item_usage_type,line_item_availability_zone,line_item_resource_id,line_item_usage_amount,\
        line_item_unblended_cost,line_item_currency_code,product_instance_type,resource_tags";

    fn hours(hours: i64) -> SimTime {
        SimTime::from_micros(hours * 3_600_000_000)
    }

    fn day() -> Window {
        Window { from: hours(0), until: hours(24) }
    }

    /// A line of the day with an amount of usage and what it costs, from an hour to an hour.
    fn line((from, until): (u32, u32), usage_type: &str, resource: &str, (usage, cost): (&str, &str)) -> String {
        let instant = |hour: u32| format!("2026-10-{:02}T{:02}:00:00Z", 13 + hour / 24, hour % 24);
        let kind = usage_type.split_once("Usage:").map_or("", |(_, kind)| kind);
        let (from, until) = (instant(from), instant(until));
        format!(
            "1,Usage,{from},{until},AmazonEC2,{usage_type},us-east-1a,{resource},{usage},{cost},USD,{kind},\
             \"{{\"\"aws_eks_cluster_name\"\":\"\"shop\"\"}}\""
        )
    }

    fn bill(lines: &[String]) -> RecordedBill {
        let mut ledger = Ledger::new(Cluster { name: "shop".to_owned(), ..Cluster::default() });
        let text = format!("{HEADER}\n{}\n", lines.join("\n"));
        read_bytes("bill.csv", text.as_bytes(), &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
        RecordedBill { totals: ledger.finish().unwrap(), files: Vec::new(), ignored: Vec::new() }
    }

    fn record() -> History {
        History::unknown("2026-10-13T00:00:00Z".parse().unwrap(), SimDuration::from_secs(86_400))
    }

    fn total(charges: &[Charge]) -> Money {
        charges.iter().map(|charge| charge.within(day())).fold(Money::ZERO, |sum, amount| sum + amount)
    }

    /// Prices of an hour of instances, in the currency.
    fn prices(charges: Vec<Charge>) -> Vec<(Option<Symbol>, f64)> {
        let history = History { charges: Some(charges), ..record() };
        HeldPrices::from_histories(std::iter::once(&history))
            .entries()
            .map(|((_, _, capacity), price)| (capacity, price))
            .collect()
    }

    #[test]
    fn pool_instances_are_billed_at_hourly_price() {
        let kinds = [("SpotUsage:m6i.xlarge", "0.07"), ("BoxUsage:m6i.xlarge", "0.192")];
        let lines: Vec<String> = (0..24)
            .flat_map(|hour| kinds.map(|kind| (hour, kind)))
            .flat_map(|(hour, (usage_type, price))| {
                (0..40).map(move |node| {
                    line((hour, hour + 1), usage_type, &format!("i-{usage_type}-{node}"), ("1", price))
                })
            })
            .collect();
        let charges = bill(&lines).charges(&record(), day());
        assert_eq!(total(&charges), Money::from_nanos(24 * 40 * (70_000_000 + 192_000_000)));
        let of_pools = prices(charges);
        let wanted = [(Some(well_known::ON_DEMAND), 0.192), (Some(well_known::SPOT), 0.07)];
        assert!(of_pools.len() == 2 && wanted.iter().all(|price| of_pools.contains(price)), "{of_pools:?}");
    }

    #[test]
    fn daily_spot_lines_use_mean_price() {
        let of_days: Vec<String> =
            (0..4).map(|node| line((0, 24), "SpotUsage:m6i.xlarge", &format!("i-{node}"), ("24", "1.68"))).collect();
        let of_an_hour = line((3, 4), "SpotUsage:m6i.large", "i-9", ("1", "0.03"));
        let days = bill(&of_days);
        assert_eq!(prices(days.charges(&record(), day())), [(Some(well_known::SPOT), 0.07)]);
        let both = bill(&[&of_days[..], &[of_an_hour]].concat()).charges(&record(), day());
        assert_eq!((both.len(), total(&both)), (2, Money::from_nanos(6_750_000_000)));
        let instant = |text: &str| text.parse().unwrap();
        let told = |from| flaws(&days.totals, &record(), Some((instant(from), instant("2026-10-14T00:00:00Z"))));
        let whole = told("2026-10-13T00:00:00Z");
        assert!(whole.len() == 1 && whole[0].contains("the mean price of each pool"), "{whole:?}");
        assert!(told("2026-10-12T06:00:00Z").iter().any(|text| text.contains("judge whole days")));
    }

    #[test]
    fn bill_includes_only_simulated_items() {
        let lines = [
            ("Fargate-vCPU-Hours:perCPU", "1"),
            ("PublicIPv4:InUseAddress", "2"),
            ("CPUCredits:t3", "4"),
            ("PublicIPv4:IdleAddress", "8"),
            ("EBS:SnapshotUsage", "16"),
        ];
        let bill = bill(&lines.map(|(usage_type, cost)| line((0, 1), usage_type, "r", ("1", cost))));
        assert_eq!(total(&bill.charges(&record(), day())), Money::from_nanos(7_000_000_000));
        let items = [BillItem::FargateCpu, BillItem::PublicIpv4, BillItem::CpuCredits];
        let observed = ComparedBill::amortised(&bill.totals);
        assert!(items.iter().all(|item| observed.groups.contains_key(&group_of(Symbol::new(item.as_str())))));
    }
}
