//! Asking: each query of a list once, its answer saved under its name before the next is asked, so that an import that was ended
//! goes on where it was. What a server finds too large is asked in halves; what it is too busy for is asked again later.
//!
//! What must not live here: how a request travels ([`Transport`]).

use std::path::Path;
use std::time::Duration;

use nodecast_decisions::domain::words::{counted, refusal};
use nodecast_decisions::text::InputError;

use super::answer::{self, Answer};
use super::import::refuse_early;
use super::list::{LIST_FILE, Query, QueryList};
use super::saved::read_list;

/// Questions whose answers may end an import before it has begun. They are asked first.
const CHECKS: [&str; 2] = ["clusters", "replicas"];
/// How often one question is cut in two: into 64 pieces at most.
const HALVINGS_MAX: u32 = 6;
/// How often one request is sent.
const TRIES_MAX: u32 = 5;
/// The longest pause before another try, whatever the server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// What a server said to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// Seconds after which it wants to be asked again.
    pub retry_after: Option<u64>,
    /// The body.
    pub body: String,
}

/// Why there is no reply.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Broken {
    /// It took too long.
    TimedOut,
    /// The connection failed, which may pass.
    Connection(String),
    /// Something that another try does not change.
    Refused(String),
}

/// Who carries a question to a server.
pub trait Transport {
    /// Asks one question.
    ///
    /// # Errors
    /// If there is no reply.
    fn ask(&self, query: &Query) -> Result<Reply, Broken>;
}

/// Who is told how far an import is, and waits.
pub trait Pace {
    /// `done` of `all` questions have an answer; `next` is asked.
    fn progress(&self, done: usize, all: usize, next: &str);
    /// Something happened that takes time.
    fn remark(&self, text: &str);
    /// Pauses.
    fn wait(&self, pause: Duration);
}

/// What became of one request.
enum Outcome {
    Answer(String),
    TooLarge(String),
    Busy(String, Option<u64>),
    Failed(InputError),
}

/// Asks what is missing in `folder` of the answers to `list`, and saves it there.
///
/// # Errors
/// If the folder holds answers to another list, a server refuses a question or does not answer, or the system refuses to write.
pub fn fetch(list: &QueryList, folder: &Path, transport: &dyn Transport, pace: &dyn Pace) -> Result<(), InputError> {
    let mut list = begun(list, folder)?;
    let mut position = 0;
    while position < list.queries.len() {
        let query = list.queries[position].clone();
        let all = list.queries.len();
        pace.progress(position, all, query.role());
        if folder.join(&query.file).is_file() {
            position += 1;
            continue;
        }
        match ask(&query, transport, pace)? {
            Outcome::Answer(body) => {
                if CHECKS.contains(&query.role()) {
                    refuse_early(query.role(), &Answer::read(&body, query.role())?)?;
                }
                save(folder, &query.file, &body)?;
                position += 1;
            }
            Outcome::TooLarge(message) => {
                let halves = query.halves().filter(|_| times_halved(&query) < HALVINGS_MAX);
                let Some(halves) = halves else { return Err(given_up(&query, &message)) };
                pace.remark(&format!("{}: {message}; asked again in halves", query.role()));
                list.queries.splice(position..=position, halves);
                save(folder, LIST_FILE, &list.to_json())?;
            }
            Outcome::Busy(message, _) => return Err(given_up(&query, &message)),
            Outcome::Failed(error) => return Err(error),
        }
    }
    pace.progress(list.queries.len(), list.queries.len(), "");
    Ok(())
}

