//! Karpenter's EC2NodeClass, `karpenter.k8s.aws/v1` and `v1beta1`.

use super::bounds::volume_size;
use super::class_hash::{self, HashedKeys};
use super::class_refusals::{check_alias, check_family, check_kubelet, warn_of_no_images};
use super::common::{labels, metadata, resources};
use super::disks::{KARPENTER, ordered};
use super::user_data::kubelet_settings;
use crate::lints;
use nodecast_model::auto_mode;
use nodecast_model::domain::node_pool::{AmiFamily, BlockDevice, KubeletConfig, ReservationTerm};
use nodecast_model::domain::volumes::DiskClass;
use nodecast_model::domain::{NodeClass, Symbol, well_known};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Location, Node};

static SPEC: Shape = Shape {
    name: "an EC2NodeClass's spec",
    keys: &[
        "amiFamily",
        "amiSelectorTerms",
        "kubelet",
        "blockDeviceMappings",
        "instanceStorePolicy",
        "tags",
        "capacityReservationSelectorTerms",
        "associatePublicIPAddress",
        "userData",
    ],
    without_effect: &[
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "role",
        "instanceProfile",
        "metadataOptions",
        "detailedMonitoring",
        "context",
    ],
    unsupported: &[
        ("ipPrefixCount", "a node takes no prefixes of addresses out of its subnet"),
        ("enclaveOptions", "no CPU or memory is reserved for enclaves"),
        ("placementGroup", "instances run in no placement group"),
        ("placementGroupSelector", "instances run in no placement group"),
    ],
    strict: false,
};
static RESERVATION_TERM: Shape = Shape {
    name: "a term of `capacityReservationSelectorTerms`",
    keys: &["id", "tags", "instanceMatchCriteria"],
    without_effect: &["ownerID"],
    unsupported: &[],
    strict: false,
};
static KUBELET: Shape = Shape {
    name: "kubelet settings",
    keys: &["maxPods", "podsPerCore", "kubeReserved", "systemReserved", "evictionHard", "evictionSoft"],
    without_effect: &[
        "clusterDNS",
        "evictionSoftGracePeriod",
        "evictionMaxPodGracePeriod",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "cpuCFSQuota",
        "containerRuntime",
    ],
    unsupported: &[],
    strict: false,
};
static BLOCK_DEVICE: Shape = Shape {
    name: "a block device mapping",
    keys: &["deviceName", "ebs", "rootVolume"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static EBS: Shape = Shape {
    name: "`ebs`",
    keys: &["volumeSize", "volumeType", "iops", "throughput"],
    without_effect: &["encrypted", "deleteOnTermination", "kmsKeyID", "snapshotID", "volumeInitializationRate"],
    unsupported: &[],
    strict: false,
};

/// An EC2NodeClass object. Zones and architectures come from its `status` where a cluster wrote one.
///
/// Source: Karpenter AWS provider v1.13 `pkg/apis/v1/ec2nodeclass.go`.
pub(super) fn node_class<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeClass, InputError> {
    let fields = reader.fields(object, &super::pod::OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let older = object.get("apiVersion").and_then(Node::as_text).is_some_and(|v| v.ends_with("/v1beta1"));
    let mut class = NodeClass::named(name);
    if older {
        class.ami_family = AmiFamily::AL2;
    }
    let mut selector = None;
    if let Some(node) = fields.get("spec") {
        let spec = reader.fields(node, &SPEC)?;
        selector = ami(reader, spec, &mut class)?;
        let terms = spec.get("amiSelectorTerms").map(Node::items).unwrap_or_default();
        class.newest_images = terms.iter().any(takes_newest) || (older && terms.is_empty());
        if terms.is_empty() && !older {
            warn_of_no_images(reader, node.at, class.ami_family);
        }
        if let Some(node) = spec.get("kubelet") {
            class.kubelet = kubelet(reader, node)?;
        }
        if let Some(node) = spec.get("userData") {
            class.user_data = kubelet_settings(reader.text(node, "userData")?);
        }
        class.block_devices = block_devices(reader, spec, class.ami_family)?;
        class.instance_store_raid0 = spec
            .optional("instanceStorePolicy", |n, what| reader.choice(n, what, &[("RAID0", true)]))?
            .unwrap_or(false);
        class.public_address = spec.optional("associatePublicIPAddress", |n, what| reader.truth(n, what))?;
        class.tags = labels(reader, spec, "tags")?;
        class.capacity_reservations = reservation_terms(reader, spec)?;
        compared(reader, node, if older { &class_hash::EC2_V1BETA1 } else { &class_hash::EC2 }, &mut class);
    }
    read_status(object, &mut class);
    let unknown = class.ami_architectures.is_empty() && !class.ami_family.is_windows();
    if let Some(at) = selector.filter(|_| unknown) {
        reader.warn(
            &lints::UNKNOWN_IMAGES,
            at,
            UNKNOWN_IMAGES,
            "images unknown",
            "restrict `kubernetes.io/arch` in the NodePool",
        );
    }
    Ok(class)
}

static AUTO_MODE_SPEC: Shape = Shape {
    name: "a NodeClass's spec",
    keys: &["ephemeralStorage", "tags", "capacityReservationSelectorTerms", "advancedNetworking"],
    without_effect: &[
        "subnetSelectorTerms",
        "securityGroupSelectorTerms",
        "podSubnetSelectorTerms",
        "podSecurityGroupSelectorTerms",
        "role",
        "instanceProfile",
        "snatPolicy",
        "networkPolicy",
        "networkPolicyEventLogs",
        "certificateBundles",
        "advancedSecurity",
        "associatePublicIPAddress",
        "kubelet",
    ],
    unsupported: &[],
    strict: false,
};
static STORAGE: Shape = Shape {
    name: "`ephemeralStorage`",
    keys: &["size", "iops", "throughput"],
    without_effect: &["kmsKeyID"],
    unsupported: &[],
    strict: false,
};

/// A NodeClass object of EKS Auto Mode. Zones come from its `status` where a cluster wrote one.
///
/// Source: EKS user guide, `automode/create-node-class` (2026).
pub(super) fn auto_mode_class<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeClass, InputError> {
    let fields = reader.fields(object, &super::pod::OBJECT)?;
    let mut class = auto_mode::node_class(metadata(reader, fields.get("metadata"))?.name.name);
    if let Some(node) = fields.get("spec") {
        let spec = reader.fields(node, &AUTO_MODE_SPEC)?;
        class.tags = labels(reader, spec, "tags")?;
        class.capacity_reservations = reservation_terms(reader, spec)?;
        if let Some(node) = spec.get("ephemeralStorage") {
            class.block_devices = storage(reader, node)?;
        }
        let addresses = spec.get("advancedNetworking").and_then(|node| node.get("associatePublicIPAddress"));
        class.public_address = addresses.map(|node| reader.truth(node, "associatePublicIPAddress")).transpose()?;
        compared(reader, node, &class_hash::AUTO_MODE, &mut class);
    }
    read_status(object, &mut class);
    // Bottlerocket is there for both; which one a node has its NodePool says.
    class.ami_architectures.clear();
    Ok(class)
}

/// Keeps what nodes of the class are compared with when it is applied anew.
fn compared<'s>(reader: &Reader<'s>, spec: &Node<'s>, keys: &HashedKeys, class: &mut NodeClass) {
    class.hashed = Some(class_hash::hashed(reader, spec, keys));
    class.security_groups = class_hash::terms(reader, spec, "securityGroupSelectorTerms");
    class.subnets = class_hash::terms(reader, spec, "subnetSelectorTerms");
}

/// The volumes of `ephemeralStorage`, within the bounds of the API.
fn storage<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<Vec<BlockDevice>, InputError> {
    const GIB: i64 = 1 << 30;
    let fields = reader.fields(node, &STORAGE)?;
    let mut bytes = auto_mode::STORAGE_GIB * GIB;
    if let Some(size) = fields.get("size") {
        bytes = reader.quantity(size, "size")?.value();
        if !(GIB..=59_000 * GIB).contains(&bytes) {
            return Err(reader
                .error(size.at, "`ephemeralStorage.size` is not a size that EKS Auto Mode takes")
                .because("outside 1Gi to 59000Gi")
                .help("write a size from `1Gi` to `59000Gi`; it is 80Gi unless it is stated"));
        }
    }
    let stated = |key, least, most| {
        let number = fields.optional(key, |n, what| reader.integer(n, what, least, most))?;
        Ok::<_, InputError>(number.and_then(|number| u32::try_from(number).ok()).unwrap_or(0))
    };
    let disk = DiskClass {
        iops: stated("iops", 3_000, 16_000)?,
        throughput_mib: stated("throughput", 125, 1_000)?,
        ..DiskClass::of_type("gp3")
    };
    Ok(auto_mode::volumes(bytes, disk))
}

/// Terms that select capacity reservations.
fn reservation_terms<'s>(reader: &mut Reader<'s>, spec: Fields<'_, 's>) -> Result<Vec<ReservationTerm>, InputError> {
    const CRITERIA: &[(&str, bool)] = &[("open", true), ("targeted", false)];
    let items = spec.optional("capacityReservationSelectorTerms", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut terms = Vec::new();
    for node in items {
        let fields = reader.fields(node, &RESERVATION_TERM)?;
        terms.push(ReservationTerm {
            id: fields.optional("id", |n, what| reader.symbol(n, what))?,
            tags: labels(reader, fields, "tags")?,
            open: fields.optional("instanceMatchCriteria", |n, what| reader.choice(n, what, CRITERIA))?,
        });
    }
    Ok(terms)
}

/// Families by the names of `amiFamily`; in an alias their case does not count.
const FAMILIES: &[(&str, AmiFamily)] = &[
    ("AL2", AmiFamily::AL2),
    ("AL2023", AmiFamily::AL2023),
    ("Bottlerocket", AmiFamily::Bottlerocket),
    ("Ubuntu", AmiFamily::Ubuntu),
    ("Windows2019", AmiFamily::Windows2019),
    ("Windows2022", AmiFamily::Windows2022),
    ("Windows2025", AmiFamily::Windows2025),
    ("Custom", AmiFamily::Custom),
];

static AMI_TERM: Shape = Shape {
    name: "a term of `amiSelectorTerms`",
    keys: &["alias", "name", "tags", "ssmParameter"],
    without_effect: &["id", "owner"],
    unsupported: &[],
    strict: false,
};

/// The family under `amiFamily`.
pub(super) fn ami_family(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Option<AmiFamily>, InputError> {
    fields.optional("amiFamily", |n, what| reader.choice(n, what, FAMILIES))
}

/// What is said where the images behind a selector are not known.
pub(super) const UNKNOWN_IMAGES: &str = "the images this AMI selector finds are unknown; assuming every architecture";

/// The architectures that these texts spell out, of the names, parameters and tags of one image or of several.
pub(super) fn spelled_out<'t>(texts: impl IntoIterator<Item = &'t str>) -> Vec<Symbol> {
    const SPELLINGS: [(&str, Symbol); 5] = [
        ("arm64", well_known::ARM64),
        ("aarch64", well_known::ARM64),
        ("x86_64", well_known::AMD64),
        ("x86-64", well_known::AMD64),
        ("amd64", well_known::AMD64),
    ];
    let mut found: Vec<Symbol> = Vec::new();
    for text in texts.into_iter().map(str::to_ascii_lowercase) {
        found.extend(SPELLINGS.iter().filter(|(spelling, _)| text.contains(spelling)).map(|(_, name)| *name));
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// The architectures that an AMI selector leaves, as far as its terms spell them out. Terms add up: one that says nothing of it leaves
/// every architecture.
fn selected_architectures(terms: &[Node<'_>]) -> Vec<Symbol> {
    let mut all = Vec::new();
    for term in terms {
        let named = ["name", "ssmParameter"].into_iter().filter_map(|key| term.get(key)?.as_text());
        let tags = term.get("tags").map(Node::entries).unwrap_or_default();
        let spelled_out = spelled_out(named.chain(tags.iter().filter_map(|tag| tag.value.as_text())));
        if spelled_out.is_empty() {
            return spelled_out;
        }
        all.extend(spelled_out);
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Whether a term selects the newest of the images that it finds, which may be another tomorrow.
fn takes_newest(term: &Node<'_>) -> bool {
    let text = |key| term.get(key).and_then(Node::as_text).unwrap_or_default();
    let parameter = text("ssmParameter");
    text("alias").ends_with("@latest")
        || text("name").contains(['*', '?'])
        || term.get("tags").is_some_and(|tags| !tags.entries().is_empty())
        || parameter.contains("recommended")
        || parameter.contains("latest")
}

/// Reads which images a class uses; the place of a selector of which only the controller knows what it finds.
fn ami<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
    class: &mut NodeClass,
) -> Result<Option<Location>, InputError> {
    let family = ami_family(reader, spec)?;
    let terms = spec.optional("amiSelectorTerms", |n, what| reader.list(n, what))?.unwrap_or_default();
    for term in terms {
        reader.fields(term, &AMI_TERM)?;
    }
    let alias = terms.iter().find_map(|term| term.get("alias"));
    let mut selector = None;
    if let Some(node) = alias {
        let text = reader.text(node, "alias")?;
        let wanted = text.split('@').next().unwrap_or_default();
        // It is Bottlerocket with other cryptography.
        let family = if wanted.eq_ignore_ascii_case("bottlerocket-fips") { "bottlerocket" } else { wanted };
        let found = FAMILIES.iter().find(|(name, _)| name.eq_ignore_ascii_case(family));
        class.ami_family = match found {
            Some((_, family)) => *family,
            None => {
                return Err(reader
                    .error(node.at, format!("unknown AMI alias `{text}`"))
                    .because("no such family")
                    .help("write for example `al2023@latest`; known are al2, al2023, bottlerocket, bottlerocket-fips, windows2019, windows2022, windows2025"));
            }
        };
        check_alias(reader, (node, text), terms)?;
    }
    if !terms.is_empty() {
        class.images = class_hash::terms_of(reader, terms);
    }
    if let (None, Some(first)) = (alias, terms.first()) {
        class.ami_family = AmiFamily::Custom;
        class.fixed_images = true;
        class.ami_architectures = selected_architectures(terms);
        selector = Some(first.at);
    }
    if let Some(family) = family {
        if let (Some(_), Some(node)) = (alias, spec.get("amiFamily")) {
            check_family(reader, node.at, (family, class.ami_family))?;
        }
        class.ami_family = family;
    }
    Ok(selector)
}

/// Kubelet settings.
pub(super) fn kubelet<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<KubeletConfig, InputError> {
    let fields = reader.fields(node, &KUBELET)?;
    check_kubelet(reader, node)?;
    let number = |key| fields.optional(key, |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)));
    Ok(KubeletConfig {
        max_pods: number("maxPods")?,
        pods_per_core: number("podsPerCore")?,
        kube_reserved: resources(reader, fields, "kubeReserved")?,
        system_reserved: resources(reader, fields, "systemReserved")?,
        eviction_hard: signals(reader, fields, "evictionHard")?,
        eviction_soft: signals(reader, fields, "evictionSoft")?,
    })
}

/// Eviction thresholds: quantities or percentages.
pub(super) fn signals(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
) -> Result<Vec<(Symbol, String)>, InputError> {
    let Some(node) = fields.get(key) else { return Ok(Vec::new()) };
    let mut signals = Vec::new();
    for entry in reader.entries(node, key)? {
        let text = reader.text(&entry.value, &entry.key)?;
        let percentage = text.strip_suffix('%').and_then(|digits| digits.parse::<f64>().ok());
        match percentage {
            Some(percent) if (0.0..=100.0).contains(&percent) => {}
            Some(_) => {
                return Err(reader
                    .error(entry.value.at, format!("`{}` is not a percentage of a whole", entry.key))
                    .because("outside 0 to 100")
                    .help("write a percentage from `0%` to `100%`"));
            }
            None => {
                reader.quantity(&entry.value, &entry.key)?;
            }
        }
        signals.push((Symbol::new(&entry.key), text.to_owned()));
    }
    signals.sort_by_key(|signal| signal.0);
    Ok(signals)
}

/// What a mapping that states no size is taken to hold.
const ASSUMED_VOLUME_BYTES: i64 = 20 << 30;

/// `blockDeviceMappings` of a class whose images are of this family.
pub(super) fn block_devices<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
    family: AmiFamily,
) -> Result<Vec<BlockDevice>, InputError> {
    let items = spec.optional("blockDeviceMappings", |n, what| reader.list(n, what))?.unwrap_or_default();
    let mut devices: Vec<BlockDevice> = Vec::new();
    for node in items {
        let fields = reader.fields(node, &BLOCK_DEVICE)?;
        let device = device_name(reader, fields, &devices)?;
        let ebs = fields.get("ebs").map(|n| reader.fields(n, &EBS)).transpose()?;
        let size = ebs.and_then(|ebs| ebs.get("volumeSize"));
        let size_bytes = match size {
            Some(node) => volume_size(reader, node)?,
            None => {
                let message = "unknown size: a block device without `volumeSize` gets the size of its snapshot";
                reader.warn(&lints::VOLUME_SIZE_UNKNOWN, node.at, message, "20Gi assumed", "add `volumeSize`");
                ASSUMED_VOLUME_BYTES
            }
        };
        let gib = size.map(|_| (size_bytes - 1).div_euclid(1 << 30) + 1);
        let boots = family.root_device() == Some(device.as_str());
        let ordered = |ebs| ordered(reader, ebs, &KARPENTER, (gib, boots));
        let disk = ebs.map_or_else(|| Ok(DiskClass::of_type("gp3")), ordered)?;
        let root = fields.optional("rootVolume", |n, what| reader.truth(n, what))?.unwrap_or(false);
        devices.push(BlockDevice { device, size_bytes, root, disk });
    }
    refuse_two_roots(reader, items, &devices)?;
    Ok(devices)
}

/// The device of a mapping, which those `before` it do not map.
///
/// Source: EC2 API reference, `BlockDeviceMapping` and the error `InvalidBlockDeviceMapping` (2026).
fn device_name<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, before: &[BlockDevice]) -> Result<String, InputError> {
    let node = fields.required(reader, "deviceName")?;
    let device = reader.text(node, "deviceName")?;
    if device.is_empty() {
        return Err(reader
            .error(node.at, "`deviceName` is empty")
            .because("EC2 refuses it")
            .help("name the device, for example `/dev/xvda`, the root volume of Amazon Linux"));
    }
    if before.iter().any(|block_device| block_device.device == device) {
        let shown: String = device.chars().take(80).collect();
        return Err(reader
            .error(node.at, format!("two of `blockDeviceMappings` map the device `{shown}`"))
            .because("the second")
            .help("EC2 refuses it: keep one of them, or give each its own `deviceName`"));
    }
    Ok(device.to_owned())
}

/// Only one volume can be the root.
///
/// Source: Karpenter AWS provider v1.13 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`, `blockDeviceMappings`.
fn refuse_two_roots(reader: &Reader<'_>, items: &[Node<'_>], devices: &[BlockDevice]) -> Result<(), InputError> {
    let mut roots = items.iter().zip(devices).filter(|(_, device)| device.root);
    match (roots.next(), roots.next()) {
        (Some(_), Some((node, _))) => Err(reader
            .error(node.at, "`blockDeviceMappings` has two root volumes")
            .because("the second")
            .help("keep `rootVolume: true` at one of them")),
        _ => Ok(()),
    }
}

/// Zones of the subnets and architectures of the images, which the controller writes into `status`.
fn read_status(object: &Node<'_>, class: &mut NodeClass) {
    let Some(status) = object.get("status") else { return };
    for subnet in status.get("subnets").map(Node::items).unwrap_or_default() {
        class.zones.extend(subnet.get("zone").and_then(Node::as_text).map(Symbol::new));
    }
    let mut architectures = Vec::new();
    for image in status.get("amis").map(Node::items).unwrap_or_default() {
        for requirement in image.get("requirements").map(Node::items).unwrap_or_default() {
            if requirement.get("key").and_then(Node::as_text) == Some("kubernetes.io/arch") {
                let values = requirement.get("values").map(Node::items).unwrap_or_default();
                architectures.extend(values.iter().filter_map(Node::as_text).map(Symbol::new));
            }
        }
    }
    if !architectures.is_empty() {
        class.ami_architectures = architectures;
    }
    for list in [&mut class.zones, &mut class.ami_architectures] {
        list.sort_unstable();
        list.dedup();
    }
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::node_pool::AmiFamily;
    use nodecast_model::text::Source;

    fn class(spec: &str) -> Manifests {
        let text = format!(
            "apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec: {{{spec}}}\n"
        );
        read_manifests(&Source::new("class.yaml", text)).unwrap()
    }

    #[test]
    fn aliases_name_every_family() {
        for (alias, family) in [
            ("windows2025@latest", AmiFamily::Windows2025),
            ("bottlerocket-fips@latest", AmiFamily::Bottlerocket),
            ("bottlerocket@v1.20.5", AmiFamily::Bottlerocket),
            ("al2023@latest", AmiFamily::AL2023),
        ] {
            let read = class(&format!("amiSelectorTerms: [{{alias: {alias}}}]"));
            assert_eq!((read.node_classes[0].ami_family, read.warnings.len()), (family, 0), "{alias}");
        }
    }

    #[test]
    fn unsimulated_node_class_fields_are_warned_about() {
        let read = class(
            "amiSelectorTerms: [{alias: al2023@latest}], ipPrefixCount: 1, enclaveOptions: {enabled: true}, placementGroup: {name: a}",
        );
        assert_eq!(read.warnings.len(), 3);
        for warning in &read.warnings {
            assert!(warning.message().contains("is not simulated"), "{warning}");
        }
    }
}
