//! Kinds of values that several sections of a fleet file have.

use jiff::Timestamp;
use nodecast_model::catalog::Region;
use nodecast_model::domain::{HourlyRate, Symbol};
use nodecast_model::text::error::{InputError, listed, nearest};
use nodecast_model::text::reader::Reader;
use nodecast_model::text::tree::Node;
use nodecast_prices::Catalog;
use std::sync::Arc;

use crate::Account;

pub(crate) type Read<T> = Result<T, InputError>;

/// The whole, in the unit of shares.
pub(crate) const WHOLE: u32 = 1_000_000;

/// The help of a name that is not known: the nearest, or all.
pub(crate) fn meant<'c>(given: &str, known: impl Iterator<Item = &'c str> + Clone) -> String {
    match nearest(given, known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("known are {}", listed(known)),
    }
}

/// A share up to the whole, in millionths: `8%` or `0.08`.
pub(crate) fn share(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Read<u32> {
    let text = node.as_text().unwrap_or_default().trim();
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse::<f64>(),
    };
    match share {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok((share * f64::from(WHOLE)).round() as u32),
        _ => Err(reader
            .error(node.at, format!("`{what}` is not a share"))
            .because("not from 0% to 100%")
            .help("write for example `8%` or `0.08`")),
    }
}

/// A price per hour above zero.
pub(crate) fn price(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Read<HourlyRate> {
    let text = node.as_text().unwrap_or_default().trim();
    let is_negative = text.starts_with('-');
    match HourlyRate::parse(text.trim_start_matches('-')) {
        Some(rate) if !is_negative && rate > HourlyRate::ZERO => Ok(rate),
        Some(_) => Err(reader
            .error(node.at, format!("`{what}` is {text}"))
            .because("must be above 0")
            .help("write the price per hour, or remove this commitment")),
        None => Err(reader
            .error(node.at, format!("`{what}` is a price per hour"))
            .because("not a price")
            .help("write a number with at most nine decimals, for example 0.12")),
    }
}

/// A time in RFC 3339.
pub(crate) fn time(reader: &Reader<'_>, node: &Node<'_>, what: &str) -> Read<Timestamp> {
    node.as_text().and_then(|text| text.parse().ok()).ok_or_else(|| {
        reader
            .error(node.at, format!("`{what}` is not a time"))
            .because("expected RFC 3339")
            .help("write for example `2026-06-01T00:00:00Z`")
    })
}

/// An account by its name or id.
pub(crate) fn account(reader: &Reader<'_>, node: &Node<'_>, what: &str, accounts: &[Account]) -> Read<usize> {
    let text = reader.text(node, what)?;
    let is_called = |account: &Account| account.name == text || account.id == text;
    accounts.iter().position(is_called).ok_or_else(|| {
        let names = accounts.iter().map(|account| account.name.as_str());
        let message = match what {
            "owner" => format!("the owner `{text}` is not an account of this fleet"),
            _ => format!("unknown account `{text}`"),
        };
        reader.error(node.at, message).because("not in `accounts`").help(meant(text, names))
    })
}

/// A region with prices.
pub(crate) fn region(reader: &Reader<'_>, node: &Node<'_>, catalog: &Catalog) -> Read<Arc<Region>> {
    let text = reader.text(node, "region")?;
    catalog.region(text).map_err(|_| {
        let message = format!("no prices for region `{text}`");
        reader
            .error(node.at, message)
            .because("unknown region")
            .help(meant(text, catalog.regions().collect::<Vec<_>>().into_iter()))
    })
}

/// An instance type of a region.
pub(crate) fn instance_type(reader: &Reader<'_>, node: &Node<'_>, region: &Region) -> Read<Symbol> {
    let text = reader.text(node, "type")?;
    let name = Symbol::new(text);
    if region.instance_type(name).is_some() {
        return Ok(name);
    }
    let known: Vec<&str> = region.types.iter().map(|kind| kind.facts.name.as_str()).collect();
    let help = nearest(text, known).map_or_else(
        || "use an instance type that the region offers, for example `m5.large`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Err(reader
        .error(node.at, format!("{} has no instance type `{text}`", region.name))
        .because("unknown type")
        .help(help))
}

/// Families of the regions.
pub(crate) fn families(regions: &[Arc<Region>]) -> Vec<&str> {
    let mut families: Vec<&str> =
        regions.iter().flat_map(|region| region.types.iter().map(|kind| kind.facts.family.as_str())).collect();
    families.sort_unstable();
    families.dedup();
    families
}

/// An instance family of one of the regions.
pub(crate) fn family(
    reader: &Reader<'_>,
    (text, at): (&str, nodecast_model::text::tree::Location),
    regions: &[Arc<Region>],
) -> Read<Symbol> {
    let known = families(regions);
    if known.is_empty() || known.binary_search(&text).is_ok() {
        return Ok(Symbol::new(text));
    }
    let help = nearest(text, known.iter().copied()).map_or_else(
        || "use an instance family, for example `m5`".to_owned(),
        |near| format!("did you mean `{near}`?"),
    );
    Err(reader.error(at, format!("unknown instance family `{text}`")).because("no type of it in the region").help(help))
}
