//! Levers of EBS volumes: type, I/O operations, and throughput of StorageClasses and node classes; size of the volumes of nodes.
//!
//! A run has no metric of disk use. A level therefore keeps the performance that is ordered today, or its label says that it does not.
//! Volumes of claims keep their size.
//!
//! Source: EBS user guide, `general-purpose` and `provisioned-iops` (2026): gp3 has 3,000 IOPS and 125 MiB/s at no charge; gp2 has 3 IOPS
//! per GiB, 100 to 16,000, and 128 MiB/s up to 170 GiB, else 250; an operation of io1 and io2 moves 16 KiB at the ordered rate.

use std::collections::BTreeMap;

use super::groups::place;
use super::{BaselineFacts, Kind, Level, Lever, OBJECTS_MAX, dearest};
use crate::axes::Setting;
use crate::domain::pod::{ClaimSource, VolumeRef};
use crate::domain::volumes::{ebs_iops, whole_gib};
use crate::domain::{Symbol, well_known};
use crate::scenario::document::Content;

/// Performance that comes with a gp3 volume.
const FREE: Performance = Performance { iops: 3_000, throughput: 125 };
/// GiB that are tried for volumes of nodes. The second is the size that Karpenter orders by default, and the size of AWS's images.
const SIZES: [i64; 2] = [50, 20];
/// GiB of the operating system, and the size of an image on disk relative to its compressed size.
const SYSTEM_GIB: i64 = 8;
const UNPACKED: i64 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Performance {
    iops: i64,
    /// MiB per second.
    throughput: i64,
}

/// A volume as an object states it: the path of the map, the keys that it has, and the keys of the performance.
struct Order<'o> {
    path: String,
    stated: &'o Content,
    /// The keys of type, operations, operations per GiB, and throughput.
    keys: [&'static str; 4],
    /// GiB of the smallest and of the largest volume.
    gib: (i64, i64),
}