/// The list as an earlier import has left it in `folder`, or as it is if there was none.
fn begun(list: &QueryList, folder: &Path) -> Result<QueryList, InputError> {
    if !folder.join(LIST_FILE).exists() {
        std::fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
        save(folder, LIST_FILE, &list.to_json())?;
        return Ok(list.clone());
    }
    let before = read_list(folder)?;
    if list.is_whole_of(&before) {
        return Ok(before);
    }
    let is_answered = |own: &&Query| folder.join(&own.file).is_file();
    if before.queries.iter().filter(is_answered).all(|own| CHECKS.contains(&own.role())) {
        // Nothing but what made it ask for another choice of series.
        for own in before.queries.iter().filter(is_answered) {
            let path = folder.join(&own.file);
            std::fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
        save(folder, LIST_FILE, &list.to_json())?;
        return Ok(list.clone());
    }
    Err(InputError::new(format!("{} holds answers to other questions", folder.display()))
        .help("name another --out, or delete this one"))
}

/// How often a question was cut in two, as its name shows.
fn times_halved(query: &Query) -> u32 {
    query.file.split('.').filter(|part| matches!(*part, "a" | "b")).count() as u32
}

/// Asks one question, again after a pause where the server is busy.
fn ask(query: &Query, transport: &dyn Transport, pace: &dyn Pace) -> Result<Outcome, InputError> {
    let mut pause = Duration::from_secs(1);
    for attempt in 1..=TRIES_MAX {
        let outcome = judged(query, transport.ask(query));
        let Outcome::Busy(message, after) = &outcome else { return Ok(outcome) };
        if attempt == TRIES_MAX {
            // A proxy gives up on what takes too long without saying so.
            return Ok(Outcome::TooLarge(message.clone()));
        }
        let wait = after.map_or(pause, Duration::from_secs).min(PAUSE_MAX);
        pace.remark(&format!("{}: {message}; asked again in {} s", query.role(), wait.as_secs()));
        pace.wait(wait);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Err(given_up(query, "no answer"))
}

/// What a reply comes to.
fn judged(query: &Query, reply: Result<Reply, Broken>) -> Outcome {
    let reply = match reply {
        Ok(reply) => reply,
        Err(Broken::TimedOut) => return Outcome::TooLarge("no answer in time".to_owned()),
        Err(Broken::Connection(why)) => return Outcome::Busy(why, None),
        Err(Broken::Refused(why)) => return Outcome::Failed(InputError::new(why)),
    };
    let said = answer::refusal(&reply.body);
    let message = said.as_ref().map_or_else(|| format!("HTTP {}", reply.status), |(_, message)| message.clone());
    match reply.status {
        200 => match Answer::read(&reply.body, &format!("the answer to `{}`", query.role())) {
            Ok(_) => Outcome::Answer(reply.body),
            // A connection that broke off looks like the end of a short text.
            Err(error) if error.message().contains("cut off") => Outcome::Busy("the answer was cut off".to_owned(), None),
            Err(error) => Outcome::Failed(error),
        },
        429 => Outcome::Busy(message, reply.retry_after),
        422 if is_flaw(&message) => Outcome::Failed(refused(query, &message)),
        422 => Outcome::TooLarge(message),
        503 if said.is_some() => Outcome::TooLarge(message),
        400 if message.contains("exceeded maximum resolution") => Outcome::TooLarge(message),
        401 | 403 => Outcome::Failed(
            InputError::new(format!("the server wants to know who asks: HTTP {}", reply.status))
                .help("name a file with a token (--bearer-file), with user:password (--basic-file), or with a header (--header NAME=FILE)"),
        ),
        404 => Outcome::Failed(
            InputError::new("there is no /api/v1/query_range at this address: HTTP 404")
                .help("name the address with its prefix, for example http://host:9090, https://host/select/0/prometheus"),
        ),
        500..=599 => Outcome::Busy(message, reply.retry_after),
        _ => Outcome::Failed(refused(query, &message)),
    }
}

/// Whether an error of execution stays, however little is asked for.
fn is_flaw(message: &str) -> bool {
    ["duplicate series", "many-to-many", "multiple matches", "parse error"].iter().any(|flaw| message.contains(flaw))
}

fn refused(query: &Query, message: &str) -> InputError {
    InputError::new(format!("the server refuses `{}`: {message}", query.role()))
        .help(format!("it was asked: {}", query.query))
}

fn given_up(query: &Query, message: &str) -> InputError {
    let span = counted(query.points().unsigned_abs(), "point", "points");
    InputError::new(format!("no answer to `{}` of {span}: {message}", query.role()))
        .help("what has been answered is saved: the same command goes on from there. --namespace asks for less")
}

/// Writes a file of the folder as a whole.
fn save(folder: &Path, name: &str, text: &str) -> Result<(), InputError> {
    let part = folder.join(format!("{name}.part"));
    let whole = folder.join(name);
    std::fs::write(&part, text)
        .and_then(|()| std::fs::rename(&part, &whole))
        .map_err(|error| unwritable(&whole, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> InputError {
    InputError::new(format!("cannot write {}: {}", path.display(), refusal(error)))
}
