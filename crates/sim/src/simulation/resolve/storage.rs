//! The storage objects of a run: those of the manifests, and what has to be assumed where a pod names one that is in no file.

use std::collections::BTreeSet;

use crate::actors::Action;
use crate::domain::pod::ClaimSource;
use crate::domain::volumes::{
    DiskClass, PersistentVolume, PersistentVolumeClaim, Storage, StorageClass, VolumeBindingMode, ebs_sizes,
};
use crate::domain::words::some_of;
use crate::domain::{KubernetesBehaviour, KubernetesVersion, PodSpec, Symbol, well_known};
use crate::manifests::Manifests;
use nodecast_settings::lints::setup;
use nodecast_settings::{Caveats, PolicyVariant, Scenario};

/// Drivers whose volumes are reached from every zone and are not attached to nodes.
const NETWORK_DRIVERS: [&str; 5] =
    ["efs.csi.aws.com", "fsx.csi.aws.com", "s3.csi.aws.com", "nfs.csi.k8s.io", "fsx.openzfs.csi.aws.com"];
/// What EKS calls the class of EBS volumes that a new cluster has.
const EKS_CLASS: &str = "gp2";

/// The storage objects of the start with all that the pods of `scenario` need at some time.
pub(super) fn storage(
    scenario: &Scenario,
    manifests: &Manifests,
    kubernetes: KubernetesVersion,
    warnings: &mut Caveats,
) -> Storage {
    let mut all = Manifests::default();
    for part in parts(scenario, manifests) {
        let mut manifests = Manifests::default();
        manifests.storage_classes.clone_from(&part.storage_classes);
        manifests.attribute_classes.clone_from(&part.attribute_classes);
        manifests.volumes.clone_from(&part.volumes);
        manifests.volume_claims.clone_from(&part.volume_claims);
        all.apply(manifests);
    }
    let mut needs = Needs { claims: all.volume_claims, volumes: all.volumes, ..Needs::default() };
    needs.settle(warnings);
    share_claims(&mut needs.claims, kubernetes, warnings);
    for (namespace, spec) in pods(scenario, manifests) {
        needs.take(namespace, spec);
    }
    needs.want_of_start(&manifests.volume_claims);
    let classes = needs.classes(all.storage_classes, warnings);
    let Needs { claims, volumes, missing, by_hand, sizeless, sized, .. } = needs;
    let (claims, volumes) = at_start((&claims, &volumes), (scenario, manifests), kubernetes);
    let storage = Storage::new(claims, volumes, classes).with_attributes(all.attribute_classes);
    let to_come: Vec<PersistentVolumeClaim> = sizeless.iter().chain(&sized).copied().collect();
    let storage = settle_attributes(storage, &to_come, kubernetes, warnings);
    warn_about_sizes(&storage, &sizeless, warnings);
    warn_about_refused(&storage, &sized, warnings);
    if !by_hand.is_empty() {
        warnings.add(&setup::CLAIM_WITHOUT_VOLUME, format!(
            "{} asks for a volume that somebody makes by hand (`storageClassName: \"\"`), and no PersistentVolume of a file is kept for it: taken to \
             get one of the default class; in a cluster its pods wait for that volume; add it, with `claimRef`, or state `volumeName`",
            some_of(&by_hand.iter().map(|name| name.as_str()).collect::<Vec<_>>())
        ));
    }
    if !missing.is_empty() {
        let missing: Vec<&str> = missing.iter().map(String::as_str).collect();
        warnings.add(&setup::CLAIM_MISSING, format!(
            "PersistentVolumeClaim {} is not in the manifests: assuming the default StorageClass, unbound, and not billed",
            some_of(&missing)
        ));
    }
    storage
}

/// The claims and volumes that are there when the run begins: those of its manifests, and claims that are in no file.
fn at_start(
    (claims, volumes): (&[PersistentVolumeClaim], &[PersistentVolume]),
    (scenario, manifests): (&Scenario, &Manifests),
    kubernetes: KubernetesVersion,
) -> (Vec<PersistentVolumeClaim>, Vec<PersistentVolume>) {
    let is = |one: &PersistentVolumeClaim, other: &PersistentVolumeClaim| {
        (one.namespace, one.name) == (other.namespace, other.name)
    };
    let in_a_file = |claim: &PersistentVolumeClaim| {
        parts(scenario, manifests).any(|part| part.volume_claims.iter().any(|volume_claim| is(volume_claim, claim)))
    };
    let assumed = claims.iter().filter(|claim| !in_a_file(claim)).copied();
    let stated = manifests.volume_claims.iter().map(|claim| settled(*claim, volumes, kubernetes));
    let claims: Vec<PersistentVolumeClaim> = stated.chain(assumed).collect();
    // What a claim is bound to is there with it, whenever its object is applied.
    let later = volumes.iter().filter(|volume| {
        let applied_later = manifests.volumes.iter().all(|this_volume| this_volume.name != volume.name);
        applied_later && claims.iter().any(|claim| claim.volume == Some(volume.name))
    });
    let volumes = manifests.volumes.iter().chain(later).cloned().collect();
    (claims, volumes)
}

