//! The fleet file itself.

use std::path::Path;

use jiff::Timestamp;
use nodecast_model::text::error::{InputError, Warning};
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::source::{Limits, Source};
use nodecast_model::text::tree::{self, Node, Variables};
use nodecast_prices::Catalog;
use nodecast_settings::lints::fleet as lints;

use crate::places::{Read, share, time};
use crate::{Fleet, Sharing, UnusedRule, accounts, clusters, commitments, faults, shared};

static FLEET: Shape = Shape {
    name: "a fleet",
    keys: &[
        "fleet",
        "start",
        "duration",
        "seed",
        "replications",
        "accounts",
        "sharing",
        "clusters",
        "commitments",
        "discount",
        "chargeback",
        "cost_of_capital",
        "shared",
        "faults",
        "other_usage",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};
static CHARGEBACK: Shape =
    Shape { name: "`chargeback`", keys: &["unused"], without_effect: &[], unsupported: &[], strict: true };

const MODES: [Sharing; 4] = [Sharing::Organization, Sharing::Prioritized, Sharing::Restricted, Sharing::Off];
const RULES: [UnusedRule; 3] = [UnusedRule::Owner, UnusedRule::Usage, UnusedRule::Central];
/// Yearly cost of capital unless the file sets it, in millionths.
const COST_OF_CAPITAL: u32 = 80_000;

/// Whether the file at `path` is a fleet: a document with the key `fleet` or `clusters` and without `manifests`. A file that cannot be read is none.
pub fn is_fleet(path: &Path) -> bool {
    let Ok(source) = nodecast_scenario::source::load(path, path.display().to_string(), &Limits::default()) else {
        return false;
    };
    // Scenarios are many and large: their text is parsed only if it may be a fleet's.
    let has_key = |key: &str| source.text.lines().any(|line| line.starts_with(key));
    (has_key("fleet:") || has_key("clusters:")) && !has_key("manifests:")
}

/// Reads the fleet file at `path`, without the scenarios of its clusters.
///
/// # Errors
/// At the first thing that is wrong.
pub fn read(path: &Path, catalog: &Catalog) -> Result<(Fleet, Vec<Warning>), InputError> {
    let limits = Limits::default();
    let source = nodecast_scenario::source::load(path, path.display().to_string(), &limits)?;
    let documents = tree::parse(&source, &Variables::new(), &limits)?;
    let root = root(&source, &documents)?;
    let mut reader = Reader::new(Some(&source));
    let fields = reader.fields(root, &FLEET)?;
    let name_node = fields.required(&reader, "fleet")?;
    let name = reader.text(name_node, "fleet")?;
    if name.is_empty() || name.starts_with('.') || name.contains(['/', '\\']) {
        return Err(reader
            .error(name_node.at, format!("`{name}` cannot name a directory"))
            .because("reports go to reports/<name>")
            .help("use letters, digits, `-` and `_`"));
    }
    let start = fields.optional("start", |node, _| start(&reader, node))?;
    let duration = fields.optional("duration", |node, what| reader.duration(node, what))?;
    let sharing = fields.optional("sharing", |node, what| sharing(&reader, node, what))?.unwrap_or_default();
    let accounts = accounts::read(&mut reader, fields.get("accounts"), sharing, catalog)?;
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let entries = fields.required(&reader, "clusters")?;
    let clusters = clusters::read(&mut reader, entries, &directory, &accounts)?;
    let start_time = start.as_ref().map(|(_, time)| *time);
    let context = commitments::Context { accounts: &accounts, catalog, start: start_time };
    let (reserved, plans) = commitments::read(&mut reader, fields.get("commitments"), &context)?;
    let unused = match fields.get("chargeback") {
        Some(node) => {
            let keys = reader.fields(node, &CHARGEBACK)?;
            keys.optional("unused", |node, what| reader.choice(node, what, &RULES.map(|rule| (rule.as_str(), rule))))?
                .unwrap_or_default()
        }
        None => UnusedRule::default(),
    };
    let capital = fields.optional("cost_of_capital", |node, what| share(&reader, node, what))?;
    let shared = shared::read(&mut reader, fields.get("shared"), &accounts, catalog)?;
    let faults = faults::read(&reader, fields.get("faults"), (&accounts, &clusters), catalog)?;
    let seed = fields.optional("seed", |node, what| reader.integer(node, what, 0, i64::MAX))?;
    let replications = fields.optional("replications", |node, what| reader.integer(node, what, 1, 10_000))?;
    let other_usage =
        fields.optional("other_usage", |node, what| reader.text(node, what).map(|file| directory.join(file)))?;
    let other_usage_place = fields.get("other_usage").and_then(|node| reader.place(node.at));
    let fleet = Fleet {
        name: name.to_owned(),
        file: path.to_owned(),
        start,
        duration,
        seed: seed.and_then(|seed| u64::try_from(seed).ok()),
        replications: replications.and_then(|count| u32::try_from(count).ok()),
        accounts,
        sharing,
        clusters,
        reserved,
        plans,
        discount: fields.optional("discount", |node, what| share(&reader, node, what))?,
        unused,
        cost_of_capital: capital.unwrap_or(COST_OF_CAPITAL),
        quotas: shared.quotas,
        api: shared.api,
        conditions: shared.conditions,
        shares_capacity: shared.capacity,
        faults,
        other_usage,
        other_usage_place,
        input: nodecast_scenario::source::input_file(&source),
    };
    warn_of_owners(&fleet, &mut reader, root);
    Ok((fleet, reader.into_warnings()))
}

/// The one document of the file.
fn root<'n, 's>(source: &Source, documents: &'n [Node<'s>]) -> Read<&'n Node<'s>> {
    match documents {
        [root] => Ok(root),
        [] => Err(InputError::new(format!("`{}` is empty", source.name))
            .help("a fleet needs at least `fleet` and `clusters`")),
        [_, second, ..] => Err(InputError::new("a fleet is one YAML document")
            .at(source.place(second.at))
            .because("a second document starts here")
            .help("remove the `---` line")),
    }
}

