//! The AWS provider.

use std::sync::Arc;

use nodecast_cluster_autoscaler::aws::{
    self, Activity, DeleteCalls, DoomedInstance, GroupDescription, ManagedGroup, TemplateType,
};
use nodecast_cluster_autoscaler::view::{GroupOptions, InstanceError, NodeTemplate};
use nodecast_model::domain::{ResourceName, SimDuration, Symbol, Taint, TaintEffect};

use super::lab::{Lab, START, label, minutes, program, seconds};

pub const ROWS: &[&str] = &["L1", "L2", "L3", "L4", "L5", "L6", "L8", "L9", "L10", "L11", "L12", "L13"];

fn doomed(ids: &[(&str, bool)]) -> Vec<DoomedInstance> {
    ids.iter().map(|&(id, terminating)| DoomedInstance { id: Arc::from(id), terminating }).collect()
}

fn calls(set_desired: Option<i64>, terminate: &[&str]) -> DeleteCalls {
    DeleteCalls { set_desired, terminate: terminate.iter().map(|&id| Arc::from(id)).collect() }
}

#[test]
fn sizes_stay_between_minimum_and_maximum() {
    assert_eq!(aws::increased(2, 3, 1), Ok(3));
    assert!(aws::increased(2, 3, 2).is_err());
    assert!(aws::increased(2, 3, 0).is_err());
    assert!(aws::delete_calls(1, 1, 1, &doomed(&[("i-1", false)])).is_err());
}

#[test]
fn instances_that_end_already_are_left_alone() {
    let found = aws::delete_calls(3, 0, 3, &doomed(&[("i-1", true), ("i-2", false)]));
    assert_eq!(found, Ok(calls(None, &["i-2"])));
}

#[test]
fn placeholder_deletion_is_one_resize_call() {
    let placeholder = aws::placeholder_id("g", 1);
    let found = aws::delete_calls(2, 0, 1, &doomed(&[(&placeholder, false)]));
    assert_eq!(found, Ok(calls(Some(1), &[])));
    // The cache knows three instances, so that seven are missing; by now there are six.
    let mut all: Vec<DoomedInstance> =
        (3..10).map(|index| DoomedInstance { id: aws::placeholder_id("g", index), terminating: false }).collect();
    all.extend(doomed(&[("i-1", false), ("i-2", false)]));
    assert_eq!(aws::delete_calls(10, 0, 6, &all), Ok(calls(Some(6), &["i-1", "i-2"])));
}

#[test]
fn failed_activity_since_resize_marks_instances_unfulfillable() {
    let activity = |ago: i64, failed| Activity { began: START - seconds(ago), failed };
    let resized = Some(START - seconds(60));
    let cannot = |activities: &[Activity]| aws::cannot_be_fulfilled(Some(activities), resized);
    assert!(!cannot(&[]));
    assert!(!cannot(&[activity(10, false)]));
    assert!(cannot(&[activity(10, false), activity(50, true)]));
    assert!(!cannot(&[activity(10, false), activity(70, true)]), "the failure is older");
    assert!(!aws::cannot_be_fulfilled(None, resized), "the activities cannot be read");
    assert!(!aws::cannot_be_fulfilled(Some(&[activity(10, true)]), None), "the group was never resized");
}

