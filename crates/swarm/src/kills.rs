//! Kills commands that write reports at random moments, and looks at what is left.
//!
//! An earlier report stands where a command writes. Whenever the command is killed, there has to be the earlier report or the new one,
//! whole. The same command, given again, has to come to its end, to write what it writes undisturbed, and to leave nothing else.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::generate;
use crate::random::Random;
use crate::trial::Programs;

/// A command that writes a report, with its name; it runs in the folder of a case. `{}` is its seed.
const WORKS: [(&str, &[&str]); 7] = [
    ("run", &["run", "scenario.yaml", "--quiet", "--seed", "{}", "--out", "out"]),
    ("compare", &["compare", "scenario.yaml", "--quiet", "--replications", "2", "--seed", "{}", "--out", "out"]),
    (
        "sweep",
        &[
            "sweep",
            "scenario.yaml",
            "--quiet",
            "--set",
            "duration=5m,10m",
            "--replications",
            "2",
            "--seed",
            "{}",
            "--out",
            "out",
        ],
    ),
    ("merge", &["merge", "parts-{}/part-1-of-2.json", "parts-{}/part-2-of-2.json", "--quiet", "--out", "out"]),
    (
        "recommend",
        &[
            "recommend",
            "scenario.yaml",
            "--quiet",
            "--simulations",
            "150",
            "--levers",
            "spot",
            "--seed",
            "{}",
            "--write",
            "out",
        ],
    ),
    (IMPORT, &["pricing", "import", "prices-{}.json", "--out", "out"]),
    (OBSERVE, &["observe", "--answers", "answers-{}", "--quiet", "--out", "out"]),
];

const IMPORT: &str = "pricing import";
const OBSERVE: &str = "observe";

/// A scenario in which there is surely something to recommend, with its objects.
const PINNED: [(&str, &str); 2] =
    [("scenario.yaml", include_str!("pinned/scenario.yaml")), ("objects.yaml", include_str!("pinned/objects.yaml"))];

/// What made the parts that `merge` puts together.
const PART: [&str; 9] =
    ["compare", "scenario.yaml", "--quiet", "--replications", "2", "--seed", "{}", "--shard", "{/}"];

/// The seeds that commands alternate between, so that the earlier report is never the new one.
const SEEDS: [u64; 2] = [11, 12];

/// A file of the user's, beside the report.
const OWN: &str = "notes.txt";

/// Paths and contents of all files below a folder, of hidden ones too.
type Tree = BTreeMap<String, Vec<u8>>;

/// What the kills have come to.
#[derive(Debug, Default)]
pub struct Tally {
    /// Kills that met the command at work.
    pub killed: u64,
    /// Of these, those after which the new report stood.
    pub new: u64,
    /// What was wrong.
    pub faults: Vec<String>,
}

/// Kills so many commands on a case of this seed.
///
/// # Errors
/// If a command fails that nobody kills, or the system refuses.
pub fn kills(programs: &Programs, seed: u64, count: u64) -> Result<Tally, String> {
    let mut random = Random::new(seed);
    let mut tally = Tally::default();
    let mut works = Vec::new();
    for (name, words) in WORKS {
        works.push(Work::prepare(programs, seed, name, words)?);
    }
    for number in 0..count {
        let place = number as usize % works.len();
        let work = &mut works[place];
        work.kill(programs, &mut random, number, &mut tally)?;
    }
    Ok(tally)
}

/// A command with its folder and what it writes undisturbed.
struct Work {
    name: &'static str,
    words: &'static [&'static str],
    folder: tempfile::TempDir,
    /// The report of each seed.
    reports: [Tree; 2],
    /// Which of the two stands there.
    stands: usize,
    /// How long the command takes.
    takes: Duration,
}

