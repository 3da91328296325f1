//! Writes the synthetic instances of this suite, from a seed for each:
//!
//!     cargo run --example generate-packing-suite -- scenarios/packing
//!
//! What they hold is said in `crates/agreement/src/packing_suite.rs`; a test compares it with what is here.

use std::path::Path;

use agreement::packing_suite;

fn main() -> std::io::Result<()> {
    let Some(target) = std::env::args().nth(1) else {
        return Err(std::io::Error::other("usage: generate-packing-suite DIRECTORY"));
    };
    for (path, content) in packing_suite::files() {
        let path = Path::new(&target).join(path);
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        std::fs::write(path, content)?;
    }
    Ok(())
}
