//! Controls that no lever has: commitments against today's hours, load, and what goes wrong.

use super::{Basis, Control, Effect, Form, Stop};
use crate::axes::Setting;
use crate::domain::SimTime;
use crate::recommendation::{Level, curves, dearest_family, hours, on_demand_times};
use crate::report::format::money;
use crate::scenario::document::Content;

/// So many times the load as it is.
const FACTORS: [f64; 17] = [0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0];

fn control(id: &str, (group, label): (&str, &str), today: &str, stops: Vec<Stop>) -> Control {
    Control {
        id: id.to_owned(),
        group: group.to_owned(),
        label: label.to_owned(),
        form: Form::Slider,
        circumstance: true,
        today: today.to_owned(),
        stops,
        note: None,
        chips: None,
    }
}

/// A Savings Plan of a year without upfront payment for each of the families with the largest On-Demand bill, if none is stated.
pub(super) fn commitments(basis: &Basis<'_>) -> Vec<Control> {
    let bought = &basis.scenario.ec2.cloud.billing.commitments;
    if !bought.is_empty() {
        return Vec::new();
    }
    let code = basis.region.currency.code();
    let of_family = |family_curve: &crate::recommendation::FamilyCurve| {
        let mut amounts: Vec<f64> =
            family_curve.curve.iter().map(|point| libm::round(point.per_hour * 1_000.0) / 1_000.0).collect();
        amounts.push(family_curve.best_per_hour);
        amounts.sort_by(f64::total_cmp);
        amounts.dedup_by(|one, other| (*one - *other).abs() < 5e-4);
        let stop = |amount: &f64| Stop {
            value: amount.to_string(),
            label: if *amount > 0.0 { format!("{} an hour", money(code, *amount)) } else { "none".to_owned() },
            effect: Effect { plan: Some((family_curve.family.clone(), *amount)), ..Effect::default() },
        };
        let stops: Vec<Stop> = amounts.iter().map(stop).collect();
        let mut control = control(
            &format!("commitments.{}", family_curve.family),
            ("Savings Plans, 1 year, no upfront", &family_curve.family),
            "0",
            stops,
        );
        control.circumstance = false;
        control.note = Some(format!(
            "{:.1}% off On-Demand ({}); against today's hours {} an hour costs least",
            family_curve.discount * 100.0,
            family_curve.discount_quality,
            money(code, family_curve.best_per_hour)
        ));
        control
    };
    let times = on_demand_times(basis.outcome, basis.scenario);
    let curves = curves(&hours(&times, basis.scenario.duration), basis.region);
    curves.iter().filter(|curve| curve.best_per_hour > 0.0).map(of_family).collect()
}

/// Where the scenario states a load: the path, and by how much it is scaled today.
fn scales(root: &Content) -> Vec<(String, f64)> {
    let mut all = Vec::new();
    let mut add = |prefix: &str, entry: &Content, keys: &[&str]| {
        for key in keys {
            let Some(curve @ Content::Map(_)) = entry.get(key) else { continue };
            if let Some(curve) = curve.get("closed_loop") {
                let clients = curve.get("clients").and_then(Content::as_text).and_then(|text| text.parse().ok());
                all.extend(clients.map(|count: f64| (format!("{prefix}.{key}.closed_loop.clients"), count)));
                continue;
            }
            let today = curve.get("scale").and_then(Content::as_text).and_then(|text| text.parse().ok());
            all.push((format!("{prefix}.{key}.scale"), today.unwrap_or(1.0)));
        }
    };
    let items = |content: &Content, key: &str| content.get(key).map_or_else(Vec::new, |list| list.items().to_vec());
    for (key, curves) in [("load", &["requests", "cpu"][..]), ("queues", &["messages"]), ("usage", &["cpu", "memory"])]
    {
        for (number, entry) in items(root, key).iter().enumerate() {
            add(&format!("{key}[{number}]"), entry, curves);
        }
    }
    for (step, entry) in items(root, "timeline").iter().enumerate() {
        for (number, entry) in items(entry, "load").iter().enumerate() {
            add(&format!("timeline[{step}].load[{number}]"), entry, &["requests", "cpu"]);
        }
    }
    all
}

