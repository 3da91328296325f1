//! From text to tokens.

use super::QueryError;
use nodecast_model::domain::SimDuration;

/// A token and where it begins, in characters from the start counted from 1.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Token {
    pub kind: TokenKind,
    pub position: usize,
}

#[derive(Clone, PartialEq, Debug)]
pub(super) enum TokenKind {
    Number(f64),
    Text(String),
    /// A name, a keyword or a function.
    Word(String),
    Duration(SimDuration),
    /// An operator, a bracket or a comma.
    Sign(&'static str),
    End,
}

/// Signs, longer ones before those that they begin with.
const SIGNS: [&str; 24] = [
    "=~", "!~", "!=", "==", "<=", ">=", "=", "<", ">", "+", "-", "*", "/", "%", "^", "(", ")", "{", "}", "[", "]", ",",
    ":", "@",
];

/// Longest query, in characters.
const LENGTH_MAX: usize = 10_000;

pub(super) fn error(position: usize, problem: impl Into<String>) -> QueryError {
    QueryError { problem: problem.into(), position }
}

/// The tokens of `text`, with an end at the end.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, QueryError> {
    let characters: Vec<char> = text.chars().collect();
    if characters.len() > LENGTH_MAX {
        return Err(error(1, format!("the query is longer than {LENGTH_MAX} characters")));
    }
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&first) = characters.get(at) {
        if first.is_whitespace() {
            at += 1;
        } else if first == '#' {
            while characters.get(at).is_some_and(|&c| c != '\n') {
                at += 1;
            }
        } else {
            let position = at + 1;
            let kind = token(&characters, &mut at, first)?;
            tokens.push(Token { kind, position });
        }
    }
    tokens.push(Token { kind: TokenKind::End, position: characters.len() + 1 });
    Ok(tokens)
}

/// The token that begins at `at`, which moves behind it.
fn token(characters: &[char], at: &mut usize, first: char) -> Result<TokenKind, QueryError> {
    let follows = characters.get(*at + 1).copied();
    if first.is_ascii_digit() || (first == '.' && follows.is_some_and(|c| c.is_ascii_digit())) {
        return number(characters, at);
    }
    if first.is_ascii_alphabetic() || first == '_' {
        // Names of recorded series have colons in them.
        return Ok(TokenKind::Word(taken(characters, at, |c| c.is_ascii_alphanumeric() || c == '_' || c == ':')));
    }
    if matches!(first, '"' | '\'' | '`') {
        return quoted(characters, at, first).map(TokenKind::Text);
    }
    let rest: String = characters[*at..].iter().take(2).collect();
    match SIGNS.iter().find(|sign| rest.starts_with(**sign)) {
        Some(sign) => {
            *at += sign.len();
            Ok(TokenKind::Sign(sign))
        }
        None => Err(error(*at + 1, format!("`{first}` has no meaning here"))),
    }
}

fn taken(characters: &[char], at: &mut usize, belongs: impl Fn(char) -> bool) -> String {
    let begin = *at;
    while characters.get(*at).is_some_and(|&c| belongs(c)) {
        *at += 1;
    }
    characters[begin..*at].iter().collect()
}

/// A number (`12`, `1.5e3`, `0x1F`), or a duration (`5m`, `1h30m`).
fn number(characters: &[char], at: &mut usize) -> Result<TokenKind, QueryError> {
    let begin = *at;
    let wrong = |text: &str| error(begin + 1, format!("`{text}` is neither a number nor a span of time"));
    let mut text = taken(characters, at, |c| c.is_ascii_alphanumeric() || c == '.' || c == '_');
    if text.ends_with(['e', 'E']) && matches!(characters.get(*at), Some('+' | '-')) {
        text.push(characters[*at]);
        *at += 1;
        text.push_str(&taken(characters, at, |c| c.is_ascii_digit()));
    }
    let plain: String = text.chars().filter(|&c| c != '_').collect();
    if let Some(digits) = plain.strip_prefix("0x").or_else(|| plain.strip_prefix("0X")) {
        return u64::from_str_radix(digits, 16).map(|n| TokenKind::Number(n as f64)).map_err(|_| wrong(&text));
    }
    if let Ok(number) = plain.parse::<f64>() {
        return Ok(TokenKind::Number(number));
    }
    span(&plain).map(TokenKind::Duration).ok_or_else(|| wrong(&text))
}

/// A span of time: whole numbers with units, the larger unit first.
fn span(text: &str) -> Option<SimDuration> {
    const UNITS: [(&str, i64); 7] = [
        ("ms", 1),
        ("y", 31_536_000_000),
        ("w", 604_800_000),
        ("d", 86_400_000),
        ("h", 3_600_000),
        ("m", 60_000),
        ("s", 1_000),
    ];
    let mut rest = text;
    let (mut millis, mut largest) = (0_i64, i64::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&digits| digits > 0)?;
        let count: i64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, length) = UNITS.iter().find(|(unit, _)| rest.starts_with(unit))?;
        if *length >= largest {
            return None;
        }
        largest = *length;
        rest = &rest[unit.len()..];
        millis = millis.checked_add(count.checked_mul(*length)?)?;
    }
    // A century is more than any simulation lasts.
    (0..3_153_600_000_000).contains(&millis).then(|| SimDuration::from_millis(millis))
}

fn quoted(characters: &[char], at: &mut usize, quote: char) -> Result<String, QueryError> {
    let begin = *at;
    let mut text = String::new();
    *at += 1;
    loop {
        let Some(&c) = characters.get(*at) else {
            return Err(error(begin + 1, "this text has no closing quote"));
        };
        *at += 1;
        match c {
            _ if c == quote => return Ok(text),
            '\\' if quote != '`' => {
                let escaped = characters.get(*at).copied();
                *at += 1;
                text.push(match escaped {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(same @ ('\\' | '"' | '\'')) => same,
                    _ => return Err(error(*at - 1, "unknown escape in a text")),
                });
            }
            c => text.push(c),
        }
    }
}
