//! Failures as exceptions.

use miette::GraphicalTheme;
use nodecast::program::{Failure, Remark};
use nodecast::scenario::ScenarioError;
use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    nodecast,
    Error,
    PyException,
    "Why there is no answer. `str()` reads as in a terminal; `message`, `file`, `line`, `column` and `help` have its parts, and \
     `exit_code` is what the command line would end with."
);

/// The exception of a failure.
pub fn raised(py: Python<'_>, failure: &Failure) -> PyErr {
    let Some(Remark { message, file, line, column, help, id: _ }) = failure.remark() else {
        return Error::new_err("there is no answer");
    };
    let text = failure.text(GraphicalTheme::none()).unwrap_or_else(|| message.clone());
    let error = Error::new_err(text);
    let value = error.value(py);
    let parts = || {
        value.setattr("message", message)?;
        value.setattr("file", file)?;
        value.setattr("line", line)?;
        value.setattr("column", column)?;
        value.setattr("help", help)?;
        value.setattr("exit_code", failure.exit_code())
    };
    match parts() {
        Ok(()) => error,
        Err(other) => other,
    }
}

/// What a failure becomes in Python.
pub trait OrRaise<T> {
    /// The value, or the exception.
    ///
    /// # Errors
    /// If there was a failure.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for Result<T, Failure> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|failure| raised(py, &failure))
    }
}

/// A failure of an argument: its name, and what is wrong with its value.
pub fn argument(name: &str, problem: &str) -> Failure {
    ScenarioError::new(format!("`{name}`: {problem}")).into()
}