impl Work {
    fn prepare(
        programs: &Programs,
        seed: u64,
        name: &'static str,
        words: &'static [&'static str],
    ) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
        if name == "recommend" {
            for (file, text) in PINNED {
                std::fs::write(folder.path().join(file), text).map_err(|error| error.to_string())?;
            }
        } else {
            generate::case(seed).write(folder.path()).map_err(|error| error.to_string())?;
        }
        std::fs::write(folder.path().join(OWN), "mine").map_err(|error| error.to_string())?;
        let mut work = Self { name, words, folder, reports: Default::default(), stands: 1, takes: Duration::ZERO };
        for (position, seed) in SEEDS.into_iter().enumerate() {
            match name {
                "merge" => work.make_parts(programs, seed)?,
                IMPORT => work.make_prices(seed)?,
                OBSERVE => work.make_answers(seed)?,
                _ => {}
            }
            let begun = Instant::now();
            work.finish(programs, position)?;
            work.takes = begun.elapsed();
            work.reports[position] = tree(&work.folder.path().join("out"))?;
        }
        if work.reports[0] == work.reports[1] {
            return Err(format!("{name}: two seeds write the same report, of which nothing can be told"));
        }
        Ok(work)
    }

    fn make_parts(&self, programs: &Programs, seed: u64) -> Result<(), String> {
        for shard in ["1/2", "2/2"] {
            let mut words: Vec<String> =
                PART.iter().map(|word| word.replace("{}", &seed.to_string()).replace("{/}", shard)).collect();
            words.extend(["--out".to_owned(), format!("parts-{seed}")]);
            self.run(programs, &words)?;
        }
        Ok(())
    }

    /// A history of Spot prices, of which each seed has others.
    fn make_prices(&self, seed: u64) -> Result<(), String> {
        let entries: Vec<String> = ["m5.large", "c6i.xlarge", "r5.2xlarge", "m7g.large"]
            .iter()
            .flat_map(|name| ["a", "b", "c"].map(|zone| (name, zone)))
            .map(|(name, zone)| {
                format!(
                    "{{\"AvailabilityZone\": \"us-east-1{zone}\", \"InstanceType\": \"{name}\", \"ProductDescription\": \"Linux/UNIX\", \
                     \"SpotPrice\": \"0.{seed}0000\", \"Timestamp\": \"2026-06-01T00:00:{seed}+00:00\"}}"
                )
            })
            .collect();
        let text = format!("{{\"SpotPriceHistory\": [{}]}}", entries.join(", "));
        std::fs::write(self.folder.path().join(format!("prices-{seed}.json")), text).map_err(|error| error.to_string())
    }

    /// Answers of a Prometheus server, of which each seed has other names.
    fn make_answers(&self, seed: u64) -> Result<(), String> {
        let known = Path::new(env!("CARGO_MANIFEST_DIR")).join("../observed/tests/data/shop-prod");
        let folder = self.folder.path().join(format!("answers-{seed}"));
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        for (name, bytes) in tree(&known)? {
            let text = String::from_utf8_lossy(&bytes);
            let text = if name == "queries.json" {
                text.into_owned()
            } else {
                text.replace("\"web", &format!("\"s{seed}web"))
            };
            std::fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Runs a command that nobody kills.
    fn run(&self, programs: &Programs, words: &[String]) -> Result<(), String> {
        let output = Command::new(&programs.release).args(words).current_dir(self.folder.path()).output();
        let output = output.map_err(|error| format!("{}: {error}", programs.release.display()))?;
        match output.status.success() {
            true => Ok(()),
            false => {
                Err(format!("{}: {}\n{}", words.join(" "), output.status, String::from_utf8_lossy(&output.stderr)))
            }
        }
    }

    /// The command with one of the seeds.
    fn words(&self, position: usize) -> Vec<String> {
        self.words.iter().map(|word| word.replace("{}", &SEEDS[position].to_string())).collect()
    }

    fn finish(&self, programs: &Programs, position: usize) -> Result<(), String> {
        self.run(programs, &self.words(position))
    }

    /// Begins the command with the other seed, kills it, looks, and lets it come to its end.
    fn kill(&mut self, programs: &Programs, random: &mut Random, number: u64, tally: &mut Tally) -> Result<(), String> {
        let next = 1 - self.stands;
        let after = self.moment(random, number);
        let mut child = Command::new(&programs.release)
            .args(self.words(next))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{}: {error}", programs.release.display()))?;
        std::thread::sleep(after);
        let ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
        let _ = child.kill();
        child.wait().map_err(|error| error.to_string())?;
        tally.killed += u64::from(!ended);
        let fault = |what: String| format!("kill {number}, {} after {} ms: {what}", self.name, after.as_millis());
        match self.what_stands() {
            Ok(position) => tally.new += u64::from(position == next && !ended),
            // Its files take their places one by one; the next run completes them.
            Err(_) if self.name == OBSERVE => {}
            Err(what) => tally.faults.push(fault(what)),
        }
        if let Err(error) = self.finish(programs, next) {
            tally.faults.push(fault(format!("does not go on: {error}")));
        } else if self.what_stands() != Ok(next) {
            tally.faults.push(fault("goes on to another report".to_owned()));
        }
        tally.faults.extend(self.leftovers()?.map(fault));
        self.stands = next;
        Ok(())
    }

    /// Half of the kills at any moment, half near the end, where files are written and change their places.
    fn moment(&self, random: &mut Random, number: u64) -> Duration {
        let (from, to) = if (number / WORKS.len() as u64).is_multiple_of(2) { (0.0, 1.0) } else { (0.7, 1.1) };
        self.takes.mul_f64(from + (to - from) * (random.between(0, 1_000) as f64 / 1_000.0))
    }

    /// Which of the two reports stands there, whole.
    fn what_stands(&self) -> Result<usize, String> {
        let out = self.folder.path().join("out");
        if !out.exists() {
            return Err("lost: there is no report".to_owned());
        }
        let found = tree(&out)?;
        let same = self.reports.iter().position(|report| *report == found);
        same.ok_or_else(|| format!("half-written: {:?}", found.keys().collect::<Vec<_>>()))
    }

    /// What the command has left beside the report, or taken away.
    fn leftovers(&self) -> Result<Option<String>, String> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(self.folder.path()).map_err(|error| error.to_string())? {
            names.push(entry.map_err(|error| error.to_string())?.file_name().to_string_lossy().into_owned());
        }
        let strange = |name: &&String| name.starts_with('.') || name.starts_with("out.");
        if let Some(name) = names.iter().find(strange) {
            return Ok(Some(format!("leaves `{name}`")));
        }
        let string = std::fs::read_to_string(self.folder.path().join(OWN)).ok();
        Ok((string.as_deref() != Some("mine")).then(|| format!("`{OWN}` is not as it was")))
    }
}

fn tree(folder: &Path) -> Result<Tree, String> {
    let mut all = Tree::new();
    for entry in std::fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))? {
        let path = entry.map_err(|error| error.to_string())?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            all.extend(tree(&path)?.into_iter().map(|(key, bytes)| (format!("{name}/{key}"), bytes)));
        } else {
            all.insert(name, std::fs::read(&path).map_err(|error| error.to_string())?);
        }
    }
    Ok(all)
}
