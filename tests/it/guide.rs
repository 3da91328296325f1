//! `docs/guide.md` is true: its commands run in its order, on the dump of a cluster, with the edits that it shows.

use std::fs;
use std::path::Path;

use nodecast::scenario::draft::RESOURCES;

use crate::cli::{Place, nodecast};

fn guide() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/guide.md")).unwrap()
}

/// The blocks of code of one language, in order.
fn blocks(text: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    text.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

/// The words of a command line, which quotes nothing but whole words.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(place, part)| match place % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

/// Five minutes in place of a day, and two seeds: unoptimised builds take as long.
fn shorten(place: &Place) {
    let scenario = fs::read_to_string(place.path("my-cluster/scenario.yaml")).unwrap();
    let shorter = scenario.replace("duration: 24h", "duration: 5m").replace("replications: 5 ", "replications: 2 ");
    assert_ne!(scenario, shorter);
    place.put("my-cluster/scenario.yaml", &shorter);
}

/// Puts the policy of step 4 among the others.
fn add_policy(place: &Place, policy: &str) {
    let scenario = fs::read_to_string(place.path("my-cluster/scenario.yaml")).unwrap();
    let (before, rest) = scenario.split_once("\npolicies:").unwrap();
    let (line, rest) = rest.split_once('\n').unwrap();
    let (first, rest) = rest.split_once('\n').unwrap();
    place.put("my-cluster/scenario.yaml", &format!("{before}\npolicies:{line}\n{first}\n{policy}{rest}"));
}

/// Makes the edit of step 6: the entry of one workload as the guide shows it, and the answer that it names.
fn put_traffic_in(place: &Place, entry: &str) {
    let samples: Vec<String> =
        (0..15).map(|minute| format!("[{}, \"{}\"]", 1_795_000_000 + 60 * minute, 300 + minute)).collect();
    let answer = format!(
        "{{\"status\": \"success\", \"data\": {{\"resultType\": \"matrix\", \"result\": [{{\"metric\": {{}}, \"values\": [{}]}}]}}}}",
        samples.join(", ")
    );
    place.put("my-cluster/storefront.json", &answer);
    let scenario = fs::read_to_string(place.path("my-cluster/scenario.yaml")).unwrap();
    let (before, rest) = scenario.split_once("  - workload: shop/storefront").unwrap();
    let end = rest.find("  - workload").or_else(|| rest.find("\npolicies:")).unwrap();
    place.put("my-cluster/scenario.yaml", &format!("{before}{entry}{}", &rest[end..]));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn guide_commands_work_as_documented() {
    let guide = guide();
    let place = Place::new();
    let dump = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/dump/cluster.yaml");
    fs::copy(dump, place.path("cluster.yaml")).unwrap();
    let [policy, entry, calibration] = &blocks(&guide, "yaml")[..] else { panic!("a policy, an entry, a calibration") };
    // Where the step before has it written, seen from the scenario.
    assert!(calibration.trim() == "calibration: calibration.yaml" && guide.contains("--out replayed/calibration.yaml"));
    let mut run = Vec::new();
    for block in blocks(&guide, "sh") {
        for line in block.lines().filter(|line| line.starts_with("nodecast ")) {
            let words = words(line);
            let arguments: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
            // These need a Prometheus, a record or a bill, which `observe`, `calibrate` and `backtest` of these tests have.
            if ["observe", "calibrate", "backtest"].contains(&arguments[0]) || arguments.contains(&"replayed") {
                continue;
            }
            if arguments[0] == "validate" {
                put_traffic_in(&place, entry);
            }
            let (out, err, code) = place.nodecast(&arguments);
            assert_eq!(code, Some(0), "{line}\n{out}{err}");
            if arguments[0] == "init" {
                shorten(&place);
            }
            run.push(words[1].clone());
        }
    }
    assert_eq!(run, ["init", "run", "compare", "diff", "diff", "sweep", "validate", "compare", "check", "check"]);
    add_policy(&place, policy);
    let (out, err, code) = place.nodecast(&["run", "my-cluster/scenario.yaml", "--policy", "cas"]);
    assert_eq!(code, Some(0), "{out}{err}");
    assert!(out.contains("Policy cas (Cluster Autoscaler") && !out.contains("unscheduled"), "{out}");
    assert!(place.path("reports/my-cluster/report.html").is_file());
    // What the guide says of the files that are there.
    let scenario = fs::read_to_string(place.path("my-cluster/scenario.yaml")).unwrap();
    for words in ["assumptions:", "name: today,", "name: cost-aware,", "storefront.json", "start: 2026-11-24T13:42:00Z"]
    {
        assert!(scenario.contains(words), "{words}");
    }
}

#[test]
fn readme_explain_questions_have_answers() {
    let readme = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let questions: Vec<&str> = readme.lines().filter(|line| line.starts_with("nodecast explain scenarios/")).collect();
    assert_eq!(questions.len(), 3);
    for line in questions {
        let words = words(line);
        let (out, err, code) = nodecast(&words.iter().skip(1).map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code, Some(0), "{line}\n{out}{err}");
    }
}

#[test]
fn guide_and_readme_links_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    assert!(
        readme.lines().take(40).any(|line| line.contains("(docs/guide.md)")),
        "the README leads to the guide early"
    );
    let guide = guide();
    let links: Vec<&str> = guide.split("](").skip(1).map(|rest| rest.split([')', '#']).next().unwrap()).collect();
    assert!(links.len() >= 4);
    for link in links {
        assert!(root.join("docs").join(link).is_file(), "{link}");
    }
}

#[test]
fn guide_asks_for_every_kind_read() {
    let guide = guide();
    let list = guide.split_once("\nkinds='").and_then(|(_, rest)| rest.split_once('\'')).unwrap().0;
    let mut asked: Vec<&str> = list.split_whitespace().collect();
    let mut read = RESOURCES.to_vec();
    asked.sort_unstable();
    read.sort_unstable();
    assert_eq!(asked, read);
}

#[test]
fn dump_command_is_identical_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let line =
        "kubectl get deploy,sts,ds,cj,jobs,hpa,pdb,nodepools,ec2nodeclasses,nodeclaims,nodes,pods,pvc,pv,sc -A -o yaml";
    let (help, _, code) = nodecast(&["init", "--help"]);
    assert_eq!(code, Some(0));
    let place = Place::new();
    place.put("table.txt", "no dump\n");
    let (_, refusal, code) = place.nodecast(&["init", "own", "--from", "table.txt"]);
    assert_eq!(code, Some(2));
    let unbroken = |text: &str| text.split_whitespace().filter(|word| *word != "|").collect::<Vec<_>>().join(" ");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    for (name, text) in [("README", readme), ("guide", guide()), ("help", help), ("refusal", refusal)] {
        assert!(unbroken(&text).contains(line), "{name}: {text}");
    }
}
