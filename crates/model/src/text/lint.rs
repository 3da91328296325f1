//! Lints: what a warning is called, when it applies, and how the cause may bias the answer.
//!
//! A table of lints stands with the readers or models that lack something ([`lints!`](crate::lints)); the place that knows the values writes
//! the sentence. Must not: hold sentences with values.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::Effect;

/// Stable name of a lint: `NC0123`. A number is never used for a second meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(into = "String", try_from = "String")]
pub struct LintId(u16);

impl LintId {
    /// The number alone.
    pub const fn number(self) -> u16 {
        self.0
    }
}

impl fmt::Display for LintId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NC{:04}", self.0)
    }
}

impl From<LintId> for String {
    fn from(id: LintId) -> Self {
        id.to_string()
    }
}

/// A text that is not of the form `NC0123`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not a lint id: expected NC and four digits")]
pub struct NoLintId;

impl FromStr for LintId {
    type Err = NoLintId;

    fn from_str(text: &str) -> Result<Self, NoLintId> {
        let digits = text.strip_prefix("NC").filter(|digits| digits.len() == 4).ok_or(NoLintId)?;
        if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NoLintId);
        }
        digits.parse().map(Self).map_err(|_| NoLintId)
    }
}

impl TryFrom<String> for LintId {
    type Error = NoLintId;

    fn try_from(text: String) -> Result<Self, NoLintId> {
        text.parse()
    }
}

/// Direction in which the cause of a warning moves the answer, compared with the real cluster's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Bias {
    /// The answer is not biased: the warning reports what happened in the run, or what has no effect.
    None,
    /// Either direction.
    Unknown,
    /// Cost too low.
    CostLow,
    /// Cost too high.
    CostHigh,
    /// Waits too short.
    WaitsShort,
    /// Waits too long.
    WaitsLong,
    /// Cost too low and waits too short: pods or load are missing.
    CostLowWaitsShort,
    /// Cost too low and waits too long: pods stay pending.
    CostLowWaitsLong,
    /// Cost too high and waits too short: there are too many nodes.
    CostHighWaitsShort,
}

impl Bias {
    /// The direction in words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Unknown => "either direction",
            Self::CostLow => "cost too low",
            Self::CostHigh => "cost too high",
            Self::WaitsShort => "waits too short",
            Self::WaitsLong => "waits too long",
            Self::CostLowWaitsShort => "cost too low, waits too short",
            Self::CostLowWaitsLong => "cost too low, waits too long",
            Self::CostHighWaitsShort => "cost too high, waits too short",
        }
    }
}

/// A kind of warning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lint {
    id: LintId,
    name: &'static str,
    level: Effect,
    bias: Bias,
    when: &'static str,
}

impl Lint {
    /// A row of a table. Use [`lints!`](crate::lints).
    pub const fn new(number: u16, name: &'static str, level: Effect, bias: Bias, when: &'static str) -> Self {
        Self { id: LintId(number), name, level, bias, when }
    }

    /// Its stable name.
    pub const fn id(&self) -> LintId {
        self.id
    }

    /// The name of its constant.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What the cause can do to the answer.
    pub const fn level(&self) -> Effect {
        self.level
    }

    /// In which direction.
    pub const fn bias(&self) -> Bias {
        self.bias
    }

    /// When it applies: one or two sentences.
    pub const fn when(&self) -> &'static str {
        self.when
    }
}

/// Declares a table of lints: `NAME = number, Level, Bias, "When it applies.";` for each, and `LINTS`, all of them in order.
#[macro_export]
macro_rules! lints {
    ($($name:ident = $number:literal, $level:ident, $bias:ident, $when:literal;)+) => {
        $(
            #[doc = $when]
            pub static $name: $crate::text::lint::Lint = $crate::text::lint::Lint::new(
                $number,
                stringify!($name),
                $crate::text::error::Effect::$level,
                $crate::text::lint::Bias::$bias,
                $when,
            );
        )+

        /// All of this table, in order.
        pub static LINTS: &[&$crate::text::lint::Lint] = &[$(&$name),+];
    };
}

#[cfg(test)]
mod tests {
    use super::{LintId, NoLintId};

    #[test]
    fn lint_id_parses_what_it_prints() {
        assert_eq!("NC0042".parse::<LintId>().map(|id| id.to_string()), Ok("NC0042".to_owned()));
        for wrong in ["NC42", "nc0042", "NC00420", "NC+042", "", "0042"] {
            assert_eq!(wrong.parse::<LintId>(), Err(NoLintId), "{wrong}");
        }
    }
}
