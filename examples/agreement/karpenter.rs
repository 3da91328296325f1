//! The karpenter suite.

use std::path::PathBuf;

use super::tally::Tally;

/// Runs every case below `paths`.
pub fn run(_paths: &[PathBuf], _catalogs: Option<&std::path::Path>) -> Result<Tally, String> {
    Err("this suite is not there yet".to_owned())
}
