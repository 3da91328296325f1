//! Where a pod's volumes can be, and how many of them a node can attach.
//!
//! Source: Karpenter core v1.13 `pkg/controllers/provisioning/scheduling/volumetopology.go`,
//! `pkg/scheduling/volumeusage.go`.

use nodecast_model::domain::PodSpec;
use nodecast_model::domain::pod::{ClaimSource, NodeSelectorTerm, VolumeRef};
use nodecast_model::domain::requirements::Requirements;
use nodecast_model::domain::symbol::{Symbol, well_known};
use nodecast_model::domain::volumes::{
    PersistentVolume, PersistentVolumeClaim, Storage, StorageClass, VolumeBindingMode,
};

use super::errors::VolumeRefusal;
use super::input::Volumes;

/// The volumes of one pod.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct PodVolumes {
    /// Alternative places, never empty; a pod without bound volumes has one that requires nothing.
    pub(super) alternatives: Vec<Requirements>,
    /// What it attaches: driver, and namespace and name of the claim.
    pub(super) attached: Vec<Attachment>,
}

/// One claim attached through a driver.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Attachment {
    /// The driver.
    pub(super) driver: Symbol,
    /// Namespace of the claim.
    pub(super) namespace: Symbol,
    /// Name of the claim.
    pub(super) claim: String,
}

/// Finds the volumes of a pod, each with all of its places or, as up to v1.12, with the first.
///
/// # Errors
/// The first volume that cannot be used, for which the pod is left out of the pass.
pub(super) fn resolve(
    volumes: Volumes<'_>,
    namespace: Symbol,
    pod: &str,
    spec: &PodSpec,
    all_places: bool,
) -> Result<PodVolumes, VolumeRefusal> {
    let mut result = PodVolumes { alternatives: vec![Requirements::new()], attached: Vec::new() };
    for volume in &spec.volumes {
        let place = find(volumes, namespace, pod, volume)?;
        if let Some(driver) = place.driver {
            result.attached.push(Attachment { driver, namespace, claim: place.claim });
        }
        let places = if all_places { place.alternatives.len() } else { place.alternatives.len().min(1) };
        result.alternatives = crossed(&result.alternatives, &place.alternatives[..places]);
    }
    Ok(result)
}

/// The volumes that a bound pod attaches; claims that cannot be found are left out.
pub(super) fn attachments(volumes: Volumes<'_>, namespace: Symbol, pod: &str, spec: &PodSpec) -> Vec<Attachment> {
    let found = spec.volumes.iter().filter_map(|volume| find(volumes, namespace, pod, volume).ok());
    found.filter_map(|place| place.driver.map(|driver| Attachment { driver, namespace, claim: place.claim })).collect()
}

/// A volume's driver and the alternatives for its place; no alternative means anywhere.
struct VolumePlace {
    driver: Option<Symbol>,
    claim: String,
    alternatives: Vec<Requirements>,
}

fn find(volumes: Volumes<'_>, namespace: Symbol, pod: &str, volume: &VolumeRef) -> Result<VolumePlace, VolumeRefusal> {
    let claim_name = volume.claim_name(pod).into_owned();
    let Some(claim) = volumes.storage.and_then(|storage| storage.claim(namespace, &claim_name)) else {
        // The claim of an ephemeral volume is made with the pod; until then its class decides.
        return match volume.source {
            ClaimSource::Ephemeral(class) => {
                unbound(volumes, (class != well_known::EMPTY).then_some(class), claim_name, volume.claim)
            }
            ClaimSource::Named | ClaimSource::Template(_) => Err(VolumeRefusal::ClaimMissing(volume.claim)),
        };
    };
    check_claim(claim)?;
    match claim.volume {
        None => unbound(volumes, claim.class, claim_name, claim.name),
        Some(name) => {
            let bound = volumes.storage.and_then(|storage| storage.volume(name));
            let bound = bound.ok_or(VolumeRefusal::VolumeMissing(name))?;
            if bound.deleting {
                return Err(VolumeRefusal::VolumeDeleting(name));
            }
            Ok(VolumePlace { driver: bound.driver, claim: claim_name, alternatives: volume_alternatives(bound) })
        }
    }
}

fn check_claim(claim: &PersistentVolumeClaim) -> Result<(), VolumeRefusal> {
    if claim.deleting {
        return Err(VolumeRefusal::ClaimDeleting(claim.name));
    }
    if claim.lost {
        return Err(VolumeRefusal::ClaimLost(claim.name));
    }
    if claim.volume.is_some() && !claim.bind_completed {
        return Err(VolumeRefusal::BindingUnfinished(claim.name));
    }
    Ok(())
}

fn unbound(
    volumes: Volumes<'_>,
    class: Option<Symbol>,
    claim_name: String,
    claim: Symbol,
) -> Result<VolumePlace, VolumeRefusal> {
    let found = match class {
        // The empty name asks for a volume that somebody makes by hand.
        Some(name) if name == well_known::EMPTY => return Err(VolumeRefusal::NoStorageClass(claim)),
        Some(name) => {
            let named = volumes.storage.and_then(|storage| storage.class(name));
            named.ok_or(VolumeRefusal::StorageClassMissing(name))?
        }
        None => {
            let default = volumes.storage.and_then(Storage::default_class);
            default.ok_or(VolumeRefusal::NoStorageClass(claim))?
        }
    };
    if found.binding_mode == VolumeBindingMode::Immediate {
        return Err(VolumeRefusal::ImmediateBinding(claim));
    }
    Ok(VolumePlace { driver: Some(found.provisioner), claim: claim_name, alternatives: class_alternatives(found) })
}

fn class_alternatives(class: &StorageClass) -> Vec<Requirements> {
    class.allowed_topologies.iter().map(NodeSelectorTerm::requirements).collect()
}

fn volume_alternatives(volume: &PersistentVolume) -> Vec<Requirements> {
    let alternative = |term: &NodeSelectorTerm| {
        let mut requirements = term.requirements();
        if volume.node_local {
            requirements.remove(well_known::HOSTNAME);
        }
        requirements
    };
    volume.node_affinity.iter().map(alternative).collect()
}

/// Every combination of two lists of alternatives without those that contradict themselves; if all do, they are kept and
/// fail later.
fn crossed(left: &[Requirements], right: &[Requirements]) -> Vec<Requirements> {
    if right.is_empty() {
        return left.to_vec();
    }
    let (mut possible, mut all) = (Vec::new(), Vec::new());
    for a in left {
        for b in right {
            let mut both = a.clone();
            both.extend(b);
            if a.intersects(b).is_ok() {
                possible.push(both.clone());
            }
            all.push(both);
        }
    }
    if possible.is_empty() { all } else { possible }
}

/// The driver whose limit a node would exceed with these attachments more. A claim that is already there counts once.
pub(super) fn exceeded(limits: &[(Symbol, u32)], used: &[Attachment], more: &[Attachment]) -> Option<Symbol> {
    let over = |&&(driver, limit): &&(Symbol, u32)| {
        let mut claims: Vec<&Attachment> = used.iter().chain(more).filter(|item| item.driver == driver).collect();
        claims.sort_unstable_by_key(|claim| (claim.namespace, claim.claim.as_str()));
        claims.dedup();
        more.iter().any(|item| item.driver == driver) && claims.len() > limit as usize
    };
    limits.iter().find(over).map(|&(driver, _)| driver)
}