impl Order<'_> {
    /// The key as the object spells it, with its text.
    fn entry(&self, key: &str) -> Option<(&str, String)> {
        let Content::Map(entries) = self.stated else { return None };
        let (name, value) = entries.iter().find(|(name, _)| !key.is_empty() && name.eq_ignore_ascii_case(key))?;
        Some((name, value.as_text().filter(|text| text != "null")?))
    }

    fn number(&self, key: &str) -> i64 {
        self.entry(key).and_then(|(_, text)| text.parse().ok()).unwrap_or(0)
    }

    fn volume_type(&self) -> String {
        self.entry(self.keys[0]).map_or_else(|| "gp3".to_owned(), |(_, text)| text.to_ascii_lowercase())
    }

    /// The performance of the type today; `None` for types that gp3 does not replace.
    fn performance(&self) -> Option<Performance> {
        let (least, most) = self.gib;
        let ordered = self.number(self.keys[1]).max(self.number(self.keys[2]).saturating_mul(most));
        match self.volume_type().as_str() {
            "gp3" => Some(Performance {
                iops: ordered.max(FREE.iops),
                throughput: self.number(self.keys[3]).max(FREE.throughput),
            }),
            "gp2" => Some(Performance {
                iops: most.saturating_mul(3).clamp(FREE.iops, 16_000),
                throughput: if most > 170 { 250 } else { FREE.throughput },
            }),
            "io1" | "io2" => {
                let limits = ebs_iops("gp3")?;
                let fits = ordered <= limits.most && ordered <= limits.per_gib.saturating_mul(least.max(6));
                let throughput = (ordered / 64).clamp(FREE.throughput, 2_000);
                fits.then_some(Performance { iops: ordered.max(FREE.iops), throughput })
            }
            _ => None,
        }
    }

    /// The level that orders gp3 with this performance.
    fn level(&self, label: String, performance: Performance) -> Level {
        Level { label, sets: self.sets(performance), requirements: Vec::new() }
    }

    /// The values of a gp3 volume with this performance.
    fn sets(&self, performance: Performance) -> Setting {
        let [volume_type, iops, per_gib, throughput] = self.keys;
        if !per_gib.is_empty() {
            return self.parameters(performance);
        }
        let mut sets = vec![(self.path(volume_type), "gp3".to_owned())];
        let mut put = |key: &str, value: i64, free: i64| {
            if value > free {
                sets.push((self.path(key), value.to_string()));
            } else if self.entry(key).is_some() {
                sets.push((self.path(key), "null".to_owned()));
            }
        };
        put(iops, performance.iops, FREE.iops);
        put(throughput, performance.throughput, FREE.throughput);
        if self.entry(volume_type).is_some_and(|(_, text)| text.eq_ignore_ascii_case("gp3")) {
            sets.remove(0);
        }
        sets
    }

    /// All parameters of a class. They are texts, and a parameter without a value is not the same as none.
    fn parameters(&self, performance: Performance) -> Setting {
        let [volume_type, iops, _, throughput] = self.keys;
        let Content::Map(stated) = self.stated else { return Setting::new() };
        let is_kept = |name: &str| self.keys.iter().all(|key| !name.eq_ignore_ascii_case(key));
        let mut all: Vec<_> = stated.iter().filter(|(name, _)| is_kept(name)).cloned().collect();
        let named = |key: &str| self.entry(key).map_or(key, |(name, _)| name).to_owned();
        all.push((named(volume_type), Content::text("gp3")));
        for (key, value, free) in
            [(iops, performance.iops, FREE.iops), (throughput, performance.throughput, FREE.throughput)]
        {
            if value > free {
                all.push((named(key), Content::text(&value.to_string())));
            }
        }
        vec![(self.path.clone(), Content::Map(all).on_a_line())]
    }

    fn path(&self, key: &str) -> String {
        format!("{}.{}", self.path, self.entry(key).map_or(key, |(name, _)| name))
    }

    /// The lever of type and performance.
    fn lever(&self, subject: String) -> Option<Lever> {
        let today = self.performance()?;
        let volume_type = self.volume_type();
        let shown =
            |performance: Performance| format!("{} IOPS and {} MiB/s", performance.iops, performance.throughput);
        let mut levels = Vec::new();
        if volume_type != "gp3" {
            levels.push(self.level(format!("gp3 with {}, as today", shown(today)), today));
        }
        if matches!(volume_type.as_str(), "gp2" | "gp3") && today != FREE {
            let label = format!("gp3 with the free {}, if the volumes use no more: no metric here tells", shown(FREE));
            levels.push(self.level(label, FREE));
        }
        let today = format!("{volume_type} with {}", shown(today));
        (!levels.is_empty()).then_some(Lever { kind: Kind::Volumes, subject, today, levels })
    }

    /// The lever of the size of a node's volume, whose key is `volumeSize`. A small volume of io1 or io2 allows few operations, so that it
    /// becomes gp3 with today's rate.
    fn size(&self, subject: String, known: &BaselineFacts<'_>) -> Option<Lever> {
        let text = self.entry("volumeSize")?.1;
        let unit = if text.ends_with('i') { "Gi" } else { "" };
        let images: i64 = known.scenario.images.sizes.values().sum();
        let needed = SYSTEM_GIB + UNPACKED * (images >> 30) + 1;
        let performance = self.performance().filter(|_| matches!(self.volume_type().as_str(), "io1" | "io2"));
        let per_gib = ebs_iops("gp3")?.per_gib;
        let fits = |size: i64| performance.is_none_or(|today| today.iops <= per_gib.saturating_mul(size));
        let tried = SIZES.into_iter().filter(|size| *size < self.gib.0 && *size >= needed && fits(*size));
        let level = |size: i64| {
            let mut sets = vec![(self.path("volumeSize"), format!("{size}{unit}"))];
            sets.extend(performance.map(|today| self.sets(today)).unwrap_or_default());
            let of_type = performance.map_or("", |_| " of gp3 with today's IOPS");
            Level {
                label: format!("{size} GiB{of_type}, if images, logs and emptyDirs fit"),
                sets,
                requirements: Vec::new(),
            }
        };
        let levels: Vec<Level> = tried.map(level).collect();
        let today = format!("{} GiB", self.gib.0);
        (!levels.is_empty()).then(|| Lever { kind: Kind::Volumes, subject: format!("{subject}, size"), today, levels })
    }
}

/// Levers of the volumes of claims and of nodes.
pub(super) fn levers(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    classes(known, all);
    devices(known, all);
    groups(known, all);
}

/// The objects of a kind, by name.
fn objects<'k>(known: &'k BaselineFacts<'_>, kind: &'static str) -> impl Iterator<Item = (String, &'k Content)> {
    let named = move |content: &'k Content| {
        let name = content.object_name()?;
        Some((name.strip_prefix(kind)?.strip_prefix(' ')?.to_owned(), content))
    };
    known.objects.iter().filter_map(named)
}

