//! What an answer leaves out or assumes, each with what that can do to it.
//!
//! Whoever finds such a thing says what it can do; nothing reads it out of the sentence later. What must not live here: the sentences.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::lints::{Lint, LintId, file};
use nodecast_model::domain::words::counted;
use nodecast_model::text::error::{Effect, Warning};

/// A sentence on what is left out or assumed, with its lint and what that can do to the answer. It is used as the sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caveat {
    effect: Effect,
    id: Option<LintId>,
    text: String,
}

impl Caveat {
    /// A sentence of a lint.
    pub fn new(lint: &'static Lint, text: impl Into<String>) -> Self {
        Self { effect: lint.level(), id: Some(lint.id()), text: text.into() }
    }

    /// What it can do to the answer.
    pub fn effect(&self) -> Effect {
        self.effect
    }

    /// The id of its lint. Files of earlier releases have none.
    pub fn id(&self) -> Option<LintId> {
        self.id
    }
}

/// That of a warning about a scenario, with its place.
impl From<&Warning> for Caveat {
    fn from(warning: &Warning) -> Self {
        let text = match warning.place() {
            Some(place) => format!("{}:{}:{}: {}", place.file, place.line, place.column, warning.message()),
            None => warning.message().to_owned(),
        };
        Self { effect: warning.effect(), id: warning.lint().map(Lint::id), text }
    }
}

impl Deref for Caveat {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

/// The sentence with the id of its lint, as people read it.
impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        self.id.map_or(Ok(()), |id| write!(f, " [{id}]"))
    }
}

/// Caveats, those with the most effect first, of equals in the order in which they were found; each sentence once. Lints that the scenario
/// allows are silenced: their sentences are dropped, their ids kept.
///
/// In JSON they are lists of an object, to be flattened into it: `warnings`, the sentences, `warning_effects` and `warning_ids`, the effect and
/// the lint of each, and `silenced_warnings`, where there are any.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(from = "Lists", into = "Lists")]
pub struct Caveats {
    list: Vec<Caveat>,
    allowed: Vec<LintId>,
    silenced: BTreeSet<LintId>,
}

/// The same as files have it.
#[derive(Serialize, Deserialize, schemars::JsonSchema)]
struct Lists {
    warnings: Vec<String>,
    /// Files of earlier releases have none.
    #[serde(default)]
    warning_effects: Vec<Effect>,
    #[serde(default)]
    warning_ids: Vec<Option<LintId>>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    silenced_warnings: BTreeSet<LintId>,
}

impl From<Lists> for Caveats {
    fn from(lists: Lists) -> Self {
        let effects = lists.warning_effects.into_iter().chain(std::iter::repeat(Effect::MayChangeAnswer));
        let ids = lists.warning_ids.into_iter().chain(std::iter::repeat(None));
        let caveats = lists.warnings.into_iter().zip(effects).zip(ids);
        let all: Self = caveats.map(|((text, effect), id)| Caveat { effect, id, text }).collect();
        Self { silenced: lists.silenced_warnings, ..all }
    }
}

impl From<Caveats> for Lists {
    fn from(all: Caveats) -> Self {
        Self {
            warning_effects: all.list.iter().map(Caveat::effect).collect(),
            warning_ids: all.list.iter().map(Caveat::id).collect(),
            warnings: all.list.into_iter().map(|caveat| caveat.text).collect(),
            silenced_warnings: all.silenced,
        }
    }
}

impl Caveats {
    /// None.
    pub const fn new() -> Self {
        Self { list: Vec::new(), allowed: Vec::new(), silenced: BTreeSet::new() }
    }

    /// None, where the scenario allows these lints, and `silenced` of them applied as it was read.
    pub fn allowing(allowed: &[LintId], silenced: &BTreeSet<LintId>) -> Self {
        Self { list: Vec::new(), allowed: allowed.to_vec(), silenced: silenced.clone() }
    }

    /// Those of warnings about a scenario, with their places.
    pub fn from_warnings(warnings: &[Warning]) -> Self {
        warnings.iter().map(Caveat::from).collect()
    }

    /// Adds a sentence of a lint, unless it is there or the scenario allows the lint.
    pub fn add(&mut self, lint: &'static Lint, text: impl Into<String>) {
        self.push(Caveat::new(lint, text));
    }

    /// Adds one behind those of at least its effect, unless its sentence is there or its lint is allowed.
    fn push(&mut self, caveat: Caveat) {
        if let Some(id) = caveat.id.filter(|id| self.allowed.contains(id)) {
            self.silenced.insert(id);
            return;
        }
        if self.list.iter().any(|known| known.text == caveat.text) {
            return;
        }
        let place = self.list.partition_point(|known| known.effect <= caveat.effect);
        self.list.insert(place, caveat);
    }

    /// Adds those of another list, and what it has silenced.
    pub fn merge(&mut self, others: &Self) {
        self.silenced.extend(&others.silenced);
        self.extend(&others.list);
    }

    /// Warns of allowed lints that did not apply. Call it once all others are there.
    pub fn add_unused(&mut self) {
        let unused: Vec<LintId> = self.allowed.iter().filter(|id| !self.silenced.contains(id)).copied().collect();
        for id in unused {
            self.add(&file::UNUSED_ALLOW, format!("`allow` lists {id}, which did not apply. Remove it"));
        }
    }

    /// The lints that were silenced.
    pub fn silenced(&self) -> &BTreeSet<LintId> {
        &self.silenced
    }

