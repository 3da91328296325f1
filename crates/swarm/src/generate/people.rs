//! What people do to a running cluster: they apply other objects, cordon, drain and delete, upgrade, and set sizes.

use super::{Draft, perhaps};
use crate::case::{Part, Section};

/// Random steps, none after the busy time.
pub fn parts(draft: &mut Draft, versions: &str) -> Vec<Part> {
    let all = [
        perhaps(draft, 25, rollout),
        perhaps(draft, 25, other_pool).filter(|part| !part.texts.is_empty()),
        perhaps(draft, 20, cordoned),
        perhaps(draft, 20, drained),
        perhaps(draft, 20, deleted),
        perhaps(draft, 15, |draft| upgrade(draft, versions)),
        perhaps(draft, 15, later_load),
        perhaps(draft, 20, other_size).filter(|part| !part.texts.is_empty()),
    ];
    all.into_iter().flatten().collect()
}

/// When something is done.
fn moment(draft: &mut Draft) -> u64 {
    let last = draft.busy.max(3) - 1;
    draft.random.between(1, last)
}

fn step(name: String, at: u64, what: &str) -> Part {
    Part::new(format!("{name} at {at}m"), vec![(Section::Timeline, format!("{{ at: {at}m, {what} }}"))])
}

fn applied(name: String, at: u64, file: &str, text: String) -> Part {
    step(name, at, &format!("manifests: [{file}]")).with_file(file, text)
}

/// A Deployment with another template.
fn rollout(draft: &mut Draft) -> Part {
    let at = moment(draft);
    let place = draft.random.between(0, draft.services.len() as u64 - 1) as usize;
    let (cpu, twice) = (draft.services[place].requests.0, draft.random.happens(30));
    let service = &draft.services[place];
    let (name, memory) = (service.name.clone(), service.requests.1);
    let mut text = service.deployment.replace(&format!("image: {name},"), &format!("image: {name}-2,"));
    if twice && cpu < 1_000 {
        text = text.replace(&format!("cpu: {cpu}m"), &format!("cpu: {}m", cpu * 2));
        let workload = format!("shop/{name}");
        let known = draft.vertical.iter_mut().filter(|item| item.workload == workload);
        known.for_each(|vertical| vertical.templates.push(((cpu * 2) as f64, (memory << 20) as f64)));
    }
    applied(format!("rollout of {name}"), at, "rollout.yaml", text)
}

/// The NodePool with other settings; nothing where there is none.
fn other_pool(draft: &mut Draft) -> Part {
    let at = moment(draft);
    let Some(pool) = draft.fleet.as_ref().and_then(|fleet| fleet.pool.clone()) else {
        return Part::new("none", Vec::new());
    };
    let replaced = |from: &str, to: &str| pool.replace(from, to);
    let (name, text) = match draft.random.between(1, 4) {
        1 => (
            "drift by a label",
            replaced("  template:\n", "  template:\n    metadata: { labels: { edited: \"1\" } }\n"),
        ),
        2 => (
            "drift by a taint that is none",
            replaced("      expireAfter", "      startupTaints: []\n      expireAfter"),
        ),
        3 => ("later consolidation", replaced("consolidateAfter: ", "consolidateAfter: 1")),
        _ => ("a weight", replaced("  template:\n", "  weight: 10\n  template:\n")),
    };
    applied(format!("pool: {name}"), at, "pool.yaml", text)
}

/// Labels that choose nodes.
fn nodes(draft: &mut Draft) -> String {
    match &draft.fleet {
        Some(fleet) if draft.random.happens(70) => {
            let (key, value) = fleet.label;
            format!("{{ {key}: {value} }}")
        }
        _ => format!("{{ topology.kubernetes.io/zone: {} }}", draft.random.pick(&["us-east-1a", "us-east-1b"])),
    }
}

fn cordoned(draft: &mut Draft) -> Part {
    let (at, count) = (moment(draft), draft.random.between(1, 4));
    let labels = nodes(draft);
    let mut part =
        step(format!("cordon {count} of {labels}"), at, &format!("cordon: {{ labels: {labels}, count: {count} }}"));
    if draft.random.happens(60) {
        let until = draft.random.between(at, draft.busy);
        part.texts.push((Section::Timeline, format!("{{ at: {until}m, uncordon: {{ labels: {labels} }} }}")));
        part.name.push_str(&format!(" to {until}m"));
    }
    part
}

fn drained(draft: &mut Draft) -> Part {
    let (at, count) = (moment(draft), draft.random.between(1, 3));
    let labels = nodes(draft);
    let how = draft.random.pick(&["", ", force: true", ", timeout: 3m", ", force: true, timeout: 10m"]);
    step(format!("drain {count} of {labels}{how}"), at, &format!("drain: {{ labels: {labels}, count: {count}{how} }}"))
}

fn deleted(draft: &mut Draft) -> Part {
    let at = moment(draft);
    let of_karpenter = draft.fleet.as_ref().is_some_and(|fleet| fleet.pool.is_some());
    let labels = nodes(draft);
    let service = draft.random.between(0, draft.services.len() as u64 - 1);
    let what = match draft.random.between(1, 5) {
        1 => format!("kind: Node, labels: {labels}, count: 1"),
        2 if of_karpenter => "kind: NodeClaim, labels: { karpenter.sh/nodepool: default }, count: 2".to_owned(),
        3 => format!("kind: Deployment, name: shop/s{service}"),
        4 if of_karpenter => "kind: NodePool, name: default".to_owned(),
        _ => format!("kind: Pod, namespace: shop, labels: {{ app: s{service} }}, count: 3"),
    };
    let part = step(format!("delete {what}"), at, &format!("delete: {{ {what} }}"));
    if what.contains("kind: NodePool,") { part.holding_up() } else { part }
}

/// The next release of Kubernetes.
fn upgrade(draft: &mut Draft, versions: &str) -> Part {
    let at = moment(draft);
    let number = versions.split_once("1.").and_then(|(_, rest)| rest.get(..2)?.parse::<u64>().ok()).unwrap_or(36);
    step(format!("upgrade to 1.{}", number + 1), at, &format!("upgrade_control_plane: \"1.{}\"", number + 1))
}

/// A load that begins later and ends with the busy time.
fn later_load(draft: &mut Draft) -> Part {
    let at = moment(draft);
    let service = draft.random.between(0, draft.services.len() as u64 - 1);
    let (rate, left) = (draft.random.between(5, 200), draft.busy - at);
    let what = format!(
        "load: {{ workload: shop/s{service}, requests: {{ steps: [{{ at: 0s, rate: {rate} }}, {{ at: {left}m, rate: 1 }}] }}, \
         service: {{ cpu_per_request: 10ms, concurrency: 8 }} }}"
    );
    step(format!("load of s{service}"), at, &what)
}

/// Another size of a node group; nothing where there is none.
fn other_size(draft: &mut Draft) -> Part {
    // Groups that nobody scales have one size.
    let of_groups = draft.fleet.as_ref().is_some_and(|fleet| fleet.pool.is_none() && fleet.is_scaled);
    let (at, size) = (moment(draft), draft.random.between(1, 12));
    if !of_groups {
        return Part::new("none", Vec::new());
    }
    step(format!("group a of {size}"), at, &format!("scale_group: {{ group: a, desired: {size} }}"))
}
