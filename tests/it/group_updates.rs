//! Node groups as eksctl makes and updates them: sizes that an update leaves, tags that EKS keeps to itself, and what their Auto Scaling groups
//! are called.

use nodecast::catalog::Catalog;
use nodecast::scenario::{Effect, Scenario};
use nodecast::simulation::{self, Outcome};
use nodecast::world::record::EventKind;

use crate::node_groups::{minutes, ready, web};

/// A ClusterConfig of a fixed group and these.
fn cluster(groups: &str) -> String {
    format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: shop, region: us-east-1, version: \"1.36\"}}\n\
         managedNodeGroups:\n- {{name: base, instanceType: m6i.large, minSize: 1, desiredCapacity: 1, maxSize: 1}}\n{groups}\n"
    )
}

/// A scenario of an hour under one policy; files of manifests with their names, of which the first are there from the start.
fn load(policy: &str, more: &str, files: &[(&str, &str)]) -> Result<(Scenario, Vec<(Effect, String)>), String> {
    let place = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(place.path().join(name), text).unwrap();
    }
    let text = format!(
        "name: groups\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a, us-east-1b] }}\n\
         versions: {{ kubernetes: \"1.36\" }}\nmanifests: [{}]\nec2: {{ capacity: infinite }}\n\
         policies: [{{ name: own, {policy} }}]\n{more}\n",
        files[0].0
    );
    let file = place.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    let (scenario, warnings) = nodecast::scenario::load(&file).map_err(|error| error.to_string())?;
    Ok((scenario, warnings.iter().map(|warning| (warning.effect(), warning.message().to_owned())).collect()))
}

fn simulate(scenario: &Scenario) -> Outcome {
    let policy = scenario.for_policy(None).unwrap();
    simulation::run(scenario, policy, Catalog::embedded().unwrap(), 1, &mut |_| {}).unwrap()
}

fn warnings(scenario: &Scenario) -> Vec<String> {
    let policy = scenario.for_policy(None).unwrap();
    let resolved = simulation::resolve(scenario, policy, Catalog::embedded().unwrap(), 1).unwrap();
    resolved.warnings.texts().iter().map(ToString::to_string).collect()
}

const STATIC: &str = "autoscaler: static";
const CAS: &str = "autoscaler: cluster-autoscaler";

#[test]
fn group_update_without_size_keeps_size_within_limits() {
    let first = cluster("- {name: w, instanceType: m6i.xlarge, minSize: 0, maxSize: 5, desiredCapacity: 4}");
    for (update, size) in [
        ("minSize: 0, maxSize: 8", 4),
        ("minSize: 0, maxSize: 2", 2),
        ("minSize: 5, maxSize: 8", 5),
        ("minSize: 0, maxSize: 8, desiredCapacity: 1", 1),
    ] {
        let later = cluster(&format!("- {{name: w, instanceType: m6i.xlarge, {update}}}"));
        let step = "timeline: [{ at: 10m, manifests: [later.yaml] }]";
        let (scenario, _) = load(STATIC, step, &[("first.yaml", &first), ("later.yaml", &later)]).unwrap();
        let outcome = simulate(&scenario);
        assert_eq!((ready(&outcome, minutes(9)), ready(&outcome, minutes(55))), (5, 1 + size), "{update}");
        assert!(!warnings(&scenario).iter().any(|text| text.contains("takes another group")), "{update}");
    }
}

