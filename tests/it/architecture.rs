//! The house keeps its order: a room imports only rooms below it, no file outgrows a sitting, and no text names a place
//! outside the project.

mod graph;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use self::graph::{House, Imports, circle};

/// The crates of the product, lowest first. Cargo keeps their order; here they are rooms among others.
const CRATES: [&str; 27] = [
    "bin-packing",
    "model",
    "engine",
    "commitments",
    "prices",
    "scheduler",
    "replicas",
    "vpa",
    "load",
    "manifests",
    "karpenter",
    "cluster-autoscaler",
    "ec2",
    "single-pass",
    "decisions",
    "observed",
    "settings",
    "world",
    "scenario",
    "sim",
    "report",
    "points",
    "fleet",
    "explain",
    "evidence",
    "recommend",
    "study",
];
/// The rooms of `src`, lowest first.
const ROOMS: [&str; 2] = ["program", "cli"];
/// The rooms of `crates/sim`, lowest first.
const SIM: [&str; 2] = ["actors", "simulation"];
/// The rooms of `crates/model`, lowest first.
const MODEL: [&str; 8] =
    ["domain", "catalog", "text", "cluster", "control_plane", "node_pressure", "fargate", "auto_mode"];
/// Crates that decide: given the same, they answer the same.
const DECIDING: [&str; 9] = [
    "bin-packing",
    "model",
    "scheduler",
    "replicas",
    "vpa",
    "manifests",
    "karpenter",
    "cluster-autoscaler",
    "single-pass",
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

/// The source files of crates, by their names under the crate's: `karpenter/packing/pass.rs`.
fn sources_of_crates(crates: &[&str]) -> Vec<(String, String)> {
    let of_crate = |name: &&str| {
        let files = sources_of(&format!("crates/{name}/src"));
        let name = (*name).to_owned();
        files.into_iter().map(move |(file, text)| (format!("{name}/{file}"), text))
    };
    crates.iter().flat_map(of_crate).collect()
}

/// The program and all crates of the product; those of `sim` by their names in it, as its rooms count one by one.
fn sources() -> Vec<(String, String)> {
    let others: Vec<&str> = CRATES.into_iter().filter(|name| *name != "sim").collect();
    [sources_of_crates(&others), sources_of("crates/sim/src"), sources_of("src")].concat()
}

/// The room that a source file belongs to.
fn room_of(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap_or_default()
}

/// Rooms of a crate that a text in it imports or names by path, with the line.
fn rooms_named(text: &str, rooms: &[&'static str]) -> Vec<(usize, &'static str)> {
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
            if let Some(room) = rooms.iter().find(|room| **room == segment) {
                named.push((code[..at].lines().count().max(1), *room));
            }
        }
    }
    named
}

