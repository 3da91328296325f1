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
const CODES: [(&str, Count); 3] = [("200", |own| own.answered), ("503", |own| own.refused), ("0", |own| own.given_up)];

pub(super) fn write(out: &mut Exposition<'_>, lives: &Lives<'_>, metered: &Metered<'_>) -> io::Result<()> {
    let end = SimTime::ZERO + lives.outcome.about.duration;
    out.family(Family::counter("istio_requests", "Requests to the workload that are over, by the code of the answer."));
    for workload in metered.workloads() {
        let Some(own) = lives.outcome.record.workloads.get(workload.index()).filter(|own| own.has_load) else {
            continue;
        };
        for (code, of) in CODES {
            if code != "200" && metered.requests(workload, end, of) < 1.0 {
                continue;
            }
            let labels = vec![
                ("reporter", "destination".to_owned()),
                ("destination_workload", own.name.name.to_string()),
                ("destination_workload_namespace", own.name.namespace.to_string()),
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
