//! The page of `rightsize`: the saving and its risk, the requests of each workload against the recommended ones, and the tables.

use super::rightsizing::{THROTTLED_LEAST, among, cause_of_cost, containers, history, reason, sizings, workloads};
use super::{known, known_difference};
use crate::domain::words::{counted, rounded};
use crate::report::axis::Axis;
use crate::report::format::{Measure, mean_count, money_in_short, percent};
use crate::report::page::bars::{self, Tone, bar, grid, open, ticks, tip};
use crate::report::page::{Html, SCROLL_SCRIPT, VERDICT_STYLE, begin, script_without_data, text};
use crate::rightsizing::{Amounts, ContainerSizes, RightSizing, Sizing, SizingResult};
use crate::statistics::Estimate;

const OWN_STYLE: &str = "\
.bars th:nth-child(n + 2):nth-child(-n + 3) { width: 28%; }
.bars th:nth-child(4) { width: 11%; }
.bars th:nth-child(5) { width: 16%; }
.bars td.more { color: var(--bad); font-weight: 600; }
";

/// Workloads that have bars; the tables have all.
const ROWS: usize = 8;
/// Upper ends of the axis, as shares of today's request; a bar beyond the last one has a tip.
const ENDS: [f64; 3] = [1.0, 1.5, 2.0];
const HEIGHT: f64 = 18.0;
/// The file that has all rows of a table.
const FILE: &str = "rightsizing.json";

/// The requests of one resource of a pod, summed over its containers.
#[derive(Clone, Copy)]
struct PodRequest {
    today: Option<f64>,
    recommended: f64,
}

impl PodRequest {
    /// The recommended request as a share of today's.
    fn share(self) -> Option<f64> {
        self.today.filter(|today| *today > 0.0).map(|today| self.recommended / today)
    }
}

/// A workload with its requests.
struct Row<'a> {
    workload: &'a str,
    cpu: Option<PodRequest>,
    memory: Option<PodRequest>,
}

/// The page of an answer. `command` is the command line that repeats it.
pub fn render(answer: &RightSizing, command: &str) -> String {
    let mut page = Html::new();
    let style = [VERDICT_STYLE, bars::STYLE, OWN_STYLE].concat();
    begin(&mut page, &format!("{}, right-sized", answer.scenario), &style, &[SCROLL_SCRIPT]);
    page.element("h1", &format!("{}: right-sized requests", answer.scenario));
    let seeds = counted(answer.replications, "seed", "seeds");
    let about = format!("policy {} in {}, {seeds} from {}", answer.policy, answer.region, answer.first_seed);
    page.element("p class=\"faint\"", &about);
    page.element("p class=\"verdict\"", &verdict(answer));
    picture(&mut page, answer);
    in_words(&mut page, answer);
    page.warnings(answer.warnings.lines());
    page.element("h2", "Cost and risk of each sizing");
    page.add_table(sizings(answer), FILE);
    if !answer.workloads.is_empty() {
        page.element("h2", "Cost of each workload");
        page.add_table(workloads(answer), FILE);
    }
    if !answer.containers.is_empty() {
        page.element("h2", "Requests and usage of each container");
        page.add_table(containers(answer), FILE);
    }
    if !answer.left_alone.is_empty() {
        page.element("h2", "Skipped");
        page.list(answer.left_alone.iter().map(reason));
    }
    page.raw("</main>\n<footer>\n");
    let footer = format!("{} {}, prices of {}", answer.program, answer.program_version, answer.price_date);
    page.element("p class=\"note\"", &footer);
    page.raw(&format!("<p class=\"note\"><code>{}</code></p>\n</footer>\n", text(command)));
    script_without_data(&mut page, &[SCROLL_SCRIPT]);
    page.raw("</body>\n</html>\n");
    page.finish()
}

/// The saving per month, and the risk that it brings.
fn verdict(answer: &RightSizing) -> String {
    let (today, recommended) = (answer.sizing(Sizing::Today), answer.sizing(Sizing::Recommended));
    let Some((today, recommended)) = today.zip(recommended) else { return "No result.".to_owned() };
    if answer.containers.is_empty() {
        return "No request changes: no container has enough usage data.".to_owned();
    }
    let throttled = throttled(today, recommended).map_or_else(String::new, |words| format!("; {words}"));
    format!("{}; {}{throttled}.", saving(answer, recommended), risk(answer, today, recommended))
}

