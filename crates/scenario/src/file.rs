//! The scenario file: how its keys become a [`Scenario`].
//!
//! What lives here: what the [descriptions](crate::schema) of the keys cannot say, that is sections that are read by
//! hand, what is made of others, and checks of keys against each other.

pub(crate) mod account;
mod auto_mode;
pub(crate) mod availability;
mod calibration;
mod checks;
pub(crate) mod cloud;
pub(crate) mod commitments;
pub(crate) mod external_metrics;
pub(crate) mod fargate;
pub(crate) mod faults;
pub(crate) mod initial;
pub(crate) mod load;
pub(crate) mod node_groups;
pub(crate) mod objectives;
mod overlays;
pub(crate) mod pod_trace;
mod policies;
mod price_records;
pub(crate) mod queues;
mod reading;
mod records;
mod services;
mod startup_taints;
pub(crate) mod timeline;
pub(crate) mod usage;
mod vertical;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

pub(crate) use reading::{Files, Reading};

use super::definition::{InputFile, Scenario, TimedAction};
use super::document::{Content, Document};
use super::edits::Edit;
use super::error::{ScenarioError, Warning};
use super::manifests::Manifests;
use super::reader::{Fields, Reader};
use super::source::{self, InMemoryFiles, Limits, Source, sha256_hex};
use super::tree::{self, Location, Node, NodeKind, Variables};
use crate::catalog::{Catalog, OwnFile, Region};
use crate::domain::{SimDuration, SimTime, Symbol};
use crate::schema::cluster::Cluster;
use crate::schema::faults::FaultEntry;
use crate::schema::kind::Kind;
use crate::schema::whole::{RunLength, SCENARIO, START};
use nodecast_settings::lints;
use overlays::Overlay;
pub(crate) use overlays::karpenter_settings;

/// Reads the scenario at `path` with everything that it names, against the built-in prices.
///
/// # Errors
/// At the first thing that is wrong.
pub fn load(path: &Path) -> Result<(Scenario, Vec<Warning>), ScenarioError> {
    let catalog = Catalog::embedded().map_err(|error| ScenarioError::new(error.to_string()))?;
    load_with(path, catalog, &Limits::default())
}

/// As [`load`], with other prices and limits.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: &Path, catalog: &Catalog, limits: &Limits) -> Result<(Scenario, Vec<Warning>), ScenarioError> {
    load_edited(path, catalog, limits, &[])
}

/// As [`load_with`], with some values of the scenario and its manifests changed.
///
/// # Errors
/// As [`load`], and if an edit finds no place.
pub fn load_edited(
    path: &Path,
    catalog: &Catalog,
    limits: &Limits,
    edits: &[Edit],
) -> Result<(Scenario, Vec<Warning>), ScenarioError> {
    let loaded = load_whole(path, catalog, limits, (edits, None), None);
    if edits.is_empty() {
        return loaded;
    }
    let set: Vec<String> = edits.iter().map(|edit| format!("`{}`", edit.text())).collect();
    loaded.map_err(|error| error.within(&format!("with {} set", set.join(" and "))))
}

/// The paths of all values that the scenario at `path` states itself, as `ec2.launch_latency.vm_init` or
/// `workloads[shop/web].start_time`.
///
/// # Errors
/// If it cannot be read, or is not YAML.
pub fn stated(path: &Path, limits: &Limits) -> Result<BTreeSet<String>, ScenarioError> {
    calibration::stated(path, limits)
}

/// The scenario of texts that stand in no files; it is the one called `name`.
///
/// # Errors
/// As [`load`].
pub fn of_texts(
    name: &str,
    held: &InMemoryFiles,
    catalog: &Catalog,
) -> Result<(Scenario, Vec<Warning>), ScenarioError> {
    load_whole(Path::new(name), catalog, &Limits::default(), (&[], Some(held)), None)
}

