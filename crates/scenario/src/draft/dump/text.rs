//! The scenario file that is made of a dump.

use std::fmt::Write as _;

use super::assumptions::{self, Assumption, Part};
use super::auto_mode::{self, FILE as AUTO_MODE};
use super::bill;
use super::cluster::{Cluster, Launcher};
use super::cluster_autoscaler::AutoscalerFlags;
use super::demand::{Demand, Load, MILLISECONDS_PER_REQUEST, Read};
use super::ended::{self, RunTime};
use super::found::FILE as FOUND;
use super::groups::Group;
use super::migration::{FILE as KARPENTER, Migration, NODES};
use super::observed;
use super::regrouping;
use super::stand_ins::Parts;
use super::usages::{self, Used};
use super::yaml::{quoted, word};
use super::{Notes, Trace};
use crate::domain::words::{counted, some_of};
use crate::draft::{DraftFile, ObservedLoad, Wishes};
use nodecast_karpenter::packing::PackerKind;

/// The share of a day's peak that is left at night (assumed).
const NIGHT: f64 = 0.4;
/// Where the dump has no nodes, there is load from this instant of the run on: nodes boot before (assumed).
const LOAD_AFTER: &str = "2m";
/// So long the figures of waiting and churn are left out then: every pod of a cluster that runs already has its node (assumed to be
/// enough for all to have one again).
const WARM_UP: &str = "30m";

/// What a scenario file is made of.
pub(super) struct Facts<'f> {
    pub wishes: &'f Wishes,
    pub cluster: &'f Cluster,
    pub files: &'f [DraftFile],
    /// Whether the run begins with the nodes and pods of the dump.
    pub found: bool,
    /// Pods that are replayed one by one, if there are such.
    pub trace: Option<&'f Trace>,
    /// What becomes of the groups under the policy with Karpenter, if there is one.
    pub migration: Option<Migration>,
    pub groups: &'f [Group],
    /// The groups of the policy with the Cluster Autoscaler, for a cluster with Karpenter.
    pub regrouped: &'f [Group],
    /// Whether there is a policy with EKS Auto Mode, for a cluster with Karpenter.
    pub to_auto_mode: bool,
    /// What the bill has beside the nodes.
    pub bill: bill::BillFacts,
    pub demand: &'f Demand,
    /// Loads that were observed.
    pub replayed: &'f [&'f ObservedLoad],
    /// What pods used where nothing else says so.
    pub used: &'f [Used],
    /// How long pods of Jobs ran.
    pub run_times: &'f [RunTime],
    /// Deployments that count as one workload.
    pub parts: &'f [Parts],
    /// Sizes of images in bytes.
    pub images: &'f [(String, i64)],
    pub notes: &'f Notes,
    /// What the dump's nodes are and cost.
    pub remark: Option<&'f str>,
}

impl Facts<'_> {
    /// How much is left out where a run begins without the cluster's nodes.
    fn warm_up(&self) -> &'static str {
        if self.wishes.observed.is_some() { observed::WARM_UP } else { WARM_UP }
    }

    /// The policies that have to launch their nodes first, and the nodes that they begin without.
    fn newcomers(&self) -> Option<(&'static str, &'static str)> {
        match (self.regrouped.is_empty(), self.to_auto_mode) {
            // A replay begins without the nodes that there were then, whatever the policy.
            _ if self.wishes.observed.is_some() => None,
            _ if self.migration.is_some() => Some(("the policy `karpenter` begins", "of the groups that it has not")),
            _ if self.cluster.launcher == Launcher::EksAutoMode && self.found => {
                Some(("the policy `karpenter` begins", "of EKS Auto Mode"))
            }
            (false, true) => {
                Some(("the policies `cluster-autoscaler` and `auto-mode` begin", "that Karpenter launched"))
            }
            (false, false) => Some(("the policy `cluster-autoscaler` begins", "that Karpenter launched")),
            (true, true) => Some(("the policy `auto-mode` begins", "that Karpenter launched")),
            (true, false) => None,
        }
    }
}

