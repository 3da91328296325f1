//! `metrics_server` and `phases`: how often metrics are read, and when the loops of controllers first come round.

use super::super::definition::Phases;
use super::super::reader::{Fields, Reader};
use super::ScenarioError;
use crate::domain::SimDuration;
use crate::scenario::schema::metrics::{METRICS_SERVER, PHASES};

/// metrics-server's resolution as it is published, and the bounds of one.
const PUBLISHED: SimDuration = SimDuration::from_secs(15);
const SHORTEST: SimDuration = SimDuration::from_secs(10);
const LONGEST: SimDuration = SimDuration::from_secs(600);
/// `--horizontal-pod-autoscaler-sync-period`.
const SYNC_PERIOD: SimDuration = SimDuration::from_secs(15);

/// Reads the resolution of `metrics_server`.
pub(super) fn resolution<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<SimDuration, ScenarioError> {
    let Some(node) = fields.get("metrics_server") else { return Ok(PUBLISHED) };
    let fields = reader.fields(node, &METRICS_SERVER.shape)?;
    let Some(node) = fields.get("resolution") else { return Ok(PUBLISHED) };
    let resolution = reader.duration(node, "resolution")?;
    if (SHORTEST..=LONGEST).contains(&resolution) {
        return Ok(resolution);
    }
    Err(reader
        .error(node.at, format!("metrics-server does not read nodes every {resolution}"))
        .because(if resolution < SHORTEST { "shorter than 10s" } else { "longer than 10m" })
        .help("write a time from 10s to 10m, for example `15s`"))
}

/// Reads `phases`, given metrics-server's resolution.
pub(super) fn phases<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    resolution: SimDuration,
) -> Result<Phases, ScenarioError> {
    let Some(node) = fields.get("phases") else { return Ok(Phases::default()) };
    let fields = reader.fields(node, &PHASES.shape)?;
    let phase = |name: &'static str, period: Option<SimDuration>| {
        let Some(node) = fields.get(name) else { return Ok(None) };
        let phase = reader.duration(node, name)?;
        match period.filter(|period| phase >= *period) {
            Some(period) => Err(reader
                .error(node.at, format!("`{name}` comes round every {period}, so the first time is before that"))
                .because("not within the first period")
                .help(format!("write a time shorter than {period}"))),
            None => Ok(Some(phase)),
        }
    };
    Ok(Phases {
        metrics_server: phase("metrics_server", Some(resolution))?,
        replica_autoscalers: phase("replica_autoscalers", Some(SYNC_PERIOD))?,
        keda: phase("keda", None)?,
    })
}