/// The documents of the scenario at `path` and of all manifests that it names, after `edits`: the scenario itself first.
///
/// # Errors
/// As [`load_edited`].
pub fn documents(
    path: &Path,
    catalog: &Catalog,
    limits: &Limits,
    edits: &[Edit],
) -> Result<Vec<Document>, ScenarioError> {
    let mut kept = Vec::new();
    load_whole(path, catalog, limits, (edits, None), Some(&mut kept))?;
    Ok(kept)
}

fn load_whole(
    path: &Path,
    catalog: &Catalog,
    limits: &Limits,
    (edits, held): (&[Edit], Option<&InMemoryFiles>),
    kept: Option<&mut Vec<Document>>,
) -> Result<(Scenario, Vec<Warning>), ScenarioError> {
    let source = match held {
        Some(held) => held.source(path)?,
        None => source::load(path, path.display().to_string(), limits)?,
    };
    let source = source.with_edits(edits.iter().map(Edit::text));
    let calibration = calibration_of(path, &source, limits, (edits, held))?;
    let source = match &calibration {
        Some((_, calibration)) => source.with_appended(calibration),
        None => source,
    };
    let mut documents = edited(&source, limits, edits)?;
    let mut calibrated = None;
    if let (Some((name, values)), [root]) = (&calibration, documents.as_mut_slice()) {
        let laid = tree::parse(values, &Variables::new(), limits)?;
        calibrated = Some(calibration::lay_under(root, laid, (name, values, source.appended_offset()))?);
    }
    let root = match documents.as_slice() {
        [first, ..] if first.get("apiVersion").is_some() && first.get("kind").is_some() => {
            return Err(ScenarioError::new("this file contains Kubernetes objects, not a scenario")
                .at(first.get("kind").and_then(|kind| source.place(kind.at)))
                .because("an object of Kubernetes")
                .help(format!(
                    "create a scenario from it: `nodecast init DIR --from {}`; or pass the scenario file that lists it under `manifests`",
                    source.name
                )));
        }
        [first, ..] if first.get("fleet").is_some() => {
            return Err(ScenarioError::new(format!("`{}` is a fleet, not a scenario", source.name))
                .at(first.get("fleet").and_then(|fleet| source.place(fleet.at)))
                .because("a fleet lists clusters")
                .help("use `run`, `compare`, `check`, `recommend`, or `validate` for a fleet; for all else pass the scenario of one cluster"));
        }
        [] => {
            return Err(ScenarioError::new(format!("`{}` is empty", source.name))
                .help("a scenario needs at least `name`, `region`, `duration` and `manifests`"));
        }
        [root] => root,
        [_, second, ..] => {
            return Err(ScenarioError::new("a scenario is one YAML document")
                .at(source.place(second.at))
                .because("a second document starts here")
                .help("name Kubernetes objects in `manifests`, in files of their own"));
        }
    };
    let mut reader = Reader::new(Some(&source));
    let fields = reader.fields(root, &SCENARIO.shape)?;
    let region = region(&reader, fields, catalog)?;
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    let files = Files {
        inputs: std::iter::once((&source.name, &source))
            .chain(calibration.iter().map(|(name, values)| (name, values)))
            .map(|(name, read)| InputFile { path: name.clone(), sha256: sha256_hex(read.text.as_bytes()) })
            .collect(),
        held,
        edits,
        edited: vec![false; edits.len()],
        kept: kept.is_some().then(|| vec![Document { file: None, content: Content::from_node(root) }]),
        ..Files::new(directory, variables(&reader, fields)?, limits, &region)
    };
    let mut reading = Reading::new(reader, files);
    let mut scenario = scenario(&mut reading, root).map_err(|error| reading.files.with_unknown(error))?;
    scenario.calibrated = calibrated;
    let price_file = |file: &OwnFile| InputFile { path: file.path.clone(), sha256: file.sha256.clone() };
    scenario.prices = catalog.own_files().iter().map(price_file).collect();
    let Reading { reader, mut files, .. } = reading;
    files.check_objects()?;
    files.check_edits()?;
    if let Some(kept) = kept {
        *kept = files.kept.take().unwrap_or_default();
    }
    let mut warnings = reader.into_warnings();
    warnings.append(&mut files.warnings);
    checks::warn(&scenario, &mut warnings, &|manifests, kind, name| files.place(manifests, kind, name));
    checks::drop_optional(&scenario, &mut warnings);
    scenario.silence(&mut warnings);
    Ok((scenario, warnings))
}

