//! Values that an object's own API bounds more narrowly than their type does.

use super::common::int_or_percent;
use nodecast_model::domain::SimDuration;
use nodecast_model::domain::pod::IntOrPercent;
use nodecast_model::domain::symbol::Symbol;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader};
use nodecast_model::text::tree::Node;

/// A count, or a percentage of at most 100.
///
/// Source: Kubernetes 1.36 `pkg/apis/apps/validation/validation.go`, `IsNotMoreThan100Percent`, which `pkg/apis/policy/validation` asks
/// too; for the budgets of a NodePool Karpenter's `pkg/apis/crds/karpenter.sh_nodepools.yaml` has a pattern that comes to the same.
pub(super) fn int_or_share(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<IntOrPercent, InputError> {
    match int_or_percent(reader, node, what)? {
        IntOrPercent::Percent(percent) if percent > 100 => Err(reader
            .error(node.at, format!("`{what}` is {percent}%"))
            .because("more than all of them")
            .help("write a count, or a percentage from `0%` to `100%`")),
        int_or_percent => Ok(int_or_percent),
    }
}

/// Replicas that a workload may have at most: far above the 150,000 pods up to which Kubernetes is tested
/// (<https://kubernetes.io/docs/setup/best-practices/cluster-large/>), and few enough to be simulated.
const REPLICAS_MAX: i64 = 1_000_000;

/// A number of replicas under `key`.
pub(super) fn replicas(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
) -> Result<Option<u32>, InputError> {
    let number = fields.optional(key, |n, what| reader.integer(n, what, 0, REPLICAS_MAX))?;
    Ok(number.and_then(|number| u32::try_from(number).ok()))
}

/// A span of time in the units that Karpenter's objects take: hours, minutes and, unless they are counted in `whole_minutes`, seconds.
///
/// Source: Karpenter core v1.13 `pkg/apis/crds/karpenter.sh_nodepools.yaml`, the patterns of `consolidateAfter`, `expireAfter`,
/// `terminationGracePeriod` and of a budget's `duration`.
pub(super) fn span(
    reader: &Reader<'_>,
    node: &Node<'_>,
    what: &str,
    whole_minutes: bool,
) -> Result<SimDuration, InputError> {
    let span = reader.duration(node, what)?;
    let text = node.as_text().unwrap_or_default();
    let text = if whole_minutes {
        text.strip_suffix("0s").filter(|rest| rest.ends_with(['h', 'm'])).unwrap_or(text)
    } else {
        text
    };
    let units = if whole_minutes { "hm" } else { "hms" };
    if text.chars().all(|letter| letter.is_ascii_digit() || units.contains(letter)) && !text.contains("ms") {
        return Ok(span);
    }
    let (reason, way_out) = if whole_minutes {
        ("neither hours nor minutes", "write hours and minutes, as Karpenter demands it: `8h` or `1h30m`")
    } else {
        (
            "neither hours, minutes nor seconds",
            "write hours, minutes and seconds, as Karpenter demands it: `720h` for thirty days",
        )
    };
    Err(reader.error(node.at, format!("`{what}` is `{text}`")).because(reason).help(way_out))
}

/// The sizes of a volume, by unit: bytes of the unit and how many of them at most.
const VOLUME_SIZES: [(&str, i64, i64); 4] =
    [("Gi", 1 << 30, 59_000), ("G", 1_000_000_000, 64_000), ("Ti", 1 << 40, 58), ("T", 1_000_000_000_000, 64)];

/// The size of a node's volume in bytes.
///
/// Source: Karpenter AWS provider v1.13 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`, the pattern of `volumeSize`.
pub(super) fn volume_size(reader: &Reader<'_>, node: &Node<'_>) -> Result<i64, InputError> {
    let bytes = reader.quantity(node, "volumeSize")?.value();
    let text = node.as_text().unwrap_or_default();
    let sized = VOLUME_SIZES.iter().find_map(|(unit, size, most)| {
        let number = text.strip_suffix(unit)?;
        let plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        number.parse::<i64>().ok().filter(|number| plain && (1..=*most).contains(number)).map(|number| number * size)
    });
    if sized.is_some() {
        return Ok(bytes);
    }
    let shown: String = text.chars().take(40).collect();
    Err(reader
        .error(node.at, format!("`volumeSize` is `{shown}`"))
        .because("not a size that Karpenter takes")
        .help("write whole `Gi` (1 to 59000), `G` (to 64000), `Ti` (to 58) or `T` (to 64)"))
}

/// The types of volumes.
///
/// Source: Karpenter AWS provider v1.13 `pkg/apis/crds/karpenter.k8s.aws_ec2nodeclasses.yaml`, `volumeType`.
const VOLUME_TYPES: [&str; 7] = ["gp3", "gp2", "io1", "io2", "st1", "sc1", "standard"];

/// The type of a volume.
pub(super) fn volume_type(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<Symbol, InputError> {
    let words = VOLUME_TYPES.map(|name| (name, name));
    reader.choice(node, what, &words).map(Symbol::new)
}
