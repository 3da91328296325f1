//! A scenario made of a dump of a cluster: the objects that count, as their authors wrote them, and a scenario file that
//! says what they do not, each assumption stated.
//!
//! What must not live here: values that are neither in the dump nor written into the scenario where they can be changed.

mod anonymous;
mod assumptions;
mod auto_mode;
mod aws;
mod bill;
mod clean;
mod cluster;
mod cluster_autoscaler;
mod controllers;
mod demand;
mod demanded;
mod ended;
mod ending;
mod found;
mod groups;
mod images;
mod injected;
mod inventory;
mod jobs;
mod karpenter;
mod limits;
mod makers;
mod migration;
mod objects;
mod observed;
mod passing;
mod rebuilt;
mod recorded;
mod regrouping;
mod setup;
mod stand_ins;
mod targets;
mod text;
mod top;
mod usages;
mod vertical;
mod yaml;

pub(super) use demand::MILLISECONDS_PER_REQUEST;
pub(crate) use karpenter::check_gates;
pub(super) use setup::cluster_autoscaler;
pub(crate) use setup::setup;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use nodecast_model::text::dump;

use super::{Draft, DraftFile, Observed, RANKS, SCENARIO_FILE, Wishes};
use crate::catalog::{Catalog, Region};
use crate::domain::words::counted;
use crate::error::{ScenarioError, Warning};
use crate::manifests::{Foreign, KUSTOMIZE, Manifests, foreign, read_documents, schedulers_of};
use crate::source::{Limits, Source};
use crate::tree::{Node, NodeKind, Variables};
use assumptions::{Assumption, Part};
use aws::Described;
use cluster::{Cluster, Launcher};
use ending::Ending;
use makers::Makers;
use migration::Migration;
use objects::{COMMAND, Object};
use passing::Passing;
use stand_ins::StandIns;
use targets::Targets;