#[test]
fn edited_update_config_applies_to_its_own_update() {
    let group = |more: &str| {
        cluster(&format!("- {{name: w, instanceType: m6i.xlarge, minSize: 0, maxSize: 9, desiredCapacity: 3, {more}}}"))
    };
    let first = group("releaseVersion: 1.36.1-20260801");
    let updated = |config: &str| {
        let later = group(&format!("releaseVersion: 1.36.2-20260901, updateConfig: {{{config}}}"));
        let step = "timeline: [{ at: 10m, manifests: [later.yaml] }]";
        let (scenario, _) = load(STATIC, step, &[("first.yaml", &first), ("later.yaml", &later)]).unwrap();
        let outcome = simulate(&scenario);
        (10..55).map(|minute| ready(&outcome, minutes(minute))).max().unwrap()
    };
    // Two zones: four more nodes, or as many as are unavailable at a time.
    assert_eq!((updated("maxUnavailable: 1"), updated("maxUnavailable: 6")), (1 + 3 + 4, 1 + 3 + 6));
    assert_eq!(updated("maxUnavailable: 1, updateStrategy: MINIMAL"), 1 + 3);
}

#[test]
fn group_size_is_checked_against_current_limits() {
    let first = cluster("- {name: w, instanceType: m6i.xlarge, minSize: 0, maxSize: 5, desiredCapacity: 0}");
    let said = |limits: &str, at: &str, desired: u32| {
        let later = cluster(&format!("- {{name: w, instanceType: m6i.xlarge, {limits}}}"));
        let steps = format!(
            "timeline:\n- {{ at: {at}, scale_group: {{ group: w, desired: {desired} }} }}\n- {{ at: 20m, manifests: [later.yaml] }}"
        );
        load(STATIC, &steps, &[("first.yaml", &first), ("later.yaml", &later)]).err().unwrap_or_default()
    };
    assert_eq!(said("minSize: 0, maxSize: 8", "30m", 8), "");
    assert!(
        said("minSize: 0, maxSize: 8", "10m", 8)
            .contains("desired size 8 is outside the limits of `w` at that time (0 to 5)")
    );
    assert!(
        said("minSize: 0, maxSize: 2", "30m", 5)
            .contains("desired size 5 is outside the limits of `w` at that time (0 to 2)")
    );
    assert_eq!(said("minSize: 0, maxSize: 2", "10m", 5), "");
}

#[test]
fn managed_group_tags_do_not_reach_asg() {
    let device = "k8s.io/cluster-autoscaler/node-template/resources/example.com/fpga";
    let label = "k8s.io/cluster-autoscaler/node-template/label/foo";
    let tagged = |kind: &str, more: &str| {
        cluster(&format!(
            "{kind}- {{name: w, instanceType: m6i.xlarge, minSize: 0, maxSize: 5, desiredCapacity: 0, {more}tags: {{{device}: \"4\", {label}: bar, \
             team: x}}}}\n---\n{}",
            web(2).replace("cpu: 700m", "example.com/fpga: 1")
        ))
    };
    let told = |text: &str| {
        let (scenario, _) = load(CAS, "", &[("first.yaml", text)]).unwrap();
        let all = warnings(&scenario);
        // What the group itself promises the autoscaler sees.
        assert!(!all.iter().any(|text| text.contains("no node has")), "{all:?}");
        all.into_iter().filter(|text| text.contains("does not hand")).collect::<Vec<_>>()
    };
    let kept = tagged("", "");
    assert_eq!(
        told(&kept),
        [format!(
            "node group w: EKS does not hand `{label}` on to the Auto Scaling group, so that Cluster Autoscaler does not see it: set \
             `propagateASGTags: true`"
        )]
    );
    assert!(told(&tagged("", "labels: {foo: bar}, ")).is_empty(), "EKS tells the group's labels");
    let handed_on = tagged("", "propagateASGTags: true, ");
    assert!(told(&handed_on).is_empty());
    let (scenario, _) = load(CAS, "", &[("first.yaml", &kept)]).unwrap();
    let grown = simulate(&scenario);
    assert!(grown.record.events.iter().any(|event| event.kind == EventKind::ScaledUpGroup));
    let by_tag = "autoscaler: cluster-autoscaler, flags: { node-group-auto-discovery: \"asg:tag=team=x\" }";
    let refused = load(by_tag, "", &[("first.yaml", &kept)]).err().unwrap_or_default();
    assert!(refused.contains("no node group that Cluster Autoscaler would find"), "{refused}");
    assert!(load(by_tag, "", &[("first.yaml", &handed_on)]).is_ok());
    assert!(load(by_tag, "", &[("first.yaml", &tagged("nodeGroups:\n", ""))]).is_ok(), "CloudFormation hands them on");
}

