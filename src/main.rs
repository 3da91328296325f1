//! The `nodecast` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    nodecast::cli::main()
}
