//! What pods use, and VerticalPodAutoscalers that go by it.

use super::{Draft, Service};
use crate::case::{Part, Section, Vertical};

/// Modes, and how often each comes of a hundred.
const MODES: [(&str, u64); 4] = [("Off", 15), ("Initial", 25), ("Recreate", 30), ("InPlaceOrRecreate", 30)];

/// Curves of use for some services, most of them with a VerticalPodAutoscaler; its release where there is one.
pub fn parts(draft: &mut Draft, versions: &mut String) -> Vec<Part> {
    let chosen: Vec<usize> = (0..draft.services.len()).filter(|_| draft.random.happens(30)).collect();
    let mut parts = Vec::new();
    for place in chosen {
        let service = &draft.services[place];
        let service = Service { name: service.name.clone(), deployment: String::new(), ..*service };
        parts.push(usage(draft, &service));
        if draft.random.happens(80) {
            parts.push(autoscaler(draft, &service));
        }
    }
    if !draft.vertical.is_empty() {
        // Resizes in place came with 1.4.
        let in_place = draft.vertical.iter().any(|vertical| vertical.mode == "InPlaceOrRecreate");
        let releases: &[&str] = if in_place { &["1.5", "1.6", "1.7"] } else { &["1.2", "1.4", "1.5", "1.7"] };
        versions.push_str(&format!(", vertical-pod-autoscaler: \"{}\"", draft.random.pick(releases)));
        if draft.random.happens(30) {
            let text = draft.random.pick(&[
                "vertical_pod_autoscaler: { updater: { in-recommendation-bounds-eviction-lifetime-threshold: 10m } }\n",
                "vertical_pod_autoscaler: { updater: { eviction-tolerance: 0.1 }, recommender: { target-cpu-percentile: 0.6 } }\n",
                "vertical_pod_autoscaler: { recommender: { pod-recommendation-min-memory-mb: 40, pod-recommendation-min-cpu-millicores: 10 } }\n",
            ]);
            parts.push(Part::new("flags of the vertical autoscaler", vec![(Section::Scenario, text.to_owned())]));
        }
    }
    parts
}

fn usage(draft: &mut Draft, service: &Service) -> Part {
    let (cpu, memory) = service.requests;
    let (random, busy) = (&mut draft.random, draft.busy);
    // A share of what is requested, or more than it, in thousandths.
    let shares = [50, 200, 700, 1_000, 1_800];
    let mut share = || shares[random.between(0, 4) as usize];
    let (least, most, held) = (cpu * share(), cpu * share(), memory * share());
    let cores = |amount: u64| format!("{:.3}", amount.max(1_000) as f64 / 1e6);
    let mebibytes = |amount: u64| (amount / 1_000).max(1);
    let (least, most, held) = (cores(least), cores(most), mebibytes(held));
    let cpu = match random.between(1, 3) {
        1 => format!("{{ constant: {least} }}"),
        2 => format!(
            "{{ steps: [{{ at: 0s, rate: {least} }}, {{ at: {}m, rate: {most} }}, {{ at: {busy}m, rate: {least} }}] }}",
            busy / 2
        ),
        _ => format!(
            "{{ diurnal: {{ night: {least}, peak: {most}, peak_at: 9h, every: 5m }}, uncertainty: {{ noise: 20% }} }}"
        ),
    };
    let memory = match random.between(1, 2) {
        1 => format!("{{ constant: {held} }}"),
        _ => format!("{{ ramp: {{ from: {}, to: {held}, over: {busy}m, every: 5m }} }}", held / 2 + 1),
    };
    let per = if random.happens(80) { "pod" } else { "workload" };
    let item = format!("{{ workload: shop/{}, per: {per}, cpu: {cpu}, memory: {memory} }}", service.name);
    Part::new(format!("use of {}", service.name), vec![(Section::Usage, item)])
}

fn autoscaler(draft: &mut Draft, service: &Service) -> Part {
    let random = &mut draft.random;
    let mut left = random.between(1, 100);
    let mode = MODES.iter().find(|(_, often)| {
        let item = left <= *often;
        left = left.saturating_sub(*often);
        item
    });
    let mode = mode.map_or("Off", |(mode, _)| mode);
    let min_replicas = random.happens(50).then(|| random.between(1, 4));
    let (least, most) = (random.between(10, 60), random.between(300, 2_500));
    let (little, much) = (random.between(30, 400), random.between(800, 6_000));
    let name = &service.name;
    let stated = min_replicas.map_or(String::new(), |min_replica| format!(", minReplicas: {min_replica}"));
    let object = format!(
        "apiVersion: autoscaling.k8s.io/v1
kind: VerticalPodAutoscaler
metadata: {{ name: {name}, namespace: shop }}
spec:
  targetRef: {{ apiVersion: apps/v1, kind: Deployment, name: {name} }}
  updatePolicy: {{ updateMode: {mode}{stated} }}
  resourcePolicy:
    containerPolicies:
      - containerName: \"*\"
        minAllowed: {{ cpu: {least}m, memory: {little}Mi }}
        maxAllowed: {{ cpu: {most}m, memory: {much}Mi }}
"
    );
    let bytes = |mebibytes: u64| (mebibytes << 20) as f64;
    draft.vertical.push(Vertical {
        workload: format!("shop/{name}"),
        mode,
        min_replicas: min_replicas.unwrap_or(2),
        cpu: (least as f64, most as f64),
        memory: (bytes(little), bytes(much)),
        templates: vec![(service.requests.0 as f64, bytes(service.requests.1))],
    });
    let stated = min_replicas.map_or(String::new(), |min_replica| format!(" from {min_replica} pods"));
    Part::new(format!("vertical {name} {mode}{stated}"), vec![(Section::Manifests, object)])
}
