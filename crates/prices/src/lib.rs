//! EC2 as a price list: instance types, which zones offer them, what they cost. Read from pricing-data/, which is
//! embedded in the program; a region is parsed when it is first asked for.
//!
//! What must not live here: any Kubernetes rule (what a node offers to pods is `karpenter::instance_types`), any change
//! over time (that is `ec2`).

mod embedded;
mod extras;
mod facts;
pub mod import;
mod region;
mod table;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

pub use nodecast_model::catalog::{
    Accelerator, AcceleratorKind, CellError, Cells, CommitmentDiscount, EbsVolumes, Gpu, InstanceFacts, NetworkFees,
    Price, PriceQuality, Region, RegionType, SpotAdvice, SpotLevel, VolumePrices, Zone, ZoneIdBasis,
};

use sha2::{Digest, Sha256};

use nodecast_model::domain::Symbol;
use nodecast_model::domain::words::refusal;
use region::{Dates, RegionOutline};

/// The files of a pricing-data directory, other than those in its `regions` folder.
const FILES: [&str; 7] =
    ["instance-types.csv", "regions.csv", "dates.csv", "ebs.csv", "commitments.csv", "network.csv", "spot-levels.csv"];

/// Everything known of EC2's instance types and prices, by region.
#[derive(Debug)]
pub struct Catalog {
    facts: BTreeMap<&'static str, Arc<InstanceFacts>>,
    outlines: Vec<RegionOutline>,
    dates: Dates,
    /// What volumes cost and what commitments save, by region.
    volumes: BTreeMap<Symbol, VolumePrices>,
    commitments: BTreeMap<Symbol, Vec<CommitmentDiscount>>,
    /// Fees of load balancers and NAT gateways, and levels of Spot prices, by region.
    network: BTreeMap<Symbol, NetworkFees>,
    spot_levels: BTreeMap<Symbol, SpotLevel>,
    /// Region texts that replace the embedded ones, by region.
    overrides: BTreeMap<String, String>,
    /// The files that were read in place of embedded ones.
    own_files: Vec<OwnFile>,
    parsed: Mutex<BTreeMap<String, Arc<Region>>>,
}

/// A file of a pricing-data directory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnFile {
    /// Where it was read.
    pub path: String,
    /// SHA-256 of its text, in hexadecimal.
    pub sha256: String,
}

impl OwnFile {
    fn new(path: &Path, text: &str) -> Self {
        let sha256 = Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect();
        Self { path: path.display().to_string(), sha256 }
    }
}

/// Why a region or a pricing-data directory could not be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CatalogError {
    /// There are no prices for this region.
    #[error("no prices for region `{given}`{}; there are for {known}", nearest.as_ref().map_or(String::new(), |name| format!(" (did you mean `{name}`?)")))]
    UnknownRegion {
        /// What was asked for.
        given: String,
        /// A region that is spelled almost the same.
        nearest: Option<String>,
        /// Every region that there are prices for.
        known: String,
    },
    /// A file could not be read.
    #[error("cannot read {path}: {reason}")]
    Unreadable {
        /// The file or directory.
        path: String,
        /// What the operating system said.
        reason: String,
    },
    /// A file that a pricing-data directory has no place for, most likely a misspelled one.
    #[error("{path} is not part of pricing data; expected are {expected}")]
    UnexpectedFile {
        /// The file.
        path: String,
        /// What may be there.
        expected: String,
    },
    /// A table lacks a column.
    #[error("{file} has no column `{column}`")]
    MissingColumn {
        /// The file.
        file: String,
        /// The column.
        column: &'static str,
    },
    /// A line of a table cannot be understood.
    #[error("{file}, line {line}: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The column, the value and what is wrong with it.
        reason: String,
    },
}

