//! The scenario files of another commit, for a comparison with those of the working tree. Runs `git`.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use super::Failure;

/// Git, or the directory, has no such thing.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum BaseError {
    #[error("cannot run git: {0}")]
    #[diagnostic(help("--base needs git on the PATH; without it, give nodecast diff two files"))]
    NoGit(std::io::Error),
    #[error("git {what}: {message}")]
    #[diagnostic(help("{help}"))]
    Refused { what: String, message: String, help: &'static str },
    #[error("{0} is outside the repository")]
    #[diagnostic(help("give files of the repository in which the command runs"))]
    Outside(String),
    #[error("cannot make a directory for the files of the base: {0}")]
    #[diagnostic(help("set TMPDIR to a directory with free space"))]
    Directory(std::io::Error),
}

/// The files of a commit, in a directory that is removed when this is dropped.
pub struct Base {
    reference: String,
    files: tempfile::TempDir,
    root: PathBuf,
}

impl Base {
    /// Writes the files of the commit, branch or tag to a directory. The repository's index and working tree stay as they are.
    ///
    /// # Errors
    /// Without git, outside a repository, for an unknown commit, or if a file cannot be written.
    pub fn check_out(reference: &str) -> Result<Self, Failure> {
        let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"], None, "run the command in a git repository")?);
        let commit = format!("{reference}^{{commit}}");
        let words = ["rev-parse", "--verify", "--quiet", "--end-of-options", &commit];
        let commit = git(&words, None, "name a commit, branch, or tag; a shallow clone has to fetch it first")?;
        let files = tempfile::Builder::new().prefix("nodecast-base-").tempdir().map_err(unusable)?;
        let index = files.path().join("index");
        let out = files.path().join("files");
        std::fs::create_dir(&out).map_err(unusable)?;
        let help = "see what git says";
        git(&["read-tree", &commit], Some(&index), help)?;
        let mut prefix = std::ffi::OsString::from("--prefix=");
        prefix.push(&out);
        prefix.push("/");
        let root_words: [&OsStr; 5] =
            ["-C".as_ref(), root.as_os_str(), "checkout-index".as_ref(), "--all".as_ref(), &prefix];
        git(&root_words, Some(&index), help)?;
        Ok(Self { reference: reference.to_owned(), files, root })
    }

    /// The path of a file of the working tree from the root of the repository.
    ///
    /// # Errors
    /// If the file is outside the repository.
    pub fn name_of(&self, file: &Path) -> Result<PathBuf, Failure> {
        let outside = || Failure::bad_input(BaseError::Outside(file.display().to_string()));
        let here = std::env::current_dir().map_err(unusable)?;
        let mut whole = PathBuf::new();
        // A file that was removed has no canonical path.
        for part in here.canonicalize().map_err(unusable)?.join(file).components() {
            match part {
                Component::ParentDir => drop(whole.pop()),
                Component::CurDir => {}
                other => whole.push(other),
            }
        }
        let root = self.root.canonicalize().map_err(unusable)?;
        whole.strip_prefix(&root).map(Path::to_path_buf).map_err(|_| outside())
    }

    /// The file with this path in the base, and in the working tree: there as short as it can be named from the current directory.
    pub fn sides(&self, name: &Path) -> [PathBuf; 2] {
        let now = self.root.join(name);
        let here = std::env::current_dir().unwrap_or_default();
        let now = now.strip_prefix(here).map_or_else(|_| now.clone(), Path::to_path_buf);
        [self.files.path().join("files").join(name), now]
    }

    /// A text in which files of the base are called as git calls them, `origin/main:prod/scenario.yaml`: their directory has another
    /// name each time.
    pub fn named(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.files.path().join("files").display()), &format!("{}:", self.reference))
    }
}

/// The files `scenario.yaml` below the current directory that git knows.
///
/// # Errors
/// Without git, or outside a repository.
pub fn scenarios() -> Result<Vec<PathBuf>, Failure> {
    let words = ["ls-files", "-z", "--", "scenario.yaml", "*/scenario.yaml"];
    let listed = git(&words, None, "run the command in a git repository")?;
    Ok(listed.split('\0').filter(|name| !name.is_empty()).map(PathBuf::from).collect())
}

fn unusable(error: std::io::Error) -> Failure {
    Failure::system(BaseError::Directory(error))
}

/// What git prints, without the last line feed. With `index`, that file is the index.
fn git<W: AsRef<OsStr>>(words: &[W], index: Option<&Path>, help: &'static str) -> Result<String, Failure> {
    let mut command = Command::new("git");
    command.args(words);
    if let Some(index) = index {
        command.env("GIT_INDEX_FILE", index);
    }
    let output = command.output().map_err(|error| Failure::bad_input(BaseError::NoGit(error)))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let message = said.lines().next().unwrap_or("unknown commit").trim_start_matches("fatal: ").to_owned();
    let what = words.iter().map(|word| word.as_ref().to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ");
    Err(Failure::bad_input(BaseError::Refused { what, message, help }))
}