/// Everything at `scales` so many times as large.
fn scaled(scales: &[(String, f64)], factor: f64) -> Setting {
    let value = |(path, today): &(String, f64)| {
        if path.ends_with("clients") {
            return (path.clone(), format!("{:.0}", libm::round(today * factor).max(1.0)));
        }
        (path.clone(), (libm::round(today * factor * 1e6) / 1e6).to_string())
    };
    scales.iter().map(value).collect()
}

/// How much load there is.
pub(super) fn load(basis: &Basis<'_>) -> Option<Control> {
    let mut scales = scales(basis.root);
    if !scales.is_empty() && !(basis.can_set)(&scaled(&scales, 1.1)) {
        // What is stated in a form that takes no factor stays as it is.
        scales.retain(|scale| (basis.can_set)(&scaled(std::slice::from_ref(scale), 1.1)));
    }
    if scales.is_empty() {
        return None;
    }
    let stop = |factor: f64| {
        let level = Level { sets: scaled(&scales, factor), ..Level::default() };
        Stop { value: factor.to_string(), label: format!("\u{d7} {factor}"), effect: Effect::of_level(level) }
    };
    Some(control("load", ("Load and faults", "load"), "1", FACTORS.into_iter().map(stop).collect()))
}

/// What may go wrong, each beside what the scenario states already.
pub(super) fn faults(basis: &Basis<'_>) -> Vec<Control> {
    let seconds = basis.scenario.duration.as_secs_f64();
    let at = |share: f64| format!("{:.0}s", libm::floor(seconds * share));
    let hour = format!("{:.0}s", libm::floor(seconds / 2.0).clamp(1.0, 3_600.0));
    let with = |fault: String| Effect { fault: Some(fault), ..Effect::default() };
    let storm = |percent: u32| Stop {
        value: percent.to_string(),
        label: format!("{percent}%"),
        effect: match percent {
            0 => Effect::default(),
            _ => with(format!("{{at: {}, spot_interruption: {{fraction: {percent}%}}}}", at(0.5))),
        },
    };
    let none = || Stop { value: "none".to_owned(), label: "none".to_owned(), effect: Effect::default() };
    let group = "Load and faults";
    let mut all = vec![control(
        "spot-storm",
        (group, "Spot instances reclaimed at half-time"),
        "0",
        (0..=10).map(|step| storm(step * 10)).collect(),
    )];
    let choice = |id: &str, label: &str, stops: Vec<Stop>| Control {
        form: Form::Choice,
        ..control(id, (group, label), "none", stops)
    };
    let zone = |zone: &crate::domain::Symbol| Stop {
        value: zone.to_string(),
        label: zone.to_string(),
        effect: with(format!("{{at: {}, for: {hour}, zone_outage: {{zone: {zone}, mode: power}}}}", at(0.5))),
    };
    if basis.scenario.zones.len() > 1 {
        let stops = std::iter::once(none()).chain(basis.scenario.zones.iter().map(zone)).collect();
        let length = if seconds >= 7_200.0 { "an hour" } else { "the second half" };
        all.push(choice("zone-outage", &format!("zone without power for {length}"), stops));
    }
    if let Some(family) = dearest_family(basis.outcome, SimTime::ZERO + basis.scenario.duration) {
        let third = at(1.0 / 3.0);
        let stop = Stop {
            value: family.to_string(),
            label: family.to_string(),
            effect: with(format!("{{at: {third}, for: {third}, insufficient_capacity: {{family: {family}}}}}")),
        };
        all.push(choice("no-capacity", "family without capacity in the middle third", vec![none(), stop]));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::scaled;

    #[test]
    fn load_factor_multiplies_existing_scale() {
        let scales =
            [("load[0].requests.scale".to_owned(), 0.5), ("load[1].requests.closed_loop.clients".to_owned(), 5.0)];
        let values: Vec<String> = scaled(&scales, 1.2).into_iter().map(|pair| pair.1).collect();
        assert_eq!(values, ["0.6", "6"]);
    }
}
