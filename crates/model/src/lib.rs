//! What decisions of Kubernetes autoscalers work on: vocabulary as plain data, texts of the input with their places, instance types,
//! and the cluster with the journal of its changes; and rules of Kubernetes and AWS that more than one of them follows.
//!
//! | module | holds |
//! | --- | --- |
//! | [`domain`] | vocabulary as plain data |
//! | [`text`] | texts of the input, read with their places, and errors that show them |
//! | [`catalog`] | instance types, offerings and prices of a region, as data |
//! | [`cluster`] | specifications, pods, nodes and workloads as they are, and the one journal of what has changed |
//! | [`control_plane`] | what API server and controller-manager know and answer: disruption budgets, evictions, limits of calls |
//! | [`node_pressure`] | which pods the kubelet evicts |
//! | [`fargate`] | pods on Fargate: profiles, sizes, rates |
//! | [`auto_mode`] | what EKS Auto Mode allows and adds |
//!
//! A module imports only modules above it in this list; a test enforces that.

pub mod auto_mode;
pub mod catalog;
pub mod cluster;
pub mod control_plane;
pub mod domain;
pub mod fargate;
pub mod node_pressure;
pub mod text;
