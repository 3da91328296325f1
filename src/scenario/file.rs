//! The scenario file: its keys, each in one place, and how they become a [`Scenario`].

mod account;
mod availability;
mod billing;
mod checks;
mod cloud;
mod controller_time;
mod external_metrics;
mod faults;
mod interruption;
mod load;
mod objectives;
mod pipeline;
mod pod_trace;
mod policies;
mod price_records;
mod prometheus;
mod queues;
mod records;
mod timeline;
mod values;
mod workloads;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::definition::{InputFile, OutputSettings, Scenario, TimedAction};
use super::edits::{Edit, note_objects};
use super::error::{Place, ScenarioError, Warning};
use super::manifests::node_group::plain_groups;
use super::manifests::{Manifests, UNKNOWN_KIND, read_documents};
use super::reader::{Fields, Reader};
use super::source::{Limits, Source, read_bounded, sha256_hex};
use super::tree::{self, Location, Node, Variables};
use crate::catalog::{Catalog, Region};
use crate::domain::workload::ObjectName;
use crate::domain::{ControllerTime, KubernetesVersion, SimDuration, Symbol, Versions};
use crate::scenario::schema::KEDA;
use crate::scenario::schema::cluster::{CLUSTER, VERSIONS};
use crate::scenario::schema::whole::{OUTPUT, SCENARIO};
use interruption::Handling;

/// Where a scenario begins unless it says so.
pub(in crate::scenario) const DEFAULT_START: jiff::Timestamp = jiff::Timestamp::constant(1_767_225_600, 0);
/// Longest simulated time, in days.
const DURATION_DAYS_MAX: i64 = 3_660;

impl Scenario {
    /// Reads the scenario at `path` with everything that it names, against the built-in prices.
    ///
    /// # Errors
    /// At the first thing that is wrong.
    pub fn load(path: &Path) -> Result<(Self, Vec<Warning>), ScenarioError> {
        let catalog = Catalog::embedded().map_err(|error| ScenarioError::new(error.to_string()))?;
        Self::load_with(path, catalog, &Limits::default())
    }

    /// As [`Scenario::load`], with other prices and limits.
    ///
    /// # Errors
    /// As [`Scenario::load`].
    pub fn load_with(path: &Path, catalog: &Catalog, limits: &Limits) -> Result<(Self, Vec<Warning>), ScenarioError> {
        Self::load_edited(path, catalog, limits, &[])
    }

    /// As [`Scenario::load_with`], with some values of the scenario and its manifests changed.
    ///
    /// # Errors
    /// As [`Scenario::load`], and if an edit finds no place.
    pub fn load_edited(
        path: &Path,
        catalog: &Catalog,
        limits: &Limits,
        edits: &[Edit],
    ) -> Result<(Self, Vec<Warning>), ScenarioError> {
        let loaded = Self::load_whole(path, catalog, limits, edits);
        if edits.is_empty() {
            return loaded;
        }
        let set: Vec<String> = edits.iter().map(|edit| format!("`{}`", edit.text())).collect();
        loaded.map_err(|error| error.within(&format!("with {} set", set.join(" and "))))
    }

