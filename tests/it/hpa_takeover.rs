//! An HPA that a ScaledObject takes over by its name.

use nodecast::world::record::{Event, EventKind};

use crate::keda::{changes, cluster, run};

/// The calendar counts with the CPU metric of the autoscaler that was there: without the calendar's metric it would never scale in.
#[test]
fn scaled_object_takes_over_named_hpa() {
    let hpa = "---\napiVersion: autoscaling/v2\nkind: HorizontalPodAutoscaler\nmetadata: {name: by-cpu}\nspec:\n  \
               scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: worker}\n  minReplicas: 9\n  maxReplicas: 14\n  metrics:\n  \
               - {type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 65}}}\n";
    let object = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata: {name: worker, annotations: \
                  {scaledobject.keda.sh/transfer-hpa-ownership: 'true'}}\nspec:\n  scaleTargetRef: {name: worker}\n  \
                  minReplicaCount: 2\n  maxReplicaCount: 14\n  advanced: {horizontalPodAutoscalerConfig: {name: by-cpu}}\n  triggers:\n  \
                  - {type: cpu, metricType: Utilization, metadata: {value: '65'}}\n  \
                  - {type: cron, metadata: {timezone: Etc/UTC, start: 0 3 * * *, end: 0 4 * * *, desiredReplicas: '9'}}\n";
    for (place, later) in
        [(format!("---\n{object}"), ""), (String::new(), "timeline: [{at: 1s, manifests: [later.yaml]}]\n")]
    {
        let outcome = run("3h", later, &format!("{}{hpa}{place}", cluster(9)), &[("later.yaml", object)]);
        let counts: Vec<(u32, u32)> = changes(&outcome).iter().map(|&(_, _, from, to)| (from, to)).collect();
        // By night, at three o'clock as far as a rise goes at once, and after four.
        assert_eq!(counts, [(9, 2), (2, 4), (4, 8), (8, 9), (9, 2)], "{later}");
        // The metrics pipeline has readings from the second minute on.
        let fails = |event: Event| event.kind == EventKind::RescaleFailed && event.at.as_secs() > 120;
        assert!(!outcome.record.events.iter().any(fails), "{later}");
    }
}
