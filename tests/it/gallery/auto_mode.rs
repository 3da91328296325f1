//! `scenarios/auto-mode`: what its README says.

use nodecast::cloud::BillItem;
use nodecast::domain::Money;
use nodecast::report::format;
use nodecast::world::record::{NodeEnd, NodeOrigin};

use super::{Run, has_rows, runs};

/// What lines of these kinds come to.
pub(super) fn part(run: &Run, items: &[BillItem]) -> f64 {
    let lines = run.outcome.bill.lines.iter().filter(|line| items.contains(&line.item));
    lines.map(|line| line.amount).sum::<Money>().as_f64()
}

fn drifted(run: &Run) -> usize {
    run.outcome.record.nodes.iter().filter(|node| node.end == Some(NodeEnd::Drifted)).count()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn auto_mode_fee_is_partly_offset() {
    let all @ [auto, karpenter, groups] = &runs::<3>("auto-mode");
    has_rows("auto-mode", all, |run| {
        let money = |items: &[BillItem]| format::money(&run.summary.about.currency, part(run, items));
        [
            run.cost(),
            money(&[BillItem::Instance]),
            money(&[BillItem::AutoModeFee]),
            money(&[BillItem::RootVolume]),
            format::whole(drifted(run) as f64),
        ]
    });
    let fee = part(auto, &[BillItem::AutoModeFee]);
    let instances = part(auto, &[BillItem::Instance]);
    assert!((fee / instances - 0.12).abs() < 0.001, "{fee} of {instances}");
    assert_eq!((part(karpenter, &[BillItem::AutoModeFee]), part(groups, &[BillItem::AutoModeFee])), (0.0, 0.0));
    assert!(
        part(auto, &[BillItem::Instance]) < part(karpenter, &[BillItem::Instance]),
        "no agents, and no nodes for Karpenter"
    );
    assert!(drifted(auto) > 0 && drifted(karpenter) == 0, "one Wednesday, one image");
    let pools = |node: &nodecast::world::record::NodeFacts| matches!(node.origin, NodeOrigin::NodePool(_));
    assert!(auto.outcome.record.nodes.iter().all(pools));
}
