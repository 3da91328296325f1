//! The `nodecast` program.

fn main() {}
