//! The hidden sibling in which a directory is built, and how the two change places.
//!
//! There is one for each target, `.NAME.partial`, and a run holds a lock on it while it is at work; the system takes the lock back
//! however the run ends. So whoever finds it locked is told of the other run, and whoever finds it without a lock finds what a killed
//! run has left: a directory that was never finished, or an earlier report whose place was already taken. Where the system has no
//! exchange of two names the earlier report is `.NAME.replaced` for a moment; if that is all that is left, it goes back.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use super::OutputError;
use super::written::may_be_removed;

/// How often a name is tried that others come and go at.
const ATTEMPTS: u32 = 100;

/// A directory under construction, held by this process. Dropped, it goes.
#[derive(Debug)]
pub(super) struct Building {
    path: PathBuf,
    /// Open for as long as the lock on it is to last.
    lock: File,
    /// Directories made on the way to it, outermost first.
    made: Vec<PathBuf>,
    in_place: bool,
}

impl Building {
    /// Makes and holds the sibling of `target`; clears away what a killed run has left. Says too whether that brought `target` back.
    ///
    /// # Errors
    /// If another run holds it, or the system refuses.
    pub(super) fn claim(target: &Path) -> Result<(Self, bool), OutputError> {
        let parent = target.parent().unwrap_or(Path::new("/"));
        let mut made: Vec<PathBuf> = parent.ancestors().filter(|path| !path.exists()).map(Path::to_owned).collect();
        made.reverse();
        fs::create_dir_all(parent).map_err(OutputError::io("create", parent))?;
        let path = sibling(target, "partial");
        let lock = hold(target, &path)?;
        let building = Self { path, lock, made, in_place: false };
        let has_restored = restore(target)?;
        building.empty()?;
        Ok((building, has_restored))
    }

    /// Where files are written.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Makes sure that there is nothing in it. What a killed run has left may be an earlier report that somebody has put something
    /// into: that stays, under a name that can be seen.
    fn empty(&self) -> Result<(), OutputError> {
        let io = |action| OutputError::io(action, &self.path);
        let mut entries = fs::read_dir(&self.path).map_err(io("read"))?;
        if entries.next().is_none() {
            return Ok(());
        }
        if may_be_removed(&self.path) {
            return remove_contents(&self.path).map_err(io("clear"));
        }
        let kept = free_name(&self.path);
        fs::create_dir(&kept).map_err(OutputError::io("create", &kept))?;
        for entry in fs::read_dir(&self.path).map_err(io("read"))? {
            let entry = entry.map_err(io("read"))?;
            fs::rename(entry.path(), kept.join(entry.file_name())).map_err(OutputError::io("move", &entry.path()))?;
        }
        Ok(())
    }

