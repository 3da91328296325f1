//! Which vCPU quota an instance type counts against.
//!
//! Source: AWS documentation of On-Demand and Spot vCPU quotas.

use nodecast_model::catalog::InstanceFacts;

/// The classes of instance types that share a quota.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum QuotaClass {
    /// Families A, C, D, H, I, M, R, T, Z.
    Standard,
    /// Families G and VT.
    Graphics,
    /// Family P.
    Parallel,
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
    pub const ALL: [Self; 11] = [
        Self::Standard,
        Self::Graphics,
        Self::Parallel,
        Self::F,
        Self::Inf,
        Self::X,
        Self::Dl,
        Self::Trn,
        Self::Hpc,
        Self::HighMemory,
        Self::Other,
    ];

    /// The class of a type.
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

#[cfg(test)]
mod tests {
    use super::QuotaClass;
    use crate::settings::Quotas;
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
    fn default_quotas_exclude_p_instances() {
        let quotas = Quotas::default();
        assert_eq!(quotas.limit(QuotaClass::Standard), 100_000);
        assert_eq!(quotas.limit(QuotaClass::Graphics), 1_000);
        assert_eq!(quotas.limit(QuotaClass::Parallel), 0);
    }
}
