//! One pass of a packer.

use std::path::PathBuf;
use std::time::Duration;

use nodecast::domain::KarpenterVersion;
use nodecast::program::pack::{self as program, Options, Packed};
use nodecast::program::simulations::warning_lines;
use nodecast::program::{Failure, Prices};
use nodecast::report::tables::{Cell, Kind, Sink};
use nodecast_karpenter::packing::PackerKind;
use pyo3::prelude::*;

use crate::attended::attended;
use crate::errors::{OrRaise, argument};
use crate::table::Table;

/// The nodes that would be launched now.
#[pyclass(frozen, module = "nodecast")]
pub struct Packing {
    packed: Packed,
}

/// How to pack, of what Python states.
fn options(
    region: Option<String>,
    zones: Vec<String>,
    karpenter: Option<&str>,
    packer: &str,
    time_limit: Option<f64>,
) -> Result<Options, Failure> {
    let karpenter = karpenter.map(str::parse::<KarpenterVersion>).transpose();
    let karpenter = karpenter.map_err(|error| argument("karpenter", &format!("{error}")))?;
    let packer = match packer {
        "karpenter" => PackerKind::Karpenter,
        "cost-aware" => PackerKind::CostAware,
        _ => return Err(argument("packer", "write `karpenter` or `cost-aware`")),
    };
    let time_limit = time_limit.map(Duration::try_from_secs_f64).transpose();
    let time_limit = time_limit.map_err(|_| argument("time_limit", "has to be a number of seconds from 0 on"))?;
    Ok(Options { region, zones, karpenter, feature_gates: None, packer, time_limit, repack: false })
}

/// Packs the pods of some files.
#[pyfunction]
#[pyo3(signature = (files, region, zones, karpenter, packer, explain, time_limit, pricing_data))]
#[expect(clippy::too_many_arguments, reason = "Python names each of them")]
pub fn pack(
    py: Python<'_>,
    files: Vec<PathBuf>,
    region: Option<String>,
    zones: Vec<String>,
    karpenter: Option<String>,
    packer: String,
    explain: Option<String>,
    time_limit: Option<f64>,
    pricing_data: Option<PathBuf>,
) -> PyResult<Packing> {
    let packed = attended(py, None, |_| {
        let options = options(region, zones, karpenter.as_deref(), &packer, time_limit)?;
        let prices = Prices::open(pricing_data.as_deref())?;
        program::pack(&files, explain.as_deref(), &prices, &options)
    })?;
    Ok(Packing { packed: packed.or_raise(py)? })
}

#[pymethods]
impl Packing {
    /// The answer as JSON.
    fn pack_json(&self, py: Python<'_>) -> PyResult<String> {
        let json = self.packed.answer.to_json();
        json.map_err(Failure::of_report).or_raise(py)
    }

    /// What the program prints.
    fn text(&self) -> String {
        self.packed.answer.table()
    }

    /// What is understood in the files but left out.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        warning_lines(&self.packed.warnings)
    }

    /// The nodes to launch.
    fn launches(&self) -> PyResult<Table> {
        Table::from_fill(|columns| {
            for (name, kind) in [
                ("node_pool", Kind::Text),
                ("instance_type", Kind::Text),
                ("capacity_type", Kind::Text),
                ("per_hour", Kind::Number),
                ("cpu_share", Kind::Number),
                ("memory_share", Kind::Number),
                ("pods", Kind::Whole),
            ] {
                columns.column(name, kind);
            }
            for launch in &self.packed.answer.launches {
                for text in [launch.node_pool, launch.instance_type, launch.capacity_type] {
                    columns.cell(Cell::Text(text));
                }
                for share in [launch.per_hour, launch.cpu_share, launch.memory_share] {
                    columns.cell(Cell::Number(share));
                }
                columns.optional(i64::try_from(launch.pods.len()).ok().map(Cell::Whole));
            }
        })
    }
}
