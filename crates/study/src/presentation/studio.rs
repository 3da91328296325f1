//! What the studio's page says of a state held against another: each figure with its difference, seed by seed.

use serde::Serialize;

use super::{Standing, known_difference, measure_of_difference, standing, value};
use crate::figures::{Figure, Unit, find, for_people};
use crate::points::Point;
use crate::report::format::{Measure, objective};
use crate::statistics::{Estimate, Paired};

/// The figures that are told first: what a month costs (a run without length: what it cost), who waits, who is not served, what moves.
const FIRST: [&str; 4] = ["cost_per_month", "pending_p99", "unavailable_pod_minutes", "evictions"];

/// A state held against another over the seeds that both have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PairedResult {
    /// How many seeds.
    pub seeds: usize,
    /// How many there will be.
    pub planned: usize,
    /// Every figure, those that are told first at the beginning.
    pub figures: Vec<Line>,
    /// The scenario's objectives.
    pub objectives: Vec<ObjectiveResult>,
    /// The figures that are told first, seed by seed.
    pub rows: Vec<Row>,
}

/// A figure.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Line {
    /// Its name in files.
    pub name: &'static str,
    /// Its name for people.
    pub label: &'static str,
    /// Whether it is told first.
    pub first: bool,
    /// The mean over the seeds.
    pub own: Said,
    /// The same of what it is held against.
    pub today: Said,
    /// The difference, with its sign.
    pub difference: Option<String>,
    /// The difference as a share.
    pub relative: Option<String>,
    /// The interval of the difference over seeds; none with one seed.
    pub spread: Option<String>,
    /// `better`, `worse`, `other` where neither is, `unsure` where seeds disagree, `same`.
    pub verdict: &'static str,
}

/// A number, and how people read it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Said {
    /// The number; nothing where there was nothing to measure.
    pub value: Option<f64>,
    /// The same for people.
    pub text: String,
}

/// An objective.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ObjectiveResult {
    /// Its name and its limit.
    pub name: String,
    /// The seeds in which it is met, of those that can be judged.
    pub own: (usize, usize),
    /// The same of what it is held against.
    pub today: (usize, usize),
}

/// One seed.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The seed.
    pub seed: u64,
    /// The figures that are told first.
    pub own: Vec<Said>,
    /// The same of what it is held against.
    pub today: Vec<Said>,
}

/// What to say of points that belong together two by two: those of a state's seeds, and of what it is held against.
pub fn held(today: &[&Point], points: &[&Point], planned: usize, currency: &str) -> PairedResult {
    let is_first = |name: &str| FIRST.contains(&name);
    let first = FIRST.iter().filter_map(|name| find(name));
    let others = for_people().filter(|(_, figure)| !is_first(figure.name));
    let figures = first.chain(others).map(|(place, figure)| line((place, figure), (today, points), currency));
    let rows = today.iter().zip(points).map(|(today, point)| Row {
        seed: point.seed,
        own: said_first(point, currency),
        today: said_first(today, currency),
    });
    PairedResult {
        seeds: points.len(),
        planned,
        figures: figures.filter(|line| line.first || line.own.value.is_some() || line.today.value.is_some()).collect(),
        objectives: kept(today, points),
        rows: rows.collect(),
    }
}

fn at(point: &Point, place: usize) -> Option<f64> {
    point.figures.get(place).copied().flatten()
}

fn said(figure: &Figure, currency: &str, number: Option<f64>) -> Said {
    Said { value: number, text: number.map_or_else(|| "\u{2013}".to_owned(), |number| value(figure, currency, number)) }
}

fn said_first(point: &Point, currency: &str) -> Vec<Said> {
    FIRST.iter().filter_map(|name| find(name)).map(|(place, figure)| said(figure, currency, at(point, place))).collect()
}

fn mean(values: &[f64]) -> Option<f64> {
    // A single value is itself to the last digit.
    crate::statistics::mean(values)
}

