//! How the values of flags are written.

use crate::discovery::Discovery;
use crate::expander::ExpanderChain;
use crate::quotas::{Limited, ResourceLimit};
use nodecast_model::domain::durations::duration;
use nodecast_model::domain::{SimDuration, Symbol};

/// Where a value goes.
pub(super) enum Slot<'a> {
    Truth(&'a mut bool),
    /// A number that may be negative.
    Integer(&'a mut i64),
    Count(&'a mut i64),
    Number(&'a mut f64),
    Duration(&'a mut SimDuration),
    /// A span above 0.
    Interval(&'a mut SimDuration),
    OptionalDuration(&'a mut Option<SimDuration>),
    Seconds(&'a mut SimDuration),
    Symbols(&'a mut Vec<Symbol>),
    Chain(&'a mut ExpanderChain),
    /// The limits, which of them, and the unit of the flag.
    Limit(&'a mut Vec<ResourceLimit>, Limited, i64),
    Gpu(&'a mut Vec<ResourceLimit>),
    /// Tags by which groups are found.
    Tags(&'a mut Discovery),
    /// A group by name, with its limits.
    Group(&'a mut Discovery),
}

impl Slot<'_> {
    pub(super) fn set(&mut self, text: &str) -> Result<(), String> {
        match self {
            Self::Truth(slot) => **slot = truth(text)?,
            Self::Integer(slot) => **slot = integer(text)?,
            Self::Count(slot) => **slot = count(text)?,
            Self::Number(slot) => **slot = number(text)?,
            Self::Duration(slot) => **slot = span(text)?,
            Self::Interval(slot) => **slot = interval(text)?,
            Self::OptionalDuration(slot) => **slot = Some(span(text)?),
            Self::Seconds(slot) => **slot = SimDuration::from_secs(count(text)?),
            Self::Symbols(slot) => slot.extend(text.split(',').filter(|name| !name.is_empty()).map(Symbol::new)),
            Self::Chain(slot) => **slot = text.parse()?,
            Self::Tags(slot) => slot.add_tags(text)?,
            Self::Group(slot) => slot.add_group(text)?,
            Self::Limit(slot, resource, unit) => {
                let (min, max) = text.split_once(':').ok_or_else(|| format!("`{text}` is not <min>:<max>"))?;
                set_limit(slot, *resource, range(min, max, *unit)?);
            }
            Self::Gpu(slot) => {
                for limit in text.split(',') {
                    let mut parts = limit.split(':');
                    let (Some(kind), Some(min), Some(max), None) =
                        (parts.next(), parts.next(), parts.next(), parts.next())
                    else {
                        return Err(format!("`{limit}` is not <type>:<min>:<max>"));
                    };
                    set_limit(slot, Limited::Gpu(Symbol::new(kind)), range(min, max, 1)?);
                }
            }
        }
        Ok(())
    }
}

fn set_limit(limits: &mut Vec<ResourceLimit>, resource: Limited, (min, max): (i64, i64)) {
    limits.retain(|limit| limit.resource != resource);
    limits.push(ResourceLimit { resource, min, max });
    limits.sort_by_key(|limit| limit.resource);
}

fn range(min: &str, max: &str, unit: i64) -> Result<(i64, i64), String> {
    let (min, max) = (integer(min)?, integer(max)?);
    if min < 0 || max < min {
        return Err(format!("{min}:{max} is not a range"));
    }
    Ok((min.saturating_mul(unit), max.saturating_mul(unit)))
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("`{text}` is neither true nor false")),
    }
}

fn integer(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number"))
}

/// A whole number of 0 or more. The program itself takes any: what is below zero has no meaning there, or that of none.
fn count(text: &str) -> Result<i64, String> {
    let number = integer(text)?;
    if number < 0 { Err(format!("{text} is below zero")) } else { Ok(number) }
}

/// A finite number of 0 or more.
fn number(text: &str) -> Result<f64, String> {
    let number: f64 = text.parse().map_err(|_| format!("`{text}` is not a number"))?;
    match number {
        number if !number.is_finite() => Err(format!("`{text}` is not a number")),
        number if number < 0.0 => Err(format!("{text} is below zero")),
        number => Ok(number),
    }
}

/// A span of 0 or more.
fn span(text: &str) -> Result<SimDuration, String> {
    let span = duration(text)?;
    if span < SimDuration::ZERO { Err(format!("{text} is below zero")) } else { Ok(span) }
}

/// A span above 0: without one a loop would never come to an end.
fn interval(text: &str) -> Result<SimDuration, String> {
    let span = span(text)?;
    if span == SimDuration::ZERO { Err(format!("{text} is no time at all")) } else { Ok(span) }
}
