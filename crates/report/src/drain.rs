//! What `nodecast drain` answers: where the pods of some nodes would go, which budget holds whom, what is launched and what it
//! costs.

mod page;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Serialize;

use super::columns::fitted;
use super::format::{counted, karpenter_label, money, span};
use super::pack::HOURS_OF_MONTH;
use crate::cluster::{Node, NodeOrigin};
use crate::control_plane::eviction::EvictionAnswer;
use crate::domain::pod::OwnerKind;
use crate::domain::{Currency, HourlyRate, NodeId, NodeObject, Symbol, well_known};
use crate::single_pass::{PackingQuestion, PodOutcome, SinglePass};
use crate::standing::{Standing, rate_of_node};
use nodecast_karpenter::release::Behaviour;

/// The version of the layout of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// What a drain of some nodes comes to.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DrainAnswer {
    /// Version of this layout.
    pub schema_version: u32,
    /// What wrote it.
    pub program: &'static str,
    /// The program's version.
    pub program_version: &'static str,
    /// The region.
    pub region: &'static str,
    /// The currency of every amount.
    pub currency: Currency,
    /// Karpenter's release.
    pub karpenter: String,
    /// Origin of the release.
    pub karpenter_source: String,
    /// Open feature gates, by Karpenter's names.
    pub feature_gates: Vec<&'static str>,
    /// The nodes.
    pub nodes: Vec<DrainedNode>,
    /// Where each of their pods goes.
    pub pods: Vec<MovedPod>,
    /// What is launched for them.
    pub launches: Vec<DrainLaunch>,
    /// Budgets that protect pods of these nodes.
    pub budgets: Vec<BudgetInTheWay>,
    /// What those nodes cost an hour that do not stay whatever becomes of their pods; `None` where the price of one is not known.
    pub per_hour: Option<f64>,
    /// What the launched nodes cost an hour.
    pub launched_per_hour: f64,
    /// The longest grace period among the pods that go, in seconds: so long a drain may take for each round of evictions.
    pub longest_grace_seconds: f64,
}

/// A node that is drained.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DrainedNode {
    /// Its name.
    pub name: String,
    /// Its price for an hour, where it is known.
    pub per_hour: Option<f64>,
    /// Why nothing takes the node away though it is empty, or another is made in its place; nothing is saved then.
    pub stays_because: Option<String>,
}

/// A pod of a drained node.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct MovedPod {
    /// `namespace/name`.
    pub pod: String,
    /// The node that it leaves.
    pub from: String,
    /// `node`, `new node`, `nowhere` or `stays` (a daemon, a static pod, one that a budget never lets go).
    pub to: &'static str,
    /// The node, where it exists.
    pub node: Option<String>,
    /// The launch, by position, where it does not.
    pub launch: Option<usize>,
    /// Why nowhere.
    pub because: Option<String>,
    /// The budgets that protect it, `namespace/name`.
    pub budgets: Vec<String>,
    /// Whether the API server would let it go now.
    pub evictable_now: bool,
    /// Whether its node stays for it: no budget ever lets it go, and it is neither a daemon nor static.
    pub keeps_node: bool,
}

/// A node that is launched.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct DrainLaunch {
    /// The NodePool.
    pub node_pool: &'static str,
    /// The cheapest type asked for.
    pub instance_type: &'static str,
    /// Its price for an hour.
    pub per_hour: f64,
    /// How many pods of all that wait go on it.
    pub pods: usize,
}

/// A budget that protects pods of drained nodes.
#[derive(Clone, PartialEq, Debug, Serialize, schemars::JsonSchema)]
pub struct BudgetInTheWay {
    /// `namespace/name`.
    pub name: String,
    /// Pods of the drained nodes that it protects.
    pub pods: usize,
    /// How many of all pods it lets go at once now.
    pub allowed: i64,
    /// Rounds of evictions that it takes, if every pod that went is Ready elsewhere before the next, and all pods are Ready before the first
    /// where it lets none go now; `None` if it never lets one go.
    pub rounds: Option<usize>,
}

/// What the Cluster Autoscaler of a cluster sees of a node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GroupRoom {
    /// The node's group.
    pub group: String,
    /// The size of the group.
    pub nodes: i64,
    /// The least size that it may have.
    pub least: i64,
}

