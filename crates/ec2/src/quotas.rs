//! The vCPU quotas of an account: which one an instance type counts against, and the limits.
//!
//! Source: EC2 user guide, "On-Demand Instance quotas" and "Spot Instance quotas" (2026): On-Demand and Spot have quotas of their own. Spot
//! requests of P5 have another quota than those of P4, P3, and P2.
//!
//! Deviation: for Spot, generations of P after the fifth count against the quota of P5.

use std::fmt;

use nodecast_model::catalog::InstanceFacts;

/// The classes of instance types that share a quota.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QuotaClass {
    /// Families A, C, D, H, I, M, R, T, Z.
    Standard,
    /// Families G and VT.
    Graphics,
    /// Family P; of Spot without P5 and later ones.
    Parallel,
    /// Families P5 and later, of Spot only.
    P5,
    /// Family F.
    F,
    /// Family Inf.
    Inf,
    /// Family X.
    X,
    /// Family DL.
    Dl,
    /// Family Trn.
    Trn,
    /// Family HPC.
    Hpc,
    /// Family U, of high memory.
    HighMemory,
    /// Everything else, as Mac.
    Other,
}

impl QuotaClass {
    /// Every class.
    pub const ALL: [Self; 12] = [
        Self::Standard,
        Self::Graphics,
        Self::Parallel,
        Self::P5,
        Self::F,
        Self::Inf,
        Self::X,
        Self::Dl,
        Self::Trn,
        Self::Hpc,
        Self::HighMemory,
        Self::Other,
    ];

    /// The class of a type for On-Demand.
    pub fn from_facts(facts: &InstanceFacts) -> Self {
        let name = facts.name.as_str();
        let letters = &name[..name.bytes().take_while(u8::is_ascii_lowercase).count()];
        match letters {
            "vt" => Self::Graphics,
            "p" => Self::Parallel,
            "f" => Self::F,
            "inf" => Self::Inf,
            "dl" => Self::Dl,
            "trn" => Self::Trn,
            "hpc" => Self::Hpc,
            "u" => Self::HighMemory,
            "mac" => Self::Other,
            _ => match letters.chars().next() {
                Some('g') => Self::Graphics,
                Some('x') => Self::X,
                Some('a' | 'c' | 'd' | 'h' | 'i' | 'm' | 'r' | 't' | 'z') => Self::Standard,
                _ => Self::Other,
            },
        }
    }

    /// The class as scenario files write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Graphics => "graphics",
            Self::Parallel => "parallel",
            Self::P5 => "p5",
            Self::F => "f",
            Self::Inf => "inf",
            Self::X => "x",
            Self::Dl => "dl",
            Self::Trn => "trn",
            Self::Hpc => "hpc",
            Self::HighMemory => "high_memory",
            Self::Other => "other",
        }
    }
}

/// A vCPU quota of an account in a region.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct QuotaKey {
    /// The class of instance types.
    pub class: QuotaClass,
    /// Whether it is the quota of Spot, and not of On-Demand.
    pub spot: bool,
}

impl QuotaKey {
    /// The quota of a type.
    pub fn from_facts(facts: &InstanceFacts, spot: bool) -> Self {
        let class = QuotaClass::from_facts(facts);
        let generation = facts.name.as_str().bytes().find(u8::is_ascii_digit);
        if spot && class == QuotaClass::Parallel && generation.is_some_and(|digit| digit >= b'5') {
            return Self { class: QuotaClass::P5, spot };
        }
        Self { class, spot }
    }

    /// Whether a limit of `class` for On-Demand and Spot is a limit of this quota.
    pub fn is_in(self, class: QuotaClass) -> bool {
        self.class == class || (self.class == QuotaClass::P5 && class == QuotaClass::Parallel)
    }
}

impl fmt::Display for QuotaKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", if self.spot { "Spot" } else { "On-Demand" }, self.class.as_str())
    }
}

/// Limits on vCPUs in use, of On-Demand and of Spot by class of instance types.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quotas {
    on_demand: [u32; QuotaClass::ALL.len()],
    spot: [u32; QuotaClass::ALL.len()],
}