/// The text of the scenario file.
pub(super) fn scenario(facts: &Facts<'_>) -> String {
    let mut text = String::from(
        "# The cluster of a dump, as `nodecast init --from` read it. It runs as it is; what is assumed stands under `assumptions`.\n\
         #   nodecast run scenario.yaml            one policy, one report\n\
         #   nodecast compare scenario.yaml        all policies, the same luck for each, differences with intervals\n\
         #   nodecast studio scenario.yaml         settings moved on a page, and what they come to (docs/studio.md)\n\
         # Every key: docs/scenario.md. The report, chart by chart: docs/how-to-read-a-report.md. On from here: docs/guide.md.\n",
    );
    if let Some(remark) = facts.remark {
        let _ = writeln!(text, "# To compare with the first run: {remark}.");
    }
    if !facts.notes.warnings.is_empty() {
        text += "# What the dump holds and this scenario does not carry:\n";
        for warning in &facts.notes.warnings {
            let line: String = warning.message().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
            let _ = writeln!(text, "#   {line}");
        }
    }
    head(facts, &mut text);
    groups(facts, &mut text);
    loads(facts, &mut text);
    ended::text(facts.run_times, facts.parts, &mut text);
    usages::text(facts.used, &mut text);
    facts.bill.text(&mut text);
    metrics(facts.demand, &mut text);
    images(facts.images, &mut text);
    policies(facts, &mut text);
    text += "\nobjectives:                         # limits that the answer is held against; `request_p99` and `cost` are others\n  pending_p99: 2m\n";
    assumptions(facts, &mut text);
    text
}

fn head(facts: &Facts<'_>, text: &mut String) {
    let (cluster, name) = (facts.cluster, word(&facts.wishes.name));
    let _ = writeln!(text, "\nname: {name}");
    let _ = writeln!(text, "region: {}", cluster.region.name);
    match (&facts.wishes.observed, cluster.seen) {
        (Some(observed), _) => observed::head(observed, text),
        (None, Some(seen)) => {
            let _ = writeln!(text, "start: {seen}         # when the dump was made\nduration: 24h");
        }
        (None, None) => *text += "duration: 24h\n",
    }
    warm_up(facts, text);
    *text += "seed: 1                             # luck; another number is another day\n";
    *text += "replications: 5                     # how many successive seeds `compare` runs\n";
    versions(cluster, text);
    if !cluster.zones.is_empty() {
        let zones: Vec<&str> = cluster.zones.iter().map(|zone| zone.as_str()).collect();
        let _ = writeln!(text, "\ncluster:\n  zones: [{}]   # where the nodes run", zones.join(", "));
    }
    *text += "\nmanifests:\n";
    for file in facts.files {
        let _ = writeln!(text, "  - {}", file.name);
    }
    if facts.found {
        let _ = writeln!(text, "\ninitial: {FOUND}                 # the nodes and pods with which the run begins");
    }
    if let Some(Trace { file, namespace, about }) = facts.trace {
        let _ = writeln!(text, "\npods:                               # {about}");
        let _ = writeln!(text, "  csv: {}\n  namespace: {}", file.name, word(namespace));
    }
}

/// How much of the run is left out of figures of waiting.
fn warm_up(facts: &Facts<'_>, text: &mut String) {
    if let Some((begin, nodes)) = facts.newcomers() {
        let _ = writeln!(
            text,
            "warm_up: {}                        # {begin} without the nodes {nodes}, so",
            facts.warm_up()
        );
        *text += "                                    # their pods wait at first; waits, churn and response times count from then on (0s: all count)\n";
    } else if !facts.found {
        let _ = writeln!(
            text,
            "warm_up: {}                        # the run begins without the nodes that an autoscaler launched, so all pods",
            facts.warm_up()
        );
        *text += "                                    # wait at once; waits, churn and response times count from then on (0s: all count)\n";
    }
}

/// The releases.
fn versions(cluster: &Cluster, text: &mut String) {
    *text += "\nversions:                           # as the nodes and the images say\n";
    let _ = writeln!(text, "  kubernetes: \"{}\"", cluster.kubernetes);
    match cluster.launcher {
        Launcher::Karpenter => {
            let _ = writeln!(text, "  karpenter: {}", cluster.karpenter);
        }
        Launcher::ClusterAutoscaler { version: Some(version), .. } => {
            let _ = writeln!(text, "  cluster-autoscaler: \"{version}\"");
        }
        Launcher::ClusterAutoscaler { version: None, .. } | Launcher::EksAutoMode | Launcher::Nobody => {}
    }
    cluster.vertical.version_line(text);
    cluster.settings.write(text);
    cluster.vertical.write(text);
    cluster.controllers.write(text);
}

/// The node groups, as they were; where a policy does away with all but one, the others stand with the policies that keep them.
fn groups(facts: &Facts<'_>, text: &mut String) {
    let (home, about) = match facts.migration {
        _ if facts.groups.is_empty() => return,
        Some(migration) if facts.groups.len() > 1 => {
            (Some(migration.home), "the group that all policies have, as it was; the others stand under `policies`")
        }
        _ => (None, "the nodes that Karpenter did not launch, as they were"),
    };
    let _ = writeln!(text, "\nnodeGroups:                         # {about}");
    for (position, group) in facts.groups.iter().enumerate() {
        if home.is_none_or(|home| home == position) {
            one_group(group, 2, text);
        }
    }
}

