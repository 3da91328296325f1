//! The tables that `rightsize` prints, and the files of its patches.

use super::{aligned_within, known, known_difference};
use crate::domain::words::{rounded, some_of};
use crate::domain::{ResourceName, Resources};
use crate::report::columns::printed;
use crate::report::format::{self, Measure, money_among};
use crate::report::short_names::apart;
use crate::rightsizing::{Amounts, Patch, RightSizing, Sizing, SizingResult};
use crate::statistics::Estimate;

/// Containers that are printed; the JSON has all.
const CONTAINERS: usize = 20;
const NAME: usize = 26;

/// How wide the columns of the first table are.
const SIZINGS: [usize; 9] = [NAME, 22, 18, 20, 12, 15, 11, 11, 8];
/// How wide those of the last are, but for what ends a line.
const AMOUNTS: [usize; 6] = [NAME, 14, 12, 10, 10, 10];

/// The tables of an answer, with columns below one another where lines have no more than `width` characters.
pub fn table(answer: &RightSizing, width: Option<usize>) -> String {
    let mut lines = Vec::new();
    heading(answer, &mut lines);
    laid_out(&sizings(answer), &SIZINGS, (1, width), &mut lines);
    lines.extend(answer.sizings.iter().filter_map(cause_of_cost));
    lines.push(String::new());
    let per_sizing: Vec<usize> = std::iter::once(NAME).chain(answer.sizings.iter().map(|_| 14)).collect();
    laid_out(&workloads(answer), &per_sizing, (1, width), &mut lines);
    if !answer.workloads.is_empty() {
        lines.push(String::new());
    }
    laid_out(&containers(answer), &AMOUNTS, (2, width), &mut lines);
    if answer.containers.len() > CONTAINERS {
        let more = format::counted((answer.containers.len() - CONTAINERS) as u64, "container", "containers");
        lines.push(format!("  and {more} more with --format json"));
    }
    if !answer.containers.is_empty() {
        lines.push(String::new());
    }
    trust(answer, &mut lines);
    printed(&lines, width)
}

fn heading(answer: &RightSizing, lines: &mut Vec<String>) {
    let seeds = format::counted(answer.replications, "seed", "seeds");
    lines.push(format!(
        "{}: requests that fit, policy {} in {}, {seeds} from {}, prices of {}",
        answer.scenario, answer.policy, answer.region, answer.first_seed, answer.price_date
    ));
    lines.push(String::new());
}

/// A mean with half the width of its interval; a dash without a mean.
fn mean_or_dash(estimate: Option<&Estimate>, measure: Measure<'_>) -> String {
    estimate.map_or_else(|| "-".to_owned(), |estimate| known(estimate).text(measure))
}

fn label(name: &str) -> String {
    match name {
        "today" => "as they are today".to_owned(),
        "recommended" => "as recommended".to_owned(),
        percentile => format!("at {percentile} of use"),
    }
}

/// Adds a table with columns as wide as `columns` say, what goes beyond them at the end of its line; where lines have no room
/// for that, columns below one another, `labels` of them again.
fn laid_out(rows: &[Vec<String>], columns: &[usize], (labels, width): (usize, Option<usize>), lines: &mut Vec<String>) {
    let cell = |(column, text): (usize, &String)| match columns.get(column) {
        Some(&width) if column == 0 => format!("{text:<width$}"),
        Some(&width) => format!("{text:>width$}"),
        None => format!("  {text}"),
    };
    let whole: Vec<String> = rows.iter().map(|row| row.iter().enumerate().map(cell).collect()).collect();
    let widest = whole.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    lines.extend(if width.is_some_and(|width| widest > width) { aligned_within(rows, labels, width) } else { whole });
}

/// A line for each way to size, what they cost and lead to.
fn sizings(answer: &RightSizing) -> Vec<Vec<String>> {
    let headings = [
        "requests",
        "cost per month",
        "against today",
        "killed for mem",
        "evicted",
        "throttled, h",
        "wait p99",
        "resp. p99",
        "no node",
    ];
    let largest = answer.sizings.iter().filter_map(|own| own.cost_per_month.as_ref()).map(|own| own.mean);
    let largest = largest.fold(0.0, f64::max);
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    rows.extend(answer.sizings.iter().map(|own| sizing(own, answer, largest)));
    rows
}