/// What a step of the timeline applies of volumes and claims.
pub(super) fn applied(later: &Manifests, scenario: &Scenario, policy: &PolicyVariant) -> Vec<Action> {
    let known: Vec<PersistentVolume> =
        parts(scenario, &policy.manifests).flat_map(|part| &part.volumes).cloned().collect();
    let volumes = later.volumes.iter().map(|volume| Action::ApplyVolume(Box::new(volume.clone())));
    let claims = later.volume_claims.iter().map(|claim| settled(*claim, &known, policy.versions.kubernetes));
    volumes.chain(claims.map(Action::ApplyClaim)).collect()
}

/// A claim as it is once the controllers have looked at it, given the volumes of all files: bound to the volume that it names or that is kept
/// for it, else not yet bound, of the default class where it asks for a volume made by hand.
fn settled(
    mut claim: PersistentVolumeClaim,
    volumes: &[PersistentVolume],
    kubernetes: KubernetesVersion,
) -> PersistentVolumeClaim {
    claim.one_pod &= kubernetes.has(KubernetesBehaviour::ReadWriteOncePod);
    let kept = volumes.iter().find(|volume| volume.is_kept_for(&claim)).map(|volume| volume.name);
    let named = claim.volume.filter(|name| volumes.iter().any(|volume| volume.name == *name));
    claim.volume = named.or_else(|| kept.filter(|_| claim.volume.is_none()));
    claim.bind_completed |= claim.volume.is_some();
    if claim.volume.is_none() {
        claim.class = claim.class.filter(|class| *class != well_known::EMPTY);
    }
    claim
}

/// Before Kubernetes 1.27 a claim for one pod at a time is taken only behind a feature gate: it is one that pods may share.
fn share_claims(claims: &mut [PersistentVolumeClaim], kubernetes: KubernetesVersion, warnings: &mut Caveats) {
    if kubernetes.has(KubernetesBehaviour::ReadWriteOncePod) {
        return;
    }
    let mut names = Vec::new();
    for claim in claims.iter_mut().filter(|claim| claim.one_pod) {
        claim.one_pod = false;
        names.push(claim.name.as_str());
    }
    if !names.is_empty() {
        warnings.add(&setup::READ_WRITE_ONCE_POD, format!(
            "PersistentVolumeClaim {} asks for `ReadWriteOncePod`, which Kubernetes {kubernetes} refuses unless a feature gate is open: taken for \
             one that pods may share; state a release from 1.27 on, or `ReadWriteOnce`",
            some_of(&names)
        ));
    }
}

/// The storage with the VolumeAttributesClasses that its EBS volumes, and those of the claims `to_come`, can have: before Kubernetes 1.31 none,
/// as the API server drops what names them. Those that are in no file are warned of.
fn settle_attributes(
    storage: Storage,
    to_come: &[PersistentVolumeClaim],
    kubernetes: KubernetesVersion,
    warnings: &mut Caveats,
) -> Storage {
    let ebs = Some(well_known::EBS_DRIVER);
    let volumes = storage.volumes_in_order().into_iter().filter(|volume| volume.driver == ebs);
    let claims = to_come.iter().filter(|claim| storage.class_of(claim).map(|class| class.provisioner) == ebs);
    let named = volumes
        .map(|volume| (volume.attributes, volume.name))
        .chain(claims.map(|claim| (claim.attributes, claim.name)));
    let named: BTreeSet<(&str, &str)> = named.filter_map(|(class, of)| Some((class?.as_str(), of.as_str()))).collect();
    if !kubernetes.has(KubernetesBehaviour::VolumeAttributesClass) {
        if !named.is_empty() {
            let names: Vec<&str> = named.iter().map(|(_, of)| *of).collect();
            warnings.add(&setup::ATTRIBUTES_CLASS_DROPPED, format!(
                "Kubernetes {kubernetes} drops `volumeAttributesClassName` of {}: the StorageClass alone says what such volumes are; state a \
                 release from 1.31 on",
                some_of(&names)
            ));
        }
        return storage.with_attributes(Vec::new());
    }
    for (class, of) in named {
        if storage.attributes(Some(Symbol::new(class)), ebs).is_none() {
            warnings.add(&setup::ATTRIBUTES_CLASS_MISSING, format!(
                "VolumeAttributesClass {class} is in no file, or for another driver: the volume of {of} is billed as its StorageClass has it, while a \
                 cluster makes none before the class is there; add it"
            ));
        }
    }
    storage
}