fn tags(entries: &[(&str, &str)]) -> Vec<(String, String)> {
    entries.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn m5_large() -> TemplateType {
    let (name, arch) = (Symbol::new("m5.large"), Symbol::new("amd64"));
    TemplateType { name, arch, vcpus: 2, memory_mib: 8_192, gpus: 0 }
}

fn describe(template_type: &TemplateType, tags: &[(String, String)], managed: Option<&ManagedGroup>) -> NodeTemplate {
    let (region, zone) = (Symbol::new("us-east-1"), Symbol::new("us-east-1a"));
    aws::template(&GroupDescription { instance_type: template_type, region, zone, tags, managed })
}

#[test]
fn template_combines_type_tags_and_managed_group() {
    let node = "k8s.io/cluster-autoscaler/node-template";
    let this_tags = tags(&[
        (&format!("{node}/label/team"), "tag"),
        (&format!("{node}/label/only"), "tag"),
        ("eks:cluster-name", "prod"),
        (&format!("{node}/taint/a"), "x:NoSchedule"),
        (&format!("{node}/taint/b"), "y:NoExecute"),
        (&format!("{node}/taint/c"), "z:PreferNoSchedule"),
        (&format!("{node}/taint/d"), "w:Sometimes"),
        (&format!("{node}/resources/pods"), "29"),
        (&format!("{node}/resources/ephemeral-storage"), "20Gi"),
    ]);
    let managed = ManagedGroup {
        name: "workers".to_owned(),
        labels: label("team", "managed"),
        capacity_type: "SPOT".to_owned(),
        tags: tags(&[(&format!("{node}/resources/pods"), "35")]),
        ..ManagedGroup::default()
    };
    let template = describe(&m5_large(), &this_tags, Some(&managed));
    let get = |key: &str| template.labels.get(Symbol::new(key)).map(Symbol::as_str);
    assert_eq!([get("team"), get("only"), get("cluster-name")], [Some("managed"), Some("tag"), Some("prod")]);
    assert_eq!(get("eks.amazonaws.com/capacityType"), Some("SPOT"));
    assert_eq!(get("topology.kubernetes.io/zone"), Some("us-east-1a"));
    let taint = |key: &str, value: &str, effect| Taint { key: Symbol::new(key), value: Symbol::new(value), effect };
    assert_eq!(
        template.taints,
        [
            taint("a", "x", TaintEffect::NoSchedule),
            taint("b", "y", TaintEffect::NoExecute),
            taint("c", "z", TaintEffect::PreferNoSchedule),
        ]
    );
    assert_eq!(template.capacity.pods(), 35);
    assert_eq!(template.capacity.get(ResourceName::EPHEMERAL_STORAGE), 20 << 30);
    assert_eq!(template.capacity, template.allocatable);
    assert_eq!((template.pods.len(), template.pods[0].is_mirror()), (1, true));
    assert_eq!(describe(&m5_large(), &[], None).capacity.pods(), 110);
}

#[test]
fn group_tag_options_override_flags() {
    let option = "k8s.io/cluster-autoscaler/node-template/autoscaling-options";
    let good = tags(&[
        (&format!("{option}/scaledownutilizationthreshold"), "0.4"),
        (&format!("{option}/scaledowngpuutilizationthreshold"), "0.3"),
        (&format!("{option}/scaledownunneededtime"), "1h"),
        (&format!("{option}/scaledownunreadytime"), "30m"),
        (&format!("{option}/ignoredaemonsetsutilization"), "true"),
    ]);
    let wanted = GroupOptions {
        utilization_threshold: Some(0.4),
        gpu_utilization_threshold: Some(0.3),
        unneeded_time: Some(SimDuration::from_secs(3_600)),
        unready_time: Some(minutes(30)),
        ignore_daemonsets_utilization: Some(true),
    };
    assert_eq!(aws::options(&good), wanted);
    let partly = tags(&[
        (&format!("{option}/scaledownutilizationthreshold"), "low"),
        (&format!("{option}/scaledownunneededtime"), "1h"),
    ]);
    let wanted = GroupOptions { unneeded_time: Some(SimDuration::from_secs(3_600)), ..GroupOptions::default() };
    assert_eq!(aws::options(&partly), wanted);
}

#[test]
fn first_type_and_attribute_minimums_define_template() {
    // Given by attributes of at least 1 CPU and 4 GiB, for which EC2 names m5.large first.
    let by_attributes = TemplateType { vcpus: 1, memory_mib: 4_096, ..m5_large() };
    let template = describe(&by_attributes, &[], None);
    assert_eq!((template.capacity.cpu_milli(), template.capacity.memory_bytes()), (1_000, 4_096 << 20));
    let of = |key: &str| template.labels.get(Symbol::new(key)).map(Symbol::as_str);
    assert_eq!(of("node.kubernetes.io/instance-type"), Some("m5.large"));
}

/// Two groups, of which an expander prefers the first.
fn two_groups() -> Lab {
    let mut lab = Lab::default();
    lab.group("a", (0, 10, 0), 1_000, 1_000);
    lab.group("b", (0, 10, 0), 1_000, 2_000);
    lab.pending("p", 3, 900, 500);
    lab
}

#[test]
fn failed_activity_moves_scale_up_to_other_group() {
    let mut lab = two_groups();
    let mut program = program(&[]);
    lab.run(&mut program);
    assert_eq!(lab.cloud.targets, [3, 0]);
    let activities = [Activity { began: START + seconds(20), failed: true }];
    assert!(aws::cannot_be_fulfilled(Some(&activities), Some(START)));
    for index in 0..3 {
        lab.instance(0, &aws::placeholder_id("a", index), Some(InstanceError::OutOfResources));
    }
    lab.cloud.calls.clear();
    let found = lab.run_after(seconds(60), &mut program);
    assert_eq!(found.given_up.len(), 1);
    assert_eq!(lab.cloud.targets, [0, 3], "what was asked for is given up and asked for elsewhere");
    let backed_off = |after: SimDuration| program.state().is_backed_off(Symbol::new("a"), lab.now() + after);
    assert!(backed_off(minutes(5)) && !backed_off(minutes(5) + seconds(1)));
}

#[test]
fn replacement_of_interrupted_instance_is_not_upcoming() {
    let mut lab = Lab::default();
    let group = lab.group("spot", (0, 10, 2), 1_000, 1_000);
    let node = lab.node(group);
    lab.running("other", node, 900, 500);
    // The second node was interrupted; the group replaces it by itself, and its pod waits.
    lab.instance(group, "i-replacement", None);
    lab.pending("displaced", 1, 900, 500);
    let older = nodecast_model::domain::KubernetesVersion::from_minor(35).unwrap();
    let flags = nodecast_cluster_autoscaler::Flags::defaults(older);
    let mut before = nodecast_cluster_autoscaler::ClusterAutoscaler::new(flags, Default::default(), START);
    lab.run(&mut before);
    assert_eq!(lab.cloud.targets, [2], "up to 1.35 it was");
    lab.run(&mut program(&[]));
    assert_eq!(lab.cloud.targets, [3]);
}

#[test]
fn late_request_is_removed_as_unregistered_instances() {
    // The group lists one placeholder for each missing instance, so that a mere decrease is refused.
    assert!(aws::decreased(2, 2, 2).is_err());
    assert_eq!(aws::decreased(4, 2, 2), Ok(2));
    let mut lab = two_groups();
    lab.pods.truncate(2);
    let mut program = program(&[]);
    lab.run(&mut program);
    lab.cloud.refuses_decrease = true;
    for index in 0..2 {
        lab.instance(0, &aws::placeholder_id("a", index), None);
    }
    lab.pods.clear();
    lab.run_after(seconds(10), &mut program);
    lab.cloud.calls.clear();
    lab.run_after(minutes(15) - seconds(9), &mut program);
    assert_eq!(lab.cloud.calls, ["0 -2"]);
    lab.run_after(seconds(10), &mut program);
    assert_eq!(lab.cloud.calls[1..], ["0 deletes i-placeholder-a-0 i-placeholder-a-1"]);
    assert_eq!(lab.cloud.targets[0], 0);
}
