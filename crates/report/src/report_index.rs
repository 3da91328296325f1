//! Index of reports: `index.html` of a directory, with a line for each run whose report is below it.
//!
//! Must not: replace a file that this program did not write, or say anything that the reports do not hold. It reads no clock: the
//! same reports give the same bytes.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::directory::{OutputError, hexadecimal_digest, write_whole};
use super::format;
use super::page::{Html, STYLE, head, text};
use super::summary::{PROGRAM, SCHEMA_VERSION, Summary};

/// Name of the file.
pub const FILE: &str = "index.html";
/// Directories between the index and a report: `compare` and `sweep` write reports of runs into directories of their own.
const DEPTH_MAX: usize = 3;
/// The last line of the file begins with this; the digest of all bytes before follows.
const SEAL: &str = "<!-- nodecast index, SHA-256 of the text above: ";
const SEAL_END: &str = " -->\n";

/// A report below the directory.
struct Listed {
    /// Path from the directory, parts separated by `/`.
    path: String,
    summary: Summary,
}

/// Whether [`write()`] may write the index of this directory; creates nothing.
///
/// # Errors
/// If there is an `index.html` that this program did not write, or that has been changed since.
pub fn check(directory: &Path) -> Result<(), OutputError> {
    let path = directory.join(FILE);
    let not_ours = |why: &str| Err(OutputError::NotOurs { path: path.clone(), why: why.to_owned() });
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OutputError::io("read", &path)(error)),
        Ok(item) if !item.is_file() => return not_ours("it is not a file"),
        Ok(_) => {}
    }
    let bytes = fs::read(&path).map_err(OutputError::io("read", &path))?;
    if is_sealed(&bytes) { Ok(()) } else { not_ours("nodecast did not write it, or it has been changed since") }
}

/// Writes the index of all reports of runs below a directory. Of several runs that end at once, each waits for the one before, so
/// that the last index has all reports. Returns the path of the index.
///
/// # Errors
/// As [`check`], and if the system refuses.
pub fn write(directory: &Path) -> Result<PathBuf, OutputError> {
    // Held until the index is written. Where a directory cannot be opened as a file, runs that end at once may miss each other.
    let lock = File::open(directory).ok();
    if let Some(lock) = &lock {
        lock.lock().map_err(OutputError::io("lock", directory))?;
    }
    check(directory)?;
    let mut reports = Vec::new();
    find(directory, "", 0, &mut reports)?;
    let path = directory.join(FILE);
    write_whole(&path, &sealed(&page(&reports)))?;
    Ok(path)
}

/// A text with the line that says what it was when it was written.
fn sealed(page: &str) -> String {
    format!("{page}{SEAL}{}{SEAL_END}", hexadecimal_digest(page.as_bytes()))
}

fn is_sealed(bytes: &[u8]) -> bool {
    let Ok(all) = std::str::from_utf8(bytes) else { return false };
    let Some((page, seal)) = all.rsplit_once(SEAL) else { return false };
    seal.strip_suffix(SEAL_END).is_some_and(|digest| digest == hexadecimal_digest(page.as_bytes()))
}

/// Adds the reports of a directory and of those in it, in order of name. Hidden ones are under construction; links are not followed.
fn find(directory: &Path, path: &str, depth: usize, found: &mut Vec<Listed>) -> Result<(), OutputError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(OutputError::io("read", directory))? {
        let entry = entry.map_err(OutputError::io("read", directory))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            names.extend(entry.file_name().into_string());
        }
    }
    names.sort_unstable();
    for name in names.iter().filter(|name| !name.starts_with('.')) {
        let inner = directory.join(name);
        let path = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
        if let Some(summary) = summary_in(&inner) {
            found.push(Listed { path, summary });
        } else if depth + 1 < DEPTH_MAX {
            // One that is removed meanwhile has no reports.
            let _ = find(&inner, &path, depth + 1, found);
        }
    }
    Ok(())
}