/// The files of manifests, in the order in which a scenario names them.
const FILES: [(&str, &str); 4] = [
    ("cluster.yaml", "What the cluster came with: namespaces, priorities, DaemonSets, Services, volumes."),
    ("nodepools.yaml", "What Karpenter may launch."),
    ("workloads.yaml", "What runs on the cluster."),
    ("autoscalers.yaml", "What scales the workloads, and what protects their pods."),
];
/// Kinds that a run reads, with the file that they go to.
const CARRIED: [(&str, usize); 40] = [
    ("Namespace", 0),
    ("PriorityClass", 0),
    ("LimitRange", 0),
    ("ResourceQuota", 0),
    ("SecurityGroupPolicy", 0),
    ("DaemonSet", 0),
    ("Service", 0),
    ("Ingress", 0),
    ("IngressClass", 0),
    ("ServiceMonitor", 0),
    ("PodMonitor", 0),
    ("ConfigMap", 0),
    ("StorageClass", 0),
    ("VolumeAttributesClass", 0),
    ("CSIDriver", 0),
    ("PersistentVolume", 0),
    ("PersistentVolumeClaim", 0),
    ("ClusterConfig", 0),
    ("KubeSchedulerConfiguration", 0),
    ("NodePool", 1),
    ("EC2NodeClass", 1),
    ("NodeClass", 1),
    ("Provisioner", 1),
    ("AWSNodeTemplate", 1),
    ("NodeOverlay", 1),
    ("Deployment", 2),
    ("ReplicaSet", 2),
    ("ReplicationController", 2),
    ("Rollout", 2),
    ("StatefulSet", 2),
    ("CronJob", 2),
    ("Job", 2),
    ("Pod", 2),
    ("HorizontalPodAutoscaler", 3),
    ("VerticalPodAutoscaler", 3),
    ("ScaledObject", 3),
    ("ScaledJob", 3),
    ("PodDisruptionBudget", 3),
    ("PodTemplate", 3),
    ("CapacityBuffer", 3),
];
/// Files of other programs that are read with the objects of a cluster, which keeps none of them.
const CONFIGURATIONS: [&str; 2] = ["ClusterConfig", "KubeSchedulerConfiguration"];
/// What KEDA makes autoscalers of.
const SCALED_OBJECT: &str = "ScaledObject";
/// Kinds that say nothing more than what is taken from other objects.
const IMPLIED: [&str; 1] = ["CSINode"];
/// Kinds of which a cluster without any runs nothing.
const WORKLOADS: [&str; 8] =
    ["Deployment", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet", "CronJob", "Job", "Pod"];
/// Kinds that may have the template of a Rollout.
const TEMPLATES: [&str; 3] = ["Deployment", "ReplicaSet", "PodTemplate"];

/// What is to be told of a dump.
#[derive(Default)]
struct Notes {
    /// What the scenario does not carry.
    warnings: Vec<Warning>,
    /// What it takes for granted.
    assumptions: Vec<Assumption>,
}

impl Notes {
    fn warn(&mut self, text: impl Into<String>) {
        self.warnings.push(Warning::new(text));
    }

    fn assume(&mut self, text: impl Into<String>) {
        self.assumptions.push(text.into().into());
    }

    fn assume_of(&mut self, part: Part, text: impl Into<String>) {
        self.assumptions.push(Assumption { text: text.into(), part: Some(part) });
    }
}

/// The objects of a dump, sorted by what becomes of them.
#[derive(Default)]
struct Dump<'s> {
    /// What is written into the scenario's manifests, already without what the cluster added.
    carried: Vec<Object<'s>>,
    /// Nodes.
    nodes: Vec<Object<'s>>,
    /// What Karpenter has written down of its nodes.
    claims: Vec<Object<'s>>,
    /// Pods that have not ended and that something controls.
    pods: Vec<Object<'s>>,
    /// All pods that run on a node, as they are.
    running: Vec<Object<'s>>,
    /// Pods on a node that go with what made them.
    going: Vec<Object<'s>>,
    /// Pods that have ended.
    ended: Vec<Object<'s>>,
    /// HorizontalPodAutoscalers with their status, those of KEDA too.
    autoscalers: Vec<Object<'s>>,
    /// What metrics-server said of pods.
    metrics: Vec<Object<'s>>,
    /// What is not simulated.
    left_out: Vec<Object<'s>>,
    /// What made the pods and workloads that there are.
    makers: Makers,
    /// Which Deployments stand in for controllers that are not simulated.
    stand_ins: StandIns,
    /// Those that count as one workload.
    parts: Vec<stand_ins::Parts>,
    /// What autoscalers scale by way of what is not simulated.
    targets: Targets,
    /// The ScaledObjects, by `namespace/name`.
    scaled_objects: BTreeSet<String>,
    /// Objects that may have the template of a Rollout, by kind and `namespace/name`.
    templates: BTreeSet<(String, String)>,
    /// ReplicaSets that a Deployment or Rollout made.
    sets: Vec<Object<'s>>,
    /// How Karpenter is set up, where a Deployment runs it.
    karpenter: Option<karpenter::DeploymentEnvironment>,
    /// The same of one of its pods, which counts where there is no Deployment.
    karpenter_pod: Option<karpenter::DeploymentEnvironment>,
}

