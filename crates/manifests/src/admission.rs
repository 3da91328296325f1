//! What the API server makes of a template before a pod of it exists: defaults of LimitRanges, proxies of service meshes, and network
//! interfaces for pods with security groups of their own.
//!
//! Source: Kubernetes 1.36 `plugin/pkg/admission/limitranger/admission.go` and `pkg/apis/core/v1/defaults.go`; Istio 1.27
//! `manifests/charts/istio-control/istio-discovery/files/injection-template.yaml` and `pkg/kube/inject`; Linkerd 2.18
//! `charts/linkerd-control-plane/values.yaml`.
//!
//! Deviation: a template uses the admission settings of the time when it is applied. In a cluster, each pod uses
//! those of the time of its creation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::common::{metadata, resource_map};
use super::pod::OBJECT;
use super::security_groups::{self, SecurityGroupPolicy};
use super::{Manifests, Namespace, lints};
use nodecast_model::domain::quantity::Quantity;
use nodecast_model::domain::words::counted;
use nodecast_model::domain::workload::ObjectName;
use nodecast_model::domain::{Container, Labels, PodSpec, ResourceName, Resources, Symbol};
use nodecast_model::text::reader::{Reader, Shape};
use nodecast_model::text::tree::Node;
use nodecast_model::text::{InputError, Warning};

static SPEC: Shape =
    Shape { name: "a LimitRange's spec", keys: &["limits"], without_effect: &[], unsupported: &[], strict: false };
static LIMIT: Shape = Shape {
    name: "a limit",
    keys: &["type", "default", "defaultRequest", "min", "max"],
    without_effect: &[],
    unsupported: &[("maxLimitRequestRatio", "it refuses no pod")],
    strict: false,
};

/// What the containers of a namespace get where they state nothing, and what they may ask for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LimitRange {
    /// Namespace and name.
    pub name: ObjectName,
    limits: Resources,
    requests: Resources,
    least: Resources,
    most: Resources,
    least_of_pod: Resources,
    most_of_pod: Resources,
}

impl LimitRange {
    /// What it says of containers: least and most of their requests and limits, and the limit of one that states none.
    pub const fn of_containers(&self) -> [&Resources; 3] {
        [&self.least, &self.most, &self.limits]
    }

    /// Least and most of what the containers of a pod come to together.
    pub const fn of_pods(&self) -> [&Resources; 2] {
        [&self.least_of_pod, &self.most_of_pod]
    }
}

/// A LimitRange object, of which what it says of containers counts.
pub(super) fn limit_range<'s>(reader: &mut Reader<'s>, object: &Node<'s>) -> Result<LimitRange, InputError> {
    let fields = reader.fields(object, &OBJECT)?;
    let name = metadata(reader, fields.get("metadata"))?.name;
    let spec = reader.fields(fields.required(reader, "spec")?, &SPEC)?;
    let none = Resources::new;
    let mut range = LimitRange {
        name,
        limits: none(),
        requests: none(),
        least: none(),
        most: none(),
        least_of_pod: none(),
        most_of_pod: none(),
    };
    for node in spec.optional("limits", |n, what| reader.list(n, what))?.unwrap_or_default() {
        let fields = reader.fields(node, &LIMIT)?;
        let kind = reader.text(fields.required(reader, "type")?, "type")?;
        if kind != "Container" && kind != "Pod" {
            continue;
        }
        let stated = |key: &'static str| -> Result<Resources, InputError> {
            fields.get(key).map_or(Ok(Resources::new()), |node| resource_map(reader, node, key))
        };
        if kind == "Pod" {
            (range.least_of_pod, range.most_of_pod) = (stated("min")?, stated("max")?);
            continue;
        }
        range.limits = stated("default")?;
        range.requests = stated("defaultRequest")?;
        range.least = stated("min")?;
        range.most = stated("max")?;
    }
    // What is not stated follows from the rest, in this order.
    fill(&mut range.limits, &range.most);
    fill(&mut range.requests, &range.limits);
    fill(&mut range.requests, &range.least);
    Ok(range)
}

/// Sets what `resources` lacks.
fn fill(resources: &mut Resources, others: &Resources) {
    for (name, amount) in others.iter() {
        if resources.find(name).is_none() {
            resources.set(name, amount);
        }
    }
}

