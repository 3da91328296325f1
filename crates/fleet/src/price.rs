//! The bill of a fleet: the commitments of its file applied to the usage of all clusters, hour by hour.

use std::collections::BTreeMap;

use jiff::Timestamp;
use nodecast_commitments as engine;
use nodecast_commitments::{
    Bearer, ChargebackRow, CoveredHour, OtherCosts, PlanKind, PlanRates, ReservedInstance, SavingsPlan, UsageKind,
    UsageLine, apply, chargeback,
};
use nodecast_model::domain::{Money, SimTime, Symbol};

use crate::usage::{ClusterUsage, HOUR};
use crate::{Fleet, LoadedFleet, Term};

/// A fleet's bill.
#[derive(Clone, Debug)]
pub struct FleetBill {
    /// Usage and commitments.
    pub bill: engine::Bill,
    /// Chargeback rows, the total last.
    pub rows: Vec<ChargebackRow>,
}

impl Fleet {
    /// The accounts, as the billing engine has them.
    pub fn billing_accounts(&self) -> engine::Accounts {
        let account = |account: &crate::Account| engine::Account {
            id: Symbol::new(&account.id),
            name: Symbol::new(&account.name),
            group: account.group.as_deref().map(Symbol::new),
            shares: account.sharing,
            is_payer: account.payer,
        };
        engine::Accounts::new(self.accounts.iter().map(account), self.sharing)
    }

    /// The commitments, in a run from `start`.
    pub fn billing_commitments(&self, start: Timestamp) -> engine::Commitments {
        let owner = |owner: usize| Symbol::new(&self.accounts[owner].id);
        let reserved = self.reserved.iter().map(|reserved| ReservedInstance {
            id: Symbol::new(&reserved.id),
            owner: owner(reserved.owner),
            region: reserved.region,
            zone: reserved.zone_id,
            instance_type: reserved.instance_type,
            platform: platform(reserved.platform),
            tenancy: if reserved.dedicated { engine::Tenancy::Dedicated } else { engine::Tenancy::Shared },
            count: reserved.count,
            rate: reserved.per_hour,
            term: term(reserved.term, start),
        });
        let plans = self.plans.iter().map(|plan| SavingsPlan {
            id: Symbol::new(&plan.id),
            owner: owner(plan.owner),
            kind: plan.family.map_or(PlanKind::Compute, |(family, region)| PlanKind::Instance { family, region }),
            commitment: plan.commitment,
            rates: PlanRates {
                discount: plan.discount,
                families: plan.family_discounts.iter().map(|(family, discount)| (*family, *discount)).collect(),
                prices: plan.prices.iter().map(|(name, rate)| (UsageKind::Instance(*name), *rate)).collect(),
                fargate_cpu: plan.fargate_discount,
                fargate_memory: plan.fargate_discount,
                lambda: plan.lambda_discount,
            },
            term: term(plan.term, start),
        });
        engine::Commitments { reserved: reserved.collect(), plans: plans.collect() }
    }
}

fn platform(name: &str) -> engine::Platform {
    match name {
        "windows" => engine::Platform::Windows,
        "rhel" => engine::Platform::Rhel,
        "suse" => engine::Platform::Suse,
        _ => engine::Platform::Linux,
    }
}

/// A term in time of the run.
fn term(term: Term, start: Timestamp) -> engine::Term {
    let in_run = |time: Timestamp| {
        let micros = time.as_microsecond() - start.as_microsecond();
        SimTime::from_micros(micros)
    };
    engine::Term { from: term.start.map(in_run), to: term.end.map(in_run) }
}

/// Prices a run: each cluster with its account and usage, and usage outside the clusters. `each` sees every hour with its lines.
pub fn price(
    loaded: &LoadedFleet,
    clusters: &[(Bearer, &ClusterUsage)],
    each: &mut dyn FnMut(&[UsageLine], &CoveredHour),
) -> FleetBill {
    let fleet = &loaded.fleet;
    let outside = loaded.other_usage.iter().map(|(bearer, usage)| (*bearer, usage));
    let clusters: Vec<(Bearer, &ClusterUsage)> = clusters.iter().copied().chain(outside).collect();
    let (accounts, commitments) = (fleet.billing_accounts(), fleet.billing_commitments(loaded.start));
    let mut bill = engine::Bill::new(&commitments);
    let mut next: Vec<usize> = vec![0; clusters.len()];
    let end = SimTime::ZERO + loaded.clusters[0].scenario.duration;
    for (hour, from) in hours(end) {
        let mut lines: Vec<UsageLine> = Vec::new();
        for ((_, usage), next) in clusters.iter().zip(&mut next) {
            let of_hour = usage.lines[*next..].iter().take_while(|(number, _)| *number == hour);
            let before = lines.len();
            lines.extend(of_hour.map(|(_, line)| *line));
            *next += lines.len() - before;
        }
        lines.sort_unstable();
        let covered = apply(&accounts, &commitments, &lines, (from, (from + HOUR).min(end)));
        bill.add(&accounts, &commitments, &lines, &covered);
        each(&lines, &covered);
    }
    let mut others: BTreeMap<Bearer, OtherCosts> = BTreeMap::new();
    for (bearer, usage) in &clusters {
        // Rounding to seconds, the minimum of a minute, and rounding of amounts.
        let listed = bill.clusters.get(bearer).map_or(Money::ZERO, |amounts| amounts.list);
        let mut other = usage.other;
        other.on_demand += usage.charged - listed;
        others.insert(*bearer, other);
    }
    let rows = chargeback(&accounts, &bill, &others, fleet.unused, fleet.discount.unwrap_or(0));
    FleetBill { bill, rows }
}

/// The hours of a run with their starts.
fn hours(end: SimTime) -> impl Iterator<Item = (u32, SimTime)> {
    let start = |hour: u32| SimTime::ZERO + HOUR * i64::from(hour);
    (0..).map(move |hour| (hour, start(hour))).take_while(move |(_, from)| *from < end)
}

impl FleetBill {
    /// The total of the bill.
    pub fn total(&self) -> Money {
        self.rows.last().map_or(Money::ZERO, |row| row.net)
    }
}

impl FleetBill {
    /// Writes `fleet.json`, `chargeback.csv`, `commitments.csv`, and `index.html` into a directory under construction.
    ///
    /// # Errors
    /// Whatever the system returns.
    pub fn write(
        &self,
        fleet: &LoadedFleet,
        summary: &crate::FleetSummary,
        command: &str,
        directory: &nodecast_report::OutputDirectory,
    ) -> Result<(), nodecast_report::ReportError> {
        let json = summary.to_json()?;
        directory.file("fleet.json", |output| output.write_all(json.as_bytes()))?;
        directory.file("chargeback.csv", |output| crate::tables::chargeback(fleet, self, output))?;
        if !self.bill.commitments.is_empty() {
            directory.file("commitments.csv", |output| crate::tables::commitments(self, output))?;
        }
        let page = crate::page::render(summary, command);
        directory.file("index.html", |output| output.write_all(page.as_bytes()))?;
        Ok(())
    }
}
