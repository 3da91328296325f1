//! Scaling modifiers: one metric from a formula over the triggers.
//!
//! Source: KEDA 2.20 `pkg/scaling/modifiers/formula.go`, whose formulas are written in the expr language. The subset that
//! makes a number out of numbers is supported, see [`SUPPORTED`].

mod evaluation;
mod parser;

use nodecast_model::domain::keda::ScalingModifiers;

use evaluation::{Scope, Value};
use parser::Node;

/// What a formula may contain, for error messages.
pub const SUPPORTED: &str = "numbers, trigger names, nil, true, false, + - * / ** ^, == != < <= > >=, && || ! (and, or, \
                             not), ?:, ??, lists in brackets, the functions abs, ceil, floor, round, int, float, min, max, \
                             sum, mean, median, len, and count, any, all, none with a condition in braces";

/// A formula, read once and evaluated at each read of the metric.
#[derive(Clone, PartialEq, Debug)]
pub struct Formula(Node);

/// What is wrong with a formula or with its value.
#[derive(Clone, PartialEq, Eq, Hash, Debug, thiserror::Error)]
pub enum FormulaError {
    /// It cannot be read.
    #[error("{problem} at position {position}; a formula may contain {SUPPORTED}")]
    Syntax {
        /// What is wrong.
        problem: String,
        /// Where, in bytes from the start.
        position: usize,
    },
    /// It nests too deeply.
    #[error("the formula nests deeper than {0} levels")]
    TooDeep(usize),
    /// It is too long.
    #[error("the formula has more than {0} operators")]
    TooLong(usize),
    /// A name that is no trigger's.
    #[error("`{0}` is not the name of a trigger")]
    UnknownName(String),
    /// A value of the wrong kind.
    #[error("{operation} needs {expected}, not {found}")]
    WrongKind {
        /// The operator or function.
        operation: String,
        /// What it needs.
        expected: &'static str,
        /// What it was given.
        found: &'static str,
    },
    /// The value of the formula is no number.
    #[error("the formula gives {0} instead of a number")]
    NotANumber(&'static str),
}

impl Formula {
    /// Reads a formula.
    ///
    /// # Errors
    /// It contains something that is not supported.
    pub fn parse(text: &str) -> Result<Self, FormulaError> {
        parser::parse(text).map(Self)
    }

    /// The names that the formula uses, in order of appearance, each once.
    pub fn names(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.0.visit_names(&mut |name| {
            if !names.contains(&name) {
                names.push(name);
            }
        });
        names
    }

    /// The value, given the value of each trigger; an inner `None` is a failed trigger, which the formula sees as nil. A
    /// formula may be nil itself.
    ///
    /// # Errors
    /// A name is unknown, or an operation meets a value of the wrong kind.
    pub fn evaluate(&self, trigger: &dyn Fn(&str) -> Option<Option<f64>>) -> Result<Option<f64>, FormulaError> {
        match evaluation::evaluate(&self.0, &Scope { trigger, element: None })? {
            Value::Number(number) => Ok(Some(number)),
            Value::Nil => Ok(None),
            other => Err(FormulaError::NotANumber(other.kind())),
        }
    }
}

/// The one metric that a formula makes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Composite {
    /// Its value in thousandths, truncated.
    pub milli: i64,
    /// Whether it is above the activation target.
    pub active: bool,
}

/// The metric for a formula's value; a formula that is nil reads as `fallback_replicas` times the target.
pub fn composite(modifiers: &ScalingModifiers, value: Option<f64>, fallback_replicas: Option<i32>) -> Composite {
    let replicas = || f64::from(fallback_replicas.unwrap_or(0));
    let value = value.unwrap_or_else(|| replicas() * modifiers.target.as_f64());
    // `as` turns not-a-number into zero and limits the infinite.
    Composite { milli: (value * 1000.0) as i64, active: value > modifiers.activation_target.as_f64() }
}

#[cfg(test)]
mod tests {
    use super::{Formula, FormulaError, composite};
    use nodecast_model::domain::keda::{ScalingModifiers, TriggerMetricType};
    use nodecast_model::domain::quantity::Quantity;

    /// The value with a = 4, b = 9, zero = 0 and a failed trigger `gone`.
    fn value(text: &str) -> Result<Option<f64>, FormulaError> {
        Formula::parse(text)?.evaluate(&|name| match name {
            "a" => Some(Some(4.0)),
            "b" => Some(Some(9.0)),
            "zero" => Some(Some(0.0)),
            "gone" => Some(None),
            _ => None,
        })
    }

