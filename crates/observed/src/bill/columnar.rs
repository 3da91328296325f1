//! Parquet files of charges, row by row, through the same layouts as CSV.
//!
//! Only the columns that are read are decompressed. Amounts are binary numbers there; their shortest decimal text is what the exporter was
//! given, and is read exactly.

use std::collections::BTreeSet;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use nodecast_model::text::InputError;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::types::Type;

use super::amount::Amount;
use super::place::of_file;
use super::rows::{EachLine, Rows};
use super::{Contents, ReadOptions};

/// Reads a Parquet file.
pub(super) fn read_file(
    file: &str,
    content: File,
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<Contents, InputError> {
    read(file, content, options, each)
}

/// Reads the bytes of a Parquet file.
pub(super) fn read_bytes(
    file: &str,
    content: &[u8],
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<Contents, InputError> {
    read(file, bytes::Bytes::copy_from_slice(content), options, each)
}

fn read<R: ChunkReader + 'static>(
    file: &str,
    content: R,
    options: &ReadOptions,
    each: &mut EachLine<'_>,
) -> Result<Contents, InputError> {
    let damaged = |row: u64, error: &ParquetError| damaged(file, row, error);
    let reader = contained(file, 0, || SerializedFileReader::new(content))?.map_err(|error| damaged(0, &error))?;
    let schema = reader.metadata().file_metadata().schema();
    let header: csv::StringRecord = schema.get_fields().iter().map(|field| field.name()).collect();
    let positions: BTreeSet<usize> = Rows::new(file, header, true, options)?.positions().into_iter().collect();
    let fields: Vec<Arc<Type>> =
        positions.iter().filter_map(|&position| schema.get_fields().get(position).cloned()).collect();
    let header = fields.iter().map(|field| field.name()).collect();
    let projection = Type::group_type_builder(schema.name()).with_fields(fields).build();
    let projection = projection.map_err(|error| damaged(0, &error))?;
    let mut rows = Rows::new(file, header, true, options)?;
    let (mut number, mut cells) = (0, csv::StringRecord::new());
    let stored = contained(file, 0, || reader.get_row_iter(Some(projection)))?;
    let mut stored = stored.map_err(|error| damaged(0, &error))?;
    while let Some(row) = contained(file, number + 1, || stored.next())? {
        number += 1;
        write_cells(&row.map_err(|error| damaged(number, &error))?, &mut cells);
        rows.take(number, &cells, each)?;
    }
    rows.done().map(Contents::Lines)
}

/// What `step` comes to. The library trusts what a file says of itself in places, and panics where that is not so; nothing that it has in
/// hand is used again afterwards.
fn contained<T>(file: &str, row: u64, step: impl FnOnce() -> T) -> Result<T, InputError> {
    catch_unwind(AssertUnwindSafe(step)).map_err(|_| {
        let error = ParquetError::General("it contradicts itself".to_owned());
        damaged(file, row, &error)
    })
}

fn damaged(file: &str, row: u64, error: &ParquetError) -> InputError {
    let place = if row == 0 { String::new() } else { format!(" at row {row}") };
    let codec = matches!(error, ParquetError::NYI(_)) || error.to_string().contains("Disabled feature");
    if codec {
        return of_file(file, &format!("the Parquet file cannot be decompressed{place}: {error}"))
            .help("export it with Snappy or gzip, which AWS's exports use, or as CSV");
    }
    of_file(file, &format!("the Parquet file is damaged{place}: {error}")).help("copy it again from the bucket")
}

/// The cells of a row as their texts.
fn write_cells(row: &Row, cells: &mut csv::StringRecord) {
    cells.clear();
    for (_, field) in row.get_column_iter() {
        match field {
            Field::Null => cells.push_field(""),
            Field::Str(text) => cells.push_field(text),
            field => cells.push_field(&text(field)),
        }
    }
}

/// A value as the text that a CSV export states.
fn text(field: &Field) -> String {
    match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned(),
        Field::Double(number) => Amount::from_f64(*number).map_or_else(|| number.to_string(), |it| it.to_string()),
        Field::Float(number) => number.to_string(),
        Field::TimestampMillis(millis) => instant(jiff::Timestamp::from_millisecond(*millis), *millis),
        Field::TimestampMicros(micros) => instant(jiff::Timestamp::from_microsecond(*micros), *micros),
        Field::MapInternal(map) => {
            let entries = map.entries().iter().map(|(key, value)| (text(key), serde_json::Value::String(text(value))));
            serde_json::Value::Object(entries.collect()).to_string()
        }
        // Numbers, dates and decimals, as the library writes them.
        other => other.to_string(),
    }
}

/// An instant as text; one beyond the calendar stays a number, which then is refused as no instant.
fn instant(instant: Result<jiff::Timestamp, jiff::Error>, number: i64) -> String {
    instant.map_or_else(|_| number.to_string(), |instant| instant.to_string())
}