impl DrainAnswer {
    /// What comes of it; `pass` is the pass on [`question`] of these nodes, by position. `rooms` has what the Cluster Autoscaler sees of
    /// those of them that it minds.
    pub fn new(
        standing: &Standing,
        pass: &SinglePass<'_>,
        nodes: &[usize],
        rooms: &BTreeMap<usize, GroupRoom>,
    ) -> Self {
        let question = pass.question;
        // By group, how many of the nodes before are taken out of it.
        let mut taken: BTreeMap<&str, i64> = BTreeMap::new();
        let drained: Vec<DrainedNode> = nodes
            .iter()
            .map(|&node| {
                let this_node = &question.nodes[node].node;
                let state = standing.cluster.node(NodeId::from_index(node));
                let rate = rate_of_node(&question.region, &this_node.labels);
                DrainedNode {
                    name: this_node.name.clone(),
                    per_hour: rate.map(HourlyRate::as_f64),
                    stays_because: why_empty_stays(question, this_node)
                        .or_else(|| why_group_keeps(state, this_node, rooms.get(&node), &mut taken)),
                }
            })
            .collect();
        let launches: Vec<Option<DrainLaunch>> = launches(pass);
        let leaving = pass.asked.iter().filter_map(|&asked| Some((question.pods[asked].leaves?, asked))).collect();
        let pods: Vec<MovedPod> = nodes.iter().flat_map(|&node| moved(standing, pass, &leaving, node)).collect();
        let grace = nodes.iter().flat_map(|&node| &question.nodes[node].pods);
        let longest = grace.map(|pod| pod.spec.grace_period()).max().unwrap_or_default();
        Self {
            schema_version: SCHEMA_VERSION,
            program: super::summary::PROGRAM,
            program_version: env!("CARGO_PKG_VERSION"),
            region: question.region.name.as_str(),
            currency: question.region.currency,
            karpenter: question.karpenter.to_string(),
            karpenter_source: question.setup.source.clone(),
            feature_gates: question.setup.flags.gates.open(),
            per_hour: saved(&drained),
            nodes: drained,
            budgets: in_the_way(standing, &pods),
            pods,
            // An empty sum of floating-point numbers is −0.
            launched_per_hour: launches.iter().flatten().fold(0.0, |sum, launch| sum + launch.per_hour),
            launches: launches.into_iter().flatten().collect(),
            longest_grace_seconds: longest.as_secs_f64(),
        }
    }

    /// The answer as a table, in lines of no more than `width` characters, if that is known.
    pub fn table(&self, width: Option<usize>) -> String {
        let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
        let mut text = format!("drain {}: {}\n", names.join(", "), self.moves());
        for line in self.sentences() {
            let _ = writeln!(text, "{line}");
        }
        let goes_with_node = |pod: &&MovedPod| pod.to == "stays" && !pod.keeps_node;
        for pod in self.pods.iter().filter(|pod| !goes_with_node(pod)) {
            let _ = writeln!(text, "{}", pod.line());
        }
        for node in &self.nodes {
            let count = self.pods.iter().filter(|pod| goes_with_node(pod) && pod.from == node.name).count() as u64;
            if count > 0 {
                let pods = counted(count, "pod of a DaemonSet, or static", "pods of DaemonSets, or static");
                let _ = writeln!(text, "  {pods}, from {}: {} with the node", node.name, stays(count));
            }
        }
        fitted(text, width)
    }

    /// How many pods go where: `2 pods to existing nodes, 1 pod unschedulable`.
    fn moves(&self) -> String {
        let count = |to: &str| self.pods.iter().filter(|pod| pod.to == to).count() as u64;
        let kept = self.pods.iter().filter(|pod| pod.keeps_node).count() as u64;
        let pods = |count| counted(count, "pod", "pods");
        let launches = counted(self.launches.len() as u64, "new node", "new nodes");
        let all = [
            (count("node"), format!("{} to existing nodes", pods(count("node")))),
            (count("new node"), format!("{} to {launches}", pods(count("new node")))),
            (count("nowhere"), format!("{} unschedulable", pods(count("nowhere")))),
            (kept, format!("{} not evictable", pods(kept))),
            (
                count("stays") - kept,
                format!("{} {} with the node", pods(count("stays") - kept), stays(count("stays") - kept)),
            ),
        ];
        let moves: Vec<String> = all.into_iter().filter(|(count, _)| *count > 0).map(|(_, words)| words).collect();
        if moves.is_empty() { "no pods".to_owned() } else { moves.join(", ") }
    }

