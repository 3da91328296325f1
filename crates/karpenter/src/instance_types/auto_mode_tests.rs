use super::{ProviderSettings, instance_types};
use crate::testing::{facts, region};
use nodecast_model::auto_mode::{node_class, own_pool};
use nodecast_model::domain::{KarpenterVersion, NodeClass, ResourceName};

/// What a type offers in Auto Mode: pods, and disk in GiB.
fn node(name: &str, class: &NodeClass) -> (i64, i64) {
    let region = region(&[name]);
    let settings = ProviderSettings::for_version(KarpenterVersion::AUTO_MODE);
    let types = instance_types(&region, class, &own_pool("own"), settings);
    let capacity = &types[0].capacity;
    (capacity.pods(), capacity.get(ResourceName::EPHEMERAL_STORAGE) >> 30)
}

#[test]
fn auto_mode_node_allows_at_most_110_pods() {
    let class = node_class("default");
    assert_eq!(node("m5.24xlarge", &class), (110, 80), "the formula of its interfaces gives 737");
    assert_eq!(node("m5.large", &class), (29, 80));
    assert_eq!(facts("m5.24xlarge").enis, 15);
}

#[test]
fn large_local_disks_form_pod_storage() {
    let class = node_class("default");
    assert_eq!(node("i3.large", &class).1, (475 * 1_000_000_000) >> 30, "475 GB of local disk");
    assert_eq!(node("c5d.large", &class).1, 80, "50 GB are less than 80 GiB");
}
