//! What `kubectl top pods` prints: a table, which says what PodMetrics say.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::yaml::quoted;
use crate::domain::Quantity;
use crate::error::{Place, ScenarioError};
use crate::source::Source;

/// What prints a table that can be read.
const COMMAND: &str = "kubectl top pods -A --containers";
/// The columns of use.
const CPU: &str = "CPU(cores)";
const MEMORY: &str = "MEMORY(bytes)";

/// The sources, tables among them as the PodMetrics that they were printed from.
///
/// # Errors
/// If a table does not say of which namespace its pods are, or a row does not read as its header has it.
pub(super) fn read(sources: &[Source]) -> Result<Cow<'_, [Source]>, ScenarioError> {
    let tables: Vec<Option<Source>> = sources.iter().map(metrics).collect::<Result<_, _>>()?;
    if tables.iter().all(Option::is_none) {
        return Ok(Cow::Borrowed(sources));
    }
    let all = sources.iter().zip(tables).map(|(source, table)| table.unwrap_or_else(|| source.clone()));
    Ok(Cow::Owned(all.collect()))
}

/// Where the columns of a table are.
struct Columns {
    pod: usize,
    container: Option<usize>,
    count: usize,
}

/// The PodMetrics of a table; `None` for what is none.
fn metrics(source: &Source) -> Result<Option<Source>, ScenarioError> {
    let mut lines = lines(&source.text);
    let Some((offset, header)) = lines.next() else { return Ok(None) };
    let names: Vec<&str> = header.split_whitespace().collect();
    let (["NAMESPACE", rest @ ..] | rest) = &names[..];
    let [before @ .., CPU, MEMORY] = rest else { return Ok(None) };
    let wrong = |offset: usize, line: &str, message: &str| {
        let place = Place::new(&source.name, &source.text, offset, line.trim_end().len());
        ScenarioError::new(message).at(Some(place)).help(format!("make it anew with `{COMMAND}`"))
    };
    if rest.len() == names.len() {
        let error =
            wrong(offset, header, "a table of `kubectl top pods` that does not say of which namespace its pods are");
        return Err(error.because("no column NAMESPACE"));
    }
    let columns = match before {
        ["NAME"] => Columns { pod: 1, container: None, count: 4 },
        ["POD", "NAME"] => Columns { pod: 1, container: Some(2), count: 5 },
        _ => return Err(wrong(offset, header, "this is no table of `kubectl top pods`").because("other columns")),
    };
    let mut of_pods: BTreeMap<(&str, &str), Vec<String>> = BTreeMap::new();
    for (offset, line) in lines {
        let cells: Vec<&str> = line.split_whitespace().collect();
        let amounts = cells.len().checked_sub(2).map(|at| [cells[at], cells[at + 1]]);
        let is_amount = |amount: &str| amount.parse::<Quantity>().is_ok_and(|amount| amount.nanos() >= 0);
        let Some([cpu, memory]) =
            amounts.filter(|both| cells.len() == columns.count && both.iter().all(|one| is_amount(one)))
        else {
            let error = wrong(offset, line, "a row of `kubectl top pods` that does not read as its header has it");
            return Err(error.because("not so many columns, or no amounts of CPU and memory"));
        };
        let name = columns.container.map_or_else(String::new, |at| format!("name: {}, ", quoted(cells[at])));
        let container = format!("{{ {name}usage: {{ cpu: {}, memory: {} }} }}", quoted(cpu), quoted(memory));
        of_pods.entry((cells[0], cells[columns.pod])).or_default().push(container);
    }
    let mut text = String::new();
    for ((namespace, pod), containers) in of_pods {
        let _ = writeln!(
            text,
            "---\napiVersion: metrics.k8s.io/v1beta1\nkind: PodMetrics\nmetadata: {{ namespace: {}, name: {} }}\ncontainers: [{}]",
            quoted(namespace),
            quoted(pod),
            containers.join(", ")
        );
    }
    Ok(Some(Source::new(&source.name, text)))
}

/// Lines that are not blank, with their offsets.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut next = 0;
    let all = text.split_inclusive('\n').map(move |line| {
        let offset = next;
        next += line.len();
        (offset, line)
    });
    all.filter(|(_, line)| !line.trim().is_empty())
}