/// The manifests of the start and of the timeline.
pub(super) fn parts<'a>(scenario: &'a Scenario, manifests: &'a Manifests) -> impl Iterator<Item = &'a Manifests> {
    let later = scenario.timeline.iter().filter_map(|timed| timed.action.applied());
    std::iter::once(manifests).chain(later.map(|later| &**later))
}

/// What pods are made from, with their namespaces.
pub(super) fn pods<'a>(scenario: &'a Scenario, manifests: &'a Manifests) -> Vec<(Symbol, &'a PodSpec)> {
    let mut pods: Vec<(Symbol, &PodSpec)> = Vec::new();
    for part in parts(scenario, manifests) {
        pods.extend(templates(part));
    }
    if let Some(trace) = &scenario.pods {
        pods.extend(trace.templates.iter().map(|template| (trace.namespace, &**template)));
    }
    pods
}

/// Specifications in one part of the manifests that pods are made from, with their namespaces.
pub(super) fn templates(part: &Manifests) -> impl Iterator<Item = (Symbol, &PodSpec)> {
    let deployments = part.deployments.iter().map(|deployment| (deployment.name.namespace, &*deployment.template));
    let stateful_sets =
        part.stateful_sets.iter().map(|stateful_set| (stateful_set.name.namespace, &*stateful_set.template));
    let jobs = part.jobs.iter().map(|job| (job.name.namespace, &*job.spec.template));
    let cron_jobs = part.cron_jobs.iter().map(|cron_job| (cron_job.name.namespace, &*cron_job.job.template));
    let daemon_sets = part.daemon_sets.iter().map(|daemon_set| (daemon_set.name.namespace, &*daemon_set.template));
    let scaled_jobs = part.scaled_jobs.iter().map(|scaled_job| (scaled_job.namespace, &*scaled_job.job.template));
    let pods = part.pods.iter().filter(|pod| super::is_bare(pod)).map(|pod| (pod.name.namespace, &pod.spec));
    deployments.chain(stateful_sets).chain(jobs).chain(cron_jobs).chain(daemon_sets).chain(scaled_jobs).chain(pods)
}

/// What pods need of storage, and what of it is in no file.
#[derive(Default)]
struct Needs {
    claims: Vec<PersistentVolumeClaim>,
    volumes: Vec<PersistentVolume>,
    /// Classes of claims that are not bound; `None` for the default class.
    wanted: BTreeSet<Option<Symbol>>,
    missing: Vec<String>,
    /// Claims that ask for a volume made by hand, of which no file knows one.
    by_hand: BTreeSet<Symbol>,
    /// Claims that are not bound and of which no file says how big they are.
    sizeless: Vec<PersistentVolumeClaim>,
    /// Those of which a file does.
    sized: Vec<PersistentVolumeClaim>,
}

impl Needs {
    /// Claims that name a volume, or that one is kept for, are bound to it; without the volume a claim is taken to be a new one.
    fn settle(&mut self, warnings: &mut Caveats) {
        let mut lost = Vec::new();
        let there: BTreeSet<Symbol> = self.volumes.iter().map(|volume| volume.name).collect();
        for claim in &mut self.claims {
            match claim.volume {
                Some(name) if there.contains(&name) => claim.bind_completed = true,
                Some(_) => {
                    lost.push(claim.name.as_str());
                    claim.volume = None;
                }
                None => {
                    claim.volume =
                        self.volumes.iter().find(|volume| volume.is_kept_for(claim)).map(|volume| volume.name);
                    claim.bind_completed |= claim.volume.is_some();
                }
            }
        }
        if !lost.is_empty() {
            warnings.add(&setup::VOLUME_MISSING, format!(
                "the volumes of {} are not in the manifests, so their zones are unknown; assuming the zone of their first pod. Add the \
                 PersistentVolumes",
                some_of(&lost)
            ));
        }
        let bound: BTreeSet<Symbol> = self.claims.iter().filter_map(|claim| claim.volume).collect();
        let free: Vec<&str> = there.difference(&bound).map(|name| name.as_str()).collect();
        if !free.is_empty() {
            warnings.add(
                &setup::VOLUME_UNUSED,
                format!("no claim uses {}; these PersistentVolumes stay unused", some_of(&free)),
            );
        }
    }

