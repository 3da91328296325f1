//! Size flexibility of regional Reserved Instances: normalised units.

/// Families whose regional reservations cover their own size alone.
///
/// Source: EC2 user guide, "How Reserved Instance discounts are applied", limitations of instance size flexibility (2026).
const OF_ONE_SIZE: [&str; 15] = [
    "g4ad", "g4dn", "g5", "g5g", "g6", "g6e", "g6f", "gr6", "gr6f", "hpc7a", "inf1", "inf2", "p5", "u7i-6tb", "u7i-8tb",
];

/// Whether regional Linux reservations of the family cover its other sizes.
pub(crate) fn is_size_flexible(family: &str) -> bool {
    !OF_ONE_SIZE.contains(&family)
}

/// Normalised units of `metal` without a size; of all other families it has those of 24xlarge.
///
/// Source: EC2 user guide, "How Reserved Instance discounts are applied", normalization factor for bare metal instances (2026): that of the largest
/// virtual size of the family, so that i3.metal counts as i3.16xlarge although it has eight vCPUs more.
const METAL: [(u32, &[&str]); 6] = [
    (32, &["a1"]),
    (96, &["m5zn", "x2iezn", "z1d"]),
    (
        128,
        &[
            "c6g", "c6gd", "c7g", "c7gd", "c7gn", "g5g", "i3", "m6g", "m6gd", "m7g", "m7gd", "r6g", "r6gd", "r7g",
            "r7gd", "x2gd",
        ],
    ),
    (144, &["c5n"]),
    (
        256,
        &[
            "c6i", "c6id", "c6in", "i4i", "m6i", "m6id", "m6idn", "m6in", "r6i", "r6id", "r6idn", "r6in", "x2idn",
            "x2iedn",
        ],
    ),
    (384, &["c6a", "m6a", "r6a"]),
];

/// Quarters of a normalised unit of a size: nano 1, micro 2, small 4, medium 8, large 16, xlarge 32 and multiples of it.
pub(crate) fn quarter_units(name: &str) -> u32 {
    let (family, size) = name.split_once('.').unwrap_or_default();
    match size {
        "nano" => 1,
        "micro" => 2,
        "small" => 4,
        "medium" => 8,
        "large" => 16,
        "xlarge" => 32,
        _ => {
            let digits: String = size.trim_start_matches("metal-").chars().take_while(char::is_ascii_digit).collect();
            let metal =
                || METAL.iter().find(|(_, families)| families.contains(&family)).map_or(8 * 24, |metal| metal.0);
            digits.parse::<u32>().map_or_else(|_| 4 * metal(), |multiple| 32 * multiple.min(1_000))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::quarter_units;
    use nodecast_prices::Catalog;

    #[test]
    fn bare_metal_has_units_of_largest_virtual_size() {
        let region = Catalog::embedded().and_then(|catalog| catalog.region("us-east-1")).unwrap();
        for kind in &region.types {
            let name = kind.facts.name.as_str();
            let is_metal = name.contains(".metal") && !name.starts_with("mac");
            let vcpus = if name == "i3.metal" { 64 } else { kind.facts.vcpus };
            assert!(!is_metal || quarter_units(name) == 4 * 2 * vcpus, "{name}: {vcpus} vCPUs");
        }
    }
}
