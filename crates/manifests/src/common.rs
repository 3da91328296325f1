//! Parts that many kinds of object share: metadata, labels, selectors, resources, taints.

use crate::lints;
use nodecast_model::domain::labels::{SelectorExpression, SelectorOperator};
use nodecast_model::domain::pod::IntOrPercent;
use nodecast_model::domain::symbol::well_known;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{LabelSelector, Labels, ResourceName, Resources, SimTime, Symbol, Taint, TaintEffect};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

/// Metadata of an object.
pub(super) struct Metadata<'n, 's> {
    /// Namespace (`default` where none is given) and name.
    pub name: ObjectName,
    /// Labels.
    pub labels: Labels,
    /// Annotations.
    pub annotations: Labels,
    /// `ownerReferences`.
    pub owners: &'n [Node<'s>],
}

/// When an object came to be, and whether it is on its way out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Life {
    /// `creationTimestamp`, since 1970.
    pub created: Option<SimTime>,
    /// Whether there is a `deletionTimestamp`.
    pub deleting: bool,
    /// `deletionTimestamp`, since 1970: of a pod the end of its grace period.
    pub gone_by: Option<SimTime>,
}

static METADATA: Shape = Shape {
    name: "metadata",
    keys: &[
        "name",
        "generateName",
        "namespace",
        "labels",
        "annotations",
        "ownerReferences",
        "creationTimestamp",
        "deletionTimestamp",
    ],
    without_effect: &[
        "uid",
        "resourceVersion",
        "generation",
        "managedFields",
        "selfLink",
        "finalizers",
        "clusterName",
        "deletionGracePeriodSeconds",
    ],
    unsupported: &[],
    strict: false,
};

/// The metadata in `node` of an object whose end nobody waits for: one that is being deleted counts, with a warning, as if
/// it were not.
pub(super) fn metadata<'n, 's>(
    reader: &mut Reader<'s>,
    node: Option<&'n Node<'s>>,
) -> Result<Metadata<'n, 's>, InputError> {
    let (metadata, life) = metadata_and_life(reader, node)?;
    if let Some(at) = node.and_then(|node| node.get("deletionTimestamp")).filter(|_| life.deleting).map(|node| node.at)
    {
        let message = "`metadata.deletionTimestamp` is ignored: the object is treated as not being deleted";
        reader.left_out(&lints::DELETION_TIMESTAMP, at, message, "");
    }
    Ok(metadata)
}

/// The metadata in `node`, absent metadata having an empty name, and the object's age and end.
pub(super) fn metadata_and_life<'n, 's>(
    reader: &mut Reader<'s>,
    node: Option<&'n Node<'s>>,
) -> Result<(Metadata<'n, 's>, Life), InputError> {
    let default = ObjectName { namespace: well_known::DEFAULT, name: well_known::EMPTY };
    let mut result = Metadata { name: default, labels: Labels::new(), annotations: Labels::new(), owners: &[] };
    let Some(node) = node else { return Ok((result, Life::default())) };
    let fields = reader.fields(node, &METADATA)?;
    if let Some(namespace) = fields.optional("namespace", |n, what| reader.symbol(n, what))? {
        result.name.namespace = namespace;
    }
    let name = fields.optional("name", |n, what| reader.symbol(n, what))?;
    let prefix = fields.optional("generateName", |n, what| reader.symbol(n, what))?;
    result.name.name = name.or(prefix).unwrap_or(well_known::EMPTY);
    result.labels = labels(reader, fields, "labels")?;
    result.annotations = current_annotations(labels(reader, fields, "annotations")?);
    result.owners = fields.optional("ownerReferences", |n, what| reader.list(n, what))?.unwrap_or_default();
    let created = fields.optional("creationTimestamp", |n, what| instant(reader, n, what))?;
    let gone_by = fields.optional("deletionTimestamp", |n, what| instant(reader, n, what))?;
    Ok((result, Life { created, deleting: gone_by.is_some(), gone_by }))
}

