//! Usage that commitments leave, by the plan that could cover it, and a purchase as plans: the way into the search for the best purchase and back.

use std::collections::BTreeMap;

use nodecast_model::domain::{HourlyRate, Symbol};

use crate::apply::CoveredHour;
use crate::best::{Purchase, UsageClass};
use crate::commitment::{PlanKind, PlanRates, SavingsPlan, Term, WHOLE};
use crate::share::HOUR;
use crate::usage::{UsageKind, UsageLine};

/// A class of usage: all that one EC2 Instance plan covers, or Fargate, or Lambda.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ClassKey {
    /// Region.
    pub region: Symbol,
    /// Family or service.
    pub kind: ClassKind,
}

/// Family or service of a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum ClassKind {
    /// An instance family.
    Family(Symbol),
    /// vCPUs and memory of Fargate.
    Fargate,
    /// Lambda.
    Lambda,
}

impl ClassKey {
    /// The class of a usage line.
    pub fn from_line(line: &UsageLine) -> Self {
        let kind = match line.kind {
            UsageKind::FargateCpu | UsageKind::FargateMemory => ClassKind::Fargate,
            UsageKind::Lambda => ClassKind::Lambda,
            UsageKind::Instance(_) => ClassKind::Family(Symbol::new(line.kind.family().unwrap_or_default())),
        };
        Self { region: line.region, kind }
    }

    /// Its name, as `us-east-1 m5`.
    pub fn name(&self) -> String {
        let kind = match self.kind {
            ClassKind::Family(family) => family.as_str(),
            ClassKind::Fargate => "Fargate",
            ClassKind::Lambda => "Lambda",
        };
        format!("{} {kind}", self.region)
    }
}

/// Value at list prices of what commitments leave in an hour, by class, in dollars.
pub fn left_by_class(lines: &[UsageLine], hour: &CoveredHour) -> BTreeMap<ClassKey, f64> {
    let mut classes: BTreeMap<ClassKey, i128> = BTreeMap::new();
    for (line, left) in lines.iter().zip(&hour.left) {
        *classes.entry(ClassKey::from_line(line)).or_default() +=
            i128::from(line.list.as_nanos()) * i128::from(left.as_micros());
    }
    let dollars = |value: i128| value as f64 / HOUR as f64 / 1e9;
    classes.into_iter().filter(|pair| pair.1 > 0).map(|(key, value)| (key, dollars(value))).collect()
}

/// A purchase as plans of `owner` that run for all of `term`. `classes` are those of the demand with their keys. Ids start with `prefix`.
pub fn plans(
    classes: &[(ClassKey, UsageClass)],
    purchase: &Purchase,
    (owner, prefix): (Symbol, &str),
    term: Term,
) -> Vec<SavingsPlan> {
    let plan = |name: String, kind: PlanKind, commitment: f64, rates: PlanRates| SavingsPlan {
        id: Symbol::new(&format!("{prefix}{name}")),
        owner,
        kind,
        commitment: HourlyRate::from_nanos(libm::round(commitment * 1e9) as i64),
        rates,
        term,
    };
    let mut plans = Vec::new();
    for ((key, class), &commitment) in classes.iter().zip(&purchase.instance) {
        if let (ClassKind::Family(family), Some(discount)) = (key.kind, class.instance)
            && commitment > 0.0
        {
            let kind = PlanKind::Instance { family, region: key.region };
            plans.push(plan(key.name().replace(' ', "-"), kind, commitment, PlanRates::flat(millionths(discount))));
        }
    }
    if purchase.compute > 0.0 {
        plans.push(plan("compute".to_owned(), PlanKind::Compute, purchase.compute, compute_rates(classes)));
    }
    plans
}

/// Rates of a Compute plan. A family that several regions use has the discount of the first.
fn compute_rates(classes: &[(ClassKey, UsageClass)]) -> PlanRates {
    let mut rates = PlanRates::default();
    for (key, class) in classes {
        let Some(discount) = class.compute.map(millionths) else { continue };
        match key.kind {
            ClassKind::Family(family) if rates.families.iter().all(|pair| pair.0 != family) => {
                rates.families.push((family, discount));
            }
            ClassKind::Family(_) => {}
            ClassKind::Fargate => (rates.fargate_cpu, rates.fargate_memory) = (Some(discount), Some(discount)),
            ClassKind::Lambda => rates.lambda = Some(discount),
        }
    }
    rates
}

fn millionths(share: f64) -> u32 {
    libm::round(share.clamp(0.0, 1.0) * f64::from(WHOLE)) as u32
}
