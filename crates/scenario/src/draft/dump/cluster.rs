//! What a dump says of the cluster as a whole: where it is, which releases it runs, who launches its nodes, and when it was
//! looked at.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cluster_autoscaler::{self, AutoscalerFlags, is_of_autoscaler};
use super::controllers::Controllers;
use super::karpenter::Settings;
use super::objects::{COMMAND, Object};
use super::vertical::Vertical;
use super::{Dump, Notes};
use crate::ScenarioError;
use crate::catalog::{Catalog, Region};
use crate::domain::versions::{ClusterAutoscalerVersion, major_and_minor};
use crate::domain::{KarpenterVersion, KubernetesVersion, Symbol};
use crate::draft::{Wishes, region};
use crate::tree::Node;

/// The cluster.
#[derive(Debug)]
pub(super) struct Cluster {
    /// Its region.
    pub region: Arc<Region>,
    /// The zones in which its nodes run.
    pub zones: Vec<Symbol>,
    /// The newest kubelet's release.
    pub kubernetes: KubernetesVersion,
    /// Karpenter's release.
    pub karpenter: KarpenterVersion,
    /// Who launches nodes.
    pub launcher: Launcher,
    /// How Karpenter is set up, where it launches nodes.
    pub settings: Settings,
    /// The Vertical Pod Autoscaler.
    pub vertical: Vertical,
    /// Other programs that bear on pods.
    pub controllers: Controllers,
    /// When the cluster was looked at, to the minute; `None` if nothing tells.
    pub seen: Option<jiff::Timestamp>,
}

/// Who launches nodes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Launcher {
    /// Karpenter: there are NodePools.
    Karpenter,
    /// EKS Auto Mode: all NodePools are its own.
    EksAutoMode,
    /// The Cluster Autoscaler.
    ClusterAutoscaler {
        /// Its release, if that is reproduced.
        version: Option<ClusterAutoscalerVersion>,
        /// Its flags.
        flags: AutoscalerFlags,
    },
    /// Nobody.
    Nobody,
}

impl Cluster {
    /// Reads the dump's nodes and Deployments.
    ///
    /// # Errors
    /// If neither a node nor a ClusterConfig names a region and none is given, or there are no prices for it.
    pub(super) fn new(
        dump: &Dump<'_>,
        wishes: &Wishes,
        catalog: &Catalog,
        notes: &mut Notes,
    ) -> Result<Self, ScenarioError> {
        let known: Vec<&str> = catalog.regions().collect();
        let of_nodes = most_frequent(dump.nodes.iter().filter_map(|node| region_of(node, &known)));
        let of_config = || described(dump, "region").map(str::to_owned);
        let Some(name) = wishes.region.clone().or(of_nodes).or_else(of_config) else {
            return Err(ScenarioError::new("no node of this dump names a region that has prices")
                .help(format!("add the nodes to the dump (`{COMMAND}`), or `--region us-east-1`")));
        };
        let region = region(&name, catalog)?;
        // What is assumed stands in this order.
        let seen = seen(dump, wishes.observed.is_some(), notes);
        let kubernetes = kubernetes(dump, notes);
        let karpenter = karpenter(dump, wishes, notes);
        let launcher = launcher(dump, notes);
        let stated = dump.karpenter.as_ref().filter(|_| launcher == Launcher::Karpenter);
        let settings = stated.map_or_else(Settings::default, |item| Settings::new(item, karpenter, notes));
        Ok(Self {
            zones: zones(dump, &region),
            region,
            seen,
            kubernetes,
            karpenter,
            launcher,
            settings,
            vertical: Vertical::new(dump, notes),
            controllers: Controllers::new(dump, notes),
        })
    }
}

