//! What changed between neighbouring releases of Karpenter, each as one case with the answer of the older and of the newer
//! release: the rules of docs/karpenter-releases.md, asked of the packer, of the methods of disruption, or of whole stories.
//!
//! `ROWS` in each file are the rules that it shows.

mod launches;
mod lives;
mod removal;

use nodecast::domain::KarpenterVersion;

/// The document with the rules.
const DOCUMENT: &str = include_str!("../../docs/karpenter-releases.md");
/// Rules that `crates/karpenter/tests/karpenter/releases.rs` shows.
const PACKING: &[&str] = &[
    "P2", "P3", "P4", "P5", "P6", "P9", "P10", "P11", "P14", "P16", "P18", "P20", "P21", "P25", "P26", "I2", "I3", "I5",
];
/// Rules of which cases are beside the code: launches in `crates/karpenter/src/selection/current.rs`, the time that a command may take in
/// `crates/karpenter/src/machine/queue.rs`; or in `tests/it/node_overlays.rs`,
/// `tests/it/capacity_buffers.rs`, `tests/it/karpenter_settings.rs` and `tests/it/daemon_admission.rs`.
const BESIDE_THE_CODE: [&str; 8] = ["I1", "I9", "I11", "D20", "D25", "P22", "P23", "P24"];
/// Rules that are reproduced and that no case shows.
const NOT_SHOWN: [&str; 3] = ["P1", "P13", "D2"];

#[test]
fn every_reproduced_release_rule_is_tested() {
    let shown = [PACKING, launches::ROWS, lives::ROWS, removal::ROWS, &BESIDE_THE_CODE].concat();
    let rules = DOCUMENT.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    let rules: Vec<(&str, &str)> = rules.filter(|(rule, _)| is_rule(rule)).collect();
    assert!(rules.len() > 40, "{rules:?}");
    for (rule, rest) in rules {
        let reproduced = rest.ends_with("| yes");
        let named = NOT_SHOWN.contains(&rule);
        assert!(reproduced || rest.ends_with("| no"), "{rule}: {rest}");
        assert_eq!(reproduced, shown.contains(&rule) || named, "{rule}");
    }
}

fn is_rule(text: &str) -> bool {
    let (kind, number) = text.split_at(text.len().min(1));
    ["P", "I", "D", "L"].contains(&kind) && number.parse::<u8>().is_ok()
}

/// A release by its name.
fn release(text: &str) -> KarpenterVersion {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}
