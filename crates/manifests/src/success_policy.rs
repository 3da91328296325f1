//! `successPolicy` of Jobs.
//!
//! Source: Kubernetes 1.36 `pkg/apis/batch/validation/validation.go`, `validateSuccessPolicy`.

use super::common::count;
use super::job_status::index_spans;
use nodecast_model::domain::workload::SuccessRule;
use nodecast_model::text::InputError;
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;

static POLICY: Shape =
    Shape { name: "`successPolicy`", keys: &["rules"], without_effect: &[], unsupported: &[], strict: false };
static RULE: Shape = Shape {
    name: "a rule of `successPolicy`",
    keys: &["succeededIndexes", "succeededCount"],
    without_effect: &[],
    unsupported: &[],
    strict: false,
};

/// The rules of a Job, which has to be `indexed`.
///
/// # Errors
/// If the API server rejects them.
pub(super) fn read<'s>(
    reader: &mut Reader<'s>,
    spec: Fields<'_, 's>,
    indexed: bool,
) -> Result<Vec<SuccessRule>, InputError> {
    let Some(node) = spec.get("successPolicy") else { return Ok(Vec::new()) };
    if !indexed {
        return Err(reader
            .error(node.at, "`successPolicy` requires an Indexed Job with `completions`")
            .because("the API server rejects it")
            .help("add `completionMode: Indexed` and `completions`, or remove `successPolicy`"));
    }
    let fields = reader.fields(node, &POLICY)?;
    let rules = reader.list(fields.required(reader, "rules")?, "rules")?;
    rules.iter().map(|rule| read_rule(reader, rule)).collect()
}

fn read_rule<'s>(reader: &mut Reader<'s>, node: &Node<'s>) -> Result<SuccessRule, InputError> {
    let fields = reader.fields(node, &RULE)?;
    let indexes = fields.optional("succeededIndexes", |node, what| index_spans(reader, node, what))?;
    let count = count(reader, fields, "succeededCount")?;
    if indexes.is_none() && count.is_none() {
        return Err(reader
            .error(node.at, "a rule of `successPolicy` has neither `succeededIndexes` nor `succeededCount`")
            .because("the API server rejects it")
            .help("write for example `succeededCount: 1`"));
    }
    Ok(SuccessRule { indexes, count })
}