/// The summary of the run whose report a directory holds.
fn summary_in(directory: &Path) -> Option<Summary> {
    if !directory.join("report.html").is_file() {
        return None;
    }
    let text = fs::read_to_string(directory.join("summary.json")).ok()?;
    let summary: Summary = serde_json::from_str(&text).ok()?;
    (summary.program == PROGRAM && summary.schema_version == SCHEMA_VERSION).then_some(summary)
}

fn page(reports: &[Listed]) -> String {
    let mut page = Html::new();
    head(&mut page, "reports", &[STYLE], &[]);
    page.element("h1", "Reports");
    let count = format::counted(reports.len() as u64, "run", "runs");
    page.element("p", &format!("{count}, by directory. Cost is per month of 730 hours."));
    if !reports.is_empty() {
        page.raw("<div class=\"scroll\"><table>\n<thead><tr>");
        for heading in ["Report", "Scenario", "Policy", "Start", "Duration", "Seed"] {
            page.raw(&format!("<th scope=\"col\">{heading}</th>"));
        }
        page.raw("<th scope=\"col\" class=\"figure\">Cost per month</th>");
        page.raw("<th scope=\"col\" class=\"figure\">Pod wait, p99</th><th scope=\"col\">Objectives</th></tr></thead>\n<tbody>\n");
        reports.iter().for_each(|report| row(&mut page, report));
        page.raw("</tbody>\n</table></div>\n");
    }
    page.raw("</main>\n</body>\n</html>\n");
    page.finish()
}

fn row(page: &mut Html, report: &Listed) {
    let summary = &report.summary;
    let about = &summary.about;
    let cost = summary.cost.per_month.map_or_else(String::new, |cost| format::money_in_short(&about.currency, cost));
    let wait = summary.pods.wait_for_node.as_ref().map_or_else(String::new, |wait| format::span(wait.p99_seconds));
    let (class, verdict) = verdict(summary);
    page.raw(&format!("<tr><td><a href=\"{}/report.html\">{}</a></td>", address(&report.path), text(&report.path)));
    let start = format::instant_for_people(&about.start);
    let seed = about.seed.to_string();
    for cell in [&about.scenario, &about.policy, &start, &format::span(about.duration_seconds), &seed] {
        page.raw(&format!("<td>{}</td>", text(cell)));
    }
    for figure in [&cost, &wait] {
        page.raw(&format!("<td class=\"figure\">{}</td>", text(figure)));
    }
    page.raw(&format!("<td class=\"{class}\">{}</td></tr>\n", text(&verdict)));
}

/// The class and the words of the verdict on the objectives.
fn verdict(summary: &Summary) -> (&'static str, String) {
    let evaluated: Vec<bool> = summary.objectives.iter().filter_map(|objective| objective.met).collect();
    let missed = evaluated.iter().filter(|is_met| !**is_met).count() as u64;
    let all = format::counted(evaluated.len() as u64, "objective", "objectives");
    match (evaluated.len(), missed) {
        (0, _) => ("", "none evaluated".to_owned()),
        (_, 0) => ("met", format!("{all} met")),
        _ => ("missed", format!("{} of {all} missed", format::count(missed))),
    }
}

/// A path as a relative address: what means something in addresses is encoded.
fn address(path: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b'/' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    path.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::{address, is_sealed, sealed};

    #[test]
    fn changed_index_is_not_sealed() {
        let index = sealed("<p>one</p>\n");
        assert!(is_sealed(index.as_bytes()));
        assert!(!is_sealed(index.replace("one", "two").as_bytes()));
        assert!(!is_sealed(format!("{index} ").as_bytes()) && !is_sealed(b"<p>mine</p>"));
    }

    #[test]
    fn addresses_encode_special_characters() {
        assert_eq!(address("a b/c\"?#:<x>"), "a%20b/c%22%3F%23%3A%3Cx%3E");
    }
}
