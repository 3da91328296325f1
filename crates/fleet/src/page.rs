//! `index.html`: the fleet on one screen, each cluster one click away.

use nodecast_report::figure::Figure;
use nodecast_report::format::{counted, money, money_among, percent, span};
use nodecast_report::page::{Html, begin, text};

use crate::summary::{ClusterRow, FleetSummary};
use crate::terminal;

const STYLE: &str = "
h1 { font-size: 1.35rem; }
.compact td, .compact th { padding-top: 0.18rem; padding-bottom: 0.18rem; }
.compact { width: 100%; font-size: 0.86rem; }
h2 { margin: 1.1rem 0 0.2rem; font-size: 1.05rem; }
.compact .bar { min-width: 4rem; width: 14%; vertical-align: middle; }
.bar svg { display: block; width: 100%; height: 0.7rem; }
.bar rect { fill: var(--link); }
";

/// The page of a fleet. `command` is the command line that repeats it.
pub fn render(summary: &FleetSummary, command: &str) -> String {
    let mut page = Html::new();
    begin(&mut page, &format!("{}, fleet", summary.fleet), STYLE, &[]);
    page.element("h1", &terminal::answer(summary));
    page.element("p class=\"faint\"", &terminal::circumstances(summary));
    answers(&mut page, summary);
    clusters(&mut page, summary);
    if !summary.commitments.is_empty() {
        page.element("h2", "Commitments");
        page.add_table(terminal::commitments(summary), "commitments.csv");
    }
    if summary.quotas.iter().any(terminal::is_near) {
        let refused: u32 = summary.quotas.iter().map(|row| row.refused).sum();
        page.fold("quotas", "Quotas", &format!("{} refused", counted(u64::from(refused), "launch", "launches")));
        page.add_table(terminal::quotas(summary), "quotas.csv");
        page.end_fold();
    }
    page.fold("chargeback", "Chargeback", "who pays what; chargeback.csv has all columns");
    page.add_table(terminal::chargeback(summary), "chargeback.csv");
    page.end_fold();
    let short = counted(summary.assumptions.len() as u64, "assumption", "assumptions");
    page.fold("assumptions", "Assumptions", &short);
    page.list(&summary.assumptions);
    page.end_fold();
    page.raw("</main>\n<footer>\n");
    page.verbatim("code", command);
    page.raw("</footer>\n</body>\n</html>\n");
    page.finish()
}

/// Cost, wait, problems, and coupling.
fn answers(page: &mut Html, summary: &FleetSummary) {
    let figures = &summary.figures;
    let share = |share: Option<f64>| share.map_or_else(|| "none".to_owned(), percent);
    page.raw("<div class=\"answers\">\n");
    let cost = format!(
        "{} in this run; {} at list prices",
        money(&summary.currency, figures.total),
        money(&summary.currency, figures.list)
    );
    row(page, "Cost", &format!("{} per month", money(&summary.currency, figures.per_month)), &cost);
    if !summary.commitments.is_empty() {
        let unused = money_among(&summary.currency, figures.unused, figures.total);
        let more = format!(
            "cover {} of On-Demand usage; {unused} unused; savings rate {}",
            share(figures.coverage),
            share(figures.savings_rate)
        );
        row(page, "Commitments", &format!("{} used", share(figures.utilisation)), &more);
    }
    let slowest = summary.clusters.iter().filter_map(|row| Some((row.pod_wait_p99_seconds?, row)));
    if let Some((seconds, cluster)) = slowest.max_by(|one, other| one.0.total_cmp(&other.0)) {
        row(page, "Wait time", &span(seconds), &format!("highest p99 pod wait for a node: {}", cluster.name));
    }
    let missed: Vec<&str> = summary
        .clusters
        .iter()
        .filter(|row| row.objectives_met < row.objectives)
        .map(|row| row.name.as_str())
        .collect();
    let refused: u64 = summary.clusters.iter().map(|row| row.launches_refused).sum();
    let value = if missed.is_empty() && summary.warnings.is_empty() {
        "None".to_owned()
    } else {
        counted((missed.len() + summary.warnings.len()) as u64, "problem", "problems")
    };
    let mut more: Vec<String> = Vec::new();
    if !missed.is_empty() {
        more.push(format!("objectives missed in {}", missed.join(", ")));
    }
    more.extend(summary.warnings.iter().cloned());
    more.push(format!("{} refused", counted(refused, "launch", "launches")));
    row(page, "Problems", &value, &more.join("; "));
    let coupled: usize = summary.coupling.iter().map(|group| group.clusters.len()).sum();
    let why: Vec<String> = summary.coupling.iter().map(|group| group.limits.join(", ")).collect();
    let more = if why.is_empty() { "no shared limit was exceeded".to_owned() } else { why.join("; ") };
    row(page, "Coupled", &counted(coupled as u64, "cluster", "clusters"), &more);
    page.raw("</div>\n");
}

