//! The result of a fleet in a terminal.

use nodecast_report::columns::printed;
use nodecast_report::figure::Figure;
use nodecast_report::format::{counted, instant_for_people, money, percent};
use nodecast_report::table::{Rows, Table};

use crate::summary::{CommitmentRow, FleetSummary, QuotaRow, Row};

/// Clusters that a terminal shows; the files have all.
const CLUSTERS: usize = 30;

/// The answer in one line.
pub(crate) fn answer(summary: &FleetSummary) -> String {
    let figures = &summary.figures;
    let accounts: std::collections::BTreeSet<&str> = summary.clusters.iter().map(|row| row.account.as_str()).collect();
    let clusters = counted(summary.clusters.len() as u64, "cluster", "clusters");
    let accounts = counted(accounts.len() as u64, "account", "accounts");
    let covered = match (figures.coverage, figures.utilisation) {
        (Some(coverage), Some(utilisation)) => format!(
            "; commitments cover {} of On-Demand usage and are {} used",
            percent(coverage),
            percent(utilisation)
        ),
        (None, Some(utilisation)) => format!("; commitments are {} used", percent(utilisation)),
        _ => String::new(),
    };
    let month = money(&summary.currency, figures.per_month);
    format!("{}: {month} per month for {clusters} in {accounts}{covered}", summary.fleet)
}

/// The run in one line: its length, start, and seed.
pub(crate) fn circumstances(summary: &FleetSummary) -> String {
    let length = nodecast_model::domain::SimDuration::from_secs_f64(summary.duration_seconds);
    format!(
        "{length} from {}, seed {}: {} net, {} at list prices",
        instant_for_people(&summary.start),
        summary.seed,
        money(&summary.currency, summary.figures.total),
        money(&summary.currency, summary.figures.list)
    )
}

/// Chargeback rows. Amounts are those of the run.
pub(crate) fn chargeback(summary: &FleetSummary) -> Table {
    let currency = summary.currency.as_str();
    let largest = summary.figures.list;
    let amount = |row: &Row, columns: &[&str]| {
        let sum: f64 = columns.iter().filter_map(|column| row.amounts.get(column)).sum();
        Figure::money(currency, sum, largest)
    };
    let clusters = summary.chargeback.iter().filter(|row| row.kind == "cluster").take(CLUSTERS);
    let others = summary.chargeback.iter().filter(|row| row.kind != "cluster");
    let name = |row: &Row| match row.kind {
        "cluster" => row.cluster.clone().unwrap_or_default(),
        "total" => "total".to_owned(),
        "organization" => "unused commitments".to_owned(),
        _ if row.amounts.get("list").is_some_and(|list| *list > 0.0) => {
            format!("no cluster, {}", row.account.clone().unwrap_or_default())
        }
        _ => format!("unused, {}", row.account.clone().unwrap_or_default()),
    };
    let wait = |row: &Row| {
        let cluster = summary.clusters.iter().find(|cluster| Some(&cluster.name) == row.cluster.as_ref())?;
        cluster.pod_wait_p99_seconds.map(Figure::seconds)
    };
    Rows::new(clusters.chain(others))
        .text("cluster", |row| name(row))
        .shortened(24)
        .text("account", |row| if row.kind == "cluster" { row.account.clone() } else { Some(String::new()) })
        .shortened(12)
        .number("list", |row| amount(row, &["list"]))
        .number("On-Demand", |row| amount(row, &["on_demand", "fargate"]))
        .number("committed", |row| amount(row, &["reserved", "savings_plans", "unused_share"]))
        .number("Spot", |row| amount(row, &["spot"]))
        .number("other", |row| amount(row, &["storage", "network", "control_plane", "fees", "discount"]))
        .number("net", |row| amount(row, &["net"]))
        .number("saved", |row| amount(row, &["saved"]))
        .detail()
        .number("wait p99", |row| wait(row))
        .missing("")
        .gap(2)
        .into()
}

