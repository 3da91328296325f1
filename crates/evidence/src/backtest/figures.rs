//! What a forecast is judged by: figures of a stretch of a history, all per day where they grow with time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::floors::{self, FigureTolerance};
use super::history::{Charge, History, NodeLife, PodLife, is_failed_launch, is_reclaim};
use crate::catalog::Region;
use crate::domain::{Money, SimDuration, SimTime, Symbol, well_known};
use crate::figures::Unit;

const SECONDS_A_DAY: f64 = 86_400.0;
const SECONDS_AN_HOUR: f64 = 3_600.0;
/// A pod that waited longer than this needed a new node, where nobody recorded whether the scheduler found none for it. Bindings
/// of pods that find room take less, also where instants are whole seconds.
const WAITED: SimDuration = SimDuration::from_secs(5);

/// A stretch of a history, counted from its start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// From when on.
    pub from: SimTime,
    /// Until when.
    pub until: SimTime,
}

impl Window {
    /// How long it is.
    pub fn length(self) -> SimDuration {
        self.until.saturating_since(self.from)
    }

    pub(super) fn holds(self, instant: SimTime) -> bool {
        self.from <= instant && instant < self.until
    }

    fn days(self) -> f64 {
        self.length().as_secs_f64() / SECONDS_A_DAY
    }

    /// How much of a span lies within it.
    pub fn overlap(self, from: SimTime, until: SimTime) -> SimDuration {
        until.min(self.until).saturating_since(from.max(self.from))
    }
}

/// By which instants lives are judged: those that the recorded history has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Basis {
    /// Nodes count from `running` on, not from their registration.
    running: bool,
    /// Whether the scheduler found no node for a pod is known.
    unschedulable: bool,
    /// Something is known of nodes.
    nodes: bool,
    /// Bindings of pods are known, or that there were no pods.
    waits: bool,
    /// What was charged is known.
    charges: bool,
    /// Why nodes ended is known.
    ends: bool,
    /// Which pods were evicted is known.
    evictions: bool,
    /// Why nodes ended is not known of each, but counted.
    counted_ends: bool,
    /// Which pods were evicted is not known, but how many.
    counted_evictions: bool,
}

impl Basis {
    /// What `recorded` has.
    pub fn from_recorded(recorded: &History) -> Self {
        Self {
            running: recorded.knows_running(),
            unschedulable: recorded.pods.iter().flatten().any(|pod| pod.unschedulable.is_some()),
            charges: recorded.charges.is_some(),
            ends: recorded.knows_ends(),
            counted_ends: !recorded.knows_ends() && recorded.counted.ends.is_some(),
            evictions: recorded.knows_evictions(),
            counted_evictions: !recorded.knows_evictions() && recorded.counted.evictions.is_some(),
            nodes: recorded.nodes.is_some(),
            waits: recorded.knows_waits(),
        }
    }

    /// The same for a stretch of which it is not known what was charged.
    #[must_use]
    pub fn without_charges(self) -> Self {
        Self { charges: false, ..self }
    }

    /// The stretch for which a node counts.
    pub(super) fn presence(self, node: &NodeLife, end: SimTime) -> Option<(SimTime, SimTime)> {
        let from = if self.running { node.running } else { node.registered.or(node.ready) }?;
        let until =
            if self.running { node.terminating.or(node.terminated) } else { node.terminated.or(node.terminating) };
        let until = until.unwrap_or(end).min(end);
        (from < until).then_some((from, until))
    }

    fn launch(self, node: &NodeLife) -> Option<SimTime> {
        if self.running { node.launched.or(node.running) } else { node.registered.or(node.ready) }
    }

    fn needed_node(self, pod: &PodLife, end: SimTime) -> bool {
        if self.unschedulable {
            pod.unschedulable.is_some()
        } else {
            waited(pod, end).is_some_and(|wait| wait > WAITED)
        }
    }
}

