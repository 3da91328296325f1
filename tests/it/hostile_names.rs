//! No text of an input reaches a terminal with a character that it would obey.

use std::path::Path;

use serde_json::Value;

use crate::cli::Place;

/// A name that would set a title, ring, blink, turn the direction of text and delete, as YAML and JSON spell it.
const NAME: &str = r"v\u001b]2;title\u0007\u009b5mw\u202ex\u007fy\u0008\u2066z";

/// The same as it is printed.
const SHOWN: &str = "v?]2;title??5mw?x?y??z";

/// A cluster in which names that are free text are hostile.
fn cluster() -> String {
    format!(
        r#"apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{amiSelectorTerms: [{{alias: al2023@latest}}], role: nodes}}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {{name: default, annotations: {{"{NAME}": "{NAME}"}}}}
spec:
  template:
    metadata: {{annotations: {{"{NAME}": "{NAME}"}}}}
    spec:
      nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}
      requirements:
        - {{key: node.kubernetes.io/instance-type, operator: In, values: [m5.large, "{NAME}"]}}
        - {{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: till, namespace: kiosk, annotations: {{note: "{NAME}"}}}}
spec:
  replicas: 2
  selector: {{matchLabels: {{app: till}}}}
  template:
    metadata: {{labels: {{app: till}}}}
    spec:
      schedulerName: "{NAME}"
      runtimeClassName: "{NAME}"
      containers: [{{name: "{NAME}", image: "{NAME}", "{NAME}": 3, resources: {{requests: {{cpu: 300m, memory: 128Mi}}}}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: desk, namespace: kiosk}}
spec:
  replicas: 1
  selector: {{matchLabels: {{app: desk}}}}
  template:
    metadata: {{labels: {{app: desk}}}}
    spec:
      nodeSelector: {{shelf: upper}}
      containers: [{{name: "{NAME}", image: desk, resources: {{requests: {{cpu: 100m, memory: 128Mi}}}}}}]
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {{name: till, namespace: kiosk}}
spec:
  minReplicas: 2
  maxReplicas: 4
  scaleTargetRef: {{apiVersion: apps/v1, kind: Deployment, name: till}}
  metrics:
    - {{type: Pods, pods: {{metric: {{name: "{NAME}"}}, target: {{type: AverageValue, averageValue: "5"}}}}}}
    - {{type: ContainerResource, containerResource: {{name: cpu, container: "{NAME}", target: {{type: Utilization, averageUtilization: 60}}}}}}
"#
    )
}

fn scenario() -> String {
    format!(
        r#"name: stand
region: us-east-1
start: 2026-06-01T00:00:00Z
duration: 15m
seed: 5
replications: 2
manifests: [cluster.yaml]
load:
  - {{workload: kiosk/till, requests: {{constant: 12}}, service: {{cpu_per_request: 30ms, concurrency: 4}}}}
policies:
  - {{name: one, autoscaler: karpenter}}
  - {{name: two, autoscaler: karpenter}}
assumptions: ["{NAME}"]
"#
    )
}

fn place() -> Place {
    let place = Place::new();
    place.put("cluster.yaml", &cluster());
    place.put("scenario.yaml", &scenario());
    place
}

/// The first character that a terminal obeys.
fn obeyed(text: &str) -> Option<char> {
    let is_obeyed = |c: &char| {
        (c.is_control() && !"\n\t".contains(*c))
            || ('\u{202a}'..='\u{202e}').contains(c)
            || ('\u{2066}'..='\u{2069}').contains(c)
    };
    text.chars().find(is_obeyed)
}

/// What a command prints and tells, of which nothing commands a terminal.
fn said(place: &Place, words: &[&str], codes: &[i32]) -> String {
    let (out, err, code) = place.nodecast(words);
    assert!(code.is_some_and(|code| codes.contains(&code)), "{words:?} ends with {code:?}: {err}");
    for text in [&out, &err] {
        assert_eq!(obeyed(text), None, "{words:?} says {text:?}");
    }
    out + &err
}

