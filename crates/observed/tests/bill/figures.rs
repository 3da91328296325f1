//! The figures of the made-up day, as its owner knows them.

use std::collections::BTreeSet;

use nodecast_observed::bill::{
    Amount, CapacityType, ChargeKind, Group, Ledger, ReadOptions, Rule, Sums, Totals, read_bytes,
};

use super::{CUR, FOCUS, path, shop_prod, text_of, totals_of};

fn rounded(amount: Amount) -> String {
    format!("{amount:.3}")
}

fn check_day(totals: &Totals) {
    assert_eq!(rounded(totals.total().amortised), "13.268");
    assert_eq!(rounded(totals.total().billed), "11.586");
    assert_eq!(rounded(totals.group(&Group::NodesOnDemand).amortised), "3.986");
    for (group, unblended) in [
        (Group::NodesSpot, "5.926"),
        (Group::Ebs, "0.197"),
        (Group::ControlPlane, "2.400"),
        (Group::LoadBalancers, "0.668"),
        (Group::BetweenZones, "0.091"),
    ] {
        assert_eq!(rounded(totals.group(&group).unblended), unblended, "{}", group.name());
        assert_eq!(totals.group(&group).unblended, totals.group(&group).amortised);
    }
    assert_eq!(totals.groups.len(), 6, "{:?}", totals.groups.keys());
    assert_eq!(format!("{:.2}", totals.node_hours(CapacityType::Spot)), "43.02");
    assert_eq!(totals.node_hours(CapacityType::OnDemand).to_string(), "48");
    assert_eq!(rounded(totals.everything().unblended), "20.878");
    assert_eq!(rounded(totals.everything().amortised), "20.878");
    assert_eq!(totals.everything().lines, 458);
    assert_eq!(totals.currency, "USD");
    assert!(totals.hours_without_lines().is_empty());
    assert!(totals.left_out.is_empty());
    assert_eq!(totals.repeated, Sums::default());
}

#[test]
fn the_day_in_a_cost_and_usage_report() {
    let totals = totals_of(shop_prod(), &[CUR]);
    check_day(&totals);
    // What the covered lines state is not what was paid: another line, which no tag ties to the cluster, takes it off again.
    assert_eq!(rounded(totals.total().unblended), "13.890");
    assert_eq!(rounded(totals.group(&Group::NodesOnDemand).unblended), "4.608");
    assert_eq!(rounded(totals.others.account[&ChargeKind::Negation].unblended), "-2.304");
    assert_eq!(rounded(totals.others.clusters["shop-dev"].unblended), "4.608");
    assert_eq!(rounded(totals.others.account[&ChargeKind::CommitmentFee].amortised), "0.238");
}

