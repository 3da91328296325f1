//! The commitments with the lowest cost against samples of usage: EC2 Instance plans of several classes and one Compute plan.
//!
//! The cost is jointly convex in the commitments: AWS's order (Instance plans first, then the Compute plan by the highest discount) covers as much
//! as any other, so the cost is the value of a linear program. Cutting planes therefore find the best commitments with a bound.
//!
//! Must not know: where usage comes from, terms, accounts. Samples are what remains On-Demand after the commitments that are owned.

use crate::master::Master;

/// Commitments per hour are rounded down to a thousandth.
pub const STEP: f64 = 0.001;
/// The search ends when cost and bound differ by less than this share of the On-Demand cost.
const GAP: f64 = 1e-9;
/// Cuts at most.
const CUTS_MAX: usize = 2_000;
/// Extra cost of a dollar committed while searching, so that of equal commitments the smallest is found.
const LEAN: f64 = 1e-6;

/// A class of usage: what one EC2 Instance plan covers, or Fargate, or Lambda.
#[derive(Clone, PartialEq, Debug)]
pub struct UsageClass {
    /// Name, as `us-east-1 m5`.
    pub name: String,
    /// Discount of an EC2 Instance plan of the class, 0 to 1; `None` where there is no such plan.
    pub instance: Option<f64>,
    /// Discount of a Compute plan on the class, 0 to 1; `None` where it does not cover it.
    pub compute: Option<f64>,
}

/// An hour of usage that nothing covers.
#[derive(Clone, PartialEq, Debug)]
pub struct Sample {
    /// Weight of the hour. Weights need not sum to 1.
    pub weight: f64,
    /// The path that it belongs to: a seed under a growth case.
    pub path: usize,
    /// Value at list prices of each class, in dollars per hour.
    pub used: Vec<f64>,
}

/// Commitments per hour: one EC2 Instance plan for each class, and a Compute plan.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Purchase {
    /// EC2 Instance plans, in the order of classes; 0 for none.
    pub instance: Vec<f64>,
    /// The Compute plan; 0 for none.
    pub compute: f64,
}

impl Purchase {
    /// Nothing, for this number of classes.
    pub fn none(classes: usize) -> Self {
        Self { instance: vec![0.0; classes], compute: 0.0 }
    }

    /// All commitments per hour.
    pub fn total(&self) -> f64 {
        self.instance.iter().sum::<f64>() + self.compute
    }

    /// All commitments times a factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let instance = self.instance.iter().map(|commitment| commitment * factor).collect();
        Self { instance, compute: self.compute * factor }
    }

    fn from_point(point: &[f64]) -> Self {
        let (compute, instance) = point.split_last().unwrap_or((&0.0, &[]));
        Self { instance: instance.to_vec(), compute: *compute }
    }

    /// Rounded down to what a contract is written for.
    fn rounded_down(&self) -> Self {
        let down = |commitment: f64| libm::floor((commitment + STEP * 1e-3) / STEP) * STEP;
        Self { instance: self.instance.iter().copied().map(down).collect(), compute: down(self.compute) }
    }
}

/// Mean results of a purchase, per hour.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PurchaseResult {
    /// Cost: commitments, and usage that they do not cover.
    pub cost: f64,
    /// Usage at list prices.
    pub on_demand: f64,
    /// Value at list prices of what the commitments cover.
    pub covered: f64,
    /// Commitments that cover nothing.
    pub unused: f64,
    /// Commitments.
    pub committed: f64,
}

impl PurchaseResult {
    /// Covered share of the usage, 0 to 1.
    pub fn coverage(&self) -> f64 {
        ratio(self.covered, self.on_demand)
    }

    /// Used share of the commitments, 0 to 1.
    pub fn utilisation(&self) -> f64 {
        if self.committed > 0.0 { 1.0 - self.unused / self.committed } else { 1.0 }
    }

    /// Effective savings rate: the saving as a share of the usage at list prices.
    pub fn savings_rate(&self) -> f64 {
        ratio(self.on_demand - self.cost, self.on_demand)
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

/// The best purchase.
#[derive(Clone, PartialEq, Debug)]
pub struct Best {
    /// Commitments, rounded down to a thousandth of a dollar.
    pub purchase: Purchase,
    /// Its results.
    pub result: PurchaseResult,
    /// Objective of the purchase: the mean cost, or that of the worst paths.
    pub objective: f64,
    /// No purchase of these classes has a lower objective.
    pub bound: f64,
    /// Evaluations of the cost.
    pub evaluations: usize,
}

impl Best {
    /// Difference from the bound, as a share of the On-Demand cost.
    pub fn gap(&self) -> f64 {
        ratio((self.objective - self.bound).max(0.0), self.result.on_demand)
    }
}

/// What to minimise.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub enum Objective {
    /// The mean cost.
    #[default]
    Mean,
    /// The mean cost of the most expensive paths, which are this share of all: 0.1 for `--risk 0.9`.
    WorstPaths(f64),
}

/// Usage of all classes over many hours.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    classes: Vec<UsageClass>,
    samples: Vec<Sample>,
    /// Classes that a Compute plan covers, the highest discount first.
    order: Vec<usize>,
    weight: f64,
}

