//! Every format that is read, by its header.

use nodecast_observed::bill::{
    Amount, Asset, CapacityType, ChargeKind, Contents, Format, Group, PricingTerm, ReadOptions, read_bytes, read_file,
};

use super::{CUR, CUR_PARQUET, FOCUS, bytes_of, lines_of, path, read_of, shop_prod, text_of, totals_of};

fn amount(text: &str) -> Amount {
    Amount::parse(text).unwrap()
}

#[test]
fn bill_format_is_detected_by_header() {
    for (file, format) in [
        (CUR, Format::Cur2),
        (FOCUS, Format::Focus("1.2")),
        ("legacy-cur-one-hour.csv", Format::LegacyCur),
        ("focus10-one-hour.csv", Format::Focus("1.0")),
    ] {
        let (lines, contents) = lines_of("bill.txt", &bytes_of(file)).unwrap();
        let read = read_of(contents);
        assert_eq!((read.format, read.rows, read.outside), (format, lines.len() as u64, 0), "{file}");
        assert_eq!(read.currency, "USD");
    }
}

#[cfg(feature = "parquet")]
#[test]
fn parquet_holds_the_same_lines_as_csv() {
    let (mut columnar, contents) = lines_of("a", &bytes_of(CUR_PARQUET)).unwrap();
    let (mut csv, _) = lines_of("b", &bytes_of(CUR)).unwrap();
    assert_eq!(read_of(contents).format, Format::Cur2);
    // Which columns a row is hashed over is the file's affair.
    columnar.iter_mut().chain(&mut csv).for_each(|line| line.fingerprint = 0);
    assert_eq!(columnar, csv);

    let (lines, contents) = lines_of("a", &bytes_of("focus12-one-hour.snappy.parquet")).unwrap();
    assert_eq!(read_of(contents).rows, 18);
    let tags = &lines.iter().find(|line| line.usage_type == "SpotUsage:m5zn.2xlarge").unwrap().tags;
    assert_eq!(tags["kubernetes.io/cluster/shop-prod"], "owned");
}

#[cfg(not(feature = "parquet"))]
#[test]
fn missing_parquet_support_suggests_csv() {
    let error = lines_of("a", &bytes_of(CUR_PARQUET)).unwrap_err();
    assert!(error.way_out().unwrap().contains("gzip - text/csv"));
}

#[test]
fn one_hour_is_the_same_in_four_formats() {
    let hour = (text_instant("2026-10-13T15:00:00Z"), text_instant("2026-10-13T16:00:00Z"));
    let options = ReadOptions { window: Some(hour), ..ReadOptions::default() };
    let of = |file: &str| {
        let mut ledger = nodecast_observed::bill::Ledger::new(shop_prod());
        read_file(&path(file), &options, &mut |line| ledger.take(line)).unwrap();
        ledger.finish().unwrap()
    };
    let whole = of(CUR);
    for file in [FOCUS, "legacy-cur-one-hour.csv", "focus10-one-hour.csv"] {
        let other = of(file);
        let amortised = |totals: &nodecast_observed::bill::Totals| -> Vec<_> {
            totals.groups.iter().map(|(group, sums)| (group.clone(), sums.lines, sums.amortised, sums.billed)).collect()
        };
        assert_eq!(amortised(&other), amortised(&whole), "{file}");
        assert_eq!(other.everything().amortised, whole.everything().amortised, "{file}");
    }
}

fn text_instant(text: &str) -> jiff::Timestamp {
    text.parse().unwrap()
}

#[test]
fn window_and_account_filters_count_excluded_rows() {
    let window = (text_instant("2026-10-13T15:00:00Z"), text_instant("2026-10-13T16:00:00Z"));
    let mut options = ReadOptions { window: Some(window), ..ReadOptions::default() };
    options.accounts.insert("111122223333".to_owned());
    let mut lines = 0;
    let contents = read_file(&path(CUR), &options, &mut |line| {
        assert_eq!((line.start, line.account.as_str()), (window.0, "111122223333"));
        lines += 1;
        Ok(())
    });
    let read = read_of(contents.unwrap());
    assert_eq!((read.rows, read.outside, read.span), (458, 458 - lines, Some(window)));
    assert_eq!(lines, 17);
}

