//! Files that appear together or not at all, beside whatever else is in their directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::domain::words::refusal;
use crate::program::Failure;
use crate::report::directory::hold_scratch;
use crate::scenario::draft::Draft;

/// A file that would be overwritten, or a directory that cannot be one.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum PathConflict {
    #[error("`{0}` already exists")]
    #[diagnostic(help("choose another directory, or use --force to overwrite"))]
    File(String),
    #[error("`{0}` is not a directory")]
    #[diagnostic(help("pass a directory; it is created if missing"))]
    Directory(String),
}

/// What the system refused.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot {action} `{}`: {}", path.display(), refusal(error))]
struct Refused {
    action: &'static str,
    path: PathBuf,
    error: io::Error,
}

fn refused(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Failure {
    move |error| Failure::system(Refused { action, path: path.to_owned(), error })
}

/// Files written where nobody looks for them. Dropped before they are in place, they leave nothing behind.
#[derive(Debug)]
pub(super) struct Staged {
    /// Where the files are to be.
    directory: PathBuf,
    /// Where they are.
    stage: PathBuf,
    /// Held for as long as they are there.
    _lock: fs::File,
    names: Vec<String>,
    /// Directories made on the way, outermost first.
    made: Vec<PathBuf>,
    in_place: bool,
}

/// Writes the files of `draft` into a hidden folder of `directory`.
///
/// # Errors
/// If one of them exists and may not be overwritten, or the system refuses.
pub(super) fn stage(directory: &Path, draft: &Draft, overwrite: bool) -> Result<Staged, Failure> {
    if directory.exists() && !directory.is_dir() {
        return Err(Failure::bad_input(PathConflict::Directory(directory.display().to_string())));
    }
    let stage = directory.join(".nodecast-init");
    // A process that was killed left it. Its draft may be complete, so that this one is refused below.
    if stage.is_dir() && hold_scratch(directory, &stage).is_ok() {
        let _ = fs::remove_dir(&stage);
    }
    for file in &draft.files {
        let path = directory.join(&*file.name);
        // A dangling link exists as well.
        let exists = fs::symlink_metadata(&path).is_ok();
        if path.is_dir() || (exists && !overwrite) {
            return Err(Failure::bad_input(PathConflict::File(path.display().to_string())));
        }
    }
    let missing = directory.ancestors().filter(|path| !path.as_os_str().is_empty() && !path.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    made.reverse();
    let names = draft.files.iter().map(|file| file.name.clone().into_owned()).collect();
    let made_whole = fs::create_dir_all(directory).map_err(refused("create", directory));
    let lock = made_whole.and_then(|()| hold_scratch(directory, &stage).map_err(Failure::of_report));
    let lock = lock.inspect_err(|_| made.iter().rev().for_each(|item| drop(fs::remove_dir(item))))?;
    let staged = Staged { directory: directory.to_owned(), stage, _lock: lock, names, made, in_place: false };
    for file in &draft.files {
        fs::write(staged.path(&file.name), &file.text).map_err(refused("write", &directory.join(&*file.name)))?;
    }
    Ok(staged)
}

impl Staged {
    /// Where a file is until it is in place.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.stage.join(name)
    }

    /// Writes the first file of the draft, which has changed, again.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn rewrite(&self, draft: &Draft) -> Result<(), Failure> {
        let Some(file) = draft.files.first() else { return Ok(()) };
        fs::write(self.path(&file.name), &file.text).map_err(refused("write", &self.directory.join(&*file.name)))
    }

    /// Puts the files in place. Should the system refuse halfway, those that were new are taken back.
    ///
    /// # Errors
    /// If the system refuses.
    pub(super) fn put_in_place(mut self) -> Result<(), Failure> {
        let mut new = Vec::new();
        for name in &self.names {
            let target = self.directory.join(name);
            let is_new = fs::symlink_metadata(&target).is_err();
            if let Err(error) = fs::rename(self.path(name), &target) {
                for path in new {
                    let _ = fs::remove_file(path);
                }
                return Err(refused("write", &target)(error));
            }
            if is_new {
                new.push(target);
            }
        }
        self.in_place = true;
        Ok(())
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        // Nobody is left to tell; the next one clears away what stays behind.
        let _ = fs::remove_dir_all(&self.stage);
        if !self.in_place {
            for directory in self.made.iter().rev() {
                let _ = fs::remove_dir(directory);
            }
        }
    }
}
