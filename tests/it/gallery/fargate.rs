//! `scenarios/fargate`: what its README says.

use nodecast::cloud::BillItem;
use nodecast::report::format;

use super::auto_mode::part;
use super::{Run, has_rows, runs};

const FARGATE: [BillItem; 3] = [BillItem::FargateCpu, BillItem::FargateMemory, BillItem::FargateStorage];

#[test]
fn jobs_are_cheaper_on_fargate_or_not_and_what_never_stops_is_dearer_there() {
    let all @ [nodes, jobs, everything] = &runs::<3>("fargate");
    let wait = |run: &Run| run.longest_wait(&["reports/hourly"], 10);
    has_rows("fargate", all, |run| {
        let money = |amount: f64| format::money(&run.summary.about.currency, amount);
        [run.cost(), money(part(run, &[BillItem::Instance])), money(part(run, &FARGATE)), format::span(wait(run))]
    });
    let cost = |run: &Run| run.summary.cost.total;
    assert_eq!(part(nodes, &FARGATE), 0.0);
    assert!(part(jobs, &FARGATE) > 0.0 && part(everything, &FARGATE) > 2.0 * part(jobs, &FARGATE));
    assert!(cost(everything) > cost(jobs), "the service runs all day, and its nodes were full");
    assert!(part(everything, &[BillItem::Instance]) < part(jobs, &[BillItem::Instance]));
    assert!(wait(jobs) > 25.0 && wait(jobs) < 160.0, "{}", wait(jobs));
}
