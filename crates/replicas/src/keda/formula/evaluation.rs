//! The value of a formula.

use super::FormulaError;
use super::parser::{Function, Node, Operator, Quantifier};

/// A value while a formula is computed.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    Number(f64),
    Truth(bool),
    Nil,
    List(Vec<Value>),
}

impl Value {
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Truth(_) => "a truth value",
            Self::Nil => "nil",
            Self::List(_) => "a list",
        }
    }

    fn wrong<T>(&self, operation: &str, expected: &'static str) -> Result<T, FormulaError> {
        Err(FormulaError::WrongKind { operation: operation.to_owned(), expected, found: self.kind() })
    }

    fn number(&self, operation: &str) -> Result<f64, FormulaError> {
        if let Self::Number(number) = self { Ok(*number) } else { self.wrong(operation, "a number") }
    }

    fn truth(&self, operation: &str) -> Result<bool, FormulaError> {
        if let Self::Truth(truth) = self { Ok(*truth) } else { self.wrong(operation, "a truth value") }
    }
}

/// What names mean.
pub(super) struct Scope<'a> {
    pub trigger: &'a dyn Fn(&str) -> Option<Option<f64>>,
    /// The element that `#` stands for.
    pub element: Option<&'a Value>,
}

pub(super) fn evaluate(node: &Node, scope: &Scope<'_>) -> Result<Value, FormulaError> {
    Ok(match node {
        Node::Number(number) => Value::Number(*number),
        Node::Truth(truth) => Value::Truth(*truth),
        Node::Nil => Value::Nil,
        Node::Name(name) => match (scope.trigger)(name) {
            Some(value) => value.map_or(Value::Nil, Value::Number),
            None => return Err(FormulaError::UnknownName(name.clone())),
        },
        Node::Element => scope.element.cloned().unwrap_or(Value::Nil),
        Node::List(items) => Value::List(all(items, scope)?),
        Node::Negated(inner) => Value::Number(-evaluate(inner, scope)?.number("-")?),
        Node::Not(inner) => Value::Truth(!evaluate(inner, scope)?.truth("!")?),
        Node::Binary(operator, left, right) => binary(*operator, left, right, scope)?,
        Node::Choice(condition, then, otherwise) => {
            let chosen = if evaluate(condition, scope)?.truth("?:")? { then } else { otherwise };
            evaluate(chosen, scope)?
        }
        Node::Call(function, arguments) => call(*function, all(arguments, scope)?)?,
        Node::Test(quantifier, list, condition) => test(*quantifier, &evaluate(list, scope)?, condition, scope)?,
    })
}

fn all(nodes: &[Node], scope: &Scope<'_>) -> Result<Vec<Value>, FormulaError> {
    nodes.iter().map(|node| evaluate(node, scope)).collect()
}

fn binary(operator: Operator, left: &Node, right: &Node, scope: &Scope<'_>) -> Result<Value, FormulaError> {
    let sign = operator.as_str();
    let left = evaluate(left, scope)?;
    // The right side of these is computed only if it matters.
    match operator {
        Operator::Coalesce if left != Value::Nil => return Ok(left),
        Operator::Coalesce => return evaluate(right, scope),
        Operator::And if !left.truth(sign)? => return Ok(Value::Truth(false)),
        Operator::Or if left.truth(sign)? => return Ok(Value::Truth(true)),
        Operator::And | Operator::Or => return Ok(Value::Truth(evaluate(right, scope)?.truth(sign)?)),
        _ => {}
    }
    let right = evaluate(right, scope)?;
    match operator {
        Operator::Equal => return Ok(Value::Truth(left == right)),
        Operator::NotEqual => return Ok(Value::Truth(left != right)),
        _ => {}
    }
    let (left, right) = (left.number(sign)?, right.number(sign)?);
    Ok(match operator {
        Operator::Add => Value::Number(left + right),
        Operator::Subtract => Value::Number(left - right),
        Operator::Multiply => Value::Number(left * right),
        Operator::Divide => Value::Number(left / right),
        Operator::Power => Value::Number(libm::pow(left, right)),
        Operator::Less => Value::Truth(left < right),
        Operator::LessOrEqual => Value::Truth(left <= right),
        Operator::Greater => Value::Truth(left > right),
        Operator::GreaterOrEqual => Value::Truth(left >= right),
        Operator::Equal | Operator::NotEqual | Operator::And | Operator::Or | Operator::Coalesce => Value::Nil,
    })
}

fn call(function: Function, arguments: Vec<Value>) -> Result<Value, FormulaError> {
    let name = function.as_str();
    if function == Function::Len {
        return match arguments.as_slice() {
            [Value::List(items)] => Ok(Value::Number(items.len() as f64)),
            other => Value::List(other.to_vec()).wrong(name, "one list"),
        };
    }
    let numbers = numbers(name, &arguments)?;
    let Some(&first) = numbers.first() else {
        // Only the sum of nothing is a number.
        return if function == Function::Sum {
            Ok(Value::Number(0.0))
        } else {
            Value::List(Vec::new()).wrong(name, "at least one number")
        };
    };
    let single = |result: f64| {
        if numbers.len() == 1 { Ok(result) } else { Value::List(Vec::new()).wrong(name, "one number") }
    };
    let sum = || numbers.iter().sum::<f64>();
    Ok(Value::Number(match function {
        Function::Abs => single(libm::fabs(first))?,
        Function::Ceil => single(libm::ceil(first))?,
        Function::Floor => single(libm::floor(first))?,
        Function::Round => single(libm::round(first))?,
        Function::Int => single(libm::trunc(first))?,
        Function::Float => single(first)?,
        Function::Min => numbers.iter().copied().fold(first, libm::fmin),
        Function::Max => numbers.iter().copied().fold(first, libm::fmax),
        Function::Sum => sum(),
        Function::Mean => sum() / numbers.len() as f64,
        Function::Median => median(numbers),
        Function::Len => numbers.len() as f64,
    }))
}

/// The numbers among arguments, lists opened.
fn numbers(name: &str, arguments: &[Value]) -> Result<Vec<f64>, FormulaError> {
    let mut numbers = Vec::with_capacity(arguments.len());
    for argument in arguments {
        match argument {
            Value::List(items) => {
                for item in items {
                    numbers.push(item.number(name)?);
                }
            }
            other => numbers.push(other.number(name)?),
        }
    }
    Ok(numbers)
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = numbers.get(middle).copied().unwrap_or(0.0);
    if numbers.len() % 2 == 1 {
        return upper;
    }
    let lower = numbers.get(middle.saturating_sub(1)).copied().unwrap_or(upper);
    (lower + upper) / 2.0
}

fn test(quantifier: Quantifier, list: &Value, condition: &Node, scope: &Scope<'_>) -> Result<Value, FormulaError> {
    let Value::List(items) = list else { return list.wrong("a test of elements", "a list") };
    let mut holds = 0_usize;
    for item in items {
        let inner = Scope { trigger: scope.trigger, element: Some(item) };
        holds += usize::from(evaluate(condition, &inner)?.truth("a test of elements")?);
    }
    Ok(match quantifier {
        Quantifier::Count => Value::Number(holds as f64),
        Quantifier::Any => Value::Truth(holds > 0),
        Quantifier::All => Value::Truth(holds == items.len()),
        Quantifier::None => Value::Truth(holds == 0),
    })
}
