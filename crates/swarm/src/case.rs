//! A case: a scenario put together of parts, each of which can be left out.

use std::io;
use std::path::Path;

/// Where a text of a part goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Section {
    /// Keys of the one policy.
    Policy,
    /// Keys under `ec2`.
    Ec2,
    /// Keys of the scenario.
    Scenario,
    /// Items of `load`.
    Load,
    /// Items of `queues`.
    Queues,
    /// Items of `usage`.
    Usage,
    /// Items of `workloads`.
    Workloads,
    /// Items of `timeline`.
    Timeline,
    /// Items of `faults`.
    Faults,
    /// Kubernetes objects.
    Manifests,
    /// Objects of the dump with which the run begins.
    Dump,
}

/// Something that a case may have.
#[derive(Clone, Debug)]
pub struct Part {
    /// What it is, for people.
    pub name: String,
    /// Its texts.
    pub texts: Vec<(Section, String)>,
    /// Files that its texts name.
    pub files: Vec<(String, String)>,
    /// Whether pods may wait for ever, or empty nodes stay, because of it.
    pub may_hold_up: bool,
}

impl Part {
    /// A part of texts that holds up nothing for ever.
    pub fn new(name: impl Into<String>, texts: Vec<(Section, String)>) -> Self {
        Self { name: name.into(), texts, files: Vec::new(), may_hold_up: false }
    }

    /// The same with a file that its texts name.
    pub fn with_file(mut self, name: impl Into<String>, text: String) -> Self {
        self.files.push((name.into(), text));
        self
    }

    /// The same, which may.
    pub fn holding_up(mut self) -> Self {
        self.may_hold_up = true;
        self
    }
}

/// A disruption budget of pods that a case has: never fewer Ready than this by evictions.
#[derive(Clone, Debug)]
pub struct Guarded {
    /// Namespace and name of the workload.
    pub workload: String,
    /// The least number of Ready pods that an eviction leaves.
    pub min_available: u64,
}

/// A VerticalPodAutoscaler that a case has.
#[derive(Clone, Debug)]
pub struct Vertical {
    /// Namespace and name of the workload, and of the autoscaler.
    pub workload: String,
    /// Its mode.
    pub mode: &'static str,
    /// With fewer pods than this nothing is evicted.
    pub min_replicas: u64,
    /// The least and the most CPU that may be recommended, in milli-CPU.
    pub cpu: (f64, f64),
    /// The same of memory, in bytes.
    pub memory: (f64, f64),
    /// What the workload's templates request: milli-CPU and bytes.
    pub templates: Vec<(f64, f64)>,
}

/// A scenario put together of parts.
#[derive(Clone, Debug)]
pub struct Case {
    /// The seed that it was made of, and that it is simulated with.
    pub seed: u64,
    /// How long it is simulated.
    pub minutes: u64,
    /// Releases.
    pub versions: String,
    /// The first part is what launches nodes; it cannot be left out.
    pub parts: Vec<Part>,
    /// Budgets of pods.
    pub guarded: Vec<Guarded>,
    /// VerticalPodAutoscalers.
    pub vertical: Vec<Vertical>,
    /// The nodes that a budget of the NodePool lets go at once.
    pub node_budget: Option<u64>,
}

impl Case {
    /// Whether all that waits must find a node in the end, and every empty node go.
    pub fn must_settle(&self) -> bool {
        !self.parts.iter().any(|part| part.may_hold_up)
    }

    /// Its parts, for people.
    pub fn names(&self) -> String {
        let names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        format!("seed {}, {} min, {}: {}", self.seed, self.minutes, self.versions, names.join(", "))
    }

    fn lines(&self, section: Section) -> impl Iterator<Item = &str> {
        let texts = self.parts.iter().flat_map(|part| &part.texts);
        texts.filter(move |(item, _)| *item == section).map(|(_, text)| text.as_str())
    }

    /// The scenario file.
    pub fn scenario(&self) -> String {
        let mut text = format!(
            "name: swarm\nregion: us-east-1\nstart: 2026-06-10T08:00:00Z\nduration: {}m\nseed: {}\nversions: {{ {} }}\n\
             cluster: {{ zones: [us-east-1a, us-east-1b, us-east-1c] }}\nmanifests: [objects.yaml]\n",
            self.minutes, self.seed, self.versions
        );
        let keys = |text: &mut String, of: Vec<&str>| of.iter().for_each(|item| text.push_str(item));
        keys(&mut text, self.lines(Section::Scenario).collect());
        if self.lines(Section::Dump).next().is_some() {
            text.push_str("initial: dump.yaml\n");
        }
        text.push_str("policies:\n  - name: only\n");
        for this_line in self.lines(Section::Policy) {
            this_line.lines().for_each(|line| text.push_str(&format!("    {line}\n")));
        }
        if self.lines(Section::Ec2).next().is_some() {
            text.push_str("ec2:\n");
            self.lines(Section::Ec2).flat_map(str::lines).for_each(|line| text.push_str(&format!("  {line}\n")));
        }
        for (section, key) in [
            (Section::Load, "load"),
            (Section::Queues, "queues"),
            (Section::Usage, "usage"),
            (Section::Workloads, "workloads"),
            (Section::Timeline, "timeline"),
            (Section::Faults, "faults"),
        ] {
            let items: Vec<&str> = self.lines(section).flat_map(str::lines).collect();
            if !items.is_empty() {
                text.push_str(&format!("{key}:\n"));
                items.iter().for_each(|item| text.push_str(&format!("  - {item}\n")));
            }
        }
        text
    }

    /// The objects.
    pub fn objects(&self) -> String {
        self.lines(Section::Manifests).collect::<Vec<_>>().join("---\n")
    }

    /// Writes it into a folder.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        std::fs::create_dir_all(folder)?;
        std::fs::write(folder.join("scenario.yaml"), self.scenario())?;
        let dump: Vec<&str> = self.lines(Section::Dump).collect();
        if !dump.is_empty() {
            std::fs::write(folder.join("dump.yaml"), dump.join("---\n"))?;
        }
        for (name, text) in self.parts.iter().flat_map(|part| &part.files) {
            std::fs::write(folder.join(name), text)?;
        }
        std::fs::write(folder.join("objects.yaml"), self.objects())
    }
}
