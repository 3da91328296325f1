//! Every decision of a run with its cause, and what came from outside.
//!
//! Most causes differ in their numbers alone, so a cause is a pattern and the numbers that go into it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::encode::tenths;
use crate::domain::SimTime;
use crate::domain::words::counted;
use nodecast_world::Outcome;
use nodecast_world::record::{Event, EventKind};

/// Characters of a cause.
const CAUSE_MAX: usize = 400;
/// Stands for a number within a pattern.
const GAP: char = '\u{1}';
/// Longest run of digits that is a number to every reader of JSON.
const DIGITS_MAX: usize = 15;

/// The decisions of a run, in order.
#[derive(Serialize)]
pub(super) struct Decisions {
    /// How many there were; fewer may be listed.
    in_all: usize,
    /// Kinds and the groups that they belong to.
    kinds: Vec<(&'static str, &'static str)>,
    patterns: Vec<String>,
    /// Time since the row before, kind, node, workload, pattern; then what goes into the pattern.
    rows: Vec<Vec<Cell>>,
}

/// A number, or digits that are none.
#[derive(Serialize)]
#[serde(untagged)]
enum Cell {
    Number(i64),
    Digits(String),
}

/// Which of the page's filters a kind belongs to; nothing for the steps of a life, which follow from decisions.
const fn group(kind: EventKind) -> Option<&'static str> {
    use EventKind as K;
    match kind {
        K::ReplicasSet
        | K::Rescaled
        | K::RescaleFailed
        | K::ScaleTargetActivated
        | K::ScaleTargetDeactivated
        | K::JobsCreated
        | K::JobFailed
        | K::PodFailed
        | K::RolloutStarted
        | K::RolloutFinished
        | K::RolloutStalled
        | K::TriggerFailed
        | K::TriggerRecovered => Some("replicas"),
        K::ClaimsComputed
        | K::PodNotPlaced
        | K::ClaimCreated
        | K::LaunchRequested
        | K::InstanceLaunched
        | K::LaunchFailed
        | K::LaunchAborted
        | K::SpotFallback
        | K::CallThrottled
        | K::CallFailed
        | K::DesiredCapacitySet
        | K::ScaledUpGroup
        | K::NotTriggerScaleUp
        | K::FailedToScaleUpGroup
        | K::AutoscalingHeldBack
        | K::ScalingActivityFailed => Some("launches"),
        K::NodeEmpty
        | K::NodeInUse
        | K::NodeDrifted
        | K::CommandProposed
        | K::CommandRejected
        | K::CommandStarted
        | K::CommandSucceeded
        | K::CommandFailed
        | K::NodeDisrupted
        | K::DeleteUnregistered
        | K::PodEvicted => Some("removals"),
        K::ManifestApplied
        | K::ControlPlaneUpgraded
        | K::ControlPlaneTierChanged
        | K::RebalanceRecommended
        | K::InterruptionNotice
        | K::InstanceReclaimed
        | K::NodeUnreachable
        | K::CreditsSpent
        | K::NodeReachable
        | K::FaultBegan
        | K::FaultEnded
        | K::LoadStarted
        | K::LoadFinished => Some("outside"),
        _ => None,
    }
}

impl Decisions {
    /// The decisions of `outcome` in about `bytes` bytes; where they are too many, those of the most frequent kinds end early.
    pub(super) fn new(outcome: &Outcome, bytes: usize) -> Self {
        let record = &outcome.record;
        let decided = || folded(record.events.iter().filter(|event| group(event.kind).is_some()));
        let (in_all, mut room) = room(decided().map(|(event, message)| (event.kind, cost(&message))), bytes);
        let mut found = Self { in_all, kinds: Vec::new(), patterns: Vec::new(), rows: Vec::new() };
        let (mut kinds, mut patterns) = (BTreeMap::new(), FxHashMap::default());
        let (mut pattern, mut gaps) = (String::new(), Vec::new());
        let mut before = 0;
        for (event, message) in decided() {
            if !room.get_mut(&event.kind).is_some_and(|room| room.takes(cost(&message))) {
                continue;
            }
            let at = tenths(event.at);
            let kind = *kinds.entry(event.kind).or_insert_with(|| {
                found.kinds.push((event.kind.as_str(), group(event.kind).unwrap_or_default()));
                found.kinds.len() - 1
            });
            take_apart(&message, &mut pattern, &mut gaps);
            let known = patterns.get(pattern.as_str()).copied();
            let pattern = known.unwrap_or_else(|| {
                patterns.insert(pattern.clone(), found.patterns.len());
                found.patterns.push(pattern.clone());
                found.patterns.len() - 1
            });
            let id = |id: Option<usize>| Cell::Number(id.map_or(-1, |id| id as i64));
            let mut row = Vec::with_capacity(5 + gaps.len());
            row.extend([
                Cell::Number(at - std::mem::replace(&mut before, at)),
                id(Some(kind)),
                id(event.node.map(|node| node.index())),
                id(event.workload.map(|workload| workload.index())),
                id(Some(pattern)),
            ]);
            row.append(&mut gaps);
            found.rows.push(row);
        }
        found
    }
}

/// An event, and what is told of it.
type EventText<'e> = (Event<'e>, Cow<'e, str>);

