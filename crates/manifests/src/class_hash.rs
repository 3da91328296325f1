//! What Karpenter compares of node classes by hash, as a text: classes whose texts are the same have the same hash.
//!
//! Source: Karpenter AWS provider v1.13 `pkg/apis/v1/ec2nodeclass.go`, `EC2NodeClass.Hash` and the fields with `hash:"ignore"`;
//! `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`, `metadataOptions`, for what the API server fills in.

use nodecast_model::domain::{Quantity, Symbol};
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Entry, Node, NodeKind};

/// A kind of node class.
pub(super) struct HashedKeys {
    /// The keys of its spec that are hashed.
    pub(super) keys: &'static [&'static str],
    /// Keys of a map that the API server fills in, with or without the map.
    pub(super) defaults: (&'static str, &'static [(&'static str, &'static str)]),
}

/// An EC2NodeClass. Images, subnets, security groups and reservations are compared by what is found, `amiFamily` by the family that it or an alias names.
pub(super) const EC2: HashedKeys = HashedKeys {
    keys: &[
        "associatePublicIPAddress",
        "blockDeviceMappings",
        "context",
        "detailedMonitoring",
        "enclaveOptions",
        "instanceProfile",
        "instanceStorePolicy",
        "kubelet",
        "metadataOptions",
        "role",
        "tags",
        "userData",
    ],
    defaults: (
        "metadataOptions",
        &[
            ("httpEndpoint", "enabled"),
            ("httpProtocolIPv6", "disabled"),
            ("httpPutResponseHopLimit", "1"),
            ("httpTokens", "required"),
        ],
    ),
};

/// The same of `karpenter.k8s.aws/v1beta1`, which allowed a hop more.
pub(super) const EC2_V1BETA1: HashedKeys = HashedKeys {
    keys: EC2.keys,
    defaults: (
        "metadataOptions",
        &[
            ("httpEndpoint", "enabled"),
            ("httpProtocolIPv6", "disabled"),
            ("httpPutResponseHopLimit", "2"),
            ("httpTokens", "required"),
        ],
    ),
};

/// A NodeClass of EKS Auto Mode.
///
/// Deviation: AWS does not publish the NodeClass fields that EKS Auto Mode compares. All fields count here.
pub(super) const AUTO_MODE: HashedKeys = HashedKeys {
    keys: &[
        "advancedNetworking",
        "advancedSecurity",
        "associatePublicIPAddress",
        "certificateBundles",
        "ephemeralStorage",
        "instanceProfile",
        "kubelet",
        "networkPolicy",
        "networkPolicyEventLogs",
        "podSecurityGroupSelectorTerms",
        "podSubnetSelectorTerms",
        "role",
        "snatPolicy",
        "tags",
    ],
    defaults: ("ephemeralStorage", &[("iops", "3000"), ("size", "80Gi"), ("throughput", "125")]),
};

/// What is hashed of a spec.
pub(super) fn hashed<'s>(reader: &Reader<'s>, spec: &Node<'s>, hashed_keys: &HashedKeys) -> Symbol {
    let (filled, defaults) = hashed_keys.defaults;
    let mut parts = Vec::new();
    for &key in hashed_keys.keys {
        match spec.get(key).filter(|node| node.kind != NodeKind::Null) {
            node if key == filled => parts.push(format!("{key}:{}", map(reader, node, defaults))),
            Some(node) => parts.push(format!("{key}:{}", canonical(reader, key, node))),
            None => {}
        }
    }
    Symbol::new(&parts.join(","))
}

/// The terms of a selector in no order; `None` without any.
pub(super) fn terms<'s>(reader: &Reader<'s>, spec: &Node<'s>, key: &str) -> Option<Symbol> {
    let items = spec.get(key).map(Node::items).filter(|items| !items.is_empty())?;
    Some(terms_of(reader, items))
}

/// Terms in no order.
pub(super) fn terms_of<'s>(reader: &Reader<'s>, terms: &[Node<'s>]) -> Symbol {
    Symbol::new(&set(reader, "", terms))
}

fn set<'s>(reader: &Reader<'s>, key: &str, items: &[Node<'s>]) -> String {
    let mut items: Vec<String> = items.iter().map(|item| canonical(reader, key, item)).collect();
    items.sort_unstable();
    format!("[{}]", items.join(","))
}

/// A map with what the API server fills in.
fn map<'s>(reader: &Reader<'s>, node: Option<&Node<'s>>, defaults: &[(&str, &str)]) -> String {
    let stated = node.map(Node::entries).unwrap_or_default();
    // Of all truth values this one alone is the same whether it is false or not stated.
    let is_zero =
        |entry: &Entry<'s>| entry.key == "rootVolume" && reader.truth(&entry.value, "").is_ok_and(|root| !root);
    let stated = stated.iter().filter(|entry| entry.value.kind != NodeKind::Null && !is_zero(entry));
    let mut parts: Vec<(&str, String)> =
        stated.map(|entry| (&*entry.key, canonical(reader, &entry.key, &entry.value))).collect();
    for &(key, value) in defaults {
        if parts.iter().all(|part| part.0 != key) {
            parts.push((key, scalar(key, value)));
        }
    }
    parts.sort_unstable();
    let parts: Vec<String> = parts.into_iter().map(|(key, value)| format!("{key:?}:{value}")).collect();
    format!("{{{}}}", parts.join(","))
}