/// A group in a list that is indented so far.
fn one_group(group: &Group, indent: usize, text: &mut String) {
    let mut this_text = String::new();
    let _ = writeln!(this_text, "- name: {}", word(&group.name));
    let list = |words: &[String]| words.iter().map(|this_word| word(this_word)).collect::<Vec<_>>().join(", ");
    let _ = writeln!(this_text, "  managed: {}", group.managed);
    let _ = writeln!(this_text, "  instanceTypes: [{}]", list(&group.types));
    let (least, most) = group.sizes;
    let _ = writeln!(this_text, "  min: {least}\n  desired: {}\n  max: {most}", group.desired);
    purchase(group, &mut this_text);
    if !group.zones.is_empty() {
        let _ = writeln!(this_text, "  zones: [{}]", list(&group.zones));
    }
    let _ = writeln!(this_text, "  amiFamily: {}", group.family);
    if let Some(volume) = group.volume {
        let _ = writeln!(this_text, "  volumeSize: {volume}                  # GiB");
    }
    if let Some(pods) = group.pods {
        let _ = writeln!(this_text, "  maxPods: {pods}");
    }
    if !group.labels.is_empty() {
        this_text += "  labels:\n";
        for (key, value) in &group.labels {
            let _ = writeln!(this_text, "    {}: {}", word(key), word(value));
        }
    }
    if !group.taints.is_empty() {
        this_text += "  taints:\n";
        for [key, value, effect] in &group.taints {
            let _ = writeln!(this_text, "    - {{ key: {}, value: {}, effect: {effect} }}", word(key), word(value));
        }
    }
    for line in this_text.lines() {
        let _ = writeln!(text, "{:indent$}{line}", "");
    }
}

/// How a group buys.
fn purchase(group: &Group, text: &mut String) {
    let Some(purchase) = group.purchase else {
        *text += if group.spot { "  spot: true\n" } else { "" };
        return;
    };
    let _ = writeln!(text, "  spot: {}%", purchase.spot_percent);
    if purchase.on_demand_base > 0 {
        let _ = writeln!(text, "  onDemandBase: {}", purchase.on_demand_base);
    }
    let _ = writeln!(text, "  spotStrategy: {}", purchase.strategy);
    if let Some(pools) = purchase.pools {
        let _ = writeln!(text, "  spotPools: {pools}");
    }
    if group.rebalance {
        *text += "  capacityRebalance: true\n";
    }
}

fn loads(facts: &Facts<'_>, text: &mut String) {
    if !facts.replayed.is_empty() {
        *text += "\n# What was observed: a row of a file holds until the next. Five times of all: --set 'load[*].requests.scale=5' (in cores as well).\nload:\n";
        observed::text(facts.replayed, text);
    }
    if facts.demand.loads.is_empty() {
        return;
    }
    if !facts.replayed.is_empty() {
        *text += "  # Of these nothing was observed: each load is the CPU in cores that an autoscaler measured.\n";
        return guessed(facts, text);
    }
    let _ = write!(
        text,
        "\n# A dump knows no requests: each load is the CPU in cores that an autoscaler measured, taken as the day's peak. So response\n\
         # times and cross-zone transfer are not known. Twice as much of all: --set 'load[*].requests.scale=2' (in cores as well).\n\
         # To replay your own traffic, write in place of `cpu: {{ ... }}`\n\
         #   requests: {{ prometheus: web.json }}    # the answer of /api/v1/query_range, summed over its series (docs/load.md)\n\
         #   service: {{ cpu_per_request: 12ms, concurrency: 16 }}   # cores in use divided by requests per second\n\
         load:\n"
    );
    guessed(facts, text);
}

/// Loads that the dump lets guess.
fn guessed(facts: &Facts<'_>, text: &mut String) {
    let peak_at = facts.cluster.seen.map_or_else(|| "0h".to_owned(), time_of_day);
    for load in &facts.demand.loads {
        one_load(load, &peak_at, facts.found, text);
    }
}

fn one_load(load: &Load, peak_at: &str, found: bool, text: &mut String) {
    let _ = writeln!(text, "  - workload: {}     # {}", word(&load.workload.to_string()), load.basis);
    if !found {
        let _ = writeln!(text, "    at: {LOAD_AFTER}");
    }
    let (night, peak) = (number(load.cores * NIGHT), number(load.cores));
    let _ = writeln!(text, "    cpu: {{ diurnal: {{ night: {night}, peak: {peak}, peak_at: {peak_at} }} }}");
}

