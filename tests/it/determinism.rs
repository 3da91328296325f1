//! Equal input gives equal bytes: on two shipped scenarios, through the program, whatever the number of threads.

use std::collections::BTreeMap;
use std::path::Path;

/// Runs a shipped scenario and returns every file of the report.
fn report(directory: &Path, (name, policy): (&str, &str), seed: &str, threads: &str) -> BTreeMap<String, Vec<u8>> {
    let scenario = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios").join(name).join("scenario.yaml");
    let out = directory.join(format!("seed-{seed}-threads-{threads}"));
    let status = assert_cmd::Command::cargo_bin("nodecast")
        .unwrap()
        .args([
            "run",
            scenario.to_str().unwrap(),
            "--policy",
            policy,
            "--seed",
            seed,
            "--quiet",
            "--out",
            out.to_str().unwrap(),
        ])
        .env("RAYON_NUM_THREADS", threads)
        .ok();
    assert!(status.is_ok(), "{status:?}");
    let files = std::fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().path());
    files
        .map(|path| (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap()))
        .collect()
}

#[test]
fn thread_count_does_not_change_output() {
    // By hand and an HPA; Spot, a queue and KEDA's Jobs.
    for shipped in [("eks-101", "karpenter-v0.16"), ("batch", "spot")] {
        let directory = tempfile::tempdir().unwrap();
        let report = |seed, threads| report(directory.path(), shipped, seed, threads);
        let first = report("1", "1");
        assert!(first.len() >= 12, "{:?}", first.keys());
        for again in [report("1", "8"), report("1", "2")] {
            for (file, bytes) in &first {
                assert!(again.get(file) == Some(bytes), "{file} of {} differs", shipped.0);
            }
        }
        assert_ne!(first["summary.json"], report("2", "1")["summary.json"]);
    }
}