/// An instant as the API writes it, for example `2026-03-01T12:00:00Z`.
pub(super) fn instant(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<SimTime, InputError> {
    let text = reader.text(node, what)?;
    let read: Result<jiff::Timestamp, _> = text.parse();
    read.map(|instant| SimTime::from_micros(instant.as_microsecond())).map_err(|_| {
        let shown: String = text.chars().take(80).collect();
        reader
            .error(node.at, format!("`{what}` is not a point in time: `{shown}`"))
            .because("not a time")
            .help("write it as the API does, for example 2026-03-01T12:00:00Z")
    })
}

/// Labels, annotations or a node selector under `key`.
pub fn labels(reader: &Reader<'_>, fields: Fields<'_, '_>, key: &'static str) -> Result<Labels, InputError> {
    let Some(node) = fields.get(key) else { return Ok(Labels::new()) };
    let mut result = Labels::new();
    for entry in reader.entries(node, key)? {
        // An empty value may be written as nothing.
        let value = if entry.value.kind == nodecast_model::text::tree::NodeKind::Null {
            well_known::EMPTY
        } else {
            reader.symbol(&entry.value, &entry.key)?
        };
        // Annotations, tags and the like have other rules.
        if matches!(key, "labels" | "matchLabels" | "nodeSelector") {
            super::names::check_label(reader, entry, value.as_str())?;
        }
        result.set(Symbol::new(&entry.key), value);
    }
    Ok(result)
}

/// Amounts of resources under `key`, none of them negative.
pub(super) fn resources(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
) -> Result<Resources, InputError> {
    match fields.get(key) {
        Some(node) => resource_map(reader, node, key),
        None => Ok(Resources::new()),
    }
}

/// Amounts of resources.
pub(super) fn resource_map(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<Resources, InputError> {
    let mut result = Resources::new();
    for entry in reader.entries(node, what)? {
        let quantity = reader.quantity(&entry.value, &entry.key)?;
        if quantity.nanos() < 0 {
            return Err(reader
                .error(entry.value.at, format!("`{}` is negative", entry.key))
                .because("below zero")
                .help("an amount of a resource is 0 or more"));
        }
        let name = ResourceName(Symbol::new(&entry.key));
        result.set(name, name.amount(quantity));
    }
    Ok(result)
}

static SELECTOR: Shape = Shape {
    name: "a label selector",
    keys: &["matchLabels", "matchExpressions"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SELECTOR_EXPRESSION: Shape = Shape {
    name: "an expression of a label selector",
    keys: &["key", "operator", "values"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A label selector as metav1 defines it.
pub(super) fn label_selector<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<LabelSelector, InputError> {
    let fields = reader.fields(node, &SELECTOR)?;
    let match_labels = labels(reader, fields, "matchLabels")?;
    let mut expressions = Vec::new();
    let given = fields.optional("matchExpressions", |n, what| reader.list(n, what))?;
    for node in given.unwrap_or_default() {
        let fields = reader.fields(node, &SELECTOR_EXPRESSION)?;
        let key = reader.symbol(fields.required(reader, "key")?, "key")?;
        let operator = reader.choice(
            fields.required(reader, "operator")?,
            "operator",
            &[
                ("In", SelectorOperator::In),
                ("NotIn", SelectorOperator::NotIn),
                ("Exists", SelectorOperator::Exists),
                ("DoesNotExist", SelectorOperator::DoesNotExist),
            ],
        )?;
        expressions.push(SelectorExpression { key, operator, values: symbols(reader, fields, "values")? });
    }
    Ok(LabelSelector { match_labels, expressions })
}

/// A list of texts under `key`.
pub(super) fn symbols(
    reader: &Reader<'_>,
    fields: Fields<'_, '_>,
    key: &'static str,
) -> Result<Vec<Symbol>, InputError> {
    let items = fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default();
    items.iter().map(|item| reader.symbol(item, key)).collect()
}

const EFFECTS: &[(&str, TaintEffect)] = &[
    ("NoSchedule", TaintEffect::NoSchedule),
    ("PreferNoSchedule", TaintEffect::PreferNoSchedule),
    ("NoExecute", TaintEffect::NoExecute),
];

/// A taint; `timeAdded` is the API server's.
static TAINT: Shape = Shape {
    name: "a taint",
    keys: &["key", "value", "effect"],
    without_effect: &["timeAdded"],
    unsupported: &[],
    strict: false,
};

/// Taints under `key`.
pub fn taints<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    key: &'static str,
) -> Result<Vec<Taint>, InputError> {
    let items = fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default();
    items
        .iter()
        .map(|item| {
            let fields = reader.fields(item, &TAINT)?;
            Ok(Taint {
                key: reader.symbol(fields.required(reader, "key")?, "key")?,
                value: fields.optional("value", |n, what| reader.symbol(n, what))?.unwrap_or(well_known::EMPTY),
                effect: taint_effect(reader, fields.required(reader, "effect")?)?,
            })
        })
        .collect()
}

/// The effect of a taint.
pub(super) fn taint_effect(reader: &Reader<'_>, node: &Node<'_>) -> Result<TaintEffect, InputError> {
    reader.choice(node, "effect", EFFECTS)
}

/// A count, or a percentage such as `25%`.
pub(super) fn int_or_percent(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<IntOrPercent, InputError> {
    let Some(digits) = node.as_text().and_then(|text| text.strip_suffix('%')) else {
        return reader.integer(node, what, 0, i64::from(i32::MAX)).map(IntOrPercent::Count);
    };
    match digits.parse::<i64>() {
        Ok(percent) if (0..=1_000_000).contains(&percent) => Ok(IntOrPercent::Percent(percent)),
        _ => Err(reader
            .error(node.at, format!("`{what}` is not a percentage"))
            .because("not a whole percentage")
            .help("write for example `25%`")),
    }
}

/// A whole number of 0 or more under `key`.
pub fn count(reader: &Reader<'_>, fields: Fields<'_, '_>, key: &'static str) -> Result<Option<u32>, InputError> {
    let number = fields.optional(key, |n, what| reader.integer(n, what, 0, i64::from(i32::MAX)))?;
    Ok(number.map(|number| u32::try_from(number).unwrap_or(u32::MAX)))
}

/// The present name of a node label that Karpenter v0.x called otherwise; other keys stay.
pub(super) fn current_label(key: Symbol) -> Symbol {
    if key == well_known::PROVISIONER_NAME { well_known::NODEPOOL } else { key }
}

/// The annotations by which Karpenter v0.x was told to leave a pod or a node alone, under their present name.
fn current_annotations(mut annotations: Labels) -> Labels {
    for older in ["karpenter.sh/do-not-evict", "karpenter.sh/do-not-consolidate"] {
        if let Some(value) = Symbol::existing(older).and_then(|key| annotations.get(key))
            && annotations.get(well_known::DO_NOT_DISRUPT).is_none()
        {
            annotations.set(well_known::DO_NOT_DISRUPT, value);
        }
    }
    annotations
}
