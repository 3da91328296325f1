//! The page of a drain: whether the nodes can be drained, the pods of each node by their outcome, and the tables.

use super::{DrainAnswer, DrainedNode, MovedPod};
use crate::axis::Axis;
use crate::domain::words::some_of;
use crate::figure::{Figure, Unit};
use crate::format::{Measure, counted, money_in_short};
use crate::page::bars::{self, Tone, bar, grid, open, ticks};
use crate::page::{Html, SCROLL_SCRIPT, VERDICT_STYLE, begin, script_without_data, sentence, text};
use crate::table::{Rows, Verdict};

const OWN_STYLE: &str = "\
.bars th:nth-child(1) { width: 26%; }
.bars th:nth-child(3) { width: 10%; }
.bars th:nth-child(4) { width: 15%; }
";

/// Nodes that have bars; the table below has all.
const ROWS: usize = 8;
const HEIGHT: f64 = 22.0;
/// The output that has all rows of a table.
const WHOLE: &str = "the output of --format json";

/// What becomes of a pod.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Existing,
    New,
    Pending,
    Blocked,
    Removed,
}

impl Fate {
    const ALL: [Self; 5] = [Self::Existing, Self::New, Self::Pending, Self::Blocked, Self::Removed];

    fn from_pod(pod: &MovedPod) -> Self {
        match pod.to {
            "node" => Self::Existing,
            "new node" => Self::New,
            "nowhere" => Self::Pending,
            _ if pod.keeps_node => Self::Blocked,
            _ => Self::Removed,
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Existing => Tone::Blue,
            Self::New => Tone::Green,
            Self::Pending => Tone::Vermilion,
            Self::Blocked => Tone::Purple,
            Self::Removed => Tone::Pale,
        }
    }

    const fn words(self) -> &'static str {
        match self {
            Self::Existing => "to existing nodes",
            Self::New => "to new nodes",
            Self::Pending => "stay pending",
            Self::Blocked => "never evicted",
            Self::Removed => "stay with the node",
        }
    }
}

impl DrainAnswer {
    /// The answer as a page.
    pub fn page(&self) -> String {
        let mut page = Html::new();
        let style = [VERDICT_STYLE, bars::STYLE, bars::CHIP_STYLE, OWN_STYLE].concat();
        let nodes = counted(self.nodes.len() as u64, "node", "nodes");
        begin(&mut page, &format!("drain of {nodes}"), &style, &[SCROLL_SCRIPT]);
        page.element("h1", &format!("Drain of {nodes}"));
        page.element("p class=\"faint\"", &format!("in {}, from a dump; nothing is drained", self.region));
        page.element("p class=\"verdict\"", &self.verdict());
        self.picture(&mut page);
        let sentences = self.sentences();
        page.fold("in-words", "In words", &counted(sentences.len() as u64, "sentence", "sentences"));
        sentences.iter().for_each(|words| page.element("p", &sentence(words)));
        page.end_fold();
        self.tables(&mut page);
        page.raw("</main>\n<footer>\n");
        page.element("p class=\"note\"", &format!("{} {}", self.program, self.program_version));
        page.raw("</footer>\n");
        script_without_data(&mut page, &[SCROLL_SCRIPT]);
        page.raw("</body>\n</html>\n");
        page.finish()
    }

    /// Whether the nodes can be drained, where their pods go, and the change of the cost.
    fn verdict(&self) -> String {
        let is_blocked = |node: &&DrainedNode| self.count(node, Fate::Blocked) > 0;
        let blocked: Vec<&str> = self.nodes.iter().filter(is_blocked).map(|node| node.name.as_str()).collect();
        let all = self.nodes.len() as u64;
        let can = match (blocked.is_empty(), all) {
            (true, 1) => format!("{} can be drained", self.nodes[0].name),
            (true, _) => format!("All {all} nodes can be drained"),
            (false, _) => format!("{} cannot be drained", some_of(&blocked)),
        };
        let mut verdict = format!("{can}: {}", self.moves());
        verdict += &match self.nodes.iter().filter(|node| node.stays_because.is_some()).count() as u64 {
            0 => String::new(),
            1 => "; the empty node stays".to_owned(),
            nodes => format!("; {nodes} empty nodes stay"),
        };
        let change = self.change_per_month().filter(|change| change.abs() > 0.0);
        if let Some(change) = change {
            let amount = money_in_short(self.currency.code(), change.abs());
            let words = if change < 0.0 { format!("saves {amount}") } else { format!("costs {amount} more") };
            let condition = if blocked.is_empty() { "" } else { " if all nodes could be drained" };
            verdict += &format!("; {words} per month{condition}");
        }
        let none_now = self.budgets.iter().filter(|budget| budget.allowed <= 0 && budget.rounds.is_some());
        let names: Vec<&str> = none_now.map(|budget| budget.name.as_str()).collect();
        if names.is_empty() { verdict + "." } else { format!("{verdict}. Blocked now by {}.", some_of(&names)) }
    }

