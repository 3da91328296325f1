//! Manifests and scenarios that people have load unmodified and mean what they say.

mod first_tutorial;

use nodecast::scenario::error::Render;
use nodecast::scenario::manifests::{Manifests, read_manifests};
use nodecast::scenario::{Action, Autoscaler, Requests, Scenario, Source};

use first_tutorial::eks_101;

fn manifests(text: &str) -> Manifests {
    match read_manifests(&Source::new("objects.yaml", text)) {
        Ok(manifests) => manifests,
        Err(error) => panic!("{}", error.render()),
    }
}

#[test]
fn every_file_read_is_listed_with_its_hash() {
    let scenario = eks_101();
    let names: Vec<&str> = scenario.inputs.iter().skip(1).map(|input| input.path.as_str()).collect();
    let expected = [
        "cluster.yaml",
        "daemonsets.yaml",
        "provisioner.yaml",
        "demo-on-demand.yaml",
        "demo-karpenter.yaml",
        "nodepool.yaml",
        "hpa.yaml",
    ];
    assert_eq!(names, expected);
    assert!(scenario.inputs.iter().all(|input| input.sha256.len() == 64));
}

#[test]
fn ignored_objects_are_listed_once_with_place() {
    let objects = manifests(
        "apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: db}
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: other}
---
apiVersion: example.com/v1
kind: Deploymnet
metadata: {name: x}
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - name: c
    lifecycle: {preStop: {sleep: {seconds: 5}}}
    imagePulPolicy: Always
",
    );
    let rendered: Vec<String> = objects.warnings.iter().map(|warning| warning.render()).collect();
    insta::assert_snapshot!(rendered.join("\n"));
}

#[test]
fn unknown_readiness_gate_is_warned_about() {
    let pod = |gate: &str| {
        manifests(&format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: p}}\nspec: {{readinessGates: [{{conditionType: {gate}}}], containers: []}}\n"
        ))
    };
    assert_eq!(pod("target-health.elbv2.k8s.aws/web").warnings, []);
    let [warning] = &pod("example.com/never").warnings[..] else { panic!("one warning") };
    let text = warning.render();
    assert!(text.contains("the controller that sets `example.com/never` is not simulated"), "{text}");
}

#[test]
fn kubectl_autoscale_hpa_is_one_utilization_target() {
    let scenario = eks_101();
    let Action::Apply(objects) = &scenario.timeline[2].action else { panic!("the third step applies") };
    let hpa = &objects.autoscalers[0];
    assert_eq!((hpa.min_replicas, hpa.max_replicas), (Some(1), 10));
    assert_eq!(hpa.metrics[0].target, nodecast::domain::hpa::MetricTarget::Utilization(30));
    assert_eq!(hpa.behavior, None);
}

/// Loads a scenario of these files; the first is the scenario itself.
fn load(files: &[(&str, &str)]) -> (Scenario, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    match nodecast::scenario::load(&folder.path().join(files[0].0)) {
        Ok((scenario, warnings)) => (scenario, warnings.iter().map(ToString::to_string).collect()),
        Err(error) => panic!("{}", error.render()),
    }
}

const WEB: &str = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {priorityClassName: high, containers: [{name: c}]}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web}
spec: {maxReplicas: 3, scaleTargetRef: {kind: Deployment, name: wbe}}
";

