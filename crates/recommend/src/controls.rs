//! What a user may move of a scenario while he looks at the answer: the levers of a [recommendation](super::recommendation) as controls with
//! all the values that make sense, the load, and what goes wrong.
//!
//! A state is the controls that stand elsewhere than today, each with its value. It comes to values to set, as `--set` states them, so that
//! whatever the page shows can be had on the command line.
//!
//! What must not live here: how controls are drawn, and when anything is simulated.

mod circumstances;
mod of_levers;
mod requests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use super::axes::Setting;
use super::recommendation::{
    Allowance, BaselineFacts, Kind, Level, Lever, Requirements, is_guarded, levers, requirements, setting,
};
use crate::catalog::Region;
use crate::domain::Symbol;
use crate::scenario::document::Content;
use crate::scenario::{PolicyVariant, Scenario};
use crate::world::outcome::Outcome;

/// The controls that stand elsewhere than today, by their names, each with its value.
pub type State = BTreeMap<String, String>;

/// How a control is moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Along its values, which have an order.
    Slider,
    /// To one of a few values.
    Choice,
    /// Each of its values is there or not.
    Chips,
}

/// A value that a control may have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Stop {
    /// The value as states hold it.
    pub value: String,
    /// The value for people, with its unit.
    pub label: String,
    #[serde(skip)]
    effect: Effect,
}

/// What a value comes to.
#[derive(Clone, PartialEq, Debug, Default)]
struct Effect {
    level: Level,
    /// A fault, as an item of the scenario's `faults`.
    fault: Option<String>,
    /// A Savings Plan: the family, and what is committed for an hour.
    plan: Option<(String, f64)>,
    /// Of a chip: the values of the label that it stands for.
    members: Vec<Symbol>,
}

impl Effect {
    fn of_level(level: Level) -> Self {
        Self { level, ..Self::default() }
    }

    fn of_path(path: &str, value: &str) -> Self {
        let sets = vec![(path.to_owned(), value.to_owned())];
        Self::of_level(Level { sets, ..Level::default() })
    }
}

/// Something that can be moved.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Control {
    /// Its name in states.
    pub id: String,
    /// The part of the page that it stands in: `NodePool default`, `Load`.
    pub group: String,
    /// What it is, for people.
    pub label: String,
    /// How it is moved.
    pub form: Form,
    /// Whether it is about what happens to the cluster, and not about how the cluster is set.
    pub circumstance: bool,
    /// The value as it is today; of chips those that are there, with commas between them.
    pub today: String,
    /// The values, in order.
    pub stops: Vec<Stop>,
    /// What there is to know, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Of chips: the requirements that they are, the first of which lists the values.
    #[serde(skip)]
    chips: Option<Level>,
}

/// Why a state comes to nothing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Misfit {
    /// There is no such control.
    #[error("this scenario has nothing called `{0}` that can be moved")]
    Unknown(String),
    /// The control does not have the value.
    #[error("`{0}` has no value `{1}`")]
    NoValue(String, String),
    /// No chip is left.
    #[error("{0}: one of them has to stay")]
    Nothing(String),
}

/// All controls of a scenario.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Controls {
    all: Vec<Control>,
    today: Requirements,
    /// The faults that the scenario states.
    faults: Vec<String>,
}

/// What controls are made from.
pub struct Basis<'b> {
    /// The scenario.
    pub scenario: &'b Scenario,
    /// The scenario's own document.
    pub root: &'b Content,
    /// The objects as they are stated.
    pub objects: &'b [Content],
    /// The policy.
    pub policy: &'b PolicyVariant,
    /// The region's prices.
    pub region: &'b Arc<Region>,
    /// How today goes, with the first seed.
    pub outcome: &'b Outcome,
    /// What nodes cost there, by NodePool or node group.
    pub by_origin: &'b BTreeMap<String, f64>,
    /// What workloads cost there.
    pub by_workload: &'b BTreeMap<String, f64>,
    /// Whether values can be set.
    pub can_set: &'b dyn Fn(&Setting) -> bool,
}

impl Controls {
    /// The controls that a scenario has, before any of them was tried.
    pub fn from_basis(basis: &Basis<'_>) -> Self {
        let known = BaselineFacts {
            scenario: basis.scenario,
            policy: basis.policy,
            region: basis.region,
            by_origin: basis.by_origin,
            by_workload: basis.by_workload,
            can_set: basis.can_set,
            root: basis.root,
            objects: basis.objects,
            allowance: Allowance::of_controls(),
        };
        let (levers, _) = levers(&known);
        let mut all: Vec<Control> = levers.iter().flat_map(|lever| of_levers::controls(lever, basis)).collect();
        all.extend(requests::requests(basis));
        all.extend(circumstances::commitments(basis));
        all.extend(circumstances::load(basis));
        all.extend(circumstances::faults(basis));
        // States name controls by their ids.
        let mut ids = BTreeSet::new();
        all.retain(|item| ids.insert(item.id.clone()));
        let faults = basis.root.get("faults").map_or(&[][..], Content::items);
        let faults = faults.iter().map(Content::on_a_line).collect();
        Self { all, today: requirements(basis.policy), faults }
    }

    /// The controls, in the order of the page.
    pub fn all(&self) -> &[Control] {
        &self.all
    }

    /// States that show of a control whether it does anything: one for each value of a choice, two of a slider, one of chips.
    pub fn trials(&self) -> Vec<(usize, String)> {
        let mut trials = Vec::new();
        for (place, control) in self.all.iter().enumerate() {
            let others = || control.stops.iter().map(|stop| &stop.value).filter(|value| **value != control.today);
            match control.form {
                Form::Choice => trials.extend(others().map(|value| (place, value.clone()))),
                Form::Slider => {
                    trials.extend(others().take(1).chain(others().next_back()).map(|other| (place, other.clone())))
                }
                Form::Chips => trials.extend(control.first_alone().map(|value| (place, value))),
            }
        }
        trials
    }

