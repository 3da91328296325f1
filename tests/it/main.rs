//! One integration-test binary; a file for each kind of promise.

mod agreement;
mod bad_input;
mod catalog;
mod cli;
mod instance_types;
mod manifests;
mod outputs;
mod report;
mod selection;
mod synthetic;
