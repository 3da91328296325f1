//! The EBS volumes of nodes, as manifests order them: what they are billed by, and what EC2 refuses.

use nodecast::cloud::BillItem;
use nodecast::domain::HourlyRate;
use nodecast::scenario::Source;
use nodecast::scenario::manifests::read_manifests;
use nodecast::simulation::Outcome;

use crate::node_groups::{run, try_load, web};

/// An hour of a cluster; `more` are further keys of the scenario.
fn scenario(more: &str) -> String {
    format!(
        "name: disks\nregion: us-east-1\nduration: 1h\ncluster: {{ zones: [us-east-1a] }}\nmanifests: [manifests.yaml]\n{more}\n"
    )
}

/// One pod, and a pool of m5.large whose class has these `blockDeviceMappings`.
fn karpenter(mappings: &str) -> String {
    of_class(&format!("amiSelectorTerms: [{{alias: al2023@latest}}]\n  blockDeviceMappings: {mappings}"))
}

/// One pod, and a pool of m5.large whose class states this.
fn of_class(spec: &str) -> String {
    let pool = "---\napiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: default}\nspec:\n  template:\n    spec:\n      \
        nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n      requirements:\n      \
        - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n      \
        - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}\n";
    format!(
        "{}{pool}---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}\nspec:\n  {spec}\n",
        web(1)
    )
}

/// One node of an eksctl node group with these further keys.
fn eksctl(keys: &str) -> String {
    format!(
        "apiVersion: eksctl.io/v1alpha5\nkind: ClusterConfig\nmetadata: {{name: shop, region: us-east-1}}\nmanagedNodeGroups:\n  \
         - {{name: base, instanceType: m5.large, minSize: 1, desiredCapacity: 1, maxSize: 1, {keys}}}\n"
    )
}

/// What the volumes of each node cost in an hour, in billionths.
fn hourly(outcome: &Outcome) -> Vec<i64> {
    let lines = outcome.bill.lines.iter().filter(|line| line.item == BillItem::RootVolume);
    lines.map(|line| line.rate.as_nanos()).collect()
}

/// So much a month, by the hour.
fn month(amount: &str) -> Vec<i64> {
    vec![HourlyRate::parse(amount).unwrap().scaled(1, 730).as_nanos()]
}

#[test]
fn node_class_volumes_are_billed() {
    let cost = |mappings: &str| {
        hourly(&run(&scenario("policies: [{ name: only, autoscaler: karpenter }]"), &karpenter(mappings)))
    };
    let root = |ebs: &str| cost(&format!("[{{deviceName: /dev/xvda, ebs: {{volumeSize: 100Gi, {ebs}}}}}]"));
    assert_eq!(root("volumeType: gp3"), month("8"));
    assert_eq!(root("encrypted: true"), month("8"), "gp3 where no type is stated");
    // 13,000 operations at 0.005 and 875 MiB/s at 0.04 more.
    assert_eq!(root("volumeType: gp3, iops: 16000, throughput: 1000"), month("108"));
    // 100 GiB at 0.125 and 16,000 operations at 0.065.
    assert_eq!(root("volumeType: io2, iops: 16000"), month("1052.5"));
    let two = "[{deviceName: /dev/xvda, ebs: {volumeSize: 50Gi, volumeType: gp2}}, \
        {deviceName: /dev/xvdb, ebs: {volumeSize: 100Gi, volumeType: gp3}}]";
    assert_eq!(cost(two), month("13"));
    // 20 GB are 18.6 GiB, which EC2 is asked for in whole ones.
    assert_eq!(cost("[{deviceName: /dev/xvda, ebs: {volumeSize: 20G}}]"), month("1.52"));
}

#[test]
fn unmapped_node_class_bills_ami_family_volumes() {
    let cost =
        |spec: &str| hourly(&run(&scenario("policies: [{ name: only, autoscaler: karpenter }]"), &of_class(spec)));
    assert_eq!(cost("amiSelectorTerms: [{alias: al2023@latest}]"), month("1.6"), "20 GiB");
    assert_eq!(cost("amiSelectorTerms: [{alias: al2@latest}]"), month("1.6"), "20 GiB");
    assert_eq!(cost("amiSelectorTerms: [{alias: bottlerocket@latest}]"), month("1.92"), "4 GiB and 20 GiB for pods");
    assert_eq!(cost("amiFamily: Custom\n  amiSelectorTerms: [{id: ami-0123456789abcdef0}]"), month("1.6"), "assumed");
    // What the class states takes the place of what is for pods; the root is there all the same.
    let stated = "amiSelectorTerms: [{alias: bottlerocket@latest}]\n  \
        blockDeviceMappings: [{deviceName: /dev/xvdb, ebs: {volumeSize: 50Gi, volumeType: gp3}}]";
    assert_eq!(cost(stated), month("4.32"), "4 GiB and 50 GiB");
    assert_eq!(cost(&stated.replace("bottlerocket", "al2023")), month("5.6"), "20 GiB and 50 GiB");
    assert_eq!(cost(&stated.replace("xvdb", "xvda").replace("bottlerocket", "al2023")), month("4"), "it is the root");
}