/// The documents of a scenario with its edits made.
fn edited<'s>(source: &'s Source, limits: &Limits, edits: &'s [Edit]) -> Result<Vec<Node<'s>>, ScenarioError> {
    let mut documents = tree::parse(source, &Variables::new(), limits)?;
    for (number, edit) in edits.iter().enumerate().filter(|(_, edit)| !edit.is_of_manifest()) {
        edit.apply(&mut documents, source.edit_offset(number))?;
    }
    Ok(documents)
}

/// The calibration that a scenario, with its edits made, names, and its name there.
fn calibration_of(
    path: &Path,
    source: &Source,
    limits: &Limits,
    (edits, held): (&[Edit], Option<&InMemoryFiles>),
) -> Result<Option<(String, Source)>, ScenarioError> {
    let documents = edited(source, limits, edits)?;
    let node = documents.first().and_then(|root| root.get(calibration::KEY));
    let Some(node) = node.filter(|node| node.kind != NodeKind::Null) else { return Ok(None) };
    let reader = Reader::new(Some(source));
    let name = reader.text(node, calibration::KEY)?;
    let file = path.parent().map_or_else(|| name.into(), |directory| directory.join(name));
    let read = match held {
        Some(held) => held.source(&file),
        None => source::load(&file, file.display().to_string(), limits),
    };
    // A file that cannot be opened is the scenario's mistake: the error shows where it is named.
    read.map(|read| Some((name.to_owned(), read))).map_err(|error| match error.place() {
        Some(_) => error,
        None => error.at(reader.place(node.at)).because("named here"),
    })
}

fn region(reader: &Reader<'_>, fields: Fields<'_, '_>, catalog: &Catalog) -> Result<Arc<Region>, ScenarioError> {
    let node = fields.required(reader, "region")?;
    let name = reader.text(node, "region")?;
    catalog.region(name).map_err(|error| {
        let near = super::error::nearest(name, catalog.regions());
        let help = near.map_or_else(
            || format!("regions with prices: {}", catalog.regions().collect::<Vec<_>>().join(", ")),
            |near| format!("did you mean `{near}`?"),
        );
        match error {
            crate::catalog::CatalogError::UnknownRegion { .. } => {
                reader.error(node.at, format!("no prices for region `{name}`")).because("unknown region").help(help)
            }
            other => ScenarioError::new(other.to_string()),
        }
    })
}

fn variables(reader: &Reader<'_>, fields: Fields<'_, '_>) -> Result<Variables, ScenarioError> {
    let Some(node) = fields.get("variables") else { return Ok(Variables::new()) };
    let entries = reader.entries(node, "variables")?;
    entries.iter().map(|e| Ok((e.key.to_string(), reader.text(&e.value, &e.key)?.to_owned()))).collect()
}

