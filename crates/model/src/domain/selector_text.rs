//! Label selectors written as text (`app=web,tier in (front, back),!canary`).
//!
//! Source: apimachinery `pkg/labels/selector.go` (Kubernetes 1.36), without `gt` and `lt`, which compare numbers.

use super::labels::{LabelSelector, SelectorExpression, SelectorOperator};
use super::symbol::Symbol;

/// Why a text is no label selector.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{part}` {reason}")]
pub struct SelectorTextError {
    /// The requirement that cannot be read.
    pub part: String,
    /// Why.
    pub reason: &'static str,
}

/// Reads a label selector; an empty text selects everything.
///
/// # Errors
/// A requirement cannot be read.
pub fn parse_selector(text: &str) -> Result<LabelSelector, SelectorTextError> {
    let mut selector = LabelSelector::default();
    for part in requirements(text).into_iter().filter(|part| !part.is_empty()) {
        let expression =
            requirement(part).map_err(|reason| SelectorTextError { part: part.chars().take(80).collect(), reason })?;
        selector.expressions.push(expression);
    }
    Ok(selector)
}

/// The parts between commas that stand outside parentheses.
fn requirements(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut open) = (Vec::new(), 0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '(' => open += 1,
            ')' => open = open.saturating_sub(1),
            ',' if open == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

fn requirement(part: &str) -> Result<SelectorExpression, &'static str> {
    let expression = |key: &str, operator, values: Vec<Symbol>| {
        let key = key.trim();
        if key.is_empty() || !key.chars().all(|c| c.is_ascii_alphanumeric() || "-_./".contains(c)) {
            return Err("has no valid label key");
        }
        Ok(SelectorExpression { key: Symbol::new(key), operator, values })
    };
    let one = |value: &str| {
        let value = value.trim();
        let valid = value.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if valid { Ok(Symbol::new(value)) } else { Err("has no valid label value") }
    };
    if let Some((key, value)) = part.split_once("!=") {
        return expression(key, SelectorOperator::NotIn, vec![one(value)?]);
    }
    if let Some((key, value)) = part.split_once("==").or_else(|| part.split_once('=')) {
        return expression(key, SelectorOperator::In, vec![one(value)?]);
    }
    if let Some(key) = part.strip_prefix('!') {
        return expression(key, SelectorOperator::DoesNotExist, Vec::new());
    }
    let Some((head, list)) = part.split_once('(') else {
        return expression(part, SelectorOperator::Exists, Vec::new());
    };
    let values = list.strip_suffix(')').ok_or("has no closing parenthesis")?;
    let values = values.split(',').map(one).collect::<Result<Vec<_>, _>>()?;
    match head.trim().rsplit_once(char::is_whitespace) {
        Some((key, "in")) => expression(key, SelectorOperator::In, values),
        Some((key, "notin")) => expression(key, SelectorOperator::NotIn, values),
        _ => Err("has neither `in` nor `notin` before its list"),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_selector;
    use crate::domain::labels::{LabelSelector, Labels};

    #[test]
    fn every_operator_is_read_and_applied() {
        let labels = Labels::new().with("app", "web").with("tier", "front");
        for (text, matches) in [
            ("", true),
            ("app=web", true),
            ("app==web, tier in (front, back)", true),
            ("app!=web", false),
            ("tier notin (back,mid)", true),
            ("app,!canary", true),
            ("!app", false),
        ] {
            let selector = parse_selector(text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(selector.matches(&labels), matches, "{text}");
        }
    }

    #[test]
    fn selector_text_round_trips_in_any_order() {
        for text in ["", "app=web", "app=web,!canary,tier in (back,front)", "app!=web,tier notin (a,b),x"] {
            assert_eq!(parse_selector(text).unwrap().to_string(), text);
        }
        let same = |one: &str, other: &str| parse_selector(one).unwrap().says_the_same(&parse_selector(other).unwrap());
        assert!(same("a=1,b in (x,y)", "b in (y,x), a==1") && same("", ""));
        assert!(!same("a=1", "a=2") && !same("a=1", "") && !same("a=1", "a=1,b=2"));
        let pairs = LabelSelector { match_labels: Labels::new().with("a", "1"), expressions: Vec::new() };
        assert!(pairs.says_the_same(&parse_selector("a=1").unwrap()));
    }

    #[test]
    fn what_is_no_selector_is_named() {
        for text in ["app=a b", "=web", "tier in front", "tier in (a", "tier of (a)", "a b"] {
            assert!(parse_selector(text).is_err(), "{text}");
        }
        let error = parse_selector("app=web,tier of (x)").map_err(|error| error.to_string());
        assert_eq!(error.err().as_deref(), Some("`tier of (x)` has neither `in` nor `notin` before its list"));
    }
}
