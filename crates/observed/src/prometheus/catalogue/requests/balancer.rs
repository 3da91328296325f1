//! Requests that an Application Load Balancer counts, by target group, as exporters of CloudWatch show them: no counters, but gauges with the sum
//! over a period that no sample tells, so that it has to be said.
//!
//! Sources: prometheus/cloudwatch_exporter `README.md` ("All metrics are exported as gauges", `period_seconds` "Defaults to 60s", labels in
//! snake case); prometheus-community/yet-another-cloudwatch-exporter `docs/configuration.md` (`period`, `-scraping-interval` 300,
//! `-labels-snake-case`), `aws_alb_*` in releases before the namespace made the name; "CloudWatch metrics for your Application Load Balancer" (sent every
//! 60 seconds, and not at all while no request flows); aws-load-balancer-controller `buildTargetGroupName`
//! (`k8s-%.8s-%.8s-%.10s` of what is alphanumeric in namespace and Service).

use super::super::{Asking, DAY, HOUR, span};
use super::{Producer, Served};
use crate::prometheus::Series;

/// The role of the answer with rates.
pub const ROLE: &str = "requests_alb";
/// The role of the answer that tells how often sums change in an hour.
pub const CHANGES: &str = "alb_changes";

/// The metric, under both names.
const METRIC: &str = "__name__=~\"aws_(applicationelb|alb)_request_count_sum\"";
/// The labels for target group, load balancer and zone, of each exporter.
const LABELS: [[&str; 3]; 3] = [
    ["dimension_TargetGroup", "dimension_LoadBalancer", "dimension_AvailabilityZone"],
    ["dimension_target_group", "dimension_load_balancer", "dimension_availability_zone"],
    ["target_group", "load_balancer", "availability_zone"],
];
/// How much of a name the controller takes over.
const TAKEN_OVER: usize = 8;

pub(super) const PRODUCER: Producer = Producer {
    name: "alb",
    metric: "aws_applicationelb_request_count_sum",
    matchers: &[],
    served: Served::TargetGroup,
    by: "target_group",
    namespace: "",
};

pub(super) fn queries(list: &mut Asking<'_>) {
    let (fine, period) = (list.plan.fine(), list.plan.sum_period);
    let sums: Vec<String> = LABELS.iter().map(|labels| sum(list, *labels)).collect();
    let sums = sums.join(" or ");
    // Where nothing is sent nothing flows, once there has been something.
    let silent: Vec<String> = LABELS
        .iter()
        .map(|[group, balancer, _]| {
            let all = list.selector("", &[METRIC, &format!("{group}!=\"\""), &format!("{balancer}!=\"\"")]);
            format!("count by ({group}) (last_over_time({all}[1d])) * 0")
        })
        .collect();
    list.curve(ROLE, format!("({sums}) / {period} or {}", silent.join(" or ")), fine);
    let whole = span(list.plan.whole());
    let increase = format!("sum_over_time((({sums}) / {period})[{whole}:1m]) * 60");
    list.looking_back("request_increase_alb", increase, DAY);
    let all = list.selector("", &[METRIC]);
    let changes = list.once(format!("changes({all}[1h])"));
    list.looking_back(CHANGES, format!("max({changes})"), HOUR);
}

/// The sum of each target group. CloudWatch has it over all zones and for each beside it: an exporter may show either, or both.
fn sum(list: &Asking<'_>, [group, balancer, zone]: [&str; 3]) -> String {
    let there = [format!("{group}!=\"\""), format!("{balancer}!=\"\"")];
    let of = |zones: String| {
        // An exporter that knows nothing shows what is no number.
        let once = list.once(list.selector("", &[METRIC, &there[0], &there[1], &zones]));
        format!("sum by ({group}) ({once} >= 0)")
    };
    format!("{} or {}", of(format!("{zone}=\"\"")), of(format!("{zone}!=\"\"")))
}

/// The seconds that the sums of a query of rates were taken to be over.
pub fn period_of(query: &str) -> Option<f64> {
    query.split_once(") / ")?.1.split_once(' ')?.0.parse().ok()
}

/// Whether a target group may be of a Service of this namespace and name.
pub fn is_behind(series: &Series, namespace: &str, name: &str) -> bool {
    let group =
        LABELS.iter().map(|[group, ..]| series.label(group)).find(|label| !label.is_empty()).unwrap_or_default();
    let mut parts = group.split('/').nth(1).unwrap_or_default().split('-');
    parts.next() == Some("k8s")
        && parts.next() == Some(&taken_over(namespace))
        && parts.next() == Some(&taken_over(name))
        && parts.next().is_some()
}

/// What the controller takes over of a name.
fn taken_over(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(TAKEN_OVER).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{CHANGES, ROLE, is_behind, period_of};
    use crate::prometheus::{Plan, Series};

    #[test]
    fn load_balancer_sums_are_divided_by_period() {
        for period in [60, 300] {
            let mut plan = Plan::of_window(1_791_849_600, 1_791_849_600 + 86_400).unwrap();
            assert_eq!(plan.sum_period, 60);
            plan.sum_period = period;
            let list = plan.queries();
            let query = |role: &str| list.queries.iter().find(|query| query.role() == role).unwrap().query.clone();
            assert_eq!(period_of(&query(ROLE)).map(|period| period as i64), Some(period));
            let increase = query("request_increase_alb");
            assert!(increase.contains(&format!(" / {period})[1d:1m]) * 60")), "{increase}");
            // A gauge is no counter.
            assert!(!query(ROLE).contains("rate(") && !increase.contains("increase("));
            assert!(query(CHANGES).starts_with("max(changes("));
        }
    }

    #[test]
    fn target_group_name_identifies_its_service() {
        let series = |label: &str, group: &str| Series {
            labels: BTreeMap::from([(label.to_owned(), group.to_owned())]),
            samples: Vec::new(),
        };
        let group = "targetgroup/k8s-shopprod-webfront-0123456789/6d0ecf831eec9f09";
        for label in ["dimension_TargetGroup", "dimension_target_group", "target_group"] {
            assert!(is_behind(&series(label, group), "shop-prod", "web-frontend"));
            assert!(!is_behind(&series(label, group), "shop-prod", "web"));
            assert!(!is_behind(&series(label, "targetgroup/by-hand/6d0ecf831eec9f09"), "by", "hand"));
        }
    }
}
