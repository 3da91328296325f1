//! Nothing that a user knows has vanished: keys and values of a scenario, subcommands and flags, what the files of a report hold, what
//! the reference of outputs names, kinds of events. The record of names is tests/data/names.txt; there may always be more.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use assert_cmd::cargo::cargo_bin;
use serde_json::Value as Json;

/// Names that there were.
const RECORD: &str = "tests/data/names.txt";
/// A checkout whose names take the place of those on record.
const UPDATE: &str = "NODECAST_UPDATE_NAMES";
/// The program of that checkout.
const PROGRAM: &str = "NODECAST_PROGRAM";

/// A folder with the sources of a program, and the program.
struct Edition {
    root: PathBuf,
    program: OsString,
}

type Names = BTreeSet<String>;

/// Simulations and the like whose answers are looked at; `OUT` stands for a folder that holds what they write.
const REPORTS: [&str; 6] = [
    "run scenarios/keda-istio/scenario.yaml --duration 5m --open-metrics --out OUT",
    "run scenarios/spot-storm/scenario.yaml --duration 40m --open-metrics --out OUT",
    "run scenarios/karpenter-vs-cas/scenario.yaml --policy cluster-autoscaler --duration 3h --open-metrics --out OUT",
    "run scenarios/multi-architecture/scenario.yaml --duration 2h --out OUT",
    "compare scenarios/churn/four-minutes/scenario.yaml --replications 2 --duration 30m --out OUT",
    "sweep scenarios/churn/four-minutes/scenario.yaml --replications 1 --set NodePool[default].spec.disruption.consolidateAfter=0s,1m --out OUT",
];

/// Commands that answer in JSON, by their heading in the reference of outputs.
const ANSWERS: [(&str, &str); 8] = [
    ("explain", "explain scenarios/churn/four-minutes/scenario.yaml node default-00001 --at 11m --format json"),
    ("explain", "explain scenarios/churn/four-minutes/scenario.yaml decision d1 --format json"),
    ("explain", "explain scenarios/churn/four-minutes/scenario.yaml pod worker-00001 --format json"),
    (
        "explain",
        "explain scenarios/karpenter-vs-cas/scenario.yaml --policy cluster-autoscaler decision up1 --duration 3h --format json",
    ),
    (
        "pack",
        "pack scenarios/pack/daemonsets.yaml scenarios/pack/inflate.yaml scenarios/pack/provisioners.yaml --region cn-north-1 --karpenter v0.4 --explain default/inflate-1 --format json",
    ),
    ("pricing show", "pricing show g5.xlarge --region us-east-1 --format json"),
    ("pricing show", "pricing show m5d.large --region us-east-1 --format json"),
    ("pricing list", "pricing list --region us-east-1 --family g5 --format json"),
];

impl Edition {
    fn today() -> Self {
        Self { root: PathBuf::from(env!("CARGO_MANIFEST_DIR")), program: cargo_bin!("nodecast").into() }
    }

    fn text(&self, file: &str) -> String {
        let path = self.root.join(file);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// All that the program is made of.
    fn sources(&self) -> String {
        let (mut folders, mut text) = (vec![self.root.join("src"), self.root.join("crates")], String::new());
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    text.push_str(&std::fs::read_to_string(path).unwrap());
                }
            }
        }
        text
    }

    /// What the program prints.
    fn prints(&self, words: &str, out: Option<&Path>) -> String {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.root);
        for word in words.split(' ') {
            match out.filter(|_| word == "OUT") {
                Some(out) => command.arg(out),
                None => command.arg(word),
            };
        }
        let output = command.output().unwrap_or_else(|error| panic!("{}: {error}", self.program.display()));
        assert!(output.status.success(), "{words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn names(&self) -> Names {
        let mut names = Names::new();
        keys_of_a_scenario(self, &mut names);
        commands(self, &mut Vec::new(), &mut names);
        reports(self, &mut names);
        answers(self, &mut names);
        names.extend(documented(&self.text("docs/outputs.md")));
        let sources = self.sources();
        let happens = |name: &str| has_word(&sources, &format!("EventKind::{name}"));
        names.extend(events(&self.text("crates/world/src/event_kind.rs"), happens));
        names
    }
}

/// `scenario SECTION.KEY`, and `scenario SECTION.KEY = VALUE` of those that are one of a few words.
fn keys_of_a_scenario(edition: &Edition, names: &mut Names) {
    let schema: Json = serde_json::from_str(&edition.prints("schema", None)).unwrap();
    let definitions = schema["definitions"].as_object().unwrap();
    let whole = [("", &schema)].into_iter();
    for (section, definition) in whole.chain(definitions.iter().map(|(section, value)| (section.as_str(), value))) {
        keys_below(section, definition, names);
    }
}