/// Namespaces, and LimitRanges and SecurityGroupPolicies by namespace.
struct Rules<'m> {
    ranges: BTreeMap<Symbol, Vec<&'m LimitRange>>,
    policies: BTreeMap<Symbol, Vec<&'m SecurityGroupPolicy>>,
    /// Whether nodes have branch interfaces; `None` where no object says so.
    pod_enis: Option<bool>,
    namespaces: BTreeMap<Symbol, &'m Namespace>,
}

/// What happened to templates.
#[derive(Default)]
struct Happened {
    proxies: BTreeMap<&'static str, usize>,
    refused: BTreeSet<String>,
    /// Templates that a SecurityGroupPolicy selects, by whether nodes have branch interfaces.
    with_groups: BTreeMap<Option<bool>, usize>,
}

impl Manifests {
    /// Gives every template what the API server would: the proxy of a mesh, a branch network interface, and the defaults of LimitRanges.
    /// Rules are looked for here and among what `exists` already.
    pub fn admit(&mut self, exists: &[&Self]) -> Vec<Warning> {
        let all = |manifests: &Self| (manifests.limit_ranges.clone(), manifests.namespaces.clone());
        let (ranges, namespaces): (Vec<_>, Vec<_>) = exists.iter().map(|item| all(item)).chain([all(self)]).unzip();
        let (ranges, namespaces) = (ranges.concat(), namespaces.concat());
        let policies: Vec<SecurityGroupPolicy> = exists
            .iter()
            .copied()
            .chain([&*self])
            .flat_map(|manifests| manifests.security_group_policies.clone())
            .collect();
        let said = [&*self].into_iter().chain(exists.iter().rev().copied());
        let pod_enis = said.into_iter().find_map(|manifests| manifests.network_plugin.pod_enis);
        let (by_range, by_policy, by_name) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let mut rules = Rules { ranges: by_range, policies: by_policy, pod_enis, namespaces: by_name };
        for policy in &policies {
            rules.policies.entry(policy.name.namespace).or_default().push(policy);
        }
        for range in &ranges {
            rules.ranges.entry(range.name.namespace).or_default().push(range);
        }
        rules.namespaces.extend(namespaces.iter().map(|namespace| (namespace.name, namespace)));
        let mut happened = Happened::default();
        for (kind, name, template) in self.templates() {
            if let Some(rules) = rules.admit((kind, name), template, &mut happened) {
                *template = Arc::new(rules);
            }
        }
        for pod in &mut self.pods {
            if let Some(rules) = rules.admit(("Pod", pod.name), &pod.spec, &mut happened) {
                pod.spec = rules;
            }
        }
        happened.warnings()
    }

    /// Every template with what has it.
    fn templates(&mut self) -> impl Iterator<Item = (&'static str, ObjectName, &mut Arc<PodSpec>)> {
        let deployments =
            self.deployments.iter_mut().map(|deployment| ("Deployment", deployment.name, &mut deployment.template));
        let sets = self
            .stateful_sets
            .iter_mut()
            .map(|stateful_set| ("StatefulSet", stateful_set.name, &mut stateful_set.template));
        let daemons =
            self.daemon_sets.iter_mut().map(|daemon_set| ("DaemonSet", daemon_set.name, &mut daemon_set.template));
        let jobs = self.jobs.iter_mut().map(|job| ("Job", job.name, &mut job.spec.template));
        let cron_jobs =
            self.cron_jobs.iter_mut().map(|cron_job| ("CronJob", cron_job.name, &mut cron_job.job.template));
        let scaled = self.scaled_jobs.iter_mut().map(|scaled_job| {
            let name = ObjectName { namespace: scaled_job.namespace, name: scaled_job.name };
            ("ScaledJob", name, &mut scaled_job.job.template)
        });
        deployments.chain(sets).chain(daemons).chain(jobs).chain(cron_jobs).chain(scaled)
    }
}

impl Happened {
    fn warnings(self) -> Vec<Warning> {
        let proxies = self.proxies.into_iter().map(|(mesh, count)| {
            let workloads = counted(count as u64, "workload", "workloads");
            let text = format!(
                "{mesh} injects a sidecar into the pods of {workloads}, so they request more than their templates"
            );
            Warning::from_lint(&lints::SIDECAR_PROXY, text)
        });
        let refused = self.refused.into_iter().map(|text| Warning::from_lint(&lints::LIMIT_RANGE_REJECTS, text));
        let with_groups = self.with_groups.into_iter().filter_map(|(enis, count)| about_groups(enis, count));
        proxies.chain(refused).chain(with_groups).collect()
    }
}