#[test]
fn v1_warns_about_beta_consolidation_policy() {
    let warnings = |version: &str, policy: &str| {
        let pool = format!(
            "apiVersion: {version}
kind: NodePool
metadata: {{name: default}}
spec:
  template: {{spec: {{nodeClassRef: {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, requirements: []}}}}
  disruption: {{consolidationPolicy: {policy}, consolidateAfter: 1m}}
---
apiVersion: karpenter.k8s.aws/v1
kind: EC2NodeClass
metadata: {{name: default}}
spec: {{role: nodes}}
"
        );
        let scenario = "name: policy\nregion: us-east-1\nduration: 1h\nmanifests: [pool.yaml]\n";
        let all = load(&[("scenario.yaml", scenario), ("pool.yaml", &pool)]).1;
        all.into_iter().filter(|warning| warning.contains("WhenUnderutilized")).collect::<Vec<_>>()
    };
    let found = warnings("karpenter.sh/v1", "WhenUnderutilized");
    assert_eq!(found, ["`karpenter.sh/v1` has no consolidationPolicy `WhenUnderutilized`"]);
    assert_eq!(warnings("karpenter.sh/v1", "WhenEmptyOrUnderutilized"), Vec::<String>::new());
    assert_eq!(warnings("karpenter.sh/v1beta1", "WhenUnderutilized"), Vec::<String>::new());
}

#[test]
fn provisioner_in_release_without_provisioners_warns() {
    let pool = "apiVersion: karpenter.sh/v1alpha5
kind: Provisioner
metadata: {name: old}
spec:
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
  providerRef: {name: default}
---
apiVersion: karpenter.k8s.aws/v1alpha1
kind: AWSNodeTemplate
metadata: {name: default}
spec: {subnetSelector: {a: b}}
";
    let warnings = |versions: &str| {
        let scenario = format!("name: old\nregion: us-east-1\nduration: 1h\n{versions}manifests: [pool.yaml]\n");
        load(&[("scenario.yaml", &scenario), ("pool.yaml", pool)]).1
    };
    let found = warnings("");
    let [warning] = found.as_slice() else { panic!("{found:?}") };
    assert!(warning.starts_with("Provisioner old: Karpenter v1.13 reads no Provisioner"), "{warning}");
    assert!(warning.contains("`versions: {karpenter: v0.27}`"), "{warning}");
    assert_eq!(warnings("versions: {karpenter: v0.27}\n"), Vec::<String>::new());
    // Beside a NodePool it is what an upgrade has left behind.
    let both = format!(
        "{pool}---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{name: new}}\nspec: {{template: {{spec: {{nodeClassRef: \
         {{group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}}, requirements: []}}}}}}\n"
    );
    let text = "name: old\nregion: us-east-1\nduration: 1h\nmanifests: [pool.yaml]\n";
    let (scenario, told) = load(&[("scenario.yaml", text), ("pool.yaml", &both)]);
    let left: Vec<&str> =
        scenario.policies[0].manifests.node_pools.iter().map(|node_pool| node_pool.name.as_str()).collect();
    assert_eq!(left, ["new"]);
    assert!(told.iter().any(|item| item.starts_with("Provisioner old is left out: Karpenter v1.13")), "{told:?}");
    assert_eq!(warnings("versions: {karpenter: v0.32}\n"), Vec::<String>::new());
}

#[test]
fn later_objects_get_priority_and_dangling_references_warn() {
    let (scenario, warnings) = load(&[
        (
            "scenario.yaml",
            "name: later
region: us-east-1
duration: 1h
manifests: [classes.yaml]
timeline: [{at: 5m, manifests: [web.yaml]}]
",
        ),
        (
            "classes.yaml",
            "apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: high}
value: 1000
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: default}
spec: {template: {spec: {nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: main}, requirements: []}}}
",
        ),
        ("web.yaml", WEB),
    ]);
    let Action::Apply(objects) = &scenario.timeline[0].action else { panic!("one step applies") };
    assert_eq!(objects.deployments[0].template.priority, 1_000);
    assert_eq!(
        warnings,
        [
            "NodePool default names the node class `main`, which no manifest defines: its defaults are assumed",
            "HorizontalPodAutoscaler default/web has no target: Deployment wbe does not exist",
        ]
    );
    assert_eq!(scenario.policies[0].autoscaler, Autoscaler::Karpenter, "the default where there is a NodePool");
    assert_eq!(scenario.zones.len(), 6, "every zone of the region");
}

