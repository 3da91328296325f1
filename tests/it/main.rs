//! One integration-test binary; a file for each kind of promise.

#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

mod agreement;
mod architecture;
mod bad_input;
mod catalog;
mod churn;
mod cli;
mod cluster_autoscaler;
mod cluster_autoscaler_runs;
mod determinism;
mod disruption_cases;
mod experiments;
mod faults;
mod fidelity;
mod first_tutorial;
mod fourth_tutorial;
mod instance_types;
mod interruptions;
mod karpenter_runs;
mod keda;
mod legacy_consolidation;
mod load;
mod manifests;
mod node_groups;
mod outputs;
mod pack;
mod pack_dumps;
mod packing;
mod packing_suite;
mod pricing;
mod queues;
mod random_streams;
mod report;
mod report_page;
mod requests;
mod reserved_capacity;
mod second_tutorial;
mod selection;
mod simulation;
mod spot_market;
mod startup;
mod synthetic;
mod third_tutorial;
mod upgrades;
mod workloads;