/// The draft of a scenario that is made of `sources`.
pub(super) fn draft(sources: &[Source], wishes: &Wishes, catalog: &Catalog) -> Result<Draft, ScenarioError> {
    let sources_read = top::read(sources)?;
    let sources = &*sources_read;
    let (mut all, mut described) = parsed(sources)?;
    let mut notes = Notes::default();
    let mut anonymous = None;
    if wishes.anonymise {
        all = anonymous::anonymise(all, &mut described, &mut notes);
        anonymous = Some(anonymous::file(&all));
    }
    let mut dump = sorted(all, &mut notes);
    if dump.nodes.is_empty() || wishes.observed.is_some() {
        jobs::leave_out_made(&mut dump);
    }
    leave_out_described_groups(&mut dump, &mut notes);
    limits::label(&mut dump.nodes, &described, &mut notes);
    let mut cluster = Cluster::new(&dump, wishes, catalog, &mut notes)?;
    ending::take_up(&mut dump, &mut notes);
    let passing = Passing::take(&mut dump);
    injected::containers(&mut dump, &mut notes);
    rebuilt::workloads(&mut dump, &mut notes);
    std::mem::take(&mut dump.targets).name_workloads(&mut dump, &mut notes);
    let jobs = recorded::take_jobs(&mut dump, wishes.observed.as_ref());
    jobs::tell_of_foreign(&dump, &mut notes);
    let runs = |object: &Object<'_>| WORKLOADS.contains(&&*object.kind);
    if passing.is_empty() && jobs.is_empty() && !dump.carried.iter().any(runs) {
        return Err(ScenarioError::new("no workloads in this dump: no Deployments, StatefulSets, or pods")
            .help(format!("make a dump: `{COMMAND}`")));
    }
    rebuilt::priority_classes(&mut dump, &mut notes);
    let manifests = read(sources, &dump.carried, &cluster.region)?;
    rebuilt::node_classes(&mut dump, &manifests, &mut notes);
    warn_of_left_out(sources, &dump, &cluster.region, &mut notes)?;
    let groups = groups::groups(&dump, &described, &cluster, &mut notes);
    cluster.reach(groups.iter().flat_map(|group| &group.zones));
    cluster.reach(wishes.observed.iter().flat_map(|item| &item.zones).flatten());
    observed::warn_of_unrecorded(wishes.observed.as_ref(), &mut notes);
    let demand = demand::demand(&dump, &manifests, (&cluster.region, wishes.observed.as_ref()), &mut notes)?;
    let replayed = observed::loads(wishes.observed.as_ref(), &manifests, &mut notes);
    let used = usages::usages(&dump, &manifests, (&demand, &replayed), &mut notes);
    let files: Vec<DraftFile> = manifest_files(&dump);
    // A mistake is shown where the dump has it, not when a run begins with it.
    let found = found::file(&dump, |objects| read(sources, objects, &cluster.region).map(drop))?;
    // A replay begins when the observation does, with other nodes than those of the dump's moment.
    let found = found.filter(|_| wishes.observed.is_none());
    let trace = trace(&dump, (&passing, &jobs), (&cluster, wishes.observed.as_ref()), &mut notes)?;
    let migration = Migration::new(&dump, &cluster, &groups);
    let regrouped = regrouping::groups(&dump, &cluster, &mut notes);
    let autoscaler = (!regrouped.is_empty()).then(|| regrouping::file(&dump));
    let to_auto_mode = auto_mode::has_counterpart(&dump, &cluster);
    let managed = to_auto_mode.then(|| auto_mode::file(&dump, &manifests, &groups, &mut notes));
    let karpenter = match (migration, &cluster.launcher) {
        (Some(migration), _) => Some(migration::file(&dump, &groups, migration, &mut notes)),
        (None, Launcher::EksAutoMode) => Some(auto_mode::self_run(&dump, &cluster, &mut notes)),
        (None, _) => None,
    };
    let counted_requests = replayed.iter().any(|load| load.cpu_per_request.is_some());
    let loads = (demand.loads.len() + replayed.len(), counted_requests);
    let bill = bill::BillFacts::new(&dump, &cluster, loads, &mut notes);
    // The nodes of the dump's moment say nothing of a window that is replayed.
    let remark = inventory::sentence(&dump, &cluster.region).filter(|_| wishes.observed.is_none());
    let scenario = text::scenario(&text::Facts {
        wishes,
        cluster: &cluster,
        files: &files,
        found: found.is_some(),
        trace: trace.as_ref(),
        migration,
        groups: &groups,
        regrouped: &regrouped,
        to_auto_mode,
        bill,
        demand: &demand,
        replayed: &replayed,
        used: &used,
        run_times: &ended::run_times(&dump, wishes.observed.as_ref()),
        parts: &dump.parts,
        images: &images::sizes(&dump),
        notes: &notes,
        remark: remark.as_deref(),
    });
    let scenario = DraftFile { name: SCENARIO_FILE.into(), text: scenario };
    Ok(Draft {
        files: std::iter::once(scenario)
            .chain(files)
            .chain(observed::files(&replayed))
            .chain(found)
            .chain(trace.map(|trace| trace.file))
            .chain(karpenter)
            .chain(autoscaler)
            .chain(managed)
            .chain(anonymous)
            .collect(),
        warnings: notes.warnings,
        remark,
    })
}

