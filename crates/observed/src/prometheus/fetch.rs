//! Asking: each query of a list once, its answer saved under its name before the next is asked, so that an import that was ended
//! goes on where it was. What a server finds too large is asked in halves; what it is too busy for is asked again later.
//!
//! What must not live here: how a request travels ([`Transport`]).

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use nodecast_model::domain::words::{counted, refusal};
use nodecast_model::text::InputError;

use super::answer::{self, Answer};
use super::catalogue::{FAMILIES_ROLE, recorded};
use super::import::refuse_early;
use super::list::{LIST_FILE, Query, QueryList};
use super::saved::read_list;

/// Questions whose answers may end an import before it has begun. They are asked first.
const CHECKS: [&str; 2] = ["clusters", "replicas"];
/// Questions whose answers hang on nothing but which series are chosen: where an import got no further, another may begin in its place.
const FIRST: [&str; 3] = ["clusters", "replicas", FAMILIES_ROLE];
/// How often one question is cut in two: into 64 pieces at most.
const HALVINGS_MAX: u32 = 6;
/// How often one request is sent.
const TRIES_MAX: u32 = 5;
/// The longest pause before another try, whatever the server asks for.
const PAUSE_MAX: Duration = Duration::from_secs(120);

/// What a server says to a request.
pub struct Reply {
    /// The status of HTTP.
    pub status: u16,
    /// Seconds after which it wants to be asked again.
    pub retry_after: Option<u64>,
    /// The body as it arrives. Where it ceases to, the error holds a [`Broken`].
    pub body: Box<dyn Read + Send>,
}

/// Why there is no reply.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Broken {
    /// It took too long.
    #[error("no answer in time")]
    TimedOut,
    /// The body is larger than this number of bytes.
    #[error("the answer is larger than {} MiB", .0 >> 20)]
    Limit(u64),
    /// The connection failed, which may pass.
    #[error("{0}")]
    Connection(String),
    /// Something that another try does not change.
    #[error("{0}")]
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
    /// Which families of metrics there are, in a line.
    fn recorded(&self, text: &str);
    /// Something happened that takes time.
    fn remark(&self, text: &str);
    /// Pauses.
    fn wait(&self, pause: Duration);
}