#[test]
fn columns_and_rows_may_come_in_any_order() {
    let text = text_of(CUR);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<String> = reader.headers().unwrap().iter().rev().map(str::to_owned).collect();
    let mut rows: Vec<csv::StringRecord> = reader.records().map(|row| row.unwrap()).collect();
    rows.reverse();
    let mut writer = csv::Writer::from_writer(vec![]);
    writer.write_record(&header).unwrap();
    for row in &rows {
        writer.write_record(row.iter().rev()).unwrap();
    }
    let reversed = writer.into_inner().unwrap();
    let mut ledger = nodecast_observed::bill::Ledger::new(shop_prod());
    read_bytes("a", &reversed, &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    assert_eq!(ledger.finish().unwrap(), totals_of(shop_prod(), &[CUR]));
}

#[test]
fn bom_and_crlf_do_not_change_bill() {
    let text = format!("\u{feff}{}", text_of(CUR).replace('\n', "\r\n"));
    assert_eq!(lines_of("a", text.as_bytes()).unwrap(), lines_of("a", text_of(CUR).as_bytes()).unwrap());
}

#[test]
fn compressed_parts_in_one_file_are_one_text() {
    // Two gzip members, as `cat a.gz b.gz` makes them.
    let (text, half) = (text_of(CUR), text_of(CUR).len() / 2);
    let mut joined = Vec::new();
    for part in [&text[..half], &text[half..]] {
        let mut encoder = flate2::write::GzEncoder::new(&mut joined, flate2::Compression::fast());
        std::io::Write::write_all(&mut encoder, part.as_bytes()).unwrap();
        encoder.finish().unwrap();
    }
    assert_eq!(lines_of("a", &joined).unwrap().0.len(), 458);
}

/// A report of the columns that are needed, with these rows: line type, service, usage type, amount, unblended cost, then what `more` names.
fn report(more: &[&str], rows: &[&[&str]]) -> String {
    let columns = [
        "line_item_usage_start_date",
        "line_item_usage_end_date",
        "line_item_usage_account_id",
        "line_item_resource_id",
        "resource_tags",
        "line_item_line_item_type",
        "line_item_product_code",
        "line_item_usage_type",
        "line_item_usage_amount",
        "line_item_unblended_cost",
    ];
    let mut text = [&columns[..], more].concat().join(",") + "\n";
    for row in rows {
        text += "2026-10-13T00:00:00Z,2026-10-13T01:00:00Z,1,i-1,{},";
        text += &row.join(",");
        text += "\n";
    }
    text
}

#[test]
fn every_type_of_line_amortises_by_its_rule() {
    let more = [
        "savings_plan_savings_plan_effective_cost",
        "savings_plan_total_commitment_to_date",
        "savings_plan_used_commitment",
        "reservation_reservation_a_r_n",
        "reservation_effective_cost",
        "reservation_unused_amortized_upfront_fee_for_billing_period",
        "reservation_unused_recurring_fee",
    ];
    let rows: [(&[&str], ChargeKind, &str); 15] = [
        (
            &["Usage", "AmazonEC2", "BoxUsage:m5.large", "1", "0.096", "", "", "", "", "", "", ""],
            ChargeKind::Usage,
            "0.096",
        ),
        (
            &[
                "SavingsPlanCoveredUsage",
                "AmazonEC2",
                "BoxUsage:m5.large",
                "1",
                "0.096",
                "0.07",
                "",
                "",
                "",
                "",
                "",
                "",
            ],
            ChargeKind::PlanCovered,
            "0.07",
        ),
        (
            &["SavingsPlanNegation", "AmazonEC2", "BoxUsage:m5.large", "1", "-0.096", "", "", "", "", "", "", ""],
            ChargeKind::Negation,
            "0",
        ),
        (
            &[
                "SavingsPlanUpfrontFee",
                "ComputeSavingsPlans",
                "ComputeSP:1yrAllUpfront",
                "1",
                "700",
                "",
                "",
                "",
                "",
                "",
                "",
                "",
            ],
            ChargeKind::CommitmentFee,
            "0",
        ),
        (
            &[
                "SavingsPlanRecurringFee",
                "ComputeSavingsPlans",
                "ComputeSP:1yrNoUpfront",
                "1",
                "0.08",
                "",
                "23.12",
                "0.07",
                "",
                "",
                "",
                "",
            ],
            ChargeKind::CommitmentFee,
            "0.01",
        ),
        (
            &[
                "SavingsPlanRecurringFee",
                "ComputeSavingsPlans",
                "ComputeSP:1yrPartialUpfront",
                "1",
                "0.04",
                "",
                "0.08",
                "0.07",
                "",
                "",
                "",
                "",
            ],
            ChargeKind::CommitmentFee,
            "0.01",
        ),
        (
            &["DiscountedUsage", "AmazonEC2", "BoxUsage:m5.large", "1", "0", "", "", "", "arn:r", "0.06", "", ""],
            ChargeKind::ReservationCovered,
            "0.06",
        ),
        (
            &["RIFee", "AmazonEC2", "HeavyUsage:m5.large", "744", "44", "", "", "", "arn:r", "", "1.5", "0.5"],
            ChargeKind::CommitmentFee,
            "2",
        ),
        (
            &["Fee", "AmazonEC2", "HeavyUsage:m5.large", "1", "500", "", "", "", "arn:r", "", "", ""],
            ChargeKind::CommitmentFee,
            "0",
        ),
        (
            &["Fee", "AWSMarketplace", "x", "1", "5", "", "", "", "", "", "", ""],
            ChargeKind::Other("Fee".to_owned()),
            "5",
        ),
        (
            &["EdpDiscount", "AmazonEC2", "BoxUsage:m5.large", "1", "-0.01", "", "", "", "", "", "", ""],
            ChargeKind::Discount,
            "-0.01",
        ),
        (&["Tax", "AmazonEC2", "", "1", "3", "", "", "", "", "", "", ""], ChargeKind::Tax, "3"),
        (&["Credit", "AmazonEC2", "", "1", "-3", "", "", "", "", "", "", ""], ChargeKind::Credit, "-3"),
        (&["Refund", "AmazonEC2", "", "1", "-4", "", "", "", "", "", "", ""], ChargeKind::Refund, "-4"),
        (&["Fee", "AWSSupportBusiness", "Dollar", "1", "100", "", "", "", "", "", "", ""], ChargeKind::Support, "100"),
    ];
    let text = report(&more, &rows.each_ref().map(|(cells, ..)| *cells));
    let (lines, _) = lines_of("a", text.as_bytes()).unwrap();
    for (line, (cells, kind, amortised)) in lines.iter().zip(rows) {
        assert_eq!((&line.kind, line.amortised), (&kind, amount(amortised)), "{cells:?}");
    }
}

#[test]
fn pod_split_lines_and_net_prices_are_read() {
    let more = ["split_line_item_parent_resource_id", "line_item_net_unblended_cost", "line_item_availability_zone"];
    let text = report(
        &more,
        &[
            &["Usage", "AmazonEKS", "USW2-EKS-EC2-vCPU-Hours", "0.5", "0", "i-1", "", ""],
            &["Usage", "AmazonEC2", "USW2-SpotUsage:m5.large", "0.5", "0.02", "", "0.018", "us-west-2b"],
        ],
    );
    let (lines, _) = lines_of("a", text.as_bytes()).unwrap();
    assert_eq!(lines[0].kind, ChargeKind::PodShare);
    let spot = &lines[1];
    assert_eq!((spot.usage_type.as_str(), spot.instance_type.as_str()), ("SpotUsage:m5.large", "m5.large"));
    assert_eq!(
        (spot.term, spot.net_unblended, spot.net_amortised),
        (PricingTerm::Spot, Some(amount("0.018")), Some(amount("0.018")))
    );
    assert_eq!(Group::from_line(spot), Group::NodesSpot);
}

#[test]
fn athena_tables_have_one_column_per_tag() {
    let (header, rest) =
        report(&[], &[]).split_once('\n').map(|(header, rest)| (header.to_owned(), rest.to_owned())).unwrap();
    assert!(rest.is_empty());
    let header = header.replace("resource_tags", "resource_tags_aws_eks_cluster_name,resource_tags_user_team");
    let row =
        "2026-10-13 00:00:00.000,2026-10-13 01:00:00.000,1,i-1,shop-prod,,Usage,AmazonEC2,BoxUsage:m5.large,1,0.096";
    let (lines, contents) = lines_of("a", format!("{header}\n{row}\n").as_bytes()).unwrap();
    assert_eq!(read_of(contents).format, Format::LegacyCur);
    assert_eq!(
        lines[0].tags.iter().collect::<Vec<_>>(),
        [(&"aws_eks_cluster_name".to_owned(), &"shop-prod".to_owned())]
    );
    assert_eq!(lines[0].start, text_instant("2026-10-13T00:00:00Z"));
}

#[test]
fn a_table_of_cost_explorer_gives_days() {
    let Contents::CostExplorer(table) = lines_of("a", &bytes_of("cost-explorer.csv")).unwrap().1 else { panic!() };
    assert_eq!((table.grouping.as_str(), table.currency.as_str(), table.days.len()), ("Service", "$", 2));
    assert_eq!(table.columns[4], "Savings Plans for Compute usage");
    assert_eq!((table.total(), table.stated_total), (amount("35.2118"), Some(amount("35.2118"))));
    assert_eq!(table.days[1].start, text_instant("2026-10-13T00:00:00Z"));
    assert_eq!(table.days[1].costs.iter().copied().sum::<Amount>(), table.days[1].total);
}

#[test]
fn allocations_of_opencost_are_read() {
    let contents = lines_of("a", &bytes_of("allocation-namespace-2026-10-13.json")).unwrap().1;
    let Contents::Allocations(allocations) = contents else { panic!() };
    let [system, shop] = allocations.as_slice() else { panic!() };
    assert_eq!((system.name.as_str(), shop.name.as_str()), ("kube-system", "shop"));
    assert_eq!((shop.cpu_core_hours, shop.ram_byte_hours), (amount("237.72361"), amount("440843878627")));
    assert_eq!((shop.load_balancer_cost, shop.total_cost), (amount("0.54"), amount("6.60361")));
    assert_eq!(system.end.as_second() - system.start.as_second(), 86_400);
}

#[test]
fn kubecost_assets_read_as_list_or_single_set() {
    let text = String::from_utf8(bytes_of("assets-2026-10-13.json")).unwrap();
    let Contents::Assets(assets) = lines_of("a", text.as_bytes()).unwrap().1 else { panic!() };
    let nodes: Vec<&Asset> = assets.iter().filter(|asset| asset.node.is_some()).collect();
    assert_eq!((assets.len(), nodes.len()), (3, 2));
    let (steady, spot) = (nodes[0].node.as_ref().unwrap(), nodes[1].node.as_ref().unwrap());
    assert_eq!((steady.instance_type.as_str(), steady.spot, steady.discount), ("m6i.large", false, amount("0.3")));
    assert_eq!((spot.instance_type.as_str(), spot.spot, spot.cpu_core_hours), ("m5zn.2xlarge", true, amount("25.6")));
    assert_eq!((nodes[1].provider_id.as_str(), nodes[1].minutes), ("i-0fe0e8adbc23d1bb8", amount("192")));
    assert_eq!((nodes[0].adjustment, nodes[0].total_cost), (amount("-0.12"), amount("1.48476")));
    assert_eq!(CapacityType::Spot.name(), "spot");

    let one_set = text.replacen("\"data\": [", "\"data\":", 1);
    let end = one_set.rfind(']').unwrap();
    let one_set = format!("{}{}", &one_set[..end], &one_set[end + 1..]);
    assert_eq!(lines_of("a", one_set.as_bytes()).unwrap().1, Contents::Assets(assets));
}

/// An answer with these items in each of its sets.
fn answer(sets: &[&str]) -> String {
    format!("{{\"code\":200,\"data\":[{}]}}", sets.join(","))
}

const DAY: &str = r#""window":{"start":"2026-10-13T00:00:00Z","end":"2026-10-14T00:00:00Z"}"#;

#[test]
fn kubecost_allocations_skip_unmeasured_values() {
    let one = |name: &str, more: &str| format!(r#"{{"{name}":{{{DAY},"totalCost":1.5e-7{more}}}}}"#);
    let sets = [
        one("shop", r#","cpuCost":0.5,"cpuCostAdjustment":-0.125,"ramCost":null"#),
        "null".to_owned(),
        one("__idle__", ""),
    ];
    let text = answer(&sets.each_ref().map(String::as_str));
    let Contents::Allocations(allocations) = lines_of("a", text.as_bytes()).unwrap().1 else { panic!() };
    assert_eq!(allocations.iter().map(|item| item.name.as_str()).collect::<Vec<_>>(), ["shop", "__idle__"]);
    assert_eq!((allocations[0].cpu_cost, allocations[0].ram_cost), (amount("0.375"), Amount::ZERO));
    assert_eq!(allocations[1].total_cost, amount("0.00000015"));
    assert_eq!(allocations[1].start, text_instant("2026-10-13T00:00:00Z"));
}

#[test]
fn kubecost_spot_flag_reads_number_or_boolean() {
    for (stated, spot) in [("0", false), ("1", true), ("0.4", true), ("true", true), ("false", false), ("null", false)]
    {
        let text = answer(&[&format!(r#"{{"n":{{"type":"Node","preemptible":{stated},{DAY},"totalCost":1}}}}"#)]);
        let Contents::Assets(assets) = lines_of("a", text.as_bytes()).unwrap().1 else { panic!() };
        assert_eq!(assets[0].node.as_ref().unwrap().spot, spot, "{stated}");
        assert_eq!(assets[0].name, "n");
    }
}

#[test]
fn what_is_no_node_has_costs_only() {
    let items = ["Disk", "LoadBalancer", "ClusterManagement", "Network", "Cloud"];
    let sets = items.map(|kind| {
        format!(r#"{{"x/{kind}":{{"type":"{kind}","properties":{{"name":"{kind}-1"}},{DAY},"totalCost":2}}}}"#)
    });
    let Contents::Assets(assets) = lines_of("a", answer(&sets.each_ref().map(String::as_str)).as_bytes()).unwrap().1
    else {
        panic!()
    };
    assert_eq!(assets.iter().map(|asset| asset.kind.as_str()).collect::<Vec<_>>(), items);
    assert!(assets.iter().all(|asset| asset.node.is_none() && asset.total_cost == amount("2")));
    assert_eq!(assets[0].name, "Disk-1");
}