/// Keys of `definition`, however deep they stand in it.
fn keys_below(section: &str, definition: &Json, names: &mut Names) {
    match definition {
        Json::Object(fields) => {
            for (field, value) in fields {
                match (field.as_str(), value) {
                    ("properties", Json::Object(keys)) => {
                        for (key, value) in keys {
                            let key = if section.is_empty() { key.clone() } else { format!("{section}.{key}") };
                            keys_below(&key, value, names);
                            names.insert(format!("scenario {key}"));
                        }
                    }
                    ("enum", Json::Array(values)) => {
                        let words = values.iter().filter_map(Json::as_str);
                        names.extend(words.map(|value| format!("scenario {section} = {value}")));
                    }
                    ("definitions", _) => {}
                    _ => keys_below(section, value, names),
                }
            }
        }
        Json::Array(values) => values.iter().for_each(|value| keys_below(section, value, names)),
        _ => {}
    }
}

/// `command SUBCOMMAND`, `command SUBCOMMAND --FLAG`, and the values of a flag that are listed.
fn commands(edition: &Edition, path: &mut Vec<String>, names: &mut Names) {
    let help = edition.prints([path.as_slice(), &["--help".to_owned()]].concat().join(" ").as_str(), None);
    let told = options_and_commands(&help);
    let name = path.join(" ");
    names.extend(told.options.into_iter().map(|option| format!("command {name} {option}").replace("  ", " ")));
    for command in told.commands {
        path.push(command);
        names.insert(format!("command {}", path.join(" ")));
        commands(edition, path, names);
        path.pop();
    }
}

#[derive(Default, PartialEq, Eq, Debug)]
struct HelpItems {
    commands: Vec<String>,
    options: Vec<String>,
}

/// What a help text lists.
fn options_and_commands(help: &str) -> HelpItems {
    let (mut told, mut section, mut option) = (HelpItems::default(), "", String::new());
    for line in help.lines() {
        let (indent, text) = (line.len() - line.trim_start().len(), line.trim());
        let word = |text: &str| text.split([' ', ',', '=', '[', ':']).next().unwrap_or_default().to_owned();
        if indent == 0 && text.ends_with(':') {
            section = text;
        } else if section == "Commands:" && indent == 2 && !text.starts_with("help ") {
            told.commands.push(word(text));
        } else if section != "Commands:" && (1..=8).contains(&indent) && text.starts_with(['-', '<', '[']) {
            let flags = text.split(", ").filter(|text| text.starts_with('-')).map(word);
            let flags: Vec<String> = flags.collect();
            option = flags.last().cloned().unwrap_or_else(|| text.split("  ").next().unwrap_or_default().to_owned());
            told.options.extend(if flags.is_empty() { vec![option.clone()] } else { flags });
        } else if let Some(value) = text.strip_prefix("- ") {
            told.options.push(format!("{option} {}", word(value)));
        }
    }
    told
}

/// `file NAME`, and `file NAME COLUMN`, `file NAME KEY` or `file NAME FAMILY` of what the program writes.
fn reports(edition: &Edition, names: &mut Names) {
    for command in REPORTS {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("report");
        edition.prints(command, Some(&out));
        for entry in std::fs::read_dir(&out).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_file()) {
            let name = entry.file_name().into_string().unwrap();
            let heading = format!("file {name}");
            let text = std::fs::read_to_string(entry.path()).unwrap();
            let lines = || text.lines();
            match name.rsplit_once('.').unwrap().1 {
                "csv" => {
                    let columns = lines().next().unwrap().split(',').filter(|column| is_key(column));
                    names.extend(columns.map(|column| format!("{heading} {column}")));
                }
                "json" => json_keys(&heading, "", &serde_json::from_str(&text).unwrap(), names),
                "jsonl" => {
                    lines().for_each(|line| json_keys(&heading, "", &serde_json::from_str(line).unwrap(), names));
                }
                "om" => {
                    let families = lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
                    names.extend(families.map(|family| format!("{heading} {family}")));
                }
                _ => {}
            }
            names.insert(heading);
        }
    }
}

fn answers(edition: &Edition, names: &mut Names) {
    for (name, command) in ANSWERS {
        let answer = serde_json::from_str(&edition.prints(command, None)).unwrap();
        json_keys(&format!("answer {name}"), "", &answer, names);
    }
}

/// Whether a text is the name of a figure, not of something that it is about.
fn is_key(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(plain)
}

fn json_keys(heading: &str, path: &str, value: &Json, names: &mut Names) {
    match value {
        Json::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| is_key(key)) {
                let path = format!("{path}.{key}").trim_start_matches('.').to_owned();
                json_keys(heading, &path, value, names);
                names.insert(format!("{heading} {path}"));
            }
        }
        Json::Array(values) => values.iter().for_each(|value| json_keys(heading, &format!("{path}[]"), value, names)),
        _ => {}
    }
}

