//! ResourceQuota objects.

use super::common::metadata;
use super::pod::OBJECT;
use crate::lints;
use nodecast_model::domain::quota::{CLASS_SUFFIX, ClaimQuota, QuotaScope, ResourceQuota};
use nodecast_model::domain::{ResourceName, Resources, Symbol};
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::{Location, Node};

static SPEC: Shape = Shape {
    name: "a ResourceQuota's spec",
    keys: &["hard", "scopes", "scopeSelector"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static SELECTOR: Shape = Shape {
    name: "a scope selector",
    keys: &["matchExpressions"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};
static EXPRESSION: Shape = Shape {
    name: "an expression of a scope selector",
    keys: &["scopeName", "operator", "values"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// A ResourceQuota object, as far as it is about pods and claims.
pub(super) fn resource_quota<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<ResourceQuota, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let (requests, limits) = (Resources::new(), Resources::new());
    let mut quota = ResourceQuota { name, pods: None, requests, limits, scopes: Vec::new(), claims: Vec::new() };
    if let Some(hard) = spec.get("hard") {
        for entry in reader.entries(hard, "hard")? {
            let quantity = reader.quantity(&entry.value, &entry.key)?;
            let set = |amounts: &mut Resources, name: &str| {
                let name = ResourceName(Symbol::new(name));
                amounts.set(name, name.amount(quantity));
            };
            if states_claims(&mut quota, &entry.key, quantity.value()) {
                continue;
            }
            match &*entry.key {
                "pods" | "count/pods" => quota.pods = Some(quantity.nanos().div_euclid(1_000_000_000) as i64),
                "cpu" | "memory" | "ephemeral-storage" => set(&mut quota.requests, &entry.key),
                key => match (key.strip_prefix("requests."), key.strip_prefix("limits.")) {
                    (Some(name), _) => set(&mut quota.requests, name),
                    (None, Some(name)) => set(&mut quota.limits, name),
                    (None, None) if key.starts_with("count/") => not_counted(reader, entry.value.at, key),
                    (None, None) => {}
                },
            }
        }
    }
    for node in spec.optional("scopes", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let scope = reader.text(node, "scope")?;
        quota.scopes.extend(known(reader, node, scope, "Exists", Vec::new()));
    }
    if let Some(selector) = spec.get("scopeSelector") {
        let fields = reader.fields(selector, &SELECTOR)?;
        for node in fields.optional("matchExpressions", |n, what| reader.list(n, what))?.unwrap_or_default() {
            let fields = reader.fields(node, &EXPRESSION)?;
            let scope = reader.text(fields.required(reader, "scopeName")?, "scopeName")?;
            let operator = reader.text(fields.required(reader, "operator")?, "operator")?;
            let values = fields.optional("values", |n, what| reader.list(n, what))?.unwrap_or_default();
            let values: Vec<Symbol> = values
                .iter()
                .map(|node| Ok(Symbol::new(reader.text(node, "value")?)))
                .collect::<Result<_, InputError>>()?;
            quota.scopes.extend(known(reader, node, scope, operator, values));
        }
    }
    Ok(quota)
}

/// Takes down what a quota says of claims; whether it says that under this key.
fn states_claims(quota: &mut ResourceQuota, key: &str, amount: i64) -> bool {
    let (class, what) = match key.split_once(CLASS_SUFFIX) {
        Some((class, what)) => (Some(Symbol::new(class)), what),
        None => (None, key),
    };
    let claim_quota = ClaimQuota { class, ..ClaimQuota::default() };
    quota.claims.extend(match what {
        "persistentvolumeclaims" | "count/persistentvolumeclaims" => {
            Some(ClaimQuota { count: Some(amount), ..claim_quota })
        }
        "requests.storage" => Some(ClaimQuota { bytes: Some(amount), ..claim_quota }),
        _ => None,
    });
    matches!(what, "persistentvolumeclaims" | "count/persistentvolumeclaims" | "requests.storage")
}

/// Warns of objects that may be too many and are there all the same.
fn not_counted(reader: &mut Reader<'_>, at: Location, key: &str) {
    let told = format!("`{key}` of a ResourceQuota is not simulated: no object is refused for it");
    reader.warn(&lints::QUOTA_RESOURCE, at, told, "this limit", "");
}

/// The scope, or a warning that the quota counts for more pods than it should.
fn known(
    reader: &mut Reader<'_>,
    node: &Node<'_>,
    scope: &str,
    operator: &str,
    values: Vec<Symbol>,
) -> Option<QuotaScope> {
    match (scope, operator) {
        ("Terminating", "Exists") => Some(QuotaScope::Terminating(true)),
        ("NotTerminating", "Exists") => Some(QuotaScope::Terminating(false)),
        ("BestEffort", "Exists") => Some(QuotaScope::BestEffort(true)),
        ("NotBestEffort", "Exists") => Some(QuotaScope::BestEffort(false)),
        ("PriorityClass", "Exists" | "In") => Some(QuotaScope::PriorityClass(values)),
        _ => {
            let told = format!(
                "the scope `{scope}` with `{operator}` of a ResourceQuota is not simulated: it counts for all pods"
            );
            reader.warn(&lints::QUOTA_SCOPE, node.at, told, "this scope", "");
            None
        }
    }
}