    /// The rest of the answer, except for the pods one by one.
    fn sentences(&self) -> Vec<String> {
        let release = karpenter_label(&self.karpenter, &self.karpenter_source, &self.feature_gates);
        let mut sentences = vec![format!("by {release}"), self.cost()];
        sentences.push(format!(
            "each round of evictions takes up to {} (longest terminationGracePeriodSeconds)",
            span(self.longest_grace_seconds)
        ));
        sentences.extend(self.budgets.iter().map(|budget| {
            let (covered, allowed) = (budget.pods, budget.allowed);
            let rounds = budget.rounds_in_words();
            format!(
                "PodDisruptionBudget {} covers {covered} of these pods, allows {allowed} now: {rounds}",
                budget.name
            )
        }));
        sentences.extend(self.launches.iter().enumerate().map(|(position, launch)| {
            format!(
                "new node {} of NodePool {}: from {} at {}/h, for {}",
                position + 1,
                launch.node_pool,
                launch.instance_type,
                money(self.currency.code(), launch.per_hour),
                counted(launch.pods as u64, "pod", "pods")
            )
        }));
        sentences
    }

    /// The cost of the nodes that go and of those that are launched, and the nodes that stay.
    fn cost(&self) -> String {
        let currency = self.currency.code();
        let before = self.per_hour.map_or_else(|| "unknown price".to_owned(), |per_hour| money(currency, per_hour));
        let launched = match self.launched_per_hour {
            cost if cost > 0.0 => format!("{} launched", money(currency, cost)),
            _ => "nothing launched".to_owned(),
        };
        let month = self.change_per_month().map(|change| format!("; {} per month", money(currency, change)));
        format!("cost per hour: {before} removed, {launched}{}{}", month.unwrap_or_default(), self.who_stays())
    }

    /// The change of the cost per month; `None` where the price of a node is not known.
    fn change_per_month(&self) -> Option<f64> {
        Some((self.launched_per_hour - self.per_hour?) * HOURS_OF_MONTH)
    }

    /// The nodes that stay, in clauses of a sentence: those that budgets keep, then those that Karpenter leaves there, by why.
    fn who_stays(&self) -> String {
        let mut text = String::new();
        let kept = self.kept();
        if !kept.is_empty() {
            let (whose, stay) = if kept.len() == 1 { ("its pods", "stays") } else { ("their pods", "stay") };
            let _ = write!(
                text,
                " if all nodes could be drained; {} {stay} because PodDisruptionBudgets never allow eviction of {whose}",
                kept.join(", ")
            );
        }
        let mut left: Vec<(&str, Vec<&str>)> = Vec::new();
        for node in &self.nodes {
            let Some(why) = &node.stays_because else { continue };
            match left.iter_mut().find(|(known, _)| known == why) {
                Some((_, names)) => names.push(&node.name),
                None => left.push((why, vec![&node.name])),
            }
        }
        for (why, names) in left {
            let saves = if names.len() == 1 { "stays, so it saves" } else { "stay, so they save" };
            let _ = write!(text, "; {} {saves} nothing: {why}", names.join(", "));
        }
        text
    }

    /// The nodes that stay for one of their pods, and for nothing else.
    fn kept(&self) -> Vec<&str> {
        let is_kept = |node: &&DrainedNode| {
            node.stays_because.is_none() && self.pods.iter().any(|pod| pod.keeps_node && pod.from == node.name)
        };
        self.nodes.iter().filter(is_kept).map(|node| node.name.as_str()).collect()
    }
}

