//! Pods as a table: `name,replicas,cpu,memory[,namespace]`.

use std::sync::Arc;

use crate::domain::symbol::well_known;
use crate::domain::{Container, PodSpec, Quantity, ResourceName, Resources, Symbol};
use crate::error::{Place, lacks, nearest};
use crate::single_pass::NamedPod;
use crate::{ScenarioError, Source};

/// Most pods of one table.
const PODS_MAX: u32 = 1_000_000;
const HELP: &str = "the columns are name,replicas,cpu,memory and, if wanted, namespace; for example web,3,500m,1Gi";

/// The columns, of which the last may be left out.
const COLUMNS: [&str; 5] = ["name", "replicas", "cpu", "memory", "namespace"];

/// The pods of a table.
pub(super) fn read(source: &Source) -> Result<Vec<NamedPod>, ScenarioError> {
    let mut rows = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .flexible(true)
        .from_reader(source.text.as_bytes());
    let wrong = |line: u64, text: String| ScenarioError::new(format!("{}:{line}: {text}", source.name)).help(HELP);
    let header = rows.headers().map_err(|error| wrong(1, error.to_string()))?.clone();
    check_titles(source, &header)?;
    let column = |name: &str| header.iter().position(|item| item.eq_ignore_ascii_case(name));
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

/// Columns that are not read would be left out of the answer: what a pod asks for there would count for nothing. One without a title is
/// what a spreadsheet leaves at the end of its rows.
fn check_titles(source: &Source, header: &csv::StringRecord) -> Result<(), ScenarioError> {
    for (place, title) in header.iter().enumerate().filter(|(_, title)| !title.is_empty()) {
        let is_title = |text: &&str| text.eq_ignore_ascii_case(title);
        let shown: String = title.chars().take(40).collect();
        let (text, reason) = if !COLUMNS.iter().any(is_title) {
            let near = nearest(title, COLUMNS).map(|near| format!("is `{near}` meant?"));
            (format!("unknown column `{shown}`"), near.unwrap_or_else(|| "nothing reads it".to_owned()))
        } else if header.iter().take(place).any(|item| is_title(&item)) {
            (format!("the column `{shown}` is there twice"), "only one of them can count".to_owned())
        } else {
            continue;
        };
        let (offset, length) = title_at(&source.text, place);
        let help = format!("{HELP}; what else pods ask for, such as GPUs, is stated in manifests");
        let at = Place::new(&source.name, &source.text, offset, length.max(1));
        return Err(ScenarioError::new(text).at(Some(at)).because(reason).help(help));
    }
    Ok(())
}

/// Where a column's title begins in the text, and its length: in the first line that is no comment and not empty.
fn title_at(text: &str, place: usize) -> (usize, usize) {
    let mut begin = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() && !line.starts_with('#') {
            let titles = line.split(',');
            let before: usize = titles.clone().take(place).map(|title| title.len() + 1).sum();
            let title = titles.clone().nth(place).unwrap_or_default();
            let blank = title.len() - title.trim_start().len();
            return (begin + before + blank, title.trim().len());
        }
        begin += line.len();
    }
    (0, 0)
}

#[cfg(test)]
mod tests {
    use super::read;
    use crate::Source;

    #[test]
    fn pod_table_row_creates_its_replicas() {
        let pods = read(&Source::new("p.csv", "name,replicas,cpu,memory,namespace\nweb,2,500m,1Gi,shop\n")).unwrap();
        let names: Vec<String> = pods.iter().map(super::NamedPod::full_name).collect();
        assert_eq!(names, ["shop/web-1", "shop/web-2"]);
        assert_eq!(pods[0].spec.requests().to_string(), "cpu 500m, memory 1Gi, pods 1");
    }

    #[test]
    fn unknown_pod_table_column_is_rejected() {
        for (text, message, reason, column) in [
            (
                "# pods\nname,replicas,cpu,memory, namspace\nweb,1,1,1Gi,shop\n",
                "unknown column `namspace`",
                "is `namespace` meant?",
                (2, 27),
            ),
            (
                "name,replicas,gpu_count,cpu,memory\nweb,1,1,1,1Gi\n",
                "unknown column `gpu_count`",
                "nothing reads it",
                (1, 15),
            ),
            ("name,CPU,replicas,cpu,memory\nweb,1,1,1,1Gi\n", "the column `cpu` is there twice", "only one", (1, 19)),
        ] {
            let error = read(&Source::new("p.csv", text)).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.reason().unwrap().starts_with(reason), "{error:?}");
            let place = error.place().unwrap();
            assert_eq!((place.line, place.column), column, "{text}");
            assert!(error.way_out().unwrap().contains("name,replicas,cpu,memory"), "{error:?}");
        }
        let spreadsheet = "Name,Replicas,CPU,Memory,\nweb,2,1,1Gi,\n";
        assert_eq!(read(&Source::new("p.csv", spreadsheet)).unwrap().len(), 2);
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
