//! The commitments that are best for all clusters of a fleet together.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_commitments::{
    Best, ClassKey, ClassKind, Demand, Growth, Objective, Purchase, PurchaseResult, Sample, UsageClass, UsageLine,
    apply, left_by_class, plans, present_value,
};
use nodecast_engine::Streams;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};
use nodecast_prices::Catalog;
use serde::Serialize;

use crate::spot_share::{SpotChange, spot_lines};
use crate::usage::{ClusterUsage, HOUR};
use crate::{Fleet, LoadedFleet};

/// Shares of the recommended commitment that the curve shows.
const CURVE: [f64; 7] = [0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0];
/// Growth a year that the cases show.
const GROWTH: [f64; 3] = [-0.2, 0.0, 0.2];
/// Changes of the Spot share that the cases show.
const SPOT_CHANGES: [f64; 3] = [-0.2, 0.0, 0.2];
/// A run shorter than this does not show a week.
const WEEK_HOURS: usize = 168;
/// Draws of the seeds for the interval of the commitment.
const DRAWS: u64 = 40;
/// A wider interval of the commitment is a warning.
const WIDE: f64 = 0.1;

/// What to recommend.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Position of the account that buys; `None` for the best one.
    pub owner: Option<usize>,
    /// Years of a term, and whether all is paid upfront.
    pub offers: Vec<(u32, bool)>,
    /// The share of the best paths that the objective ignores: 0.9 for the mean of the worst tenth.
    pub risk: Option<f64>,
    /// Discount of a Compute plan, 0 to 1, where no plan of the fleet has one.
    pub compute_discount: Option<f64>,
    /// Discount of a Compute plan on Fargate, 0 to 1.
    pub fargate_discount: Option<f64>,
}

/// Usage that owned commitments leave, hour by hour, of several seeds.
#[derive(Clone, Debug, Default)]
pub struct Leftover {
    /// Each hour: the number of its seed, and the value of each class in dollars.
    pub(crate) hours: Vec<(usize, BTreeMap<ClassKey, f64>)>,
    /// The usage lines of each hour, for a price by the billing engine.
    pub(crate) lines: Vec<Vec<UsageLine>>,
    /// Spot instances of each hour, as they would be On-Demand.
    pub(crate) spot: Vec<Vec<UsageLine>>,
    seeds: usize,
}

impl Leftover {
    /// Adds the runs of a seed: the usage of each cluster, in the order of the fleet.
    pub fn add(&mut self, fleet: &LoadedFleet, clusters: &[&ClusterUsage], catalog: &Catalog) {
        let (accounts, owned) = (fleet.fleet.billing_accounts(), fleet.fleet.billing_commitments(fleet.start));
        let mut spot = spot_lines(fleet, clusters, catalog);
        let duration = fleet.clusters[0].scenario.duration;
        let whole = u32::try_from(duration.as_micros() / HOUR.as_micros()).unwrap_or(u32::MAX);
        for hour in 0..whole {
            let from = SimTime::ZERO + HOUR * i64::from(hour);
            let of_hour = |usage: &&ClusterUsage| {
                let start = usage.lines.partition_point(|(number, _)| *number < hour);
                usage.lines[start..]
                    .iter()
                    .take_while(move |(number, _)| *number == hour)
                    .map(|(_, line)| *line)
                    .collect::<Vec<_>>()
            };
            let outside = fleet.other_usage.iter().map(|(_, usage)| usage);
            let mut lines: Vec<UsageLine> =
                clusters.iter().copied().chain(outside).flat_map(|usage| of_hour(&usage)).collect();
            lines.sort_unstable();
            let covered = apply(&accounts, &owned, &lines, (from, from + HOUR));
            self.hours.push((self.seeds, left_by_class(&lines, &covered)));
            self.lines.push(lines);
            self.spot.push(spot.remove(&hour).unwrap_or_default());
        }
        self.seeds += 1;
    }

    /// Whole hours of each seed.
    pub(crate) fn hours_of_seed(&self) -> i64 {
        (self.hours.len() / self.seeds.max(1)) as i64
    }
}

