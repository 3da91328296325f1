//! `shared`: quotas and API limits of accounts.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;
use nodecast_prices::Catalog;

use crate::flow::flow;
use crate::places::{Read, account, region};
use crate::{Account, SharedApi, SharedConditions, SharedQuota};

static SHARED: Shape = Shape {
    name: "`shared`",
    keys: &["quotas", "api", "conditions", "capacity"],
    without_effect: &[],
    unsupported: &[
        ("subnets", "give each cluster its part of the addresses, by `set` or in its scenario"),
        ("capacity_reservations", "put each reservation into the scenario of the cluster that uses it"),
    ],
    strict: true,
};
static QUOTA: Shape = Shape {
    name: "a shared quota",
    keys: &["account", "region", "on_demand", "spot"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

static CONDITIONS: Shape = Shape {
    name: "an entry of `conditions`",
    keys: &["region", "capacity", "interruptions", "price_errors"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

/// Classes of instance types with a quota.
const CLASSES: [&str; 11] =
    ["standard", "graphics", "parallel", "f", "inf", "x", "dl", "trn", "hpc", "high_memory", "other"];
/// Classes that Spot alone has.
const SPOT_CLASSES: [&str; 1] = ["p5"];

/// What the clusters share.
#[derive(Default)]
pub(crate) struct Shared {
    pub quotas: Vec<SharedQuota>,
    pub api: Vec<SharedApi>,
    pub conditions: Vec<SharedConditions>,
    pub capacity: bool,
}

/// Reads `shared`.
pub(crate) fn read<'s>(
    reader: &mut Reader<'s>,
    node: Option<&Node<'s>>,
    accounts: &[Account],
    catalog: &Catalog,
) -> Read<Shared> {
    let mut shared = Shared::default();
    let Some(node) = node else { return Ok(shared) };
    let fields = reader.fields(node, &SHARED)?;
    let mut known = BTreeSet::new();
    for item in fields.get("quotas").map_or(Ok(&[][..]), |node| reader.list(node, "quotas"))? {
        let quota = quota(reader, item, accounts, catalog)?;
        if !known.insert((quota.account, quota.region)) {
            return Err(twice(reader, item, "quotas", &accounts[quota.account], quota.region.as_str()));
        }
        shared.quotas.push(quota);
    }
    known.clear();
    for item in fields.get("api").map_or(Ok(&[][..]), |node| reader.list(node, "api"))? {
        let api = api(reader, item, accounts, catalog)?;
        if !known.insert((api.account, api.region)) {
            return Err(twice(reader, item, "API limits", &accounts[api.account], api.region.as_str()));
        }
        shared.api.push(api);
    }
    for item in fields.get("conditions").map_or(Ok(&[][..]), |node| reader.list(node, "conditions"))? {
        let conditions = conditions(reader, item, catalog)?;
        if shared.conditions.iter().any(|other| other.region == conditions.region) {
            return Err(reader
                .error(item.at, format!("two entries of conditions for {}", conditions.region))
                .because("not unique")
                .help("put all of them into one entry"));
        }
        shared.conditions.push(conditions);
    }
    let choices = [("shared", true), ("own", false)];
    shared.capacity = fields.optional("capacity", |node, what| reader.choice(node, what, &choices))?.unwrap_or(false);
    Ok(shared)
}

fn twice(
    reader: &Reader<'_>,
    item: &Node<'_>,
    what: &str,
    account: &Account,
    region: &str,
) -> nodecast_model::text::error::InputError {
    reader
        .error(item.at, format!("account `{}` has two entries of {what} in {region}", account.name))
        .because("not unique")
        .help("put all of them into one entry")
}

fn quota<'s>(reader: &mut Reader<'s>, node: &Node<'s>, accounts: &[Account], catalog: &Catalog) -> Read<SharedQuota> {
    let fields = reader.fields(node, &QUOTA)?;
    let limits = |key: &'static str, classes: &[&'static str]| -> Read<BTreeMap<&'static str, u32>> {
        let mut limits = BTreeMap::new();
        let Some(node) = fields.get(key) else { return Ok(limits) };
        for entry in reader.entries(node, key)? {
            let Some(class) = classes.iter().find(|class| **class == entry.key) else {
                return Err(reader
                    .error(entry.key_at, format!("unknown class `{}` of a quota", entry.key))
                    .because("not a class")
                    .help(crate::places::meant(&entry.key, classes.iter().copied())));
            };
            let vcpus = reader.integer(&entry.value, &entry.key, 0, 1_000_000_000)?;
            limits.insert(*class, u32::try_from(vcpus).unwrap_or(u32::MAX));
        }
        Ok(limits)
    };
    let spot_classes: Vec<&'static str> = CLASSES.into_iter().chain(SPOT_CLASSES).collect();
    Ok(SharedQuota {
        account: account(reader, fields.required(reader, "account")?, "account", accounts)?,
        region: region(reader, fields.required(reader, "region")?, catalog)?.name,
        on_demand: limits("on_demand", &CLASSES)?,
        spot: limits("spot", &spot_classes)?,
        place: reader.place(node.at),
    })
}

/// Conditions of a region; the scenario's reader checks their values.
fn conditions<'s>(reader: &mut Reader<'s>, node: &Node<'s>, catalog: &Catalog) -> Read<SharedConditions> {
    let fields = reader.fields(node, &CONDITIONS)?;
    let region = region(reader, fields.required(reader, "region")?, catalog)?.name;
    let path = |key: &str| if key == "capacity" { "ec2.capacity".to_owned() } else { format!("ec2.spot.{key}") };
    let values = reader.entries(node, "conditions")?.iter().filter(|entry| entry.key != "region");
    Ok(SharedConditions { region, values: values.map(|entry| (path(&entry.key), flow(&entry.value))).collect() })
}

/// API limits; their keys are those of `ec2.api` in a scenario, whose reader checks them.
fn api(reader: &Reader<'_>, node: &Node<'_>, accounts: &[Account], catalog: &Catalog) -> Read<SharedApi> {
    let required = |key: &str| {
        node.get(key).ok_or_else(|| {
            reader
                .error(node.at, format!("shared API limits need `{key}`"))
                .because(format!("`{key}` is missing here"))
                .help(format!("add `{key}:` with a value"))
        })
    };
    let limits = reader.entries(node, "api")?.iter().filter(|entry| entry.key != "account" && entry.key != "region");
    Ok(SharedApi {
        account: account(reader, required("account")?, "account", accounts)?,
        region: region(reader, required("region")?, catalog)?.name,
        limits: limits.map(|entry| (entry.key.to_string(), flow(&entry.value))).collect(),
    })
}
