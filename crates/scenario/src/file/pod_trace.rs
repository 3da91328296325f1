//! `pods`: the pods of a recorded cluster, one row of a CSV file for each.

use std::sync::Arc;

use nodecast_model::text::cells::from_csv_cell;
use rustc_hash::FxHashMap;

use super::timeline::warn_of_late;
use super::{Reading, ScenarioError, Warning};
use crate::definition::{PodTrace, TraceEnd, TraceRow};
use crate::domain::pod::{NodeSelectorExpression, NodeSelectorTerm, OwnerKind};
use crate::domain::requirements::Operator;
use crate::domain::taints::{TaintEffect, Toleration, TolerationOperator};
use crate::domain::{Container, Labels, PodSpec, ResourceName, Resources, SimDuration, SimTime, Symbol};
use crate::error::{Place, lacks, listed, nearest};
use crate::reader::Fields;
use crate::schema::whole::Pods;
use nodecast_settings::lints;

/// Pods of a trace at most.
const PODS_MAX: u64 = 5_000_000;
/// Columns that are read, the first three of which have to be there.
const COLUMNS: [&str; 13] = [
    "create_s",
    "cpu_milli",
    "memory_mib",
    "name",
    "delete_s",
    "run_s",
    "gpu",
    "ephemeral_mib",
    "app",
    "count",
    "node_selector",
    "priority",
    "tolerations",
];
/// Columns that traces have and that change nothing here.
const WITHOUT_EFFECT: [&str; 3] = ["qos", "gpu_milli", "scheduled_s"];

/// The pods of the file. Rows after the end of the run are passed over.
pub(crate) fn read<'s>(
    reading: &mut Reading<'_, 's>,
    fields: Fields<'_, 's>,
    pods: Pods,
) -> Result<Arc<PodTrace>, ScenarioError> {
    let (name, place) = pods.csv;
    let node = fields.required(&reading.reader, "csv")?;
    let (bytes, shown) = reading.table(node, &name)?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        ScenarioError::new(format!("{shown}: byte {} is not UTF-8", error.valid_up_to())).help("save the file as UTF-8")
    })?;
    let mut table = Table {
        file: &shown,
        text,
        columns: Vec::new(),
        templates: FxHashMap::default(),
        trace: PodTrace { namespace: pods.namespace, templates: Vec::new(), rows: Vec::new(), again: pods.again },
    };
    let mut warnings = Vec::new();
    let late = table.read(SimTime::ZERO + reading.duration, &mut warnings)?;
    reading.files.warnings.append(&mut warnings);
    if let Some(first) = late.filter(|_| table.trace.rows.is_empty()) {
        // Whoever shortens a run need not take its pods out.
        let duration = reading.duration;
        warn_of_late(&mut reading.reader, place, "first pod of the trace", first, duration);
    }
    Ok(Arc::new(table.trace))
}

/// What makes pods of a trace alike.
#[derive(PartialEq, Eq, Hash)]
struct Kind {
    cpu_milli: i64,
    memory_mib: i64,
    gpu: i64,
    ephemeral_mib: i64,
    app: Option<Symbol>,
    selector: Option<String>,
    tolerations: Option<String>,
    priority: i32,
}

struct Table<'f> {
    file: &'f str,
    text: &'f str,
    /// The place of each of [`COLUMNS`] in a row.
    columns: Vec<Option<usize>>,
    templates: FxHashMap<Kind, u32>,
    trace: PodTrace,
}

/// A row, and where in the file it begins.
struct Row<'r> {
    cells: &'r csv::StringRecord,
    offset: usize,
}