/// The wait of a pod for its node; `None` for a pod that was bound at an unknown time.
fn waited(pod: &PodLife, end: SimTime) -> Option<SimDuration> {
    let until = match pod.scheduled {
        None if pod.bound => return None,
        scheduled => scheduled.or(pod.left).unwrap_or(end),
    };
    Some(until.saturating_since(pod.created))
}

/// What an hour of a kind of instance costs: by type, zone and capacity type. The catalogue has the prices of what nothing was paid for.
#[derive(Clone, Debug, Default)]
pub struct HeldPrices {
    nanos_per_hour: BTreeMap<Offering, f64>,
    catalogue: Option<Arc<Region>>,
}

/// Whether a node costs what On-Demand does: all but Spot, reserved capacity too.
fn is_on_demand(node: &NodeLife) -> bool {
    node.capacity_type != Some(well_known::SPOT)
}

type Offering = (Option<Symbol>, Option<Symbol>, Option<Symbol>);

impl HeldPrices {
    /// The mean price that was paid for each kind of instance in the first of `histories` that has any of it, or that Karpenter saw of it
    /// there.
    pub fn from_histories<'h>(histories: impl Iterator<Item = &'h History>) -> Self {
        let mut nanos_per_hour = BTreeMap::new();
        for history in histories {
            let mut paid: BTreeMap<Offering, (f64, f64)> = BTreeMap::new();
            for charge in history.charges.iter().flatten().filter(|charge| charge.is_instance()) {
                let sums = paid.entry((charge.instance_type, charge.zone, charge.capacity_type)).or_default();
                sums.0 += charge.amount.as_nanos() as f64;
                sums.1 += charge.machine_time.as_secs_f64() / SECONDS_AN_HOUR;
            }
            let mut seen: BTreeMap<Offering, (f64, f64)> = BTreeMap::new();
            for price in history.spot_prices.iter().flatten() {
                let offering = (Some(price.instance_type), Some(price.zone), Some(well_known::SPOT));
                let sums = seen.entry(offering).or_default();
                sums.0 += price.rate.as_nanos() as f64;
                sums.1 += 1.0;
            }
            for (offering, (nanos, hours)) in paid.into_iter().filter(|(_, (_, hours))| *hours > 0.0) {
                nanos_per_hour.entry(offering).or_insert(nanos / hours);
            }
            for (offering, (nanos, count)) in seen {
                nanos_per_hour.entry(offering).or_insert(nanos / count);
            }
        }
        Self { nanos_per_hour, catalogue: None }
    }

    /// The same with the catalogue of the region.
    #[must_use]
    pub fn with_catalogue(self, region: Arc<Region>) -> Self {
        Self { catalogue: Some(region), ..self }
    }

    /// The price of a node: what was paid for its like, On-Demand in any zone, or else what the catalogue says. `None` if neither has one.
    fn of_node(&self, node: &NodeLife) -> Option<f64> {
        let paid = self.nanos_per_hour.get(&(node.instance_type, node.zone, node.capacity_type)).copied();
        paid.or_else(|| self.of_other_zone(node)).or_else(|| self.of_catalogue(node))
    }

    /// On-Demand prices are the same in all zones of a region.
    fn of_other_zone(&self, node: &NodeLife) -> Option<f64> {
        let is_alike = |(kind, _, capacity): &&Offering| {
            *kind == node.instance_type && *capacity == Some(well_known::ON_DEMAND) && is_on_demand(node)
        };
        let mut alike = self.nanos_per_hour.iter().filter(|(offering, _)| is_alike(offering));
        alike.next().map(|(_, nanos)| *nanos)
    }

    /// Spot where the catalogue has no price of the zone, or the zone is not known, costs the mean of the zones.
    fn of_catalogue(&self, node: &NodeLife) -> Option<f64> {
        let region = self.catalogue.as_ref()?;
        let kind = region.instance_type(node.instance_type?)?;
        if is_on_demand(node) {
            return kind.on_demand.map(|price| price.rate.as_nanos() as f64);
        }
        let nanos = |zone: usize| kind.spot(zone).map(|price| price.rate.as_nanos() as f64);
        let this_nanos = node.zone.and_then(|zone| region.zone_index(zone)).and_then(nanos);
        this_nanos.or_else(|| {
            let all: Vec<f64> = kind.zones_offered().filter_map(nanos).collect();
            (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
        })
    }

    /// The kinds of nodes within a window of which nobody has a price, for people.
    pub fn unknown_of(&self, history: &History, window: Window, basis: Basis) -> BTreeSet<String> {
        let is_there = |node: &&NodeLife| {
            let presence = basis.presence(node, history.end());
            presence.is_some_and(|(from, until)| window.overlap(from, until) > SimDuration::ZERO)
        };
        let nodes = history.nodes.iter().flatten().filter(|node| !node.is_of_fargate()).filter(is_there);
        let unknown = nodes.filter(|node| self.of_node(node).is_none());
        let kind = |node: &NodeLife| {
            let name = node.instance_type.map_or_else(|| "no known instance type".to_owned(), |kind| kind.to_string());
            if is_on_demand(node) { name } else { format!("{name} (Spot)") }
        };
        unknown.map(kind).collect()
    }

    /// What each kind of instance costs an hour, in the currency: type, zone, capacity type, price.
    pub fn entries(&self) -> impl Iterator<Item = (Offering, f64)> {
        self.nanos_per_hour.iter().map(|(offering, nanos)| (*offering, nanos / 1e9))
    }
}

