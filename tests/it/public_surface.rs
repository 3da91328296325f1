//! What `nodecast-decisions` shows to others, line by line: whoever changes the snapshot changes what others build on, and says
//! so in CHANGELOG.md (a change that breaks them waits for the next minor version before 1.0, the next major one after).

use std::fmt::Write;
use std::path::Path;

/// The public lines of a source file, each as far as its first line goes; tests show nothing.
fn surface(text: &str) -> Vec<&str> {
    let text = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
    let is_shown = |line: &&str| line.starts_with("pub ") && !line.starts_with("pub(");
    text.lines()
        .map(|line| line.strip_prefix("    ").unwrap_or(line))
        .filter(is_shown)
        .map(|line| line.trim_end_matches([' ', '{']))
        .collect()
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn what_the_decisions_show_to_others_changes_on_purpose() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("decisions/src");
    let mut paths = Vec::new();
    files(&root, &mut paths);
    paths.sort();
    let mut text = String::new();
    for path in paths {
        let name = path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/");
        let source = std::fs::read_to_string(&path).unwrap();
        let lines = surface(&source);
        if !lines.is_empty() {
            let _ = writeln!(text, "{name}\n    {}", lines.join("\n    "));
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn public_lines_are_told_from_others() {
    let text = "pub mod a;\npub(crate) fn b() {\n    pub const fn c(&self) -> u8 {\n        pub d: u8,\n    pub e: u8,\n#[cfg(test)]\nmod tests {\npub fn f() {}\n";
    assert_eq!(surface(text), ["pub mod a;", "pub const fn c(&self) -> u8", "pub e: u8,"]);
}
