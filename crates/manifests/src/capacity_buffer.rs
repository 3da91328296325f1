//! CapacityBuffers (`autoscaling.x-k8s.io`) and the PodTemplates that they look like.

use super::common::{metadata, resources};
use super::pod::{OBJECT, template};
use nodecast_model::domain::Symbol;
use nodecast_model::domain::capacity_buffer::{BufferShape, CapacityBuffer, PodTemplate};
use nodecast_model::domain::pod::OwnerKind;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static SPEC: Shape = Shape {
    name: "a CapacityBuffer's spec",
    keys: &["provisioningStrategy", "podTemplateRef", "scalableRef", "replicas", "percentage", "limits"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TEMPLATE_REF: Shape =
    Shape { name: "`podTemplateRef`", keys: &["name"], without_effect: &[], unsupported: &[], strict: false };
static SCALABLE_REF: Shape = Shape {
    name: "`scalableRef`",
    keys: &["apiGroup", "kind", "name"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// The strategy that keeps room all the time.
const ACTIVE: &str = "buffer.x-k8s.io/active-capacity";

/// A CapacityBuffer object. What the API server refuses is an error.
///
/// Source: Karpenter core v1.14 `pkg/apis/autoscaling/v1beta1/capacitybuffer.go` with its validation rules.
pub(super) fn capacity_buffer<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<CapacityBuffer, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let node = fields.required(reader, "spec")?;
    let spec = reader.fields(node, &SPEC)?;
    let (of_template, scalable) = (spec.get("podTemplateRef"), spec.get("scalableRef"));
    let shape = match (of_template, scalable) {
        (Some(template), None) => {
            let fields = reader.fields(template, &TEMPLATE_REF)?;
            BufferShape::Template(reader.symbol(fields.required(reader, "name")?, "name")?)
        }
        (None, Some(scalable)) => workload(reader, scalable)?,
        (one, _) => {
            let what = if one.is_some() { "both `podTemplateRef` and `scalableRef`" } else { "neither of the two" };
            return Err(reader
                .error(node.at, format!("a CapacityBuffer says in `podTemplateRef` or `scalableRef` whose pods it holds room for; this one has {what}"))
                .because("this buffer")
                .help("state one of them"));
        }
    };
    let strategy = spec.optional("provisioningStrategy", |n, what| reader.symbol(n, what))?;
    let limits = spec.get("limits").is_some().then(|| resources(reader, spec, "limits")).transpose()?;
    let buffer = CapacityBuffer {
        name,
        shape,
        replicas: amount(reader, spec, "replicas")?,
        percentage: amount(reader, spec, "percentage")?,
        limits,
        api_version: object.get("apiVersion").and_then(Node::as_text).map_or(Symbol::new(""), Symbol::new),
        other_strategy: strategy.filter(|strategy| strategy.as_str() != ACTIVE),
    };
    if of_template.is_some() && buffer.replicas.is_none() && buffer.limits.is_none() {
        return Err(reader
            .error(node.at, "a CapacityBuffer with `podTemplateRef` needs `replicas` or `limits`")
            .because("the API server refuses it")
            .help("add for example `replicas: 2`"));
    }
    Ok(buffer)
}

fn amount(reader: &Reader<'_>, spec: Fields<'_, '_>, key: &'static str) -> Result<Option<u32>, InputError> {
    let amount = spec.optional(key, |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)))?;
    Ok(amount.and_then(|amount| u32::try_from(amount).ok()))
}

fn workload<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<BufferShape, InputError> {
    let fields = reader.fields(node, &SCALABLE_REF)?;
    let kind = reader.symbol(fields.required(reader, "kind")?, "kind")?;
    let name = reader.symbol(fields.required(reader, "name")?, "name")?;
    let group = fields.optional("apiGroup", |n, what| reader.text(n, what))?.unwrap_or_default();
    Ok(match (group, kind.as_str()) {
        ("" | "apps", "Deployment") => BufferShape::Deployment(name),
        ("" | "apps", "StatefulSet") => BufferShape::StatefulSet(name),
        _ => BufferShape::Other(kind, name),
    })
}

static POD_TEMPLATE: Shape = Shape {
    name: "a PodTemplate",
    keys: &["apiVersion", "kind", "metadata", "template"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A PodTemplate object.
pub(super) fn pod_template<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<PodTemplate, InputError> {
    let fields = reader.fields(object, &POD_TEMPLATE)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = template(reader, fields.required(reader, "template")?, OwnerKind::None)?;
    Ok(PodTemplate { name, spec: spec.into() })
}