/// The change of the time for which pods are throttled; `None` if they hardly are.
fn throttled(today: &SizingResult, recommended: &SizingResult) -> Option<String> {
    let hours = |sizing: &SizingResult| sizing.throttled_hours.as_ref().map_or(0.0, Estimate::centre);
    let (before, after) = (hours(today), hours(recommended));
    let [from, to] = [before, after].map(rounded);
    (before.max(after) >= THROTTLED_LEAST).then(|| match from == to {
        true => format!("pods are throttled for {to} h with both"),
        false => format!("pods are throttled for {to} h, today {from} h"),
    })
}

fn saving(answer: &RightSizing, recommended: &SizingResult) -> String {
    let Some(paired) = &recommended.against_today else {
        return "The effect of the recommended requests on the cost is not known".to_owned();
    };
    let money = |estimate: &Estimate| match estimate.low {
        Some(_) => known(estimate).text(among(answer, estimate.centre())),
        None => money_in_short(&answer.currency, estimate.centre()),
    };
    let share = |estimate: Estimate| known(&estimate).text(Measure::Share);
    let difference = paired.difference;
    let relative = |of: &dyn Fn(Estimate) -> Estimate| {
        paired.relative.map_or_else(String::new, |relative| format!(" ({} of today's cost)", share(of(relative))))
    };
    match (difference.is_off_zero(), difference.centre() < 0.0) {
        (true, true) => {
            let saved = money(&difference.negated());
            format!("Recommended requests save {saved} per month{}", relative(&Estimate::negated))
        }
        (true, false) => {
            let added = money(&difference);
            format!("Recommended requests cost {added} more per month{}", relative(&|relative| relative))
        }
        (false, _) => {
            let change = known_difference(&difference).text(among(answer, difference.centre()));
            format!("Recommended requests do not change the cost significantly ({change} per month)")
        }
    }
}

/// The change of OOM kills.
fn risk(answer: &RightSizing, today: &SizingResult, recommended: &SizingResult) -> String {
    let kills = |sizing: &SizingResult| sizing.out_of_memory.as_ref().map_or(0.0, Estimate::centre);
    let (before, after) = (kills(today), kills(recommended));
    let period = format!("in {:.1} days", answer.history_days);
    let [from, to] = [before, after].map(mean_count);
    match after.total_cmp(&before) {
        std::cmp::Ordering::Equal if after <= 0.0 => format!("no container is OOM-killed {period}"),
        std::cmp::Ordering::Equal => format!("OOM kills stay at {to} {period}"),
        std::cmp::Ordering::Greater => format!("OOM kills rise from {from} to {to} {period}"),
        std::cmp::Ordering::Less => format!("OOM kills fall from {from} to {to} {period}"),
    }
}

fn in_words(page: &mut Html, answer: &RightSizing) {
    let sentences: Vec<String> = answer.sizings.iter().filter_map(cause_of_cost).chain(history(answer)).collect();
    page.fold("in-words", "In words", &counted(sentences.len() as u64, "sentence", "sentences"));
    sentences.iter().for_each(|words| page.element("p", words));
    page.end_fold();
}

/// Workloads whose cost changes most first, then the others in the order of the manifests.
fn rows(answer: &RightSizing) -> Vec<Row<'_>> {
    let mut names: Vec<&str> = answer.workloads.iter().map(|workload| workload.workload.as_str()).collect();
    for container in &answer.containers {
        if !names.contains(&container.workload.as_str()) {
            names.push(&container.workload);
        }
    }
    let row = |name: &'_ str| {
        let of = |resource: fn(&ContainerSizes) -> Option<&Amounts>| {
            let containers = answer.containers.iter().filter(|container| container.workload == name);
            let amounts: Vec<&Amounts> = containers.filter_map(resource).collect();
            (!amounts.is_empty()).then(|| PodRequest {
                today: amounts.iter().map(|amounts| amounts.request).sum(),
                recommended: amounts.iter().map(|amounts| amounts.recommended).sum(),
            })
        };
        (of(|container| container.cpu.as_ref()), of(|container| container.memory.as_ref()))
    };
    let rows = names.into_iter().map(|name| {
        let (cpu, memory) = row(name);
        Row { workload: name, cpu, memory }
    });
    rows.filter(|row| row.cpu.is_some() || row.memory.is_some()).collect()
}

