//! docs/fidelity.md cannot fall behind the code: its list of deviations is made from the code's own doc comments.
//! The document groups and orders them.

use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- deviations: made from the doc comments; NODECAST_UPDATE_DOCS=1 cargo test fidelity -->\n";
const END: &str = "<!-- end of deviations -->\n";

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for path in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// Every `Deviation:` paragraph of a file's doc comments, on one line each.
fn deviations(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines().map(str::trim_start) {
        let Some(words) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(str::trim) else {
            open = false;
            continue;
        };
        if let Some(start) = words.strip_prefix("Deviation:") {
            found.push(start.trim().to_owned());
            open = true;
        } else if words.is_empty() || words.starts_with("Source:") {
            open = false;
        } else if let (true, Some(last)) = (open, found.last_mut()) {
            last.push(' ');
            last.push_str(words);
        }
    }
    found
}

/// The list item of every deviation, in order of the files.
fn items(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for folder in ["crates", "src"] {
        rust_files(&root.join(folder), &mut files);
    }
    files.sort();
    let mut items = Vec::new();
    for path in files {
        let name = path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        for deviation in deviations(&std::fs::read_to_string(&path).unwrap()) {
            let (first, rest) = deviation.split_at(deviation.chars().next().map_or(0, char::len_utf8));
            items.push(format!("- {}{rest} (`{name}`)", first.to_uppercase()));
        }
    }
    items
}

/// The list with these items, in the groups of the document. A new item joins the first item of its file, or else the last group.
fn grouped(listed: &str, items: &[String]) -> String {
    let mut lines: Vec<&str> = listed.lines().collect();
    for item in items {
        if !lines.contains(&item.as_str()) {
            let file = &item[item.rfind(" (`").unwrap_or(0)..];
            let of_file = lines.iter().position(|line| line.starts_with("- ") && line.ends_with(file));
            let last = lines.iter().rposition(|line| line.starts_with("- "));
            lines.insert(of_file.or(last).map_or(lines.len(), |place| place + 1), item);
        }
    }
    lines.retain(|line| !line.starts_with("- ") || items.iter().any(|item| item == line));
    lines.join("\n") + "\n"
}

#[test]
fn every_code_deviation_is_documented() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("docs/fidelity.md");
    let document = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = document.split_once(BEGIN).expect("the document marks where the list begins");
    let (listed, after) = rest.split_once(END).expect("the document marks where the list ends");
    let wanted = grouped(listed, &items(root));
    if std::env::var_os("NODECAST_UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        listed, wanted,
        "docs/fidelity.md is out of date: NODECAST_UPDATE_DOCS=1 cargo test fidelity rewrites it"
    );
}

#[test]
fn new_deviation_joins_group_of_its_file() {
    let listed = "\n### Large\n\n- A. (`a.rs`)\n\n### Small\n\n- B. (`b.rs`)\n\n";
    let items = ["- New. (`a.rs`)", "- B. (`b.rs`)", "- C. (`c.rs`)"].map(str::to_owned);
    let wanted = "\n### Large\n\n- New. (`a.rs`)\n\n### Small\n\n- B. (`b.rs`)\n- C. (`c.rs`)\n\n";
    assert_eq!(grouped(listed, &items), wanted);
}

#[test]
fn a_deviation_ends_with_its_paragraph() {
    let text =
        "/// One.\n///\n/// Deviation: first\n/// and more.\n///\n/// Not this.\nfn f() {}\n//! Deviation: second.\n";
    assert_eq!(deviations(text), ["first and more.", "second."]);
}