/// StorageClasses and VolumeAttributesClasses, those with the most claimed GiB.
fn classes(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    for kind in ["StorageClass", "VolumeAttributesClass"] {
        let mut levers = Vec::new();
        for (name, content) in objects(known, kind) {
            let Some(stated) = content.get("parameters") else { continue };
            let (gib, total) = sizes(known, kind, &name);
            let keys = ["type", "iops", "iopsPerGB", "throughput"];
            let order = Order { path: format!("{kind}[{name}].parameters"), stated, keys, gib };
            levers.extend(order.lever(format!("{kind} {name}")).map(|lever| (total, lever)));
        }
        levers.sort_by_key(|(total, _)| std::cmp::Reverse(*total));
        all.extend(levers.into_iter().take(OBJECTS_MAX).map(|(_, lever)| lever));
    }
}

/// GiB of the smallest and of the largest claim of a class, and of all of them; of one without claims of a known size, those of a small volume.
fn sizes(known: &BaselineFacts<'_>, kind: &str, name: &str) -> ((i64, i64), i64) {
    let manifests = &known.policy.manifests;
    let is_default = |class: &Symbol| {
        manifests
            .storage_classes
            .iter()
            .any(|storage_class| storage_class.name == *class && storage_class.default_class)
    };
    let class = Symbol::new(name);
    let of_class = |symbol: Option<Symbol>, attributes: Option<Symbol>| match kind {
        "StorageClass" => symbol.map_or_else(|| is_default(&class), |symbol| symbol == class),
        _ => attributes == Some(class),
    };
    let claims = manifests.volume_claims.iter().filter(|claim| of_class(claim.class, claim.attributes));
    let claims = claims.filter_map(|claim| claim.gib());
    let volumes = manifests.volumes.iter().filter(|volume| of_class(volume.class, volume.attributes));
    let volumes = volumes.filter_map(|volume| volume.gib);
    let of_pod = |volume: &&VolumeRef| match volume.source {
        ClaimSource::Named => false,
        ClaimSource::Ephemeral(ephemeral) => {
            of_class((ephemeral != well_known::EMPTY).then_some(ephemeral), volume.attributes)
        }
        ClaimSource::Template(template) => of_class(template, volume.attributes),
    };
    let templates = manifests.stateful_sets.iter().map(|set| (&*set.template, set.replicas));
    let deployments = manifests.deployments.iter().map(|deployment| (&*deployment.template, deployment.replicas));
    let made = templates.chain(deployments).flat_map(|(template, replicas)| {
        let volumes = template.volumes.iter().filter(of_pod).filter_map(|volume| volume.bytes.and_then(whole_gib));
        volumes.map(move |gib| (i64::from(gib), i64::from(replicas.unwrap_or(1))))
    });
    let all: Vec<(i64, i64)> = claims.chain(volumes).map(|gib| (i64::from(gib), 1)).chain(made).collect();
    let gib = || all.iter().map(|pair| pair.0);
    let total = all.iter().map(|(gib, count)| gib.saturating_mul(*count)).fold(0, i64::saturating_add);
    ((gib().min().unwrap_or(20), gib().max().unwrap_or(20)), total)
}

/// The keys of an EC2NodeClass, and those of eksctl.
const OF_CLASS: [&str; 4] = ["volumeType", "iops", "", "throughput"];
const OF_GROUP: [&str; 4] = ["volumeType", "volumeIOPS", "", "volumeThroughput"];

/// Volumes of the EC2NodeClasses whose nodes cost most.
fn devices(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let mut costs: BTreeMap<String, f64> = BTreeMap::new();
    for pool in &known.policy.manifests.node_pools {
        let cost = known.by_origin.get(pool.name.as_str()).copied().unwrap_or(0.0);
        *costs.entry(pool.node_class.to_string()).or_default() += cost;
    }
    let names: Vec<String> = objects(known, "EC2NodeClass").map(|(name, _)| name).collect();
    let chosen = dearest(names.iter().map(String::as_str), &costs, OBJECTS_MAX);
    for (name, content) in objects(known, "EC2NodeClass").filter(|(name, _)| chosen.contains(&name.as_str())) {
        let mappings = content.get("spec").and_then(|spec| spec.get("blockDeviceMappings"));
        for (place, mapping) in mappings.map_or(&[][..], Content::items).iter().enumerate() {
            let Some(stated) = mapping.get("ebs") else { continue };
            let path = format!("EC2NodeClass[{name}].spec.blockDeviceMappings[{place}].ebs");
            let gib = stated.get("volumeSize").and_then(Content::as_text).and_then(|text| gib(&text)).unwrap_or(20);
            let device = mapping.get("deviceName").and_then(Content::as_text).unwrap_or_default();
            let order = Order { path, stated, keys: OF_CLASS, gib: (gib, gib) };
            let subject = format!("EC2NodeClass {name}, {device}");
            all.extend(order.lever(subject.clone()));
            let of_windows = known
                .policy
                .manifests
                .node_classes
                .iter()
                .any(|class| class.name.as_str() == name && class.ami_family.is_windows());
            all.extend(order.size(subject, known).filter(|_| !of_windows));
        }
    }
}

