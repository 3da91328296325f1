//! Taints and tolerations.

use std::fmt;

use super::symbol::{Symbol, well_known};
use super::time::SimDuration;

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
pub enum TaintEffect {
    /// Keeps them away.
    NoSchedule,
    /// Keeps them away if another node will do.
    PreferNoSchedule,
    /// Keeps them away and evicts those that run.
    NoExecute,
}

impl TaintEffect {
    /// The effect that Kubernetes calls so.
    pub fn named(name: &str) -> Option<Self> {
        [Self::NoSchedule, Self::PreferNoSchedule, Self::NoExecute]
            .into_iter()
            .find(|noschedule| noschedule.as_str() == name)
    }

    /// The effect as Kubernetes writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A mark on a node that repels pods.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize)]
pub struct Taint {
    /// The taint's key.
    pub key: Symbol,
    /// Its value, empty if none was given.
    pub value: Symbol,
    /// What it does.
    pub effect: TaintEffect,
}

impl Taint {
    /// A taint without a value.
    pub const fn new(key: Symbol, effect: TaintEffect) -> Self {
        Self { key, value: well_known::EMPTY, effect }
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if self.value != well_known::EMPTY {
            write!(f, "={}", self.value)?;
        }
        write!(f, ":{:?}", self.effect)
    }
}

/// How a toleration compares values.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TolerationOperator {
    /// Key and value are equal.
    Equal,
    /// The key is equal, any value; with an empty key every taint.
    Exists,
}

/// A pod's permission to run on a tainted node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Toleration {
    /// The taint's key; empty (with `Exists`) for every key.
    pub key: Symbol,
    /// How values are compared.
    pub operator: TolerationOperator,
    /// The value for `Equal`.
    pub value: Symbol,
    /// The effect tolerated; `None` for all.
    pub effect: Option<TaintEffect>,
    /// How long a `NoExecute` taint is tolerated; `None` for ever.
    pub toleration_seconds: Option<SimDuration>,
}

impl Toleration {
    /// Tolerates everything.
    pub const EVERYTHING: Self = Self {
        key: well_known::EMPTY,
        operator: TolerationOperator::Exists,
        value: well_known::EMPTY,
        effect: None,
        toleration_seconds: None,
    };

    /// Tolerates any value of `key` with `effect`.
    pub const fn exists(key: Symbol, effect: Option<TaintEffect>) -> Self {
        Self { key, operator: TolerationOperator::Exists, value: well_known::EMPTY, effect, toleration_seconds: None }
    }

    /// Whether this toleration covers `taint`.
    ///
    /// Source: Kubernetes 1.36 `k8s.io/component-helpers/scheduling/corev1`, `ToleratesTaint`.
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|effect| effect != taint.effect) {
            return false;
        }
        if self.key != well_known::EMPTY && self.key != taint.key {
            return false;
        }
        match self.operator {
            TolerationOperator::Exists => true,
            TolerationOperator::Equal => self.key == taint.key && self.value == taint.value,
        }
    }
}

/// The first of `taints` that none of `tolerations` covers.
pub fn first_untolerated<'a>(
    taints: impl IntoIterator<Item = &'a Taint>,
    tolerations: &[Toleration],
) -> Option<&'a Taint> {
    taints.into_iter().find(|taint| !tolerations.iter().any(|toleration| toleration.tolerates(taint)))
}

#[cfg(test)]
mod tests {
    use super::{Taint, TaintEffect, Toleration, TolerationOperator, first_untolerated};
    use crate::domain::symbol::{Symbol, well_known};

    #[test]
    fn a_toleration_without_an_effect_covers_all_effects() {
        let taint = Taint::new(Symbol::new("team"), TaintEffect::NoExecute);
        assert!(Toleration::exists(Symbol::new("team"), None).tolerates(&taint));
        assert!(!Toleration::exists(Symbol::new("team"), Some(TaintEffect::NoSchedule)).tolerates(&taint));
        assert!(Toleration::EVERYTHING.tolerates(&taint));
    }

    #[test]
    fn equal_compares_the_value() {
        let taint = Taint { value: Symbol::new("blue"), ..Taint::new(Symbol::new("team"), TaintEffect::NoSchedule) };
        let equal = |value| Toleration {
            operator: TolerationOperator::Equal,
            value,
            ..Toleration::exists(Symbol::new("team"), None)
        };
        assert_eq!(first_untolerated([&taint], &[equal(Symbol::new("blue"))]), None);
        assert_eq!(first_untolerated([&taint], &[equal(well_known::EMPTY)]), Some(&taint));
    }
}
