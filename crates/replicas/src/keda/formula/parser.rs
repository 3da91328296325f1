//! Reading a formula: tokens, then precedence climbing with the binding powers of expr.

use super::FormulaError;

/// How deeply a formula may nest.
const MAX_DEPTH: usize = 100;

/// How many operators a formula may have: a chain of them nests as deeply as it is long.
const MAX_OPERATORS: usize = 1_000;

/// A part of a formula.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Node {
    Number(f64),
    Truth(bool),
    Nil,
    Name(String),
    /// The element that a condition in braces looks at.
    Element,
    List(Vec<Node>),
    Negated(Box<Node>),
    Not(Box<Node>),
    Binary(Operator, Box<Node>, Box<Node>),
    Choice(Box<Node>, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    /// A function that tests each element of a list.
    Test(Quantifier, Box<Node>, Box<Node>),
}

impl Node {
    pub fn visit_names<'a>(&'a self, visit: &mut impl FnMut(&'a str)) {
        match self {
            Self::Number(_) | Self::Truth(_) | Self::Nil | Self::Element => {}
            Self::Name(name) => visit(name),
            Self::List(nodes) | Self::Call(_, nodes) => nodes.iter().for_each(|node| node.visit_names(visit)),
            Self::Negated(node) | Self::Not(node) => node.visit_names(visit),
            Self::Binary(_, left, right) | Self::Test(_, left, right) => {
                left.visit_names(visit);
                right.visit_names(visit);
            }
            Self::Choice(condition, then, otherwise) => {
                for node in [condition, then, otherwise] {
                    node.visit_names(visit);
                }
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Power,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    And,
    Or,
    Coalesce,
}

impl Operator {
    const ALL: [(&'static str, Self); 17] = [
        ("+", Self::Add),
        ("-", Self::Subtract),
        ("*", Self::Multiply),
        ("/", Self::Divide),
        ("**", Self::Power),
        ("^", Self::Power),
        ("==", Self::Equal),
        ("!=", Self::NotEqual),
        ("<", Self::Less),
        ("<=", Self::LessOrEqual),
        (">", Self::Greater),
        (">=", Self::GreaterOrEqual),
        ("&&", Self::And),
        ("and", Self::And),
        ("||", Self::Or),
        ("or", Self::Or),
        ("??", Self::Coalesce),
    ];

    fn spelled(text: &str) -> Option<Self> {
        Self::ALL.iter().find(|(key, _)| *key == text).map(|(_, operator)| *operator)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Power => "**",
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::And => "&&",
            Self::Or => "||",
            Self::Coalesce => "??",
        }
    }

    /// Binding power in expr: the higher binds first.
    const fn power(self) -> u32 {
        match self {
            Self::Or => 10,
            Self::And => 15,
            Self::Equal | Self::NotEqual | Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => 20,
            Self::Add | Self::Subtract => 30,
            Self::Multiply | Self::Divide => 60,
            Self::Power => 100,
            Self::Coalesce => 500,
        }
    }
}

const NOT_POWER: u32 = 50;
const NEGATION_POWER: u32 = 90;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Function {
    Abs,
    Ceil,
    Floor,
    Round,
    Int,
    Float,
    Min,
    Max,
    Sum,
    Mean,
    Median,
    Len,
}

impl Function {
    const ALL: [(&'static str, Self); 12] = [
        ("abs", Self::Abs),
        ("ceil", Self::Ceil),
        ("floor", Self::Floor),
        ("round", Self::Round),
        ("int", Self::Int),
        ("float", Self::Float),
        ("min", Self::Min),
        ("max", Self::Max),
        ("sum", Self::Sum),
        ("mean", Self::Mean),
        ("median", Self::Median),
        ("len", Self::Len),
    ];

    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Quantifier {
    Count,
    Any,
    All,
    None,
}

const QUANTIFIERS: [(&str, Quantifier); 4] =
    [("count", Quantifier::Count), ("any", Quantifier::Any), ("all", Quantifier::All), ("none", Quantifier::None)];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Token<'a> {
    Number(f64),
    Word(&'a str),
    Sign(&'a str),
    End,
}

/// Reads a whole formula.
pub(super) fn parse(text: &str) -> Result<Node, FormulaError> {
    let mut parser =
        Parser { text, at: 0, token: Token::End, token_at: 0, depth: 0, operators: 0, in_condition: false };
    parser.advance()?;
    let node = parser.expression(0)?;
    match parser.token {
        Token::End => Ok(node),
        _ => parser.unexpected(),
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Where the next token starts.
    at: usize,
    token: Token<'a>,
    token_at: usize,
    depth: usize,
    operators: usize,
    /// Whether `#` has a meaning.
    in_condition: bool,
}

impl<'a> Parser<'a> {
    fn fail<T>(&self, problem: impl Into<String>) -> Result<T, FormulaError> {
        Err(FormulaError::Syntax { problem: problem.into(), position: self.token_at })
    }

    fn unexpected<T>(&self) -> Result<T, FormulaError> {
        match self.token {
            Token::End => self.fail("the formula ends too early"),
            Token::Word(word) => self.fail(format!("unexpected `{word}`")),
            Token::Sign(sign) => self.fail(format!("unexpected `{sign}`")),
            Token::Number(number) => self.fail(format!("unexpected {number}")),
        }
    }

    fn advance(&mut self) -> Result<(), FormulaError> {
        let rest = &self.text[self.at..];
        let rest = rest.trim_start();
        self.token_at = self.text.len() - rest.len();
        let Some(first) = rest.chars().next() else {
            self.at = self.text.len();
            self.token = Token::End;
            return Ok(());
        };
        let decimal = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        let length = if first.is_ascii_digit() || decimal {
            return self.number(rest);
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            self.token = Token::Word(&rest[..length]);
            length
        } else {
            let two = ["**", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", ".."];
            let length = two.iter().find(|sign| rest.starts_with(**sign)).map_or(first.len_utf8(), |sign| sign.len());
            self.token = Token::Sign(&rest[..length]);
            length
        };
        self.at = self.token_at + length;
        Ok(())
    }

    fn number(&mut self, rest: &'a str) -> Result<(), FormulaError> {
        let mut length = 0;
        let bytes = rest.as_bytes();
        while let Some(&byte) = bytes.get(length) {
            let after_exponent = length > 0 && matches!(bytes[length - 1], b'e' | b'E');
            let range = byte == b'.' && bytes.get(length + 1) == Some(&b'.');
            let part = byte.is_ascii_digit()
                || matches!(byte, b'.' | b'_' | b'e' | b'E')
                || (after_exponent && matches!(byte, b'+' | b'-'));
            if !part || range {
                break;
            }
            length += 1;
        }
        let Ok(number) = rest[..length].replace('_', "").parse() else {
            return self.fail(format!("`{}` is not a number", &rest[..length]));
        };
        self.token = Token::Number(number);
        self.at = self.token_at + length;
        Ok(())
    }

    fn require(&mut self, sign: &str) -> Result<(), FormulaError> {
        if self.token == Token::Sign(sign) { self.advance() } else { self.unexpected() }
    }

    fn expression(&mut self, power: u32) -> Result<Node, FormulaError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(FormulaError::TooDeep(MAX_DEPTH));
        }
        let mut left = self.operand()?;
        while let Token::Sign(text) | Token::Word(text) = self.token {
            let Some(operator) = Operator::spelled(text).filter(|operator| operator.power() >= power) else { break };
            self.operators += 1;
            if self.operators > MAX_OPERATORS {
                return Err(FormulaError::TooLong(MAX_OPERATORS));
            }
            self.advance()?;
            // Powers group from the right, everything else from the left.
            let next = if operator == Operator::Power { operator.power() } else { operator.power() + 1 };
            let right = self.expression(next)?;
            left = Node::Binary(operator, Box::new(left), Box::new(right));
        }
        if power == 0 && self.token == Token::Sign("?") {
            self.advance()?;
            let then = self.expression(0)?;
            self.require(":")?;
            let otherwise = self.expression(0)?;
            left = Node::Choice(Box::new(left), Box::new(then), Box::new(otherwise));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operand(&mut self) -> Result<Node, FormulaError> {
        let token = self.token;
        match token {
            Token::Number(number) => {
                self.advance()?;
                Ok(Node::Number(number))
            }
            Token::Sign("-") => {
                self.advance()?;
                Ok(Node::Negated(Box::new(self.expression(NEGATION_POWER)?)))
            }
            Token::Sign("+") => {
                self.advance()?;
                self.expression(NEGATION_POWER)
            }
            Token::Sign("!") | Token::Word("not") => {
                self.advance()?;
                Ok(Node::Not(Box::new(self.expression(NOT_POWER)?)))
            }
            Token::Sign("(") => {
                self.advance()?;
                let inner = self.expression(0)?;
                self.require(")")?;
                Ok(inner)
            }
            Token::Sign("[") => {
                self.advance()?;
                Ok(Node::List(self.list("]")?))
            }
            Token::Sign("#") if self.in_condition => {
                self.advance()?;
                Ok(Node::Element)
            }
            Token::Word(word) => {
                self.advance()?;
                self.word(word)
            }
            Token::Sign(_) | Token::End => self.unexpected(),
        }
    }

    fn word(&mut self, word: &str) -> Result<Node, FormulaError> {
        if self.token == Token::Sign("(") {
            if let Some((_, quantifier)) = QUANTIFIERS.iter().find(|(name, _)| *name == word) {
                self.advance()?;
                return self.test(*quantifier);
            }
            let Some((_, function)) = Function::ALL.iter().find(|(name, _)| *name == word) else {
                return self.fail(format!("unsupported function `{word}`"));
            };
            self.advance()?;
            return Ok(Node::Call(*function, self.list(")")?));
        }
        Ok(match word {
            "true" => Node::Truth(true),
            "false" => Node::Truth(false),
            "nil" => Node::Nil,
            _ => Node::Name(word.to_owned()),
        })
    }

    /// The rest of `count(list, {condition})`; the braces may be left out.
    fn test(&mut self, quantifier: Quantifier) -> Result<Node, FormulaError> {
        let list = self.expression(0)?;
        self.require(",")?;
        let outer = std::mem::replace(&mut self.in_condition, true);
        let braces = self.token == Token::Sign("{");
        if braces {
            self.advance()?;
        }
        let condition = self.expression(0)?;
        if braces {
            self.require("}")?;
        }
        self.in_condition = outer;
        self.require(")")?;
        Ok(Node::Test(quantifier, Box::new(list), Box::new(condition)))
    }

    fn list(&mut self, end: &str) -> Result<Vec<Node>, FormulaError> {
        let mut items = Vec::new();
        while self.token != Token::Sign(end) {
            items.push(self.expression(0)?);
            if self.token == Token::Sign(",") {
                self.advance()?;
            } else if self.token != Token::Sign(end) {
                return self.unexpected();
            }
        }
        self.advance()?;
        Ok(items)
    }
}