/// The answer of a command as JSON, whose texts are the input's to the character.
fn json(place: &Place, words: &[&str]) -> Value {
    let (out, err, _) = place.nodecast(words);
    assert_eq!((obeyed(&out), obeyed(&err)), (None, None), "{words:?}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?} says {out}{err}: {error}"))
}

fn name() -> String {
    serde_json::from_str(&format!("\"{NAME}\"")).unwrap()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn terminal_text_of_runs_obeys_no_name() {
    let place = place();
    let run = said(&place, &["run", "scenario.yaml", "--policy", "one", "--out", "report"], &[0]);
    assert!(run.contains(SHOWN), "names are printed, made harmless: {run}");
    for (words, codes) in [
        (&["validate", "scenario.yaml"][..], &[0][..]),
        (&["compare", "scenario.yaml", "--replications", "2", "--out", "compared"], &[0]),
        (&["sweep", "scenario.yaml", "--replications", "1", "--set", "duration=10m,12m", "--out", "swept"], &[0]),
        (&["diff", "scenario.yaml", "scenario.yaml", "--replications", "2"], &[0, 1]),
        (&["explain", "scenario.yaml", "--policy", "one", "pod", "till-00000"], &[0]),
        (&["explain", "scenario.yaml", "--policy", "one", "pod", &name()], &[2]),
        (&["run", "scenario.yaml", "--policy", &name()], &[2]),
        (&["run", "scenario.yaml", "--set", &name()], &[2]),
        (&["run", &name()], &[2]),
        (&["run", "scenario.yaml", &format!("--{}", name())], &[2]),
        (&[&name()], &[2]),
        (&["pricing", "show", &name(), "--region", "us-east-1"], &[2]),
        (&["rightsize", "scenario.yaml", "--policy", "one"], &[0]),
        (&["backtest", "scenario.yaml", "--policy", "one", "--from", "report", "--replications", "2"], &[0, 1]),
        (&["calibrate", "scenario.yaml", "--from", "report", "--no-effects"], &[0]),
        (&["recommend", "scenario.yaml", "--policy", "one", "--levers", &name()], &[2]),
    ] {
        said(&place, words, codes);
    }
}

#[test]
fn files_have_neither_formulas_nor_control_characters() {
    let place = place();
    let metric = |name: &str| format!("metric: {{name: \"{name}\"}}");
    let formula = format!("@SUM(1+1)*{NAME}");
    place.put("cluster.yaml", &cluster().replace(&metric(NAME), &metric(&formula)));
    let notes = "Deployment[till].metadata.annotations.note==1+1,+b";
    for words in [
        &["run", "scenario.yaml", "--quiet", "--out", "report"][..],
        &["sweep", "scenario.yaml", "--set", notes, "--replications", "1", "--quiet", "--out", "swept"],
    ] {
        let (_, told, code) = place.nodecast(words);
        assert_eq!(code, Some(0), "{words:?}: {told}");
    }
    let files = ["report", "swept"].into_iter().flat_map(|folder| std::fs::read_dir(place.path(folder)).unwrap());
    let mut quoted = [0, 0];
    for path in files.map(|entry| entry.unwrap().path()) {
        let is = |end: &str| path.extension().is_some_and(|extension| extension == end);
        let text = std::fs::read_to_string(&path).unwrap();
        if is("svg") || is("html") || is("csv") {
            let forbidden = text.chars().find(|c| c.is_control() && !"\n\t".contains(*c));
            assert_eq!(forbidden, None, "{}", path.display());
        }
        if is("csv") {
            let mut rows = csv::ReaderBuilder::new().has_headers(false).from_reader(text.as_bytes());
            for row in rows.records().map(Result::unwrap) {
                let formula = |cell: &&str| cell.starts_with(['=', '+', '-', '@']) && cell.parse::<f64>().is_err();
                assert_eq!(row.iter().find(formula), None, "{}", path.display());
                quoted[0] += row.iter().filter(|cell| cell.starts_with("'@SUM(1+1)*v\u{fffd}")).count();
                quoted[1] += row.iter().filter(|cell| *cell == "'=1+1").count();
            }
        }
    }
    assert!(quoted.iter().all(|count| *count > 0), "{quoted:?}");
}

#[test]
fn json_keeps_hostile_names_to_the_character() {
    let place = place();
    let run = json(&place, &["run", "scenario.yaml", "--policy", "one", "--out", "report", "--format", "json"]);
    let quoted = serde_json::to_string(&name()).unwrap();
    assert!(run.to_string().contains(quoted.trim_matches('"')), "{run}");
    let failed = json(&place, &["run", "scenario.yaml", "--policy", &name(), "--format", "json"]);
    assert!(failed["error"]["message"].as_str().unwrap().contains("title"), "{failed}");
    json(&place, &["validate", "scenario.yaml", "--format", "json"]);
}

#[test]
fn terminal_text_of_dumps_obeys_no_name() {
    let place = place();
    let dump = format!(
        r#"{}---
apiVersion: v1
kind: Node
metadata:
  name: ip-10-0-0-1
  labels: {{node.kubernetes.io/instance-type: m5.large, topology.kubernetes.io/region: us-east-1, topology.kubernetes.io/zone: us-east-1a}}
spec: {{providerID: "aws:///us-east-1a/i-0123456789abcdef0"}}
status:
  capacity: {{cpu: "2", memory: 8Gi, pods: "29"}}
  allocatable: {{cpu: 1900m, memory: 7Gi, pods: "29"}}
  conditions: [{{type: Ready, status: "True"}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: lone, namespace: kiosk}}
spec:
  nodeName: ip-10-0-0-1
  containers: [{{name: "{NAME}", image: a, resources: {{requests: {{cpu: 500m, memory: 64Mi}}}}}}]
status: {{phase: Running}}
---
apiVersion: v1
kind: Pod
metadata: {{name: waits, namespace: kiosk}}
spec:
  nodeSelector: {{shelf: upper}}
  containers: [{{name: a, image: "{NAME}", "{NAME}": 1, resources: {{requests: {{cpu: 500m, memory: 64Mi}}}}}}]
status: {{phase: Pending}}
"#,
        cluster()
    );
    place.put("dump.yaml", &dump);
    let packed = said(&place, &["pack", "dump.yaml", "--region", "us-east-1"], &[0, 1]);
    assert!(packed.contains(SHOWN), "{packed}");
    said(&place, &["init", "own", "--from", "dump.yaml", "--region", "us-east-1"], &[0, 2]);
    for words in [
        &["drain", "dump.yaml", "--region", "us-east-1", "ip-10-0-0-1"][..],
        &["drain", "dump.yaml", "--region", "us-east-1", &name()],
        &["explain", "dump.yaml", "node", "ip-10-0-0-1"],
        &["explain", "dump.yaml", "node", &name()],
        &["explain", "dump.yaml", "pod", "kiosk/waits"],
    ] {
        said(&place, words, &[0, 1, 2]);
    }
}

#[test]
fn terminal_text_of_observations_obeys_no_label() {
    let place = Place::new();
    let saved = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/observed/tests/data/shop-prod");
    for entry in std::fs::read_dir(saved).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        // Of every label that is the name of a workload or a namespace of the cluster.
        let text = if path.ends_with("queries.json") { text } else { text.replace("\"web", &format!("\"{NAME}web")) };
        place.put(&format!("answers/{}", path.file_name().unwrap().to_string_lossy()), &text);
    }
    place.put("cluster.yaml", include_str!("../data/observed/cluster.yaml"));
    let told = said(&place, &["observe", "--from", "cluster.yaml", "--answers", "answers", "--out", "own"], &[0]);
    assert!(told.contains(SHOWN), "{told}");
    said(&place, &["init", "next", "--from", "cluster.yaml", "--from", "own", "--region", "us-east-1"], &[0, 2]);
}