    fn take(&mut self, namespace: Symbol, spec: &PodSpec) {
        for volume in &spec.volumes {
            let class = match volume.source {
                ClaimSource::Ephemeral(class) => Some(class),
                ClaimSource::Template(class) => class,
                ClaimSource::Named => {
                    self.take_claim(namespace, volume.claim);
                    continue;
                }
            };
            let class = self.want(class);
            let claim = PersistentVolumeClaim::unbound(namespace, volume.claim, class);
            self.weigh(PersistentVolumeClaim { bytes: volume.bytes, attributes: volume.attributes, ..claim });
        }
    }

    /// A claim that is not bound is of this class; the empty name stands for none.
    fn want(&mut self, class: Option<Symbol>) -> Option<Symbol> {
        let class = class.filter(|class| *class != well_known::EMPTY);
        self.wanted.insert(class);
        class
    }

    /// Claims that are applied later with another class have that of the start first.
    fn want_of_start(&mut self, claims: &[PersistentVolumeClaim]) {
        for claim in claims.iter().filter(|claim| claim.volume.is_none() && claim.class != Some(well_known::EMPTY)) {
            let later = self.claims.iter().find(|later| (later.namespace, later.name) == (claim.namespace, claim.name));
            if later.is_some_and(|later| later.volume.is_none() && later.class != claim.class) {
                self.wanted.insert(claim.class);
            }
        }
    }

    fn take_claim(&mut self, namespace: Symbol, name: Symbol) {
        let known = self.claims.iter_mut().find(|claim| claim.namespace == namespace && claim.name == name);
        let unbound = known.as_deref().filter(|claim| claim.volume.is_none()).copied();
        match known {
            Some(claim) if claim.volume.is_some() => {}
            Some(claim) => {
                if claim.class == Some(well_known::EMPTY) {
                    self.by_hand.insert(name);
                    claim.class = None;
                }
                self.wanted.insert(claim.class);
            }
            None => {
                self.missing.push(name.to_string());
                self.wanted.insert(None);
                self.claims.push(PersistentVolumeClaim::unbound(namespace, name, None));
            }
        }
        if let Some(claim) = unbound {
            let class = claim.class.filter(|class| *class != well_known::EMPTY);
            self.weigh(PersistentVolumeClaim { class, ..claim });
        }
    }

    /// Remembers a claim that is not bound by whether a file says how big it is.
    fn weigh(&mut self, claim: PersistentVolumeClaim) {
        if claim.gib().is_none() { self.sizeless.push(claim) } else { self.sized.push(claim) }
    }

    /// The classes, with those that are wanted and in no file.
    fn classes(&self, mut classes: Vec<StorageClass>, warnings: &mut Caveats) -> Vec<StorageClass> {
        let eks = |name, default_class| StorageClass {
            name,
            provisioner: well_known::EBS_DRIVER,
            binding_mode: VolumeBindingMode::WaitForFirstConsumer,
            allowed_topologies: Vec::new(),
            default_class,
            disk: DiskClass { volume_type: Some(Symbol::new(EKS_CLASS)), ..DiskClass::default() },
            retain: false,
            expandable: false,
        };
        let mut assumed = Vec::new();
        for &wanted in &self.wanted {
            match wanted {
                Some(name) if !classes.iter().any(|class| class.name == name) => {
                    assumed.push(name.as_str());
                    classes.push(eks(name, false));
                }
                None if !classes.iter().any(|class| class.default_class) => {
                    assumed.push("(default)");
                    classes.retain(|class| class.name.as_str() != EKS_CLASS);
                    classes.push(eks(Symbol::new(EKS_CLASS), true));
                }
                Some(_) | None => {}
            }
        }
        if !assumed.is_empty() {
            warnings.add(&setup::STORAGE_CLASS_MISSING, format!(
                "StorageClass {} is not in the manifests: assuming EKS's `{EKS_CLASS}` (EBS volumes in the zone of the claim's first pod)",
                some_of(&assumed)
            ));
        }
        warn_about_drivers(&classes, &self.wanted, warnings);
        classes
    }
}

