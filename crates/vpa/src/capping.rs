//! What a recommendation comes to for one pod: LimitRanges, the policy of the container and its limits narrow it.
//!
//! Source: Vertical Pod Autoscaler 1.7 `pkg/utils/vpa/capping.go`, `pkg/utils/vpa/limit_and_request_scaling.go`.

use super::limits::{Bounds, NamespaceLimits};
use nodecast_model::domain::vertical::{ContainerPolicy, ContainerRecommendation, VerticalPodAutoscaler};
use nodecast_model::domain::{Container, PodSpec, ResourceName, Resources, Symbol};

const CONTROLLED: [ResourceName; 2] = [ResourceName::CPU, ResourceName::MEMORY];

/// What a container requests and where its limits are: as its status states it if it does, else its specification.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerState {
    /// Name.
    pub name: Symbol,
    /// Requests.
    pub requests: Resources,
    /// Limits.
    pub limits: Resources,
}

/// What the containers of a pod request and where their limits are.
pub fn container_states(spec: &PodSpec) -> Vec<ContainerState> {
    let state = |container: &Container| ContainerState {
        name: Symbol::new(&container.name),
        requests: container.effective_requests(),
        limits: container.limits.clone(),
    };
    spec.containers.iter().map(state).collect()
}

/// A recommendation for one pod.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Capped {
    /// What is left of it, in the order of the pod's containers.
    pub containers: Vec<ContainerRecommendation>,
    /// What changed targets, in the order in which it did.
    pub caps: Vec<(Symbol, ResourceName, Cap)>,
}

/// What changes a target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Cap {
    /// The minimum of a LimitRange.
    LimitRangeMin,
    /// The maximum of a LimitRange.
    LimitRangeMax,
    /// `minAllowed` of the container's policy.
    MinAllowed,
    /// `maxAllowed` of it.
    MaxAllowed,
    /// The limit of a container that keeps its limits.
    ContainerLimit,
}

/// That the real program dies of it: the LimitRange of pods changes something in a pod one of whose containers has requests and no
/// recommendation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a container without recommendation would have to change for a LimitRange of pods")]
pub struct CappingCrash;

impl Capped {
    /// What is recommended for a container.
    pub fn container(&self, container: Symbol) -> Option<&ContainerRecommendation> {
        self.containers.iter().find(|recommended| recommended.container == container)
    }
}

/// Narrows a recommendation to what a pod may have. Where there is a LimitRange of pods, containers without recommendation are recommended
/// what they request.
///
/// # Errors
/// Where the real program would die.
pub fn cap(
    recommendation: &[ContainerRecommendation],
    vpa: &VerticalPodAutoscaler,
    pod: &[ContainerState],
    limits: &NamespaceLimits,
) -> Result<Capped, CappingCrash> {
    let mut capped = Capped::default();
    for container in pod {
        let recommended = recommendation.iter().find(|recommended| recommended.container == container.name);
        capped.containers.extend(match recommended {
            Some(recommended) => Some(recommended.clone()),
            None if limits.pod.is_some() && !container.requests.is_empty() => Some(as_requested(container)),
            None => None,
        });
    }
    if let Some(bounds) = &limits.pod {
        cap_pod(&mut capped.containers, pod, bounds)?;
    }
    for recommended in &mut capped.containers {
        let Some(container) = pod.iter().find(|container| container.name == recommended.container) else { continue };
        let rules = Rules { container, policy: vpa.policy_of(container.name), bounds: limits.container.as_ref() };
        let caps = rules.cap(&mut recommended.target);
        capped.caps.extend(caps.into_iter().map(|(name, cap)| (container.name, name, cap)));
        rules.cap(&mut recommended.lower_bound);
        rules.cap(&mut recommended.upper_bound);
    }
    Ok(capped)
}

fn as_requested(container: &ContainerState) -> ContainerRecommendation {
    let mut recommended = ContainerRecommendation::for_container(container.name);
    for name in CONTROLLED {
        if let Some(request) = container.requests.find(name) {
            recommended.target.set(name, request);
        }
    }
    recommended
}

/// The limit that goes with a recommended request: in the proportion of the limit and the request that the container has.
pub fn proportional_limit(
    container: &ContainerState,
    name: ResourceName,
    recommended: i64,
    default: Option<&Resources>,
) -> Option<i64> {
    let limit = limit_of(container, name, default)?;
    let request = container.requests.get(name);
    match recommended {
        0 => None,
        _ if request == 0 || request == limit => Some(recommended),
        _ => Some(in_proportion(limit, recommended, request)),
    }
}

fn limit_of(container: &ContainerState, name: ResourceName, default: Option<&Resources>) -> Option<i64> {
    let stated = |amounts: &Resources| amounts.find(name).filter(|limit| *limit != 0);
    stated(&container.limits).or_else(|| default.and_then(stated))
}

/// `of * part / whole`, rounded down, and no more than fits.
fn in_proportion(of: i64, part: i64, whole: i64) -> i64 {
    let exact = i128::from(of) * i128::from(part) / i128::from(whole);
    i64::try_from(exact).unwrap_or(i64::MAX)
}