/// A figure of a stretch.
#[derive(Clone, PartialEq, Debug)]
pub struct Reading {
    /// Its stable name.
    pub name: String,
    /// Its name for people.
    pub label: String,
    /// What it is measured in.
    pub unit: Unit,
    /// The error up to which a forecast agrees, as a share.
    pub tolerance: f64,
    /// Its value; `None` where there was nothing to measure.
    pub value: Option<f64>,
    /// The error that right models are known to have, in the unit of the figure.
    pub floor: f64,
    /// Whether a history that lacks the figure has nothing of it, rather than nothing to measure.
    pub absent_is_zero: bool,
}

/// The figures of `window` of `history`, in the order in which people read them. Without `prices`, what nodes cost at one price list is not
/// known.
pub fn readings(history: &History, window: Window, basis: Basis, prices: Option<&HeldPrices>) -> Vec<Reading> {
    let mut readings = Readings { days: window.days(), list: Vec::new() };
    if let (true, Some(charges)) = (basis.charges, &history.charges) {
        let spot =
            charges.iter().filter(|charge| charge.is_instance() && charge.capacity_type == Some(well_known::SPOT));
        let luck = floors::SPOT_PRICE * charged(spot, window);
        readings.per_day("cost", "cost", Unit::Money, floors::BILL, (charged(charges.iter(), window), luck));
    }
    if let (true, Some(nodes)) = (basis.nodes, &history.nodes) {
        of_hours(history, nodes, (window, basis), prices, &mut readings);
        of_lives(nodes, window, basis, &mut readings);
    }
    of_ends(history, window, basis, &mut readings);
    of_evictions(history, window, basis, &mut readings);
    if let (true, Some(pods)) = (basis.waits, &history.pods) {
        of_waits(pods, (window, history.end()), basis, &mut readings);
    }
    readings.list
}

struct Readings {
    days: f64,
    list: Vec<Reading>,
}

impl Readings {
    /// A sum of the stretch, with what its floor has besides the share and the count of `known`.
    fn per_day(&mut self, name: &str, label: &str, unit: Unit, known: FigureTolerance, (sum, luck): (f64, f64)) {
        if self.days <= 0.0 {
            return;
        }
        let value = sum / self.days;
        self.list.push(Reading {
            name: format!("{name}_per_day"),
            label: format!("{label} a day"),
            unit,
            tolerance: known.tolerance,
            value: Some(value),
            floor: known.share * value + (known.count + luck) / self.days,
            absent_is_zero: true,
        });
    }

    fn count(&mut self, name: &str, label: &str, known: FigureTolerance, sum: f64) {
        self.per_day(name, label, Unit::Count, known, (sum, 0.0));
    }