#[test]
fn windows_nodes_take_windows_pods_and_cost_more() {
    let for_windows = |manifests: String| {
        manifests.replace(
            "    spec:\n      containers:",
            "    spec:\n      nodeSelector: {kubernetes.io/os: windows}\n      containers:",
        )
    };
    let told = |outcome: &Outcome| outcome.warnings.texts().iter().any(|text| text.contains("licence"));
    let ready = |outcome: &Outcome| outcome.record.pods.iter().filter(|pod| pod.ready.is_some()).count();
    let karpenter = "policies: [{ name: only, autoscaler: karpenter }]";
    let outcome = run(&scenario(karpenter), &for_windows(of_class("amiSelectorTerms: [{alias: windows2022@latest}]")));
    assert_eq!((outcome.record.nodes.len(), ready(&outcome), told(&outcome)), (1, 1, true));
    let group = format!("{}---\n{}", web(1), eksctl("amiFamily: WindowsServer2022CoreContainer"));
    let fixed = "policies: [{ name: only, autoscaler: static }]";
    let outcome = run(&scenario(fixed), &for_windows(group.clone()));
    assert_eq!((outcome.record.nodes.len(), ready(&outcome), told(&outcome)), (1, 1, true));
    let linux = run(&scenario(fixed), &group.replace("amiFamily: WindowsServer2022CoreContainer", "spot: false"));
    assert!(!told(&linux) && ready(&linux) == 1);
}

#[test]
fn eksctl_group_volumes_are_billed() {
    let cost = |keys: &str| hourly(&run(&scenario("policies: [{ name: only, autoscaler: static }]"), &eksctl(keys)));
    assert_eq!(cost("privateNetworking: true"), month("6.4"), "80 GiB of gp3");
    assert_eq!(cost("amiFamily: Bottlerocket"), month("6.72"), "80 GiB for pods and 4 GiB to boot from");
    // 40 GiB, 3,000 operations and 375 MiB/s more, and 2,000 GiB of gp3 beside them.
    let keys = "volumeType: gp3, volumeSize: 40, volumeIOPS: 6000, volumeThroughput: 500, \
        additionalVolumes: [{volumeName: /dev/xvdb, volumeSize: 2000}]";
    assert_eq!(cost(keys), month("193.2"));
    let keys = "volumeType: gp2, additionalVolumes: [{volumeName: /dev/xvdb, volumeSize: 500, volumeType: st1}]";
    assert_eq!(cost(keys), month("30.5"));
    // eksctl orders 100 operations of io1 unless they are stated.
    assert_eq!(cost("volumeType: io1"), month("16.5"));
}

#[test]
fn unsupported_eksctl_volume_is_free_with_warning() {
    let keys = "additionalVolumes: [{volumeSize: 2000}]";
    let outcome = run(&scenario("policies: [{ name: only, autoscaler: static }]"), &eksctl(keys));
    assert_eq!(hourly(&outcome), month("6.4"));
    let read = read_manifests(&Source::new("cluster.yaml", eksctl(keys))).unwrap();
    assert!(
        read.warnings.iter().any(|warning| warning.message().contains("no additional volume")),
        "{:?}",
        read.warnings
    );
}

