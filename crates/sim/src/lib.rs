//! One simulation of a cluster: its event handlers, and what wires and drives them.
//!
//! | room | holds |
//! | --- | --- |
//! | [`actors`] | event handlers: controllers, scheduler loop, autoscalers, node life |
//! | [`simulation`] | one runnable simulation from a scenario, a policy and a seed |
//!
//! What must not live here: how a scenario is written (`nodecast-scenario`), what is reported of a run (`nodecast-report`), more than one run
//! (`nodecast-study`).

use nodecast_ec2 as cloud;
use nodecast_engine as engine;
use nodecast_load as load;
use nodecast_manifests as manifests;
use nodecast_model::{cluster, control_plane, domain};
use nodecast_prices as catalog;
use nodecast_single_pass as single_pass;
use nodecast_single_pass::standing;
use nodecast_world as world;

pub mod actors;
pub mod simulation;

pub use simulation::coupled;
