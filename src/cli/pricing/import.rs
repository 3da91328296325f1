//! `nodecast pricing import`: answers of the AWS CLI, and prices by contract, as a pricing-data directory.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::Console;
use crate::catalog::import::Import;
use crate::domain::Quantity;
use crate::domain::words::refusal;
use crate::program::Failure;
use crate::report::OutputError;
use crate::report::pricing::{check_import, import_account, write_import};

/// Import AWS CLI price output or contract prices into a directory for --pricing-data
///
/// Reads the JSON of `aws pricing get-products --service-code AmazonEC2`, `aws ec2 describe-spot-price-history`,
/// `aws ec2 describe-instance-types` and `aws ec2 describe-instance-type-offerings`, and tables of prices by contract (CSV
/// with the columns region, instance_type, price, as_of), in any order; file types are detected from their content. Imports Linux
/// shared-tenancy prices on top of the built-in data and reports what it used and what it skipped. Replaces the output directory, but only
/// if a previous import created it and it is unmodified.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// The directory to make
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The files to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Maximum input file size
    #[arg(long, value_name = "QUANTITY", default_value = "256Mi")]
    max_file_size: Quantity,
}

/// A file that cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum UnusableFile {
    #[error("cannot read `{}`: {reason}", path.display())]
    #[diagnostic(help(
        "name files that the AWS CLI has printed, for example `aws ec2 describe-instance-types > types.json`"
    ))]
    Unreadable { path: PathBuf, reason: String },
    #[error("`{}` has more than the {limit} bytes that are read", path.display())]
    #[diagnostic(help("raise the limit with --max-file-size, or ask AWS for less with --filters"))]
    TooLarge { path: PathBuf, limit: u64 },
}

/// Imports. Nothing is written before everything has been read and the tables made from it have been read back.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    check_import(&arguments.out).map_err(output_failure)?;
    let mut import = Import::onto_built_in().map_err(Failure::bad_input)?;
    let limit = u64::try_from(arguments.max_file_size.value()).unwrap_or(0);
    for path in &arguments.files {
        let text = read(path, limit).map_err(Failure::bad_input)?;
        import.add(&path.display().to_string(), &text).map_err(Failure::bad_input)?;
    }
    let imported = import.finish().map_err(Failure::bad_input)?;
    write_import(&imported, &arguments.out).map_err(output_failure)?;
    console.data(&import_account(&imported))?;
    console.tell(&format!("prices: {}, for --pricing-data", arguments.out.display()));
    Ok(())
}

fn read(path: &Path, limit: u64) -> Result<String, UnusableFile> {
    let unreadable =
        |error: std::io::Error| UnusableFile::Unreadable { path: path.to_owned(), reason: refusal(&error) };
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    // One byte more than allowed tells a file that is too large, also where the size is not known beforehand.
    file.take(limit.saturating_add(1)).read_to_string(&mut text).map_err(unreadable)?;
    if text.len() as u64 > limit {
        return Err(UnusableFile::TooLarge { path: path.to_owned(), limit });
    }
    Ok(text)
}

fn output_failure(error: OutputError) -> Failure {
    match error {
        refused @ (OutputError::NotOurs { .. } | OutputError::Unusable { .. }) => Failure::bad_input(refused),
        other => Failure::system(other),
    }
}