impl Cluster {
    /// Adds zones that its node groups may use and that no node shows.
    pub(super) fn reach<'z>(&mut self, zones: impl Iterator<Item = &'z String>) {
        let known = |zone: &&String| self.region.zones.iter().any(|this_zone| this_zone.name.as_str() == *zone);
        let zones: Vec<Symbol> = zones.filter(known).map(|zone| Symbol::new(zone)).collect();
        self.zones.extend(zones);
        self.zones.sort_unstable_by_key(|zone| zone.as_str());
        self.zones.dedup();
    }
}

/// The word that comes most often; of equals the first in order.
fn most_frequent(words: impl Iterator<Item = String>) -> Option<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts.into_iter().rev().max_by_key(|(_, count)| *count).map(|(word, _)| word)
}

/// The region of a node: its label, or the zone of its machine without what follows the region.
fn region_of(node: &Object<'_>, known: &[&str]) -> Option<String> {
    const LABELS: [&str; 2] = ["topology.kubernetes.io/region", "failure-domain.beta.kubernetes.io/region"];
    if let Some(label) = LABELS.iter().find_map(|key| node.label(key)) {
        return Some(label.to_owned());
    }
    let zone = zone_of(node)?;
    known.iter().find(|region| zone.strip_prefix(**region).is_some_and(|rest| rest.len() == 1)).map(|&r| r.to_owned())
}

/// The zone of a node: its label, or that of its machine (`aws:///us-east-1a/i-0abc`).
pub(super) fn zone_of<'o>(node: &'o Object<'_>) -> Option<&'o str> {
    const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"];
    let of_machine = || node.text(&["spec", "providerID"])?.strip_prefix("aws:///")?.split('/').next();
    LABELS.iter().find_map(|key| node.label(key)).or_else(of_machine)
}

/// The zones of nodes and of the subnets that node classes have found; in order of name.
fn zones(dump: &Dump<'_>, region: &Region) -> Vec<Symbol> {
    let used = |zone: &Symbol| dump.nodes.iter().any(|node| zone_of(node) == Some(zone.as_str()));
    let mut zones: Vec<Symbol> = region.zones.iter().map(|zone| zone.name).filter(used).collect();
    zones.sort_unstable();
    zones
}

/// What the metadata of an eksctl ClusterConfig says of the cluster; it is there only where there are no nodes.
fn described<'d>(dump: &'d Dump<'_>, key: &str) -> Option<&'d str> {
    dump.carried.iter().find(|object| object.kind == "ClusterConfig")?.text(&["metadata", key])
}

pub(super) fn kubernetes(dump: &Dump<'_>, notes: &mut Notes) -> KubernetesVersion {
    let stated = dump.nodes.iter().filter_map(|node| node.text(&["status", "nodeInfo", "kubeletVersion"]));
    let minor = |text: &str| text.strip_prefix("v1.")?.split('.').next()?.parse::<u8>().ok();
    let of_config = || described(dump, "version")?.strip_prefix("1.")?.parse::<u8>().ok();
    let Some(newest) = stated.filter_map(minor).max().or_else(of_config) else {
        let assumed = KubernetesVersion::default();
        notes.assume(format!("No node shows its Kubernetes version; assuming {assumed}."));
        return assumed;
    };
    let nearest = newest.clamp(KubernetesVersion::OLDEST, KubernetesVersion::NEWEST);
    let version = KubernetesVersion::from_minor(nearest).unwrap_or_default();
    if nearest != newest {
        let (oldest, last) = (KubernetesVersion::OLDEST, KubernetesVersion::NEWEST);
        notes.warn(format!(
            "Kubernetes 1.{newest} is not supported; using {version} (supported: 1.{oldest} to 1.{last}; override with `versions.kubernetes`)"
        ));
        notes.assume(format!("Kubernetes 1.{newest} behaves as {version} does."));
    }
    version
}

/// The containers of a workload's template, or of a pod.
pub(super) fn containers<'o, 's>(object: &'o Object<'s>) -> &'o [Node<'s>] {
    let path: &[&str] = if object.kind == "Pod" { &["spec"] } else { &["spec", "template", "spec"] };
    object.at(path).and_then(|spec| spec.get("containers")).map_or(&[][..], Node::items)
}

