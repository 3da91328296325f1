//! How long a small question takes from the command to its answer. The release build answers in under a tenth of a second
//! (docs/architecture.md says how that was measured); the bounds here are generous, for unoptimised builds on busy machines.

use std::process::Command;
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;

use crate::cli::Place;

const POOL_AND_PODS: &str = "
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: { name: default }
spec:
  template:
    spec:
      nodeClassRef: { group: karpenter.k8s.aws, kind: EC2NodeClass, name: default }
      requirements: [{ key: karpenter.k8s.aws/instance-family, operator: In, values: [m5] }]
---
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, namespace: default }
spec:
  replicas: 5
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec: { containers: [{ name: web, image: example.com/web:1, resources: { requests: { cpu: 500m } } }] }
";

#[test]
fn small_scenario_finishes_within_seconds() {
    let place = Place::new();
    place.put("web.yaml", POOL_AND_PODS);
    place.put(
        "scenario.yaml",
        "name: small\nregion: us-east-1\nduration: 10m\ncluster: { zones: [us-east-1a, us-east-1b] }\nmanifests: [web.yaml]\n",
    );
    let began = Instant::now();
    let (out, err, code) = place.nodecast(&["run", "scenario.yaml"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(!out.is_empty());
    assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
}

#[test]
fn type_is_shown_with_price_quality_and_date() {
    let show = |format: &[&str]| {
        let arguments = [&["pricing", "show", "m7g.xlarge", "--region", "us-east-1"], format].concat();
        let output = Command::new(cargo_bin!("nodecast")).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let text = show(&[]);
    for part in [
        "4 (arm64",
        "16 GiB",
        "3920m",
        "$0.1632 per hour",
        "published, 20",
        "us-east-1a",
        "of Spot instances per 30 days",
    ] {
        assert!(text.contains(part), "`{part}` is missing in\n{text}");
    }
    let json: serde_json::Value = serde_json::from_str(&show(&["--format", "json"])).unwrap();
    assert!(json["zones"].as_array().is_some_and(|zones| zones.len() >= 5));
}
