//! From tokens to a tree: precedence climbing with PromQL's binding powers, types checked on the way.

use regex_lite::Regex;

use super::lexer::{Token, TokenKind, error, tokens};
use super::{LOOKBACK, QueryError};
use nodecast_model::domain::{SimDuration, Symbol};

/// How deeply a query may nest.
const DEPTH_MAX: usize = 60;

/// How many operators a query may have: a chain of them nests as deeply as it is long.
const OPERATORS_MAX: usize = 300;

/// A part of a query.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Number(f64),
    Instant(Selector),
    /// A function over a range of one selector.
    OverRange(RangeFunction, Selector, SimDuration),
    Call(Function, Vec<Node>),
    Aggregate(Aggregation, Grouping, Box<Node>),
    Negated(Box<Node>),
    Binary(Box<Binary>),
}

#[derive(Clone, Debug)]
pub(super) struct Binary {
    pub operator: Operator,
    /// Whether a comparison gives 0 or 1 instead of dropping elements.
    pub as_bool: bool,
    pub matching: Grouping,
    pub left: Node,
    pub right: Node,
}

#[derive(Clone, Debug)]
pub(super) struct Selector {
    pub name: String,
    pub matchers: Vec<Matcher>,
    pub offset: SimDuration,
}

#[derive(Clone, Debug)]
pub(super) struct Matcher {
    pub label: Symbol,
    pub test: Test,
}

#[derive(Clone, Debug)]
pub(super) enum Test {
    Is(String),
    IsNot(String),
    Matches(Regex),
    DoesNotMatch(Regex),
}

impl Matcher {
    pub fn holds(&self, value: &str) -> bool {
        match &self.test {
            Test::Is(text) => value == text,
            Test::IsNot(text) => value != text,
            Test::Matches(pattern) => pattern.is_match(value),
            Test::DoesNotMatch(pattern) => !pattern.is_match(value),
        }
    }
}

/// Which labels elements are grouped or matched by.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Grouping {
    By(Vec<Symbol>),
    Without(Vec<Symbol>),
}

macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($variant:ident = $word:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub(super) enum $name { $($variant,)* }

        impl $name {
            fn spelled(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

words! { RangeFunction {
    Rate = "rate",
    InstantRate = "irate",
    Increase = "increase",
    Delta = "delta",
    Average = "avg_over_time",
    Largest = "max_over_time",
    Smallest = "min_over_time",
    Sum = "sum_over_time",
    Count = "count_over_time",
    Last = "last_over_time",
}}

words! { Function {
    Abs = "abs",
    Ceil = "ceil",
    Floor = "floor",
    Round = "round",
    Clamp = "clamp",
    ClampMin = "clamp_min",
    ClampMax = "clamp_max",
    Scalar = "scalar",
    Vector = "vector",
}}

words! { Aggregation {
    Sum = "sum",
    Average = "avg",
    Smallest = "min",
    Largest = "max",
    Count = "count",
}}

words! { Operator {
    Add = "+",
    Subtract = "-",
    Multiply = "*",
    Divide = "/",
    Modulo = "%",
    Power = "^",
    Equal = "==",
    NotEqual = "!=",
    Less = "<",
    LessOrEqual = "<=",
    Greater = ">",
    GreaterOrEqual = ">=",
    And = "and",
    Unless = "unless",
    Or = "or",
}}

impl Operator {
    /// Binding power and whether it groups from the right.
    const fn power(self) -> (u8, bool) {
        match self {
            Self::Or => (1, false),
            Self::And | Self::Unless => (2, false),
            Self::Equal | Self::NotEqual | Self::Less | Self::LessOrEqual | Self::Greater | Self::GreaterOrEqual => {
                (3, false)
            }
            Self::Add | Self::Subtract => (4, false),
            Self::Multiply | Self::Divide | Self::Modulo => (5, false),
            Self::Power => (7, true),
        }
    }

    pub const fn compares(self) -> bool {
        self.power().0 == 3
    }

    pub const fn is_of_sets(self) -> bool {
        self.power().0 <= 2
    }
}

/// The binding power of a sign before a term: below that of `^`.
const SIGN_POWER: u8 = 6;

impl Node {
    /// Whether the value is a number rather than a vector.
    pub fn is_scalar(&self) -> bool {
        match self {
            Self::Number(_) | Self::Call(Function::Scalar, _) => true,
            Self::Negated(inner) => inner.is_scalar(),
            Self::Binary(binary) => binary.left.is_scalar() && binary.right.is_scalar(),
            Self::Instant(_) | Self::OverRange(..) | Self::Call(..) | Self::Aggregate(..) => false,
        }
    }

    /// Shows every selector, and whether it is under a function over a range.
    pub fn visit_selectors<'a>(&'a self, visit: &mut impl FnMut(&'a Selector, bool)) {
        match self {
            Self::Number(_) => {}
            Self::Instant(selector) => visit(selector, false),
            Self::OverRange(_, selector, _) => visit(selector, true),
            Self::Call(_, arguments) => arguments.iter().for_each(|node| node.visit_selectors(visit)),
            Self::Aggregate(_, _, inner) | Self::Negated(inner) => inner.visit_selectors(visit),
            Self::Binary(binary) => {
                binary.left.visit_selectors(visit);
                binary.right.visit_selectors(visit);
            }
        }
    }

    /// Shows how far back every selector looks.
    pub fn visit_reaches(&self, visit: &mut impl FnMut(SimDuration)) {
        match self {
            Self::Number(_) => {}
            Self::Instant(selector) => visit(LOOKBACK + selector.offset),
            Self::OverRange(_, selector, range) => visit(*range + selector.offset),
            Self::Call(_, arguments) => arguments.iter().for_each(|node| node.visit_reaches(visit)),
            Self::Aggregate(_, _, inner) | Self::Negated(inner) => inner.visit_reaches(visit),
            Self::Binary(binary) => {
                binary.left.visit_reaches(visit);
                binary.right.visit_reaches(visit);
            }
        }
    }
}

pub(super) fn parse(text: &str) -> Result<Node, QueryError> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, depth: 0, operators: 0 };
    let node = parser.expression(0)?;
    match parser.peek() {
        TokenKind::End => Ok(node),
        _ => Err(parser.unexpected("after the end of the query")),
    }
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
    depth: usize,
    operators: usize,
}

impl Parser {
    fn peek(&self) -> &TokenKind {
        &self.tokens[self.at].kind
    }

    fn position(&self) -> usize {
        self.tokens[self.at].position
    }

    fn next(&mut self) {
        self.at = (self.at + 1).min(self.tokens.len() - 1);
    }

    fn takes(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Sign(own) if *own == sign);
        if found {
            self.next();
        }
        found
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), TokenKind::Word(own) if own.eq_ignore_ascii_case(word));
        if found {
            self.next();
        }
        found
    }

    fn require(&mut self, sign: &str, place: &str) -> Result<(), QueryError> {
        if self.takes(sign) { Ok(()) } else { Err(self.unexpected(&format!("where `{sign}` is expected {place}"))) }
    }

    fn unexpected(&self, place: &str) -> QueryError {
        let found = match self.peek() {
            TokenKind::Number(number) => format!("`{number}` stands"),
            TokenKind::Text(_) => "a text stands".to_owned(),
            TokenKind::Word(word) => format!("`{word}` stands"),
            TokenKind::Duration(span) => format!("`{span}` stands"),
            TokenKind::Sign(sign) => format!("`{sign}` stands"),
            TokenKind::End => "the query ends".to_owned(),
        };
        error(self.position(), format!("{found} {place}"))
    }

    fn unsupported(&self, position: usize, what: &str) -> QueryError {
        error(position, format!("{what} is not supported"))
    }

    /// An expression whose operators bind at least as strongly as `least`.
    fn expression(&mut self, least: u8) -> Result<Node, QueryError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(error(self.position(), format!("the query nests deeper than {DEPTH_MAX} levels")));
        }
        let mut left = self.term()?;
        while let Some(operator) = self.operator() {
            let (power, from_right) = operator.power();
            if power < least {
                break;
            }
            let position = self.position();
            self.operators += 1;
            if self.operators > OPERATORS_MAX {
                return Err(error(position, format!("the query has more than {OPERATORS_MAX} operators")));
            }
            self.next();
            let as_bool = self.takes_word("bool");
            if as_bool && !operator.compares() {
                return Err(error(position, "`bool` belongs to comparisons"));
            }
            let matching = self.matching(operator)?;
            let right = self.expression(if from_right { power } else { power + 1 })?;
            left = binary(position, operator, as_bool, matching, left, right)?;
        }
        self.depth -= 1;
        Ok(left)
    }

    fn operator(&self) -> Option<Operator> {
        match self.peek() {
            TokenKind::Sign(sign) => Operator::spelled(sign),
            TokenKind::Word(word) => Operator::spelled(&word.to_ascii_lowercase()),
            _ => None,
        }
    }

    /// `on (...)` or `ignoring (...)`; without either all labels are matched.
    fn matching(&mut self, operator: Operator) -> Result<Grouping, QueryError> {
        let matching = if self.takes_word("on") {
            Grouping::By(self.names()?)
        } else if self.takes_word("ignoring") {
            Grouping::Without(self.names()?)
        } else {
            Grouping::Without(Vec::new())
        };
        for word in ["group_left", "group_right"] {
            let position = self.position();
            if !operator.is_of_sets() && self.takes_word(word) {
                return Err(self.unsupported(position, &format!("`{word}`")));
            }
        }
        Ok(matching)
    }

    fn term(&mut self) -> Result<Node, QueryError> {
        let position = self.position();
        match self.peek().clone() {
            TokenKind::Number(number) => {
                self.next();
                Ok(Node::Number(number))
            }
            TokenKind::Word(word) => {
                self.next();
                self.word(position, word)
            }
            _ if self.takes("-") => Ok(Node::Negated(Box::new(self.expression(SIGN_POWER)?))),
            _ if self.takes("+") => self.expression(SIGN_POWER),
            _ if self.takes("{") => self.selector(position, String::new(), true),
            _ if self.takes("(") => {
                let inner = self.expression(0)?;
                self.require(")", "after an expression in parentheses")?;
                if matches!(self.peek(), TokenKind::Sign("[")) {
                    return Err(self.unsupported(self.position(), "a range of an expression"));
                }
                Ok(inner)
            }
            _ => Err(self.unexpected("where a value is expected")),
        }
    }

    /// A word at the start of a term: a number, an aggregation, a function, or the name of a series.
    fn word(&mut self, position: usize, word: String) -> Result<Node, QueryError> {
        let lower = word.to_ascii_lowercase();
        match lower.as_str() {
            "inf" => return Ok(Node::Number(f64::INFINITY)),
            "nan" => return Ok(Node::Number(f64::NAN)),
            _ => {}
        }
        let opens = matches!(self.peek(), TokenKind::Sign("("));
        let groups = matches!(self.peek(), TokenKind::Word(next) if ["by", "without"].contains(&next.to_ascii_lowercase().as_str()));
        if (opens || groups)
            && let Some(aggregation) = Aggregation::spelled(&lower)
        {
            return self.aggregate(aggregation);
        }
        if !opens {
            return self.selector(position, word, false);
        }
        if let Some(function) = RangeFunction::spelled(&word) {
            return self.over_range(function, &word);
        }
        match Function::spelled(&word) {
            Some(function) => self.call(position, function, &word),
            None => Err(self.unsupported(position, &format!("`{word}`"))),
        }
    }

    fn aggregate(&mut self, aggregation: Aggregation) -> Result<Node, QueryError> {
        let before = self.grouping()?;
        self.require("(", "after an aggregation")?;
        let position = self.position();
        let inner = self.expression(0)?;
        if inner.is_scalar() {
            return Err(error(position, "an aggregation needs series, not a number"));
        }
        self.require(")", "after what is aggregated")?;
        let grouping = match before {
            Some(grouping) => Some(grouping),
            None => self.grouping()?,
        };
        Ok(Node::Aggregate(aggregation, grouping.unwrap_or(Grouping::By(Vec::new())), Box::new(inner)))
    }

    fn grouping(&mut self) -> Result<Option<Grouping>, QueryError> {
        if self.takes_word("by") {
            return self.names().map(Grouping::By).map(Some);
        }
        if self.takes_word("without") {
            return self.names().map(Grouping::Without).map(Some);
        }
        Ok(None)
    }

    /// A list of labels in parentheses.
    fn names(&mut self) -> Result<Vec<Symbol>, QueryError> {
        self.require("(", "before a list of labels")?;
        let mut names = Vec::new();
        while !self.takes(")") {
            let TokenKind::Word(name) = self.peek() else { return Err(self.unexpected("where a label is expected")) };
            names.push(Symbol::new(name));
            self.next();
            if !self.takes(",") {
                self.require(")", "after a list of labels")?;
                break;
            }
        }
        Ok(names)
    }

    fn over_range(&mut self, function: RangeFunction, word: &str) -> Result<Node, QueryError> {
        self.require("(", "after a function")?;
        let position = self.position();
        let name = match self.peek() {
            TokenKind::Word(name) => name.clone(),
            TokenKind::Sign("{") => String::new(),
            _ => {
                return Err(self.unexpected(&format!("where `{word}` needs a range, for example `requests_total[1m]`")));
            }
        };
        self.next();
        let (mut selector, range) = self.selector_parts(position, name.clone(), name.is_empty())?;
        let Some(range) = range else {
            return Err(error(position, format!("`{word}` needs a range, for example `{}[1m]`", selector.name)));
        };
        selector.offset = self.offset()?;
        self.require(")", "after a range")?;
        Ok(Node::OverRange(function, selector, range))
    }

    fn call(&mut self, position: usize, function: Function, word: &str) -> Result<Node, QueryError> {
        self.require("(", "after a function")?;
        let mut arguments = Vec::new();
        while !self.takes(")") {
            arguments.push(self.expression(0)?);
            if !self.takes(",") {
                self.require(")", "after the arguments of a function")?;
                break;
            }
        }
        let wanted: &[bool] = match function {
            Function::Abs | Function::Ceil | Function::Floor | Function::Scalar => &[false],
            Function::Round if arguments.len() == 1 => &[false],
            Function::Round | Function::ClampMin | Function::ClampMax => &[false, true],
            Function::Clamp => &[false, true, true],
            Function::Vector => &[true],
        };
        let given: Vec<bool> = arguments.iter().map(Node::is_scalar).collect();
        if given != wanted {
            let kinds: Vec<&str> = wanted.iter().map(|scalar| if *scalar { "a number" } else { "series" }).collect();
            return Err(error(position, format!("`{word}` takes {}", kinds.join(", then "))));
        }
        Ok(Node::Call(function, arguments))
    }

    /// The rest of a selector that stands for its newest samples.
    fn selector(&mut self, position: usize, name: String, open: bool) -> Result<Node, QueryError> {
        let (mut selector, range) = self.selector_parts(position, name, open)?;
        if range.is_some() {
            return Err(error(position, "a range needs a function, for example `rate(requests_total[1m])`"));
        }
        selector.offset = self.offset()?;
        Ok(Node::Instant(selector))
    }

    /// Labels and range of a selector; `open` says that its brace has been read.
    fn selector_parts(
        &mut self,
        position: usize,
        mut name: String,
        open: bool,
    ) -> Result<(Selector, Option<SimDuration>), QueryError> {
        let mut matchers = Vec::new();
        if open || self.takes("{") {
            while !self.takes("}") {
                let (label, test) = self.matcher()?;
                match (label.as_str(), test) {
                    ("__name__", Test::Is(text)) if name.is_empty() => name = text,
                    ("__name__", _) => return Err(self.unsupported(position, "a pattern of names of series")),
                    (_, test) => matchers.push(Matcher { label: Symbol::new(&label), test }),
                }
                if !self.takes(",") {
                    self.require("}", "after the labels of a selector")?;
                    break;
                }
            }
        }
        if name.is_empty() {
            return Err(self.unsupported(position, "a selector without the name of a series"));
        }
        let mut range = None;
        if self.takes("[") {
            let TokenKind::Duration(span) = *self.peek() else {
                return Err(self.unexpected("where a span of time is expected, for example `[1m]`"));
            };
            if span == SimDuration::ZERO {
                return Err(error(self.position(), "a range is longer than nothing"));
            }
            self.next();
            if matches!(self.peek(), TokenKind::Sign(":")) {
                return Err(self.unsupported(self.position(), "a subquery"));
            }
            self.require("]", "after a range")?;
            range = Some(span);
        }
        Ok((Selector { name, matchers, offset: SimDuration::ZERO }, range))
    }

    fn matcher(&mut self) -> Result<(String, Test), QueryError> {
        let TokenKind::Word(label) = self.peek().clone() else {
            return Err(self.unexpected("where a label is expected"));
        };
        self.next();
        let sign = match self.peek() {
            TokenKind::Sign(sign @ ("=" | "!=" | "=~" | "!~")) => *sign,
            _ => return Err(self.unexpected("where one of =, !=, =~ and !~ is expected")),
        };
        self.next();
        let position = self.position();
        let TokenKind::Text(text) = self.peek().clone() else {
            return Err(self.unexpected("where a text in quotes is expected"));
        };
        self.next();
        let pattern = || {
            Regex::new(&format!("^(?:{text})$"))
                .map_err(|problem| error(position, format!("the pattern cannot be read: {problem}")))
        };
        Ok(match sign {
            "=" => (label, Test::Is(text)),
            "!=" => (label, Test::IsNot(text)),
            "=~" => (label, Test::Matches(pattern()?)),
            _ => (label, Test::DoesNotMatch(pattern()?)),
        })
    }

    fn offset(&mut self) -> Result<SimDuration, QueryError> {
        let position = self.position();
        if self.takes("@") {
            return Err(self.unsupported(position, "`@`"));
        }
        if !self.takes_word("offset") {
            return Ok(SimDuration::ZERO);
        }
        let TokenKind::Duration(span) = *self.peek() else {
            return Err(self.unexpected("where a span of time is expected, for example `offset 5m`"));
        };
        self.next();
        Ok(span)
    }
}

/// A binary operation between values that it can take.
fn binary(
    position: usize,
    operator: Operator,
    as_bool: bool,
    matching: Grouping,
    left: Node,
    right: Node,
) -> Result<Node, QueryError> {
    let scalars = (left.is_scalar(), right.is_scalar());
    if operator.is_of_sets() && (scalars.0 || scalars.1) {
        return Err(error(position, "`and`, `or` and `unless` need series on both sides"));
    }
    if operator.compares() && scalars == (true, true) && !as_bool {
        return Err(error(position, "comparing two numbers needs `bool`"));
    }
    if (scalars.0 || scalars.1) && matching != Grouping::Without(Vec::new()) {
        return Err(error(position, "`on` and `ignoring` need series on both sides"));
    }
    Ok(Node::Binary(Box::new(Binary { operator, as_bool, matching, left, right })))
}