    /// The pods of a node that have this outcome.
    fn count(&self, node: &DrainedNode, fate: Fate) -> usize {
        self.pods.iter().filter(|pod| pod.from == node.name && Fate::from_pod(pod) == fate).count()
    }

    /// A bar for each node, made of its pods by what becomes of them.
    fn picture(&self, page: &mut Html) {
        let (shown, rest) = self.nodes.split_at(self.nodes.len().min(ROWS));
        let pods = |node: &DrainedNode| self.pods.iter().filter(|pod| pod.from == node.name).count();
        let most = shown.iter().map(pods).max().unwrap_or_default().max(1);
        let axis = Axis::new(Measure::Count, 0.0, most as f64);
        bars::begin_figure(page, "Pods of each node.");
        let fates = Fate::ALL.into_iter().filter(|fate| self.pods.iter().any(|pod| Fate::from_pod(pod) == *fate));
        bars::key(page, &fates.map(|fate| (fate.tone(), fate.words())).collect::<Vec<_>>());
        page.raw("<table class=\"bars\">\n<thead><tr><th>Node</th><th>Pods</th>");
        page.raw("<th class=\"figure\">Per hour</th><th>Result</th></tr></thead>\n<tbody>\n");
        shown.iter().for_each(|node| self.row(page, node, &axis));
        page.raw(&format!(
            "</tbody>\n<tfoot><tr><td></td><td class=\"plot\">{}</td><td></td><td></td></tr></tfoot>\n</table>\n",
            ticks(&axis)
        ));
        if !rest.is_empty() {
            let more = counted(rest.len() as u64, "more node", "more nodes");
            page.element("p class=\"note\"", &format!("{more} in the table below."));
        }
        page.raw("</figure>\n");
    }

    fn row(&self, page: &mut Html, node: &DrainedNode, axis: &Axis<'_>) {
        let counts = Fate::ALL.map(|fate| (fate, self.count(node, fate)));
        let parts = counts.iter().filter(|(_, count)| *count > 0);
        let parts: Vec<String> = parts.map(|(fate, count)| format!("{count} {}", fate.words())).collect();
        let words = if parts.is_empty() { "no pods".to_owned() } else { parts.join(", ") };
        let mut svg = open(HEIGHT, &format!("{}: {words}", node.name)) + &grid(axis, HEIGHT);
        let mut from = 0.0;
        for (fate, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
            let to = from + count as f64;
            svg += &bar(axis, fate.tone(), (from, to), (3.0, HEIGHT - 6.0));
            from = to;
        }
        let price = node.per_hour.map_or_else(|| "\u{2013}".to_owned(), |price| self.per_hour_text(price));
        let (class, result) = self.result(node);
        page.raw(&format!("<tr><td>{}</td><td class=\"plot\">{svg}</svg><span>{words}</span></td>", text(&node.name)));
        page.raw(&format!("<td class=\"figure\" data-of=\"Per hour\">{}</td>", text(&price)));
        let sign = match class {
            "chip better" => "\u{25b2} ",
            "chip worse" => "\u{25bc} ",
            _ => "",
        };
        page.raw(&format!("<td><span class=\"{class}\">{sign}{result}</span></td></tr>\n"));
    }

    fn per_hour_text(&self, price: f64) -> String {
        Figure::new(price, Unit::PerHour(self.currency)).text()
    }

    /// The result of draining a node in a word, with its class.
    fn result(&self, node: &DrainedNode) -> (&'static str, &'static str) {
        if self.count(node, Fate::Blocked) > 0 {
            ("chip worse", "blocked")
        } else if self.count(node, Fate::Pending) > 0 {
            ("chip worse", "pods pending")
        } else if node.stays_because.is_some() {
            ("chip", "empty, stays")
        } else {
            ("chip better", "removed")
        }
    }

