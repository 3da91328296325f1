//! What of a release is not reproduced and could change an answer.
//!
//! Deviation: for v0.23 to v0.37, sidecars among init containers count as in kube-scheduler, also before v0.34.
//! Pod-level `resources` count, also before v1.8.
//! Deviation: pods can be bound as soon as a node is Ready, even if Karpenter has not seen it. From v1.0, Karpenter
//! must have seen it.
//! Deviation: back-ports to late patch levels are unknown. A rule of a minor release may also be in the last patches
//! of the previous one.

use nodecast_model::domain::KarpenterVersion;

/// A range of releases, the last included, with a sentence.
type Caveat = ((u8, u8), (u8, u8), &'static str);

/// Each is for any run of these releases; what concerns a field of a NodePool is said where the field is stated.
const BY_RANGE: [Caveat; 1] =
    [((0, 23), (0, 27), "types with several network cards offer the pods of the first card alone")];

/// What is known of a release, could change an answer and is not reproduced, each as a sentence.
pub fn caveats(release: KarpenterVersion) -> Vec<&'static str> {
    let release = release.release();
    let ranged = BY_RANGE.iter().filter(|(first, last, _)| (*first..=*last).contains(&release)).map(|range| range.2);
    ranged.collect()
}

#[cfg(test)]
mod tests {
    use super::caveats;

    #[test]
    fn caveats_are_those_of_the_release() {
        let count = |text: &str| caveats(text.parse().unwrap()).len();
        let counts = ["v0.22", "v0.23", "v0.31", "v0.34.0", "v0.34.1", "v1.0", "v1.8.4", "v1.12.3", "v1.13"].map(count);
        assert_eq!(counts, [0, 1, 0, 0, 0, 0, 0, 0, 0]);
    }
}
