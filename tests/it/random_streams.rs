//! Draws never change by accident: a golden hash of the first thousand of each stream that a simulation uses.

use std::hash::Hasher;

use nodecast::actors::STREAM_NAMES;
use nodecast::engine::{StableHasher, Streams};

fn hash_of_draws(name: &str) -> u64 {
    let mut hasher = StableHasher::default();
    let mut stream = Streams::new(42).stream(name, "entity");
    for turn in 0..250 {
        let transformed = [stream.uniform(), stream.normal(), stream.exponential(2.0), stream.lognormal(10.0, 0.3)];
        for draw in transformed {
            hasher.write_u64(draw.to_bits());
        }
        hasher.write_u64(Streams::new(42).nth(name, "entity", turn).uniform().to_bits());
    }
    hasher.finish()
}

#[test]
fn first_thousand_random_draws_are_stable() {
    let hashes: String = STREAM_NAMES.iter().map(|name| format!("{name}: {:016x}\n", hash_of_draws(name))).collect();
    insta::assert_snapshot!("draws", hashes);
}

#[test]
fn every_used_random_stream_is_listed() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    for room in ["crates/ec2/src", "crates/sim/src/actors"] {
        let mut folders = vec![root.join(room)];
        while let Some(folder) = folders.pop() {
            for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]").next().unwrap_or_default();
                for call in [".stream(\"", ".nth(\""] {
                    for rest in code.split(call).skip(1) {
                        let name = rest.split('"').next().unwrap_or_default();
                        assert!(STREAM_NAMES.contains(&name), "{}: stream {name} is not listed", path.display());
                    }
                }
            }
        }
    }
}