/// Namespace and name of each Deployment, Rollout and StatefulSet.
pub(super) fn serving_workloads(sources: &[Source]) -> Result<BTreeSet<String>, ScenarioError> {
    let sources_read = top::read(sources)?;
    let (all, _) = parsed(&sources_read)?;
    let serving = all.iter().filter(|item| {
        ["Deployment", "ReplicaSet", "ReplicationController", "Rollout", "StatefulSet"].contains(&item.kind.as_str())
    });
    Ok(serving.map(Object::full_name).collect())
}

/// Whether a dump holds nodes, which say in which region it is.
pub(super) fn has_nodes(sources: &[Source]) -> Result<bool, ScenarioError> {
    let sources_read = top::read(sources)?;
    Ok(parsed(&sources_read)?.0.iter().any(|parsed| parsed.kind == "Node"))
}

/// The objects of all sources, and what the AWS CLI printed among them.
fn parsed(sources: &[Source]) -> Result<(Vec<Object<'_>>, Described), ScenarioError> {
    let (mut all, mut described) = (Vec::new(), Described::default());
    for source in sources {
        let mut objects = Vec::new();
        let documents = dump::parse(source, &Variables::new(), &Limits::default()).map_err(not_a_dump)?;
        let count = documents.len();
        for document in documents {
            if !described.take(source, &document)? {
                objects.push(document);
            }
        }
        if count == 0 || !objects.is_empty() {
            all.extend(objects::objects(source, objects)?);
        }
    }
    Ok((all, described))
}

/// What is no YAML is most often what `kubectl` prints without `-o yaml`.
fn not_a_dump(error: ScenarioError) -> ScenarioError {
    if error.message() == "this is not YAML" {
        return error.help(format!("a dump is YAML or JSON: `{COMMAND}`"));
    }
    error
}

/// Sorts the objects; of two of one kind and name the later counts.
fn sorted<'s>(all: Vec<Object<'s>>, notes: &mut Notes) -> Dump<'s> {
    let stand_ins = StandIns::from_objects(&all);
    let targets = Targets::new(&all, &stand_ins);
    let mut dump = Dump { makers: Makers::from_objects(&all), stand_ins, targets, ..Dump::default() };
    let going = Ending::from_objects(&all);
    dump.scaled_objects = all.iter().filter(|item| item.kind == SCALED_OBJECT).map(Object::full_name).collect();
    let templates = all.iter().filter(|item| TEMPLATES.contains(&&*item.kind));
    dump.templates = templates.map(|template| (template.kind.clone(), template.full_name())).collect();
    let mut last: BTreeMap<(String, String), usize> = BTreeMap::new();
    for (position, object) in all.iter().enumerate() {
        last.insert((object.kind.clone(), object.full_name()), position);
    }
    let mut ending = 0_usize;
    for (position, object) in all.into_iter().enumerate() {
        // What has no name yet gets another each time.
        let is_latest = || last.get(&(object.kind.clone(), object.full_name())) == Some(&position);
        if !(object.name.is_empty() || is_latest()) {
            continue;
        }
        if object.is_deleted() && !["Node", "NodeClaim"].contains(&&*object.kind) {
            ending += usize::from(object.kind != "Pod");
            // Whoever made it counts on it no more, and its node has it still.
            if object.kind == "Pod" && found::is_placed(&object) && !is_mirror(&object) && !has_pod_ended(&object) {
                dump.running.push(object);
            }
            continue;
        }
        let is_pod = object.kind == "Pod";
        if going.takes(&object) && !(is_pod && has_pod_ended(&object)) {
            ending += usize::from(!is_pod);
            if is_pod && found::is_placed(&object) && !is_mirror(&object) {
                dump.going.push(object);
            }
            continue;
        }
        sort(object, &mut dump);
    }
    if ending > 0 {
        let objects = counted(ending as u64, "object is", "objects are");
        notes.warn(format!("{objects} being deleted; ignored"));
    }
    dump.karpenter = dump.karpenter.take().or(dump.karpenter_pod.take());
    // As the table has them, and within a kind as the dump has them.
    let rank = |object: &Object<'_>| CARRIED.iter().position(|(kind, _)| *kind == object.kind);
    dump.carried.sort_by_key(rank);
    dump
}

