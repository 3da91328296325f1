//! The program itself: what it prints where, and how it ends.

use std::process::{Command, Stdio};

use assert_cmd::cargo::cargo_bin;

fn nodecast(arguments: &[&str]) -> (String, String, Option<i32>) {
    let output = Command::new(cargo_bin!("nodecast")).args(arguments).output().expect("runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn help_goes_to_stdout_and_misuse_to_stderr() {
    let (out, err, code) = nodecast(&["--help"]);
    insta::assert_snapshot!("help", out);
    assert_eq!((err.as_str(), code), ("", Some(0)));
    let (out, err, code) = nodecast(&["frobnicate"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("unrecognized subcommand 'frobnicate'"), "{err}");
}

#[test]
fn errors_say_what_is_wrong_and_what_to_do_without_colour_when_piped() {
    let (out, err, code) = nodecast(&["man", "frobnicate"]);
    assert_eq!((out.as_str(), code), ("", Some(2)));
    assert!(err.contains("error: there is no command `frobnicate`") && err.contains("help: the commands are"), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let (help, ..) = nodecast(&["--help"]);
    let listed = help.split("Commands:").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a list");
    let commands: Vec<&str> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert!(commands.len() >= 3);
    let (manual, _, code) = nodecast(&["man"]);
    assert_eq!(code, Some(0));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let (completions, err, code) = nodecast(&["completions", shell]);
        assert_eq!((err.as_str(), code), ("", Some(0)));
        for command in &commands {
            assert!(completions.contains(command), "{command} in {shell}");
        }
    }
    for command in commands {
        assert!(manual.contains(command), "{command}");
        let (page, _, code) = nodecast(&["man", command]);
        assert_eq!(code, Some(0));
        assert!(page.contains(".SH NAME"), "{command}");
    }
}

#[test]
fn a_reader_that_stops_listening_is_no_error() {
    let mut child = Command::new(cargo_bin!("nodecast"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("ends");
    assert_eq!((output.status.code(), String::from_utf8_lossy(&output.stderr).as_ref()), (Some(0), ""));
}