#[test]
fn the_day_in_focus() {
    let totals = totals_of(shop_prod(), &[FOCUS]);
    check_day(&totals);
    assert_eq!(totals.total().unblended, totals.total().billed);
    assert_eq!(rounded(totals.others.account[&ChargeKind::UnusedCommitment].amortised), "0.238");
    assert_eq!(rounded(totals.others.account[&ChargeKind::CommitmentFee].amortised), "0.000");
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_and_csv_bill_totals_match() {
    assert_eq!(totals_of(shop_prod(), &[super::CUR_PARQUET]), totals_of(shop_prod(), &[CUR]));
}

#[test]
fn cur_and_focus_have_equal_hours_and_prices() {
    let (cur, focus) = (totals_of(shop_prod(), &[CUR]), totals_of(shop_prod(), &[FOCUS]));
    assert_eq!(cur.spot, focus.spot);
    assert_eq!(cur.days.keys().collect::<Vec<_>>(), focus.days.keys().collect::<Vec<_>>());
    let hours = |totals: &Totals| -> Vec<_> {
        totals.nodes.iter().map(|(key, node)| (key.clone(), node.hours, node.covered_hours, node.amortised)).collect()
    };
    assert_eq!(hours(&cur), hours(&focus));
}

#[test]
fn nodes_by_type_and_zone() {
    let totals = totals_of(shop_prod(), &[CUR]);
    let mut table = String::new();
    for (key, node) in &totals.nodes {
        let (capacity, price) = (key.capacity.name(), node.mean_price().unwrap());
        table += &format!("{capacity} {} {} {:.3} h, {price:.4} an hour", key.instance_type, key.zone, node.hours);
        table += &format!(", {} h covered\n", node.covered_hours);
    }
    insta::assert_snapshot!(table);
}

#[test]
fn rules_take_each_line_once() {
    let by_tags = totals_of(shop_prod(), &[CUR]);
    assert_eq!(by_tags.rules.keys().collect::<Vec<_>>(), [&Rule::Tag, &Rule::Arn]);
    assert_eq!(rounded(by_tags.rules[&Rule::Arn].unblended), "2.400");

    let text = std::fs::read_to_string(path("instances.txt")).unwrap();
    let mut cluster = shop_prod();
    cluster.resources = text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
    let by_instances = totals_of(cluster, &[CUR]);
    assert_eq!(rounded(by_instances.rules[&Rule::Resource].unblended), "5.926");
    assert_eq!(by_instances.groups, by_tags.groups);
    assert_eq!(Sums::from_sums(by_instances.rules.values()), by_instances.total());
}

#[test]
fn spot_prices_are_those_of_their_hours() {
    let totals = totals_of(shop_prod(), &[CUR]);
    let hours: Amount = totals.spot.values().map(|hour| hour.hours).sum();
    assert_eq!(hours, totals.node_hours(CapacityType::Spot));
    let types: BTreeSet<&str> = totals.spot.keys().map(|key| key.instance_type.as_str()).collect();
    assert_eq!(types.into_iter().collect::<Vec<_>>(), ["c5a.xlarge", "c8i-flex.2xlarge", "m5zn.2xlarge", "m5zn.large"]);
    assert!(totals.spot.values().all(|hour| hour.price().is_some()));

    let file = totals.spot_price_file();
    assert_eq!(file.lines().count(), totals.spot.len() + 1);
    let first: Vec<&str> = file.lines().take(2).collect();
    assert_eq!(first[0], "instance_type,zone,time,price");
    assert_eq!(first[1], "c5a.xlarge,us-east-1a,2026-10-13T04:00:00Z,0.078200000");
}

/// What the lines of texts come to, each a file.
fn totals_of_texts(texts: &[String]) -> Totals {
    let mut ledger = Ledger::new(shop_prod());
    for text in texts {
        ledger.next_file();
        read_bytes("bill.csv", text.as_bytes(), &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    }
    ledger.finish().unwrap()
}

/// A table with other columns: `keep` says which, by name, and they come in the opposite order.
fn turned(text: &str, keep: impl Fn(&str) -> bool) -> String {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().unwrap().clone();
    let kept: Vec<usize> = (0..header.len()).rev().filter(|at| keep(&header[*at])).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(kept.iter().map(|at| &header[*at])).unwrap();
    for row in reader.records() {
        let row = row.unwrap();
        writer.write_record(kept.iter().map(|at| &row[*at])).unwrap();
    }
    String::from_utf8(writer.into_inner().unwrap()).unwrap()
}

#[test]
fn bill_line_counts_once_for_any_column_order() {
    let text = text_of(CUR);
    let once = totals_of_texts(std::slice::from_ref(&text));
    let twice = totals_of_texts(&[text.clone(), turned(&text, |name| name != "line_item_operation")]);
    assert_eq!((&once.groups, once.total()), (&twice.groups, twice.repeated));
}

#[test]
fn lines_without_id_are_deduplicated_per_file() {
    // As the lines of two volumes are alike where resources are left out.
    let text = text_of(FOCUS);
    let (_, body) = text.split_once('\n').unwrap();
    let doubled = format!("{}\n{body}", text.trim_end());
    let (once, both) = (totals_of_texts(&[text]), totals_of_texts(std::slice::from_ref(&doubled)));
    let amount = once.total().amortised;
    assert_eq!((both.total().amortised, both.repeated), (amount + amount, Sums::default()));
    assert_eq!(totals_of_texts(&[doubled.clone(), doubled]).groups, both.groups);
}

#[test]
fn node_hours_are_counted_without_unit_column() {
    let text = text_of(CUR);
    let without = totals_of_texts(&[turned(&text, |name| name != "pricing_unit")]);
    assert_eq!(without.nodes, totals_of_texts(&[text]).nodes);
}

#[test]
fn a_file_read_twice_counts_once() {
    let (once, twice) = (totals_of(shop_prod(), &[CUR]), totals_of(shop_prod(), &[CUR, CUR]));
    assert_eq!(once.groups, twice.groups);
    assert_eq!(twice.repeated, once.total());
}