fn sort<'s>(mut object: Object<'s>, dump: &mut Dump<'s>) {
    let controlled = object.controller().is_some();
    match object.kind.as_str() {
        "Node" => return dump.nodes.push(object),
        "PodMetrics" => return dump.metrics.push(object),
        "NodeClaim" | "Machine" => return dump.claims.push(object),
        "Pod" => {
            if is_mirror(&object) {
                return;
            }
            if has_pod_ended(&object) {
                return dump.ended.push(object);
            }
            if found::is_placed(&object) {
                // A dump of pods alone shows its Karpenter too; a Deployment goes before them.
                if controlled && cluster::is_of_karpenter(&object) {
                    dump.karpenter_pod
                        .get_or_insert_with(|| karpenter::DeploymentEnvironment::from_deployment(&object));
                }
                dump.running.push(object.clone());
            }
            if controlled {
                return dump.pods.push(object);
            }
            if let Some(spec) = objects::find_mut(Rc::make_mut(&mut object.node), &["spec"]) {
                objects::remove(spec, &["nodeName"]);
            }
        }
        "HorizontalPodAutoscaler" => {
            dump.autoscalers.push(object.clone());
            if is_kedas(&object, dump) {
                return;
            }
        }
        "Job" if jobs::has_ended(&object) => return,
        // Without its template its pods show what they are.
        "Rollout" if rebuilt::lacks_template(&object, &dump.templates) => return dump.left_out.push(object),
        "ReplicaSet" if rebuilt::maker_of_set(&object).is_some() => return dump.sets.push(object),
        "ConfigMap" if object.full_name() != RANKS => {
            // Of a scheduler of one's own it is said that it is not simulated.
            if schedulers_of(&object.node).is_some() {
                dump.left_out.push(object);
            }
            return;
        }
        "Deployment" if cluster::is_of_karpenter(&object) => {
            dump.karpenter.get_or_insert_with(|| karpenter::DeploymentEnvironment::from_deployment(&object));
        }
        _ => {}
    }
    if CARRIED.iter().any(|(kind, _)| *kind == object.kind) {
        clean::clean(Rc::make_mut(&mut object.node));
        dump.carried.push(object);
    } else if !IMPLIED.contains(&&*object.kind) {
        dump.left_out.push(object);
    }
}

/// Whether KEDA makes an autoscaler anew, of a ScaledObject that the dump has. One that another operator made is as good as a user's.
fn is_kedas(autoscaler: &Object<'_>, dump: &Dump<'_>) -> bool {
    autoscaler.owner().is_some_and(|owner| {
        let full_name = format!("{}/{}", autoscaler.own_namespace(), owner.name);
        owner.kind == SCALED_OBJECT && dump.scaled_objects.contains(&full_name)
    })
}

