//! `nodecast studio`: a page on which one moves settings and sees what they come to.

use std::process::{Command, Stdio};

use super::Console;
use super::console::Stop;
use super::edits::Edits;
use crate::program::Failure;
use crate::program::studio::{Request, Session, Studio};

/// Open an interactive page: change settings and see cost and wait times at once
///
/// Serves a page on 127.0.0.1 under a secret URL and opens it in your browser. You can change the settings that `recommend` considers, plus
/// load and faults. Each state is simulated with the same seeds as today's settings and compared seed by seed. Save good states as
/// policies. Press Ctrl-C to stop.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// Port on 127.0.0.1 [default: any free port]
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true)]
    port: u16,
    /// Print the URL; do not open a browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    edits: Edits,
    /// Simulations to run in parallel [default: one less than the number of CPUs]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// Serves the page until Ctrl-C.
pub(super) fn execute(arguments: &Arguments, console: &mut Console<'_>) -> Result<(), Failure> {
    let stop = Stop::on_interrupt();
    let session = Session::load(Request { edits: arguments.edits.parse()?, ..arguments.request.clone() })?;
    let studio = Studio::open(session, arguments.port)?;
    let address = studio.address();
    console.data(&format!("{address}\n"))?;
    // Others on the machine can read what a browser is started with, so it is not the address itself.
    if !arguments.no_open && !open(&studio.ticket()?) {
        console.tell("could not start a browser; open the URL above");
    }
    console.tell("anyone with this URL can use the page; press Ctrl-C to stop");
    studio.serve(arguments.threads, &|| stop.is_wanted())
}

/// Has the system open an address; whether it could be asked to.
fn open(address: &str) -> bool {
    let opener: &[&str] = match std::env::consts::OS {
        "macos" => &["open"],
        "windows" => &["rundll32", "url.dll,FileProtocolHandler"],
        _ => &["xdg-open"],
    };
    let Some((program, leading)) = opener.split_first() else { return false };
    let mut command = Command::new(program);
    command.args(leading).arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It hands the address on and ends; what becomes of it is seen in the browser, or there is the address.
    command.spawn().is_ok()
}
