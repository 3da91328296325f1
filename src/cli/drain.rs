//! `nodecast drain`: where the pods of some nodes would go, who holds whom, what is launched and what it costs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cluster::{self, OfCluster};
use super::experiment::write_page;
use super::{Console, Format};
use crate::catalog::Catalog;
use crate::domain::well_known;
use crate::explain::standing::{find_node, group_room};
use crate::program::{Failure, Prices};
use crate::report::drain::{self, DrainAnswer, GroupRoom};
use crate::scenario::source::{Limits, load_argument};
use crate::single_pass::{PackingQuestion, SinglePass};
use crate::standing::Standing;

/// Show where pods would go if you drained these nodes
///
/// The file is what `kubectl get pods,nodes,nodeclaims,nodepools,ec2nodeclasses,deploy,sts,ds,pdb,pvc,pv,storageclasses -A -o yaml` prints
/// (or -o json). Nothing is drained; the result is computed from the file.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    /// A dump of the cluster; - is the standard input
    cluster: PathBuf,
    /// The nodes
    #[arg(required = true, value_name = "NODE")]
    nodes: Vec<String>,
    #[command(flatten)]
    rest: OfCluster,
    /// Also write the result as an HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// What to print: a table for people, or JSON
    #[arg(long, value_enum, default_value = "table")]
    format: Format,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
}

pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let question = cluster::load(&arguments.cluster, &arguments.rest, prices.catalog(), console)?;
    let nodes = arguments.nodes.iter().map(|name| find_node(&question, name));
    let mut nodes = nodes.collect::<Result<Vec<usize>, _>>()?;
    nodes.sort_unstable();
    nodes.dedup();
    let standing = Standing::from_question(&question);
    let rooms = rooms((arguments.cluster.as_path(), &question), &nodes, prices.catalog(), console)?;
    let drained = drain::question(question, &standing, &nodes);
    let answer = DrainAnswer::new(&standing, &SinglePass::from_question(&drained), &nodes, &rooms);
    match arguments.format {
        Format::Table => console.data(&answer.table(console.width())),
        Format::Json => console.json(&answer),
    }?;
    write_page(arguments.html.as_deref(), || answer.page(), false, console)
}

/// What the Cluster Autoscaler of the dump sees of those of the nodes that are of no NodePool.
fn rooms(
    (dump, question): (&Path, &PackingQuestion),
    nodes: &[usize],
    catalog: &Catalog,
    console: &mut Console<'_>,
) -> Result<BTreeMap<usize, GroupRoom>, Failure> {
    let foreign = |node: &&usize| question.nodes[**node].node.labels.get(well_known::NODEPOOL).is_none();
    let foreign: Vec<usize> = nodes.iter().filter(foreign).copied().collect();
    if foreign.is_empty() {
        return Ok(BTreeMap::new());
    }
    // The standard input can be read once.
    if dump.as_os_str() == "-" {
        console.note(
            "warning: a dump read from stdin is not searched for a Cluster Autoscaler, which could remove nodes from node groups; pass a file instead",
        );
        return Ok(BTreeMap::new());
    }
    let source = [load_argument(dump, &Limits::default())?];
    // What cannot be made a scenario of has no Cluster Autoscaler that could be asked.
    let room =
        |node: usize| group_room(&source, &question.nodes[node].node.name, (&question.region, catalog)).ok().flatten();
    Ok(foreign.into_iter().filter_map(|node| Some((node, room(node)?))).collect())
}