/// Node groups are as nodes show them; a ClusterConfig says of them only where there are no nodes. Its Fargate profiles no node shows.
fn leave_out_described_groups(dump: &mut Dump<'_>, notes: &mut Notes) {
    if dump.nodes.is_empty() {
        return;
    }
    let (configs, mut carried): (Vec<_>, Vec<_>) =
        std::mem::take(&mut dump.carried).into_iter().partition(|object| object.kind == "ClusterConfig");
    let mut profiles = 0;
    for mut config in configs.iter().cloned() {
        let count = config.at(&["fargateProfiles"]).map_or(0, |config| config.items().len());
        profiles += count;
        if let NodeKind::Map(entries) = &mut Rc::make_mut(&mut config.node).kind {
            entries.retain(|entry| ["apiVersion", "kind", "fargateProfiles"].contains(&&*entry.key));
        }
        carried.extend((count > 0).then_some(config));
    }
    let rank = |object: &Object<'_>| CARRIED.iter().position(|(kind, _)| *kind == object.kind);
    carried.sort_by_key(rank);
    dump.carried = carried;
    let groups = "node groups are taken from the dump's nodes";
    match (configs.is_empty(), profiles) {
        (true, _) => {}
        (false, 0) => notes.warn(format!("the ClusterConfig is left out: {groups}")),
        (false, _) => notes.warn(format!("the ClusterConfig is left out but for its Fargate profiles: {groups}")),
    }
}

/// Whether the kubelet has a pod from a file of its node.
fn is_mirror(pod: &Object<'_>) -> bool {
    pod.text(&["metadata", "annotations", "kubernetes.io/config.mirror"]).is_some()
}

fn has_pod_ended(pod: &Object<'_>) -> bool {
    ["Succeeded", "Failed"].contains(&pod.text(&["status", "phase"]).unwrap_or_default())
}

/// Reads objects as a run will; a mistake is shown where the dump has it.
fn read<'s>(sources: &'s [Source], objects: &[Object<'s>], region: &Region) -> Result<Manifests, ScenarioError> {
    let mut all = Manifests::default();
    for source in sources {
        let this_object = objects.iter().filter(|object| std::ptr::eq(object.source, source));
        let documents: Vec<&Node<'s>> = this_object.map(|object| &*object.node).collect();
        if !documents.is_empty() {
            all.apply(read_documents(source, &documents, Some(region))?);
        }
    }
    let warnings = all.complete_workloads(&[]);
    all.warnings.extend(warnings);
    Ok(all)
}

/// Pods that are replayed one by one.
struct Trace {
    file: DraftFile,
    /// The namespace that they are all made in.
    namespace: String,
    /// What they are, for a comment.
    about: &'static str,
}

/// The trace of pods that no workload makes: of those that were observed, or of those of the dump that come and go; none if there are
/// none.
fn trace<'s>(
    dump: &Dump<'s>,
    (passing, jobs): (&Passing<'s>, &[Object<'s>]),
    (cluster, observed): (&Cluster, Option<&Observed>),
    notes: &mut Notes,
) -> Result<Option<Trace>, ScenarioError> {
    let alone =
        |object: &Object<'s>| read(std::slice::from_ref(object.source), std::slice::from_ref(object), &cluster.region);
    let mut known = recorded::KnownRequests::default();
    for job in jobs {
        alone(job)?.jobs.iter().for_each(|this_job| known.job(job.full_name(), &this_job.spec.template));
    }
    let mut specs = Vec::new();
    for pod in passing.pods() {
        specs.extend(alone(&pod)?.pods.into_iter().map(|pod| pod.spec));
        specs.last().into_iter().for_each(|spec| known.passing(pod.own_namespace(), spec));
    }
    let recorded = recorded::trace(observed, dump, &known, notes);
    if recorded.is_some() || passing.is_empty() {
        return Ok(recorded);
    }
    let seen = cluster.seen.unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    let (file, namespace) = (passing.file(&specs, seen, notes), passing.namespace.clone());
    Ok(Some(Trace { file, namespace, about: "pods that come and go by themselves" }))
}