    #[test]
    fn operators_bind_as_in_expr() {
        for (text, expected) in [
            ("a + b * 2", 22.0),
            ("(a + b) / 2", 6.5),
            ("-a ** 2", -16.0),
            ("2 ** 3 ** 2", 512.0),
            ("2 ^ 3", 8.0),
            ("10 - 3 - 2", 5.0),
            ("b / 2 / 3", 1.5),
            (".5 + 1.5e1", 15.5),
            ("1_000 + 1", 1_001.0),
            ("a > 3 && b < 10 ? a : b", 4.0),
            ("a > 5 || not (b > 1) ? 1 : a == 4 ? 2 : 3", 2.0),
            ("gone ?? b", 9.0),
            ("gone ?? gone ?? 5", 5.0),
            ("(gone ?? 1) + a", 5.0),
            ("gone == nil ? 7 : 8", 7.0),
        ] {
            assert_eq!(value(text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn functions_take_numbers_or_a_list() {
        for (text, expected) in [
            ("max(a, b, 2)", 9.0),
            ("min([a, b])", 4.0),
            ("sum([a, b, 1])", 14.0),
            ("mean([a, b])", 6.5),
            ("median([9, 1, 4])", 4.0),
            ("ceil(a / 3) + floor(b / 2) + abs(-1)", 7.0),
            ("round(2.5)", 3.0),
            ("int(2.9) + float(1)", 3.0),
            ("len([a, b])", 2.0),
            ("count([a, b, zero], {# > 1}) > 1 ? 5 : 0", 5.0),
            ("any([a, b], # > 8) ? 1 : 0", 1.0),
            ("all([a, b], {# > 8}) ? 1 : 0", 0.0),
            ("none([a, b], {# > 9}) ? 1 : 0", 1.0),
        ] {
            assert_eq!(value(text), Ok(Some(expected)), "{text}");
        }
    }

    #[test]
    fn failed_trigger_is_nil_in_formula() {
        assert_eq!(value("gone"), Ok(None));
        let failed = value("gone + 1").map_err(|error| error.to_string());
        assert_eq!(failed, Err("+ needs a number, not nil".to_owned()));
    }

    #[test]
    fn anything_else_is_refused_with_what_is_supported() {
        for text in
            ["a +", "a b", "foo(a)", "a[0]", "\"x\"", "a ? b", "a | max(b)", "1..3", "# + 1", "", "let x = 1; x"]
        {
            assert!(matches!(Formula::parse(text), Err(FormulaError::Syntax { .. })), "{text}");
        }
        assert_eq!(value("c + 1"), Err(FormulaError::UnknownName("c".to_owned())));
        assert_eq!(value("a > 1"), Err(FormulaError::NotANumber("a truth value")));
        assert!(matches!(value("a ? 1 : 2"), Err(FormulaError::WrongKind { .. })));
        assert!(matches!(value("max([])"), Err(FormulaError::WrongKind { .. })));
        let deep = format!("{}1{}", "(".repeat(500), ")".repeat(500));
        assert!(matches!(Formula::parse(&deep), Err(FormulaError::TooDeep(_))));
        let long = format!("1{}", " + 1".repeat(5_000));
        assert!(matches!(Formula::parse(&long), Err(FormulaError::TooLong(_))));
    }

    #[test]
    fn names_are_listed_once() {
        assert_eq!(Formula::parse("a + max(b, a)").map(|f| f.names().join(" ")), Ok("a b".to_owned()));
    }

    #[test]
    fn nil_formula_uses_fallback_replicas() {
        let modifiers = ScalingModifiers {
            formula: "a".to_owned(),
            target: Quantity::from_nanos(2_500_000_000),
            is_whole: false,
            activation_target: Quantity::from_nanos(2_000_000_000),
            metric_type: TriggerMetricType::AverageValue,
        };
        assert_eq!(composite(&modifiers, None, Some(4)).milli, 10_000);
        assert!(!composite(&modifiers, Some(2.0), None).active);
        assert_eq!(composite(&modifiers, Some(f64::NAN), None).milli, 0);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[-+*/^<>=!&|?:#(){},. 0-9a-ceé]{0,40}|.{0,40}") {
            if let Ok(formula) = Formula::parse(&text) {
                let outcome = || format!("{:?}", formula.evaluate(&|_| Some(Some(1.0))));
                proptest::prop_assert_eq!(outcome(), outcome());
            }
        }
    }
}
