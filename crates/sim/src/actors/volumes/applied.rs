//! Volumes and claims that people apply during a run: they come to be then, and claims grow.
//!
//! Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`, `ValidatePersistentVolumeClaimUpdate`;
//! `plugin/pkg/admission/storage/persistentvolume/resize`; EBS user guide, "Modify an EBS volume" (a volume is billed by its new size from
//! when it is modified).
//!
//! Deviation: a volume has its new size at once. EC2 takes from minutes to hours, and modifies a volume once in six
//! hours.

use crate::actors::actor_events::ActorEvent;
use crate::actors::sim::Sim;
use crate::actors::volumes::Volumes;
use crate::domain::volumes::{PersistentVolume, PersistentVolumeClaim};
use crate::domain::{SimTime, well_known};
use crate::world::record::EventKind;

impl Volumes {
    /// A volume that somebody has made is there from now on; one that is there stays as it is.
    pub(in crate::actors) fn apply_volume(&mut self, sim: &mut Sim<'_>, now: SimTime, volume: &PersistentVolume) {
        if self.storage.volume(volume.name).is_some() {
            return;
        }
        sim.world.note(now, EventKind::ManifestApplied, None, format!("PersistentVolume {}", volume.name));
        self.bill(volume, now);
        self.storage.put_volume(volume.clone());
    }

    /// What the API server says against an edit of a claim.
    fn refusal(&self, known: &PersistentVolumeClaim, edited: &PersistentVolumeClaim) -> Option<&'static str> {
        let storage = &self.storage;
        if edited.class != known.class {
            return Some("`storageClassName` cannot change");
        }
        if edited.one_pod != known.one_pod {
            return Some("`accessModes` cannot change");
        }
        if edited.volume.is_some() && edited.volume != known.volume {
            return Some("`volumeName` cannot change");
        }
        if edited.bytes < known.bytes {
            return edited.bytes.map(|_| "a claim cannot shrink: `storage`");
        }
        if edited.bytes == known.bytes {
            return None;
        }
        let Some(volume) = storage.bound(known) else {
            return Some("a claim without a volume cannot grow: `storage`");
        };
        let expandable = volume.class.and_then(|name| storage.class(name)).is_some_and(|class| class.expandable);
        (!expandable).then_some("its class does not let a claim grow (`allowVolumeExpansion`): `storage`")
    }

    /// A claim asks for more, and its volume has it, if it is not that large already.
    fn grow(&mut self, now: SimTime, claim: PersistentVolumeClaim) {
        let bound = self.storage.bound(&claim).cloned();
        self.storage.put_claim(claim);
        let Some(volume) = bound.filter(|volume| volume.gib.is_none_or(|gib| Some(gib) < claim.gib())) else { return };
        if volume.driver == Some(well_known::EBS_DRIVER) {
            let known = self.disk_of.get(&volume.name).copied();
            if let Some(disk) = known.and_then(|place| self.disks.get_mut(place)) {
                disk.until = Some(now);
            }
        }
        let volume = PersistentVolume { gib: claim.gib(), ..volume };
        self.bill(&volume, now);
        self.storage.put_volume(volume);
    }
}

/// A claim comes to be, or asks for more; pods that wait for it are tried again.
pub(in crate::actors) fn apply_claim(
    sim: &mut Sim<'_>,
    volumes: &mut Volumes,
    now: SimTime,
    claim: &PersistentVolumeClaim,
) {
    let known = volumes.storage.claim(claim.namespace, claim.name.as_str()).copied();
    let named = format!("PersistentVolumeClaim {}/{}", claim.namespace, claim.name);
    let Some(known) = known else {
        sim.world.note(now, EventKind::ManifestApplied, None, named);
        volumes.storage.put_claim(*claim);
        volumes.bind_at_once(sim, claim);
        return sim.publish(ActorEvent::ClaimMade(claim.namespace, claim.name));
    };
    if volumes.leaving.contains(&(claim.namespace, claim.name)) {
        let text = format!(
            "the {named} is being deleted and a pod uses it still: it goes with that pod, applied again or not"
        );
        return sim.world.note_unmet(now, text);
    }
    if let Some(why) = volumes.refusal(&known, claim) {
        return sim.world.note_unmet(now, format!("{why} of the {named}: nothing of it was changed"));
    }
    if claim.bytes > known.bytes {
        sim.world.note(now, EventKind::ManifestApplied, None, named);
        volumes.grow(now, PersistentVolumeClaim { bytes: claim.bytes, ..known });
    }
}