/// A size as Karpenter and eksctl state it, in GiB.
fn gib(text: &str) -> Option<i64> {
    let (number, scale) = match text.strip_suffix("Gi").or_else(|| text.strip_suffix('G')) {
        Some(number) => (number, 1),
        None => text.strip_suffix("Ti").or_else(|| text.strip_suffix('T')).map_or((text, 1), |number| (number, 1_024)),
    };
    Some(number.parse::<i64>().ok()?.saturating_mul(scale))
}

/// Volumes of the node groups that cost most.
fn groups(known: &BaselineFacts<'_>, all: &mut Vec<Lever>) {
    let groups = &known.policy.manifests.node_groups;
    let chosen = dearest(groups.iter().map(|group| group.name.as_str()), known.by_origin, OBJECTS_MAX);
    for group in groups.iter().filter(|group| chosen.contains(&group.name.as_str())) {
        let Some(path) = place(known, group).map(|place| place.path) else { continue };
        let gib = group.volume_bytes >> 30;
        let mut entries = vec![("volumeSize".to_owned(), Content::text(&gib.to_string()))];
        entries.extend([("volumeType".to_owned(), Content::text(group.disk.type_name()))]);
        let numbers = [("volumeIOPS", group.disk.iops), ("volumeThroughput", group.disk.throughput_mib)];
        let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
        entries.extend(numbers.map(|(key, number)| (key.to_owned(), Content::text(&number.to_string()))));
        let stated = Content::Map(entries);
        let order = Order { path, stated: &stated, keys: OF_GROUP, gib: (gib, gib) };
        let subject = format!("node group {}", group.name);
        all.extend(order.lever(subject.clone()));
        all.extend(order.size(subject, known));
    }
}

#[cfg(test)]
mod tests {
    use super::{OF_CLASS, Order, Performance, gib};
    use crate::scenario::document::Content;

    fn order(volume: &[(&str, &str)], size: i64) -> (Option<Performance>, Vec<Vec<(String, String)>>) {
        let entries = volume.iter().map(|(key, value)| ((*key).to_owned(), Content::text(value))).collect();
        let stated = Content::Map(entries);
        let order = Order { path: "x".to_owned(), stated: &stated, keys: OF_CLASS, gib: (size, size) };
        let levels = order.lever(String::new()).map(|lever| lever.levels).unwrap_or_default();
        (order.performance(), levels.into_iter().map(|level| level.sets).collect())
    }

    fn sets(all: &[(&str, &str)]) -> Vec<(String, String)> {
        all.iter().map(|(path, value)| (format!("x.{path}"), (*value).to_owned())).collect()
    }

    #[test]
    fn provisioned_iops_become_gp3_of_same_rate() {
        let (performance, levels) = order(&[("volumeType", "io2"), ("iops", "12800")], 200);
        assert_eq!(performance, Some(Performance { iops: 12_800, throughput: 200 }));
        let expected = sets(&[("volumeType", "gp3"), ("iops", "12800"), ("throughput", "200")]);
        assert_eq!(levels, [expected]);
        let (_, levels) = order(&[("volumeType", "io1"), ("iops", "2000")], 40);
        assert_eq!(levels, [sets(&[("volumeType", "gp3"), ("iops", "null")])], "gp3 has more at no charge");
        assert_eq!(order(&[("volumeType", "io2"), ("iops", "64000")], 100).0, None, "gp3 has 500 per GiB");
    }

    #[test]
    fn gp2_keeps_its_rate_or_gets_free_rate() {
        assert_eq!(order(&[("volumeType", "gp2")], 80).1, [sets(&[("volumeType", "gp3")])]);
        let (performance, levels) = order(&[("volumeType", "gp2")], 2_000);
        assert_eq!(performance, Some(Performance { iops: 6_000, throughput: 250 }));
        assert_eq!(levels.len(), 2);
        assert_eq!(order(&[("volumeType", "gp3")], 500).1, Vec::<Vec<_>>::new());
        let (_, levels) = order(&[("volumeType", "gp3"), ("iops", "9000"), ("throughput", "600")], 500);
        assert_eq!(levels, [sets(&[("iops", "null"), ("throughput", "null")])]);
        assert_eq!(order(&[("volumeType", "st1")], 500).1, Vec::<Vec<_>>::new());
    }

    #[test]
    fn sizes_are_read_as_manifests_state_them() {
        assert_eq!(["80Gi", "120", "1Ti", "x"].map(gib), [Some(80), Some(120), Some(1_024), None]);
    }
}
