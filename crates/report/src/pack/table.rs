//! The answer for people: what is launched first, then node by node, then what stays pending and why.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{LaunchedNode, PackAnswer};
use crate::columns::fitted;
use crate::figure::Figure;
use crate::format::{counted, karpenter_label, money};
use crate::single_pass::SinglePass;
use crate::table::Rows;
use nodecast_karpenter::packing::PackerKind;

/// Workloads that are named before the rest is counted.
const WORKLOADS_SHOWN: usize = 4;
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
                "{who} launches {}: {}/h, {}/month",
                counted(nodes as u64, "node", "nodes"),
                money(currency, summary.per_hour),
                money(currency, summary.per_month)
            ),
        };
        if let Some(bound) = summary.lower_bound_per_hour.filter(|_| summary.new_nodes > 0) {
            let gap = summary
                .gap_percent
                .map_or(String::new(), |gap| format!("; this plan is at most {gap:.1}% above the cheapest possible"));
            let _ = writeln!(
                text,
                "lower bound: no packing of these pods costs less than {}/h{gap}",
                money(currency, bound)
            );
        }
        // No pod of a repacked cluster is pending.
        let verb = if self.repacked.is_some() { "repacked" } else { "pending" };
        let _ = writeln!(
            text,
            "{} {verb}: {} go to new nodes, {} to existing nodes, {} stay pending ({}, {})",
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
        let currency = self.currency.code();
        let table = Rows::new(&self.launches)
            .text("NODEPOOL", |launch| launch.node_pool)
            .text("CHEAPEST", |launch| launch.instance_type)
            .label()
            .number("PER HOUR", |launch| {
                Figure::money(currency, launch.per_hour, launch.per_hour).estimated(launch.is_estimated())
            })
            .number("OTHER TYPES", |launch| format!("+{}", launch.types.len().saturating_sub(1)))
            .text("CAPACITY", |launch| launch.capacity_type)
            .text("ZONES", |launch| zones(&launch.zones))
            .number("CPU", |launch| Figure::share(launch.cpu_share))
            .number("MEMORY", |launch| Figure::share(launch.memory_share))
            .text("PODS", |launch| &launch.in_words);
        text.push('\n');
        for line in table.table().lines(width) {
            let _ = writeln!(text, "{line}");
        }
        if self.launches.iter().any(LaunchedNode::is_estimated) {
            text.push_str("~ estimated price; all others are published or observed\n");
        }
    }
}

impl LaunchedNode {
    fn is_estimated(&self) -> bool {
        self.price_quality.is_some_and(|quality| !quality.is_fact())
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
