//! Which instance types EKS Auto Mode allows.

use std::fmt;

use crate::catalog::InstanceFacts;

/// Families that Auto Mode knows, in order of name.
///
/// Source: EKS user guide, `automode/automode-learn-instances` (2026).
const FAMILIES: [&str; 130] = [
    "c4", "c5", "c5a", "c5ad", "c5d", "c5n", "c6a", "c6g", "c6gd", "c6gn", "c6i", "c6id", "c6in", "c7a", "c7g", "c7gd",
    "c7gn", "c7i", "c7i-flex", "c8a", "c8g", "c8gb", "c8gd", "c8gn", "c8i", "c8i-flex", "c8id", "d3", "d3en", "g4ad",
    "g4dn", "g5", "g5g", "g6", "g6e", "g7e", "gr6", "hpc8a", "i3", "i3en", "i4g", "i4i", "i7i", "i7ie", "i8g", "i8ge",
    "im4gn", "inf1", "inf2", "is4gen", "m4", "m5", "m5a", "m5ad", "m5d", "m5dn", "m5n", "m5zn", "m6a", "m6g", "m6gd",
    "m6i", "m6id", "m6idn", "m6in", "m7a", "m7g", "m7gd", "m7i", "m7i-flex", "m8a", "m8azn", "m8g", "m8gb", "m8gd",
    "m8gn", "m8i", "m8i-flex", "m8id", "p3dn", "p4d", "p4de", "p5", "p5e", "p5en", "p6-b200", "p6-b300", "r4", "r5",
    "r5a", "r5ad", "r5b", "r5d", "r5dn", "r5n", "r6a", "r6g", "r6gd", "r6i", "r6id", "r6idn", "r6in", "r7a", "r7g",
    "r7gd", "r7i", "r7iz", "r8a", "r8g", "r8gb", "r8gd", "r8gn", "r8i", "r8i-flex", "r8id", "t2", "t3", "t3a", "t4g",
    "trn1", "trn1n", "trn2", "x2gd", "x2idn", "x2iedn", "x2iezn", "x8aedz", "x8g", "x8i", "z1d",
];

/// Why Auto Mode launches no instance of a type.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Refusal {
    /// It has one vCPU, or is nano, micro or small.
    TooSmall,
    /// Its family is not in the list.
    Family,
    /// It is bare metal, of which the guide says nothing.
    BareMetal,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooSmall => "below the minimum size (more than one vCPU; not nano, micro or small)",
            Self::Family => "of a family that it does not support",
            Self::BareMetal => "bare metal",
        })
    }
}

/// Why Auto Mode does not launch instances of this type; `None` if it does.
///
/// Deviation: EKS Auto Mode launches no bare metal here. Its guide does not mention bare metal.
pub fn refusal(facts: &InstanceFacts) -> Option<Refusal> {
    if FAMILIES.binary_search(&facts.family.as_str()).is_err() {
        return Some(Refusal::Family);
    }
    if facts.bare_metal {
        return Some(Refusal::BareMetal);
    }
    let small = matches!(facts.size.as_str(), "nano" | "micro" | "small");
    (small || facts.vcpus <= 1).then_some(Refusal::TooSmall)
}

#[cfg(test)]
mod tests {
    use super::{FAMILIES, Refusal, refusal};
    use crate::catalog::testing::facts;

    #[test]
    fn families_are_in_order_and_each_once() {
        assert!(FAMILIES.windows(2).all(|pair| pair[0] < pair[1]), "a search goes by the order");
    }

    #[test]
    fn auto_mode_rejects_small_foreign_and_metal_types() {
        let of = |name| refusal(&facts(name));
        assert_eq!(of("m5.large"), None);
        assert_eq!(of("t3.medium"), None, "two vCPUs");
        assert_eq!(of("t3.small"), Some(Refusal::TooSmall));
        assert_eq!(of("m6g.medium"), Some(Refusal::TooSmall), "one vCPU");
        assert_eq!(of("m5.metal"), Some(Refusal::BareMetal));
        assert_eq!(of("c3.large"), Some(Refusal::Family));
    }
}