impl Catalog {
    /// The catalog that is built into the program.
    ///
    /// # Errors
    /// Never with the pricing data of a released program: a test reads all of it.
    pub fn embedded() -> Result<&'static Self, CatalogError> {
        static EMBEDDED: LazyLock<Result<Catalog, CatalogError>> = LazyLock::new(|| Catalog::from_texts(|_| None));
        EMBEDDED.as_ref().map_err(Clone::clone)
    }

    /// The catalog in `directory`, which is laid out like pricing-data/. Files that it lacks are taken from the built-in
    /// catalog, so that a directory need hold no more than what it changes.
    ///
    /// # Errors
    /// If the directory holds no pricing data, holds a table that has no place there, or if a table cannot be read or
    /// understood.
    pub fn from_dir(directory: &Path) -> Result<Self, CatalogError> {
        let present = csv_files(directory, &FILES.map(str::to_owned))?;
        let mut own_files = Vec::new();
        let mut texts = BTreeMap::new();
        for file in &present {
            let path = directory.join(file);
            let text = read(&path)?;
            own_files.push(OwnFile::new(&path, &text));
            texts.insert(file.as_str(), text);
        }
        let mut catalog = Self::from_texts(|file| texts.get(file).cloned())?;
        let region_directory = directory.join("regions");
        let expected: Vec<String> = catalog.outlines.iter().map(|outline| format!("{}.csv", outline.name)).collect();
        let region_files =
            if region_directory.is_dir() { csv_files(&region_directory, &expected)? } else { Vec::new() };
        if present.is_empty() && region_files.is_empty() {
            return Err(CatalogError::Unreadable {
                path: directory.display().to_string(),
                reason: format!("it holds neither {} nor regions/REGION.csv", FILES.join(", ")),
            });
        }
        for file in region_files {
            let path = region_directory.join(&file);
            let text = read(&path)?;
            own_files.push(OwnFile::new(&path, &text));
            catalog.overrides.insert(file.trim_end_matches(".csv").to_owned(), text);
        }
        catalog.own_files = own_files;
        for region in catalog.overrides.keys() {
            catalog.region(region)?;
        }
        Ok(catalog)
    }

    /// Reads the tables that are not of one region, each from `replacement` or else from the embedded text.
    fn from_texts(replacement: impl Fn(&str) -> Option<String>) -> Result<Self, CatalogError> {
        let text = |position: usize, embedded: &'static str| -> std::borrow::Cow<'static, str> {
            replacement(FILES[position]).map_or(embedded.into(), Into::into)
        };
        let facts = facts::parse(FILES[0], &text(0, embedded::INSTANCE_TYPES))?;
        let outlines = region::parse_outlines(FILES[1], &text(1, embedded::ZONES))?;
        let dates = Dates::parse(FILES[2], &text(2, embedded::DATES))?;
        let volumes = extras::volumes(FILES[3], &text(3, embedded::VOLUMES))?;
        let commitments = extras::commitments(FILES[4], &text(4, embedded::COMMITMENTS))?;
        let network =
            extras::by_region(FILES[5], &text(5, embedded::NETWORK), &NetworkFees::COLUMNS, NetworkFees::from_cells)?;
        let levels = text(6, embedded::SPOT_LEVELS);
        let spot_levels = extras::by_region(FILES[6], &levels, &SpotLevel::COLUMNS, SpotLevel::from_cells)?;
        let (overrides, own_files, parsed) = (BTreeMap::new(), Vec::new(), Mutex::new(BTreeMap::new()));
        Ok(Self { facts, outlines, dates, volumes, commitments, network, spot_levels, overrides, own_files, parsed })
    }

    /// The files of a pricing-data directory that were read in place of embedded ones, in order of their names; none of the built-in catalog.
    pub fn own_files(&self) -> &[OwnFile] {
        &self.own_files
    }

    /// The names of the regions that there are prices for, in order.
    pub fn regions(&self) -> impl Iterator<Item = &str> {
        self.outlines.iter().map(|outline| outline.name.as_str()).filter(|name| self.table(name).is_some())
    }

    /// What is known of an instance type, whether or not a region offers it.
    pub fn facts(&self, instance_type: &str) -> Option<&Arc<InstanceFacts>> {
        self.facts.get(instance_type)
    }

    /// The types, zones and prices of the region `name`.
    ///
    /// # Errors
    /// If there are no prices for it, or its table cannot be understood.
    pub fn region(&self, name: &str) -> Result<Arc<Region>, CatalogError> {
        let mut parsed = self.parsed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(region) = parsed.get(name) {
            return Ok(Arc::clone(region));
        }
        let outline = self.outlines.iter().find(|outline| outline.name.as_str() == name);
        let (Some(outline), Some(text)) = (outline, self.table(name)) else { return Err(self.unknown_region(name)) };
        let level = self.spot_levels.get(&outline.name).copied();
        let mut region = region::parse(outline, text, &self.facts, (self.dates, level))?;
        region.network = self.network.get(&outline.name).copied();
        region.volumes = self.volumes.get(&outline.name).copied();
        region.commitments = self.commitments.get(&outline.name).cloned().unwrap_or_default();
        let region = Arc::new(region);
        parsed.insert(name.to_owned(), Arc::clone(&region));
        Ok(region)
    }

    /// The text of the table of the region `name`.
    fn table(&self, name: &str) -> Option<&str> {
        self.overrides.get(name).map(String::as_str).or_else(|| embedded::region(name))
    }

    fn unknown_region(&self, given: &str) -> CatalogError {
        let nearest = self
            .regions()
            .map(|known| (strsim::levenshtein(known, given), known))
            .filter(|&(distance, _)| distance <= 4)
            .min()
            .map(|(_, known)| known.to_owned());
        let known = self.regions().collect::<Vec<_>>().join(", ");
        CatalogError::UnknownRegion { given: given.to_owned(), nearest, known }
    }
}

/// The names of the `.csv` files in `directory`, in order, if each is one of `expected`.
fn csv_files(directory: &Path, expected: &[String]) -> Result<Vec<String>, CatalogError> {
    let unreadable = |error: std::io::Error| CatalogError::Unreadable {
        path: directory.display().to_string(),
        reason: refusal(&error),
    };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name().to_string_lossy().into_owned();
        if !name.ends_with(".csv") {
            continue;
        }
        if !expected.contains(&name) {
            return Err(CatalogError::UnexpectedFile {
                path: directory.join(name).display().to_string(),
                expected: expected.join(", "),
            });
        }
        names.push(name);
    }
    names.sort();
    Ok(names)
}

fn read(path: &Path) -> Result<String, CatalogError> {
    std::fs::read_to_string(path)
        .map_err(|error| CatalogError::Unreadable { path: path.display().to_string(), reason: refusal(&error) })
}