/// Two groups for one workload, with these ranks.
fn ranked(ranks: &str) -> (Scenario, Vec<String>) {
    let groups = "- {name: spot-a, instanceType: m6i.xlarge, minSize: 0, maxSize: 5, desiredCapacity: 0, spot: true}\n\
                  - {name: od-a, instanceType: m6i.2xlarge, minSize: 0, maxSize: 5, desiredCapacity: 0}";
    let text = cluster(&format!(
        "{groups}\n---\n{}---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: cluster-autoscaler-priority-expander, namespace: \
         kube-system}}\ndata:\n  priorities: |\n{ranks}",
        web(8)
    ));
    let policy = "autoscaler: cluster-autoscaler, flags: { expander: \"priority,least-waste\" }";
    let (scenario, _) = load(policy, "", &[("first.yaml", &text)]).unwrap();
    let told = warnings(&scenario).into_iter().filter(|text| text.contains("the expander `priority`")).collect();
    (scenario, told)
}

#[test]
fn ranks_are_of_auto_scaling_groups() {
    let first = |scenario: &Scenario| {
        let outcome = simulate(scenario);
        let grown = outcome.record.events.iter().find(|event| event.kind == EventKind::DesiredCapacitySet);
        grown.map(|event| event.message.split(':').next().unwrap_or_default().to_owned())
    };
    for (ranks, grows) in [
        ("    10: ['.*eks-spot-.*']\n    50: ['^eks-od-.*']\n", "od-a"),
        ("    10: [od-.*]\n    50: ['spot-.*']\n", "spot-a"),
    ] {
        let (scenario, told) = ranked(ranks);
        assert_eq!((first(&scenario).as_deref(), told.len()), (Some(grows), 0), "{told:?}");
    }
    let (scenario, told) = ranked("    10: [od-.*]\n    50: ['^spot-.*', 'gpu']\n");
    assert_eq!(first(&scenario).as_deref(), Some("od-a"), "the anchored pattern ranks nothing");
    assert_eq!(told.len(), 3, "{told:?}");
    let has = |words: &str| told.iter().any(|text| text.contains(words));
    assert!(has(
        "`^spot-.*` fits the node group spot-a but not its Auto Scaling group, which is called like eks-spot-a-"
    ));
    assert!(has("`gpu` matches no Auto Scaling group"));
    assert!(has("gives no rank to 1 node group (spot-a)"));
}

