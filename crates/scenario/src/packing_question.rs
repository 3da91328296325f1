//! The question of `nodecast pack`: manifests, dumps of a cluster and tables of pods, from files.

mod table;

use std::path::Path;
use std::sync::Arc;

use nodecast_model::text::dump as dump_text;

use super::draft::{FeatureGateWords, dump};
use super::error::ScenarioError;
use super::manifests::{Manifests, read_documents};
use super::source::{self, Limits};
use super::tree::Variables;
use crate::catalog::{Catalog, CatalogError, Region};
use crate::domain::symbol::well_known;
use crate::domain::{KarpenterVersion, NodeObject, Symbol};
use crate::single_pass::{PackingQuestion, Setting};
use nodecast_karpenter::instance_types::price_list_of;

/// What the files do not say.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Circumstances {
    /// The region; `None` where a file names it.
    pub region: Option<String>,
    /// The zones of the cluster's subnets; empty for all of the region.
    pub zones: Vec<Symbol>,
    /// Karpenter's release; `None` for the one that a file states, or else the default.
    pub karpenter: Option<KarpenterVersion>,
    /// Feature gates, over those that a file states.
    pub feature_gates: Option<FeatureGateWords>,
    /// Whether there may be no NodePool, so that nothing is launched.
    pub without_pools: bool,
}

/// Reads manifests, dumps of a cluster and tables of pods (`.csv`). `-` is the standard input.
///
/// # Errors
/// If a file cannot be read, the region or a zone is unknown, or there is no NodePool or no pod.
pub fn load(
    files: &[impl AsRef<Path>],
    circumstances: &Circumstances,
    catalog: &Catalog,
) -> Result<PackingQuestion, ScenarioError> {
    let mut objects = Manifests::default();
    let (mut listed, mut sources) = (Vec::new(), Vec::new());
    for path in files {
        let path = path.as_ref();
        if path.is_dir() {
            return Err(source::not_a_folder(path));
        }
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv")) {
            listed.extend(table::read(&source::load_argument(path, &Limits::default())?)?);
        } else {
            let source = source::load_argument(path, &Limits::default())?;
            let documents = dump_text::parse(&source, &Variables::new(), &Limits::default())?;
            objects.apply(read_documents(&source, &documents, None)?);
            sources.push(source);
        }
    }
    let region = region(circumstances, &objects, catalog)?;
    let stated = (circumstances.karpenter, circumstances.feature_gates.as_ref());
    let (karpenter, warnings) = dump::setup(&sources, stated, &region)?;
    objects.warnings.extend(warnings);
    let price_list = catalog.region(price_list_of(karpenter.release(), region.name).as_str());
    let price_list = price_list.map_err(|error| ScenarioError::new(error.to_string()))?;
    let zones = zones(circumstances, &objects, &region)?;
    let without_pools = circumstances.without_pools;
    PackingQuestion::new(objects, listed, Setting { karpenter, region, price_list, zones, without_pools })
}

/// The region that is given, else that of a ClusterConfig, else that of the nodes.
fn region(circumstances: &Circumstances, objects: &Manifests, catalog: &Catalog) -> Result<Arc<Region>, ScenarioError> {
    let of_cluster = objects.cluster.as_ref().and_then(|cluster| cluster.region);
    let of_nodes = || objects.nodes.iter().find_map(|node| region_of(node, catalog));
    let of_cluster = of_cluster.map(|region| region.as_str().to_owned()).filter(|region| !region.contains("${"));
    let Some(name) = circumstances.region.clone().or(of_cluster).or_else(of_nodes) else {
        return Err(
            ScenarioError::new("no region given or found in the files").help("add for example `--region us-east-1`")
        );
    };
    catalog.region(&name).map_err(|error| match error {
        CatalogError::UnknownRegion { given, nearest, known } => {
            let help = nearest
                .map_or_else(|| format!("regions with prices: {known}"), |name| format!("did you mean `{name}`?"));
            ScenarioError::new(format!("no prices for region `{given}`")).help(help)
        }
        other => ScenarioError::new(other.to_string()),
    })
}

/// The region of a node: its label, or its zone without what follows the region, by its label or that of its machine
/// (`aws:///us-east-1a/i-0abc`).
fn region_of(node: &NodeObject, catalog: &Catalog) -> Option<String> {
    let label = |keys: [Symbol; 2]| keys.into_iter().find_map(|key| node.labels.get(key)).map(Symbol::as_str);
    if let Some(region) = label([well_known::REGION, well_known::BETA_REGION]) {
        return Some(region.to_owned());
    }
    let of_machine = || node.provider_id.as_deref()?.strip_prefix("aws:///")?.split('/').next();
    let zone = label([well_known::ZONE, well_known::BETA_ZONE]).or_else(of_machine)?;
    let is_in = |region: &&str| zone.strip_prefix(region).is_some_and(|letter| letter.len() == 1);
    catalog.regions().find(is_in).map(str::to_owned)
}

/// The zones that are given, else those of a ClusterConfig.
fn zones(circumstances: &Circumstances, objects: &Manifests, region: &Region) -> Result<Vec<Symbol>, ScenarioError> {
    if let Some(unknown) = circumstances.zones.iter().find(|zone| region.zone_index(**zone).is_none()) {
        let known: Vec<&str> = region.zones.iter().map(|zone| zone.name.as_str()).collect();
        return Err(ScenarioError::new(format!("{} has no zone `{unknown}`", region.name))
            .help(format!("its zones are {}", known.join(", "))));
    }
    if !circumstances.zones.is_empty() {
        return Ok(circumstances.zones.clone());
    }
    Ok(objects.cluster.as_ref().map_or_else(Vec::new, |cluster| cluster.zones.clone()))
}
