//! What the API server refuses to controllers that make pods: pods beyond the ResourceQuotas of a namespace, and those that its
//! LimitRanges do not admit. The controller tries again, ever more slowly.
//!
//! Source: Kubernetes 1.36 `staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota`, `pkg/controller/job/job_controller.go`
//! (`DefaultJobApiBackOff`), client-go v0.36 `util/workqueue/default_rate_limiters.go`.
//!
//! What must not live here: which pods a controller wants.
//!
//! Deviation: pods without an owner and pods of a pod trace are not refused. DaemonSets check only LimitRanges. Of
//! claims, only those of StatefulSets are refused, all claims of a pod together. Claims of ephemeral volumes count
//! once they exist.

use std::collections::BTreeMap;

use super::event::{WorkloadEvent, class};
use super::sim::Sim;
use super::vertical::Vertical;
use super::volumes::Volumes;
use crate::cluster::{PodPhase, SpecId};
use crate::domain::pod::ClaimSource;
use crate::domain::quota::{Charge, ClaimCharge, ResourceQuota};
use crate::domain::volumes::{PersistentVolumeClaim, Storage};
use crate::domain::{PodId, PodSpec, SimDuration, SimTime, Symbol, WorkloadId, well_known};
use crate::manifests::Manifests;
use crate::world::record::{EventKind, WorkloadKind};

/// The wait after the first refusal, which doubles; of Jobs.
const BACK_OFF: (SimDuration, SimDuration) = (SimDuration::from_millis(5), SimDuration::from_secs(1));
/// The longest wait; of Jobs.
const LONGEST: (SimDuration, SimDuration) = (SimDuration::from_secs(1_000), SimDuration::from_secs(60));

/// Quotas by namespace, and how often in a row each workload has been refused.
#[derive(Debug, Default)]
pub(super) struct Quotas {
    of: BTreeMap<Symbol, Vec<ResourceQuota>>,
    refused: BTreeMap<WorkloadId, Refused>,
}

/// Refusals in a row.
#[derive(Debug)]
struct Refused {
    count: u32,
    again: SimTime,
}

impl Quotas {
    pub(super) fn new(manifests: &Manifests) -> Self {
        let mut of: BTreeMap<Symbol, Vec<ResourceQuota>> = BTreeMap::new();
        for quota in &manifests.resource_quotas {
            of.entry(quota.name.namespace).or_default().push(quota.clone());
        }
        Self { of, refused: BTreeMap::new() }
    }

    /// A quota comes to be, or changes to this form. Controllers that it has refused look again when their wait is over.
    pub(super) fn apply(&mut self, sim: &mut Sim<'_>, now: SimTime, quota: &ResourceQuota) {
        sim.world.note(now, EventKind::ManifestApplied, None, format!("ResourceQuota {}", quota.name));
        let known = self.of.entry(quota.name.namespace).or_default();
        match known.iter_mut().find(|item| item.name == quota.name) {
            Some(item) => *item = quota.clone(),
            None => known.push(quota.clone()),
        }
    }

    /// Whether nothing stands against a pod; what does is told, and the controller looks again after a while.
    fn take(&mut self, sim: &mut Sim<'_>, now: SimTime, workload: WorkloadId, why: Option<String>) -> bool {
        let Some(why) = why else {
            self.refused.remove(&workload);
            return true;
        };
        let refused = self.refused.entry(workload).or_insert(Refused { count: 0, again: now });
        // What is refused at one instant is one attempt.
        if refused.count > 0 && refused.again > now {
            return false;
        }
        let is_job = matches!(
            sim.world.workload(workload).kind,
            WorkloadKind::Job | WorkloadKind::CronJob | WorkloadKind::ScaledJob
        );
        let (first, longest) = if is_job { (BACK_OFF.1, LONGEST.1) } else { (BACK_OFF.0, LONGEST.0) };
        let wait = (first * i64::from(1_u32 << refused.count.min(20))).min(longest);
        refused.count += 1;
        refused.again = now + wait;
        // Otherwise refusals of one instant would count as several attempts.
        debug_assert!(refused.again > now, "a refused controller waits");
        if refused.count == 1 {
            sim.world.note(now, EventKind::FailedCreate, Some(workload), why);
        }
        sim.queue.schedule(now + wait, class::CONTROLLERS, WorkloadEvent::Reconcile(workload));
        false
    }

    /// Whether a controller may make a pod of the workload. If not, an event tells why, and the controller looks at the workload again after
    /// a while.
    pub(super) fn admits(
        &mut self,
        sim: &mut Sim<'_>,
        vertical: &mut Vertical,
        now: SimTime,
        workload: WorkloadId,
        revision: u32,
    ) -> bool {
        let why = self.refusal(sim, vertical, workload, revision);
        self.take(sim, now, workload, why)
    }

