//! Karpenter's NodePool, `karpenter.sh/v1` and `v1beta1`.

use super::bounds::{int_or_share, span};
use super::common::{current_label, labels, metadata_and_life, resources, symbols, taints};
use super::offered::{warn_of_unknown_label, warn_of_unknown_values};
use super::restricted::{Stating, labels_of_nodes, may_state};
use crate::lints;
use nodecast_model::auto_mode;
use nodecast_model::domain::cron::CronSchedule;
use nodecast_model::domain::labels::normalized_key;
use nodecast_model::domain::node_pool::{Budget, ConsolidationPolicy, Disruption, DisruptionReason};
use nodecast_model::domain::requirements::Operator;
use nodecast_model::domain::words::counted;
use nodecast_model::domain::{NodePool, Requirement, SimDuration, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};

static SPEC: Shape = Shape {
    name: "a NodePool's spec",
    keys: &["template", "disruption", "limits", "weight", "replicas"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TEMPLATE: Shape = Shape {
    name: "a NodePool's template",
    keys: &["metadata", "spec"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TEMPLATE_METADATA: Shape = Shape {
    name: "the metadata of a NodePool's template",
    keys: &["labels", "annotations"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static TEMPLATE_SPEC: Shape = Shape {
    name: "the spec of a NodePool's template",
    keys: &[
        "nodeClassRef",
        "requirements",
        "taints",
        "startupTaints",
        "expireAfter",
        "terminationGracePeriod",
        "kubelet",
    ],
    without_effect: &["resources"],
    unsupported: &[],
    strict: false,
};
static REQUIREMENT: Shape = Shape {
    name: "a requirement",
    keys: &["key", "operator", "values", "minValues"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static DISRUPTION: Shape = Shape {
    name: "`disruption`",
    keys: &["consolidationPolicy", "consolidateAfter", "budgets", "expireAfter"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static BUDGET: Shape = Shape {
    name: "a disruption budget",
    keys: &["nodes", "reasons", "schedule", "duration"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// Budgets that a NodePool has at most.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `Disruption`.
const MOST_BUDGETS: usize = 50;

const OPERATORS: &[(&str, Operator)] = &[
    ("In", Operator::In),
    ("NotIn", Operator::NotIn),
    ("Exists", Operator::Exists),
    ("DoesNotExist", Operator::DoesNotExist),
    ("Gt", Operator::Gt),
    ("Lt", Operator::Lt),
    ("Gte", Operator::Gte),
    ("Lte", Operator::Lte),
];

/// A NodePool object.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`; the conversion from v1beta1 as in v1.0
/// `pkg/apis/v1beta1/nodepool_conversion.go`.
pub(super) fn node_pool<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<NodePool, InputError> {
    let fields = reader.fields(object, &super::pod::OBJECT)?;
    let defaults = if is_of_auto_mode(object) { auto_mode::own_pool } else { NodePool::named };
    let (metadata, life) = metadata_and_life(reader, fields.get("metadata"))?;
    let name = metadata.name.name;
    let conditions = object.get("status").and_then(|status| status.get("conditions"));
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let mut pool = NodePool {
        limits: resources(reader, spec, "limits")?,
        weight: weight(reader, spec)?,
        replicas: super::common::count(reader, spec, "replicas")?,
        ready: !life.deleting && conditions.is_none_or(super::node::is_ready),
        ..defaults(name)
    };
    refuse_beside_replicas(reader, spec)?;
    let stating = Stating::of_pool(reader, object);
    let template = reader.fields(spec.required(reader, "template")?, &TEMPLATE)?;
    if let Some(node) = template.get("metadata") {
        let metadata = reader.fields(node, &TEMPLATE_METADATA)?;
        pool.labels = labels_of_nodes(reader, metadata, stating)?;
        pool.annotations = labels(reader, metadata, "annotations")?;
    }
    let inner = reader.fields(template.required(reader, "spec")?, &TEMPLATE_SPEC)?;
    pool.requirements = requirements(reader, inner, stating)?;
    pool.taints = taints(reader, inner, "taints")?;
    pool.startup_taints = taints(reader, inner, "startupTaints")?;
    if let Some(name) = inner.get("nodeClassRef").and_then(|n| n.get("name")) {
        pool.node_class = reader.symbol(name, "name")?;
    }
    let template_node = template.get("spec");
    if !is_dropped(reader, object, template_node, "kubelet", "`spec.kubelet` of the EC2NodeClass")? {
        pool.kubelet = inner.get("kubelet").map(|n| super::node_class::kubelet(reader, n)).transpose()?;
    }
    if let Some(node) = inner.get("expireAfter") {
        pool.expire_after = duration_or_never(reader, node, "expireAfter")?;
    }
    let grace = inner.optional("terminationGracePeriod", |n, what| span(reader, n, what, false))?;
    pool.termination_grace_period = grace.or(pool.termination_grace_period);
    if let Some(node) = spec.get("disruption") {
        let dropped = is_dropped(
            reader,
            object,
            Some(node),
            "expireAfter",
            "`spec.template.spec.expireAfter`, `720h` unless stated",
        )?;
        disruption(reader, node, &mut pool, object.get("status").is_some(), !dropped)?;
        warn_of_older_name(reader, object, node);
        warn_of_what_is_required(reader, object, node);
    }
    Ok(pool)
}

/// Whether `key` of `parent` is stated by an object of `karpenter.sh/v1`, which has it elsewhere, `now`: then it is warned of. The API server
/// drops a field that the version does not have, where it does not refuse it (`kubectl apply` asks it to).
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `Disruption`, and `nodeclaim.go`, `NodeClaimTemplateSpec`; for what became of the fields
/// of v1beta1, v1.0 `pkg/apis/v1beta1/nodepool_conversion.go`.
fn is_dropped<'s>(
    reader: &mut Reader<'s>,
    object: &Node<'s>,
    parent: Option<&Node<'s>>,
    key: &str,
    now: &str,
) -> Result<bool, InputError> {
    let older = object.get("apiVersion").and_then(Node::as_text).is_some_and(|version| version.ends_with("/v1beta1"));
    let entry = parent.and_then(|parent| parent.entries().iter().find(|entry| entry.key == key));
    let Some(entry) = entry.filter(|entry| !older && entry.value.kind != NodeKind::Null) else { return Ok(false) };
    let message = format!("`karpenter.sh/v1` has no `{key}` here: it is of v1beta1, and the API server drops it");
    let help = format!("state {now}");
    if entry.edited {
        return Err(reader.error(entry.key_at, message).because("it has no effect").help(help));
    }
    reader.warn(&lints::BETA_KEY, entry.key_at, message, "has no effect", &help);
    Ok(true)
}

/// Whether the pool's node class is one of EKS Auto Mode.
fn is_of_auto_mode(object: &Node<'_>) -> bool {
    let reference =
        ["spec", "template", "spec", "nodeClassRef"].into_iter().try_fold(object, |node, key| node.get(key));
    reference.and_then(|reference| reference.get("group")).and_then(Node::as_text) == Some("eks.amazonaws.com")
}

/// `WhenUnderutilized` is what v1beta1 calls a policy that v1 has another name for, and no other.
fn warn_of_older_name<'s>(reader: &mut Reader<'s>, object: &Node<'s>, disruption: &Node<'s>) {
    let is_v1 = object.get("apiVersion").and_then(Node::as_text) == Some("karpenter.sh/v1");
    let policy = disruption.get("consolidationPolicy").filter(|node| node.as_text() == Some("WhenUnderutilized"));
    if let Some(node) = policy.filter(|_| is_v1) {
        let message = "`karpenter.sh/v1` has no consolidationPolicy `WhenUnderutilized`";
        reader.warn(
            &lints::BETA_POLICY,
            node.at,
            message.to_owned(),
            "its name in v1beta1",
            "write `WhenEmptyOrUnderutilized`, which it is taken for",
        );
    }
}

/// The API server refuses a v1 NodePool whose `disruption` has no `consolidateAfter`.
fn warn_of_what_is_required<'s>(reader: &mut Reader<'s>, object: &Node<'s>, disruption: &Node<'s>) {
    let is_v1 = object.get("apiVersion").and_then(Node::as_text) == Some("karpenter.sh/v1");
    if is_v1 && disruption.get("consolidateAfter").is_none() {
        reader.warn(
            &lints::CONSOLIDATE_AFTER_MISSING,
            disruption.at,
            "`disruption` of a `karpenter.sh/v1` NodePool has no `consolidateAfter`, which is required there"
                .to_owned(),
            "taken as `0s`",
            "write it, for example `consolidateAfter: 0s`",
        );
    }
}

/// What the API server refuses of a static pool.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, the rules of `NodePoolSpec`.
fn refuse_beside_replicas(reader: &Reader<'_>, spec: Fields<'_, '_>) -> Result<(), InputError> {
    if spec.get("replicas").is_none() {
        return Ok(());
    }
    let refused =
        |at, message: String, help| Err(reader.error(at, message).because("the API server refuses it").help(help));
    if let Some(node) = spec.get("weight") {
        let message = "a NodePool with `replicas` has no `weight`".to_owned();
        return refused(node.at, message, "remove `weight`: static NodePools do not launch nodes for pods");
    }
    let limits = spec.get("limits").map(Node::entries).unwrap_or_default();
    match limits.iter().find(|entry| entry.key != "nodes") {
        Some(entry) => {
            let message = format!("`limits` of a NodePool with `replicas` has no `{}`", entry.key);
            refused(entry.key_at, message, "take it out: of a static pool only `nodes` can be limited")
        }
        None => Ok(()),
    }
}

/// `weight`, up to 100. The API server refuses 0, which Karpenter takes for none.
pub(super) fn weight(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<i32, InputError> {
    let weight = fields.optional("weight", |n, what| reader.integer(n, what, 0, 100))?;
    Ok(weight.and_then(|weight| i32::try_from(weight).ok()).unwrap_or(0))
}

/// A duration, or `Never`.
fn duration_or_never(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Result<Option<SimDuration>, InputError> {
    if node.as_text() == Some("Never") { Ok(None) } else { span(reader, node, what, false).map(Some) }
}

/// The `requirements`, renamed label keys rewritten, without those that are left out.
pub(super) fn requirements<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    stating: Stating,
) -> Result<Vec<Requirement>, InputError> {
    let items = fields.optional("requirements", |n, what| reader.list(n, what))?.unwrap_or_default();
    items.iter().filter_map(|node| requirement(reader, node, stating).transpose()).collect()
}

fn requirement<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    stating: Stating,
) -> Result<Option<Requirement>, InputError> {
    let fields = reader.fields(node, &REQUIREMENT)?;
    let key_node = fields.required(reader, "key")?;
    let key = current_label(normalized_key(reader.symbol(key_node, "key")?));
    let operator_node = fields.required(reader, "operator")?;
    let operator = reader.choice(operator_node, "operator", OPERATORS)?;
    let values = symbols(reader, fields, "values")?;
    let bound = matches!(operator, Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte);
    let (wrong, help) = match operator {
        Operator::In if values.is_empty() => (true, "add a value to `values`"),
        Operator::Exists | Operator::DoesNotExist if !values.is_empty() => (true, "remove `values`"),
        _ if bound && !(values.len() == 1 && values[0].as_str().parse::<i64>().is_ok_and(|n| n >= 0)) => {
            (true, "give `values` exactly one whole number in quotes")
        }
        _ => (false, ""),
    };
    if wrong {
        return Err(reader
            .error(operator_node.at, format!("the values of `{key}` do not suit the operator `{operator}`"))
            .because(format!("with {}", counted(values.len() as u64, "value", "values")))
            .help(help));
    }
    if !may_state(reader, key, key_node.at, stating)? {
        return Ok(None);
    }
    // Elsewhere such a label is refused.
    if stating == Stating::Overlay {
        warn_of_unknown_label(reader, key, key_node);
    }
    // Karpenter passes over values that no instance type has, so these are no error.
    if operator == Operator::In {
        let nodes = fields.get("values").map(Node::items).unwrap_or_default();
        warn_of_unknown_values(reader, key, &values, nodes);
    }
    let min_values = fields.optional("minValues", |n, what| reader.integer(n, what, 1, 50))?;
    if let (Some(least), Operator::In) = (min_values, operator) {
        check_count(reader, fields, &values, least, stating)?;
    }
    let min_values = min_values.and_then(|n| u32::try_from(n).ok());
    Ok(Some(Requirement::new(key, operator, values).with_min_values(min_values)))
}

/// Reads `disruption`; one that was `found` in a cluster may have a schedule that the API server takes and Karpenter cannot read. `expires`
/// says whether its API version has an `expireAfter` here.
fn disruption<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    pool: &mut NodePool,
    found: bool,
    expires: bool,
) -> Result<(), InputError> {
    const POLICIES: &[(&str, ConsolidationPolicy)] = &[
        ("WhenEmpty", ConsolidationPolicy::WhenEmpty),
        ("WhenEmptyOrUnderutilized", ConsolidationPolicy::WhenEmptyOrUnderutilized),
        ("WhenUnderutilized", ConsolidationPolicy::WhenEmptyOrUnderutilized),
        ("Balanced", ConsolidationPolicy::Balanced),
    ];
    let fields = reader.fields(node, &DISRUPTION)?;
    let mut disruption = Disruption::default();
    if let Some(policy) = fields.optional("consolidationPolicy", |n, what| reader.choice(n, what, POLICIES))? {
        disruption.policy = policy;
    }
    if let Some(node) = fields.get("consolidateAfter") {
        disruption.consolidate_after = duration_or_never(reader, node, "consolidateAfter")?;
    }
    if let Some(node) = fields.get("expireAfter").filter(|_| expires) {
        pool.expire_after = duration_or_never(reader, node, "expireAfter")?;
    }
    // An empty list is a list: it removes the default budget.
    if let Some(node) = fields.get("budgets") {
        let budgets = reader.list(node, "budgets")?;
        if let Some(node) = budgets.get(MOST_BUDGETS) {
            return Err(reader
                .error(node.at, format!("a NodePool has {} budgets", budgets.len()))
                .because(format!("at most {MOST_BUDGETS}"))
                .help("keep only the binding ones; of several active budgets the smallest applies"));
        }
        disruption.budgets = budgets.iter().map(|node| budget(reader, node, found)).collect::<Result<_, _>>()?;
    }
    pool.disruption = disruption;
    Ok(())
}

fn budget<'s>(reader: &mut Reader<'s>, node: &Node<'s>, found: bool) -> Result<Budget, InputError> {
    const REASONS: &[(&str, DisruptionReason)] = &[
        ("Underutilized", DisruptionReason::Underutilized),
        ("Empty", DisruptionReason::Empty),
        ("Drifted", DisruptionReason::Drifted),
    ];
    let fields = reader.fields(node, &BUDGET)?;
    let nodes = int_or_share(reader, fields.required(reader, "nodes")?, "nodes")?;
    let reasons = fields.optional("reasons", |n, what| reader.list(n, what))?;
    let reasons = reasons
        .filter(|given| !given.is_empty())
        .map(|given| given.iter().map(|n| reader.choice(n, "reasons", REASONS)).collect::<Result<_, _>>())
        .transpose()?;
    let schedule = fields.get("schedule").map(|n| cron(reader, n, found)).transpose()?;
    let duration = fields.optional("duration", |n, what| span(reader, n, what, true))?;
    if schedule.is_some() != duration.is_some() {
        return Err(reader
            .error(fields.at, "a budget needs both `schedule` and `duration`, or neither")
            .because("only one of the two")
            .help("add the missing one: `schedule` sets the start, `duration` the length"));
    }
    Ok(Budget { nodes, reasons, schedule, duration })
}

/// Refuses a requirement that leaves fewer values than it demands, as the API server does since its rule is there; of one that is older
/// Karpenter launches nothing.
///
/// Source: Karpenter core v1.13 `pkg/apis/crds/karpenter.sh_nodepools.yaml`, the rules of `requirements`.
fn check_count(
    reader: &mut Reader<'_>,
    fields: Fields<'_, '_>,
    values: &[Symbol],
    least: i64,
    stating: Stating,
) -> Result<(), InputError> {
    if i64::try_from(values.len()).is_ok_and(|count| count >= least) {
        return Ok(());
    }
    let (because, help) = ("the API server refuses it", "add values, or lower `minValues`");
    let at = fields.get("minValues").map_or(fields.at, |node| node.at);
    let message = format!("`minValues` is {least}, of {}", counted(values.len() as u64, "value", "values"));
    if matches!(stating, Stating::Pool | Stating::Provisioner) {
        return Err(reader.error(at, message).because(because).help(help));
    }
    reader.warn(&lints::MIN_VALUES, at, message, because, help);
    Ok(())
}

/// A cron expression. The API server looks at no more than that it has five fields; Karpenter then says that the pool is not valid
/// and launches nothing from it. One of a cluster keeps it, with a warning, and closes its pool as it does there.
///
/// Source: Karpenter core v1.13 `pkg/apis/v1/nodepool_validation.go`, `RuntimeValidate`, and `pkg/apis/v1/nodepool.go`, `IsActive`, which
/// has the parser `cron.ParseStandard`.
fn cron(reader: &mut Reader<'_>, node: &Node<'_>, found: bool) -> Result<String, InputError> {
    let text = reader.text(node, "schedule")?.to_owned();
    let Err(problem) = CronSchedule::parse_named(&text) else { return Ok(text) };
    let help = "write minute, hour, day of month, month and day of week, for example `0 9 * * mon-fri`, or `@daily`";
    let message = format!("`schedule` is not a cron expression: {problem}");
    if found {
        reader.warn(&lints::BUDGET_SCHEDULE, node.at, message, "closes the pool to disruption", help);
        return Ok(text);
    }
    Err(reader.error(node.at, message).because("cannot be read").help(help))
}

#[cfg(test)]
mod tests {
    use crate::read_manifests;
    use nodecast_model::text::Source;

    /// What is said to a NodePool with these keys of its spec.
    fn refused(spec: &str) -> Option<String> {
        let text = format!(
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: default}}\nspec:\n  {spec}\n  template:\n    spec:\n      \
             nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}\n      requirements: []\n"
        );
        read_manifests(&Source::new("pool.yaml", text)).err().map(|error| error.to_string())
    }

    #[test]
    fn invalid_static_pool_fields_are_rejected() {
        let told = |spec: &str, what: &str| refused(spec).unwrap().contains(what);
        assert!(told("replicas: 3\n  weight: 10", "has no `weight`"));
        assert!(told("replicas: 3\n  limits: {nodes: 5, cpu: \"2\"}", "has no `cpu`"));
        for taken in
            ["replicas: 3\n  limits: {nodes: 5}", "replicas: 0", "weight: 10\n  limits: {cpu: \"2\"}", "weight: 1"]
        {
            assert_eq!(refused(taken), None, "{taken}");
        }
        assert!(refused("weight: 101").is_some());
    }

    #[test]
    fn a_pool_has_fifty_budgets_at_most() {
        let budgets = |count: usize| {
            let list = vec!["{nodes: \"1\"}"; count].join(", ");
            refused(&format!("disruption: {{consolidateAfter: 0s, budgets: [{list}]}}"))
        };
        assert_eq!(budgets(50), None);
        assert!(budgets(51).unwrap().contains("51 budgets"));
    }
}
