//! One integration-test binary; a file for each kind of promise.

mod agreement;
mod catalog;
mod instance_types;
mod manifests;
mod report;
mod selection;
mod synthetic;