/// The scenario: first what the rest refers to, then the rest.
fn scenario<'s>(reading: &mut Reading<'_, 's>, root: &Node<'s>) -> Result<Scenario, ScenarioError> {
    let fields = reading.reader.fields(root, &SCENARIO.shape)?;
    reading.start = optional::<jiff::Timestamp>(reading, fields, "start")?.unwrap_or(START);
    let node = fields.required(&reading.reader, "duration")?;
    reading.duration = RunLength::read(reading, node, "duration")?;
    let mut base = reading.files.manifests(&reading.reader, fields, "manifests")?;
    base.apply(reading.files.added()?);
    node_groups::lay_over(reading, fields, &mut base)?;
    let cluster = optional::<Cluster>(reading, fields, "cluster")?.unwrap_or(Cluster {
        zones: Vec::new(),
        control_plane_tier: None,
        startup_taints: Vec::new(),
        max_container_restart_period: None,
    });
    let mut overlay = Overlay::over_defaults(&base).with(reading, fields)?;
    overlay.lay_tier(cluster.control_plane_tier);
    let mut policies = policies::read(reading, fields, &base, overlay.clone())?;
    let timeline = timeline::read(reading, fields, &base)?;
    if policies.is_empty() {
        policies.push(policies::implied(reading, fields, &base, overlay, &timeline.actions)?);
    }
    policies::check_pools(reading, fields, &policies, &timeline.actions)?;
    reading.workloads = checks::Workloads::new(&policies, &timeline.actions);
    reading.node_pools = checks::node_pools(&policies, &timeline.actions);
    checks::timeline(&reading.reader, &timeline, &reading.workloads, &policies)?;
    services::check(reading, &timeline, &policies)?;

    let mut scenario = Scenario::read(reading, root, "")?;
    scenario.load.extend(timeline::loads(reading, &timeline)?);
    scenario.load.sort_by_key(|load| load.at);
    let faults = optional::<Vec<FaultEntry>>(reading, fields, "faults")?.unwrap_or_default();
    let faults = faults::in_order(faults, SimTime::ZERO + reading.duration);
    Arc::make_mut(&mut scenario.ec2.cloud).faults = faults;
    checks::phases(&reading.reader, fields, &scenario)?;
    warm_up(reading, fields, &mut scenario);
    scenario.zones = zones(reading, cluster.zones, &base);
    startup_taints::check(reading, fields, &cluster.startup_taints, (&policies, &timeline.actions))?;
    scenario.startup_taints = cluster.startup_taints;
    scenario.max_container_restart_period = cluster.max_container_restart_period;
    scenario.timeline = timeline.actions.into_iter().map(|placed| placed.action).collect();
    scenario.policies = policies;
    scenario.inputs = std::mem::take(&mut reading.files.inputs);
    Ok(scenario)
}

/// What stands under a key that may be left out.
fn optional<'s, K: Kind>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    key: &'static str,
) -> Result<Option<K::Value>, ScenarioError> {
    fields.get(key).map(|node| K::read(reading, node, key)).transpose()
}

/// A run that was made shorter may end before what its figures leave out is over: then they leave out nothing.
fn warm_up(reading: &mut Reading<'_, '_>, fields: Fields<'_, '_>, scenario: &mut Scenario) {
    let (warm_up, duration) = (scenario.warm_up, scenario.duration);
    if let Some(node) = fields.get("warm_up").filter(|_| warm_up >= duration) {
        let message = format!("`warm_up` ({warm_up}) is not shorter than the run ({duration}), so it is ignored");
        reading.reader.warn(
            &lints::file::WARM_UP_TOO_LONG,
            node.at,
            message,
            "not simulated",
            "lower `warm_up` or raise `duration`",
        );
        scenario.warm_up = SimDuration::ZERO;
    }
}

/// The zones in use: those that the scenario names, else those of a ClusterConfig, else all of the region.
fn zones(reading: &Reading<'_, '_>, mut zones: Vec<Symbol>, manifests: &Manifests) -> Vec<Symbol> {
    let region = reading.region();
    if zones.is_empty() {
        let stated = manifests.cluster.iter().flat_map(|cluster| cluster.zones.iter().copied());
        zones.extend(stated.filter(|zone| region.zone_index(*zone).is_some()));
    }
    if zones.is_empty() {
        zones.extend(region.zones.iter().map(|zone| zone.name));
    }
    zones.sort_unstable();
    zones.dedup();
    zones
}

/// An action with the place at which the scenario states it.
struct Placed {
    action: TimedAction,
    at: Location,
}
