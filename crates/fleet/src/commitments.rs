//! `commitments`: Reserved Instances and Savings Plans.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{Timestamp, ToSpan};
use nodecast_model::catalog::Region;
use nodecast_model::domain::{HourlyRate, Symbol};
use nodecast_model::text::reader::{Fields, Reader, Shape};
use nodecast_model::text::tree::Node;
use nodecast_prices::Catalog;
use nodecast_settings::lints::fleet as lints;

use crate::places::{Read, WHOLE, account, family, instance_type, price, region, share, time};
use crate::{Account, Plan, Reserved, Term};

static COMMITMENTS: Shape = Shape {
    name: "`commitments`",
    keys: &["reserved_instances", "savings_plans"],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};
static RESERVED: Shape = Shape {
    name: "a reservation",
    keys: &[
        "id", "owner", "region", "zone_id", "type", "count", "platform", "tenancy", "per_hour", "start", "term",
        "payment",
    ],
    without_effect: &[],
    unsupported: &[("zone", "use `zone_id`, for example `zone_id: use1-az4`: names of zones differ among accounts")],
    strict: true,
};
static PLAN: Shape = Shape {
    name: "a savings plan",
    keys: &[
        "id",
        "owner",
        "kind",
        "family",
        "region",
        "commitment",
        "discount",
        "family_discounts",
        "fargate_discount",
        "lambda_discount",
        "prices",
        "start",
        "term",
        "payment",
    ],
    without_effect: &[],
    unsupported: &[],
    strict: true,
};

/// Hours of a term that the fleet may set.
const TERMS: [(&str, u32); 2] = [("1y", 1), ("3y", 3)];
const PAYMENTS: [(&str, &str); 3] =
    [("no_upfront", "no_upfront"), ("partial_upfront", "partial_upfront"), ("all_upfront", "all_upfront")];
const PLATFORMS: [(&str, &str); 4] = [("linux", "linux"), ("windows", "windows"), ("rhel", "rhel"), ("suse", "suse")];

/// What the readers of commitments need.
pub(crate) struct Context<'c> {
    pub accounts: &'c [Account],
    pub catalog: &'c Catalog,
    /// Start of the run, where the fleet sets it.
    pub start: Option<Timestamp>,
}

/// The commitments of a fleet.
pub(crate) fn read<'s>(
    reader: &mut Reader<'s>,
    node: Option<&Node<'s>>,
    context: &Context<'_>,
) -> Read<(Vec<Reserved>, Vec<Plan>)> {
    let Some(node) = node else { return Ok((Vec::new(), Vec::new())) };
    let fields = reader.fields(node, &COMMITMENTS)?;
    let mut ids = BTreeSet::new();
    let mut reserved = Vec::new();
    if let Some(node) = fields.get("reserved_instances") {
        for item in reader.list(node, "reserved_instances")? {
            let keys = reader.fields(item, &RESERVED)?;
            let id = id(reader, keys, &mut ids)?;
            let entry = reservation(reader, keys, id, context)?;
            if !is_ended(reader, keys, (&entry.id, entry.term), context) {
                reserved.push(entry);
            }
        }
    }
    let mut plans = Vec::new();
    if let Some(node) = fields.get("savings_plans") {
        for item in reader.list(node, "savings_plans")? {
            let keys = reader.fields(item, &PLAN)?;
            let id = id(reader, keys, &mut ids)?;
            let entry = plan(reader, keys, id, context)?;
            if !is_ended(reader, keys, (&entry.id, entry.term), context) {
                plans.push(entry);
            }
        }
    }
    Ok((reserved, plans))
}

fn id(reader: &Reader<'_>, fields: Fields<'_, '_>, ids: &mut BTreeSet<String>) -> Read<String> {
    let Some(node) = fields.get("id") else {
        return Err(reader
            .error(fields.at, "this commitment has no `id`")
            .because("reports and exports name it")
            .help("add for example `id: sp-1`"));
    };
    let id = reader.text(node, "id")?.to_owned();
    match ids.insert(id.clone()) {
        true => Ok(id),
        false => Err(reader
            .error(node.at, format!("two commitments have the id `{id}`"))
            .because("not unique")
            .help("rename one of them")),
    }
}

/// Whether a commitment ends before the run; that is a warning.
fn is_ended<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    (id, term): (&str, Term),
    context: &Context<'_>,
) -> bool {
    let (Some(end), Some(start)) = (term.end, context.start) else { return false };
    if end > start {
        return false;
    }
    let at = fields.get("start").map_or(fields.at, |node| node.at);
    let message = format!("`{id}` ends at {end}, before the run starts. It is ignored, so the cost may be too high");
    reader.warn(&lints::COMMITMENT_ENDED, at, message, "ended", "remove it, or correct `start` and `term`");
    true
}