/// The time of day of an instant, as a duration.
fn time_of_day(instant: jiff::Timestamp) -> String {
    let minutes = instant.as_second().rem_euclid(86_400) / 60;
    format!("{}h{}m", minutes / 60, minutes % 60)
}

/// A number of four digits, or as many as a whole number has.
fn number(value: f64) -> String {
    let text = if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") };
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn images(sizes: &[(String, i64)], text: &mut String) {
    if sizes.is_empty() {
        return;
    }
    *text += "\nimages:                             # compressed sizes in bytes, as the nodes report them\n  sizes:\n";
    for (image, size) in sizes {
        let _ = writeln!(text, "    {}: {size}", word(image));
    }
}

fn metrics(demand: &Demand, text: &mut String) {
    if demand.metrics.is_empty() && demand.triggers.is_empty() {
        return;
    }
    *text +=
        "\nexternal_metrics:                   # what autoscalers read from outside; a value holds until the next\n";
    for this_metric in &demand.metrics {
        // Only where several are of one name is it said which is meant.
        let is_one = demand.metrics.iter().filter(|other| other.metric == this_metric.metric).count() == 1;
        let selector = this_metric.selector.to_string();
        let selector = match is_one || selector.is_empty() {
            true => String::new(),
            false => format!(", selector: {}", quoted(&selector)),
        };
        let object = this_metric.object.filter(|_| !is_one);
        let object = object.map_or_else(String::new, |object| format!(", object: {}", word(&object.to_string())));
        let (metric, value) = (word(this_metric.metric.as_str()), number(this_metric.value));
        let _ = writeln!(text, "  - {{ metric: {metric}{selector}{object}, values: [{{ at: 0s, value: {value} }}] }}");
    }
    for Read { object, trigger, kind, value } in &demand.triggers {
        let value = number(*value);
        let _ = writeln!(
            text,
            "  - {{ scaled_object: {}, trigger: {trigger}, values: [{{ at: 0s, value: {value} }}] }}   # {kind}",
            word(&object.to_string())
        );
    }
}

fn policies(facts: &Facts<'_>, text: &mut String) {
    *text += "\npolicies:                           # the first one is what `run` simulates; each lays its own settings over all this\n";
    let cost_aware = PackerKind::CostAware.knows(facts.cluster.karpenter);
    match &facts.cluster.launcher {
        Launcher::Karpenter => {
            *text += "  - { name: today, autoscaler: karpenter }\n";
            if cost_aware {
                *text += "  - { name: cost-aware, autoscaler: karpenter, packer: cost-aware }   # what a better packing would save\n";
            }
            if !facts.regrouped.is_empty() {
                regrouping::policy(facts.regrouped, facts.cluster, text, |group, text| one_group(group, 6, text));
            }
            if facts.to_auto_mode {
                *text +=
                    "  - name: auto-mode                   # nodes that AWS runs, with NodePools of the same names\n";
                let _ = writeln!(text, "    autoscaler: eks-auto-mode\n    manifests: [{AUTO_MODE}]");
            }
            *text +=
                "  # another setting:  - { name: later, autoscaler: karpenter, manifests: [nodepools-later.yaml] }\n";
        }
        Launcher::EksAutoMode => {
            *text += "  - { name: today, autoscaler: eks-auto-mode }\n";
            let _ = writeln!(text, "  - name: karpenter                   # Karpenter of your own: edit {KARPENTER}");
            let _ = writeln!(text, "    autoscaler: karpenter\n    manifests: [{KARPENTER}]");
            *text += "    nodeGroups:                       # for Karpenter itself\n";
            let others = facts.groups.iter().filter(|group| group.name != auto_mode::HOME);
            others.chain(std::iter::once(&auto_mode::home(facts.cluster))).for_each(|group| one_group(group, 6, text));
        }
        Launcher::ClusterAutoscaler { flags, .. } => of_autoscaler(facts, &flags.stated, text),
        Launcher::Nobody => {
            *text += "  - { name: today, autoscaler: static }\n";
            *text += "  # with NodePools among the manifests:  - { name: karpenter, autoscaler: karpenter }\n";
        }
    }
}

/// The policies of a cluster with the Cluster Autoscaler: as it is, as it is without anybody, and with Karpenter.
fn of_autoscaler(facts: &Facts<'_>, flags: &[(String, Vec<String>)], text: &mut String) {
    let nodes = AutoscalerFlags::nodes_flag(facts.groups);
    let value = |values: &[String]| match values {
        [only] => quoted(only),
        values => format!("[{}]", values.iter().map(|value| quoted(value)).collect::<Vec<_>>().join(", ")),
    };
    let all = flags.iter().chain(&nodes).map(|(name, values)| format!("{name}: {}", value(values)));
    let all: Vec<String> = all.collect();
    *text += "  - name: today\n    autoscaler: cluster-autoscaler\n";
    if !all.is_empty() {
        let _ = writeln!(text, "    flags: {{ {} }}", all.join(", "));
    }
    let home = facts.migration.map(|migration| migration.home);
    let others = facts.groups.iter().enumerate().filter(|(position, _)| Some(*position) != home);
    let others: Vec<&Group> = others.map(|(_, group)| group).collect();
    if !others.is_empty() {
        *text += "    nodeGroups: &groups\n";
        others.iter().for_each(|group| one_group(group, 6, text));
    }
    *text += "  - name: fixed                       # nobody changes the node groups\n    autoscaler: static\n";
    if !others.is_empty() {
        *text += "    nodeGroups: *groups\n";
    }
    let Some(migration) = facts.migration else { return };
    let _ =
        writeln!(text, "  - name: karpenter                   # Karpenter in place of the groups: edit {KARPENTER}");
    let _ = writeln!(text, "    autoscaler: karpenter\n    manifests: [{KARPENTER}]");
    if migration.shrinks {
        *text += "    nodeGroups:                       # what stays for Karpenter itself\n";
        let (home, nodes) = (&facts.groups[migration.home], NODES);
        one_group(&Group { desired: nodes, sizes: (nodes, nodes), ..home.clone() }, 6, text);
    }
}

fn assumptions(facts: &Facts<'_>, file: &mut String) {
    let mut all: Vec<Assumption> = of_load(facts);
    if let Some((begin, nodes)) = facts.newcomers() {
        let text = format!(
            "Waits, churn and response times of the first {} do not count: {} without the nodes {nodes}.",
            facts.warm_up(),
            begin.replace('`', "")
        );
        all.push(text.into());
    }
    let text = if facts.found {
        "The run begins with the nodes and pods of the dump; what controllers keep in memory alone begins anew."
            .to_owned()
    } else {
        format!(
            "Warm-up: waits, churn, and response times of the first {} are excluded, because a running cluster has no start-up phase.",
            facts.warm_up()
        )
    };
    all.push(text.into());
    if facts.replayed.iter().any(|load| load.cpu_per_request.is_some()) {
        let assumed = facts.replayed.iter().filter(|load| load.cpu_is_assumed);
        let assumed: Vec<String> = assumed.map(|load| load.workload.clone()).collect();
        let names: Vec<&str> = assumed.iter().map(String::as_str).collect();
        let unless = match names.as_slice() {
            [] => String::new(),
            names => format!(" but for {}, which take {MILLISECONDS_PER_REQUEST} ms", some_of(names)),
        };
        let text = format!(
            "Of observed requests the CPU is known{unless}; a replica serves 16 at a time, and 20 ms of each are not CPU."
        );
        let part = (!assumed.is_empty()).then_some(Part::Workloads(assumed));
        all.push(Assumption { text, part });
    }
    all.extend(facts.notes.assumptions.iter().cloned());
    assumptions::text(&all, file);
}

/// What is assumed of loads that the dump lets guess.
fn of_load(facts: &Facts<'_>) -> Vec<Assumption> {
    let loads = &facts.demand.loads;
    if loads.is_empty() {
        return Vec::new();
    }
    let text = format!(
        "The load of {} is CPU in cores, of one look at what autoscalers measured. That moment is the day's peak, and nights have {:.0}% of it.",
        counted(loads.len() as u64, "workload", "workloads"),
        NIGHT * 100.0
    );
    let names = loads.iter().map(|load| load.workload.to_string()).collect();
    let mut all = vec![Assumption { text, part: Some(Part::Workloads(names)) }];
    all.push(
        "Load from a dump is a smooth curve without bursts or noise: pod waits, scaling delays and missing replicas are too low."
            .to_owned()
            .into(),
    );
    if !facts.found {
        all.push(format!("No load in the first {LOAD_AFTER}, while nodes boot.").into());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{number, time_of_day};

    #[test]
    fn numbers_are_as_short_as_they_may_be() {
        assert_eq!([0.04, 12.5, 99.0, 1234.4].map(number), ["0.04", "12.5", "99", "1234"]);
        assert_eq!(time_of_day(jiff::Timestamp::constant(1_767_225_600 + 14 * 3_600 + 5 * 60, 0)), "14h5m");
    }
}