impl BudgetInTheWay {
    /// How many rounds of evictions it takes.
    fn rounds_in_words(&self) -> String {
        match self.rounds {
            None if self.allowed > 0 => {
                "another budget protects one of these pods too, so the drain does not finish".to_owned()
            }
            None => "it never allows a disruption, so the drain does not finish".to_owned(),
            Some(rounds) if self.allowed <= 0 => {
                format!("{} after all its pods are Ready", counted(rounds as u64, "round", "rounds"))
            }
            Some(1) => "all evicted at once".to_owned(),
            Some(rounds) => format!("{rounds} rounds; each waits until the evicted pods are Ready elsewhere"),
        }
    }
}

impl MovedPod {
    /// The place that it goes to.
    fn destination(&self) -> String {
        match (&self.node, self.launch) {
            (Some(node), _) => format!("to {node}"),
            (None, Some(launch)) => format!("to new node {}", launch + 1),
            (None, None) => self.to.to_owned(),
        }
    }

    /// The pod's line of the table.
    fn line(&self) -> String {
        let to = self.destination();
        let because = self.because.as_ref().map_or_else(String::new, |why| format!(": {why}"));
        let budgets = self.budgets.join(", ");
        let blocked = match (self.evictable_now, self.keeps_node, self.budgets.len()) {
            (true, ..) => String::new(),
            (false, _, 0) => "; not evictable now".to_owned(),
            (false, true, 1) => format!("; {budgets} never allows its eviction"),
            (false, true, _) => format!("; never evicted, because several budgets protect it: {budgets}"),
            (false, false, _) => format!("; eviction blocked now by {budgets}"),
        };
        format!("  {} from {}: {to}{because}{blocked}", self.pod, self.from)
    }
}

const fn stays(pods: u64) -> &'static str {
    if pods == 1 { "stays" } else { "stay" }
}

/// The cost per hour of the nodes that do not stay.
fn saved(nodes: &[DrainedNode]) -> Option<f64> {
    let mut going = nodes.iter().filter(|node| node.stays_because.is_none());
    // An empty sum of floating-point numbers is −0.
    going.try_fold(0.0, |sum, node| Some(sum + node.per_hour?))
}

/// Why a drained node of Karpenter still exists, or is created again, after all pods have left it.
///
/// Source: Karpenter core v1.13 `pkg/controllers/disruption/emptiness.go`, `ShouldDisrupt`; `pkg/controllers/state/statenode.go`,
/// `ValidateNodeDisruptable`; `pkg/controllers/static/provisioning/controller.go`, `Reconcile`.
fn why_empty_stays(question: &PackingQuestion, node: &NodeObject) -> Option<String> {
    let name = node.labels.get(well_known::NODEPOOL)?;
    let pool = question.node_pools.iter().find(|pool| pool.name == name)?;
    let behaviour = Behaviour::for_release(question.karpenter);
    if let Some(replicas) = pool.replicas.filter(|_| behaviour.knows_static_pools) {
        return Some(format!("NodePool {name} keeps {}", counted(u64::from(replicas), "node", "nodes")));
    }
    if pool.disruption.consolidate_after.is_none() {
        return Some(format!("NodePool {name} never consolidates, so the empty node stays until you delete it"));
    }
    let protects = |value: &Symbol| !behaviour.node_annotation_is_true || *value == well_known::TRUE;
    let protected = node.annotations.get(well_known::DO_NOT_DISRUPT).filter(protects);
    protected.map(|_| "annotation `karpenter.sh/do-not-disrupt` keeps it until you delete the node".to_owned())
}

/// Why a drained node of no NodePool is there still, or again: only the Cluster Autoscaler makes a group smaller, by one node at a time down
/// to its least size, and EC2 Auto Scaling replaces what is lost in any other way. A node of Fargate goes with its pod.
///
/// Source: Cluster Autoscaler 1.33 `core/scaledown/planner/planner.go`, `core/scaledown/eligibility/eligibility.go`.
fn why_group_keeps<'r>(
    state: &Node,
    node_object: &NodeObject,
    room: Option<&'r GroupRoom>,
    taken: &mut BTreeMap<&'r str, i64>,
) -> Option<String> {
    let NodeOrigin::NodeGroup(group) = state.origin else { return None };
    let Some(room) = room else {
        return Some(match state.labels.get(well_known::EKS_NODEGROUP) {
            Some(_) => format!("node group {group} keeps its size: nothing in the dump scales it down"),
            None => "it belongs to no NodePool or known node group: nothing in the dump removes it".to_owned(),
        });
    };
    let disabled = Symbol::existing(SCALE_DOWN_DISABLED).and_then(|key| node_object.annotations.get(key));
    if disabled == Some(well_known::TRUE) {
        return Some(format!("annotation `{SCALE_DOWN_DISABLED}` stops the Cluster Autoscaler from removing it"));
    }
    let taken = taken.entry(&room.group).or_default();
    if room.nodes - *taken <= room.least {
        let least = counted(room.least.max(0).unsigned_abs(), "node", "nodes");
        return Some(format!("node group {} is at its minimum of {least}", room.group));
    }
    *taken += 1;
    None
}

