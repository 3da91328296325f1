//! `scenarios/worldcup-week`: what its README says, up to the first peak.

use super::edited_runs;

#[test]
fn worldcup_first_peak_fits_twenty_nodes() {
    let [run] = &edited_runs::<1>("worldcup-week", &["duration=20h"]);
    let ready = run.outcome.record.samples.iter().map(|sample| {
        let workload = sample.workloads.iter().filter(|workload| workload.requests_per_second > 0.0);
        workload.fold((0, 0), |(services, pods), workload| (services + 1, pods + workload.replicas_ready))
    });
    let (services, most) = ready.max_by_key(|(_, pods)| *pods).unwrap();
    assert!(services == 20 && (900..1_100).contains(&most), "{services} services, {most} pods");
    assert_eq!((run.summary.nodes.max_ready, run.summary.nodes.launches), (20, 0));
}
