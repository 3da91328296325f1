//! Values of levers of `recommend`: each makes a scenario that has them.

use std::collections::BTreeMap;

use nodecast::catalog::Catalog;
use nodecast::experiment::axes::Setting;
use nodecast::recommend::recommendation::{Allowance, BaselineFacts, Kind, Lever, levers};
use nodecast::scenario::document::Content;
use nodecast::scenario::{Edit, Limits, Scenario};

use crate::cli::Place;

fn with(place: &Place, setting: &Setting) -> Option<Scenario> {
    let edit = |(path, value): &(String, String)| Edit::parse(&format!("{path}={value}")).unwrap();
    let edits: Vec<Edit> = setting.iter().map(edit).collect();
    let catalog = Catalog::embedded().unwrap();
    nodecast::scenario::load_edited(&place.path("scenario.yaml"), catalog, &Limits::default(), &edits)
        .ok()
        .map(|loaded| loaded.0)
}

fn found(place: &Place, kind: Kind) -> Vec<Lever> {
    let scenario = with(place, &Setting::new()).unwrap();
    let policy = scenario.for_policy(None).unwrap();
    let catalog = Catalog::embedded().unwrap();
    let documents =
        nodecast::scenario::documents(&place.path("scenario.yaml"), catalog, &Limits::default(), &[]).unwrap();
    let objects: Vec<Content> = documents.into_iter().map(|document| document.content).collect();
    let known = BaselineFacts {
        scenario: &scenario,
        policy,
        region: &catalog.region("us-west-2").unwrap(),
        by_origin: &BTreeMap::new(),
        by_workload: &BTreeMap::new(),
        can_set: &|setting| with(place, setting).is_some(),
        root: &objects[0],
        objects: &objects,
        allowance: Allowance::new(&[kind], &[]),
    };
    levers(&known).0.into_iter().filter(|lever| lever.kind == kind).collect()
}

fn place(objects: &str, more: &str) -> Place {
    let place = Place::new();
    place.put("objects.yaml", objects);
    place.put(
        "scenario.yaml",
        &format!("name: spelled\nregion: us-west-2\nduration: 1h\nmanifests: [objects.yaml]\n{more}\n"),
    );
    place
}

#[test]
fn node_groups_change_in_every_spelling() {
    let eksctl = "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {name: a, region: us-west-2}\n";
    let of_cluster = |list: &str, keys: &str| place(&format!("{eksctl}{list}: [{{name: old, {keys}}}]\n"), "");
    let namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    let of_scenario = |keys: &str| place(namespace, &format!("nodeGroups: [{{name: old, {keys}}}]"));
    let mixed =
        "instanceType: mixed, instancesDistribution: {instanceTypes: [r5.xlarge, r5a.xlarge]}, minSize: 2, maxSize: 4";
    let places = [
        of_cluster("managedNodeGroups", "instanceType: r5.xlarge, minSize: 2, maxSize: 4"),
        of_cluster("managedNodeGroups", "instanceTypes: [r5.xlarge, r5a.xlarge], minSize: 2, maxSize: 4"),
        of_cluster("nodeGroups", mixed),
        of_scenario("instanceType: r5.xlarge, minSize: 2, maxSize: 4"),
        of_scenario("instanceTypes: [r5.xlarge], min: 2, max: 4"),
        of_scenario("instanceType: r5.xlarge, instanceTypes: [r5a.xlarge], minSize: 2, max: 4"),
    ];
    for place in &places {
        let [types] = &found(place, Kind::GroupTypes)[..] else { panic!("one group") };
        assert!(types.levels.len() > 3, "types with less memory, too: {types:?}");
        for level in &types.levels {
            let scenario = with(place, &level.sets).unwrap_or_else(|| panic!("{:?}", level.sets));
            let group = &scenario.for_policy(None).unwrap().manifests.node_groups[0];
            assert_eq!(group.instance_types.len(), 1, "{:?}", level.sets);
            assert!(level.label.starts_with(group.instance_types[0].as_str()), "{level:?}");
        }
        let [sizes] = &found(place, Kind::GroupSizes)[..] else { panic!("one group") };
        let scenario = with(place, &sizes.levels[0].sets).unwrap();
        assert_eq!(scenario.for_policy(None).unwrap().manifests.node_groups[0].min_size, 0);
    }
}

#[test]
fn headless_services_have_no_topology_routing() {
    let service = |name: &str, address: &str| {
        format!(
            "apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\nspec: {{selector: {{app: web}}, {address} \
             trafficDistribution: PreferClose}}\n---\n"
        )
    };
    let web = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec:\n  selector: {matchLabels: {app: web}}\n  \
               template:\n    metadata: {labels: {app: web}}\n    spec: {containers: [{name: c, image: x}]}\n";
    let both = service("peers", "clusterIP: None,") + &service("web", "") + web;
    let load = "load: [{workload: default/web, requests: {constant: 5}, service: {cpu_per_request: 2ms, concurrency: 4}}]\n\
                ec2: {billing: {cross_zone: {bytes_per_request: 30k}}}";
    let near = place(&both, load);
    let scenario = with(&near, &Setting::new()).unwrap();
    let services = &scenario.for_policy(None).unwrap().manifests.services;
    assert_eq!(services.iter().filter(|service| service.keeps_zone).count(), 1);
    let far = place(&both.replace(" trafficDistribution: PreferClose", ""), load);
    let [lever] = &found(&far, Kind::TopologyRouting)[..] else { panic!("one lever") };
    assert!(lever.levels[0].sets.iter().all(|(path, _)| path.contains("default/web")), "{lever:?}");
}

#[test]
fn volume_levels_can_be_set_alone() {
    let objects = "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: quick}\nprovisioner: ebs.csi.aws.com\n\
                   parameters: {type: gp3, iops: '7000', throughput: '400'}\n---\n\
                   apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: any}\nspec: {template: {spec: {nodeClassRef: \
                   {group: karpenter.k8s.aws, kind: EC2NodeClass, name: any}}}}\n---\n\
                   apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: any}\nspec:\n  amiSelectorTerms: \
                   [{alias: al2023@latest}]\n  blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {volumeSize: 200Gi, volumeType: \
                   io2, iops: 6000}}]\n";
    let place = place(objects, "policies: [{name: now, autoscaler: karpenter}]");
    let levers = found(&place, Kind::Volumes);
    assert_eq!(levers.len(), 3, "{levers:?}");
    for level in levers.iter().flat_map(|lever| &lever.levels) {
        assert!(with(&place, &level.sets).is_some(), "{level:?}");
        assert!(
            level.sets.iter().all(|(path, _)| !path.contains("parameters.")),
            "no parameter becomes null: {level:?}"
        );
    }
}
