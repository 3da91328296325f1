//! The scenarios of a fleet's clusters, with what the fleet overrides.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use nodecast_commitments::Bearer;
use nodecast_model::catalog::Region;
use nodecast_model::domain::{SimDuration, Symbol};
use nodecast_model::text::error::{InputError, Place, Warning};
use nodecast_prices::Catalog;
use nodecast_scenario::{Edit, Limits};
use nodecast_settings::{InputFile, Scenario};

use crate::faults::ZONE;
use crate::places::Read;
use crate::usage::ClusterUsage;
use crate::{ClusterEntry, Fleet, SharedFault, checks, other_usage};

/// A fleet with the scenarios of its clusters.
#[derive(Clone, Debug)]
pub struct LoadedFleet {
    /// The fleet.
    pub fleet: Fleet,
    /// The clusters, copies included, in the order of the file.
    pub clusters: Vec<LoadedCluster>,
    /// Warnings of the fleet file.
    pub warnings: Vec<Warning>,
    /// The seed.
    pub seed: u64,
    /// Start of every run.
    pub start: Timestamp,
    /// Usage outside the clusters, by account.
    pub other_usage: Vec<(Bearer, ClusterUsage)>,
    /// Every file that was read. Those of a scenario follow the name of its cluster.
    pub inputs: Vec<InputFile>,
}

/// One cluster.
#[derive(Clone, Debug)]
pub struct LoadedCluster {
    /// Its name: that of the entry, with the copy's number where there are several.
    pub name: String,
    /// Position of its entry in the fleet.
    pub entry: usize,
    /// Number of the copy, from 1.
    pub copy: u32,
    /// Position of its account.
    pub account: usize,
    /// Its scenario, shared by copies.
    pub scenario: Arc<Scenario>,
    /// What reading the scenario left out.
    pub warnings: Arc<Vec<Warning>>,
    /// Changes to the scenario: those of `set`, then the fleet's own.
    pub edits: Arc<Vec<Edit>>,
    /// Its policy.
    pub policy: String,
}

/// Values that take the place of those of a fleet file.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// Duration of every run.
    pub duration: Option<SimDuration>,
    /// Policy of every cluster whose scenario has it.
    pub policy: Option<String>,
}

/// Reads the fleet file at `path` and the scenarios of its clusters.
///
/// # Errors
/// At the first thing that is wrong.
pub fn load(path: &Path, catalog: &Catalog, overrides: &Overrides) -> Result<LoadedFleet, InputError> {
    let (mut fleet, mut warnings) = crate::read(path, catalog)?;
    fleet.duration = overrides.duration.or(fleet.duration);
    let mut clusters: Vec<LoadedCluster> = Vec::new();
    for (position, entry) in fleet.clusters.iter().enumerate() {
        let base = Base::load(&fleet, entry, catalog)?;
        let mut known: BTreeMap<Vec<String>, LoadedCluster> = BTreeMap::new();
        for (name, copy) in entry.copies() {
            // A copy that a fault names alone has a scenario of its own.
            let faults = faults_of(&fleet, (entry, &name), &base.region)?;
            let cluster = match known.get(&faults) {
                Some(like) => LoadedCluster { name, copy, ..like.clone() },
                None => {
                    let cluster = base.cluster(&fleet, (entry, position), (name, copy), (&faults, catalog))?;
                    known.insert(faults, cluster.clone());
                    cluster
                }
            };
            clusters.push(cluster);
        }
    }
    if let Some(wanted) = &overrides.policy {
        choose_policy(&mut clusters, wanted)?;
    }
    checks::alike(&fleet, &clusters, catalog)?;
    checks::quotas(&fleet, &clusters, catalog)?;
    warnings.extend(checks::plans(&fleet, &clusters, catalog));
    let first = &clusters[0].scenario;
    let (seed, start) = (fleet.seed.unwrap_or(first.seed), first.start);
    let other = other_usage::load(&fleet, (start, first.duration), catalog)?;
    warnings.extend(other.warning);
    let inputs = inputs(&fleet, &clusters, other.input);
    Ok(LoadedFleet { fleet, clusters, warnings, seed, start, other_usage: other.usage, inputs })
}

