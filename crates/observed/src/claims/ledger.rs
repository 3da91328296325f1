//! What sources say, noted one by one, and the histories made of it at the end: a claim, its node and its instance are one.

use std::collections::{BTreeMap, BTreeSet};

use nodecast_model::domain::words::counted;

use super::Instant;
use super::lives::{
    Disagreement, End, History, ImagePull, Life, LoadSample, Milestone, PodLife, Shortage, SourceUse, StageTimes,
    Window,
};

/// Seconds by which sources may differ about one instant: conditions are in whole seconds, and controllers see late.
const AGREEMENT: f64 = 2.0;

/// Seconds after its initialization at which a node that turns Ready has been Ready before.
const CAME_BACK: f64 = 60.0;

/// Whom a fact is about.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Subject {
    /// A claim by its name.
    Claim(String),
    /// The claim of this node.
    Node(String),
    /// The claim of this instance.
    Instance(String),
}

/// A fact about a claim.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Fact {
    /// It came to a milestone; `exact` if the source is finer than a second.
    At(Milestone, Instant, bool),
    Pool(String),
    NodeClass(String),
    InstanceType(String),
    Zone(String),
    CapacityType(String),
    Image(String),
    Node(String),
    Instance(String),
    End(End),
    /// It was there, launched, when the source began.
    Truncated,
    /// Samples tell of it.
    Sampled,
}

struct Note {
    scope: usize,
    subject: Subject,
    fact: Fact,
    source: usize,
}

/// A kind of facts that a table holds, or a source of the cluster's own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum FactKind {
    Nodes,
    Pods,
    Shortages,
    Loads,
    Stages,
}

/// The time from the first to the last that a source says of anything, in which it would have told of an end.
#[derive(Clone, Copy, Debug)]
struct Ends {
    window: Window,
    /// Whether it says anything of nodes: who looks into a namespace of pods does not see them.
    of_nodes: bool,
    /// Whether it is kept as long as nobody takes it away, as a log, so that its time is that of the record where that is stated. Events
    /// are gone after an hour.
    kept: bool,
}

/// Everything noted so far.
#[derive(Default)]
pub(super) struct Ledger {
    notes: Vec<Note>,
    pods: BTreeMap<(usize, String), PodLife>,
    windows: BTreeMap<usize, Window>,
    pulls: Vec<ImagePull>,
    shortages: Vec<Shortage>,
    loads: Vec<LoadSample>,
    stages: Vec<StageTimes>,
    reclaims: Option<Vec<Instant>>,
    sampled: bool,
    /// The runs, and 0 for the cluster's own sources, of which a source tells all ends.
    all_ends: BTreeSet<usize>,
    /// The time over which a source of the cluster's own tells ends.
    ends: BTreeMap<usize, Ends>,
    /// The pods that turned Ready again, by source.
    came_back: BTreeMap<usize, BTreeSet<String>>,
    node_classes: BTreeMap<String, String>,
    sources: Vec<SourceUse>,
    scope: usize,
    /// The kinds of facts that some source would have, had there been any.
    recorded: BTreeSet<FactKind>,
}

impl Ledger {
    /// A source begins; what follows is from it.
    pub(super) fn begin(&mut self, file: &str, kind: &'static str) {
        self.scope = 0;
        self.sources.push(SourceUse {
            file: file.to_owned(),
            kind,
            taken: 0,
            left: 0,
            first_left: None,
            notes: Vec::new(),
        });
    }

    /// What follows is of a run of its own, whose names mean nothing elsewhere.
    pub(super) fn begin_run(&mut self, window: Window) {
        self.scope = self.sources.len();
        self.windows.insert(self.scope, window);
    }

    /// The window of the cluster's own sources, where the user states it.
    pub(super) fn set_window(&mut self, window: Window) {
        self.windows.insert(0, window);
    }