    /// What is no sum, with what its floor has besides the share and the count of `known`.
    fn measured(
        &mut self,
        name: &str,
        label: &str,
        unit: Unit,
        known: FigureTolerance,
        (value, luck): (Option<f64>, f64),
    ) {
        self.list.push(Reading {
            name: name.to_owned(),
            label: label.to_owned(),
            unit,
            tolerance: known.tolerance,
            value,
            floor: value.map_or(0.0, |value| known.share * value) + known.count + luck,
            absent_is_zero: false,
        });
    }
}

impl Charge {
    /// What of it is of the time within a window. A line of no length counts where it stands.
    pub fn within(&self, window: Window) -> Money {
        let whole = self.until.saturating_since(self.from).as_micros();
        if whole == 0 {
            return if window.holds(self.from) { self.amount } else { Money::ZERO };
        }
        self.amount.portion(window.overlap(self.from, self.until).as_micros().into(), whole.into())
    }
}

/// What the stretch was charged, in the currency.
fn charged<'c>(charges: impl Iterator<Item = &'c Charge>, window: Window) -> f64 {
    charges.map(|charge| charge.within(window)).fold(Money::ZERO, |sum, amount| sum + amount).as_f64()
}

fn of_hours(
    history: &History,
    nodes: &[NodeLife],
    (window, basis): (Window, Basis),
    prices: Option<&HeldPrices>,
    readings: &mut Readings,
) {
    let (mut held, mut spot, mut hours, mut present) = (prices.map(|_| 0.0), 0.0, 0.0, Vec::new());
    let mut sums: [BTreeMap<String, f64>; 3] = Default::default();
    for node in nodes {
        let Some((from, until)) = basis.presence(node, history.end()) else { continue };
        let within = window.overlap(from, until).as_secs_f64() / SECONDS_AN_HOUR;
        if within <= 0.0 {
            continue;
        }
        hours += within;
        // Fargate bills its pods and no instance, on both sides.
        if !node.is_of_fargate() {
            let cost = prices.and_then(|prices| prices.of_node(node)).map(|price| within * price / 1e9);
            held = held.zip(cost).map(|(held, cost)| held + cost);
            spot += cost.filter(|_| !is_on_demand(node)).unwrap_or(0.0);
        }
        present.push((from.max(window.from), until.min(window.until)));
        let size = node.instance_type.and_then(|kind| kind.as_str().split_once('.')).map(|(_, size)| size.to_owned());
        let words = [node.capacity_type.map(|kind| kind.to_string()), size, Some(node.origin.to_string())];
        for (sums, word) in sums.iter_mut().zip(words) {
            *sums.entry(word.filter(|word| !word.is_empty()).unwrap_or_else(|| "unknown".into())).or_default() +=
                within;
        }
    }
    let (name, label) = ("cost_at_held_prices_per_day", "nodes at fixed prices a day");
    let (held, luck) = (held.map(|held| held / readings.days), floors::SPOT_PRICE * spot / readings.days);
    readings.measured(name, label, Unit::Money, floors::HOURS, (held, luck));
    readings.count("node_hours", "node-hours", floors::HOURS, hours);
    let kinds = [
        ("capacity_type", "", floors::HOURS, 0.0),
        ("size", "size ", floors::SIZES, floors::SIZE_OF_ALL),
        ("pool", "pool ", floors::HOURS, 0.0),
    ];
    for ((kind, word, known, of_all), sums) in kinds.into_iter().zip(&sums) {
        for (name, of_kind) in sums {
            let (name, label) = (format!("node_hours_by_{kind}.{name}"), format!("node-hours, {word}{name}"));
            readings.per_day(&name, &label, Unit::Count, known, (*of_kind, of_all * hours));
        }
    }
    // A node that is checked each minute seems to be there a little longer than it was, next to its replacement.
    let seen = history.counted.nodes.iter().flatten().filter(|(at, _)| window.holds(*at)).map(|(_, nodes)| *nodes);
    let most = seen.reduce(f64::max).unwrap_or_else(|| most_at_once(&present) as f64);
    readings.measured("nodes_max", "peak nodes", Unit::Count, floors::NODES_MAX, (Some(most), 0.0));
}