    /// Takes the target's place, if `check` lets go what stands there, and removes that.
    ///
    /// # Errors
    /// Whatever `check` or the system returns; what stood at the target still stands then.
    pub(super) fn put_in_place(
        mut self,
        target: &Path,
        check: impl FnOnce(&Path) -> Result<(), OutputError>,
    ) -> Result<(), OutputError> {
        if !target.exists() {
            fs::rename(&self.path, target).map_err(OutputError::io("create", target))?;
            self.in_place = true;
            return Ok(());
        }
        // What stood there is removed under the hidden name, and nobody may take that for what a killed run has left.
        let older = File::open(target).and_then(|file| file.try_lock().map_err(io::Error::from).map(|()| file));
        let aside = exchange(&self.path, target).map_err(OutputError::io("replace", target))?;
        self.in_place = true;
        // Somebody may have put a file there since it was looked at: then all is as it was.
        if let Err(error) = check(&aside) {
            exchange(&aside, target).map_err(OutputError::io("bring back", target))?;
            self.in_place = false;
            return Err(error);
        }
        fs::remove_dir_all(&aside).map_err(OutputError::io("remove", &aside))?;
        drop(older);
        Ok(())
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        if self.in_place {
            return;
        }
        // Nobody is left to tell, and the next run clears away what stays behind.
        let _ = fs::remove_dir_all(&self.path);
        let _ = self.lock.unlock();
        for directory in self.made.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// `.NAME.PURPOSE` beside the target.
fn sibling(target: &Path, purpose: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(target.file_name().unwrap_or_default());
    name.push(format!(".{purpose}"));
    target.with_file_name(name)
}

/// A name beside `path`, without its dot, that nothing has.
fn free_name(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name.trim_start_matches('.').trim_end_matches(".partial");
    let candidates = (1_u32..).map(|number| path.with_file_name(format!("{name}.kept-{number}")));
    // Numbers end long after names do.
    candidates.into_iter().find(|candidate| fs::symlink_metadata(candidate).is_err()).unwrap_or_else(|| path.to_owned())
}

/// Makes the directory at `path`, or takes over one that nobody holds.
fn hold(target: &Path, path: &Path) -> Result<File, OutputError> {
    let busy = || OutputError::Busy { path: target.to_owned(), building: path.to_owned() };
    for _ in 0..ATTEMPTS {
        let was_there = match fs::create_dir(path) {
            Ok(()) => false,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => true,
            Err(error) => return Err(OutputError::io("create a directory in", path.parent().unwrap_or(path))(error)),
        };
        // Another run may end and take it away at any moment.
        let Ok(file) = File::open(path) else { continue };
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(busy()),
            // Without locks nobody can tell a killed run from one at work.
            Err(TryLockError::Error(_)) if was_there => return Err(busy()),
            Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(busy())
}

/// Makes and holds a hidden folder of another kind, in which nothing is that anybody would miss.
///
/// # Errors
/// If another process holds it, or the system refuses.
pub fn hold_scratch(target: &Path, path: &Path) -> Result<File, OutputError> {
    let lock = hold(target, path)?;
    remove_contents(path).map_err(OutputError::io("clear", path))?;
    Ok(lock)
}

/// Whether the open directory is still the one of that name.
#[cfg(unix)]
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(metadata), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (metadata.dev(), metadata.ino()) == (there.dev(), there.ino())
}

#[cfg(not(unix))]
pub(super) fn is_at(_: &File, path: &Path) -> bool {
    path.exists()
}

/// Puts back what a run had set aside that was killed before it had put its own in place, and removes what it had not removed. Says whether it put
/// something back.
fn restore(target: &Path) -> Result<bool, OutputError> {
    let aside = sibling(target, "replaced");
    if !aside.exists() {
        return Ok(false);
    }
    if !target.exists() {
        fs::rename(&aside, target).map_err(OutputError::io("bring back", target))?;
        return Ok(true);
    }
    if may_be_removed(&aside) {
        fs::remove_dir_all(&aside).map_err(OutputError::io("remove", &aside))?;
        return Ok(false);
    }
    let kept = free_name(&aside);
    fs::rename(&aside, &kept).map_err(OutputError::io("move", &aside))?;
    Ok(false)
}

fn remove_contents(directory: &Path) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Lets two directories change their places; where the one that stood at `target` is then.
#[cfg(target_os = "linux")]
fn exchange(building: &Path, target: &Path) -> io::Result<PathBuf> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, building, CWD, target, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(building.to_owned()),
        // Kernels and file systems that do not know it.
        Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP | Errno::PERM) => by_two_renames(building, target),
        Err(error) => Err(error.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(building: &Path, target: &Path) -> io::Result<PathBuf> {
    by_two_renames(building, target)
}

/// The same in two steps, between which there is nothing at `target`.
fn by_two_renames(building: &Path, target: &Path) -> io::Result<PathBuf> {
    let aside = if building.extension().is_some_and(|extension| extension == "replaced") {
        sibling(target, "partial")
    } else {
        sibling(target, "replaced")
    };
    fs::rename(target, &aside)?;
    match fs::rename(building, target) {
        Ok(()) => Ok(aside),
        Err(error) => {
            // The first error is the one to tell; should this fail too, the next run brings it back.
            let _ = fs::rename(&aside, target);
            Err(error)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::{Building, by_two_renames, sibling};

    #[test]
    fn crash_between_renames_restores_old_report() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let target = place.path().join("report");
        fs::create_dir(sibling(&target, "replaced"))?;
        fs::write(sibling(&target, "replaced").join("summary.json"), "{}")?;
        let (building, _) = Building::claim(&target)?;
        assert!(target.join("summary.json").exists());
        drop(building);
        assert_eq!(fs::read_dir(place.path())?.count(), 1, "nothing hidden stays");
        Ok(())
    }

    #[test]
    fn two_renames_equal_an_exchange() -> Result<(), Box<dyn std::error::Error>> {
        let place = tempfile::tempdir()?;
        let target = place.path().join("report");
        fs::create_dir(&target)?;
        fs::write(target.join("old"), "")?;
        let (building, _) = Building::claim(&target)?;
        fs::write(building.path().join("new"), "")?;
        let aside = by_two_renames(building.path(), &target)?;
        assert!(target.join("new").exists() && aside.join("old").exists());
        Ok(())
    }
}
