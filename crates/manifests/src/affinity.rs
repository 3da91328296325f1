//! Node affinity, pod affinity and anti-affinity, topology spread.

use super::common::{current_label, label_selector, symbols};
use nodecast_model::domain::pod::{NodeSelectorExpression, NodeSelectorTerm, PreferredNodeTerm};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::topology::{
    NodeInclusionPolicy, PodAffinity, PodAffinityTerm, TopologySpread, WeightedPodAffinityTerm, WhenUnsatisfiable,
};
use nodecast_model::domain::{NodeAffinity, PodSpec};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

static AFFINITY: Shape = Shape {
    name: "an affinity",
    keys: &["nodeAffinity", "podAffinity", "podAntiAffinity"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TERMS: Shape = Shape {
    name: "an affinity's terms",
    keys: &[REQUIRED, PREFERRED],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static NODE_SELECTOR: Shape = Shape {
    name: "required node affinity",
    keys: &["nodeSelectorTerms"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static NODE_TERM: Shape = Shape {
    name: "a node selector term",
    keys: &["matchExpressions", "matchFields"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static NODE_EXPRESSION: Shape = Shape {
    name: "an expression on node labels",
    keys: &["key", "operator", "values"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static PREFERRED_NODE_TERM: Shape = Shape {
    name: "a preferred node term",
    keys: &["weight", "preference"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static POD_TERM: Shape = Shape {
    name: "a pod affinity term",
    keys: &["topologyKey", "labelSelector", "namespaces", "namespaceSelector", "matchLabelKeys", "mismatchLabelKeys"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static WEIGHTED_POD_TERM: Shape = Shape {
    name: "a preferred pod affinity term",
    keys: &["weight", "podAffinityTerm"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SPREAD: Shape = Shape {
    name: "a topology spread constraint",
    keys: &[
        "topologyKey",
        "maxSkew",
        "whenUnsatisfiable",
        "labelSelector",
        "minDomains",
        "nodeAffinityPolicy",
        "nodeTaintsPolicy",
        "matchLabelKeys",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// Reads an `affinity` into `spec`.
pub(super) fn read<'s>(reader: &mut Reader<'s>, node: &Node<'s>, spec: &mut PodSpec) -> Result<(), InputError> {
    let fields = reader.fields(node, &AFFINITY)?;
    if let Some(node) = fields.get("nodeAffinity") {
        spec.node_affinity = node_affinity(reader, node)?;
    }
    if let Some(node) = fields.get("podAffinity") {
        spec.pod_affinity = pod_affinity(reader, node)?;
    }
    if let Some(node) = fields.get("podAntiAffinity") {
        spec.pod_anti_affinity = pod_affinity(reader, node)?;
    }
    Ok(())
}

fn items<'n, 's>(reader: &Reader<'s>, fields: Fields<'n, 's>, key: &'static str) -> Result<&'n [Node<'s>], InputError> {
    Ok(fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default())
}

/// The alternatives of a required node affinity.
pub(super) fn required_terms<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
) -> Result<Vec<NodeSelectorTerm>, InputError> {
    let fields = reader.fields(node, &NODE_SELECTOR)?;
    let terms = items(reader, fields, "nodeSelectorTerms")?;
    terms.iter().map(|term| node_term(reader, term)).collect()
}

fn node_affinity<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<NodeAffinity, InputError> {
    let fields = reader.fields(node, &TERMS)?;
    let mut affinity = NodeAffinity::default();
    if let Some(node) = fields.get(REQUIRED) {
        let selector = reader.fields(node, &NODE_SELECTOR)?;
        let terms = items(reader, selector, "nodeSelectorTerms")?;
        if terms.is_empty() {
            return Err(reader
                .error(node.at, "required node affinity needs at least one term")
                .because("no `nodeSelectorTerms`")
                .help("add a term, or remove the requirement"));
        }
        affinity.required = terms.iter().map(|term| node_term(reader, term)).collect::<Result<_, _>>()?;
    }
    for node in items(reader, fields, PREFERRED)? {
        let preferred = reader.fields(node, &PREFERRED_NODE_TERM)?;
        affinity.preferred.push(PreferredNodeTerm {
            weight: weight(reader, preferred)?,
            term: node_term(reader, preferred.required(reader, "preference")?)?,
        });
    }
    Ok(affinity)
}

fn weight(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<i64, InputError> {
    reader.integer(fields.required(reader, "weight")?, "weight", 1, 100)
}

fn node_term<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<NodeSelectorTerm, InputError> {
    let fields = reader.fields(node, &NODE_TERM)?;
    let mut read = |key| -> Result<Vec<NodeSelectorExpression>, InputError> {
        let nodes = items(reader, fields, key)?;
        nodes.iter().map(|node| node_expression(reader, node)).collect()
    };
    Ok(NodeSelectorTerm { expressions: read("matchExpressions")?, fields: read("matchFields")? })
}

/// The operators of node affinity.
const POD_OPERATORS: &[(&str, Operator)] = &[
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
    ("Gt", Operator::Gt),
    ("Lt", Operator::Lt),
];

fn node_expression<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<NodeSelectorExpression, InputError> {
    let fields = reader.fields(node, &NODE_EXPRESSION)?;
    Ok(NodeSelectorExpression {
        key: current_label(reader.symbol(fields.required(reader, "key")?, "key")?),
        operator: reader.choice(fields.required(reader, "operator")?, "operator", POD_OPERATORS)?,
        values: symbols(reader, fields, "values")?,
    })
}

fn pod_affinity<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<PodAffinity, InputError> {
    let fields = reader.fields(node, &TERMS)?;
    let mut affinity = PodAffinity::default();
    for node in items(reader, fields, REQUIRED)? {
        affinity.required.push(pod_term(reader, node)?);
    }
    for node in items(reader, fields, PREFERRED)? {
        let weighted = reader.fields(node, &WEIGHTED_POD_TERM)?;
        affinity.preferred.push(WeightedPodAffinityTerm {
            weight: weight(reader, weighted)?,
            term: pod_term(reader, weighted.required(reader, "podAffinityTerm")?)?,
        });
    }
    Ok(affinity)
}

fn pod_term<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<PodAffinityTerm, InputError> {
    let fields = reader.fields(node, &POD_TERM)?;
    Ok(PodAffinityTerm {
        topology_key: reader.symbol(fields.required(reader, "topologyKey")?, "topologyKey")?,
        selector: fields.get("labelSelector").map(|n| label_selector(reader, n)).transpose()?,
        namespaces: symbols(reader, fields, "namespaces")?,
        namespace_selector: fields.get("namespaceSelector").map(|n| label_selector(reader, n)).transpose()?,
        match_label_keys: symbols(reader, fields, "matchLabelKeys")?,
        mismatch_label_keys: symbols(reader, fields, "mismatchLabelKeys")?,
    })
}

/// The topology spread constraints of a pod's spec.
pub(super) fn topology_spread<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
) -> Result<Vec<TopologySpread>, InputError> {
    let constraints = items(reader, fields, "topologySpreadConstraints")?;
    constraints.iter().map(|node| spread(reader, node)).collect()
}

fn spread<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<TopologySpread, InputError> {
    const UNSATISFIABLE: &[(&str, WhenUnsatisfiable)] =
        &[("DoNotSchedule", WhenUnsatisfiable::DoNotSchedule), ("ScheduleAnyway", WhenUnsatisfiable::ScheduleAnyway)];
    const INCLUSION: &[(&str, NodeInclusionPolicy)] =
        &[("Honor", NodeInclusionPolicy::Honor), ("Ignore", NodeInclusionPolicy::Ignore)];
    let fields = reader.fields(node, &SPREAD)?;
    let at_least_one = |n, what| reader.integer(n, what, 1, i64::from(i32::MAX));
    let unsatisfiable = fields.required(reader, "whenUnsatisfiable")?;
    let when_unsatisfiable = reader.choice(unsatisfiable, "whenUnsatisfiable", UNSATISFIABLE)?;
    // Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `validateMinDomains`.
    if let (Some(node), WhenUnsatisfiable::ScheduleAnyway) = (fields.get("minDomains"), when_unsatisfiable) {
        return Err(reader
            .error(node.at, "`minDomains` requires `whenUnsatisfiable: DoNotSchedule`")
            .because("the API server rejects it with `ScheduleAnyway`")
            .help("remove it, or write `whenUnsatisfiable: DoNotSchedule`"));
    }
    Ok(TopologySpread {
        topology_key: reader.symbol(fields.required(reader, "topologyKey")?, "topologyKey")?,
        max_skew: at_least_one(fields.required(reader, "maxSkew")?, "maxSkew")?,
        when_unsatisfiable,
        min_domains: fields.optional("minDomains", at_least_one)?,
        node_affinity_policy: fields
            .optional("nodeAffinityPolicy", |n, what| reader.choice(n, what, INCLUSION))?
            .unwrap_or(NodeInclusionPolicy::Honor),
        node_taints_policy: fields
            .optional("nodeTaintsPolicy", |n, what| reader.choice(n, what, INCLUSION))?
            .unwrap_or(NodeInclusionPolicy::Ignore),
        match_label_keys: symbols(reader, fields, "matchLabelKeys")?,
        selector: fields.get("labelSelector").map(|n| label_selector(reader, n)).transpose()?,
    })
}
