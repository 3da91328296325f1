//! Pods as a table: `name,replicas,cpu,memory[,namespace]`.

use std::sync::Arc;

use crate::domain::symbol::well_known;
use crate::domain::{Container, PodSpec, Quantity, ResourceName, Resources, Symbol};
use crate::scenario::error::lacks;
use crate::scenario::{ScenarioError, Source};
use crate::single_pass::NamedPod;

/// Most pods of one table.
const PODS_MAX: u32 = 1_000_000;
const HELP: &str = "the columns are name,replicas,cpu,memory and, if wanted, namespace; for example web,3,500m,1Gi";

/// The pods of a table.
pub(super) fn read(source: &Source) -> Result<Vec<NamedPod>, ScenarioError> {
    let mut rows = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(source.text.as_bytes());
    let wrong = |line: u64, text: String| ScenarioError::new(format!("{}:{line}: {text}", source.name)).help(HELP);
    let header = rows.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
    let column = |name: &str| header.iter().position(|own| own.eq_ignore_ascii_case(name));
    let required = |name: &str| column(name).ok_or_else(|| wrong(1, lacks(&header, name)));
    let columns = [required("name")?, required("replicas")?, required("cpu")?, required("memory")?];
    let namespace = column("namespace");
    let mut pods: Vec<NamedPod> = Vec::new();
    for row in rows.records() {
        let row = row.map_err(|error| wrong(error.position().map_or(1, csv::Position::line), error.to_string()))?;
        let line = row.position().map_or(1, csv::Position::line);
        let [name, count, cpu, memory] = columns.map(|column| row.get(column).unwrap_or_default());
        if name.is_empty() {
            return Err(wrong(line, "a row has no name".to_owned()));
        }
        let number = count.parse::<u32>().ok().filter(|count| *count <= PODS_MAX);
        let number =
            number.ok_or_else(|| wrong(line, format!("`{count}` is no number of replicas up to {PODS_MAX}")))?;
        let mut requests = Resources::new();
        for (resource, text) in [(ResourceName::CPU, cpu), (ResourceName::MEMORY, memory)] {
            let quantity = text.parse::<Quantity>().ok().filter(|quantity| quantity.nanos() >= 0);
            let quantity = quantity.ok_or_else(|| wrong(line, format!("`{text}` is no amount of {resource}")))?;
            requests.set(resource, resource.amount(quantity));
        }
        let namespace = namespace.and_then(|column| row.get(column)).filter(|text| !text.is_empty());
        let namespace = namespace.map_or(well_known::DEFAULT, Symbol::new);
        let container = Container { requests, ..Container::default() };
        let spec = Arc::new(PodSpec { containers: vec![container], ..PodSpec::default() });
        pods.extend(NamedPod::replicas(namespace, name, number, &spec));
        if pods.len() > PODS_MAX as usize {
            return Err(wrong(line, format!("there are more than {PODS_MAX} pods")));
        }
    }
    Ok(pods)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::scenario::Source;

    #[test]
    fn a_row_makes_as_many_pods_as_it_says() {
        let pods = read(&Source::new("p.csv", "name,replicas,cpu,memory,namespace\nweb,2,500m,1Gi,shop\n")).unwrap();
        let names: Vec<String> = pods.iter().map(super::NamedPod::full_name).collect();
        assert_eq!(names, ["shop/web-1", "shop/web-2"]);
        assert_eq!(pods[0].spec.requests().to_string(), "cpu 500m, memory 1Gi, pods 1");
    }

    #[test]
    fn a_mistake_is_named_with_its_line() {
        for (text, message) in [
            (
                "name,replicas,cpu\nweb,1,1\n",
                "p.csv:1: the header has no column `memory`, but `name`, `replicas` and `cpu`",
            ),
            ("name,replicas,cpu,memory\nweb,some,1,1Gi\n", "p.csv:2: `some` is no number of replicas"),
            ("name,replicas,cpu,memory\nweb,1,1,1GB\n", "p.csv:2: `1GB` is no amount of memory"),
        ] {
            let error = read(&Source::new("p.csv", text)).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }
}