/// Hours of each instance type within a stretch.
pub fn hours_by_type(history: &History, window: Window, basis: Basis) -> BTreeMap<Symbol, f64> {
    let mut hours: BTreeMap<Symbol, f64> = BTreeMap::new();
    for node in history.nodes.iter().flatten() {
        let (Some(kind), Some((from, until))) = (node.instance_type, basis.presence(node, history.end())) else {
            continue;
        };
        *hours.entry(kind).or_default() += window.overlap(from, until).as_secs_f64() / SECONDS_AN_HOUR;
    }
    hours.retain(|_, hours| *hours > 0.0);
    hours
}

fn of_lives(nodes: &[NodeLife], window: Window, basis: Basis, readings: &mut Readings) {
    // Fargate's machines are no instances, and come and go with their pods.
    let instances = || nodes.iter().filter(|node| node.was_launched() && !node.is_of_fargate());
    // What was there at the start was launched by nobody in the record.
    let launched = |node: &&NodeLife| basis.launch(node).is_some_and(|at| at > SimTime::ZERO && window.holds(at));
    readings.count("launches", "launches", floors::COUNTS, instances().filter(launched).count() as f64);
    let boots: Vec<f64> = instances()
        .filter(|node| node.ready.is_some_and(|ready| ready > SimTime::ZERO && window.holds(ready)))
        .filter_map(|node| Some(node.ready?.saturating_since(node.launched?).as_secs_f64()))
        .collect();
    let mean = (!boots.is_empty()).then(|| boots.iter().sum::<f64>() / boots.len() as f64);
    readings.measured("launch_to_ready", "launch to Ready, mean", Unit::Seconds, floors::BOOTS, (mean, 0.0));
}

/// Removals by reason, and reclaims: of each node where the record has that, else as counted.
fn of_ends(history: &History, window: Window, basis: Basis, readings: &mut Readings) {
    let of_nodes = history.nodes.iter().flatten().filter(|node| node.was_launched());
    let of_nodes = of_nodes.filter_map(|node| Some((node.ended()?, node.end?, 1.0)));
    let ended: Vec<(SimTime, Symbol, f64)> = match (&history.counted.ends, basis.ends, basis.counted_ends) {
        (_, true, _) => of_nodes.collect(),
        (Some(counted), false, true) => counted.clone(),
        _ => return,
    };
    let mut ends: BTreeMap<Symbol, f64> = BTreeMap::new();
    let mut reclaims = 0.0;
    for (_, end, count) in ended.into_iter().filter(|(at, end, _)| window.holds(*at) && !is_failed_launch(*end)) {
        if is_reclaim(end) {
            reclaims += count;
        } else {
            *ends.entry(end).or_default() += count;
        }
    }
    for (end, count) in ends {
        readings.count(&format!("removed.{end}"), &format!("nodes removed, {end}"), floors::COUNTS, count);
    }
    readings.count("reclaims", "Spot instances reclaimed", floors::COUNTS, reclaims);
}

/// Evictions: of each pod where the record has that, else as counted.
fn of_evictions(history: &History, window: Window, basis: Basis, readings: &mut Readings) {
    let within = |at: Option<SimTime>| at.is_some_and(|at| window.holds(at));
    if let (true, Some(pods)) = (basis.evictions, &history.pods) {
        let evicted = pods.iter().filter(|pod| pod.evicted == Some(true) && within(pod.left)).count();
        readings.count("evictions", "pods evicted", floors::EVICTIONS, evicted as f64);
    } else if let (true, Some(evictions)) = (basis.counted_evictions, &history.counted.evictions) {
        let counted = evictions.iter().filter(|(at, _)| window.holds(*at)).map(|(_, count)| count).sum();
        readings.count("evictions", "pods evicted, including DaemonSet pods", floors::EVICTIONS, counted);
    }
}