impl Table<'_> {
    /// Reads the rows up to `end`; returns when the first one after it is, if there is one.
    fn read(&mut self, end: SimTime, warnings: &mut Vec<Warning>) -> Result<Option<SimTime>, ScenarioError> {
        let text = self.text;
        let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).comment(Some(b'#')).from_reader(text.as_bytes());
        let header = table.headers().map_err(|_| self.wrong((0, 1), "the header cannot be read"))?.clone();
        self.header(&header, warnings)?;
        let (mut cells, mut pods) = (csv::StringRecord::new(), 0_u64);
        loop {
            let offset = self.row_from(table.position().byte());
            match table.read_record(&mut cells) {
                Ok(true) => {}
                Ok(false) => return self.not_empty().map(|()| None),
                Err(_) => {
                    let what = format!("this row does not have {} columns, as the header does", header.len());
                    return Err(self.wrong(self.line_at(offset), &what));
                }
            }
            let place = Row { cells: &cells, offset };
            let row = self.row(&place)?;
            if self.trace.rows.last().is_some_and(|last| last.at > row.at) {
                return Err(self.wrong_in(&place, "create_s", "is before that of the row above"));
            }
            if row.at > end {
                return Ok(Some(row.at));
            }
            pods += u64::from(row.count);
            if pods > PODS_MAX {
                return Err(self.wrong(self.line_at(offset), &format!("these are more than {PODS_MAX} pods")));
            }
            if row.count > 0 {
                self.trace.rows.push(row);
            }
        }
    }

    /// Where the next row begins at or after a byte: empty lines and comments are passed over.
    fn row_from(&self, byte: u64) -> usize {
        let mut offset = usize::try_from(byte).unwrap_or(usize::MAX).min(self.text.len());
        while let Some(rest) = self.text.get(offset..) {
            match rest.bytes().next() {
                Some(b'\n' | b'\r') => offset += 1,
                Some(b'#') => offset += rest.find('\n').unwrap_or(rest.len()),
                _ => break,
            }
        }
        offset
    }

    /// The whole line at an offset.
    fn line_at(&self, offset: usize) -> (usize, usize) {
        let rest = self.text.get(offset..).unwrap_or_default();
        (offset, rest.find(['\n', '\r']).unwrap_or(rest.len()))
    }

    /// The cell at a place of a row: where it begins, and its length.
    fn cell_at(&self, offset: usize, place: usize) -> (usize, usize) {
        let (mut begin, mut number, mut quoted) = (offset, 0, false);
        let rest = self.text.get(offset..).unwrap_or_default();
        for (at, letter) in rest.char_indices() {
            match letter {
                '"' => quoted = !quoted,
                ',' | '\n' | '\r' if !quoted => {
                    if number == place || letter != ',' {
                        return (begin, offset + at - begin);
                    }
                    number += 1;
                    begin = offset + at + 1;
                }
                _ => {}
            }
        }
        (begin, self.text.len() - begin)
    }

    fn not_empty(&self) -> Result<(), ScenarioError> {
        if self.trace.rows.is_empty() {
            Err(self.wrong(self.line_at(0), "there is no pod in this file"))
        } else {
            Ok(())
        }
    }

    fn header(&mut self, header: &csv::StringRecord, warnings: &mut Vec<Warning>) -> Result<(), ScenarioError> {
        let place = |name: &str| header.iter().position(|title| title == name);
        self.columns = COLUMNS.iter().map(|name| place(name)).collect();
        if let Some(missing) = COLUMNS[..3].iter().find(|name| place(name).is_none()) {
            return Err(self.wrong(self.line_at(0), &lacks(header, missing)));
        }
        for title in header.iter().filter(|title| !COLUMNS.contains(title) && !WITHOUT_EFFECT.contains(title)) {
            let shown: String = title.chars().take(40).collect();
            let near = nearest(title, COLUMNS).map(|near| format!("; is `{near}` meant?")).unwrap_or_default();
            let text = format!("{}: the column `{shown}` is not read{near}", self.file);
            warnings.push(Warning::from_lint(&lints::file::UNREAD_COLUMN, text));
        }
        Ok(())
    }

    /// An error about a place of the file.
    fn wrong(&self, (offset, length): (usize, usize), what: &str) -> ScenarioError {
        ScenarioError::new(what).at(Some(Place::new(self.file, self.text, offset, length.max(1)))).because("here").help(
            format!(
                "a trace of pods is a CSV file with the columns {}, and perhaps {}; rows in order of `create_s`",
                listed(COLUMNS[..3].iter().copied()),
                listed(COLUMNS[3..].iter().copied())
            ),
        )
    }

    /// An error about one cell of a row.
    fn wrong_in(&self, row: &Row<'_>, column: &str, what: &str) -> ScenarioError {
        let place = COLUMNS.iter().position(|name| *name == column).and_then(|place| *self.columns.get(place)?);
        let span = place.map_or_else(|| self.line_at(row.offset), |place| self.cell_at(row.offset, place));
        let cell: String = self.cell(row, column).unwrap_or_default().chars().take(40).collect();
        self.wrong(span, &format!("`{column}` is `{cell}`, which {what}"))
    }

    /// A cell that is not empty.
    fn cell<'r>(&self, row: &Row<'r>, column: &str) -> Option<&'r str> {
        let place = COLUMNS.iter().position(|name| *name == column)?;
        row.cells.get((*self.columns.get(place)?)?).map(from_csv_cell).filter(|cell| !cell.is_empty())
    }

    fn number(&self, row: &Row<'_>, column: &str) -> Result<Option<f64>, ScenarioError> {
        let Some(text) = self.cell(row, column) else { return Ok(None) };
        match text.parse::<f64>() {
            Ok(number) if (0.0..1e12).contains(&number) => Ok(Some(number)),
            _ => Err(self.wrong_in(row, column, "is not a number of 0 or more")),
        }
    }

    fn required(&self, row: &Row<'_>, column: &str) -> Result<f64, ScenarioError> {
        self.number(row, column)?.ok_or_else(|| self.wrong_in(row, column, "is empty"))
    }

    /// A whole number; a fraction is rounded up, as a request has to cover it.
    fn whole(&self, row: &Row<'_>, column: &str) -> Result<i64, ScenarioError> {
        Ok(libm::ceil(self.number(row, column)?.unwrap_or(0.0)) as i64)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<TraceRow, ScenarioError> {
        let instant = |seconds: f64| SimTime::ZERO + SimDuration::from_secs_f64(seconds);
        let at = instant(self.required(row, "create_s")?);
        let count = self.number(row, "count")?.unwrap_or(1.0);
        if libm::trunc(count).to_bits() != count.to_bits() || count > PODS_MAX as f64 {
            return Err(self.wrong_in(row, "count", "is not a number of pods"));
        }
        let end = match (self.number(row, "delete_s")?, self.number(row, "run_s")?) {
            (Some(_), Some(_)) => {
                return Err(self.wrong_in(row, "run_s", "says with `delete_s` twice when the pod ends"));
            }
            (Some(end), None) if instant(end) < at => {
                return Err(self.wrong_in(row, "delete_s", "is before the pod is created"));
            }
            (Some(end), None) => TraceEnd::At(instant(end)),
            (None, Some(time)) => TraceEnd::After(SimDuration::from_secs_f64(time)),
            (None, None) => TraceEnd::Never,
        };
        Ok(TraceRow {
            at,
            count: count as u32,
            template: self.template(row)?,
            end,
            name: self.cell(row, "name").map(Into::into),
        })
    }

    /// The place of the row's template, made unless there is one alike.
    fn template(&mut self, row: &Row<'_>) -> Result<u32, ScenarioError> {
        self.required(row, "cpu_milli")?;
        self.required(row, "memory_mib")?;
        let priority = match self.cell(row, "priority").map(str::parse::<i32>) {
            Some(Ok(priority)) => priority,
            Some(Err(_)) => return Err(self.wrong_in(row, "priority", "is not a priority")),
            None => 0,
        };
        let kind = Kind {
            cpu_milli: self.whole(row, "cpu_milli")?,
            memory_mib: self.whole(row, "memory_mib")?,
            gpu: self.whole(row, "gpu")?,
            ephemeral_mib: self.whole(row, "ephemeral_mib")?,
            app: self.cell(row, "app").map(Symbol::new),
            selector: self.cell(row, "node_selector").map(str::to_owned),
            tolerations: self.cell(row, "tolerations").map(str::to_owned),
            priority,
        };
        if let Some(&known) = self.templates.get(&kind) {
            return Ok(known);
        }
        let template = self.pod(row, &kind)?;
        let place = self.trace.templates.len() as u32;
        self.trace.templates.push(Arc::new(template));
        self.templates.insert(kind, place);
        Ok(place)
    }

    fn pod(&self, row: &Row<'_>, kind: &Kind) -> Result<PodSpec, ScenarioError> {
        const MIB: i64 = 1 << 20;
        let mut requests = Resources::cpu_memory(kind.cpu_milli, kind.memory_mib.saturating_mul(MIB));
        if kind.gpu > 0 {
            requests.set(ResourceName::NVIDIA_GPU, kind.gpu);
        }
        if kind.ephemeral_mib > 0 {
            requests.set(ResourceName::EPHEMERAL_STORAGE, kind.ephemeral_mib.saturating_mul(MIB));
        }
        let mut labels = Labels::new();
        if let Some(app) = kind.app {
            labels.set(Symbol::new("app"), app);
        }
        let mut spec = PodSpec {
            labels,
            // Its owner is not known; that something would make it again is.
            owner: if self.trace.again { OwnerKind::Other } else { OwnerKind::None },
            containers: vec![Container { name: "pod".to_owned(), requests, ..Container::default() }],
            priority: kind.priority,
            ..PodSpec::default()
        };
        if let Some(text) = &kind.selector {
            spec.node_affinity.required = vec![self.selector(row, text)?];
        }
        if let Some(text) = &kind.tolerations {
            let all = text.split(';').map(|part| toleration(part.trim()).ok_or(()));
            spec.tolerations = all.collect::<Result<_, ()>>().map_err(|()| {
                self.wrong_in(row, "tolerations", "is not `key=value:Effect`, `key:Effect`, `key` or `*`")
            })?;
        }
        Ok(spec)
    }

    /// `key=one|other`, several with `;` between them.
    fn selector(&self, row: &Row<'_>, text: &str) -> Result<NodeSelectorTerm, ScenarioError> {
        let mut term = NodeSelectorTerm::default();
        for part in text.split(';') {
            let Some((key, values)) =
                part.split_once('=').filter(|(key, values)| !key.is_empty() && !values.is_empty())
            else {
                return Err(self.wrong_in(row, "node_selector", "is not `key=value` or `key=one|other`"));
            };
            term.expressions.push(NodeSelectorExpression {
                key: Symbol::new(key.trim()),
                operator: Operator::In,
                values: values.split('|').map(|value| Symbol::new(value.trim())).collect(),
            });
        }
        Ok(term)
    }
}

