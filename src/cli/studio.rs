//! `nodecast studio`: a page on which one moves settings and sees what they come to.

use std::process::{Command, Stdio};

use super::Console;
use super::console::Stop;
use super::edits::Edits;
use crate::program::Failure;
use crate::program::studio::{Request, Session, Studio};

/// Move settings on a page and see at once what they cost and who waits
///
/// Serves a page on the loopback interface, under an address that holds a secret, and opens it in the browser. What can be moved is found
/// in the scenario: what `recommend` looks at, load, and faults. Each state is simulated with the seeds of today, one after the other, and
/// held against it seed by seed. What is worth it can be written as policies. Ctrl-C ends it.
#[derive(clap::Args, Debug)]
pub(super) struct Arguments {
    #[command(flatten)]
    request: Request,
    /// The port on 127.0.0.1 [default: any that is free]
    #[arg(long, value_name = "PORT", default_value = "0", hide_default_value = true)]
    port: u16,
    /// Print the address alone; open no browser
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    edits: Edits,
    /// How many simulations run at once [default: one less than there are processors]
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
        console.tell("no browser could be started: open the address above");
    }
    console.tell("whoever has the address may use the page; Ctrl-C ends it");
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
