//! What an answer leaves out or assumes, each with what that can do to it.
//!
//! Whoever finds such a thing says what it can do; nothing reads it out of the sentence later. What must not live here: the sentences.

use std::fmt;
use std::ops::Deref;

use serde::{Deserialize, Serialize};

use nodecast_model::text::error::{Effect, Warning};

/// A sentence on what is left out or assumed, and what that can do to the answer. It is used as the sentence.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caveat {
    effect: Effect,
    text: String,
}

impl Caveat {
    /// A sentence with its effect.
    pub fn new(effect: Effect, text: impl Into<String>) -> Self {
        Self { effect, text: text.into() }
    }

    /// What it can do to the answer.
    pub fn effect(&self) -> Effect {
        self.effect
    }
}

impl Deref for Caveat {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl AsRef<str> for Caveat {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Caveat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Caveats, those with the most effect first, of equals in the order in which they were found; each sentence once.
///
/// In JSON they are two lists of an object, to be flattened into it: `warnings`, the sentences, and `warning_effects`, the effect of each.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(from = "Lists", into = "Lists")]
pub struct Caveats(Vec<Caveat>);

/// The same as files have it.
#[derive(Serialize, Deserialize)]
struct Lists {
    warnings: Vec<String>,
    /// Files of earlier releases have none.
    #[serde(default)]
    warning_effects: Vec<Effect>,
}

impl From<Lists> for Caveats {
    fn from(lists: Lists) -> Self {
        let effects = lists.warning_effects.into_iter().chain(std::iter::repeat(Effect::MayChangeAnswer));
        lists.warnings.into_iter().zip(effects).map(|(text, effect)| Caveat { effect, text }).collect()
    }
}

impl From<Caveats> for Lists {
    fn from(all: Caveats) -> Self {
        let (warning_effects, warnings) = all.0.into_iter().map(|own| (own.effect, own.text)).unzip();
        Self { warnings, warning_effects }
    }
}

impl Caveats {
    /// None.
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// Those of warnings about a scenario, with their places.
    pub fn of(warnings: &[Warning]) -> Self {
        let caveat = |own: &Warning| match own.place() {
            Some(place) => {
                Caveat::new(own.effect(), format!("{}:{}:{}: {}", place.file, place.line, place.column, own.message()))
            }
            None => Caveat::new(own.effect(), own.message()),
        };
        warnings.iter().map(caveat).collect()
    }

    /// Adds one behind those of at least its effect, unless its sentence is there.
    pub fn add(&mut self, own: Caveat) {
        if self.0.iter().any(|known| known.text == own.text) {
            return;
        }
        let place = self.0.partition_point(|known| known.effect <= own.effect);
        self.0.insert(place, own);
    }

    /// Adds one that changes the answer.
    pub fn changes(&mut self, text: impl Into<String>) {
        self.add(Caveat::new(Effect::ChangesAnswer, text));
    }

    /// Adds one that may change it.
    pub fn may_change(&mut self, text: impl Into<String>) {
        self.add(Caveat::new(Effect::MayChangeAnswer, text));
    }

    /// Adds one about the input, which is odd.
    pub fn of_input(&mut self, text: impl Into<String>) {
        self.add(Caveat::new(Effect::AboutInput, text));
    }

    /// Adds one that changes nothing.
    pub fn harmless(&mut self, text: impl Into<String>) {
        self.add(Caveat::new(Effect::Harmless, text));
    }

    /// Puts others before those of their effect.
    pub fn precede(&mut self, others: Self) {
        let after = std::mem::replace(self, others);
        self.extend(after);
    }

    /// Those that are about more than what changes nothing.
    pub fn telling(&self) -> impl Iterator<Item = &Caveat> {
        self.0.iter().filter(|own| own.effect != Effect::Harmless)
    }

    /// Those that change nothing.
    pub fn harmless_ones(&self) -> impl Iterator<Item = &Caveat> {
        self.0.iter().filter(|own| own.effect == Effect::Harmless)
    }

    /// The sentences.
    pub fn texts(&self) -> Vec<String> {
        self.0.iter().map(|own| own.text.clone()).collect()
    }
}

impl Deref for Caveats {
    type Target = [Caveat];

    fn deref(&self) -> &[Caveat] {
        &self.0
    }
}

impl Extend<Caveat> for Caveats {
    fn extend<I: IntoIterator<Item = Caveat>>(&mut self, others: I) {
        others.into_iter().for_each(|own| self.add(own));
    }
}

impl<'a> Extend<&'a Caveat> for Caveats {
    fn extend<I: IntoIterator<Item = &'a Caveat>>(&mut self, others: I) {
        self.extend(others.into_iter().cloned());
    }
}

impl FromIterator<Caveat> for Caveats {
    fn from_iter<I: IntoIterator<Item = Caveat>>(all: I) -> Self {
        let mut own = Self::new();
        own.extend(all);
        own
    }
}

impl<'a> IntoIterator for &'a Caveats {
    type Item = &'a Caveat;
    type IntoIter = std::slice::Iter<'a, Caveat>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

impl IntoIterator for Caveats {
    type Item = Caveat;
    type IntoIter = std::vec::IntoIter<Caveat>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::{Caveats, Effect};

    #[test]
    fn what_changes_the_answer_comes_first_whatever_the_words_and_the_order() -> Result<(), serde_json::Error> {
        let mut all = Caveats::new();
        all.harmless("not simulated and never billed");
        all.of_input("odd");
        all.may_change("first");
        all.changes("unused");
        all.may_change("second");
        all.harmless("odd");
        assert_eq!(all.texts(), ["unused", "first", "second", "odd", "not simulated and never billed"]);
        assert_eq!((all.telling().count(), all.harmless_ones().count()), (4, 1));
        let mut others = Caveats::new();
        others.may_change("zeroth");
        all.precede(others);
        assert_eq!(all.texts()[..3], ["unused", "zeroth", "first"]);

        let text = serde_json::to_string(&all)?;
        assert_eq!(serde_json::from_str::<Caveats>(&text)?, all);
        assert!(text.contains(r#""warning_effects":["changes_answer","may_change_answer""#), "{text}");
        // As releases wrote it that knew no effects.
        let earlier: Caveats = serde_json::from_str(r#"{"warnings": ["a", "b"]}"#)?;
        assert_eq!(earlier.texts(), ["a", "b"]);
        assert!(earlier.iter().all(|own| own.effect() == Effect::MayChangeAnswer));
        Ok(())
    }
}