    /// A line or an object told something.
    pub(super) fn taken(&mut self) {
        if let Some(source) = self.sources.last_mut() {
            source.taken += 1;
        }
    }

    /// A line or an object that no rule took.
    pub(super) fn left(&mut self, what: &str) {
        if let Some(source) = self.sources.last_mut() {
            source.left += 1;
            source.first_left.get_or_insert_with(|| what.chars().take(100).collect());
        }
    }

    /// Something to be said about the source.
    pub(super) fn remark(&mut self, text: impl Into<String>) {
        if let Some(source) = self.sources.last_mut() {
            source.notes.push(text.into());
        }
    }

    pub(super) fn note(&mut self, subject: Subject, fact: Fact) {
        let source = self.sources.len().saturating_sub(1);
        self.notes.push(Note { scope: self.scope, subject, fact, source });
    }

    /// Notes a text, if there is one.
    pub(super) fn note_text(&mut self, subject: &Subject, text: Option<&str>, fact: fn(String) -> Fact) {
        if let Some(text) = text {
            self.note(subject.clone(), fact(text.to_owned()));
        }
    }

    /// Notes an instant, if there is one.
    pub(super) fn note_at(&mut self, subject: &Subject, milestone: Milestone, at: Option<Instant>, exact: bool) {
        if let Some(at) = at {
            self.note(subject.clone(), Fact::At(milestone, at, exact));
        }
    }

    /// A source has facts of this kind, or would have them, had there been any.
    pub(super) fn recorded(&mut self, kind: FactKind) {
        self.recorded.insert(kind);
    }

    /// The facts of a kind; `None` if no source has any and none would.
    fn table<T>(&self, kind: FactKind, facts: Vec<T>) -> Option<Vec<T>> {
        (!facts.is_empty() || self.recorded.contains(&kind)).then_some(facts)
    }

    /// The pod of this name, to be told more of.
    pub(super) fn pod(&mut self, name: &str) -> &mut PodLife {
        let pod = self.pods.entry((self.scope, name.to_owned()));
        pod.or_insert_with(|| PodLife { name: name.to_owned(), ..PodLife::default() })
    }

    /// A pod turned Ready when it must have been Ready before, so that nothing says how long its application took to start.
    pub(super) fn came_back(&mut self, name: String) {
        self.came_back.entry(self.sources.len().saturating_sub(1)).or_default().insert(name);
    }

    pub(super) fn pull(&mut self, pull: ImagePull) {
        self.pulls.push(pull);
    }

    pub(super) fn shortage(&mut self, shortage: Shortage) {
        self.shortages.push(shortage);
    }

    pub(super) fn load(&mut self, load: LoadSample) {
        self.loads.push(load);
    }

    /// Loads are rates of counters that were sampled.
    pub(super) fn sampled(&mut self) {
        self.sampled = true;
    }

    /// A source would say why a node ended, had one, over the whole time of the record.
    pub(super) fn tells_ends(&mut self) {
        self.all_ends.insert(self.scope);
        self.recorded(FactKind::Shortages);
    }

    /// A log says something at this instant: up to then it would have said why a node ended.
    pub(super) fn logged(&mut self, at: Instant) {
        self.would_tell(at, true, true);
    }

    /// An event was counted last at this instant: up to then there would be those of nodes that ended.
    pub(super) fn happened(&mut self, at: Instant, of_node: bool) {
        self.would_tell(at, of_node, false);
    }

    fn would_tell(&mut self, at: Instant, of_nodes: bool, kept: bool) {
        if of_nodes {
            self.recorded(FactKind::Shortages);
        }
        let new = Ends { window: Window { from: at, until: at }, of_nodes, kept };
        let ends = self.ends.entry(self.sources.len()).or_insert(new);
        ends.window = Window { from: ends.window.from.min(at), until: ends.window.until.max(at) };
        ends.of_nodes |= of_nodes;
    }

