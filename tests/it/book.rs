//! The documentation: every page has its place in the book, and every link of it leads somewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

const SUMMARY: &str = "docs/SUMMARY.md";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The Markdown files in a folder of docs/, with the folder before their names.
fn pages_in(folder: &str) -> impl Iterator<Item = String> + '_ {
    let names = fs::read_dir(root().join("docs").join(folder)).unwrap().map(|entry| entry.unwrap().file_name());
    names.map(move |name| format!("{folder}{}", name.to_string_lossy())).filter(|name| name.ends_with(".md"))
}

/// The pages of docs/.
fn pages() -> BTreeSet<String> {
    pages_in("").chain(pages_in("decisions/")).collect()
}

/// The lines of a page outside of blocks of code, spans of code taken out.
fn prose(text: &str) -> String {
    let mut fence: Option<String> = None;
    let mut kept = String::new();
    for line in text.lines() {
        let start: String = line.trim_start().chars().take_while(|character| matches!(character, '`' | '~')).collect();
        if start.len() >= 3 {
            match &fence {
                None => fence = Some(start),
                Some(open) if start.starts_with(open.as_str()) => fence = None,
                Some(_) => {}
            }
        } else if fence.is_none() {
            kept += line;
            kept.push('\n');
        }
    }
    // What stands between two equal runs of backquotes; a link's text may have some, its target has none.
    let mut plain = String::new();
    let mut rest = kept.as_str();
    while let Some(at) = rest.find('`') {
        plain += &rest[..at];
        let run: String = rest[at..].chars().take_while(|character| *character == '`').collect();
        let after = &rest[at + run.len()..];
        rest = after.find(&run).map_or("", |end| &after[end + run.len()..]);
    }
    plain + rest
}

/// The targets of the links and pictures of a page.
fn targets(text: &str) -> Vec<String> {
    let prose = prose(text);
    let all = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    all.map(|target| target.split_whitespace().next().unwrap_or_default().to_owned()).collect()
}

/// The anchors of a page, as GitHub and mdBook make them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    let mut all = BTreeSet::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let heading = line.trim_start_matches('#');
        if fenced || heading.len() == line.len() || !heading.starts_with(' ') {
            continue;
        }
        let kept = heading
            .trim()
            .chars()
            .filter(|character| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_'));
        let text: String = kept.map(|item| if item == ' ' { '-' } else { item.to_ascii_lowercase() }).collect();
        let count = seen.entry(text.clone()).or_insert(0);
        all.insert(if *count == 0 { text.clone() } else { format!("{text}-{count}") });
        *count += 1;
    }
    all
}

/// A path without `.` and `..`; nothing if it leads out of the repository.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut this_path = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => this_path.pop().then_some(())?,
            Component::Normal(name) => this_path.push(name),
            _ => {}
        }
    }
    Some(this_path)
}

#[test]
fn every_docs_page_is_in_book_once() {
    let mut left = pages();
    assert!(left.remove("SUMMARY.md"));
    for target in targets(&read(SUMMARY)) {
        assert!(left.remove(&target), "{SUMMARY} has `{target}`, which is no page of docs/, or has it twice");
    }
    assert!(left.is_empty(), "pages that {SUMMARY} does not have: {left:?}");
    let book = read("book.toml");
    assert!(book.contains("src = \"docs\"") && book.contains("build-dir = \"target/book\""));
}

#[test]
fn every_link_of_the_documentation_leads_somewhere() {
    let mut files: Vec<String> = pages().iter().map(|name| format!("docs/{name}")).collect();
    files.extend(
        [
            "README.md",
            "CHANGELOG.md",
            "CODE_OF_CONDUCT.md",
            "CONTRIBUTING.md",
            "SECURITY.md",
            "reports/README.md",
            "scenarios/README.md",
            "python/README.md",
        ]
        .map(str::to_owned),
    );
    let mut wrong = Vec::new();
    let mut followed = 0;
    for file in &files {
        let text = read(file);
        for target in targets(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            followed += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((&target, ""));
            let place = Path::new(file).with_file_name("").join(path);
            let place = if path.is_empty() { Some(PathBuf::from(file)) } else { plain(&place) };
            let found = place.filter(|place| root().join(place).exists());
            let leads = match found {
                None => false,
                Some(item) if !anchor.is_empty() && item.extension().is_some_and(|extension| extension == "md") => {
                    anchors(&fs::read_to_string(root().join(item)).unwrap()).contains(anchor)
                }
                Some(_) => true,
            };
            if !leads {
                wrong.push(format!("{file}: {target}"));
            }
        }
    }
    assert!(wrong.is_empty(), "links that lead nowhere:\n{}", wrong.join("\n"));
    assert!(followed > 200, "{followed} links were found");
}