/// EBS volumes of which no file says how big they are, and those that the claims in `sizeless` will get.
fn warn_about_sizes(storage: &Storage, sizeless: &[PersistentVolumeClaim], warnings: &mut Caveats) {
    let is_ebs = |driver: Option<Symbol>| driver == Some(well_known::EBS_DRIVER);
    let there = storage.volumes_in_order().into_iter().filter(|volume| volume.gib.is_none() && is_ebs(volume.driver));
    let to_come = sizeless.iter().filter(|claim| is_ebs(storage.class_of(claim).map(|class| class.provisioner)));
    let names: BTreeSet<&str> =
        there.map(|volume| volume.name.as_str()).chain(to_come.map(|claim| claim.name.as_str())).collect();
    if !names.is_empty() {
        let names: Vec<&str> = names.into_iter().collect();
        warnings.add(
            &setup::VOLUME_SIZE_UNKNOWN,
            format!(
                "the size of {} is unknown, so these volumes are not billed and the cost is too low",
                some_of(&names)
            ),
        );
    }
}

/// Claims for EBS volumes of a size that their type does not have: EC2 makes none, so that their pods wait for ever, and here they do not.
fn warn_about_refused(storage: &Storage, sized: &[PersistentVolumeClaim], warnings: &mut Caveats) {
    let mut refused = BTreeSet::new();
    for claim in sized {
        let Some(class) = storage.class_of(claim).filter(|class| class.provisioner == well_known::EBS_DRIVER) else {
            continue;
        };
        let volume_type = storage.disk_for(claim).unwrap_or(class.disk).type_name();
        let Some((gib, (least, most))) = claim.gib().zip(ebs_sizes(volume_type)) else { continue };
        if !(least..=most).contains(&i64::from(gib)) {
            refused.insert((claim.name.as_str(), volume_type, gib, least, most));
        }
    }
    for (name, volume_type, gib, least, most) in refused {
        warnings.add(&setup::VOLUME_REJECTED, format!(
            "EBS makes no volume of type {volume_type} with {gib} GiB for {name} ({least} to {most} GiB): a cluster's pod waits for it without \
             end, and here it is there; ask for a size that there is"
        ));
    }
    warn_about_operations(storage, sized, warnings);
}

/// Claims for volumes of io1 or io2 without I/O operations, of which EC2 makes none either, or with two numbers of them, which the driver refuses.
///
/// Source: EC2 API reference, `CreateVolume`, `Iops` (2026); aws-ebs-csi-driver `pkg/cloud/cloud.go`, `CreateDisk`.
fn warn_about_operations(storage: &Storage, sized: &[PersistentVolumeClaim], warnings: &mut Caveats) {
    let (mut without, mut twofold) = (BTreeSet::new(), BTreeSet::new());
    for claim in sized {
        let Some(class) = storage.class_of(claim).filter(|class| class.provisioner == well_known::EBS_DRIVER) else {
            continue;
        };
        let disk = storage.disk_for(claim).unwrap_or(class.disk);
        match (disk.iops > 0, disk.iops_per_gib > 0) {
            (false, false) if matches!(disk.type_name(), "io1" | "io2") => {
                without.insert((disk.type_name(), claim.name.as_str(), class.name.as_str()));
            }
            (true, true) => {
                twofold.insert((claim.name.as_str(), class.name.as_str()));
            }
            _ => {}
        }
    }
    for (volume_type, name, class) in without {
        warnings.add(&setup::VOLUME_REJECTED, format!(
            "EBS makes no volume of type {volume_type} without I/O operations for {name}: a cluster's pod waits for it without end, and here it \
             is there; state `iops` or `iopsPerGB` among the parameters of {class}"
        ));
    }
    for (name, class) in twofold {
        warnings.add(&setup::VOLUME_REJECTED, format!(
            "the EBS CSI driver makes no volume for {name}, as {class} states both `iops` and `iopsPerGB`: a cluster's pod waits for it without \
             end, and here it is there with `iops`; state one of them"
        ));
    }
}

/// Volumes of drivers of which it is not known that they are reached from everywhere.
fn warn_about_drivers(classes: &[StorageClass], wanted: &BTreeSet<Option<Symbol>>, warnings: &mut Caveats) {
    let is_wanted =
        |class: &&StorageClass| wanted.contains(&Some(class.name)) || class.default_class && wanted.contains(&None);
    let unknown = |class: &&StorageClass| {
        let driver = class.provisioner.as_str();
        class.provisioner != well_known::EBS_DRIVER && !NETWORK_DRIVERS.contains(&driver)
    };
    for class in classes.iter().filter(is_wanted).filter(unknown) {
        warnings.add(
            &setup::DRIVER_NOT_SIMULATED,
            format!(
                "StorageClass {}: volumes of {} are taken to be reached from every node",
                class.name, class.provisioner
            ),
        );
    }
}
