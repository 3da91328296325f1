//! Which release of each program a scenario reproduces.

mod karpenter;
mod kubernetes;
mod vertical;

pub use karpenter::KarpenterVersion;
pub use kubernetes::KubernetesBehaviour;
pub use vertical::VerticalPodAutoscalerVersion;

use std::fmt;
use std::str::FromStr;

/// A version that this program does not reproduce.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown {program} version `{given}`; known are {known}")]
pub struct UnknownVersion {
    /// The program meant.
    pub program: &'static str,
    /// What was given.
    pub given: String,
    /// What could have been given.
    pub known: String,
    /// Of these what comes nearest, if a release was given.
    pub nearest: Option<String>,
}

/// Major and minor number of a release: `v1.13.2` has 1 and 13.
pub fn major_and_minor(release: &str) -> Option<(u8, u8)> {
    let mut numbers = release.strip_prefix('v').unwrap_or(release).split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The minor release of Kubernetes' major that comes nearest to the one given, from `oldest` on.
fn nearest_minor(given: &str, oldest: u8) -> Option<String> {
    let (_, minor) = major_and_minor(given).filter(|(major, _)| *major == 1)?;
    Some(format!("1.{}", minor.clamp(oldest, KubernetesVersion::NEWEST)))
}

/// A Kubernetes minor release, 1.20 to 1.37.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KubernetesVersion(u8);

impl KubernetesVersion {
    /// The oldest release of a tutorial.
    pub const OLDEST: u8 = 20;
    /// The newest release whose behaviour is known.
    pub const NEWEST: u8 = 37;

    /// The release 1.`minor`.
    pub fn from_minor(minor: u8) -> Option<Self> {
        (Self::OLDEST..=Self::NEWEST).contains(&minor).then_some(Self(minor))
    }

    /// The release after this one.
    pub fn next(self) -> Option<Self> {
        Self::from_minor(self.0 + 1)
    }

    /// The minor number.
    pub const fn minor(self) -> u8 {
        self.0
    }
}

impl Default for KubernetesVersion {
    /// 1.36.
    fn default() -> Self {
        Self(36)
    }
}

impl fmt::Display for KubernetesVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

impl FromStr for KubernetesVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let bare = text.strip_prefix('v').unwrap_or(text);
        bare.strip_prefix("1.")
            .and_then(|rest| rest.split('.').next())
            .and_then(|minor| minor.parse().ok())
            .and_then(Self::from_minor)
            .ok_or_else(|| UnknownVersion {
                program: "Kubernetes",
                given: text.to_owned(),
                known: format!("1.{} to 1.{}", Self::OLDEST, Self::NEWEST),
                nearest: nearest_minor(text, Self::OLDEST),
            })
    }
}

/// A Cluster Autoscaler minor release, 1.32 to 1.37, made for the Kubernetes release of the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct ClusterAutoscalerVersion(KubernetesVersion);

impl ClusterAutoscalerVersion {
    /// The oldest release whose behaviour is known.
    pub const OLDEST: u8 = 32;

    /// The release that is known and nearest to 1.`minor`.
    pub fn nearest(minor: u8) -> Self {
        Self(KubernetesVersion(minor.clamp(Self::OLDEST, KubernetesVersion::NEWEST)))
    }

    /// The Kubernetes release that it was made for.
    pub const fn kubernetes(self) -> KubernetesVersion {
        self.0
    }
}

impl fmt::Display for ClusterAutoscalerVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ClusterAutoscalerVersion {
    type Err = UnknownVersion;

    fn from_str(text: &str) -> Result<Self, UnknownVersion> {
        let release = text.parse::<KubernetesVersion>().ok().filter(|version| version.0 >= Self::OLDEST);
        release.map(Self).ok_or_else(|| UnknownVersion {
            program: "Cluster Autoscaler",
            given: text.to_owned(),
            known: format!("1.{} to 1.{}", Self::OLDEST, KubernetesVersion::NEWEST),
            nearest: nearest_minor(text, Self::OLDEST),
        })
    }
}

/// The release of every program that a scenario reproduces.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Versions {
    /// Karpenter.
    pub karpenter: KarpenterVersion,
    /// Kubernetes: scheduler, HPA and workload controllers.
    pub kubernetes: KubernetesVersion,
    /// Cluster Autoscaler.
    pub cluster_autoscaler: ClusterAutoscalerVersion,
    /// Vertical Pod Autoscaler.
    pub vertical: VerticalPodAutoscalerVersion,
}

#[cfg(test)]
mod tests {
    use super::{ClusterAutoscalerVersion, KubernetesVersion};

    #[test]
    fn the_nearest_release_is_named() {
        assert_eq!("1.40".parse::<KubernetesVersion>().unwrap_err().nearest.as_deref(), Some("1.37"));
        assert_eq!("1.20".parse::<ClusterAutoscalerVersion>().unwrap_err().nearest.as_deref(), Some("1.32"));
        assert_eq!("2.0".parse::<KubernetesVersion>().unwrap_err().nearest, None);
    }

    #[test]
    fn versions_read_with_or_without_their_patch_level() {
        assert_eq!("1.36".parse::<KubernetesVersion>().map(KubernetesVersion::minor), Ok(36));
        let autoscaler = |text: &str| text.parse::<ClusterAutoscalerVersion>().map(|version| version.to_string());
        assert_eq!(autoscaler("v1.34.1"), Ok("1.34".to_owned()));
        assert!(autoscaler("1.20").is_err_and(|error| error.program == "Cluster Autoscaler"));
        let unknown = "2.0".parse::<KubernetesVersion>().map_err(|e| e.to_string());
        assert_eq!(unknown, Err("unknown Kubernetes version `2.0`; known are 1.20 to 1.37".to_owned()));
    }
}