/// The annotation that keeps the Cluster Autoscaler from removing a node.
const SCALE_DOWN_DISABLED: &str = "cluster-autoscaler.kubernetes.io/scale-down-disabled";

/// The question in which the nodes at these positions are on their way out. Pods of theirs that no budget ever lets go look for no other
/// place: an eviction that is refused for ever never makes room for a new pod.
pub fn question(asked: PackingQuestion, standing: &Standing, nodes: &[usize]) -> PackingQuestion {
    let mut drained = asked.draining(nodes);
    drained.pods.retain(|pod| match pod.leaves {
        Some((node, position)) if nodes.contains(&node) => {
            let ids = &standing.cluster.node(NodeId::from_index(node)).pods;
            !ids.get(position).is_some_and(|&id| standing.is_never_evicted(id))
        }
        _ => true,
    });
    drained
}

/// The launches of a pass, by claim; none where nothing can be launched.
fn launches(pass: &SinglePass<'_>) -> Vec<Option<DrainLaunch>> {
    let launched = pass.plan.claims.iter().zip(&pass.launches).map(|(claim, request)| {
        let request = request.as_ref().ok()?;
        let cheapest = request.overrides.iter().min_by_key(|request| request.price)?;
        Some(DrainLaunch {
            node_pool: claim.node_pool.as_str(),
            instance_type: cheapest.instance_type.as_str(),
            per_hour: cheapest.price.as_f64(),
            pods: claim.pods.len(),
        })
    });
    launched.collect()
}

/// Pods that look for another place, by the positions of their node and of them on it.
type Leaving = BTreeMap<(usize, usize), usize>;

/// What becomes of the pods of a node.
fn moved(standing: &Standing, pass: &SinglePass<'_>, leaving: &Leaving, node: usize) -> Vec<MovedPod> {
    let question = pass.question;
    let this_node = &question.nodes[node];
    let ids = &standing.cluster.node(NodeId::from_index(node)).pods;
    let pods = this_node.pods.iter().zip(ids).enumerate().map(|(position, (pod, &id))| {
        let outcome = leaving.get(&(node, position)).map(|&asked| pass.outcome(asked));
        let (to, target, launch, because) = match outcome {
            None => ("stays", None, None, None),
            Some(PodOutcome::ExistingNode(to)) => ("node", Some(question.nodes[to].node.name.clone()), None, None),
            Some(PodOutcome::NewNode(claim)) => {
                let before = pass.launches[..claim].iter().filter(|launch| launch.is_ok()).count();
                ("new node", None, Some(before), None)
            }
            Some(PodOutcome::Pending(why)) => ("nowhere", None, None, Some(why)),
        };
        let (protectors, answer) = standing.eviction(id);
        let budgets = standing.cluster.budgets();
        let name = |at: usize| format!("{}/{}", budgets[at].namespace, budgets[at].name);
        let evictable_now = matches!(answer, EvictionAnswer::Evicted { .. });
        let goes_with_node = matches!(pod.spec.owner, OwnerKind::DaemonSet | OwnerKind::Node);
        MovedPod {
            keeps_node: to == "stays" && !goes_with_node && standing.is_never_evicted(id),
            pod: pod.full_name(),
            from: this_node.node.name.clone(),
            to,
            node: target,
            launch,
            because,
            budgets: protectors.into_iter().map(name).collect(),
            evictable_now,
        }
    });
    pods.collect()
}

