//! The house keeps its order: a room imports only rooms below it, no file outgrows a sitting, and no text names a place
//! outside the project.

mod graph;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use self::graph::{House, Imports, circle};

/// The rooms, lowest first; those up to `standing` are the crate `nodecast-decisions`, and `catalog` has a part in each.
const ROOMS: [&str; 20] = [
    "domain",
    "catalog",
    "text",
    "cluster",
    "policy",
    "control_plane",
    "manifests",
    "single_pass",
    "standing",
    "engine",
    "world",
    "cloud",
    "load",
    "scenario",
    "actors",
    "simulation",
    "report",
    "experiment",
    "program",
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

/// The source files below `folder`, by their names there.
fn sources_of(folder: &str) -> Vec<(String, String)> {
    let mut files = Vec::new();
    rust_files(&root().join(folder), &mut files);
    files.sort();
    let name = |path: &Path| path.strip_prefix(root().join(folder)).unwrap().to_string_lossy().replace('\\', "/");
    files.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

/// The crate of the decisions.
fn decisions() -> Vec<(String, String)> {
    sources_of("decisions/src")
}

/// Both crates.
fn sources() -> Vec<(String, String)> {
    [decisions(), sources_of("src")].concat()
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
    let libraries =
        ["decisions/src/lib.rs", "src/lib.rs"].map(|file| std::fs::read_to_string(root().join(file)).unwrap());
    let modules: BTreeSet<&str> =
        libraries.iter().flat_map(|library| library.lines()).filter_map(|line| line.strip_prefix("pub mod ")).collect();
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
fn decisions_know_no_clock_no_randomness_and_no_files() {
    for (file, text) in decisions() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["SystemTime", "Instant::now", "rand::", "thread_rng", "std::fs", "std::env", "println!"] {
            assert!(!code.contains(word), "decisions/src/{file} uses {word}");
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

/// Imports inside `actors` that close a circle, with the reason why each is there. Without them there is none.
///
/// What becomes of pods and nodes is handed over and told by `dispatch`, which closes none. A machine that something else happens to tells those
/// whom it concerns by calling them, and they ask it for deeds in turn.
const UPWARD: &[(&str, &str, &str)] = &[
    ("cpu_shares", "credits", "what pods want is charged to the node's credits, and without credits it has less CPU"),
    ("event", "volumes", "an event names an attachment by the id that `volumes` gives it"),
    ("kubelet", "probes", "the kubelet starts the probes that kill containers"),
    ("kubelet", "volumes", "the kubelet waits for volumes, which let it take up a pod again"),
    ("load_loop", "cpu_shares", "what a load wants changes what loads on the same node get"),
    ("load_loop", "prometheus", "counters of requests belong to Prometheus, and it reads them from loads"),
    ("node_groups", "node_life", "a group makes and ends the nodes whose lives tell it of their stages"),
    (
        "node_groups",
        "zone_outage",
        "a group asks whether the machine of a node answers, and an outage ends machines of groups",
    ),
    (
        "node_life",
        "node_autoscaler",
        "the node autoscaler is asked whether it notices by itself that an instance is gone",
    ),
    ("node_life", "terminations", "calls that end an instance wait for others, and end it then"),
    ("pod_trace", "workload_controllers", "a trace makes pods that nothing controls, and is told when they are gone"),
    (
        "quotas",
        "vertical",
        "a quota charges what pods request once their autoscaler has admitted them, and its resizes ask the quota",
    ),
    ("queue_loop", "job_loop", "a queue tells who makes Jobs for it that a worker starts, and is asked how much waits"),
    (
        "replica_loop",
        "keda_loop",
        "an autoscaler that KEDA made reads its values from KEDA, which scales from and to nothing itself",
    ),
    ("workload_controllers", "job_loop", "Jobs that KEDA makes are told of their pods"),
];

#[test]
#[allow(clippy::print_stdout)] // the graph, for who looks at the house
fn no_room_and_no_folder_is_most_of_the_house() {
    let house = House::read();
    println!("{}", house.text());
    let (all, mut large) = (house.lines(), Vec::new());
    for (name, room) in house.rooms().iter().filter(|(name, room)| *name != "policy" && room.lines * 5 > all) {
        large.push(format!("{name} is more than a fifth of the code: {} of {all} lines", room.lines));
    }
    for (name, part) in house.parts("policy").iter().filter(|(_, part)| part.lines * 10 > all) {
        large.push(format!("policy/{name} is more than a tenth of the code: {} of {all} lines", part.lines));
    }
    assert!(large.is_empty(), "{}\n{}", large.join("\n"), house.text());
}

/// What imports what in `actors`, without `context`, which holds the memory of every actor, and which every actor is handed.
fn imports_of_actors(house: &House) -> Imports {
    let mut imports = Imports::new();
    for (name, part) in house.parts("actors").into_iter().filter(|(name, _)| name != "context") {
        imports.insert(name, part.imports.into_iter().filter(|import| import != "context").collect());
    }
    imports
}

#[test]
#[allow(clippy::print_stdout)] // what imports what
fn circles_between_actors_are_known_and_have_a_reason() {
    let house = House::read();
    let whole = imports_of_actors(&house);
    let (mut rest, mut faults) = (whole.clone(), Vec::new());
    println!("circles in actors, closed by");
    for &(from, to, why) in UPWARD {
        println!("    {from} -> {to}: {why}");
        if !rest.get_mut(from).is_some_and(|imports| imports.remove(to)) {
            faults.push(format!("{from} does not import {to} any more: take it from the list"));
        }
    }
    while let Some(way) = circle(&rest) {
        faults.push(format!("a circle that has no reason: {}", way.join(" -> ")));
        rest.get_mut(&way[0]).unwrap().remove(&way[1]);
    }
    for &(from, to, _) in UPWARD {
        let mut with = rest.clone();
        with.entry(from.to_owned()).or_default().insert(to.to_owned());
        if faults.is_empty() && circle(&with).is_none() {
            faults.push(format!("{from} -> {to} closes no circle any more: take it from the list"));
        }
    }
    let arrows = whole
        .iter()
        .map(|(name, imports)| format!("{name} -> {}", Vec::from_iter(imports.iter().map(String::as_str)).join(" ")));
    let arrows: Vec<String> = arrows.collect();
    println!("imports in actors, of context and by context apart\n    {}", arrows.join("\n    "));
    assert!(faults.is_empty(), "{}\n{}", faults.join("\n"), arrows.join("\n"));
}

#[test]
fn imports_within_a_room_and_circles_are_seen() {
    let code = "use super::kubelet;\nuse super::{\n    event::{Event, class},\n    volumes,\n};\nlet x = super::probes::watch();\n";
    let words = |code: &str, depth| graph::named_in_room(code, "actors", depth);
    assert_eq!(words(code, 0), ["kubelet", "event", "volumes", "probes"]);
    assert_eq!(words(code, 1), [""; 0]);
    assert_eq!(words("use super::super::names;\nuse super::own;\ncrate::actors::drift::x();", 1), ["names", "drift"]);
    let imports = |pairs: &[(&str, &str)]| {
        let mut imports = Imports::new();
        for (from, to) in pairs {
            imports.entry((*from).to_owned()).or_default().insert((*to).to_owned());
        }
        imports
    };
    assert_eq!(circle(&imports(&[("a", "b"), ("b", "c"), ("a", "c")])), None);
    let way = circle(&imports(&[("a", "b"), ("b", "c"), ("c", "d"), ("d", "b")])).unwrap();
    assert_eq!(way, ["b", "c", "d", "b"]);
}

/// What writes to a terminal past the console, with the line.
fn terminal_writes(text: &str) -> Vec<usize> {
    let writes =
        ["println!", "eprintln!", "print!(", "eprint!(", "dbg!(", "stdout()", "stderr()", "ProgressBar", ".print()"];
    let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let lines = code.enumerate().filter(|(_, line)| writes.iter().any(|write| line.contains(write)));
    lines.map(|(line, _)| line + 1).collect()
}

#[test]
fn console_alone_writes_to_the_terminal() {
    assert_eq!(terminal_writes("let a = 1; // println!(a)\nstd::io::stderr().lock();\n"), [2]);
    let rooms = ["src", "decisions/src", "observed/src", "python/src"];
    for (file, text) in rooms.into_iter().flat_map(sources_of) {
        if file != "cli/console.rs" {
            assert_eq!(
                terminal_writes(&text),
                [0; 0],
                "{file} writes past cli/console.rs, which makes texts of inputs harmless"
            );
        }
    }
}

/// The workspace forbids it, and no crate goes its own way.
#[test]
fn no_crate_may_hold_unsafe_code() {
    let whole = std::fs::read_to_string("Cargo.toml").unwrap();
    assert!(whole.contains("\nunsafe_code = \"forbid\"\n"));
    let members = whole.lines().find_map(|line| line.strip_prefix("members = ")).unwrap();
    let members: Vec<&str> = members.split('"').skip(1).step_by(2).chain(["."]).collect();
    assert!(members.len() > 5, "{members:?}");
    for member in members {
        let manifest = std::fs::read_to_string(format!("{member}/Cargo.toml")).unwrap();
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{member} has lints of its own");
    }
}