/// The events with the manifests of one instant in one: a cluster begins with dozens of them.
fn folded<'e>(events: impl Iterator<Item = Event<'e>> + Clone) -> impl Iterator<Item = EventText<'e>> {
    let mut applied: BTreeMap<SimTime, u64> = BTreeMap::new();
    for event in events.clone().filter(|event| event.kind == EventKind::ManifestApplied) {
        *applied.entry(event.at).or_default() += 1;
    }
    let of_one_instant = move |event: Event<'e>| {
        if event.kind != EventKind::ManifestApplied {
            return Some((event, Cow::Borrowed(event.message)));
        }
        match applied.get_mut(&event.at).map_or(0, std::mem::take) {
            0 => None,
            1 => Some((event, Cow::Borrowed(event.message))),
            count => {
                let message = format!("{} applied", counted(count, "manifest", "manifests"));
                Some((Event { workload: None, ..event }, Cow::Owned(message)))
            }
        }
    };
    events.filter_map(of_one_instant)
}

/// About how many bytes an event with this message takes.
fn cost(message: &str) -> usize {
    15 + 3 * message.bytes().filter(u8::is_ascii_digit).count() / 2
}

/// How much of a kind's events there is room for.
enum EventBudget {
    /// All of them.
    Whole,
    /// The first of them that take no more bytes than this together.
    Bytes(usize),
}

impl EventBudget {
    /// Whether the next event of the kind, of so many bytes, fits.
    fn takes(&mut self, bytes: usize) -> bool {
        let Self::Bytes(left) = self else { return true };
        let after = left.checked_sub(bytes);
        // Where one has no room, no later one has.
        *left = after.unwrap_or(0);
        after.is_some()
    }
}

/// How many events there are, and what room each kind of them has: all of the rarest kind, then of the next, until there is no more
/// room; kinds behind have none. There may be a million events, so that they are gone through rather than listed.
fn room(events: impl Iterator<Item = (EventKind, usize)>, bytes: usize) -> (usize, BTreeMap<EventKind, EventBudget>) {
    let mut sums: BTreeMap<EventKind, (usize, usize)> = BTreeMap::new();
    for (kind, cost) in events {
        let (count, sum) = sums.entry(kind).or_default();
        (*count, *sum) = (*count + 1, *sum + cost);
    }
    let in_all = sums.values().map(|(count, _)| count).sum();
    let mut by_count: Vec<(EventKind, (usize, usize))> = sums.into_iter().collect();
    by_count.sort_by_key(|(_, (count, _))| *count);
    let (mut left, mut rooms) = (bytes, BTreeMap::new());
    for (kind, (_, sum)) in by_count {
        let Some(after) = left.checked_sub(sum) else {
            rooms.insert(kind, EventBudget::Bytes(left));
            break;
        };
        left = after;
        rooms.insert(kind, EventBudget::Whole);
    }
    (in_all, rooms)
}

/// Puts `cause` with a gap for each run of digits into `pattern`, and what stands in the gaps into `gaps`.
fn take_apart(cause: &str, pattern: &mut String, gaps: &mut Vec<Cell>) {
    let shown = shown(cause);
    pattern.clear();
    gaps.clear();
    let mut rest = &*shown;
    while let Some(at) = rest.find(|character: char| character.is_ascii_digit()) {
        let (text, from) = rest.split_at(at);
        let (digits, after) =
            from.split_at(from.find(|character: char| !character.is_ascii_digit()).unwrap_or(from.len()));
        pattern.push_str(text);
        pattern.push(GAP);
        gaps.push(gap(digits));
        rest = after;
    }
    pattern.push_str(rest);
}

/// As much of `cause` as the page shows, without the character that stands for a gap.
fn shown(cause: &str) -> Cow<'_, str> {
    if cause.len() <= CAUSE_MAX && !cause.contains(GAP) {
        return Cow::Borrowed(cause);
    }
    let mut shown: String = cause.chars().filter(|character| *character != GAP).take(CAUSE_MAX).collect();
    if shown.len() < cause.len() {
        shown.push('\u{2026}');
    }
    Cow::Owned(shown)
}

/// A run of digits: a number where it reads like one.
fn gap(digits: &str) -> Cell {
    let is_number = digits.len() <= DIGITS_MAX && (digits == "0" || !digits.starts_with('0'));
    digits.parse().ok().filter(|_| is_number).map_or_else(|| Cell::Digits(digits.to_owned()), Cell::Number)
}

#[cfg(test)]
mod tests {
    use super::{Cell, GAP, room, take_apart};
    use nodecast_world::record::EventKind;

    #[test]
    fn decision_cause_round_trips_through_its_pattern() {
        for cause in ["1 to 22 replicas: cpu 33%/30%", "", "node-00012 at 0.0960 for 12345678901234567890", "no number"]
        {
            let (mut pattern, mut gaps) = (String::new(), Vec::new());
            take_apart(cause, &mut pattern, &mut gaps);
            let mut gaps = gaps.into_iter().map(|gap| match gap {
                Cell::Number(number) => number.to_string(),
                Cell::Digits(digits) => digits,
            });
            let mut whole = String::new();
            for character in pattern.chars() {
                if character == GAP { whole += &gaps.next().unwrap() } else { whole.push(character) }
            }
            assert_eq!(whole, cause);
        }
    }

    #[test]
    fn rarest_event_kinds_are_listed_in_full() {
        let (rare, often, most) = (EventKind::FaultBegan, EventKind::CommandStarted, EventKind::Rescaled);
        let events = [(most, 20), (often, 30), (rare, 40), (most, 20), (often, 30), (most, 20)];
        let (in_all, mut rooms) = room(events.into_iter(), 89);
        let mut told = Vec::new();
        for (kind, cost) in events {
            told.push(rooms.get_mut(&kind).is_some_and(|room| room.takes(cost)));
        }
        assert_eq!((in_all, told), (6, vec![false, true, true, false, false, false]));
    }
}