#[test]
fn a_volume_that_ec2_refuses_is_an_error() {
    let class = |ebs: &str| {
        let manifests = karpenter(&format!("[{{deviceName: /dev/xvda, ebs: {{volumeSize: 100Gi, {ebs}}}}}]"));
        try_load(&scenario(""), &manifests).err().unwrap_or_default()
    };
    for (ebs, said) in [
        ("volumeType: gp3, iops: 2999", "`iops` is 2999"),
        ("volumeType: gp3, throughput: 2001", "`throughput` is 2001"),
        ("volumeType: io1, iops: 64001", "`iops` is 64001"),
        ("volumeType: io2, iops: 256001", "`iops` is 256001"),
        ("volumeType: gp2, iops: 3000", "`iops` is not supported for volume type gp2"),
        ("volumeType: io2, iops: 3000, throughput: 125", "`throughput` is not supported for volume type io2"),
        ("volumeType: io2", "a volume of type io2 needs `iops`"),
        ("volumeType: gp3, iops: 50001", "`iops` is more than a volume of 100 GiB of type gp3 has"),
        ("volumeType: io1, iops: 5001", "`iops` is more than a volume of 100 GiB of type io1 has"),
        ("volumeType: io2, iops: 100001", "`iops` is more than a volume of 100 GiB of type io2 has"),
        ("volumeType: gp3, throughput: 751", "`throughput` of 751 MiB/s needs 3004 I/O operations"),
    ] {
        let error = class(ebs);
        assert!(error.contains(said), "{ebs}: {error}");
    }
    assert_eq!(class("volumeType: gp3, iops: 50000, throughput: 2000"), "");
    assert_eq!(class("volumeType: gp3, throughput: 750"), "");
    let group = try_load(&scenario(""), &eksctl("volumeSize: 10, volumeIOPS: 5001")).err().unwrap_or_default();
    assert!(group.contains("`volumeIOPS` is more than a volume of 10 GiB of type gp3 has"), "{group}");
    let group = try_load(&scenario(""), &eksctl("volumeType: st1, volumeSize: 500")).err().unwrap_or_default();
    assert!(group.contains("volume type st1 cannot be a root volume"), "{group}");
    let twice = "additionalVolumes: [{volumeName: /dev/xvda, volumeSize: 500}]";
    let group = try_load(&scenario(""), &eksctl(twice)).err().unwrap_or_default();
    assert!(group.contains("two volumes of the node group are the device `/dev/xvda`"), "{group}");
    let data = "amiFamily: Bottlerocket, volumeType: st1, volumeSize: 500";
    assert!(try_load(&scenario(""), &eksctl(data)).is_ok(), "it is the volume for pods");
    let group = try_load(&scenario(""), &eksctl("volumeType: floppy")).err().unwrap_or_default();
    assert!(group.contains("unknown `volumeType`: `floppy`"), "{group}");
}

#[test]
fn invalid_volume_size_or_device_is_an_error() {
    let refused = |mappings: &str| try_load(&scenario(""), &karpenter(mappings)).err().unwrap_or_default();
    let sized = |device: &str, keys: &str| refused(&format!("[{{deviceName: {device}, ebs: {{{keys}}}}}]"));
    for (keys, said) in [
        ("volumeType: gp2, volumeSize: 16385Gi", "a volume of type gp2 cannot have 16385 GiB"),
        ("volumeType: io1, volumeSize: 16385Gi, iops: 100", "a volume of type io1 cannot have 16385 GiB"),
        ("volumeType: io1, volumeSize: 3Gi, iops: 100", "a volume of type io1 cannot have 3 GiB"),
        ("volumeType: io2, volumeSize: 3Gi, iops: 100", "a volume of type io2 cannot have 3 GiB"),
        ("volumeType: st1, volumeSize: 124Gi", "a volume of type st1 cannot have 124 GiB"),
        ("volumeType: sc1, volumeSize: 17Ti", "a volume of type sc1 cannot have 17408 GiB"),
        ("volumeType: standard, volumeSize: 2Ti", "a volume of type standard cannot have 2048 GiB"),
    ] {
        let error = sized("/dev/xvdb", keys);
        assert!(error.contains(said), "{keys}: {error}");
    }
    assert_eq!(sized("/dev/xvdb", "volumeType: st1, volumeSize: 125Gi"), "");
    assert_eq!(sized("/dev/xvda", "volumeType: gp3, volumeSize: 59000Gi"), "");
    let root = sized("/dev/xvda", "volumeType: st1, volumeSize: 125Gi");
    assert!(root.contains("volume type st1 cannot be a root volume"), "{root}");
    let twice =
        refused("[{deviceName: /dev/xvdb, ebs: {volumeSize: 1Gi}}, {deviceName: /dev/xvdb, ebs: {volumeSize: 2Gi}}]");
    assert!(twice.contains("two of `blockDeviceMappings` map the device `/dev/xvdb`"), "{twice}");
    assert!(refused("[{ebs: {volumeSize: 1Gi}}]").contains("a block device mapping needs `deviceName`"));
    assert!(refused("[{deviceName: '', ebs: {volumeSize: 1Gi}}]").contains("`deviceName` is empty"));
}