/// What is to be said of so many templates that a SecurityGroupPolicy selects.
fn about_groups(pod_enis: Option<bool>, count: usize) -> Option<Warning> {
    let workloads = counted(count as u64, "workload", "workloads");
    let (text, lint) = match pod_enis {
        Some(true) => return None,
        None => (
            format!(
                "SecurityGroupPolicies select the pods of {workloads}, which so request a branch network interface (`vpc.amazonaws.com/pod-eni`): \
                 no DaemonSet `aws-node` says whether `ENABLE_POD_ENI` is on, and it is taken to be"
            ),
            &lints::POD_ENI_ASSUMED,
        ),
        Some(false) => (
            format!(
                "SecurityGroupPolicies select the pods of {workloads}, which request no branch network interface here, for the DaemonSet `aws-node` \
                 has no `ENABLE_POD_ENI: \"true\"`; in a cluster they request one all the same, which no node has then, and wait"
            ),
            &lints::POD_ENI_OFF,
        ),
    };
    Some(Warning::from_lint(lint, text))
}

impl Rules<'_> {
    /// What becomes of a template; nothing if it stays as it is.
    fn admit(&self, (kind, name): (&str, ObjectName), template: &PodSpec, happened: &mut Happened) -> Option<PodSpec> {
        let namespace = self.namespaces.get(&name.namespace).copied();
        let mut changed: Option<PodSpec> = None;
        if let Some((mesh, proxy)) = proxy(template, namespace) {
            *happened.proxies.entry(mesh).or_default() += 1;
            changed.get_or_insert_with(|| template.clone()).containers.push(proxy);
        }
        let mut policies = self.policies.get(&name.namespace).into_iter().flatten();
        if policies.any(|policy| policy.selects(template)) && !security_groups::has_interface(template) {
            *happened.with_groups.entry(self.pod_enis).or_default() += 1;
            if self.pod_enis != Some(false) {
                let or_insert = changed.get_or_insert_with(|| template.clone());
                or_insert.containers.iter_mut().take(1).for_each(security_groups::ask);
            }
        }
        for range in self.ranges.get(&name.namespace).into_iter().flatten() {
            let mut pod_spec = changed.as_ref().unwrap_or(template).clone();
            let init = pod_spec.init_containers.iter_mut().map(|init| &mut init.container);
            pod_spec.containers.iter_mut().chain(init).for_each(|container| limit(container, range));
            if let Some(why) = refused(&pod_spec, range) {
                happened.refused.insert(format!("LimitRange {} rejects the pods of {kind} {name}: {why}", range.name));
                pod_spec.refused = Some(Symbol::new(&format!("LimitRange {}: {why}", range.name)));
            }
            changed = Some(pod_spec);
        }
        let changed = changed.filter(|spec| spec != template);
        if kind != "DaemonSet" {
            return changed;
        }
        let as_written = || template.as_written.clone().or_else(|| Some(Arc::new(template.clone())));
        changed.map(|spec| PodSpec { as_written: as_written(), ..spec })
    }
}

fn all_containers(template: &PodSpec) -> impl Iterator<Item = &Container> {
    template.containers.iter().chain(template.init_containers.iter().map(|init| &init.container))
}

/// Limits that are stated stand in for requests first; then the defaults do.
fn limit(container: &mut Container, range: &LimitRange) {
    let mut requests = container.effective_requests();
    fill(&mut requests, &range.requests);
    fill(&mut container.limits, &range.limits);
    if requests != container.effective_requests() {
        container.requests = requests;
    }
}

