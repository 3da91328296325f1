//! A dump under other names, so that it can be shown to others: whatever could name its owner has another name, the same
//! everywhere, and what no run reads is gone.
//!
//! A text stays only where its place or its form says that it names nobody (`words`): everything else is renamed, also what nobody
//! has thought of. New names sort as the old ones do, for names decide ties; a pod of a StatefulSet, the ReplicaSet of a Deployment
//! and the Job of a CronJob are still called after their owners.
//!
//! What must not live here: which labels, keys and words are known (`words`).

mod words;

pub(super) use words::is_dropped;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::aws::Described;
use super::clean::network_plugin_settings;
use super::cluster::karpenter_tag;
use super::cluster_autoscaler::is_of_autoscaler;
use super::objects::{Object, scalar};
use super::{CARRIED, CONFIGURATIONS, Notes, yaml};
use crate::domain::KubernetesVersion;
use crate::domain::words::counted;
use crate::draft::DraftFile;
use crate::tree::{Entries, Entry, Location, Node, NodeKind};
use nodecast_cluster_autoscaler::Flags;
use nodecast_cluster_autoscaler::flags::WITHOUT_EFFECT;

/// The file of the dump under other names.
pub(super) const FILE: &str = "anonymous.yaml";
/// Kinds beside those that are carried.
const MORE_KINDS: [&str; 4] = ["Node", "NodeClaim", "Machine", "ReplicaSet"];

/// Renames everything; texts that a map has no name for are noted first, and get one then.
#[derive(Default)]
struct Names {
    noted: BTreeSet<String>,
    given: BTreeMap<String, String>,
    /// Names that are made of others.
    derived: BTreeMap<String, Vec<Part>>,
}

/// A part of a name.
#[derive(Clone, Debug)]
enum Part {
    /// Another name.
    Name(String),
    /// What a controller added.
    Added(String),
}

/// The objects and the node groups under other names.
pub(super) fn anonymise<'s>(objects: Vec<Object<'s>>, described: &mut Described, notes: &mut Notes) -> Vec<Object<'s>> {
    let all = objects.len();
    let known = |object: &Object<'_>| {
        let kind = object.kind.as_str();
        let is_file = kind == "ConfigMap" || CONFIGURATIONS.contains(&kind);
        !is_file && (CARRIED.iter().any(|(carried, _)| *carried == kind) || MORE_KINDS.contains(&kind))
    };
    let mut objects: Vec<Object<'s>> = objects.into_iter().filter(known).collect();
    if objects.len() < all {
        let others = counted((all - objects.len()) as u64, "object", "objects");
        notes.warn(format!("{others} of kinds that no run reads, ConfigMaps, or configurations of eksctl or kube-scheduler, are left out of what is anonymised"));
    }
    let mut names = Names { derived: derived(&objects), ..Names::default() };
    // All names have to be known before the first is given, for new ones sort as the old ones do.
    for object in &objects {
        names.object(&object.node);
    }
    names.described(&mut described.clone());
    names.give();
    names.described(described);
    for object in &mut objects {
        let node = names.object(&object.node);
        *object = Object::new(object.source, Node { at: object.node.at, ..node }, object.kind.clone());
    }
    objects
}

