//! YAML and JSON as people write them: a tree that keeps every position ([`tree`]), typed reading of it ([`reader`]), and
//! dumps of a cluster ([`dump`]), and
//! problems that say where they arose, why, and what to do ([`error`]).
//!
//! What must not live here: what any key means (`manifests`, and whoever else reads files), any printing.

pub mod cells;
pub mod dump;
pub mod error;
pub mod lint;
pub mod lints;
pub mod reader;
pub mod source;
mod template;
pub mod tree;
pub mod yaml;

pub use error::{InputError, Place, Warning};
pub use source::{Limits, Source};