/// The files of a fleet, those of several copies once.
fn inputs(fleet: &Fleet, clusters: &[LoadedCluster], other_usage: Option<InputFile>) -> Vec<InputFile> {
    let first_copies = clusters.iter().filter(|cluster| cluster.copy == 1);
    let of_cluster = |cluster: &LoadedCluster| {
        let entry = fleet.clusters[cluster.entry].name.clone();
        let files: Vec<InputFile> = cluster.scenario.inputs.iter().chain(&cluster.scenario.prices).cloned().collect();
        files.into_iter().map(move |file| InputFile { path: format!("{entry}: {}", file.path), ..file })
    };
    std::iter::once(fleet.input.clone()).chain(other_usage).chain(first_copies.flat_map(of_cluster)).collect()
}

/// Gives every cluster this policy whose scenario has it.
fn choose_policy(clusters: &mut [LoadedCluster], wanted: &str) -> Read<()> {
    let mut is_known = false;
    for cluster in &mut *clusters {
        if cluster.scenario.policies.iter().any(|policy| policy.name == wanted) {
            wanted.clone_into(&mut cluster.policy);
            is_known = true;
        }
    }
    if is_known {
        return Ok(());
    }
    let known: std::collections::BTreeSet<String> = clusters
        .iter()
        .flat_map(|cluster| cluster.scenario.policies.iter().map(|policy| policy.name.to_string()))
        .collect();
    let names = nodecast_model::text::error::listed(known.iter().map(String::as_str));
    Err(InputError::new(format!("no scenario of this fleet has a policy `{wanted}`"))
        .help(format!("available: {names}")))
}

/// The scenario of an entry with its own changes, before faults and limits of the fleet.
struct Base {
    edits: Vec<Edit>,
    scenario: (Scenario, Vec<Warning>),
    region: Arc<Region>,
}

impl Base {
    fn load(fleet: &Fleet, entry: &ClusterEntry, catalog: &Catalog) -> Read<Self> {
        let mut edits = Vec::new();
        for (path, value) in &entry.set {
            edits.push(Edit::new(path, value).map_err(|error| of_cluster(entry, error))?);
        }
        for (key, value) in [
            ("start", fleet.start.as_ref().map(|(text, _)| text.clone())),
            ("duration", fleet.duration.map(|duration| duration.to_string())),
        ] {
            let Some(value) = value else { continue };
            if entry.set.iter().any(|(path, _)| path == key) {
                return Err(InputError::new(format!("`{key}` is set by the fleet and by `set` of `{}`", entry.name))
                    .at(entry.places.name.clone())
                    .because("two values")
                    .help(format!("remove `{key}` from one of them")));
            }
            edits.push(Edit::new(key, &value)?);
        }
        let scenario = nodecast_scenario::load_edited(&entry.scenario, catalog, &Limits::default(), &edits);
        let scenario = scenario.map_err(|error| of_cluster(entry, error))?;
        let region = catalog.region(scenario.0.region.as_str());
        let region = region.map_err(|error| InputError::new(error.to_string()))?;
        checks::stated_twice(fleet, entry, region.name.as_str())?;
        Ok(Self { edits, scenario, region })
    }

    /// The cluster with this name.
    fn cluster(
        &self,
        fleet: &Fleet,
        (entry, position): (&ClusterEntry, usize),
        (name, copy): (String, u32),
        (faults, catalog): (&[String], &Catalog),
    ) -> Read<LoadedCluster> {
        let mut edits = self.edits.clone();
        edits.extend(limits(fleet, entry.account, self.region.name)?);
        for fault in faults {
            edits.push(Edit::new("faults[+]", fault)?);
        }
        let (scenario, warnings) = match edits.len() == self.edits.len() {
            true => self.scenario.clone(),
            false => nodecast_scenario::load_edited(&entry.scenario, catalog, &Limits::default(), &edits)
                .map_err(|error| shared_problem(fleet, entry, error))?,
        };
        let policy = scenario.for_policy(entry.policy.as_deref()).map_err(|error| match &entry.places.policy {
            Some(place) => {
                error.at(Some(place.clone())).because("unknown policy").within(&format!("cluster `{}`", entry.name))
            }
            None => of_cluster(entry, error),
        })?;
        Ok(LoadedCluster {
            name,
            entry: position,
            copy,
            account: entry.account,
            policy: policy.name.to_string(),
            scenario: Arc::new(scenario),
            warnings: Arc::new(warnings),
            edits: Arc::new(edits),
        })
    }
}

