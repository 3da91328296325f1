//! The prices to work with: the built-in ones or those of `--pricing-data`.

use std::path::Path;

use super::Failure;
use crate::catalog::{Catalog, CatalogError};

/// Prices that cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(transparent)]
#[diagnostic(help(
    "--pricing-data must be a directory with the same layout as pricing-data/; omit it to use the built-in prices"
))]
struct UnusablePrices(#[from] CatalogError);

/// The failure of prices that cannot be used.
pub fn unusable(error: CatalogError) -> Failure {
    Failure::bad_input(UnusablePrices(error))
}

/// A catalog of prices.
pub enum Prices {
    /// Those in the program.
    BuiltIn(&'static Catalog),
    /// Those of a directory.
    Own(Box<Catalog>),
}

impl Prices {
    /// Opens the prices of `directory`, or the built-in ones.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn open(directory: Option<&Path>) -> Result<Self, Failure> {
        match directory {
            Some(directory) => {
                Catalog::from_dir(directory).map(|catalog| Self::Own(Box::new(catalog))).map_err(unusable)
            }
            None => Catalog::embedded().map(Self::BuiltIn).map_err(unusable),
        }
    }

    /// The catalog.
    pub fn catalog(&self) -> &Catalog {
        match self {
            Self::BuiltIn(catalog) => catalog,
            Self::Own(catalog) => catalog,
        }
    }
}
