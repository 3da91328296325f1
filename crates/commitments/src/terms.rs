//! Terms: growth of the load over a term, payment upfront, and a ladder of purchases.

use crate::best::{Demand, Sample};

/// Months of a year.
const YEAR: f64 = 12.0;

/// Growth of the load over a term.
#[derive(Clone, PartialEq, Debug)]
pub struct Growth {
    /// Growth per year of each case, as -0.2, 0, and 0.2. All cases have the same weight.
    pub per_year: Vec<f64>,
    /// Months of the term for which usage is worked out, from 0 on. All have the same weight.
    pub months: Vec<u32>,
}

impl Growth {
    /// Usual cases for a term of this many years, with a month of each quarter.
    pub fn usual(years: u32) -> Self {
        Self { per_year: vec![-0.2, 0.0, 0.2], months: (0..years * 4).map(|quarter| quarter * 3 + 1).collect() }
    }

    /// The load in a month, as a multiple of today's.
    pub fn factor(per_year: f64, month: u32) -> f64 {
        libm::pow(1.0 + per_year, f64::from(month) / YEAR)
    }

    /// The demand over the term: each sample once for each case and month. The paths of case `c` follow those of the cases before.
    pub fn of_demand(&self, demand: &Demand) -> Demand {
        let paths = demand.samples().iter().map(|sample| sample.path + 1).max().unwrap_or(0);
        let count = (self.per_year.len() * self.months.len()).max(1) as f64;
        let mut samples = Vec::new();
        for (case, &per_year) in self.per_year.iter().enumerate() {
            for &month in &self.months {
                let factor = Self::factor(per_year, month);
                samples.extend(demand.samples().iter().map(|sample| Sample {
                    weight: sample.weight / count,
                    path: case * paths + sample.path,
                    used: sample.used.iter().map(|used| used * factor).collect(),
                }));
            }
        }
        Demand::new(demand.classes().to_vec(), samples)
    }
}

/// Present value of a fee, as a share of its sum: `upfront` of it is paid at once, the rest at the end of each month of the term. Later payments
/// cost less by `cost_of_capital` a year.
pub fn present_value(years: u32, upfront: f64, cost_of_capital: f64) -> f64 {
    let months = years * 12;
    let later = |month: u32| libm::pow(1.0 + cost_of_capital, -f64::from(month) / YEAR);
    let mean = (1..=months).map(later).sum::<f64>() / f64::from(months.max(1));
    upfront + (1.0 - upfront) * mean
}

/// Yearly return on the money that is paid at once instead of at the end of each month: `discounts` are those of payment without and with all
/// upfront, 0 to 1.
pub fn upfront_return(years: u32, [monthly, upfront]: [f64; 2]) -> f64 {
    let gain = |rate: f64| (1.0 - monthly) * present_value(years, 0.0, rate) - (1.0 - upfront);
    let (mut low, mut high) = (-0.9, 10.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if gain(middle) > 0.0 { low = middle } else { high = middle }
    }
    low
}

/// A purchase of a ladder.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Step {
    /// Months from now.
    pub month: u32,
    /// Commitment to buy, per hour.
    pub buy: f64,
    /// Commitment that ends in that month, per hour.
    pub ends: f64,
}

/// A ladder: the wanted commitment is bought in `steps` equal parts over a term of `months`, so that a part ends in each step. `owned` are
/// commitments per hour with the months until they end.
pub fn ladder(wanted: f64, owned: &[(f64, u32)], months: u32, steps: u32) -> Vec<Step> {
    let steps = steps.clamp(1, months.max(1));
    let length = months / steps;
    let part = wanted / f64::from(steps);
    let mut held: Vec<(f64, u32)> = owned.to_vec();
    let mut result = Vec::new();
    for number in 0..steps {
        let (month, next) = (number * length, (number + 1) * length);
        let ends = |from: u32, to: u32| {
            held.iter().filter(|plan| from <= plan.1 && plan.1 < to).map(|plan| plan.0).sum::<f64>()
        };
        let stays: f64 = held.iter().filter(|plan| plan.1 >= next).map(|plan| plan.0).sum();
        let step = Step { month, buy: (wanted - stays).clamp(0.0, part), ends: ends(month, next) };
        held.push((step.buy, month + months));
        result.push(step);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{Growth, ladder, present_value, upfront_return};
    use crate::best::{Demand, Objective, Sample, UsageClass};

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 5e-4
    }

    #[test]
    fn upfront_payment_earns_return_of_known_offer() {
        // 935 at once, or 83.45 at the end of each month.
        let list = 1_513.7;
        let discounts = [1.0 - 12.0 * 83.45 / list, 1.0 - 935.0 / list];
        assert!(near(upfront_return(1, discounts), 0.1365), "{}", upfront_return(1, discounts));
        assert!(near(present_value(1, 1.0, 0.08), 1.0) && near(present_value(1, 0.0, 0.0), 1.0));
        assert!(near(present_value(1, 0.0, 0.1365) * 12.0 * 83.45 / 935.0, 1.0));
    }

    #[test]
    fn growth_cases_scale_usage_by_month() {
        let class = UsageClass { name: "m5".to_owned(), instance: Some(0.3), compute: None };
        let sample = |used: f64, path: usize| Sample { weight: 1.0, path, used: vec![used] };
        let demand = Demand::new(vec![class], vec![sample(10.0, 0), sample(10.0, 1)]);
        let growth = Growth { per_year: vec![-0.19, 0.0], months: vec![0, 6] };
        let grown = growth.of_demand(&demand);
        let used: Vec<(usize, f64)> = grown.samples().iter().map(|sample| (sample.path, sample.used[0])).collect();
        let fallen = 10.0 * 0.81_f64.sqrt();
        let wanted = [(0, 10.0), (1, 10.0), (0, fallen), (1, fallen), (2, 10.0), (3, 10.0), (2, 10.0), (3, 10.0)];
        assert!(
            used.iter().zip(wanted).all(|(found, wanted)| found.0 == wanted.0 && near(found.1, wanted.1)),
            "{used:?}"
        );
        // A quarter of the hours uses 9 and the rest 10; 30% of the hours may use less.
        assert!(near(grown.best(Objective::Mean).purchase.instance[0], 7.0));
        assert_eq!(Growth::usual(3).months.len(), 12);
    }

    #[test]
    fn ladder_buys_equal_parts_and_replaces_ends() {
        let plain = ladder(8.0, &[], 12, 4);
        assert!(plain.iter().all(|step| near(step.buy, 2.0)) && plain[3].month == 9);
        // 7 owned, of which 3 end in month 4: the first step buys 1, the second replaces at most a part.
        let steps = ladder(8.0, &[(4.0, 30), (3.0, 4)], 12, 4);
        let bought: Vec<f64> = steps.iter().map(|step| step.buy).collect();
        assert!(
            near(bought[0], 1.0) && near(bought[1], 2.0) && near(bought[2], 1.0) && near(bought[3], 0.0),
            "{bought:?}"
        );
        assert!(near(steps[1].ends, 3.0));
    }
}
