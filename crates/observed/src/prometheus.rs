//! What a Prometheus (or Thanos, Mimir, VictoriaMetrics, AMP) recorded of a cluster: the [queries](catalogue) that are put to it, as a
//! [list] that people can run themselves; how they are [asked](fetch) over the network; the [reader](answer) of answers; and
//! the [import](mod@import) that makes an [observation](crate::observation) of [saved] answers.
//!
//! Asking saves every answer under the name that the list has for it, and the import reads saved answers alone: what is asked
//! live and what was saved by hand give the same bytes.
//!
//! What must not live here: fitting of parameters (the estimators), anything that the simulation makes of a figure.

pub mod answer;
pub mod catalogue;
pub mod fetch;
#[cfg(feature = "http")]
pub mod http;
pub mod import;
pub mod list;
pub mod saved;

pub use answer::{Answer, Sample, Series};
pub use catalogue::Plan;
pub use import::import;
pub use list::{Query, QueryList};
pub use saved::Answers;
