//! The Vertical Pod Autoscaler: what its three programs decide, as functions and machines without input and output.
//!
//! - [`Recommender`] is fed with the use of containers and with kills for lack of memory, and says what to request; [`Checkpoint`]
//!   is what it keeps over a restart.
//! - [`Updater`] says which running pods are evicted or resized in place so that they get it.
//! - [`admit`] writes it into a pod that is being created.
//! - [`cap`] is what the latter two make of a recommendation for one pod, with LimitRanges and the policy of the container.
//!
//! Instants count from 1970-01-01 00:00 UTC, as decay is counted in whole half-lives of the calendar. What differs between releases
//! is a record of switches, [`Behaviour`]; no decision compares versions.
//!
//! What must not live here: when the programs wake, where use is measured, how a pod is evicted or resized, whether a resized pod
//! fits its node.
//!
//! Deviation: of the Vertical Pod Autoscaler, the CPU startup boost (1.7), rate limits of evictions, the status lease
//! of the admission controller, and the storage `prometheus` are omitted.
//!
//! Source: kubernetes/autoscaler `vertical-pod-autoscaler` 1.7.1, with what earlier releases did otherwise.

mod admission;
mod aggregation;
mod amount;
mod capping;
mod checkpoint;
mod container;
mod estimate;
pub mod flags;
mod histogram;
mod limits;
mod post_processing;
mod recommender;
mod release;
mod settings;
mod updater;

pub use admission::{Admission, AdmittedContainer, NotAdmitted, Written, admit, controlling, respecified};
pub use capping::{Cap, Capped, CappingCrash, ContainerState, cap, container_states, proportional_limit};
pub use checkpoint::{Checkpoint, HistogramCheckpoint};
pub use container::OutOfMemory;
pub use limits::{Bounds, NamespaceLimits};
pub use recommender::{ContainerSlot, NotTaken, Recommender};
pub use release::{Behaviour, InPlaceGate};
pub use settings::{Percentiles, RecommenderSettings, UpdaterSettings};
pub use updater::{
    Answers, ControllerKind, LastTermination, PodGroup, PodToUpdate, Priority, RankedPod, Resize, ResizeCondition,
    Updater, UpdaterView, Verdict, priority,
};

#[cfg(test)]
mod tests;
