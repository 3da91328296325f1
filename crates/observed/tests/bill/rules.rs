//! Whose a line is, and what is left out of a cluster's costs.

use std::collections::BTreeMap;

use nodecast_observed::bill::{Amount, BillLine, ChargeKind, Cluster, Group, Ledger, PricingTerm, Rule, Share, Totals};

use super::{CUR, shop_prod, totals_of};

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

/// A line that costs 1.
pub fn line(usage_type: &str, resource: &str, tags: &[(&str, &str)]) -> BillLine {
    let start: jiff::Timestamp = "2026-10-13T00:00:00Z".parse().unwrap();
    let mut line = BillLine {
        id: String::new(),
        start,
        end: start + jiff::SignedDuration::from_hours(1),
        payer: String::new(),
        account: "1".to_owned(),
        service: "AmazonEC2".to_owned(),
        usage_type: usage_type.to_owned(),
        operation: String::new(),
        resource: resource.to_owned(),
        zone: String::new(),
        region: String::new(),
        instance_type: String::new(),
        tags: tags.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        term: PricingTerm::OnDemand,
        kind: ChargeKind::Usage,
        usage: amount("1"),
        unit: "Hrs".to_owned(),
        currency: "USD".to_owned(),
        unblended: amount("1"),
        net_unblended: None,
        amortised: amount("1"),
        net_amortised: None,
        list: None,
        commitment: String::new(),
        fingerprint: 0,
    };
    line.fingerprint = fingerprint();
    line
}

/// A number that no other line has.
fn fingerprint() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

fn taken(cluster: Cluster, lines: &[BillLine]) -> Totals {
    let mut ledger = Ledger::new(cluster);
    lines.iter().for_each(|line| ledger.take(line).unwrap());
    ledger.finish().unwrap()
}

fn rule_of(cluster: &Cluster, charge: BillLine) -> Option<Rule> {
    // One line that is surely the cluster's, so that there is something to come to.
    let sure = line("AmazonEKS-Hours:perCluster", &format!("arn:aws:eks:x:1:cluster/{}", cluster.name), &[]);
    let totals = taken(cluster.clone(), &[sure, charge]);
    let arn = totals.rules[&Rule::Arn].lines;
    totals.rules.into_keys().find(|rule| *rule != Rule::Arn).or((arn == 2).then_some(Rule::Arn))
}

#[test]
fn first_matching_rule_assigns_line_to_cluster() {
    let mut cluster = shop_prod();
    cluster.resources.insert("i-1".to_owned());
    cluster.node_pools.insert("default".to_owned());
    cluster.shares.push(Share::parse("nat=100%").unwrap());
    let arn = "arn:aws:eks:us-east-1:1:";
    for (resource, tags, rule) in [
        ("i-1", &[("aws_eks_cluster_name", "shop-dev")][..], Some(Rule::Resource)),
        ("arn:aws:ec2:us-east-1:1:instance/i-1", &[], Some(Rule::Resource)),
        ("i-2", &[("aws_eks_cluster_name", "shop-prod")], Some(Rule::Tag)),
        ("i-2", &[("aws:eks:cluster-name", "shop-prod")], Some(Rule::Tag)),
        ("i-2", &[("user_eks_eks_cluster_name", "shop-prod")], Some(Rule::Tag)),
        ("i-2", &[("user:eks:cluster-name", "shop-prod")], Some(Rule::Tag)),
        ("i-2", &[("user_kubernetes_io_cluster_shop_prod", "owned")], Some(Rule::Tag)),
        ("i-2", &[("kubernetes.io/cluster/shop-prod", "owned")], Some(Rule::Tag)),
        ("i-2", &[("kubernetes.io/cluster/shop-prod", "shared")], None),
        ("i-2", &[("elbv2.k8s.aws/cluster", "shop-prod")], Some(Rule::Tag)),
        ("i-2", &[("karpenter.sh/nodepool", "default")], Some(Rule::Tag)),
        ("i-2", &[("karpenter.sh/nodepool", "other")], None),
        // Another cluster has a NodePool of that name too.
        ("i-2", &[("aws_eks_cluster_name", "shop-dev"), ("user_karpenter_sh_nodepool", "default")], None),
        ("i-2", &[("team", "shop-prod")], None),
        (&format!("{arn}cluster/shop-prod"), &[], Some(Rule::Arn)),
        (&format!("{arn}pod/shop-prod/ns/web/1"), &[], Some(Rule::Arn)),
        (&format!("{arn}cluster/shop-prod-2"), &[], None),
        (&format!("{arn}cluster/other-shop-prod"), &[], None),
        ("arn:aws:ecs:us-east-1:1:cluster/shop-prod", &[], None),
        ("", &[], None),
    ] {
        assert_eq!(rule_of(&cluster, line("BoxUsage:m5.large", resource, tags)), rule, "{resource} {tags:?}");
    }
    let nat = rule_of(&cluster, line("NatGateway-Bytes", "arn:nat", &[("user_team", "network")]));
    assert_eq!(nat, Some(Rule::Share("nat".to_owned())));
}