    /// The stretches of a window in which a source tells why nodes ended, in order; no two overlap.
    fn ends_within(&self, scope: usize, window: Window) -> Vec<Window> {
        let mut told = self.ends.values().filter(|end| end.of_nodes);
        let is_stated = self.windows.contains_key(&0);
        if self.all_ends.contains(&scope) || scope == 0 && is_stated && told.clone().any(|ends| ends.kept) {
            return vec![window];
        }
        let mut all: Vec<Window> = Vec::new();
        if scope == 0 {
            all.extend(told.by_ref().map(|ends| ends.window));
        }
        all.sort_by_key(|item| (item.from, item.until));
        all.dedup_by(|next, item| {
            let overlap = next.from <= item.until;
            item.until = if overlap { item.until.max(next.until) } else { item.until };
            overlap
        });
        all
    }

    pub(super) fn stage(&mut self, stage: StageTimes) {
        self.stages.push(stage);
    }

    /// When reclaims were counted; none may have been.
    pub(super) fn reclaims(&mut self, at: impl IntoIterator<Item = Instant>) {
        self.reclaims.get_or_insert_default().extend(at);
    }

    pub(super) fn node_class(&mut self, name: &str, family: &str) {
        self.node_classes.insert(name.to_owned(), family.to_owned());
    }

    /// The history that comes of it.
    pub(super) fn conclude(mut self) -> History {
        let names = self.names();
        let mut drafts: BTreeMap<(usize, String), Draft> = BTreeMap::new();
        for note in &self.notes {
            let name = match &note.subject {
                Subject::Claim(name) => Some(name),
                other => names.get(&(note.scope, other.clone())),
            };
            let Some(name) = name else { continue };
            drafts.entry((note.scope, name.clone())).or_default().add(note);
        }
        let this_window = self.own_window(&drafts);
        let mut ends: BTreeMap<usize, Vec<Window>> = BTreeMap::new();
        let mut history = History {
            simulated: !self.windows.is_empty() && drafts.keys().all(|(scope, _)| *scope > 0),
            node_classes: std::mem::take(&mut self.node_classes),
            ..History::default()
        };
        let mut ready: BTreeMap<(usize, String), Instant> = BTreeMap::new();
        let mut lives = Vec::new();
        for ((scope, name), draft) in drafts {
            let window = if scope == 0 { this_window } else { self.windows.get(&scope).copied().or(this_window) };
            let Some(window) = window else { continue };
            let ends = ends.entry(scope).or_insert_with(|| self.ends_within(scope, window)).clone();
            let (life, disagreements, impossible) = draft.conclude(name, (window, ends), &self.sources);
            for (source, text) in impossible {
                if let Some(source) = self.sources.get_mut(source) {
                    source.notes.push(text);
                }
            }
            ready.extend(life.ready().map(|at| ((scope, life.name.clone()), at)));
            lives.push(life);
            history.disagreements.extend(disagreements);
        }
        for (source, pods) in std::mem::take(&mut self.came_back) {
            let pods = counted(pods.len() as u64, "pod", "pods");
            if let Some(source) = self.sources.get_mut(source) {
                source
                    .notes
                    .push(format!("{pods} came to Ready again, long after the containers had started: left out"));
            }
        }
        self.pulls.sort_by(|a, b| (a.at, &a.pod, &a.image).cmp(&(b.at, &b.pod, &b.image)));
        // Dumps of events overlap.
        self.pulls.dedup_by(|a, b| (a.at, &a.pod, &a.image) == (b.at, &b.pod, &b.image));
        for pull in &mut self.pulls {
            let pod = self.pods.get(&(0, pull.pod.clone()));
            pull.node = pull.node.take().or_else(|| pod.and_then(|pod| pod.node.clone()));
        }
        self.shortages.sort_by_key(|shortage| shortage.at);
        let pods = std::mem::take(&mut self.pods).into_iter();
        let pods = pods.map(|((scope, _), pod)| of_its_run(scope, pod, &ready)).collect();
        let (shortages, loads, stages) =
            (std::mem::take(&mut self.shortages), std::mem::take(&mut self.loads), std::mem::take(&mut self.stages));
        history.lives = self.table(FactKind::Nodes, lives);
        history.pods = self.table(FactKind::Pods, pods);
        history.shortages = self.table(FactKind::Shortages, shortages);
        history.loads = self.table(FactKind::Loads, loads);
        history.stages = self.table(FactKind::Stages, stages);
        (history.pulls, history.sources, history.sampled) = (self.pulls, self.sources, self.sampled);
        history.ends_told = !self.all_ends.is_empty() || self.ends.values().any(|end| end.of_nodes);
        history.reclaims = self.reclaims;
        history
    }