/// The file of a dump under other names.
pub(super) fn file(objects: &[Object<'_>]) -> DraftFile {
    let mut text = String::new();
    objects.iter().for_each(|object| yaml::document(&object.node, &mut text));
    let about = "# A dump under other names, made by `nodecast init --from FILE --anonymise`: to be shown, and asked like the real one.\n";
    DraftFile { name: FILE.into(), text: about.to_owned() + &text }
}

/// Names that controllers make of other names, which a run takes apart again.
fn derived(objects: &[Object<'_>]) -> BTreeMap<String, Vec<Part>> {
    let mut all = BTreeMap::new();
    let mut claims: Vec<(String, String)> = Vec::new();
    for object in objects {
        if object.kind == "StatefulSet" {
            let templates = object.at(&["spec", "volumeClaimTemplates"]).map_or(&[][..], Node::items);
            let named = templates.iter().filter_map(|template| template.get("metadata")?.get("name")?.as_text());
            claims.extend(named.map(|template| (template.to_owned(), object.name.clone())));
        }
        let Some((kind, owner)) = object.controller() else { continue };
        let base = match (object.kind.as_str(), kind) {
            ("Pod", "ReplicaSet") => {
                let hash = object.label("pod-template-hash").or_else(|| object.label("rollouts-pod-template-hash"));
                let hash = hash.unwrap_or_default();
                if let Some(base) = owner.strip_suffix(hash).and_then(|base| base.strip_suffix('-')) {
                    let parts = vec![Part::Name(base.to_owned()), Part::Added(format!("-{hash}"))];
                    all.insert(owner.to_owned(), parts);
                }
                continue;
            }
            ("Pod", "StatefulSet") | ("Job", "CronJob") => owner,
            ("Pod", "Job") => {
                // The Job may itself be missing: it is called after its CronJob and a number.
                if let Some((base, number)) = owner.rsplit_once('-')
                    && is_number(number)
                {
                    let parts = vec![Part::Name(base.to_owned()), Part::Added(format!("-{number}"))];
                    all.insert(owner.to_owned(), parts);
                }
                continue;
            }
            _ => continue,
        };
        if let Some(number) = object.name.strip_prefix(base).and_then(|rest| rest.strip_prefix('-'))
            && is_number(number)
        {
            let parts = vec![Part::Name(base.to_owned()), Part::Added(format!("-{number}"))];
            all.insert(object.name.clone(), parts);
        }
    }
    let prefixes: Vec<(String, &(String, String))> =
        claims.iter().map(|claim| (format!("{}-{}-", claim.0, claim.1), claim)).collect();
    for object in objects.iter().filter(|object| object.kind == "PersistentVolumeClaim") {
        let of = prefixes.iter().find_map(|(prefix, of)| Some((object.name.strip_prefix(prefix.as_str())?, *of)));
        if let Some((number, (template, set))) = of.filter(|(number, _)| is_number(number)) {
            let (template, set) = (Part::Name(template.clone()), Part::Name(set.clone()));
            let parts = vec![template, Part::Added("-".to_owned()), set, Part::Added(format!("-{number}"))];
            all.insert(object.name.clone(), parts);
        }
    }
    all
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

impl Names {
    /// Gives every text that was noted its name.
    fn give(&mut self) {
        let width = self.noted.len().to_string().len();
        let name = |(rank, text): (usize, &String)| (text.clone(), format!("{}-{rank:0width$}", words::prefix(text)));
        self.given = self.noted.iter().enumerate().map(name).collect();
    }

    /// The other name of a text.
    fn name(&mut self, text: &str) -> String {
        if text.is_empty() || words::stays(text) {
            return text.to_owned();
        }
        // The metric of a KEDA trigger begins with the trigger's place.
        if let Some((place, rest)) =
            text.split_once('-').filter(|(place, _)| place.strip_prefix('s').is_some_and(is_number))
        {
            return format!("{place}-{}", self.name(rest));
        }
        if let Some(parts) = self.derived.get(text).cloned() {
            let part = |part: &Part| match part {
                Part::Name(name) => self.name(name),
                Part::Added(added) => added.clone(),
            };
            return parts.iter().map(part).collect();
        }
        match self.given.get(text) {
            Some(given) => given.clone(),
            None => {
                self.noted.insert(text.to_owned());
                text.to_owned()
            }
        }
    }

    /// The other name of a text that has to be an identifier.
    fn identifier(&mut self, text: &str) -> String {
        self.name(text).replace('-', "_")
    }

    fn label_key(&mut self, key: &str) -> String {
        if words::is_known_label(key) { key.to_owned() } else { self.name(key) }
    }

    fn label_value(&mut self, key: &str, value: &str) -> String {
        if words::has_known_values(key) || words::says_how_bought(key, value) {
            return value.to_owned();
        }
        self.name(value)
    }

    /// The id of a machine or a volume, behind its zone (`aws:///us-east-1a/i-0abc`).
    fn machine(&mut self, text: &str) -> String {
        let (place, id) = text.rsplit_once('/').map_or(("", text), |(place, id)| (place, id));
        let id = match id.split_once('-') {
            Some((kind @ ("i" | "vol"), _)) => format!("{kind}-{}", self.name(id)),
            _ => self.name(id),
        };
        match place {
            "" => id,
            place if place.starts_with("aws://") => format!("{place}/{id}"),
            place => format!("{}/{id}", self.name(place)),
        }
    }

    /// An image: those by which a program is known keep their name and release.
    fn image(&mut self, text: &str) -> String {
        let release = |tag: &str| tag.chars().all(|c| c.is_ascii_digit() || c == '.' || c == 'v');
        if let Some(tag) = karpenter_tag(text).filter(|tag| release(tag)) {
            return format!("public.ecr.aws/karpenter/controller:{tag}");
        }
        if is_of_autoscaler(text) {
            let tag = text.split('@').next().and_then(|part| Some(part.rsplit_once(':')?.1)).filter(|tag| release(tag));
            return tag.map_or_else(
                || "registry.k8s.io/autoscaling/cluster-autoscaler".to_owned(),
                |tag| format!("registry.k8s.io/autoscaling/cluster-autoscaler:{tag}"),
            );
        }
        let text = text.strip_prefix("docker.io/").unwrap_or(text);
        let text = text.strip_prefix("library/").unwrap_or(text);
        self.name(text.strip_suffix(":latest").unwrap_or(text))
    }

    /// An image as a node reports it.
    fn reported_image(&mut self, text: &str) -> String {
        let renamed = self.image(text);
        if renamed.contains('/') { renamed } else { format!("docker.io/library/{renamed}:latest") }
    }

    /// A whole object.
    fn object<'s>(&mut self, object: &Node<'s>) -> Node<'s> {
        self.value("", object)
    }

    /// The value under a key, under other names.
    fn value<'s>(&mut self, key: &str, value: &Node<'s>) -> Node<'s> {
        let kind = match &value.kind {
            NodeKind::Null => NodeKind::Null,
            NodeKind::Scalar { text, plain } => self.scalar(key, text, *plain),
            NodeKind::Seq(items) => {
                // Operators report conditions of their own.
                let kept = |item: &&Node<'s>| {
                    key != "conditions"
                        || item.get("type").and_then(Node::as_text).is_some_and(words::is_known_condition)
                };
                NodeKind::Seq(items.iter().filter(kept).map(|item| self.item(key, item)).collect())
            }
            NodeKind::Map(entries) => return self.map(key, value, entries),
        };
        Node { kind, at: value.at }
    }

    /// An item of the list under a key.
    fn item<'s>(&mut self, key: &str, item: &Node<'s>) -> Node<'s> {
        match key {
            "triggers" => self.trigger(item),
            // Of a LimitRange.
            "limits" => self.value("limit", item),
            "containerStatuses" => ended(item),
            "names" => match item.as_text() {
                Some(text) => Node { kind: text_of(self.reported_image(text), false), at: item.at },
                None => self.value(key, item),
            },
            _ if key.ends_with("SelectorTerms") => {
                let mut value = self.value(key, item);
                if let NodeKind::Map(entries) = &mut value.kind
                    && entries.is_empty()
                {
                    entries.push(Entry::new(Cow::Borrowed("id"), Location::NONE, scalar("by-tags")));
                }
                value
            }
            "matchLabelKeys" | "mismatchLabelKeys" => match item.as_text() {
                Some(text) => Node { kind: text_of(self.label_key(text), true), at: item.at },
                None => self.value(key, item),
            },
            _ => self.value(key, item),
        }
    }

    fn scalar<'s>(&mut self, key: &str, text: &Cow<'s, str>, plain: bool) -> NodeKind<'s> {
        let renamed = match key {
            "image" => self.image(text),
            "providerID" | "volumeID" | "volumeHandle" => self.machine(text),
            "topologyKey" => self.label_key(text),
            "formula" => self.formula(text),
            "podSelector" => self.selector_text(text),
            "apiVersion" | "apiGroup" | "group" if words::is_known_group(text) => text.to_string(),
            "kind" if words::is_known_kind(text) => text.to_string(),
            "osImage" => words::system(text).unwrap_or_else(|| self.name(text)),
            "driver" | "driverName" | "provisioner" if words::is_known_driver(text) => text.to_string(),
            _ if words::is_of_enumeration(key) || words::names_nobody(text) => text.to_string(),
            _ => self.name(text),
        };
        text_of(renamed, plain)
    }

    fn map<'s>(&mut self, key: &str, node: &Node<'s>, entries: &[Entry<'s>]) -> Node<'s> {
        let is_expression = node.get("key").is_some_and(|node| node.as_text().is_some());
        let kept: Entries<'s> = match key {
            "annotations" => entries.iter().filter_map(|entry| self.annotation(entry)).collect(),
            "parameters" => entries.iter().filter(|entry| words::is_known_parameter(&entry.key)).cloned().collect(),
            _ if words::holds_labels(key) && entries.iter().all(|entry| entry.value.as_text().is_some()) => {
                entries.iter().map(|entry| self.label(entry)).collect()
            }
            _ if words::holds_resources(key) => entries
                .iter()
                .map(|entry| {
                    let name = if words::is_known_resource(&entry.key) {
                        entry.key.to_string()
                    } else {
                        self.name(&entry.key)
                    };
                    Entry::new(name.into(), entry.key_at, self.value("", &entry.value))
                })
                .collect(),
            _ if is_expression => self.expression(node, entries),
            _ => {
                let of_autoscaler = node.get("image").and_then(Node::as_text).is_some_and(is_of_autoscaler);
                let is_known = node.get("apiVersion").and_then(Node::as_text).is_some_and(words::is_known_group);
                let renamed = |entry: &Entry<'s>| match &*entry.key {
                    "kind" if is_known => entry.clone(),
                    key => Entry::new(entry.key.clone(), entry.key_at, self.value(key, &entry.value)),
                };
                let mut all: Entries<'s> =
                    entries.iter().filter(|entry| !words::is_dropped(&entry.key)).map(renamed).collect();
                if let Some(kept) = network_plugin_settings(node) {
                    all.push(Entry::new("env".into(), kept.at, kept));
                }
                if of_autoscaler {
                    let lines = entries.iter().filter(|entry| ["command", "args"].contains(&&*entry.key));
                    all.extend(lines.map(|line| self.flags(line)));
                }
                all
            }
        };
        Node { kind: NodeKind::Map(kept), at: node.at }
    }

    fn label<'s>(&mut self, entry: &Entry<'s>) -> Entry<'s> {
        let value = entry.value.as_text().unwrap_or_default();
        let value = Node { kind: text_of(self.label_value(&entry.key, value), false), at: entry.value.at };
        Entry::new(self.label_key(&entry.key).into(), entry.key_at, value)
    }

    /// The flags of the Cluster Autoscaler that a run reads, of one list of words; others may name anything.
    fn flags<'s>(&mut self, entry: &Entry<'s>) -> Entry<'s> {
        let items = entry.value.items().iter().filter_map(|item| self.flag(item)).collect();
        Entry::new(entry.key.clone(), entry.key_at, Node { kind: NodeKind::Seq(items), at: entry.value.at })
    }

    /// One of them. What it lists is called as the labels, taints and schedulers that are meant.
    fn flag<'s>(&mut self, item: &Node<'s>) -> Option<Node<'s>> {
        let (name, value) = item.as_text()?.strip_prefix("--")?.split_once('=')?;
        let is_read = Flags::parse(KubernetesVersion::default(), [(name, value)]).is_ok();
        if WITHOUT_EFFECT.contains(&name) || !is_read {
            return None;
        }
        let words = value.split(',');
        let renamed: Vec<String> = match name {
            "balancing-label" | "balancing-ignore-label" | "startup-taint" | "ignore-taint" | "status-taint" => {
                words.map(|word| self.label_key(word)).collect()
            }
            "bypassed-scheduler-names" | "allowed-scheduler-names" => words.map(|word| self.name(word)).collect(),
            "nodes" => {
                let (limits, group) = value.rsplit_once(':')?;
                vec![format!("{limits}:{}", self.auto_scaling_group(group))]
            }
            "node-group-auto-discovery" => vec![self.discovery(value)?],
            // Another name begins otherwise than the one whose place it takes.
            "startup-taint-prefix" => words.filter(|word| words::is_known_label(word)).map(str::to_owned).collect(),
            _ => return Some(item.clone()),
        };
        let flag = format!("--{name}={}", renamed.join(","));
        (!renamed.is_empty()).then(|| Node { kind: text_of(flag, false), at: item.at })
    }

    /// The other name of an Auto Scaling group; EKS calls one after its node group, with a UUID behind it.
    fn auto_scaling_group(&mut self, name: &str) -> String {
        const UUID: usize = 36;
        let of_eks = name.strip_prefix("eks-").and_then(|rest| {
            let (group, id) = rest.split_at_checked(rest.len().checked_sub(UUID + 1)?)?;
            (!group.is_empty() && id.starts_with('-')).then_some(group)
        });
        match of_eks {
            Some(group) => format!("eks-{}-{}", self.name(group), "00000000-0000-0000-0000-000000000000"),
            None => self.name(name),
        }
    }

    /// Tags by which groups are found, as `asg:tag=key,key=value`: the last part of a key may name the cluster.
    fn discovery(&mut self, value: &str) -> Option<String> {
        const PREFIXES: [&str; 2] = ["k8s.io/cluster-autoscaler/", "kubernetes.io/cluster/"];
        let mut key = |key: &str| match PREFIXES.iter().find_map(|prefix| Some((prefix, key.strip_prefix(prefix)?))) {
            Some((_, "enabled")) => key.to_owned(),
            Some((prefix, cluster)) => format!("{prefix}{}", self.name(cluster)),
            None => self.name(key),
        };
        let tags = value.strip_prefix("asg:tag=")?.split(',').map(|tag| match tag.split_once('=') {
            Some((item, value @ ("true" | "owned" | "shared"))) => format!("{}={value}", key(item)),
            Some((item, _)) => key(item),
            None => key(tag),
        });
        Some(format!("asg:tag={}", tags.collect::<Vec<String>>().join(",")))
    }

    /// An annotation that a run reads.
    fn annotation<'s>(&mut self, entry: &Entry<'s>) -> Option<Entry<'s>> {
        if !words::is_known_annotation(&entry.key) {
            return None;
        }
        let value =
            if words::has_known_values(&entry.key) { entry.value.clone() } else { self.value("", &entry.value) };
        Some(Entry::new(entry.key.clone(), entry.key_at, value))
    }

    /// A requirement, a taint or a toleration: a label's key with its value or values.
    fn expression<'s>(&mut self, node: &Node<'s>, entries: &[Entry<'s>]) -> Entries<'s> {
        let key = node.get("key").and_then(Node::as_text).unwrap_or_default().to_owned();
        let mut renamed = |entry: &Entry<'s>| {
            let texts = |names: &mut Self, item: &Node<'s>| match item.as_text() {
                Some(text) => Node { kind: text_of(names.label_value(&key, text), false), at: item.at },
                None => names.value("", item),
            };
            let value = match (entry.key.as_ref(), &entry.value.kind) {
                ("key", _) => Node { kind: text_of(self.label_key(&key), true), at: entry.value.at },
                ("values", NodeKind::Seq(items)) => {
                    let items = items.iter().map(|item| texts(self, item)).collect();
                    Node { kind: NodeKind::Seq(items), at: entry.value.at }
                }
                ("value", NodeKind::Scalar { .. }) => texts(self, &entry.value),
                _ => self.value(&entry.key, &entry.value),
            };
            Entry::new(entry.key.clone(), entry.key_at, value)
        };
        entries.iter().map(&mut renamed).collect()
    }

    /// A trigger of KEDA: where it looks and what it asks are names; what it aims at are numbers.
    fn trigger<'s>(&mut self, trigger: &Node<'s>) -> Node<'s> {
        let NodeKind::Map(entries) = &trigger.kind else { return self.value("triggers", trigger) };
        let renamed = |entry: &Entry<'s>| {
            let value = match (entry.key.as_ref(), &entry.value.kind) {
                ("name", NodeKind::Scalar { text, .. }) => {
                    Node { kind: text_of(self.identifier(text), true), at: entry.value.at }
                }
                ("type", NodeKind::Scalar { text, .. }) if !words::is_known_trigger(text) => {
                    Node { kind: text_of(self.name(text), true), at: entry.value.at }
                }
                ("metadata", NodeKind::Map(all)) => {
                    let all = all.iter().map(|item| self.of_trigger(item)).collect();
                    Node { kind: NodeKind::Map(all), at: entry.value.at }
                }
                _ => self.value(&entry.key, &entry.value),
            };
            Entry::new(entry.key.clone(), entry.key_at, value)
        };
        Node { kind: NodeKind::Map(entries.iter().map(renamed).collect()), at: trigger.at }
    }

    fn of_trigger<'s>(&mut self, entry: &Entry<'s>) -> Entry<'s> {
        let value = match entry.value.as_text() {
            Some(text)
                if !words::is_of_enumeration(&entry.key)
                    && !words::names_nobody(text)
                    && entry.key != "podSelector" =>
            {
                Node { kind: text_of(self.identifier(text), false), at: entry.value.at }
            }
            _ => self.value(&entry.key, &entry.value),
        };
        Entry::new(entry.key.clone(), entry.key_at, value)
    }

    /// A formula over triggers, which it names.
    fn formula(&mut self, text: &str) -> String {
        let mut renamed = String::new();
        let mut word = String::new();
        let mut letters = text.chars().chain(std::iter::once('\0')).peekable();
        while let Some(c) = letters.next() {
            if c.is_ascii_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && c != '(';
            let kept = !is_name || ["and", "or", "not", "true", "false"].contains(&word.as_str());
            renamed += &if kept { std::mem::take(&mut word) } else { self.identifier(&std::mem::take(&mut word)) };
            if letters.peek().is_some() || c != '\0' {
                renamed.push(c);
            }
        }
        renamed
    }

    /// A selector in one line: `app=web,tier=front`.
    fn selector_text(&mut self, text: &str) -> String {
        let term = |term: &str| match term.split_once('=') {
            Some((key, value)) => format!("{}={}", self.label_key(key), self.label_value(key, value)),
            None => self.name(term),
        };
        text.split(',').map(term).collect::<Vec<_>>().join(",")
    }

    /// What the AWS CLI printed.
    fn described(&mut self, described: &mut Described) {
        for group in &mut described.groups {
            group.name = self.name(&group.name);
            group.instances.iter_mut().for_each(|id| *id = self.machine(id));
            for (key, value) in &mut group.tags {
                (*key, *value) = self.tag(key, value);
            }
            group.tags.retain(|(key, _)| !key.is_empty());
        }
        for managed_group in &mut described.managed {
            managed_group.name = self.name(&managed_group.name);
            managed_group.cluster = self.name(&managed_group.cluster);
            managed_group.groups.iter_mut().for_each(|group| *group = self.name(group));
            for (key, value) in &mut managed_group.labels {
                (*key, *value) = (self.label_key(key), self.label_value(key, value));
            }
            for [key, value, _] in &mut managed_group.taints {
                (*key, *value) = (self.label_key(key), self.label_value(key, value));
            }
        }
    }

    /// A tag of an Auto Scaling group; one that nobody reads has no key then.
    fn tag(&mut self, key: &str, value: &str) -> (String, String) {
        if words::NAMING_TAGS.contains(&key) {
            return (key.to_owned(), self.name(value));
        }
        if let Some((prefix, label)) = words::split(key, &words::TEMPLATE_TAGS) {
            let (value, effect) = value.split_once(':').map_or((value, None), |(value, effect)| (value, Some(effect)));
            let value = self.label_value(label, value);
            let value = effect.map_or_else(|| value.clone(), |effect| format!("{value}:{effect}"));
            return (format!("{prefix}{}", self.label_key(label)), value);
        }
        match words::split(key, &words::CLUSTER_TAGS) {
            Some((_, "enabled")) => (key.to_owned(), "true".to_owned()),
            Some((prefix, cluster)) if !cluster.contains('/') => {
                (format!("{prefix}{}", self.name(cluster)), "owned".to_owned())
            }
            _ => (String::new(), String::new()),
        }
    }
}

/// What is left of a container's status: when it ended.
fn ended<'s>(status: &Node<'s>) -> Node<'s> {
    let mut kept = None;
    if let Some(at) = status.get("state").and_then(|status| status.get("terminated")?.get("finishedAt")) {
        kept = Some(at.clone());
        for key in ["finishedAt", "terminated", "state"] {
            let entry = kept.take().map(|item| Entry::new(Cow::Borrowed(key), Location::NONE, item));
            kept = Some(Node { kind: NodeKind::Map(entry.into_iter().collect()), at: status.at });
        }
    }
    kept.unwrap_or(Node { kind: NodeKind::Map(Entries::default()), at: status.at })
}

fn text_of<'s>(text: String, plain: bool) -> NodeKind<'s> {
    // What was a number or a word of YAML stays what it was.
    NodeKind::Scalar { text: text.into(), plain }
}
