//! EC2 and the bill: faults, failures, quotas, commitments, fees, credits, load balancers, controllers that take no time.

use super::{Draft, perhaps};
use crate::case::{Part, Section};

/// Random ones.
pub fn parts(draft: &mut Draft) -> Vec<Part> {
    let ec2 = |name: &str, text: &str| Part::new(name, vec![(Section::Ec2, format!("{text}\n"))]);
    let all = [
        perhaps(draft, 25, |draft| {
            let at = draft.random.between(5, draft.busy.max(6) - 1);
            let count = draft.random.between(1, 5);
            let text = format!("{{ at: {at}m, spot_interruption: {{ count: {count} }} }}");
            Part::new("interruptions", vec![(Section::Faults, text)])
        }),
        perhaps(draft, 15, |draft| {
            let at = draft.random.between(3, draft.busy / 2);
            let zone = draft.random.pick(&["us-east-1a", "us-east-1b"]);
            let text = format!("{{ at: {at}m, for: {}m, insufficient_capacity: {{ zone: {zone} }} }}", draft.busy - at);
            Part::new(format!("no capacity in {zone}"), vec![(Section::Faults, text)]).holding_up()
        }),
        perhaps(draft, 25, |draft| {
            let text = draft.random.pick(&[
                "billing: { discount: 5%, node_fee: 0.01, public_ipv4: 0.005 }",
                "billing: { savings_plans: [{ commitment: 0.4, discount: 27% }], reserved_instances: [{ type: m5.large, count: 3, per_hour: 0.06 }] }",
                "billing: { nat_gateways: { count: 2 }, cross_zone: {} }",
                "billing: { spot_price: hourly_at_start, control_plane: 0.3 }",
            ]);
            ec2("bill", text)
        }),
        perhaps(draft, 15, |_| {
            let text = "apiVersion: v1
kind: Service
metadata: { name: front, namespace: shop }
spec: { type: LoadBalancer, loadBalancerClass: service.k8s.aws/nlb, selector: { app: s0 } }
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: front, namespace: shop }
spec: { ingressClassName: alb, defaultBackend: { service: { name: front } } }
";
            Part::new("load balancers", vec![(Section::Manifests, text.to_owned())])
        }),
        perhaps(draft, 15, |draft| {
            let (quota, burst) = (draft.random.between(4, 60), draft.random.between(2, 20));
            let text = format!(
                "fargate: {{ vcpu_quota: {quota}, launch_burst: {burst}, profiles: [{{ name: front, selectors: [{{ namespace: shop, labels: {{ app: s0 }} }}] }}] }}\n"
            );
            // The quota may be too small for all.
            Part::new(format!("fargate, quota {quota}"), vec![(Section::Scenario, text)]).holding_up()
        }),
        perhaps(draft, 15, |draft| {
            ec2("credits", draft.random.pick(&["cpu_credits: standard", "cpu_credits: unlimited"]))
        }),
        perhaps(draft, 20, |draft| {
            let text = draft.random.pick(&["capacity: infinite", "capacity: updown"]);
            let part = ec2(text, text);
            if text == "capacity: updown" { part.holding_up() } else { part }
        }),
        perhaps(draft, 20, |draft| {
            ec2(
                "failures",
                draft
                    .random
                    .pick(&["failures: none", "failures: { abort: 2%, never_registers: 2%, internal_error: 2% }"]),
            )
        }),
        perhaps(draft, 20, |draft| {
            let text = draft.random.pick(&["controller_time: none\n", "controller_time: measured\n"]);
            Part::new(text.trim(), vec![(Section::Scenario, text.to_owned())])
        }),
        perhaps(draft, 20, |draft| {
            let minutes = draft.random.between(1, 15);
            Part::new("warm-up", vec![(Section::Scenario, format!("warm_up: {minutes}m\n"))])
        }),
    ];
    all.into_iter().flatten().collect()
}
