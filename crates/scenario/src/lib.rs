//! Scenario files and Kubernetes manifests, resolved and validated.
//!
//! What lives here: the scenario itself ([`definition`]), the form of its file ([`schema`]) and the reading of it, how errors
//! are shown ([`error`]), and first scenarios for clusters without one ([`draft`]). The data itself is `nodecast-settings`, the tree of a text
//! and its problems `nodecast-model`, the readers of manifests `nodecast-manifests`.
//!
//! What must not: any decision, any simulated time passing, any printing. Warnings are returned, never shown.

use nodecast_ec2 as cloud;
use nodecast_model::domain;
use nodecast_prices as catalog;
use nodecast_single_pass as single_pass;

pub mod document;
pub mod draft;
pub mod edits;
pub mod error;
mod file;
pub mod packing_question;
pub mod patch;
pub mod schema;
pub mod settable;
pub mod source;

pub use nodecast_manifests as manifests;
pub use nodecast_model::text::{reader, tree};

pub use draft::{Draft, DraftFile};
pub use edits::Edit;
pub use error::{Effect, ScenarioError, Warning};
pub use file::{documents, load, load_edited, load_with, of_texts, stated};
pub use nodecast_settings as definition;
pub use nodecast_settings::{
    Action, Autoscaler, Detail, Ec2Settings, InputFile, LoadSpec, Objectives, OpenRequests, OutputSettings,
    PolicyVariant, Requests, Scenario, TimedAction,
};
pub use nodecast_settings::{Caveat, Caveats, lints};
pub use packing_question::Circumstances;
pub use patch::patch;
pub use source::{Limits, Source};
