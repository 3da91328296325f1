//! `nodecast init`: the files of a first scenario.

mod files;

use std::path::{Path, PathBuf};

use super::Console;
use super::experiment::write_whole;
use crate::catalog::Catalog;
use crate::domain::KarpenterVersion;
use crate::program::first_nodes;
use crate::program::observe::observed;
use crate::program::simulations::{shell_line, warning_lines};
use crate::program::{Failure, Prices};
use crate::report::columns::fitted;
use crate::report::format::counted;
use crate::scenario::draft::{Draft, SCENARIO_FILE, SCHEMA_FILE, Wishes};
use crate::scenario::schema::json_schema;
use crate::scenario::{Limits, ScenarioError, source};
use nodecast_fleet::Overrides;
use nodecast_observed::observation::Observation;

/// Create a scenario from a commented example or from a dump of your cluster
///
/// The scenario runs without edits. The example simulates one day of a small web shop under two policies. With --from, the scenario is
/// built from the output of `kubectl get deploy,sts,ds,cj,jobs,hpa,pdb,nodepools,ec2nodeclasses,nodeclaims,nodes,pods,pvc,pv,sc -A -o yaml`
/// prints (or -o json): your manifests,
/// node groups and releases, and load that holds the replicas that you have; name beside it the folder that `nodecast observe` wrote, or the
/// report of a run, and the load is what was observed. Never prompts and never overwrites a file.
#[derive(clap::Args, Clone, Debug)]
pub(super) struct Arguments {
    /// Output directory; created if missing
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Cluster dump to read; - for stdin. Repeatable: several dumps are combined, including output of `aws autoscaling
    /// describe-auto-scaling-groups` and `aws eks describe-nodegroup`. A directory is read as an observation or run report
    #[arg(long, value_name = "DUMP")]
    from: Vec<PathBuf>,
    /// AWS region, for example eu-west-1 [default: from the dump's nodes or ClusterConfig; us-east-1 for the example]
    #[arg(long)]
    region: Option<String>,
    /// Karpenter version [default: the dump's, or v1.13]
    #[arg(long, value_name = "VERSION")]
    karpenter: Option<KarpenterVersion>,
    /// Anonymise the dump so you can share it. Names, namespaces, images, and unrecognised labels are replaced consistently; environment
    /// variables, commands, and unknown annotations are removed. Writes the anonymised dump as anonymous.yaml
    #[arg(long, requires = "from")]
    anonymise: bool,
    /// Create a fleet: each dump of --from is a cluster with a scenario in a directory of its own. --region is that of all dumps
    #[arg(long, requires = "from", conflicts_with = "anonymise")]
    fleet: bool,
    /// Overwrite existing files
    #[arg(long)]
    force: bool,
    /// Directory of prices to use instead of the built-in ones (same layout as pricing-data/)
    #[arg(long, value_name = "DIR")]
    pricing_data: Option<PathBuf>,
}

/// Drafts, reads the draft back as `run` will, and only then puts it in place.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let words = if arguments.fleet { init_fleet(arguments, console)? } else { init_cluster(arguments, ".", console)? };
    console.data(&words)
}

/// Drafts a scenario, writes it, and returns the account of it; editors find its schema in the directory `schema`, relative to it.
fn init_cluster(arguments: &Arguments, schema: &str, console: &mut Console<'_>) -> Result<String, Failure> {
    let prices = Prices::open(arguments.pricing_data.as_deref())?;
    let (folders, dumps): (Vec<&PathBuf>, Vec<&PathBuf>) = arguments.from.iter().partition(|path| path.is_dir());
    let wishes = Wishes {
        name: scenario_name(&arguments.directory),
        region: arguments.region.clone(),
        karpenter: arguments.karpenter,
        anonymise: arguments.anonymise,
        observed: observation(&folders, &dumps, arguments.anonymise)?.as_ref().map(observed).transpose()?,
    };
    let mut draft = draft(&dumps, &wishes, prices.catalog())?;
    draft.add_schema(schema);
    let staged = files::stage(&arguments.directory, &draft, arguments.force)?;
    let scenario = staged.path(SCENARIO_FILE);
    read_back(&scenario, prices.catalog())?;
    if add_first_nodes(&scenario, &mut draft, prices.catalog()) {
        staged.rewrite(&draft)?;
    }
    staged.put_in_place()?;
    for warning in warning_lines(&draft.warnings) {
        console.note(&format!("warning: {warning}"));
    }
    Ok(farewell(&arguments.directory, &draft, console.width()))
}

/// The file of a fleet.
const FLEET_FILE: &str = "fleet.yaml";