fn owner<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>, context: &Context<'_>) -> Read<usize> {
    match fields.get("owner") {
        Some(node) => account(reader, node, "owner", context.accounts),
        None if context.accounts.len() == 1 => Ok(0),
        None => fields.required(reader, "owner").map(|_| 0),
    }
}

/// When a commitment begins and ends, its years, and its payment.
fn term<'s>(reader: &Reader<'s>, fields: Fields<'_, 's>) -> Read<(Term, Option<u32>, Option<&'static str>)> {
    let start = fields.optional("start", |node, what| time(reader, node, what))?;
    let years = fields.optional("term", |node, what| reader.choice(node, what, &TERMS))?;
    let payment = fields.optional("payment", |node, what| reader.choice(node, what, &PAYMENTS))?;
    // Terms have 365 or 1,095 days.
    let end = start.zip(years).and_then(|(start, years)| start.checked_add((i64::from(years) * 8_760).hours()).ok());
    Ok((Term { start, end }, years, payment))
}

fn reservation<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    id: String,
    context: &Context<'_>,
) -> Read<Reserved> {
    let owner = owner(reader, fields, context)?;
    let region = region(reader, fields.required(reader, "region")?, context.catalog)?;
    let type_node = fields.required(reader, "type")?;
    let instance_type = instance_type(reader, type_node, &region)?;
    let zone_id = fields.optional("zone_id", |node, _| zone_id(reader, node, &region, context.accounts))?;
    let (term, years, payment) = term(reader, fields)?;
    let stated = fields.optional("per_hour", |node, what| price(reader, node, what))?;
    let per_hour = match stated {
        Some(rate) => rate,
        None => {
            let listed = region.instance_type(instance_type).and_then(|kind| kind.on_demand).map(|price| price.rate);
            let discount = rate_of_term(&region, instance_type.as_str().split('.').next(), years, payment);
            let (Some(listed), Some(discount)) = (listed, discount) else {
                return Err(without_price(reader, fields, "per_hour"));
            };
            listed.scaled(i64::from(WHOLE - discount), i64::from(WHOLE))
        }
    };
    let count = reader.integer(fields.required(reader, "count")?, "count", 1, 1_000_000)?;
    let tenancy = fields.optional("tenancy", |node, what| {
        reader.choice(node, what, &[("default", false), ("shared", false), ("dedicated", true)])
    })?;
    Ok(Reserved {
        id,
        owner,
        region: region.name,
        zone_id,
        instance_type,
        count: u32::try_from(count).unwrap_or(1),
        platform: fields.optional("platform", |node, what| reader.choice(node, what, &PLATFORMS))?.unwrap_or("linux"),
        dedicated: tenancy.unwrap_or(false),
        per_hour,
        term,
    })
}

/// A zone's id in the region.
fn zone_id(reader: &Reader<'_>, node: &Node<'_>, region: &Region, accounts: &[Account]) -> Read<Symbol> {
    let text = reader.text(node, "zone_id")?;
    let is_mapped = || accounts.iter().any(|account| account.zones.values().any(|id| id == text));
    if region.zones.iter().any(|zone| zone.id.as_str() == text) || is_mapped() {
        return Ok(Symbol::new(text));
    }
    let ids = region.zones.iter().map(|zone| zone.id.as_str());
    let is_name = region.zones.iter().find(|zone| zone.name.as_str() == text);
    let help = match is_name {
        Some(zone) => {
            format!("`{text}` is the name of a zone; its id is `{}` unless `accounts[].zones` differs", zone.id)
        }
        None => crate::places::meant(text, ids),
    };
    Err(reader
        .error(node.at, format!("no account has a zone with the id `{text}` in {}", region.name))
        .because("unknown zone id")
        .help(help))
}

/// AWS's discount of a term and payment, in millionths, where it is known.
fn rate_of_term(region: &Region, family: Option<&str>, years: Option<u32>, payment: Option<&str>) -> Option<u32> {
    let all_upfront = match payment? {
        "no_upfront" => false,
        "all_upfront" => true,
        _ => return None,
    };
    let listed = region.commitment_discount(Symbol::new(family?))?;
    listed.of_term(years?, all_upfront).map(|(discount, _)| discount)
}

/// The error that nothing sets the price of a commitment.
fn without_price(reader: &Reader<'_>, fields: Fields<'_, '_>, key: &str) -> nodecast_model::text::error::InputError {
    reader
        .error(fields.at, format!("this commitment has no `{key}`"))
        .because("no price")
        .help(format!("add `{key}`; of a known family also `term: 1y` with `payment: no_upfront` or `all_upfront`"))
}