#[test]
fn capitalised_cluster_names_match_any_tag_spelling() {
    let cluster = Cluster { name: "ShopProd".to_owned(), ..Cluster::default() };
    for key in [
        "user_kubernetes_io_cluster_shop_prod",
        "user_kubernetes_io_cluster_shopprod",
        "kubernetes.io/cluster/ShopProd",
    ] {
        assert_eq!(rule_of(&cluster, line("x", "i-2", &[(key, "owned")])), Some(Rule::Tag), "{key}");
    }
}

#[test]
fn a_share_leaves_the_rest_to_others() {
    let mut cluster = shop_prod();
    cluster.shares =
        ["nat=100%", "BoxUsage:t3.*=25%", "commitments=50%"].map(|text| Share::parse(text).unwrap()).into();
    let (with, without) = (totals_of(cluster, &[CUR]), totals_of(shop_prod(), &[CUR]));
    assert_eq!(with.everything(), without.everything());
    assert_eq!(format!("{:.3}", with.group(&Group::Nat).unblended), "1.766");
    assert_eq!(with.rules[&Rule::Share("BoxUsage:t3.*".to_owned())].unblended, amount("0.2496"));
    assert_eq!(format!("{:.3}", with.group(&Group::Commitments).amortised), "0.119");
    assert_eq!(with.node_hours(nodecast_observed::bill::CapacityType::OnDemand), amount("54"));
}

#[test]
fn tax_credits_refunds_and_support_are_excluded() {
    let tag = [("aws_eks_cluster_name", "shop-prod")];
    let kinds = [ChargeKind::Tax, ChargeKind::Credit, ChargeKind::Refund, ChargeKind::Support, ChargeKind::Usage];
    let lines = kinds.clone().map(|kind| BillLine { kind, ..line("BoxUsage:m5.large", "i-2", &tag) });
    let totals = taken(shop_prod(), &lines);
    assert_eq!(totals.total().unblended, amount("1"));
    assert_eq!(totals.left_out.keys().collect::<Vec<_>>(), kinds[..4].iter().collect::<Vec<_>>());
    assert_eq!(totals.rules[&Rule::Tag].unblended, amount("5"));
}

#[test]
fn pod_split_lines_are_not_summed_twice() {
    let tag = [("aws_eks_cluster_name", "shop-prod")];
    let pod = BillLine { kind: ChargeKind::PodShare, ..line("EKS-EC2-vCPU-Hours", "i-2", &tag) };
    let totals = taken(shop_prod(), &[line("BoxUsage:m5.large", "i-2", &tag), pod]);
    assert_eq!((totals.total().unblended, totals.pod_shares), (amount("1"), 1));
}

#[test]
fn unknown_usage_type_forms_separate_group() {
    let tag = [("aws_eks_cluster_name", "shop-prod")];
    let totals = taken(shop_prod(), &[line("PublicIPv4:IdleAddress", "a", &tag), line("EBS:SnapshotUsage", "s", &tag)]);
    let groups: BTreeMap<String, Amount> =
        totals.groups.iter().map(|(group, sums)| (group.name().into_owned(), sums.unblended)).collect();
    assert_eq!(groups.keys().collect::<Vec<_>>(), ["EBS:SnapshotUsage", "PublicIPv4:IdleAddress"]);
}

#[test]
fn hours_that_are_missing_are_named() {
    let tag = [("aws_eks_cluster_name", "shop-prod")];
    let (first, mut later) = (line("x", "i-2", &tag), line("x", "i-2", &tag));
    later.start = first.start + jiff::SignedDuration::from_hours(5);
    later.end = later.start + jiff::SignedDuration::from_hours(1);
    let gap = (first.end, later.start);
    assert_eq!(taken(shop_prod(), &[first, later]).hours_without_lines(), [gap]);
}

#[test]
fn two_versions_of_an_export_are_noticed() {
    let tag = [("aws_eks_cluster_name", "shop-prod")];
    let first = BillLine { id: "x".to_owned(), ..line("BoxUsage:m5.large", "i-2", &tag) };
    let mut second = BillLine { unblended: amount("1.5"), fingerprint: first.fingerprint + 1_000_000, ..first.clone() };
    let totals = taken(shop_prod(), &[first.clone(), first.clone(), second.clone()]);
    assert_eq!((totals.repeated.lines, totals.same_id.lines, totals.same_id.unblended), (1, 1, amount("1.5")));
    assert_eq!(totals.total().unblended, amount("2.5"));

    // The same id in another hour, and lines without any, are nothing to notice.
    second.start = first.end;
    let nameless = [(); 2].map(|()| line("BoxUsage:m5.large", "i-2", &tag));
    let totals = taken(shop_prod(), &[&[first, second][..], &nameless[..]].concat());
    assert_eq!((totals.repeated.lines, totals.same_id.lines), (0, 0));
}