/// The budgets that protect pods that go, or that keep their node. One that allows no disruption now is not in the way of a pod that the API
/// server evicts all the same, because it is not Ready.
fn in_the_way(standing: &Standing, pods: &[MovedPod]) -> Vec<BudgetInTheWay> {
    let budgets = standing.cluster.budgets().iter().zip(standing.budgets());
    let found = budgets.filter_map(|(budget, status)| {
        let name = format!("{}/{}", budget.namespace, budget.name);
        let matches = |pod: &&MovedPod| (pod.to != "stays" || pod.keeps_node) && pod.budgets.contains(&name);
        let allowed = status.disruptions_allowed;
        let needs_it = |pod: &&MovedPod| allowed > 0 || !pod.evictable_now;
        let protected: Vec<&MovedPod> = pods.iter().filter(matches).filter(needs_it).collect();
        let pods = protected.len();
        let at_once = if allowed > 0 { allowed } else { status.expected.saturating_sub(status.desired_healthy) };
        let at_once = usize::try_from(at_once).ok().filter(|&at_once| at_once > 0);
        let keeps_one = protected.iter().any(|pod| pod.keeps_node);
        let rounds = at_once.filter(|_| !keeps_one).map(|at_once| pods.div_ceil(at_once));
        (pods > 0).then_some(BudgetInTheWay { name, pods, allowed, rounds })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::{DrainAnswer, DrainedNode, MovedPod, SCHEMA_VERSION};
    use crate::domain::Currency;

    pub(super) fn answer(node: &str, pods: Vec<MovedPod>) -> DrainAnswer {
        DrainAnswer {
            schema_version: SCHEMA_VERSION,
            program: "nodecast",
            program_version: "0",
            region: "us-east-1",
            currency: Currency::Usd,
            karpenter: "v1.13".to_owned(),
            karpenter_source: "assumed".to_owned(),
            feature_gates: Vec::new(),
            nodes: vec![DrainedNode { name: node.to_owned(), per_hour: Some(0.096), stays_because: None }],
            pods,
            launches: Vec::new(),
            budgets: Vec::new(),
            per_hour: Some(0.096),
            launched_per_hour: 0.0,
            longest_grace_seconds: 30.0,
        }
    }

    /// A pod that goes with its node, or keeps it.
    pub(super) fn pod(budget: &str, keeps_node: bool) -> MovedPod {
        MovedPod {
            pod: "shop/db-0".to_owned(),
            from: "n0".to_owned(),
            to: "stays",
            node: None,
            launch: None,
            because: None,
            budgets: vec![budget.to_owned()],
            evictable_now: !keeps_node,
            keeps_node,
        }
    }

    #[test]
    fn lines_are_no_wider_than_the_terminal() {
        let answer = answer("ip-10-0-0-1.ec2.internal", Vec::new());
        let (whole, narrow) = (answer.table(None), answer.table(Some(40)));
        assert!(
            whole.lines().any(|line| line.len() > 60) && narrow.lines().all(|line| line.chars().count() <= 40),
            "{narrow}"
        );
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&whole), words(&narrow));
    }

    #[test]
    fn a_node_that_a_budget_keeps_saves_nothing() {
        let table = |keeps_node| answer("n0", vec![pod("shop/db", keeps_node)]).table(None);
        let kept = table(true);
        assert!(
            kept.contains("if all nodes could be drained; n0 stays because PodDisruptionBudgets never allow"),
            "{kept}"
        );
        assert!(kept.contains("stays; shop/db never allows its eviction\n") && !kept.contains("now by"), "{kept}");
        let both = vec![MovedPod { budgets: vec!["shop/a".to_owned(), "shop/b".to_owned()], ..pod("", true) }];
        let both = answer("n0", both).table(None);
        assert!(both.contains("; never evicted, because several budgets protect it: shop/a, shop/b\n"), "{both}");
        let gone = table(false);
        assert!(!gone.contains("if all nodes") && !gone.contains("eviction blocked"), "{gone}");
        assert!(gone.starts_with("drain n0: 1 pod stays with the node\n"), "{gone}");
        assert!(gone.ends_with("  1 pod of a DaemonSet, or static, from n0: stays with the node\n"), "{gone}");
    }
}
