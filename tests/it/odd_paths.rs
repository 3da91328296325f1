//! Paths that are no text, files that may not grow, and directories that a killed process left.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use assert_cmd::cargo::cargo_bin;

use crate::cli::Place;

#[test]
fn path_without_text_is_refused_where_recorded() {
    let place = Place::new();
    let name = OsStr::from_bytes(b"caf\xe9");
    let folder = place.path(".").join(name);
    fs::create_dir(&folder).unwrap();
    for file in ["scenario.yaml", "cluster.yaml"] {
        fs::copy(place.path(file), folder.join(file)).unwrap();
    }
    let run = |words: &[&str]| {
        let mut command = Command::new(cargo_bin!("nodecast"));
        command.current_dir(place.path(".")).args(words).arg(std::path::Path::new(name).join("scenario.yaml"));
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(run(&["run", "--quiet"]).0, Some(0));
    for words in
        [&["check", "--update", "--baseline", "b.json"][..], &["compare"], &["sweep", "--set", "duration=5m,10m"]]
    {
        let (code, told) = run(words);
        assert_eq!(code, Some(2), "{words:?}: {told}");
        assert!(told.contains("is not UTF-8 text"), "{words:?}: {told}");
    }
    assert!(!place.path("b.json").exists());
}

#[test]
fn file_size_limit_is_reported_like_full_disk() {
    let place = Place::new();
    let script = "ulimit -f 8; exec \"$0\" run scenario.yaml --quiet --out report";
    let mut command = Command::new("bash");
    let output =
        command.args(["-c", script]).arg(cargo_bin!("nodecast")).current_dir(place.path(".")).output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("ulimit"), "{told}");
    let left = fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<String> = left.filter(|name| !name.ends_with(".yaml")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn refused_init_removes_what_killed_one_left() {
    let place = Place::new();
    place.put("own/.nodecast-init/scenario.yaml", "name: half");
    place.put("own/scenario.yaml", "name: mine");
    let (_, told, code) = place.nodecast(&["init", "own"]);
    assert_eq!(code, Some(2), "{told}");
    assert!(!place.path("own/.nodecast-init").exists());
    assert_eq!(fs::read_to_string(place.path("own/scenario.yaml")).unwrap(), "name: mine");
}
