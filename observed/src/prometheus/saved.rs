//! Saved answers: a folder with a list of queries and a file for each answer.

use std::collections::BTreeMap;
use std::path::Path;

use nodecast_decisions::domain::words::refusal;
use nodecast_decisions::text::InputError;

use super::answer::Answer;
use super::list::{LIST_FILE, QueryList};

/// The answers of one import, by role.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answers {
    /// The first second of the window.
    pub from: i64,
    /// Its end.
    pub to: i64,
    by_role: BTreeMap<String, Asked>,
}

/// A question and its whole answer.
#[derive(Clone, PartialEq, Debug)]
pub struct Asked {
    /// PromQL.
    pub query: String,
    /// The first second at which it was evaluated.
    pub start: i64,
    /// The last.
    pub end: i64,
    /// Seconds from one to the next.
    pub step: i64,
    /// The answer.
    pub answer: Answer,
}

impl Asked {
    /// Instants at which it was evaluated.
    pub fn points(&self) -> i64 {
        (self.end - self.start).max(0) / self.step.max(1) + 1
    }
}

impl Answers {
    /// Reads the answers in `folder`.
    ///
    /// # Errors
    /// If the list or an answer that it names is missing or cannot be read.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let list = read_list(folder)?;
        let absent: Vec<&str> =
            list.queries.iter().map(|own| own.file.as_str()).filter(|file| !folder.join(file).is_file()).collect();
        if let Some(first) = absent.first() {
            return Err(InputError::new(format!(
                "{} of {} answers are missing in {}, the first is {first}",
                absent.len(),
                list.queries.len(),
                folder.display()
            ))
            .help("ask again: what is there is not asked twice. A question that cannot be asked is taken out of queries.json"));
        }
        let (from, to) = list
            .span()
            .ok_or_else(|| InputError::new(format!("{}: the list is empty", folder.join(LIST_FILE).display())))?;
        let mut all = Self { from, to, by_role: BTreeMap::new() };
        for own in &list.queries {
            let path = folder.join(&own.file);
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
            let answer = Answer::read(&text, &path.display().to_string())?;
            let asked = || Asked {
                query: own.query.clone(),
                start: own.start,
                end: own.end,
                step: own.step,
                answer: Answer::default(),
            };
            let whole = all.by_role.entry(own.role().to_owned()).or_insert_with(asked);
            whole.start = whole.start.min(own.start);
            whole.end = whole.end.max(own.end);
            whole.answer.append(answer, &path.display().to_string())?;
        }
        Ok(all)
    }

    /// What was asked under this role.
    pub fn asked(&self, role: &str) -> Option<&Asked> {
        self.by_role.get(role)
    }

    /// The same if there is a series in the answer.
    pub fn answered(&self, role: &str) -> Option<&Asked> {
        self.asked(role).filter(|own| own.answer.series.iter().any(|series| !series.samples.is_empty()))
    }

    /// The first of these roles that has an answer.
    pub fn first_answered<'r>(&self, roles: &[&'r str]) -> Option<(&'r str, &Asked)> {
        roles.iter().find_map(|role| Some((*role, self.answered(role)?)))
    }

    /// All that was asked under roles that begin so, with what follows, in order.
    pub fn beginning<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a Asked)> {
        self.by_role.iter().filter_map(move |(role, own)| Some((role.strip_prefix(prefix)?, own)))
    }

    /// Everything, by role.
    pub fn all(&self) -> impl Iterator<Item = (&str, &Asked)> {
        self.by_role.iter().map(|(role, own)| (role.as_str(), own))
    }
}

/// The list of queries of a folder of answers.
///
/// # Errors
/// If it is missing or cannot be read.
pub fn read_list(folder: &Path) -> Result<QueryList, InputError> {
    let path = folder.join(LIST_FILE);
    let text = std::fs::read_to_string(&path).map_err(|error| {
        unreadable(&path, &error)
            .help("a folder of answers has the list of what was asked: `nodecast observe queries` makes both")
    })?;
    QueryList::read(&text, &path.display().to_string())
}

fn unreadable(path: &Path, error: &std::io::Error) -> InputError {
    InputError::new(format!("cannot read {}: {}", path.display(), refusal(error)))
}