fn line((place, figure): (usize, &'static Figure), (today, item): (&[&Point], &[&Point]), currency: &str) -> Line {
    let all = |points: &[&Point]| -> Vec<f64> { points.iter().filter_map(|point| at(point, place)).collect() };
    let pairs: Vec<(f64, f64)> =
        today.iter().zip(item).filter_map(|(today, item)| Some((at(today, place)?, at(item, place)?))).collect();
    let (before, after): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let paired = Paired::new(&before, &after);
    let difference = paired.as_ref().map(|paired| paired.difference);
    let relative = paired.and_then(|paired| paired.relative);
    // Differences have as many decimals as what differs.
    let largest = mean(&all(item)).into_iter().chain(mean(&all(today))).fold(0.0, f64::max);
    let measure = measure_of_difference(figure, currency, largest);
    let told = difference.as_ref().map(|difference| known_difference(difference).parts(measure));
    let (told, spread) = told.unzip();
    let of_share = figure.unit == Unit::Share;
    Line {
        name: figure.name,
        label: figure.label,
        first: FIRST.contains(&figure.name),
        own: said(figure, currency, mean(&all(item))),
        today: said(figure, currency, mean(&all(today))),
        difference: told,
        relative: relative.filter(|_| !of_share).map(|relative| known_difference(&relative).parts(Measure::Share).0),
        spread: spread.filter(|text| !text.is_empty()),
        verdict: difference.map_or("same", |difference| verdict(figure, &difference)),
    }
}

fn verdict(figure: &Figure, difference: &Estimate) -> &'static str {
    match standing(figure, difference) {
        Standing::Better => "better",
        Standing::Worse => "worse",
        Standing::Other => "other",
        Standing::Unsure => "unsure",
        Standing::Same => "same",
    }
}

fn kept(today: &[&Point], this_points: &[&Point]) -> Vec<ObjectiveResult> {
    let count = |points: &[&Point], place: usize| {
        let judged = points.iter().filter_map(|point| point.objectives.get(place)?.met);
        judged.fold((0, 0), |(met, all), judged| (met + usize::from(judged), all + 1))
    };
    let stated = this_points.first().map_or(&[][..], |point| &point.objectives);
    let one = |(place, stated): (usize, &crate::points::Objective)| ObjectiveResult {
        name: format!("{} at most {}", stated.name.replace('_', " "), objective(&stated.unit, stated.limit)),
        own: count(this_points, place),
        today: count(today, place),
    };
    stated.iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::{FIRST, held};
    use crate::figures::{FIGURES, find};
    use crate::points::Point;

    fn point(seed: u64, cost: f64) -> Point {
        let place = find("cost_per_month").map_or(0, |pair| pair.0);
        let mut figures = vec![None; FIGURES.len()];
        figures[place] = Some(cost);
        Point {
            setting: 0,
            policy: String::new(),
            seed,
            figures,
            objectives: Vec::new(),
            event_hash: String::new(),
            unconfirmed: 0.0,
            cost_by_origin: std::collections::BTreeMap::new(),
            spot: false,
            never_registered: 0,
            silent: Vec::new(),
            at_zero_seconds: Default::default(),
            price_date: String::new(),
            warnings: crate::scenario::Caveats::new(),
        }
    }

    #[test]
    fn seeds_are_held_against_the_same_seeds() {
        // Seeds differ by more than the change saves; each saves.
        let today: Vec<Point> =
            [100.0, 200.0, 300.0, 400.0, 500.0].iter().enumerate().map(|(n, c)| point(n as u64, *c)).collect();
        let points: Vec<Point> = today
            .iter()
            .map(|this_point| {
                point(this_point.seed, this_point.figures[1].unwrap_or(0.0) - 10.0 - this_point.seed as f64)
            })
            .collect();
        let (today, point): (Vec<&Point>, Vec<&Point>) = (today.iter().collect(), points.iter().collect());
        let all = held(&today, &point, 20, "USD");
        assert_eq!((all.seeds, all.planned, all.rows.len()), (5, 20, 5));
        let cost = &all.figures[0];
        assert_eq!((cost.name, cost.verdict), ("cost_per_month", "better"));
        assert_eq!(cost.own.value, Some(288.0));
        assert_eq!(cost.difference.as_deref(), Some("\u{2212}$12"));
        // With one seed there is no interval, and the number is that of the seed.
        let one = held(&today[..1], &point[..1], 20, "USD");
        assert_eq!((one.figures[0].own.value, one.figures[0].spread.as_deref()), (Some(90.0), None));
        assert!(FIRST.iter().all(|name| one.figures.iter().any(|figure| figure.name == *name && figure.first)));
    }
}
