//! Many simulations at once: on which threads, and who is told.

use super::{Failure, prices};
use crate::domain::SimDuration;
use crate::experiment::points::{self, Cell, Point, PointError, ProgressObserver};
use crate::scenario::{Caveats, Warning};

/// Who is told of simulations, and can have them stopped.
pub trait Audience {
    /// Simulations are about to run, so many, each as long as one of `durations`. What is returned watches them.
    fn begin(&mut self, count: usize, durations: &[SimDuration]) -> Box<dyn ProgressObserver + '_>;
}

/// One simulation of an experiment.
pub type One<'o> = dyn Fn(Cell<'_>) -> Result<Point, PointError> + Sync + 'o;

/// Runs `cells` on so many threads, or one for each processor, under the eyes of `watcher`. The points come with the numbers of
/// their cells, in order.
///
/// # Errors
/// The first error of a simulation, or if there are no threads.
pub fn simulate(
    cells: &[Cell<'_>],
    one: &One<'_>,
    threads: Option<u16>,
    watcher: &dyn ProgressObserver,
) -> Result<Vec<(usize, Point)>, Failure> {
    on_threads(threads, || points::run(cells, one, watcher))?.map_err(|error| match error {
        PointError::Scenario(error) => (*error).into(),
        PointError::Catalog(error) => prices::unusable(error),
    })
}

/// Does `work` on as many threads as are asked for.
///
/// # Errors
/// If the system gives none.
pub fn on_threads<T: Send>(threads: Option<u16>, work: impl FnOnce() -> T + Send) -> Result<T, Failure> {
    let mut builder = rayon::ThreadPoolBuilder::new();
    if let Some(threads) = threads {
        builder = builder.num_threads(usize::from(threads));
    }
    let pool = builder.build().map_err(|error| Failure::system(NoThreads(error.to_string())))?;
    Ok(pool.install(work))
}

#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot start threads: {0}")]
#[diagnostic(help("lower --threads"))]
struct NoThreads(String);

/// Warnings in one line each, with their places and the ids of their lints.
pub fn warning_lines(warnings: &[Warning]) -> Vec<String> {
    Caveats::from_warnings(warnings).iter().map(ToString::to_string).collect()
}

/// `words` as a shell reads them.
pub fn shell_line(words: &[&str]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// `word` in quotes if a shell would not take it as it is.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn shell_words_are_quoted() {
        assert_eq!(quoted("a/b.yaml"), "a/b.yaml");
        assert_eq!(quoted("it's here"), "'it'\\''s here'");
        assert_eq!(quoted(""), "''");
    }
}
