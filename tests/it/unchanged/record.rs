//! The record: a hash of each file, and of events.jsonl one of every so many lines, by which the first difference is found.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use sha2::{Digest, Sha256};

use super::outputs::{FILES, Run, Written};
use super::{FOLDER, read};

/// Set to write the record anew.
const UPDATE: &str = "NODECAST_UPDATE_UNCHANGED";
/// The program of before, which is asked for what it wrote where something differs.
const BEFORE: &str = "NODECAST_BEFORE";
/// Marks of a file at most, so that the record stays small.
const MARKS_MAX: usize = 200;
/// Lines that a mark stands for at least.
const LINES_MIN: usize = 20;
/// Hexadecimal digits of a mark.
const MARK_DIGITS: usize = 4;

/// The first `digits` hexadecimal digits of the SHA-256 of `bytes`, which is equal wherever it is made.
fn hash(bytes: &[u8], digits: usize) -> String {
    let digest = Sha256::digest(bytes);
    let text: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    text[..digits].to_owned()
}

/// How many lines a mark stands for, in a file of so many lines.
fn lines_of_mark(lines: usize) -> usize {
    let sizes = (1..).flat_map(|power| [1, 2, 5].map(|first| first * 10_usize.pow(power)));
    sizes.into_iter().find(|size| *size >= LINES_MIN && lines.div_ceil(*size) <= MARKS_MAX).unwrap_or(lines)
}

fn marks(bytes: &[u8], lines_each: usize) -> String {
    let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    lines.chunks(lines_each).map(|block| hash(&block.concat(), MARK_DIGITS)).collect()
}

fn count_lines(bytes: &[u8]) -> usize {
    bytes.split_inclusive(|byte| *byte == b'\n').count()
}

/// The record's lines of a run: `run file hash`, and for events.jsonl `lines lines-of-a-mark marks`.
pub fn text_of(run: &str, written: &Written) -> String {
    let line = |(file, bytes): (&&'static str, &Vec<u8>)| {
        let mut line = format!("{run} {file} {}", hash(bytes, 16));
        if *file == FILES[0] {
            let lines = count_lines(bytes);
            let each = lines_of_mark(lines);
            line += &format!(" {lines} {each} {}", marks(bytes, each));
        }
        line + "\n"
    };
    written.iter().map(line).collect()
}

/// What is on record.
pub struct Record(BTreeMap<(String, String), Vec<String>>);

impl Record {
    pub fn parse(text: &str) -> Self {
        let line = |line: &str| {
            let mut words = line.split(' ').map(str::to_owned);
            Some(((words.next()?, words.next()?), words.collect()))
        };
        Self(text.lines().filter(|line| !line.starts_with('#')).filter_map(line).collect())
    }

    /// A sentence for each file that is not as on record.
    pub fn differences(&self, run: &str, written: &Written) -> Vec<String> {
        let difference = |(file, bytes): (&&'static str, &Vec<u8>)| {
            let Some(known) = self.0.get(&(run.to_owned(), (*file).to_owned())) else {
                return Some(format!("{run}: {file} is not on record"));
            };
            if known[0] == hash(bytes, 16) {
                return None;
            }
            let place = known.get(3).map(|marks| place(&known[1], &known[2], marks, bytes)).unwrap_or_default();
            Some(format!("{run}: {file} differs{place}"))
        };
        written.iter().filter_map(difference).collect()
    }

    /// Runs on record that are no longer made.
    fn gone(&self, runs: &[Run]) -> Vec<String> {
        let is = |name: &str| runs.iter().any(|run| run.name == name);
        let gone = self.0.keys().filter(|(run, file)| *file == FILES[0] && !is(run));
        gone.map(|(run, _)| format!("{run}: is on record and was not simulated")).collect()
    }
}

/// Where the first difference is.
fn place(lines: &str, each: &str, known: &str, bytes: &[u8]) -> String {
    let each: usize = each.parse().unwrap();
    let now = marks(bytes, each);
    let blocks = |text: &str| -> Vec<String> {
        text.as_bytes().chunks(MARK_DIGITS).map(|mark| String::from_utf8_lossy(mark).into_owned()).collect()
    };
    let (known, now) = (blocks(known), blocks(&now));
    let first = known.iter().zip(&now).position(|(one, other)| one != other).unwrap_or(known.len().min(now.len()));
    let count = count_lines(bytes);
    format!(" first in lines {} to {} ({lines} lines on record, {count} now)", first * each + 1, (first + 1) * each)
}

/// The first line that `before` wrote otherwise.
fn first_line(file: &str, before: &[u8], now: &[u8]) -> Option<String> {
    let lines = |bytes: &[u8]| -> Vec<String> { String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect() };
    let (before, now) = (lines(before), lines(now));
    let longest = before.len().max(now.len());
    let at = (0..longest).find(|at| before.get(*at) != now.get(*at))?;
    let shown = |lines: &[String]| lines.get(at).map_or("(no such line)", String::as_str).to_owned();
    Some(format!("  {file} line {}\n    before: {}\n    now:    {}", at + 1, shown(&before), shown(&now)))
}

/// What helps to find why `run` differs: what it wrote now is kept, and held against the program of before if there is one.
fn explain(run: &Run, written: &Written) -> String {
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("unchanged").join("written").join(&run.name);
    std::fs::create_dir_all(&kept).unwrap();
    for (file, bytes) in written {
        std::fs::write(kept.join(file), bytes).unwrap();
    }
    let duration = run.duration.as_ref().map(|duration| format!(" --duration {duration}")).unwrap_or_default();
    let mut text = format!(
        "  scenario: {} --policy {}{duration}\n  written now: {}",
        run.scenario.display(),
        run.policy,
        kept.display()
    );
    if let Some(program) = std::env::var_os(BEFORE) {
        let before = run.written_by(&program);
        for line in FILES.iter().filter_map(|file| first_line(file, &before[file], &written[file])) {
            text += &format!("\n{line}");
        }
    }
    text
}

/// Simulates `runs` and compares what they write with the record, or writes it.
///
/// `written` makes or has what a run wrote, by its place.
pub fn compare(file: &str, runs: &[Run], written: impl Fn(usize) -> Arc<Written> + Sync) {
    if std::env::var_os(UPDATE).is_some() {
        let texts: Vec<String> =
            (0..runs.len()).into_par_iter().map(|at| text_of(&runs[at].name, &written(at))).collect();
        let head = format!(
            "# Made by the test `unchanged` with {UPDATE}=1: run, file, hash; lines, lines of a mark, marks.\n"
        );
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(FOLDER).join(file);
        std::fs::write(path, head + &texts.concat()).unwrap();
        return;
    }
    let record = Record::parse(&read(file));
    let of_run = |at: usize| {
        let (run, written) = (&runs[at], written(at));
        let mut told = record.differences(&run.name, &written);
        if !told.is_empty() {
            told.push(explain(run, &written));
        }
        told
    };
    let mut told: Vec<String> = (0..runs.len()).into_par_iter().flat_map_iter(of_run).collect();
    told.extend(record.gone(runs));
    assert!(
        told.is_empty(),
        "{FOLDER}/{file}: other bytes than on record\n{}\n\n{BEFORE}=PROGRAM, with the program that wrote the record, shows the \
         first line that differs of each file. If they differ on purpose, {UPDATE}=1 writes the record anew.",
        told.join("\n")
    );
}