    /// The same of a StatefulSet's pod of this name, and of the claims that are made before it.
    pub(super) fn admits_ordinal(
        &mut self,
        sim: &mut Sim<'_>,
        vertical: &mut Vertical,
        volumes: &Volumes,
        now: SimTime,
        workload: WorkloadId,
        (revision, name): (u32, &str),
    ) -> bool {
        let why = self
            .refusal_of_claims(sim, volumes, workload, (revision, name))
            .or_else(|| self.refusal(sim, vertical, workload, revision));
        self.take(sim, now, workload, why)
    }

    /// Why the API server refuses a pod of the workload.
    fn refusal(
        &mut self,
        sim: &Sim<'_>,
        vertical: &mut Vertical,
        workload: WorkloadId,
        revision: u32,
    ) -> Option<String> {
        let this_workload = sim.world.workload(workload);
        let (namespace, kind) = (this_workload.name.namespace, this_workload.kind);
        let template = sim.world.template_of(workload, revision);
        if let Some(why) = &template.refused {
            return Some(why.to_string());
        }
        if kind == WorkloadKind::DaemonSet || !self.of.contains_key(&namespace) {
            return None;
        }
        let template = template.clone();
        // Quotas come after everybody who changes a pod that is being made.
        let pod = vertical.admitted(sim, workload, &template).map_or(template, |(pod, _)| pod);
        let quotas = self.of.get(&namespace)?;
        quotas.iter().find_map(|quota| quota.refuses(&pod, &used(sim, vertical, quota)))
    }

    /// Why the API server refuses one of the claims that a StatefulSet makes for the pod of this name; those that are there it does not make.
    fn refusal_of_claims(
        &self,
        sim: &Sim<'_>,
        volumes: &Volumes,
        workload: WorkloadId,
        (revision, pod): (u32, &str),
    ) -> Option<String> {
        let namespace = sim.world.workload(workload).name.namespace;
        let quotas = self.of.get(&namespace)?;
        if quotas.iter().all(|quota| quota.claims.is_empty()) {
            return None;
        }
        let storage = volumes.storage();
        let mut there: Vec<ClaimCharge> = storage.claims_in(namespace).map(|claim| charge(storage, claim)).collect();
        let volumes = &sim.world.template_of(workload, revision).volumes;
        let templates = volumes.iter().filter(|volume| matches!(volume.source, ClaimSource::Template(_)));
        for claim in templates.filter_map(|volume| PersistentVolumeClaim::made_for(volume, namespace, pod)) {
            if storage.claim(namespace, claim.name.as_str()).is_some() {
                continue;
            }
            let charge = charge(storage, &claim);
            if let Some(why) = quotas.iter().find_map(|quota| quota.refuses_claim(charge, &there)) {
                return Some(format!("claim {}: {why}", claim.name));
            }
            there.push(charge);
        }
        None
    }

    /// Why the API server does not let a running pod become another.
    pub(super) fn refuses_resize(
        &self,
        sim: &Sim<'_>,
        vertical: &Vertical,
        pod: PodId,
        wanted: &PodSpec,
    ) -> Option<String> {
        let state = sim.world.pod(pod);
        let quotas = self.of.get(&state.namespace)?;
        quotas.iter().find_map(|quota| quota.refuses_change(&state.spec, wanted, &used(sim, vertical, quota)))
    }
}

fn charge(storage: &Storage, claim: &PersistentVolumeClaim) -> ClaimCharge {
    let default = || storage.default_class().map(|class| class.name);
    let class = claim.class.map_or_else(default, |class| Some(class).filter(|name| *name != well_known::EMPTY));
    ClaimCharge { class, bytes: claim.bytes.unwrap_or(0) }
}

/// What the pods that a quota counts come to, each as it is and not as its template would have it; one that waits for a resize, what it
/// has or what it wants, whichever is more.
fn used(sim: &Sim<'_>, vertical: &Vertical, quota: &ResourceQuota) -> Charge {
    let mut used = Charge::default();
    let mut alike: BTreeMap<SpecId, (i64, &PodSpec)> = BTreeMap::new();
    for (_, key) in sim.world.workloads().filter(|(_, item)| item.name.namespace == quota.name.namespace) {
        for &pod in &key.pods {
            let state = sim.world.pod(pod);
            if state.phase == PodPhase::Gone || !quota.is_for(&state.spec) {
                continue;
            }
            match vertical.deferred(pod) {
                None => alike.entry(state.spec_id).or_insert((0, &state.spec)).0 += 1,
                Some(wanted) => used.add(&Charge::new(&state.spec, 1).or_more(&Charge::new(wanted, 1))),
            }
        }
    }
    alike.into_values().for_each(|(count, spec)| used.add(&Charge::new(spec, count)));
    used
}