type Amounts = fn(&mut ContainerRecommendation) -> &mut Resources;

/// Brings the recommendations of a pod's containers together within bounds, or their limits where they have some.
fn cap_pod(
    containers: &mut [ContainerRecommendation],
    pod: &[ContainerState],
    bounds: &Bounds,
) -> Result<(), CappingCrash> {
    let all: [Amounts; 3] = [|item| &mut item.upper_bound, |item| &mut item.target, |item| &mut item.lower_bound];
    for amounts in all {
        for name in CONTROLLED {
            let Some(ratio) = pod_ratio(containers, (pod, bounds), amounts, name) else { continue };
            if containers.iter_mut().any(|container| amounts(container).is_empty()) {
                return Err(CappingCrash);
            }
            for container in &mut *containers {
                let recommended = amounts(container);
                if let Some(amount) = recommended.find(name) {
                    recommended.set(name, ratio.scale(amount));
                }
            }
        }
    }
    Ok(())
}

/// By what the recommendations of a pod change.
struct Ratio {
    part: i64,
    whole: i64,
    up: bool,
}

impl Ratio {
    fn scale(&self, amount: i64) -> i64 {
        let down = in_proportion(amount, self.part, self.whole);
        let exact = i128::from(amount) * i128::from(self.part) % i128::from(self.whole) == 0;
        if self.up && !exact { down.saturating_add(1) } else { down }
    }
}

fn pod_ratio(
    containers: &mut [ContainerRecommendation],
    (pod, bounds): (&[ContainerState], &Bounds),
    amounts: Amounts,
    name: ResourceName,
) -> Option<Ratio> {
    let (min, max) = (bounds.min.get(name), bounds.max.get(name));
    let (mut recommended, mut limits) = (0_i64, 0_i64);
    for container in containers {
        let amount = amounts(container).get(name);
        recommended = recommended.saturating_add(amount);
        let state = pod.iter().find(|state| state.name == container.container);
        // A LimitRange has no default limit of pods.
        let limit = state.and_then(|state| proportional_limit(state, name, amount, None));
        limits = limits.saturating_add(limit.unwrap_or(0));
    }
    if min <= limits && min <= recommended && (max == 0 || limits <= max) {
        return None;
    }
    if limits == 0 {
        return None;
    }
    if min > recommended {
        return Some(Ratio { part: min, whole: recommended, up: name == ResourceName::CPU });
    }
    let part = if max != 0 && max < limits { max } else { min };
    Some(Ratio { part, whole: limits, up: false })
}

/// What narrows the recommendation of a container.
struct Rules<'r> {
    container: &'r ContainerState,
    policy: Option<&'r ContainerPolicy>,
    bounds: Option<&'r Bounds>,
}

impl Rules<'_> {
    fn cap(&self, amounts: &mut Resources) -> Vec<(ResourceName, Cap)> {
        let mut caps = Vec::new();
        let recommended: Vec<(ResourceName, i64)> = amounts.iter().collect();
        for (name, mut amount) in recommended {
            for (bound, is_least, cap) in self.bounds_of(name) {
                if bound != 0 && (amount < bound) == is_least && amount != bound {
                    amount = bound;
                    caps.push((name, cap));
                }
            }
            amounts.set(name, amount);
        }
        caps
    }

    /// The bounds of a resource, zero for none, in the order in which they take effect, and whether each is a minimum.
    fn bounds_of(&self, name: ResourceName) -> [(i64, bool, Cap); 5] {
        let of_range = |bounds: fn(&Bounds) -> &Resources| self.bounds.map_or(0, |bound| bounds(bound).get(name));
        let min = of_range(|bounds| &bounds.min);
        let of_policy =
            |allowed: fn(&ContainerPolicy) -> &Resources| self.policy.map_or(0, |policy| allowed(policy).get(name));
        let keeps_limits = self.policy.is_some_and(|policy| policy.requests_only);
        [
            (self.request_at(name, min).max(min), true, Cap::LimitRangeMin),
            (self.request_at(name, of_range(|bounds| &bounds.max)), false, Cap::LimitRangeMax),
            (of_policy(|policy| &policy.min_allowed), true, Cap::MinAllowed),
            (of_policy(|policy| &policy.max_allowed), false, Cap::MaxAllowed),
            (if keeps_limits { self.container.limits.get(name) } else { 0 }, false, Cap::ContainerLimit),
        ]
    }

    /// The request with which the limit of the container, which moves in proportion, would be at a bound; zero without a limit.
    fn request_at(&self, name: ResourceName, bound: i64) -> i64 {
        let default = self.bounds.map(|bounds| &bounds.default);
        match (limit_of(self.container, name, default), self.container.requests.get(name)) {
            (None, _) => 0,
            (Some(_), 0) => bound,
            (Some(limit), request) => in_proportion(request, bound, limit),
        }
    }
}
