//! Recorded Spot prices: a CSV file that a scenario names.

use super::ScenarioError;
use super::records::Form;
use crate::catalog::Region;
use crate::cloud::settings::ReplayedPrice;
use crate::domain::{HourlyRate, SimTime};

/// The form of recorded prices.
const FORM: Form = Form { subject: "recorded prices are", columns: ["instance_type", "zone", "time", "price"] };

/// Recorded prices, sorted by pool and time; `time` is RFC 3339.
pub(super) fn replay(
    bytes: &[u8],
    file: &str,
    region: &Region,
    start: jiff::Timestamp,
) -> Result<Vec<ReplayedPrice>, ScenarioError> {
    FORM.read(bytes, file, region, |instance_type, zone, [time, price]| {
        let time = time.parse::<jiff::Timestamp>();
        let time = time.map_err(|_| "`time` is not like 2026-11-27T00:00:00Z".to_owned())?;
        let rate = HourlyRate::parse(price).ok_or_else(|| format!("`{price}` is not a price"))?;
        let micros = time.as_microsecond().saturating_sub(start.as_microsecond());
        Ok(ReplayedPrice { instance_type, zone, at: SimTime::from_micros(micros), rate })
    })
}

#[cfg(test)]
mod tests {
    use super::replay;
    use crate::catalog::Catalog;
    use crate::domain::SimDuration;

    #[test]
    fn recorded_prices_are_sorted_by_pool_and_time() {
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
