//! Values of a query at an instant.

use std::collections::BTreeMap;

use super::parser::{Aggregation, Binary, Function, Grouping, Node, Operator, Selector};
use super::rate::over_range;
use super::{Element, EvaluationError, LOOKBACK, Point, QueryValue, SeriesSource, SeriesView};
use nodecast_model::domain::labels::Labels;
use nodecast_model::domain::{SimDuration, SimTime, Symbol};

/// Labels as a key that is ordered by text, so that results do not depend on the order in which texts were interned.
type GroupKey = Vec<(Symbol, Symbol)>;

pub(super) fn evaluate(node: &Node, source: &dyn SeriesSource, now: SimTime) -> Result<QueryValue, EvaluationError> {
    Ok(match node {
        Node::Number(number) => QueryValue::Scalar(*number),
        Node::Instant(selector) => QueryValue::Vector(instant(selector, source, now)),
        Node::OverRange(function, selector, range) => {
            let end = now - selector.offset;
            let value = |view: SeriesView<'_>| over_range(*function, within(view.points, *range, end), *range, end);
            QueryValue::Vector(select(selector, source, value))
        }
        Node::Call(function, arguments) => call(*function, arguments, source, now)?,
        Node::Aggregate(aggregation, grouping, inner) => {
            QueryValue::Vector(aggregate(*aggregation, grouping, vector(evaluate(inner, source, now)?)))
        }
        Node::Negated(inner) => map(evaluate(inner, source, now)?, |value| -value),
        Node::Binary(operation) => binary(operation, source, now)?,
    })
}

/// The newest sample of each series within the lookback, those left out that have ended.
fn instant(selector: &Selector, source: &dyn SeriesSource, now: SimTime) -> Vec<Element> {
    let at = now - selector.offset;
    select(selector, source, |view| {
        if view.ended.is_some_and(|ended| ended <= at) {
            return None;
        }
        within(view.points, LOOKBACK, at).last().map(|point| point.value)
    })
}