    fn load_whole(
        path: &Path,
        catalog: &Catalog,
        limits: &Limits,
        edits: &[Edit],
    ) -> Result<(Self, Vec<Warning>), ScenarioError> {
        let source = Source::load(path, path.display().to_string(), limits)?.with_edits(edits.iter().map(Edit::text));
        let mut documents = tree::parse(&source, &Variables::new(), limits)?;
        for (number, edit) in edits.iter().enumerate().filter(|(_, edit)| !edit.is_of_manifest()) {
            edit.apply(&mut documents, source.edit_offset(number))?;
        }
        let root = match documents.as_slice() {
            [first, ..] if first.get("apiVersion").is_some() && first.get("kind").is_some() => {
                return Err(ScenarioError::new("this file holds Kubernetes objects, not a scenario")
                    .at(first.get("kind").and_then(|kind| source.place(kind.at)))
                    .because("an object of Kubernetes")
                    .help("name the scenario file that has this one under `manifests`; `nodecast init` writes a first one"));
            }
            [] => {
                return Err(ScenarioError::new(format!("`{}` is empty", source.name))
                    .help("a scenario needs at least `name`, `region`, `duration` and `manifests`"));
            }
            [root] => root,
            [_, second, ..] => {
                return Err(ScenarioError::new("a scenario is one YAML document")
                    .at(source.place(second.at))
                    .because("a second one begins here")
                    .help("name Kubernetes objects in `manifests`, in files of their own"));
            }
        };
        let mut reader = Reader::new(Some(&source));
        let fields = reader.fields(root, &SCENARIO.shape)?;
        let region = region(&reader, fields, catalog)?;
        let mut files = Files {
            directory: path.parent().map(Path::to_path_buf).unwrap_or_default(),
            variables: variables(&reader, fields)?,
            limits,
            region: &region,
            inputs: vec![InputFile { path: source.name.clone(), sha256: source.sha256() }],
            warnings: Vec::new(),
            edits,
            edited: vec![false; edits.len()],
            objects: BTreeSet::new(),
            sources: Vec::new(),
        };
        let scenario = scenario(&mut reader, fields, &region, &mut files).map_err(|error| files.with_unknown(error))?;
        files.check_edits()?;
        let mut warnings = reader.into_warnings();
        warnings.append(&mut files.warnings);
        checks::warn(&scenario, &mut warnings, &|manifests, kind, name| files.place(manifests, kind, name));
        Ok((scenario, warnings))
    }
}

/// Files that a scenario names, read relative to it and remembered with their hashes.
struct Files<'a> {
    directory: PathBuf,
    variables: Variables,
    limits: &'a Limits,
    region: &'a Region,
    inputs: Vec<InputFile>,
    warnings: Vec<Warning>,
    edits: &'a [Edit],
    /// Which of `edits` have found a place.
    edited: Vec<bool>,
    /// Kind and name of every object, if there are edits.
    objects: BTreeSet<(String, String)>,
    /// The manifests read, to show where an object stands that a later check speaks of.
    sources: Vec<Source>,
}

impl Files<'_> {
    /// An error about something that refers to nothing, with what may have been it: an object whose kind is not known.
    fn with_unknown(&self, error: ScenarioError) -> ScenarioError {
        let unknown = self.warnings.iter().find(|warning| warning.message().starts_with(UNKNOWN_KIND));
        match unknown.and_then(|warning| Some((warning, warning.place()?))) {
            Some((warning, place)) if error.refers_to_nothing() => {
                error.also(&format!("{}:{}:{} has an {}", place.file, place.line, place.column, warning.message()))
            }
            _ => error,
        }
    }

    /// Every edit of a manifest must have found its object.
    fn check_edits(&self) -> Result<(), ScenarioError> {
        let found = self.edits.iter().zip(&self.edited).filter(|(_, found)| **found);
        if let Some(flaw) = found.filter_map(|(edit, _)| edit.flaw()).next() {
            return Err(flaw);
        }
        let missed = self.edits.iter().zip(&self.edited).find(|(edit, found)| edit.is_of_manifest() && !**found);
        match missed {
            Some((edit, _)) => Err(edit.missed(&self.objects)),
            None => Ok(()),
        }
    }

    /// Where the object stands that `manifests` have under this kind and name.
    fn place(&self, manifests: &Manifests, kind: &str, name: ObjectName) -> Option<Place> {
        let origin = manifests.origin(kind, name)?;
        self.sources.iter().find(|source| source.name == origin.file.as_str())?.place(origin.at)
    }

    /// The manifests under `key`, one file after another.
    fn manifests(
        &mut self,
        reader: &Reader<'_>,
        fields: Fields<'_, '_>,
        key: &'static str,
    ) -> Result<Manifests, ScenarioError> {
        let mut all = Manifests::default();
        for node in fields.optional(key, |n, what| reader.list(n, what))?.unwrap_or_default() {
            all.apply(self.manifest_file(reader, node)?);
        }
        self.warnings.append(&mut all.warnings);
        Ok(all)
    }

    fn manifest_file(&mut self, reader: &Reader<'_>, node: &Node<'_>) -> Result<Manifests, ScenarioError> {
        let name = reader.text(node, "manifests")?;
        let path = self.directory.join(name);
        let shown = path.display().to_string();
        // A file that cannot be opened is the scenario's mistake: the error shows where it is named.
        let source = Source::load(&path, shown, self.limits).map_err(|error| match error.place() {
            Some(_) => error,
            None => error.at(reader.place(node.at)).because("named here"),
        })?;
        let source = source.with_edits(self.edits.iter().map(Edit::text));
        self.remember(name, source.sha256());
        let mut documents = tree::parse(&source, &self.variables, self.limits)?;
        for (number, (edit, found)) in self.edits.iter().zip(&mut self.edited).enumerate() {
            if edit.is_of_manifest() {
                *found |= edit.apply(&mut documents, source.edit_offset(number))?;
            }
        }
        if !self.edits.is_empty() {
            documents.iter().for_each(|document| note_objects(document, &mut self.objects));
        }
        let read = read_documents(&source, &documents, Some(self.region));
        drop(documents);
        if !self.sources.iter().any(|known| known.name == source.name) {
            self.sources.push(source);
        }
        read
    }

    /// The bytes of a file that is not YAML.
    fn bytes(&mut self, reader: &Reader<'_>, node: &Node<'_>, name: &str) -> Result<Vec<u8>, ScenarioError> {
        let path = self.directory.join(name);
        let bytes = read_bounded(&path, &path.display().to_string(), self.limits.file_bytes_max)
            .map_err(|error| error.at(reader.place(node.at)).because("named here"))?;
        self.remember(name, sha256_hex(&bytes));
        Ok(bytes)
    }

    fn remember(&mut self, name: &str, sha256: String) {
        if !self.inputs.iter().any(|input| input.path == name) {
            self.inputs.push(InputFile { path: name.to_owned(), sha256 });
        }
    }
}

