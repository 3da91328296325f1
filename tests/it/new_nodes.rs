//! What happens on new nodes before pods run there: the network plugin, the driver of EBS volumes, and kubelet settings in `userData`.

use nodecast::domain::SimDuration;
use nodecast::simulation::Outcome;
use nodecast::world::record::PodFacts;

use crate::cli::Place;
use crate::reserved_capacity::run_file;
use crate::startup_taints::warnings;

/// A DaemonSet that tolerates everything.
fn daemon_set(name: &str, host_network: bool) -> String {
    format!(
        "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {{ name: {name}, namespace: kube-system }}\nspec:\n  \
         selector: {{ matchLabels: {{ app: {name} }} }}\n  template:\n    metadata: {{ labels: {{ app: {name} }} }}\n    spec:\n      \
         hostNetwork: {host_network}\n      tolerations: [{{ operator: Exists }}]\n      \
         containers: [{{ name: own, image: \"{name}:1\", resources: {{ requests: {{ cpu: 20m }} }} }}]\n"
    )
}

/// A StatefulSet with a volume of EBS for each pod, all made at once.
fn databases(replicas: u32) -> String {
    format!(
        "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {{ name: gp3 }}\nprovisioner: ebs.csi.aws.com\n\
         volumeBindingMode: WaitForFirstConsumer\n---\napiVersion: apps/v1\nkind: StatefulSet\n\
         metadata: {{ name: db, namespace: shop }}\nspec:\n  replicas: {replicas}\n  podManagementPolicy: Parallel\n  serviceName: db\n  \
         selector: {{ matchLabels: {{ app: db }} }}\n  template:\n    metadata: {{ labels: {{ app: db }} }}\n    spec:\n      \
         containers: [{{ name: db, image: \"db:1\", resources: {{ requests: {{ cpu: 10m, memory: 16Mi }} }} }}]\n  \
         volumeClaimTemplates:\n    - metadata: {{ name: data }}\n      spec: {{ storageClassName: gp3, accessModes: [ReadWriteOnce], \
         resources: {{ requests: {{ storage: 4Gi }} }} }}\n"
    )
}

fn pool(instance_type: &str, template: &str, class: &str) -> String {
    format!(
        "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {{ name: blue }}\nspec:\n  template:\n    spec:\n      \
         nodeClassRef: {{ group: karpenter.k8s.aws, kind: EC2NodeClass, name: blue }}\n      {template}\n      requirements:\n        \
         - {{ key: node.kubernetes.io/instance-type, operator: In, values: [{instance_type}] }}\n        \
         - {{ key: karpenter.sh/capacity-type, operator: In, values: [on-demand] }}\n---\n\
         apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{ name: blue }}\nspec:\n  role: node\n{class}"
    )
}

fn placed(objects: &str) -> Place {
    let place = Place::new();
    place.put("objects.yaml", objects);
    place.put(
        "scenario.yaml",
        "name: nodes\nregion: eu-west-1\nduration: 20m\nseed: 3\ncluster: { zones: [eu-west-1a] }\nmanifests: [objects.yaml]\n\
         ec2: { failures: none, capacity: infinite, spot: { interruptions: none }, launch_latency: { status: 1s } }\n",
    );
    place
}

fn run(objects: &str) -> Outcome {
    run_file(&placed(objects).path("scenario.yaml"))
}

fn pods<'a>(outcome: &'a Outcome, stem: &'a str) -> Vec<PodFacts> {
    outcome.record.pods.iter().filter(|pod| pod.name.starts_with(stem)).collect()
}

const AL2023: &str = "  amiSelectorTerms: [{ alias: al2023@latest }]\n";

/// A scheduled pod that brings a node.
const WEB: &str = "---\napiVersion: v1\nkind: Pod\nmetadata: { name: web, namespace: shop }\n\
    spec: { containers: [{ name: web, image: \"web:1\", resources: { requests: { cpu: 300m } } }] }\n";

#[test]
fn pods_outside_host_network_wait_for_the_plugin() {
    let started = |host_network: bool| {
        let outcome = run(&format!("{}{WEB}{}", pool("m6i.large", "", AL2023), daemon_set("agent", host_network)));
        let registered = outcome.record.nodes[0].registered.unwrap();
        let (agent, ready) = (pods(&outcome, "agent")[0].ready.unwrap(), outcome.record.nodes[0].ready.unwrap());
        (agent - registered, ready - registered)
    };
    let (inside, ready) = started(true);
    let (outside, same) = started(false);
    assert_eq!(ready, same);
    // The image takes 3.4 s and the start 1 s; the kubelet posts Ready at most 10 s after the plugin is ready.
    let pulled = SimDuration::from_millis(4_300);
    assert!(inside < ready && inside >= pulled, "{inside} {ready}");
    assert!(outside > inside && outside + SimDuration::from_secs(10) >= ready + pulled, "{outside} {ready}");
}