fn select(
    selector: &Selector,
    source: &dyn SeriesSource,
    value: impl Fn(SeriesView<'_>) -> Option<f64>,
) -> Vec<Element> {
    let mut found = Vec::new();
    source.visit(&selector.name, &mut |view| {
        let text = |label| view.labels.get(label).map_or("", Symbol::as_str);
        if selector.matchers.iter().all(|matcher| matcher.holds(text(matcher.label)))
            && let Some(value) = value(view)
        {
            found.push(Element { labels: view.labels.clone(), value });
        }
    });
    found
}

/// The samples after `end - range` and up to `end`.
fn within(points: &[Point], range: SimDuration, end: SimTime) -> &[Point] {
    let begin = end - range;
    let from = points.partition_point(|point| point.at <= begin);
    let until = points.partition_point(|point| point.at <= end);
    &points[from..until]
}

/// A number becomes one element without labels.
fn vector(value: QueryValue) -> Vec<Element> {
    match value {
        QueryValue::Scalar(value) => vec![Element { labels: Labels::new(), value }],
        QueryValue::Vector(elements) => elements,
    }
}

fn scalar(value: QueryValue) -> f64 {
    match value {
        QueryValue::Scalar(value) => value,
        QueryValue::Vector(elements) => match elements.as_slice() {
            [only] => only.value,
            _ => f64::NAN,
        },
    }
}

fn map(value: QueryValue, change: impl Fn(f64) -> f64) -> QueryValue {
    match value {
        QueryValue::Scalar(value) => QueryValue::Scalar(change(value)),
        QueryValue::Vector(mut elements) => {
            for element in &mut elements {
                element.value = change(element.value);
            }
            QueryValue::Vector(elements)
        }
    }
}

fn call(
    function: Function,
    arguments: &[Node],
    source: &dyn SeriesSource,
    now: SimTime,
) -> Result<QueryValue, EvaluationError> {
    let mut values = Vec::with_capacity(arguments.len());
    for argument in arguments {
        values.push(evaluate(argument, source, now)?);
    }
    let mut values = values.into_iter();
    let first = values.next().unwrap_or(QueryValue::Scalar(f64::NAN));
    let mut number = || values.next().map_or(f64::NAN, scalar);
    Ok(match function {
        Function::Abs => map(first, libm::fabs),
        Function::Ceil => map(first, libm::ceil),
        Function::Floor => map(first, libm::floor),
        Function::Round => {
            let step = if arguments.len() > 1 { number() } else { 1.0 };
            // Halves go up, and by the inverse, as upstream does against errors of division.
            let inverse = 1.0 / step;
            map(first, |value| libm::floor(value * inverse + 0.5) / inverse)
        }
        Function::Clamp => {
            let (low, high) = (number(), number());
            if low > high {
                return Ok(QueryValue::Vector(Vec::new()));
            }
            map(first, |value| libm::fmax(low, libm::fmin(high, value)))
        }
        Function::ClampMin => {
            let low = number();
            map(first, |value| libm::fmax(low, value))
        }
        Function::ClampMax => {
            let high = number();
            map(first, |value| libm::fmin(high, value))
        }
        Function::Scalar => QueryValue::Scalar(scalar(first)),
        Function::Vector => QueryValue::Vector(vector(first)),
    })
}

/// The labels that a grouping keeps.
fn kept(grouping: &Grouping, labels: &Labels) -> GroupKey {
    match grouping {
        Grouping::By(names) => labels.iter().filter(|(key, _)| names.contains(key)).collect(),
        Grouping::Without(names) => labels.iter().filter(|(key, _)| !names.contains(key)).collect(),
    }
}

fn labels_of(key: &GroupKey) -> Labels {
    key.iter().fold(Labels::new(), |labels, &(key, value)| labels.with(key, value))
}

fn aggregate(aggregation: Aggregation, grouping: &Grouping, elements: Vec<Element>) -> Vec<Element> {
    let mut groups: BTreeMap<GroupKey, Vec<f64>> = BTreeMap::new();
    for element in elements {
        groups.entry(kept(grouping, &element.labels)).or_default().push(element.value);
    }
    let value = |values: &[f64]| match aggregation {
        Aggregation::Sum => values.iter().sum(),
        Aggregation::Average => values.iter().sum::<f64>() / values.len() as f64,
        Aggregation::Smallest => values.iter().copied().fold(f64::INFINITY, libm::fmin),
        Aggregation::Largest => values.iter().copied().fold(f64::NEG_INFINITY, libm::fmax),
        Aggregation::Count => values.len() as f64,
    };
    groups.iter().map(|(key, values)| Element { labels: labels_of(key), value: value(values) }).collect()
}

fn binary(operation: &Binary, source: &dyn SeriesSource, now: SimTime) -> Result<QueryValue, EvaluationError> {
    let (left, right) = (evaluate(&operation.left, source, now)?, evaluate(&operation.right, source, now)?);
    let (operator, as_bool) = (operation.operator, operation.as_bool);
    Ok(match (left, right) {
        (QueryValue::Scalar(left), QueryValue::Scalar(right)) => {
            QueryValue::Scalar(applied(operator, true, left, right).unwrap_or(0.0))
        }
        (QueryValue::Vector(elements), QueryValue::Scalar(right)) => QueryValue::Vector(
            elements
                .into_iter()
                .filter_map(|element| {
                    let value = applied(operator, as_bool, element.value, right)?;
                    Some(Element { value: kept_value(operator, as_bool, element.value, value), ..element })
                })
                .collect(),
        ),
        (QueryValue::Scalar(left), QueryValue::Vector(elements)) => QueryValue::Vector(
            elements
                .into_iter()
                .filter_map(|element| {
                    let value = applied(operator, as_bool, left, element.value)?;
                    Some(Element { value: kept_value(operator, as_bool, element.value, value), ..element })
                })
                .collect(),
        ),
        (QueryValue::Vector(left), QueryValue::Vector(right)) if operator.is_of_sets() => {
            QueryValue::Vector(of_sets(operation, left, right))
        }
        (QueryValue::Vector(left), QueryValue::Vector(right)) => {
            QueryValue::Vector(one_to_one(operation, left, right)?)
        }
    })
}

/// A comparison that holds keeps the value of the series, unless it was asked for 0 or 1.
fn kept_value(operator: Operator, as_bool: bool, number: f64, result: f64) -> f64 {
    if operator.compares() && !as_bool { number } else { result }
}

/// The result of an operator; `None` for a comparison that does not hold and is not asked for 0 or 1.
fn applied(operator: Operator, as_bool: bool, left: f64, right: f64) -> Option<f64> {
    let compared = |holds: bool| match (holds, as_bool) {
        (true, true) => Some(1.0),
        (false, true) => Some(0.0),
        (true, false) => Some(left),
        (false, false) => None,
    };
    match operator {
        Operator::Add => Some(left + right),
        Operator::Subtract => Some(left - right),
        Operator::Multiply => Some(left * right),
        Operator::Divide => Some(left / right),
        Operator::Modulo => Some(libm::fmod(left, right)),
        Operator::Power => Some(libm::pow(left, right)),
        Operator::Equal => compared(left.partial_cmp(&right) == Some(std::cmp::Ordering::Equal)),
        Operator::NotEqual => compared(left.partial_cmp(&right) != Some(std::cmp::Ordering::Equal)),
        Operator::Less => compared(left < right),
        Operator::LessOrEqual => compared(left <= right),
        Operator::Greater => compared(left > right),
        Operator::GreaterOrEqual => compared(left >= right),
        Operator::And | Operator::Or | Operator::Unless => None,
    }
}

fn of_sets(operation: &Binary, left: Vec<Element>, right: Vec<Element>) -> Vec<Element> {
    let keys = |elements: &[Element]| -> std::collections::BTreeSet<GroupKey> {
        elements.iter().map(|element| kept(&operation.matching, &element.labels)).collect()
    };
    let (of_left, of_right) = (keys(&left), keys(&right));
    let has = |keys: &std::collections::BTreeSet<GroupKey>, element: &Element| {
        keys.contains(&kept(&operation.matching, &element.labels))
    };
    match operation.operator {
        Operator::And => left.into_iter().filter(|item| has(&of_right, item)).collect(),
        Operator::Unless => left.into_iter().filter(|item| !has(&of_right, item)).collect(),
        _ => {
            let more: Vec<Element> = right.into_iter().filter(|item| !has(&of_left, item)).collect();
            left.into_iter().chain(more).collect()
        }
    }
}

fn one_to_one(operation: &Binary, left: Vec<Element>, right: Vec<Element>) -> Result<Vec<Element>, EvaluationError> {
    let keyed = |elements: Vec<Element>| -> Result<BTreeMap<GroupKey, Element>, EvaluationError> {
        let mut groups = BTreeMap::new();
        for element in elements {
            let key = kept(&operation.matching, &element.labels);
            let text = format!("{key:?}");
            if groups.insert(key, element).is_some() {
                return Err(EvaluationError::ManyToMany(text));
            }
        }
        Ok(groups)
    };
    let (left, right) = (keyed(left)?, keyed(right)?);
    let mut found = Vec::new();
    for (key, element) in left {
        let Some(other) = right.get(&key) else { continue };
        let Some(value) = applied(operation.operator, operation.as_bool, element.value, other.value) else { continue };
        let filters = operation.operator.compares() && !operation.as_bool;
        let labels = if filters { element.labels } else { labels_of(&key) };
        found.push(Element { labels, value });
    }
    Ok(found)
}
