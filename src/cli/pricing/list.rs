//! `nodecast pricing list`: the types of a region, a line each.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{Console, Format, UnknownName, nearest, region_failure, unwritable};
use crate::catalog::Region;
use crate::domain::{Quantity, Symbol};
use crate::program::{Failure, Prices};
use crate::report::format;
use crate::report::pricing::{PriceList, Selection, SortBy};

/// List the instance types of a region with their prices, one line each
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The region, for example us-east-1
    #[arg(long)]
    region: String,
    /// Only this family, for example m7g
    #[arg(long)]
    family: Option<String>,
    /// Only this architecture
    #[arg(long, value_enum)]
    arch: Option<Architecture>,
    /// Minimum vCPUs
    #[arg(long, value_name = "N")]
    min_vcpu: Option<u32>,
    /// Maximum vCPUs
    #[arg(long, value_name = "N")]
    max_vcpu: Option<u32>,
    /// Minimum memory, for example 8Gi
    #[arg(long, value_name = "QUANTITY")]
    min_memory: Option<Quantity>,
    /// Only GPU instance types
    #[arg(long)]
    gpu: bool,
    /// The order
    #[arg(long, value_enum, default_value = "name")]
    sort: Sort,
    /// Maximum rows
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
}

/// An architecture that nodes run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Architecture {
    Amd64,
    Arm64,
}

/// The order of the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Sort {
    /// By family, then by size
    Name,
    /// By On-Demand price, cheapest first
    Price,
    /// By the cheapest Spot price, the cheapest first.
    Spot,
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let region = prices.catalog().region(&arguments.region).map_err(region_failure)?;
    check_family(arguments, &region)?;
    let sort = match arguments.sort {
        Sort::Name => SortBy::Name,
        Sort::Price => SortBy::OnDemandPrice,
        Sort::Spot => SortBy::SpotPrice,
    };
    let list = PriceList::new(&region, &selection(arguments), sort, arguments.limit);
    match arguments.format {
        Format::Table => console.data(&list.table(console.width()))?,
        Format::Json => console.document(&list.to_json().map_err(unwritable)?)?,
    }
    let unlisted = list.matching - list.types.len();
    if list.matching == 0 {
        console.tell("no type matches");
    } else if unlisted > 0 {
        console.tell(&format!("{} left out by --limit", format::counted(unlisted as u64, "type", "types")));
    }
    Ok(())
}

fn selection(arguments: &Arguments) -> Selection {
    Selection {
        family: arguments.family.as_deref().map(Symbol::new),
        arch: arguments.arch.map(|arch| match arch {
            Architecture::Amd64 => Symbol::new("amd64"),
            Architecture::Arm64 => Symbol::new("arm64"),
        }),
        min_vcpus: arguments.min_vcpu,
        max_vcpus: arguments.max_vcpu,
        min_memory_bytes: arguments.min_memory.map(Quantity::value),
        with_gpu: arguments.gpu,
    }
}

/// A family that the region does not know is a mistake, not an empty list.
fn check_family(arguments: &Arguments, region: &Region) -> Result<(), Failure> {
    let Some(given) = &arguments.family else { return Ok(()) };
    let families = || region.types.iter().map(|entry| entry.facts.family.as_str());
    if families().any(|family| family == given) {
        return Ok(());
    }
    Err(Failure::bad_input(UnknownName {
        what: "instance family",
        region: region.name.as_str(),
        given: given.clone(),
        nearest: nearest(given, families()),
        elsewhere: "the family is the part before the dot: m7g in m7g.xlarge".to_owned(),
    }))
}