/// What became of one request.
enum Outcome {
    /// An answer, which lies beside the place where it is saved.
    Answer(Answer),
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
        let outcome = ask(&query, folder, transport, pace)?;
        if !matches!(outcome, Outcome::Answer(_)) {
            // A part of an answer that nothing continues; there is none where the server sent no body.
            let _ = std::fs::remove_file(part_of(folder, &query.file));
        }
        match outcome {
            Outcome::Answer(answer) => {
                if CHECKS.contains(&query.role()) {
                    refuse_early(query.role(), &answer)?;
                } else if query.role() == FAMILIES_ROLE {
                    pace.recorded(&recorded(&answer));
                }
                settle(folder, &query.file)?;
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
    let is_answered = |query: &&Query| folder.join(&query.file).is_file();
    if before.queries.iter().filter(is_answered).all(|query| FIRST.contains(&query.role())) {
        // Nothing but what made it ask for another choice of series.
        for query in before.queries.iter().filter(is_answered) {
            let path = folder.join(&query.file);
            std::fs::remove_file(&path).map_err(|error| unwritable(&path, &error))?;
        }
        save(folder, LIST_FILE, &list.to_json())?;
        return Ok(list.clone());
    }
    Err(InputError::new(format!("{} holds answers to other questions", folder.display()))
        .help("choose another --out, or delete this directory"))
}

/// How often a question was cut in two, as its name shows.
fn times_halved(query: &Query) -> u32 {
    query.file.split('.').filter(|part| matches!(*part, "a" | "b")).count() as u32
}

/// Asks one question, again after a pause where the server is busy.
fn ask(query: &Query, folder: &Path, transport: &dyn Transport, pace: &dyn Pace) -> Result<Outcome, InputError> {
    let mut pause = Duration::from_secs(1);
    for attempt in 1..=TRIES_MAX {
        let outcome =
            transport.ask(query).map_or_else(|broken| ended(query, &broken), |reply| judged(query, reply, folder));
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

/// What becomes of a request without a reply.
fn ended(query: &Query, broken: &Broken) -> Outcome {
    match broken {
        Broken::TimedOut => Outcome::TooLarge(broken.to_string()),
        // Halves of it could be as large, each of them a gigabyte to receive.
        Broken::Limit(_) => Outcome::Failed(given_up(query, &broken.to_string())),
        Broken::Connection(why) => Outcome::Busy(why.clone(), None),
        Broken::Refused(why) => Outcome::Failed(InputError::new(why.clone())),
    }
}

/// What becomes of one whose reply ceases to arrive.
fn ceased(query: &Query, error: &std::io::Error) -> Outcome {
    let broken = error.get_ref().and_then(|error| error.downcast_ref::<Broken>());
    broken.map_or_else(|| ended(query, &Broken::Connection(error.to_string())), |broken| ended(query, broken))
}

/// What a reply comes to.
fn judged(query: &Query, mut reply: Reply, folder: &Path) -> Outcome {
    if reply.status == 200 {
        return received(query, reply.body, folder);
    }
    let mut body = Vec::new();
    if let Err(error) = reply.body.read_to_end(&mut body) {
        return ceased(query, &error);
    }
    let said = answer::refusal(&String::from_utf8_lossy(&body));
    let message = said.as_ref().map_or_else(|| format!("HTTP {}", reply.status), |(_, message)| message.clone());
    match reply.status {
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

/// Reads an answer as it arrives, and writes it beside the place where it is saved.
fn received(query: &Query, body: Box<dyn Read + Send>, folder: &Path) -> Outcome {
    let part = part_of(folder, &query.file);
    let to = match File::create(&part) {
        Ok(to) => to,
        Err(error) => return Outcome::Failed(unwritable(&part, &error)),
    };
    let mut kept = CopiedBody { from: body, to, refused: None };
    let read = Answer::arriving(&mut kept);
    // What is wrong with an answer is found in the whole of it.
    let rest = if matches!(read, Ok(None)) { std::io::copy(&mut kept, &mut std::io::sink()) } else { Ok(0) };
    if let Some(error) = kept.refused {
        return Outcome::Failed(unwritable(&part, &error));
    }
    match (read, rest) {
        (Ok(Some(answer)), _) => Outcome::Answer(answer),
        (Err(error), _) | (_, Err(error)) => ceased(query, &error),
        (Ok(None), Ok(_)) => unusable(query, &part),
    }
}

/// What an answer comes to that could not be read.
fn unusable(query: &Query, part: &Path) -> Outcome {
    let text = match std::fs::read(part) {
        Ok(text) => text,
        Err(error) => return Outcome::Failed(unwritable(part, &error)),
    };
    match Answer::read(&String::from_utf8_lossy(&text), &format!("the answer to `{}`", query.role())) {
        Ok(answer) => Outcome::Answer(answer),
        // A connection that broke off looks like the end of a short text.
        Err(error) if error.message().contains("cut off") => Outcome::Busy("the answer was cut off".to_owned(), None),
        Err(error) => Outcome::Failed(error),
    }
}

/// A body whose bytes are written to a file as they are read.
struct CopiedBody {
    from: Box<dyn Read + Send>,
    to: File,
    /// Why they could not be written.
    refused: Option<std::io::Error>,
}

impl Read for CopiedBody {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.from.read(buffer)?;
        if let Err(error) = self.to.write_all(buffer.get(..count).unwrap_or_default()) {
            self.refused = Some(error);
            return Err(std::io::Error::other("not written"));
        }
        Ok(count)
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
    let part = part_of(folder, name);
    std::fs::write(&part, text).map_err(|error| unwritable(&part, &error))?;
    settle(folder, name)
}

/// Where a file of the folder lies until it is whole.
fn part_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.part"))
}

/// Gives a file of the folder, which is whole now, its name.
fn settle(folder: &Path, name: &str) -> Result<(), InputError> {
    let whole = folder.join(name);
    std::fs::rename(part_of(folder, name), &whole).map_err(|error| unwritable(&whole, &error))
}

fn unwritable(path: &Path, error: &std::io::Error) -> InputError {
    InputError::new(format!("cannot write {}: {}", path.display(), refusal(error)))
}