/// The recommendation for one term and payment.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Offer {
    /// Years.
    pub years: u32,
    /// `no_upfront` or `all_upfront`.
    pub payment: &'static str,
    /// Plans to buy.
    pub plans: Vec<PlanToBuy>,
    /// Commitments per hour.
    pub committed: f64,
    /// Cost per hour of all usage that owned commitments leave, with these plans. For terms of three years this and other results are the
    /// means over the term with a load that shrinks, stays, and grows.
    pub cost: f64,
    /// The same without plans.
    pub on_demand: f64,
    /// No plans of these classes cost less per hour.
    pub bound: f64,
    /// Cost per hour by the billing engine at today's load, with the plans in the owner's account.
    pub repriced: f64,
    /// Cost per hour at today's load if the plans cover all accounts alike.
    pub today: f64,
    /// Account that buys.
    pub owner: String,
    /// Cost per hour with the best plans of single families alone.
    pub families_alone: f64,
    /// Cost per hour with the best Compute plan alone; `None` without a discount.
    pub compute_alone: Option<f64>,
    /// Covered share of usage.
    pub coverage: f64,
    /// Used share of commitments.
    pub utilisation: f64,
    /// Effective savings rate.
    pub savings_rate: f64,
    /// Present value of a year's fees, as a share of their sum.
    pub present_value: f64,
    /// Cost per hour with fees at their present value.
    pub cost_today: f64,
    /// The plans no longer save below this share of the load; `None` if they never save.
    pub break_even: Option<f64>,
    /// Commitments per hour that are best in 90% of draws of the seeds, with replacement; one value with one seed.
    pub interval: [f64; 2],
    /// Cost with other shares of these plans.
    pub curve: Vec<CurvePoint>,
    /// Growth and decline of the load.
    pub growth: Vec<GrowthCase>,
    /// Changes of the Spot share; empty if no cluster uses Spot.
    pub spot: Vec<SpotCase>,
}

/// A plan to buy.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct PlanToBuy {
    /// `ec2_instance` or `compute`.
    pub kind: &'static str,
    /// Region and family of an EC2 Instance plan.
    pub class: String,
    /// Commitment per hour.
    pub commitment: f64,
    /// Discount.
    pub discount: Option<f64>,
}

/// Cost with a share of the recommended plans.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct CurvePoint {
    /// Share of the recommended commitment.
    pub share: f64,
    /// Cost per hour.
    pub cost: f64,
    /// Covered share of usage.
    pub coverage: f64,
    /// Used share of commitments.
    pub utilisation: f64,
}

/// Growth of the load over the term.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct GrowthCase {
    /// Growth a year.
    pub per_year: f64,
    /// Cost per hour of the recommended plans.
    pub cost: f64,
    /// Cost per hour without plans.
    pub on_demand: f64,
    /// Commitments per hour that are best in this case.
    pub best: f64,
    /// Covered share of usage with the recommended plans.
    pub coverage: f64,
    /// Used share of commitments with the recommended plans.
    pub utilisation: f64,
}

/// Another Spot share of the clusters that use Spot. Their instances move between Spot and On-Demand at the same hours.
#[derive(Clone, Copy, Debug, Serialize, schemars::JsonSchema)]
pub struct SpotCase {
    /// Change of the Spot share of each cluster that uses Spot, as far as it has instances to move.
    pub change: f64,
    /// Spot share of these clusters together, at On-Demand list prices.
    pub spot_share: f64,
    /// Cost per hour of On-Demand usage with the recommended plans.
    pub cost: f64,
    /// Cost per hour of On-Demand usage without plans.
    pub on_demand: f64,
    /// Commitments per hour that are best in this case.
    pub best: f64,
    /// Covered share of usage with the recommended plans.
    pub coverage: f64,
    /// Used share of commitments with the recommended plans.
    pub utilisation: f64,
}

/// `recommendation.json` of a fleet.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct FleetRecommendation {
    /// Name of the fleet.
    pub fleet: String,
    /// Currency.
    pub currency: String,
    /// Seeds.
    pub seeds: usize,
    /// Whole hours of each seed.
    pub hours: usize,
    /// Offers, in the order asked for.
    pub offers: Vec<Offer>,
    /// Warnings.
    pub warnings: Vec<String>,
}

impl FleetRecommendation {
    /// As JSON, with a line feed at its end.
    ///
    /// # Errors
    /// If a value is no number.
    pub fn to_json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(self).map(|json| json + "\n")
    }
}