/// Drafts a scenario of each dump and a fleet of all, writes them, and returns the account of them.
fn init_fleet(arguments: &Arguments, console: &mut Console<'_>) -> Result<String, Failure> {
    let file = arguments.directory.join(FLEET_FILE);
    if file.exists() && !arguments.force {
        let error = ScenarioError::new(format!("`{}` exists already", file.display()));
        return Err(error.help("choose another directory, or add --force").into());
    }
    let (mut clusters, mut accounts) = (String::new(), String::new());
    let mut known = std::collections::BTreeSet::new();
    for dump in &arguments.from {
        let name = scenario_name(Path::new(dump.file_stem().unwrap_or_default()));
        if !known.insert(name.clone()) {
            let error = ScenarioError::new(format!("two dumps would be the cluster `{name}`"));
            return Err(error.help("rename one of the files").into());
        }
        let directory = arguments.directory.join(&name);
        let one = Arguments { directory, from: vec![dump.clone()], fleet: false, ..arguments.clone() };
        accounts += &format!("\n{}", init_cluster(&one, "..", console)?);
        clusters += &format!("  - {{ name: {name}, scenario: {name}/{SCENARIO_FILE}, account: main }}\n");
    }
    let name = scenario_name(&arguments.directory);
    let text = format!(
        "# Each cluster is a scenario. Put every cluster into its account, and add what they share: docs/fleet.md has all keys.
fleet: {name}
start: 2026-06-01T00:00:00Z
duration: 1d
accounts:
  - {{ id: \"111111111111\", name: main, payer: true }}   # replace the id by yours
clusters:
{clusters}"
    );
    write_whole(&file, &text)?;
    write_whole(&arguments.directory.join(SCHEMA_FILE), &json_schema::text())?;
    nodecast_fleet::load(&file, Prices::open(arguments.pricing_data.as_deref())?.catalog(), &Overrides::default())?;
    let command = shell_line(&["nodecast", "run", &file.display().to_string()]);
    let count = counted(known.len() as u64, "cluster", "clusters");
    Ok(format!("wrote {}: a fleet of {count}\n\nnext:\n  {command}\n{accounts}", file.display()))
}

/// The example, or the cluster of the dumps.
fn draft(dumps: &[&PathBuf], wishes: &Wishes, catalog: &Catalog) -> Result<Draft, ScenarioError> {
    if dumps.is_empty() {
        return Draft::example(wishes, catalog);
    }
    let sources = dumps.iter().map(|path| source::load_argument(path, &Limits::default()));
    Draft::of_dump(&sources.collect::<Result<Vec<_>, _>>()?, wishes, catalog)
}

/// The observation among the arguments, if there is one.
fn observation(
    folders: &[&PathBuf],
    dumps: &[&PathBuf],
    anonymise: bool,
) -> Result<Option<Observation>, ScenarioError> {
    let [folder] = folders else {
        let Some(second) = folders.get(1) else { return Ok(None) };
        return Err(ScenarioError::new(format!(
            "only one observation can be used; `{}` is the second",
            second.display()
        ))
        .help("pass one directory; a scenario replays a single window"));
    };
    let observation = Observation::read(folder)?;
    if dumps.is_empty() {
        return Err(ScenarioError::new("an observation has no manifests; a cluster dump is needed too")
            .help(format!("pass both: `nodecast init my-cluster --from cluster.yaml --from {}`", folder.display())));
    }
    if anonymise {
        return Err(ScenarioError::new("an observation contains real names, so this scenario would not be anonymous")
            .help("leave out --anonymise, or the observation"));
    }
    Ok(Some(observation))
}

/// A scenario's name made of the directory's: what names a folder of reports.
fn scenario_name(directory: &Path) -> String {
    const NAMELESS: &str = "my-cluster";
    // `.` and `..` have no name of their own until they are resolved.
    let resolved = std::fs::canonicalize(directory).ok();
    let name = resolved.as_deref().unwrap_or(directory).file_name().map(|name| name.to_string_lossy().into_owned());
    let kept = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.unwrap_or_default().chars().map(kept).take(63).collect();
    let name = name.trim_matches(['-', '.', '_']);
    // YAML takes the word for nothing.
    let usable = !name.is_empty() && !name.eq_ignore_ascii_case("null");
    if usable { name.to_owned() } else { NAMELESS.to_owned() }
}

/// What is written has to run; a draft that would not is refused before anything is in place.
fn read_back(scenario: &Path, catalog: &Catalog) -> Result<(), Failure> {
    let read = crate::scenario::load_with(scenario, catalog, &Limits::default());
    let refused = |error: ScenarioError| error.within("the generated scenario is invalid (please report this)");
    read.map(|_| ()).map_err(|error| refused(error).into())
}

/// Adds to the remark on a dump's nodes what the first run of the scenario shows of them; true if there is any.
fn add_first_nodes(scenario: &Path, draft: &mut Draft, catalog: &Catalog) -> bool {
    let Some(remark) = draft.remark.take() else { return false };
    let Some((currency, rate)) = first_nodes::per_hour(scenario, catalog) else {
        draft.remark = Some(remark);
        return false;
    };
    let whole = format!(
        "{remark}; with volumes and addresses {}{:.2} per hour, as the `nodes` line of the first run begins",
        currency.sign(),
        rate.as_f64()
    );
    if let Some(scenario) = draft.files.first_mut() {
        scenario.text = scenario.text.replacen(&remark, &whole, 1);
    }
    draft.remark = Some(whole);
    true
}

/// What was written, and what to do with it.
fn farewell(directory: &Path, draft: &Draft, width: Option<usize>) -> String {
    let in_directory = |name: &str| directory.join(name).display().to_string();
    let mut text = String::new();
    for file in &draft.files {
        text += &format!("wrote {}\n", in_directory(&file.name));
    }
    if let Some(remark) = &draft.remark {
        let compare = "compare `nodes` per hour and `nodes Ready` of the first run with that: `--duration 1m` shows its start alone";
        text += &fitted(format!("\n{remark};\n{compare}\n"), width);
    }
    let scenario = directory.join(SCENARIO_FILE);
    let scenario = scenario.strip_prefix(".").unwrap_or(&scenario).display().to_string();
    text += "\nnext:\n";
    for command in ["run", "compare"] {
        text += &format!("  {}\n", shell_line(&["nodecast", command, &scenario]));
    }
    let then = "Then edit the scenario; comments explain each setting. Continue with docs/guide.md\n";
    text + &fitted(then.to_owned(), width)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::scenario_name;

    #[test]
    fn scenario_name_is_sanitised_directory_name() {
        assert_eq!(scenario_name(Path::new("no/such/shop")), "shop");
        assert_eq!(scenario_name(Path::new("no/such/My shop!")), "My-shop");
        assert_eq!(scenario_name(Path::new("/")), "my-cluster");
    }
}