fn plan<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>, id: String, context: &Context<'_>) -> Read<Plan> {
    let owner = owner(reader, fields, context)?;
    let kind_node = fields.required(reader, "kind")?;
    let is_compute = reader.choice(kind_node, "kind", &[("ec2_instance", false), ("compute", true)])?;
    let scope = scope(reader, fields, (&id, is_compute), context)?;
    let commitment = price(reader, fields.required(reader, "commitment")?, "commitment")?;
    let (term, years, payment) = term(reader, fields)?;
    let stated = fields.optional("discount", |node, what| share(reader, node, what))?;
    let (family_discounts, prices) = exceptions(reader, fields, scope.as_ref(), context)?;
    let listed = || {
        let (family, region) = scope.as_ref()?;
        rate_of_term(region, Some(family.as_str()), years, payment)
    };
    let discount = stated.or_else(listed);
    if discount.is_none() && prices.is_empty() && family_discounts.is_empty() {
        return Err(without_price(reader, fields, "discount"));
    }
    let [fargate_discount, lambda_discount] =
        [("fargate_discount", "Fargate"), ("lambda_discount", "Lambda")].map(|(key, service)| {
            let Some(node) = fields.get(key) else { return Ok(None) };
            if is_compute {
                return share(reader, node, key).map(Some);
            }
            Err(reader
                .error(node.at, format!("an EC2 Instance Savings Plan does not cover {service}"))
                .because(format!("only Compute plans cover {service}"))
                .help(format!("remove `{key}`, or use `kind: compute` without `family` and `region`")))
        });
    Ok(Plan {
        id,
        owner,
        family: scope.map(|(family, region)| (family, region.name)),
        commitment,
        discount,
        family_discounts,
        fargate_discount: fargate_discount?,
        lambda_discount: lambda_discount?,
        prices,
        term,
    })
}

/// Family and region of an EC2 Instance plan; nothing of a Compute plan.
fn scope<'s>(
    reader: &Reader<'s>,
    fields: Fields<'_, 's>,
    (id, is_compute): (&str, bool),
    context: &Context<'_>,
) -> Read<Option<(Symbol, Arc<Region>)>> {
    let keys = [("family", fields.get("family")), ("region", fields.get("region"))];
    for (key, node) in keys {
        match node {
            Some(node) if is_compute => {
                return Err(reader
                    .error(node.at, format!("the Compute Savings Plan `{id}` has a `{key}`"))
                    .because("Compute plans cover every family and region")
                    .help(format!("remove `{key}`, or use `kind: ec2_instance`")));
            }
            None if !is_compute => {
                return Err(reader
                    .error(fields.at, format!("the EC2 Instance Savings Plan `{id}` has no `{key}`"))
                    .because("it covers one family in one region")
                    .help(format!("add `{key}`, or use `kind: compute`")));
            }
            _ => {}
        }
    }
    let [(_, Some(family_node)), (_, Some(region_node))] = keys else { return Ok(None) };
    let region = region(reader, region_node, context.catalog)?;
    let text = reader.text(family_node, "family")?;
    let family = family(reader, (text, family_node.at), std::slice::from_ref(&region))?;
    Ok(Some((family, region)))
}

/// Discounts of families, and prices of types, that differ from the plan's discount.
type Exceptions = (BTreeMap<Symbol, u32>, BTreeMap<Symbol, HourlyRate>);

fn exceptions<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    scope: Option<&(Symbol, Arc<Region>)>,
    context: &Context<'_>,
) -> Read<Exceptions> {
    let mut discounts = BTreeMap::new();
    if let Some(node) = fields.get("family_discounts") {
        for entry in reader.entries(node, "family_discounts")? {
            discounts.insert(Symbol::new(&entry.key), share(reader, &entry.value, &entry.key)?);
        }
    }
    let mut prices = BTreeMap::new();
    let Some(node) = fields.get("prices") else { return Ok((discounts, prices)) };
    for entry in reader.entries(node, "prices")? {
        let Some(facts) = context.catalog.facts(&entry.key) else {
            return Err(reader
                .error(entry.key_at, format!("unknown instance type `{}`", entry.key))
                .because("not in the price data")
                .help("use an instance type, for example `m6a.xlarge: 0.13965`"));
        };
        if discounts.contains_key(&facts.family) {
            return Err(reader
                .error(entry.key_at, format!("`{}` has both a price and a discount", entry.key))
                .because(format!("`family_discounts` has {}", facts.family))
                .help("keep one of the two"));
        }
        let name = Symbol::new(&entry.key);
        let rate = price(reader, &entry.value, &entry.key)?;
        let listed = scope.and_then(|(_, region)| region.instance_type(name)?.on_demand);
        if let Some(listed) = listed.filter(|listed| rate > listed.rate) {
            let message = format!("the plan price of {name} is above its On-Demand price of {}", listed.rate);
            reader.warn(&lints::PLAN_PRICE, entry.value.at, message, "above On-Demand", "correct the price");
        }
        prices.insert(name, rate);
    }
    Ok((discounts, prices))
}