fn of_waits(pods: &[PodLife], (window, end): (Window, SimTime), basis: Basis, readings: &mut Readings) {
    let created = pods.iter().filter(|pod| window.holds(pod.created));
    let mut waits: Vec<SimDuration> =
        created.filter(|pod| basis.needed_node(pod, end)).filter_map(|pod| waited(pod, end)).collect();
    waits.sort_unstable();
    readings.count("pods_waited", "pods that needed a new node", floors::PODS_WAITED, waits.len() as f64);
    let rank = |share: f64| {
        let rank = libm::ceil(share * waits.len() as f64) as usize;
        waits.get(rank.max(1) - 1).map(|wait| wait.as_secs_f64())
    };
    readings.measured("wait_p50", "wait for a new node, p50", Unit::Seconds, floors::WAITS, (rank(0.50), 0.0));
    readings.measured("wait_p99", "wait for a new node, p99", Unit::Seconds, floors::WAITS, (rank(0.99), 0.0));
}

/// The most of the spans that share an instant; a span does not hold its end.
pub(super) fn most_at_once(spans: &[(SimTime, SimTime)]) -> u64 {
    let mut turns: Vec<(SimTime, i64)> = spans.iter().flat_map(|&(from, until)| [(from, 1), (until, -1)]).collect();
    turns.sort_unstable();
    let (mut now, mut most) = (0_i64, 0_i64);
    for (_, turn) in turns {
        now += turn;
        most = most.max(now);
    }
    most.unsigned_abs()
}

#[cfg(test)]
mod tests {
    use super::{Basis, Window, charged, most_at_once, readings};
    use crate::backtest::history::{Charge, History, PodLife};
    use crate::domain::{Money, SimDuration, SimTime, Symbol};

    fn at(seconds: i64) -> SimTime {
        SimTime::from_micros(seconds * 1_000_000)
    }

    #[test]
    fn charge_is_prorated_to_the_window() {
        let charge = |from, until, nanos| Charge {
            item: Symbol::new("instance"),
            instance_type: None,
            zone: None,
            capacity_type: None,
            from: at(from),
            until: at(until),
            machine_time: at(until).saturating_since(at(from)),
            amount: Money::from_nanos(nanos),
        };
        let window = Window { from: at(100), until: at(200) };
        let charges = [charge(0, 400, 4_000_000_000), charge(150, 150, -500_000_000), charge(200, 200, 7_000_000_000)];
        assert!((charged(charges.iter(), window) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn pods_without_binding_times_are_not_waits() {
        let pod = |scheduled: Option<i64>, bound| PodLife {
            created: at(40),
            unschedulable: None,
            scheduled: scheduled.map(at),
            bound,
            left: None,
            evicted: None,
        };
        let figures = |pods: Vec<PodLife>| {
            let duration = SimDuration::from_secs(86_400);
            let history = History { pods: Some(pods), ..History::unknown(jiff::Timestamp::UNIX_EPOCH, duration) };
            let window = Window { from: at(0), until: at(86_400) };
            let found = readings(&history, window, Basis::from_recorded(&history), None);
            found.iter().map(|reading| (reading.name.clone(), reading.value)).collect::<Vec<_>>()
        };
        assert_eq!(figures(vec![pod(None, false), pod(None, true)]), []);
        let known = figures(vec![pod(Some(41), true), pod(Some(70), true), pod(None, true), pod(None, false)]);
        let expected = [("pods_waited_per_day", 2.0), ("wait_p50", 30.0), ("wait_p99", 86_360.0)];
        assert_eq!(known, expected.map(|(name, value)| (name.to_owned(), Some(value))));
        assert!(figures(Vec::new()).contains(&("pods_waited_per_day".to_owned(), Some(0.0))));
    }

    #[test]
    fn touching_intervals_do_not_overlap() {
        assert_eq!(most_at_once(&[(at(0), at(10)), (at(10), at(20)), (at(5), at(12))]), 2);
        assert_eq!(most_at_once(&[]), 0);
    }
}