/// The images of what a workload runs, for those who look for a program.
pub(super) fn images<'o>(object: &'o Object<'_>) -> impl Iterator<Item = &'o str> {
    containers(object).iter().filter_map(|container| container.get("image").and_then(Node::as_text))
}

/// The tag of an image, if it is Karpenter's.
pub(super) fn karpenter_tag(image: &str) -> Option<&str> {
    let image = image.split('@').next().unwrap_or(image);
    let (name, tag) = image.rsplit_once(':')?;
    (name.ends_with("karpenter/controller") || name.ends_with("/karpenter") || name == "karpenter").then_some(tag)
}

fn is_labelled_karpenter(object: &Object<'_>) -> bool {
    object.label("app.kubernetes.io/name") == Some("karpenter")
}

/// Whether a Deployment or pod is Karpenter's.
pub(super) fn is_of_karpenter(object: &Object<'_>) -> bool {
    is_labelled_karpenter(object) || images(object).any(|image| karpenter_tag(image).is_some())
}

/// The release that Karpenter's Deployment, or one of its pods, states: in the tag of the image, or in a label.
pub(super) fn karpenter_release<'o>(object: &'o Object<'_>) -> Option<&'o str> {
    let of_image = images(object).find_map(karpenter_tag).filter(|tag| major_and_minor(tag).is_some());
    let of_label = || object.label("app.kubernetes.io/version").filter(|_| is_labelled_karpenter(object));
    of_image.or_else(of_label)
}

/// The release of the dump's Karpenter: a Deployment goes before pods, which a dump may hold alone.
fn stated_karpenter<'o>(dump: &'o Dump<'_>) -> Option<&'o str> {
    let deployments = dump.carried.iter().filter(|object| object.kind == "Deployment");
    let pods = dump.running.iter().filter(|pod| is_of_karpenter(pod));
    deployments.chain(pods).find_map(karpenter_release)
}

/// The release that is reproduced and comes nearest.
pub(super) fn karpenter(dump: &Dump<'_>, wishes: &Wishes, notes: &mut Notes) -> KarpenterVersion {
    if let Some(wished) = wishes.karpenter {
        return wished;
    }
    let has = |kind: &str| dump.carried.iter().any(|object| object.kind == kind);
    let stated = stated_karpenter(dump).and_then(|text| Some((text.to_owned(), major_and_minor(text)?)));
    let Some((text, stated)) = stated else {
        let legacy = has("Provisioner") && !has("NodePool");
        let assumed = if legacy { KarpenterVersion::V0_22 } else { KarpenterVersion::default() };
        let managed = |object: &Object<'_>| object.kind != "NodePool" || is_of_auto_mode(object);
        if legacy || (has("NodePool") && !dump.carried.iter().all(managed)) {
            notes.assume(format!("No Deployment shows the Karpenter version; assuming {assumed}."));
        }
        return assumed;
    };
    if let Ok(number) = text.parse::<KarpenterVersion>()
        && number.reproduced() == number
    {
        return number;
    }
    let nearest = KarpenterVersion::nearest(stated);
    if nearest.release() != stated {
        let known = KarpenterVersion::known();
        notes.warn(format!(
            "Karpenter {text} is not supported; using {nearest} (supported: {known}; override with `--karpenter` or `versions.karpenter`)"
        ));
        notes.assume(format!("Karpenter {text} behaves as {nearest} does."));
    }
    nearest
}

/// Whether a NodePool is one of EKS Auto Mode.
pub(super) fn is_of_auto_mode(pool: &Object<'_>) -> bool {
    pool.text(&["spec", "template", "spec", "nodeClassRef", "group"]) == Some("eks.amazonaws.com")
}

