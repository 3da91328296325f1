//! The answer for people: what is launched first, then node by node, then what stays pending and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{LaunchedNode, PackAnswer};
use crate::columns::{Align, Columns, fitted};
use crate::format::{counted, karpenter_label, money, percent};
use crate::single_pass::SinglePass;
use nodecast_karpenter::packing::PackerKind;

/// Workloads that are named before the rest is counted.
const WORKLOADS_SHOWN: usize = 4;
/// The table of nodes to launch: figures stand to the right; NodePool and type say which node a row is of.
const LAUNCHES: Columns<'static> = {
    use Align::{Left, Right};
    Columns { align: &[Left, Left, Right, Right, Left, Left, Right, Right, Left], gap: 2, labels: 2 }
};

impl PackAnswer {
    /// The answer as a table.
    pub fn table(&self) -> String {
        self.table_within(None)
    }

    /// The same, with columns below one another where lines have no more than `width` characters.
    pub fn table_within(&self, width: Option<usize>) -> String {
        let mut text = String::new();
        if let Some(repacked) = &self.repacked {
            repacked.write(self.summary.per_hour, self.currency.code(), &mut text);
        }
        self.headline(&mut text);
        self.new_nodes(width, &mut text);
        if !self.existing_nodes.is_empty() {
            text.push_str("\non existing nodes\n");
            for node in &self.existing_nodes {
                let _ = writeln!(text, "  {}: {}", node.node, node.in_words);
            }
        }
        if !self.pending.is_empty() {
            text.push_str("\nstays pending\n");
            for group in &self.pending {
                let _ = writeln!(text, "  {}", group.in_words);
                for line in &group.lines {
                    let _ = writeln!(text, "    {line}");
                }
            }
        }
        if let Some(explanation) = &self.explanation {
            text.push('\n');
            explanation.write(&mut text);
        }
        fitted(text, width)
    }

    fn headline(&self, text: &mut String) {
        let (summary, currency) = (&self.summary, self.currency.code());
        let who = if self.packer == PackerKind::CostAware.as_str() { "the cost-aware packer" } else { "Karpenter" };
        let _ = match summary.new_nodes {
            0 => writeln!(text, "{who} launches nothing"),
            nodes => writeln!(
                text,
                "{who} launches {}: {} an hour, {} a month",
                counted(nodes as u64, "node", "nodes"),
                money(currency, summary.per_hour),
                money(currency, summary.per_month)
            ),
        };
        if let Some(bound) = summary.lower_bound_per_hour.filter(|_| summary.new_nodes > 0) {
            let gap = summary.gap_percent.map_or(String::new(), |gap| format!(", a gap of {gap:.1} %"));
            let _ = writeln!(text, "no packing of these pods costs less than {} an hour{gap}", money(currency, bound));
        }
        let _ = writeln!(
            text,
            "{} wait: {} on new nodes, {} on existing nodes, {} stay pending ({}, {})",
            counted(summary.pods_waiting as u64, "pod", "pods"),
            summary.pods_on_new_nodes,
            summary.pods_on_existing_nodes,
            summary.pods_pending,
            self.region,
            karpenter_label(&self.karpenter, &self.karpenter_source, &self.feature_gates)
        );
    }

    fn new_nodes(&self, width: Option<usize>, text: &mut String) {
        if self.launches.is_empty() {
            return;
        }
        let header = ["NODEPOOL", "CHEAPEST", "PER HOUR", "OTHER TYPES", "CAPACITY", "ZONES", "CPU", "MEMORY", "PODS"];
        let mut rows = vec![header.map(str::to_owned).to_vec()];
        rows.extend(self.launches.iter().map(|launch| self.row(launch)));
        text.push('\n');
        for line in LAUNCHES.lines(&rows, width) {
            let _ = writeln!(text, "{line}");
        }
        if self.launches.iter().any(|launch| launch.price_quality.is_some_and(|quality| !quality.is_fact())) {
            text.push_str("~ an estimated price; the others are published or observed\n");
        }
    }

    fn row(&self, launch: &LaunchedNode) -> Vec<String> {
        let estimated = launch.price_quality.is_some_and(|quality| !quality.is_fact());
        let price = money(self.currency.code(), launch.per_hour);
        vec![
            launch.node_pool.to_owned(),
            launch.instance_type.to_owned(),
            if estimated { format!("~{price}") } else { price },
            format!("+{}", launch.types.len().saturating_sub(1)),
            launch.capacity_type.to_owned(),
            zones(&launch.zones),
            percent(launch.cpu_share),
            percent(launch.memory_share),
            launch.in_words.clone(),
        ]
    }
}

/// Zones of one region in short: `us-east-1a,b,c`.
fn zones(zones: &[&str]) -> String {
    let mut text = String::new();
    for (position, zone) in zones.iter().enumerate() {
        let letter = zone.chars().last().filter(|_| position > 0 && zones[0].len() == zone.len());
        let same =
            letter.is_some() && zone.is_char_boundary(zone.len() - 1) && zones[0].starts_with(&zone[..zone.len() - 1]);
        let shown = if same { &zone[zone.len() - 1..] } else { zone };
        let _ = write!(text, "{}{shown}", if position > 0 { "," } else { "" });
    }
    text
}

/// Pods by workload, one of its own by its name: `15 x default/web, default/job-x7`.
pub(super) fn listed(pass: &SinglePass<'_>, pods: &[usize]) -> String {
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for &pod in pods {
        counts.entry(&pass.question.pods[pod].workload).or_insert((0, pod)).0 += 1;
    }
    let one = |(workload, &(count, first)): (&&str, &(usize, usize))| match count {
        1 => pass.question.pods[first].full_name(),
        count => format!("{count} x {workload}"),
    };
    let mut shown: Vec<String> = counts.iter().take(WORKLOADS_SHOWN).map(one).collect();
    let rest: usize = counts.values().skip(WORKLOADS_SHOWN).map(|(count, _)| count).sum();
    if rest > 0 {
        shown.push(counted(rest as u64, "other pod", "other pods"));
    }
    shown.join(", ")
}
