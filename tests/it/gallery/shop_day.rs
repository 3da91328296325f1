//! `scenarios/shop-day`: what its README says.

use nodecast::cloud::BillItem;
use nodecast::report::format;

use super::{Run, has_rows, runs};

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn spot_saves_a_third_in_shop_day() {
    let all @ [spot, demand] = &runs::<2>("shop-day");
    let missing = |run: &Run| run.summary.availability.unavailable_pod_minutes;
    has_rows("shop-day", all, |run: &Run| {
        let launches = format::count(run.summary.nodes.launches);
        [run.cost(), format::minutes(missing(run)), format::span(run.slowest()), launches]
    });
    assert!(all.iter().all(|run| run.summary.objectives.iter().all(|objective| objective.met == Some(true))));
    let cost = |run: &Run| run.summary.cost.total;
    assert!(cost(spot) < 0.72 * cost(demand), "{} {}", cost(spot), cost(demand));
    assert!(missing(demand) > 2.0 * missing(spot));
    let item = |run: &Run, item: BillItem| {
        let lines = run.outcome.bill.lines.iter().filter(|line| line.item == item);
        lines.map(|line| line.amount.as_f64()).sum::<f64>()
    };
    assert!(item(demand, BillItem::NatTransfer) > item(demand, BillItem::NatGateway));
    assert!(item(spot, BillItem::NatTransfer) < item(spot, BillItem::NatGateway));
    let longest = spot.longest_wait(&["shop/import"], 30);
    assert!(longest > 40.0, "{longest}");
    assert_eq!(spot.summary.nodes.interruptions, 3);
}