    /// A sentence on what was silenced, if anything was.
    pub fn about_silenced(&self) -> Option<String> {
        let count = counted(self.silenced.len() as u64, "kind of warning", "kinds of warnings");
        let ids: Vec<String> = self.silenced.iter().map(LintId::to_string).collect();
        (!ids.is_empty()).then(|| format!("{count} silenced by `allow`: {}", ids.join(", ")))
    }

    /// Puts others before those of their effect.
    pub fn precede(&mut self, others: Self) {
        let after = std::mem::take(&mut self.list);
        self.merge(&others);
        self.extend(after);
    }

    /// Those that are about more than what changes nothing.
    pub fn telling(&self) -> impl Iterator<Item = &Caveat> {
        self.list.iter().filter(|caveat| caveat.effect != Effect::Harmless)
    }

    /// Those that change nothing.
    pub fn harmless_ones(&self) -> impl Iterator<Item = &Caveat> {
        self.list.iter().filter(|caveat| caveat.effect == Effect::Harmless)
    }

    /// The sentences with the ids of their lints.
    pub fn lines(&self) -> Vec<String> {
        self.list.iter().map(ToString::to_string).collect()
    }

    /// The sentences alone, without the ids of their lints.
    pub fn texts(&self) -> Vec<String> {
        self.list.iter().map(|item| item.text.clone()).collect()
    }
}

impl Deref for Caveats {
    type Target = [Caveat];

    fn deref(&self) -> &[Caveat] {
        &self.list
    }
}

impl Extend<Caveat> for Caveats {
    fn extend<I: IntoIterator<Item = Caveat>>(&mut self, others: I) {
        others.into_iter().for_each(|caveat| self.push(caveat));
    }
}

impl<'a> Extend<&'a Caveat> for Caveats {
    fn extend<I: IntoIterator<Item = &'a Caveat>>(&mut self, others: I) {
        self.extend(others.into_iter().cloned());
    }
}

impl FromIterator<Caveat> for Caveats {
    fn from_iter<I: IntoIterator<Item = Caveat>>(all: I) -> Self {
        let mut caveats = Self::new();
        caveats.extend(all);
        caveats
    }
}

impl<'a> IntoIterator for &'a Caveats {
    type Item = &'a Caveat;
    type IntoIter = std::slice::Iter<'a, Caveat>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.iter()
    }
}

impl IntoIterator for Caveats {
    type Item = Caveat;
    type IntoIter = std::vec::IntoIter<Caveat>;

    fn into_iter(self) -> Self::IntoIter {
        self.list.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{Caveats, Effect};

    use crate::lints::{file, outcome, setup};

    #[test]
    fn caveats_stand_in_order_of_effect() -> Result<(), serde_json::Error> {
        let mut all = Caveats::new();
        all.add(&setup::LARGE_RUN, "not simulated and never billed");
        all.add(&file::LATE_STEP, "odd");
        all.add(&setup::QUEUE_MISSING, "first");
        all.add(&setup::PODS_IGNORED, "unused");
        all.add(&setup::QUEUE_MISSING, "second");
        all.add(&setup::LARGE_RUN, "odd");
        assert_eq!(all.texts(), ["unused", "first", "second", "odd", "not simulated and never billed"]);
        assert_eq!((all.telling().count(), all.harmless_ones().count()), (4, 1));
        let mut others = Caveats::new();
        others.add(&setup::QUEUE_MISSING, "zeroth");
        all.precede(others);
        assert_eq!(all.texts()[..3], ["unused", "zeroth", "first"]);
        assert_eq!(all[0].to_string(), format!("unused [{}]", setup::PODS_IGNORED.id()));

        let text = serde_json::to_string(&all)?;
        assert_eq!(serde_json::from_str::<Caveats>(&text)?, all);
        assert!(text.contains(r#""warning_effects":["changes_answer","may_change_answer""#), "{text}");
        assert!(!text.contains("silenced"), "{text}");
        // As releases wrote it that knew no effects and no lints.
        let earlier: Caveats = serde_json::from_str(r#"{"warnings": ["a", "b"]}"#)?;
        assert_eq!(earlier.texts(), ["a", "b"]);
        assert!(earlier.iter().all(|earlier| earlier.effect() == Effect::MayChangeAnswer && earlier.id().is_none()));
        Ok(())
    }

    #[test]
    fn allowed_lints_are_silenced_and_unused_ones_reported() -> Result<(), serde_json::Error> {
        let (idle, gates) = (outcome::IDLE_FAULT.id(), setup::SCHEDULING_GATES.id());
        let mut all = Caveats::allowing(&[idle, gates], &[].into());
        all.add(&outcome::IDLE_FAULT, "a fault");
        all.add(&setup::PODS_IGNORED, "pods");
        assert_eq!(all.texts(), ["pods"]);
        assert_eq!(all.about_silenced(), Some(format!("1 kind of warning silenced by `allow`: {idle}")));
        let mut later = Caveats::new();
        later.add(&setup::SCHEDULING_GATES, "gates");
        all.precede(later);
        assert_eq!((all.texts().len(), all.silenced().len()), (1, 2));
        all.add_unused();
        assert_eq!(all.len(), 1, "both applied");
        let read: Caveats = serde_json::from_str(&serde_json::to_string(&all)?)?;
        assert_eq!(read.silenced(), all.silenced());

        let mut none = Caveats::allowing(&[gates], &[].into());
        none.add_unused();
        assert_eq!(none.texts(), [format!("`allow` lists {gates}, which did not apply. Remove it")]);
        Ok(())
    }
}
