//! Which vCPU quota an instance type counts against.
//!
//! Source: AWS documentation of On-Demand and Spot vCPU quotas.
//!
//! Deviation: the families beyond standard, graphics and P have one quota together.

use super::settings::Quotas;
use crate::catalog::InstanceFacts;

/// The classes of instance types that share a quota.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QuotaClass {
    /// Families A, C, D, H, I, M, R, T, Z.
    Standard,
    /// Families G and VT.
    Graphics,
    /// Family P.
    Parallel,
    /// Everything else.
    Other,
}

impl QuotaClass {
    /// The class of a type.
    pub fn of(facts: &InstanceFacts) -> Self {
        let name = facts.name.as_str();
        let letters: &str = name.split(|c: char| !c.is_ascii_lowercase()).next().unwrap_or_default();
        match letters {
            "vt" => Self::Graphics,
            "p" => Self::Parallel,
            "inf" | "trn" | "hpc" | "dl" | "mac" | "f" | "x" | "u" => Self::Other,
            _ => match letters.chars().next() {
                Some('g') => Self::Graphics,
                Some('a' | 'c' | 'd' | 'h' | 'i' | 'm' | 'r' | 't' | 'z') => Self::Standard,
                _ => Self::Other,
            },
        }
    }

    /// The limit of the class.
    pub fn limit(self, quotas: &Quotas) -> u32 {
        match self {
            Self::Standard => quotas.standard,
            Self::Graphics => quotas.graphics,
            Self::Parallel => quotas.parallel,
            Self::Other => quotas.other,
        }
    }
}
