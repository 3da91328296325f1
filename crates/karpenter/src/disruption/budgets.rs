//! Disruption budgets of NodePools: how many nodes may be away at once, for which reason, at which time of the calendar.
//!
//! Source: Karpenter core v1.13 `pkg/apis/v1/nodepool.go`, `GetAllowedDisruptionsByReason`, `Budget.IsActive`.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use nodecast_model::domain::NodePool;
use nodecast_model::domain::cron::CronSchedule;
use nodecast_model::domain::node_pool::{Budget, DisruptionReason};

/// What a budget that does not apply allows.
const UNLIMITED: i64 = i32::MAX as i64;

/// Nodes of a pool that count for its budgets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NodeCount {
    /// Managed, initialized nodes whose instance is not being terminated.
    pub total: i64,
    /// Those of them that are not Ready or are on their way out.
    pub disrupting: i64,
}

/// How many nodes of a pool may still be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Allowance(pub i64);

impl Allowance {
    /// Takes one, if there is one.
    pub fn take(&mut self) -> bool {
        let there = self.0 > 0;
        self.0 -= i64::from(there);
        there
    }
}

/// How many more nodes of the pool may be disrupted for `reason` at an instant in seconds of Unix time.
pub fn allowed(pool: &NodePool, reason: DisruptionReason, nodes: NodeCount, unix_seconds: i64) -> Allowance {
    Allowance((allowed_nodes(pool, reason, nodes.total, unix_seconds) - nodes.disrupting).max(0))
}

/// How many of `total` nodes may be away at once: the least of the budgets that apply. A schedule that cannot be read makes
/// all budgets of the pool allow nothing.
pub fn allowed_nodes(pool: &NodePool, reason: DisruptionReason, total: i64, unix_seconds: i64) -> i64 {
    let mut least = UNLIMITED;
    for budget in &pool.disruption.budgets {
        let Some(active) = is_active(budget, unix_seconds) else { return 0 };
        let applies = budget.reasons.as_ref().is_none_or(|reasons| reasons.contains(&reason));
        if active && applies {
            least = least.min(budget.nodes.of_rounded_up(total));
        }
    }
    least
}

/// Whether a budget counts at an instant: always without a schedule, else from each hit of its schedule until its duration
/// has passed. `None` if the schedule cannot be read.
pub fn is_active(budget: &Budget, unix_seconds: i64) -> Option<bool> {
    let (Some(text), Some(duration)) = (&budget.schedule, budget.duration) else {
        return Some(budget.schedule.is_none());
    };
    let schedule = CronSchedule::parse_named(text).ok()?;
    let from = Timestamp::from_second(unix_seconds - duration.as_secs()).ok()?;
    let next = schedule.next_after(from, &TimeZone::UTC)?;
    Some(next.as_second() <= unix_seconds)
}

#[cfg(test)]
mod tests {
    use super::{NodeCount, allowed, allowed_nodes, is_active};
    use nodecast_model::domain::SimDuration;
    use nodecast_model::domain::node_pool::{Budget, DisruptionReason, NodePool};
    use nodecast_model::domain::pod::IntOrPercent;

    use DisruptionReason::{Drifted, Empty, Underutilized};

    /// 2024-01-07, a Sunday, at midnight UTC.
    const SUNDAY: i64 = 1_704_585_600;

    fn budget(nodes: IntOrPercent, reasons: &[DisruptionReason]) -> Budget {
        let reasons = (!reasons.is_empty()).then(|| reasons.to_vec());
        Budget { nodes, reasons, schedule: None, duration: None }
    }

    fn scheduled(schedule: &str, hours: i64) -> Budget {
        let duration = Some(SimDuration::from_secs(hours * 3_600));
        Budget { schedule: Some(schedule.to_owned()), duration, ..budget(IntOrPercent::Count(3), &[]) }
    }

    fn pool(budgets: Vec<Budget>) -> NodePool {
        let mut pool = NodePool::named("default");
        pool.disruption.budgets = budgets;
        pool
    }

    #[test]
    fn percentages_round_up_and_what_is_away_counts() {
        for (percent, total, expected) in
            [(10, 1, 1), (10, 9, 1), (10, 10, 1), (10, 11, 2), (5, 10, 1), (0, 10, 0), (100, 10, 10)]
        {
            let pool = pool(vec![budget(IntOrPercent::Percent(percent), &[])]);
            assert_eq!(allowed_nodes(&pool, Empty, total, SUNDAY), expected, "{percent} % of {total}");
        }
        let this_pool = pool(vec![budget(IntOrPercent::Percent(10), &[])]);
        assert_eq!(allowed(&this_pool, Empty, NodeCount { total: 10, disrupting: 10 }, SUNDAY).0, 0);
        let pool = pool(vec![budget(IntOrPercent::Percent(100), &[])]);
        assert_eq!(allowed(&pool, Empty, NodeCount { total: 10, disrupting: 2 }, SUNDAY).0, 8);
    }

    #[test]
    fn the_least_budget_that_names_the_reason_binds() {
        let count = IntOrPercent::Count;
        let pool = pool(vec![
            budget(count(10), &[]),
            budget(count(5), &[Drifted]),
            budget(count(4), &[Empty]),
            budget(count(15), &[Underutilized, Drifted]),
        ]);
        let found = [Empty, Drifted, Underutilized].map(|reason| allowed_nodes(&pool, reason, 100, SUNDAY));
        assert_eq!(found, [4, 5, 10]);
    }

    #[test]
    fn without_active_budget_disruption_is_unlimited() {
        assert_eq!(allowed_nodes(&pool(Vec::new()), Empty, 10, SUNDAY), 2_147_483_647);
        let pool = pool(vec![scheduled("@yearly", 1)]);
        assert_eq!(allowed_nodes(&pool, Empty, 10, SUNDAY), 2_147_483_647);
    }

    #[test]
    fn invalid_budget_schedule_blocks_disruption() {
        for text in ["@wrongly", "0 0 * * tue-mon", "0 0 *"] {
            let pool = pool(vec![budget(IntOrPercent::Count(5), &[]), scheduled(text, 1)]);
            assert_eq!(allowed_nodes(&pool, Empty, 10, SUNDAY), 0, "{text}");
        }
    }

    #[test]
    fn budget_window_lasts_for_its_duration() {
        let daily = scheduled("@daily", 2);
        let at = |seconds: i64| is_active(&daily, SUNDAY + seconds);
        assert_eq!(at(0), Some(true));
        assert_eq!(at(2 * 3_600 - 1), Some(true));
        assert_eq!(at(2 * 3_600), Some(false));
        assert_eq!(at(-1), Some(false));
        assert_eq!(is_active(&scheduled("@daily", 48), SUNDAY + 86_399), Some(true));
        assert_eq!(is_active(&scheduled("30 6 * * SUN", 6), SUNDAY), Some(false));
        assert_eq!(is_active(&scheduled("30 6 * * SUN", 6), SUNDAY + 7 * 3_600), Some(true));
    }
}