    /// The claim of each node and each instance.
    fn names(&self) -> BTreeMap<(usize, Subject), String> {
        let mut names = BTreeMap::new();
        for note in &self.notes {
            let Subject::Claim(claim) = &note.subject else { continue };
            let other = match &note.fact {
                Fact::Node(node) => Subject::Node(node.clone()),
                Fact::Instance(instance) => Subject::Instance(instance.clone()),
                _ => continue,
            };
            names.entry((note.scope, other)).or_insert_with(|| claim.clone());
        }
        names
    }

    /// The window of the cluster's own sources: what the user states, else from the first to the last instant that was recorded. What
    /// claims had behind them when the record began says nothing about when it did.
    fn own_window(&self, drafts: &BTreeMap<(usize, String), Draft>) -> Option<Window> {
        if let Some(stated) = self.windows.get(&0) {
            return Some(*stated);
        }
        let mut instants = BTreeSet::new();
        for draft in drafts.iter().filter(|((scope, _), _)| *scope == 0).map(|(_, draft)| draft) {
            let seen = draft.sightings.iter().filter(|(milestone, _)| !draft.truncated || is_late(**milestone));
            instants.extend(seen.flat_map(|(_, sightings)| sightings.iter().map(|sighting| sighting.at)));
        }
        instants.extend(self.pulls.iter().map(|pull| pull.at));
        instants.extend(self.shortages.iter().map(|shortage| shortage.at));
        let all = drafts.values().flat_map(|draft| draft.sightings.values().flatten().map(|sighting| sighting.at));
        let last = instants.last().copied().or_else(|| all.max())?;
        let first = instants.first().copied().unwrap_or(last);
        Some(Window { from: first, until: last })
    }
}

/// A pod whose node is told apart from nodes of the same name in other runs.
fn of_its_run(scope: usize, mut pod: PodLife, ready: &BTreeMap<(usize, String), Instant>) -> PodLife {
    pod.of_tables = scope > 0;
    if scope > 0 {
        pod.node_ready = pod.node.as_ref().and_then(|node| ready.get(&(scope, node.clone()))).copied();
        pod.node = pod.node.map(|node| format!("{node} of run {scope}"));
    }
    pod
}

/// Whether a claim that was there when the record began may come to the milestone within it.
fn is_late(milestone: Milestone) -> bool {
    matches!(milestone, Milestone::DeletionAsked | Milestone::Terminating | Milestone::Gone)
}

#[derive(Clone, Copy)]
struct Sighting {
    at: Instant,
    exact: bool,
    source: usize,
}

/// A life that is being put together.
#[derive(Default)]
struct Draft {
    sightings: BTreeMap<Milestone, Vec<Sighting>>,
    pool: Option<String>,
    node_class: Option<String>,
    instance_type: Option<String>,
    zone: Option<String>,
    capacity_type: Option<String>,
    image: Option<String>,
    end: Option<End>,
    truncated: bool,
    sampled: bool,
}

