//! The house keeps its order: a room imports only rooms below it, no file outgrows a sitting, and no text names a place
//! outside the project.

use std::path::{Path, PathBuf};

/// The rooms, lowest first.
const ROOMS: [&str; 15] = [
    "domain",
    "catalog",
    "cluster",
    "policy",
    "engine",
    "world",
    "control_plane",
    "cloud",
    "load",
    "scenario",
    "actors",
    "simulation",
    "report",
    "experiment",
    "cli",
];
/// Lines beyond which a file is too long to read at a sitting.
const LONGEST_FILE: usize = 700;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(directory).unwrap();
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn sources() -> Vec<(String, String)> {
    let mut files = Vec::new();
    rust_files(&root().join("src"), &mut files);
    files.sort();
    let name = |path: &Path| path.strip_prefix(root().join("src")).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The room that a source file belongs to.
fn room_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or_default()
}

/// Rooms that a text imports or names by path, with the line.
fn rooms_named(text: &str) -> Vec<(usize, &'static str)> {
    let code: Vec<&str> = text.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = code.join("\n");
    let mut named = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        // A braced list may go over several lines; within it every first path segment counts.
        let listed = rest.strip_prefix('{').map_or(rest, |inner| inner.split(';').next().unwrap_or_default());
        let items = if rest.starts_with('{') { listed.split(['{', '}', ',']).collect() } else { vec![listed] };
        for item in items {
            let segment =
                item.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or_default();
            if let Some(room) = ROOMS.iter().find(|room| **room == segment) {
                named.push((code[..at].lines().count().max(1), *room));
            }
        }
    }
    named
}

#[test]
fn a_room_imports_only_rooms_below_it() {
    let height = |room: &str| ROOMS.iter().position(|own| *own == room);
    let mut faults = Vec::new();
    for (file, text) in sources() {
        let own = height(room_of(&file));
        for (line, room) in rooms_named(&text) {
            if own.is_some() && height(room) > own {
                faults.push(format!("src/{file}:{line} imports {room}"));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_import_check_sees_what_it_should() {
    assert_eq!(
        rooms_named("use crate::world::World;\n// crate::cli\nlet x = crate::cli::main();"),
        [(1, "world"), (3, "cli")]
    );
    assert_eq!(
        rooms_named("use crate::{\n    domain::{SimTime, PodId},\n    actors,\n};"),
        [(1, "domain"), (1, "actors")]
    );
}

#[test]
fn every_room_of_the_library_is_in_the_order() {
    let library = std::fs::read_to_string(root().join("src/lib.rs")).unwrap();
    let modules: Vec<&str> = library.lines().filter_map(|line| line.strip_prefix("pub mod ")).collect();
    assert_eq!(modules.len(), ROOMS.len());
    for module in modules {
        assert!(ROOMS.contains(&module.trim_end_matches(';')), "{module} has no place in the order of rooms");
    }
}

#[test]
fn the_engine_knows_no_word_of_kubernetes() {
    for (file, text) in sources().into_iter().filter(|(file, _)| room_of(file) == "engine") {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        for word in ["pod", "node", "Karpenter", "Kubernetes", "EC2"] {
            assert!(!code.contains(word), "src/{file} speaks of {word}");
        }
    }
}

#[test]
fn decisions_know_no_clock_and_no_randomness() {
    for (file, text) in
        sources().into_iter().filter(|(file, _)| ["domain", "catalog", "policy"].contains(&room_of(file)))
    {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["SystemTime", "Instant::now", "rand::", "thread_rng", "Streams"] {
            assert!(!code.contains(word), "src/{file} uses {word}");
        }
    }
}

#[test]
fn no_file_outgrows_a_sitting() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > LONGEST_FILE)
        .map(|(file, text)| format!("src/{file}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}
