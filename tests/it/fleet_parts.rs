//! Comparisons of fleets in shards.

use std::fs;

use crate::cli::Place;
use crate::output_schemas::POLICIES;

const FLEET: &str = "fleet: thirds
start: 2026-03-03T00:00:00Z
duration: 40m
seed: 11
accounts: [{ id: \"000000000041\", name: main }]
clusters:
  - { name: north, scenario: both.yaml, account: main, count: 2 }
  - { name: south, scenario: both.yaml, account: main }
commitments:
  savings_plans: [{ id: all, owner: main, kind: compute, commitment: 0.02, discount: 20% }]
";
const COMPARE: [&str; 6] = ["compare", "fleet.yaml", "--policies", "one,two", "--replications", "2"];

fn place() -> Place {
    let place = Place::new();
    let scenario = fs::read_to_string(place.path("scenario.yaml")).unwrap();
    place.put("both.yaml", &format!("{scenario}{POLICIES}"));
    place.put("fleet.yaml", FLEET);
    place
}

fn run(place: &Place, words: &[&str]) -> String {
    let (out, err, code) = place.nodecast(words);
    assert_eq!(code, Some(0), "{out}{err}");
    out
}

#[test]
fn merged_shards_of_a_fleet_are_the_whole() {
    let place = place();
    for shard in ["1/3", "2/3", "3/3"] {
        run(&place, &[&COMPARE[..], &["--shard", shard, "--out", "parts", "--quiet"]].concat());
    }
    let parts = ["parts/part-3-of-3.json", "parts/part-1-of-3.json", "parts/part-2-of-3.json"];
    let merge = [&["merge"], &parts[..]].concat();
    for format in ["json", "table"] {
        let format = ["--format", format];
        let whole = run(&place, &[&COMPARE[..], &["--quiet"], &format].concat());
        assert_eq!(run(&place, &[&merge[..], &format].concat()), whole);
    }
    let refused = |words: &[&str]| {
        let (out, err, code) = place.nodecast(words);
        assert_eq!((out.as_str(), code), ("", Some(2)), "{err}");
        err
    };
    let err = refused(&["merge", parts[0], parts[1]]);
    assert!(err.contains("see shard 2/3"), "{err}");
    run(
        &place,
        &["compare", "both.yaml", "--replications", "1", "--shard", "1/1", "--out", "other", "--duration", "5m"],
    );
    let err = refused(&["merge", parts[0], "other/part-1-of-1.json"]);
    assert!(err.contains("`other/part-1-of-1.json` answers another question"), "{err}");
    // The report of a scenario goes to a directory, the answer of a fleet does not.
    let err = refused(&[&merge[..], &["--out", "merged"]].concat());
    assert!(err.contains("`--out` does not apply to a fleet") && err.contains("remove the option"), "{err}");
    place.put("fleet.yaml", &FLEET.replace("0.02", "0.03"));
    let err = refused(&merge);
    assert!(err.contains("`fleet.yaml` differs"), "{err}");
}

#[test]
fn damaged_part_of_a_fleet_is_reported() {
    let place = place();
    run(&place, &[&COMPARE[..], &["--shard", "1/1", "--out", "parts", "--quiet"]].concat());
    let text = fs::read_to_string(place.path("parts/part-1-of-1.json")).unwrap();
    let (before, after) = text.split_once("\"unused\":").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    for (value, reason) in [("-7", "`unused` is -7"), ("0.123", "its checksum is another")] {
        place.put("parts/damaged.json", &format!("{before}\"unused\":{value},{after}"));
        let (_, err, code) = place.nodecast(&["merge", "parts/damaged.json"]);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains("damaged") && err.contains(reason), "{err}");
    }
    let (_, err, code) = place.nodecast(&["compare", "fleet.yaml", "--policies", "one,one"]);
    assert!(code == Some(2) && err.contains("lists `one` twice"), "{err}");
}