/// The commitments.
pub(crate) fn commitments(summary: &FleetSummary) -> Table {
    let currency = summary.currency.as_str();
    let largest = summary.commitments.iter().map(|row| row.fee).fold(0.0, f64::max);
    let amount = |amount: f64| Figure::money(currency, amount, largest);
    Rows::new(&summary.commitments)
        .text("commitment", |row: &&CommitmentRow| row.id.clone())
        .shortened(24)
        .text("owner", |row| row.owner.clone())
        .shortened(12)
        .number("fee", |row| amount(row.fee))
        .number("unused", |row| amount(row.unused))
        .number("used", |row| row.utilisation.map(Figure::share))
        .number("saves", |row| amount(row.net_saving))
        .into()
}

/// Whether a quota may matter: it refused a launch, or a hundredth of it is used.
pub(crate) fn is_near(row: &QuotaRow) -> bool {
    row.refused > 0 || u64::from(row.peak) * 100 >= u64::from(row.limit)
}

/// Shared vCPU quotas that may matter, those with refused launches first.
pub(crate) fn quotas(summary: &FleetSummary) -> Table {
    let mut rows: Vec<&QuotaRow> = summary.quotas.iter().filter(|row| is_near(row)).collect();
    let share = |row: &QuotaRow| f64::from(row.peak) / f64::from(row.limit.max(1));
    rows.sort_by(|one, other| other.refused.cmp(&one.refused).then(share(other).total_cmp(&share(one))));
    let most_refused = |row: &QuotaRow| {
        let refused = row.clusters.iter().filter(|cluster| cluster.refused > 0);
        refused.map(|cluster| format!("{} {}", cluster.cluster, cluster.refused)).collect::<Vec<_>>().join(", ")
    };
    let survives = |row: &QuotaRow| {
        let failed: Vec<&str> =
            row.faults.iter().filter(|fault| !fault.survives).map(|fault| fault.fault.as_str()).collect();
        match (row.faults.is_empty(), failed.is_empty()) {
            (true, _) => String::new(),
            (false, true) => "yes".to_owned(),
            (false, false) => format!("no ({})", failed.join("; ")),
        }
    };
    Rows::new(rows.into_iter().take(CLUSTERS))
        .text("vCPU quota", |row| row.quota.clone())
        .text("account", |row| row.account.clone())
        .shortened(12)
        .text("region", |row| row.region.clone())
        .number("limit", |row| row.limit.to_string())
        .number("peak", |row| row.peak.to_string())
        .number("at the limit", |row| Figure::seconds(row.at_limit_seconds))
        .number("refused", |row| row.refused.to_string())
        .text("refused to", |row| most_refused(row))
        .text("survives faults", |row| survives(row))
        .into()
}

/// The result as people read it: the answer first, then chargeback and commitments.
pub fn table(summary: &FleetSummary, width: Option<usize>) -> String {
    let mut lines = vec![answer(summary), circumstances(summary), String::new()];
    lines.extend(chargeback(summary).lines(width));
    let more = summary.clusters.len().saturating_sub(CLUSTERS);
    if more > 0 {
        lines.push(format!("  and {} more in chargeback.csv", counted(more as u64, "cluster", "clusters")));
    }
    if !summary.commitments.is_empty() {
        lines.push(String::new());
        lines.extend(commitments(summary).lines(width));
    }
    if summary.quotas.iter().any(|row| row.refused > 0) {
        lines.push(String::new());
        lines.extend(quotas(summary).lines(width));
    }
    if !summary.coupling.is_empty() {
        lines.push(String::new());
    }
    for group in &summary.coupling {
        lines.push(format!(
            "Coupled: {} on one clock, because of {}",
            group.clusters.join(", "),
            group.limits.join("; ")
        ));
    }
    if !summary.warnings.is_empty() {
        lines.push(String::new());
        lines.push(counted(summary.warnings.len() as u64, "warning", "warnings"));
        lines.extend(summary.warnings.iter().map(|warning| format!("  {warning}")));
    }
    printed(&lines, width)
}
