//! `clusters`.

use std::path::Path;

use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;
use nodecast_scenario::Edit;

use crate::flow::flow;
use crate::places::{Read, account};
use crate::{Account, ClusterEntry, ClusterPlaces};

static CLUSTER: Shape = Shape {
    name: "a cluster",
    keys: &["name", "scenario", "policy", "account", "count", "set"],
    without_effect: &["vpc"],
    unsupported: &[],
    strict: true,
};

/// Most clusters of one entry.
const COUNT_MAX: i64 = 10_000;

/// The clusters.
pub(crate) fn read<'s>(
    reader: &mut Reader<'s>,
    node: &Node<'s>,
    directory: &Path,
    accounts: &[Account],
) -> Read<Vec<ClusterEntry>> {
    let mut clusters: Vec<ClusterEntry> = Vec::new();
    for item in reader.list(node, "clusters")? {
        let cluster = cluster(reader, item, directory, accounts)?;
        if clusters.iter().any(|other| other.name == cluster.name) {
            let at = item.get("name").map_or(item.at, |node| node.at);
            return Err(reader
                .error(at, format!("two clusters are called `{}`", cluster.name))
                .because("not unique")
                .help("rename one of them, or use `count` for clusters that are alike"));
        }
        clusters.push(cluster);
    }
    if clusters.is_empty() {
        return Err(reader
            .error(node.at, "`clusters` is empty")
            .because("no cluster")
            .help("add for example `- { name: shop, scenario: shop/scenario.yaml }`"));
    }
    check_copies(&clusters)?;
    Ok(clusters)
}

/// That no cluster has the name of another's copy.
fn check_copies(clusters: &[ClusterEntry]) -> Read<()> {
    for cluster in clusters {
        let of_copy = |other: &&ClusterEntry| {
            let number = cluster.name.strip_prefix(&other.name).and_then(|rest| rest.strip_prefix('-'));
            let number = number.filter(|digits| !digits.starts_with('0')).and_then(|digits| digits.parse::<u32>().ok());
            other.count > 1 && number.is_some_and(|number| (1..=other.count).contains(&number))
        };
        if let Some(other) = clusters.iter().find(of_copy) {
            let message = format!("`{}` is also the name of a copy of `{}`", cluster.name, other.name);
            return Err(nodecast_model::text::error::InputError::new(message)
                .at(cluster.places.name.clone())
                .because(format!("`{}` has {} copies", other.name, other.count))
                .help("rename one of the two"));
        }
    }
    Ok(())
}

fn cluster<'s>(reader: &mut Reader<'s>, node: &Node<'s>, directory: &Path, accounts: &[Account]) -> Read<ClusterEntry> {
    let fields = reader.fields(node, &CLUSTER)?;
    let name_node = fields.required(reader, "name")?;
    let name = reader.text(name_node, "name")?;
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) || name.chars().any(char::is_control) {
        return Err(reader
            .error(name_node.at, format!("`{name}` cannot name a directory"))
            .because("not a name of a directory")
            .help("use letters, digits, `-` and `_`"));
    }
    let scenario = fields.required(reader, "scenario")?;
    let policy = fields.get("policy");
    let account = match fields.get("account") {
        Some(node) => account(reader, node, "account", accounts)?,
        None if accounts.len() == 1 => 0,
        None => {
            let names = nodecast_model::text::error::listed(accounts.iter().map(|account| account.name.as_str()));
            return Err(reader
                .error(name_node.at, format!("cluster `{name}` has no account"))
                .because("the fleet has several accounts")
                .help(format!("add `account:` with one of {names}")));
        }
    };
    let count = fields.optional("count", |node, what| reader.integer(node, what, 1, COUNT_MAX))?.unwrap_or(1);
    let (mut set, mut set_places) = (Vec::new(), Vec::new());
    if let Some(node) = fields.get("set") {
        for entry in reader.entries(node, "set")? {
            let value = flow(&entry.value);
            Edit::new(&entry.key, &value)
                .map_err(|error| error.at(reader.place(entry.key_at)).within(&format!("cluster `{name}`")))?;
            set.push((entry.key.to_string(), value));
            set_places.push(reader.place(entry.key_at));
        }
    }
    Ok(ClusterEntry {
        name: name.to_owned(),
        scenario: directory.join(reader.text(scenario, "scenario")?),
        policy: policy.map(|node| reader.text(node, "policy").map(str::to_owned)).transpose()?,
        account,
        count: u32::try_from(count).unwrap_or(1),
        set,
        places: ClusterPlaces {
            name: reader.place(name_node.at),
            scenario: reader.place(scenario.at),
            policy: policy.and_then(|node| reader.place(node.at)),
            set: set_places,
        },
    })
}
