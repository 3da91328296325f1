//! What pods ask of their nodes beyond CPU and memory.

use std::collections::BTreeMap;

use nodecast_model::text::InputError;

use super::super::answer::Series;
use super::super::catalogue::{GPUS_ROLE, NODE_SELECTORS, SELECTORS_ROLE, TOLERATIONS_ROLE};
use super::answer_reader::AnswerReader;
use super::owners::Owners;
use super::pods::{comes_with_its_node, last_amount};
use crate::observation::Placement;

/// The roles of answers that show what pods ask of their nodes.
pub(super) const ROLES: &[&str] = &[GPUS_ROLE, TOLERATIONS_ROLE, SELECTORS_ROLE];

/// Each pod that asks for anything, by namespace and name. Pods that come with their node are left out: what they ask is of no node in particular.
///
/// # Errors
/// If an answer cannot be read.
pub(super) fn placements(told: &mut AnswerReader<'_>, owners: &Owners) -> Result<Vec<Placement>, InputError> {
    let mut all: BTreeMap<(String, String), Placement> = BTreeMap::new();
    for (role, put) in [
        (GPUS_ROLE, put_gpus as fn(&mut Placement, &Series)),
        (TOLERATIONS_ROLE, put_toleration),
        (SELECTORS_ROLE, put_selectors),
    ] {
        for series in told.series(role)? {
            let (namespace, pod) = (series.label("namespace").to_owned(), series.label("pod").to_owned());
            if owners.of_pod(&namespace, &pod).is_some_and(comes_with_its_node) {
                continue;
            }
            let new = || Placement { pod: pod.clone(), namespace: namespace.clone(), ..Placement::default() };
            put(all.entry((namespace.clone(), pod.clone())).or_insert_with(new), &series);
        }
    }
    Ok(all.into_values().filter(Placement::asks_for_anything).collect())
}

fn put_gpus(placement: &mut Placement, series: &Series) {
    let gpus = last_amount(series).map(|sample| libm::round(sample.value) as i64);
    placement.gpus = gpus.filter(|gpus| *gpus > 0);
}

fn put_toleration(placement: &mut Placement, series: &Series) {
    let [key, value, effect] = ["key", "value", "effect"].map(|name| series.label(name));
    let taint = match (series.label("operator"), key) {
        ("Exists", "") => "*".to_owned(),
        ("Exists", key) => key.to_owned(),
        (_, "") => return,
        (_, key) => format!("{key}={value}"),
    };
    let text = if effect.is_empty() { taint } else { format!("{taint}:{effect}") };
    add(&mut placement.tolerations, &text);
}

fn put_selectors(placement: &mut Placement, series: &Series) {
    for (key, label) in NODE_SELECTORS {
        let value = series.label(label);
        if !value.is_empty() {
            add(&mut placement.node_selector, &format!("{key}={value}"));
        }
    }
}

/// Puts a text behind others; once, however often it is there.
fn add(to: &mut Option<String>, text: &str) {
    match to {
        None => *to = Some(text.to_owned()),
        Some(list) if list.split(';').any(|part| part == text) => {}
        Some(list) => *list = format!("{list};{text}"),
    }
}