#[test]
fn load_times_are_relative_to_run_start() {
    let (scenario, _) = load(&[
        (
            "scenario.yaml",
            "name: loads
region: us-east-1
duration: 1h
manifests: [web.yaml]
load:
- workload: web
  at: 10m
  for: 5m
  requests: {steps: [{at: 0s, rate: 10}, {at: 1m, rate: 0.5}], scale: 2}
  service: &service {cpu_per_request: 12ms, concurrency: 16}
- workload: default/web
  requests: {csv: curve.csv}
  service: *service
timeline:
- at: 30m
  load: {workload: web, requests: {constant: 1k}, service: {cpu_per_request: 12ms, concurrency: 16}}
",
        ),
        ("web.yaml", &WEB.replace("priorityClassName: high, ", "")),
        ("curve.csv", "t_seconds,requests_per_second\n0,3\n60,4\n"),
    ]);
    let read: Vec<String> = scenario
        .load
        .iter()
        .map(|load| match &load.requests {
            Requests::Open(open) => {
                let steps = open.curve.steps().iter();
                let steps: Vec<String> = steps.map(|step| format!("{}s {}", step.from.as_secs(), step.rate)).collect();
                format!("{}: {}", load.at, steps.join(", "))
            }
            Requests::ClosedLoop { .. } | Requests::Cpu(_) => panic!("neither a closed loop nor cores here"),
        })
        .collect();
    assert_eq!(read, ["00:00:00: 0s 3, 60s 4, 120s 0", "00:10:00: 0s 20, 60s 1", "00:30:00: 0s 1000"]);
    assert_eq!(scenario.load[1].until.map(|at| at.as_secs()), Some(900));
    assert_eq!(scenario.inputs.len(), 3, "the curve is an input like any other");
}

#[test]
fn an_api_version_that_never_was_is_named() {
    let objects = manifests(
        "apiVersion: karpenter.sh/v2\nkind: NodePool\nmetadata: {name: p}\nspec: {template: {spec: {nodeClassRef: {name: c}}}}\n",
    );
    assert_eq!(objects.node_pools.len(), 1);
    let rendered: Vec<String> = objects.warnings.iter().map(|warning| warning.render()).collect();
    let [warning] = rendered.as_slice() else { panic!("{rendered:?}") };
    assert!(warning.contains("NodePool has no API version `karpenter.sh/v2`: it is read as `karpenter.sh/v1`"));
    assert!(
        warning.contains("known are karpenter.sh/v1 and karpenter.sh/v1beta1") || warning.contains("`karpenter.sh/v1`")
    );
}

const JOB: &str = "apiVersion: batch/v1
kind: Job
metadata: {generateName: import-}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: c, resources: {requests: {cpu: 1}}}]}}}
";

#[test]
fn each_generated_job_creation_is_separate() {
    let (scenario, warnings) = load(&[
        (
            "scenario.yaml",
            "name: jobs
region: us-east-1
duration: 1h
manifests: [jobs.yaml]
timeline: [{at: 5m, manifests: [job.yaml]}, {at: 10m, manifests: [job.yaml]}]
",
        ),
        ("jobs.yaml", &format!("{JOB}---\n{JOB}")),
        ("job.yaml", JOB),
    ]);
    let names = |manifests: &Manifests| -> Vec<&'static str> {
        manifests.jobs.iter().map(|job| job.name.name.as_str()).collect()
    };
    assert_eq!(names(&scenario.policies[0].manifests), ["import-", "import-2"]);
    let later: Vec<Vec<&'static str>> =
        scenario.timeline.iter().filter_map(|step| step.action.applied()).map(|applied| names(applied)).collect();
    assert_eq!(later, [["import-3"], ["import-4"]]);
    assert_eq!(warnings.len(), 4, "each needs a run time of its own: {warnings:?}");
}

#[test]
fn suspended_jobs_need_no_run_time() {
    let suspended = "apiVersion: batch/v1
kind: Job
metadata: {name: once}
spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: c}]}}}
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: nightly}
spec: {suspend: true, schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: {containers: [{name: c, image: c}]}}}}}
";
    let scenario = "name: jobs\nregion: us-east-1\nduration: 1h\nmanifests: [jobs.yaml]\n";
    let (_, warnings) = load(&[("scenario.yaml", scenario), ("jobs.yaml", suspended)]);
    assert_eq!(warnings, [] as [String; 0]);
    let resumed = suspended.replace("suspend: true", "suspend: false");
    let (_, warnings) = load(&[
        ("scenario.yaml", &format!("{scenario}timeline: [{{at: 5m, manifests: [resumed.yaml]}}]\n")),
        ("jobs.yaml", suspended),
        ("resumed.yaml", &resumed),
    ]);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
}
