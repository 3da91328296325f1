//! Bills read as their owner exports them: the figures of a made-up day, every format, mistakes, chains.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

mod chain;
mod figures;
mod formats;
mod mistakes;
mod properties;
mod rules;

use std::io::Read;
use std::path::PathBuf;

use nodecast_model::text::InputError;
use nodecast_observed::bill::{
    BillLine, Cluster, Contents, Ledger, LinesRead, ReadOptions, Totals, read_bytes, read_file,
};

const CUR: &str = "cur2-2026-10-13.csv.gz";
const CUR_PARQUET: &str = "cur2-2026-10-13.snappy.parquet";
const FOCUS: &str = "focus12-2026-10-13.csv.gz";

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/bill").join(name)
}

/// The bytes of a fixture.
fn bytes_of(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap()
}

/// The text of a compressed fixture.
fn text_of(name: &str) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes_of(name).as_slice()).read_to_string(&mut text).unwrap();
    text
}

fn shop_prod() -> Cluster {
    Cluster { name: "shop-prod".to_owned(), ..Cluster::default() }
}

/// What the lines of files come to.
fn totals_of(cluster: Cluster, files: &[&str]) -> Totals {
    let mut ledger = Ledger::new(cluster);
    for file in files {
        ledger.next_file();
        read_file(&path(file), &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    }
    ledger.finish().unwrap()
}

/// The lines that bytes hold, and what was read.
fn lines_of(name: &str, bytes: &[u8]) -> Result<(Vec<BillLine>, Contents), InputError> {
    let mut lines = Vec::new();
    let mut keep = |line: &BillLine| {
        lines.push(line.clone());
        Ok(())
    };
    let contents = read_bytes(name, bytes, &ReadOptions::default(), &mut keep)?;
    Ok((lines, contents))
}

fn read_of(contents: Contents) -> LinesRead {
    match contents {
        Contents::Lines(read) => read,
        other => panic!("not a table of charges: {other:?}"),
    }
}

/// An error as its reader sees it.
fn shown(error: &InputError) -> String {
    let place = error.place().map_or_else(String::new, |place| {
        let marked = &place.text[place.marked.0..place.marked.0 + place.marked.1];
        format!(
            "\n  at {}:{}:{} [{marked}] {}",
            place.file,
            place.line,
            place.column,
            error.reason().unwrap_or_default()
        )
    });
    format!("{}{place}\n  help: {}", error.message(), error.way_out().unwrap_or("none"))
}
