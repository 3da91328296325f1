//! A single file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::OutputError;
use super::building::is_at;

/// Writes a file that appears whole or not at all; its directory is made. Until it is whole it is `.NAME.partial`, which the next
/// one to write takes over if this process is killed.
///
/// # Errors
/// If another process writes it, or the system refuses; what was there before is then as it was.
pub fn write_whole(path: &Path, text: &str) -> Result<(), OutputError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(parent).map_err(OutputError::io("create the directory of", path))?;
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(".partial");
    let partial = parent.join(name);
    let written = put(path, &partial, text)?;
    if let Err(error) = written {
        // Nothing half-written stays behind; should even this fail, the first error is the one to tell.
        let _ = fs::remove_file(&partial);
        return Err(OutputError::io("write", path)(error));
    }
    Ok(())
}

/// Writes `partial` and renames it. The outer error is that of not being let near it.
fn put(path: &Path, partial: &PathBuf, text: &str) -> Result<io::Result<()>, OutputError> {
    let busy = || OutputError::Busy { path: path.to_owned(), building: partial.clone() };
    let mut options = File::options();
    let mut open = || options.write(true).create(true).truncate(false).open(partial);
    let mut file = open().map_err(OutputError::io("write", path))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => return Err(busy()),
        // Another process has given it its name since it was opened: it is whole, and must not be touched.
        _ if !is_at(&file, partial) => return Err(busy()),
        _ => {}
    }
    let mut write = || {
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        fs::rename(partial, path)
    };
    Ok(write())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::write_whole;

    #[test]
    fn what_a_killed_process_has_left_is_taken_over() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("part.json");
        fs::write(place.path().join(".part.json.partial"), "a longer text, cut o")?;
        write_whole(&path, "whole")?;
        assert_eq!(fs::read_to_string(&path)?, "whole");
        assert_eq!(fs::read_dir(place.path())?.count(), 1);
        Ok(())
    }
}
