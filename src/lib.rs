//! **nodecast** forecasts what a Kubernetes cluster on EKS will cost, and how long its pods and requests will
//! wait, under an autoscaling policy. It is a discrete-event simulator; the decisions inside it (packing, instance
//! selection, replica counts, scheduling) are plain functions that a real controller could call.
//!
//! The crate is a house of rooms. A room may import only the rooms listed above it; a test enforces that.
//!
//! | room | holds |
//! | --- | --- |
//! | [`domain`] | vocabulary as plain data |
//! | [`catalog`] | EC2 instance types, offerings and prices |
//! | [`policy`] | the decisions; they know no clock, no event and no randomness of their own |
//! | [`engine`] | event queue, clock, random streams; no Kubernetes word in it |
//! | [`world`] | the state of one simulated cluster, and the record of what happened to it |
//! | [`cloud`] | the simulated EC2 and its bill |
//! | [`load`] | load curves and the request model |
//! | [`scenario`] | scenario files and Kubernetes manifests, resolved and validated |
//! | [`actors`] | event handlers: controllers, scheduler loop, autoscalers, node life |
//! | [`simulation`] | one runnable simulation from a scenario, a policy and a seed |
//! | [`report`] | summaries and the files a run emits |
//! | [`cli`] | the command line |

pub mod actors;
pub mod catalog;
pub mod cli;
pub mod cloud;
pub mod domain;
pub mod engine;
pub mod experiment;
pub mod load;
pub mod policy;
pub mod report;
pub mod scenario;
pub mod simulation;
pub mod world;