/// Works out the best commitments.
pub fn recommend(
    fleet: &LoadedFleet,
    leftover: &Leftover,
    options: &Options,
    (catalog, currency): (&Catalog, &str),
) -> FleetRecommendation {
    let keys: BTreeSet<ClassKey> = leftover.hours.iter().flat_map(|(_, classes)| classes.keys().copied()).collect();
    let keys: Vec<ClassKey> = keys.into_iter().collect();
    let changes = SPOT_CHANGES.into_iter();
    let spot: Vec<SpotChange> = changes.filter_map(|change| SpotChange::new(fleet, leftover, change)).collect();
    let offers: Vec<Offer> = options
        .offers
        .iter()
        .map(|&offer| {
            let classes = keys.iter().map(|key| (*key, class(fleet, key, offer, (options, catalog)))).collect();
            Search { fleet, leftover, spot: &spot, options, catalog, classes, offer }.offer()
        })
        .collect();
    let hours = leftover.hours.len() / leftover.seeds.max(1);
    let warnings = warnings(fleet, &offers, hours, (options, &keys));
    FleetRecommendation {
        fleet: fleet.fleet.name.clone(),
        currency: currency.to_owned(),
        seeds: leftover.seeds,
        hours,
        offers,
        warnings,
    }
}

/// The discounts on a class.
fn class(
    fleet: &LoadedFleet,
    key: &ClassKey,
    (years, all_upfront): (u32, bool),
    (options, catalog): (&Options, &Catalog),
) -> UsageClass {
    let millionths = |discount: u32| f64::from(discount) / 1e6;
    let listed = |family: Symbol| {
        let region = catalog.region(key.region.as_str()).ok()?;
        let (discount, _) = region.commitment_discount(family)?.of_term(years, all_upfront)?;
        Some(millionths(discount))
    };
    let owned = fleet.fleet.plans.iter().find(|plan| plan.family.is_none());
    let own_discount = |family: Symbol| {
        let plan = owned?;
        plan.family_discounts.get(&family).copied().or(plan.discount).map(millionths)
    };
    let (instance, compute) = match key.kind {
        ClassKind::Family(family) => (listed(family), options.compute_discount.or_else(|| own_discount(family))),
        ClassKind::Fargate => {
            let owned = owned.and_then(|plan| plan.fargate_discount).map(millionths);
            (None, options.fargate_discount.or(owned))
        }
        ClassKind::Lambda => (None, owned.and_then(|plan| plan.lambda_discount).map(millionths)),
    };
    UsageClass { name: key.name(), instance, compute }
}

/// The search for one term and payment.
struct Search<'s> {
    fleet: &'s LoadedFleet,
    leftover: &'s Leftover,
    spot: &'s [SpotChange],
    options: &'s Options,
    catalog: &'s Catalog,
    classes: Vec<(ClassKey, UsageClass)>,
    offer: (u32, bool),
}

/// The usage of each hour, with the number of its seed, as demand of these classes.
fn demand(classes: &[(ClassKey, UsageClass)], hours: &[(usize, BTreeMap<ClassKey, f64>)]) -> Demand {
    let samples = hours.iter().map(|(path, used)| Sample {
        weight: 1.0,
        path: *path,
        used: classes.iter().map(|(key, _)| used.get(key).copied().unwrap_or(0.0)).collect(),
    });
    Demand::new(classes.iter().map(|(_, class)| class.clone()).collect(), samples.collect())
}

