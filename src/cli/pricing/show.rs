//! `nodecast pricing show`: one instance type in full.

use std::path::PathBuf;

use super::{Console, Format, UnknownName, nearest, region_failure, unwritable};
use crate::catalog::{Catalog, Region};
use crate::domain::{KarpenterVersion, Symbol};
use crate::program::{Failure, Prices};
use crate::report::pricing::TypeSheet;

/// Show one instance type: hardware, allocatable resources, and prices by zone
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The instance type, for example m7g.xlarge
    #[arg(value_name = "TYPE")]
    instance_type: String,
    /// The region, for example us-east-1
    #[arg(long)]
    region: String,
    /// Karpenter version whose estimates to show
    #[arg(long, value_name = "VERSION", default_value_t)]
    karpenter: KarpenterVersion,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let catalog = prices.catalog();
    let region = catalog.region(&arguments.region).map_err(region_failure)?;
    let name = Symbol::new(&arguments.instance_type);
    let Some(entry) = region.instance_type(name) else {
        return Err(unknown_type(catalog, &region, &arguments.instance_type));
    };
    let sheet = TypeSheet::new(&region, entry, arguments.karpenter);
    match arguments.format {
        Format::Table => console.data(&sheet.table(console.width())),
        Format::Json => console.document(&sheet.to_json().map_err(unwritable)?),
    }
}

/// The failure of a type that the region does not offer: where else it is, or what was most likely meant.
fn unknown_type(catalog: &Catalog, region: &Region, given: &str) -> Failure {
    let elsewhere = if catalog.facts(given).is_some() {
        let name = Symbol::new(given);
        let offers = |other: &&str| catalog.region(other).is_ok_and(|other| other.instance_type(name).is_some());
        let others: Vec<&str> = catalog.regions().filter(offers).collect();
        if others.is_empty() {
            "no region has a price for it".to_owned()
        } else {
            format!("it is known in {}", others.join(", "))
        }
    } else {
        format!("`nodecast pricing list --region {}` lists every type there", region.name)
    };
    let nearest = match catalog.facts(given) {
        Some(_) => None,
        None => nearest(given, region.types.iter().map(|entry| entry.facts.name.as_str())),
    };
    Failure::bad_input(UnknownName {
        what: "instance type",
        region: region.name.as_str(),
        given: given.to_owned(),
        nearest,
        elsewhere,
    })
}
