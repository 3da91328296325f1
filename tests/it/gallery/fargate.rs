//! `scenarios/fargate`: what its README says.

use nodecast::cloud::BillItem;
use nodecast::report::format;

use super::auto_mode::part;
use super::{Run, has_rows, runs};

const FARGATE: [BillItem; 3] = [BillItem::FargateCpu, BillItem::FargateMemory, BillItem::FargateStorage];

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn fargate_saves_only_when_it_replaces_all_nodes() {
    let all @ [nodes, jobs, everything] = &runs::<3>("fargate");
    let wait = |run: &Run| run.longest_wait(&["reports/hourly"], 10);
    has_rows("fargate", all, |run| {
        let money = |amount: f64| format::money(&run.summary.about.currency, amount);
        [run.cost(), money(part(run, &[BillItem::Instance])), money(part(run, &FARGATE)), format::span(wait(run))]
    });
    let cost = |run: &Run| run.summary.cost.total;
    assert!(part(nodes, &FARGATE).abs() < 1e-9);
    assert!(part(jobs, &FARGATE) > 0.0 && part(everything, &FARGATE) > 2.0 * part(jobs, &FARGATE));
    assert!(cost(jobs) > 1.03 * cost(nodes), "the nodes stay, and the Jobs are paid for beside them");
    assert!(cost(everything) < 0.97 * cost(nodes), "neither agents nor room that nobody fits into");
    assert!(part(everything, &[BillItem::Instance]) < part(jobs, &[BillItem::Instance]));
    assert!(wait(jobs) > 25.0 && wait(jobs) < 160.0, "{}", wait(jobs));
}