/// A toleration as `kubectl taint` writes taints: `key=value:Effect`; without the value it tolerates any, without the effect all, and
/// `*` is every taint.
fn toleration(text: &str) -> Option<Toleration> {
    let (taint, effect) = match text.rsplit_once(':') {
        Some((taint, effect)) => (taint, Some(TaintEffect::named(effect)?)),
        None => (text, None),
    };
    let parts = match taint.split_once('=') {
        Some(("", _)) => return None,
        Some((key, value)) => Toleration {
            operator: TolerationOperator::Equal,
            value: Symbol::new(value),
            ..Toleration::exists(Symbol::new(key), effect)
        },
        None if taint == "*" => Toleration { effect, ..Toleration::EVERYTHING },
        None if taint.is_empty() => return None,
        None => Toleration::exists(Symbol::new(taint), effect),
    };
    Some(parts)
}

/// A toleration as a trace states it.
pub(crate) fn toleration_text(toleration: &Toleration) -> String {
    let taint = match toleration.operator {
        TolerationOperator::Equal => format!("{}={}", toleration.key, toleration.value),
        TolerationOperator::Exists if toleration.key.as_str().is_empty() => "*".to_owned(),
        TolerationOperator::Exists => toleration.key.to_string(),
    };
    toleration.effect.map_or(taint.clone(), |effect| format!("{taint}:{}", effect.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{toleration, toleration_text};

    #[test]
    fn a_toleration_is_written_as_taints_are() {
        for text in ["ci=true:NoSchedule", "ci:NoExecute", "ci", "ci=true", "*", "*:NoSchedule"] {
            assert_eq!(toleration(text).map(|toleration| toleration_text(&toleration)).as_deref(), Some(text));
        }
        for text in ["", "=true", "ci:Never", ":NoSchedule"] {
            assert_eq!(toleration(text), None, "{text}");
        }
    }
}