impl Quotas {
    /// A limit.
    pub fn limit(&self, quota: QuotaKey) -> u32 {
        let limits = if quota.spot { &self.spot } else { &self.on_demand };
        limits[quota.class as usize]
    }

    /// Sets the limit of a class for On-Demand and Spot each. The limit of P includes P5.
    #[must_use]
    pub fn with(mut self, class: QuotaClass, vcpus: u32) -> Self {
        self.on_demand[class as usize] = vcpus;
        self = self.with_spot(class, vcpus);
        if class == QuotaClass::Parallel { self.with_spot(QuotaClass::P5, vcpus) } else { self }
    }

    /// Sets the limit of a class for Spot.
    #[must_use]
    pub fn with_spot(mut self, class: QuotaClass, vcpus: u32) -> Self {
        self.spot[class as usize] = vcpus;
        self
    }
}

impl Default for Quotas {
    /// Many vCPUs of the standard families, as a large account has; 1,000 of the others; P must be requested, as at AWS.
    fn default() -> Self {
        let others = [1_000; QuotaClass::ALL.len()];
        let all = Self { on_demand: others, spot: others };
        all.with(QuotaClass::Standard, 100_000).with(QuotaClass::Parallel, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::{QuotaClass, QuotaKey, Quotas};
    use nodecast_model::domain::Symbol;
    use nodecast_prices::Catalog;

    #[test]
    fn types_count_against_the_quota_of_their_letter() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        for (name, class) in [
            ("m7g.large", QuotaClass::Standard),
            ("im4gn.large", QuotaClass::Standard),
            ("g5.xlarge", QuotaClass::Graphics),
            ("vt1.3xlarge", QuotaClass::Graphics),
            ("p3.2xlarge", QuotaClass::Parallel),
            ("f1.2xlarge", QuotaClass::F),
            ("inf1.xlarge", QuotaClass::Inf),
            ("x1e.xlarge", QuotaClass::X),
            ("x2iedn.xlarge", QuotaClass::X),
            ("dl1.24xlarge", QuotaClass::Dl),
            ("trn1.2xlarge", QuotaClass::Trn),
        ] {
            let facts = &region.instance_type(Symbol::new(name)).unwrap_or_else(|| panic!("{name}")).facts;
            assert_eq!(QuotaClass::from_facts(facts), class, "{name}");
        }
        let memory: Vec<_> = region.types.iter().filter(|kind| kind.facts.name.as_str().starts_with('u')).collect();
        assert!(!memory.is_empty());
        assert!(memory.iter().all(|kind| QuotaClass::from_facts(&kind.facts) == QuotaClass::HighMemory));
    }

    #[test]
    fn spot_p5_has_its_own_quota() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        let quota = |name, spot| {
            let facts = &region.instance_type(Symbol::new(name)).unwrap_or_else(|| panic!("{name}")).facts;
            QuotaKey::from_facts(facts, spot).to_string()
        };
        assert_eq!(quota("p5.48xlarge", true), "Spot p5");
        assert_eq!(quota("p5.48xlarge", false), "On-Demand parallel");
        assert_eq!(quota("p3.2xlarge", true), "Spot parallel");
        assert_eq!(quota("m5.large", true), "Spot standard");
    }

    #[test]
    fn quota_of_both_markets_applies_unless_spot_differs() {
        let quotas = Quotas::default().with(QuotaClass::Parallel, 96).with_spot(QuotaClass::Standard, 5);
        let limit = |class, spot| quotas.limit(QuotaKey { class, spot });
        assert_eq!((limit(QuotaClass::Standard, false), limit(QuotaClass::Standard, true)), (100_000, 5));
        assert_eq!((limit(QuotaClass::Parallel, true), limit(QuotaClass::P5, true)), (96, 96));
        assert_eq!(limit(QuotaClass::Graphics, true), 1_000);
        assert_eq!(Quotas::default().limit(QuotaKey { class: QuotaClass::P5, spot: true }), 0);
    }
}
