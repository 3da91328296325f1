//! Recorded Spot availability: a CSV file that a scenario names.

use super::ScenarioError;
use super::records::Form;
use crate::catalog::Region;
use crate::cloud::market::traces::Availability;
use crate::domain::{SimDuration, SimTime};

/// The form of recorded availability.
const FORM: Form =
    Form { subject: "recorded availability is", columns: ["instance_type", "zone", "offset_s", "available"] };

/// Recorded availability, sorted by pool and time; `offset_s` counts seconds from the start of the run, `available` how many
/// instances could be had from then on. Other columns may stand beside them.
pub(crate) fn traces(bytes: &[u8], file: &str, region: &Region) -> Result<Vec<Availability>, ScenarioError> {
    let records = FORM.read(bytes, file, region, |instance_type, zone, [offset, available]| {
        let seconds = offset.parse::<i64>().ok().filter(|seconds| (0..=1_000_000_000).contains(seconds));
        let seconds = seconds.ok_or_else(|| format!("`{offset}` is not a whole number of seconds"))?;
        let available = available.parse::<u32>().map_err(|_| "`available` is not a whole number".to_owned())?;
        Ok(Availability { instance_type, zone, at: SimTime::ZERO + SimDuration::from_secs(seconds), available })
    })?;
    let same = |pair: &[Availability]| {
        (pair[0].instance_type, pair[0].zone, pair[0].at) == (pair[1].instance_type, pair[1].zone, pair[1].at)
    };
    if let Some(pair) = records.windows(2).find(|pair| same(pair)) {
        let seconds = pair[0].at.saturating_since(SimTime::ZERO).as_secs();
        let what = format!("two records of {} in {} at {seconds}", pair[0].instance_type, pair[0].zone);
        return Err(FORM.wrong(file, 1, &what));
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::traces;
    use crate::catalog::Catalog;

    #[test]
    fn availability_records_are_sorted_and_errors_have_lines() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let header = "trace_id,zone,instance_type,offset_s,duration_s,available\n";
        let read = |rows: &str| traces(format!("{header}{rows}").as_bytes(), "t.csv", &region);
        let records = read("x,us-east-1a,m5.large,600,60,0\nx,us-east-1a,m5.large,0,600,4\n").unwrap();
        assert_eq!(records.iter().map(|record| record.available).collect::<Vec<_>>(), [4, 0]);
        let message = |rows: &str| read(rows).unwrap_err().to_string();
        assert!(message("x,us-east-1a,m5.huge,0,1,1\n").contains("t.csv:2: `m5.huge` is not an instance type"));
        assert!(message("x,us-east-1a,m5.large,-1,1,1\n").contains("not a whole number of seconds"));
        assert!(message("x,us-east-1a,m5.large,0,1,1\nx,us-east-1a,m5.large,0,1,2\n").contains("two records"));
        assert!(message("").contains("there is no record"));
    }
}