fn region(reader: &Reader<'_>, fields: Fields<'_, '_>, catalog: &Catalog) -> Result<Arc<Region>, ScenarioError> {
    let node = fields.required(reader, "region")?;
    let name = reader.text(node, "region")?;
    catalog.region(name).map_err(|error| {
        let near = super::error::nearest(name, catalog.regions());
        let help = near.map_or_else(
            || format!("there are prices for {}", catalog.regions().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        match error {
            crate::catalog::CatalogError::UnknownRegion { .. } => reader
                .error(node.at, format!("there are no prices for the region `{name}`"))
                .because("unknown region")
                .help(help),
            other => ScenarioError::new(other.to_string()),
        }
    })
}

fn variables(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Variables, ScenarioError> {
    let Some(node) = fields.get("variables") else { return Ok(Variables::new()) };
    let entries = reader.entries(node, "variables")?;
    entries.iter().map(|e| Ok((e.key.to_string(), reader.text(&e.value, &e.key)?.to_owned()))).collect()
}

fn scenario<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    files: &mut Files<'_>,
) -> Result<Scenario, ScenarioError> {
    let name = file_name(reader, fields.required(reader, "name")?)?;
    let start = fields.get("start").map(|n| values::start(reader, n)).transpose()?.unwrap_or(DEFAULT_START);
    let duration = duration(reader, fields.required(reader, "duration")?)?;
    let mut base = files.manifests(reader, fields, "manifests")?;
    node_groups(reader, fields, region, &mut base)?;
    let warm_up = warm_up(reader, fields, duration)?;
    let versions = versions(reader, fields, kubernetes_of(&base))?;
    let handling = Handling::read(reader, fields, Handling::default())?;
    let pace = controller_time::read(reader, fields, ControllerTime::default())?;
    let policies = policies::read(reader, fields, region, &base, (versions, handling, pace), files)?;
    let timeline = timeline::read(reader, fields, files, duration, &base.priority_classes)?;
    let known = checks::Workloads::of(&policies, &timeline.actions);
    let node_pools = checks::node_pools(&policies, &timeline.actions);
    checks::timeline(reader, &timeline, &known, &policies)?;
    let run = load::Run { start, duration, workloads: &known };
    let load = load::read(reader, fields, &timeline.load, files, &run)?;
    let prometheus = prometheus::read(reader, fields, &known)?;
    let queues = queues::read(reader, fields, files, &run)?;
    let external_metrics = external_metrics::read(reader, fields, files, &known)?;
    let metrics_resolution = pipeline::resolution(reader, fields)?;
    let phases = pipeline::phases(reader, fields, metrics_resolution)?;
    let seed = fields.optional("seed", |n, what| reader.integer(n, what, 0, i64::MAX))?.unwrap_or(1);
    let replications = fields.optional("replications", |n, what| reader.integer(n, what, 1, 10_000))?.unwrap_or(20);
    let assumptions = fields.optional("assumptions", |n, what| reader.list(n, what))?.unwrap_or_default();
    Ok(Scenario {
        name,
        region: region.name,
        zones: zones(reader, fields, region, &base)?,
        start,
        duration,
        warm_up,
        seed: seed.unsigned_abs(),
        replications: u32::try_from(replications).unwrap_or(u32::MAX),
        load,
        prometheus,
        queues,
        external_metrics,
        metrics_resolution,
        phases,
        pods: pod_trace::read(reader, fields, files, duration)?,
        times: workloads::times(reader, fields, &known)?,
        images: workloads::images(reader, fields)?,
        timeline: timeline.actions.into_iter().map(|placed| placed.action).collect(),
        policies,
        ec2: cloud::read(reader, fields, region, files, &node_pools, (start, duration))?,
        objectives: objectives::read(reader, fields, &known)?,
        output: output(reader, fields)?,
        assumptions: assumptions
            .iter()
            .map(|n| reader.text(n, "assumptions").map(str::to_owned))
            .collect::<Result<_, _>>()?,
        inputs: std::mem::take(&mut files.inputs),
    })
}

/// A name that can be a folder's.
fn file_name(reader: &Reader<'_>, node: &Node<'_>) -> Result<String, ScenarioError> {
    let name = reader.text(node, "name")?;
    let safe = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(safe) {
        return Err(reader
            .error(node.at, "a name is made of letters, digits, `-`, `_` and `.`")
            .because("cannot name a folder")
            .help("write for example `black-friday`"));
    }
    Ok(name.to_owned())
}

fn duration(reader: &Reader<'_>, node: &Node<'_>) -> Result<SimDuration, ScenarioError> {
    let duration = reader.duration(node, "duration")?;
    let days = duration.as_secs() / 86_400;
    if duration == SimDuration::ZERO || days > DURATION_DAYS_MAX {
        return Err(reader
            .error(node.at, format!("`duration` is {duration}"))
            .because("cannot be simulated")
            .help(format!("write more than 0s and at most {DURATION_DAYS_MAX}d")));
    }
    Ok(duration)
}

/// The time at the start that figures of waiting leave out. A run that was made shorter may end before it is over.
fn warm_up<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    duration: SimDuration,
) -> Result<SimDuration, ScenarioError> {
    let Some(node) = fields.get("warm_up") else { return Ok(SimDuration::ZERO) };
    let warm_up = reader.duration(node, "warm_up")?;
    if warm_up < duration {
        return Ok(warm_up);
    }
    let message = format!("`warm_up` is {warm_up} and the run ends at {duration}: nothing is left out of its figures");
    reader.warn(node.at, message, "not simulated", "lower `warm_up` or raise `duration`");
    Ok(SimDuration::ZERO)
}

/// The release that a ClusterConfig names, if it can be reproduced.
fn kubernetes_of(manifests: &Manifests) -> Versions {
    let stated = manifests.cluster.as_ref().and_then(|cluster| cluster.kubernetes_version.as_deref());
    let kubernetes = stated.and_then(|text| text.parse::<KubernetesVersion>().ok()).unwrap_or_default();
    Versions { kubernetes, ..Versions::default() }
}

/// `versions`, over those that hold otherwise.
fn versions<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    otherwise: Versions,
) -> Result<Versions, ScenarioError> {
    let Some(node) = fields.get("versions") else { return Ok(otherwise) };
    let fields = reader.fields(node, &VERSIONS.shape)?;
    let mut versions = otherwise;
    if let Some(node) = fields.get("karpenter") {
        versions.karpenter = values::release(reader, node, "karpenter")?;
    }
    if let Some(node) = fields.get("kubernetes") {
        versions.kubernetes = values::release(reader, node, "kubernetes")?;
    }
    if let Some(node) = fields.get("cluster-autoscaler") {
        versions.cluster_autoscaler = values::release(reader, node, "cluster-autoscaler")?;
    }
    if let Some(node) = fields.get("keda") {
        let text = reader.text(node, "keda")?;
        let bare = text.strip_prefix('v').unwrap_or(text);
        if bare != KEDA && bare.strip_prefix(KEDA).is_none_or(|patch| !patch.starts_with('.')) {
            let shown: String = text.chars().take(40).collect();
            return Err(reader
                .error(node.at, format!("unknown KEDA version `{shown}`"))
                .because("not reproduced")
                .help(format!("known is {KEDA}")));
        }
    }
    Ok(versions)
}