/// `sharing`, whose `off` YAML also knows as a truth value.
fn sharing(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Read<Sharing> {
    if node.as_text() == Some("false") {
        return Ok(Sharing::Off);
    }
    reader.choice(node, what, &MODES.map(|mode| (mode.as_str(), mode)))
}

fn start(reader: &Reader<'_>, node: &Node<'_>) -> Read<(String, Timestamp)> {
    let start = time(reader, node, "start")?;
    if start.as_second().rem_euclid(3_600) != 0 || start.subsec_nanosecond() != 0 {
        return Err(reader
            .error(node.at, format!("`start` is {start}, not on a full hour"))
            .because("AWS applies commitments by the clock hour")
            .help("write a time such as `2026-06-01T00:00:00Z`"));
    }
    Ok((reader.text(node, "start")?.to_owned(), start))
}

/// Warns of commitments that cannot cover anything, and of owners without a group.
fn warn_of_owners(fleet: &Fleet, reader: &mut Reader<'_>, root: &Node<'_>) {
    let at = root.get("commitments").map_or(root.at, |node| node.at);
    let owners = fleet.plans.iter().map(|plan| (&plan.id, plan.owner));
    let owners: Vec<(String, usize)> = owners
        .chain(fleet.reserved.iter().map(|reserved| (&reserved.id, reserved.owner)))
        .map(|(id, owner)| (id.clone(), owner))
        .collect();
    for (id, owner) in owners {
        let account = &fleet.accounts[owner];
        let has_cluster = fleet.clusters.iter().any(|cluster| cluster.account == owner);
        if (fleet.sharing == Sharing::Off || !account.sharing) && !has_cluster {
            let message = format!(
                "`{id}` belongs to `{}`, which shares nothing and has no cluster. It covers nothing, so the cost may be too high",
                account.name
            );
            let help = "make another account its owner, or set `sharing: true`";
            reader.warn(&lints::COMMITMENT_WITHOUT_USAGE, at, message, "covers nothing", help);
        }
        if matches!(fleet.sharing, Sharing::Prioritized | Sharing::Restricted) && account.group.is_none() {
            let others = match fleet.sharing {
                Sharing::Restricted => "the accounts without a group",
                _ => "all other accounts",
            };
            let message = format!(
                "`{id}` belongs to `{}`, which is in no group: assuming it covers its owner, then {others}",
                account.name
            );
            reader.warn(&lints::OWNER_WITHOUT_GROUP, at, message, "no group", "add `group` to the owner's account");
        }
    }
}
