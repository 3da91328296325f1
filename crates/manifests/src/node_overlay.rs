//! Karpenter's NodeOverlay, `karpenter.sh/v1alpha1`.

use super::common::{metadata, resource_map};
use super::node_pool::requirements;
use super::restricted::Stating;
use nodecast_model::domain::{HourlyRate, NodeOverlay, PriceOverlay, Resources};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static SPEC: Shape = Shape {
    name: "a NodeOverlay's spec",
    keys: &["requirements", "price", "priceAdjustment", "capacity", "weight"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// Resources that an overlay cannot state.
const OWN: [&str; 4] = ["cpu", "memory", "ephemeral-storage", "pods"];

/// A NodeOverlay object. What the API server refuses is an error.
///
/// Source: Karpenter core v1.14 `pkg/apis/v1alpha1/nodeoverlay.go` with its validation rules.
pub(super) fn node_overlay<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodeOverlay, InputError> {
    let fields = reader.fields(object, &super::pod::OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    spec.required(reader, "requirements")?;
    let weight = spec.optional("weight", |n, what| reader.integer(n, what, 1, 10_000))?;
    Ok(NodeOverlay {
        name,
        weight: weight.and_then(|weight| i32::try_from(weight).ok()).unwrap_or(0),
        requirements: requirements(reader, spec, Stating::Overlay)?,
        price: price(reader, spec)?,
        capacity: capacity(reader, spec)?,
    })
}

fn price<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<Option<PriceOverlay>, InputError> {
    let (price, adjustment) = (spec.get("price"), spec.get("priceAdjustment"));
    if let (Some(_), Some(node)) = (price, adjustment) {
        return Err(reader
            .error(node.at, "a NodeOverlay has both `price` and `priceAdjustment`")
            .because("the API server refuses it")
            .help("keep one of them"));
    }
    if let Some(node) = price {
        let text = reader.text(node, "price")?;
        let read = HourlyRate::parse(text).map(PriceOverlay::To);
        return read.map(Some).ok_or_else(|| not_a_price(reader, node, "price", "0.25"));
    }
    let Some(node) = adjustment else { return Ok(None) };
    let read = PriceOverlay::parse_adjustment(reader.text(node, "priceAdjustment")?);
    read.map(Some).ok_or_else(|| not_a_price(reader, node, "priceAdjustment", "+0.05, -15% or +10%"))
}

fn not_a_price(reader: &Reader<'_>, node: &Node<'_>, key: &str, example: &str) -> InputError {
    let shown: String = node.as_text().unwrap_or_default().chars().take(80).collect();
    reader
        .error(node.at, format!("`{key}` cannot be `{shown}`"))
        .because("the API server refuses it")
        .help(format!("write it in quotes, for example {example}; a share taken off is 100% at most"))
}

fn capacity<'s>(reader: &Reader<'s>, spec: Fields<'_, 's>) -> Result<Resources, InputError> {
    let Some(node) = spec.get("capacity") else { return Ok(Resources::new()) };
    for entry in reader.entries(node, "capacity")? {
        if OWN.contains(&&*entry.key) {
            return Err(reader
                .error(entry.value.at, format!("a NodeOverlay cannot state `{}`", entry.key))
                .because("the API server refuses it")
                .help("`capacity` adds extended resources only, for example `smarter-devices/fuse: 1`"));
        }
    }
    resource_map(reader, node, "capacity")
}