impl Draft {
    fn add(&mut self, note: &Note) {
        let text = |slot: &mut Option<String>, text: &String| *slot = slot.take().or_else(|| Some(text.clone()));
        match &note.fact {
            Fact::At(milestone, at, exact) => {
                let sightings = self.sightings.entry(*milestone).or_default();
                // A condition that flapped shows its last change in later lines: what each source said first counts.
                if sightings.iter().all(|known| known.source != note.source) {
                    sightings.push(Sighting { at: *at, exact: *exact, source: note.source });
                }
            }
            Fact::Pool(name) => text(&mut self.pool, name),
            Fact::NodeClass(name) => text(&mut self.node_class, name),
            Fact::InstanceType(name) => text(&mut self.instance_type, name),
            Fact::Zone(name) => text(&mut self.zone, name),
            Fact::CapacityType(name) => text(&mut self.capacity_type, name),
            Fact::Image(name) => text(&mut self.image, name),
            Fact::Node(_) | Fact::Instance(_) => {}
            // EC2's own word outweighs what a controller made of it.
            Fact::End(End::Interrupted) => self.end = Some(End::Interrupted),
            Fact::End(end) => self.end = self.end.take().or_else(|| Some(end.clone())),
            Fact::Truncated => self.truncated = true,
            Fact::Sampled => self.sampled = true,
        }
    }

    /// The life, what sources say otherwise, and what one says that cannot be.
    fn conclude(
        self,
        name: String,
        (window, ends): (Window, Vec<Window>),
        sources: &[SourceUse],
    ) -> (Life, Vec<Disagreement>, Vec<Impossible>) {
        let called = |source: usize| sources.get(source).map_or_else(String::new, |source| source.file.clone());
        let mut milestones = BTreeMap::new();
        let mut disagreements = Vec::new();
        for (milestone, sightings) in &self.sightings {
            let best = sightings.iter().min_by_key(|sighting| (!sighting.exact, sighting.source));
            let Some(best) = best else { continue };
            milestones.insert(*milestone, best.at);
            for other in sightings.iter().filter(|other| best.at.seconds_since(other.at).abs() > AGREEMENT) {
                disagreements.push(Disagreement {
                    claim: name.clone(),
                    milestone: *milestone,
                    used: (best.at, called(best.source)),
                    other: (other.at, called(other.source)),
                });
            }
        }
        let impossible = self.impossible(&name, &mut milestones);
        // Launched before the record began: whatever ended earlier is not in it.
        let launched = milestones.get(&Milestone::Launched).is_some_and(|at| *at < window.from);
        let life = Life {
            name,
            pool: self.pool,
            node_class: self.node_class,
            instance_type: self.instance_type,
            zone: self.zone,
            capacity_type: self.capacity_type,
            image: self.image,
            milestones,
            end: self.end,
            truncated: self.truncated || launched,
            sampled: self.sampled,
            window,
            ends,
        };
        (life, disagreements, impossible)
    }

    /// Takes out milestones at which a claim cannot have come: before it was made, and Ready long after Karpenter had seen it Ready, which is a
    /// condition that came back.
    fn impossible(&self, name: &str, milestones: &mut BTreeMap<Milestone, Instant>) -> Vec<Impossible> {
        let made = milestones.get(&Milestone::Created).or(milestones.get(&Milestone::Launched)).copied();
        let initialized = milestones.get(&Milestone::Initialized).copied();
        let mut told = Vec::new();
        milestones.retain(|milestone, at| {
            let too_early = made.is_some_and(|made| at.seconds_since(made) < -AGREEMENT);
            let came_back = *milestone == Milestone::Ready
                && initialized.is_some_and(|initialized| at.seconds_since(initialized) > CAME_BACK);
            if too_early || came_back {
                let source = self.sightings.get(milestone).and_then(|all| all.first()).map_or(0, |item| item.source);
                let why = if too_early { "before it was made" } else { "again, long after it was initialized" };
                told.push((source, format!("{name} came to {} {why}: left out", milestone.as_str())));
            }
            !too_early && !came_back
        });
        told
    }
}

/// A source, and what it says that cannot be.
type Impossible = (usize, String);
