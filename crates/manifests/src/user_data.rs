//! Kubelet settings in the `userData` of an EC2NodeClass: Bottlerocket's TOML, NodeConfigs of AL2023, and flags in scripts, each alone or as
//! parts of a MIME archive.
//!
//! Karpenter passes `userData` on and does not read these settings.

use nodecast_model::domain::node_pool::KubeletConfig;
use nodecast_model::domain::{Quantity, ResourceName, Symbol};
use nodecast_model::text::source::{Limits, Source};
use nodecast_model::text::tree::{self, Node, NodeKind, Variables};

/// The kubelet settings of `userData`; what cannot be read is left out.
pub(super) fn kubelet_settings(text: &str) -> KubeletConfig {
    let mut kubelet = KubeletConfig::default();
    for part in parts(text) {
        if part.contains("node.eks.aws") {
            read_node_configs(&part, &mut kubelet);
        }
        read_toml(&part, &mut kubelet);
        read_flags(&part, &mut kubelet);
    }
    kubelet.eviction_hard.sort_by_key(|signal| signal.0);
    kubelet
}

/// The parts of a MIME archive without their headers; the whole text if it is none.
fn parts(text: &str) -> Vec<String> {
    let start = text.trim_start();
    if !start.starts_with("MIME-Version:") && !start.starts_with("Content-Type:") {
        return vec![text.to_owned()];
    }
    let boundary = start.split_once("boundary=").map(|(_, rest)| rest.trim_start_matches('"'));
    let boundary = boundary.and_then(|rest| rest.split(['"', '\n', '\r', ';']).next()).filter(|name| !name.is_empty());
    let Some(boundary) = boundary else { return vec![text.to_owned()] };
    let normal = start.replace("\r\n", "\n");
    let between = format!("--{boundary}");
    let bodies = normal.split(&between).skip(1);
    bodies.filter_map(|part| part.split_once("\n\n").map(|(_, body)| body.to_owned())).collect()
}

/// `spec.kubelet.config` of NodeConfigs.
///
/// Source: amazon-eks-ami `nodeadm/api/v1alpha1/nodeconfig_types.go`.
fn read_node_configs(text: &str, kubelet: &mut KubeletConfig) {
    let source = Source::new("userData", text);
    let Ok(documents) = tree::parse(&source, &Variables::new(), &Limits::default()) else { return };
    for document in documents.iter().filter(|document| document.kind != NodeKind::Null) {
        let config = ["spec", "kubelet", "config"].iter().try_fold(document, |node, key| node.get(key));
        let text = |node: &Node<'_>| node.as_text().map(str::to_owned);
        let Some(config) = config else { continue };
        for (key, name) in [("maxPods", "max-pods"), ("podsPerCore", "pods-per-core")] {
            if let Some(value) = config.get(key).and_then(text) {
                set(kubelet, name, "", &value);
            }
        }
        for (key, name) in [
            ("kubeReserved", "kube-reserved"),
            ("systemReserved", "system-reserved"),
            ("evictionHard", "eviction-hard"),
        ] {
            for entry in config.get(key).map(Node::entries).unwrap_or_default() {
                if let Some(value) = text(&entry.value) {
                    set(kubelet, name, &entry.key, &value);
                }
            }
        }
    }
}

/// Settings of Bottlerocket under `settings.kubernetes`, in tables, inline tables and dotted keys.
fn read_toml(text: &str, kubelet: &mut KubeletConfig) {
    let mut table: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            table = path(name);
            continue;
        }
        let Some((key, value)) = assignment(line) else { continue };
        let mut whole = table.clone();
        whole.extend(path(key));
        match value.strip_prefix('{') {
            Some(inline) => {
                for entry in inline.split('}').next().unwrap_or_default().split(',') {
                    if let Some((key, value)) = assignment(entry) {
                        let mut inner = whole.clone();
                        inner.extend(path(key));
                        set_by_path(kubelet, &inner, value);
                    }
                }
            }
            None => set_by_path(kubelet, &whole, value),
        }
    }
}

fn assignment(text: &str) -> Option<(&str, &str)> {
    let (key, value) = text.split_once('=')?;
    Some((key.trim(), value.trim()))
}

/// The parts of a dotted key, some of which stand in quotes.
fn path(text: &str) -> Vec<String> {
    let (mut parts, mut this_text, mut quote) = (Vec::new(), String::new(), None);
    for letter in text.trim().chars() {
        match (letter, quote) {
            ('"' | '\'', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('.', None) => parts.push(std::mem::take(&mut this_text).trim().to_owned()),
            _ => this_text.push(letter),
        }
    }
    parts.push(this_text.trim().to_owned());
    parts
}

fn set_by_path(kubelet: &mut KubeletConfig, path: &[String], value: &str) {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    let value = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split(quote).next().unwrap_or_default(),
        _ => value.split('#').next().unwrap_or_default().trim(),
    };
    match path.as_slice() {
        ["settings", "kubernetes", name] => set(kubelet, name, "", value),
        ["settings", "kubernetes", name, key] => set(kubelet, name, key, value),
        _ => {}
    }
}

