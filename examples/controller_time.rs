//! How long controllers take by the model, beside what was measured of the real programs.
//!
//! `cargo run --release --example controller_time [ROW...]` prints one line for each row of measurements: what was measured, what
//! the model says, their ratio. Exit code 1 if one is further off than it may be.

use std::process::ExitCode;

use agreement::passes;
use nodecast_karpenter::controller_time;

#[allow(clippy::print_stdout, clippy::print_stderr)]
fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let chosen = |row: &&passes::Row| wanted.is_empty() || wanted.iter().any(|item| item == row.name);
    let mut failed = false;
    for row in passes::ROWS.iter().filter(chosen) {
        match row.work() {
            Ok(work) => {
                let modelled = controller_time::solve(&work).as_secs_f64();
                let ratio = modelled / row.measured;
                let within = (1.0 / row.within..=row.within).contains(&ratio);
                failed |= !within;
                let told = if within { "" } else { "  further off than it may be" };
                println!(
                    "{:<12} measured {:>9.4} s  model {modelled:>9.4} s  ratio {ratio:.2}{told}",
                    row.name, row.measured
                );
            }
            Err(problem) => {
                eprintln!("{}: {problem}", row.name);
                failed = true;
            }
        }
    }
    ExitCode::from(u8::from(failed))
}
