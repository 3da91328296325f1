//! `accounts` and `sharing`.

use std::collections::BTreeMap;

use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::{Node, NodeKind};
use nodecast_prices::Catalog;

use crate::places::Read;
use crate::{Account, Sharing};

static ACCOUNT: Shape = Shape {
    name: "an account",
    keys: &["id", "name", "group", "sharing", "payer", "zones"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

/// The accounts; one without a name where the file has none.
pub(crate) fn read<'s>(
    reader: &mut Reader<'s>,
    node: Option<&Node<'s>>,
    mode: Sharing,
    catalog: &Catalog,
) -> Read<Vec<Account>> {
    let Some(node) = node else { return Ok(vec![implied()]) };
    let mut accounts: Vec<Account> = Vec::new();
    for item in reader.list(node, "accounts")? {
        let account = account(reader, item, catalog)?;
        let at = |key: &str| item.get(key).map_or(item.at, |node| node.at);
        if let Some(other) = accounts.iter().find(|other| other.id == account.id) {
            return Err(reader
                .error(at("id"), format!("accounts `{}` and `{}` have one id", other.name, account.name))
                .because("not unique")
                .help("remove one of them, or correct its `id`"));
        }
        if accounts.iter().any(|other| other.name == account.name) {
            return Err(reader
                .error(at("name"), format!("two accounts are called `{}`", account.name))
                .because("not unique")
                .help("rename one of them"));
        }
        if account.payer && accounts.iter().any(|other| other.payer) {
            return Err(reader
                .error(at("payer"), "two accounts are the payer")
                .because("an organisation has one")
                .help("keep `payer: true` at the account that pays the bill"));
        }
        if let Some(group) = &account.group {
            check_group(reader, item, (&account, group), mode)?;
        }
        accounts.push(account);
    }
    match accounts.is_empty() {
        true => Err(reader
            .error(node.at, "`accounts` is empty")
            .because("no account")
            .help("add for example `- { id: \"111111111111\", name: shop }`, or remove `accounts`")),
        false => Ok(accounts),
    }
}

/// The account of a fleet that names none.
fn implied() -> Account {
    Account {
        id: "000000000000".to_owned(),
        name: "account".to_owned(),
        group: None,
        sharing: true,
        payer: true,
        zones: BTreeMap::new(),
    }
}

fn check_group(reader: &Reader<'_>, item: &Node<'_>, (account, group): (&Account, &str), mode: Sharing) -> Read<()> {
    let at = item.get("group").map_or(item.at, |node| node.at);
    if account.payer {
        return Err(reader
            .error(at, format!("the payer account `{}` is in group `{group}`", account.name))
            .because("the payer cannot be in a group")
            .help("remove `group`, or make another account the payer"));
    }
    if !matches!(mode, Sharing::Prioritized | Sharing::Restricted) {
        return Err(reader
            .error(at, "`group` has no effect under this `sharing`")
            .because("groups need prioritized or restricted sharing")
            .help("set `sharing: prioritized` or `sharing: restricted`, or remove `group`"));
    }
    Ok(())
}

fn account<'s>(reader: &mut Reader<'s>, node: &Node<'s>, catalog: &Catalog) -> Read<Account> {
    let fields = reader.fields(node, &ACCOUNT)?;
    let id = id(reader, fields.required(reader, "id")?)?;
    let name = fields.optional("name", |node, what| reader.text(node, what).map(str::to_owned))?;
    let zones = match fields.get("zones") {
        Some(node) => zones(reader, node, catalog)?,
        None => BTreeMap::new(),
    };
    Ok(Account {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        group: fields.optional("group", |node, what| reader.text(node, what).map(str::to_owned))?,
        sharing: fields.optional("sharing", |node, what| reader.truth(node, what))?.unwrap_or(true),
        payer: fields.optional("payer", |node, what| reader.truth(node, what))?.unwrap_or(false),
        zones,
    })
}

fn id(reader: &Reader<'_>, node: &Node<'_>) -> Read<String> {
    let text = reader.text(node, "id")?;
    let is_number =
        matches!(&node.kind, NodeKind::Scalar { plain: true, .. }) && text.bytes().all(|c| c.is_ascii_digit());
    if is_number {
        return Err(reader
            .error(node.at, format!("the account id {text} is a number"))
            .because("a number loses leading zeros")
            .help(format!("write it in quotes: `id: \"{text:0>12}\"`")));
    }
    if text.len() != 12 || !text.bytes().all(|c| c.is_ascii_digit()) {
        let shown: String = text.chars().take(40).collect();
        return Err(reader
            .error(node.at, format!("`{shown}` is not an account id"))
            .because("expected twelve digits")
            .help("write for example `id: \"111111111111\"`"));
    }
    Ok(text.to_owned())
}

/// Ids of zones by name.
fn zones(reader: &Reader<'_>, node: &Node<'_>, catalog: &Catalog) -> Read<BTreeMap<String, String>> {
    let mut zones: BTreeMap<String, String> = BTreeMap::new();
    for entry in reader.entries(node, "zones")? {
        let id = reader.text(&entry.value, "zones")?;
        if let Some((other, _)) = zones.iter().find(|(_, known)| known.as_str() == id) {
            return Err(reader
                .error(entry.value.at, format!("zones `{other}` and `{}` have the id `{id}`", entry.key))
                .because("an account has one name for a zone")
                .help("correct one of them: `aws ec2 describe-availability-zones` lists both"));
        }
        let region = entry.key.trim_end_matches(|c: char| c.is_ascii_lowercase());
        if let Ok(region) = catalog.region(region)
            && !region.zones.iter().any(|zone| zone.id.as_str() == id)
        {
            let ids = region.zones.iter().map(|zone| zone.id.as_str());
            return Err(reader
                .error(entry.value.at, format!("{} has no zone with the id `{id}`", region.name))
                .because("unknown zone id")
                .help(crate::places::meant(id, ids)));
        }
        zones.insert(entry.key.to_string(), id.to_owned());
    }
    Ok(zones)
}
