//! Bills that cannot be read, and what is said of them.

use nodecast_observed::bill::{Ledger, ReadOptions, Share, read_bytes, read_file};

use super::{CUR, FOCUS, bytes_of, lines_of, path, shop_prod, shown, text_of};

/// What is said of the bytes of `bill.csv`.
fn said(bytes: impl AsRef<[u8]>) -> String {
    match lines_of("bill.csv", bytes.as_ref()) {
        Ok((lines, _)) => panic!("{} lines were read", lines.len()),
        Err(error) => shown(&error),
    }
}

/// The first lines of the report with a text in place of another in the third row.
fn spoilt(from: &str, to: &str) -> Vec<u8> {
    let text = text_of(CUR);
    let mut lines: Vec<String> = text.lines().take(5).map(str::to_owned).collect();
    assert!(lines[3].contains(from), "{from} is not in {}", lines[3]);
    lines[3] = lines[3].replacen(from, to, 1);
    lines.join("\n").into_bytes()
}

const DAY: &str = r#""start":"2026-10-13T00:00:00Z","end":"2026-10-14T00:00:00Z""#;

macro_rules! mistakes {
    ($($name:ident: $bytes:expr;)*) => {
        $(#[test] fn $name() { let said = said(&$bytes); insta::assert_snapshot!(said); })*
    };
}

mistakes! {
    nothing_at_all: b"";
    white_space_only: b"\n\n  \n";
    another_table: b"date,amount\n2026-10-13,5\n";
    a_spreadsheet_in_utf_16: b"\xff\xfed\0a\0";
    a_zip_archive: b"PK\x03\x04rest";
    a_header_and_no_row: text_of(CUR).lines().next().unwrap().as_bytes();
    a_column_is_missing: text_of(CUR).replacen("line_item_unblended_cost", "line_item_blended_cost", 1).as_bytes();
    a_column_is_there_twice: text_of(CUR).replacen("line_item_unblended_rate", "line_item_unblended_cost", 1).as_bytes();
    focus_of_another_cloud: text_of(FOCUS).replace(",AWS,AWS,", ",Microsoft,Microsoft,").as_bytes();
    focus_without_columns_of_aws: text_of(FOCUS).replace("x_", "y_").as_bytes();
    an_amount_that_is_none: spoilt("0.0021505376", "0,0021505376$");
    an_amount_in_words: spoilt("0.08,0.0021505376", "0.08,cheap");
    no_cost: spoilt("0.08,0.0021505376", "0.08,");
    an_instant_that_is_none: spoilt("Usage,2026-10-13T00:00:00Z", "Usage,13.10.2026");
    an_end_before_the_begin: spoilt("2026-10-13T01:00:00Z,AmazonEC2", "2026-10-12T01:00:00Z,AmazonEC2");
    tags_that_are_cut_off: spoilt(r#"""shop-prod""}""#, r#"""shop-pr""#);
    two_currencies: spoilt("USD", "EUR");
    cut_off_within_a_row: text_of(CUR).as_bytes()[..2_000];
    an_open_quote: [text_of(CUR).lines().next().unwrap().as_bytes(), b"\n\"", &vec![b'x'; 20 << 20]].concat();
    not_utf_8: { let mut bytes = spoilt("Amazon", "Omazon"); let at = bytes.iter().rposition(|&b| b == b'O').unwrap(); bytes[at] = 0xff; bytes };
    cut_off_within_the_compressed_file: bytes_of(CUR)[..9_000];
    compressed_and_damaged: { let mut bytes = bytes_of(CUR); bytes[9_000] ^= 0x55; bytes[9_001] ^= 0xaa; bytes };
    cost_explorer_with_weeks: b"Service,EC2($),Total costs($)\nService total,1,1\nWeek 41,1,1\n";
    cost_explorer_without_a_day: b"Service,EC2($),Total costs($)\nService total,1,1\n";
    cost_explorer_from_a_spreadsheet: b"Service,EC2($),Total costs($)\n2026-10-13,\"1,5\",1\n";
    json_of_something_else: b"{\"items\": []}";
    json_that_is_a_list: b"[{\"shop\": {}}]";
    json_that_breaks_off: b"{\"code\": 200, \"data\": [{\"shop\": {\"cpuCoreHours\": 1";
    opencost_answers_with_an_error: b"{\"code\": 400, \"message\": \"invalid window\"}";
    opencost_answers_with_nothing: b"{\"code\": 200, \"data\": [{}]}";
    opencost_without_an_instant: b"{\"code\": 200, \"data\": [{\"shop\": {\"cpuCoreHours\": 1, \"totalCost\": 1}}]}";
    opencost_with_text_for_a_number:
        b"{\"data\": [{\"shop\": {\"start\": \"2026-10-13T00:00:00Z\", \"end\": \"2026-10-14T00:00:00Z\",\n\"cpuCoreHours\": \"many\", \"totalCost\": 1}}]}";
    opencost_without_its_total: format!(r#"{{"data":[{{"shop":{{"cpuCoreHours":1,{DAY}}}}}]}}"#);
    opencost_with_two_answers: b"{\"code\": 200, \"data\": [{}]}\n---\n{\"code\": 200, \"data\": [{}]}";
    opencost_nested_without_end: "{\"data\":".repeat(5_000);
    opencost_not_utf_8: b"{\"code\": \xff}";
    a_web_page: b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n";
    semicolons: b"line_item_usage_type;line_item_unblended_cost\nBoxUsage:m5.large;1\n";
    a_header_of_another_release: b"AvailabilityZone,BilledCost,EffectiveCost,x_Thing\n,1,1,\n";
    a_zstd_file: b"\x28\xb5\x2f\xfd\0\0";
    tags_that_are_a_list: spoilt(r#""{""aws_eks_cluster_name"":""shop-prod""}""#, "[]");
    opencost_of_something_else: b"{\"code\": 200, \"data\": [{\"shop\": {\"x\": 1}}]}";
}

#[cfg(feature = "parquet")]
mistakes! {
    parquet_that_breaks_off: bytes_of(super::CUR_PARQUET)[..30_000];
    parquet_within_gzip: gzipped(&bytes_of(super::CUR_PARQUET));
}

#[cfg(feature = "parquet")]
fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut encoder, bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn files_that_are_none() {
    let mut ignore = |_: &nodecast_observed::bill::BillLine| Ok(());
    let folder = read_file(path("").as_path(), &ReadOptions::default(), &mut ignore).unwrap_err();
    assert!(folder.message().ends_with("this is a folder"), "{folder}");
    let missing = read_file(&path("missing.csv"), &ReadOptions::default(), &mut ignore).unwrap_err();
    assert!(missing.message().contains("missing.csv: cannot be read"), "{missing}");
}

#[test]
fn a_cluster_that_nothing_names() {
    let mut cluster = shop_prod();
    cluster.name = "shop-pord".to_owned();
    let mut ledger = Ledger::new(cluster);
    read_file(&path(CUR), &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    insta::assert_snapshot!(shown(&ledger.finish().unwrap_err()));
}

#[test]
fn two_files_in_two_currencies() {
    let mut ledger = Ledger::new(shop_prod());
    let euro = text_of(CUR).replace(",USD,", ",EUR,");
    read_file(&path(CUR), &ReadOptions::default(), &mut |line| ledger.take(line)).unwrap();
    let error = read_bytes("euro.csv", euro.as_bytes(), &ReadOptions::default(), &mut |line| ledger.take(line));
    insta::assert_snapshot!(shown(&error.unwrap_err()));
}

#[test]
fn covered_usage_without_its_effective_cost() {
    let text = text_of(CUR).replacen("savings_plan_savings_plan_effective_cost", "x", 1);
    insta::assert_snapshot!(said(&text));
}

#[test]
fn a_share_that_is_none() {
    insta::assert_snapshot!(shown(&Share::parse("nat=half").unwrap_err()));
}

#[test]
fn error_line_numbers_match_for_crlf_and_lf() {
    let text = text_of(CUR).replace('\r', "");
    let spoilt: Vec<&str> = text.lines().take(4).collect();
    let spoilt = spoilt.join("\n") + "\nhalf a row";
    for text in [spoilt.clone(), spoilt.replace('\n', "\r\n")] {
        assert!(said(&text).starts_with("bill.csv:5: "), "{}", said(&text));
        let wrong = text.replacen("0.0021505376", "cheap", 1);
        assert!(said(&wrong).contains("bill.csv:4:"), "{}", said(&wrong));
    }
}