#[test]
fn managed_group_rejects_mixed_architectures_and_small_volumes() {
    let said = |text: &str| match load(STATIC, "", &[("first.yaml", text)]) {
        Ok((_, warnings)) => Ok(warnings.into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n")),
        Err(error) => Err(error),
    };
    let sizes = "minSize: 0, maxSize: 5, desiredCapacity: 0";
    let mixed = format!("- {{name: w, instanceTypes: [m6g.xlarge, m6i.xlarge], {sizes}}}");
    assert!(said(&cluster(&mixed)).unwrap_err().contains("m6g.xlarge is arm64, m6i.xlarge is amd64"));
    let text = format!(
        "nodeGroups:\n- {{name: w, instancesDistribution: {{instanceTypes: [m6g.xlarge, m6i.xlarge]}}, {sizes}}}"
    );
    assert!(said(&cluster(&text)).unwrap().contains("do not start unless the group has a launch template for each"));
    let listed = |managed: bool| {
        let groups = format!(
            "nodeGroups: [{{ name: w, managed: {managed}, instanceTypes: [m6g.xlarge, m6i.xlarge], min: 0, max: 5, desired: 0 }}]"
        );
        load(STATIC, &groups, &[("first.yaml", &cluster(""))])
    };
    assert!(listed(true).is_err() && listed(false).is_ok());
    let sized = |rest: &str| said(&cluster(&format!("- {{name: w, instanceType: m6i.xlarge, {rest}, {sizes}}}")));
    assert!(
        sized("volumeSize: 10")
            .unwrap_err()
            .contains("a volume of 10 GiB is smaller than the snapshot of EKS's image, 20 GiB")
    );
    assert_eq!(sized("volumeSize: 20").unwrap(), "");
    assert_eq!(sized("volumeSize: 10, amiFamily: Bottlerocket").unwrap(), "");
    assert!(sized("volumeSize: 30, amiFamily: WindowsServer2022CoreContainer").unwrap().contains("50 GiB"));
    let aged = format!("nodeGroups:\n- {{name: w, instanceType: m6i.xlarge, maxInstanceLifetime: 604800, {sizes}}}");
    assert!(said(&cluster(&aged)).unwrap().contains("replaces no instance for its age"));
}

#[test]
fn update_names_keys_that_change_without_effect() {
    let sizes = "minSize: 0, maxSize: 5, desiredCapacity: 1";
    let said = |before: &str, later: &str, kind: &str| {
        let text = |rest: &str| cluster(&format!("{kind}- {{name: w, {sizes}, {rest}}}"));
        let step = "timeline: [{ at: 10m, manifests: [later.yaml] }]";
        let files = [("first.yaml", &*text(before)), ("later.yaml", &*text(later))];
        let (scenario, _) = load(STATIC, step, &files).unwrap();
        let all = warnings(&scenario);
        all.into_iter().filter(|text| text.contains("an update of node group w")).collect::<Vec<_>>().join("")
    };
    for (before, later, keys) in [
        ("ssh: {allow: false}", "securityGroups: {attachIDs: [sg-1]}", "`securityGroups` and `ssh`"),
        ("tags: {team: a}", "tags: {team: b}", "`tags`"),
        (
            "instanceType: m6i.large",
            "instanceType: m6i.xlarge, cloudWatch: b, placement: c",
            "`cloudWatch`, `instanceType` and `placement`",
        ),
        ("amiFamily: Ubuntu2204", "amiFamily: Ubuntu2404", "`amiFamily`"),
        ("volumeSize: 30", "volumeSize: 40", "`volumeSize`"),
    ] {
        let told = said(before, later, "");
        assert!(told.contains(&format!("another group ({keys} changed without effect)")), "{told}");
        assert!(told.contains("No node is replaced"), "{told}");
    }
    // What an update does change; and what is written otherwise, and the same.
    assert_eq!(said("releaseVersion: a", "releaseVersion: b", ""), "");
    assert_eq!(said("warmPoolConfig: {enabled: true}", "warmPoolConfig: {enabled: true, minSize: 2}", ""), "");
    assert_eq!(said("updateConfig: {maxUnavailable: 1}", "updateConfig: {maxUnavailablePercentage: 30}", ""), "");
    assert_eq!(
        said(
            "releaseVersion: a, ssh: {allow: true, publicKeyName: k}",
            "ssh: {publicKeyName: \"k\", allow: true}, releaseVersion: \"a\"",
            ""
        ),
        ""
    );
    assert_eq!(said("instanceType: m6i.large", "instanceTypes: [m6i.large]", ""), "");
    assert_eq!(said("labels: {a: b}", "labels: {a: c}, amiFamily: AmazonLinux2023", ""), "");
    let text = "nodeGroups:\n";
    assert!(said("labels: {a: b}", "labels: {a: c}", text).contains("(`labels` changed without effect)"));
    assert!(
        said("ami: ami-1, overrideBootstrapCommand: x", "ami: ami-2, overrideBootstrapCommand: x", text)
            .contains("No node is replaced")
    );
    let distribution =
        |price: &str| format!("instancesDistribution: {{instanceTypes: [m6i.large], maxPrice: {price}}}");
    assert!(said(&distribution("0.1"), &distribution("0.2"), text).contains("`instancesDistribution`"));
}