/// `documented HEADING: NAME` of each name in the tables of the reference of outputs; `.b` after `a.c` is `a.b`.
fn documented(reference: &str) -> Names {
    let (mut names, mut heading) = (Names::new(), "files");
    for line in reference.lines() {
        heading = line.strip_prefix("## ").unwrap_or(heading);
        let Some(row) = line.strip_prefix("| ").filter(|_| heading != "Exit codes") else { continue };
        let (first, meaning) = row.split_once(" | ").unwrap_or((row, ""));
        let (mut parent, mut last) = (String::new(), String::new());
        for name in first.split('`').skip(1).step_by(2) {
            let whole = if name.starts_with('.') { format!("{parent}{name}") } else { name.to_owned() };
            parent = whole.rsplit_once('.').map(|(parent, _)| parent.to_owned()).unwrap_or_default();
            names.insert(format!("documented {heading}: {whole}"));
            last = whole;
        }
        let told = meaning.split('`').skip(1).step_by(2).filter(|name| is_key(name) && !last.is_empty());
        names.extend(told.map(|name| format!("documented {heading}: {last} {name}")));
    }
    names
}

/// Whether a text has a word, and not only one that goes on from it.
fn has_word(text: &str, word: &str) -> bool {
    text.split(word).skip(1).any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}

/// `event KIND` of each variant that anything makes.
fn events(source: &str, happens: impl Fn(&str) -> bool) -> Names {
    let variants = source.lines().filter_map(|line| line.strip_prefix("    ")?.strip_suffix(','));
    let variants = variants.filter(|name| name.chars().all(char::is_alphanumeric) && happens(name));
    variants.map(|name| format!("event {name}")).collect()
}

fn missing<'r>(record: &'r str, names: &Names) -> Vec<&'r str> {
    record.lines().filter(|line| !line.starts_with('#') && !names.contains(*line)).collect()
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn every_name_on_record_is_still_there() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(RECORD);
    if let Some(root) = std::env::var_os(UPDATE) {
        let program = std::env::var_os(PROGRAM).expect("NODECAST_PROGRAM names the program of the checkout");
        let names = Edition { root: root.into(), program }.names();
        let names: Vec<String> = names.into_iter().collect();
        let about = "# What a user knows by name. docs/reliability.md says how this is made.";
        std::fs::write(&path, format!("{about}\n{}\n", names.join("\n"))).unwrap();
    }
    let record = std::fs::read_to_string(&path).unwrap();
    let names = Edition::today().names();
    let missing = missing(&record, &names);
    assert!(missing.is_empty(), "gone, of what {RECORD} has:\n{}", missing.join("\n"));
    for (kind, least) in
        [("scenario", 300), ("command", 100), ("file", 300), ("answer", 100), ("documented", 400), ("event", 60)]
    {
        let count = record.lines().filter(|line| line.starts_with(kind)).count();
        assert!(count >= least, "{RECORD} has {count} names of {kind}");
    }
}

#[test]
fn a_name_that_is_gone_is_told() {
    let names = Names::from(["event PodReady".to_owned(), "command run".to_owned()]);
    assert_eq!(missing("# About\ncommand run\ncommand run --seed\nevent PodReady\n", &names), ["command run --seed"]);
}

#[test]
fn help_is_read_as_it_is_printed() {
    let help = "Runs\n\nUsage: x\n\nCommands:\n  run   Simulate\n  help  Print this\n\nArguments:\n  <FILE>\n          The file\n\n\
        Options:\n      --format[=<F>]\n          What - all\n\n          Possible values:\n          - table: A table\n\n  \
        -q, --quiet  Print less\n";
    let told = HelpItems {
        commands: vec!["run".to_owned()],
        options: ["<FILE>", "--format", "--format table", "-q", "--quiet"].map(str::to_owned).to_vec(),
    };
    assert_eq!(options_and_commands(help), told);
}

#[test]
fn output_reference_parser_reads_its_format() {
    let reference =
        "## summary.json\n\n| key | meaning |\n| --- | --- |\n| `cost.total`, `.idle[]` | the `amount` of `--all` |\n";
    let names =
        ["cost.idle[]", "cost.idle[] amount", "cost.total"].map(|name| format!("documented summary.json: {name}"));
    assert_eq!(documented(reference), Names::from(names));
    let source = "pub enum EventKind {\n    /// It was.\n    PodReady,\n    PodGone,\n    PodSlept,\n}\n";
    let happens = |name: &str| {
        has_word("EventKind::PodReady, EventKind::PodGone, EventKind::PodSleptWell", &format!("EventKind::{name}"))
    };
    assert_eq!(events(source, happens), Names::from(["event PodGone".to_owned(), "event PodReady".to_owned()]));
}