fn zones<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    manifests: &Manifests,
) -> Result<Vec<Symbol>, ScenarioError> {
    let all = || region.zones.iter().map(|zone| zone.name);
    let mut zones = Vec::new();
    if let Some(node) = fields.get("cluster") {
        let cluster = reader.fields(node, &CLUSTER.shape)?;
        for node in cluster.optional("zones", |n, what| reader.list(n, what))?.unwrap_or_default() {
            let zone = reader.symbol(node, "zones")?;
            if region.zone_index(zone).is_none() {
                let known = super::error::listed(all().map(Symbol::as_str));
                return Err(reader
                    .error(node.at, format!("`{zone}` is not a zone of {}", region.name))
                    .because("unknown zone")
                    .help(format!("its zones are {known}")));
            }
            zones.push(zone);
        }
    }
    if zones.is_empty() {
        let stated = manifests.cluster.iter().flat_map(|cluster| cluster.zones.iter().copied());
        zones.extend(stated.filter(|zone| region.zone_index(*zone).is_some()));
    }
    if zones.is_empty() {
        zones.extend(all());
    }
    zones.sort_unstable();
    zones.dedup();
    Ok(zones)
}

/// The groups under `nodeGroups`, over those of the same name in manifests.
fn node_groups<'s>(
    reader: &mut Reader<'s>,
    fields: Fields<'_, 's>,
    region: &Region,
    manifests: &mut Manifests,
) -> Result<(), ScenarioError> {
    let Some(node) = fields.get("nodeGroups") else { return Ok(()) };
    let cluster = manifests.cluster.as_ref().and_then(|cluster| cluster.name);
    let node_groups = plain_groups(reader, node, region, cluster)?;
    manifests.apply(Manifests { node_groups, ..Manifests::default() });
    Ok(())
}

