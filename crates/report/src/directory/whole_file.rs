//! A single file that appears whole or not at all.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::OutputError;
use super::building::is_at;

/// Writes a file that appears whole or not at all; its directory is made. Until it is whole it is `.NAME.partial`, which the next
/// one to write takes over if this process is killed. A symbolic link stays one, and what it names is written. What is no file, such as a pipe or a
/// terminal, is written to and not replaced.
///
/// # Errors
/// If another process writes it, or the system refuses; what was there before is then as it was.
pub fn write_whole(path: &Path, text: &str) -> Result<(), OutputError> {
    let named = target(path).map_err(OutputError::io("write", path))?;
    let path = named.as_path();
    if is_stream(path) {
        let open = || File::options().append(true).open(path);
        return open().and_then(|mut file| file.write_all(text.as_bytes())).map_err(OutputError::io("write", path));
    }
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

/// As many links lead from one to the next before the system takes them for a circle.
///
/// Source: Linux 6.12 `include/linux/namei.h`, `MAXSYMLINKS`.
const LINKS_MAX: usize = 40;

/// What a path names in the end, which need not be there. A stream keeps its own name, which may be the only one that it has (`/dev/stdout`).
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut named = path.to_owned();
    for _ in 0..LINKS_MAX {
        let is_link = fs::symlink_metadata(&named).is_ok_and(|item| item.file_type().is_symlink());
        if !is_link || is_stream(&named) {
            return Ok(named);
        }
        let to = fs::read_link(&named)?;
        named = named.parent().map_or_else(|| to.clone(), |parent| parent.join(&to));
    }
    Err(io::Error::other("its symbolic links lead in a circle"))
}

/// Whether a path is of what cannot be replaced: a pipe, a terminal, a device, or something that a process has open, which `/proc` shows as a link.
fn is_stream(path: &Path) -> bool {
    path.starts_with("/proc") || fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
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

    #[cfg(unix)]
    #[test]
    fn writing_through_symlink_keeps_the_link() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        fs::create_dir(place.path().join("kept"))?;
        let (link, file) = (place.path().join("summary.md"), place.path().join("kept/own.md"));
        std::os::unix::fs::symlink("kept/next.md", &link)?;
        std::os::unix::fs::symlink("own.md", place.path().join("kept/next.md"))?;
        for text in ["first", "second"] {
            write_whole(&link, text)?;
            assert!(fs::symlink_metadata(&link)?.file_type().is_symlink());
            assert_eq!(fs::read_to_string(&file)?, text);
        }
        assert_eq!(fs::read_dir(place.path().join("kept"))?.count(), 2);
        std::os::unix::fs::symlink("round", place.path().join("round"))?;
        assert!(write_whole(&place.path().join("round"), "text").is_err());
        Ok(())
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_written_to_and_stays() -> Result<(), Box<dyn std::error::Error>> {
        use std::os::unix::fs::FileTypeExt;

        let place = tempfile::tempdir()?;
        let pipe = place.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status()?.success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read_to_string(pipe)
        });
        write_whole(&pipe, "whole")?;
        let read = reader.join().map_err(|_| "the reader failed")?;
        assert_eq!(read?, "whole");
        assert!(fs::symlink_metadata(&pipe)?.file_type().is_fifo());
        Ok(())
    }

    #[test]
    fn partial_file_of_killed_process_is_replaced() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let path = place.path().join("part.json");
        fs::write(place.path().join(".part.json.partial"), "a longer text, cut o")?;
        write_whole(&path, "whole")?;
        assert_eq!(fs::read_to_string(&path)?, "whole");
        assert_eq!(fs::read_dir(place.path())?.count(), 1);
        Ok(())
    }
}