/// Today's requests and the recommended ones, a row for each workload.
fn picture(page: &mut Html, answer: &RightSizing) {
    let rows = rows(answer);
    if rows.is_empty() {
        return;
    }
    let (shown, rest) = rows.split_at(rows.len().min(ROWS));
    let shares = shown.iter().flat_map(|row| [row.cpu, row.memory]).flatten().filter_map(PodRequest::share);
    let most = shares.fold(0.0, f64::max);
    let end = ENDS.into_iter().find(|end| *end >= most).unwrap_or(ENDS[ENDS.len() - 1]);
    let axis = Axis::new(Measure::Share, 0.0, end);
    bars::begin_figure(page, "Requests of one pod, as a share of today's request.");
    bars::key(page, &[(Tone::Pale, "today"), (Tone::Blue, "recommended")]);
    page.raw("<table class=\"bars\">\n<thead><tr><th>Workload</th><th>CPU, cores</th><th>Memory, MiB</th>");
    page.raw("<th class=\"figure\">OOM kills</th><th class=\"figure\">Cost per month</th></tr></thead>\n<tbody>\n");
    shown.iter().for_each(|row| one(page, answer, row, &axis));
    let ticks = ticks(&axis);
    page.raw(&format!(
        "</tbody>\n<tfoot><tr><td></td><td class=\"plot\">{ticks}</td><td class=\"plot\">{ticks}</td><td></td><td></td></tr></tfoot>\n</table>\n"
    ));
    if !rest.is_empty() {
        let more = counted(rest.len() as u64, "more workload", "more workloads");
        page.element("p class=\"note\"", &format!("{more} in the tables below."));
    }
    page.raw("</figure>\n");
}

fn one(page: &mut Html, answer: &RightSizing, row: &Row<'_>, axis: &Axis<'_>) {
    page.raw(&format!("<tr><td>{}</td>", text(row.workload)));
    for (resource, request, decimals) in [("CPU", row.cpu, 3), ("Memory", row.memory, 0)] {
        let words = request.map_or_else(|| "no usage data".to_owned(), |request| amounts(request, decimals));
        let drawing = drawing(request, axis, &format!("{} {resource}: {words}", row.workload));
        page.raw(&format!("<td class=\"plot\" data-of=\"{resource}\">{drawing}<span>{}</span></td>", text(&words)));
    }
    let (class, kills) = kills(answer, row.workload);
    page.raw(&format!("<td class=\"figure{class}\" data-of=\"OOM kills\">{}</td>", text(&kills)));
    let cost = cost(answer, row.workload);
    page.raw(&format!("<td class=\"figure\" data-of=\"Per month\">{}</td></tr>\n", text(&cost)));
}

/// Today's request and the recommended one in words.
fn amounts(request: PodRequest, decimals: usize) -> String {
    let today = request.today.map_or_else(|| "none".to_owned(), |today| format!("{today:.decimals$}"));
    let change = request.share().map_or_else(String::new, |share| {
        let sign = if share >= 1.0 { "+" } else { "" };
        format!(" ({sign}{})", percent(share - 1.0))
    });
    format!("{today} \u{2192} {:.decimals$}{change}", request.recommended)
}

fn drawing(request: Option<PodRequest>, axis: &Axis<'_>, label: &str) -> String {
    let Some(share) = request.and_then(PodRequest::share) else { return String::new() };
    let mut svg = open(HEIGHT, label) + &grid(axis, HEIGHT);
    svg += &bar(axis, Tone::Pale, (0.0, 1.0), (1.0, HEIGHT - 2.0));
    svg += &bar(axis, Tone::Blue, (0.0, share), (5.0, HEIGHT - 10.0));
    if share > axis.ends().1 {
        svg += &tip(axis, share, HEIGHT / 2.0);
    }
    svg + "</svg>"
}

/// The OOM kills of a workload today and with the recommended requests, and the class of the cell.
fn kills(answer: &RightSizing, workload: &str) -> (&'static str, String) {
    let found = answer.memory_kills.iter().find(|kills| kills.workload == workload);
    let of = |at: usize| found.and_then(|kills| kills.out_of_memory.get(at).copied()).unwrap_or(0.0);
    let (before, after) = (of(0), of(1));
    let class = if after > before { " more" } else { "" };
    (class, format!("{} \u{2192} {}", mean_count(before), mean_count(after)))
}

