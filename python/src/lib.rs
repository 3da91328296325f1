//! What the Python package `nodecast` has of the program: each function reads, simulates and reports as the command of its name
//! does, without Python's lock, and hands the answer over. `nodecast/__init__.py` puts Python's own words around it.
//!
//! What must not live here: any figure, and anything that the command line does otherwise.

mod attended;
mod errors;
mod experiments;
mod packing;
mod running;
mod table;

use pyo3::prelude::*;

// As in the program: a run makes millions of small lists.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Runs the program on `words`, the first of which is its own name. Returns the exit code.
#[pyfunction]
fn main(py: Python<'_>, words: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| nodecast::cli::run_on(words))
}

/// An amount as people read it.
#[pyfunction]
fn money(currency: &str, amount: f64) -> String {
    nodecast::report::format::money(currency, amount)
}

/// The compiled half of the package.
#[pymodule(name = "_nodecast")]
mod native {
    #[pymodule_export]
    use super::errors::Error;
    #[pymodule_export]
    use super::experiments::{Comparison, Sweep, compare, sweep};
    #[pymodule_export]
    use super::packing::{Packing, pack};
    #[pymodule_export]
    use super::running::{Run, run};
    #[pymodule_export]
    use super::table::Table;
    #[pymodule_export]
    use super::{main, money};

    /// The version of the program.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
