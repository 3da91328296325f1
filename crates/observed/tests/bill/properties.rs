//! What holds of any bytes and of any lines.

use std::sync::LazyLock;

use nodecast_observed::bill::{
    Amount, BillLine, ChargeKind, ComparedBill, Ledger, ReadOptions, Sums, chain, read_bytes,
};
use proptest::prelude::*;

use super::rules::line;
use super::{CUR, FOCUS, bytes_of, shop_prod, text_of};

static SAMPLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let first = |name, lines| text_of(name).lines().take(lines).collect::<Vec<_>>().join("\n").into_bytes();
    let whole = [
        "cost-explorer.csv",
        "assets-2026-10-13.json",
        "allocation-namespace-2026-10-13.json",
        "legacy-cur-one-hour.csv",
    ];
    let mut samples = vec![first(CUR, 6), first(FOCUS, 6), bytes_of(CUR)];
    samples.extend(whole.map(bytes_of));
    samples
});

/// Reads bytes into a ledger; whatever comes of it but a panic is well.
fn read(bytes: &[u8]) {
    let mut ledger = Ledger::new(shop_prod());
    let contents = read_bytes("bill", bytes, &ReadOptions::default(), &mut |line| ledger.take(line));
    if let (Ok(_), Ok(totals)) = (contents, ledger.finish()) {
        assert_eq!(ComparedBill::amortised(&totals).total(), totals.total().amortised);
    }
}

/// A sample with some bytes overwritten, cut at a place.
fn spoilt(sample: &[u8], changes: &[(usize, u8)], cut: usize) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for (at, byte) in changes {
        let at = at % bytes.len();
        bytes[at] = *byte;
    }
    // One in two is left whole.
    if cut.is_multiple_of(2) {
        bytes.truncate(cut % (bytes.len() + 1));
    }
    bytes
}

fn changes() -> impl Strategy<Value = Vec<(usize, u8)>> {
    prop::collection::vec(
        (any::<usize>(), prop_oneof![any::<u8>(), prop::sample::select(&b",\"\n{}[]:0eE.-"[..])]),
        0..12,
    )
}

fn lines() -> impl Strategy<Value = Vec<BillLine>> {
    let kinds =
        [ChargeKind::Usage, ChargeKind::PlanCovered, ChargeKind::Negation, ChargeKind::Tax, ChargeKind::CommitmentFee];
    let types = ["BoxUsage:m5.large", "SpotUsage:m5.large", "EBS:VolumeUsage.gp3", "NatGateway-Bytes", "new:thing"];
    let names = ["shop-prod", "shop-dev", ""];
    let picks = (prop::sample::select(kinds.to_vec()), 0..types.len(), 0..names.len());
    let amount = -1_000_000_000_000_000_i128..1_000_000_000_000_000;
    let one = (picks, amount.clone(), amount, any::<bool>());
    prop::collection::vec(one, 1..40).prop_map(move |picked| {
        let of = |((kind, usage_type, name), unblended, amortised, whole): (
            (ChargeKind, usize, usize),
            i128,
            i128,
            bool,
        )| {
            let mut charge = line(types[usage_type], "", &[("aws_eks_cluster_name", names[name])]);
            charge.kind = kind;
            charge.unblended = Amount::from_picos(unblended);
            charge.amortised = Amount::from_picos(amortised);
            charge.unit = if whole { "Hrs" } else { "GB" }.to_owned();
            charge
        };
        picked.into_iter().map(of).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 4 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read(&bytes);
    }

    #[test]
    fn no_spoilt_bill_makes_a_reader_panic(sample in 0..7_usize, changes in changes(), cut in any::<usize>()) {
        read(&spoilt(&SAMPLES[sample], &changes, cut));
    }

    #[test]
    fn amounts_are_read_back_as_written(picos in -1_000_000_000_000_000_000_000_000_000_i128..1_000_000_000_000_000_000_000_000_000) {
        let amount = Amount::from_picos(picos);
        prop_assert_eq!(Amount::parse(&amount.to_string()), Some(amount));
    }

    #[test]
    fn no_text_makes_an_amount_panic(text in "[-+0-9.eE]{0,60}|.{0,20}") {
        let _ = Amount::parse(&text);
    }

    #[test]
    fn groups_rules_and_others_hold_every_line_once(charges in lines(), percent in 0..=100_u32) {
        let mut cluster = shop_prod();
        cluster.shares = vec![nodecast_observed::bill::Share { pattern: "nat".to_owned(), millionths: percent * 10_000 }];
        cluster.resources.insert("i-sure".to_owned());
        let mut ledger = Ledger::new(cluster);
        let mut all = charges;
        all.push(line("BoxUsage:m5.large", "i-sure", &[]));
        for charge in &all {
            ledger.take(charge).unwrap();
        }
        let totals = ledger.finish().unwrap();
        let in_rules = Sums::from_sums(totals.rules.values());
        let in_groups = Sums::from_sums(totals.groups.values().chain(totals.left_out.values()));
        prop_assert_eq!(in_rules, in_groups);
        prop_assert_eq!(totals.total(), Sums::from_sums(totals.days.values()));
        let everything = totals.everything();
        prop_assert_eq!(everything.lines, all.len() as u64);
        prop_assert_eq!(everything.unblended, all.iter().map(|line| line.unblended).sum::<Amount>());
        prop_assert_eq!(everything.amortised, all.iter().map(|line| line.amortised).sum::<Amount>());

        let side = ComparedBill::amortised(&totals);
        prop_assert_eq!(side.total(), totals.total().amortised);
        let chain = chain(&side, &ComparedBill::default());
        prop_assert_eq!(chain.observed - chain.links.iter().map(|link| link.amount).sum::<Amount>(), chain.simulated);
    }
}

/// A byte on which the library of Parquet panics.
#[cfg(feature = "parquet")]
#[test]
fn a_file_that_contradicts_itself_is_an_error() {
    let bytes = spoilt(&bytes_of("focus12-one-hour.snappy.parquet"), &[(7, 0)], 1);
    let error = super::lines_of("bill", &bytes).map(|_| ()).unwrap_err();
    assert!(error.message().contains("is damaged"), "{error}");
    assert!(error.message().contains("contradicts itself"), "{error}");
}

#[cfg(feature = "parquet")]
proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 2 / 5, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_spoilt_parquet_makes_a_reader_panic(changes in changes(), cut in any::<usize>()) {
        read(&spoilt(&bytes_of("focus12-one-hour.snappy.parquet"), &changes, cut));
    }
}