/// The cost of a workload today and with the recommended requests.
fn cost(answer: &RightSizing, workload: &str) -> String {
    let found = answer.workloads.iter().find(|cost| cost.workload == workload);
    let of = |at: usize| found.and_then(|cost| cost.cost_per_month.get(at).copied().flatten());
    let money = |amount| money_in_short(&answer.currency, amount);
    match of(0).zip(of(1)) {
        Some((before, after)) => format!("{} \u{2192} {}", money(before), money(after)),
        None => "\u{2013}".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::render;
    use crate::presentation::rightsizing::table;
    use crate::rightsizing::{Amounts, ContainerSizes, RightSizing, SizingResult, WorkloadCost, WorkloadKills};
    use crate::scenario::Caveats;
    use crate::statistics::{Estimate, Paired};

    fn sizing(name: &str, cost: f64, kills: f64) -> SizingResult {
        let estimate = |value: f64| Estimate::from_values(&[value]);
        SizingResult {
            name: name.to_owned(),
            cost_per_month: estimate(cost),
            against_today: (name != "today").then(|| Paired::new(&[1_000.0], &[cost])).flatten(),
            out_of_memory: estimate(kills),
            evicted_for_memory: estimate(0.0),
            throttled_hours: estimate(0.0),
            pending_p99: None,
            pods_pending: None,
            request_p99: None,
            requests_lost: None,
            more_replicas: Vec::new(),
        }
    }

    /// An answer with one workload of this name, whose requests are to be this share of today's.
    fn answer(workload: &str, share: f64) -> RightSizing {
        let amounts = |request: f64| Amounts {
            request: Some(request),
            limit: None,
            p50: 0.1,
            p90: 0.2,
            p99: 0.3,
            recommended: request * share,
            lower_bound: 0.1,
            upper_bound: 9.0,
        };
        let container = ContainerSizes {
            kind: "Deployment".to_owned(),
            workload: workload.to_owned(),
            container: workload.to_owned(),
            samples: 1_440,
            cpu: Some(amounts(2.0)),
            memory: Some(amounts(1_024.0)),
        };
        RightSizing {
            schema_version: 1,
            program: "nodecast".to_owned(),
            program_version: "0".to_owned(),
            scenario: "shop".to_owned(),
            policy: "spot".to_owned(),
            region: "us-east-1".to_owned(),
            currency: "USD".to_owned(),
            price_date: "2026-07-20".to_owned(),
            history_days: 7.0,
            first_seed: 1,
            replications: 1,
            inputs: Vec::new(),
            sizings: vec![sizing("today", 1_000.0, 0.0), sizing("recommended", 880.0, 3.0)],
            workloads: vec![WorkloadCost {
                workload: workload.to_owned(),
                cost_per_month: vec![Some(400.0), Some(280.0)],
            }],
            memory_kills: vec![WorkloadKills { workload: workload.to_owned(), out_of_memory: vec![0.0, 3.0] }],
            containers: vec![container],
            left_alone: Vec::new(),
            warnings: Caveats::default(),
        }
    }

    #[test]
    fn page_opens_with_saving_and_risk() {
        let page = render(&answer("shop/web", 0.5), "nodecast rightsize shop.yaml");
        let verdict = "Recommended requests save $120 per month (12.0% of today&#39;s cost); OOM kills rise from 0 to 3 in 7.0 days.";
        assert!(page.contains(&format!("<p class=\"verdict\">{verdict}</p>")), "{page}");
        assert!(page.contains("2.000 \u{2192} 1.000 (\u{2212}50.0%)"), "{page}");
        assert!(page.contains("<td class=\"figure more\" data-of=\"OOM kills\">0 \u{2192} 3</td>"), "{page}");
        assert!(page.contains("$400 \u{2192} $280"), "{page}");
    }

    #[test]
    fn first_line_has_present_kills_and_throttling() {
        let mut answer = answer("shop/cart", 0.8);
        assert!(!table(&answer, None).contains("current requests:"));
        answer.sizings[0].out_of_memory = Estimate::from_values(&[4.0]);
        answer.sizings[0].throttled_hours = Estimate::from_values(&[2.5]);
        let first = "; current requests: 4 OOM kills and 2.5 h of CPU throttling in 7.0 days\n";
        assert!(table(&answer, None).contains(first), "{}", table(&answer, None));
        let page = render(&answer, "").replace('\u{a0}', " ");
        assert!(
            page.contains("OOM kills fall from 4 to 3 in 7.0 days; pods are throttled for 0 h, today 2.5 h."),
            "{page}"
        );
    }

    #[test]
    fn request_beyond_the_axis_has_a_tip() {
        let tip = "<path d=\"M0-6L9 0L0 6Z\"/>";
        assert_eq!(render(&answer("shop/web", 3.0), "").matches(tip).count(), 2);
        assert_eq!(render(&answer("shop/web", 1.7), "").matches(tip).count(), 0);
    }

    #[test]
    fn hostile_names_are_text_on_the_page() {
        let name = "</script><b onclick='x'>\"&";
        let page = render(&answer(name, 0.5), name);
        assert!(!page.contains("<b ") && !page.contains("onclick='"), "{page}");
        assert!(page.contains("&lt;/script&gt;&lt;b onclick=&#39;x&#39;&gt;&quot;&amp;"), "{page}");
        assert_eq!(page, render(&answer(name, 0.5), name));
    }
}