#[test]
fn early_bound_pods_exceed_volume_attach_limit() {
    // m5.large attaches 25 volumes besides its root volume, and takes 29 pods.
    let pool = |template: &str| pool("m5.large", template, AL2023);
    let driver = daemon_set("ebs-csi-node", false);
    let outcome = run(&format!("{}{}{driver}", pool(""), databases(27)));
    let databases_of = |outcome: &Outcome| pods(outcome, "db");
    let waiting = databases_of(&outcome).iter().filter(|pod| pod.scheduled.is_some() && pod.ready.is_none()).count();
    assert_eq!((outcome.record.nodes.len(), waiting), (1, 2));
    let texts = outcome.warnings.texts().join("\n");
    assert!(texts.contains("attach limit passed: kube-scheduler bound 2 pods to 1 node"), "{texts}");

    let taint = "startupTaints: [{ key: ebs.csi.aws.com/agent-not-ready, effect: NoExecute }]";
    for (objects, why) in [
        (format!("{}{}{driver}", pool(taint), databases(27)), "the startup taint keeps pods off"),
        (format!("{}{}", pool(""), databases(27)), "no driver is known"),
    ] {
        let outcome = run(&objects);
        assert!(databases_of(&outcome).iter().all(|pod| pod.ready.is_some()), "{why}");
        assert_eq!(outcome.record.nodes.len(), 2, "{why}");
        assert!(!outcome.warnings.texts().join("\n").contains("attach limit passed"), "{why}");
    }
}

#[test]
fn required_driver_keeps_pods_off_until_it_reports() {
    let driver = |required: bool| {
        format!(
            "---\napiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {{ name: ebs.csi.aws.com }}\nspec: {{ attachRequired: true, \
             preventPodSchedulingIfMissing: {required} }}\n{}",
            daemon_set("ebs-csi-node", false)
        )
    };
    // m5.large attaches 25 volumes: the limit is respected from the first pod on.
    let run = |required: bool, release: &str| {
        let place = placed(&format!("{}{}{}", pool("m5.large", "", AL2023), databases(28), driver(required)));
        let text = std::fs::read_to_string(place.path("scenario.yaml")).unwrap();
        place.put("scenario.yaml", &format!("{text}versions: {{ kubernetes: \"{release}\" }}\n"));
        run_file(&place.path("scenario.yaml"))
    };
    let required = run(true, "1.37");
    assert!(pods(&required, "db").iter().all(|pod| pod.ready.is_some()));
    assert_eq!(required.record.nodes.len(), 2);
    let first = required.record.nodes[0].ready.unwrap();
    assert!(pods(&required, "db").iter().all(|pod| pod.scheduled.unwrap() > first + SimDuration::from_millis(2_500)));
    for (outcome, is_dropped) in [(run(false, "1.37"), false), (run(true, "1.36"), true)] {
        let texts = outcome.warnings.texts().join("\n");
        assert!(texts.contains("attach limit passed: kube-scheduler bound 3 pods to 1 node"), "{texts}");
        assert_eq!(texts.contains("`preventPodSchedulingIfMissing`, which"), is_dropped, "{texts}");
    }
}

#[test]
fn few_volumes_meet_no_attach_limit() {
    let objects = format!("{}{}{}", pool("m5.large", "", AL2023), databases(24), daemon_set("ebs-csi-node", true));
    let outcome = run(&objects);
    assert!(pods(&outcome, "db").iter().all(|pod| pod.ready.is_some()));
    assert!(!outcome.warnings.texts().join("\n").contains("attach limit passed"));
}

#[test]
fn kubelet_settings_in_user_data_shrink_nodes() {
    let bottlerocket = |user_data: &str| format!("  amiSelectorTerms: [{{ alias: bottlerocket@latest }}]\n{user_data}");
    let pod = WEB.replace("cpu: 300m", "memory: 6000Mi");
    let toml = "  userData: |\n    [settings.kubernetes.system-reserved]\n    memory = \"1536Mi\"\n";
    let objects = |class: &str| format!("{}{pod}", pool("c6i.xlarge", "", class));
    let place = placed(&objects(&bottlerocket(toml)));
    let texts = warnings(&place);
    assert!(
        texts.contains("EC2NodeClass blue: its `userData` sets kubelet settings") && texts.contains("c6i.xlarge"),
        "{texts}"
    );
    let outcome = run_file(&place.path("scenario.yaml"));
    assert!(outcome.record.nodes.len() > 1 && pods(&outcome, "web")[0].scheduled.is_none());

    let stated = "  kubelet: { systemReserved: { memory: 100Mi } }\n";
    let place = placed(&objects(&bottlerocket(&format!("{toml}{stated}"))));
    assert!(!warnings(&place).contains("userData"), "Karpenter passes its own on");
    let place = placed(&objects(&bottlerocket("  userData: \"[settings.ntp]\\n\"\n")));
    assert!(!warnings(&place).contains("userData"));
    assert!(pods(&run_file(&place.path("scenario.yaml")), "web")[0].ready.is_some());
}