#[test]
fn a_room_imports_only_rooms_below_it() {
    let mut faults = Vec::new();
    for (folder, rooms) in [("src", &ROOMS[..]), ("crates/sim/src", &SIM), ("crates/model/src", &MODEL)] {
        let height = |room: &str| rooms.iter().position(|known| *known == room);
        for (file, text) in sources_of(folder) {
            let here = height(room_of(&file));
            for (line, room) in rooms_named(&text, rooms) {
                if here.is_some() && height(room) > here {
                    faults.push(format!("{folder}/{file}:{line} imports {room}"));
                }
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_import_check_sees_what_it_should() {
    assert_eq!(
        rooms_named("use crate::program::Run;\n// crate::cli\nlet x = crate::cli::main();", &ROOMS),
        [(1, "program"), (3, "cli")]
    );
    assert_eq!(
        rooms_named("use crate::{\n    domain::{SimTime, PodId},\n    cluster,\n};", &MODEL),
        [(1, "domain"), (1, "cluster")]
    );
}

#[test]
fn every_room_is_in_the_order() {
    for (library, rooms) in
        [("src/lib.rs", &ROOMS[..]), ("crates/sim/src/lib.rs", &SIM), ("crates/model/src/lib.rs", &MODEL)]
    {
        let text = std::fs::read_to_string(root().join(library)).unwrap();
        let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod "));
        let modules: BTreeSet<&str> = modules.map(|name| name.trim_end_matches(';')).collect();
        assert_eq!(modules, BTreeSet::from_iter(rooms.iter().copied()), "{library}");
    }
}

#[test]
fn crates_depend_only_on_those_below() {
    let height = |name: &str| CRATES.iter().position(|known| *known == name);
    for name in CRATES {
        let manifest = std::fs::read_to_string(root().join(format!("crates/{name}/Cargo.toml"))).unwrap();
        let needed = manifest.split("[dependencies]").nth(1).unwrap_or_default().split("\n[").next().unwrap();
        for line in needed.lines().filter_map(|line| line.strip_prefix("nodecast-")) {
            let other = line.split('.').next().unwrap();
            assert!(height(other) < height(name), "nodecast-{name} depends on nodecast-{other}");
        }
    }
}

#[test]
fn the_engine_knows_no_word_of_kubernetes() {
    for (file, text) in sources_of_crates(&["engine"]) {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let code = code.replace("nodecast", "");
        for word in ["pod", "node", "Karpenter", "Kubernetes", "EC2"] {
            assert!(!code.contains(word), "crates/{file} speaks of {word}");
        }
    }
}

#[test]
fn decision_code_uses_no_clock_randomness_or_files() {
    for (file, text) in sources_of_crates(&DECIDING) {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for word in ["SystemTime", "Instant::now", "rand::", "thread_rng", "std::fs", "std::env", "println!"] {
            assert!(!code.contains(word), "crates/{file} uses {word}");
        }
    }
}

/// Tables of releases: these files alone may look at a minor number.
const RELEASE_TABLES: [&str; 4] = [
    "crates/model/src/domain/control_plane_tier.rs",
    "crates/model/src/domain/versions.rs",
    "crates/model/src/domain/versions/kubernetes.rs",
    // The Vertical Pod Autoscaler's own.
    "crates/vpa/src/release.rs",
];

#[test]
fn release_tables_alone_compare_minor_releases() {
    let outside = |(file, text): &(String, String)| {
        let compares = text.contains(".minor()") || text.contains("KubernetesVersion::minor");
        compares && !RELEASE_TABLES.contains(&file.as_str())
    };
    let crates = sources_of("crates").into_iter().map(|(file, text)| (format!("crates/{file}"), text));
    let product = crates.chain(sources_of("src"));
    let found: Vec<String> = product.filter(outside).map(|(file, _)| file).collect();
    assert!(found.is_empty(), "a behaviour of a release belongs into `KubernetesBehaviour`: {found:?}");
}

#[test]
fn no_file_outgrows_a_sitting() {
    let long: Vec<String> = sources()
        .iter()
        .filter(|(_, text)| text.lines().count() > LONGEST_FILE)
        .map(|(file, text)| format!("{file}: {} lines", text.lines().count()))
        .collect();
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Imports inside `actors` that close a circle, with the reason why each is there. Without them there is none.
///
/// News of pods and nodes go through the outbox of `Sim` to `dispatch`, which no component imports. A component that another one's function needs
/// is a parameter, so that its type is imported.
const UPWARD: &[(&str, &str, &str)] = &[
    ("cpu_shares", "credits", "what pods want is charged to the node's credits, and without credits it has less CPU"),
    ("keda_loop", "replica_loop", "KEDA makes a HorizontalPodAutoscaler for each of its objects"),
    ("kubelet", "probes", "the kubelet starts the probes that kill containers"),
    ("load_loop", "cpu_shares", "what a load wants changes what loads on the same node get"),
    ("node_life", "node_groups", "a group replaces its Spot instance at risk once the new node is Ready"),
    (
        "queue_loop",
        "metrics_server",
        "metrics-server gets the CPU use of workers, and meters workloads that have a queue",
    ),
    (
        "usage_loop",
        "metrics_server",
        "metrics-server gets the CPU that the scenario states, and reads the memory with a pod",
    ),
    ("vertical", "workload_controllers", "quotas of namespaces bound resizes as they bound new pods"),
    ("zone_outage", "node_groups", "a group's health check asks whether a node is dark, and an outage sets its date"),
];

#[test]
#[allow(clippy::print_stdout)] // the graph, for who looks at the house
fn no_room_and_no_folder_is_most_of_the_house() {
    let house = House::read();
    println!("{}", house.text());
    let (all, mut large) = (house.lines(), Vec::new());
    for (name, room) in house.rooms().iter().filter(|(_, room)| room.lines * 5 > all) {
        large.push(format!("{name} is more than a fifth of the code: {} of {all} lines", room.lines));
    }
    for (name, part) in house.parts("karpenter").iter().filter(|(_, part)| part.lines * 10 > all) {
        large.push(format!("karpenter/{name} is more than a tenth of the code: {} of {all} lines", part.lines));
    }
    assert!(large.is_empty(), "{}\n{}", large.join("\n"), house.text());
}

/// What imports what in `actors`, without `context`, which holds the memory of every actor.
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
    for (file, text) in [sources(), sources_of("python/src")].concat() {
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
    let crates = std::fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path());
    let members: Vec<PathBuf> = crates.chain([root(), root().join("python")]).collect();
    assert!(members.len() > CRATES.len(), "{members:?}");
    for member in members {
        let manifest = std::fs::read_to_string(member.join("Cargo.toml")).unwrap();
        assert!(manifest.contains("\n[lints]\nworkspace = true\n"), "{} has lints of its own", member.display());
    }
}
