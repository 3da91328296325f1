//! Recorded Spot prices: a CSV file that a scenario names.

use super::ScenarioError;
use crate::catalog::Region;
use crate::cloud::settings::ReplayedPrice;
use crate::domain::{HourlyRate, SimTime, Symbol};

/// The columns of recorded prices.
const COLUMNS: [&str; 4] = ["instance_type", "zone", "time", "price"];

/// Recorded prices, sorted by pool and time; `time` is RFC 3339.
pub(super) fn replay(
    bytes: &[u8],
    file: &str,
    region: &Region,
    start: jiff::Timestamp,
) -> Result<Vec<ReplayedPrice>, ScenarioError> {
    let wrong = |line: u64, what: String| {
        ScenarioError::new(format!("{file}:{line}: {what}"))
            .help(format!("recorded prices are a CSV file with the columns {}", COLUMNS.join(", ")))
    };
    let mut rows = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(bytes);
    let header = rows.headers().map_err(|_| wrong(1, "is not text".to_owned()))?.clone();
    let mut columns = [0; 4];
    for (column, name) in columns.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|title| title == name);
        *column = found.ok_or_else(|| wrong(1, format!("the header lacks the column `{name}`")))?;
    }
    let mut records = Vec::new();
    for row in rows.records() {
        let row =
            row.map_err(|error| wrong(error.position().map_or(1, csv::Position::line), "cannot be read".to_owned()))?;
        let line = row.position().map_or(1, csv::Position::line);
        let [name, zone, time, price] = columns.map(|column| row.get(column).unwrap_or_default());
        let instance_type = Symbol::new(name);
        if region.instance_type(instance_type).is_none() {
            return Err(wrong(line, format!("`{name}` is not an instance type of {}", region.name)));
        }
        if region.zone_index(Symbol::new(zone)).is_none() {
            return Err(wrong(line, format!("`{zone}` is not a zone of {}", region.name)));
        }
        let time = time.parse::<jiff::Timestamp>();
        let time = time.map_err(|_| wrong(line, "`time` is not like 2026-11-27T00:00:00Z".to_owned()))?;
        let rate = HourlyRate::parse(price).ok_or_else(|| wrong(line, format!("`{price}` is not a price")))?;
        let micros = time.as_microsecond().saturating_sub(start.as_microsecond());
        records.push(ReplayedPrice { instance_type, zone: Symbol::new(zone), at: SimTime::from_micros(micros), rate });
    }
    if records.is_empty() {
        return Err(wrong(1, "there is no record".to_owned()));
    }
    records.sort_unstable();
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::replay;
    use crate::catalog::Catalog;
    use crate::domain::SimDuration;

    #[test]
    fn recorded_prices_are_sorted_by_pool_and_time_and_counted_from_the_start_of_the_run() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let start = "2026-01-01T00:00:00Z".parse().unwrap();
        let text = "instance_type,zone,time,price\nm5.large,us-east-1b,2026-01-01T02:00:00Z,0.05\n\
                    m5.large,us-east-1a,2026-01-01T01:00:00Z,0.04\n";
        let records = replay(text.as_bytes(), "prices.csv", &region, start).unwrap();
        assert_eq!(records[0].at.saturating_since(crate::domain::SimTime::ZERO), SimDuration::from_secs(3_600));
        assert_eq!(records[1].rate.to_string(), "0.050000000");
        let error = replay(
            b"instance_type,zone,time,price\nm5.large,eu-west-1a,2026-01-01T02:00:00Z,1\n",
            "p.csv",
            &region,
            start,
        );
        assert!(error.unwrap_err().to_string().contains("p.csv:2: `eu-west-1a` is not a zone"));
    }
}