impl Search<'_> {
    fn objective(&self) -> Objective {
        self.options.risk.map_or(Objective::Mean, |risk| Objective::WorstPaths((1.0 - risk).max(0.01)))
    }

    fn offer(&self) -> Offer {
        let today = demand(&self.classes, &self.leftover.hours);
        let (years, all_upfront) = self.offer;
        // Over a long term the load does not stay, so its plans have to pay off over the cases of growth.
        let demand = if years > 1 { Growth::usual(years).of_demand(&today) } else { today.clone() };
        let best = demand.best(self.objective());
        let Best { purchase, result, bound, .. } = &best;
        let none = demand.evaluate(&Purchase::none(self.classes.len()));
        let has_compute = self.classes.iter().any(|(_, class)| class.compute.is_some());
        let alone = |demand: Demand| demand.best(self.objective()).result.cost;
        let capital = f64::from(self.fleet.fleet.cost_of_capital) / 1e6;
        let present_value = present_value(years, if all_upfront { 1.0 } else { 0.0 }, capital);
        let (owner, repriced) = self.owner(purchase);
        Offer {
            years,
            payment: if all_upfront { "all_upfront" } else { "no_upfront" },
            plans: self.plans_to_buy(purchase),
            committed: purchase.total(),
            cost: result.cost,
            on_demand: none.cost,
            bound: *bound,
            repriced,
            today: today.evaluate(purchase).cost,
            owner: self.fleet.fleet.accounts[owner].name.clone(),
            families_alone: alone(demand.restricted(false, |_| true)),
            compute_alone: has_compute.then(|| alone(demand.restricted(true, |_| false))),
            coverage: result.coverage(),
            utilisation: result.utilisation(),
            savings_rate: result.savings_rate(),
            present_value,
            cost_today: result.cost - result.committed * (1.0 - present_value),
            break_even: today.break_even(purchase),
            interval: self.interval(&demand),
            curve: CURVE.map(|share| curve_point(share, demand.evaluate(&purchase.scaled(share)))).into(),
            growth: GROWTH.map(|per_year| self.growth_case(&today, purchase, per_year)).into(),
            spot: self.spot.iter().map(|change| self.spot_case(change, purchase)).collect(),
        }
    }

    /// The purchase with another Spot share at today's load.
    fn spot_case(&self, change: &SpotChange, purchase: &Purchase) -> SpotCase {
        let mut classes = self.classes.clone();
        let is_new = |key: &&ClassKey| !self.classes.iter().any(|(known, _)| known == *key);
        let keys: BTreeSet<ClassKey> =
            change.hours.iter().flat_map(|(_, used)| used.keys()).filter(is_new).copied().collect();
        classes.extend(
            keys.into_iter().map(|key| (key, class(self.fleet, &key, self.offer, (self.options, self.catalog)))),
        );
        let demand = demand(&classes, &change.hours);
        let mut purchase = purchase.clone();
        purchase.instance.resize(classes.len(), 0.0);
        let result = demand.evaluate(&purchase);
        SpotCase {
            change: change.change,
            spot_share: change.spot_share,
            cost: result.cost,
            on_demand: result.on_demand,
            best: demand.best(self.objective()).purchase.total(),
            coverage: result.coverage(),
            utilisation: result.utilisation(),
        }
    }

    /// What the purchase costs if the load grows by so much a year, over the term.
    fn growth_case(&self, demand: &Demand, purchase: &Purchase, per_year: f64) -> GrowthCase {
        let usual = Growth::usual(self.offer.0);
        let grown = Growth { per_year: vec![per_year], months: usual.months }.of_demand(demand);
        let result = grown.evaluate(purchase);
        GrowthCase {
            per_year,
            cost: result.cost,
            on_demand: result.on_demand,
            best: grown.best(self.objective()).purchase.total(),
            coverage: result.coverage(),
            utilisation: result.utilisation(),
        }
    }

    fn plans_to_buy(&self, purchase: &Purchase) -> Vec<PlanToBuy> {
        let of_class = self.classes.iter().zip(&purchase.instance).filter(|(_, commitment)| **commitment > 0.0);
        let mut plans: Vec<PlanToBuy> = of_class
            .map(|((_, class), &commitment)| PlanToBuy {
                kind: "ec2_instance",
                class: class.name.clone(),
                commitment,
                discount: class.instance,
            })
            .collect();
        if purchase.compute > 0.0 {
            let class = "all families and regions".to_owned();
            plans.push(PlanToBuy { kind: "compute", class, commitment: purchase.compute, discount: None });
        }
        plans
    }

    /// The account in which the plans cost least, and their cost per hour by the billing engine.
    fn owner(&self, purchase: &Purchase) -> (usize, f64) {
        let fleet = &self.fleet.fleet;
        let all = 0..fleet.accounts.len();
        let priced = all.filter(|account| self.options.owner.is_none_or(|owner| owner == *account));
        // An account without usage is first: its plans have no usage of their own to cover before that of others.
        // Smaller differences are of rounding.
        let cents = |cost: f64| (cost * 1e4).round() as i64;
        let has_cluster = |account: usize| fleet.clusters.iter().any(|cluster| cluster.account == account);
        let mut priced: Vec<(f64, bool, usize)> =
            priced.map(|account| (self.reprice(purchase, account), has_cluster(account), account)).collect();
        priced.sort_by(|one, other| cents(one.0).cmp(&cents(other.0)).then((one.1, one.2).cmp(&(other.1, other.2))));
        priced.first().map_or((0, 0.0), |&(cost, _, account)| (account, cost))
    }

    /// Cost per hour of what owned commitments leave, with the plans in an account.
    fn reprice(&self, purchase: &Purchase, account: usize) -> f64 {
        let fleet = &self.fleet.fleet;
        let accounts = fleet.billing_accounts();
        let mut commitments = fleet.billing_commitments(self.fleet.start);
        let owned: BTreeSet<Symbol> = commitments.iter().map(|commitment| commitment.id()).collect();
        let owner = Symbol::new(&fleet.accounts[account].id);
        let term = nodecast_commitments::Term::default();
        commitments.plans.extend(plans(&self.classes, purchase, (owner, "new-"), term));
        let hour = SimTime::ZERO + SimDuration::from_secs(3_600);
        let mut cost = 0.0;
        for lines in &self.leftover.lines {
            let covered = apply(&accounts, &commitments, lines, (SimTime::ZERO, hour));
            cost += left_by_class(lines, &covered).values().sum::<f64>();
            let fees =
                commitments.iter().zip(&covered.fees).filter(|(commitment, _)| !owned.contains(&commitment.id()));
            cost += fees.map(|(_, fee)| fee.paid.as_f64()).sum::<f64>();
        }
        cost / self.leftover.lines.len().max(1) as f64
    }

    /// The best commitment in 90% of draws of the seeds, each of as many seeds with replacement.
    fn interval(&self, demand: &Demand) -> [f64; 2] {
        let seeds = self.leftover.seeds.max(1);
        let streams = Streams::new(self.fleet.seed);
        let mut known: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        let mut total = |draw: u64| {
            let word = |place: usize| streams.nth("commitment-draw", &place.to_string(), draw).word();
            let mut paths: Vec<usize> = (0..seeds).map(|place| (word(place) % seeds as u64) as usize).collect();
            paths.sort_unstable();
            let best = |paths: &Vec<usize>| demand.resampled(paths).best(self.objective()).purchase.total();
            *known.entry(paths).or_insert_with_key(best)
        };
        let mut totals: Vec<f64> = (0..DRAWS).map(&mut total).collect();
        totals.sort_by(f64::total_cmp);
        let outside = totals.len() / 20;
        [totals[outside], totals[totals.len() - 1 - outside]]
    }
}

