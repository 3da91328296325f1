//! Sizes of images, as the nodes of a dump report them.
//!
//! Source: Kubernetes 1.36 `staging/src/k8s.io/api/core/v1/types.go`, `NodeStatus.images`; containerd reports compressed sizes. A
//! node reports its fifty largest images.

use std::collections::{BTreeMap, BTreeSet};

use super::Dump;
use super::clean::POD_SPECS;
use super::objects::find;
use crate::tree::Node;

/// The size in bytes of each image that a template names and a node has, by the name in the template.
pub(super) fn sizes(dump: &Dump<'_>) -> Vec<(String, i64)> {
    let mut reported: BTreeMap<&str, i64> = BTreeMap::new();
    for image in dump.nodes.iter().flat_map(|node| node.at(&["status", "images"]).map_or(&[][..], Node::items)) {
        let Some(size) = image.get("sizeBytes").and_then(Node::as_text).and_then(|text| text.parse().ok()) else {
            continue;
        };
        for name in image.get("names").map_or(&[][..], Node::items).iter().filter_map(Node::as_text) {
            reported.insert(name, size);
        }
    }
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for object in &dump.carried {
        for spec in POD_SPECS.iter().filter_map(|path| find(&object.node, path)) {
            for list in ["initContainers", "containers"] {
                let containers = spec.get(list).map_or(&[][..], Node::items);
                named.extend(containers.iter().filter_map(|container| container.get("image").and_then(Node::as_text)));
            }
        }
    }
    let size = |image: &str| full_names(image).iter().find_map(|name| reported.get(name.as_str()).copied());
    named.into_iter().filter_map(|image| Some((image.to_owned(), size(image)?))).collect()
}

/// What a runtime may call an image that a manifest names so: with its tag, its registry and its library.
fn full_names(image: &str) -> [String; 3] {
    let last = image.rsplit('/').next().unwrap_or(image);
    let tagged = if last.contains([':', '@']) { image.to_owned() } else { format!("{image}:latest") };
    [tagged.clone(), format!("docker.io/{tagged}"), format!("docker.io/library/{tagged}")]
}

#[cfg(test)]
mod tests {
    use super::full_names;

    #[test]
    fn an_image_is_known_by_its_short_name() {
        assert_eq!(full_names("nginx")[2], "docker.io/library/nginx:latest");
        assert_eq!(full_names("grafana/loki:3.1")[1], "docker.io/grafana/loki:3.1");
        assert_eq!(full_names("registry.k8s.io/pause@sha256:0")[0], "registry.k8s.io/pause@sha256:0");
    }
}