/// Why the range admits no pod of the template.
///
/// Source: Kubernetes 1.36 `plugin/pkg/admission/limitranger/admission.go`, `PodValidateLimitFunc`.
fn refused(template: &PodSpec, range: &LimitRange) -> Option<String> {
    refused_container(template, range).or_else(|| {
        let (requests, limits) = (template.requests(), template.limits());
        let below = |name: ResourceName, least: i64| {
            requests.get(name) < least || limits.find(name).is_some_and(|limit| limit < least)
        };
        let below = range.least_of_pod.iter().find(|(name, least)| below(*name, *least));
        let above = |name: ResourceName, most: i64| {
            limits.find(name).is_none_or(|limit| limit > most) || requests.get(name) > most
        };
        let above = range.most_of_pod.iter().find(|(name, most)| above(*name, *most));
        below
            .map(|(name, _)| format!("{} of the pod is below its minimum", name.0))
            .or_else(|| above.map(|(name, _)| format!("{} of the pod is above its maximum", name.0)))
    })
}

fn refused_container(template: &PodSpec, range: &LimitRange) -> Option<String> {
    all_containers(template).find_map(|container| {
        let requests = container.effective_requests();
        let named = |name: ResourceName| format!("container {} of {}", container.name, name.0);
        let below = range.least.iter().find(|(name, least)| requests.get(*name) < *least);
        let above =
            range.most.iter().find(|(name, most)| container.limits.find(*name).is_none_or(|limit| limit > *most));
        let torn = container.limits.iter().find(|(name, limit)| requests.get(*name) > *limit);
        below
            .map(|(name, _)| format!("{} is below its minimum", named(name)))
            .or_else(|| above.map(|(name, _)| format!("{} is above its maximum", named(name))))
            .or_else(|| torn.map(|(name, _)| format!("{} requests more than its default limit", named(name))))
    })
}

/// Namespaces that Istio leaves alone.
const WITHOUT_MESH: [&str; 4] = ["kube-system", "kube-public", "kube-node-lease", "istio-system"];

/// The proxy that a mesh adds to the pods of a template, unless they have one.
fn proxy(template: &PodSpec, namespace: Option<&Namespace>) -> Option<(&'static str, Container)> {
    let (mesh, name, amounts) = if is_in_istio(template, namespace) {
        ("Istio", "istio-proxy", istio_amounts(&template.annotations))
    } else if is_in_linkerd(template, namespace) {
        ("Linkerd", "linkerd-proxy", linkerd_amounts(template, namespace))
    } else {
        return None;
    };
    let has_it = all_containers(template).any(|container| container.name == name);
    let (requests, limits) = amounts;
    if requests.is_empty() && limits.is_empty() {
        return None;
    }
    let proxy = Container { name: name.to_owned(), image: name.to_owned(), requests, limits, ..Container::default() };
    (!has_it && !template.host_network).then_some((mesh, proxy))
}

fn label(labels: &Labels, key: &str) -> Option<&'static str> {
    labels.iter().find(|(this_key, _)| this_key.as_str() == key).map(|(_, value)| value.as_str())
}

/// A pod that says so, or one that does not say otherwise in a namespace that says so.
fn is_in_istio(template: &PodSpec, namespace: Option<&Namespace>) -> bool {
    const INJECT: &str = "sidecar.istio.io/inject";
    let stated = label(&template.labels, INJECT).or_else(|| label(&template.annotations, INJECT));
    let none = Labels::new();
    let this_namespace = namespace.map_or(&none, |namespace| &namespace.labels);
    let left_alone = namespace.is_some_and(|namespace| WITHOUT_MESH.contains(&namespace.name.as_str()));
    let by_namespace = match label(this_namespace, "istio-injection") {
        Some("enabled") => true,
        Some(_) => return false,
        None => label(this_namespace, "istio.io/rev").is_some(),
    };
    !left_alone && stated.map_or(by_namespace, |stated| stated == "true")
}

fn is_in_linkerd(template: &PodSpec, namespace: Option<&Namespace>) -> bool {
    const INJECT: &str = "linkerd.io/inject";
    let by_namespace = || namespace.and_then(|namespace| label(&namespace.annotations, INJECT));
    matches!(label(&template.annotations, INJECT).or_else(by_namespace), Some("enabled" | "ingress"))
}

/// Requests and limits that annotations state under these keys: CPU and memory requested, CPU and memory at most.
fn stated(annotation: impl Fn(&str) -> Option<&'static str>, keys: [&str; 4]) -> (Resources, Resources) {
    let mut amounts = (Resources::new(), Resources::new());
    for (place, key) in keys.into_iter().enumerate() {
        let name = if place % 2 == 0 { ResourceName::CPU } else { ResourceName::MEMORY };
        if let Some(quantity) = annotation(key).and_then(|text| text.parse::<Quantity>().ok()) {
            let amounts = if place < 2 { &mut amounts.0 } else { &mut amounts.1 };
            amounts.set(name, name.amount(quantity));
        }
    }
    amounts
}

