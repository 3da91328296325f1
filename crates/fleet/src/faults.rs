//! `faults`: faults of a fleet, as the faults of each cluster that they hit.

use nodecast_model::domain::{SimDuration, Symbol};
use nodecast_model::text::error::InputError;
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::{Entry, Node, NodeKind};
use nodecast_prices::Catalog;

use crate::flow::flow;
use crate::places::{Read, account, meant, region};
use crate::{Account, ClusterEntry, SharedFault};

/// Keys that choose the clusters; all others are the fault's own.
const SELECTORS: [&str; 3] = ["clusters", "accounts", "regions"];
/// In the text of a fault, the name of its zone.
pub(crate) const ZONE: &str = "{zone}";

/// The faults.
pub(crate) fn read(
    reader: &Reader<'_>,
    node: Option<&Node<'_>>,
    (accounts, clusters): (&[Account], &[ClusterEntry]),
    catalog: &Catalog,
) -> Read<Vec<SharedFault>> {
    let items = node.map_or(Ok(&[][..]), |node| reader.list(node, "faults"))?;
    items.iter().map(|item| fault(reader, item, (accounts, clusters), catalog)).collect()
}

fn fault(
    reader: &Reader<'_>,
    node: &Node<'_>,
    (accounts, clusters): (&[Account], &[ClusterEntry]),
    catalog: &Catalog,
) -> Read<SharedFault> {
    let entries = reader.entries(node, "faults")?;
    let chosen = |key: &str| {
        node.get(key)
            .map_or(&[][..], |node| if node.items().is_empty() { std::slice::from_ref(node) } else { node.items() })
    };
    let mut names = Vec::new();
    for item in chosen("clusters") {
        names.push(cluster_name(reader, item, clusters)?);
    }
    let accounts =
        chosen("accounts").iter().map(|item| account(reader, item, "account", accounts)).collect::<Read<_>>()?;
    let regions = chosen("regions").iter().map(|item| region(reader, item, catalog).map(|region| region.name));
    let regions = regions.collect::<Read<Vec<Symbol>>>()?;
    let mut zone_id = None;
    let own: Vec<String> = entries
        .iter()
        .filter(|entry| !SELECTORS.contains(&entry.key.as_ref()))
        .map(|entry| Ok(format!("{}: {}", entry.key, with_zone(reader, entry, &mut zone_id)?)))
        .collect::<Read<_>>()?;
    let time = |key: &str| node.get(key).map(|node| reader.duration(node, key)).transpose();
    Ok(SharedFault {
        time: (time("at")?.unwrap_or(SimDuration::ZERO), time("for")?),
        clusters: names,
        accounts,
        regions,
        zone_id,
        text: format!("{{{}}}", own.join(", ")),
        place: reader.place(node.at),
    })
}

/// The name of a cluster, or of one of its copies.
fn cluster_name(reader: &Reader<'_>, node: &Node<'_>, clusters: &[ClusterEntry]) -> Read<String> {
    let text = reader.text(node, "clusters")?;
    let is_called = |cluster: &ClusterEntry| cluster.name == text || cluster.copies().any(|(name, _)| name == text);
    if clusters.iter().any(is_called) {
        return Ok(text.to_owned());
    }
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    Err(reader
        .error(node.at, format!("unknown cluster `{text}`"))
        .because(InputError::NOTHING)
        .help(meant(text, names.into_iter())))
}

/// The value of a fault's key, with a place for the name of the zone whose id it has.
fn with_zone(reader: &Reader<'_>, entry: &Entry<'_>, zone_id: &mut Option<Symbol>) -> Read<String> {
    let NodeKind::Map(fields) = &entry.value.kind else { return Ok(flow(&entry.value)) };
    let mut parts = Vec::new();
    for field in fields.iter() {
        match field.key.as_ref() {
            "zone_id" => {
                *zone_id = Some(reader.symbol(&field.value, "zone_id")?);
                parts.push(format!("zone: {ZONE}"));
            }
            "zone" => {
                return Err(reader
                    .error(field.key_at, "a fault of a fleet has `zone_id`, not `zone`")
                    .because("names of zones differ among accounts")
                    .help("write for example `zone_id: use1-az4`"));
            }
            key => parts.push(format!("{key}: {}", flow(&field.value))),
        }
    }
    Ok(format!("{{{}}}", parts.join(", ")))
}