    fn tables(&self, page: &mut Html) {
        if !self.budgets.is_empty() {
            page.element("h2", "PodDisruptionBudgets");
        }
        let budgets = Rows::new(&self.budgets)
            .text("budget", |budget| &budget.name)
            .number("pods", |budget| budget.pods)
            .number("allowed now", |budget| budget.allowed.to_string())
            .text("rounds", |budget| Verdict {
                words: budget.rounds_in_words(),
                is_good: budget.rounds.is_none().then_some(false),
            });
        page.add_table(budgets, WHOLE);
        if !self.launches.is_empty() {
            page.element("h2", "New nodes");
        }
        let launches = Rows::new(self.launches.iter().enumerate())
            .text("node", |(position, _)| format!("new node {}", position + 1))
            .text("NodePool", |(_, launch)| launch.node_pool)
            .text("cheapest type", |(_, launch)| launch.instance_type)
            .number("per hour", |(_, launch)| Figure::new(launch.per_hour, Unit::PerHour(self.currency)))
            .number("pods", |(_, launch)| launch.pods);
        page.add_table(launches, WHOLE);
        // Otherwise the picture has everything that the table has.
        let leaves = |node: &DrainedNode| node.stays_because.is_none();
        if self.nodes.len() > ROWS || !self.nodes.iter().all(leaves) {
            self.nodes_table(page);
        }
        self.pods_table(page);
    }

    fn nodes_table(&self, page: &mut Html) {
        page.element("h2", "Nodes");
        let nodes = Rows::new(&self.nodes)
            .text("node", |node| &node.name)
            .number("per hour", |node| node.per_hour.map(|price| Figure::new(price, Unit::PerHour(self.currency))))
            .text("result", |node| self.result(node).1)
            .text("stays because", |node| node.stays_because.as_ref());
        page.add_table(nodes, WHOLE);
    }

    fn pods_table(&self, page: &mut Html) {
        if self.pods.is_empty() {
            return;
        }
        page.fold("pods", "Pods", &counted(self.pods.len() as u64, "pod", "pods"));
        let pods = Rows::new(&self.pods)
            .text("pod", |pod| &pod.pod)
            .text("from", |pod| &pod.from)
            .text("result", |pod| match Fate::from_pod(pod) {
                Fate::Existing | Fate::New => pod.destination(),
                fate => fate.words().to_owned(),
            })
            .text("because", |pod| pod.because.as_ref())
            .text("budgets", |pod| pod.budgets.join(", "))
            .text("evictable now", |pod| match (pod.evictable_now, pod.keeps_node) {
                (true, _) => "yes",
                (false, false) => "no",
                (false, true) => "never",
            });
        page.add_table(pods, WHOLE);
        page.end_fold();
    }
}

#[cfg(test)]
mod tests {
    use crate::drain::tests::{answer, pod};
    use crate::drain::{DrainAnswer, MovedPod};

    fn page(node: &str, pods: Vec<MovedPod>) -> String {
        let answer: DrainAnswer = answer(node, pods);
        answer.page()
    }

    #[test]
    fn page_says_whether_nodes_can_be_drained() {
        let blocked = page("n0", vec![pod("shop/db", true)]);
        assert!(
            blocked.contains("n0 cannot be drained: 1 pod not evictable; saves $70.08 per month if all"),
            "{blocked}"
        );
        assert!(blocked.contains("<span class=\"chip worse\">\u{25bc} blocked</span>"), "{blocked}");
        let free = page("n0", vec![MovedPod { to: "node", node: Some("n1".to_owned()), ..pod("shop/db", false) }]);
        assert!(free.contains("n0 can be drained: 1 pod to existing nodes; saves $70.08 per month."), "{free}");
    }

    #[test]
    fn hostile_names_are_text_on_the_page() {
        let name = "</script><b onclick='x'>\"&";
        let pods = || vec![MovedPod { pod: name.to_owned(), from: name.to_owned(), ..pod(name, true) }];
        let shown = page(name, pods());
        assert!(!shown.contains("<b ") && !shown.contains("onclick='"), "{shown}");
        assert!(shown.contains("&lt;/script&gt;&lt;b onclick=&#39;x&#39;&gt;&quot;&amp;"), "{shown}");
        assert_eq!(shown, page(name, pods()));
    }
}
