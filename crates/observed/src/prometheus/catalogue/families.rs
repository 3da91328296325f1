//! Which families of metrics a Prometheus has: asked before anything else, so that who waits for a long import knows what will be missing.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::super::answer::Answer;
use super::{Asking, PRODUCERS};

/// The role of the question.
pub const FAMILIES_ROLE: &str = "families";

/// A family of metrics, by one that it always has.
struct Family {
    name: &'static str,
    metric: &'static str,
}

const FAMILIES: [Family; 6] = [
    Family { name: "kube-state-metrics", metric: "kube_node_info" },
    Family { name: "its labels of nodes", metric: "kube_node_labels" },
    Family { name: "what pods tolerate", metric: "kube_pod_tolerations" },
    Family { name: "the kubelet's cAdvisor", metric: "container_cpu_usage_seconds_total" },
    Family { name: "Karpenter", metric: "karpenter_build_info" },
    Family { name: "the Cluster Autoscaler", metric: "cluster_autoscaler_scaled_up_nodes_total" },
];

/// Who counts requests, and the counter.
fn counters() -> impl Iterator<Item = (&'static str, &'static str)> {
    // Whoever reports requests of Istio, the metric is one.
    let named = PRODUCERS
        .iter()
        .filter(|producer| producer.name != "istio_source")
        .map(|producer| (producer.name, producer.metric));
    named.chain([("alb", "aws_alb_request_count_sum")])
}

pub(super) fn queries(list: &mut Asking<'_>) {
    let metrics = FAMILIES.iter().map(|family| family.metric).chain(counters().map(|(_, metric)| metric));
    let any = format!("__name__=~\"{}\"", metrics.collect::<Vec<_>>().join("|"));
    let selector = list.selector("", &[&any]);
    let half = list.half();
    list.curve(FAMILIES_ROLE, format!("count by (__name__) ({selector})"), half);
}

/// What the answer to the question says, in a sentence or two.
pub fn recorded(answer: &Answer) -> String {
    let asked = answer.series.iter().flat_map(|series| series.samples.iter().map(|sample| sample.at));
    let instants: BTreeSet<i64> = asked.collect();
    let when = |metric: &str| {
        let series = answer.series.iter().find(|series| series.label("__name__") == metric)?;
        let has = |at: Option<&i64>| series.samples.iter().any(|sample| Some(&sample.at) == at);
        Some(match (has(instants.first()), has(instants.last())) {
            (true, true) => "",
            (false, true) => " (not from the begin)",
            (true, false) => " (not to the end)",
            (false, false) => " (not all the time)",
        })
    };
    let requests = |name: &str| format!("requests by {name}");
    let all = FAMILIES.iter().map(|family| (family.name.to_owned(), when(family.metric)));
    let counters: Vec<(String, Option<&str>)> =
        counters().map(|(name, metric)| (requests(name), when(metric))).collect();
    let somebody_counts = counters.iter().any(|(_, when)| when.is_some());
    let (found, absent): (Vec<_>, Vec<_>) = all.partition(|(_, when)| when.is_some());
    let found: Vec<String> =
        found.into_iter().chain(counters).filter_map(|(name, when)| when.map(|when| format!("{name}{when}"))).collect();
    let mut absent: Vec<String> = absent.into_iter().map(|(name, _)| name).collect();
    absent.extend((!somebody_counts).then(|| "requests by anybody".to_owned()));
    let mut text = "recorded: ".to_owned();
    text += &if found.is_empty() { "nothing of what is asked for".to_owned() } else { found.join(", ") };
    if !absent.is_empty() {
        let _ = write!(text, "; not recorded: {}", absent.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES_ROLE, recorded};
    use crate::prometheus::{Answer, Plan};

    fn answer(series: &[(&str, &[i64])]) -> Answer {
        let series: Vec<String> = series
            .iter()
            .map(|(metric, at)| {
                let values: Vec<String> = at.iter().map(|at| format!("[{at},\"3\"]")).collect();
                format!(r#"{{"metric":{{"__name__":"{metric}"}},"values":[{}]}}"#, values.join(","))
            })
            .collect();
        let text =
            format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{}]}}}}"#, series.join(","));
        Answer::read(&text, "families.json").unwrap()
    }

    #[test]
    fn one_question_at_three_instants_names_every_family() {
        let mut plan = Plan::of_window(1_791_849_600, 1_791_849_600 + 86_400).unwrap();
        plan.matchers.push("cluster=\"a\"".to_owned());
        let list = plan.queries().queries;
        let item = list.iter().find(|item| item.role() == FAMILIES_ROLE).unwrap();
        assert_eq!(item.points(), 3);
        assert!(item.query.starts_with("count by (__name__) ({__name__=~\"kube_node_info|kube_node_labels|"));
        assert!(item.query.ends_with("|aws_alb_request_count_sum\", cluster=\"a\"})"), "{}", item.query);
    }

    #[test]
    fn recorded_metric_families_are_summarised_in_one_line() {
        let this_answer = answer(&[
            ("kube_node_info", &[0, 10, 20]),
            ("container_cpu_usage_seconds_total", &[0, 10, 20]),
            ("karpenter_build_info", &[10, 20]),
            ("istio_requests_total", &[0, 10]),
        ]);
        assert_eq!(
            recorded(&this_answer),
            "recorded: kube-state-metrics, the kubelet's cAdvisor, Karpenter (not from the begin), requests by istio (not to the end); \
             not recorded: its labels of nodes, what pods tolerate, the Cluster Autoscaler"
        );
        assert!(recorded(&answer(&[])).starts_with("recorded: nothing of what is asked for; not recorded: kube-state"));
        assert!(recorded(&answer(&[])).ends_with("requests by anybody"));
    }
}
