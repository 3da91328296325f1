//! Saved answers: a folder with a list of queries and a file for each answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use nodecast_model::domain::words::{counted, refusal};
use nodecast_model::text::InputError;

use super::answer::Answer;
use super::list::{LIST_FILE, QueryList};

/// The answers of one import, by role. Each is read when it is asked for: together they may be larger than what is made of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answers {
    /// The first second of the window.
    pub from: i64,
    /// Its end.
    pub to: i64,
    folder: PathBuf,
    by_role: BTreeMap<String, SavedQuery>,
}

/// A question, all pieces of it together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SavedQuery {
    /// PromQL.
    pub query: String,
    /// The first second at which it was evaluated.
    pub start: i64,
    /// The last.
    pub end: i64,
    /// Seconds from one to the next.
    pub step: i64,
    files: Vec<String>,
}

impl SavedQuery {
    /// Instants at which it was evaluated.
    pub fn points(&self) -> i64 {
        (self.end - self.start).max(0) / self.step.max(1) + 1
    }

    /// Takes samples of other instants than those that were asked for out of an answer.
    ///
    /// # Errors
    /// If it has no others: it was saved when something else was asked.
    fn keep_own(&self, answer: &mut Answer, folder: &Path) -> Result<(), InputError> {
        let (from, until) = ((self.start - self.step) * 1_000_000, (self.end + self.step) * 1_000_000);
        let (mut kept, mut foreign) = (0_usize, 0_usize);
        for series in &mut answer.series {
            let all = series.samples.len();
            series.samples.retain(|sample| (from..=until).contains(&sample.at));
            kept += series.samples.len();
            foreign += all - series.samples.len();
        }
        if foreign > 0 && kept == 0 {
            let first = self.files.first().map_or("", String::as_str);
            return Err(InputError::new(format!(
                "{} holds no sample of what {LIST_FILE} next to it asks for: it is an answer to another window",
                folder.join(first).display()
            ))
            .help("ask again into an empty folder: answers that are there are not asked for anew"));
        }
        if foreign > 0 {
            answer.series.retain(|series| !series.samples.is_empty());
            let samples = counted(foreign as u64, "sample", "samples");
            answer.repairs.push(format!("{samples} of instants that were not asked for, left out"));
        }
        Ok(())
    }
}

impl Answers {
    /// The answers in `folder`.
    ///
    /// # Errors
    /// If the list cannot be read, or an answer that it names is missing.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let list = read_list(folder)?;
        let absent: Vec<&str> =
            list.queries.iter().map(|query| query.file.as_str()).filter(|file| !folder.join(file).is_file()).collect();
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
        let mut by_role: BTreeMap<String, SavedQuery> = BTreeMap::new();
        for query in &list.queries {
            let asked = || SavedQuery {
                query: query.query.clone(),
                start: query.start,
                end: query.end,
                step: query.step,
                files: Vec::new(),
            };
            let whole = by_role.entry(query.role().to_owned()).or_insert_with(asked);
            whole.start = whole.start.min(query.start);
            whole.end = whole.end.max(query.end);
            whole.files.push(query.file.clone());
        }
        Ok(Self { from, to, folder: folder.to_owned(), by_role })
    }

    /// What was asked under this role.
    pub fn asked(&self, role: &str) -> Option<&SavedQuery> {
        self.by_role.get(role)
    }

    /// What was answered under this role; an answer without series if it was not asked for.
    ///
    /// # Errors
    /// If the answer cannot be read, or two pieces of it contradict each other.
    pub fn answer(&self, role: &str) -> Result<Answer, InputError> {
        let mut whole = Answer::default();
        let Some(asked) = self.by_role.get(role) else { return Ok(whole) };
        for file in &asked.files {
            let path = self.folder.join(file);
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path).map_err(|error| unreadable(&path, &error))?;
            let answer = Answer::read(text.strip_prefix('\u{feff}').unwrap_or(&text), &name)?;
            drop(text);
            whole.append(answer, &name)?;
        }
        asked.keep_own(&mut whole, &self.folder)?;
        Ok(whole)
    }

    /// The roles under which something was asked, in order.
    pub fn roles(&self) -> impl Iterator<Item = &str> {
        self.by_role.keys().map(String::as_str)
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