fn launcher(dump: &Dump<'_>, notes: &mut Notes) -> Launcher {
    let mut own_pools = dump.carried.iter().filter(|object| ["NodePool", "Provisioner"].contains(&&*object.kind));
    let (of_auto_mode, of_karpenter): (Vec<_>, Vec<_>) = own_pools.by_ref().partition(|pool| is_of_auto_mode(pool));
    if of_karpenter.is_empty() && !of_auto_mode.is_empty() {
        return Launcher::EksAutoMode;
    }
    if !of_auto_mode.is_empty() {
        notes.warn("Karpenter runs beside EKS Auto Mode, whose NodePools launch nothing in the scenario: a policy has one of the two");
    }
    let pools = !of_karpenter.is_empty();
    let deployments = dump.carried.iter().filter(|object| object.kind == "Deployment");
    let autoscaler = deployments.into_iter().find(|deployment| images(deployment).any(is_of_autoscaler));
    match (pools, autoscaler) {
        (true, None) => Launcher::Karpenter,
        (true, Some(_)) => {
            notes.warn("Karpenter and the Cluster Autoscaler both run: node groups keep their size in the scenario");
            Launcher::Karpenter
        }
        (false, Some(autoscaler)) => cluster_autoscaler::launcher(autoscaler, notes),
        (false, None) => {
            notes.assume("The cluster runs neither Karpenter nor the Cluster Autoscaler, so no nodes are launched.");
            Launcher::Nobody
        }
    }
}

/// The flags with which the containers of a Deployment are started.
pub(super) fn stated_by<'o>(deployment: &'o Object<'_>) -> Vec<(&'o str, &'o str)> {
    let lists =
        containers(deployment).iter().flat_map(|container| [container.get("command"), container.get("args")]).flatten();
    let words: Vec<&str> = lists.flat_map(Node::items).filter_map(Node::as_text).collect();
    stated_flags(&words)
}

/// The flags among the words of a command line: `--flag=value`, `--flag value`, and `--flag` for one that is true.
fn stated_flags<'w>(words: &[&'w str]) -> Vec<(&'w str, &'w str)> {
    let mut flags = Vec::new();
    let mut words = words.iter().copied().peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let value = match flag.split_once('=') {
            Some(parts) => parts,
            None => (flag, words.next_if(|next| !next.starts_with('-')).unwrap_or("true")),
        };
        flags.push(value);
    }
    flags
}

/// The last sign of life of a node, to the minute before it. Without one, it is said what stands in, unless the run begins when an observation did.
fn seen(dump: &Dump<'_>, is_replayed: bool, notes: &mut Notes) -> Option<jiff::Timestamp> {
    let conditions = dump.nodes.iter().filter_map(|node| node.at(&["status", "conditions"])).flat_map(Node::items);
    let beat = |condition: &Node<'_>| condition.get("lastHeartbeatTime")?.as_text()?.parse::<jiff::Timestamp>().ok();
    let minute = |last: jiff::Timestamp| jiff::Timestamp::from_second(last.as_second().div_euclid(60) * 60).ok();
    let seen = conditions.filter_map(beat).max().and_then(minute);
    if seen.is_none() && !is_replayed {
        let start = crate::schema::whole::START;
        let why = if dump.nodes.is_empty() { "The dump has no nodes" } else { "No node has a `lastHeartbeatTime`" };
        notes.assume(format!(
            "{why}, so nothing says when the dump was made: the run starts at {start}, and the day's peak is at midnight UTC. Add `start`, and change `peak_at`."
        ));
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::stated_flags;

    #[test]
    fn flags_are_read_in_every_form() {
        let words = [
            "./cluster-autoscaler",
            "--expander=least-waste",
            "--balance-similar-node-groups",
            "--v",
            "4",
            "-scan-interval=20s",
        ];
        let read = stated_flags(&words);
        assert_eq!(
            read,
            [
                ("expander", "least-waste"),
                ("balance-similar-node-groups", "true"),
                ("v", "4"),
                ("scan-interval", "20s")
            ]
        );
    }
}