/// An error of the scenario of a cluster.
fn of_cluster(entry: &ClusterEntry, error: InputError) -> InputError {
    let circumstances = format!("cluster `{}`", entry.name);
    let of_set = error.place().filter(|place| place.file == "--set").map(|place| place.text.clone());
    if let Some(text) = of_set {
        let is_shown = |(path, _): &&(String, String)| text.starts_with(path.as_str());
        let place = entry.set.iter().zip(&entry.places.set).find(|(set, _)| is_shown(set));
        return error.at(place.and_then(|(_, place)| place.clone())).within(&circumstances);
    }
    match error.place() {
        Some(_) => error.within(&circumstances),
        None => error.at(entry.places.scenario.clone()).because("named here").within(&circumstances),
    }
}

/// The limits that the fleet sets for an account and region, as changes to a scenario.
fn limits(fleet: &Fleet, account: usize, region: Symbol) -> Read<Vec<Edit>> {
    let quotas = fleet.quotas.iter().filter(|quota| quota.account == account && quota.region == region);
    let quotas = quotas.flat_map(|quota| {
        let on_demand = quota.on_demand.iter().map(|(class, vcpus)| (format!("ec2.quotas.{class}"), vcpus));
        on_demand.chain(quota.spot.iter().map(|(class, vcpus)| (format!("ec2.quotas.spot.{class}"), vcpus)))
    });
    let quotas = quotas.map(|(path, vcpus)| Edit::new(&path, &vcpus.to_string()));
    let api = fleet.api.iter().filter(|api| api.account == account && api.region == region);
    let api = api.flat_map(|api| &api.limits).map(|(key, value)| Edit::new(&format!("ec2.api.{key}"), value));
    let conditions = fleet.conditions.iter().filter(|conditions| conditions.region == region);
    let conditions = conditions.flat_map(|conditions| &conditions.values).map(|(path, value)| Edit::new(path, value));
    quotas.chain(api).chain(conditions).collect()
}

/// An error of a scenario with the faults and limits of the fleet: without them it could be read.
fn shared_problem(fleet: &Fleet, entry: &ClusterEntry, error: InputError) -> InputError {
    let place = error.place().filter(|place| place.file == "--set" && place.text.starts_with("faults[+]"));
    let place: Option<Place> = match place {
        // The position of the fault among the edits is not known here: the first fault whose words the error shows.
        Some(shown) => {
            let is_shown =
                |fault: &&SharedFault| shown.text.contains(fault.text.split(ZONE).next().unwrap_or_default());
            fleet.faults.iter().find(is_shown).and_then(|fault| fault.place.clone())
        }
        None => error.place().cloned(),
    };
    error.at(place).within(&format!("cluster `{}`", entry.name))
}

/// The faults of the fleet that hit a cluster, as its scenario writes them.
fn faults_of(fleet: &Fleet, (entry, name): (&ClusterEntry, &str), region: &Region) -> Read<Vec<String>> {
    let mut texts = Vec::new();
    for fault in &fleet.faults {
        if !fault.hits((entry, name), region.name) {
            continue;
        }
        let zone = fault.zone_id.map(|id| (id, fleet.zone_name(entry.account, id.as_str(), region)));
        match zone {
            None => texts.push(fault.text.clone()),
            Some((_, Some(zone))) => texts.push(fault.text.replace(ZONE, &zone)),
            // A fault of a zone hits the clusters of its region alone.
            Some((_, None)) if fault.clusters.is_empty() => {}
            Some((id, None)) => {
                return Err(InputError::new(format!("`{name}` runs in {}, which has no zone `{id}`", region.name))
                    .at(fault.place.clone())
                    .because("this fault names the cluster")
                    .help("correct `zone_id` or `clusters`"));
            }
        }
    }
    Ok(texts)
}

impl Fleet {
    /// The name that an account has for the zone with this id, in a region.
    pub fn zone_name(&self, account: usize, id: &str, region: &Region) -> Option<String> {
        let zones = &self.accounts[account].zones;
        let mapped =
            zones.iter().find(|(name, own)| own.as_str() == id && region.zone_index(Symbol::new(name)).is_some());
        if let Some((name, _)) = mapped {
            return Some(name.clone());
        }
        let listed = region.zones.iter().find(|zone| zone.id.as_str() == id && !zones.contains_key(zone.name.as_str()));
        listed.map(|zone| zone.name.to_string())
    }

    /// The id of the zone that an account calls `name`.
    pub fn zone_id(&self, account: usize, name: &str, region: &Region) -> String {
        let listed = || region.zones.iter().find(|zone| zone.name.as_str() == name).map(|zone| zone.id.to_string());
        let mapped = self.accounts[account].zones.get(name).cloned();
        mapped.or_else(listed).unwrap_or_else(|| name.to_owned())
    }
}