fn sizing(own: &SizingResult, answer: &RightSizing, largest: f64) -> Vec<String> {
    let money = Measure::Money { currency: &answer.currency, largest };
    let relative = own.against_today.as_ref().and_then(|paired| paired.relative.as_ref());
    // Tenths mean nothing among hundreds, and would not leave a space between the columns.
    let number = |value: f64| if value < 100.0 { format!("{value:.1}") } else { format::whole(value) };
    let span = |value: f64| format::span(value);
    vec![
        label(&own.name),
        mean_or_dash(own.cost_per_month.as_ref(), money),
        relative.map_or_else(String::new, |own| known_difference(own).text(Measure::Share)),
        mean_or_dash(own.out_of_memory.as_ref(), Measure::Count),
        mean_or_dash(own.evicted_for_memory.as_ref(), Measure::Count),
        mean_or_dash(own.throttled_hours.as_ref(), Measure::Count),
        own.pending_p99.as_ref().map_or_else(|| "-".to_owned(), |own| span(own.mean)),
        own.request_p99.as_ref().map_or_else(|| "-".to_owned(), |own| span(own.mean)),
        own.pods_pending.as_ref().map_or_else(|| "-".to_owned(), |own| number(own.mean)),
    ]
}

/// Why a sizing costs more than today, where autoscalers add replicas because requests are smaller.
fn cause_of_cost(sizing: &SizingResult) -> Option<String> {
    let is_dearer = sizing.against_today.as_ref().is_some_and(|paired| paired.difference.mean > 0.0);
    if !is_dearer || sizing.more_replicas.is_empty() {
        return None;
    }
    let each = sizing.more_replicas.iter().map(|workload| {
        format!("{} {} -> {}", workload.workload, rounded(workload.replicas_today), rounded(workload.replicas))
    });
    Some(format!(
        "Requests {} cost more because autoscalers compare use with them: smaller requests mean a higher utilization, and more replicas \
         (mean replicas: {}). Raise `averageUtilization`, or use `averageValue`.",
        label(&sizing.name),
        some_of(&each.collect::<Vec<_>>())
    ))
}

/// A line for each workload, what it costs with each way to size; none without workloads.
fn workloads(answer: &RightSizing) -> Vec<Vec<String>> {
    if answer.workloads.is_empty() {
        return Vec::new();
    }
    let mut rows = vec![vec!["cost per month".to_owned()]];
    rows[0].extend(answer.sizings.iter().map(|own| own.name.clone()));
    let all = answer.workloads.iter().flat_map(|own| own.cost_per_month.iter().flatten());
    let largest = all.copied().fold(0.0, f64::max);
    let names: Vec<&str> = answer.workloads.iter().map(|own| own.workload.as_str()).collect();
    for (own, name) in answer.workloads.iter().zip(apart(&names, NAME - 3, cut)) {
        let cost = |cost: &Option<f64>| {
            cost.map_or_else(|| "-".to_owned(), |cost| money_among(&answer.currency, cost, largest))
        };
        rows.push(std::iter::once(format!("  {name}")).chain(own.cost_per_month.iter().map(cost)).collect());
    }
    rows
}

/// A name that fits.
fn cut(name: &str, width: usize) -> String {
    let count = name.chars().count();
    if count <= width {
        return name.to_owned();
    }
    let tail: String = name.chars().skip(count - (width - 1)).collect();
    format!("\u{2026}{tail}")
}

