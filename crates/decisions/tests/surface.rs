//! The names that `nodecast-decisions` shows: who changes the snapshot changes what others build on, and says so in CHANGELOG.md (a
//! change that breaks them waits for the next minor version before 1.0, the next major one after).

/// The modules with their names. The crate has nothing but modules and lists of names, so that its statements are what a `;`, the
/// brace of a module or its end closes.
fn names(text: &str) -> Vec<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join(" ");
    let (mut modules, mut found) = (Vec::new(), Vec::new());
    let mut rest = code.trim();
    while !rest.is_empty() {
        let end = if rest.starts_with("pub use ") { rest.find(';') } else { rest.find(['{', '}']) };
        let (statement, after) = rest.split_at(end.expect("a list of names, or a module") + 1);
        if let Some(module) = statement.strip_prefix("pub mod ") {
            modules.push(module.trim_end_matches([' ', '{']));
        } else if let Some(list) = statement.strip_prefix("pub use ") {
            let list = list.rsplit("::").next().unwrap_or_default();
            let listed = list.split(['{', '}', ',', ';']).map(str::trim).filter(|name| !name.is_empty());
            found.extend(listed.map(|name| format!("{}::{name}", modules.join("::"))));
        } else {
            assert_eq!(statement.trim(), "}", "the crate has nothing but modules and lists of names");
            modules.pop();
        }
        rest = after.trim_start();
    }
    found
}

#[test]
fn what_is_shown_changes_on_purpose() {
    let shown = names(include_str!("../src/lib.rs"));
    assert!((100..=200).contains(&shown.len()), "{} names", shown.len());
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn names_are_found_with_their_modules() {
    let text = "//! Words.\npub mod a {\n    pub mod b {\n        pub use x::y::C;\n    }\n\n    pub use x::{\n        D, e,\n    };\n}\n";
    assert_eq!(names(text), ["a::b::C", "a::D", "a::e"]);
}