    /// The state in which one control has one value.
    pub fn alone(&self, place: usize, value: &str) -> State {
        self.all.get(place).map(|item| (item.id.clone(), value.to_owned())).into_iter().collect()
    }

    /// Takes out values of which a trial said that they cannot be or change nothing, and controls without any other value than today's.
    pub fn keep(&mut self, trials: &[(usize, String)], works: &[bool]) {
        let tried = |place: usize| trials.iter().zip(works).filter(move |((trial, _), _)| *trial == place);
        let mut place = 0;
        self.all.retain_mut(|control| {
            let number = place;
            place += 1;
            if control.form == Form::Choice {
                let fails = |value: &str| tried(number).any(|((_, tried), works)| tried == value && !works);
                control.stops.retain(|stop| !fails(&stop.value));
            }
            control.stops.len() > 1 && tried(number).any(|(_, works)| *works)
        });
    }

    /// What is to be set for a state.
    ///
    /// # Errors
    /// If the state names what is not there.
    pub fn setting(&self, state: &State) -> Result<Setting, Misfit> {
        if let Some(unknown) = state.keys().find(|id| self.all.iter().all(|item| item.id != **id)) {
            return Err(Misfit::Unknown(shortened(unknown)));
        }
        let mut levels = Vec::new();
        let mut faults = Vec::new();
        let mut plans = Vec::new();
        for control in &self.all {
            let Some(value) = state.get(&control.id).filter(|value| **value != control.today) else { continue };
            let effect = control.effect(value)?;
            levels.push(effect.level);
            faults.extend(effect.fault);
            plans.extend(effect.plan.filter(|(_, amount)| *amount > 0.0));
        }
        let lever = |level: Level| Lever {
            kind: Kind::Consolidation,
            subject: String::new(),
            today: String::new(),
            levels: vec![level],
        };
        let chosen = vec![1; levels.len()];
        let levers: Vec<Lever> = levels.into_iter().map(lever).collect();
        let mut all = setting(&levers, &chosen, &self.today);
        if !faults.is_empty() {
            let items: Vec<String> = self.faults.iter().cloned().chain(faults).collect();
            all.push(("faults".to_owned(), format!("[{}]", items.join(", "))));
        }
        if !plans.is_empty() {
            let plan = |(family, amount): &(String, f64)| json!({"family": family, "commitment": amount, "term": "1y", "payment": "no_upfront"});
            let plans: Vec<Value> = plans.iter().map(plan).collect();
            all.push(("ec2.billing.savings_plans".to_owned(), Value::Array(plans).to_string()));
        }
        Ok(all)
    }

    /// The part of a state that is about what happens to the cluster.
    pub fn circumstances(&self, state: &State) -> State {
        let is_one = |id: &str| self.all.iter().any(|control| control.id == id && control.circumstance);
        state.iter().filter(|(id, _)| is_one(id)).map(|(id, value)| (id.clone(), value.clone())).collect()
    }

    /// A state in words: `NodePool default, consolidate after: 2m`.
    pub fn words(&self, state: &State) -> Vec<String> {
        let moved = self.all.iter().filter_map(|item| Some((item, state.get(&item.id)?)));
        moved
            .filter(|(item, value)| **value != item.today)
            .map(|(key, value)| {
                let stop = key.stops.iter().find(|stop| stop.value == *value);
                let label = stop.map_or(value.as_str(), |stop| &stop.label);
                format!("{}, {}: {label}", key.group, key.label)
            })
            .collect()
    }
}

impl Control {
    fn effect(&self, value: &str) -> Result<Effect, Misfit> {
        let unknown = || Misfit::NoValue(self.id.clone(), shortened(value));
        let Some(chips) = &self.chips else {
            let stop = self.stops.iter().find(|stop| stop.value == value).ok_or_else(unknown)?;
            return Ok(stop.effect.clone());
        };
        let wanted: Vec<&str> = value.split(',').filter(|part| !part.is_empty()).collect();
        if wanted.iter().any(|item| self.stops.iter().all(|stop| stop.value != **item)) {
            return Err(unknown());
        }
        // In the order of the page, whatever the order of the state.
        let listed = self.stops.iter().filter(|stop| wanted.contains(&stop.value.as_str()));
        let values: Vec<&str> = listed.flat_map(|stop| &stop.effect.members).map(|member| member.as_str()).collect();
        if values.is_empty() {
            return Err(Misfit::Nothing(format!("{}, {}", self.group, self.label)));
        }
        let mut level = chips.clone();
        for (place, requirement) in level.requirements.iter_mut().enumerate() {
            // What the pool does not launch today stays excluded, whatever is chosen.
            if place > 0 && is_guarded(requirement.key) {
                continue;
            }
            requirement.terms.clear();
            if place == 0 {
                requirement.terms.push(json!({"key": requirement.key.as_str(), "operator": "In", "values": values}));
            }
        }
        Ok(Effect::of_level(level))
    }

    /// The value of chips in which one is there alone, that is not so today.
    fn first_alone(&self) -> Option<String> {
        self.stops.iter().map(|stop| &stop.value).find(|value| **value != self.today).cloned()
    }
}

/// A chip that stands for these values of a label.
fn chip(value: &str, label: &str, members: &[Symbol]) -> Stop {
    let effect = Effect { members: members.to_vec(), ..Effect::default() };
    Stop { value: value.to_owned(), label: label.to_owned(), effect }
}

fn shortened(text: &str) -> String {
    text.chars().take(80).collect()
}

#[cfg(test)]
mod tests;