impl Demand {
    /// Demand of these classes. Samples without usage of a class have zeros.
    pub fn new(classes: Vec<UsageClass>, samples: Vec<Sample>) -> Self {
        let mut order: Vec<usize> = (0..classes.len()).filter(|&class| classes[class].compute.is_some()).collect();
        let discount = |class: usize| classes[class].compute.unwrap_or(0.0);
        order.sort_by(|&one, &other| discount(other).total_cmp(&discount(one)).then(one.cmp(&other)));
        let weight = samples.iter().map(|sample| sample.weight).sum();
        Self { classes, samples, order, weight }
    }

    /// The classes.
    pub fn classes(&self) -> &[UsageClass] {
        &self.classes
    }

    /// The samples.
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// The same demand with all usage times a factor.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let scale =
            |sample: &Sample| Sample { used: sample.used.iter().map(|used| used * factor).collect(), ..sample.clone() };
        Self { samples: self.samples.iter().map(scale).collect(), ..self.clone() }
    }

    /// The same demand with paths drawn by number: a path that is drawn twice has twice its weight. For intervals of a purchase.
    #[must_use]
    pub fn resampled(&self, paths: &[usize]) -> Self {
        let times = |sample: &Sample| paths.iter().filter(|&&path| path == sample.path).count();
        let draw = |sample: &Sample| Sample { weight: sample.weight * times(sample) as f64, ..sample.clone() };
        let samples = self.samples.iter().map(draw).filter(|sample| sample.weight > 0.0).collect();
        Self::new(self.classes.clone(), samples)
    }

    /// The same demand without a Compute plan, or without EC2 Instance plans of all classes that `keep` rejects.
    #[must_use]
    pub fn restricted(&self, compute: bool, keep: impl Fn(&UsageClass) -> bool) -> Self {
        let class = |class: &UsageClass| UsageClass {
            instance: class.instance.filter(|_| keep(class)),
            compute: class.compute.filter(|_| compute),
            ..class.clone()
        };
        Self::new(self.classes.iter().map(class).collect(), self.samples.clone())
    }

    /// Mean results of a purchase.
    pub fn evaluate(&self, purchase: &Purchase) -> PurchaseResult {
        let mut mean = PurchaseResult::default();
        for sample in &self.samples {
            let hour = self.hour(sample, purchase, None);
            let share = ratio(sample.weight, self.weight);
            mean.cost += share * hour.cost;
            mean.on_demand += share * hour.on_demand;
            mean.covered += share * hour.covered;
            mean.unused += share * hour.unused;
            mean.committed += share * hour.committed;
        }
        mean
    }

    /// One hour; adds the slope of the cost, in the order of a point, to `slope`.
    fn hour(&self, sample: &Sample, purchase: &Purchase, slope: Option<&mut [f64]>) -> PurchaseResult {
        let mut result = PurchaseResult { committed: purchase.total(), ..PurchaseResult::default() };
        let mut left = vec![0.0; self.classes.len()];
        for (number, class) in self.classes.iter().enumerate() {
            let used = sample.used.get(number).copied().unwrap_or(0.0);
            let rate = 1.0 - class.instance.unwrap_or(0.0);
            let commitment = purchase.instance[number];
            let covered = if class.instance.is_some() { used.min(commitment / rate) } else { 0.0 };
            result.on_demand += used;
            result.covered += covered;
            result.unused += commitment - covered * rate;
            left[number] = used - covered;
        }
        let mut money = purchase.compute;
        // The class in which the money ends.
        let mut last = None;
        for (place, &number) in self.order.iter().enumerate() {
            let rate = 1.0 - self.classes[number].compute.unwrap_or(0.0);
            if left[number] <= 0.0 {
                continue;
            }
            let covered = left[number].min(money / rate);
            if covered < left[number] && last.is_none() {
                last = Some(place);
            }
            money -= covered * rate;
            result.covered += covered;
        }
        result.unused += money;
        result.cost = result.committed + result.on_demand - result.covered;
        if let Some(slope) = slope {
            self.add_slope(&left, last, slope);
        }
        result
    }

    /// Adds the slope of an hour's cost. `left` is what Instance plans leave of each class; the money of the Compute plan ends in the class at
    /// `last` of the order.
    fn add_slope(&self, left: &[f64], last: Option<usize>, slope: &mut [f64]) {
        let rate = |class: usize| 1.0 - self.classes[class].compute.unwrap_or(0.0);
        let worth = last.map_or(0.0, |place| 1.0 / rate(self.order[place]));
        slope[self.classes.len()] += 1.0 - worth;
        let mut frees = vec![None; self.classes.len()];
        for (place, &number) in self.order.iter().enumerate() {
            // A class before the last one is covered in full, so that its Instance plan frees money of the Compute plan.
            frees[number] = last.is_none_or(|last| place < last).then_some(worth * rate(number));
        }
        for (number, class) in self.classes.iter().enumerate() {
            let Some(discount) = class.instance else { continue };
            let value = if left[number] <= 0.0 { 0.0 } else { frees[number].unwrap_or(1.0) / (1.0 - discount) };
            slope[number] += 1.0 - value;
        }
    }

    /// The objective at a point, and its slope there.
    fn objective(&self, point: &[f64], objective: Objective) -> (f64, Vec<f64>) {
        let purchase = Purchase::from_point(point);
        let paths = match objective {
            Objective::Mean => 1,
            Objective::WorstPaths(_) => self.samples.iter().map(|sample| sample.path + 1).max().unwrap_or(1),
        };
        let mut costs = vec![(0.0, 0.0); paths];
        let mut slopes = vec![vec![0.0; point.len()]; paths];
        let mut slope = vec![0.0; point.len()];
        for sample in &self.samples {
            slope.fill(0.0);
            let path = if paths == 1 { 0 } else { sample.path };
            let hour = self.hour(sample, &purchase, Some(&mut slope));
            costs[path].0 += sample.weight;
            costs[path].1 += sample.weight * hour.cost;
            for (sum, part) in slopes[path].iter_mut().zip(&slope) {
                *sum += sample.weight * part;
            }
        }
        let shares = match objective {
            Objective::Mean => vec![1.0],
            Objective::WorstPaths(share) => worst(&costs, share),
        };
        let parts = shares.iter().zip(&costs).map(|(share, (weight, cost))| share * ratio(*cost, *weight));
        let value: f64 = parts.sum();
        let slope = (0..point.len()).map(|number| {
            let paths = shares.iter().zip(&costs).zip(&slopes);
            paths.map(|((share, (weight, _)), slope)| share * ratio(slope[number], *weight)).sum()
        });
        (value, slope.collect())
    }

    /// The largest commitments that could ever be used, in the order of a point.
    fn limits(&self) -> Vec<f64> {
        let mut limits = vec![0.0_f64; self.classes.len() + 1];
        for sample in &self.samples {
            let mut compute = 0.0;
            for (number, class) in self.classes.iter().enumerate() {
                let used = sample.used.get(number).copied().unwrap_or(0.0);
                limits[number] = limits[number].max(class.instance.map_or(0.0, |discount| used * (1.0 - discount)));
                compute += class.compute.map_or(0.0, |discount| used * (1.0 - discount));
            }
            let last = self.classes.len();
            limits[last] = limits[last].max(compute);
        }
        limits
    }

    /// The purchase with the lowest objective, by cutting planes.
    pub fn best(&self, objective: Objective) -> Best {
        let limits = self.limits();
        let scale = self.evaluate(&Purchase::none(self.classes.len())).on_demand;
        let mut point = vec![0.0; limits.len()];
        let (mut best, mut lowest, mut bound) = (point.clone(), f64::INFINITY, 0.0_f64);
        let mut master = Master::new(limits.clone());
        let mut evaluations = 0;
        while evaluations < CUTS_MAX {
            let (value, slope) = self.objective(&point, objective);
            evaluations += 1;
            let lean = |point: &[f64]| LEAN * point.iter().sum::<f64>();
            let value = value + lean(&point);
            if value < lowest {
                (lowest, best) = (value, point.clone());
            }
            let slope: Vec<f64> = slope.iter().map(|slope| slope + LEAN).collect();
            let offset = value - slope.iter().zip(&point).map(|(slope, at)| slope * at).sum::<f64>();
            master.add_cut(offset, slope);
            let (lower, next) = master.solve();
            bound = bound.max(lower - lean(&limits));
            if lowest - lower <= GAP * scale {
                break;
            }
            point = next;
        }
        let purchase = Purchase::from_point(&best).rounded_down();
        let result = self.evaluate(&purchase);
        let rounded: Vec<f64> = purchase.instance.iter().copied().chain([purchase.compute]).collect();
        let (value, _) = self.objective(&rounded, objective);
        Best { purchase, result, objective: value, bound: bound.min(value), evaluations }
    }

    /// The share of the load below which the purchase no longer saves, 0 to 1; `None` if it never saves.
    pub fn break_even(&self, purchase: &Purchase) -> Option<f64> {
        let saves = |factor: f64| {
            let result = self.scaled(factor).evaluate(purchase);
            result.cost < result.on_demand - 1e-12
        };
        if !saves(1.0) {
            return None;
        }
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = (low + high) / 2.0;
            if saves(middle) { high = middle } else { low = middle }
        }
        Some(high)
    }
}

/// Shares of the paths in the mean of the most expensive ones. `costs` are weights and weighted costs.
fn worst(costs: &[(f64, f64)], share: f64) -> Vec<f64> {
    let all: f64 = costs.iter().map(|cost| cost.0).sum();
    let mut order: Vec<usize> = (0..costs.len()).filter(|&path| costs[path].0 > 0.0).collect();
    let mean = |path: usize| costs[path].1 / costs[path].0;
    order.sort_by(|&one, &other| mean(other).total_cmp(&mean(one)).then(one.cmp(&other)));
    let wanted = share.clamp(1e-9, 1.0);
    let (mut left, mut shares) = (wanted, vec![0.0; costs.len()]);
    for path in order {
        let part = ratio(costs[path].0, all).min(left);
        shares[path] = part / wanted;
        left -= part;
    }
    shares
}
