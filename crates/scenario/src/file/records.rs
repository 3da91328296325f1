//! Records by pool: CSV files with an instance type and a zone in every line.

use super::super::error::lacks;
use super::ScenarioError;
use crate::catalog::Region;
use crate::domain::Symbol;

/// The form of one kind of record.
pub(super) struct Form {
    /// What the file is, for a sentence: `recorded prices are`.
    pub subject: &'static str,
    /// The columns, those of the instance type and the zone first. Others may stand beside them.
    pub columns: [&'static str; 4],
}

impl Form {
    /// An error at a line of `file`.
    pub(super) fn wrong(&self, file: &str, line: u64, what: &str) -> ScenarioError {
        ScenarioError::new(format!("{file}:{line}: {what}")).help(format!(
            "{} a CSV file with the columns {}",
            self.subject,
            self.columns.join(", ")
        ))
    }

    /// Every record of a file, sorted. `record` makes one of the instance type, the zone and the two other cells, or says
    /// what is wrong with these.
    pub(super) fn read<T: Ord>(
        &self,
        bytes: &[u8],
        file: &str,
        region: &Region,
        record: impl Fn(Symbol, Symbol, [&str; 2]) -> Result<T, String>,
    ) -> Result<Vec<T>, ScenarioError> {
        let wrong = |line: u64, what: &str| self.wrong(file, line, what);
        let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
        let header = rows.headers().map_err(|_| wrong(1, "is not text"))?.clone();
        let mut columns = [0; 4];
        for (column, name) in columns.iter_mut().zip(self.columns) {
            let found = header.iter().position(|title| title == name);
            *column = found.ok_or_else(|| wrong(1, &lacks(&header, name)))?;
        }
        let mut records = Vec::new();
        for row in rows.records() {
            let row = row.map_err(|error| wrong(error.position().map_or(1, csv::Position::line), "cannot be read"))?;
            let line = row.position().map_or(1, csv::Position::line);
            let [name, zone, third, fourth] = columns.map(|column| row.get(column).unwrap_or_default());
            let (instance_type, zone) = (Symbol::new(name), Symbol::new(zone));
            if region.instance_type(instance_type).is_none() {
                return Err(wrong(line, &format!("`{name}` is not an instance type of {}", region.name)));
            }
            if region.zone_index(zone).is_none() {
                return Err(wrong(line, &format!("`{zone}` is not a zone of {}", region.name)));
            }
            records.push(record(instance_type, zone, [third, fourth]).map_err(|what| wrong(line, &what))?);
        }
        if records.is_empty() {
            return Err(wrong(1, "there is no record"));
        }
        records.sort_unstable();
        Ok(records)
    }
}
