use serde_json::json;

use super::{Control, Controls, Effect, Form, Misfit, State, Stop, chip};
use crate::domain::Symbol;
use crate::recommendation::{Level, Terms};

const PATH: &str = "NodePool[a].spec.template.spec.requirements";

fn slider(id: &str, circumstance: bool, effects: [Effect; 2]) -> Control {
    let stop = |(value, effect): (&str, Effect)| Stop { value: value.into(), label: value.into(), effect };
    Control {
        id: id.into(),
        group: "g".into(),
        label: id.into(),
        form: Form::Slider,
        circumstance,
        today: "0".into(),
        stops: ["0", "1"].into_iter().zip(effects).map(stop).collect(),
        note: None,
        chips: None,
    }
}

fn controls() -> Controls {
    let terms = |key: &str| Terms { path: PATH.into(), key: Symbol::new(key), terms: Vec::new() };
    let level = Level { requirements: vec![terms("family"), terms("type")], ..Level::default() };
    let chips = Control {
        form: Form::Chips,
        today: "m5".into(),
        stops: ["c5", "m5"].map(|text| chip(text, text, &[Symbol::new(text)])).into(),
        chips: Some(level),
        ..slider("families", false, [Effect::default(), Effect::default()])
    };
    let fault = Effect { fault: Some("{at: 5s}".into()), ..Effect::default() };
    let plan = Effect { plan: Some(("m5".into(), 0.25)), ..Effect::default() };
    Controls {
        all: vec![
            slider("after", false, [Effect::of_path("p", "0"), Effect::of_path("p", "1")]),
            chips,
            slider("storm", true, [Effect::default(), fault]),
            slider("plan", false, [Effect::default(), plan]),
        ],
        faults: vec!["{at: 1s}".into()],
        ..Controls::default()
    }
}

fn state(values: &[(&str, &str)]) -> State {
    values.iter().map(|(id, value)| ((*id).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn what_stands_as_today_sets_nothing() {
    assert_eq!(controls().setting(&state(&[("after", "0"), ("families", "m5")])), Ok(Vec::new()));
}

#[test]
fn a_state_comes_to_values_to_set() {
    let all = controls().setting(&state(&[("after", "1"), ("families", "m5,c5"), ("storm", "1"), ("plan", "1")]));
    let all = all.unwrap_or_default();
    let list = json!([{"key": "family", "operator": "In", "values": ["c5", "m5"]}]).to_string();
    let plan = json!([{"family": "m5", "commitment": 0.25, "term": "1y", "payment": "no_upfront"}]).to_string();
    let expected = [
        ("p", "1"),
        (PATH, list.as_str()),
        ("faults", "[{at: 1s}, {at: 5s}]"),
        ("ec2.billing.savings_plans", plan.as_str()),
    ];
    assert_eq!(all, expected.map(|(path, value)| (path.to_owned(), value.to_owned())));
}

#[test]
fn what_is_not_there_is_told() {
    let of = |values: &[(&str, &str)]| controls().setting(&state(values)).err();
    assert_eq!(of(&[("x", "1")]), Some(Misfit::Unknown("x".into())));
    assert_eq!(of(&[("after", "7")]), Some(Misfit::NoValue("after".into(), "7".into())));
    assert_eq!(of(&[("families", "x")]), Some(Misfit::NoValue("families".into(), "x".into())));
    assert!(matches!(of(&[("families", "")]), Some(Misfit::Nothing(_))));
}

#[test]
fn circumstances_are_told_from_settings() {
    let both = state(&[("after", "1"), ("storm", "1")]);
    assert_eq!(controls().circumstances(&both), state(&[("storm", "1")]));
    assert_eq!(controls().words(&both), ["g, after: 1", "g, storm: 1"]);
}

#[test]
fn a_control_that_changes_nothing_goes() {
    let mut controls = controls();
    let trials = controls.trials();
    let works: Vec<bool> = trials.iter().map(|(place, _)| *place != 0).collect();
    controls.keep(&trials, &works);
    let left: Vec<&str> = controls.all().iter().map(|control| control.id.as_str()).collect();
    assert_eq!(left, ["families", "storm", "plan"]);
}
