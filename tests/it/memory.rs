//! A long run takes little more memory than a short one: what is past is kept packed or not at all.

#![cfg(target_os = "linux")]

use std::error::Error;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use assert_cmd::cargo::cargo_bin;

use crate::cli::Place;

/// A dozen pods every two minutes that run for a minute each, on nodes that are there.
const SCENARIO: &str = "\
name: ticking
region: us-east-1
start: 2026-06-10T00:00:00Z
duration: 1d
seed: 3
manifests: [objects.yaml]
workloads: [{ name: default/tick, run_time: 1m }]
output: { sample_every: 1h }
";

const OBJECTS: &str = "\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata: { name: ticking, region: us-east-1, version: \"1.36\" }
managedNodeGroups:
  - { name: workers, instanceType: m6i.2xlarge, minSize: 2, desiredCapacity: 2, maxSize: 2, volumeSize: 20 }
---
apiVersion: batch/v1
kind: CronJob
metadata: { name: tick }
spec:
  schedule: \"*/2 * * * *\"
  jobTemplate:
    spec:
      parallelism: 12
      completions: 12
      template:
        spec:
          restartPolicy: Never
          containers: [{ name: tick, image: tick, resources: { requests: { cpu: 250m, memory: 128Mi } } }]
";

/// The most memory that a run of so long took, in bytes, and how many pods it had.
fn most(place: &Place, duration: &str) -> Result<(u64, u64), Box<dyn Error>> {
    let words = ["run", "scenario.yaml", "--quiet", "--duration", duration, "--out", duration];
    let mut command = Command::new(cargo_bin!("nodecast"));
    let command = command.current_dir(place.path("")).args(words).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.env("RAYON_NUM_THREADS", "1").spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    while child.try_wait()?.is_none() {
        // It may end between two looks; what it took does not become less.
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(5));
    }
    if !child.wait()?.success() {
        return Err(format!("a run of {duration} fails").into());
    }
    let pods = fs::read_to_string(place.path(duration).join("pods.csv"))?.lines().count() as u64 - 1;
    Ok((most, pods))
}

#[test]
fn removed_pod_uses_at_most_one_kilobyte() -> Result<(), Box<dyn Error>> {
    let place = Place::new();
    place.put("scenario.yaml", SCENARIO);
    place.put("objects.yaml", OBJECTS);
    let ((short, few), (long, many)) = (most(&place, "12h")?, most(&place, "96h")?);
    assert!(few > 4_000 && many > 7 * few, "{few} and {many} pods");
    let each = long.saturating_sub(short) / (many - few);
    assert!(each < 1_000, "{short} bytes for {few} pods, {long} for {many}: {each} more for each");
    Ok(())
}
