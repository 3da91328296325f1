//! Requests as the proxies of a service mesh beside the replicas count them.
//!
//! Source: Istio 1.27, reference of its standard metrics.

use std::io;

use super::exposition::{Exposition, Family};
use super::lives::Lives;
use super::metered::Metered;
use crate::domain::SimTime;
use nodecast_world::record::Meter;

/// Series of each workload, for the size of the text.
pub(super) const SERIES: u64 = 3;

type Count = fn(&Meter) -> f64;

/// Answers by code: those given, those refused for want of room or of a replica, and requests whose client went away.
const CODES: [(&str, Count); 3] =
    [("200", |item| item.answered), ("503", |vertical_figures| vertical_figures.refused), ("0", |item| item.given_up)];

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>, metered: &Metered<'_>) -> io::Result<()> {
    let end = SimTime::ZERO + lives.outcome.about.duration;
    out.family(Family::counter("istio_requests", "Requests to the workload that are over, by the code of the answer."));
    for workload in metered.workloads() {
        let Some(this_workload) =
            lives.outcome.record.workloads.get(workload.index()).filter(|workload| workload.has_load)
        else {
            continue;
        };
        for (code, of) in CODES {
            if code != "200" && metered.requests(workload, end, of) < 1.0 {
                continue;
            }
            let labels = vec![
                ("reporter", "destination".to_owned()),
                ("destination_workload", this_workload.name.name.to_string()),
                ("destination_workload_namespace", this_workload.name.namespace.to_string()),
                ("request_protocol", "http".to_owned()),
                ("response_code", code.to_owned()),
            ];
            // A request is counted when all of it is over.
            let mut counted = 0.0_f64;
            out.series(&labels, SimTime::ZERO, |at| {
                counted = counted.max(libm::floor(metered.requests(workload, at, of)));
                Some(counted)
            })?;
        }
    }
    Ok(())
}
