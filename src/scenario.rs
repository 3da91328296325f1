//! Scenario files and Kubernetes manifests, resolved and validated.
//!
//! What lives here: the position-keeping YAML tree ([`tree`]), errors and warnings that show where they arose
//! ([`error`]), the readers that turn manifests into the domain's vocabulary ([`manifests`]), the scenario itself
//! ([`definition`]), and first scenarios for those who have none yet ([`draft`]).
//!
//! What must not: any decision, any simulated time passing, any printing. Warnings are returned, never shown.

pub mod definition;
pub mod draft;
pub mod edits;
pub mod error;
mod file;
pub mod manifests;
pub mod packing_question;
pub mod reader;
pub mod schema;
pub mod source;
pub mod tree;

pub use definition::{
    Action, Autoscaler, Detail, Ec2Settings, InputFile, LoadSpec, Objectives, OpenRequests, OutputSettings,
    PolicyVariant, Requests, Scenario, TimedAction,
};
pub use draft::{Draft, DraftFile};
pub use edits::Edit;
pub use error::{ScenarioError, Warning};
pub use packing_question::{Circumstances, PackingQuestion};
pub use source::{Limits, Source};