fn row(page: &mut Html, question: &str, value: &str, more: &str) {
    page.raw("<div class=\"answer\">\n");
    page.element("p class=\"question\"", question);
    page.element("p class=\"value\"", value);
    page.element("p class=\"more\"", more);
    page.raw("</div>\n");
}

/// A table of the clusters, each with a link to its report.
fn clusters(page: &mut Html, summary: &FleetSummary) {
    page.element("h2", "Clusters");
    page.raw("<div class=\"scroll\"><table class=\"compact\">\n<thead><tr>");
    for (title, is_figure) in [
        ("cluster", false),
        ("account", false),
        ("policy", false),
        ("chart", false),
        ("per month", true),
        ("net", true),
        ("alone", true),
        ("nodes, mean", true),
        ("peak", true),
        ("pod wait p99", true),
        ("objectives met", true),
    ] {
        page.raw(&format!("<th{}>{title}</th>", if is_figure { " class=\"figure\"" } else { "" }));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    let largest = summary.clusters.iter().map(|row| row.per_month).fold(0.0, f64::max);
    for cluster in &summary.clusters {
        cluster_row(page, cluster, (&summary.currency, largest));
    }
    page.raw("</tbody></table></div>\n");
}

fn cluster_row(page: &mut Html, cluster: &ClusterRow, (currency, largest): (&str, f64)) {
    let amount = |amount: f64| Figure::money(currency, amount, largest).text();
    let name = text(&cluster.name);
    let link = text(&link(&cluster.name));
    page.raw(&format!("<tr><td><a href=\"{link}/report.html\">{name}</a></td>"));
    page.raw(&format!("<td>{}</td><td>{}</td>", text(&cluster.account), text(&cluster.policy)));
    // Costs are positive, and a bar of the largest cost is as wide as its cell.
    let width = if largest > 0.0 { 100.0 * (cluster.per_month / largest).clamp(0.0, 1.0) } else { 0.0 };
    let bar = format!("<rect width=\"{width:.1}%\" height=\"100%\"/>");
    page.raw(&format!("<td class=\"bar\"><svg aria-hidden=\"true\">{bar}</svg></td>"));
    let objectives = match cluster.objectives {
        0 => String::new(),
        all => format!("{} of {all}", cluster.objectives_met),
    };
    let cells = [
        amount(cluster.per_month),
        amount(cluster.net),
        amount(cluster.alone),
        cluster.nodes_mean.map(|mean| format!("{mean:.1}")).unwrap_or_default(),
        cluster.nodes_peak.to_string(),
        cluster.pod_wait_p99_seconds.map(span).unwrap_or_default(),
        objectives,
    ];
    for cell in cells {
        page.raw(&format!("<td class=\"figure\">{}</td>", text(&cell)));
    }
    page.raw("</tr>\n");
}

/// The name of a directory in an address.
fn link(name: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    name.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}
