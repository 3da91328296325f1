//! Changes of a load's demand, whatever its unit: `load[*].requests.scale=2` doubles loads in requests and loads in cores.

use super::Step;
use crate::tree::Node;

/// Changes that `requests` and `cpu` of a load have in common and that mean the same in both.
const CHANGES: [&str; 6] = ["scale", "growth_per_month", "uncertainty", "speed_up", "repeat", "shift"];

/// The key of `item` that a step of a path leads to: `cpu` for `requests` where the item is a load in cores and `rest` leads to a change
/// that both have. A rate itself (`requests.constant`) has another unit in cores, so its key stays.
pub(super) fn demand_key<'k>(item: &Node<'_>, key: &'k str, rest: &[Step], path: &str) -> &'k str {
    let changes = matches!(rest, [Step::Key(change), ..] if CHANGES.contains(&change.as_str()));
    let of_load = path.starts_with("load[") || path.contains(".load[");
    let in_cores = item.get("workload").is_some() && item.get("cpu").is_some() && item.get("requests").is_none();
    if key == "requests" && changes && of_load && in_cores { "cpu" } else { key }
}

#[cfg(test)]
mod tests {
    use crate::edits::Edit;
    use crate::source::{Limits, Source};
    use crate::tree::{self, Variables};

    const LOADS: &str = "load: [{workload: a, cpu: {constant: 3}}, {workload: b, requests: {csv: b}}]\n";

    /// The text at `path` of each load after `edit`, if it is there.
    fn edited(edit: &str, path: [&str; 2]) -> Vec<Option<String>> {
        let source = Source::new("a.yaml", LOADS);
        let edit = Edit::parse(edit).unwrap();
        let mut documents = tree::parse(&source, &Variables::new(), &Limits::default()).unwrap();
        assert!(edit.apply(&mut documents, source.edit_offset(0)).unwrap());
        let at = |load: &tree::Node<'_>| Some(load.get(path[0])?.get(path[1])?.as_text()?.to_owned());
        documents[0].get("load").unwrap().items().iter().map(at).collect()
    }

    #[test]
    fn scale_of_requests_reaches_loads_in_cores() {
        let two = || Some("2".to_owned());
        assert_eq!(edited("load[*].requests.scale=2", ["cpu", "scale"]), [two(), None]);
        assert_eq!(edited("load[*].requests.scale=2", ["requests", "scale"]), [None, two()]);
        assert_eq!(edited("load[a].requests.shift=2", ["cpu", "shift"]), [two(), None]);
    }

    #[test]
    fn rate_of_requests_never_becomes_cores() {
        assert_eq!(edited("load[a].requests.constant=2", ["requests", "constant"]), [Some("2".to_owned()), None]);
        assert_eq!(edited("load[a].requests.constant=2", ["cpu", "constant"]), [Some("3".to_owned()), None]);
    }
}
