//! A page on the loopback interface on which one moves what a scenario sets and sees what it comes to.
//!
//! [`Session`] is the scenario as it is today with its controls, and what has been simulated of it; `jobs` runs what a page asks for and
//! drops what it no longer wants; `http` lets the page in, and nobody else; `page` is what it looks like.
//!
//! What must not live here: what a control does (`recommend::controls`), and how a difference reads (`experiment::presentation`).

mod guard;
mod http;
mod jobs;
mod lru_cache;
mod page;
mod session;
mod writing;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

pub use session::{Request, Session};

use super::Failure;
use guard::Guard;
use jobs::Pool;

/// The system gives no place to listen, or no randomness.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum Refused {
    #[error("cannot listen on 127.0.0.1:{port}: {reason}")]
    #[diagnostic(help("the port may be in use; choose another --port, or omit it to use any free port"))]
    Listen { port: u16, reason: std::io::Error },
    #[error("cannot serve the page: {0}")]
    Serve(std::io::Error),
    #[error("cannot read random numbers from the operating system: {0}")]
    Randomness(String),
}

/// A page that is ready to be opened.
pub struct Studio {
    session: Session,
    listener: TcpListener,
    guard: Guard,
}

impl Studio {
    /// Takes a port of the loopback interface: `port`, or any that is free where it is 0.
    ///
    /// # Errors
    /// If it cannot be had.
    pub fn open(session: Session, port: u16) -> Result<Self, Failure> {
        let refused = |reason| Failure::system(Refused::Listen { port, reason });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(refused)?;
        listener.set_nonblocking(true).map_err(refused)?;
        let SocketAddr::V4(place) = listener.local_addr().map_err(refused)? else {
            return Err(Failure::silent(Failure::INTERRUPTED));
        };
        let guard = Guard::at(place.port()).map_err(|reason| Failure::system(Refused::Randomness(reason)))?;
        Ok(Self { session, listener, guard })
    }

    /// The address to open: whoever has it may see the scenario and have the changes written.
    pub fn address(&self) -> String {
        self.guard.address()
    }

    /// An address that leads to the page once, for whoever starts a browser with it.
    ///
    /// # Errors
    /// If the system gives no random numbers.
    pub fn ticket(&self) -> Result<String, Failure> {
        self.guard.ticket().map_err(|reason| Failure::system(Refused::Randomness(reason)))
    }

    /// Serves until `is_over` says so, and simulates on so many threads; nothing for one less than there are processors.
    ///
    /// # Errors
    /// If the system does not let it serve.
    pub fn serve(self, threads: Option<u16>, is_over: &(dyn Fn() -> bool + Sync)) -> Result<(), Failure> {
        let Self { session, listener, guard } = self;
        // One processor is left to the server and to the browser.
        let usual = || std::thread::available_parallelism().map_or(1, |count| count.get().saturating_sub(1).max(1));
        let count = threads.map_or_else(usual, usize::from);
        let pool = Pool::default();
        let served = std::thread::scope(|scope| {
            // The page can be opened meanwhile.
            scope.spawn(|| session.find(pool.ended()));
            for _ in 0..count {
                scope.spawn(|| pool.work(&session));
            }
            let site = http::Site { session: &session, pool: &pool, guard: &guard, threads: scope };
            let served = http::serve(listener, site, is_over);
            pool.end();
            served
        });
        served.map_err(|reason| Failure::system(Refused::Serve(reason)))
    }
}