/// Tells what is in the dump and in no simulation.
fn warn_of_left_out(
    sources: &[Source],
    dump: &Dump<'_>,
    region: &Region,
    notes: &mut Notes,
) -> Result<(), ScenarioError> {
    let (made, none): (Vec<Object<'_>>, Vec<Object<'_>>) =
        dump.left_out.iter().cloned().partition(|object| dump.makers.contains(object));
    let of_workloads: BTreeSet<&str> =
        made.iter().filter(|object| dump.makers.made_workloads(object)).map(|object| object.kind.as_str()).collect();
    for kind in of_workloads {
        notes.warn(format!("{kind} is not simulated: the workloads it created stay as they are in the dump"));
    }
    let is_maker = |object: &Object<'_>| foreign(object.group(), &object.kind) == Some(Foreign::MakesPods);
    let (makers, others): (Vec<Object<'_>>, Vec<Object<'_>>) = none.into_iter().partition(is_maker);
    let kinds: BTreeSet<(&str, &str)> = makers.iter().map(|object| (object.kind.as_str(), object.group())).collect();
    for (kind, group) in kinds {
        notes.warn(format!("{kind} ({group}) is not simulated: objects it created stay as they are in the dump"));
    }
    // What was rendered of an object is in the dump as well; what kustomize reads is in no cluster.
    let is_rendered = |object: &Object<'_>| {
        object.group() != KUSTOMIZE && foreign(object.group(), &object.kind) == Some(Foreign::Renders)
    };
    let others: Vec<Object<'_>> = others.into_iter().filter(|object| !is_rendered(object)).collect();
    notes.warnings.extend(read(sources, &others, region)?.warnings);
    Ok(())
}

/// The files of the objects that are carried; none for what there is none of.
fn manifest_files(dump: &Dump<'_>) -> Vec<DraftFile> {
    let mut files = Vec::new();
    for (place, (name, about)) in FILES.iter().enumerate() {
        let carried = dump.carried.iter().filter(|object| CARRIED.contains(&(object.kind.as_str(), place)));
        let mut documents = String::new();
        carried.for_each(|object| yaml::document(&object.node, &mut documents));
        if !documents.is_empty() {
            let about = format!(
                "# {about} Made of a dump by `nodecast init --from`: without status and environment variables.\n"
            );
            files.push(DraftFile { name: (*name).into(), text: about + &documents });
        }
    }
    files
}

#[cfg(test)]
mod tests {
    use super::{CARRIED, CONFIGURATIONS};
    use crate::draft::RESOURCES;

    #[test]
    fn dump_requests_exactly_the_supported_kinds() {
        let plural = |kind: &str| {
            let name = kind.to_ascii_lowercase();
            match name.strip_suffix("cy") {
                Some(stem) => format!("{stem}cies"),
                None if name.ends_with('s') => name + "es",
                None => name + "s",
            }
        };
        // The pods of ReplicaSets and ReplicationControllers show what these are, and a Deployment keeps many that are empty.
        let unasked = ["CSIDriver", "ConfigMap", "ReplicaSet", "ReplicationController"];
        let kept = |kind: &&str| !unasked.contains(kind) && !CONFIGURATIONS.contains(kind);
        let read = CARRIED.iter().map(|(kind, _)| *kind).filter(kept);
        // Volumes per node count in questions about the dump itself.
        let mut read: Vec<String> = read.chain(["Node", "NodeClaim", "Machine", "CSINode"]).map(plural).collect();
        // PodMetrics are called `pods` of another group.
        read.push("pods".to_owned());
        let mut asked: Vec<&str> = RESOURCES.iter().filter_map(|name| name.split('.').next()).collect();
        read.sort_unstable();
        asked.sort_unstable();
        assert_eq!(read, asked);
    }
}