fn output<'s>(reader: &mut Reader<'s>, fields: Fields<'_, 's>) -> Result<OutputSettings, ScenarioError> {
    let Some(node) = fields.get("output") else { return Ok(OutputSettings::default()) };
    let fields = reader.fields(node, &OUTPUT.shape)?;
    let directory = fields.optional("directory", |n, what| reader.text(n, what))?.map(str::to_owned);
    let open_metrics = fields.optional("open_metrics", |n, what| open_metrics(reader, n, what))?.flatten();
    Ok(OutputSettings { directory, open_metrics })
}

/// `true`, `false`, or the time between samples.
fn open_metrics<'s>(reader: &Reader<'s>, node: &Node<'s>, what: &str) -> Result<Option<SimDuration>, ScenarioError> {
    let (least, most) = (OutputSettings::STEPS.0, OutputSettings::STEPS.1);
    match node.as_text() {
        Some("true") => return Ok(Some(OutputSettings::STEP)),
        Some("false") => return Ok(None),
        _ => {}
    }
    let step = reader.duration(node, what)?;
    if step < least || step > most {
        let error = reader.error(node.at, format!("`{what}` is {step}"));
        return Err(error.because("Prometheus loses series whose samples are further apart").help(format!(
            "write a time between samples from {least} to {most}, or `true` for {}",
            OutputSettings::STEP
        )));
    }
    Ok(Some(step))
}

/// An action with the place at which the scenario states it.
struct Placed {
    action: TimedAction,
    at: Location,
}