/// A value under `key`: maps and lists in no order, sizes and spans of time by what they amount to.
fn canonical<'s>(reader: &Reader<'s>, key: &str, node: &Node<'s>) -> String {
    match &node.kind {
        NodeKind::Null => String::new(),
        NodeKind::Map(_) if key == "evictionSoftGracePeriod" => spans(reader, node),
        NodeKind::Map(_) => map(reader, Some(node), &[]),
        NodeKind::Seq(items) => set(reader, key, items),
        NodeKind::Scalar { text, .. } => match reader.truth(node, key) {
            Ok(truth) => truth.to_string(),
            Err(_) => scalar(key, text),
        },
    }
}

/// Spans of time by name, in microseconds.
fn spans<'s>(reader: &Reader<'s>, node: &Node<'s>) -> String {
    let span = |node: &Node<'s>| match reader.duration(node, "evictionSoftGracePeriod") {
        Ok(span) => span.as_micros().to_string(),
        Err(_) => node.as_text().unwrap_or_default().to_owned(),
    };
    let mut parts: Vec<String> =
        node.entries().iter().map(|entry| format!("{:?}:{}", entry.key, span(&entry.value))).collect();
    parts.sort_unstable();
    format!("{{{}}}", parts.join(","))
}

/// A text, or a size in bytes.
fn scalar(key: &str, text: &str) -> String {
    let size = matches!(key, "volumeSize" | "size").then(|| text.parse::<Quantity>().ok()).flatten();
    size.map_or_else(|| format!("{text:?}"), |size| size.value().to_string())
}

#[cfg(test)]
mod tests {
    use super::{EC2, hashed, terms};
    use nodecast_model::domain::Symbol;
    use nodecast_model::text::Source;
    use nodecast_model::text::reader::Reader;
    use nodecast_model::text::source::Limits;
    use nodecast_model::text::tree::{Variables, parse};

    fn both(spec: &str) -> (Symbol, Option<Symbol>) {
        let source = Source::new("spec.yaml", spec.to_owned());
        let documents = parse(&source, &Variables::default(), &Limits::default()).unwrap();
        let reader = Reader::new(Some(&source));
        (hashed(&reader, &documents[0], &EC2), terms(&reader, &documents[0], "subnetSelectorTerms"))
    }

    fn text(spec: &str) -> Symbol {
        both(spec).0
    }

    #[test]
    fn whatever_is_hashed_counts() {
        let plain = text("role: r");
        for more in [
            "userData: x",
            "detailedMonitoring: false",
            "context: c",
            "kubelet: {clusterDNS: [10.0.0.10]}",
            "kubelet: {}",
            "enclaveOptions: {enabled: true}",
            "metadataOptions: {httpTokens: optional}",
            "blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 20Gi, encrypted: true}}]",
        ] {
            assert_ne!(text(&format!("{{role: r, {more}}}")), plain, "{more}");
        }
        for more in ["amiFamily: AL2", "ipPrefixCount: 1", "subnetSelectorTerms: [{id: subnet-1}]", "context: null"] {
            assert_eq!(text(&format!("{{role: r, {more}}}")), plain, "{more}");
        }
    }

    #[test]
    fn class_hash_ignores_order_defaults_and_units() {
        for (one, other) in [
            ("metadataOptions: {}", "metadataOptions: {httpPutResponseHopLimit: 1, httpTokens: required}"),
            (
                "metadataOptions: {httpTokens: optional}",
                "metadataOptions: {httpTokens: optional, httpEndpoint: enabled}",
            ),
            ("role: r", "{metadataOptions: {httpEndpoint: enabled}, role: r}"),
            ("kubelet: {clusterDNS: [a, b], maxPods: 3}", "kubelet: {maxPods: 3, clusterDNS: [b, a]}"),
            (
                "blockDeviceMappings: [{deviceName: a}, {deviceName: b}]",
                "blockDeviceMappings: [{deviceName: b, rootVolume: false}, {deviceName: a}]",
            ),
            ("blockDeviceMappings: [{ebs: {volumeSize: 1024Gi}}]", "blockDeviceMappings: [{ebs: {volumeSize: 1Ti}}]"),
            (
                "kubelet: {evictionSoftGracePeriod: {memory.available: 1m}}",
                "kubelet: {evictionSoftGracePeriod: {memory.available: 60s}}",
            ),
            ("detailedMonitoring: true", "detailedMonitoring: True"),
        ] {
            assert_eq!(text(one), text(other), "{one}");
        }
    }

    #[test]
    fn terms_are_a_set() {
        let of = |list: &str| both(&format!("subnetSelectorTerms: {list}")).1;
        assert_eq!(of("[{id: a}, {tags: {x: y, z: w}}]"), of("[{tags: {z: w, x: y}}, {id: a}]"));
        assert_ne!(of("[{id: a}]"), of("[{id: b}]"));
        assert_eq!(of("[]"), None);
    }
}