/// What Istio's proxy asks for: the defaults, unless an annotation states any of the four; then what they state.
fn istio_amounts(annotations: &Labels) -> (Resources, Resources) {
    const KEYS: [&str; 4] = [
        "sidecar.istio.io/proxyCPU",
        "sidecar.istio.io/proxyMemory",
        "sidecar.istio.io/proxyCPULimit",
        "sidecar.istio.io/proxyMemoryLimit",
    ];
    if KEYS.iter().any(|key| label(annotations, key).is_some()) {
        return stated(|key| label(annotations, key), KEYS);
    }
    (Resources::cpu_memory(100, 128 << 20), Resources::cpu_memory(2_000, 1 << 30))
}

/// What Linkerd's proxy asks for: nothing but what annotations of the pod or its namespace state.
fn linkerd_amounts(template: &PodSpec, namespace: Option<&Namespace>) -> (Resources, Resources) {
    const KEYS: [&str; 4] = [
        "config.linkerd.io/proxy-cpu-request",
        "config.linkerd.io/proxy-memory-request",
        "config.linkerd.io/proxy-cpu-limit",
        "config.linkerd.io/proxy-memory-limit",
    ];
    let by_namespace = |key: &str| namespace.and_then(|namespace| label(&namespace.annotations, key));
    stated(|key| label(&template.annotations, key).or_else(|| by_namespace(key)), KEYS)
}

#[cfg(test)]
mod tests {
    use crate::{Manifests, read_manifests};
    use nodecast_model::domain::PodSpec;
    use nodecast_model::text::Source;

    fn admitted(text: &str) -> (Manifests, Vec<String>) {
        let mut manifests = read_manifests(&Source::new("m.yaml", text)).unwrap();
        let warnings = manifests.admit(&[]);
        (manifests, warnings.iter().map(|warning| warning.message().to_owned()).collect())
    }