/// Flags of the kubelet, wherever they stand: `--kubelet-extra-args`, `flags` of a NodeConfig.
fn read_flags(text: &str, kubelet: &mut KubeletConfig) {
    let ends = |letter: char| letter.is_whitespace() || matches!(letter, '"' | '\'' | '\\');
    for flag in text.split(ends).filter_map(|word| word.strip_prefix("--")) {
        let Some((name, value)) = flag.split_once('=') else { continue };
        match name {
            "max-pods" | "pods-per-core" => set(kubelet, name, "", value),
            "kube-reserved" | "system-reserved" | "eviction-hard" => {
                for entry in value.split(',') {
                    if let Some((key, value)) = entry.split_once(['=', '<']) {
                        set(kubelet, name, key, value);
                    }
                }
            }
            _ => {}
        }
    }
}

fn set(kubelet: &mut KubeletConfig, name: &str, key: &str, value: &str) {
    let count = || value.parse::<i64>().ok().filter(|count| (1..=i64::from(i32::MAX)).contains(count));
    match name {
        "max-pods" => kubelet.max_pods = count().or(kubelet.max_pods),
        "pods-per-core" => kubelet.pods_per_core = count().or(kubelet.pods_per_core),
        "kube-reserved" | "system-reserved" => {
            let resource = match key {
                "cpu" => ResourceName::CPU,
                "memory" => ResourceName::MEMORY,
                "ephemeral-storage" => ResourceName::EPHEMERAL_STORAGE,
                _ => return,
            };
            let Ok(quantity) = value.parse::<Quantity>() else { return };
            let amount = if resource == ResourceName::CPU { quantity.milli_value() } else { quantity.value() };
            let all = if name == "kube-reserved" { &mut kubelet.kube_reserved } else { &mut kubelet.system_reserved };
            all.set(resource, amount.max(0));
        }
        "eviction-hard" => {
            let percent = value.strip_suffix('%').and_then(|digits| digits.parse::<f64>().ok());
            if percent.is_some_and(|percent| (0.0..=100.0).contains(&percent)) || value.parse::<Quantity>().is_ok() {
                kubelet.eviction_hard.retain(|(signal, _)| signal.as_str() != key);
                kubelet.eviction_hard.push((Symbol::new(key), value.to_owned()));
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::kubelet_settings;
    use nodecast_model::domain::ResourceName;

    #[test]
    fn every_form_of_user_data_sets_kubelet_keys() {
        let toml = "[settings.kubernetes]\nmax-pods = 40 # few\nkube-reserved = { memory = \"1Gi\", cpu = \"120m\" }\n\
            [settings.kubernetes.eviction-hard]\n\"memory.available\" = \"15%\"\n[settings.ntp]\nmax-pods = 3\n";
        let yaml = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet:\n    config:\n      maxPods: 40\n      \
            kubeReserved: { memory: 1Gi, cpu: 120m }\n    flags: [\"--eviction-hard=memory.available<15%\"]\n";
        let script = "#!/bin/bash\n/etc/eks/bootstrap.sh c --kubelet-extra-args '--max-pods=40 --kube-reserved=memory=1Gi,cpu=120m \
            --eviction-hard=memory.available<15%'\n";
        let mime = format!(
            "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: application/node.eks.aws\n\n{yaml}\n--//--\n"
        );
        let dotted = "settings.kubernetes.max-pods = 40\nsettings.kubernetes.kube-reserved.memory = \"1Gi\"\n\
            settings.kubernetes.kube-reserved.cpu = '120m'\nsettings.kubernetes.eviction-hard.\"memory.available\" = \"15%\"\n";
        for text in [toml, yaml, script, &mime, dotted] {
            let kubelet = kubelet_settings(text);
            assert_eq!(kubelet.max_pods, Some(40), "{text}");
            let reserved = (kubelet.kube_reserved.cpu_milli(), kubelet.kube_reserved.get(ResourceName::MEMORY));
            assert_eq!(reserved, (120, 1 << 30), "{text}");
            let hard: Vec<(&str, &str)> =
                kubelet.eviction_hard.iter().map(|(signal, text)| (signal.as_str(), &**text)).collect();
            assert_eq!(hard, [("memory.available", "15%")], "{text}");
        }
    }

    #[test]
    fn other_user_data_sets_nothing() {
        for text in [
            "",
            "#!/bin/bash\nyum install -y x --max=3\n",
            "[settings.kubernetes\nmax-pods = many",
            "{{{",
            "MIME-Version: 1.0\n",
        ] {
            assert_eq!(kubelet_settings(text), nodecast_model::domain::node_pool::KubeletConfig::default(), "{text}");
        }
    }
}