/// Two lines for each container, what it requests and uses; none without containers.
fn containers(answer: &RightSizing) -> Vec<Vec<String>> {
    if answer.containers.is_empty() {
        return Vec::new();
    }
    let headings = ["each pod", "", "requests", "used p50", "p90", "p99", "recommended (bounds)"];
    let mut rows = vec![headings.map(str::to_owned).to_vec()];
    let shown = answer.containers.iter().take(CONTAINERS);
    let names: Vec<String> = shown.clone().map(|own| format!("{}:{}", own.workload, own.container)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for (own, name) in shown.zip(apart(&names, NAME - 3, cut)) {
        for (amounts, what, decimals) in [(own.cpu, "CPU, cores", 3), (own.memory, "memory, MiB", 0)] {
            let Some(Amounts { request, p50, p90, p99, recommended, lower_bound, upper_bound, .. }) = amounts else {
                continue;
            };
            let shown = |amount: f64| format!("{amount:.decimals$}");
            let request = request.map_or_else(|| "none".to_owned(), shown);
            let upper = if upper_bound > 1e7 { "any".to_owned() } else { shown(upper_bound) };
            let bounds = format!("{} ({} to {upper})", shown(recommended), shown(lower_bound));
            let name = format!("  {name}");
            rows.push(vec![name, what.to_owned(), request, shown(p50), shown(p90), shown(p99), bounds]);
        }
    }
    rows
}

/// How far the answer can be trusted.
fn trust(answer: &RightSizing, lines: &mut Vec<String>) {
    lines.push(format!(
        "Sizes rest on {:.1} days of use as the scenario states it, with seed {}; what a longer history would show they do not know.",
        answer.history_days, answer.first_seed
    ));
    if answer.history_days < 7.0 {
        lines.push("Less than a week shows no weekend: simulate 7d or more before requests go down.".to_owned());
    }
    for own in answer.left_alone.iter().take(CONTAINERS) {
        let container = own.container.as_ref().map_or_else(String::new, |name| format!(", container {name}"));
        lines.push(format!("left alone: {} {}{container}, as {}", own.kind, own.workload, own.why));
    }
    for warning in &answer.warnings {
        lines.push(format!("warning: {warning}"));
    }
}

/// The files of a kustomize component that gives workloads their sizes, by name.
pub fn kustomization(patches: &[Patch], sizing: Sizing) -> Vec<(String, String)> {
    let mut files = Vec::new();
    let mut listed = String::new();
    for own in patches {
        let (kind, name) = own.owner;
        let file = format!("{}-{}-{}.yaml", kind.to_ascii_lowercase(), name.namespace, name.name);
        listed.push_str(&format!("  - path: {file}\n"));
        files.push((file, patch(own)));
    }
    let head = format!(
        "# Requests {}, as nodecast rightsize wrote them. Use: components: [this folder] in a kustomization.yaml.\n\
         apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        label(sizing.as_str())
    );
    let patches = if listed.is_empty() { "patches: []\n".to_owned() } else { format!("patches:\n{listed}") };
    files.push(("kustomization.yaml".to_owned(), head + &patches));
    files
}

/// A strategic merge patch of one workload.
fn patch(own: &Patch) -> String {
    let (kind, name) = own.owner;
    let mut text = format!(
        "apiVersion: apps/v1\nkind: {kind}\nmetadata:\n  name: {}\n  namespace: {}\nspec:\n  template:\n    spec:\n      containers:\n",
        name.name, name.namespace
    );
    for (container, requests, limits) in &own.containers {
        text.push_str(&format!("        - name: {container}\n          resources:\n"));
        for (what, amounts) in [("requests", requests), ("limits", limits)] {
            if amounts.is_empty() {
                continue;
            }
            text.push_str(&format!("            {what}:\n"));
            for (name, amount) in amounts.iter() {
                text.push_str(&format!("              {}: {}\n", name.0, quantity(amounts, name, amount)));
            }
        }
    }
    text
}

/// An amount as a manifest has it, exactly: CPU in thousandths, memory in the largest unit that divides it.
pub fn quantity(amounts: &Resources, name: ResourceName, amount: i64) -> String {
    debug_assert_eq!(amounts.find(name), Some(amount), "an amount is of its own resource");
    if name == ResourceName::CPU {
        return format!("{amount}m");
    }
    match amount {
        _ if name != ResourceName::MEMORY => format!("\"{amount}\""),
        _ if amount % (1 << 20) == 0 => format!("{}Mi", amount >> 20),
        _ if amount % (1 << 10) == 0 => format!("{}Ki", amount >> 10),
        _ => format!("\"{amount}\""),
    }
}

#[cfg(test)]
mod tests {
    use super::laid_out;

    fn lines(width: Option<usize>) -> Vec<String> {
        let rows = [["each pod", "", "requests", "bounds"], ["  web", "CPU", "0.250", "0.100 (0.050 to any)"]];
        let mut lines = Vec::new();
        laid_out(&rows.map(|row| row.map(str::to_owned).to_vec()), &[12, 5, 10], (2, width), &mut lines);
        lines
    }

    #[test]
    fn columns_have_their_places_and_come_below_one_another_on_a_narrow_terminal() {
        let whole = ["each pod           requests  bounds", "  web         CPU     0.250  0.100 (0.050 to any)"];
        assert_eq!(lines(None), whole);
        assert_eq!(lines(Some(49)), whole);
        let blocks = [
            "each pod         requests",
            "  web      CPU      0.250",
            "",
            "each pod                       bounds",
            "  web      CPU   0.100 (0.050 to any)",
        ];
        assert_eq!(lines(Some(47)).iter().map(|line| line.trim_end()).collect::<Vec<_>>(), blocks);
    }
}