    /// A Deployment of the namespace `a` whose container has these resources, with this metadata of its template.
    fn deployment(metadata: &str, resources: &str) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {{ name: web, namespace: a }}\nspec:\n  \
             selector: {{ matchLabels: {{ app: web }} }}\n  template:\n    \
             metadata: {{ labels: {{ app: web }}{metadata} }}\n    \
             spec: {{ containers: [{{ name: web, image: web, resources: {resources} }}] }}\n---\n"
        )
    }

    fn range(limits: &str) -> String {
        format!(
            "apiVersion: v1\nkind: LimitRange\nmetadata: {{ name: r, namespace: a }}\nspec: {{ limits: [{{ type: Container, {limits} }}] }}\n"
        )
    }

    fn asks(manifests: &Manifests) -> (i64, i64) {
        let template: &PodSpec = &manifests.deployments[0].template;
        (template.requests().cpu_milli(), template.requests().memory_bytes() >> 20)
    }

    #[test]
    fn limit_range_sets_missing_defaults() {
        let limits = "defaultRequest: { cpu: 200m }, default: { memory: 256Mi }";
        let (item, warnings) = admitted(&(deployment("", "{}") + &range(limits)));
        assert_eq!((asks(&item), warnings.len()), ((200, 256), 0));
        let (item, _) =
            admitted(&(deployment("", "{ requests: { cpu: 1 }, limits: { memory: 64Mi } }") + &range(limits)));
        assert_eq!(asks(&item), (1_000, 64));
        let (item, _) = admitted(&(deployment("", "{}") + &range("max: { cpu: 2 }, min: { cpu: 100m }")));
        assert_eq!(asks(&item), (2_000, 0));
        let (item, _) = admitted(&(deployment("", "{}") + &range("min: { cpu: 100m }")));
        assert_eq!(asks(&item), (100, 0));
    }

    #[test]
    fn a_limit_range_of_another_namespace_changes_nothing() {
        let elsewhere = range("defaultRequest: { cpu: 200m }").replace("namespace: a", "namespace: b");
        assert_eq!(asks(&admitted(&(deployment("", "{}") + &elsewhere)).0), (0, 0));
    }

    #[test]
    fn what_a_limit_range_refuses_is_told() {
        for (resources, limits, why) in [
            ("{ requests: { cpu: 50m } }", "min: { cpu: 100m }", "is below its minimum"),
            ("{ requests: { cpu: 1 }, limits: { cpu: 4 } }", "max: { cpu: 2 }", "is above its maximum"),
            ("{ requests: { cpu: 3 } }", "default: { cpu: 2 }", "requests more than its default limit"),
        ] {
            let (_, warnings) = admitted(&(deployment("", resources) + &range(limits)));
            assert_eq!(warnings.len(), 1, "{limits}");
            assert!(warnings[0].contains(why), "{}", warnings[0]);
        }
    }

    #[test]
    fn pod_limit_range_checks_pod_level_limits() {
        let of_pods = |limits: &str| range(limits).replace("type: Container", "type: Pod");
        let sized = |pod: &str, container: &str| {
            deployment("", container).replace("spec: { containers", &format!("spec: {{ resources: {pod}, containers"))
        };
        let (small, half) = ("{ limits: { cpu: 900m } }", "{ limits: { cpu: 500m } }");
        for (pod, container, limits, refused) in [
            (small, "{}", "max: { cpu: 1 }", 0),
            ("{ requests: { cpu: 1500m }, limits: { cpu: 2 } }", half, "max: { cpu: 1 }", 1),
            ("{}", half, "max: { cpu: 1 }", 0),
            ("{}", "{}", "max: { cpu: 1 }", 1),
            (small, "{ requests: { cpu: 100m } }", "min: { cpu: 100m }", 0),
            ("{}", "{ requests: { cpu: 50m } }", "min: { cpu: 100m }", 1),
        ] {
            let (_, warnings) = admitted(&(sized(pod, container) + &of_pods(limits)));
            assert_eq!(warnings.len(), refused, "{pod} {container} {limits}: {warnings:?}");
        }
    }

    #[test]
    fn istio_injection_follows_namespace_and_pod() {
        let meshed = "apiVersion: v1\nkind: Namespace\nmetadata: { name: a, labels: { istio-injection: enabled } }\n";
        let plain = meshed.replace("istio-injection: enabled", "team: a");
        let none = meshed.replace("enabled", "disabled");
        let text = "{ requests: { cpu: 1, memory: 1Gi } }";
        let (no, yes) = (
            ", annotations: { sidecar.istio.io/inject: 'false' }",
            ", annotations: { sidecar.istio.io/inject: 'true' }",
        );
        let large = ", annotations: { sidecar.istio.io/proxyCPU: 500m }";
        for (namespace, pod, asked) in [
            (meshed, "", (1_100, 1_152)),
            (meshed, no, (1_000, 1_024)),
            (meshed, large, (1_500, 1_024)),
            (&plain, "", (1_000, 1_024)),
            (&plain, yes, (1_100, 1_152)),
            (&none, yes, (1_000, 1_024)),
        ] {
            let (manifests, warnings) = admitted(&(deployment(pod, text) + namespace));
            assert_eq!((asks(&manifests), warnings.len()), (asked, usize::from(asked.0 > 1_000)), "{namespace} {pod}");
        }
        let mut twice = admitted(&(deployment("", text) + meshed)).0;
        assert!(twice.admit(&[]).is_empty());
        assert_eq!(asks(&twice), (1_100, 1_152));
    }

    #[test]
    fn host_network_pod_gets_no_proxy() {
        let meshed = "apiVersion: v1\nkind: Namespace\nmetadata: { name: a, labels: { istio-injection: enabled } }\n";
        let host = deployment("", "{}").replace("spec: { containers", "spec: { hostNetwork: true, containers");
        assert_eq!(asks(&admitted(&(host + meshed)).0), (0, 0));
    }

    #[test]
    fn linkerds_proxy_asks_for_what_annotations_say() {
        let meshed = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: a\n  annotations: { linkerd.io/inject: enabled, config.linkerd.io/proxy-cpu-request: 20m }\n";
        let (item, warnings) = admitted(&(deployment("", "{ requests: { cpu: 1 } }") + meshed));
        assert_eq!((asks(&item).0, warnings.len()), (1_020, 1));
    }
}