fn curve_point(share: f64, result: PurchaseResult) -> CurvePoint {
    CurvePoint { share, cost: result.cost, coverage: result.coverage(), utilisation: result.utilisation() }
}

fn warnings(
    fleet: &LoadedFleet,
    offers: &[Offer],
    hours: usize,
    (options, keys): (&Options, &[ClassKey]),
) -> Vec<String> {
    let mut warnings = Vec::new();
    if hours < WEEK_HOURS {
        warnings.push(format!("the run has {hours} whole hours; a day is not a year. Set `duration: 7d` or more"));
    }
    let has_compute = |fleet: &Fleet| fleet.plans.iter().any(|plan| plan.family.is_none());
    if options.compute_discount.is_none() && !has_compute(&fleet.fleet) && !keys.is_empty() {
        warnings.push(
            "the price data have no rates of Compute Savings Plans, so none is recommended. Set `--compute-discount`, \
             for example 27%"
                .to_owned(),
        );
    }
    for offer in offers {
        let [low, high] = offer.interval;
        if high - low > 2.0 * WIDE * offer.committed && offer.committed > 0.0 {
            warnings.push(format!(
                "the best {}-year commitment differs among seeds: {low:.3} to {high:.3} per hour. Set more `replications`",
                offer.years
            ));
        }
        let gap = offer.repriced - offer.today;
        if gap > 1e-4 * offer.on_demand {
            warnings.push(format!(
                "in account `{}` the plans cost {gap:.4} per hour more than in an account without usage, because its own usage comes first",
                offer.owner
            ));
        }
    }
    warnings.push(match fleet.other_usage.is_empty() {
        true => "No usage outside the clusters competes for the plans, and the year looks like the simulated period.",
        false => "The year looks like the simulated period, with the usage outside the clusters that `other_usage` states.",
    }
    .to_owned());
    warnings
}
